/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a process with a number that is free: `renumber PID PROGRAM ARG...`. Ends when that has,
 * 77: the kernel does not let it. */
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    pid_t number = atoi(argv[1]);
    struct clone_args how = {
        .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&number, .set_tid_size = 1};
    const long pid = syscall(SYS_clone3, &how, sizeof how);
    if (pid < 0) {
        perror("clone3");
        return 77;
    }
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    int status;
    waitpid((pid_t)pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
