/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads gantryd's replies into plain values. The replies may come from a newer gantryd or be
 * malformed, so every field is optional and checked. Pure.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/progress.h"
#include "ctl/text.h"
#include "ctl/top.h"

/* Copies a text so that it is safe to print, cut to the buffer. 0 or -ENOMEM. */
static int take_text(const json_t *o, const char *key, char *to, size_t n)
{
    const char *text = json_string_value(json_object_get(o, key));
    char *safe = gn_text_printable(text ? text : "");
    if (!safe)
        return -ENOMEM;
    size_t length = strlen(safe);
    while (length >= n || (length < strlen(safe) && ((unsigned char)safe[length] & 0xc0) == 0x80))
        length--; /* do not cut within a character */
    memcpy(to, safe, length);
    to[length] = 0;
    free(safe);
    return 0;
}

static uint64_t number_of(const json_t *o, const char *key)
{
    const json_int_t n = json_integer_value(json_object_get(o, key));
    return n > 0 ? (uint64_t)n : 0;
}

/* A part of a device; below 0: unknown. */
static double part_of(const json_t *o, const char *key)
{
    const json_t *part = json_object_get(o, key);
    const double value = json_is_number(part) ? json_number_value(part) : -1;
    /* Rounding can make a sum of parts slightly more than 1. */
    return value >= 0 && value <= 1.01 ? (value < 1 ? value : 1) : -1;
}

static bool find_device(const struct gn_top_sample *s, const json_t *use, uint32_t place,
                        uint32_t *ret)
{
    const json_t *index = json_object_get(use, "index");
    for (uint32_t i = 0; i < s->n_devices; i++) {
        if (index ? json_integer_value(index) == s->devices[i].index : i == place) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static int read_vgpu(const struct gn_top_sample *s, const json_t *o, struct gn_top_vgpu *v)
{
    const json_t *use;
    size_t i;
    int rc = take_text(o, "id", v->id, sizeof v->id);
    if (rc == 0)
        rc = take_text(o, "tenant", v->tenant, sizeof v->tenant);
    if (rc == 0)
        rc = take_text(o, "program", v->program, sizeof v->program);
    if (rc == 0)
        rc = take_text(o, "state", v->state, sizeof v->state);
    struct gn_moving moving;
    _Static_assert(sizeof v->state >= GN_MOVING_STATE_BYTES, "a state's room");
    /* columns must not hold blanks */
    if (rc == 0 && gn_moving_read(o, &moving))
        gn_moving_state(&moving, ":", ":", v->state);
    v->memory_bytes = number_of(o, "memory_bytes");
    v->limit_bytes = number_of(o, "memory_limit_bytes");
    v->calls = number_of(o, "calls");
    v->sync_calls = number_of(o, "sync_calls");
    json_array_foreach(json_object_get(o, "devices"), i, use)
    {
        struct gn_top_use *u = &v->uses[v->n_uses];
        if (v->n_uses == GN_TOP_DEVICES || !find_device(s, use, (uint32_t)i, &u->device))
            continue;
        v->n_uses++;
        u->share = part_of(use, "share");
        u->entitled = part_of(use, "entitled");
        u->turns = u->share >= 0;
        u->interactive = json_is_true(json_object_get(use, "interactive"));
        u->device_ns = number_of(use, "device_ns");
        u->used_ns = number_of(use, "used_ns");
        u->waited_ns = number_of(use, "waited_ns");
        u->grants = number_of(use, "grants");
    }
    return rc;
}

static void read_use(const json_t *o, uint32_t place, struct gn_top_device *d)
{
    const json_t *use = json_object_get(o, "use"), *others = json_object_get(o, "others");
    d->has_use = json_is_object(use);
    d->device_ns = number_of(use, "device_ns");
    d->used_ns = number_of(use, "used_ns");
    d->waited_ns = number_of(use, "waited_ns");
    d->grants = number_of(use, "grants");
    d->n_others = (uint32_t)number_of(others, "vgpus");
    d->others = (struct gn_top_use){.device = place,
                                    .turns = true,
                                    .share = part_of(others, "share"),
                                    .entitled = part_of(others, "entitled"),
                                    .device_ns = number_of(others, "device_ns"),
                                    .waited_ns = number_of(others, "waited_ns")};
}

/* Corrupt numbers become sane ones. */
static void read_slots(const json_t *o, struct gn_top_device *d)
{
    d->n_slots = number_of(o, "slots");
    d->n_free = number_of(o, "free_slots");
    d->n_reserved = number_of(o, "reserved_slots");
    d->copying_ns = number_of(o, "copying_ns");
    if (d->n_free > d->n_slots)
        d->n_free = d->n_slots;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct gn_top_vgpu *)a)->id, ((const struct gn_top_vgpu *)b)->id);
}

/*
 * Allocates one element more than the list has items, so that an empty list does not return NULL.
 */
static void *room(const json_t *list, size_t each)
{
    return calloc(json_array_size(list) + 1, each);
}

int gn_top_sample_read(const json_t *root, uint64_t at_ns, struct gn_top_sample *ret)
{
    const json_t *devices = json_object_get(root, "devices"),
                 *tenants = json_object_get(root, "tenants");
    const json_t *vgpus = json_object_get(root, "vgpus"), *o;
    size_t i;
    memset(ret, 0, sizeof *ret);
    ret->at_ns = at_ns;
    ret->devices = room(devices, sizeof *ret->devices);
    ret->tenants = room(tenants, sizeof *ret->tenants);
    ret->vgpus = room(vgpus, sizeof *ret->vgpus);
    int rc = ret->devices && ret->tenants && ret->vgpus
                 ? take_text(root, "policy", ret->policy, sizeof ret->policy)
                 : -ENOMEM;
    json_array_foreach(devices, i, o)
    {
        if (rc)
            break;
        struct gn_top_device *d = &ret->devices[ret->n_devices++];
        const json_t *index = json_object_get(o, "index");
        d->index = index ? (uint32_t)json_integer_value(index) : (uint32_t)i;
        rc = take_text(o, "name", d->name, sizeof d->name);
        read_use(o, (uint32_t)i, d);
        read_slots(o, d);
    }
    json_array_foreach(tenants, i, o)
    {
        if (rc)
            break;
        struct gn_top_tenant *t = &ret->tenants[ret->n_tenants++];
        t->weight = number_of(o, "weight");
        t->memory_bytes = number_of(o, "memory_bytes");
        t->limit_bytes = number_of(o, "memory_limit_bytes");
        rc = take_text(o, "name", t->name, sizeof t->name);
    }
    json_array_foreach(vgpus, i, o)
    {
        if (rc)
            break;
        rc = read_vgpu(ret, o, &ret->vgpus[ret->n_vgpus++]);
    }
    if (ret->vgpus)
        qsort(ret->vgpus, ret->n_vgpus, sizeof *ret->vgpus, by_id);
    return rc;
}

void gn_top_sample_fini(struct gn_top_sample *s)
{
    free(s->vgpus);
    free(s->tenants);
    free(s->devices);
    memset(s, 0, sizeof *s);
}
