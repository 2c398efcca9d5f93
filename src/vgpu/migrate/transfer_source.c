/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source of a migration between two workers, of one machine or, for a program attached over
 * tcp, of two. It runs on a thread of its own, because the source's control thread must keep
 * listening. It never decides which worker continues.
 */
#include "vgpu/migrate/transfer_internal.h"

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/fault.h"
#include "link/chunks.h"
#include "link/worker_hand.h"
#include "link/tls.h"
#include "vgpu/migrate/route.h"
#include "vgpu/migrate/retained.h"
#include "vgpu/migrate/save.h"
#include "vgpu/migrate/delta_base.h"
#include "vgpu/migrate/tcp_session_handover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* a disk may be slow; the command that writes the file gives up before */
#define FILE_STALL_MS 120000u
#define HOLD_TRIES    4u
/* the destination is behind by more: much may have changed meanwhile */
#define SOON_NS UINT64_C(100000000)

struct outbound {
    struct gn_vgpu *vgpu;
    struct gn_tcp to; /* the destination, or the command that writes a file */
    uint32_t n_made;  /* number of steps that the destination has reported as made */
    struct gn_worker_save how;
    bool file, stops; /* how.flags */
    const struct gn_route *route;
    struct gn_save *save;
    struct gn_frame_reader acks; /* the destination's */
    bool closed;                 /* the gate is */
    struct gn_worker_moved moved;
};

static int segment_of(void *vgpu, uint32_t index, uint64_t *ret_bytes)
{
    const struct gn_segment *s = &((struct gn_vgpu *)vgpu)->segments[index];
    *ret_bytes = s->bytes;
    return s->fd;
}

static int fail_over(int rc, const char *what, struct gn_error *err)
{
    return rc ? gn_fail(err, -rc, NULL, "cannot hand over %s: %s", what, strerror(-rc)) : 0;
}

static int hand_over_session(struct gn_vgpu *v, int fd, struct gn_error *err)
{
    v->retained = v->session->in_program ? gn_retained_promise() : 0;
    const struct gn_worker_hand hand = {
        .ring_at = v->ring.head,
        .n_segments = atomic_load_explicit(&v->n_segments, memory_order_acquire),
        .keeps = v->retained,
        .kept = v->delta_base ? v->delta_base->number : 0};
    return fail_over(
        gn_worker_hand_session(fd, &hand, v->boot->session_fd, v->boot->events.fd, segment_of, v),
        "the program's session", err);
}

int gn_transfer_start_tls(struct gn_tcp *tcp, bool server, const void *name, const void *key,
                          uint32_t timeout_ms, struct gn_error *err)
{
    struct gn_tls_psk psk;
    const struct gn_tls_config config = {.server = server, .psk = &psk};
    memcpy(psk.identity, name, sizeof psk.identity);
    memcpy(psk.key, key, sizeof psk.key);
    const int rc = gn_tls_connect(&config, tcp->fd, gn_now_ns() + timeout_ms * UINT64_C(1000000),
                                  &tcp->tls, err);
    explicit_bzero(&psk, sizeof psk);
    return rc;
}

/*
 * Greets a worker that may be on another machine: nothing of the session can be handed over as a
 * descriptor.
 */
static int greet_remote_worker(struct outbound *a, struct gn_error *err)
{
    const struct gn_worker_hand hand = {.ring_at = a->vgpu->segments[0].bytes, .n_segments = 1};
    int rc = 0;
    gn_tcp_set_up(a->to.fd);
    /* The destination builds programs before the stop, and reads nothing meanwhile. */
    gn_tcp_set_patience(a->to.fd, GN_TRANSFER_STALL_MS);
    if (a->how.flags & GN_WORKER_SAVE_TLS)
        rc =
            gn_transfer_start_tls(&a->to, false, a->how.name, a->how.key, GN_TRANSFER_HAND_MS, err);
    if (rc)
        return rc;
    rc = gn_frame_send_tcp(&a->to, GN_TRANSFER_HAND_MS, GN_WORKER_HAND, 0, 0, &hand, sizeof hand);
    return rc ? gn_fail(err, -rc, NULL, "cannot reach the destination worker: %s", strerror(-rc))
              : 0;
}

