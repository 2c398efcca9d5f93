/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema of the control requests. gantryd calls gn_control_handle on its loop; `gantry` builds
 * requests. It never touches a socket: the link carries the texts.
 */
#include "control/source.h"
#include "control/json_region.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/part.h"

#define REPLY_DIGITS 6 /* digits of shares in a reply */

static json_t *number(uint64_t n)
{
    return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static json_t *object(void)
{
    json_t *root = json_object();
    if (root)
        json_object_set_new(root, "version", json_integer(GN_CONTROL_VERSION));
    return root;
}

static char *error_reply(const char *what, const char *why, const char *fix, const char *kind)
{
    json_t *root = object(), *e = json_object();
    if (!root || !e) {
        json_decref(root);
        json_decref(e);
        return NULL;
    }
    json_object_set_new(e, "what", gn_json_string(what));
    if (why && *why)
        json_object_set_new(e, "why", gn_json_string(why));
    if (fix && *fix)
        json_object_set_new(e, "fix", gn_json_string(fix));
    if (kind)
        json_object_set_new(e, "kind", gn_json_string(kind));
    json_object_set_new(root, "error", e);
    return gn_json_text(root, REPLY_DIGITS);
}

char *gn_control_error(const char *what, const char *why, const char *fix)
{
    return error_reply(what, why, fix, NULL);
}

char *gn_control_error_of_kind(const char *what, const struct gn_error *err, const char *kind)
{
    return error_reply(what, err->what, err->fix, kind);
}

char *gn_control_request(const char *name)
{
    json_t *root = object();
    if (root)
        json_object_set_new(root, "request", gn_json_string(name));
    return gn_json_text(root, REPLY_DIGITS);
}

static char *request_with_name(const char *request, const char *name)
{
    json_t *root = object();
    if (!root)
        return NULL;
    json_object_set_new(root, "request", json_string(request));
    json_object_set_new(root, "name", gn_json_string(name));
    return gn_json_text(root, REPLY_DIGITS);
}

char *gn_control_policy_request(const char *name)
{
    return request_with_name("policy-set", name);
}

char *gn_control_place_request(const char *name)
{
    return request_with_name("place-set", name);
}

/* Converts from millionths. */
static json_t *part(uint32_t millionths)
{
    return json_real(millionths / (double)GN_PART_WHOLE);
}

static void add_placed(json_t *o, const struct gn_control_placed *p)
{
    json_object_set_new(o, "placement_state", gn_json_string(p->state));
    json_object_set_new(o, "memory_bytes", number(p->memory_bytes));
    json_object_set_new(o, "resident_bytes", number(p->resident_bytes));
    json_object_set_new(o, "pinned_bytes", number(p->pinned_bytes));
    json_object_set_new(o, "residencies", number(p->n_residencies));
    json_object_set_new(o, "swap_in_bytes", number(p->in_bytes));
    json_object_set_new(o, "swap_out_bytes", number(p->out_bytes));
    json_object_set_new(o, "evicted_ns", number(p->evicted_ns));
}

static void add_share(json_t *list, const struct gn_control_share *s)
{
    json_t *o = json_object();
    json_object_set_new(o, "name", gn_json_string(s->name));
    json_object_set_new(o, "index", number(s->index));
    if (s->share >= 0) {
        json_object_set_new(o, "share", json_real(s->share));
        json_object_set_new(o, "entitled", json_real(s->entitled));
    }
    json_object_set_new(o, "device_ns", number(s->device_ns));
    json_object_set_new(o, "used_ns", number(s->used_ns));
    json_object_set_new(o, "waited_ns", number(s->waited_ns));
    json_object_set_new(o, "grants", number(s->grants));
    json_object_set_new(o, "interactive", json_boolean(s->interactive));
    json_object_set_new(o, "used", json_boolean(s->used));
    if (s->placed)
        add_placed(o, s->placed);
    json_array_append_new(list, o);
}

static void add_moving(json_t *to, const struct gn_control_moving *m)
{
    json_t *o = json_object();
    json_object_set_new(o, "what", gn_json_string(m->what));
    if (m->to)
        json_object_set_new(o, "to", gn_json_string(m->to));
    json_object_set_new(o, "phase", gn_json_string(m->phase));
    json_object_set_new(o, "round", number(m->round));
    json_object_set_new(o, "done_bytes", number(m->done_bytes));
    json_object_set_new(o, "total_bytes", number(m->total_bytes));
    json_object_set_new(o, "sent_bytes", number(m->sent_bytes));
    json_object_set_new(o, "elapsed_ns", number(m->elapsed_ns));
    json_object_set_new(to, "moving", o);
}

static void add_vgpu(void *arg, const struct gn_control_vgpu *v)
{
    json_t *list = arg, *o = json_object(), *copies = json_object(), *devices = json_array();
    char id[16];
    snprintf(id, sizeof id, "%08x", v->id);
    json_object_set_new(o, "id", json_string(id));
    json_object_set_new(o, "tenant", gn_json_string(v->tenant));
    json_object_set_new(o, "program", gn_json_string(v->program));
    if (v->pid)
        json_object_set_new(o, "pid", number(v->pid));
    if (v->worker_pid)
        json_object_set_new(o, "worker_pid", number(v->worker_pid));
    json_object_set_new(o, "platform", gn_json_string(v->platform));
    json_object_set_new(o, "link", gn_json_string(v->link));
    json_object_set_new(o, "mode", gn_json_string(v->mode));
    if (v->driver_stays)
        json_object_set_new(o, "driver_stays", json_true());
    json_object_set_new(o, "state", gn_json_string(v->state));
    if (v->moving)
        add_moving(o, v->moving);
    json_object_set_new(o, "weight", number(v->weight));
    json_object_set_new(o, "memory_bytes", number(v->memory_bytes));
    json_object_set_new(o, "leased_bytes", number(v->leased_bytes));
    if (v->memory_limit_bytes)
        json_object_set_new(o, "memory_limit_bytes", number(v->memory_limit_bytes));
    json_object_set_new(o, "calls", number(v->calls));
    json_object_set_new(o, "sync_calls", number(v->sync_calls));
    json_object_set_new(copies, "two", number(v->copies_two));
    json_object_set_new(copies, "mapped", number(v->copies_mapped));
    json_object_set_new(copies, "bypass", number(v->copies_bypass));
    json_object_set_new(o, "copies", copies);
    for (uint32_t i = 0; i < v->n_devices; i++)
        add_share(devices, &v->devices[i]);
    json_object_set_new(o, "devices", devices);
    json_array_append_new(list, o);
}

static void add_slots(json_t *o, const struct gn_control_slots *s)
{
    json_object_set_new(o, "place", gn_json_string(s->place));
    json_object_set_new(o, "slot_bytes", number(s->slot_bytes));
    json_object_set_new(o, "slots", number(s->n_slots));
    json_object_set_new(o, "free_slots", number(s->n_free));
    json_object_set_new(o, "reserved_slots", number(s->n_reserved));
    json_object_set_new(o, "swap_bytes", number(s->swap_bytes));
    json_object_set_new(o, "swaps", number(s->n_swaps));
    json_object_set_new(o, "copying_ns", number(s->copying_ns));
    json_object_set_new(o, "copier_busy", json_real(s->copier_busy));
    json_object_set_new(o, "rearranged", number(s->n_rearranged));
}

static void add_device(void *arg, const struct gn_control_device *d)
{
    json_t *list = arg, *o = json_object();
    json_object_set_new(o, "name", gn_json_string(d->name));
    json_object_set_new(o, "index", number(d->index));
    json_object_set_new(o, "vendor", gn_json_string(d->vendor));
    json_object_set_new(o, "api", gn_json_string(d->api));
    json_object_set_new(o, "platform", gn_json_string(d->platform));
    json_object_set_new(o, "platform_index", number(d->platform_index));
    json_object_set_new(o, "type", gn_json_string(d->type));
    json_object_set_new(o, "present_as", gn_json_string(d->present_as));
    json_object_set_new(o, "compute_units", number(d->compute_units));
    json_object_set_new(o, "clock_mhz", number(d->clock_mhz));
    json_object_set_new(o, "memory_bytes", number(d->memory_bytes));
    json_object_set_new(o, "max_allocation_bytes", number(d->max_allocation_bytes));
    json_object_set_new(o, "local_memory_bytes", number(d->local_memory_bytes));
    json_object_set_new(o, "slice_ns", number(d->slice_ns));
    json_object_set_new(o, "version", gn_json_string(d->version));
    json_object_set_new(o, "driver_version", gn_json_string(d->driver_version));
    json_object_set_new(o, "vgpus", number(d->n_vgpus));
    json_object_set_new(o, "leased_bytes", number(d->leased_bytes));
    if (d->slots)
        add_slots(o, d->slots);
    json_t *use = json_object(), *others = d->has_others ? json_object() : NULL;
    json_object_set_new(use, "device_ns", number(d->use.device_ns));
    json_object_set_new(use, "used_ns", number(d->use.used_ns));
    json_object_set_new(use, "waited_ns", number(d->use.waited_ns));
    json_object_set_new(use, "grants", number(d->use.grants));
    json_object_set_new(o, "use", use);
    if (others) {
        json_object_set_new(others, "vgpus", number(d->others.n_vgpus));
        json_object_set_new(others, "share", json_real(d->others.share));
        json_object_set_new(others, "entitled", json_real(d->others.entitled));
        json_object_set_new(others, "device_ns", number(d->others.device_ns));
        json_object_set_new(others, "waited_ns", number(d->others.waited_ns));
        json_object_set_new(o, "others", others);
    }
    json_array_append_new(list, o);
}

static void add_driver(void *arg, const struct gn_control_driver *d)
{
    json_t *list = arg, *o = json_object();
    json_object_set_new(o, "api", gn_json_string(d->api));
    json_object_set_new(o, "library", gn_json_string(d->library));
    json_object_set_new(o, "devices", number(d->n_devices));
    json_array_append_new(list, o);
}

static json_t *texts(uint32_t n, const char *const *items)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(list, gn_json_string(items[i]));
    return list;
}

