/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ends of a move between two workers of one machine. The old worker's part runs on a thread of its own, since its control
 * thread must go on hearing; the new one's on what will be its ring thread. Nothing here decides who goes on.
 */
#include "vgpu/core/move.h"

#include "base/clock.h"
#include "base/fault.h"
#include "link/chunks.h"
#include "link/frame.h"
#include "link/worker_wire.h"
#include "vgpu/core/save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STALL_MS         60000u /* the other worker does not read for so long: it hangs. It may have programs to build */
#define FILE_STALL_MS    120000u /* a disk may take its time; who writes to it gives up before */
#define HAND_TIMEOUT_MS  10000
#define FIRST_TIMEOUT_MS 120000
#define SOON_NS          UINT64_C(100000000) /* the other one is behind by more: meanwhile much may have changed */

/* ---- from the old one */

struct away {
    struct gn_vgpu *vgpu;
    int fd;
    struct gn_worker_save how;
};

/* A program that hosts its vGPU may have closed it. */
static int stdio_or(int fd, int null)
{
    return fcntl(fd, F_GETFD) < 0 ? null : fd;
}

static int hand_over(struct gn_vgpu *v, int fd, struct gn_error *err)
{
    const int null = v->hosted ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
    const uint32_t n = atomic_load_explicit(&v->n_segments, memory_order_acquire);
    const struct gn_worker_hand hand = {.ring_at = v->ring.head, .n_segments = n};
    const int fds[GN_WORKER_HAND_FDS] = {[GN_WORKER_HAND_SESSION] = v->boot->session_fd,
                                         [GN_WORKER_HAND_EVENTS] = v->boot->events.fd,
                                         [GN_WORKER_HAND_DATA] = v->segments[0].fd,
                                         [GN_WORKER_HAND_STDOUT] = stdio_or(STDOUT_FILENO, null),
                                         [GN_WORKER_HAND_STDERR] = stdio_or(STDERR_FILENO, null)};
    int rc = gn_frame_send(fd, HAND_TIMEOUT_MS, GN_WORKER_HAND, 0, 0, &hand, sizeof hand, fds, GN_WORKER_HAND_FDS);
    if (null >= 0)
        close(null);
    for (uint32_t i = 1; !rc && i < n; i++) {
        const struct gn_link_segment_made made = {.index = i, .bytes = v->segments[i].bytes};
        rc = gn_frame_send(fd, HAND_TIMEOUT_MS, GN_WORKER_HAND_SEGMENT, 0, 0, &made, sizeof made, &v->segments[i].fd, 1);
    }
    return rc ? gn_fail(err, -rc, NULL, "cannot hand over the program's session: %s", strerror(-rc)) : 0;
}

/* Descriptors that have come for a request which has not: they would be lost. */
static int expects_nothing(struct gn_vgpu *v, struct gn_error *err)
{
    pthread_mutex_lock(&v->helper_lock);
    bool expects = !gn_list_empty(&v->folders);
    pthread_mutex_unlock(&v->helper_lock);
    return expects ? gn_fail(err, EAGAIN, "try again", "the program is just handing over a descriptor") : 0;
}

/* What was not the same all the time: where the ring stands, and where what the program prints goes. */
static int hand_last(struct gn_vgpu *v, int fd, struct gn_error *err)
{
    const struct gn_worker_hand_last last = {.ring_at = v->ring.head};
    const int null = v->hosted ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
    const int fds[2] = {stdio_or(STDOUT_FILENO, null), stdio_or(STDERR_FILENO, null)};
    int rc = gn_frame_send(fd, HAND_TIMEOUT_MS, GN_WORKER_HAND_LAST, 0, 0, &last, sizeof last, fds, 2);
    if (null >= 0)
        close(null);
    return rc ? gn_fail(err, -rc, NULL, "cannot hand over the program's session: %s", strerror(-rc)) : 0;
}

/* Until the other one has made all of this step. One that does not say so is found out when it is written to. */
static void await_made(const struct away *a, struct gn_frame_reader *made, uint32_t step)
{
    struct gn_frame f;
    if (a->how.flags & GN_WORKER_SAVE_FILE)
        return;
    do
        if (gn_frame_wait(made, STALL_MS, &f) != 1 || f.op != GN_WORKER_HAND_MADE || f.n_payload || f.n_fds)
            return;
    while (f.seq < step);
}

