/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the results of `gantry inspect`, for people and as JSON. Reads no file. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "ctl/api.h"
#include "ctl/inspect.h"
#include "ctl/table.h"

#define MOST_ROWS 20u /* rows of a table for people */

#define MOST_KINDS 32u

static const char *purpose(const struct gn_inspected *f)
{
    return f->about.purpose == GN_STREAM_CHECKPOINT ? "checkpoint" : "move";
}

/* The objects of one kind. Kinds that are too large for the table are counted in its last entry. */
struct kind_sum {
    uint32_t n;
    uint64_t bytes;
};

static void sum_kinds(const struct gn_inspected *f, struct kind_sum sums[MOST_KINDS])
{
    for (uint32_t i = 0; i < f->n_objects; i++) {
        const struct gn_inspected_object *o = &f->objects[i];
        struct kind_sum *s = &sums[o->kind < MOST_KINDS ? o->kind : MOST_KINDS - 1];
        s->n += !o->gone;
        s->bytes += o->gone ? 0 : o->bytes;
    }
}

static void kind_text(const struct gn_inspected *f, uint32_t kind, char ret[32])
{
    const struct gn_ctl_api *api = gn_ctl_api_named(f->about.api);
    const char *name = api ? api->kind_name(kind) : NULL;
    if (name)
        snprintf(ret, 32, "%s", name);
    else
        snprintf(ret, 32, "kind %u", kind);
}

/* How often one call was recorded. */
struct call_sum {
    uint32_t op, n;
};

static int more_often(const void *a, const void *b)
{
    const struct call_sum *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n ? 1 : -1) : x->op < y->op ? -1 : x->op > y->op;
}

static int by_op(const void *a, const void *b)
{
    const struct call_sum *x = a, *y = b;
    return x->op < y->op ? -1 : x->op > y->op;
}

/* Counts the commands per call, the most frequent first; NULL: no memory. */
static struct call_sum *sum_calls(const struct gn_inspected *f, uint32_t *ret_n)
{
    struct call_sum *sums = calloc(f->n_commands + 1, sizeof *sums);
    uint32_t n = 0;
    if (!sums)
        return NULL;
    for (uint32_t i = 0; i < f->n_commands; i++)
        sums[i] = (struct call_sum){.op = f->commands[i].op, .n = 1};
    qsort(sums, f->n_commands, sizeof *sums, by_op);
    for (uint32_t i = 0; i < f->n_commands; i++) {
        if (n && sums[n - 1].op == sums[i].op)
            sums[n - 1].n++;
        else
            sums[n++] = sums[i];
    }
    qsort(sums, n, sizeof *sums, more_often);
    *ret_n = n;
    return sums;
}

static void call_text(const struct gn_inspected *f, uint32_t op, char ret[32])
{
    const struct gn_ctl_api *api = gn_ctl_api_named(f->about.api);
    const char *name = api ? api->call_name(op) : NULL;
    if (name)
        snprintf(ret, 32, "%s", name);
    else
        snprintf(ret, 32, "request-%u", op);
}

/* Sums over the memories that exist at the end; the sent counts include deleted memories. */
struct page_sum {
    uint64_t memories, bytes, pages, zero, sent, sent_bytes, packed_bytes;
};

static struct page_sum sum_pages(const struct gn_inspected *f)
{
    struct page_sum s = {0};
    for (uint32_t i = 0; i < f->n_memories; i++) {
        const struct gn_inspected_memory *m = &f->memories[i];
        s.sent += m->n_sent;
        s.sent_bytes += m->sent_bytes;
        s.packed_bytes += m->packed_bytes;
        if (m->gone)
            continue;
        s.memories++;
        s.bytes += m->m.bytes;
        s.pages += m->n_pages;
        s.zero += gn_inspect_zero_pages(m);
    }
    return s;
}

/* ---- JSON */

