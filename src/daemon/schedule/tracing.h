/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_SCHEDULE_TRACING_H
#define GN_DAEMON_SCHEDULE_TRACING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "control/control.h"
#include "shm/segment.h"
#include "shm/trace_ring.h"

/* Tracing: one connection at a time receives the events of the scheduler and of gantryd. Without a
 * trace there is no ring: one is created at the start, written by the scheduler's thread and by
 * gantryd's, and freed when the connection ends. gantryd's thread only. */
struct gn_daemon;
struct gn_conn;
struct gn_vgpu_record;

struct gn_tracing {
    struct gn_conn *conn;   /* the connection that traces; NULL: none */
    bool on;                /* not stopped yet */
    uint32_t vgpu;          /* only this vGPU; 0: all */
    struct gn_segment ring; /* in gantryd's own memory */
    struct gn_trace_reader reader;
    uint64_t n_dropped;
};

/* As in struct gn_control_source. The caller has checked that c is an operator's connection. */
int gn_tracing_do(struct gn_daemon *d, struct gn_conn *c, enum gn_control_tracing what,
                  const char *vgpu, struct gn_control_trace *ret,
                  void (*each)(void *arg, const struct gn_trace_event *), void *arg,
                  struct gn_error *err);
/* Ends the trace of a connection that closes. */
void gn_tracing_conn_gone(struct gn_daemon *d, struct gn_conn *c);
/* Writes a trace point of gantryd's. vgpu 0: of no vGPU. */
void gn_tracing_note(struct gn_daemon *d, enum gn_trace_kind kind, uint32_t vgpu, const char *text);
/* Trace points for a vGPU that starts and one that ends. */
void gn_tracing_attach(struct gn_daemon *d, struct gn_vgpu_record *v);
void gn_tracing_end(struct gn_daemon *d, struct gn_vgpu_record *v);

#endif
