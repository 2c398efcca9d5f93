/* SPDX-License-Identifier: Apache-2.0 */
/* Written by apigen: do not edit. */
#ifndef GN_TOY_WIRE_H
#define GN_TOY_WIRE_H

#include "wire/wire.h"

#include <assert.h>
#include <stddef.h>

enum gn_kind {
    GN_KIND_CARD = 1,
    GN_KIND_STREAM = 2,
    GN_KIND_BLOCK = 3,
    GN_KIND_MAX = 4
};

enum gn_toy_op {
    GN_OP_toyAsk = 1,
    GN_OP_toyMakeBlock = 2,
    GN_OP_toyMakeStream = 3,
    GN_OP_toyCopy = 6,
    GN_OP_toySplit = 7,
    GN_OP_Fill = 8,
    GN_OP_MAX = 9
};

struct gn_wire_toyAsk {
    struct gn_msg msg;
    uint64_t card; /* card */
    uint64_t room; /* size_t */
    struct gn_span answer; /* out */
    struct gn_span used; /* out */
    uint32_t question; /* toy_question */
    uint32_t zero_end;
};
static_assert(offsetof(struct gn_wire_toyAsk, card) == 16, "wire");
static_assert(offsetof(struct gn_wire_toyAsk, room) == 24, "wire");
static_assert(offsetof(struct gn_wire_toyAsk, answer) == 32, "wire");
static_assert(offsetof(struct gn_wire_toyAsk, used) == 48, "wire");
static_assert(offsetof(struct gn_wire_toyAsk, question) == 64, "wire");
static_assert(offsetof(struct gn_wire_toyAsk, zero_end) == 68, "wire");
static_assert(sizeof(struct gn_wire_toyAsk) == 72, "wire");
static_assert(72 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_toyMakeBlock {
    struct gn_msg msg;
    uint64_t id; /* what the new object is called */
    uint64_t card; /* card */
    uint64_t bytes; /* size_t */
};
static_assert(offsetof(struct gn_wire_toyMakeBlock, id) == 16, "wire");
static_assert(offsetof(struct gn_wire_toyMakeBlock, card) == 24, "wire");
static_assert(offsetof(struct gn_wire_toyMakeBlock, bytes) == 32, "wire");
static_assert(sizeof(struct gn_wire_toyMakeBlock) == 40, "wire");
static_assert(40 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_toyMakeStream {
    struct gn_msg msg;
    uint64_t id; /* what the new object is called */
    uint64_t card; /* card */
};
static_assert(offsetof(struct gn_wire_toyMakeStream, id) == 16, "wire");
static_assert(offsetof(struct gn_wire_toyMakeStream, card) == 24, "wire");
static_assert(sizeof(struct gn_wire_toyMakeStream) == 32, "wire");
static_assert(32 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_toyCopy {
    struct gn_msg msg;
    struct gn_command_head head;
    uint64_t from; /* block */
    uint64_t to; /* block */
    uint64_t corner[3]; /* vec */
    uint64_t bytes; /* size_t */
    uint32_t present; /* bit i: vector i was not NULL */
    uint32_t zero_end;
};
static_assert(offsetof(struct gn_wire_toyCopy, head) == 16, "wire");
static_assert(offsetof(struct gn_wire_toyCopy, from) == 48, "wire");
static_assert(offsetof(struct gn_wire_toyCopy, to) == 56, "wire");
static_assert(offsetof(struct gn_wire_toyCopy, corner) == 64, "wire");
static_assert(offsetof(struct gn_wire_toyCopy, bytes) == 88, "wire");
static_assert(offsetof(struct gn_wire_toyCopy, present) == 96, "wire");
static_assert(offsetof(struct gn_wire_toyCopy, zero_end) == 100, "wire");
static_assert(sizeof(struct gn_wire_toyCopy) == 104, "wire");
static_assert(104 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_toySplit {
    struct gn_msg msg;
    uint64_t block; /* block */
    struct gn_span pieces; /* out */
    uint32_t n; /* unsigned */
    uint32_t zero_end;
};
static_assert(offsetof(struct gn_wire_toySplit, block) == 16, "wire");
static_assert(offsetof(struct gn_wire_toySplit, pieces) == 24, "wire");
static_assert(offsetof(struct gn_wire_toySplit, n) == 40, "wire");
static_assert(offsetof(struct gn_wire_toySplit, zero_end) == 44, "wire");
static_assert(sizeof(struct gn_wire_toySplit) == 48, "wire");
static_assert(48 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_Fill {
    struct gn_msg msg;
    struct gn_command_head head;
    struct gn_span blocks; /* handles */
    uint64_t corner[3]; /* vec */
    struct gn_area_ref bytes; /* area(corner) */
    uint32_t n; /* unsigned */
    uint32_t present; /* bit i: vector i was not NULL */
};
static_assert(offsetof(struct gn_wire_Fill, head) == 16, "wire");
static_assert(offsetof(struct gn_wire_Fill, blocks) == 48, "wire");
static_assert(offsetof(struct gn_wire_Fill, corner) == 64, "wire");
static_assert(offsetof(struct gn_wire_Fill, bytes) == 88, "wire");
static_assert(offsetof(struct gn_wire_Fill, n) == 104, "wire");
static_assert(offsetof(struct gn_wire_Fill, present) == 108, "wire");
static_assert(sizeof(struct gn_wire_Fill) == 112, "wire");
static_assert(112 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

#endif
