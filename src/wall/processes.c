/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process namespaces. A template runs in one, and each of its workers runs inside it in another, as
 * the first process. So a worker can name only its own processes, the kernel ends all of them with
 * the worker, and the end of a template ends all its workers. gn_wall_spawn() is called by gantryd;
 * the other functions by a template and by a worker right after the fork, with one thread.
 */
#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "wall/users.h"
#include "wall/wall.h"

/* Creating namespaces needs this capability, which exec would otherwise remove from a user other
 * than root. */
static void keep_over_exec(int cap)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    memset(data, 0, sizeof data);
    if (syscall(SYS_capget, &head, data) < 0)
        return;
    data[cap / 32].inheritable |= 1u << (cap % 32);
    if (syscall(SYS_capset, &head, data) == 0)
        (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0);
}

pid_t gn_wall_spawn(enum gn_wall_mode mode)
{
    const uid_t uid = geteuid();
    const gid_t gid = getegid();
    pid_t pid;
    if (mode == GN_WALL_NONE)
        return fork();
    /* Not through the C library, which accepts no flags: exec undoes everything else that its
     * fork() would do. */
    if (uid == 0 &&
        (pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL)) >= 0)
        return pid;
    if (uid == 0)
        return fork();
    pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid < 0)
        return fork();
    if (pid == 0) {
        /* Without a mapping the user would own no files. If the mapping fails (some systems forbid
         * it), the next steps fail too, and the template continues without namespaces. */
        (void)gn_wall_map_user(uid, gid);
        keep_over_exec(CAP_SYS_ADMIN);
    }
    return pid;
}

int gn_wall_forker_init(struct gn_wall_forker *f, enum gn_wall_mode mode)
{
    f->self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (f->self < 0)
        return -errno;
    f->apart = false;
    if (mode != GN_WALL_NONE) {
        /* Returning to the namespace needs more rights than leaving it, so that is tried first. */
        f->apart = setns(f->self, CLONE_NEWPID) == 0;
    }
    return 0;
}

pid_t gn_wall_fork(struct gn_wall_forker *f)
{
    if (!f->apart)
        return fork();
    if (unshare(CLONE_NEWPID) < 0) {
        /* The kernel's limit of namespaces is reached: this worker has none of its own. */
        return fork();
    }
    pid_t pid = fork();
    int code = errno;
    if (pid != 0 && setns(f->self, CLONE_NEWPID) < 0) {
        if (pid > 0)
            kill(pid, SIGKILL);
        code = ENOTRECOVERABLE;
        pid = -1;
    }
    errno = code;
    return pid;
}

/* Signals that the first process of a namespace sends itself do not end it: without this handler a
 * driver that calls abort() would continue. A CPU fault does end it, with the right signal. */
static void end_by(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code > 0) {
        signal(signal_number, SIG_DFL);
        return; /* returns to the instruction, which faults again */
    }
    _exit(128 + signal_number);
}

static void mind_signals(void)
{
    static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL,  SIGFPE,  SIGTRAP, SIGTERM,
                                 SIGINT,  SIGQUIT, SIGHUP, SIGALRM, SIGUSR1, SIGUSR2};
    struct sigaction now, ours = {.sa_sigaction = end_by, .sa_flags = SA_SIGINFO};
    sigemptyset(&ours.sa_mask);
    for (size_t i = 0; i < GN_ARRAY_SIZE(deadly); i++)
        if (sigaction(deadly[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            (void)sigaction(deadly[i], &ours, NULL);
}

void gn_wall_follow(const struct gn_wall_forker *f)
{
    struct pollfd p = {.fd = f->self, .events = POLLIN};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* The template may have ended before the call above. */
    if (poll(&p, 1, 0) == 1)
        _exit(0);
    close(f->self);
    if (getpid() == 1)
        mind_signals();
}
