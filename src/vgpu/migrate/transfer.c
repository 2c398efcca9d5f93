/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ends of a migration between two workers, of one machine or, for a program attached over tcp,
 * of two. The source's part runs on a thread of its own, because its control thread must keep
 * listening; the destination's on the thread that becomes its ring thread. Neither decides which
 * worker continues.
 */
#include "vgpu/migrate/transfer.h"

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/fault.h"
#include "link/chunks.h"
#include "link/frame.h"
#include "link/worker_wire.h"
#include "link/tcp.h"
#include "link/tls.h"
#include "vgpu/migrate/tls_stream.h"
#include "vgpu/migrate/acks.h"
#include "vgpu/migrate/retained.h"
#include "vgpu/migrate/save.h"
#include "vgpu/migrate/delta_base.h"
#include "vgpu/migrate/tcp_session_handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* limit while the other worker does not read: it hangs. It may have programs to build */
#define STALL_MS 60000u
/* a disk may be slow; the command that writes the file gives up before */
#define FILE_STALL_MS    120000u
#define HAND_TIMEOUT_MS  10000
#define FIRST_TIMEOUT_MS 120000
#define HOLD_TRIES       4u
/* the destination is behind by more: much may have changed meanwhile */
#define SOON_NS UINT64_C(100000000)

/* ---- source */

struct away {
    struct gn_vgpu *vgpu;
    int fd;
    struct gn_tls *tls; /* of a migration over tcp with TLS */
    uint32_t n_made;    /* number of steps that the destination has reported as made */
    struct gn_worker_save how;
};

/* The connection to the destination. Only one thread uses it, so any number of these may exist. */
static struct gn_tcp tcp_of(const struct away *a)
{
    return (struct gn_tcp){a->fd, a->tls};
}

/* The program's stdout and stderr, for the destination. In passthrough the program may have closed
 * its own. */
struct output {
    int fds[2], opened[2];
};

static struct output output_of_process(void)
{
    struct output o = {.opened = {-1, -1}};
    for (int i = 0; i < 2; i++) {
        const int fd = i ? STDERR_FILENO : STDOUT_FILENO;
        o.fds[i] = gn_fd_is_open(fd) ? fd : (o.opened[i] = gn_fd_open("/dev/null", O_WRONLY));
    }
    return o;
}

static void close_output(struct output *o)
{
    gn_fd_close(o->opened[0]);
    gn_fd_close(o->opened[1]);
}

static int hand_over(struct gn_vgpu *v, int fd, struct gn_error *err)
{
    struct output output = output_of_process();
    const uint32_t n = atomic_load_explicit(&v->n_segments, memory_order_acquire);
    v->remains = v->session->in_program ? gn_retained_promise() : 0;
    const struct gn_worker_hand hand = {.ring_at = v->ring.head,
                                        .n_segments = n,
                                        .keeps = v->remains,
                                        .kept =
                                            v->way_back ? gn_delta_base_number(v->way_back) : 0};
    const int fds[GN_WORKER_HAND_FDS] = {[GN_WORKER_HAND_SESSION] = v->boot->session_fd,
                                         [GN_WORKER_HAND_EVENTS] = v->boot->events.fd,
                                         [GN_WORKER_HAND_DATA] = v->segments[0].fd,
                                         [GN_WORKER_HAND_STDOUT] = output.fds[0],
                                         [GN_WORKER_HAND_STDERR] = output.fds[1]};
    int rc = gn_frame_send(fd, HAND_TIMEOUT_MS, GN_WORKER_HAND, 0, 0, &hand, sizeof hand, fds,
                           GN_WORKER_HAND_FDS);
    close_output(&output);
    for (uint32_t i = 1; !rc && i < n; i++) {
        const struct gn_link_segment_made made = {.index = i, .bytes = v->segments[i].bytes};
        rc = gn_frame_send(fd, HAND_TIMEOUT_MS, GN_WORKER_HAND_SEGMENT, 0, 0, &made, sizeof made,
                           &v->segments[i].fd, 1);
    }
    return rc ? gn_fail(err, -rc, NULL, "cannot hand over the program's session: %s", strerror(-rc))
              : 0;
}

/*
 * Greets a worker that may be on another machine: nothing of the session can be handed over as a
 * descriptor.
 */
static int greet_far(struct away *a, struct gn_error *err)
{
    const struct gn_worker_hand hand = {.ring_at = a->vgpu->segments[0].bytes, .n_segments = 1};
    struct gn_tls_psk psk;
    int rc = 0;
    gn_tcp_set_up(a->fd);
    /* The destination builds programs before the stop, and reads nothing meanwhile. */
    gn_tcp_set_patience(a->fd, STALL_MS);
    if (a->how.flags & GN_WORKER_SAVE_TLS) {
        memcpy(psk.identity, a->how.name, sizeof psk.identity);
        memcpy(psk.key, a->how.key, sizeof psk.key);
        const struct gn_tls_config config = {.psk = &psk};
        rc = gn_tls_connect(&config, a->fd, gn_now_ns() + HAND_TIMEOUT_MS * UINT64_C(1000000),
                            &a->tls, err);
        explicit_bzero(&psk, sizeof psk);
    }
    if (rc)
        return rc;
    struct gn_tcp to = tcp_of(a);
    rc = gn_frame_send_tcp(&to, HAND_TIMEOUT_MS, GN_WORKER_HAND, 0, 0, &hand, sizeof hand);
    return rc ? gn_fail(err, -rc, NULL, "cannot reach the destination worker: %s", strerror(-rc))
              : 0;
}

