/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes vGPU records: an id, memory and sockets, a part in the devices. For a program that
 * attaches, for a worker that is to take over from another one, and for a vGPU that waits stopped.
 * lifecycle.c has their later life. gantryd's thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fault.h"
#include "daemon/tenants/admission.h"
#include "daemon/net/connection_limits.h"
#include "daemon/vgpu/device_choice.h"
#include "daemon/net/transport.h"
#include "daemon/vgpu/record_session.h"
#include "daemon/vgpu/vgpu_internal.h"
#include "daemon/tenants/tenant_change.h"
#include "daemon/vgpu/create.h"
#include "daemon/vgpu/device_load.h"
#include "daemon/vgpu/lifecycle.h"
#include "shm/counters.h"
#include "shm/event_table.h"
#include "shm/segment.h"
#include "shm/session_layout.h"

#define DATA_AREA_BYTES (UINT64_C(64) << 20) /* sparse: untouched pages cost nothing */
#define DEFAULT_WEIGHT  100u

int gn_vgpus_make_id(struct gn_daemon *d, uint32_t *ret)
{
    uint32_t id;
    do {
        if (getrandom(&id, sizeof id, 0) != sizeof id)
            return -errno;
    } while (id == 0 || gn_vgpus_find(d, id));
    *ret = id;
    return 0;
}

void gn_vgpus_release_id(struct gn_vgpu_record *v)
{
    /* The template's answer names this id. */
    if (!v->spawning)
        (void)gn_vgpus_make_id(v->daemon, &v->id);
}

static int make_segment(const char *name, uint64_t bytes, int *ret_fd, uint64_t *ret_bytes)
{
    struct gn_segment s;
    int rc = gn_segment_create(name, bytes, &s);
    if (rc == 0) {
        *ret_fd = s.fd;
        *ret_bytes = s.bytes;
    }
    return rc;
}

/* Its part in each device, in its worker's order of devices. */
int gn_vgpus_join_shares(struct gn_vgpu_record *v)
{
    const struct gn_machine *m = &v->daemon->machine;
    uint32_t devices[GN_WORKER_MAX_DEVICES], n = 0, first = 0;
    int rc = 0;
    for (uint32_t i = 0; i < v->platform; i++)
        first += m->platforms[i].n_devices;
    for (; n < gn_vgpus_n_devices(v); n++)
        devices[n] = first + v->order[n];
    if (rc == 0)
        rc = gn_scheduler_join(v->daemon->scheduler, &v->shares, &v->tenant->shares,
                               v->tenant->rules.weight, v->weight, devices, n);
    /* The tenant's own entry is made with its first vGPU. */
    if (rc == 0)
        gn_placement_bind(v->daemon->scheduler, &v->placement, &v->shares, gn_now_ns());
    if (rc == 0)
        gn_tenant_reckon(v->daemon, v->tenant);
    if (rc == 0)
        gn_tracing_attach(v->daemon, v);
    return rc;
}

static int make_shares(struct gn_vgpu_record *v)
{
    int rc = gn_shares_init(&v->shares, v->id);
    return rc ? rc : gn_vgpus_join_shares(v);
}

/* Makes the session's memory and the two sockets. After a failure the vGPU's end frees the parts
 * that were made. */
static int make_parts(struct gn_vgpu_record *v, int *ret_worker_session)
{
    struct gn_segment ring;
    int session[2];
    uint64_t ignored;
    int rc = gn_session_create("gantry-ring", &ring);
    if (rc == 0) {
        v->ring_fd = ring.fd;
        v->ring_bytes = ring.bytes;
        rc = make_segment("gantry-events", GN_EVENT_TABLE_BYTES, &v->events_fd, &v->events_bytes);
    }
    if (rc == 0)
        rc = make_segment("gantry-data", DATA_AREA_BYTES, &v->data_fd, &v->data_bytes);
    if (rc == 0)
        rc = make_segment("gantry-counters", GN_COUNTERS_BYTES, &v->counters_fd, &ignored);
    if (rc == 0)
        rc = make_shares(v);
    if (rc == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, session) < 0)
        rc = -errno;
    if (rc)
        return rc;
    v->session_fd = session[0];
    *ret_worker_session = session[1];
    return gn_vgpus_make_control(v);
}

int gn_vgpus_make_memory(struct gn_vgpu_record *v)
{
    int rc = make_segment("gantry-events", GN_EVENT_TABLE_BYTES, &v->events_fd, &v->events_bytes);
    return rc ? rc : make_segment("gantry-data", DATA_AREA_BYTES, &v->data_fd, &v->data_bytes);
}

