/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's files that builds have read: see build_includes.h. Called, with include_files.c's
 * lock held, by the compiler threads that open files, and by the threads that save and load the
 * vGPU. Never asks the program for a file; include_files.c does.
 */
#include "vgpu/core/build_includes.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/descriptor.h"
#include "stream/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct gn_build_includes *gn_build_includes_new(void)
{
    return calloc(1, sizeof(struct gn_build_includes));
}

void gn_build_includes_free(struct gn_build_includes *f)
{
    if (!f)
        return;
    gn_build_includes_close(f);
    for (uint32_t i = 0; i < f->n; i++) {
        free(f->all[i].name);
        free(f->all[i].contents);
    }
    free(f->all);
    free(f);
}

static struct gn_build_file *find_file(struct gn_build_includes *f, const char *name)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (strcmp(f->all[i].name, name) == 0)
            return &f->all[i];
    return NULL;
}

static struct gn_build_file *add_file(struct gn_build_includes *f, const char *name, size_t n_name)
{
    if (f->n == GN_BUILD_FILES_MOST)
        return NULL;
    struct gn_build_file *all = gn_array_reserve(f->all, f->n, &f->capacity, sizeof *all);
    if (!all)
        return NULL;
    f->all = all;
    char *copy = strndup(name, n_name);
    if (!copy)
        return NULL;
    f->all[f->n] = (struct gn_build_file){.name = copy, .fd = -1};
    return &f->all[f->n++];
}

/* By pread(), which leaves the compiler's file offset alone. */
static int read_all(int fd, unsigned char *to, uint64_t n)
{
    for (uint64_t at = 0; at < n;) {
        const ssize_t got = pread(fd, to + at, n - at, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -EIO;
        at += (uint64_t)got;
    }
    return 0;
}

void gn_build_includes_found(struct gn_build_includes *f, const char *name,
                             const struct stat *facts, int fd)
{
    struct gn_build_file *file = find_file(f, name);
    if (!file && !(file = add_file(f, name, strlen(name)))) {
        f->lacks = true;
        return;
    }
    file->mode = facts->st_mode;
    file->device = facts->st_dev;
    file->inode = facts->st_ino;
    if (fd < 0 || file->contents)
        return;
    /* The size is the descriptor's: the program's own figure is not trusted. */
    struct stat now;
    if (fstat(fd, &now) < 0 || !S_ISREG(now.st_mode) || now.st_size < 0 ||
        (uint64_t)now.st_size > GN_BUILD_FILES_MOST_BYTES - f->total ||
        !(file->contents = malloc(now.st_size ? (size_t)now.st_size : 1)) ||
        read_all(fd, file->contents, (uint64_t)now.st_size)) {
        free(file->contents);
        file->contents = NULL;
        f->lacks = true;
        return;
    }
    file->bytes = (uint64_t)now.st_size;
    f->total += file->bytes;
}

/* ---- repeated builds */

static bool is_same_file(const struct gn_build_file *a, const struct gn_build_file *b)
{
    return a->device == b->device && a->inode == b->inode;
}

/*
 * A compiler wants a real file with an inode of its own. In a worker, TMPDIR is the directory in
 * which the driver may create files.
 */
static int open_copy(struct gn_build_includes *f, struct gn_build_file *file)
{
    const char *folder = getenv("TMPDIR");
    for (uint32_t i = 0; i < f->n; i++)
        if (f->all[i].fd >= 0 && is_same_file(&f->all[i], file) && f->all[i].bytes == file->bytes)
            return f->all[i].fd;
    file->fd =
        open(folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); /* in a worker */
    for (uint64_t at = 0; file->fd >= 0 && at < file->bytes;) {
        const ssize_t n = write(file->fd, file->contents + at, file->bytes - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            gn_fd_close(file->fd);
            file->fd = -1;
        } else {
            at += (uint64_t)n;
        }
    }
    return file->fd;
}

int gn_build_includes_open(struct gn_build_includes *f, const char *name, bool contents,
                           int *ret_fd, struct stat *ret_facts)
{
    struct gn_build_file *file = find_file(f, name);
    if (!file || (contents && !file->contents))
        return -ENOENT;
    if (contents) {
        /* The duplicates share one file offset; the compiler reads one after the other. */
        const int fd = open_copy(f, file);
        if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0 || (*ret_fd = gn_fd_duplicate(fd)) < 0)
            return -EIO;
    }
    if (ret_facts) {
        memset(ret_facts, 0, sizeof *ret_facts);
        ret_facts->st_mode = file->mode;
        ret_facts->st_nlink = 1;
        ret_facts->st_size = (off_t)file->bytes;
        ret_facts->st_dev = file->device;
        ret_facts->st_ino = file->inode;
        ret_facts->st_blksize = 4096;
    }
    return 0;
}

