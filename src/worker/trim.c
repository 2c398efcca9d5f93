/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry-worker --trim`: keeps a tenant's kernel cache within its bound, in a process of its own and as the user whose cache it is, so
 * that whatever a worker has made of the folder costs its owner alone. Everything is reached from a folder that is already open, one
 * name at a time, and no link is followed: what is moved away meanwhile is not found, no more.
 */
#include "worker/trim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "wall/wall.h"

#define BLOCK_BYTES   512u
#define PATIENCE_S    20u /* of processor time, and of the clock */
#define MOST_FOLDERS  20000u

struct file {
    uint64_t used_ns; /* when it was last written or read */
    uint64_t bytes;
    uint32_t folder; /* index + 1; 0: the one itself */
    char *name;
};

struct folder {
    uint32_t above; /* index + 1 */
    char *name;
    uint32_t n; /* entries that it still has */
};

struct trim {
    int fd;
    dev_t device;
    struct file *files;
    uint32_t n_files, files_room;
    struct folder *folders;
    uint32_t n_folders, folders_room;
    struct gn_trimmed sum;
};

static uint64_t ns(struct timespec t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool room_for(void **list, uint32_t n, uint32_t *room, size_t element)
{
    if (n < *room)
        return true;
    uint32_t more = *room ? *room * 2 : 256;
    void *grown = realloc(*list, more * element);
    if (!grown)
        return false;
    *list = grown;
    *room = more;
    return true;
}

/* A folder on the way, opened name by name; -1: it is not there any more. The caller's. */
static int open_folder(const struct trim *t, uint32_t folder)
{
    if (!folder)
        return fcntl(t->fd, F_DUPFD_CLOEXEC, 0);
    int above = open_folder(t, t->folders[folder - 1].above);
    int fd = above < 0 ? -1 : openat(above, t->folders[folder - 1].name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (above >= 0)
        close(above);
    return fd;
}

static void removed(struct trim *t, uint64_t bytes)
{
    t->sum.after_bytes -= bytes;
    t->sum.n_removed++;
}

/* All of a folder that is none of a driver's. As deep as the stack of descriptors goes; the rest is found the next time. */
static void remove_tree(struct trim *t, int at, const char *name, uint32_t depth)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    if (!d && fd >= 0)
        close(fd);
    while (d && (e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, e->d_name, 0) == 0)
            t->sum.n_removed++;
        else if (depth < 4 * GN_TRIM_MOST_DEPTH)
            remove_tree(t, fd, e->d_name, depth + 1);
    }
    if (d)
        closedir(d);
    (void)unlinkat(at, name, AT_REMOVEDIR);
}

static int note_file(struct trim *t, uint32_t folder, const char *name, const struct stat *st)
{
    if (!room_for((void **)&t->files, t->n_files, &t->files_room, sizeof *t->files))
        return -ENOMEM;
    char *copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    const uint64_t written = ns(st->st_mtim), read = ns(st->st_atim);
    t->files[t->n_files++] =
        (struct file){written > read ? written : read, (uint64_t)st->st_blocks * BLOCK_BYTES, folder, copy};
    return 0;
}

static int note_folder(struct trim *t, uint32_t above, const char *name)
{
    if (!room_for((void **)&t->folders, t->n_folders, &t->folders_room, sizeof *t->folders))
        return -ENOMEM;
    char *copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    t->folders[t->n_folders++] = (struct folder){above, copy, 0};
    return 0;
}

static int look(struct trim *t, uint32_t folder, uint32_t depth)
{
    int fd = open_folder(t, folder), rc = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    if (!d) {
        if (fd >= 0)
            close(fd);
        return folder ? 0 : -EACCES;
    }
    rewinddir(d); /* where a folder was read to is known to all of its descriptors */
    while (!rc && (e = readdir(d))) {
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (folder)
            t->folders[folder - 1].n++;
        if (st.st_dev != t->device)
            continue;
        const uint64_t bytes = (uint64_t)st.st_blocks * BLOCK_BYTES;
        t->sum.before_bytes += bytes;
        t->sum.after_bytes += bytes;
        const bool is_folder = S_ISDIR(st.st_mode);
        if (is_folder && depth < GN_TRIM_MOST_DEPTH && t->n_folders < MOST_FOLDERS) {
            rc = note_folder(t, folder, e->d_name);
            if (!rc)
                rc = look(t, t->n_folders, depth + 1);
        } else if (is_folder) {
            remove_tree(t, fd, e->d_name, 0);
            removed(t, bytes);
        } else if (t->n_files < GN_TRIM_MOST_FILES) {
            rc = note_file(t, folder, e->d_name, &st);
        } else if (unlinkat(fd, e->d_name, 0) == 0) {
            removed(t, bytes);
        }
    }
    closedir(d);
    return rc;
}

static int by_use(const void *a, const void *b)
{
    const struct file *x = a, *y = b;
    return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

static void remove_file(struct trim *t, const struct file *f)
{
    int fd = open_folder(t, f->folder);
    if (fd < 0)
        return;
    bool gone = unlinkat(fd, f->name, 0) == 0;
    close(fd);
    if (!gone)
        return;
    removed(t, f->bytes);
    /* What has become empty goes, but what lies at the top: drivers make that once, when they start. */
    for (uint32_t i = f->folder; i && --t->folders[i - 1].n == 0 && t->folders[i - 1].above; i = t->folders[i - 1].above) {
        int above = open_folder(t, t->folders[i - 1].above);
        if (above < 0)
            return;
        (void)unlinkat(above, t->folders[i - 1].name, AT_REMOVEDIR);
        close(above);
    }
}

int gn_trim(int folder_fd, uint64_t most_bytes, struct gn_trimmed *ret)
{
    struct trim t = {.fd = folder_fd};
    struct stat st;
    int rc = fstat(folder_fd, &st) < 0 ? -errno : 0;
    t.device = st.st_dev;
    if (!rc)
        rc = look(&t, 0, 0);
    if (!rc && t.sum.after_bytes > most_bytes) {
        if (t.n_files)
            qsort(t.files, t.n_files, sizeof *t.files, by_use);
        for (uint32_t i = 0; i < t.n_files && t.sum.after_bytes > most_bytes - most_bytes / 8; i++)
            remove_file(&t, &t.files[i]);
    }
    for (uint32_t i = 0; i < t.n_files; i++)
        free(t.files[i].name);
    for (uint32_t i = 0; i < t.n_folders; i++)
        free(t.folders[i].name);
    free(t.files);
    free(t.folders);
    if (!rc)
        *ret = t.sum;
    return rc;
}

int gn_worker_trim(const char *folder, const char *most_bytes, const char *uid, const char *gid)
{
    const struct gn_wall_plan plan = {.change_user = true, .uid = (uid_t)strtoul(uid, NULL, 10), .gid = (gid_t)strtoul(gid, NULL, 10)};
    struct gn_trimmed sum;
    /* However long its owner makes it: others wait for this. */
    alarm(PATIENCE_S);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd < 0 ? -errno : *uid ? gn_wall_become(&plan) : 0;
    /* Becoming another clears it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!rc)
        rc = gn_trim(fd, strtoull(most_bytes, NULL, 10), &sum);
    if (rc) {
        gn_log(GN_LOG_WARN, "the kernel cache %s cannot be looked through: %s", folder, strerror(-rc));
        return 1;
    }
    if (sum.n_removed)
        gn_log(GN_LOG_INFO, "the kernel cache %s had %llu bytes; %u of its files are removed, the oldest first", folder,
               (unsigned long long)sum.before_bytes, sum.n_removed);
    return 0;
}