/* Fails if a descriptor has come for a request that has not: it would be lost. */
static int check_no_descriptor_pending(struct gn_vgpu *v, struct gn_error *err)
{
    pthread_mutex_lock(&v->helper_lock);
    bool expects = !gn_list_empty(&v->folders);
    pthread_mutex_unlock(&v->helper_lock);
    return expects ? gn_fail(err, EAGAIN, "try again", "the program is handing over a descriptor")
                   : 0;
}

static int send_frame(void *to, const struct gn_frame *f)
{
    return gn_frame_send_tcp(to, GN_TRANSFER_STALL_MS, f->op, 0, f->seq, f->payload, f->n_payload);
}

static int hand_over_tcp_session(struct gn_vgpu *v, struct outbound *a)
{
    const struct gn_worker_hand_last last = {.ring_at = v->ring.head};
    struct gn_tcp_handover *session = NULL;
    int rc = gn_tcp_handover_new(v, a->route, &session);
    if (!rc)
        rc = gn_tcp_handover_send(session, send_frame, &a->to);
    gn_tcp_handover_free(session);
    return rc ? rc
              : gn_frame_send_tcp(&a->to, GN_TRANSFER_HAND_MS, GN_WORKER_HAND_LAST, 0, 0, &last,
                                  sizeof last);
}

/* Waits until the destination has made all steps so far. */
static int await_steps(struct outbound *a, struct gn_error *err)
{
    return a->file ? 0
                   : gn_acks_made(&a->acks, GN_TRANSFER_STALL_MS, gn_save_n_steps(a->save),
                                  &a->n_made, err);
}

/*
 * The first exchange, while the program runs: asks whether the destination's devices are
 * compatible. If they differ, everything is made in advance.
 */
static int negotiate_devices(struct outbound *a, struct gn_error *err)
{
    uint32_t others = 0, n_kept = 0;
    uint64_t *kept = NULL;
    /* A destination on another machine retains nothing. */
    const bool goes_back = a->vgpu->delta_base && !a->route->copies_memory;
    int rc = gn_save_begin(a->save, err);
    if (a->file)
        return rc;
    GN_FAULT("move-devices");
    if (!rc)
        rc = gn_acks_fits(&a->acks, GN_TRANSFER_STALL_MS, &others, goes_back ? &kept : NULL,
                          &n_kept, err);
    if (!rc)
        rc = gn_save_answered(a->save, others, kept, n_kept, err);
    free(kept);
    return rc ? rc : await_steps(a, err);
}

/* Sends as many rounds before the gate closes as were requested. */
static int save_ahead(struct outbound *a, struct gn_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; !rc && i < a->how.n_ahead; i++) {
        rc = gn_save_ahead(a->save, err);
        GN_FAULT("move-ahead");
    }
    /*
     * Otherwise the wait for a running build, here or at the destination, would fall into the stop.
     */
    for (uint32_t i = 0; !rc && a->how.n_ahead && i < GN_SAVE_MORE; i++) {
        const uint64_t before_ns = gn_now_ns();
        gn_counter_set(&a->vgpu->counters->save_waits, 1);
        (void)gn_gate_await_helpers(a->vgpu, (uint64_t)a->how.drain_timeout_ms * 1000000u);
        rc = await_steps(a, err);
        gn_counter_set(&a->vgpu->counters->save_waits, 0);
        if (rc)
            break;
        if (!gn_save_is_behind(a->save) && gn_now_ns() - before_ns < SOON_NS)
            break;
        rc = gn_save_ahead(a->save, err);
    }
    /* A connection that ends with unread data may lose data that it has sent. */
    if (!rc && a->route->copies_memory)
        rc = await_steps(a, err);
    return rc;
}