/* Fails if a descriptor has come for a request that has not: it would be lost. */
static int expects_nothing(struct gn_vgpu *v, struct gn_error *err)
{
    pthread_mutex_lock(&v->helper_lock);
    bool expects = !gn_list_empty(&v->folders);
    pthread_mutex_unlock(&v->helper_lock);
    return expects ? gn_fail(err, EAGAIN, "try again", "the program is handing over a descriptor")
                   : 0;
}

struct carried {
    struct gn_tcp *to;
    int timeout_ms;
};

static int carry(void *ctx, const struct gn_frame *f)
{
    const struct carried *c = ctx;
    return gn_frame_send_tcp(c->to, c->timeout_ms, f->op, 0, f->seq, f->payload, f->n_payload);
}

static int hand_far(struct gn_vgpu *v, const struct away *a, struct gn_error *err)
{
    const enum gn_far_way way = a->how.flags & GN_WORKER_SAVE_BESIDE ? GN_FAR_BESIDE
                                : a->how.flags & GN_WORKER_SAVE_NEAR ? GN_FAR_NEAR
                                                                     : GN_FAR_ON;
    const struct gn_worker_hand_last last = {.ring_at = v->ring.head};
    struct gn_tcp to = tcp_of(a);
    struct carried carried = {&to, STALL_MS};
    struct gn_far_session *session = NULL;
    int rc = gn_far_session_new(v, way, &session, err);
    if (rc)
        return rc;
    rc = gn_far_session_hand(session, carry, &carried);
    gn_far_session_free(session);
    if (!rc)
        rc = gn_frame_send_tcp(&to, HAND_TIMEOUT_MS, GN_WORKER_HAND_LAST, 0, 0, &last, sizeof last);
    return rc ? gn_fail(err, -rc, NULL, "cannot hand over the program's session: %s", strerror(-rc))
              : 0;
}

/* Hands over the parts that changed until the end: the ring's position, stdout and stderr. */
static int hand_last(struct gn_vgpu *v, const struct away *a, struct gn_error *err)
{
    const struct gn_worker_hand_last last = {.ring_at = v->ring.head};
    const int fd = a->fd;
    if (a->how.flags & GN_WORKER_SAVE_FAR)
        return hand_far(v, a, err);
    struct output output = output_of_process();
    int rc = gn_frame_send(fd, HAND_TIMEOUT_MS, GN_WORKER_HAND_LAST, 0, 0, &last, sizeof last,
                           output.fds, 2);
    close_output(&output);
    return rc ? gn_fail(err, -rc, NULL, "cannot hand over the program's session: %s", strerror(-rc))
              : 0;
}

static int await_made(struct away *a, struct gn_frame_reader *made, uint32_t step,
                      struct gn_error *err)
{
    return a->how.flags & GN_WORKER_SAVE_FILE ? 0
                                              : gn_acks_made(made, STALL_MS, step, &a->n_made, err);
}

/*
 * The first exchange, while the program runs: asks whether the destination's devices are
 * compatible. If they differ, everything is made in advance.
 */
static int ask_devices(struct away *a, struct gn_save *s, struct gn_frame_reader *made,
                       struct gn_error *err)
{
    uint32_t others = 0, n_kept = 0;
    uint64_t *kept = NULL;
    /* A destination on another machine retains nothing. */
    const bool goes_back = a->vgpu->way_back && !(a->how.flags & GN_WORKER_SAVE_FAR);
    if (a->how.flags & GN_WORKER_SAVE_FILE)
        return gn_save_check(s, err);
    int rc = gn_save_devices(s, err);
    GN_FAULT("move-devices");
    if (!rc)
        rc = gn_acks_fits(made, STALL_MS, &others, goes_back ? &kept : NULL, &n_kept, err);
    if (!rc && n_kept)
        gn_save_goes_back(s, kept, n_kept);
    free(kept);
    if (!rc && others)
        rc = gn_save_for_others(s, err);
    if (!rc && others)
        rc = await_made(a, made, gn_save_n_steps(s), err);
    return rc;
}

