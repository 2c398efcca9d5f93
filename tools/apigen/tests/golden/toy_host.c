/* SPDX-License-Identifier: Apache-2.0 */
/* Written by apigen: do not edit. */
#include "toy_host.h"

#include <stddef.h>

bool gn_asks_toyAsk(toy_question question)
{
    switch (question) {
    case TOY_NAME:
        return true;
    default:
        return false;
    }
}

static void host_toyAsk(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_toyAsk *w = gn_request_message(r);
    struct gn_args_toyAsk a = {0};
    a.card_object = gn_request_object(r, GN_KIND_CARD, w->card);
    a.card = gn_driver_of(a.card_object);
    a.question = w->question;
    a.room = w->room;
    a.answer = gn_request_out(r, &w->answer, gn_times(w->room, 1));
    a.used = gn_request_out(r, &w->used, gn_times(1, sizeof(size_t)));
    r->fault |= w->zero_end != 0;
    if (gn_request_faulty(r))
        return;
    const bool known = gn_asks_toyAsk(a.question);
    if (!known) {
        a.question = TOY_NAME;
        a.answer = NULL;
        a.room = 0;
        a.used = NULL;
    }
    r->result = gn_toy(v)->toyAsk ? gn_toy(v)->toyAsk(a.card, a.question, a.room, a.answer, a.used) : TOY_NO_SUCH_CALL;
    if (!known && r->result == TOY_FINE)
        r->result = TOY_NO_SUCH_QUESTION;
}

static void host_toyMakeBlock(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_toyMakeBlock *w = gn_request_message(r);
    struct gn_args_toyMakeBlock a = {0};
    a.card_object = gn_request_object(r, GN_KIND_CARD, w->card);
    a.card = gn_driver_of(a.card_object);
    a.bytes = w->bytes;
    if (gn_request_faulty(r))
        return;
    toy_result result = TOY_FINE;
    void *made = NULL;
    if (gn_toy(v)->toyMakeBlock)
        made = gn_toy(v)->toyMakeBlock(a.card, a.bytes, &result);
    else
        result = TOY_NO_SUCH_CALL;
    r->result = gn_request_made(r, GN_KIND_BLOCK, w->id, made, result);
}

static void host_toyMakeStream(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_toyMakeStream *w = gn_request_message(r);
    struct gn_args_toyMakeStream a = {0};
    a.card_object = gn_request_object(r, GN_KIND_CARD, w->card);
    a.card = gn_driver_of(a.card_object);
    if (gn_request_faulty(r))
        return;
    toy_result result = TOY_FINE;
    void *made = gn_host_toyMakeStream(v, r, &a, &result);
    r->result = gn_request_made(r, GN_KIND_STREAM, w->id, made, result);
}

static void admit_toyCopy(struct gn_vgpu *v, struct gn_command *c)
{
    struct gn_wire_toyCopy *w = gn_command_message(c);
    (void)v;
    (void)w;
    c->fault |= w->zero_end != 0;
    gn_command_ref(c, 0, GN_KIND_BLOCK, w->from);
    gn_command_ref(c, 1, GN_KIND_BLOCK, w->to);
}

static int32_t submit_toyCopy(struct gn_vgpu *v, struct gn_command *c, void *queue, uint32_t n_waits,
                       void *const *waits, void **event)
{
    const struct gn_wire_toyCopy *w = gn_command_message(c);
    (void)w;
    /* A vendor's table may have holes, or end with an older version. */
    if (!gn_toy(v)->toyCopy)
        return TOY_NO_SUCH_CALL;
    return gn_toy(v)->toyCopy(queue, gn_driver_of(c->refs[0]), gn_driver_of(c->refs[1]), w->present & 1u ? (const size_t *)w->corner : NULL, w->bytes, n_waits, (const toy_flag *)waits, (toy_flag *)event);
}

static void host_toySplit(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_toySplit *w = gn_request_message(r);
    struct gn_args_toySplit a = {0};
    a.block_object = gn_request_object(r, GN_KIND_BLOCK, w->block);
    a.block = gn_driver_of(a.block_object);
    a.n = w->n;
    a.pieces = gn_request_out(r, &w->pieces, gn_times(w->n, sizeof(size_t)));
    r->fault |= w->zero_end != 0;
    if (gn_request_faulty(r))
        return;
    r->result = gn_toy_extras(v)->toySplit ? gn_toy_extras(v)->toySplit(a.block, a.n, a.pieces) : TOY_NO_SUCH_CALL;
}

static void admit_Fill(struct gn_vgpu *v, struct gn_command *c)
{
    struct gn_wire_Fill *w = gn_command_message(c);
    (void)v;
    (void)w;
    gn_command_objects(c, GN_KIND_BLOCK, &w->blocks, w->n);
    c->area = gn_command_area(c, &w->bytes, gn_times(gn_toy_area(w->corner), 1));
    if (!c->fault)
        gn_admit_Fill(v, c);
}

static int32_t submit_Fill(struct gn_vgpu *v, struct gn_command *c, void *queue, uint32_t n_waits,
                       void *const *waits, void **event)
{
    const struct gn_wire_Fill *w = gn_command_message(c);
    (void)w;
    return gn_submit_Fill(v, c, queue, n_waits, (const toy_flag *)waits, (toy_flag *)event);
}

const struct gn_request_class gn_toy_requests[GN_OP_MAX] = {
    [GN_OP_toyAsk] = {.name = "toyAsk", .fixed_bytes = sizeof(struct gn_wire_toyAsk), .serve = host_toyAsk},
    [GN_OP_toyMakeBlock] = {.name = "toyMakeBlock", .fixed_bytes = sizeof(struct gn_wire_toyMakeBlock), .serve = host_toyMakeBlock, .creates = GN_KIND_BLOCK, .parents = {offsetof(struct gn_wire_toyMakeBlock, card)}, .n_parents = 1},
    [GN_OP_toyMakeStream] = {.name = "toyMakeStream", .fixed_bytes = sizeof(struct gn_wire_toyMakeStream), .serve = host_toyMakeStream, .creates = GN_KIND_STREAM, .parents = {offsetof(struct gn_wire_toyMakeStream, card)}, .n_parents = 1},
    [GN_OP_toyCopy] = {.name = "toyCopy", .fixed_bytes = sizeof(struct gn_wire_toyCopy), .admit = admit_toyCopy, .submit = submit_toyCopy, .writes = 2},
    [GN_OP_toySplit] = {.name = "toySplit", .fixed_bytes = sizeof(struct gn_wire_toySplit), .serve = host_toySplit},
    [GN_OP_Fill] = {.name = "Fill", .fixed_bytes = sizeof(struct gn_wire_Fill), .admit = admit_Fill, .submit = submit_Fill, .writes = 0},
};

void gn_extensions_find(struct gn_extensions *e, void *(*find)(void *ctx, const char *name), void *ctx)
{
    e->toySplit = (__typeof__(e->toySplit))(uintptr_t)find(ctx, "toySplit");
}
