/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes. With a buffer at home in the data area, a blocking transfer is one copy made in
 * this process. A small transfer uses one block of the data area; a long blocking one goes in
 * pieces, so that the worker's copy and this process's overlap and both stay in the cache. A
 * non-blocking read is completed by the first call that lets the program see its end (gn_settle).
 * Called on the program's threads.
 */
#include "guest/session/session_ops.h"
#include "alone.h"
#include "home.h"
#include "opencl_guest.h"
#include "opencl_pixel.h"
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES (512u << 10)
#define MAX_PIECES  64u
#define PIECES      4u
/* Limit on non-blocking transfers in progress; beyond it, the program waits for the oldest. */
#define STAGED_BYTES (UINT64_C(32) << 20)
#define LARGE_BYTES  (UINT64_C(1) << 20)
/*
 * The same over tcp, where both machines hold the data, for transfers of any size; and the hard
 * limit, when the transfers in progress wait for the program itself. The worker accepts somewhat
 * more per session (session_tcp.c).
 */
#define STAGED_FAR_BYTES (UINT64_C(128) << 20)
#define STAGED_FAR_MOST  (UINT64_C(576) << 20)

static void copy_layout(const struct gn_layout *l, char *area, bool to_area)
{
    size_t area_row = l->in_step ? l->row_pitch : l->row_bytes;
    size_t area_slice = l->in_step ? l->slice_pitch : l->row_bytes * l->rows;
    if (l->row_pitch == l->row_bytes &&
        (l->slices <= 1 || l->slice_pitch == l->row_bytes * l->rows)) {
        size_t bytes = l->row_bytes * l->rows * l->slices;
        memcpy(to_area ? area : l->ptr, to_area ? l->ptr : area, bytes);
        return;
    }
    for (size_t z = 0; z < l->slices; z++) {
        for (size_t y = 0; y < l->rows; y++) {
            char *row = l->ptr + z * l->slice_pitch + y * l->row_pitch,
                 *at = area + z * area_slice + y * area_row;
            memcpy(to_area ? at : row, to_area ? row : at, l->row_bytes);
        }
    }
}

/* ---- completion in this process */

struct staged {
    struct gn_list link;
    struct gn_object *event; /* reference */
    struct gn_block block;
    struct gn_layout to; /* ptr NULL: nothing to copy */
    struct gn_cl_mapping *mapping;
    bool at_home; /* call gn_session_leave_home when done */
};

cl_int gn_settle_later(struct gn_cl_session *s, struct gn_object *event, struct gn_block *block,
                       const struct gn_layout *to)
{
    struct staged *st = calloc(1, sizeof *st);
    if (!st) {
        /* No memory: complete it now. */
        int32_t error = 0;
        int r = gn_event_wait(&s->session->events[event->id], &s->session->waiter, &error);
        if (!r && !error && to)
            copy_layout(to, block->base, false);
        gn_block_free(s->session, block);
        gn_object_unref(event);
        return r ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
    }
    st->event = event;
    st->block = *block;
    if (to)
        st->to = *to;
    pthread_mutex_lock(&s->settle_lock);
    gn_list_append(&s->staged, &st->link);
    atomic_fetch_add_explicit(&s->staged_bytes, st->block.bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->n_staged, 1, memory_order_release);
    pthread_mutex_unlock(&s->settle_lock);
    return CL_SUCCESS;
}

void gn_settle_mapping_later(struct gn_cl_session *s, struct gn_object *event,
                             struct gn_cl_mapping *mapping)
{
    struct staged *st = mapping ? calloc(1, sizeof *st) : NULL;
    if (!st) {
        int32_t error = 0;
        if (mapping && !gn_event_wait(&s->session->events[event->id], &s->session->waiter, &error))
            gn_mapping_put(s->session, mapping);
        gn_object_unref(event);
        return;
    }
    st->event = event;
    st->block.segment = GN_NO_BLOCK;
    st->mapping = mapping;
    pthread_mutex_lock(&s->settle_lock);
    gn_list_append(&s->staged, &st->link);
    atomic_fetch_add_explicit(&s->n_staged, 1, memory_order_release);
    pthread_mutex_unlock(&s->settle_lock);
}