/*
 * Waits until the driver has drained and no build runs: the stop would have to wait for both. A
 * program that builds all the time is stopped during a build.
 */
static int await_drained(struct gn_vgpu *v, uint64_t until_ns, struct gn_error *err)
{
    for (uint32_t i = 0;; i++) {
        uint64_t now_ns = gn_now_ns();
        int rc = gn_gate_hold(v, until_ns > now_ns ? until_ns - now_ns : 0, err);
        GN_FAULT("move-held");
        if (rc || i == HOLD_TRIES || !gn_gate_await_helpers(v, 0))
            return rc;
        /* The commands of its other threads are not held up during the wait. */
        gn_gate_open(v);
        now_ns = gn_now_ns();
        (void)gn_gate_await_helpers(v, until_ns > now_ns ? until_ns - now_ns : 0);
    }
}

static int quiesce(struct gn_vgpu *v, struct outbound *a, struct gn_error *err)
{
    struct gn_worker_moved *moved = &a->moved;
    const uint64_t before_ns = gn_now_ns(),
                   until_ns = before_ns + (uint64_t)a->how.drain_timeout_ms * 1000000u;
    int rc = await_drained(v, until_ns, err);
    moved->began_ns = gn_now_ns();
    moved->hold_ns = moved->began_ns - before_ns;
    /* From here on the program's calls wait. */
    if (!rc && a->route->session_from_program &&
        (rc = v->session->pause_program(v, a->how.mark, until_ns, err)))
        gn_gate_open(v);
    if (rc)
        return rc;
    GN_FAULT("move-paused");
    (void)gn_lease_report(&v->lease, GN_WORKER_STOPS, NULL, 0, -1);
    rc = gn_gate_close(v, until_ns > moved->began_ns ? until_ns - moved->began_ns : 0, err);
    moved->quiet_ns = gn_now_ns();
    moved->stood_ns = v->gate.stood_ns;
    moved->drained_ns = v->gate.drained_ns;
    a->closed = !rc;
    GN_FAULT("move-quiet");
    return rc;
}

/* Sends chunks to the command that writes a file. */
static int write_chunks(void *ctx, struct iovec *iov, int n, struct gn_error *err)
{
    return fail_over(gn_chunks_write(ctx, iov, n, FILE_STALL_MS), "the file's contents", err);
}

static int open_chunks(struct gn_chunks *c, int *fd, struct gn_error *err)
{
    int rc = gn_chunks_accept(c, *fd, GN_TRANSFER_HAND_MS);
    *fd = -1; /* c owns it */
    return rc ? gn_fail(err, -rc, "use a gantry of gantryd's version",
                        "the command that writes the file gave no memory for it: %s", strerror(-rc))
              : 0;
}

static ssize_t send_through(void *ctx, const struct iovec *iov, int n)
{
    return n ? gn_tcp_send(ctx, iov, n) : gn_tcp_unsent(ctx) ? -EAGAIN : 0;
}

static ssize_t receive_through(void *ctx, const struct iovec *iov, int n)
{
    const ssize_t got = gn_tcp_recv(ctx, iov, n);
    return got == -EPIPE ? 0 : got;
}

struct gn_stream_fd gn_transfer_stream(struct gn_tcp *tcp, uint32_t stall_ms)
{
    struct gn_stream_fd plain = GN_STREAM_FD(tcp->fd, stall_ms), tls = plain;
    tls.send = send_through;
    tls.recv = receive_through;
    tls.ctx = tcp;
    return tcp->tls ? tls : plain;
}

