/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session over shared memory: the calling thread becomes the ring thread, which takes messages
 * from the request ring and serves them. Answers go into reply slots, ends of commands into the
 * event table, and frames over the session's socket. The ring thread waits for nothing but the
 * ring.
 */
#include "vgpu/session/session.h"

#include "base/descriptor.h"
#include "base/error.h"
#include "base/log.h"
#include "link/frame.h"
#include "shm/counters.h"
#include "vgpu/core/vgpu_core.h"

#include <errno.h>
#include <unistd.h>

/* ---- to the program */

void gn_shm_reply(struct gn_vgpu *v, uint32_t token, int32_t result, const void *payload, size_t n)
{
    gn_reply_send(v->view.replies, token, result, payload, n);
}

void gn_shm_answer(struct gn_vgpu *v, const struct gn_request *r, uint32_t token,
                   const void *payload, size_t n)
{
    gn_reply_send(v->view.replies, token, r->result, payload, n);
}

void gn_shm_post_event(struct gn_vgpu *v, uint32_t index, enum gn_event_phase phase)
{
    gn_event_post(gn_event_at(v->events, index), phase);
}

void gn_shm_end_event(struct gn_vgpu *v, uint32_t index, int32_t error,
                      const struct gn_event_times *times, const struct gn_command *c)
{
    (void)c;
    gn_event_finish(gn_event_at(v->events, index), error, times);
}

int gn_shm_send_frame(struct gn_vgpu *v, uint16_t op, uint32_t seq, const void *payload, size_t n)
{
    pthread_mutex_lock(&v->frames_lock);
    const bool behind = gn_frame_writer_pending(&v->frames);
    int r = gn_frame_push(&v->frames, op, 0, seq, payload, n, NULL, 0);
    const bool begins = !behind && gn_frame_writer_pending(&v->frames);
    pthread_mutex_unlock(&v->frames_lock);
    if (r == -ENOBUFS || r == -ENOMEM)
        gn_vgpu_fault(v, "the program does not read what it is told", "session");
    else if (begins)
        gn_lease_wake(&v->lease); /* the control thread sends the rest */
    return r;
}

void gn_shm_refuse_connection(struct gn_vgpu *v, int fd)
{
    gn_fd_close(fd);
    gn_vgpu_fault(v, "a connection came for a program that is on this machine", "link");
}

uint64_t gn_shm_area_limit(const struct gn_vgpu *v)
{
    (void)v;
    return UINT64_MAX;
}

/* ---- the doorbell */

void gn_shm_wake(struct gn_vgpu *v)
{
    gn_ring_nudge(&v->ring);
}

bool gn_shm_expect_message(struct gn_vgpu *v)
{
    gn_ring_nudge(&v->ring);
    return true;
}

/* The ring thread waits at the gate itself. */
void gn_shm_gate_changed(struct gn_vgpu *v)
{
    (void)v;
}

/* ---- migrations: the ring, the event table and the data area are handed over as they stand */

int gn_shm_pause_program(struct gn_vgpu *v, uint32_t number, uint64_t until_ns,
                         struct gn_error *err)
{
    (void)v;
    (void)number;
    (void)until_ns;
    return gn_fail(err, EOPNOTSUPP, NULL, "its program is attached by another kind of link");
}

void gn_shm_send_quiesced(struct gn_vgpu *v, uint32_t number)
{
    (void)v;
    (void)number;
}

void gn_shm_resume(struct gn_vgpu *v)
{
    (void)v;
}

int gn_shm_add_segment(struct gn_vgpu *v, uint64_t index, uint64_t bytes)
{
    (void)v;
    (void)index;
    (void)bytes;
    return -EPROTO;
}

int gn_shm_load_frame(struct gn_vgpu *v, const struct gn_frame *f)
{
    (void)v;
    (void)f;
    return -EOPNOTSUPP;
}

int gn_shm_loaded(struct gn_vgpu *v)
{
    (void)v;
    return 0;
}

static int set_output(struct gn_vgpu *v, const int fds[2])
{
    (void)v;
    const int rc = dup2(fds[0], STDOUT_FILENO) < 0 || dup2(fds[1], STDERR_FILENO) < 0 ? -errno : 0;
    gn_fd_close(fds[0]);
    gn_fd_close(fds[1]);
    return rc;
}

void gn_shm_resume_as_owner(struct gn_vgpu *v)
{
    (void)v;
}

/* ---- the end */

_Noreturn void gn_vgpu_end_worker(struct gn_vgpu *v)
{
    if (v->told_to_end && gn_vgpu_state(&v->life) == GN_VGPU_SAVED && v->api->end) {
        v->migration->drop_home_events(v);
        v->api->end(v);
    }
    /* Nothing is taken down piece by piece: a driver in the middle of a kernel would have to be
     * waited for. */
    _exit(atomic_load_explicit(&v->fault, memory_order_relaxed) ? 1 : 0);
}

/* ---- the ring thread */

static void serve(struct gn_vgpu *v)
{
    const uint64_t spin_ns = v->ring.waiter.policy.spin_ns;
    struct gn_request r;
    while (!atomic_load_explicit(&v->fault, memory_order_relaxed)) {
        if (gn_budget_has_order(&v->budget))
            gn_budget_obey(&v->budget);
        if (gn_gate_is_closed(&v->gate)) {
            gn_gate_quiesce(v);
            continue;
        }
        gn_request_init(&r, v);
        int n = gn_ring_try_receive(&v->ring, r.bytes);
        if (n > 0) {
            if (v->ring.peer_cpu != atomic_load_explicit(&v->program_cpu, memory_order_relaxed))
                atomic_store_explicit(&v->program_cpu, v->ring.peer_cpu, memory_order_relaxed);
            gn_vgpu_handle(v, &r, (uint32_t)n, 0);
            continue;
        }
        if (n != -EAGAIN) {
            gn_vgpu_fault(v, "the request ring is corrupt", "ring");
            return;
        }
        gn_vgpu_flush(v);
        gn_objects_bury(v);
        if (gn_lease_is_recalled(&v->lease))
            gn_lease_shed(&v->lease);
        /*
         * Spinning while the device's own threads want a processor would delay the commands that
         * the program waits for.
         */
        bool busy =
            v->on_processors && atomic_load_explicit(&v->counters->pending, memory_order_relaxed);
        v->ring.waiter.policy.spin_ns =
            busy && spin_ns > GN_SPIN_SHORT_NS ? GN_SPIN_SHORT_NS : spin_ns;
        int rc = gn_ring_spin(&v->ring);
        if (rc == -EAGAIN) {
            /* A vGPU that holds the device while others wait for it holds it a moment longer: its
             * program is about to go on. */
            const uint64_t hold_ns = gn_vgpu_hold_ns(v);
            rc = hold_ns ? gn_ring_park(&v->ring, hold_ns) : -ETIMEDOUT;
            if (hold_ns)
                gn_vgpu_held(v, rc == 0);
            if (rc == -ETIMEDOUT) {
                gn_vgpu_park_grants(v);
                rc = gn_ring_park(&v->ring, 0);
            }
        }
        if (rc == -EPIPE)
            return;
    }
}

static void end(struct gn_vgpu *v)
{
    gn_vgpu_end_worker(v);
}

const struct gn_vgpu_session_ops gn_vgpu_session_shm = {
    .name = "shm",
    GN_SHM_SESSION_ENTRIES,
    .has_serving_thread = true,
    .asks_for_files = true,
    .maps_window = true,
    .serve = serve,
    .end = end,
    .set_output = set_output,
};
