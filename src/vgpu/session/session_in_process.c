/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vGPU in its own program: passthrough. A message is not handed to another thread: the calling
 * thread serves its own request. One thread serves at a time, under `serving`, in the role that the
 * ring thread has in a worker. The keeper thread has the rest of that role: it quiesces at the gate
 * for all of them, gives the grant back and obeys recalls of memory. It sleeps on the ring, which
 * carries only messages that were under way when the vGPU came into the program, and is nudged as
 * in a worker.
 */
#include "vgpu/core/serve.h"

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/fault.h"
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#define END_LOOK_NS 200000
#define CALM_NS     UINT64_C(1000000000) /* the longest wait for compilation at a first launch */

/* No serving thread comes back to a device that has become idle. */
static void flush(struct gn_vgpu *v)
{
    gn_vgpu_flush(v);
    for (uint32_t i = 0; i < v->n_devices; i++) {
        struct gn_vdevice *d = &v->devices[i];
        if (atomic_load_explicit(&d->n_queues, memory_order_relaxed) &&
            atomic_load_explicit(&d->turn.rests, memory_order_seq_cst))
            gn_turn_park(d);
    }
}

int gn_vgpu_serve_message(struct gn_vgpu *v, const void *message, uint32_t n_bytes)
{
    struct gn_request r;
    if (n_bytes > sizeof r.bytes)
        return -EPIPE;
    gn_objects_own_thread();
    gn_request_init(&r, v);
    memcpy(r.bytes, message, n_bytes);
    pthread_mutex_lock(&v->serving);
    /* The keeper reads the ring, and messages there are older than this one. */
    while (!gn_lost_is(&v->lost) && gn_ring_has(&v->ring)) {
        gn_ring_nudge(&v->ring);
        pthread_mutex_unlock(&v->serving);
        sched_yield();
        pthread_mutex_lock(&v->serving);
    }
    if (gn_lost_is(&v->lost)) {
        pthread_mutex_unlock(&v->serving);
        return gn_vgpu_state(&v->life) == GN_VGPU_AWAY ? -EAGAIN : -EPIPE;
    }
    /* The program goes on although the end of its process has begun. */
    if (gn_gate_holds(&v->gate) && gn_vgpu_is_called_off(v))
        gn_gate_open(v);
    gn_vgpu_handle(v, &r, n_bytes, 0);
    flush(v);
    pthread_mutex_unlock(&v->serving);
    return 0;
}

/* Messages that were put into the ring before this vGPU came into the program, or meanwhile. */
static void serve_ring(struct gn_vgpu *v)
{
    struct gn_request r;
    int n = 1;
    while (n > 0) {
        gn_request_init(&r, v);
        n = gn_ring_try_receive(&v->ring, r.bytes);
        if (n > 0)
            gn_vgpu_handle(v, &r, (uint32_t)n, 0);
    }
    if (n != -EAGAIN)
        gn_vgpu_fault(v, "the request ring is corrupt", "ring");
}

/*
 * The device was held for the program for a while: the count of calls says whether a call came.
 * True: the keeper was woken, and must look for the reason, since a nudge is seen once.
 */
static bool keep(struct gn_vgpu *v, uint64_t hold_ns)
{
    const uint64_t n_calls = atomic_load_explicit(&v->counters->calls, memory_order_relaxed);
    const bool woken = gn_ring_park(&v->ring, hold_ns) != -ETIMEDOUT;
    gn_vgpu_held(v, atomic_load_explicit(&v->counters->calls, memory_order_relaxed) != n_calls);
    return woken;
}

/* Another process has the vGPU by now. */
static void unmap(struct gn_vgpu *v)
{
    const struct gn_vgpu_boot *b = v->boot;
    struct gn_segment *const shared[] = {
        (struct gn_segment *)&b->ring, (struct gn_segment *)&b->events,
        (struct gn_segment *)&b->grants, (struct gn_segment *)&b->counters};
    for (size_t i = 0; i < GN_ARRAY_SIZE(shared); i++)
        gn_segment_fini(shared[i]);
    for (uint32_t i = 0; i < atomic_load_explicit(&v->n_segments, memory_order_relaxed); i++)
        gn_segment_fini(&v->segments[i]);
    gn_fd_close(b->tell_fd);
}

