/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a vGPU into a stream, in steps: the state at some moment of a running program, then the
 * changes since, and at last, behind a closed gate, the rest. A step holds the objects that it
 * writes until its end, and records never change, so the program continues meanwhile. Run by the
 * saving thread. It never changes the vGPU.
 */
#include "vgpu/migrate/save.h"

#include "base/array.h"
#include "base/clock.h"
#include "link/frame.h"
#include "link/worker_wire.h"
#include "stream/known.h"
#include "vgpu/core/build_includes.h"
#include "vgpu/migrate/outgoing.h"
#include "vgpu/migrate/route.h"
#include "vgpu/migrate/tcp_session_handover.h"
#include "vgpu/migrate/write_tracking.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY_BYTES  256u /* limit for an entry without its contents */
#define DEVICE_BYTES 65536u

struct gn_save {
    struct gn_vgpu *v;
    struct gn_stream_writer *w;
    const struct gn_worker_save *how;
    struct gn_worker_moved *moved;
    struct gn_outgoing *outgoing;
    struct gn_tcp_handover *session; /* NULL: no session is included */
    uint64_t n_frames;               /* of it, written */
    struct gn_known_ids records,
        objects_announced; /* announced ones: by serial; by id, with the kind */
    struct announced {
        uint64_t id, made_by; /* the serial of its first record */
    } * announced;            /* the announced objects as a list */
    uint32_t n_announced, announced_capacity;
    uint32_t n_rounds, n_steps;
    uint32_t n_segments; /* announced, including the first one, which exists from the start */
    bool follows, settled;
    bool others; /* the destination's devices differ */
    bool file;   /* a checkpoint */
    bool far;    /* the destination has none of the program's memory: the stream lists segments */
    /* of this step; held */
    struct gn_record **now;
    uint32_t n_now;
    struct gn_vobject **objects;
    uint32_t n_objects;
    struct gn_vobject **kept; /* of them, those that only pending commands need */
    uint32_t n_kept;
};

static uint32_t n_indices(const struct gn_vgpu *v)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < GN_OBJECT_CHUNKS; c++)
        for (uint32_t i = 0; v->objects.generations[c] && i < GN_OBJECT_CHUNK; i++)
            if (v->objects.generations[c][i])
                n = c * GN_OBJECT_CHUNK + i + 1;
    return n;
}

/*
 * Writes a session entry that has only a state. Here and below: a failure of the writer sticks, so
 * the entry's end returns that of its parts, too.
 */
static int save_state(struct gn_stream_writer *w, uint64_t id, uint32_t kind, const void *state,
                      uint64_t bytes)
{
    (void)gn_stream_entry_begin(w, GN_STREAM_SESSION, id, kind, NULL, 0);
    (void)gn_stream_part(w, GN_PART_STATE, state, bytes);
    return gn_stream_entry_end(w);
}

static int save_indices(struct gn_vgpu *v, struct gn_stream_writer *w, uint32_t n)
{
    uint32_t *generations = calloc(n ? n : 1, sizeof *generations);
    if (!generations)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        if (v->objects.generations[i / GN_OBJECT_CHUNK])
            generations[i] = v->objects.generations[i / GN_OBJECT_CHUNK][i % GN_OBJECT_CHUNK];
    int rc = save_state(w, UINT64_MAX, GN_SAVED_INDICES, generations, n * sizeof *generations);
    free(generations);
    return rc;
}

static int save_record(struct gn_stream_writer *w, const struct gn_record *r)
{
    const struct gn_saved_record state = {.op = r->op, .result = r->result};
    (void)gn_stream_entry_begin(w, GN_STREAM_SESSION, r->serial, GN_SAVED_RECORD, NULL, 0);
    (void)gn_stream_part(w, GN_PART_STATE, &state, sizeof state);
    (void)gn_stream_part(w, GN_PART_REQUEST, r->bytes, r->n_bytes);
    (void)gn_build_includes_save(r->files, w);
    return gn_stream_entry_end(w);
}

