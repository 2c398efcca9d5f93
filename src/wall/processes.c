/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process namespaces. A template lives in one, and each of its workers is the first process of
 * another one inside it. So a worker can name no process but its own and its children; the kernel
 * ends all of them with the worker, and all workers with the template. gantryd's loop calls
 * gn_wall_spawn; the template's only thread and its forked worker call the rest. It never waits for
 * a process.
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

/* Making a namespace needs this capability, which exec drops unless the user is the superuser. */
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
    /*
     * Not with the C library's fork(), which has no flags: exec undoes all else that fork() does.
     */
    if (uid == 0 &&
        (pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL)) >= 0)
        return pid;
    if (uid == 0)
        return fork();
    pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid < 0)
        return fork();
    if (pid == 0) {
        /*
         * Without a mapping it would be a user without files. If the mapping fails (some systems
         * forbid it), the next steps fail too, and the template continues as it is.
         */
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
        /* Returning to the own namespace takes more rights, so it is tried first. */
        f->apart = setns(f->self, CLONE_NEWPID) == 0;
    }
    return 0;
}

pid_t gn_wall_fork(struct gn_wall_forker *f)
{
    if (!f->apart)
        return fork();
    if (unshare(CLONE_NEWPID) < 0) {
        /* The kernel's maximum of namespaces is reached: this worker runs without one. */
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

/*
 * The first process of a namespace is not ended by signals that it raises itself: without this
 * handler a driver that aborts would continue. A processor fault does end it, with its own signal.
 */
static void exit_by_signal(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code > 0) {
        signal(signal_number, SIG_DFL);
        return; /* returns into the same fault */
    }
    _exit(128 + signal_number);
}

static void install_handlers(void)
{
    static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL,  SIGFPE,  SIGTRAP, SIGTERM,
                                 SIGINT,  SIGQUIT, SIGHUP, SIGALRM, SIGUSR1, SIGUSR2};
    struct sigaction now, ours = {.sa_sigaction = exit_by_signal, .sa_flags = SA_SIGINFO};
    sigemptyset(&ours.sa_mask);
    for (size_t i = 0; i < GN_ARRAY_SIZE(deadly); i++)
        if (sigaction(deadly[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            (void)sigaction(deadly[i], &ours, NULL);
}

void gn_wall_follow(const struct gn_wall_forker *f)
{
    struct pollfd p = {.fd = f->self, .events = POLLIN};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* The template may have ended before. */
    if (poll(&p, 1, 0) == 1)
        _exit(0);
    close(f->self);
    if (getpid() == 1)
        install_handlers();
}
