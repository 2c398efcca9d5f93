/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a vGPU from a stream: serves its records again, in their order, and keeps the objects that
 * were live. Objects sent in advance may be removed, and more may follow. Run once, by a thread of
 * a worker that has nothing yet, behind a closed gate. The stream is not trusted: a record is
 * decoded by the code that decodes a program's request.
 */
#include "vgpu/migrate/retained.h"
#include "vgpu/migrate/route.h"
#include "vgpu/migrate/save.h"
#include "vgpu/migrate/delta_base.h"

#include "base/clock.h"
#include "base/fault.h"
#include "link/frame.h"
#include "link/worker_wire.h"
#include "stream/known.h"
#include "vgpu/core/build_includes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct load {
    struct gn_vgpu *v;
    struct gn_known_ids live, served; /* handles, with their kinds; serials */
    struct gn_saved_retained *kept;   /* of the live objects: those that only the commands need */
    uint32_t n_kept;
    uint64_t last_command;
    int64_t clock_ahead_ns; /* this machine's clock minus the source's */
    bool devices_known;
};

/* The request has not had the result of its record. */
static int fail_record(const struct gn_request *r, int32_t recorded, struct gn_error *err)
{
    const uint64_t mib = (r->lacks_bytes >> 20) + (r->lacks_bytes % (1 << 20) != 0);
    if (r->lacks_bytes)
        return gn_fail(err, ENOMEM, "try again when others need less; gantryd's log has the reason",
                       "there is no room on the device for %llu MiB of its memory",
                       (unsigned long long)mib);
    if (r->result == r->vgpu->api->no_room)
        return gn_fail(err, ENOMEM, "try again when others use less of the device",
                       "the driver has no room on the device for all of its memory");
    return gn_fail(err, ENODEV, NULL,
                   "the driver cannot make an object again: %s returns %d here and returned %d",
                   r->class->name, r->result, recorded);
}

static int load_record(struct load *l, const struct gn_stream_entry *e, struct gn_error *err)
{
    struct gn_vgpu *v = l->v;
    struct gn_saved_record state;
    struct gn_stream_part part;
    if (!e->id || gn_known_find(&l->served, e->id) ||
        !gn_stream_copy_part(e, GN_PART_STATE, &state, sizeof state) ||
        !gn_stream_find_part(e, GN_PART_REQUEST, &part) || part.n > UINT32_MAX ||
        state.op >= v->api->n_requests)
        return gn_fail(err, EBADMSG, NULL, "a record is malformed");
    if (gn_known_put(&l->served, e->id, 1))
        return gn_fail(err, ENOMEM, NULL, "no memory left for the records");
    const struct gn_request_class *class = &v->api->requests[state.op];
    struct gn_msg msg;
    if (!class->name || !class->serve || part.n < class->fixed_bytes || part.n < sizeof msg)
        return gn_fail(err, EBADMSG, NULL, "a record is not of a request that makes an object");
    memcpy(&msg, part.bytes, sizeof msg);
    struct gn_request *r = msg.op == state.op ? malloc(sizeof *r) : NULL;
    if (!r)
        return gn_fail(err, msg.op == state.op ? ENOMEM : EBADMSG, NULL, "a record cannot be read");
    gn_request_init(r, v);
    r->class = class;
    r->off_ring = true;
    r->anew = true;
    r->whole = part.bytes;
    r->n_bytes = (uint32_t)part.n;
    memcpy(r->bytes, part.bytes, part.n < sizeof r->bytes ? part.n : sizeof r->bytes);
    int rc = gn_build_includes_load(e, &r->files);
    if (!rc)
        class->serve(v, r);
    if (rc)
        gn_fail(err, -rc, NULL,
                rc == -ENOMEM ? "no memory left for a program's files"
                              : "a program's files are malformed");
    else if (atomic_load_explicit(&v->fault, memory_order_relaxed) || r->fault)
        rc = gn_fail(err, EBADMSG, NULL, "a record of %s is malformed", class->name);
    else if (r->result != state.result)
        rc = fail_record(r, state.result, err);
    gn_request_fini(r);
    free(r);
    return rc;
}

