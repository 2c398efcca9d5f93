/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_TRACE_H
#define GN_BASE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Trace points: what may be told of turns, and how a thing told looks. Where they are kept and how
 * they travel is shm/trace_ring.h's. Times are CLOCK_MONOTONIC in nanoseconds.
 */
enum gn_trace_kind {
    /* gantryd: of vGPUs and tenants */
    GN_TRACE_ATTACH = 1, /* text: "TENANT PROGRAM" */
    GN_TRACE_END,
    GN_TRACE_TENANT, /* its settings were changed; text: its name */
    GN_TRACE_POLICY, /* text: its name */
    /* gantryd's scheduler: of a vGPU on a device */
    GN_TRACE_WANT,  /* it has work */
    GN_TRACE_LEAVE, /* and has it no more, without a turn */
    GN_TRACE_HAND,  /* the turn is its: slice_ns, pressed */
    GN_TRACE_PRESS, /* others wait */
    GN_TRACE_EASE,  /* and are gone */
    GN_TRACE_BACK,  /* the turn is over: charged_ns, again (it wants another) */
    GN_TRACE_N_KINDS
};

#define GN_TRACE_TEXT_BYTES 88

struct gn_trace_event {
    uint64_t at_ns;
    uint64_t a, b; /* what they are: gn_trace_kinds */
    uint32_t vgpu; /* 0: of none */
    uint16_t device;
    uint8_t kind;
    uint8_t n_text;
    char text[GN_TRACE_TEXT_BYTES]; /* n_text of it */
};
_Static_assert(sizeof(struct gn_trace_event) == 120, "trace event");

struct gn_trace_kind_name {
    const char *name, *a, *b; /* a, b NULL: means nothing */
    bool on_device;
};
/* By kind; 0 has no name. */
extern const struct gn_trace_kind_name gn_trace_kinds[GN_TRACE_N_KINDS];
/* 0: there is none of this name. */
enum gn_trace_kind gn_trace_kind_named(const char *name);

/* Up to GN_TRACE_TEXT_BYTES of it. */
void gn_trace_set_text(struct gn_trace_event *e, const char *text);

#endif
