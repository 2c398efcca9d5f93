/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_THREAD_H
#define GN_BASE_THREAD_H

#include <pthread.h>

/* How the names of Gantry's threads in a program begin. */
#define GN_THREAD_PREFIX "gantry-"

/*
 * Starts a thread of Gantry's in somebody else's process: it blocks every signal that may as well
 * be another thread's (base/signals.h). `name` has at most 15 characters; NULL: that of the thread
 * that calls. ret NULL: the thread is detached. 0 or -errno. Any thread.
 */
int gn_thread_start(const char *name, void *(*run)(void *), void *arg, pthread_t *ret);

#endif
