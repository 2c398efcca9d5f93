/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes trace events as a timeline in the trace-event format; see timeline.h. Called by `gantry
 * trace` on its main thread. Events arrive slightly out of order, so they wait in a list until
 * their order is final. Never contacts gantryd.
 */
#include "ctl/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/trace.h"
#include "ctl/trace_event.h"

#define MAX_DEVICES 1024
#define NO_VGPU     UINT32_MAX
#define DEVICES_PID 1
#define FIRST_PID   100
#define WINDOW_NS   UINT64_C(100000000) /* the period of a share counter's values */

enum state { IDLE, WANTED, HELD };

struct turn {
    uint16_t device;
    enum state state;
    uint64_t since_ns, slice_ns;
    uint64_t window_ns; /* time charged in the current period */
    bool named;         /* its track has a name */
    /* A state of its memory there, of the trace points; NULL: all of it is on the device. */
    const char *memory;
    uint64_t memory_since_ns;
};

struct vgpu {
    uint32_t id;
    char tenant[GN_TRACE_TEXT_BYTES + 1], program[GN_TRACE_TEXT_BYTES + 1];
    uint32_t n_turns;
    struct turn *turns;
};

struct device {
    char *name;
    uint32_t holder; /* index in vgpus, or NO_VGPU */
    uint64_t window_ends_ns;
    bool named;
};

/* An event that is not written yet. */
struct pending {
    struct gn_trace_event event;
    uint64_t number; /* order of arrival, which sorts events with equal times */
};

struct gn_timeline {
    FILE *to;
    uint64_t began_ns, last_ns, n_written, n_lost;
    struct pending *events;
    size_t n_events, room_events;
    uint64_t n_added;
    struct vgpu *vgpus;
    uint32_t n_vgpus;
    struct device devices[MAX_DEVICES];
};

/* ---- writing */

/* Writes the object and frees it. */
static void write_event(struct gn_timeline *t, json_t *o)
{
    if (!o)
        return;
    fputs(t->n_written++ ? ",\n" : "\n", t->to);
    (void)json_dumpf(o, t->to, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15));
    json_decref(o);
}

static double us(const struct gn_timeline *t, uint64_t ns)
{
    return ns > t->began_ns ? (double)(ns - t->began_ns) / 1e3 : 0;
}

static void write_name(struct gn_timeline *t, const char *what, int pid, int tid, const char *name)
{
    write_event(t, json_pack("{s:s,s:s,s:i,s:i,s:{s:s}}", "ph", "M", "name", what, "pid", pid,
                             "tid", tid, "args", "name", name));
}

/* args may be NULL; it is consumed. */
static void write_mark(struct gn_timeline *t, const char *phase, const char *name, int pid, int tid,
                       uint64_t at_ns, json_t *args)
{
    json_t *o = json_pack("{s:s,s:s,s:s,s:i,s:i,s:f}", "ph", phase, "name", name, "cat", "turns",
                          "pid", pid, "tid", tid, "ts", us(t, at_ns));
    if (o && args)
        json_object_set(o, "args", args);
    if (o && *phase == 'i')
        json_object_set_new(o, "s", json_string(pid == DEVICES_PID && !tid ? "g" : "t"));
    json_decref(args);
    write_event(t, o);
}

static void write_span(struct gn_timeline *t, const char *name, int pid, int tid, uint64_t from_ns,
                       uint64_t to_ns, json_t *args)
{
    write_mark(t, "B", name, pid, tid, from_ns, args);
    write_mark(t, "E", name, pid, tid, to_ns, NULL);
}

/* ---- vGPUs and their tracks */

