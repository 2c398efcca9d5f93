/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The destination of a migration between two workers, of one machine or, for a program attached
 * over tcp, of two. It runs on the thread that becomes the worker's ring thread. It never decides
 * which worker continues.
 */
#include "vgpu/migrate/transfer_internal.h"

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/fault.h"
#include "link/worker_wire.h"
#include "vgpu/migrate/retained.h"
#include "vgpu/migrate/route.h"
#include "vgpu/migrate/save.h"
#include "vgpu/migrate/delta_base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_TIMEOUT_MS 120000

/* Waits for this frame, with a payload of n bytes. 0 or -errno. */
static int expect_frame(struct gn_frame_reader *from, int timeout_ms, uint16_t op, int n_fds,
                        void *ret, size_t n)
{
    struct gn_frame f;
    const int rc = gn_frame_wait(from, timeout_ms, &f);
    if (rc < 0)
        return rc;
    return rc == 1 && f.op == op && f.n_fds == n_fds && gn_frame_payload(&f, ret, n) ? 0 : -EPROTO;
}

static int adopt_segment(struct gn_frame_reader *reader, int i, uint64_t most_bytes,
                         struct gn_segment *ret)
{
    const int fd = gn_frame_take_fd(reader, i);
    const int rc = gn_segment_adopt(fd, most_bytes, ret);
    if (rc)
        gn_fd_close(fd);
    return rc;
}

static int receive_segment(struct gn_vgpu_boot *boot, struct gn_frame_reader *reader,
                           uint32_t index)
{
    struct gn_link_segment_made made;
    int rc =
        expect_frame(reader, GN_TRANSFER_HAND_MS, GN_WORKER_HAND_SEGMENT, 1, &made, sizeof made);
    if (!rc && made.index != index)
        rc = -EPROTO;
    if (!rc)
        rc = adopt_segment(reader, 0, GN_LINK_SEGMENT_LIMIT, &boot->more[index - 1]);
    if (!rc)
        boot->n_more = index;
    return rc;
}

/* The connection to the source. Only one thread uses it, so any number of these may exist. */
static struct gn_tcp source_of(const struct gn_vgpu_boot *boot)
{
    return (struct gn_tcp){boot->contents_fd >= 0 ? boot->contents_fd : boot->load_fd,
                           boot->load_tls};
}

/* Greets such a source. */
static int receive_remote_greeting(struct gn_vgpu_boot *boot)
{
    struct gn_tcp from = source_of(boot);
    struct gn_frame_reader reader;
    struct gn_worker_hand hand;
    struct gn_error err;
    gn_tcp_set_up(from.fd);
    if (boot->load_secure) {
        const int rc = gn_transfer_start_tls(&from, true, boot->load_name, boot->load_key,
                                             FIRST_TIMEOUT_MS, &err);
        if (rc)
            return rc;
        boot->load_tls = from.tls;
    }
    gn_frame_reader_init(&reader, from.fd);
    reader.tcp = &from;
    int rc = expect_frame(&reader, FIRST_TIMEOUT_MS, GN_WORKER_HAND, 0, &hand, sizeof hand);
    /*
     * The data area has the same size on all machines, because the program chooses the places in
     * it.
     */
    if (!rc && (hand.ring_at != boot->data.bytes || hand.n_segments != 1))
        rc = -EPROTO;
    gn_frame_reader_fini(&reader);
    return rc;
}

/* Adopts the descriptors of the first frame. */
static int receive_session(const struct gn_vgpu_session_ops *session, struct gn_vgpu_boot *boot,
                           struct gn_frame_reader *reader, const struct gn_worker_hand *hand)
{
    boot->session_fd = gn_frame_take_fd(reader, GN_WORKER_HAND_SESSION);
    /*
     * For a restore, the file has the position, and the program does not know it. Else stdout and
     * stderr come again, with GN_WORKER_HAND_LAST.
     */
    if (boot->file_fd < 0)
        boot->ring_at = hand->ring_at;
    for (int i = 0; i < 2; i++)
        boot->stdio_fds[i] =
            boot->file_fd < 0 ? -1 : gn_frame_take_fd(reader, GN_WORKER_HAND_STDOUT + i);
    boot->keeps = hand->keeps;
    boot->kept = session->in_program ? hand->kept : 0;
    boot->more = calloc(hand->n_segments, sizeof *boot->more);
    int rc = boot->more ? 0 : -ENOMEM;
    if (!rc)
        rc = adopt_segment(reader, GN_WORKER_HAND_EVENTS, GN_EVENT_TABLE_BYTES, &boot->events);
    return rc ? rc : adopt_segment(reader, GN_WORKER_HAND_DATA, GN_LINK_SEGMENT_LIMIT, &boot->data);
}

