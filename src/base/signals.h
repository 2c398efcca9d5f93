/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_SIGNALS_H
#define GN_BASE_SIGNALS_H

#include <signal.h>
#include <stddef.h>

/*
 * The set of signals that Gantry's threads block in a program: all that another thread could
 * receive instead. Signals that an instruction raises are not in it: if they are blocked they end
 * the process even if it has handlers. A driver may have such a handler (PoCL skips a division by
 * zero), and so may a program, with callbacks that run on these threads.
 */
static inline void gn_signals_of_others(sigset_t *ret)
{
    static const int raised[] = {SIGFPE, SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGSYS};
    sigfillset(ret);
    for (size_t i = 0; i < sizeof raised / sizeof raised[0]; i++)
        sigdelset(ret, raised[i]);
}

#endif
