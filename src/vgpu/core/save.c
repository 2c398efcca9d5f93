/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a quiet vGPU into a stream. Run by the thread that closed the gate; nothing else of the vGPU runs. */
#include "vgpu/core/save.h"

#include "vgpu/core/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY_BYTES 256u /* at most, of an entry without its contents */

/* What has run of it would run again. */
static bool is_halfway(struct gn_vgpu *v)
{
    bool found = false;
    pthread_mutex_lock(&v->lock);
    for (uint32_t i = 0; i < v->n_devices; i++)
        gn_list_for_each(q, &v->devices[i].queues, struct gn_vqueue, link)
            gn_list_for_each(c, &q->pending, const struct gn_command, link)
                found |= c->cut && c->cut->next_group;
    pthread_mutex_unlock(&v->lock);
    return found;
}

/* The first reason why nothing can be saved, or NULL. */
static const char *obstacle(struct gn_vgpu *v)
{
    if (v->remote)
        return "a program on another machine";
    if (is_halfway(v))
        return "a long launch of which a part has run; when it is over it can be moved";
    return v->api->contents ? v->api->contents->obstacle(v) : "an interface that cannot be saved";
}

static uint32_t n_indices(const struct gn_vgpu *v)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < GN_OBJECT_CHUNKS; c++)
        for (uint32_t i = 0; v->objects.generations[c] && i < GN_OBJECT_CHUNK; i++)
            if (v->objects.generations[c][i])
                n = c * GN_OBJECT_CHUNK + i + 1;
    return n;
}

static int save_indices(struct gn_vgpu *v, struct gn_stream_writer *w, uint32_t n)
{
    uint32_t *generations = calloc(n ? n : 1, sizeof *generations);
    if (!generations)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        if (v->objects.generations[i / GN_OBJECT_CHUNK])
            generations[i] = v->objects.generations[i / GN_OBJECT_CHUNK][i % GN_OBJECT_CHUNK];
    int rc = gn_stream_entry_begin(w, GN_STREAM_SESSION, UINT64_MAX, GN_SAVED_INDICES, NULL, 0);
    if (!rc)
        rc = gn_stream_part(w, GN_PART_STATE, generations, n * sizeof *generations);
    free(generations);
    return rc ? rc : gn_stream_entry_end(w);
}

static int save_record(struct gn_stream_writer *w, const struct gn_record *r)
{
    const struct gn_saved_record state = {.op = r->op, .result = r->result};
    int rc = gn_stream_entry_begin(w, GN_STREAM_SESSION, r->serial, GN_SAVED_RECORD, NULL, 0);
    if (!rc)
        rc = gn_stream_part(w, GN_PART_STATE, &state, sizeof state);
    if (!rc)
        rc = gn_stream_part(w, GN_PART_REQUEST, r->bytes, r->n_bytes);
    return rc ? rc : gn_stream_entry_end(w);
}

static int save_object(struct gn_vgpu *v, struct gn_stream_writer *w, const struct gn_vobject *o)
{
    int rc = gn_stream_entry_begin(w, GN_STREAM_OBJECTS, o->id, o->kind, NULL, 0);
    if (!rc && o->kind == v->api->queue_kind && o->detail) {
        const struct gn_vqueue *q = o->detail;
        rc = gn_stream_part(w, GN_PART_API, &q->late_error, sizeof q->late_error);
    }
    return rc ? rc : gn_stream_entry_end(w);
}

static int announce(struct gn_vgpu *v, struct gn_stream_writer *w, struct gn_record *const *records, uint32_t n,
                    uint32_t n_index, struct gn_error *err)
{
    struct gn_stream_announce most = {.n_rounds = 1, .entries_bytes = (uint64_t)n_index * 4 + ENTRY_BYTES};
    int rc = v->api->contents->measure(v, &most.n_memories, &most.memory_bytes, err);
    if (rc)
        return rc;
    for (uint32_t at = 0; gn_object_next(v, &at); at++)
        most.n_objects++;
    for (uint32_t i = 0; i < n; i++)
        most.entries_bytes += records[i]->n_bytes + ENTRY_BYTES;
    most.entries_bytes += (uint64_t)most.n_objects * ENTRY_BYTES;
    pthread_mutex_lock(&v->lock);
    for (uint32_t c = 0; c < GN_ARRAY_SIZE(v->event_chunks); c++)
        for (uint32_t i = 0; v->event_chunks[c] && i < GN_OBJECT_CHUNK; i++) {
            const struct gn_vevent *e = &v->event_chunks[c][i];
            most.entries_bytes += e->state == GN_EVENT_PENDING || e->error ? ENTRY_BYTES : 0;
            for (const struct gn_list *l = e->watches.next; l != &e->watches; l = l->next)
                most.entries_bytes += ENTRY_BYTES;
        }
    for (uint32_t i = 0; i < v->n_devices; i++)
        gn_list_for_each(q, &v->devices[i].queues, struct gn_vqueue, link)
            gn_list_for_each(c, &q->pending, const struct gn_command, link)
            {
                most.entries_bytes += ENTRY_BYTES + c->n_bytes + (uint64_t)c->n_waits * 4;
                for (uint32_t b = 0; b < c->n_blobs; b++)
                    most.entries_bytes += c->blob_bytes[b] + 8;
            }
    pthread_mutex_unlock(&v->lock);
    return gn_stream_announce(w, &most);
}

int gn_vgpu_save(struct gn_vgpu *v, struct gn_stream_writer *w, struct gn_error *err)
{
    struct gn_record **records = NULL;
    uint32_t n = 0;
    const char *why = obstacle(v);
    if (why)
        return gn_fail(err, EOPNOTSUPP, NULL, "it uses %s", why);
    int rc = gn_records_gather(v, &records, &n);
    if (rc == -ENODATA)
        return gn_fail(err, EOPNOTSUPP, NULL, "a program of it includes files, which cannot be moved yet");
    if (rc)
        return gn_fail(err, -rc, NULL, "no memory left to know what it consists of");
    err->what[0] = 0;
    const uint32_t n_index = n_indices(v);
    rc = announce(v, w, records, n, n_index, err);
    for (uint32_t i = 0; !rc && i < n; i++)
        rc = save_record(w, records[i]);
    gn_records_put(v, records, n);
    if (!rc)
        rc = save_indices(v, w, n_index);
    struct gn_vobject *o;
    for (uint32_t at = 0; !rc && (o = gn_object_next(v, &at)); at++)
        rc = save_object(v, w, o);
    if (!rc)
        rc = gn_events_save(v, w);
    if (!rc)
        rc = gn_commands_save(v, w);
    if (!rc)
        rc = v->api->contents->save(v, w, err);
    if (!rc)
        rc = gn_stream_commit(w);
    if (rc && !err->what[0]) {
        const struct gn_error *said = gn_stream_writer_error(w);
        gn_fail(err, -rc, said->fix, "%s", said->what[0] ? said->what : "no memory left to save it");
    }
    return rc;
}