static json_t *number(uint64_t n)
{
    return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static json_t *id_text(uint64_t id)
{
    char text[32];
    snprintf(text, sizeof text, "%#" PRIx64, id);
    return json_string(text);
}

static json_t *tenant_json(const struct gn_inspected *f)
{
    char id[16];
    snprintf(id, sizeof id, "%08" PRIx64, f->vgpu & UINT32_MAX);
    return json_pack("{s:s, s:s, s:I, s:o, s:o}", "id", id, "name", f->tenant, "weight",
                     (json_int_t)f->tenant_state.weight, "memory_limit_bytes",
                     number(f->tenant_state.memory_limit_bytes), "memory_bytes",
                     number(f->tenant_state.memory_bytes));
}

static json_t *devices_json(const struct gn_inspected *f)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < f->n_devices; i++) {
        const struct gn_inspected_device *d = &f->devices[i];
        json_array_append_new(
            all, json_pack("{s:o, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:I, s:I}", "index",
                           number(d->index), "name", d->name, "vendor", d->vendor, "type", d->type,
                           "version", d->version, "driver_version", d->driver, "memory_bytes",
                           number(d->state.memory_bytes), "largest_bytes",
                           number(d->state.largest_bytes), "units", (json_int_t)d->state.n_units,
                           "facts", (json_int_t)d->n_facts));
    }
    return all;
}

static json_t *objects_json(const struct gn_inspected *f)
{
    struct kind_sum sums[MOST_KINDS] = {{0}};
    json_t *all = json_array();
    sum_kinds(f, sums);
    for (uint32_t kind = 0; kind < MOST_KINDS; kind++) {
        char name[32];
        kind_text(f, kind, name);
        if (sums[kind].n)
            json_array_append_new(all, json_pack("{s:I, s:s, s:I, s:o}", "kind", (json_int_t)kind,
                                                 "name", name, "count", (json_int_t)sums[kind].n,
                                                 "bytes", number(sums[kind].bytes)));
    }
    return all;
}

static json_t *memories_json(const struct gn_inspected *f)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < f->n_memories; i++) {
        const struct gn_inspected_memory *m = &f->memories[i];
        if (!m->gone)
            json_array_append_new(
                all,
                json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "id", id_text(m->m.id),
                          "object", id_text(m->m.object), "bytes", number(m->m.bytes), "pages",
                          number(m->n_pages), "zero_pages", number(gn_inspect_zero_pages(m)),
                          "sent_bytes", number(m->sent_bytes), "packed_bytes",
                          number(m->packed_bytes), "kept", m->m.flags & GN_STREAM_MEMORY_KEPT));
    }
    return all;
}

static json_t *commands_json(const struct gn_inspected *f)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < f->n_commands; i++) {
        const struct gn_inspected_command *c = &f->commands[i];
        char call[32];
        call_text(f, c->op, call);
        json_t *one = json_pack("{s:o, s:I, s:s, s:o}", "id", number(c->id), "op",
                                (json_int_t)c->op, "call", call, "queue", id_text(c->queue));
        if (c->has_state && c->state.event != UINT32_MAX)
            json_object_set_new(one, "event", number(c->state.event));
        if (c->has_state)
            json_object_set_new(one, "work_groups_done", number(c->state.done));
        json_array_append_new(all, one);
    }
    return all;
}

static json_t *calls_json(const struct gn_inspected *f)
{
    uint32_t n = 0;
    struct call_sum *sums = sum_calls(f, &n);
    json_t *all = json_array();
    for (uint32_t i = 0; sums && i < n; i++) {
        char call[32];
        call_text(f, sums[i].op, call);
        json_array_append_new(all,
                              json_pack("{s:s, s:I, s:I}", "call", call, "op",
                                        (json_int_t)sums[i].op, "count", (json_int_t)sums[i].n));
    }
    free(sums);
    return all;
}

json_t *gn_inspect_json(const struct gn_inspected *f)
{
    const struct page_sum s = sum_pages(f);
    json_t *c =
        json_pack("{s:i, s:s, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "format",
                  (int)GN_STREAM_FORMAT, "purpose", purpose(f), "api", f->about.api, "creator",
                  f->about.creator, "created_ns", number(f->about.created_ns), "file_bytes",
                  number(f->file_bytes), "page_bytes", (json_int_t)f->about.page_bytes, "rounds",
                  (json_int_t)f->n_rounds, "events", (json_int_t)f->n_events, "callbacks",
                  (json_int_t)f->n_calls, "maps", (json_int_t)f->n_maps);
    if (f->has_tenant)
        json_object_set_new(c, "vgpu", tenant_json(f));
    json_object_set_new(c, "devices", devices_json(f));
    json_object_set_new(c, "objects", objects_json(f));
    json_object_set_new(c, "memories", memories_json(f));
    json_object_set_new(c, "pages",
                        json_pack("{s:o, s:o, s:o, s:o, s:o}", "total", number(s.pages), "zero",
                                  number(s.zero), "sent", number(s.sent), "sent_bytes",
                                  number(s.sent_bytes), "packed_bytes", number(s.packed_bytes)));
    json_object_set_new(c, "pending", calls_json(f));
    json_object_set_new(c, "commands", commands_json(f));
    return json_pack("{s:i, s:o}", "version", 1, "checkpoint", c);
}