void gn_settle_home_later(struct gn_cl_session *s, struct gn_object *event)
{
    struct staged *st = calloc(1, sizeof *st);
    if (!st) {
        int32_t error = 0;
        (void)gn_event_wait(&s->session->events[event->id], &s->session->waiter, &error);
        gn_session_leave_home(s->session);
        gn_object_unref(event);
        return;
    }
    st->event = event;
    st->block.segment = GN_NO_BLOCK;
    st->at_home = true;
    pthread_mutex_lock(&s->settle_lock);
    gn_list_append(&s->staged, &st->link);
    atomic_fetch_add_explicit(&s->n_staged, 1, memory_order_release);
    pthread_mutex_unlock(&s->settle_lock);
}

/* Copies under the lock: a second caller must not return before the data is complete. */
void gn_settle(struct gn_cl_session *s)
{
    struct gn_list done;
    if (!atomic_load_explicit(&s->n_staged, memory_order_acquire))
        return;
    gn_list_init(&done);
    pthread_mutex_lock(&s->settle_lock);
    gn_list_for_each(st, &s->staged, struct staged, link)
    {
        int32_t error = 0;
        if (gn_event_phase(&s->session->events[st->event->id], &error) != GN_EVENT_DONE)
            continue;
        if (!error && st->to.ptr)
            copy_layout(&st->to, st->block.base, false);
        gn_list_remove(&st->link);
        gn_list_append(&done, &st->link);
        atomic_fetch_sub_explicit(&s->staged_bytes, st->block.bytes, memory_order_relaxed);
        /* A thread that reads 0 without taking the lock sees the data, too. */
        atomic_fetch_sub_explicit(&s->n_staged, 1, memory_order_release);
    }
    pthread_mutex_unlock(&s->settle_lock);
    gn_list_for_each(st, &done, struct staged, link)
    {
        gn_block_free(s->session, &st->block);
        gn_mapping_put(s->session, st->mapping);
        if (st->at_home)
            gn_session_leave_home(s->session);
        gn_object_unref(st->event);
        free(st);
    }
}

/*
 * The oldest transfer that completes without an action of the program's, with a reference; NULL:
 * none.
 */
static struct gn_object *find_ending(struct gn_cl_session *s, bool of_any_phase)
{
    struct gn_object *event = NULL;
    pthread_mutex_lock(&s->settle_lock);
    gn_list_for_each(st, &s->staged, struct staged, link)
    {
        if (of_any_phase ||
            gn_event_phase(&s->session->events[st->event->id], NULL) <= GN_EVENT_SUBMITTED) {
            event = st->event;
            gn_object_ref(event);
            break;
        }
    }
    pthread_mutex_unlock(&s->settle_lock);
    return event;
}

/*
 * Makes room for a non-blocking transfer: reused blocks stay in the cache and need no new pages.
 * Waits only for transfers that the driver has, since these complete without the program; one that
 * is still pending may wait for a user event that this very thread is going to set. Over tcp,
 * transfers that have not arrived are not in the driver, so it waits for any of them unless the
 * program has unset user events. False: the hard limit is exceeded and no transfer can be waited
 * for.
 */
static bool make_room(struct gn_cl_session *s, uint64_t bytes, bool far)
{
    const uint64_t most = far ? STAGED_FAR_BYTES : STAGED_BYTES;
    uint64_t staged;
    while ((staged = atomic_load_explicit(&s->staged_bytes, memory_order_relaxed)) &&
           staged + bytes > most) {
        const bool open = atomic_load_explicit(&s->n_open_user_events, memory_order_relaxed) != 0;
        struct gn_object *event = find_ending(s, far && !open);
        if (!event)
            return !far || staged + bytes <= STAGED_FAR_MOST;
        int32_t error = 0;
        int r = gn_event_wait(&s->session->events[event->id], &s->session->waiter, &error);
        gn_object_unref(event);
        if (r)
            return true;
        gn_settle(s);
    }
    return true;
}

/* ---- sending */