static int load_indices(struct load *l, const struct gn_stream_entry *e, struct gn_error *err)
{
    struct gn_stream_part part;
    if (!gn_stream_find_part(e, GN_PART_STATE, &part) || part.n % 4 ||
        part.n / 4 > GN_OBJECT_CHUNKS * GN_OBJECT_CHUNK)
        return gn_fail(err, EBADMSG, NULL, "the table of handles is malformed");
    const uint32_t *generations = part.bytes;
    for (uint32_t i = 0; i < part.n / 4; i++)
        if (generations[i] && gn_object_index_used(l->v, i, generations[i]))
            return gn_fail(err, ENOMEM, NULL, "no memory left for the table of handles");
    return 0;
}

static int load_segment(struct load *l, const struct gn_stream_entry *e, struct gn_error *err)
{
    uint64_t bytes;
    /* the program provides them */
    if (l->v->boot->route->session_from_program)
        return 0;
    if (!gn_stream_copy_part(e, GN_PART_STATE, &bytes, sizeof bytes) ||
        l->v->session->add_segment(l->v, e->id, bytes))
        return gn_fail(err, EBADMSG, NULL, "a data segment is malformed");
    return 0;
}

/* A frame of the session of a stopped program on another machine. */
static int load_link(struct load *l, const struct gn_stream_entry *e, struct gn_error *err)
{
    struct gn_saved_link state;
    struct gn_stream_part part;
    if (!gn_stream_copy_part(e, GN_PART_STATE, &state, sizeof state) || state.op > UINT16_MAX ||
        !gn_stream_find_part(e, GN_PART_API, &part) || part.n > GN_FRAME_MAX_PAYLOAD)
        return gn_fail(err, EBADMSG, NULL, "the program's session is malformed");
    const struct gn_frame f = {.op = (uint16_t)state.op,
                               .seq = state.seq,
                               .payload = part.bytes,
                               .n_payload = (uint32_t)part.n};
    const int rc = l->v->boot->file_fd < 0 ? -EOPNOTSUPP : l->v->session->load_frame(l->v, &f);
    if (rc == -EOPNOTSUPP)
        return gn_fail(err, EBADMSG, NULL,
                       "it belongs to a program attached over tcp, and the waiting program is not");
    return rc < 0 ? gn_fail(err, rc == -ENOMEM ? ENOMEM : EBADMSG, NULL,
                            rc == -ENOMEM ? "no memory left for the program's session"
                                          : "the program's session is malformed")
                  : 0;
}

static int load_released(struct load *l, const struct gn_stream_entry *e, struct gn_error *err)
{
    struct gn_stream_part part;
    if (l->kept || !gn_stream_find_part(e, GN_PART_STATE, &part) || !part.n ||
        part.n % sizeof *l->kept || part.n > UINT32_MAX)
        return gn_fail(err, EBADMSG, NULL,
                       "the list of objects kept by pending commands is malformed");
    l->kept = malloc(part.n);
    if (!l->kept)
        return gn_fail(err, ENOMEM, NULL,
                       "no memory left for the objects kept by pending commands");
    memcpy(l->kept, part.bytes, part.n);
    l->n_kept = (uint32_t)(part.n / sizeof *l->kept);
    return 0;
}

static int load_object(struct load *l, const struct gn_stream_entry *e, struct gn_error *err)
{
    bool lie = false;
    int32_t late;
    struct gn_vobject *o =
        e->kind <= UINT16_MAX ? gn_object_get(l->v, e->id, (uint16_t)e->kind, &lie) : NULL;
    if (!o)
        return gn_fail(err, EBADMSG, NULL, "an object has no record that makes it");
    if (e->kind == l->v->api->queue_kind && o->detail &&
        gn_stream_copy_part(e, GN_PART_API, &late, sizeof late))
        ((struct gn_vqueue *)o->detail)->late_error = late;
    int rc =
        e->kind == l->v->api->queue_kind ? 0 : l->v->api->contents->check_object(l->v, o, e, err);
    gn_object_unref(o);
    if (rc)
        return rc;
    return gn_known_put(&l->live, e->id, e->kind)
               ? gn_fail(err, ENOMEM, NULL, "no memory left for the objects")
               : 0;
}