/* ---- for people */

static int end_table(struct gn_table *t)
{
    putchar('\n');
    int rc = gn_table_print(t);
    gn_table_fini(t);
    return rc;
}

static const char *plural(unsigned n)
{
    return n == 1 ? "" : "s";
}

static void print_head(const struct gn_inspected *f)
{
    const struct page_sum s = sum_pages(f);
    char when[64] = "?", a[16], b[16], c[16];
    time_t seconds = (time_t)(f->about.created_ns / 1000000000u);
    struct tm tm;
    if (gmtime_r(&seconds, &tm))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &tm);
    printf("file      format %u, a %s of %s, %s, by %s, %s; whole\n", GN_STREAM_FORMAT, purpose(f),
           f->about.api, gn_ctl_format_size(f->file_bytes, a),
           f->about.creator[0] ? f->about.creator : "?", when);
    if (f->has_tenant)
        printf("vGPU      %08" PRIx64
               " of tenant %s, weight %u, %s of device memory held, limit %s\n",
               f->vgpu & UINT32_MAX, f->tenant, f->tenant_state.weight,
               gn_ctl_format_size(f->tenant_state.memory_bytes, a),
               f->tenant_state.memory_limit_bytes
                   ? gn_ctl_format_size(f->tenant_state.memory_limit_bytes, b)
                   : "the device's");
    printf("buffers   %" PRIu64 " of %s together, %" PRIu64 " pages of %u bytes, %" PRIu64
           " of them zero\n",
           s.memories, gn_ctl_format_size(s.bytes, a), s.pages, f->about.page_bytes, s.zero);
    printf("pages     %" PRIu64 " in %u round%s: %s of contents in %s of the file\n", s.sent,
           f->n_rounds, plural(f->n_rounds), gn_ctl_format_size(s.sent_bytes, b),
           gn_ctl_format_size(s.packed_bytes, c));
    printf("pending   %u command%s, %u event%s, %u callback%s, %u map%s\n", f->n_commands,
           plural(f->n_commands), f->n_events, plural(f->n_events), f->n_calls, plural(f->n_calls),
           f->n_maps, plural(f->n_maps));
}

static int print_devices(const struct gn_inspected *f)
{
    static const struct gn_table_column columns[] = {
        {"DEVICE", true}, {"NAME", false}, {"TYPE", false},  {"UNITS", true},
        {"MEMORY", true}, {"FACTS", true}, {"DRIVER", false}};
    struct gn_table t;
    gn_table_init(&t, columns, GN_ARRAY_SIZE(columns));
    for (uint32_t i = 0; i < f->n_devices; i++) {
        const struct gn_inspected_device *d = &f->devices[i];
        gn_table_add_number(&t, d->index);
        gn_table_add(&t, d->name);
        gn_table_add(&t, d->type);
        gn_table_add_number(&t, d->state.n_units);
        gn_table_add_size(&t, d->state.memory_bytes);
        gn_table_add_number(&t, d->n_facts);
        gn_table_add(&t, d->driver);
    }
    return end_table(&t);
}

static int print_objects(const struct gn_inspected *f)
{
    static const struct gn_table_column columns[] = {
        {"OBJECTS", false}, {"COUNT", true}, {"BYTES", true}};
    struct kind_sum sums[MOST_KINDS] = {{0}};
    struct gn_table t;
    gn_table_init(&t, columns, GN_ARRAY_SIZE(columns));
    sum_kinds(f, sums);
    for (uint32_t kind = 0; kind < MOST_KINDS; kind++) {
        char name[32];
        if (!sums[kind].n)
            continue;
        kind_text(f, kind, name);
        gn_table_add(&t, name);
        gn_table_add_number(&t, sums[kind].n);
        gn_table_add_size(&t, sums[kind].bytes);
    }
    return end_table(&t);
}