static int save_and_hand_over(struct gn_vgpu *v, struct outbound *a, struct gn_error *err)
{
    struct gn_stream_fd to = gn_transfer_stream(&a->to, GN_TRANSFER_STALL_MS);
    struct gn_chunks chunks = {.socket = -1};
    const struct gn_stream_sink sink =
        a->file ? (struct gn_stream_sink){write_chunks, &chunks} : gn_stream_sink_of_fd(&to);
    const struct gn_stream_options options = {.purpose =
                                                  a->file ? GN_STREAM_CHECKPOINT : GN_STREAM_MOVE,
                                              .api = v->api->name,
                                              .creator = "gantry"};
    struct gn_stream_writer *w = NULL;
    gn_counter_set(&v->counters->save_round, 0);
    gn_counter_set(&v->counters->save_waits, 0);
    int rc = a->file ? open_chunks(&chunks, &a->to.fd, err) : 0;
    if (!rc)
        rc = gn_stream_writer_create(&sink, &options, &w, err);
    if (!rc)
        rc = gn_save_new(v, w, &a->how, &a->moved, &a->save, err);
    gn_frame_reader_init(&a->acks, a->to.fd);
    if (a->route->copies_memory)
        a->acks.tcp = &a->to;
    if (!rc)
        rc = negotiate_devices(a, err);
    if (!rc)
        rc = save_ahead(a, err);
    gn_frame_reader_fini(&a->acks);
    /*
     * The destination has built its programs; from here on the program waits for the network, so
     * use the short timeout again.
     */
    if (a->how.n_ahead && a->route->copies_memory)
        gn_tcp_set_up(a->to.fd);
    if (!rc)
        rc = quiesce(v, a, err);
    if (!rc && !a->file && !a->route->continues_stream)
        v->session->send_quiesced(v, a->how.mark);
    if (!rc && (a->stops || !a->file))
        rc = check_no_descriptor_pending(v, err);
    if (!rc)
        rc = gn_save_rest(a->save, err);
    if (!rc && a->file)
        rc = fail_over(gn_chunks_flush(&chunks), "the file's contents", err);
    GN_FAULT("move-told");
    /* The parts that changed until the end: the ring's position, stdout and stderr. */
    if (!rc && !a->file)
        rc = fail_over(a->route->copies_memory ? hand_over_tcp_session(v, a)
                                               : gn_worker_hand_position(a->to.fd, v->ring.head),
                       "the program's session", err);
    a->moved.driver_stays = v->session->in_program && v->driver_stays;
    gn_save_free(a->save);
    gn_stream_writer_destroy(w);
    gn_chunks_close(&chunks);
    return rc;
}

void gn_transfer_report(struct gn_vgpu *v, uint16_t op, struct gn_worker_moved *moved, int rc,
                        const struct gn_error *err, int fd)
{
    moved->error = rc;
    moved->done_ns = gn_now_ns();
    gn_frame_string_set(moved->what, sizeof moved->what, rc ? err->what : "");
    gn_frame_string_set(moved->fix, sizeof moved->fix, rc ? err->fix : "");
    /* If gantryd is gone this process is about to end. */
    (void)gn_lease_report(&v->lease, op, moved, sizeof *moved, fd);
}

/*
 * The source resumes. The session goes first: another migration may close the gate before the
 * quiesced thread has looked.
 */
static void resume_source(struct gn_vgpu *v)
{
    v->session->resume(v);
    gn_gate_open(v);
}

static void drop_retained(struct gn_vgpu *v)
{
    gn_retained_drop(v->retained);
    v->retained = 0;
}

/* The migration failed: the source continues. The control thread. */
static void resume(struct gn_vgpu *v)
{
    drop_retained(v);
    (void)gn_vgpu_change_state(&v->life, GN_VGPU_SAVED, GN_VGPU_OWNED);
    gn_tcp_close(&v->sent_to);
    resume_source(v);
}

/*
 * Publishes a descriptor that the end of the process may shut down, in place of an earlier one; -1:
 * the end waits.
 */
static void publish_save_fd(struct gn_vgpu *v, int fd)
{
    pthread_mutex_lock(&v->gate.lock);
    gn_fd_close(v->save_fd);
    v->save_fd = fd;
    pthread_mutex_unlock(&v->gate.lock);
}

