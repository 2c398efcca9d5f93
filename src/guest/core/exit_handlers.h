/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_EXIT_HANDLERS_H
#define GN_GUEST_EXIT_HANDLERS_H

#include <stdbool.h>

/*
 * The handlers that libraries register for exit() while a thread of Gantry's loads them: the
 * destructors of a driver's static objects. exit() runs the youngest handler first, so these run
 * before any handler that was registered ahead of the load, even while constructors of the same
 * library still run on the loading thread.
 */

/*
 * From here to gn_exit_handlers_release() each handler that the calling thread's libraries register
 * is wrapped: `before` runs ahead of it, on the thread that calls exit() or dlclose(), and says
 * whether it is to run at all. May be called by several threads, each with its own `before`; does
 * not nest. False: this process does not let it (its C library's pages cannot be written): handlers
 * are registered as ever.
 */
bool gn_exit_handlers_wrap(bool (*before)(void *ctx), void *ctx);
/* Ends it. How many handlers were wrapped. `ctx` must stay for ever if there were any. */
unsigned gn_exit_handlers_release(void);

/* Registers a handler that only exit() runs, never a dlclose(). 0, or -1: no memory. */
int gn_exit_handlers_add(void (*run)(void *));

/* Around fork(); the second in both processes. */
void gn_exit_handlers_before_fork(void);
void gn_exit_handlers_after_fork(void);

#endif