static json_t *numbers(uint32_t n, const uint32_t *items)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(list, number(items[i]));
    return list;
}

struct tenant_list {
    json_t *list;
    const char *only; /* one tenant; NULL: all */
};

static void add_tenant(void *arg, const struct gn_control_tenant *t)
{
    const struct tenant_list *to = arg;
    if (to->only && strcmp(to->only, t->name) != 0)
        return;
    json_t *o = json_object();
    json_object_set_new(o, "name", gn_json_string(t->name));
    json_object_set_new(o, "weight", number(t->weight));
    if (t->cap)
        json_object_set_new(o, "cap", part(t->cap));
    if (t->floor)
        json_object_set_new(o, "floor", part(t->floor));
    json_object_set_new(o, "vgpus", number(t->n_vgpus));
    if (t->vgpu_limit)
        json_object_set_new(o, "vgpu_limit", number(t->vgpu_limit));
    if (t->n_refused_vgpus)
        json_object_set_new(o, "refused_vgpus", number(t->n_refused_vgpus));
    if (t->n_refused_leases)
        json_object_set_new(o, "refused_allocations", number(t->n_refused_leases));
    json_object_set_new(o, "memory_bytes", number(t->memory_bytes));
    json_object_set_new(o, "leased_bytes", number(t->leased_bytes));
    if (t->memory_limit_bytes)
        json_object_set_new(o, "memory_limit_bytes", number(t->memory_limit_bytes));
    if (t->reserve_bytes)
        json_object_set_new(o, "reserve_bytes", number(t->reserve_bytes));
    json_object_set_new(o, "uids",
                        t->any_uid ? gn_json_string("any") : numbers(t->n_uids, t->uids));
    json_object_set_new(o, "gids", numbers(t->n_gids, t->gids));
    json_object_set_new(o, "token", json_boolean(t->token));
    if (t->socket)
        json_object_set_new(o, "socket", gn_json_string(t->socket));
    json_object_set_new(o, "owner", texts(t->n_owner, t->owner));
    json_object_set_new(o, "modes", texts(t->n_modes, t->modes));
    json_object_set_new(o, "devices", texts(t->n_devices, t->devices));
    json_array_append_new(to->list, o);
}

