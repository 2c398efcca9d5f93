/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closes the gate: which threads must have stopped, and how that is known. Run by the thread that
 * saves the vGPU, never by one that it waits for. No lock is held while waiting for the driver.
 *
 * The order matters. The serving thread first: nothing new is admitted. Then the helpers: requests
 * that they serve may make objects. Then the devices' role, once: a thread that submits afterwards
 * sees the closed gate. Then the driver, and last the ends that it reports on threads of its own,
 * since those may come after its queues are finished.
 */
#include "vgpu/core/gate.h"

#include "vgpu/core/vgpu_core.h"

#include "base/clock.h"
#include "base/descriptor.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int gn_gate_init(struct gn_gate *g)
{
    pthread_condattr_t attr;
    memset(g, 0, sizeof *g);
    pthread_mutex_init(&g->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int r = pthread_cond_init(&g->wake, &attr);
    pthread_condattr_destroy(&attr);
    return -r;
}

void gn_gate_quiesce(struct gn_vgpu *v)
{
    struct gn_gate *g = &v->gate;
    /*
     * The last message has been served: its slots are the program's, and the next reader of the
     * ring begins behind it.
     */
    gn_ring_release(&v->ring);
    gn_vgpu_flush(v);
    pthread_mutex_lock(&g->lock);
    g->ring_quiesced = true;
    g->n_ends++;
    pthread_cond_broadcast(&g->wake);
    while (atomic_load_explicit(&g->closed, memory_order_relaxed) && !gn_vgpu_threads_return(v))
        pthread_cond_wait(&g->wake, &g->lock);
    g->ring_quiesced = false;
    pthread_mutex_unlock(&g->lock);
}

void gn_gate_quiesced(struct gn_vgpu *v, bool stands)
{
    struct gn_gate *g = &v->gate;
    pthread_mutex_lock(&g->lock);
    g->ring_quiesced = stands;
    g->n_ends++;
    pthread_cond_broadcast(&g->wake);
    pthread_mutex_unlock(&g->lock);
}

void gn_gate_notify(struct gn_vgpu *v)
{
    struct gn_gate *g = &v->gate;
    pthread_mutex_lock(&g->lock);
    g->n_ends++;
    pthread_cond_broadcast(&g->wake);
    pthread_mutex_unlock(&g->lock);
    if (gn_gate_is_closed(g))
        v->session->gate_changed(v);
}

/* In a worker nothing waits for the driver: the process ends. */
void gn_vgpu_enter(struct gn_vgpu *v)
{
    if (v->session->in_program)
        atomic_fetch_add_explicit(&v->n_inside, 1, memory_order_seq_cst);
}

void gn_vgpu_return(struct gn_vgpu *v)
{
    if (v->session->in_program &&
        atomic_fetch_sub_explicit(&v->n_inside, 1, memory_order_seq_cst) == 1 &&
        gn_gate_is_closed(&v->gate))
        gn_gate_notify(v);
}

bool gn_gate_paused(struct gn_vgpu *v, bool at_boundary)
{
    struct gn_gate *g = &v->gate;
    if (!gn_gate_is_closed(g))
        return false;
    pthread_mutex_lock(&g->lock);
    bool paused = g->paused && (at_boundary || g->deafened);
    if (g->deafened != paused) {
        g->deafened = paused;
        g->n_ends++;
        pthread_cond_broadcast(&g->wake);
    }
    pthread_mutex_unlock(&g->lock);
    return paused;
}

/*
 * Waits until `is` returns true, the time is over, or the process ends. The gate's lock is held,
 * and released meanwhile.
 */
static int wait_locked(struct gn_vgpu *v, bool (*is)(struct gn_vgpu *v),
                       const struct timespec *until)
{
    struct gn_gate *g = &v->gate;
    for (;;) {
        const uint64_t n_ends = g->n_ends;
        pthread_mutex_unlock(&g->lock);
        bool done = is(v);
        pthread_mutex_lock(&g->lock);
        if (done)
            return 0;
        if (gn_vgpu_is_called_off(v))
            return -ECANCELED;
        /* A change between the look and the lock has counted. */
        if (n_ends == g->n_ends && pthread_cond_timedwait(&g->wake, &g->lock, until) == ETIMEDOUT)
            return -ETIMEDOUT;
    }
}

static bool ring_quiesced(struct gn_vgpu *v)
{
    pthread_mutex_lock(&v->gate.lock);
    bool stands = v->gate.ring_quiesced;
    pthread_mutex_unlock(&v->gate.lock);
    return stands;
}

bool gn_gate_helpers_idle(struct gn_vgpu *v)
{
    pthread_mutex_lock(&v->helper_lock);
    bool rest = !v->n_helped && !v->n_helping;
    pthread_mutex_unlock(&v->helper_lock);
    return rest;
}

static bool is_drained(struct gn_vgpu *v)
{
    pthread_mutex_lock(&v->gate.lock);
    bool drained = !v->gate.draining;
    pthread_mutex_unlock(&v->gate.lock);
    return drained;
}

static bool is_paused(struct gn_vgpu *v)
{
    pthread_mutex_lock(&v->gate.lock);
    bool paused = v->gate.deafened;
    pthread_mutex_unlock(&v->gate.lock);
    return paused;
}

/* Has the driver a part of a command whose rest is pending? vgpu->lock. */
static bool has_parts(const struct gn_vqueue *q)
{
    gn_list_for_each(c, &q->pending, const struct gn_command, link)
    {
        if (c->cut && c->cut->n_open)
            return true;
    }
    return false;
}

static bool nothing_is_left(struct gn_vgpu *v)
{
    return !atomic_load_explicit(&v->n_left, memory_order_seq_cst);
}

/* Has every end been reported? */
static bool ends_are_told(struct gn_vgpu *v)
{
    bool reported =
        !atomic_load_explicit(&v->n_followed, memory_order_seq_cst) && nothing_is_left(v);
    pthread_mutex_lock(&v->lock);
    for (uint32_t i = 0; i < v->n_devices; i++) {
        const struct gn_vdevice *d = &v->devices[i];
        reported &= !atomic_load_explicit(&d->turn.n_given, memory_order_seq_cst) &&
                    !atomic_load_explicit(&d->n_parts, memory_order_seq_cst);
        gn_list_for_each(q, &d->queues, const struct gn_vqueue, link) reported &=
            gn_list_empty(&q->open) && !q->telling && !has_parts(q);
    }
    pthread_mutex_unlock(&v->lock);
    return reported;
}

/* ---- the driver */

struct drain {
    struct gn_vgpu *vgpu;
    struct gn_vobject **queues; /* with a reference each */
    uint32_t n;
};

static void *drain_thread(void *arg)
{
    struct drain *d = arg;
    struct gn_vgpu *v = d->vgpu;
    gn_objects_own_thread();
    /* All are flushed before one is finished: a queue may wait for another. */
    for (uint32_t i = 0; i < d->n; i++)
        v->api->flush(v, d->queues[i]->driver);
    for (uint32_t i = 0; i < d->n; i++) {
        v->api->finish(v, d->queues[i]->driver);
        gn_object_unref(d->queues[i]);
    }
    free(d->queues);
    free(d);
    pthread_mutex_lock(&v->gate.lock);
    v->gate.draining = false;
    v->gate.n_ends++;
    pthread_cond_broadcast(&v->gate.wake);
    pthread_mutex_unlock(&v->gate.lock);
    return NULL;
}

/* References the queues of all devices. */
static int hold_queues(struct gn_vgpu *v, struct drain *d)
{
    uint32_t most = 0;
    pthread_mutex_lock(&v->lock);
    for (uint32_t i = 0; i < v->n_devices; i++)
        most += atomic_load_explicit(&v->devices[i].n_queues, memory_order_relaxed);
    d->queues = calloc(most ? most : 1, sizeof(struct gn_vobject *));
    for (uint32_t i = 0; d->queues && i < v->n_devices; i++)
        gn_list_for_each(q, &v->devices[i].queues, struct gn_vqueue, link)
        {
            if (d->n < most && gn_object_ref_if_held(q->object))
                d->queues[d->n++] = q->object;
        }
    pthread_mutex_unlock(&v->lock);
    return d->queues ? 0 : -ENOMEM;
}

static int start_drain(struct gn_vgpu *v)
{
    struct drain *d = calloc(1, sizeof *d);
    if (d)
        d->vgpu = v;
    int r = d ? hold_queues(v, d) : -ENOMEM;
    if (r) {
        free(d);
        return r;
    }
    v->gate.draining = true;
    r = gn_vgpu_start_thread(v, drain_thread, d, NULL);
    if (r) {
        v->gate.draining = false;
        for (uint32_t i = 0; i < d->n; i++)
            gn_object_unref(d->queues[i]);
        free(d->queues);
        free(d);
    }
    return r;
}

/* ---- */

int gn_lock_until(pthread_mutex_t *m, const struct timespec *until)
{
#ifdef __SANITIZE_THREAD__
    /* gcc's libtsan does not know pthread_mutex_clocklock, and would see an unlock without a lock.
     */
    const uint64_t at_ns = (uint64_t)until->tv_sec * 1000000000u + (uint64_t)until->tv_nsec;
    int r;
    while ((r = pthread_mutex_trylock(m)) == EBUSY && gn_now_ns() < at_ns)
        sched_yield();
    return r == EBUSY ? ETIMEDOUT : r;
#else
    return pthread_mutex_clocklock(m, CLOCK_MONOTONIC, until);
#endif
}

/*
 * The last holder of a device's role has then given its command to the driver; the next one sees
 * the gate.
 */
static int seal_devices(struct gn_vgpu *v, const struct timespec *until)
{
    for (uint32_t i = 0; i < v->n_devices; i++) {
        int r = gn_lock_until(&v->devices[i].role, until);
        if (r)
            return -r;
        pthread_mutex_unlock(&v->devices[i].role);
    }
    return 0;
}

static int await(struct gn_vgpu *v, bool (*is)(struct gn_vgpu *v), uint64_t timeout_ns)
{
    const uint64_t at_ns = gn_now_ns() + timeout_ns;
    const struct timespec until = {(time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u)};
    pthread_mutex_lock(&v->gate.lock);
    int r = wait_locked(v, is, &until);
    pthread_mutex_unlock(&v->gate.lock);
    return r;
}

int gn_gate_settle(struct gn_vgpu *v, uint64_t timeout_ns)
{
    return await(v, nothing_is_left, timeout_ns);
}

int gn_gate_await_helpers(struct gn_vgpu *v, uint64_t timeout_ns)
{
    return await(v, gn_gate_helpers_idle, timeout_ns);
}

void gn_gate_await_returns(struct gn_vgpu *v)
{
    struct gn_gate *g = &v->gate;
    pthread_mutex_lock(&g->lock);
    while (atomic_load_explicit(&v->n_inside, memory_order_seq_cst))
        pthread_cond_wait(&g->wake, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

/*
 * 0, or -EBUSY: an earlier try still waits for the driver. From then on no command goes to the
 * driver.
 */
static int begin(struct gn_gate *g, bool closes, struct gn_error *err)
{
    pthread_mutex_lock(&g->lock);
    const bool busy = g->draining;
    if (!busy) {
        atomic_store_explicit(&g->holds, true, memory_order_seq_cst);
        if (closes)
            atomic_store_explicit(&g->closed, true, memory_order_seq_cst);
    }
    pthread_mutex_unlock(&g->lock);
    return busy ? gn_fail(err, EBUSY, "wait until its kernels have ended",
                          "the device still works on what an earlier try waited for")
                : 0;
}

/* Opens the gate again. */
static int give_up(struct gn_vgpu *v, int r, const char *what, struct gn_error *err)
{
    gn_gate_open(v);
    if (r == -ECANCELED)
        return gn_fail(err, ECANCELED, NULL, "the program ends");
    if (r == -ETIMEDOUT)
        return gn_fail(err, ETIMEDOUT, "allow more time, or try again later",
                       "%s took longer than the drain may take", what);
    return gn_fail(err, -r, NULL, "cannot wait for the device: %s", strerror(-r));
}

static struct timespec after(uint64_t timeout_ns)
{
    const uint64_t at_ns = gn_now_ns() + timeout_ns;
    return (struct timespec){(time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u)};
}

/* Waits until the driver has finished its commands. */
static int drain(struct gn_vgpu *v, const struct timespec *until)
{
    struct gn_gate *g = &v->gate;
    int r = seal_devices(v, until);
    /* Other vGPUs need not wait for one device while this one waits for another. */
    for (uint32_t i = 0; !r && i < v->n_devices; i++)
        gn_turn_park(&v->devices[i]);
    if (!r)
        r = start_drain(v);
    pthread_mutex_lock(&g->lock);
    if (!r)
        r = wait_locked(v, is_drained, until);
    pthread_mutex_unlock(&g->lock);
    return r;
}

int gn_gate_hold(struct gn_vgpu *v, uint64_t timeout_ns, struct gn_error *err)
{
    const struct timespec until = after(timeout_ns);
    int r = begin(&v->gate, false, err);
    if (r)
        return r;
    r = drain(v, &until);
    return r ? give_up(v, r, "the device's work", err) : 0;
}

int gn_gate_close(struct gn_vgpu *v, uint64_t timeout_ns, struct gn_error *err)
{
    struct gn_gate *g = &v->gate;
    const struct timespec until = after(timeout_ns);
    const char *what = "a request that the driver does not return from";
    int r = begin(g, true, err);
    if (r)
        return r;
    v->session->wake(v);

    pthread_mutex_lock(&g->lock);
    r = wait_locked(v, ring_quiesced, &until);
    if (!r) {
        what = "a build";
        r = wait_locked(v, gn_gate_helpers_idle, &until);
    }
    pthread_mutex_unlock(&g->lock);
    g->stood_ns = gn_now_ns();
    if (!r) {
        what = "the device's work";
        r = drain(v, &until);
    }
    g->drained_ns = gn_now_ns();
    pthread_mutex_lock(&g->lock);
    if (!r)
        r = wait_locked(v, ends_are_told, &until);
    if (!r && v->boot->session_fd >= 0 && v->listens) {
        what = "the program's socket";
        g->paused = true; /* not before: a build may have asked the program for files */
        pthread_mutex_unlock(&g->lock);
        gn_lease_wake(&v->lease); /* the control thread looks at the gate */
        pthread_mutex_lock(&g->lock);
        r = wait_locked(v, is_paused, &until);
    }
    pthread_mutex_unlock(&g->lock);
    for (uint32_t i = 0; !r && i < v->n_devices; i++)
        gn_turn_leave(&v->devices[i]);
    return r ? give_up(v, r, what, err) : 0;
}

void gn_gate_abort(struct gn_vgpu *v)
{
    gn_gate_notify(v);
    pthread_mutex_lock(&v->gate.lock);
    gn_fd_shutdown(v->save_fd);
    pthread_mutex_unlock(&v->gate.lock);
}

void gn_gate_open(struct gn_vgpu *v)
{
    struct gn_gate *g = &v->gate;
    pthread_mutex_lock(&g->lock);
    g->paused = g->deafened = false;
    atomic_store_explicit(&g->closed, false, memory_order_seq_cst);
    atomic_store_explicit(&g->holds, false, memory_order_seq_cst);
    pthread_cond_broadcast(&g->wake);
    pthread_mutex_unlock(&g->lock);
    gn_lease_wake(&v->lease);
    v->session->gate_changed(v);
    for (uint32_t i = 0; i < v->n_devices; i++) {
        atomic_store_explicit(&v->devices[i].dirty, true, memory_order_seq_cst);
        gn_device_wake(&v->devices[i]);
    }
}