static int save_released(const struct gn_save *s)
{
    if (!s->n_kept)
        return 0;
    struct gn_saved_retained *all = calloc(s->n_kept, sizeof *all);
    if (!all)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->n_kept; i++)
        all[i] = (struct gn_saved_retained){.id = s->kept[i]->id,
                                            .kind = s->kept[i]->kind,
                                            .event = s->v->api->contents->leaving(s->kept[i])};
    int rc = save_state(s->w, UINT64_MAX - 2, GN_SAVED_RETAINED, all, s->n_kept * sizeof *all);
    free(all);
    return rc;
}

static int save_object(struct gn_vgpu *v, struct gn_stream_writer *w, const struct gn_vobject *o,
                       bool quiesced)
{
    const struct gn_vqueue *q = o->kind == v->api->queue_kind ? o->detail : NULL;
    int rc = gn_stream_entry_begin(w, GN_STREAM_OBJECTS, o->id, o->kind, NULL, 0);
    if (q && quiesced)
        rc = gn_stream_part(w, GN_PART_API, &q->late_error, sizeof q->late_error);
    else if (!rc && o->kind != v->api->queue_kind)
        rc = v->api->contents->save_object(v, w, o);
    return rc ? rc : gn_stream_entry_end(w);
}

/* ---- collecting the state */

static void release_step(struct gn_save *s)
{
    gn_records_put(s->v, s->now, s->n_now);
    gn_objects_put(s->objects, s->n_objects);
    gn_objects_put(s->kept, s->n_kept);
    s->now = NULL;
    s->objects = s->kept = NULL;
    s->n_now = s->n_objects = s->n_kept = 0;
}

static int collect_state(struct gn_save *s, struct gn_error *err)
{
    err->what[0] = 0;
    release_step(s);
    int rc = gn_released_objects_gather(s->v, &s->kept, &s->n_kept);
    if (!rc)
        rc = gn_records_gather(s->v, s->kept, s->n_kept, &s->now, &s->n_now, &s->objects,
                               &s->n_objects);
    if (rc == -ENODATA)
        return gn_fail(
            err, EOPNOTSUPP, NULL,
            "a program's included files are too large to keep, or there was no memory for them");
    if (rc)
        return gn_fail(err, -rc, NULL, "no memory left to collect its objects");
    const struct gn_vgpu_contents *contents = s->v->api->contents;
    const char *obstacle = contents ? contents->obstacle(s->v, s->objects, s->n_objects)
                                    : "an interface that cannot be saved";
    return obstacle ? gn_fail(err, EOPNOTSUPP, NULL, "it uses %s", obstacle)
                    : gn_outgoing_look(s->outgoing, s->objects, s->n_objects, err);
}

/* ---- writing the state */

static int by_id(const void *a, const void *b)
{
    const struct gn_vobject *const *x = a, *const *y = b;
    return (*x)->id < (*y)->id ? -1 : (*x)->id > (*y)->id;
}

static bool is_live(const struct gn_save *s, uint64_t id)
{
    const struct gn_vobject key = {.id = id}, *at = &key;
    return s->n_objects && bsearch(&at, s->objects, s->n_objects, sizeof at, by_id);
}

static int by_serial(const void *serial, const void *record)
{
    const uint64_t x = *(const uint64_t *)serial, y = (*(struct gn_record *const *)record)->serial;
    return x < y ? -1 : x > y;
}

/* True if a live object needs the record that made it. Records are sorted by serial. */
static bool is_record_needed(const struct gn_save *s, uint64_t made_by)
{
    return s->n_now && bsearch(&made_by, s->now, s->n_now, sizeof(struct gn_record *), by_serial);
}

/* It is gone, but others were made from it. */
static bool is_still_needed(const struct gn_save *s, const struct announced *t)
{
    return !is_live(s, t->id) && is_record_needed(s, t->made_by);
}