static char *reply_tenants(const struct gn_control_source *source, const char *only)
{
    struct tenant_list to = {.list = json_array(), .only = only};
    json_t *all = object();
    source->queries->tenants(source->ctx, add_tenant, &to);
    json_object_set_new(all, "tenants", to.list);
    return gn_json_text(all, REPLY_DIGITS);
}

struct policy_list {
    json_t *list;
    json_t *in_force; /* the name of the policy in force */
};

static void add_policy(void *arg, const struct gn_control_policy *p)
{
    struct policy_list *to = arg;
    json_t *o = json_object();
    json_object_set_new(o, "name", gn_json_string(p->name));
    json_object_set_new(o, "about", gn_json_string(p->about));
    json_array_append_new(to->list, o);
    if (p->in_force && !to->in_force)
        to->in_force = gn_json_string(p->name);
}

static char *reply_policy(const struct gn_control_source *source)
{
    struct policy_list to = {.list = json_array()};
    json_t *all = object();
    source->queries->policies(source->ctx, add_policy, &to);
    json_object_set_new(all, "policy", to.in_force);
    json_object_set_new(all, "policies", to.list);
    return gn_json_text(all, REPLY_DIGITS);
}

static char *reply_place(const struct gn_control_source *source)
{
    struct policy_list to = {.list = json_array()};
    json_t *all = object();
    source->queries->places(source->ctx, add_policy, &to);
    if (to.in_force)
        json_object_set_new(all, "place", to.in_force);
    json_object_set_new(all, "policies", to.list);
    return gn_json_text(all, REPLY_DIGITS);
}

