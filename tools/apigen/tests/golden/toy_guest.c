/* SPDX-License-Identifier: Apache-2.0 */
/* Written by apigen: do not edit. */
#include "toy_guest.h"
#include "toy_wire.h"

#include <stddef.h>
#include <string.h>

toy_result gn_send_toyAsk(struct gn_session *session, toy_card card, toy_question question, size_t room, void *answer, size_t *used)
{
    struct gn_call c;
    struct gn_wire_toyAsk *w = gn_call_begin(&c, session, GN_OP_toyAsk, sizeof *w);
    w->card = gn_id_of(card);
    w->question = question;
    w->room = room;
    size_t valid_used = 0;
    w->used = gn_call_out(&c, &valid_used, sizeof valid_used);
    w->answer = gn_call_out_limited(&c, answer, (uint64_t)(room) * 1, &valid_used, sizeof valid_used, 1);
    toy_result result = gn_call_wait(&c);
    if (!result && used)
        *used = valid_used;
    return result;
}

toy_result gn_send_toyMakeBlock(struct gn_session *session, struct gn_object *made, toy_card card, size_t bytes)
{
    struct gn_call c;
    struct gn_wire_toyMakeBlock *w = gn_call_begin(&c, session, GN_OP_toyMakeBlock, sizeof *w);
    w->id = made->id;
    w->card = gn_id_of(card);
    w->bytes = bytes;
    return gn_call_wait(&c);
}

toy_result gn_send_toyMakeStream(struct gn_session *session, struct gn_object *made, toy_card card)
{
    struct gn_call c;
    struct gn_wire_toyMakeStream *w = gn_call_begin(&c, session, GN_OP_toyMakeStream, sizeof *w);
    w->id = made->id;
    w->card = gn_id_of(card);
    return gn_call_wait(&c);
}

toy_result gn_send_toyCopy(struct gn_session *session, toy_stream stream, toy_block from, toy_block to, const size_t *corner, size_t bytes, unsigned n_after, const toy_flag *after, const struct gn_command_show *show)
{
    struct gn_call c;
    struct gn_wire_toyCopy *w = gn_call_begin(&c, session, GN_OP_toyCopy, sizeof *w);
    gn_call_command(&c, &w->head, stream, n_after, after, show);
    w->present = 0;
    w->from = gn_id_of(from);
    w->to = gn_id_of(to);
    gn_call_vec(w->corner, &w->present, 0, corner);
    w->bytes = bytes;
    return gn_call_submit(&c, show);
}

toy_result gn_send_toySplit(struct gn_session *session, toy_block block, unsigned n, size_t *pieces)
{
    struct gn_call c;
    struct gn_wire_toySplit *w = gn_call_begin(&c, session, GN_OP_toySplit, sizeof *w);
    w->block = gn_id_of(block);
    w->n = n;
    w->pieces = gn_call_out(&c, pieces, (uint64_t)(n) * sizeof(size_t));
    return gn_call_wait(&c);
}

toy_result gn_send_Fill(struct gn_session *session, toy_stream stream, unsigned n, const toy_block *blocks, const size_t *corner, const struct gn_area_ref *bytes, unsigned n_after, const toy_flag *after, const struct gn_command_show *show)
{
    struct gn_call c;
    struct gn_wire_Fill *w = gn_call_begin(&c, session, GN_OP_Fill, sizeof *w);
    gn_call_command(&c, &w->head, stream, n_after, after, show);
    w->present = 0;
    w->n = n;
    w->blocks = gn_call_handles(&c, blocks, n);
    gn_call_vec(w->corner, &w->present, 0, corner);
    w->bytes = *bytes;
    return gn_call_submit(&c, show);
}

toy_result gn_toyAsk(toy_card card, toy_question question, size_t room, void *answer, size_t *used)
{
    struct gn_object *object = gn_object_anew(card, GN_KIND_CARD);
    if (!object)
        return TOY_NO_CARD;
    switch (question) {
    case TOY_VERSION:
        return gn_local_toyAsk(card, question, room, answer, used);
    default:
        break;
    }
    return gn_send_toyAsk(object->session, card, question, room, answer, used);
}