static cl_int block_error(struct gn_session *s)
{
    return gn_session_lost(s) ? CL_OUT_OF_RESOURCES : CL_OUT_OF_HOST_MEMORY;
}

/* Number of bytes in the data area. */
static uint64_t area_bytes(const struct gn_transfer *t)
{
    if (t->kind == GN_TRANSFER_BUFFER || t->kind == GN_TRANSFER_SVM)
        return t->region[0];
    bool lines = t->kind == GN_TRANSFER_IMAGE && t->mem->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    return gn_pitched_bytes(t->kind == GN_TRANSFER_RECT ? 1 : t->mem->element_bytes, t->region,
                            t->area_row_pitch, t->area_slice_pitch, lines);
}

static cl_int send_command(struct gn_cl_queue *q, const struct gn_transfer *t,
                           const struct gn_area_ref *ref, cl_uint n, const cl_event *waits,
                           const struct gn_command_show *show)
{
    struct gn_session *s = q->o.session;
    cl_command_queue queue = (cl_command_queue)q;
    cl_mem mem = (cl_mem)t->mem;
    switch (t->kind) {
    case GN_TRANSFER_BUFFER:
        return t->write ? gn_send_clEnqueueWriteBuffer(s, queue, mem, t->origin[0], t->region[0],
                                                       ref, n, waits, show)
                        : gn_send_clEnqueueReadBuffer(s, queue, mem, t->origin[0], t->region[0],
                                                      ref, n, waits, show);
    case GN_TRANSFER_RECT:
        return t->write ? gn_send_clEnqueueWriteBufferRect(s, queue, mem, t->origin, t->region,
                                                           t->buffer_row_pitch,
                                                           t->buffer_slice_pitch, t->area_row_pitch,
                                                           t->area_slice_pitch, ref, n, waits, show)
                        : gn_send_clEnqueueReadBufferRect(s, queue, mem, t->origin, t->region,
                                                          t->buffer_row_pitch,
                                                          t->buffer_slice_pitch, t->area_row_pitch,
                                                          t->area_slice_pitch, ref, n, waits, show);
    case GN_TRANSFER_SVM:
        return gn_send_SvmCopy(s, queue, t->write ? t->origin[0] : 0, t->write ? 0 : t->origin[0],
                               t->region[0], ref, t->region[0], n, waits, show);
    default:
        return t->write ? gn_send_clEnqueueWriteImage(s, queue, mem, t->origin, t->region,
                                                      t->area_row_pitch, t->area_slice_pitch, ref,
                                                      n, waits, show)
                        : gn_send_clEnqueueReadImage(s, queue, mem, t->origin, t->region,
                                                     t->area_row_pitch, t->area_slice_pitch, ref, n,
                                                     waits, show);
    }
}

cl_int gn_transfer_send(struct gn_cl_queue *q, const struct gn_transfer *t,
                        const struct gn_area_ref *ref, cl_uint n, const cl_event *waits,
                        const struct gn_command_show *show)
{
    struct gn_session *s = q->o.session;
    const bool beside = t->write && gn_data_begin(s);
    const bool lacks = beside && gn_data_ship(s, ref, t->from, area_bytes(t));
    const cl_int result = lacks ? block_error(s) : send_command(q, t, ref, n, waits, show);
    gn_data_end(s, beside);
    gn_queue_sent(q);
    return result;
}

