/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, trims and removes folders of kernel caches. Called by keep_cache.c on the main thread of
 * its own process: may be slow, and may be killed at any point. Never follows a link. */
#include "worker/cache_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MOST_DEEP  32
#define MOST_FILES 200000u
#define COPY_BYTES (256u << 10)
#define TEMPORARY  ".gantry-new"
#define FREE_PART  20u /* of the file system stays free */

static bool is_entry(const struct dirent *e)
{
    return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static int open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Calls each(ctx, folder, name, stat) for the folder's entries. Stops at the first result that is
 * not 0. */
static int for_each(int folder,
                    int (*each)(void *ctx, int folder, const char *name, const struct stat *st),
                    void *ctx)
{
    const int fd = open_folder(folder, ".");
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int rc = 0;
    if (!dir) {
        rc = -errno;
        if (fd >= 0)
            close(fd);
        return rc;
    }
    for (const struct dirent *e; rc == 0 && (e = readdir(dir));) {
        struct stat st;
        if (is_entry(e) && fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            rc = each(ctx, folder, e->d_name, &st);
    }
    closedir(dir);
    return rc;
}

/* ---- removing */

struct removal {
    dev_t device;
    int depth;
};

static int remove_one(void *ctx, int folder, const char *name, const struct stat *st)
{
    struct removal *r = ctx;
    if (S_ISDIR(st->st_mode)) {
        if (st->st_dev != r->device || r->depth == MOST_DEEP)
            return 0;
        const int fd = open_folder(folder, name);
        if (fd >= 0) {
            r->depth++;
            (void)for_each(fd, remove_one, r);
            r->depth--;
            close(fd);
        }
        (void)unlinkat(folder, name, AT_REMOVEDIR);
        return 0;
    }
    (void)unlinkat(folder, name, 0);
    return 0;
}

int gn_cache_remove(int folder, const char *name)
{
    struct removal r = {0};
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    r.device = st.st_dev;
    (void)remove_one(&r, folder, name, &st);
    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT ? 0 : -ENOTEMPTY;
}

/* ---- copying */

struct copying {
    struct gn_cache_copy *rules;
    dev_t device;
    int to, depth;
};

static bool is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

/* The folder replaces the one in the lower layer. */
static bool is_opaque(int fd)
{
    char value = 0;
    return (fgetxattr(fd, "trusted.overlay.opaque", &value, 1) == 1 ||
            fgetxattr(fd, "user.overlay.opaque", &value, 1) == 1) &&
           value == 'y';
}

static bool is_too_new(const struct gn_cache_copy *c, const struct timespec *changed)
{
    return c->older_than.tv_sec &&
           (changed->tv_sec > c->older_than.tv_sec ||
            (changed->tv_sec == c->older_than.tv_sec && changed->tv_nsec > c->older_than.tv_nsec));
}

static bool has_room(int fd, uint64_t bytes)
{
    struct statvfs v;
    return fstatvfs(fd, &v) == 0 && v.f_bavail > v.f_blocks / FREE_PART &&
           (v.f_bavail - v.f_blocks / FREE_PART) * v.f_frsize >= bytes &&
           (v.f_files == 0 || v.f_favail > 16);
}

static int copy_bytes(int from, int to, uint64_t bytes)
{
    static char buffer[COPY_BYTES];
    while (bytes) {
        const ssize_t n = read(from, buffer, bytes < sizeof buffer ? (size_t)bytes : sizeof buffer);
        if (n < 0)
            return -errno;
        if (n == 0)
            return -EAGAIN; /* the file has become shorter */
        for (ssize_t done = 0; done < n;) {
            const ssize_t m = write(to, buffer + done, (size_t)(n - done));
            if (m < 0)
                return -errno;
            done += m;
        }
        bytes -= (uint64_t)n;
    }
    return 0;
}

static bool is_there(const struct copying *c, const char *name, const struct stat *st)
{
    struct stat there;
    return fstatat(c->to, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(there.st_mode) &&
           there.st_size == st->st_size && there.st_mtim.tv_sec == st->st_mtim.tv_sec &&
           there.st_mtim.tv_nsec == st->st_mtim.tv_nsec;
}

static int copy_file(struct copying *c, int folder, const char *name)
{
    const struct gn_cache_copy *rules = c->rules;
    struct stat st, there;
    const int from = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int rc = from < 0 || fstat(from, &st) < 0 ? -errno : 0;
    const bool plain = rc == 0 && S_ISREG(st.st_mode);
    if (!plain || (uint64_t)st.st_size > rules->largest_bytes || is_too_new(rules, &st.st_ctim) ||
        is_there(c, name, &st)) {
        if (from >= 0)
            close(from);
        return 0;
    }
    if ((uint64_t)st.st_size > rules->most_bytes - rules->bytes) {
        close(from);
        return -ENOSPC;
    }
    (void)unlinkat(c->to, TEMPORARY, 0);
    const int to =
        openat(c->to, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0 || !has_room(to, (uint64_t)st.st_size))
        rc = to < 0 ? -errno : -ENOSPC;
    if (rc == 0)
        rc = copy_bytes(from, to, (uint64_t)st.st_size);
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    if (rc == 0 && (fchown(to, rules->uid, rules->gid) < 0 || fchmod(to, st.st_mode & 0777) < 0 ||
                    futimens(to, times) < 0))
        rc = -errno;
    /* A file replaces a folder of the same name. */
    if (rc == 0 && fstatat(c->to, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(there.st_mode))
        rc = gn_cache_remove(c->to, name);
    if (rc == 0 && renameat(c->to, TEMPORARY, c->to, name) < 0)
        rc = -errno;
    if (rc)
        (void)unlinkat(c->to, TEMPORARY, 0);
    else {
        c->rules->n_files++;
        c->rules->bytes += (uint64_t)st.st_size;
    }
    if (to >= 0)
        close(to);
    close(from);
    return rc == -ENOSPC ? rc : 0;
}

static int copy_one(void *ctx, int folder, const char *name, const struct stat *st);

static int copy_folder(struct copying *c, int folder, const char *name, const struct stat *st)
{
    struct stat there;
    const int from = open_folder(folder, name);
    if (from < 0)
        return 0;
    if (is_opaque(from) ||
        (fstatat(c->to, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(there.st_mode)))
        (void)gn_cache_remove(c->to, name);
    int rc = mkdirat(c->to, name, 0700) < 0 && errno != EEXIST ? -errno : 0;
    const int to = rc ? -1 : open_folder(c->to, name);
    struct copying below = *c;
    below.to = to;
    below.depth++;
    if (to >= 0 && fchown(to, c->rules->uid, c->rules->gid) == 0 &&
        fchmod(to, st->st_mode & 0777) == 0)
        rc = for_each(from, copy_one, &below);
    if (to >= 0)
        close(to);
    close(from);
    return rc == -ENOSPC ? rc : 0;
}

static int copy_one(void *ctx, int folder, const char *name, const struct stat *st)
{
    struct copying *c = ctx;
    if (strcmp(name, TEMPORARY) == 0)
        return 0;
    if (is_whiteout(st))
        return gn_cache_remove(c->to, name) == -ENOSPC ? -ENOSPC : 0;
    if (S_ISDIR(st->st_mode))
        return st->st_dev == c->device && c->depth < MOST_DEEP ? copy_folder(c, folder, name, st)
                                                               : 0;
    return S_ISREG(st->st_mode) ? copy_file(c, folder, name) : 0;
}

int gn_cache_copy(int from, int to, struct gn_cache_copy *rules)
{
    struct stat st;
    if (fstat(from, &st) < 0)
        return -errno;
    struct copying c = {.rules = rules, .device = st.st_dev, .to = to};
    return for_each(from, copy_one, &c);
}

/* ---- trimming */

struct one_file {
    struct timespec written;
    uint64_t bytes;
};

struct census {
    struct one_file *all;
    uint32_t n;
    uint64_t bytes;
    dev_t device;
    int depth;
    /* second walk */
    const struct one_file *oldest;
};

static int older_first(const void *x, const void *y)
{
    const struct one_file *a = x, *b = y;
    if (a->written.tv_sec != b->written.tv_sec)
        return a->written.tv_sec < b->written.tv_sec ? -1 : 1;
    return a->written.tv_nsec < b->written.tv_nsec ? -1 : a->written.tv_nsec > b->written.tv_nsec;
}

static int walk_below(struct census *c, int folder, const char *name, const struct stat *st,
                      int (*each)(void *ctx, int folder, const char *name, const struct stat *st))
{
    const int fd = st->st_dev == c->device && c->depth < MOST_DEEP ? open_folder(folder, name) : -1;
    if (fd < 0)
        return 0;
    c->depth++;
    const int rc = for_each(fd, each, c);
    c->depth--;
    close(fd);
    return rc;
}

static int count_one(void *ctx, int folder, const char *name, const struct stat *st)
{
    struct census *c = ctx;
    if (S_ISDIR(st->st_mode))
        return walk_below(c, folder, name, st, count_one);
    if (c->n == MOST_FILES)
        return -E2BIG;
    c->all[c->n++] = (struct one_file){st->st_mtim, (uint64_t)st->st_blocks * 512};
    c->bytes += (uint64_t)st->st_blocks * 512;
    return 0;
}

/* Removes files older than `oldest`, and empty folders. */
static int drop_one(void *ctx, int folder, const char *name, const struct stat *st)
{
    struct census *c = ctx;
    const struct one_file it = {st->st_mtim, 0};
    if (S_ISDIR(st->st_mode)) {
        (void)walk_below(c, folder, name, st, drop_one);
        (void)unlinkat(folder, name, AT_REMOVEDIR);
    } else if (!c->oldest || older_first(&it, c->oldest) < 0) {
        (void)unlinkat(folder, name, 0);
    }
    return 0;
}

void gn_cache_trim(int folder, uint64_t most_bytes)
{
    struct census c = {.all = calloc(MOST_FILES, sizeof *c.all)};
    struct stat st;
    if (!c.all || fstat(folder, &st) < 0) {
        free(c.all);
        return;
    }
    c.device = st.st_dev;
    /* Too many files to sort: removes all. */
    const bool too_many = for_each(folder, count_one, &c) == -E2BIG;
    if (too_many || c.bytes > most_bytes) {
        uint32_t i = 0;
        qsort(c.all, c.n, sizeof *c.all, older_first);
        for (; i < c.n && c.bytes > most_bytes; i++)
            c.bytes -= c.all[i].bytes;
        c.oldest = too_many || i == c.n ? NULL : &c.all[i];
        (void)for_each(folder, drop_one, &c);
    }
    free(c.all);
}

/* ---- caches that are no longer used */

struct sweep {
    time_t used_before;
    uint32_t n;
};

/* TENANT@UID or @UID, with .kept or without: the root may hold other files, too. */
static bool is_cache_name(const char *name)
{
    const char *at = strrchr(name, '@');
    if (!at)
        return false;
    const size_t n = strspn(at + 1, "0123456789");
    return n > 0 && (at[1 + n] == 0 || strcmp(at + 1 + n, ".kept") == 0);
}

static int sweep_one(void *ctx, int root, const char *name, const struct stat *st)
{
    struct sweep *s = ctx;
    if (!S_ISDIR(st->st_mode) || !is_cache_name(name) || st->st_mtim.tv_sec >= s->used_before)
        return 0;
    char lock[NAME_MAX + 1];
    if ((size_t)snprintf(lock, sizeof lock, "%s.lock", name) >= sizeof lock)
        return 0;
    const int fd = openat(root, lock, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return 0;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && gn_cache_remove(root, name) == 0) {
        s->n++;
        (void)unlinkat(root, lock, 0);
    }
    close(fd);
    return 0;
}

uint32_t gn_cache_sweep(int root, time_t used_before)
{
    struct sweep s = {.used_before = used_before};
    (void)for_each(root, sweep_one, &s);
    return s.n;
}
