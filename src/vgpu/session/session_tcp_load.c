/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The destination's half of the handover of a tcp session (migrate/tcp_session_handover.c is the
 * source's): checks and takes each frame of the position at which the session stopped, from a
 * connection between two workers or from a checkpoint. Called by the loading thread, before the
 * socket thread serves. Trusts no frame; never waits.
 */
#include "vgpu/session/session_tcp_internal.h"

#include "link/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_HELD GN_REPLY_SLOTS /* each waiter for an answer has a reply slot */

static int load_held(struct gn_vgpu_tcp *h, const struct gn_frame *f)
{
    const uint32_t n = f->n_payload - (uint32_t)sizeof(uint64_t);
    if (f->op != GN_WORKER_HAND_HELD || f->n_payload < sizeof(uint64_t) + sizeof(struct gn_msg) ||
        n > GN_MSG_MAX_BYTES)
        return -EPROTO;
    struct gn_session_tcp_held *held = malloc(sizeof *held + n);
    if (!held)
        return -ENOMEM;
    memcpy(&held->batch, f->payload, sizeof held->batch);
    memcpy(held->bytes, (const unsigned char *)f->payload + sizeof held->batch, n);
    held->n_bytes = n;
    gn_list_append(&h->held, &held->link);
    h->n_held++;
    return 0;
}

static int load_area(struct gn_vgpu_tcp *h, const struct gn_frame *f)
{
    struct gn_worker_hand_area area;
    if (f->op != GN_WORKER_HAND_AREA || f->n_payload <= sizeof area)
        return -EPROTO;
    memcpy(&area, f->payload, sizeof area);
    const uint32_t n = f->n_payload - (uint32_t)sizeof area;
    if (area.zero || area.segment >= atomic_load_explicit(&h->v->n_segments, memory_order_relaxed))
        return -EPROTO;
    void *at = gn_vgpu_area(h->v, area.segment + 1, area.at, n);
    if (!at || !gn_vgpu_tcp_touch(h, area.segment, area.at, n))
        return -EPROTO;
    memcpy(at, (const unsigned char *)f->payload + sizeof area, n);
    return 0;
}

static int load_unacknowledged(struct gn_vgpu_tcp *h, const struct gn_frame *f)
{
    struct gn_stream_record record;
    if (f->op != GN_WORKER_HAND_SENT || !f->n_payload || f->seq > 1)
        return -EPROTO;
    if (!f->seq)
        return gn_out_keep_run(&h->out, f->payload, f->n_payload);
    if (f->n_payload < sizeof record)
        return -EPROTO;
    memcpy(&record, f->payload, sizeof record);
    const bool bulk = record.type == GN_RECORD_DATA || record.type == GN_RECORD_DATA_END;
    if (f->n_payload != sizeof record + (bulk ? 0 : record.bytes))
        return -EPROTO;
    if (!bulk)
        return gn_out_keep_record(&h->out, &record,
                                  (const unsigned char *)f->payload + sizeof record);
    const bool there = record.part < atomic_load_explicit(&h->v->n_segments, memory_order_relaxed);
    const void *at = there ? gn_vgpu_area(h->v, record.part + 1u, record.at, record.bytes) : NULL;
    return at ? gn_out_keep_record(&h->out, &record, at) : -EPROTO;
}

int gn_vgpu_tcp_load_frame(struct gn_vgpu_tcp *h, const struct gn_frame *f)
{
    struct gn_worker_hand_tcp *far = &h->taking.far;
    if (!h->taking.begun) {
        if (f->op != GN_WORKER_HAND_TCP || !gn_frame_payload(f, far, sizeof *far) ||
            far->n_held > MAX_HELD || far->n_areas > GN_REMOTE_MAX_AREAS ||
            far->n_said > GN_REMOTE_MAX_AREAS)
            return -EPROTO;
        h->taking.begun = true;
        gn_out_go_on(&h->out, far->first);
        return 0;
    }
    uint32_t *left = far->n_held ? &far->n_held : far->n_areas ? &far->n_areas : &far->n_said;
    if (!*left)
        return -EPROTO;
    const int rc = far->n_held    ? load_held(h, f)
                   : far->n_areas ? load_area(h, f)
                                  : load_unacknowledged(h, f);
    *left -= !rc;
    return rc;
}

bool gn_vgpu_tcp_is_loaded(const struct gn_vgpu_tcp *h)
{
    const struct gn_worker_hand_tcp *far = &h->taking.far;
    return h->taking.begun && !far->n_held && !far->n_areas && !far->n_said;
}

int gn_vgpu_tcp_resume_stream(struct gn_vgpu_tcp *h)
{
    const struct gn_worker_hand_tcp *far = &h->taking.far;
    const int rc =
        gn_vgpu_tcp_is_loaded(h) ? gn_out_retained_all(&h->out, far->acknowledged) : -EPROTO;
    if (rc)
        return rc;
    h->in.received = far->received;
    h->in.small = far->small;
    h->n_batches = far->n_batches;
    /*
     * A message without anything to wait for would wait forever; an honest source hands over none.
     * Any such message is let through now.
     */
    gn_commands_batch_came(h->v, h->n_batches);
    return 0;
}