/* ---- queries: no side effects */

static char *answer_ls(const struct gn_control_source *source, const json_t *request)
{
    json_t *all = object(), *list = json_array();
    (void)request;
    source->queries->vgpus(source->ctx, add_vgpu, list);
    json_object_set_new(all, "vgpus", list);
    if (source->queries->draining && source->queries->draining(source->ctx))
        json_object_set_new(all, "draining", json_true());
    return gn_json_text(all, REPLY_DIGITS);
}

static char *answer_devices(const struct gn_control_source *source, const json_t *request)
{
    json_t *all = object(), *list = json_array();
    (void)request;
    source->queries->devices(source->ctx, add_device, list);
    json_object_set_new(all, "devices", list);
    return gn_json_text(all, REPLY_DIGITS);
}

static json_t *limits(const struct gn_control_status *s)
{
    json_t *o = json_object();
    json_object_set_new(o, "descriptors", number(s->n_descriptors));
    json_object_set_new(o, "descriptor_limit", number(s->descriptor_limit));
    json_object_set_new(o, "vgpu_places", number(s->vgpu_places));
    json_object_set_new(o, "refused_vgpus", number(s->n_refused_vgpus));
    json_object_set_new(o, "refused_allocations", number(s->n_refused_leases));
    json_object_set_new(o, "closed_connections", number(s->n_evicted));
    json_object_set_new(o, "dropped_lines", number(s->n_dropped_lines));
    return o;
}

static char *answer_status(const struct gn_control_source *source, const json_t *request)
{
    struct gn_control_status s = {
        .version = "", .walls_mode = "", .walls_have = "", .walls_missing = ""};
    json_t *all = object(), *o = json_object(), *drivers = json_array(), *walls = json_object();
    (void)request;
    source->queries->status(source->ctx, &s);
    json_object_set_new(o, "version", gn_json_string(s.version));
    json_object_set_new(o, "pid", number(s.pid));
    json_object_set_new(o, "uid", number(s.uid));
    json_object_set_new(o, "platforms", number(s.n_platforms));
    json_object_set_new(o, "devices", number(s.n_devices));
    json_object_set_new(o, "vgpus", number(s.n_vgpus));
    json_object_set_new(walls, "mode", gn_json_string(s.walls_mode));
    json_object_set_new(walls, "have", gn_json_string(s.walls_have));
    json_object_set_new(walls, "missing", gn_json_string(s.walls_missing));
    json_object_set_new(o, "walls", walls);
    if (s.draining)
        json_object_set_new(o, "draining", json_true());
    if (s.tells_limits)
        json_object_set_new(o, "limits", limits(&s));
    source->queries->drivers(source->ctx, add_driver, drivers);
    json_object_set_new(o, "drivers", drivers);
    json_object_set_new(all, "gantryd", o);
    return gn_json_text(all, REPLY_DIGITS);
}