static int larger(const void *a, const void *b)
{
    const struct gn_inspected_memory *x = *(const struct gn_inspected_memory *const *)a;
    const struct gn_inspected_memory *y = *(const struct gn_inspected_memory *const *)b;
    return x->m.bytes != y->m.bytes ? (x->m.bytes < y->m.bytes ? 1 : -1)
           : x->m.id < y->m.id      ? -1
                                    : x->m.id > y->m.id;
}

static int print_memories(const struct gn_inspected *f)
{
    static const struct gn_table_column columns[] = {{"BUFFER", false}, {"SIZE", true},
                                                     {"PAGES", true},   {"ZERO", true},
                                                     {"SENT", true},    {"PACKED", true}};
    const struct gn_inspected_memory **all = malloc((f->n_memories + 1) * sizeof(*all));
    struct gn_table t;
    uint32_t n = 0;
    if (!all)
        return -ENOMEM;
    for (uint32_t i = 0; i < f->n_memories; i++)
        if (!f->memories[i].gone)
            all[n++] = &f->memories[i];
    qsort(all, n, sizeof(*all), larger);
    gn_table_init(&t, columns, GN_ARRAY_SIZE(columns));
    for (uint32_t i = 0; i < n && i < MOST_ROWS; i++) {
        char id[32];
        snprintf(id, sizeof id, "%#" PRIx64, all[i]->m.id);
        gn_table_add(&t, id);
        gn_table_add_size(&t, all[i]->m.bytes);
        gn_table_add_number(&t, all[i]->n_pages);
        gn_table_add_number(&t, gn_inspect_zero_pages(all[i]));
        gn_table_add_size(&t, all[i]->sent_bytes);
        gn_table_add_size(&t, all[i]->packed_bytes);
    }
    free(all);
    int rc = end_table(&t);
    if (n > MOST_ROWS)
        printf("and %u smaller ones\n", n - MOST_ROWS);
    return rc;
}

static int print_calls(const struct gn_inspected *f)
{
    static const struct gn_table_column columns[] = {{"PENDING", false}, {"COUNT", true}};
    uint32_t n = 0;
    struct call_sum *sums = sum_calls(f, &n);
    struct gn_table t;
    gn_table_init(&t, columns, GN_ARRAY_SIZE(columns));
    for (uint32_t i = 0; sums && i < n; i++) {
        char call[32];
        call_text(f, sums[i].op, call);
        gn_table_add(&t, call);
        gn_table_add_number(&t, sums[i].n);
    }
    int rc = end_table(&t);
    rc = sums ? rc : -ENOMEM;
    free(sums);
    return rc;
}

static int print_commands(const struct gn_inspected *f)
{
    static const struct gn_table_column columns[] = {
        {"COMMAND", true}, {"CALL", false}, {"QUEUE", false}, {"EVENT", false}};
    struct gn_table t;
    gn_table_init(&t, columns, GN_ARRAY_SIZE(columns));
    for (uint32_t i = 0; i < f->n_commands && i < MOST_ROWS; i++) {
        const struct gn_inspected_command *c = &f->commands[i];
        char queue[32], event[16], call[32];
        call_text(f, c->op, call);
        snprintf(queue, sizeof queue, "%#" PRIx64, c->queue);
        snprintf(event, sizeof event, "%u", c->state.event);
        gn_table_add_number(&t, c->id);
        gn_table_add(&t, call);
        gn_table_add(&t, queue);
        gn_table_add(&t, c->has_state && c->state.event != UINT32_MAX ? event : NULL);
    }
    int rc = end_table(&t);
    if (f->n_commands > MOST_ROWS)
        printf("and %u more\n", f->n_commands - MOST_ROWS);
    return rc;
}

int gn_inspect_print(const struct gn_inspected *f)
{
    print_head(f);
    int rc = f->n_devices ? print_devices(f) : 0;
    if (rc == 0 && f->n_objects)
        rc = print_objects(f);
    if (rc == 0 && f->n_memories)
        rc = print_memories(f);
    if (rc == 0 && f->n_commands)
        rc = print_calls(f);
    if (rc == 0 && f->n_commands)
        rc = print_commands(f);
    return rc;
}