/* Ahead of the gate: as much as was asked for. */
static int save_ahead(const struct away *a, struct gn_save *s, struct gn_frame_reader *made, struct gn_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; !rc && i < a->how.n_ahead; i++) {
        rc = gn_save_ahead(s, a->how.bytes_per_s, (uint64_t)a->how.drain_timeout_ms * 1000000u, err);
        GN_FAULT("move-ahead");
    }
    /* A build that is going on would be waited for behind the closed gate, and so would what the other one still builds. */
    for (uint32_t i = 0; !rc && a->how.n_ahead && i < GN_SAVE_MORE; i++) {
        const uint64_t before_ns = gn_now_ns();
        (void)gn_gate_await_helpers(a->vgpu, (uint64_t)a->how.drain_timeout_ms * 1000000u);
        await_made(a, made, gn_save_n_steps(s));
        if (!gn_save_is_behind(s) && gn_now_ns() - before_ns < SOON_NS)
            break;
        rc = gn_save_ahead(s, a->how.bytes_per_s, (uint64_t)a->how.drain_timeout_ms * 1000000u, err);
    }
    return rc;
}

/* *ret_closed: the gate is. */
static int stop(struct gn_vgpu *v, const struct away *a, struct gn_worker_moved *said, bool *ret_closed, struct gn_error *err)
{
    (void)gn_lease_say(&v->lease, GN_WORKER_STOPS, NULL, 0, -1);
    said->began_ns = gn_now_ns();
    int rc = gn_gate_close(v, (uint64_t)a->how.drain_timeout_ms * 1000000u, err);
    said->quiet_ns = gn_now_ns();
    said->stood_ns = v->gate.stood_ns;
    said->drained_ns = v->gate.drained_ns;
    *ret_closed = !rc;
    GN_FAULT("move-quiet");
    return rc;
}

static void where_it_stops(struct gn_vgpu *v, const struct gn_worker_save *how, struct gn_stream_stop *ret)
{
    *ret = (struct gn_stream_stop){.ring_at = v->ring.head,
                                   .n_segments = atomic_load_explicit(&v->n_segments, memory_order_acquire)};
    _Static_assert(sizeof ret->key == sizeof how->key, "a stop's key");
    memcpy(ret->key, how->key, sizeof ret->key);
}

/* To who writes a file. */
static int write_chunks(void *ctx, struct iovec *iov, int n, struct gn_error *err)
{
    int rc = gn_chunks_write(ctx, iov, n, FILE_STALL_MS);
    return rc ? gn_fail(err, -rc, NULL, "cannot hand over the file's contents: %s", strerror(-rc)) : 0;
}

static int open_chunks(struct gn_chunks *c, int *fd, struct gn_error *err)
{
    int rc = gn_chunks_accept(c, *fd, HAND_TIMEOUT_MS);
    *fd = -1; /* it is c's */
    return rc ? gn_fail(err, -rc, "use the gantry command that came with it", "who writes the file gave no memory for it: %s",
                        strerror(-rc))
              : 0;
}

static int end_chunks(struct gn_chunks *c, struct gn_error *err)
{
    int rc = gn_chunks_flush(c);
    return rc ? gn_fail(err, -rc, NULL, "cannot hand over the file's contents: %s", strerror(-rc)) : 0;
}