int gn_vgpus_start(struct gn_conn *c, struct gn_tenant *tenant, uint32_t seq,
                   const struct gn_link_attach *a, const int *stdio, struct gn_error *err)
{
    struct gn_daemon *d = c->daemon;
    int worker_session = -1;
    if (d->stopping)
        return gn_fail(err, ESHUTDOWN, NULL, "gantryd is ending");
    if (a->platform >= d->machine.n_platforms)
        return gn_fail(err, ENODEV, NULL, "there is no platform %u", a->platform);
    const uint64_t devices = gn_tenant_devices(&tenant->rules, &d->machine, a->platform);
    if (!devices)
        return gn_fail(err, EACCES, NULL, "the tenant \"%s\" may not use platform %u",
                       tenant->rules.name, a->platform);
    const struct gn_serving_process_ops *serving = gn_serving_in_mode(
        a->mode == GN_LINK_MODE_PASSTHROUGH ? GN_MODE_PASSTHROUGH : GN_MODE_REMOTE);
    if (!((tenant->rules.modes ? tenant->rules.modes : GN_MODE_REMOTE) & serving->mode))
        return gn_fail(err, EACCES, serving->mode_remedy,
                       "the tenant \"%s\" may not use the mode %s", tenant->rules.name,
                       gn_mode_name(serving->mode));
    int rc = serving->may_serve ? serving->may_serve(c, err) : 0;
    if (rc)
        return rc;
    if (a->weight > GN_TENANT_MAX_WEIGHT)
        return gn_fail(err, EINVAL, NULL, "the weight is above %u", GN_TENANT_MAX_WEIGHT);
    if ((rc = gn_conn_limits_admit_vgpu(c, tenant, err)))
        return rc;
    struct gn_vgpu_record *v = calloc(1, sizeof *v);
    if (!v)
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    v->daemon = d;
    v->session_ops = c->transport->session;
    v->quota = gn_quota_hold(c->quota);
    v->quota->n_starting++;
    v->starting = true;
    v->serving = serving;
    v->attach_seq = seq;
    v->platform = a->platform;
    v->weight = a->weight ? a->weight : DEFAULT_WEIGHT;
    gn_vgpus_set_devices(v, devices, NULL);
    v->tenant = tenant;
    v->takes_turns = d->takes_turns;
    gn_loads_rank(d, a->platform, devices, v->ranks);
    tenant->n_vgpus++;
    d->conn_limits.n_vgpus++;
    gn_vgpus_join_memory(v, a->memory_bytes);
    v->program_pid = c->pid;
    v->owner = c->transport->owner_of(c, tenant);
    v->reaped = true;
    gn_worker_log_init(&v->log, &v->quota->worker_lines);
    v->control.fd = v->process.fd = v->counters_fd = v->shares.tell_fd = v->shares.page.fd = -1;
    v->session_fd = v->ring_fd = v->events_fd = v->data_fd = v->hand_fd = v->worker_fd = -1;
    gn_frame_string_set(v->program, sizeof v->program, c->program);
    gn_list_append(&d->vgpus, &v->link);

    rc = gn_vgpus_make_id(d, &v->id);
    if (rc == 0)
        rc = v->session_ops->begin(v, c);
    if (rc == 0)
        rc = make_parts(v, &worker_session);
    GN_FAULT("daemon-parts-made");
    if (rc == 0)
        rc = gn_vgpus_send_boot(v, c, worker_session, stdio);
    if (rc)
        gn_fail(err, -rc, NULL, "cannot make a vGPU: %s", strerror(-rc));
    gn_quota_close(v->quota, &worker_session);
    if (!rc) {
        v->conn = c;
        c->vgpu = v;
        rc = serving->start(v, err);
        GN_FAULT("daemon-worker-asked-for");
        if (rc) {
            c->vgpu = NULL;
            v->conn = NULL;
        }
    }
    if (rc)
        gn_vgpus_free_if_over(v);
    return rc;
}