/* A transfer by one block and one command. */
static cl_int transfer_whole(struct gn_cl_queue *q, const struct gn_transfer *t, cl_bool blocking,
                             cl_uint n, const cl_event *waits, cl_event *event)
{
    struct gn_session *s = q->o.session;
    struct gn_command_show show = {GN_NO_EVENT, 0, t->doubt};
    struct gn_block block;
    int32_t error = 0;
    bool lines = t->kind == GN_TRANSFER_IMAGE && t->mem->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    uint64_t bytes =
        t->host.in_step ? gn_pitched_bytes(t->kind == GN_TRANSFER_RECT ? 1 : t->mem->element_bytes,
                                           t->region, t->area_row_pitch, t->area_slice_pitch, lines)
                        : gn_layout_bytes(&t->host);
    const bool far = !gn_session_shares_memory(s);
    if (!blocking && (far || bytes > LARGE_BYTES)) {
        if (!make_room(s->detail, bytes, far))
            return CL_MEM_OBJECT_ALLOCATION_FAILURE;
        /* The answer shows that the driver has the command: a later call may wait for it. */
        if (show.doubt == GN_SURE && !far)
            show.doubt = GN_ASK(CL_SUCCESS);
    }
    if (gn_block_alloc(s, GN_AREA_PASSING, bytes ? bytes : 1, &block))
        return block_error(s);
    if (t->write)
        copy_layout(&t->host, block.base, true);
    struct gn_object *e = gn_event_new(&q->o, t->type, &show);
    if (!e) {
        gn_block_free(s, &block);
        return CL_OUT_OF_HOST_MEMORY;
    }
    struct gn_area_ref ref = gn_block_ref(&block, 0);
    cl_int result = gn_transfer_send(q, t, &ref, n, waits, &show);
    if (result) {
        gn_event_finish(&s->events[e->id], result, NULL);
        gn_object_unref(e);
        gn_block_free(s, &block);
        return result;
    }
    if (event) {
        gn_object_ref(e);
        *event = (cl_event)e;
    }
    if (!blocking)
        return gn_settle_later(s->detail, e, &block, t->write ? NULL : &t->host);
    if (gn_event_wait(&s->events[e->id], &s->waiter, &error)) {
        result = CL_OUT_OF_RESOURCES;
    } else {
        result = gn_blocking_result(error);
        if (!error && !t->write)
            copy_layout(&t->host, block.base, false);
        gn_block_free(s, &block);
        gn_settle(s->detail);
    }
    gn_object_unref(e);
    return result;
}

struct piece {
    struct gn_block block;
    struct gn_object *event;
    size_t at, bytes;
    bool landed; /* received directly into the program's memory */
};

/* Waits for the oldest piece, and copies the data of a read. */
static cl_int end_piece(struct gn_session *s, const struct gn_transfer *t, struct piece *p,
                        struct gn_event_times *first)
{
    int32_t error = 0;
    if (gn_event_wait(&s->events[p->event->id], &s->waiter, &error))
        error = CL_OUT_OF_RESOURCES;
    if (p->landed) {
        struct gn_area_ref ref = gn_block_ref(&p->block, 0);
        gn_data_landed(s, &ref);
    } else if (!error && !t->write) {
        memcpy(t->host.ptr + p->at, p->block.base, p->bytes);
    }
    if (!p->at)
        gn_event_read_times(&s->events[p->event->id], first);
    return gn_blocking_result(error);
}