/*
 * Another process has the vGPU now: releases the driver objects here, and the shared memory. Behind
 * the closed gate the driver has nothing to do, and threads that still call look at `away` alone,
 * so the structure itself stays. A driver may yet report a released object, on a thread of its own:
 * the memory stays mapped until then.
 */
static void clear(struct gn_vgpu *v)
{
    static struct gn_counters nobodys;
    const struct gn_vgpu_boot *b = v->boot;
    pthread_join(v->control, NULL);
    /* Threads that still call have seen by then that the vGPU is gone. */
    pthread_mutex_lock(&v->serving);
    pthread_mutex_unlock(&v->serving);
    gn_gate_await_returns(v);
    /* Another process writes the counters that gantryd reads. */
    gn_lease_leave(&v->lease, &nobodys);
    v->counters = &nobodys;
    gn_helpers_end(v);
    for (uint32_t i = 0; i < v->n_devices; i++)
        pthread_join(v->devices[i].thread, NULL);
    v->migration->drop_home_events(v);
    for (uint32_t i = 0; i < v->n_devices; i++) {
        gn_list_for_each(q, &v->devices[i].queues, struct gn_vqueue, link)
        {
            /* The queue must outlive the last of its commands. */
            struct gn_vobject *object = q->object;
            atomic_fetch_add_explicit(&object->n_refs, 1, memory_order_relaxed);
            while (!gn_list_empty(&q->pending))
                gn_command_forget(gn_list_first(&q->pending, struct gn_command, link));
            gn_object_unref(object);
        }
    }
    v->migration->remove_objects(v);
    gn_objects_bury(v);
    if (v->api->leave && !gn_vgpu_is_called_off(v))
        v->api->leave(v);
    pthread_mutex_lock(&v->frames_lock);
    gn_frame_writer_fini(&v->frames);
    pthread_mutex_unlock(&v->frames_lock);
    gn_fd_close(b->session_fd);
    gn_fd_close(b->control_fd);
    gn_vgpu_unhold(v);
}

void *gn_vgpu_keeper_thread(void *arg)
{
    struct gn_vgpu *v = arg;
    gn_objects_own_thread();
    while (!gn_lost_is(&v->lost)) {
        pthread_mutex_lock(&v->serving);
        while (gn_gate_is_closed(&v->gate) && !gn_lost_is(&v->lost))
            gn_gate_quiesce(v);
        if (gn_lost_is(&v->lost)) {
            pthread_mutex_unlock(&v->serving);
            break;
        }
        serve_ring(v);
        flush(v);
        gn_objects_bury(v);
        if (gn_lease_is_recalled(&v->lease))
            gn_lease_shed(&v->lease);
        pthread_mutex_unlock(&v->serving);
        const uint64_t hold_ns = gn_vgpu_hold_ns(v);
        if (hold_ns && keep(v, hold_ns))
            continue;
        if (!gn_vgpu_hold_ns(v)) {
            gn_vgpu_park_grants(v);
            (void)gn_ring_park(&v->ring, 0);
        }
    }
    atomic_store_explicit(&v->clears, true, memory_order_seq_cst);
    /* Either this thread sees that the process ends, or the ending thread sees `clears`. */
    if (gn_vgpu_state(&v->life) == GN_VGPU_AWAY && !gn_vgpu_is_called_off(v))
        clear(v);
    atomic_store_explicit(&v->clears, false, memory_order_seq_cst);
    return NULL;
}

/*
 * The last command that the driver has of the n-th queue, held; NULL: none. *ret_there: there is
 * such a queue.
 */
static struct gn_command *last_of_queue(struct gn_vgpu *v, uint32_t n, bool *ret_there)
{
    struct gn_command *last = NULL;
    uint32_t i = 0;
    *ret_there = false;
    pthread_mutex_lock(&v->lock);
    for (uint32_t k = 0; k < v->n_devices; k++)
        gn_list_for_each(q, &v->devices[k].queues, struct gn_vqueue, link)
        {
            if (i++ != n)
                continue;
            *ret_there = true;
            if ((last = q->last))
                atomic_fetch_add_explicit(&last->n_refs, 1, memory_order_relaxed);
        }
    pthread_mutex_unlock(&v->lock);
    return last;
}