/* Sends as many rounds before the gate closes as were requested. */
static int save_ahead(struct away *a, struct gn_save *s, struct gn_frame_reader *made,
                      struct gn_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; !rc && i < a->how.n_ahead; i++) {
        rc =
            gn_save_ahead(s, a->how.bytes_per_s, (uint64_t)a->how.drain_timeout_ms * 1000000u, err);
        GN_FAULT("move-ahead");
    }
    /*
     * Otherwise the wait for a running build, here or at the destination, would fall into the stop.
     */
    for (uint32_t i = 0; !rc && a->how.n_ahead && i < GN_SAVE_MORE; i++) {
        const uint64_t before_ns = gn_now_ns();
        gn_counter_set(&a->vgpu->counters->save_waits, 1);
        (void)gn_gate_await_helpers(a->vgpu, (uint64_t)a->how.drain_timeout_ms * 1000000u);
        rc = await_made(a, made, gn_save_n_steps(s), err);
        gn_counter_set(&a->vgpu->counters->save_waits, 0);
        if (rc)
            break;
        if (!gn_save_is_behind(s) && gn_now_ns() - before_ns < SOON_NS)
            break;
        rc =
            gn_save_ahead(s, a->how.bytes_per_s, (uint64_t)a->how.drain_timeout_ms * 1000000u, err);
    }
    /* A connection that ends with unread data may lose data that it has sent. */
    if (!rc && (a->how.flags & GN_WORKER_SAVE_FAR))
        rc = await_made(a, made, gn_save_n_steps(s), err);
    return rc;
}

/*
 * Waits until the driver has drained and no build runs: the stop would have to wait for both. A
 * program that builds all the time is stopped during a build.
 */
static int hold(struct gn_vgpu *v, uint64_t until_ns, struct gn_error *err)
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

/* *ret_closed: the gate is closed. */
static int stop(struct gn_vgpu *v, const struct away *a, struct gn_worker_moved *said,
                bool *ret_closed, struct gn_error *err)
{
    const uint64_t before_ns = gn_now_ns(),
                   until_ns = before_ns + (uint64_t)a->how.drain_timeout_ms * 1000000u;
    int rc = hold(v, until_ns, err);
    said->began_ns = gn_now_ns();
    said->hold_ns = said->began_ns - before_ns;
    /* From here on the program's calls wait. */
    if (!rc && a->how.flags & GN_WORKER_SAVE_NEAR &&
        (rc = v->session->pause_program(v, a->how.mark, until_ns, err)))
        gn_gate_open(v);
    if (rc)
        return rc;
    GN_FAULT("move-paused");
    (void)gn_lease_report(&v->lease, GN_WORKER_STOPS, NULL, 0, -1);
    rc = gn_gate_close(v, until_ns > said->began_ns ? until_ns - said->began_ns : 0, err);
    said->quiet_ns = gn_now_ns();
    said->stood_ns = v->gate.stood_ns;
    said->drained_ns = v->gate.drained_ns;
    *ret_closed = !rc;
    GN_FAULT("move-quiet");
    return rc;
}

static void where_it_stops(struct gn_vgpu *v, const struct gn_worker_save *how,
                           struct gn_stream_stop *ret)
{
    *ret = (struct gn_stream_stop){.ring_at = v->ring.head,
                                   .n_segments =
                                       atomic_load_explicit(&v->n_segments, memory_order_acquire)};
    _Static_assert(sizeof ret->key == sizeof how->key, "a stop's key");
    memcpy(ret->key, how->key, sizeof ret->key);
}

/* Sends chunks to the command that writes a file. */
static int write_chunks(void *ctx, struct iovec *iov, int n, struct gn_error *err)
{
    int rc = gn_chunks_write(ctx, iov, n, FILE_STALL_MS);
    return rc ? gn_fail(err, -rc, NULL, "cannot hand over the file's contents: %s", strerror(-rc))
              : 0;
}

static int open_chunks(struct gn_chunks *c, int *fd, struct gn_error *err)
{
    int rc = gn_chunks_accept(c, *fd, HAND_TIMEOUT_MS);
    *fd = -1; /* c owns it */
    return rc ? gn_fail(err, -rc, "use a gantry of gantryd's version",
                        "the command that writes the file gave no memory for it: %s", strerror(-rc))
              : 0;
}

static int end_chunks(struct gn_chunks *c, struct gn_error *err)
{
    int rc = gn_chunks_flush(c);
    return rc ? gn_fail(err, -rc, NULL, "cannot hand over the file's contents: %s", strerror(-rc))
              : 0;
}

