/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_THREAD_H
#define GN_BASE_THREAD_H

#include <pthread.h>

/* the prefix of the names of Gantry's threads in a program */
#define GN_THREAD_PREFIX "gantry-"

/*
 * Starts a thread of Gantry's in a program. It blocks every signal that another thread can handle
 * as well (base/signals.h). `name` has at most 15 characters; NULL: the name of the calling thread.
 * ret NULL: the thread is detached. Returns 0 or -errno. Any thread.
 */
int gn_thread_start(const char *name, void *(*run)(void *), void *arg, pthread_t *ret);

#endif
