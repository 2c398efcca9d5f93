/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that appears complete or not at all, for `gantry checkpoint`. It is created without a name
 * (O_TMPFILE) and linked through /proc/self/fd, which needs no privilege. Without /proc, or on a
 * file system without O_TMPFILE, the file has a temporary name from the start, which remains if the
 * process is killed. A link cannot replace an existing file, so in that case the file gets a
 * temporary name first and is then renamed.
 */
#include "ctl/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 100

int gn_whole_file_cannot(const struct gn_whole_file *f, const char *what, int code,
                         struct gn_error *err)
{
    return gn_fail(err, code,
                   code == ENOSPC || code == EDQUOT || code == EFBIG
                       ? "make room, or write elsewhere"
                       : "check its name, and the permissions of its directory",
                   "cannot %s %.200s: %s", what, f->path, strerror(code));
}

/* Sets f->temporary to the file's name plus a dot and six random characters. */
static int other_name(struct gn_whole_file *f)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    unsigned char drawn[6];
    char tail[sizeof drawn + 1] = {0};
    if (getrandom(drawn, sizeof drawn, 0) != sizeof drawn)
        return -EIO;
    for (size_t i = 0; i < sizeof drawn; i++)
        tail[i] = letters[drawn[i] % (sizeof letters - 1)];
    free(f->temporary);
    if (asprintf(&f->temporary, "%s.%s", f->path, tail) < 0) {
        f->temporary = NULL;
        return -ENOMEM;
    }
    return 0;
}

static void descriptor_path(const struct gn_whole_file *f, char ret[static 32])
{
    snprintf(ret, 32, "/proc/self/fd/%d", f->fd);
}

static int link_to(const struct gn_whole_file *f, const char *name)
{
    char path[32];
    descriptor_path(f, path);
    return linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int open_named(struct gn_whole_file *f)
{
    for (int i = 0; i < TRIES; i++) {
        int rc = other_name(f);
        if (rc)
            return rc;
        f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (f->fd >= 0 || errno != EEXIST)
            break;
    }
    if (f->fd >= 0)
        return 0;
    int rc = -errno;
    free(f->temporary);
    f->temporary = NULL;
    return rc;
}

static void open_nameless(struct gn_whole_file *f)
{
    char path[32];
    f->fd = open(f->folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    if (f->fd < 0)
        return;
    descriptor_path(f, path);
    if (access(path, F_OK) < 0) {
        close(f->fd);
        f->fd = -1;
    }
}

int gn_whole_file_open(struct gn_whole_file *f, const char *path, struct gn_error *err)
{
    struct stat st;
    char *name = strdup(path);
    *f = (struct gn_whole_file){.path = path, .fd = -1};
    if (!name || !(f->folder = strdup(dirname(name)))) {
        free(name);
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    }
    free(name);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return gn_fail(err, EEXIST, "name another file", "%.200s exists and is not a regular file",
                       path);
    open_nameless(f);
    int rc = f->fd < 0 ? open_named(f) : 0;
    return rc ? gn_whole_file_cannot(f, "write", -rc, err) : 0;
}

int gn_whole_file_sync(struct gn_whole_file *f, struct gn_error *err)
{
    return fsync(f->fd) < 0 ? gn_whole_file_cannot(f, "write", errno, err) : 0;
}

static int sync_folder(const struct gn_whole_file *f)
{
    int fd = open(f->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 || fsync(fd) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return rc == -EINVAL || rc == -EROFS ? 0 : rc; /* a file system that cannot sync a directory */
}

static int give_other_name(struct gn_whole_file *f)
{
    int rc = -EEXIST;
    for (int i = 0; i < TRIES && rc == -EEXIST; i++) {
        rc = other_name(f);
        if (!rc)
            rc = link_to(f, f->temporary);
    }
    if (rc) {
        free(f->temporary);
        f->temporary = NULL;
    }
    return rc;
}

int gn_whole_file_keep(struct gn_whole_file *f, struct gn_error *err)
{
    int rc = f->temporary ? 0 : give_other_name(f);
    if (!rc)
        rc = sync_folder(f);
    return rc ? gn_whole_file_cannot(f, "write", -rc, err) : 0;
}

int gn_whole_file_name(struct gn_whole_file *f, struct gn_error *err)
{
    int rc = f->temporary ? -EEXIST : link_to(f, f->path);
    if (rc == -EEXIST) {
        rc = f->temporary ? 0 : give_other_name(f);
        if (!rc && rename(f->temporary, f->path) < 0)
            rc = -errno;
        if (!rc) {
            free(f->temporary);
            f->temporary = NULL;
        }
    }
    if (rc)
        return gn_whole_file_cannot(f, "write", -rc, err);
    /* The contents are synced; after a crash the file may have its temporary name. */
    (void)sync_folder(f);
    return 0;
}

void gn_whole_file_close(struct gn_whole_file *f, bool stays)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    if (f->temporary && !stays)
        unlink(f->temporary);
}

void gn_whole_file_fini(struct gn_whole_file *f)
{
    free(f->temporary);
    free(f->folder);
    *f = (struct gn_whole_file){.fd = -1};
}