static int save_to(struct gn_vgpu *v, struct away *a, struct gn_worker_moved *said, bool *ret_closed, struct gn_error *err)
{
    const bool file = a->how.flags & GN_WORKER_SAVE_FILE, stops = a->how.flags & GN_WORKER_SAVE_STOP;
    struct gn_stream_fd to = GN_STREAM_FD(a->fd, -1, STALL_MS);
    struct gn_chunks chunks = {.socket = -1};
    const struct gn_stream_sink sink =
        file ? (struct gn_stream_sink){write_chunks, &chunks} : gn_stream_sink_of_fd(&to);
    const struct gn_stream_options options = {
        .purpose = file ? GN_STREAM_CHECKPOINT : GN_STREAM_MOVE, .api = "opencl", .creator = "gantry"};
    struct gn_stream_stop stopped;
    const struct gn_saved_about about = {.vgpu_id = a->how.vgpu_id, .stop = stops ? &stopped : NULL};
    struct gn_stream_writer *w = NULL;
    struct gn_save *s = NULL;
    struct gn_frame_reader made;
    int rc = file ? open_chunks(&chunks, &a->fd, err) : 0;
    if (!rc)
        rc = gn_stream_writer_create(&sink, &options, &w, err);
    /* What lies in the program's memory stays with a program that waits. */
    if (!rc)
        rc = gn_save_new(v, w, file && !stops, a->how.n_ahead, &s, err);
    gn_frame_reader_init(&made, a->fd);
    if (!rc)
        rc = save_ahead(a, s, &made, err);
    gn_frame_reader_fini(&made);
    if (!rc)
        rc = stop(v, a, said, ret_closed, err);
    if (!rc && (stops || !file))
        rc = expects_nothing(v, err);
    if (!rc && file) {
        where_it_stops(v, &a->how, &stopped);
        gn_save_checkpoint(s, &about);
    }
    if (!rc)
        rc = gn_save_rest(s, err);
    if (!rc && file)
        rc = end_chunks(&chunks, err);
    GN_FAULT("move-told");
    if (!rc && !file)
        rc = hand_last(v, a->fd, err);
    if (!rc) {
        const struct gn_stream_counts *counts = gn_stream_writer_counts(w);
        const struct gn_save_figures *figures = gn_save_figures(s);
        said->bytes = counts->stream_bytes;
        said->pages = counts->pages;
        said->pages_zero = counts->pages_zero;
        said->ahead_ns = figures->ahead_ns;
        said->pages_total = figures->pages_total;
        said->pages_ahead = figures->pages_ahead;
        said->pages_stop = figures->pages_stop;
        said->sampled = figures->sampled;
        said->hashed = figures->hashed;
        said->told_ns = figures->told_ns;
        said->driver_stays = v->hosted && v->driver_stays;
    }
    gn_save_free(s);
    gn_stream_writer_destroy(w);
    gn_chunks_close(&chunks);
    return rc;
}

static void say_with(struct gn_vgpu *v, uint16_t op, struct gn_worker_moved *said, int rc, const struct gn_error *err, int fd)
{
    said->error = rc;
    said->done_ns = gn_now_ns();
    gn_frame_string_set(said->what, sizeof said->what, rc ? err->what : "");
    gn_frame_string_set(said->fix, sizeof said->fix, rc ? err->fix : "");
    /* If gantryd is gone this process is about to end. */
    (void)gn_lease_say(&v->lease, op, said, sizeof *said, fd);
}

static void say(struct gn_vgpu *v, uint16_t op, struct gn_worker_moved *said, int rc, const struct gn_error *err)
{
    say_with(v, op, said, rc, err, -1);
}

static void *away_thread(void *arg)
{
    struct away *a = arg;
    struct gn_vgpu *v = a->vgpu;
    struct gn_worker_moved said = {.began_ns = gn_now_ns()};
    struct gn_error err = {{0}, {0}};
    bool closed = false;
    gn_objects_own_thread();
    GN_FAULT("move-begun");
    const bool stops = a->how.flags & GN_WORKER_SAVE_STOP;
    int rc = 0;
    if (v->remote)
        rc = gn_fail(&err, EOPNOTSUPP, NULL, "its program is on another machine, which cannot be moved yet");
    else if (!(a->how.flags & GN_WORKER_SAVE_FILE))
        rc = hand_over(v, a->fd, &err);
    GN_FAULT("move-handed");
    if (!rc)
        rc = save_to(v, a, &said, &closed, &err);
    const int fd = a->fd; /* -1: another has it */
    if (!rc && fd >= 0)
        close(fd);
    free(a);
    if (rc && closed)
        gn_gate_open(v);
    GN_FAULT("move-saved");
    atomic_store_explicit(&v->stands_saved, !rc, memory_order_seq_cst);
    atomic_store_explicit(&v->moving, false, memory_order_seq_cst);
    say_with(v, GN_WORKER_SAVED, &said, rc, &err, stops && !rc ? v->boot->session_fd : -1);
    /* Whoever loads fails by that: what gantryd hears first is the reason. */
    if (rc && fd >= 0)
        close(fd);
    return NULL;
}