static bool driver_is_idle(struct gn_vgpu *v)
{
    bool idle = true, there = true;
    for (uint32_t n = 0; idle && there; n++) {
        struct gn_command *last = last_of_queue(v, n, &there);
        if (!last)
            continue;
        idle = !last->driver_event || v->api->is_over(v, last->driver_event);
        gn_command_unref(last);
    }
    return idle;
}

/*
 * A driver that was loaded while the program ran compiles on threads of its own, at first launches,
 * and a compiler does not outlive the exit handlers of its library. So the driver gets no more
 * commands unless the program calls again, and those that it has get a moment to end.
 */
static void calm_driver(struct gn_vgpu *v, uint64_t until_ns)
{
    const struct timespec look = {.tv_nsec = END_LOOK_NS};
    const uint64_t now_ns = gn_now_ns(),
                   calm_ns = until_ns < now_ns + CALM_NS ? until_ns : now_ns + CALM_NS;
    gn_objects_own_thread();
    atomic_store_explicit(&v->gate.holds, true, memory_order_seq_cst);
    while (!driver_is_idle(v) && gn_now_ns() < calm_ns)
        nanosleep(&look, NULL);
}

void gn_vgpu_process_ends(struct gn_vgpu *v, uint64_t until_ns)
{
    const struct timespec look = {.tv_nsec = END_LOOK_NS};
    gn_gate_abort(v);
    while ((atomic_load_explicit(&v->moving, memory_order_seq_cst) ||
            atomic_load_explicit(&v->clears, memory_order_seq_cst)) &&
           gn_now_ns() < until_ns)
        nanosleep(&look, NULL);
    if (v->came && !gn_lost_is(&v->lost))
        calm_driver(v, until_ns);
}

/*
 * The driver finishes its commands by itself, and its objects go with the program: nothing waits
 * for either here.
 */
static void end(struct gn_vgpu *v)
{
    if (!gn_vgpu_end_life(&v->life, v->told_to_end))
        return;
    /* gantryd notices that the control socket hangs up. */
    gn_fd_shutdown(v->boot->control_fd);
    gn_lost_declare(&v->lost);
    gn_vgpu_end_waits(v);
    gn_gate_notify(v);
    /*
     * From here on the keeper may clear a vGPU that is away. It closes the descriptors, and their
     * numbers may belong to the next vGPU that comes into this program.
     */
    if (!pthread_equal(pthread_self(), v->control)) /* the keeper waits for that one */
        GN_FAULT("in-process-lost");
    /*
     * A waiting program notices that the session's socket hangs up, unless another process has that
     * socket now.
     */
    if (gn_vgpu_state(&v->life) != GN_VGPU_AWAY)
        gn_fd_shutdown(v->boot->session_fd);
    for (uint32_t i = 0; i < v->n_devices; i++)
        gn_device_wake(&v->devices[i]);
}

void gn_vgpu_forked(struct gn_vgpu *v)
{
    const struct gn_vgpu_boot *b = v->boot;
    if (gn_vgpu_state(&v->life) == GN_VGPU_AWAY)
        return;
    const int fds[] = {b->session_fd, b->control_fd,  b->tell_fd,   b->ring.fd,
                       b->events.fd,  b->counters.fd, b->grants.fd, v->lease.wake_fd};
    for (size_t i = 0; i < GN_ARRAY_SIZE(fds); i++)
        gn_fd_close(fds[i]);
    const uint32_t n = atomic_load_explicit(&v->n_segments, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++)
        gn_fd_close(v->segments[i].fd);
}

/* The control thread ends the vGPU. */
static void faulted(struct gn_vgpu *v)
{
    gn_lease_wake(&v->lease);
}

/* The program's output is its own. */
static int set_output(struct gn_vgpu *v, const int fds[2])
{
    (void)v;
    gn_fd_close(fds[0]);
    gn_fd_close(fds[1]);
    return 0;
}

const struct gn_vgpu_session_ops gn_vgpu_session_in_process = {
    .name = "in-process",
    GN_SHM_SESSION_ENTRIES,
    .thread_name = GN_THREAD_PREFIX "vgpu",
    .in_program = true,
    .faulted = faulted,
    .end = end,
    .unmap = unmap,
    .set_output = set_output,
};