struct gn_vgpu_record *gn_vgpus_blank(const struct gn_vgpu_record *like, struct gn_error *err)
{
    struct gn_daemon *d = like->daemon;
    struct gn_vgpu_record *n = gn_conn_limits_make_room(d, GN_ROLE_PROGRAM, GN_CONNECTIONS_VGPU_FDS)
                                   ? calloc(1, sizeof *n)
                                   : NULL;
    if (!n) {
        gn_fail(err, ENOMEM, NULL, "out of memory or descriptors");
        return NULL;
    }
    n->daemon = d;
    n->session_ops = like->session_ops;
    n->quota = gn_quota_hold(like->quota);
    n->platform = like->platform;
    n->weight = like->weight;
    gn_vgpus_set_devices(n, like->devices, like->order);
    memcpy(n->ranks, like->ranks, sizeof n->ranks);
    n->tenant = like->tenant;
    n->takes_turns = like->takes_turns;
    n->serving = &gn_serving_worker; /* a mode switch into the program sets the other one */
    n->tenant->n_vgpus++;
    d->conn_limits.n_vgpus++;
    gn_vgpus_join_memory(n, like->lease.limit_bytes);
    n->program_pid = like->program_pid;
    n->owner = like->owner;
    n->reaped = true;
    gn_worker_log_init(&n->log, &n->quota->worker_lines);
    n->control.fd = n->process.fd = n->counters_fd = n->shares.tell_fd = n->shares.page.fd = -1;
    n->session_fd = n->ring_fd = n->events_fd = n->data_fd = n->hand_fd = n->worker_fd = -1;
    n->ring_bytes = like->ring_bytes;
    n->events_bytes = like->events_bytes;
    n->data_bytes = like->data_bytes;
    memcpy(n->program, like->program, sizeof n->program);
    gn_list_append(&d->vgpus, &n->link);
    return n;
}

struct gn_vgpu_record *gn_vgpus_make_without_worker(struct gn_conn *c, struct gn_tenant *tenant,
                                                    uint32_t id, const struct gn_link_wait *w,
                                                    uint64_t devices, const uint8_t *order,
                                                    int ring_fd, struct gn_error *err)
{
    struct gn_daemon *d = c->daemon;
    if (w->platform >= d->machine.n_platforms)
        devices = 0;
    else if (!devices)
        devices = gn_tenant_devices(&tenant->rules, &d->machine, w->platform);
    uint64_t ignored;
    if (d->stopping || !devices || w->weight > GN_TENANT_MAX_WEIGHT ||
        (tenant->rules.modes && !(tenant->rules.modes & GN_MODE_REMOTE))) {
        gn_fail(err, EACCES, NULL, "the tenant \"%s\" may not have such a vGPU here",
                tenant->rules.name);
        return NULL;
    }
    if (gn_conn_limits_admit_vgpu(c, tenant, err))
        return NULL;
    struct gn_vgpu_record like = {.daemon = d,
                                  .session_ops = c->transport->session,
                                  .quota = c->quota,
                                  .platform = w->platform,
                                  .weight = w->weight ? w->weight : DEFAULT_WEIGHT,
                                  .tenant = tenant,
                                  .takes_turns = d->takes_turns,
                                  .lease = {.limit_bytes = w->memory_bytes},
                                  .program_pid = c->pid,
                                  .owner = c->transport->owner_of(c, tenant),
                                  .ring_bytes = GN_SESSION_BYTES,
                                  .events_bytes = GN_EVENT_TABLE_BYTES,
                                  .data_bytes = DATA_AREA_BYTES};
    gn_vgpus_set_devices(&like, devices, order);
    struct gn_vgpu_record *v = gn_vgpus_blank(&like, err);
    if (!v)
        return NULL;
    gn_frame_string_set(v->program, sizeof v->program, c->program);
    v->id = id && !gn_vgpus_find(d, id) ? id : 0;
    int rc = v->id ? 0 : gn_vgpus_make_id(d, &v->id);
    if (rc == 0)
        rc = make_segment("gantry-counters", GN_COUNTERS_BYTES, &v->counters_fd, &ignored);
    if (rc == 0)
        rc = make_shares(v);
    if (rc) {
        gn_fail(err, -rc, NULL, "cannot make the vGPU: %s", strerror(-rc));
        gn_vgpus_free_if_over(v);
        return NULL;
    }
    v->ring_fd = ring_fd;
    v->conn = c;
    c->vgpu = v;
    return v;
}

struct gn_vgpu_record *gn_vgpus_make_stopped(struct gn_conn *c, struct gn_tenant *tenant,
                                             const struct gn_link_wait *w, int ring_fd,
                                             struct gn_error *err)
{
    struct gn_vgpu_record *v = gn_vgpus_make_without_worker(c, tenant, 0, w, 0, NULL, ring_fd, err);
    if (!v)
        return NULL;
    memcpy(v->stop_key, w->key, sizeof v->stop_key);
    v->driver_up = true;
    gn_record_set_state(v, GN_RECORD_STOPPED);
    return v;
}