/* Adds the entries that come only behind a closed gate, and the bytes of their variable parts. */
static void add_quiesced(const struct gn_save *s, uint32_t n_index, uint64_t *n, uint64_t *bytes)
{
    struct gn_vgpu *v = s->v;
    *n += 2 + (s->file ? 2 : 0); /* the indices, the released objects; the owner, the stop */
    *bytes += (uint64_t)n_index * 4 + s->n_kept * sizeof(struct gn_saved_retained) +
              (s->file ? (uint64_t)v->n_devices * DEVICE_BYTES : 0) +
              (s->session ? gn_tcp_handover_size(s->session, ENTRY_BYTES) : 0);
    pthread_mutex_lock(&v->lock);
    for (uint32_t c = 0; c < GN_ARRAY_SIZE(v->event_chunks); c++)
        for (uint32_t i = 0; v->event_chunks[c] && i < GN_OBJECT_CHUNK; i++) {
            const struct gn_vevent *e = &v->event_chunks[c][i];
            *n += e->state == GN_EVENT_PENDING || e->error;
            for (const struct gn_list *l = e->watches.next; l != &e->watches; l = l->next)
                (*n)++;
        }
    for (uint32_t i = 0; i < v->n_devices; i++)
        gn_list_for_each(q, &v->devices[i].queues, struct gn_vqueue, link)
            gn_list_for_each(c, &q->pending, const struct gn_command, link)
        {
            (*n)++;
            *bytes += c->n_bytes + (uint64_t)c->n_waits * 4;
            for (uint32_t b = 0; b < c->n_blobs; b++)
                *bytes += c->blob_bytes[b] + 8;
        }
    pthread_mutex_unlock(&v->lock);
}

/* Announces upper limits for everything written after this step. */
static int announce_limits(struct gn_save *s, bool quiesced, uint32_t n_index)
{
    const struct gn_outgoing_size contents = gn_outgoing_size(s->outgoing);
    struct gn_stream_announce most = {.memory_bytes = contents.bytes,
                                      .entries_bytes = gn_stream_writer_counts(s->w)->entries_bytes,
                                      .n_objects = s->n_objects,
                                      .n_memories = contents.n,
                                      .n_rounds = s->n_rounds};
    uint64_t n = s->n_objects, bytes = 0; /* entries to come, and their variable parts */
    for (uint32_t i = 0; i < s->n_announced; i++)
        most.n_objects += is_still_needed(s, &s->announced[i]);
    for (uint32_t i = 0; i < s->n_now; i++) {
        if (gn_known_find(&s->records, s->now[i]->serial))
            continue;
        n++;
        bytes += s->now[i]->n_bytes + gn_build_includes_bytes(s->now[i]->files);
    }
    n += s->others ? s->n_announced : 0;
    n += s->far ? GN_MAX_SEGMENTS : 0;
    if (quiesced)
        add_quiesced(s, n_index, &n, &bytes);
    most.entries_bytes += n * ENTRY_BYTES + bytes;
    return gn_stream_announce(s->w, &most);
}

static int write_devices(const struct gn_save *s)
{
    return s->v->api->contents->save_devices(s->v, s->w, s->objects, s->n_objects, s->now,
                                             s->n_now);
}

/* Writes the owner, the devices, and the stopped program. */
static int write_description(struct gn_save *s)
{
    struct gn_vgpu *v = s->v;
    struct gn_stream_writer *w = s->w;
    pthread_mutex_lock(&v->lease.lock);
    const struct gn_stream_tenant_state state = {.weight = v->boot->weight,
                                                 .memory_limit_bytes = v->boot->memory_limit_bytes,
                                                 .memory_bytes = v->lease.used_bytes};
    pthread_mutex_unlock(&v->lease.lock);
    (void)gn_stream_entry_begin(w, GN_STREAM_TENANT, s->how->vgpu_id, 0, NULL, 0);
    (void)gn_stream_part(w, GN_PART_STATE, &state, sizeof state);
    (void)gn_stream_part_text(w, GN_PART_NAME, v->boot->tenant);
    (void)gn_stream_entry_end(w);
    const int rc = write_devices(s);
    if (rc || !(s->how->flags & GN_WORKER_SAVE_STOP))
        return rc;
    struct gn_stream_stop stop = {.ring_at = v->ring.head,
                                  .n_segments =
                                      atomic_load_explicit(&v->n_segments, memory_order_acquire)};
    _Static_assert(sizeof stop.key == sizeof s->how->key, "a stop's key");
    memcpy(stop.key, s->how->key, sizeof stop.key);
    return save_state(w, UINT64_MAX - 1, GN_STREAM_SESSION_STOP, &stop, sizeof stop);
}