/* For memories that are retained here only changed pages come. */
static int load_memories(struct load *l, struct gn_stream_reader *r,
                         const struct gn_stream_section *s, struct gn_error *err)
{
    const struct gn_vgpu_contents *contents = l->v->api->contents;
    const uint64_t number = l->v->boot->kept;
    int rc = contents->load(l->v, r, s, err);
    GN_FAULT("load-kept");
    for (uint32_t i = 0; i < s->n_memories && !rc; i++) {
        const struct gn_stream_memory *m = &s->memories[i];
        if (!(m->flags & GN_STREAM_MEMORY_KEPT))
            continue;
        const void *from = number ? gn_retained_find(number, m->id, m->bytes) : NULL;
        rc = from ? contents->fill(l->v, m->id, from, err)
                  : gn_fail(err, EBADMSG, NULL,
                            "the stream relies on retained contents that are not here");
        gn_retained_drop_one(number, m->id);
    }
    return rc;
}

/* The program has released it during the transfer. */
static int load_gone(struct load *l, const struct gn_stream_section *s, struct gn_error *err)
{
    GN_FAULT("load-gone");
    for (uint32_t i = 0; i < s->n_gone; i++) {
        const uint64_t id = s->gone[i].id;
        if (s->gone[i].what == GN_STREAM_GONE_MEMORY) {
            if (!l->v->api->contents->gone(l->v, id))
                return gn_fail(err, EBADMSG, NULL, "the stream removes contents that never came");
            continue;
        }
        const uint32_t *kind = gn_known_find(&l->live, id);
        if (!kind)
            return gn_fail(err, EBADMSG, NULL, "the stream removes an object that never came");
        gn_object_remove(l->v, id, (uint16_t)*kind);
        gn_known_remove(&l->live, id);
    }
    return 0;
}

/* Nothing is made before the devices are known to be compatible. */
static int load_device(struct load *l, const struct gn_stream_entry *e, struct gn_error *err)
{
    bool last = false, others = false;
    GN_FAULT("load-device");
    if (l->devices_known)
        return gn_fail(err, EBADMSG, NULL, "the stream has more devices than the vGPU");
    int rc = l->v->api->contents->check_device(l->v, e, &last, err);
    if (rc || !last)
        return rc;
    l->devices_known = true;
    rc = l->v->api->contents->judge_devices(l->v, &others, err);
    if (!rc)
        gn_vgpu_ack(l->v, GN_WORKER_HAND_FITS, others);
    return rc;
}

static int load_entry(struct load *l, enum gn_stream_table table, const struct gn_stream_entry *e,
                      struct gn_error *err)
{
    GN_FAULT("load-entry");
    switch (table) {
    case GN_STREAM_SESSION:
        if (e->kind == GN_SAVED_RECORD)
            return load_record(l, e, err);
        if (e->kind == GN_SAVED_INDICES)
            return load_indices(l, e, err);
        if (e->kind == GN_SAVED_SEGMENT)
            return load_segment(l, e, err);
        if (e->kind == GN_SAVED_RETAINED)
            return load_released(l, e, err);
        if (e->kind == GN_SAVED_LINK)
            return load_link(l, e, err);
        if (e->kind == GN_STREAM_SESSION_STOP)
            return 0; /* gantryd has read it */
        return gn_fail(err, EBADMSG, NULL, "an entry is of an unknown kind");
    case GN_STREAM_DEVICES:
        return load_device(l, e, err);
    case GN_STREAM_OBJECTS:
        return load_object(l, e, err);
    case GN_STREAM_EVENTS:
    case GN_STREAM_CALLS:
        return gn_event_restore(l->v, e) ? gn_fail(err, EBADMSG, NULL, "an event is malformed") : 0;
    case GN_STREAM_COMMANDS:
        if (e->id <= l->last_command)
            return gn_fail(err, EBADMSG, NULL, "the pending commands are out of order");
        l->last_command = e->id;
        return gn_command_restore(l->v, e, l->clock_ahead_ns)
                   ? gn_fail(err, EBADMSG, NULL,
                             "a pending command is malformed, or cannot continue here")
                   : 0;
    default:
        return 0; /* for display */
    }
}

