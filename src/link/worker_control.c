/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the frames that gantryd sends to a running worker. Called by the worker's thread that
 * owns the control socket. Never blocks, and acts on nothing itself.
 */
#include "link/worker_control.h"

#include <errno.h>

void gn_worker_control_init(struct gn_worker_control *c, int control_fd)
{
    gn_frame_reader_init(&c->reader, control_fd);
    c->reader.keeps_frames = true;
}

int gn_worker_control_next(struct gn_worker_control *c, struct gn_worker_event *ret)
{
    struct gn_frame f;
    int rc = gn_frame_read(&c->reader, &f);
    if (rc == -EMFILE)
        rc = gn_frame_wait(&c->reader, 0, &f);
    if (rc <= 0)
        return rc;
    if (f.op == GN_WORKER_SEGMENT) {
        struct gn_link_segment_made m;
        if (!gn_frame_payload(&f, &m, sizeof m) || f.n_fds != 1)
            return -EPROTO;
        *ret = (struct gn_worker_event){.kind = GN_WORKER_EVENT_SEGMENT,
                                        .fd = gn_frame_take_fd(&c->reader, 0),
                                        .index = m.index,
                                        .bytes = m.bytes};
        return 1;
    }
    if (f.op == GN_WORKER_LINK) {
        if (f.n_payload || f.n_fds != 1)
            return -EPROTO;
        *ret = (struct gn_worker_event){.kind = GN_WORKER_EVENT_LINK,
                                        .fd = gn_frame_take_fd(&c->reader, 0)};
        return 1;
    }
    if (f.op == GN_WORKER_SAVE) {
        struct gn_worker_save w;
        if (!gn_frame_payload(&f, &w, sizeof w) || f.n_fds != 1)
            return -EPROTO;
        *ret = (struct gn_worker_event){
            .kind = GN_WORKER_EVENT_SAVE, .fd = gn_frame_take_fd(&c->reader, 0), .save = w};
        return 1;
    }
    if (f.op == GN_WORKER_RESUME || f.op == GN_WORKER_GO) {
        *ret = (struct gn_worker_event){
            .kind = f.op == GN_WORKER_GO ? GN_WORKER_EVENT_GO : GN_WORKER_EVENT_RESUME, .fd = -1};
        return 1;
    }
    if (f.op == GN_WORKER_END) {
        *ret = (struct gn_worker_event){.kind = GN_WORKER_EVENT_END, .fd = -1};
        return 1;
    }
    if (f.op == GN_WORKER_LEASED) {
        struct gn_worker_leased l;
        if (!gn_frame_payload(&f, &l, sizeof l))
            return -EPROTO;
        *ret = (struct gn_worker_event){
            .kind = GN_WORKER_EVENT_LEASED, .fd = -1, .index = f.seq, .bytes = l.granted_bytes};
        return 1;
    }
    if (f.op == GN_WORKER_RECALL) {
        struct gn_worker_recall l;
        if (!gn_frame_payload(&f, &l, sizeof l))
            return -EPROTO;
        *ret = (struct gn_worker_event){
            .kind = GN_WORKER_EVENT_RECALL, .fd = -1, .index = l.tight != 0};
        return 1;
    }
    if (f.op == GN_WORKER_RESIDE) {
        struct gn_worker_reside r;
        if (!gn_frame_payload(&f, &r, sizeof r))
            return -EPROTO;
        *ret = (struct gn_worker_event){.kind = GN_WORKER_EVENT_RESIDE,
                                        .fd = -1,
                                        .index = f.seq,
                                        .bytes = r.bytes,
                                        .keeps_copies = r.keeps_copies != 0};
        return 1;
    }
    if (f.op == GN_WORKER_DISCARD && !f.n_payload) {
        *ret = (struct gn_worker_event){.kind = GN_WORKER_EVENT_DISCARD, .fd = -1};
        return 1;
    }
    return -EPROTO;
}
