/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_CALL_H
#define GN_GUEST_CALL_H

#include "guest/core/area.h"
#include "wire/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A call: a message that is built on the caller's stack, and its answer. */
struct gn_session;

#define GN_CALL_MAX_OUTS   4u
#define GN_CALL_MAX_BLOCKS 10u

struct gn_call {
    struct gn_session *session;
    int failed; /* sticky: the API's result_lost or result_no_memory */
    uint32_t bytes;
    uint32_t n_outs, n_blocks, inline_outs;
    uint32_t out_blocks; /* bit i: blocks[i] is for an output */
    bool outs_always;    /* outputs come with a failure too */
    struct {
        void *to;
        uint64_t bytes;
        const void *from; /* in the data area; NULL: at `at` of the reply */
        uint64_t at;
        const void *limit; /* how many elements of it hold something */
        uint32_t limit_bytes, element;
    } outs[GN_CALL_MAX_OUTS];
    struct gn_block blocks[GN_CALL_MAX_BLOCKS];
    _Alignas(16) unsigned char message[GN_MSG_MAX_BYTES];
};

/*
 * How a command is reported. doubt: GN_SURE, or GN_ASK(the answer when the driver cannot be asked).
 */
struct gn_command_show {
    uint32_t event;
    uint32_t zero;
    int doubt;
};
#define GN_SURE   1
#define GN_ASK(a) (a)

void *gn_call_begin(struct gn_call *c, struct gn_session *s, uint16_t op, uint32_t fixed_bytes);
/* Room for `bytes` of input, in the message or the data area; *ret_room may be NULL when there is
 * none. */
struct gn_span gn_call_room(struct gn_call *c, uint64_t bytes, void **ret_room);
struct gn_span gn_call_in(struct gn_call *c, const void *from, uint64_t bytes);
/* A list of pairs of eight bytes that ends with a zero. */
struct gn_span gn_call_list(struct gn_call *c, const void *list);
struct gn_span gn_call_handles(struct gn_call *c, const void *handles, uint64_t n);
struct gn_span gn_call_out(struct gn_call *c, void *to, uint64_t bytes);
struct gn_span gn_call_out_limited(struct gn_call *c, void *to, uint64_t bytes, const void *limit,
                                   uint32_t limit_bytes, uint32_t element);
void gn_call_vec(uint64_t *field, uint32_t *present, uint32_t bit, const size_t *vec);
/* `waits` are handles of events: their indices travel. */
void gn_call_command(struct gn_call *c, struct gn_command_head *head, const void *queue,
                     uint32_t n_waits, const void *waits, const struct gn_command_show *show);
/* Sends and waits for the answer: its result, or the API's result_lost or
 * result_no_memory. */
int gn_call_wait(struct gn_call *c);
/* Sends; nobody answers. 0, result_lost or result_no_memory. */
int gn_call_post(struct gn_call *c);
/* Sends a command, and waits for the driver's verdict when there is a doubt. */
int gn_call_submit(struct gn_call *c, const struct gn_command_show *show);

#endif
