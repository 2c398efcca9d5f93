/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_GATE_H
#define GN_VGPU_GATE_H

#include "base/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gn_vgpu;
struct gn_vdevice;

/*
 * The gate in front of a vGPU. Open, it is one load of a word that nobody writes. Closed, nothing
 * that the program asks for begins: its requests wait in the ring, its commands in their queues,
 * and its threads do not notice but for the time. What had begun goes on to its end, and its end is
 * told. Then the vGPU is quiet: no thread of its own or of the driver's changes what it consists
 * of, and it can be saved (Crane 4.1.1; gMig 3.3.1 calls it the stop). Commands that wait for an
 * event nobody has set yet stay pending and are saved so.
 */
struct gn_gate {
    _Atomic bool closed;
    _Atomic bool holds; /* commands stay in their queues: it is closed, or about to be */
    pthread_mutex_t lock;
    pthread_cond_t wake; /* CLOCK_MONOTONIC */
    /* lock */
    bool ring_quiesced;  /* the ring thread is at the gate */
    bool draining;       /* a thread waits for the driver, maybe of an earlier try */
    bool deaf, deafened; /* the control thread is to let the session's socket be; it does */
    uint64_t n_ends;     /* goes up when something is over, or stands, while the gate is closed */
    /* who closes; CLOCK_MONOTONIC, of the last time */
    uint64_t stood_ns, drained_ns; /* no request was being served; the driver had nothing to do */
};

int gn_gate_init(struct gn_gate *g);

static inline bool gn_gate_is_closed(const struct gn_gate *g)
{
    return __builtin_expect(atomic_load_explicit(&g->closed, memory_order_relaxed), false);
}

static inline bool gn_gate_holds(const struct gn_gate *g)
{
    return __builtin_expect(atomic_load_explicit(&g->holds, memory_order_relaxed), false);
}

/*
 * Ahead of closing it: no more commands go to the driver, and what that has is waited for, while
 * the program goes on: its requests are served, and what it enqueues waits in its queues, which it
 * would have done in the driver's. So a program that has enqueued kernels for a second stands still
 * for none of it. As gn_gate_close, which is to follow, or gn_gate_open.
 */
int gn_gate_hold(struct gn_vgpu *v, uint64_t timeout_ns, struct gn_error *err);
/*
 * Closes it and waits until the vGPU is quiet, at most timeout_ns: 0, or -ETIMEDOUT, -EBUSY (an
 * earlier try's wait for the driver still goes on), -ENOMEM with a sentence, and then the gate is
 * open again and nothing has changed. Any thread but the ring thread and the control thread; one at
 * a time.
 */
int gn_gate_close(struct gn_vgpu *v, uint64_t timeout_ns, struct gn_error *err);
/* Open or closed: until nothing runs any more of the queues that have gone by now. 0 or -ETIMEDOUT.
 * Any thread. */
int gn_gate_settle(struct gn_vgpu *v, uint64_t timeout_ns);
/* Open: until no slow request, a build, is being served; another may begin. 0 or -ETIMEDOUT. */
int gn_gate_await_helpers(struct gn_vgpu *v, uint64_t timeout_ns);
/* Closed, and for good: until every report of the driver's that it has waited for has been heard to
 * its end. */
void gn_gate_await_returns(struct gn_vgpu *v);
/*
 * Of a hosted vGPU whose process ends: whoever waits here for the device, to save it, gives up.
 * After called_off is set.
 */
void gn_gate_abort(struct gn_vgpu *v);
/* What waited goes on. */
void gn_gate_open(struct gn_vgpu *v);

/* The ring thread, when it sees that the gate is closed: until it is open. */
void gn_gate_quiesce(struct gn_vgpu *v);
/* The thread that serves a program elsewhere: it serves nothing now, or does again. While a slow
 * request goes on it does not stand: a build asks the program for files. */
void gn_gate_quiesced(struct gn_vgpu *v, bool stands);
bool gn_gate_helpers_idle(struct gn_vgpu *v);
/* Something that may be waited for is over. Any thread that holds none of the vGPU's locks. */
void gn_gate_tell(struct gn_vgpu *v);
/* The control thread: is the session's socket to be let be? at_boundary: no part of a frame has
 * been read, and none is to be sent. */
bool gn_gate_paused(struct gn_vgpu *v, bool at_boundary);

/* A lock, by CLOCK_MONOTONIC. 0 or ETIMEDOUT. */
int gn_lock_until(pthread_mutex_t *m, const struct timespec *until);

#endif
