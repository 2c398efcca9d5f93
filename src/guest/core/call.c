/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call: the message is built on the caller's stack, sent in one piece, and its answer awaited in
 * a response slot of the caller's. Inputs that do not fit into the message, and outputs that do not
 * fit into the answer, go through the data area. Called by the program's threads; generated code
 * calls it.
 */
#include "guest/session/session_ops.h"

#include <errno.h>
#include <string.h>

void *gn_call_begin(struct gn_call *c, struct gn_session *s, uint16_t op, uint32_t fixed_bytes)
{
    struct gn_msg *msg = (void *)c->message;
    c->session = s;
    c->failed = 0;
    c->bytes = fixed_bytes;
    c->n_outs = c->n_blocks = c->inline_outs = c->out_blocks = 0;
    c->outs_always = false;
    memset(c->message, 0, fixed_bytes);
    msg->op = op;
    msg->reply = GN_NO_REPLY;
    return c->message;
}

static struct gn_block *take_block(struct gn_call *c, uint64_t bytes)
{
    struct gn_block *b = &c->blocks[c->n_blocks];
    if (c->failed)
        return NULL;
    if (bytes > UINT32_MAX || c->n_blocks == GN_CALL_MAX_BLOCKS) {
        c->failed = c->session->api->result_no_memory;
        return NULL;
    }
    int r = gn_block_alloc(c->session, GN_AREA_PASSING, bytes ? bytes : 1, b);
    if (r) {
        c->failed = gn_session_failure(c->session, r);
        return NULL;
    }
    c->n_blocks++;
    return b;
}

struct gn_span gn_call_room(struct gn_call *c, uint64_t bytes, void **ret_room)
{
    struct gn_span span = {GN_SPAN_NULL, 0, 0};
    uint64_t at = gn_align_up(c->bytes, 8);
    *ret_room = NULL;
    if (bytes <= GN_MSG_MAX_BYTES && at + bytes <= GN_MSG_MAX_BYTES) {
        *ret_room = c->message + at;
        c->bytes = (uint32_t)(at + bytes);
        return (struct gn_span){GN_SPAN_INLINE, (uint32_t)bytes, at};
    }
    struct gn_block *b = take_block(c, bytes);
    if (b) {
        span = (struct gn_span){b->segment + 1, (uint32_t)bytes, b->offset};
        *ret_room = b->base;
    }
    return span;
}

struct gn_span gn_call_in(struct gn_call *c, const void *from, uint64_t bytes)
{
    void *room;
    if (!from)
        return (struct gn_span){GN_SPAN_NULL, 0, 0};
    struct gn_span span = gn_call_room(c, bytes, &room);
    if (room && bytes)
        memcpy(room, from, bytes);
    return span;
}

struct gn_span gn_call_list(struct gn_call *c, const void *list)
{
    const uint64_t *l = list;
    uint64_t n = 0;
    while (l && l[n])
        n += 2;
    return gn_call_in(c, list, (n + 1) * sizeof *l);
}

struct gn_span gn_call_handles(struct gn_call *c, const void *handles, uint64_t n)
{
    struct gn_object *const *objects = handles;
    void *room;
    if (!objects)
        return (struct gn_span){GN_SPAN_NULL, 0, 0};
    struct gn_span span = gn_call_room(c, n * sizeof(uint64_t), &room);
    for (uint64_t i = 0; room && i < n; i++)
        ((uint64_t *)room)[i] = gn_id_of(objects[i]);
    return span;
}

struct gn_span gn_call_out_limited(struct gn_call *c, void *to, uint64_t bytes, const void *limit,
                                   uint32_t limit_bytes, uint32_t element)
{
    if (!to)
        return (struct gn_span){GN_SPAN_NULL, 0, 0};
    uint32_t i = c->n_outs++;
    c->outs[i].to = to;
    c->outs[i].bytes = bytes;
    c->outs[i].limit = limit;
    c->outs[i].limit_bytes = limit_bytes;
    c->outs[i].element = element;
    c->outs[i].from = NULL;
    if (bytes <= GN_REPLY_MAX_BYTES && c->inline_outs + bytes <= GN_REPLY_MAX_BYTES) {
        c->outs[i].at = c->inline_outs;
        c->inline_outs += (uint32_t)gn_align_up(bytes, 8);
        return (struct gn_span){GN_SPAN_INLINE, (uint32_t)bytes, c->outs[i].at};
    }
    struct gn_block *b = take_block(c, bytes);
    if (!b)
        return (struct gn_span){GN_SPAN_NULL, 0, 0};
    c->outs[i].from = b->base;
    c->out_blocks |= 1u << (c->n_blocks - 1);
    return (struct gn_span){b->segment + 1, (uint32_t)bytes, b->offset};
}