/* A long blocking transfer of a buffer: PIECES are in progress at a time. */
static cl_int transfer_pieces(struct gn_cl_queue *q, const struct gn_transfer *whole, cl_uint n,
                              const cl_event *waits, cl_event *event)
{
    struct gn_session *s = q->o.session;
    const bool beside = gn_data_begin(s);
    struct piece pieces[MAX_PIECES];
    /*
     * Over tcp, enough pieces to keep the connection busy, directly from and to the program's
     * memory.
     */
    const uint32_t most = beside ? gn_data_pieces(s, PIECES, MAX_PIECES, PIECE_BYTES) : PIECES;
    struct gn_event_times first = {0};
    uint32_t n_sent = 0, n_ended = 0;
    size_t at = 0, total = whole->region[0];
    cl_int result = CL_SUCCESS;
    uint64_t queued_ns = 0;

    while (n_ended < n_sent || (!result && at < total)) {
        struct piece *p = &pieces[n_sent % most];
        if (!result && at < total && n_sent - n_ended < most) {
            struct gn_transfer t = *whole;
            struct gn_command_show show = {GN_NO_EVENT, 0, whole->doubt};
            p->at = at;
            p->bytes = total - at < PIECE_BYTES ? total - at : PIECE_BYTES;
            t.origin[0] += at;
            t.region[0] = p->bytes;
            if (n_sent < most)
                p->block.segment = GN_NO_BLOCK;
            if (p->block.segment == GN_NO_BLOCK &&
                gn_block_alloc(s, GN_AREA_PASSING, PIECE_BYTES, &p->block)) {
                result = block_error(s);
                continue;
            }
            if (beside)
                t.from = whole->host.ptr + at;
            else if (t.write)
                memcpy(p->block.base, whole->host.ptr + at, p->bytes);
            p->event = gn_event_new(&q->o, whole->type, &show);
            if (!p->event) {
                gn_block_free(s, &p->block);
                result = CL_OUT_OF_HOST_MEMORY;
                continue;
            }
            if (!at)
                queued_ns = ((struct gn_cl_event *)p->event)->queued_ns;
            struct gn_area_ref ref = gn_block_ref(&p->block, 0);
            p->landed = beside && !t.write && gn_data_land(s, &ref, whole->host.ptr + at, p->bytes);
            result = gn_transfer_send(q, &t, &ref, n, waits, &show);
            if (result) {
                gn_event_finish(&s->events[p->event->id], result, NULL);
                gn_object_unref(p->event);
                if (p->landed)
                    gn_data_landed(s, &ref);
                gn_block_free(s, &p->block);
                continue;
            }
            at += p->bytes;
            n_sent++;
            continue;
        }
        p = &pieces[n_ended++ % most];
        cl_int ended = end_piece(s, whole, p, &first);
        if (ended && !result)
            result = ended;
        if (n_ended == n_sent && at >= total && event && !result) {
            /* The last piece's event stands for the whole transfer. */
            struct gn_cl_event *e = (void *)p->event;
            e->queued_ns = queued_ns;
            e->first = first;
            *event = (cl_event)p->event;
        } else {
            gn_object_unref(p->event);
        }
        /* The worker of a lost session may still write to the block: never reuse it. */
        if (n_ended + most > n_sent && (at >= total || result) && !gn_session_lost(s))
            gn_block_free(s, &p->block);
    }
    /* After an early failure some data may not have been sent. */
    if (result && beside && whole->write)
        gn_data_forget(s, whole->host.ptr, total);
    gn_data_end(s, beside);
    gn_settle(s->detail);
    return result;
}

cl_int gn_transfer_staged(struct gn_cl_queue *q, const struct gn_transfer *t, cl_bool blocking,
                          cl_uint n, const cl_event *waits, cl_event *event)
{
    cl_int result;
    if (!blocking || (t->kind != GN_TRANSFER_BUFFER && t->kind != GN_TRANSFER_SVM) ||
        t->region[0] <= PIECE_BYTES)
        return transfer_whole(q, t, blocking, n, waits, event);
    if (!gn_queue_in_order(q)) /* only wait lists order such a queue */
        return transfer_pieces(q, t, n, waits, event);
    if (gn_queue_acquire_alone(q, t->type, n, waits, &result)) {
        result = transfer_pieces(q, t, 0, NULL, event);
        gn_queue_leave(q);
        return result;
    }
    return result ? result : transfer_whole(q, t, blocking, n, waits, event);
}

cl_int gn_transfer(struct gn_cl_queue *q, const struct gn_transfer *t, cl_bool blocking, cl_uint n,
                   const cl_event *waits, cl_event *event)
{
    const size_t bytes = t->region[0];
    cl_int result;
    gn_settle(q->o.session->detail);
    gn_area_collect(q->o.session);
    if (t->kind == GN_TRANSFER_BUFFER && t->mem->home && t->doubt == GN_SURE &&
        (!event || bytes > PIECE_BYTES) && gn_session_enter_home(q->o.session)) {
        const bool done = gn_home_copy(q, t, blocking, n, waits, event, &result);
        gn_session_leave_home(q->o.session);
        if (done)
            return result;
    }
    if (blocking && t->kind == GN_TRANSFER_BUFFER && t->mem->far && t->doubt == GN_SURE && !event &&
        bytes >= GN_HOME_FAR_BYTES && gn_home_far_copy(q, t, n, waits, &result))
        return result;
    return gn_transfer_staged(q, t, blocking, n, waits, event);
}
