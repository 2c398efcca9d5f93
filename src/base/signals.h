/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_SIGNALS_H
#define GN_BASE_SIGNALS_H

#include <signal.h>
#include <stddef.h>

/*
 * What our own threads inside somebody else's process block: every signal that may as well be
 * another thread's. Those that an instruction raises are not: blocked they end the process,
 * whatever its handlers are. A driver may have some (PoCL steps over a division by zero), and so
 * may a program whose callbacks run here.
 */
static inline void gn_signals_of_others(sigset_t *ret)
{
    static const int raised[] = {SIGFPE, SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGSYS};
    sigfillset(ret);
    for (size_t i = 0; i < sizeof raised / sizeof raised[0]; i++)
        sigdelset(ret, raised[i]);
}

#endif
