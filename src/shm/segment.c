/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealed memfd segments. gantryd creates them and never maps them; guests and workers adopt them,
 * at attach. The seals are set before another process gets the descriptor, so the size cannot have
 * changed in between.
 */
#include "shm/segment.h"

#include "base/checked.h"
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x8u
#endif

int gn_segment_create(const char *name, uint64_t bytes, struct gn_segment *ret)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (bytes == 0 || bytes > (uint64_t)INT64_MAX - page)
        return -EINVAL;
    bytes = gn_align_up(bytes, page);
    int fd = gn_fd_memory(name, MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
        fd = gn_fd_memory(name, MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)bytes) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
        int error = errno;
        gn_fd_close(fd);
        return -error;
    }
    *ret = (struct gn_segment){.fd = fd, .bytes = bytes};
    return 0;
}

int gn_segment_map(struct gn_segment *s)
{
    if (s->base)
        return 0;
    void *base = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (base == MAP_FAILED)
        return -errno;
    /*
     * A forked child opens its own session: through this mapping it would write into its parent's
     * rings.
     */
    if (madvise(base, s->bytes, MADV_DONTFORK) < 0) {
        int error = errno;
        munmap(base, s->bytes);
        return -error;
    }
    s->base = base;
    return 0;
}

int gn_segment_adopt(int fd, uint64_t max_bytes, struct gn_segment *ret)
{
    struct stat st;
    struct statfs fs;
    int seals = fcntl(fd, F_GET_SEALS);
    /* -EINVAL if the descriptor is not a memfd */
    if (seals < 0)
        return -errno;
    if ((seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
        return -EINVAL;
    if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
        return -errno;
    /*
     * A memfd of huge pages can also be sealed, but raises SIGBUS when the pool of huge pages is
     * empty.
     */
    if (fs.f_type != TMPFS_MAGIC)
        return -EINVAL;
    if (st.st_size <= 0 || (uint64_t)st.st_size > max_bytes)
        return -EINVAL;
    struct gn_segment s = {.fd = fd, .bytes = (uint64_t)st.st_size};
    int r = gn_segment_map(&s);
    if (r < 0)
        return r;
    *ret = s;
    return 0;
}

void gn_segment_fini(struct gn_segment *s)
{
    if (s->base)
        munmap(s->base, s->bytes);
    gn_fd_close(s->fd);
    *s = (struct gn_segment)GN_SEGMENT_NONE;
}
