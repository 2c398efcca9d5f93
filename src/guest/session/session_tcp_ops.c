/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of a session over tcp (session_ops.h): of one whose threads send by themselves, and of
 * one whose messages go through the ring to the watcher. Each function finds the session's part
 * over tcp, session_tcp.c's, and calls it. Any thread.
 */
#include "guest/session/session_ops.h"
#include "guest/session/session_shm.h"
#include "guest/session/session_tcp.h"

#include <errno.h>

static int send_op(struct gn_session *s, struct gn_call *c)
{
    struct gn_session_tcp *r = gn_session_tcp_enter(s);
    if (!r)
        return GN_BY_RING;
    const int rc = gn_session_tcp_send(r, c);
    gn_session_tcp_leave(r);
    return rc;
}

static void flush_op(struct gn_session *s)
{
    struct gn_session_tcp *r = gn_session_tcp_enter(s);
    if (r)
        gn_session_tcp_flush(r);
    gn_session_tcp_leave(r);
}

static void look_op(struct gn_session *s)
{
    struct gn_session_tcp *r = gn_session_tcp_enter(s);
    if (r)
        gn_session_tcp_look(r);
    gn_session_tcp_leave(r);
}

static void event_ended_op(struct gn_session *s)
{
    struct gn_session_tcp *r = gn_session_tcp_enter(s);
    if (r)
        gn_session_tcp_nudge(r);
    gn_session_tcp_leave(r);
}

static int add_segment_op(struct gn_session *s, uint64_t bytes, struct gn_segment *ret,
                          uint32_t *ret_index, bool *ret_counted, struct gn_error *err)
{
    (void)err;
    const int rc = gn_session_tcp_segment(gn_session_tcp_of(s), bytes, ret, ret_index);
    *ret_counted = !rc;
    /* gantryd is not asked, so there is nothing to try again, and no socket of its. */
    return rc == -EAGAIN || rc == -EBADF ? -ENOMEM : rc;
}

static void free_pages_op(struct gn_session *s, uint32_t segment, uint64_t offset, uint64_t bytes)
{
    struct gn_session_tcp *r = gn_session_tcp_of(s);
    if (r)
        gn_session_tcp_free_pages(r, segment, offset, bytes);
}

static bool begin_op(struct gn_session *s)
{
    return gn_session_tcp_enter(s) != NULL;
}

static void end_op(struct gn_session *s)
{
    gn_session_tcp_leave(gn_session_tcp_of(s));
}

static int ship_op(struct gn_session *s, const struct gn_area_ref *ref, const void *from,
                   uint64_t bytes)
{
    return gn_session_tcp_ship(gn_session_tcp_of(s), ref, from, bytes);
}

static void unship_op(struct gn_session *s)
{
    (void)s;
    gn_session_tcp_unship();
}

static bool land_op(struct gn_session *s, const struct gn_area_ref *ref, void *to, uint64_t bytes)
{
    return gn_session_tcp_land(gn_session_tcp_of(s), ref, to, bytes);
}

static void landed_op(struct gn_session *s, const struct gn_area_ref *ref)
{
    gn_session_tcp_landed(gn_session_tcp_of(s), ref);
}

static void forget_op(struct gn_session *s, const void *from, uint64_t bytes)
{
    gn_session_tcp_forget(gn_session_tcp_of(s), from, bytes);
}

static uint32_t pieces_op(struct gn_session *s, uint32_t least, uint32_t most, uint64_t piece_bytes)
{
    return gn_session_tcp_pieces(gn_session_tcp_of(s), least, most, piece_bytes);
}

static void look_at_descriptors_op(struct gn_session *s)
{
    struct gn_session_tcp *r = gn_session_tcp_of(s);
    if (r)
        gn_session_tcp_look_at_descriptors(r);
}

static pthread_mutex_t *link_lock_op(struct gn_session *s)
{
    return gn_session_tcp_link_lock(gn_session_tcp_of(s));
}

static void link_changed_op(struct gn_session *s)
{
    gn_session_tcp_go_over(gn_session_tcp_of(s));
}

/* The watcher reads the session's socket until now. */
static void relay_link_changed_op(struct gn_session *s)
{
    link_changed_op(s);
    gn_session_shm_link_changed(s);
}

static void forked_op(struct gn_session *s, bool cut_off)
{
    if (!cut_off)
        gn_session_tcp_forked(gn_session_tcp_of(s));
}

static void bye_op(struct gn_session *s)
{
    struct gn_session_tcp *r = gn_session_tcp_of(s);
    if (r)
        gn_session_tcp_bye(r);
}

static const struct gn_data_ops data_ops = {
    .begin = begin_op,
    .end = end_op,
    .ship = ship_op,
    .unship = unship_op,
    .land = land_op,
    .landed = landed_op,
    .forget = forget_op,
    .pieces = pieces_op,
};

const struct gn_session_ops gn_session_tcp_direct = {
    .name = "tcp",
    .make_memory = gn_session_tcp_make_memory,
    .open = gn_session_tcp_open,
    .send = send_op,
    .flush = flush_op,
    .look = look_op,
    .event_ended = event_ended_op,
    .add_segment = add_segment_op,
    .free_pages = free_pages_op,
    .data = &data_ops,
    .watch = gn_session_tcp_watch,
    .look_at_descriptors = look_at_descriptors_op,
    .link_lock = link_lock_op,
    .link_changed = link_changed_op,
    .forked = forked_op,
    .bye = bye_op,
};

/* Threads use the ring, and the watcher reads the connection. */
const struct gn_session_ops gn_session_relay = {
    .name = "relay",
    .add_segment = add_segment_op,
    .free_pages = free_pages_op,
    .watch = gn_session_tcp_watch,
    .look_at_descriptors = look_at_descriptors_op,
    .link_lock = link_lock_op,
    .link_changed = relay_link_changed_op,
    .forked = forked_op,
    .bye = bye_op,
};