void gn_build_includes_close(struct gn_build_includes *f)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (f->all[i].fd >= 0) {
            gn_fd_close(f->all[i].fd);
            f->all[i].fd = -1;
        }
}

/* ---- in a stream */

/*
 * GN_PART_API of a record: the facts of one name. A GN_PART_HEADER with the same name carries the
 * contents.
 */
struct saved_facts {
    uint32_t mode, n_name;
    uint64_t device, inode;
};

uint64_t gn_build_includes_bytes(const struct gn_build_includes *f)
{
    uint64_t n = 0;
    for (uint32_t i = 0; f && i < f->n; i++)
        n += 2 * (strlen(f->all[i].name) + 64) + f->all[i].bytes;
    return n;
}

int gn_build_includes_save(const struct gn_build_includes *f, struct gn_stream_writer *w)
{
    int rc = 0;
    for (uint32_t i = 0; f && !rc && i < f->n; i++) {
        const struct gn_build_file *file = &f->all[i];
        const uint32_t n_name = (uint32_t)strlen(file->name), head[2] = {n_name, 0};
        const struct saved_facts facts = {file->mode, n_name, file->device, file->inode};
        const struct iovec about[2] = {{(void *)(uintptr_t)&facts, sizeof facts},
                                       {file->name, n_name}};
        const struct iovec header[3] = {{(void *)(uintptr_t)head, sizeof head},
                                        {file->name, n_name},
                                        {file->contents, file->bytes}};
        rc = gn_stream_part_iov(w, GN_PART_API, about, 2);
        if (!rc && file->contents)
            rc = gn_stream_part_iov(w, GN_PART_HEADER, header, file->bytes ? 3 : 2);
    }
    return rc;
}

static int load_facts(struct gn_build_includes *f, const struct gn_stream_part *part)
{
    struct saved_facts facts;
    if (part->n < sizeof facts)
        return -EBADMSG;
    memcpy(&facts, part->bytes, sizeof facts);
    const char *name = (const char *)part->bytes + sizeof facts;
    if (facts.n_name != part->n - sizeof facts || !facts.n_name || memchr(name, 0, facts.n_name))
        return -EBADMSG;
    struct gn_build_file *file = add_file(f, name, facts.n_name);
    if (!file)
        return f->n == GN_BUILD_FILES_MOST ? -EBADMSG : -ENOMEM;
    file->mode = facts.mode;
    file->device = facts.device;
    file->inode = facts.inode;
    return 0;
}

/* This part follows directly behind the facts of its file. */
static int load_contents(struct gn_build_includes *f, const struct gn_stream_part *part)
{
    uint32_t head[2];
    struct gn_build_file *file = f->n ? &f->all[f->n - 1] : NULL;
    if (part->n < sizeof head || !file || file->contents)
        return -EBADMSG;
    memcpy(head, part->bytes, sizeof head);
    const char *name = (const char *)part->bytes + sizeof head;
    if (head[1] || head[0] > part->n - sizeof head || strlen(file->name) != head[0] ||
        memcmp(file->name, name, head[0]) != 0)
        return -EBADMSG;
    const uint64_t bytes = part->n - sizeof head - head[0];
    if (bytes > GN_BUILD_FILES_MOST_BYTES - f->total)
        return -EBADMSG;
    file->contents = malloc(bytes ? bytes : 1);
    if (!file->contents)
        return -ENOMEM;
    memcpy(file->contents, name + head[0], bytes);
    file->bytes = bytes;
    f->total += bytes;
    return 0;
}

int gn_build_includes_load(const struct gn_stream_entry *e, struct gn_build_includes **ret)
{
    struct gn_stream_entry all = *e;
    struct gn_stream_part part;
    struct gn_build_includes *f = NULL;
    int rc = 0;
    while (!rc && gn_stream_next_part(&all, &part)) {
        if (part.part != GN_PART_API && part.part != GN_PART_HEADER)
            continue;
        if (!f && !(f = gn_build_includes_new()))
            return -ENOMEM;
        rc = part.part == GN_PART_API ? load_facts(f, &part) : load_contents(f, &part);
    }
    if (rc) {
        gn_build_includes_free(f);
        return rc;
    }
    *ret = f;
    return 0;
}
