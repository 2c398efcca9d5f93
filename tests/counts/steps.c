/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the instructions that a thread of another process executes in a function, by single steps:
 * for a worker, which valgrind cannot run.
 *
 *     steps TID FUNCTION FIRST END N
 *
 * Waits for N calls of the function at the address FUNCTION. Of the instructions of a call, with
 * all that it calls, those at addresses from FIRST to END - 1 count; so a driver's do not.
 * Addresses are hexadecimal. Says "ready" when it waits, then a line for each call. The thread must
 * be the only one that calls the function. Status 0, or 1 and why.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#define BREAKPOINT 0xccu /* int3, of x86 */
#define MOST_STEPS 50000000u

static pid_t thread;

static void fail(const char *what)
{
    printf("%s: %s\n", what, strerror(errno));
    exit(1);
}

static void ask(int request, unsigned long at, unsigned long data)
{
    if (ptrace(request, thread, at, data))
        fail("ptrace");
}

/* Waits until the thread stops at a breakpoint or after a step. Other signals go to it. */
static void go_on(int how)
{
    unsigned long number = 0;
    for (;;) {
        int status;
        ask(how, 0, number);
        if (waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status))
            fail("the thread has ended");
        if (WSTOPSIG(status) == SIGTRAP && status >> 16 == 0)
            return;
        number = status >> 16 ? 0 : (unsigned long)WSTOPSIG(status);
    }
}

static struct user_regs_struct registers(void)
{
    struct user_regs_struct r;
    ask(PTRACE_GETREGS, 0, (unsigned long)&r);
    return r;
}

static unsigned long word_at(unsigned long address)
{
    errno = 0;
    const long word = ptrace(PTRACE_PEEKDATA, thread, address, 0);
    if (errno)
        fail("ptrace");
    return (unsigned long)word;
}

/* The thread is at the function's first instruction. */
static unsigned long steps(unsigned long first, unsigned long end)
{
    struct user_regs_struct r = registers();
    const unsigned long stack = r.rsp, back = word_at(stack);
    unsigned long counted = 0;
    for (unsigned long n = 0; n < MOST_STEPS; n++) {
        counted += r.rip >= first && r.rip < end;
        go_on(PTRACE_SINGLESTEP);
        r = registers();
        if (r.rip == back && r.rsp > stack)
            return counted;
    }
    fail("the function does not return");
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long at[3];
    if (argc != 6)
        return 2;
    thread = atoi(argv[1]);
    for (int i = 0; i < 3; i++)
        at[i] = strtoul(argv[2 + i], NULL, 16);
    setvbuf(stdout, NULL, _IOLBF, 0);
    ask(PTRACE_SEIZE, 0, 0);
    ask(PTRACE_INTERRUPT, 0, 0);
    if (waitpid(thread, NULL, __WALL) != thread)
        fail("waitpid");
    const unsigned long code = word_at(at[0]);
    printf("ready\n");
    for (int i = atoi(argv[5]); i > 0; i--) {
        ask(PTRACE_POKETEXT, at[0], (code & ~0xfful) | BREAKPOINT);
        go_on(PTRACE_CONT);
        ask(PTRACE_POKETEXT, at[0], code);
        struct user_regs_struct r = registers();
        r.rip = at[0];
        ask(PTRACE_SETREGS, 0, (unsigned long)&r);
        printf("%lu\n", steps(at[1], at[2]));
    }
    ask(PTRACE_DETACH, 0, 0);
    return 0;
}
