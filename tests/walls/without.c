/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program in a machine that is poorer than this one: no namespaces can be made, no mounts,
 * and there is no Landlock, as in many containers. `without PROGRAM ARG...`
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IF_NR(nr, skip_if_not) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, skip_if_not)
#define FAIL(code)             BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (code))
#define LANDLOCK_FIRST         444
#define LANDLOCK_LAST          446

static struct sock_filter all[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    IF_NR(SYS_unshare, 1),
    FAIL(EPERM),
    IF_NR(SYS_setns, 1),
    FAIL(EPERM),
    IF_NR(SYS_mount, 1),
    FAIL(EPERM),
    IF_NR(435 /* clone3 */, 1),
    FAIL(ENOSYS),
    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, LANDLOCK_LAST, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, LANDLOCK_FIRST, 0, 1),
    FAIL(ENOSYS),
    IF_NR(SYS_clone, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS, 0, 1),
    FAIL(EPERM),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
static struct sock_filter landlock[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, LANDLOCK_LAST, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, LANDLOCK_FIRST, 0, 1),
    FAIL(ENOSYS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

int main(int argc, char **argv)
{
    struct sock_fprog program = {.len = sizeof all / sizeof all[0], .filter = all};
    if (argc > 2 && strcmp(argv[1], "landlock") == 0)
        program =
            (struct sock_fprog){.len = sizeof landlock / sizeof landlock[0], .filter = landlock};
    if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("without");
        return 2;
    }
    execv(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
