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
 * The gate in front of a vGPU. Open, it costs one load of a word that is not written. Closed, no
 * request of the program begins: requests wait in the ring, commands in their queues, and the
 * program notices only the time. Work that had begun runs to its end, which is reported. Then the
 * vGPU is quiesced: no thread of its own or of the driver's changes its state, and it can be saved
 * (Crane 4.1.1; gMig 3.3.1 calls it the stop). Commands that wait for an event that is not set yet
 * stay pending and are saved so.
 */
struct gn_gate {
    _Atomic bool closed;
    _Atomic bool holds; /* commands stay in their queues: the gate is closed, or about to be */
    pthread_mutex_t lock;
    pthread_cond_t wake; /* CLOCK_MONOTONIC */
    /* lock */
    bool ring_quiesced;    /* the serving thread is at the gate */
    bool draining;         /* a thread waits for the driver, perhaps of an earlier try */
    bool paused, deafened; /* the control thread is to leave the session's socket alone; it does */
    uint64_t n_ends;       /* counts ends and arrivals while the gate is closed */
    /* the closing thread; CLOCK_MONOTONIC, of the last time */
    uint64_t stood_ns, drained_ns; /* when no request was being served; when the driver was idle */
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
 * Ahead of closing: no more commands go to the driver, and its present commands are waited for,
 * while the program runs: its requests are served, and new commands wait in their queues, as they
 * would in the driver's. So a program that has enqueued kernels for a second is not stopped for
 * that second. Results as gn_gate_close, which is to follow, or gn_gate_open.
 */
int gn_gate_hold(struct gn_vgpu *v, uint64_t timeout_ns, struct gn_error *err);
/*
 * Closes the gate and waits until the vGPU is quiesced, at most timeout_ns: 0, or with a sentence
 * -ETIMEDOUT, -EBUSY (an earlier try still waits for the driver), -ENOMEM, and then the gate is
 * open again and nothing has changed. Any thread but the serving thread and the control thread; one
 * at a time.
 */
int gn_gate_close(struct gn_vgpu *v, uint64_t timeout_ns, struct gn_error *err);
/*
 * Open or closed: waits until nothing runs any more of queues that were released. 0 or -ETIMEDOUT.
 * Any thread.
 */
int gn_gate_settle(struct gn_vgpu *v, uint64_t timeout_ns);
/*
 * Open: waits until no slow request, a build, is being served; another may begin. 0 or -ETIMEDOUT.
 */
int gn_gate_await_helpers(struct gn_vgpu *v, uint64_t timeout_ns);
/*
 * Closed, and for good: waits until every report of the driver's that the gate has waited for has
 * returned.
 */
void gn_gate_await_returns(struct gn_vgpu *v);
/*
 * In a program whose process ends: a thread that waits here to save the vGPU gives up. After
 * called_off is set.
 */
void gn_gate_abort(struct gn_vgpu *v);
/* Waiting threads continue. */
void gn_gate_open(struct gn_vgpu *v);

/* The serving thread, when it sees that the gate is closed: waits until it is open. */
void gn_gate_quiesce(struct gn_vgpu *v);
/*
 * The socket thread of a session over tcp: it serves nothing now, or serves again. It does not
 * stand while a slow request runs: a build asks the program for files.
 */
void gn_gate_quiesced(struct gn_vgpu *v, bool stands);
bool gn_gate_helpers_idle(struct gn_vgpu *v);
/* An end that the gate may wait for. Any thread that holds none of the vGPU's locks. */
void gn_gate_notify(struct gn_vgpu *v);
/*
 * The control thread: is the session's socket to be left alone? at_boundary: no part of a frame has
 * been read, and none is to be sent.
 */
bool gn_gate_paused(struct gn_vgpu *v, bool at_boundary);

/* Locks, until a time of CLOCK_MONOTONIC. 0 or ETIMEDOUT. */
int gn_lock_until(pthread_mutex_t *m, const struct timespec *until);

#endif