void gn_vgpu_move_away(struct gn_vgpu *v, int fd, const struct gn_worker_save *how)
{
    struct gn_worker_moved said = {0};
    struct gn_error err;
    pthread_t thread;
    struct away *a = malloc(sizeof *a);
    if (atomic_exchange_explicit(&v->moving, true, memory_order_seq_cst)) {
        say(v, GN_WORKER_SAVED, &said, gn_fail(&err, EBUSY, NULL, "it is being moved already"), &err);
        close(fd);
        free(a);
        return;
    }
    if (a)
        *a = (struct away){.vgpu = v, .fd = fd, .how = *how};
    if (!a || pthread_create(&thread, NULL, away_thread, a)) {
        atomic_store_explicit(&v->moving, false, memory_order_seq_cst);
        say(v, GN_WORKER_SAVED, &said, gn_fail(&err, ENOMEM, NULL, "no memory left to move it"), &err);
        close(fd);
        free(a);
        return;
    }
    pthread_detach(thread);
}

/* ---- to the new one */

static int take_segment(struct gn_vgpu_boot *boot, struct gn_frame_reader *reader, uint32_t index)
{
    struct gn_link_segment_made made;
    struct gn_frame f;
    int rc = gn_frame_wait(reader, HAND_TIMEOUT_MS, &f);
    if (rc != 1)
        return rc < 0 ? rc : -EPROTO;
    if (f.op != GN_WORKER_HAND_SEGMENT || !gn_frame_payload(&f, &made, sizeof made) || made.index != index || f.n_fds != 1)
        return -EPROTO;
    return gn_segment_adopt(gn_frame_take_fd(reader, 0), GN_LINK_SEGMENT_LIMIT, &boot->more[index - 1]);
}

/* A program that hosts its vGPU has its own. */
static int take_stdio(const int fds[2], bool hosted)
{
    int rc = hosted ? 0 : dup2(fds[0], STDOUT_FILENO) < 0 || dup2(fds[1], STDERR_FILENO) < 0 ? -errno : 0;
    close(fds[0]);
    close(fds[1]);
    return rc;
}

int gn_vgpu_take_hand(struct gn_vgpu_boot *boot)
{
    struct gn_frame_reader reader;
    struct gn_worker_hand hand;
    struct gn_frame f;
    int fds[GN_WORKER_HAND_FDS];
    gn_frame_reader_init(&reader, boot->load_fd);
    int rc = gn_frame_wait(&reader, FIRST_TIMEOUT_MS, &f);
    if (rc == 1)
        rc = f.op == GN_WORKER_HAND && gn_frame_payload(&f, &hand, sizeof hand) && f.n_fds == GN_WORKER_HAND_FDS &&
                     hand.n_segments && hand.n_segments <= GN_MAX_SEGMENTS
                 ? 0
                 : -EPROTO;
    if (rc)
        return rc;
    for (int i = 0; i < GN_WORKER_HAND_FDS; i++)
        fds[i] = gn_frame_take_fd(&reader, i);
    boot->session_fd = fds[GN_WORKER_HAND_SESSION];
    if (boot->file_fd < 0)
        boot->ring_at = hand.ring_at; /* what a program does not know, a file does */
    boot->n_more = hand.n_segments - 1;
    boot->more = calloc(boot->n_more ? boot->n_more : 1, sizeof *boot->more);
    rc = boot->more ? take_stdio(&fds[GN_WORKER_HAND_STDOUT], boot->hosted) : -ENOMEM;
    if (!rc)
        rc = gn_segment_adopt(fds[GN_WORKER_HAND_EVENTS], GN_EVENT_TABLE_BYTES, &boot->events);
    if (!rc)
        rc = gn_segment_adopt(fds[GN_WORKER_HAND_DATA], GN_LINK_SEGMENT_LIMIT, &boot->data);
    for (uint32_t i = 1; !rc && i <= boot->n_more; i++)
        rc = take_segment(boot, &reader, i);
    gn_frame_reader_fini(&reader);
    return rc;
}