int gn_vgpu_receive_handover(const struct gn_vgpu_session_ops *session, struct gn_vgpu_boot *boot)
{
    struct gn_frame_reader reader;
    struct gn_worker_hand hand;
    if (!session->shares_memory)
        return boot->file_fd >= 0 ? 0 : receive_remote_greeting(boot);
    gn_frame_reader_init(&reader, boot->load_fd);
    int rc = expect_frame(&reader, FIRST_TIMEOUT_MS, GN_WORKER_HAND, GN_WORKER_HAND_FDS, &hand,
                          sizeof hand);
    if (!rc)
        rc = hand.n_segments && hand.n_segments <= GN_MAX_SEGMENTS
                 ? receive_session(session, boot, &reader, &hand)
                 : -EPROTO;
    for (uint32_t i = 1; !rc && i < hand.n_segments; i++)
        rc = receive_segment(boot, &reader, i);
    gn_frame_reader_fini(&reader);
    return !rc && boot->route->session_from_program ? receive_remote_greeting(boot) : rc;
}

/* Sends the ids of the retained memories, before the answer about the devices. */
static void send_retained(const struct gn_vgpu_boot *boot)
{
    uint64_t *ids;
    const uint32_t n = boot->kept ? gn_retained_list(boot->kept, &ids) : 0;
    if (!n)
        return;
    for (uint32_t i = 0; i < n; i += GN_WORKER_HAND_RETAINED_MOST) {
        const uint32_t some =
            n - i < GN_WORKER_HAND_RETAINED_MOST ? n - i : GN_WORKER_HAND_RETAINED_MOST;
        (void)gn_frame_send(boot->load_fd, GN_TRANSFER_HAND_MS, GN_WORKER_HAND_RETAINED, 0, 0,
                            ids + i, some * sizeof *ids, NULL, 0);
    }
    free(ids);
}

/* Tells the source, unless a file is it. A failed send is ignored: the source notices it. */
void gn_vgpu_ack(struct gn_vgpu *v, uint16_t op, uint32_t number)
{
    const struct gn_vgpu_boot *boot = v->boot;
    struct gn_tcp to = source_of(boot);
    if (boot->file_fd >= 0)
        return;
    if (op == GN_WORKER_HAND_FITS)
        send_retained(boot);
    if (boot->route->copies_memory)
        (void)gn_frame_send_tcp(&to, GN_TRANSFER_HAND_MS, op, 0, number, NULL, 0);
    else
        (void)gn_frame_send(to.fd, 0, op, 0, number, NULL, 0, NULL, 0);
}

void gn_vgpu_begin_load(struct gn_vgpu *v)
{
    atomic_store_explicit(&v->gate.closed, true, memory_order_seq_cst);
    atomic_store_explicit(&v->gate.holds, true, memory_order_seq_cst);
    v->gate.paused = true;
    (void)gn_vgpu_change_state(&v->life, GN_VGPU_OWNED, GN_VGPU_ARRIVING);
    /* The source still writes the counters that gantryd reads. */
    v->counters_there = v->counters;
    v->counters = v->lease.counters = &v->load_counters;
}

/*
 * From a source on another machine, to a program that shares memory with this worker: checks that
 * it hands over no parts of the session. The program was quiesced, so there are none.
 */
static int receive_remote_end(struct gn_vgpu *v, struct gn_error *err)
{
    struct gn_tcp far = source_of(v->boot);
    struct gn_worker_hand_last last;
    struct gn_worker_hand_tcp hand;
    struct gn_frame_reader reader;
    gn_frame_reader_init(&reader, far.fd);
    reader.tcp = &far;
    int rc = expect_frame(&reader, GN_TRANSFER_STALL_MS, GN_WORKER_HAND_TCP, 0, &hand, sizeof hand);
    if (!rc && (hand.n_held || hand.n_areas || hand.n_said))
        rc = -EPROTO;
    if (!rc)
        rc = expect_frame(&reader, GN_TRANSFER_HAND_MS, GN_WORKER_HAND_LAST, 0, &last, sizeof last);
    gn_frame_reader_fini(&reader);
    return rc ? gn_fail(err, -rc, NULL, "the end of the vGPU's state is missing") : 0;
}