static int save_to(struct gn_vgpu *v, struct away *a, struct gn_worker_moved *said,
                   bool *ret_closed, struct gn_error *err)
{
    const bool file = a->how.flags & GN_WORKER_SAVE_FILE,
               stops = a->how.flags & GN_WORKER_SAVE_STOP;
    struct gn_stream_fd to = GN_STREAM_FD(a->fd, -1, STALL_MS);
    struct gn_tls_stream far = {.tcp = tcp_of(a), .stall_ms = STALL_MS};
    struct gn_chunks chunks = {.socket = -1};
    const struct gn_stream_sink sink = file     ? (struct gn_stream_sink){write_chunks, &chunks}
                                       : a->tls ? gn_far_sink(&far)
                                                : gn_stream_sink_of_fd(&to);
    const struct gn_stream_options options = {.purpose =
                                                  file ? GN_STREAM_CHECKPOINT : GN_STREAM_MOVE,
                                              .api = v->api->name,
                                              .creator = "gantry"};
    struct gn_stream_stop stopped;
    const struct gn_saved_about about = {.vgpu_id = a->how.vgpu_id,
                                         .stop = stops ? &stopped : NULL};
    struct gn_far_session *session = NULL;
    struct gn_stream_writer *w = NULL;
    struct gn_save *s = NULL;
    struct gn_frame_reader made;
    gn_counter_set(&v->counters->save_round, 0);
    gn_counter_set(&v->counters->save_waits, 0);
    int rc = file ? open_chunks(&chunks, &a->fd, err) : 0;
    if (!rc)
        rc = gn_stream_writer_create(&sink, &options, &w, err);
    /*
     * Contents in the program's memory stay there if the program waits for a restore; everything is
     * sent if the destination does not share the program's memory.
     */
    if (!rc)
        rc = gn_save_new(v, w, (file && !stops) || (a->how.flags & GN_WORKER_SAVE_FAR),
                         a->how.n_ahead, &s, err);
    if (!rc && (a->how.flags & GN_WORKER_SAVE_FAR))
        gn_save_for_far(s);
    gn_frame_reader_init(&made, a->fd);
    if (a->how.flags & GN_WORKER_SAVE_FAR)
        made.tcp = &far.tcp;
    if (!rc)
        rc = ask_devices(a, s, &made, err);
    if (!rc)
        rc = save_ahead(a, s, &made, err);
    gn_frame_reader_fini(&made);
    /*
     * The destination has built its programs; from here on the program waits for the network, so
     * use the short timeout again.
     */
    if (a->how.n_ahead && a->how.flags & GN_WORKER_SAVE_FAR)
        gn_tcp_set_up(a->fd);
    if (!rc)
        rc = stop(v, a, said, ret_closed, err);
    if (!rc && !file && !(a->how.flags & GN_WORKER_SAVE_BESIDE))
        v->session->send_quiesced(v, a->how.mark);
    if (!rc && (stops || !file))
        rc = expects_nothing(v, err);
    if (!rc && file) {
        where_it_stops(v, &a->how, &stopped);
        gn_save_checkpoint(s, &about);
    }
    if (!rc && stops && !v->session->shares_memory &&
        !(rc = gn_far_session_new(v, GN_FAR_BESIDE, &session, err)))
        gn_save_session(s, session);
    if (!rc)
        rc = gn_save_rest(s, err);
    if (!rc && file)
        rc = end_chunks(&chunks, err);
    GN_FAULT("move-told");
    if (!rc && !file)
        rc = hand_last(v, a, err);
    if (!rc) {
        const struct gn_stream_counts *counts = gn_stream_writer_counts(w);
        const struct gn_save_figures *figures = gn_save_figures(s);
        said->bytes = counts->stream_bytes;
        said->pages = counts->pages;
        said->pages_zero = counts->pages_zero;
        said->ahead_ns = figures->ahead_ns;
        said->pages_total = figures->pages_total;
        said->pages_kept = figures->pages_kept;
        said->pages_ahead = figures->pages_ahead;
        said->pages_stop = figures->pages_stop;
        said->sampled = figures->sampled;
        said->hashed = figures->hashed;
        said->device = figures->device;
        said->read_bytes = figures->read_bytes;
        said->told_ns = figures->told_ns;
        said->driver_stays = v->session->in_program && v->driver_stays;
    }
    gn_save_free(s);
    gn_far_session_free(session);
    gn_stream_writer_destroy(w);
    gn_chunks_close(&chunks);
    return rc;
}

static void say_with(struct gn_vgpu *v, uint16_t op, struct gn_worker_moved *said, int rc,
                     const struct gn_error *err, int fd)
{
    said->error = rc;
    said->done_ns = gn_now_ns();
    gn_frame_string_set(said->what, sizeof said->what, rc ? err->what : "");
    gn_frame_string_set(said->fix, sizeof said->fix, rc ? err->fix : "");
    /* If gantryd is gone, this process is about to end. */
    (void)gn_lease_report(&v->lease, op, said, sizeof *said, fd);
}

static void say(struct gn_vgpu *v, uint16_t op, struct gn_worker_moved *said, int rc,
                const struct gn_error *err)
{
    say_with(v, op, said, rc, err, -1);
}

/*
 * The source resumes. The session goes first: another migration may close the gate before the
 * quiesced thread has looked.
 */
static void go_on(struct gn_vgpu *v)
{
    v->session->resume(v);
    gn_gate_open(v);
}

static void leaves_nothing(struct gn_vgpu *v)
{
    gn_retained_drop(v->remains);
    v->remains = 0;
}

static void resume(struct gn_vgpu *v)
{
    leaves_nothing(v);
    atomic_store_explicit(&v->saved_awaiting_commit, false, memory_order_seq_cst);
    gn_tcp_close(&v->sent_to);
    go_on(v);
}

