/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_TRACE_H
#define GN_BASE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

/* Trace points: the kinds of events in a trace and the layout of one event. shm/trace_ring.h stores
 * and transports them. Times are CLOCK_MONOTONIC in nanoseconds. */
enum gn_trace_kind {
    /* from gantryd, about vGPUs and tenants */
    GN_TRACE_ATTACH = 1, /* text: "TENANT PROGRAM" */
    GN_TRACE_END,
    GN_TRACE_TENANT, /* its settings have changed; text: its name */
    GN_TRACE_POLICY, /* text: its name */
    /* from gantryd's scheduler, about a vGPU on a device */
    GN_TRACE_WANT,  /* it has work */
    GN_TRACE_LEAVE, /* it has no more work and did not get the device */
    GN_TRACE_HAND,  /* it gets the device: slice_ns, pressed */
    GN_TRACE_PRESS, /* it is preempted: others wait */
    GN_TRACE_EASE,  /* the others have gone */
    GN_TRACE_BACK,  /* it gives the device back: charged_ns, again (it has more work) */
    GN_TRACE_N_KINDS
};

#define GN_TRACE_TEXT_BYTES 88

struct gn_trace_event {
    uint64_t at_ns;
    uint64_t a, b; /* meaning: see gn_trace_kinds */
    uint32_t vgpu; /* 0: none */
    uint16_t device;
    uint8_t kind;
    uint8_t n_text;
    char text[GN_TRACE_TEXT_BYTES]; /* only the first n_text bytes count */
};
_Static_assert(sizeof(struct gn_trace_event) == 120, "trace event");

struct gn_trace_kind_name {
    const char *name, *a, *b; /* a, b NULL: unused */
    bool on_device;
};
/* Indexed by kind; 0 has no name. */
extern const struct gn_trace_kind_name gn_trace_kinds[GN_TRACE_N_KINDS];
/* Returns 0 if there is no kind of this name. */
enum gn_trace_kind gn_trace_kind_named(const char *name);

/* Stores up to GN_TRACE_TEXT_BYTES bytes of the text. */
void gn_trace_set_text(struct gn_trace_event *e, const char *text);

#endif