/* Takes the state of a tcp session. `from` is positioned behind the stream. */
static int receive_tcp_session(struct gn_vgpu *v, struct gn_frame_reader *from)
{
    int rc = 0;
    while (!rc) {
        struct gn_frame f;
        rc = gn_frame_wait(from, GN_TRANSFER_STALL_MS, &f);
        rc = rc == 1 ? v->session->load_frame(v, &f) : rc ? rc : -EPROTO;
    }
    return rc > 0 ? v->session->loaded(v) : rc;
}

/* Takes the position in the ring, stdout and stderr, after everything else. */
static int receive_position(struct gn_vgpu *v, struct gn_error *err)
{
    struct gn_worker_hand_last last;
    struct gn_frame_reader reader;
    struct gn_tcp far = source_of(v->boot);
    int rc = 0;
    if (v->boot->route->session_from_program && (rc = receive_remote_end(v, err)))
        return rc;
    gn_frame_reader_init(&reader, v->boot->load_fd);
    const bool shares = v->session->shares_memory;
    if (!shares) {
        reader.tcp = &far;
        rc = receive_tcp_session(v, &reader);
    }
    if (!rc)
        rc = expect_frame(&reader, GN_TRANSFER_HAND_MS, GN_WORKER_HAND_LAST, shares ? 2 : 0, &last,
                          sizeof last);
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
static bool claim_arrival(struct gn_vgpu *v)
{
    int coming = GN_INBOUND_COMING;
    return !v->boot->end ||
           atomic_compare_exchange_strong(&v->boot->end->arrival, &coming, GN_INBOUND_CLAIMED);
}

int gn_vgpu_receive(struct gn_vgpu *v, int rc)
{
    struct gn_worker_moved moved = {.began_ns = gn_now_ns()};
    /*
     * No timeout: the source may wait for the device, and gantryd ends this worker when the
     * migration is given up.
     */
    const bool file = v->boot->file_fd >= 0;
    struct gn_tcp far = file ? (struct gn_tcp){.fd = v->boot->file_fd} : source_of(v->boot);
    struct gn_stream_fd from = gn_transfer_stream(&far, 0);
    const struct gn_stream_source source = gn_stream_source_of_fd(&from);
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
    if (!rc && v->boot->keeps)
        gn_delta_base_begin(v, v->boot->keeps);
    rc = rc ? gn_fail(&err, -rc, NULL, "cannot start the vGPU's threads: %s", strerror(-rc))
            : gn_stream_reader_create(&source, &limits, &r, &err);
    if (!rc) {
        rc = gn_vgpu_load(v, r, &err);
        if (!rc && file && (rc = gn_stream_expect_end(r)))
            err = *gn_stream_reader_error(r);
        gn_stream_reader_destroy(r);
    }
    gn_retained_drop(v->boot->kept);
    GN_FAULT("load-last");
    if (!rc && !file)
        rc = receive_position(v, &err);
    else if (!rc && (rc = v->session->set_output(v, v->boot->stdio_fds)))
        gn_fail(&err, -rc, NULL, "cannot take the program's output: %s", strerror(-rc));
    moved.bytes = from.n_bytes;
    GN_FAULT("load-done");
    if (!rc && !claim_arrival(v))
        rc = gn_fail(&err, ECANCELED, NULL, "the program ends");
    gn_transfer_report(v, GN_WORKER_LOADED, &moved, rc, &err, -1);
    return rc;
}

void gn_transfer_resume_as_owner(struct gn_vgpu *v)
{
    GN_FAULT("load-go");
    if (v->counters_there) {
        struct gn_counters *there = v->counters_there;
        pthread_mutex_lock(&v->lease.lock);
        gn_counter_set(&there->memory_bytes, v->lease.used_bytes);
        gn_counter_set(&there->home_bytes, v->lease.home_bytes);
        gn_counter_set(&there->devices,
                       atomic_load_explicit(&v->counters->devices, memory_order_relaxed));
        gn_counter_set(&there->pending,
                       atomic_load_explicit(&v->counters->pending, memory_order_relaxed));
        v->counters = v->lease.counters = there;
        v->counters_there = NULL;
        pthread_mutex_unlock(&v->lease.lock);
    }
    v->session->resume_as_owner(v);
    (void)gn_vgpu_change_state(&v->life, GN_VGPU_ARRIVING, GN_VGPU_OWNED);
    gn_gate_open(v);
}
