/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into gantryd and so into its workers: says on stderr in whose code a process has
 * crashed, before it ends as it would have. A kernel that crashes is its program's affair, whatever
 * made it; all else is ours.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static void tell(int signal, siginfo_t *info, void *context)
{
    const ucontext_t *at = context;
    void *pc = (void *)at->uc_mcontext.gregs[REG_RIP];
    Dl_info where;
    char line[512];
    (void)info;
    const char *file = dladdr(pc, &where) && where.dli_fname ? where.dli_fname : "no file";
    const int n = snprintf(line, sizeof line, "signal %d in %.400s\n", signal, file);
    (void)!write(STDERR_FILENO, line, (size_t)n);
    /* Back to the instruction, and to the default. */
}

__attribute__((constructor)) static void watch(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    const struct sigaction how = {.sa_sigaction = tell, .sa_flags = SA_SIGINFO | (int)SA_RESETHAND};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &how, NULL);
}