/* Call it before anything that may lie in a segment. */
static int write_segments(struct gn_save *s)
{
    struct gn_vgpu *v = s->v;
    const uint32_t n = atomic_load_explicit(&v->n_segments, memory_order_acquire);
    int rc = 0;
    for (; s->far && s->n_segments < n && !rc; s->n_segments++) {
        const uint64_t bytes = v->segments[s->n_segments].bytes;
        rc = save_state(s->w, s->n_segments, GN_SAVED_SEGMENT, &bytes, sizeof bytes);
    }
    return rc;
}

static int write_frame(void *ctx, const struct gn_frame *f)
{
    struct gn_save *s = ctx;
    const struct gn_saved_link state = {.op = f->op, .seq = f->seq};
    (void)gn_stream_entry_begin(s->w, GN_STREAM_SESSION, s->n_frames++, GN_SAVED_LINK, NULL, 0);
    (void)gn_stream_part(s->w, GN_PART_STATE, &state, sizeof state);
    (void)gn_stream_part(s->w, GN_PART_API, f->payload, f->n_payload);
    return gn_stream_entry_end(s->w);
}

/*
 * Writes removed objects before new ones: an index may have been reused, and a program cannot be
 * rebuilt while it has kernels. But an object from which others were made stays as long as records
 * may name it: it is removed when no more records come.
 */
static int write_gone(struct gn_save *s, bool lingering_too)
{
    struct gn_stream_gone *gone = calloc(s->n_announced ? s->n_announced : 1, sizeof *gone);
    uint32_t n = 0, left = 0;
    if (!gone)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->n_announced; i++) {
        const struct announced t = s->announced[i];
        if (is_live(s, t.id) || (!lingering_too && is_still_needed(s, &t))) {
            s->announced[left++] = t;
            continue;
        }
        gn_known_remove(&s->objects_announced, t.id);
        gone[n++] = (struct gn_stream_gone){.id = t.id, .what = GN_STREAM_GONE_OBJECT};
    }
    s->n_announced = left;
    const int rc = gn_stream_put_gone(s->w, gone, n);
    free(gone);
    return rc;
}

static int write_records(struct gn_save *s)
{
    int rc = 0;
    for (uint32_t i = 0; i < s->n_now && !rc; i++) {
        if (gn_known_find(&s->records, s->now[i]->serial))
            continue;
        rc = save_record(s->w, s->now[i]);
        if (!rc)
            rc = gn_known_put(&s->records, s->now[i]->serial, 1);
    }
    return rc;
}

static int note_announced(struct gn_save *s, const struct gn_vobject *o)
{
    struct announced *announced =
        gn_array_reserve(s->announced, s->n_announced, &s->announced_capacity, sizeof *announced);
    if (!announced)
        return -ENOMEM;
    s->announced = announced;
    s->announced[s->n_announced++] = (struct announced){o->id, gn_object_made_by(o)};
    return gn_known_put(&s->objects_announced, o->id, o->kind);
}

static int write_objects(struct gn_save *s, bool quiesced)
{
    int rc = 0;
    for (uint32_t i = 0; i < s->n_objects && !rc; i++) {
        const struct gn_vobject *o = s->objects[i];
        const bool known = gn_known_find(&s->objects_announced, o->id);
        if (!known)
            rc = note_announced(s, o);
        /*
         * A queue's late error is written at the end. If the devices differ, the destination also
         * has to know how objects were used meanwhile.
         */
        if (!rc && (!known || (quiesced && (s->others || o->kind == s->v->api->queue_kind))))
            rc = save_object(s->v, s->w, o, quiesced);
    }
    return rc;
}

