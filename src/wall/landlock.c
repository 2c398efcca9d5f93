/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raises the Landlock wall, on the worker's main thread. From then on the worker can open only the
 * files that gn_wall_driver_files lists, the tenant's cache and its own temporary files. It can
 * write only the latter two and devices. It can bind or connect no TCP port, connect no abstract
 * socket, and signal or trace no process outside. It never affects descriptors that the worker has
 * or receives.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wall/parts.h"

/* The kernel's interface is repeated here, because system headers may be older than the kernel. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif
#define CREATE_VERSION    1u
#define RULE_PATH_BENEATH 1

enum {
    FS_EXECUTE = 1 << 0,
    FS_WRITE_FILE = 1 << 1,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_REMOVE_DIR = 1 << 4,
    FS_REMOVE_FILE = 1 << 5,
    FS_MAKE_CHAR = 1 << 6,
    FS_MAKE_DIR = 1 << 7,
    FS_MAKE_REG = 1 << 8,
    FS_MAKE_SOCK = 1 << 9,
    FS_MAKE_FIFO = 1 << 10,
    FS_MAKE_BLOCK = 1 << 11,
    FS_MAKE_SYM = 1 << 12,
    FS_REFER = 1 << 13,     /* from version 2 */
    FS_TRUNCATE = 1 << 14,  /* from version 3 */
    FS_IOCTL_DEV = 1 << 15, /* from version 5 */
};
#define FS_VERSION_1 0x1fff
#define NET_ALL      3u /* bind and connect; from version 4 */
#define SCOPE_ALL    3u /* abstract sockets and signals; from version 6 */

#define FS_FILE_ONLY (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)
#define FS_READS     (FS_READ_FILE | FS_READ_DIR)
#define FS_WRITES                                                                                  \
    (FS_READS | FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG |       \
     FS_MAKE_SYM | FS_REFER | FS_TRUNCATE)

struct ruleset_attr {
    uint64_t fs, net, scope;
};

struct path_beneath {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed)); /* the kernel's layout */

struct rules {
    int fd;
    uint64_t handled;
    int rc; /* the first error */
};

static uint64_t rights(unsigned how)
{
    uint64_t r = 0;
    if (how & GN_WALL_READ)
        r |= FS_READS;
    if (how & GN_WALL_RUN)
        r |= FS_EXECUTE;
    if (how & GN_WALL_WRITE)
        r |= FS_WRITES;
    if (how & GN_WALL_DEVICE)
        r |= FS_READS | FS_WRITE_FILE | FS_IOCTL_DEV;
    return r;
}

static void allow(void *ctx, const char *path, unsigned how)
{
    struct rules *r = ctx;
    struct stat st;
    int fd = open(path, O_PATH | O_CLOEXEC);
    /* A file that is absent, or forbidden to this user, needs no rule. */
    if (fd < 0)
        return;
    struct path_beneath rule = {.allowed = rights(how) & r->handled, .parent = fd};
    if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
        rule.allowed &= FS_FILE_ONLY;
    if (syscall(SYS_landlock_add_rule, r->fd, RULE_PATH_BENEATH, &rule, 0) < 0 && r->rc == 0)
        r->rc = -errno;
    close(fd);
}

bool gn_wall_has_landlock(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION) >= 1;
}

int gn_wall_landlock(const struct gn_wall_plan *plan, const char *cache, bool scratch,
                     uint32_t *ret_abi)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);
    struct ruleset_attr attr = {.fs = FS_VERSION_1};
    if (abi < 1)
        return abi < 0 ? -errno : -ENOSYS;
    if (abi >= 2)
        attr.fs |= FS_REFER;
    if (abi >= 3)
        attr.fs |= FS_TRUNCATE;
    if (abi >= 4)
        attr.net = NET_ALL;
    if (abi >= 5)
        attr.fs |= FS_IOCTL_DEV;
    if (abi >= 6)
        attr.scope = SCOPE_ALL;
    /* An older kernel accepts a longer struct if the fields that it does not know are zero. */
    struct rules r = {.handled = attr.fs};
    r.fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (r.fd < 0)
        return -errno;
    gn_wall_driver_files(plan, allow, &r);
    if (cache)
        allow(&r, cache, GN_WALL_WRITE);
    if (scratch) {
        allow(&r, "/tmp", GN_WALL_WRITE);
        allow(&r, "/dev/shm", GN_WALL_WRITE);
    }
    if (r.rc == 0 && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                      syscall(SYS_landlock_restrict_self, r.fd, 0) < 0))
        r.rc = -errno;
    close(r.fd);
    if (r.rc == 0)
        *ret_abi = (uint32_t)abi;
    return r.rc;
}
