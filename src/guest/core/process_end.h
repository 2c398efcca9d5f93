/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_PROCESS_END_H
#define GN_GUEST_PROCESS_END_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The end of the process by exit() or by return from main. Threads of Gantry's live on while exit()
 * runs the handlers of a driver that passthrough has loaded, and those take apart what the driver's
 * calls stand on. So ahead of the driver's first handler Gantry's own threads leave the driver, and
 * enter it no more; the program's threads are the program's affair, as natively. Without a driver
 * in the process nothing of this is registered.
 */

/*
 * A thread is about to load a driver, bring it up and give it something to do. unless_ending: false
 * when the process is ending already, and nothing is to be loaded; a thread of the program's that
 * asks for a device in a handler of its own loads anyhow. Ends with gn_driver_left(); by the same
 * thread. One at a time a thread.
 */
bool gn_driver_enter(bool unless_ending);
/* The driver is loaded and up: a fork need not wait for this thread any more. */
void gn_driver_is_up(void);
/* It may be unloaded now, before this load is over. */
void gn_driver_unloads(void);
void gn_driver_left(void);

/*
 * Around fork(); the second in the parent, the third in the child. Waits while a driver is being
 * loaded.
 */
void gn_process_before_fork(void);
void gn_process_after_fork(void);
void gn_process_after_fork_child(void);

#endif