static struct vgpu *vgpu_of(struct gn_timeline *t, uint32_t id)
{
    for (uint32_t i = t->n_vgpus; i-- > 0;)
        if (t->vgpus[i].id == id)
            return &t->vgpus[i];
    struct vgpu *grown = realloc(t->vgpus, (t->n_vgpus + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    t->vgpus = grown;
    grown[t->n_vgpus] = (struct vgpu){.id = id};
    return &grown[t->n_vgpus++];
}

static int pid_of(const struct gn_timeline *t, const struct vgpu *v)
{
    return FIRST_PID + (int)(v - t->vgpus);
}

static void label_of(const struct vgpu *v, char *to, size_t n)
{
    snprintf(to, n, "%08x%s%s%s%s", v->id, v->program[0] ? " " : "", v->program,
             v->tenant[0] ? ", " : "", v->tenant);
}

/* The track gets its name with its first event. */
static struct turn *turn_of(struct gn_timeline *t, struct vgpu *v, uint16_t device)
{
    char name[300];
    for (uint32_t i = 0; i < v->n_turns; i++)
        if (v->turns[i].device == device)
            return &v->turns[i];
    struct turn *grown =
        device < MAX_DEVICES ? realloc(v->turns, (v->n_turns + 1) * sizeof *grown) : NULL;
    if (!grown)
        return NULL;
    v->turns = grown;
    grown[v->n_turns] = (struct turn){.device = device};
    struct device *d = &t->devices[device];
    snprintf(name, sizeof name, "device %u %s", device, d->name ? d->name : "");
    write_name(t, "thread_name", pid_of(t, v), 1 + device, name);
    if (!d->named) {
        write_name(t, "thread_name", DEVICES_PID, 1 + device, name);
        d->named = true;
    }
    return &v->turns[v->n_turns++];
}

/* ---- turns */

/* Ends the current state and writes it as a span. */
static void leave_state(struct gn_timeline *t, struct vgpu *v, struct turn *u, uint64_t now_ns,
                        const struct gn_trace_event *back)
{
    char label[256];
    struct device *d = &t->devices[u->device];
    if (u->state == WANTED)
        write_span(t, "wanted", pid_of(t, v), 1 + u->device, u->since_ns, now_ns, NULL);
    if (u->state == HELD) {
        json_t *args =
            json_pack("{s:s,s:I}", "tenant", v->tenant, "slice_ns", (json_int_t)u->slice_ns);
        if (back && args)
            json_object_set_new(args, "charged_ns", json_integer((json_int_t)back->a));
        label_of(v, label, sizeof label);
        write_span(t, "held", pid_of(t, v), 1 + u->device, u->since_ns, now_ns, json_incref(args));
        write_span(t, label, DEVICES_PID, 1 + u->device, u->since_ns, now_ns, args);
        d->holder = NO_VGPU;
    }
    u->state = IDLE;
}

static void enter_state(struct gn_timeline *t, struct vgpu *v, struct turn *u, enum state state,
                        uint64_t now_ns)
{
    struct device *d = &t->devices[u->device];
    if (state == HELD) {
        /* The event that ended the holder's turn was lost: end it now. */
        if (d->holder != NO_VGPU) {
            struct vgpu *other = &t->vgpus[d->holder];
            for (uint32_t i = 0; i < other->n_turns; i++)
                if (other->turns[i].device == u->device)
                    leave_state(t, other, &other->turns[i], now_ns, NULL);
        }
        d->holder = (uint32_t)(v - t->vgpus);
    }
    u->state = state;
    u->since_ns = now_ns;
}

/*
 * Writes each vGPU's part of the time charged in the period; if nothing was charged, the holder has
 * 100%. `gantry ls` computes shares in the same way.
 */
static void write_shares(struct gn_timeline *t, uint16_t device, uint64_t at_ns)
{
    char name[64], label[256];
    json_t *args = json_object();
    uint64_t all_ns = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < t->n_vgpus; i++) {
            struct vgpu *v = &t->vgpus[i];
            for (uint32_t j = 0; j < v->n_turns; j++) {
                struct turn *u = &v->turns[j];
                if (u->device != device)
                    continue;
                if (pass == 0) {
                    all_ns += u->window_ns;
                    continue;
                }
                label_of(v, label, sizeof label);
                json_object_set_new(args, label,
                                    json_real(all_ns ? 100.0 * (double)u->window_ns / (double)all_ns
                                              : u->state == HELD ? 100
                                                                 : 0));
                u->window_ns = 0;
            }
        }
    }
    snprintf(name, sizeof name, "share of device %u, %%", device);
    write_mark(t, "C", name, DEVICES_PID, 1 + device, at_ns, args);
}