static int begin_outbound(struct gn_vgpu *v, struct outbound *a, struct gn_error *err)
{
    if (gn_vgpu_is_called_off(v))
        return gn_fail(err, ECANCELED, NULL, "the program ends");
    if (!v->session->shares_memory && !a->route->copies_memory && (a->stops || !a->file))
        return gn_fail(err, EOPNOTSUPP, NULL, "its program is attached by another kind of link");
    if (a->file)
        return 0;
    return a->route->copies_memory ? greet_remote_worker(a, err)
                                   : hand_over_session(v, a->to.fd, err);
}

static void *run_outbound(void *arg)
{
    struct outbound *a = arg;
    struct gn_vgpu *v = a->vgpu;
    struct gn_error err = {{0}, {0}};
    a->moved.began_ns = gn_now_ns();
    gn_objects_own_thread();
    /* A duplicate, because this thread may close its own. */
    publish_save_fd(v, v->session->in_program ? gn_fd_duplicate(a->to.fd) : -1);
    GN_FAULT("move-begun");
    int rc = begin_outbound(v, a, &err);
    GN_FAULT("move-handed");
    if (!rc)
        rc = save_and_hand_over(v, a, &err);
    publish_save_fd(v, -1);
    if (!rc && a->route->copies_memory)
        v->sent_to = a->to; /* -1: owned by another now */
    else if (!rc)
        gn_tcp_close(&a->to);
    if (rc)
        drop_retained(v);
    if (rc && a->closed)
        resume_source(v);
    GN_FAULT("move-saved");
    if (!rc) /* unless it has ended meanwhile */
        (void)gn_vgpu_change_state(&v->life, GN_VGPU_OWNED, GN_VGPU_SAVED);
    atomic_store_explicit(&v->moving, false, memory_order_seq_cst);
    /* A program attached over tcp has no session socket to hand over. */
    gn_transfer_report(v, GN_WORKER_SAVED, &a->moved, rc, &err,
                       a->stops && !rc && v->session->shares_memory ? v->boot->session_fd : -1);
    /*
     * The destination fails when the connection closes; report the reason to gantryd before that.
     */
    if (rc)
        gn_tcp_close(&a->to);
    free(a);
    return NULL;
}

/* Starts the thread that saves; takes fd. Reports a failure itself. The control thread. */
static void start_outbound(struct gn_vgpu *v, int fd, const struct gn_worker_save *how)
{
    struct gn_worker_moved moved = {0};
    struct gn_error err;
    struct outbound *a = malloc(sizeof *a);
    /* In this order: the saving thread changes the state, then clears `moving`. */
    const bool moving = atomic_exchange_explicit(&v->moving, true, memory_order_seq_cst),
               owned = gn_vgpu_state(&v->life) == GN_VGPU_OWNED;
    int rc = 0;
    if (a)
        *a = (struct outbound){.vgpu = v,
                               .to = {.fd = fd},
                               .how = *how,
                               .file = how->flags & GN_WORKER_SAVE_FILE,
                               .stops = how->flags & GN_WORKER_SAVE_STOP,
                               .route = gn_route(how->route)};
    if (moving || !owned)
        rc = gn_fail(&err, EBUSY, NULL, "it is being moved already");
    else if (!a)
        rc = gn_fail(&err, ENOMEM, NULL, "no memory left to migrate it");
    else if (!a->route)
        rc = gn_fail(&err, EPROTO, NULL, "gantryd named a route that does not exist");
    else if (gn_vgpu_start_thread(v, run_outbound, a, NULL))
        rc = gn_fail(&err, EAGAIN, NULL, "no thread can be started to migrate it");
    if (!rc)
        return;
    if (!moving)
        atomic_store_explicit(&v->moving, false, memory_order_seq_cst);
    gn_transfer_report(v, GN_WORKER_SAVED, &moved, rc, &err, -1);
    gn_fd_close(fd);
    free(a);
}

const struct gn_vgpu_migration_ops gn_vgpu_migration = {
    .outbound = start_outbound,
    .resume = resume,
    .resume_as_owner = gn_transfer_resume_as_owner,
    .drop_home_events = gn_released_objects_leave,
    .remove_objects = gn_retained_remove_objects,
};
