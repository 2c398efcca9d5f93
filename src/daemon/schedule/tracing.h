/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_SCHEDULE_TRACING_H
#define GN_DAEMON_SCHEDULE_TRACING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "control/control.h"
#include "shm/segment.h"
#include "shm/trace_ring.h"

/*
 * Tracing: one connection at a time is told of turns and of what its questions cannot show. Nothing
 * of it exists while nobody traces: a ring is made when it begins, where the scheduler's thread and
 * gantryd's put, and is gone when the connection is. gantryd's thread.
 */
struct gn_daemon;
struct gn_conn;
struct gn_vgpu_record;

struct gn_tracing {
    struct gn_conn *conn;   /* whose it is; NULL: nobody traces */
    bool on;                /* and has not stopped yet */
    uint32_t vgpu;          /* of it alone; 0: all */
    struct gn_segment ring; /* gantryd's */
    struct gn_trace_reader reader;
    uint64_t n_dropped;
};

/* As struct gn_control_source's. An operator's, the caller has seen to that. */
int gn_tracing_do(struct gn_daemon *d, struct gn_conn *c, enum gn_control_tracing what,
                  const char *vgpu, struct gn_control_trace *ret,
                  void (*each)(void *arg, const struct gn_trace_event *), void *arg,
                  struct gn_error *err);
/* The connection goes. */
void gn_tracing_conn_gone(struct gn_daemon *d, struct gn_conn *c);
/* gantryd's own trace points. vgpu 0: of none. */
void gn_tracing_note(struct gn_daemon *d, enum gn_trace_kind kind, uint32_t vgpu, const char *text);
/* A vGPU comes, goes. */
void gn_tracing_attach(struct gn_daemon *d, struct gn_vgpu_record *v);
void gn_tracing_end(struct gn_daemon *d, struct gn_vgpu_record *v);

#endif