static void pass_windows(struct gn_timeline *t, uint16_t device, uint64_t now_ns)
{
    struct device *d = &t->devices[device];
    if (!d->window_ends_ns)
        d->window_ends_ns = t->began_ns + WINDOW_NS;
    if (now_ns < d->window_ends_ns)
        return;
    write_shares(t, device, d->window_ends_ns);
    /* Skip the periods without events. */
    d->window_ends_ns += (now_ns - d->window_ends_ns) / WINDOW_NS * WINDOW_NS + WINDOW_NS;
}

/* On a track of its own, which appears with the first swap. `state` NULL: it ends. */
static void enter_memory_state(struct gn_timeline *t, struct vgpu *v, struct turn *u,
                               const char *state, uint64_t now_ns)
{
    const int track = 1 + MAX_DEVICES + u->device;
    char name[64];
    snprintf(name, sizeof name, "memory on device %u", u->device);
    if (state && !u->memory)
        write_name(t, "thread_name", pid_of(t, v), track, name);
    if (u->memory)
        write_span(t, u->memory, pid_of(t, v), track, u->memory_since_ns, now_ns, NULL);
    u->memory = state;
    u->memory_since_ns = now_ns;
}

static void take_turn_event(struct gn_timeline *t, const struct gn_trace_event *e)
{
    struct vgpu *v = vgpu_of(t, e->vgpu);
    struct turn *u = v ? turn_of(t, v, e->device) : NULL;
    if (!u)
        return;
    pass_windows(t, e->device, e->at_ns);
    switch (e->kind) {
    case GN_TRACE_WANT:
        leave_state(t, v, u, e->at_ns, NULL);
        enter_state(t, v, u, WANTED, e->at_ns);
        break;
    case GN_TRACE_LEAVE:
        leave_state(t, v, u, e->at_ns, NULL);
        break;
    case GN_TRACE_GRANT:
        leave_state(t, v, u, e->at_ns, NULL);
        enter_state(t, v, u, HELD, e->at_ns);
        u->slice_ns = e->a;
        break;
    case GN_TRACE_BACK:
        leave_state(t, v, u, e->at_ns, e);
        u->window_ns += e->a;
        if (e->b)
            enter_state(t, v, u, WANTED, e->at_ns);
        break;
    case GN_TRACE_PREEMPT:
    case GN_TRACE_CLEAR:
        write_mark(t, "i", gn_trace_kinds[e->kind].name, pid_of(t, v), 1 + e->device, e->at_ns,
                   NULL);
        break;
    case GN_TRACE_SWAP_OUT:
    case GN_TRACE_EVICTED:
    case GN_TRACE_SWAP_IN:
        enter_memory_state(t, v, u, gn_trace_kinds[e->kind].name, e->at_ns);
        break;
    case GN_TRACE_RESIDENT:
        enter_memory_state(t, v, u, NULL, e->at_ns);
        break;
    default:
        break;
    }
}

static void leave_all(struct gn_timeline *t, struct vgpu *v, struct turn *u, uint64_t now_ns)
{
    leave_state(t, v, u, now_ns, NULL);
    enter_memory_state(t, v, u, NULL, now_ns);
}

