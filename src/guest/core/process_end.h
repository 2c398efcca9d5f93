/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_PROCESS_END_H
#define GN_GUEST_PROCESS_END_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The end of the process by exit(), or by return from main. Gantry's threads still run while exit()
 * calls the handlers of a driver that passthrough has loaded, and these destroy state that the
 * driver's functions use. So before the driver's first handler runs, Gantry's threads leave the
 * driver and do not enter it again. The program's own threads are the program's responsibility, as
 * without Gantry. A process without a driver registers no handler.
 */

/* The part of the code that runs vGPUs in this process. */
struct gn_driver_ops {
    /*
     * exit() has begun: cancels the work that the vGPUs do without being asked, and waits for its
     * end until until_ns (CLOCK_MONOTONIC) at most. Any thread, possibly in a signal handler.
     */
    void (*process_ends)(uint64_t until_ns);
    /* In a forked child, whose inherited sessions are closed: no vGPU is in this process. */
    void (*forked)(void);
};

/*
 * Before a thread loads a driver, initializes it and gives it work. `ops` stays valid; all callers
 * give the same. unless_ending: returns false when the process is already ending, and nothing is
 * loaded; without it a program thread that asks for a device in an exit handler still loads the
 * driver. Ended by gn_driver_left() on the same thread. Does not nest.
 */
bool gn_driver_enter(const struct gn_driver_ops *ops, bool unless_ending);
/* The driver is initialized: a fork need no longer wait for this thread. */
void gn_driver_is_up(void);
/* The driver may be unloaded from here on, before this load ends. */
void gn_driver_unloads(void);
void gn_driver_left(void);

/*
 * Around fork(): in the parent before it, in the parent after it, and in the child. The first waits
 * while a driver is being initialized.
 */
void gn_process_before_fork(void);
void gn_process_after_fork(void);
void gn_process_after_fork_child(void);

#endif