struct gn_span gn_call_out(struct gn_call *c, void *to, uint64_t bytes)
{
    return gn_call_out_limited(c, to, bytes, NULL, 0, 1);
}

void gn_call_vec(uint64_t *field, uint32_t *present, uint32_t bit, const size_t *vec)
{
    if (!vec)
        return;
    *present |= 1u << bit;
    for (int i = 0; i < 3; i++)
        field[i] = vec[i];
}

void gn_call_command(struct gn_call *c, struct gn_command_head *head, const void *queue,
                     uint32_t n_waits, const void *waits, const struct gn_command_show *show)
{
    struct gn_object *const *events = waits;
    void *room;
    head->queue = gn_id_of(queue);
    head->event = show->event;
    head->waits = (struct gn_span){GN_SPAN_NULL, 0, 0};
    if (!n_waits)
        return;
    head->waits = gn_call_room(c, (uint64_t)n_waits * sizeof(uint32_t), &room);
    for (uint32_t i = 0; room && i < n_waits; i++)
        ((uint32_t *)room)[i] = (uint32_t)events[i]->id;
}

static void put_blocks(struct gn_call *c)
{
    for (uint32_t i = 0; i < c->n_blocks; i++)
        gn_block_free(c->session, &c->blocks[i]);
    c->n_blocks = 0;
}

/* The message is not sent. */
static void give_up(struct gn_call *c)
{
    gn_data_unship(c->session);
    put_blocks(c);
}

#define GN_SERVED 0u /* where a message ends that took no place in the ring */

static int send(struct gn_call *c, uint64_t *ret_end)
{
    const struct gn_session_ops *ops = gn_session_ops(c->session);
    struct gn_msg *msg = (void *)c->message;
    msg->size = c->bytes;
    int r = ops->send ? ops->send(c->session, c) : GN_BY_RING;
    if (r != GN_BY_RING) {
        /* The blocks can be used again: the vGPU has read them, or has its own copy before their
         * next use. */
        if (ret_end)
            *ret_end = GN_SERVED;
        return r;
    }
    r = gn_ring_send(&c->session->requests, c->message, c->bytes, NULL, 0, ret_end);
    return r ? gn_session_failure(c->session, r) : 0;
}

static void copy_outs(struct gn_call *c, const struct gn_reply *reply, bool limited)
{
    for (uint32_t i = 0; i < c->n_outs; i++) {
        uint64_t bytes = c->outs[i].bytes, n = 0;
        if ((c->outs[i].limit != NULL) != limited)
            continue;
        if (limited) {
            memcpy(&n, c->outs[i].limit, c->outs[i].limit_bytes);
            if (n < bytes / c->outs[i].element)
                bytes = n * c->outs[i].element;
        }
        if (c->outs[i].from)
            memcpy(c->outs[i].to, c->outs[i].from, bytes);
        else if (c->outs[i].at + c->outs[i].bytes <= reply->n_bytes)
            memcpy(c->outs[i].to, reply->payload + c->outs[i].at, bytes);
    }
}

int gn_call_wait(struct gn_call *c)
{
    struct gn_replies *replies = &c->session->replies;
    struct gn_msg *msg = (void *)c->message;
    struct gn_reply reply;
    uint32_t token;
    int result = c->failed;
    if (!result && gn_reply_claim(replies, &token))
        result = c->session->api->result_lost;
    if (result) {
        give_up(c);
        return result;
    }
    msg->reply = token;
    result = send(c, NULL);
    bool replied = !result && !gn_reply_wait(replies, token, &reply);
    if (!result)
        result = replied ? reply.result : c->session->api->result_lost;
    if (replied && (!result || c->outs_always)) {
        /* Outputs that limit others come first. */
        copy_outs(c, &reply, false);
        copy_outs(c, &reply, true);
    }
    gn_reply_put(replies, token);
    put_blocks(c);
    return result;
}

int gn_call_post(struct gn_call *c)
{
    uint64_t end = 0;
    if (c->failed) {
        give_up(c);
        return c->failed;
    }
    int result = send(c, &end);
    if (!result && end == GN_SERVED)
        put_blocks(c);
    for (uint32_t i = 0; !result && i < c->n_blocks; i++)
        gn_block_put_behind(c->session, &c->blocks[i], end);
    if (result)
        put_blocks(c);
    c->n_blocks = 0;
    return result;
}

int gn_call_submit(struct gn_call *c, const struct gn_command_show *show)
{
    struct gn_msg *msg = (void *)c->message;
    if (show->doubt == GN_SURE)
        return gn_call_post(c);
    msg->flags = GN_MSG_ASK;
    msg->assumed = show->doubt;
    return gn_call_wait(c);
}