void gn_vgpu_made(struct gn_vgpu *v, uint32_t round)
{
    /* The stop's is of no use to anybody; nor is one that cannot be said: whoever writes goes on. */
    if (v->boot->file_fd < 0 && v->boot->load_fd >= 0)
        (void)gn_frame_send(v->boot->load_fd, 0, GN_WORKER_HAND_MADE, 0, round, NULL, 0, NULL, 0);
}

int gn_vgpu_begin_load(struct gn_vgpu *v)
{
    /* A process may load more than one. */
    struct gn_counters *mine = calloc(1, sizeof *mine);
    if (!mine)
        return -ENOMEM;
    atomic_store_explicit(&v->gate.closed, true, memory_order_seq_cst);
    v->gate.deaf = true;
    atomic_store_explicit(&v->arriving, true, memory_order_relaxed);
    /* Those that gantryd reads are still the other worker's to write. */
    v->counters_there = v->counters;
    v->counters = v->lease.counters = mine;
    return 0;
}

/* The place in the ring, and where output goes, after all else. */
static int take_last(struct gn_vgpu *v, struct gn_error *err)
{
    struct gn_worker_hand_last last;
    struct gn_frame_reader reader;
    struct gn_frame f;
    gn_frame_reader_init(&reader, v->boot->load_fd);
    int rc = gn_frame_wait(&reader, HAND_TIMEOUT_MS, &f);
    if (rc == 1)
        rc = f.op == GN_WORKER_HAND_LAST && gn_frame_payload(&f, &last, sizeof last) && f.n_fds == 2 ? 0 : -EPROTO;
    if (!rc) {
        const int fds[2] = {gn_frame_take_fd(&reader, 0), gn_frame_take_fd(&reader, 1)};
        rc = take_stdio(fds, v->hosted);
        v->ring.head = last.ring_at;
    }
    gn_frame_reader_fini(&reader);
    return rc ? gn_fail(err, -rc, NULL, "the program's session has not come") : 0;
}

int gn_vgpu_take_in(struct gn_vgpu *v)
{
    struct gn_worker_moved said = {.began_ns = gn_now_ns()};
    /* The other worker may wait for the device, and gantryd ends this one when it is given up. */
    const bool file = v->boot->file_fd >= 0;
    struct gn_stream_fd from = GN_STREAM_FD(file ? v->boot->file_fd : v->boot->load_fd, -1, 0);
    const struct gn_stream_source source = gn_stream_source_of_fd(&from);
    /* What the objects take is the lease's to allow; of the tables, as much as a program can have. */
    const struct gn_stream_limits limits = {.memory_bytes = UINT64_MAX / 2,
                                            .entries_bytes = UINT64_C(4) << 30,
                                            .n_objects = GN_OBJECT_CHUNK * GN_OBJECT_CHUNKS,
                                            .n_memories = GN_OBJECT_CHUNK * GN_OBJECT_CHUNKS,
                                            .n_rounds = 64,
                                            .body_bytes = GN_STREAM_MOST_BODY_BYTES};
    struct gn_error err = {{0}, {0}};
    struct gn_stream_reader *r;
    GN_FAULT("load-begun");
    int rc = gn_stream_reader_create(&source, &limits, &r, &err);
    if (!rc) {
        rc = gn_vgpu_load(v, r, &err);
        if (!rc && file && (rc = gn_stream_expect_end(r)))
            err = *gn_stream_reader_error(r);
        gn_stream_reader_destroy(r);
    }
    GN_FAULT("load-last");
    if (!rc && !file)
        rc = take_last(v, &err);
    said.bytes = from.n_bytes;
    GN_FAULT("load-done");
    say(v, GN_WORKER_LOADED, &said, rc, &err);
    return rc;
}

void gn_vgpu_take_over(struct gn_vgpu *v)
{
    GN_FAULT("load-go");
    if (v->counters_there) {
        struct gn_counters *there = v->counters_there;
        pthread_mutex_lock(&v->lease.lock);
        gn_counter_set(&there->memory_bytes, v->lease.used_bytes);
        gn_counter_set(&there->pending, atomic_load_explicit(&v->counters->pending, memory_order_relaxed));
        v->counters = v->lease.counters = there;
        v->counters_there = NULL;
        pthread_mutex_unlock(&v->lease.lock);
    }
    atomic_store_explicit(&v->arriving, false, memory_order_relaxed);
    gn_gate_open(v);
}