toy_block gn_toyMakeBlock(toy_card card, size_t bytes, toy_result *why)
{
    struct gn_object *object = gn_object_of(card, GN_KIND_CARD);
    if (!object)
        return gn_refuse(why, TOY_NO_CARD);
    struct gn_object *made = gn_object_new(object->session, GN_KIND_BLOCK, object);
    if (!made)
        return gn_refuse(why, TOY_NO_MEMORY);
    toy_result result = gn_send_toyMakeBlock(object->session, made, card, bytes);
    if (result)
        gn_object_drop(made), made = NULL;
    if (why)
        *why = result;
    return (void *)made;
}

toy_stream gn_toyMakeStream(toy_card card, toy_result *why)
{
    struct gn_object *object = gn_object_of(card, GN_KIND_CARD);
    if (!object)
        return gn_refuse(why, TOY_NO_CARD);
    struct gn_object *made = gn_object_new(object->session, GN_KIND_STREAM, object);
    if (!made)
        return gn_refuse(why, TOY_NO_MEMORY);
    toy_result result = gn_send_toyMakeStream(object->session, made, card);
    if (result)
        gn_object_drop(made), made = NULL;
    if (why)
        *why = result;
    return (void *)made;
}

toy_result gn_toyFreeBlock(toy_block block)
{
    struct gn_object *object = gn_object_of(block, GN_KIND_BLOCK);
    if (!object)
        return TOY_NO_BLOCK;
    return gn_block_release(object);
}

toy_result gn_toyCopy(toy_stream stream, toy_block from, toy_block to, const size_t *corner, size_t bytes, unsigned n_after, const toy_flag *after, toy_flag *done)
{
    struct gn_object *object = gn_object_of(stream, GN_KIND_STREAM);
    if (!object)
        return TOY_NO_STREAM;
    if (from && !gn_object_of_session(object, from, GN_KIND_BLOCK))
        return TOY_NO_BLOCK;
    if (to && !gn_object_of_session(object, to, GN_KIND_BLOCK))
        return TOY_NO_BLOCK;
    toy_result result = gn_command_begin(object, n_after, after);
    if (result)
        return result;
    struct gn_command_show show = {GN_NO_EVENT, 0, GN_ASK(0)};
    struct gn_object *shown = done ? gn_event_new(object, TOY_COPY, &show) : NULL;
    if (done && !shown)
        return TOY_NO_MEMORY;
    result = gn_send_toyCopy(object->session, stream, from, to, corner, bytes, n_after, after, &show);
    return gn_command_sent(object, shown, done, result);
}

toy_result gn_toySplit(toy_block block, unsigned n, size_t *pieces)
{
    struct gn_object *object = gn_object_of(block, GN_KIND_BLOCK);
    if (!object)
        return TOY_NO_BLOCK;
    return gn_send_toySplit(object->session, block, n, pieces);
}

toy_result gn_toyNever(toy_card card)
{
    (void)card;
    return TOY_NO_SUCH_CALL;
}

const uint16_t *gn_toy_inputs(uint16_t op)
{
    static const uint16_t none[1];
    switch (op) {
    case GN_OP_toyCopy: {
        static const uint16_t at[] = {offsetof(struct gn_wire_toyCopy, head.waits), 0};
        return at;
    }
    case GN_OP_Fill: {
        static const uint16_t at[] = {offsetof(struct gn_wire_Fill, head.waits), offsetof(struct gn_wire_Fill, blocks), 0};
        return at;
    }
    default:
        return none;
    }
}

static const struct {
    const char *name;
    void *function;
} functions[] = {
    {"toyAsk", (void *)gn_toyAsk},
    {"toyCopy", (void *)gn_toyCopy},
    {"toyFreeBlock", (void *)gn_toyFreeBlock},
    {"toyMakeBlock", (void *)gn_toyMakeBlock},
    {"toyMakeStream", (void *)gn_toyMakeStream},
    {"toyNever", (void *)gn_toyNever},
    {"toyOld", (void *)gn_toyOld},
    {"toyOnEnd", (void *)gn_toyOnEnd},
};

void *gn_toy_function(const char *name)
{
    size_t low = 0, high = sizeof functions / sizeof functions[0];
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(name, functions[middle].name);
        if (!order)
            return functions[middle].function;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

void *gn_toy_extension_function(const char *name, const char **ret_extension)
{
    if (!strcmp(name, "toySplit")) {
        *ret_extension = "toy_ext_split";
        return (void *)gn_toySplit;
    }
    (void)name, (void)ret_extension;
    return NULL;
}