static void take_event(struct gn_timeline *t, const struct gn_trace_event *e)
{
    char label[256], text[GN_TRACE_TEXT_BYTES + 16];
    if (e->at_ns > t->last_ns)
        t->last_ns = e->at_ns;
    if (gn_trace_kinds[e->kind].on_device) {
        take_turn_event(t, e);
        return;
    }
    if (e->kind == GN_TRACE_TENANT || e->kind == GN_TRACE_POLICY) {
        snprintf(text, sizeof text, "%s %.*s", gn_trace_kinds[e->kind].name, (int)e->n_text,
                 e->text);
        write_mark(t, "i", text, DEVICES_PID, 0, e->at_ns, NULL);
        return;
    }
    struct vgpu *v = vgpu_of(t, e->vgpu);
    if (!v)
        return;
    if (e->kind == GN_TRACE_ATTACH) {
        const char *blank = memchr(e->text, ' ', e->n_text);
        gn_trace_event_tenant(e, v->tenant);
        snprintf(v->program, sizeof v->program, "%.*s",
                 blank ? (int)(e->text + e->n_text - blank - 1) : 0, blank ? blank + 1 : "");
        snprintf(label, sizeof label, "vGPU ");
        label_of(v, label + 5, sizeof label - 5);
        write_name(t, "process_name", pid_of(t, v), 0, label);
    }
    write_mark(t, "i", gn_trace_kinds[e->kind].name, pid_of(t, v), 0, e->at_ns, NULL);
    for (uint32_t i = 0; e->kind == GN_TRACE_END && i < v->n_turns; i++)
        leave_all(t, v, &v->turns[i], e->at_ns);
}

/* ---- interface */

struct gn_timeline *gn_timeline_begin(FILE *to, uint64_t began_ns, const json_t *devices)
{
    struct gn_timeline *t = calloc(1, sizeof *t);
    const json_t *o;
    size_t i;
    if (!t)
        return NULL;
    t->to = to;
    t->began_ns = t->last_ns = began_ns;
    for (i = 0; i < MAX_DEVICES; i++)
        t->devices[i].holder = NO_VGPU;
    json_array_foreach(devices, i, o)
    {
        const json_int_t index = json_integer_value(json_object_get(o, "index"));
        const char *name = json_string_value(json_object_get(o, "name"));
        if (index >= 0 && index < MAX_DEVICES && name && !t->devices[index].name)
            t->devices[index].name = strdup(name);
    }
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", to);
    write_name(t, "process_name", DEVICES_PID, 0, "devices: whose turn it is");
    return t;
}

int gn_timeline_add(struct gn_timeline *t, const struct gn_trace_event *event)
{
    if (t->n_events == t->room_events) {
        const size_t room = t->room_events ? 2 * t->room_events : 1024;
        struct pending *grown = realloc(t->events, room * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        t->events = grown;
        t->room_events = room;
    }
    t->events[t->n_events++] = (struct pending){.event = *event, .number = t->n_added++};
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct pending *x = a, *y = b;
    if (x->event.at_ns != y->event.at_ns)
        return x->event.at_ns < y->event.at_ns ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

void gn_timeline_settle(struct gn_timeline *t, uint64_t until_ns)
{
    size_t n = 0;
    if (t->n_events)
        qsort(t->events, t->n_events, sizeof *t->events, by_time);
    while (n < t->n_events && t->events[n].event.at_ns <= until_ns)
        take_event(t, &t->events[n++].event);
    t->n_events -= n;
    if (n)
        memmove(t->events, t->events + n, t->n_events * sizeof *t->events);
}

void gn_timeline_lost(struct gn_timeline *t, uint64_t n, uint64_t at_ns)
{
    char text[64];
    t->n_lost += n;
    snprintf(text, sizeof text, "%llu events were lost", (unsigned long long)n);
    write_mark(t, "i", text, DEVICES_PID, 0, at_ns, NULL);
}

void gn_timeline_end(struct gn_timeline *t, uint64_t now_ns)
{
    gn_timeline_settle(t, UINT64_MAX);
    const uint64_t end_ns = now_ns > t->last_ns ? now_ns : t->last_ns;
    for (uint32_t i = 0; i < t->n_vgpus; i++) {
        for (uint32_t j = 0; j < t->vgpus[i].n_turns; j++)
            leave_all(t, &t->vgpus[i], &t->vgpus[i].turns[j], end_ns);
    }
    fprintf(t->to, "\n],\"otherData\":{\"made_by\":\"gantry trace\",\"lost\":%llu}}\n",
            (unsigned long long)t->n_lost);
    for (uint32_t i = 0; i < t->n_vgpus; i++)
        free(t->vgpus[i].turns);
    for (size_t i = 0; i < MAX_DEVICES; i++)
        free(t->devices[i].name);
    free(t->vgpus);
    free(t->events);
    free(t);
}
