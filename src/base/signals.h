/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_SIGNALS_H
#define GN_BASE_SIGNALS_H

#include <signal.h>
#include <stddef.h>

/*
 * Sets ret to the signals that Gantry's threads inside a program block: every signal that another
 * thread can handle as well. Signals that an instruction raises stay unblocked: if they were
 * blocked, they would end the process despite its handlers. A driver may have such handlers (PoCL
 * steps over a division by zero), and so may a program: its callbacks run on these threads.
 */
static inline void gn_signals_of_others(sigset_t *ret)
{
    static const int raised[] = {SIGFPE, SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGSYS};
    sigfillset(ret);
    for (size_t i = 0; i < sizeof raised / sizeof raised[0]; i++)
        sigdelset(ret, raised[i]);
}

#endif