/*
 * Publishes a descriptor that the end of the process may shut down: a duplicate, because the saving
 * thread may close its own. Without one the end waits.
 */
static void open_save_fd(struct gn_vgpu *v, int fd)
{
    const int copy = v->session->in_program ? gn_fd_duplicate(fd) : -1;
    pthread_mutex_lock(&v->gate.lock);
    v->save_fd = copy;
    pthread_mutex_unlock(&v->gate.lock);
}

static void close_save_fd(struct gn_vgpu *v)
{
    pthread_mutex_lock(&v->gate.lock);
    gn_fd_close(v->save_fd);
    v->save_fd = -1;
    pthread_mutex_unlock(&v->gate.lock);
}

static int begin_away(struct gn_vgpu *v, struct away *a, struct gn_error *err)
{
    const bool stops = a->how.flags & GN_WORKER_SAVE_STOP,
               file = a->how.flags & GN_WORKER_SAVE_FILE;
    if (gn_vgpu_is_called_off(v))
        return gn_fail(err, ECANCELED, NULL, "the program ends");
    if (!v->session->shares_memory && !(a->how.flags & GN_WORKER_SAVE_FAR) && (stops || !file))
        return gn_fail(err, EOPNOTSUPP, NULL, "its program is attached by another kind of link");
    if (file)
        return 0;
    return a->how.flags & GN_WORKER_SAVE_FAR ? greet_far(a, err) : hand_over(v, a->fd, err);
}

static void *away_thread(void *arg)
{
    struct away *a = arg;
    struct gn_vgpu *v = a->vgpu;
    struct gn_worker_moved said = {.began_ns = gn_now_ns()};
    struct gn_error err = {{0}, {0}};
    bool closed = false;
    gn_objects_own_thread();
    open_save_fd(v, a->fd);
    GN_FAULT("move-begun");
    const bool stops = a->how.flags & GN_WORKER_SAVE_STOP;
    int rc = begin_away(v, a, &err);
    GN_FAULT("move-handed");
    if (!rc)
        rc = save_to(v, a, &said, &closed, &err);
    close_save_fd(v);
    struct gn_tcp left = tcp_of(a); /* -1: owned by another now */
    if (!rc && (a->how.flags & GN_WORKER_SAVE_FAR))
        v->sent_to = left;
    else if (!rc)
        gn_tcp_close(&left);
    free(a);
    if (rc)
        leaves_nothing(v);
    if (rc && closed)
        go_on(v);
    GN_FAULT("move-saved");
    atomic_store_explicit(&v->saved_awaiting_commit, !rc, memory_order_seq_cst);
    atomic_store_explicit(&v->moving, false, memory_order_seq_cst);
    /* A program attached over tcp has no session socket to hand over. */
    say_with(v, GN_WORKER_SAVED, &said, rc, &err,
             stops && !rc && v->session->shares_memory ? v->boot->session_fd : -1);
    /*
     * The destination fails when the connection closes; report the reason to gantryd before that.
     */
    if (rc)
        gn_tcp_close(&left);
    return NULL;
}

static void outbound(struct gn_vgpu *v, int fd, const struct gn_worker_save *how)
{
    struct gn_worker_moved said = {0};
    struct gn_error err;
    struct away *a = malloc(sizeof *a);
    if (atomic_exchange_explicit(&v->moving, true, memory_order_seq_cst)) {
        say(v, GN_WORKER_SAVED, &said, gn_fail(&err, EBUSY, NULL, "it is being moved already"),
            &err);
        gn_fd_close(fd);
        free(a);
        return;
    }
    if (a)
        *a = (struct away){.vgpu = v, .fd = fd, .how = *how};
    if (!a || gn_vgpu_start_thread(v, away_thread, a, NULL)) {
        atomic_store_explicit(&v->moving, false, memory_order_seq_cst);
        say(v, GN_WORKER_SAVED, &said, gn_fail(&err, ENOMEM, NULL, "no memory left to migrate it"),
            &err);
        gn_fd_close(fd);
        free(a);
    }
}

/* ---- destination */

static int adopt(struct gn_frame_reader *reader, int i, uint64_t most_bytes, struct gn_segment *ret)
{
    const int fd = gn_frame_take_fd(reader, i);
    const int rc = gn_segment_adopt(fd, most_bytes, ret);
    if (rc && fd >= 0)
        gn_fd_close(fd);
    return rc;
}

static int take_segment(struct gn_vgpu_boot *boot, struct gn_frame_reader *reader, uint32_t index)
{
    struct gn_link_segment_made made;
    struct gn_frame f;
    int rc = gn_frame_wait(reader, HAND_TIMEOUT_MS, &f);
    if (rc != 1)
        return rc < 0 ? rc : -EPROTO;
    if (f.op != GN_WORKER_HAND_SEGMENT || !gn_frame_payload(&f, &made, sizeof made) ||
        made.index != index || f.n_fds != 1)
        return -EPROTO;
    rc = adopt(reader, 0, GN_LINK_SEGMENT_LIMIT, &boot->more[index - 1]);
    if (!rc)
        boot->n_more = index;
    return rc;
}

