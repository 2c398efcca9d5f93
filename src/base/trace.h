/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_TRACE_H
#define GN_BASE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Trace points: the kinds of events about turns, and the format of an event. shm/trace_ring.h
 * stores and transports them. Times are CLOCK_MONOTONIC in nanoseconds.
 */
enum gn_trace_kind {
    /* gantryd: events of vGPUs and tenants */
    GN_TRACE_ATTACH = 1, /* text: "TENANT PROGRAM" */
    GN_TRACE_END,
    GN_TRACE_TENANT, /* its settings have changed; text: its name */
    GN_TRACE_POLICY, /* text: its name */
    /* gantryd's scheduler: events of a vGPU on a device */
    GN_TRACE_WANT,    /* it has work */
    GN_TRACE_LEAVE,   /* it has no work any more, without a turn */
    GN_TRACE_GRANT,   /* it gets the grant: slice_ns, pressed */
    GN_TRACE_PREEMPT, /* preempted: other vGPUs wait */
    GN_TRACE_CLEAR,   /* no other vGPU waits any more */
    GN_TRACE_BACK,    /* the grant came back: charged_ns, again (it wants another turn) */
    /* gantryd's placement of memory (docs/memory.md): a vGPU's memory on a device */
    GN_TRACE_SWAP_OUT, /* its worker begins to evict: the bytes that stay */
    GN_TRACE_EVICTED,  /* a part of it, at least, is in host memory */
    GN_TRACE_SWAP_IN,  /* its worker brings everything in: the bytes of all */
    GN_TRACE_RESIDENT, /* all of it is there */
    GN_TRACE_N_KINDS
};

#define GN_TRACE_TEXT_BYTES 88

struct gn_trace_event {
    uint64_t at_ns;
    uint64_t a, b; /* their meaning: gn_trace_kinds */
    uint32_t vgpu; /* 0: no vGPU */
    uint16_t device;
    uint8_t kind;
    uint8_t n_text;
    char text[GN_TRACE_TEXT_BYTES]; /* n_text bytes, no terminator */
};
_Static_assert(sizeof(struct gn_trace_event) == 120, "trace event");

struct gn_trace_kind_name {
    const char *name, *a, *b; /* a, b NULL: unused */
    bool on_device;
};
/* Indexed by kind; 0 has no name. */
extern const struct gn_trace_kind_name gn_trace_kinds[GN_TRACE_N_KINDS];
/* Returns 0 if no kind has this name. */
enum gn_trace_kind gn_trace_kind_named(const char *name);

/* Copies at most GN_TRACE_TEXT_BYTES. */
void gn_trace_set_text(struct gn_trace_event *e, const char *text);

#endif
