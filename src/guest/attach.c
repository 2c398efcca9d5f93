/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaches a program to a vGPU: connects to gantryd, chooses the kind of session, maps the segments
 * and starts the watcher (core/session.c). The only file that puts a session together of its parts
 * in core, session and migrate. Called on the program's thread that first needs a device; waits
 * until the vGPU's driver is up.
 */
#include "guest/attach.h"

#include "base/descriptor.h"
#include "base/fault.h"
#include "guest/core/report.h"
#include "guest/migrate/follow_migration.h"
#include "guest/session/session_in_process.h"
#include "guest/session/session_ops.h"
#include "guest/session/session_tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An unknown mode counts as remote, and is reported once per process. */
static void warn_of_unknown_mode(const char *mode)
{
    static _Atomic bool reported;
    if (!mode || !*mode || strcmp(mode, "remote") == 0 || strcmp(mode, "passthrough") == 0)
        return;
    if (!atomic_exchange_explicit(&reported, true, memory_order_relaxed))
        gn_report(
            "GANTRY_MODE=%.32s is not a mode, so the program runs as remote; set it to remote or "
            "passthrough",
            mode);
}

static int map_segments(struct gn_session *s, const struct gn_attached *a)
{
    struct gn_segment data;
    int r = gn_segment_adopt(a->ring_fd, a->ring_bytes, &s->ring_segment);
    if (!r)
        r = gn_segment_adopt(a->events_fd, a->events_bytes, &s->event_segment);
    if (!r)
        r = gn_segment_adopt(a->data_fd, a->data_bytes, &data);
    if (r)
        return r;
    if (s->event_segment.bytes < GN_EVENT_TABLE_BYTES)
        return -EPROTO;
    s->events = s->event_segment.base;
    r = gn_session_map(s->ring_segment.base, s->ring_segment.bytes, &s->view);
    if (!r)
        r = gn_area_init(s, data);
    if (!r)
        r = gn_ring_producer_init(&s->requests, s->view.requests, GN_SESSION_REQUEST_SLOTS, 0,
                                  s->waiter);
    gn_replies_init(&s->replies, s->view.replies, s->waiter);
    atomic_store_explicit(&s->replies.at_once, gn_session_ops(s)->answers_at_once,
                          memory_order_relaxed);
    return r;
}

struct gn_session *gn_session_open(const struct gn_guest_api *api, uint32_t platform,
                                   struct gn_error *err)
{
    struct gn_attached attached;
    struct gn_session *s = aligned_alloc(64, gn_align_up(sizeof *s, 64));
    if (!s)
        return NULL;
    gn_session_init(s, api, &gn_session_migration, &gn_session_shm);
    struct gn_attach_request request = {
        .platform = platform,
        .stdout_fd = gn_fd_is_open(STDOUT_FILENO) ? STDOUT_FILENO : -1,
        .stderr_fd = gn_fd_is_open(STDERR_FILENO) ? STDERR_FILENO : -1,
    };
    gn_session_wishes(&request.weight, &request.memory_bytes);
    /* A driver does not survive a fork: a child is served by a worker. */
    const char *mode = getenv("GANTRY_MODE");
    if (mode && strcmp(mode, "passthrough") == 0 && s->epoch == GN_FIRST_EPOCH) {
        request.host = gn_in_process_open;
        request.ctx = s;
    }
    if (gn_link_connect(NULL, &s->link, err)) {
        free(s);
        return NULL;
    }
    warn_of_unknown_mode(mode);
    s->link->on_host = gn_in_process_adopt;
    s->link->on_host_ctx = s;
    s->link->on_move = gn_session_move_word;
    s->link->on_stop = gn_session_tcp_stop_word;
    GN_FAULT("program-greeted");
    int r = gn_link_attach(s->link, &request, &attached, err);
    GN_FAULT("program-attached");
    if (!r) {
        s->socket = attached.session_fd;
        s->vgpu_id = attached.vgpu_id;
        s->platform = attached.platform;
        if (attached.remote)
            atomic_store_explicit(&s->ops, &gn_session_tcp_direct, memory_order_relaxed);
    }
    /* gn_in_process_open has set it when the vGPU is in this process. */
    const struct gn_session_ops *ops = gn_session_ops(s);
    if (!r && ops->make_memory)
        r = ops->make_memory(&attached);
    if (!r)
        r = map_segments(s, &attached);
    if (!r && ops->open)
        r = ops->open(s, &attached, err);
    if (!r)
        r = gn_session_start(s);
    if (r) {
        /* The mappings of a failed session are leaked: it is not known which of them exist. */
        gn_fd_close(s->socket);
        gn_link_close(s->link);
        free(s);
        return NULL;
    }
    return s;
}