/* The connection to a source that may be on another machine. */
static int far_fd(const struct gn_vgpu_boot *boot)
{
    return boot->near ? boot->far_fd : boot->load_fd;
}

/* Greets such a source. */
static int take_far(struct gn_vgpu_boot *boot)
{
    const uint64_t deadline_ns = gn_now_ns() + FIRST_TIMEOUT_MS * UINT64_C(1000000);
    struct gn_tcp from = {far_fd(boot), NULL};
    struct gn_frame_reader reader;
    struct gn_worker_hand hand;
    struct gn_tls_psk psk;
    struct gn_error err;
    struct gn_frame f;
    gn_tcp_set_up(from.fd);
    if (boot->near ? boot->far_secure : boot->tls && !boot->beside) {
        memcpy(psk.identity, boot->load_name, sizeof psk.identity);
        memcpy(psk.key, boot->load_key, sizeof psk.key);
        const struct gn_tls_config config = {.server = true, .psk = &psk};
        int rc = gn_tls_connect(&config, from.fd, deadline_ns, &boot->load_tls, &err);
        explicit_bzero(&psk, sizeof psk);
        if (rc)
            return rc;
        from.tls = boot->load_tls;
    }
    gn_frame_reader_init(&reader, from.fd);
    reader.tcp = &from;
    int rc = gn_frame_wait(&reader, FIRST_TIMEOUT_MS, &f);
    /*
     * The data area has the same size on all machines, because the program chooses the places in
     * it.
     */
    if (rc == 1)
        rc = f.op == GN_WORKER_HAND && gn_frame_payload(&f, &hand, sizeof hand) &&
                     hand.ring_at == boot->data.bytes && hand.n_segments == 1
                 ? 0
                 : -EPROTO;
    gn_frame_reader_fini(&reader);
    return rc;
}

/* Adopts the descriptors of the first frame. */
static int take_session(const struct gn_vgpu_session_ops *session, struct gn_vgpu_boot *boot,
                        struct gn_frame_reader *reader, const struct gn_worker_hand *hand)
{
    const int fds[2] = {gn_frame_take_fd(reader, GN_WORKER_HAND_STDOUT),
                        gn_frame_take_fd(reader, GN_WORKER_HAND_STDERR)};
    boot->session_fd = gn_frame_take_fd(reader, GN_WORKER_HAND_SESSION);
    /* For a restore, the file has the position, and the program does not know it. */
    if (boot->file_fd < 0)
        boot->ring_at = hand->ring_at; /* a file knows the position; a program does not */
    boot->keeps = hand->keeps;
    boot->kept = session->in_program ? hand->kept : 0;
    for (int i = 0; i < 2; i++) {
        /* Without a file they come again, with GN_WORKER_HAND_LAST. */
        const bool keeps = boot->file_fd >= 0;
        boot->stdio_fds[i] = keeps ? fds[i] : -1;
        if (!keeps)
            gn_fd_close(fds[i]);
    }
    boot->more = calloc(hand->n_segments, sizeof *boot->more);
    int rc = boot->more ? 0 : -ENOMEM;
    if (!rc)
        rc = adopt(reader, GN_WORKER_HAND_EVENTS, GN_EVENT_TABLE_BYTES, &boot->events);
    return rc ? rc : adopt(reader, GN_WORKER_HAND_DATA, GN_LINK_SEGMENT_LIMIT, &boot->data);
}

int gn_vgpu_receive_handover(const struct gn_vgpu_session_ops *session, struct gn_vgpu_boot *boot)
{
    struct gn_frame_reader reader;
    struct gn_worker_hand hand;
    struct gn_frame f;
    if (!session->shares_memory)
        return boot->file_fd >= 0 ? 0 : take_far(boot);
    gn_frame_reader_init(&reader, boot->load_fd);
    int rc = gn_frame_wait(&reader, FIRST_TIMEOUT_MS, &f);
    if (rc == 1)
        rc = f.op == GN_WORKER_HAND && gn_frame_payload(&f, &hand, sizeof hand) &&
                     f.n_fds == GN_WORKER_HAND_FDS && hand.n_segments &&
                     hand.n_segments <= GN_MAX_SEGMENTS
                 ? take_session(session, boot, &reader, &hand)
                 : -EPROTO;
    for (uint32_t i = 1; !rc && i < hand.n_segments; i++)
        rc = take_segment(boot, &reader, i);
    gn_frame_reader_fini(&reader);
    return !rc && boot->near ? take_far(boot) : rc;
}

/* Sends the ids of the retained memories, before the answer about the devices. */
static void send_retained(const struct gn_vgpu_boot *boot)
{
    uint64_t *ids;
    const uint32_t n = boot->kept ? gn_retained_list(boot->kept, &ids) : 0;
    if (!n)
        return;
    for (uint32_t i = 0; i < n; i += GN_WORKER_HAND_KEPT_MOST) {
        const uint32_t some = n - i < GN_WORKER_HAND_KEPT_MOST ? n - i : GN_WORKER_HAND_KEPT_MOST;
        (void)gn_frame_send(boot->load_fd, HAND_TIMEOUT_MS, GN_WORKER_HAND_KEPT, 0, 0, ids + i,
                            some * sizeof *ids, NULL, 0);
    }
    free(ids);
}

