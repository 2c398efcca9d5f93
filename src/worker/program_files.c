/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces the C library's functions by which compilers open files: the dynamic linker finds this
 * executable's first, for calls from any library. A file that this process cannot open may be one
 * of the program's; during a build the program is asked for it. So a driver's compiler finds the
 * files that it would find inside the program, under the same names and with the program's rights,
 * and this process needs no access to them.
 *
 * Any thread, at any time, also before main: nothing here needs setting up.
 */
#undef _FILE_OFFSET_BITS /* with it, open would be another name of open64 */
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vgpu/vgpu.h"

#define EXPORT __attribute__((visibility("default")))

/* A relative name, which means nothing in this process, or a file that cannot be opened here. */
static bool may_be_the_programs(const char *name, int error)
{
    return name && (error == ENOENT || error == EACCES || error == EPERM || error == ENOTDIR);
}

static int open_any(int folder, const char *name, int flags, mode_t mode)
{
    const bool plain =
        (flags & O_ACCMODE) == O_RDONLY && !(flags & (O_CREAT | O_TRUNC | O_DIRECTORY | O_PATH));
    const bool relative = folder == AT_FDCWD && name && name[0] != '/';
    int fd = -1;
    if (plain && relative && gn_vgpu_program_file(name, true, &fd, NULL) == 0)
        return fd;
    fd = (int)syscall(SYS_openat, folder, name, flags, mode);
    if (fd >= 0 || !plain || relative || !may_be_the_programs(name, errno))
        return fd;
    int error = errno, rc = gn_vgpu_program_file(name, true, &fd, NULL);
    if (rc == 0)
        return fd;
    errno = rc == -ENOENT ? error : -rc;
    return -1;
}

static int stat_any(int folder, const char *name, struct stat *st, int flags)
{
    const bool relative = folder == AT_FDCWD && name && name[0] && name[0] != '/';
    if (relative && gn_vgpu_program_file(name, false, NULL, st) == 0)
        return 0;
    if (syscall(SYS_newfstatat, folder, name, st, flags) == 0)
        return 0;
    if (relative || folder != AT_FDCWD || !may_be_the_programs(name, errno))
        return -1;
    int error = errno;
    if (gn_vgpu_program_file(name, false, NULL, st) == 0)
        return 0;
    errno = error;
    return -1;
}

#define MODE_OF(flags)                                                                             \
    mode_t mode = 0;                                                                               \
    if ((flags) & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) {                                        \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        mode = va_arg(ap, mode_t);                                                                 \
        va_end(ap);                                                                                \
    }

EXPORT int open(const char *name, int flags, ...)
{
    MODE_OF(flags)
    return open_any(AT_FDCWD, name, flags, mode);
}

EXPORT int open64(const char *name, int flags, ...)
{
    MODE_OF(flags)
    return open_any(AT_FDCWD, name, flags, mode);
}

EXPORT int openat(int folder, const char *name, int flags, ...)
{
    MODE_OF(flags)
    return open_any(folder, name, flags, mode);
}

EXPORT int openat64(int folder, const char *name, int flags, ...)
{
    MODE_OF(flags)
    return open_any(folder, name, flags, mode);
}

/* The entry points for callers compiled with _FORTIFY_SOURCE. */
int __open_2(const char *name, int flags);
int __open64_2(const char *name, int flags);

EXPORT int __open_2(const char *name, int flags)
{
    return open_any(AT_FDCWD, name, flags, 0);
}

EXPORT int __open64_2(const char *name, int flags)
{
    return open_any(AT_FDCWD, name, flags, 0);
}

EXPORT int stat(const char *restrict name, struct stat *restrict st)
{
    return stat_any(AT_FDCWD, name, st, 0);
}

EXPORT int stat64(const char *restrict name, struct stat64 *restrict st)
{
    return stat_any(AT_FDCWD, name, (struct stat *)st, 0);
}

EXPORT int access(const char *name, int mode)
{
    struct stat st;
    int rc = (int)syscall(SYS_faccessat, AT_FDCWD, name, mode);
    if (rc == 0 || (mode & (W_OK | X_OK)) || !may_be_the_programs(name, errno))
        return rc;
    int error = errno;
    if (gn_vgpu_program_file(name, false, NULL, &st) == 0)
        return 0;
    errno = error;
    return -1;
}

static FILE *fopen_any(const char *name, const char *mode)
{
    int flags, fd;
    FILE *f;
    const bool plus = strchr(mode, '+') != NULL;
    switch (mode[0]) {
    case 'r':
        flags = plus ? O_RDWR : O_RDONLY;
        break;
    case 'w':
        flags = (plus ? O_RDWR : O_WRONLY) | O_CREAT | O_TRUNC;
        break;
    case 'a':
        flags = (plus ? O_RDWR : O_WRONLY) | O_CREAT | O_APPEND;
        break;
    default:
        errno = EINVAL;
        return NULL;
    }
    for (const char *m = mode; *m && *m != ','; m++)
        flags |= *m == 'e' ? O_CLOEXEC : *m == 'x' ? O_EXCL : 0;
    fd = open_any(AT_FDCWD, name, flags, 0666);
    if (fd < 0)
        return NULL;
    f = fdopen(fd, mode);
    if (!f) {
        int error = errno;
        close(fd);
        errno = error;
    }
    return f;
}

EXPORT FILE *fopen(const char *restrict name, const char *restrict mode)
{
    return fopen_any(name, mode);
}

EXPORT FILE *fopen64(const char *restrict name, const char *restrict mode)
{
    return fopen_any(name, mode);
}

#if defined(__x86_64__)
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one layout");
/* The entry points for callers built against a C library before 2.33. */
int __xstat(int version, const char *name, struct stat *st);
int __xstat64(int version, const char *name, struct stat64 *st);

EXPORT int __xstat(int version, const char *name, struct stat *st)
{
    (void)version;
    return stat_any(AT_FDCWD, name, st, 0);
}

EXPORT int __xstat64(int version, const char *name, struct stat64 *st)
{
    (void)version;
    return stat_any(AT_FDCWD, name, (struct stat *)st, 0);
}
#endif