/* Releases the objects to which the program has no handle. */
static int release_kept(struct load *l, struct gn_error *err)
{
    for (uint32_t i = 0; i < l->n_kept; i++) {
        const struct gn_saved_retained *k = &l->kept[i];
        bool lie = false;
        struct gn_vobject *o = k->kind <= UINT16_MAX && gn_known_find(&l->live, k->id)
                                   ? gn_object_get(l->v, k->id, (uint16_t)k->kind, &lie)
                                   : NULL;
        const bool good = o && (k->event == GN_NO_EVENT || gn_event_at(l->v->events, k->event));
        if (good)
            l->v->api->contents->leave_by(o, k->event);
        gn_object_unref(o);
        gn_known_remove(&l->live, k->id);
        if (!good)
            return gn_fail(err, EBADMSG, NULL, "pending commands keep an object that never came");
    }
    return 0;
}

/* Releases the objects that were needed only to make others. */
static void release_unneeded(struct load *l)
{
    struct gn_vobject *o;
    for (uint32_t at = 0; (o = gn_object_next(l->v, &at)); at++)
        if (o->records && !o->given && !gn_known_find(&l->live, o->id))
            gn_object_remove(l->v, o->id, o->kind);
}

int gn_vgpu_load(struct gn_vgpu *v, struct gn_stream_reader *r, struct gn_error *err)
{
    struct load l = {.v = v};
    struct gn_stream_section s;
    struct gn_stream_entry e;
    int rc = 0;
    err->what[0] = 0;
    if (!v->api->contents)
        return gn_fail(err, EOPNOTSUPP, NULL, "an interface that cannot be loaded");
    /*
     * The stream was written just now. Workers on one machine share the clock. A file's time is
     * from this machine and in the past, unless the machine was rebooted since.
     */
    const uint64_t now_ns = gn_now_ns(), then_ns = gn_stream_reader_about(r)->monotonic_ns;
    const struct gn_route *route = v->boot->route;
    if (route->copies_memory &&
        (v->boot->file_fd >= 0 ? then_ns > now_ns : !route->continues_stream))
        l.clock_ahead_ns = (int64_t)(now_ns - then_ns);
    do {
        rc = gn_stream_next(r, &s);
        if (!rc && s.what == GN_STREAM_IS_TABLE)
            while (!rc && gn_stream_next_entry(r, &e))
                rc = gn_vgpu_is_called_off(v) ? gn_fail(err, ECANCELED, NULL, "the program ends")
                                              : load_entry(&l, s.table, &e, err);
        else if (!rc && s.what == GN_STREAM_IS_MEMORY)
            rc = load_memories(&l, r, &s, err);
        else if (!rc && s.what == GN_STREAM_IS_PAGES)
            rc = v->api->contents->load(v, r, &s, err);
        /*
         * No acknowledgement for the stop: the source does not need it, and would close the
         * connection with it unread.
         */
        else if (!rc && s.what == GN_STREAM_IS_ROUND && s.round->kind != GN_STREAM_STOP)
            gn_vgpu_ack(v, GN_WORKER_HAND_MADE, s.round->number);
        else if (!rc && s.what == GN_STREAM_IS_ROUND && v->delta_base)
            v->delta_base->stops = true;
        else if (!rc && s.what == GN_STREAM_IS_GONE)
            rc = load_gone(&l, &s, err);
    } while (!rc && s.what != GN_STREAM_IS_COMMIT);
    v->api->contents->loaded(v);
    if (!rc)
        rc = release_kept(&l, err);
    /*
     * A restored session resumes at its saved position, and commands that have all their data
     * continue.
     */
    if (!rc && v->boot->file_fd >= 0 && v->session->loaded(v))
        rc = gn_fail(err, EBADMSG, NULL, "the program's session is missing, or is malformed");
    if (!rc)
        release_unneeded(&l);
    gn_objects_drop_aside(v);
    free(l.kept);
    gn_known_fini(&l.live);
    gn_known_fini(&l.served);
    if (rc && !err->what[0]) {
        const struct gn_error *said = gn_stream_reader_error(r);
        gn_fail(err, -rc, said->fix, "%s",
                said->what[0] ? said->what : "no memory left to load it");
    }
    return rc;
}