/* The source writes over tcp. */
static bool comes_over_tcp(const struct gn_vgpu *v)
{
    return v->boot->near || (v->boot->file_fd < 0 && !v->session->shares_memory);
}

/* A failed send is ignored: the source notices it. */
void gn_vgpu_fits(struct gn_vgpu *v, bool others)
{
    struct gn_tcp far = {far_fd(v->boot), v->boot->load_tls};
    if (comes_over_tcp(v))
        (void)gn_frame_send_tcp(&far, HAND_TIMEOUT_MS, GN_WORKER_HAND_FITS, 0, others, NULL, 0);
    else if (v->boot->file_fd < 0 && v->boot->load_fd >= 0) {
        send_retained(v->boot);
        (void)gn_frame_send(v->boot->load_fd, 0, GN_WORKER_HAND_FITS, 0, others, NULL, 0, NULL, 0);
    }
}

void gn_vgpu_made(struct gn_vgpu *v, uint32_t round)
{
    /* A failed send is ignored: the source continues. */
    struct gn_tcp far = {far_fd(v->boot), v->boot->load_tls};
    if (comes_over_tcp(v))
        (void)gn_frame_send_tcp(&far, HAND_TIMEOUT_MS, GN_WORKER_HAND_MADE, 0, round, NULL, 0);
    else if (v->boot->file_fd < 0 && v->boot->load_fd >= 0)
        (void)gn_frame_send(v->boot->load_fd, 0, GN_WORKER_HAND_MADE, 0, round, NULL, 0, NULL, 0);
}

void gn_vgpu_begin_load(struct gn_vgpu *v)
{
    atomic_store_explicit(&v->gate.closed, true, memory_order_seq_cst);
    atomic_store_explicit(&v->gate.holds, true, memory_order_seq_cst);
    v->gate.deaf = true;
    atomic_store_explicit(&v->arriving, true, memory_order_relaxed);
    /* The source still writes the counters that gantryd reads. */
    v->counters_there = v->counters;
    v->counters = v->lease.counters = &v->load_counters;
}

/*
 * From a source on another machine, to a program that shares memory with this worker: checks that
 * it hands over no parts of the session. The program was quiesced, so there are none.
 */
static int take_last_of_far(struct gn_vgpu *v, struct gn_error *err)
{
    struct gn_tcp far = {v->boot->far_fd, v->boot->load_tls};
    struct gn_worker_hand_last last;
    struct gn_worker_hand_far hand;
    struct gn_frame_reader reader;
    struct gn_frame f;
    gn_frame_reader_init(&reader, far.fd);
    reader.tcp = &far;
    int rc = gn_frame_wait(&reader, STALL_MS, &f);
    if (rc == 1)
        rc = f.op == GN_WORKER_HAND_FAR && gn_frame_payload(&f, &hand, sizeof hand) &&
                     !hand.n_held && !hand.n_areas && !hand.n_said
                 ? gn_frame_wait(&reader, HAND_TIMEOUT_MS, &f)
                 : -EPROTO;
    if (rc == 1)
        rc = f.op == GN_WORKER_HAND_LAST && gn_frame_payload(&f, &last, sizeof last) ? 0 : -EPROTO;
    gn_frame_reader_fini(&reader);
    return rc ? gn_fail(err, -rc, NULL, "the end of the vGPU's state is missing") : 0;
}

/* Takes the state of a tcp session. `from` is positioned behind the stream. */
static int take_far_session(struct gn_vgpu *v, struct gn_frame_reader *from, struct gn_error *err)
{
    int rc = 0;
    while (!rc) {
        struct gn_frame f;
        rc = gn_frame_wait(from, STALL_MS, &f);
        rc = rc == 1 ? v->session->load_frame(v, &f) : rc ? rc : -EPROTO;
    }
    if (rc > 0)
        rc = v->session->loaded(v);
    return rc ? gn_fail(err, -rc, NULL, "the program's session is missing") : 0;
}

