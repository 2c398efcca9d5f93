/* SPDX-License-Identifier: Apache-2.0 */
/* Written by apigen: do not edit. */
#ifndef GN_TOY_HOST_H
#define GN_TOY_HOST_H

#include "vgpu/toy/toy_host_rt.h"
#include "toy_wire.h"

struct gn_args_toyAsk {
    toy_card card;
    struct gn_vobject *card_object;
    toy_question question;
    size_t room;
    void *answer;
    size_t *used;
};

struct gn_args_toyMakeBlock {
    toy_card card;
    struct gn_vobject *card_object;
    size_t bytes;
};

struct gn_args_toyMakeStream {
    toy_card card;
    struct gn_vobject *card_object;
};

struct gn_args_toySplit {
    toy_block block;
    struct gn_vobject *block_object;
    unsigned n;
    size_t *pieces;
};

/* Handwritten handlers. A creating one returns the driver's object and sets *result. */
void *gn_host_toyMakeStream(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_toyMakeStream *a, toy_result *result);
void gn_admit_Fill(struct gn_vgpu *v, struct gn_command *c);
int32_t gn_submit_Fill(struct gn_vgpu *v, struct gn_command *c, toy_stream queue, unsigned n_waits, const toy_flag *waits, toy_flag *event);

/* Whether an answer to that question is known by type: the driver is asked no other. */
bool gn_asks_toyAsk(toy_question question);

/* What a command that has to wait would be answered, as far as can be told: 0, or an error. */

/* The driver's entry points of extensions, which are asked for by name; NULL: it has none. */
struct gn_extensions {
    toy_result(*toySplit)(toy_block block, unsigned n, size_t *pieces);
};

void gn_extensions_find(struct gn_extensions *e, void *(*find)(void *ctx, const char *name), void *ctx);

extern const struct gn_request_class gn_toy_requests[GN_OP_MAX];

#endif