static char *answer_tenants(const struct gn_control_source *source, const json_t *request)
{
    (void)request;
    return reply_tenants(source, NULL);
}

static char *answer_policy(const struct gn_control_source *source, const json_t *request)
{
    (void)request;
    return reply_policy(source);
}

static char *answer_place(const struct gn_control_source *source, const json_t *request)
{
    (void)request;
    return reply_place(source);
}

/* ---- commands */

static char *change_tenants(const struct gn_control_source *source, const json_t *request,
                            enum gn_control_what what, const char *failure)
{
    struct gn_control_change c;
    struct gn_error err = {{0}, {0}};
    if (gn_control_parse_change(request, what, &c, &err) ||
        source->commands->change(source->ctx, &c, &err))
        return gn_control_error(failure, err.what, err.fix);
    return reply_tenants(source, c.name);
}

#define FAIL_ADD     "cannot add the tenant"
#define FAIL_SET     "cannot change the tenant"
#define FAIL_REMOVE  "cannot remove the tenant"
#define FAIL_POLICY  "cannot change the policy"
#define FAIL_PLACE   "cannot change the placement policy"
#define FAIL_MIGRATE "cannot move the vGPU"

static char *add_a_tenant(const struct gn_control_source *source, const json_t *request)
{
    return change_tenants(source, request, GN_CONTROL_ADD, FAIL_ADD);
}

static char *set_a_tenant(const struct gn_control_source *source, const json_t *request)
{
    return change_tenants(source, request, GN_CONTROL_SET, FAIL_SET);
}

static char *remove_a_tenant(const struct gn_control_source *source, const json_t *request)
{
    return change_tenants(source, request, GN_CONTROL_REMOVE, FAIL_REMOVE);
}

static char *set_by_name(const struct gn_control_source *source, const json_t *request,
                         const char *failure,
                         int (*set)(void *ctx, const char *name, struct gn_error *err),
                         char *(*reply)(const struct gn_control_source *source))
{
    const json_t *name = json_object_get(request, "name");
    struct gn_error err = {{0}, {0}};
    if (!json_is_string(name) || strlen(json_string_value(name)) != json_string_length(name))
        return gn_control_error(failure, "\"name\" is not the name of a policy",
                                "use a gantry of gantryd's version");
    int rc = set(source->ctx, json_string_value(name), &err);
    return rc ? gn_control_error_of_kind(failure, &err,
                                         rc == -EINVAL ? GN_CONTROL_KIND_USAGE : NULL)
              : reply(source);
}

static char *set_policy(const struct gn_control_source *source, const json_t *request)
{
    return set_by_name(source, request, FAIL_POLICY, source->commands->set_policy, reply_policy);
}

static char *set_place(const struct gn_control_source *source, const json_t *request)
{
    return set_by_name(source, request, FAIL_PLACE, source->commands->set_place, reply_place);
}

static char *migrate(const struct gn_control_source *source, const json_t *request)
{
    struct gn_control_wish wish;
    struct gn_error err = {{0}, {0}};
    if (gn_control_parse_wish(request, &wish, &err) ||
        (!wish.to && gn_fail(&err, EINVAL, NULL, "the request does not say where to")) ||
        source->commands->migrate(source->ctx, &wish, &err))
        return gn_control_error(FAIL_MIGRATE, err.what, err.fix[0] ? err.fix : NULL);
    return strdup("");
}

/*
 * All requests: the least role of a connection that may make it, the handler, and the first
 * sentence of a refusal. `judged`: a program's connection gets as far as the handler, which decides
 * whether the object of the command is that connection's own. Viewers have no commands.
 */