/* Takes the position in the ring, stdout and stderr, after everything else. */
static int take_last(struct gn_vgpu *v, struct gn_error *err)
{
    struct gn_worker_hand_last last;
    struct gn_frame_reader reader;
    struct gn_tcp far = {v->boot->load_fd, v->boot->load_tls};
    struct gn_frame f;
    int rc = 0;
    if (v->boot->near && (rc = take_last_of_far(v, err)))
        return rc;
    gn_frame_reader_init(&reader, v->boot->load_fd);
    const bool shares = v->session->shares_memory;
    if (!shares) {
        reader.tcp = &far;
        rc = take_far_session(v, &reader, err);
        if (rc) {
            gn_frame_reader_fini(&reader);
            return rc;
        }
    }
    rc = gn_frame_wait(&reader, HAND_TIMEOUT_MS, &f);
    if (rc == 1)
        rc = f.op == GN_WORKER_HAND_LAST && gn_frame_payload(&f, &last, sizeof last) &&
                     f.n_fds == (shares ? 2 : 0)
                 ? 0
                 : -EPROTO;
    if (!rc && shares) {
        const int fds[2] = {gn_frame_take_fd(&reader, 0), gn_frame_take_fd(&reader, 1)};
        rc = v->session->set_output(v, fds);
        v->ring.head = last.ring_at;
    }
    gn_frame_reader_fini(&reader);
    return rc ? gn_fail(err, -rc, NULL, "the program's session is missing") : 0;
}

/*
 * False if the program ends. After it has reported that everything has come, only gantryd decides.
 */
static bool may_come(struct gn_vgpu *v)
{
    int coming = GN_INBOUND_COMING;
    return !v->boot->end ||
           atomic_compare_exchange_strong(&v->boot->end->arrival, &coming, GN_INBOUND_CLAIMED);
}

int gn_vgpu_receive(struct gn_vgpu *v)
{
    struct gn_worker_moved said = {.began_ns = gn_now_ns()};
    /*
     * No timeout: the source may wait for the device, and gantryd ends this worker when the
     * migration is given up.
     */
    const bool file = v->boot->file_fd >= 0;
    struct gn_stream_fd from = GN_STREAM_FD(file ? v->boot->file_fd : far_fd(v->boot), -1, 0);
    struct gn_tls_stream far = {.tcp = {far_fd(v->boot), v->boot->load_tls}};
    const struct gn_stream_source source =
        v->boot->load_tls ? gn_far_source(&far) : gn_stream_source_of_fd(&from);
    /*
     * The lease limits the objects' memory. Tables are limited to the largest number of objects of
     * a program.
     */
    const struct gn_stream_limits limits = {.memory_bytes = UINT64_MAX / 2,
                                            .entries_bytes = UINT64_C(4) << 30,
                                            .n_objects = GN_OBJECT_CHUNK * GN_OBJECT_CHUNKS,
                                            .n_memories = GN_OBJECT_CHUNK * GN_OBJECT_CHUNKS,
                                            .n_rounds = 64,
                                            .body_bytes = GN_STREAM_MOST_BODY_BYTES};
    struct gn_error err = {{0}, {0}};
    struct gn_stream_reader *r;
    GN_FAULT("load-begun");
    if (v->boot->keeps)
        gn_delta_base_begin(v, v->boot->keeps);
    int rc = gn_stream_reader_create(&source, &limits, &r, &err);
    if (!rc) {
        rc = gn_vgpu_load(v, r, &err);
        if (!rc && file && (rc = gn_stream_expect_end(r)))
            err = *gn_stream_reader_error(r);
        gn_stream_reader_destroy(r);
    }
    gn_retained_drop(v->boot->kept);
    GN_FAULT("load-last");
    if (!rc && !file)
        rc = take_last(v, &err);
    else if (!rc && (rc = v->session->set_output(v, v->boot->stdio_fds)))
        gn_fail(&err, -rc, NULL, "cannot take the program's output: %s", strerror(-rc));
    said.bytes = v->boot->load_tls ? far.n_bytes : from.n_bytes;
    GN_FAULT("load-done");
    if (!rc && !may_come(v))
        rc = gn_fail(&err, ECANCELED, NULL, "the program ends");
    say(v, GN_WORKER_LOADED, &said, rc, &err);
    return rc;
}

void gn_vgpu_load_failed(struct gn_vgpu *v, int rc)
{
    struct gn_worker_moved said = {.began_ns = gn_now_ns()};
    struct gn_error err;
    gn_fail(&err, -rc, NULL, "cannot start the vGPU's threads: %s", strerror(-rc));
    say(v, GN_WORKER_LOADED, &said, rc, &err);
}

static void resume_as_owner(struct gn_vgpu *v)
{
    GN_FAULT("load-go");
    if (v->counters_there) {
        struct gn_counters *there = v->counters_there;
        pthread_mutex_lock(&v->lease.lock);
        gn_counter_set(&there->memory_bytes, v->lease.used_bytes);
        gn_counter_set(&there->devices,
                       atomic_load_explicit(&v->counters->devices, memory_order_relaxed));
        gn_counter_set(&there->pending,
                       atomic_load_explicit(&v->counters->pending, memory_order_relaxed));
        v->counters = v->lease.counters = there;
        v->counters_there = NULL;
        pthread_mutex_unlock(&v->lease.lock);
    }
    v->session->resume_as_owner(v);
    atomic_store_explicit(&v->arriving, false, memory_order_relaxed);
    gn_gate_open(v);
}

const struct gn_vgpu_migration_ops gn_vgpu_migration = {
    .outbound = outbound,
    .resume = resume,
    .resume_as_owner = resume_as_owner,
};
