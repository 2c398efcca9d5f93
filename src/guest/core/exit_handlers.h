/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_EXIT_HANDLERS_H
#define GN_GUEST_EXIT_HANDLERS_H

#include <stdbool.h>

/*
 * The exit() handlers that libraries register while a thread of Gantry's loads them: the
 * destructors of a driver's static objects. exit() runs the newest handler first, so these run
 * before every handler registered before the load, possibly while the library's constructors still
 * run on the loading thread.
 */

/*
 * From now until gn_exit_handlers_release(), each handler that the calling thread's libraries
 * register is wrapped: `before` runs ahead of it, on the thread that calls exit() or dlclose(), and
 * returns whether the handler runs at all. Several threads may call this, each with its own
 * `before`; calls do not nest. False: not possible in this process (the C library's pages cannot be
 * written); handlers are registered as usual.
 */
bool gn_exit_handlers_wrap(bool (*before)(void *ctx), void *ctx);
/*
 * Ends the wrapping. Returns the number of wrapped handlers. If it is not 0, `ctx` must stay valid
 * for ever.
 */
unsigned gn_exit_handlers_release(void);

/* Registers a handler that only exit() runs, not dlclose(). 0, or -1: no memory. */
int gn_exit_handlers_add(void (*run)(void *));

/* Around fork(). The second one is called in both processes. */
void gn_exit_handlers_before_fork(void);
void gn_exit_handlers_after_fork(void);

#endif