/* ---- steps */

static int end_step(struct gn_save *s, int rc, struct gn_error *err)
{
    release_step(s);
    if (rc && !err->what[0]) {
        const struct gn_error *said = gn_stream_writer_error(s->w);
        gn_fail(err, -rc, said->fix, "%s",
                said->what[0] ? said->what : "no memory left to save it");
    }
    return rc;
}

int gn_save_new(struct gn_vgpu *v, struct gn_stream_writer *w, const struct gn_worker_save *how,
                struct gn_worker_moved *moved, struct gn_save **ret, struct gn_error *err)
{
    /* Contents in the program's memory stay there if the program waits for a restore. */
    const bool file = how->flags & GN_WORKER_SAVE_FILE,
               copy = file && !(how->flags & GN_WORKER_SAVE_STOP);
    struct gn_save *s = calloc(1, sizeof *s);
    if (!s)
        return gn_fail(err, ENOMEM, NULL, "no memory left to save it");
    s->v = v;
    s->w = w;
    s->how = how;
    s->moved = moved;
    s->n_rounds = how->n_ahead ? how->n_ahead + GN_SAVE_MORE + 1 : 1;
    s->n_segments = 1;
    s->file = file;
    s->far = gn_route(how->route)->copies_memory;
    int rc = gn_outgoing_new(v, w, copy || s->far, &s->outgoing, err);
    if (rc) {
        free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

void gn_save_free(struct gn_save *s)
{
    if (!s)
        return;
    release_step(s);
    if (s->follows)
        gn_vgpu_follow_writes_no_more(s->v);
    gn_outgoing_free(s->outgoing);
    gn_tcp_handover_free(s->session);
    gn_known_fini(&s->records);
    gn_known_fini(&s->objects_announced);
    free(s->announced);
    free(s);
}

int gn_save_begin(struct gn_save *s, struct gn_error *err)
{
    const struct gn_stream_announce most = {
        .entries_bytes = (uint64_t)s->v->n_devices * DEVICE_BYTES, .n_rounds = s->n_rounds};
    int rc = collect_state(s, err);
    if (!rc && !s->file) {
        (void)gn_stream_announce(s->w, &most);
        rc = write_devices(s);
        rc = rc ? rc : gn_stream_flush(s->w);
    }
    return end_step(s, rc, err);
}

/* Writes the present state except contents. quiesced: the gate is closed. */
static int write_state(struct gn_save *s, bool quiesced)
{
    const uint32_t n_index = quiesced ? n_indices(s->v) : 0;
    if (s->n_objects)
        qsort(s->objects, s->n_objects, sizeof(struct gn_vobject *), by_id);
    int rc = announce_limits(s, quiesced, n_index);
    if (!rc && quiesced && s->file)
        rc = write_description(s);
    rc = rc ? rc : write_segments(s);
    if (!rc && s->session)
        rc = gn_tcp_handover_send(s->session, write_frame, s);
    rc = rc ? rc : gn_outgoing_send_gone(s->outgoing);
    rc = rc ? rc : write_gone(s, false);
    rc = rc ? rc : write_records(s);
    if (!rc && quiesced)
        rc = write_gone(s, true);
    if (!rc && quiesced)
        rc = save_indices(s->v, s->w, n_index);
    rc = rc ? rc : write_objects(s, quiesced);
    if (!rc && quiesced)
        rc = save_released(s);
    if (!rc && quiesced)
        rc = gn_events_save(s->v, s->w);
    if (!rc && quiesced)
        rc = gn_commands_save(s->v, s->w);
    return rc ? rc : gn_outgoing_send_new(s->outgoing);
}

int gn_save_answered(struct gn_save *s, bool others, const uint64_t *ids, uint32_t n,
                     struct gn_error *err)
{
    if (n)
        gn_outgoing_goes_back(s->outgoing, ids, n);
    s->others = others;
    if (!others || s->n_rounds > 1)
        return 0;
    /*
     * A round without pages, so that the destination reports when it has made everything before it.
     */
    s->n_rounds = 2;
    int rc = collect_state(s, err);
    rc = rc ? rc : write_state(s, false);
    rc = rc ? rc : gn_stream_round_begin(s->w, GN_STREAM_PRECOPY);
    rc = rc ? rc : gn_stream_flush(s->w);
    s->n_steps++;
    return end_step(s, rc, err);
}

int gn_save_ahead(struct gn_save *s, struct gn_error *err)
{
    const uint64_t began_ns = gn_now_ns(),
                   timeout_ns = s->how->drain_timeout_ms * UINT64_C(1000000);
    struct gn_round_stats stats;
    int rc = 0;
    if (!s->follows) {
        s->follows = true;
        if (gn_vgpu_follow_writes(s->v, timeout_ns))
            rc = gn_fail(err, ETIMEDOUT, "allow more time, or try again later",
                         "the driver's call took longer than the drain timeout");
    }
    if (!rc)
        rc = collect_state(s, err);
    /*
     * Commands given to the driver before tracking began end untracked: wait for them before
     * anything is read.
     */
    if (!rc && !s->settled)
        rc = s->v->api->contents->settle(s->v, s->objects, s->n_objects, timeout_ns, err);
    if (!rc && !s->settled && gn_gate_settle(s->v, timeout_ns))
        rc = gn_fail(err, ETIMEDOUT, "allow more time, or try again later",
                     "the device's work took longer than the drain timeout");
    s->settled = !rc;
    if (!rc)
        rc = write_state(s, false);
    release_step(s);
    s->n_steps++;
    if (!rc)
        rc = gn_outgoing_round(s->outgoing, GN_ROUND_LIVE, s->how->bytes_per_s, &stats, err);
    if (!rc) {
        s->moved->pages_ahead += stats.sent_pages + stats.verify.zero;
        s->moved->ahead_ns += gn_now_ns() - began_ns;
    }
    return end_step(s, rc, err);
}

uint32_t gn_save_n_steps(const struct gn_save *s)
{
    return s->n_steps;
}

bool gn_save_is_behind(struct gn_save *s)
{
    struct gn_record **now;
    uint32_t n;
    bool behind = false;
    if (gn_records_gather(s->v, NULL, 0, &now, &n, NULL, NULL))
        return false;
    for (uint32_t i = 0; i < n && !behind; i++)
        behind =
            s->v->api->requests[now[i]->op].slow && !gn_known_find(&s->records, now[i]->serial);
    gn_records_put(s->v, now, n);
    return behind;
}

int gn_save_rest(struct gn_save *s, struct gn_error *err)
{
    struct gn_round_stats stats;
    int rc = collect_state(s, err);
    if (!rc && s->far && s->how->flags & GN_WORKER_SAVE_STOP &&
        (rc = gn_tcp_handover_new(s->v, gn_route(s->how->route), &s->session)))
        gn_fail(err, -rc, NULL, "cannot hand over the program's session: %s", strerror(-rc));
    rc = rc ? rc : write_state(s, true);
    s->moved->reported_ns = gn_now_ns();
    if (!rc)
        rc = gn_outgoing_round(s->outgoing, GN_ROUND_STOP, 0, &stats, err);
    if (!rc)
        rc = gn_stream_commit(s->w);
    if (!rc) {
        const struct gn_stream_counts *counts = gn_stream_writer_counts(s->w);
        const struct gn_outgoing_size contents = gn_outgoing_size(s->outgoing);
        struct gn_worker_moved *moved = s->moved;
        moved->bytes = counts->stream_bytes;
        moved->pages = counts->pages;
        moved->pages_zero = counts->pages_zero;
        moved->pages_total = contents.pages;
        moved->pages_kept = contents.pages_kept;
        moved->pages_stop = stats.sent_pages + stats.verify.zero;
        moved->sampled = stats.verify.sampled;
        moved->hashed = stats.verify.hashed;
        moved->device = stats.verify.device;
        moved->read_bytes = stats.verify.read_bytes;
    }
    return end_step(s, rc, err);
}
