/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, reads and ends the one trace that may run, and writes gantryd's own trace points
 * (tracing.h). Called by the control requests and by the code that starts and ends vGPUs, on
 * gantryd's thread; never blocks. */
#include "daemon/schedule/tracing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/daemon.h"

#define EVENTS_A_REPLY 4096u

static bool follows(const struct gn_tracing *t, uint32_t vgpu)
{
    return t->on && (!t->vgpu || !vgpu || t->vgpu == vgpu);
}

void gn_tracing_note(struct gn_daemon *d, enum gn_trace_kind kind, uint32_t vgpu, const char *text)
{
    struct gn_trace_event e = {.at_ns = gn_now_ns(), .vgpu = vgpu, .kind = (uint8_t)kind};
    if (!follows(&d->tracing, vgpu))
        return;
    gn_trace_set_text(&e, text);
    gn_trace_put(d->tracing.ring.base, &e);
}

void gn_tracing_attach(struct gn_daemon *d, struct gn_vgpu_record *v)
{
    char text[GN_TRACE_TEXT_BYTES + 1];
    if (!follows(&d->tracing, v->id))
        return;
    /* At these lengths both fit. */
    snprintf(text, sizeof text, "%.63s %.23s", v->tenant->rules.name, v->program);
    gn_tracing_note(d, GN_TRACE_ATTACH, v->id, text);
}

void gn_tracing_end(struct gn_daemon *d, struct gn_vgpu_record *v)
{
    gn_tracing_note(d, GN_TRACE_END, v->id, "");
}

/* ---- start and end */

/* Finds a vGPU by its id or by a unique prefix of it; "": *ret is 0. */
static int find_vgpu(struct gn_daemon *d, const char *prefix, uint32_t *ret, struct gn_error *err)
{
    uint32_t found = 0;
    char id[16];
    *ret = 0;
    if (!*prefix)
        return 0;
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
    {
        snprintf(id, sizeof id, "%08x", v->id);
        if (!gn_record_is_listed(v) || strncmp(id, prefix, strlen(prefix)) != 0)
            continue;
        if (found)
            return gn_fail(err, EINVAL, "write more of it",
                           "more than one vGPU's id begins with \"%.16s\"", prefix);
        found = v->id;
    }
    *ret = found;
    return found
               ? 0
               : gn_fail(err, ENOENT, "gantry ls lists them", "there is no vGPU \"%.16s\"", prefix);
}

static void end(struct gn_daemon *d)
{
    struct gn_tracing *t = &d->tracing;
    if (t->on)
        gn_scheduler_trace(d->scheduler, NULL, 0);
    if (t->conn)
        gn_segment_fini(&t->ring);
    memset(t, 0, sizeof *t);
}

static int begin(struct gn_daemon *d, struct gn_conn *c, const char *vgpu, struct gn_error *err)
{
    struct gn_tracing *t = &d->tracing;
    uint32_t only;
    if (t->conn && t->conn != c)
        return gn_fail(err, EBUSY, "wait until that has ended",
                       "another gantry trace is running (process %d)", (int)t->conn->pid);
    int rc = find_vgpu(d, vgpu, &only, err);
    if (rc)
        return rc;
    end(d);
    t->conn = c;
    t->ring.fd = -1;
    rc = gn_segment_create("gantry-trace", GN_TRACE_RING_BYTES, &t->ring);
    if (rc == 0)
        rc = gn_segment_map(&t->ring);
    if (rc) {
        end(d);
        return gn_fail(err, -rc, NULL, "cannot create the trace ring: %s", strerror(-rc));
    }
    t->on = true;
    t->vgpu = only;
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
    {
        if (v->shares.joined)
            gn_tracing_attach(d, v);
    }
    gn_scheduler_trace(d->scheduler, t->ring.base, only);
    return 0;
}

void gn_tracing_conn_gone(struct gn_daemon *d, struct gn_conn *c)
{
    if (d->tracing.conn == c)
        end(d);
}

/* ---- reading */

/* Reads from gantryd's own ring: no other process can change its events. */
static uint32_t read_own(struct gn_tracing *t, uint32_t most,
                         void (*each)(void *arg, const struct gn_trace_event *), void *arg)
{
    struct gn_trace_event e;
    uint32_t n = 0;
    while (n < most && gn_trace_get(t->ring.base, &t->reader, &e)) {
        each(arg, &e);
        n++;
    }
    t->n_dropped += gn_trace_dropped(t->ring.base, &t->reader);
    return n;
}

int gn_tracing_do(struct gn_daemon *d, struct gn_conn *c, enum gn_control_tracing what,
                  const char *vgpu, struct gn_control_trace *ret,
                  void (*each)(void *arg, const struct gn_trace_event *), void *arg,
                  struct gn_error *err)
{
    struct gn_tracing *t = &d->tracing;
    int rc = what == GN_CONTROL_TRACE_START ? begin(d, c, vgpu, err) : 0;
    if (rc)
        return rc;
    if (t->conn != c)
        return gn_fail(err, EINVAL, "use a gantry of gantryd's version",
                       "this connection has not started a trace");
    if (what == GN_CONTROL_TRACE_STOP && t->on) {
        gn_scheduler_trace(d->scheduler, NULL, 0);
        t->on = false;
    }
    ret->now_ns = gn_now_ns();
    const uint32_t n = read_own(t, EVENTS_A_REPLY, each, arg);
    ret->more = n == EVENTS_A_REPLY;
    ret->n_dropped = t->n_dropped;
    t->n_dropped = 0;
    return 0;
}
