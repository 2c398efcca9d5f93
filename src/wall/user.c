/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets a worker's user and rights, on its main thread: another user if gantryd is the superuser, a
 * user namespace of its own so that its processes are counted apart, and finally no capability and
 * no way to get one. It never changes the user of gantryd.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wall/parts.h"
#include "wall/users.h"

int gn_wall_switch_user(const struct gn_wall_plan *plan)
{
    if (!plan->change_user)
        return 0;
    if (setgroups(plan->n_groups, plan->groups) < 0 ||
        setresgid(plan->gid, plan->gid, plan->gid) < 0 ||
        setresuid(plan->uid, plan->uid, plan->uid) < 0)
        return -errno;
    return 0;
}

static int write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC), rc = 0;
    if (fd < 0)
        return -errno;
    if (write(fd, text, strlen(text)) < 0)
        rc = -errno;
    close(fd);
    return rc;
}

int gn_wall_map_user(uid_t uid, gid_t gid)
{
    char text[64];
    /* The files belong to the superuser while the process counts as formerly privileged. */
    prctl(PR_SET_DUMPABLE, 1);
    int rc = write_file("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "%u %u 1", uid, uid);
    if (rc == 0)
        rc = write_file("/proc/self/uid_map", text);
    snprintf(text, sizeof text, "%u %u 1", gid, gid);
    return rc ? rc : write_file("/proc/self/gid_map", text);
}

int gn_wall_own_users(void)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (unshare(CLONE_NEWUSER) < 0)
        return -errno;
    return gn_wall_map_user(uid, gid);
}

int gn_wall_drop_privileges(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2];
    memset(none, 0, sizeof none);
    /* Without CAP_SETPCAP both fail, and there is nothing to drop: no_new_privs alone must do. */
    (void)prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                                       SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                                       SECBIT_NO_CAP_AMBIENT_RAISE |
                                       SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED);
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
        (void)prctl(PR_CAPBSET_DROP, cap);
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &head, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    return 0;
}