static const struct request {
    const char *name;
    enum gn_role role;
    bool judged;
    const char *failure;
    char *(*answer)(const struct gn_control_source *source, const json_t *request);
} requests[] = {
    {"ls", GN_ROLE_PROGRAM, false, NULL, answer_ls},
    {"devices", GN_ROLE_PROGRAM, false, NULL, answer_devices},
    {"status", GN_ROLE_PROGRAM, false, NULL, answer_status},
    {"tenants", GN_ROLE_PROGRAM, false, NULL, answer_tenants},
    {"policy", GN_ROLE_PROGRAM, false, NULL, answer_policy},
    {"place", GN_ROLE_PROGRAM, false, NULL, answer_place},
    {"about", GN_ROLE_VIEW, false, FAIL_MIGRATE, gn_control_parse_about},
    {"trace-start", GN_ROLE_CONTROL, false, "cannot trace", gn_control_trace_start},
    {"trace-read", GN_ROLE_CONTROL, false, "cannot go on tracing", gn_control_trace_read},
    {"trace-stop", GN_ROLE_CONTROL, false, "cannot stop tracing", gn_control_trace_stop},
    {"policy-set", GN_ROLE_CONTROL, false, FAIL_POLICY, set_policy},
    {"place-set", GN_ROLE_CONTROL, false, FAIL_PLACE, set_place},
    {"tenant-add", GN_ROLE_CONTROL, false, FAIL_ADD, add_a_tenant},
    {"tenant-set", GN_ROLE_CONTROL, false, FAIL_SET, set_a_tenant},
    {"tenant-rm", GN_ROLE_CONTROL, false, FAIL_REMOVE, remove_a_tenant},
    {"drain", GN_ROLE_CONTROL, false, "cannot change whether new programs are accepted",
     gn_control_parse_drain},
    {"migrate", GN_ROLE_CONTROL, true, FAIL_MIGRATE, migrate},
    {"receive", GN_ROLE_CONTROL, true, "it is not accepted there",
     gn_control_parse_receive}, /* for a tenant's own vGPU, over tcp */
    {"kill", GN_ROLE_CONTROL, true, "cannot end the vGPU", gn_control_parse_kill},
    {"checkpoint", GN_ROLE_CONTROL, true, "cannot save the vGPU", gn_control_parse_checkpoint},
    {"checkpoint-keep", GN_ROLE_CONTROL, true, "cannot stop the vGPU", gn_control_parse_keep},
    {"restore", GN_ROLE_CONTROL, true, "cannot restore the vGPU", gn_control_parse_restore},
};

static const struct request *find_request(const char *name)
{
    for (size_t i = 0; name && i < sizeof requests / sizeof requests[0]; i++)
        if (strcmp(name, requests[i].name) == 0)
            return &requests[i];
    return NULL;
}

int gn_control_refuse_role(struct gn_error *err)
{
    return gn_fail(
        err, EPERM,
        "run it as gantryd's own user, as root or as a member of the group gantry-operator",
        "only operators may, by gantryd's control socket");
}

static char *answer(const struct gn_control_source *source, enum gn_role role, const json_t *root)
{
    const char *name = json_string_value(json_object_get(root, "request"));
    const json_t *version = json_object_get(root, "version");
    const struct request *r = find_request(name);
    struct gn_error err;
    if (!json_is_integer(version) || json_integer_value(version) != GN_CONTROL_VERSION)
        return gn_control_error("the request is of another version",
                                "this gantryd speaks version 1",
                                "use a gantry of gantryd's version");
    if (!r)
        return gn_control_error("this gantryd does not know the request",
                                name ? name : "it names none", "use a gantry of gantryd's version");
    if (role < r->role && !(r->judged && role == GN_ROLE_PROGRAM)) {
        gn_control_refuse_role(&err);
        return gn_control_error(r->failure, err.what, err.fix);
    }
    return r->answer(source, root);
}

char *gn_control_handle(const struct gn_control_source *source, enum gn_role role,
                        const char *request, size_t n)
{
    json_error_t where;
    json_t *root = json_loadb(request, n, JSON_REJECT_DUPLICATES, &where);
    if (!root)
        return gn_control_error("the request is not JSON", where.text, NULL);
    char *reply = answer(source, role, root);
    json_decref(root);
    return reply;
}
