/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into gantryd: a user that wins every race. Each folder that the superuser makes inside
 * a folder of another user's is replaced, before the call returns, by a hard link to the file
 * $RACER_VICTIM, as that user can do with renameat2(2) from outside. The file $RACER_SEEN is made
 * at the first call, to show that the library is in place.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void replace(int folder, const char *name)
{
    const char *victim = getenv("RACER_VICTIM"), *seen = getenv("RACER_SEEN");
    struct stat st;
    int fd = seen ? open(seen, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1;
    if (fd >= 0)
        close(fd);
    if (!victim || *name == '/' || geteuid() != 0 ||
        (folder == AT_FDCWD ? stat(".", &st) : fstat(folder, &st)) < 0 || st.st_uid == 0)
        return;
    if (unlinkat(folder, name, AT_REMOVEDIR) == 0)
        (void)!linkat(AT_FDCWD, victim, folder, name, 0);
}

__attribute__((visibility("default"))) int mkdirat(int folder, const char *name, mode_t mode)
{
    int rc = (int)syscall(SYS_mkdirat, folder, name, mode);
    if (rc == 0)
        replace(folder, name);
    return rc;
}

__attribute__((visibility("default"))) int mkdir(const char *name, mode_t mode)
{
    return mkdirat(AT_FDCWD, name, mode);
}
