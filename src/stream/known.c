/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks the objects, memories and pages that a stream has carried so far: see known.h. Called by a
 * reader or a writer on its one thread. Allocates in proportion to received data, never to
 * announced sizes.
 */
#include "stream/known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static uint32_t place_of(const struct gn_known_ids *k, uint64_t id)
{
    uint64_t x = id ^ k->secret;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(x ^ x >> 31) & (k->capacity - 1);
}

uint32_t *gn_known_find(const struct gn_known_ids *k, uint64_t id)
{
    if (!k->n || !id)
        return NULL;
    for (uint32_t i = place_of(k, id);; i = (i + 1) & (k->capacity - 1)) {
        if (k->keys[i] == id)
            return &k->values[i];
        if (!k->keys[i])
            return NULL;
    }
}

static int grow(struct gn_known_ids *k)
{
    struct gn_known_ids bigger = {.capacity = k->capacity ? 2 * k->capacity : 64,
                                  .secret = k->secret};
    if (!k->capacity && getrandom(&bigger.secret, sizeof bigger.secret, GRND_NONBLOCK) < 0)
        bigger.secret = (uintptr_t)k;
    bigger.keys = calloc(bigger.capacity, sizeof *bigger.keys);
    bigger.values = calloc(bigger.capacity, sizeof *bigger.values);
    if (!bigger.keys || !bigger.values) {
        gn_known_fini(&bigger);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < k->capacity; i++)
        if (k->keys[i])
            gn_known_put(&bigger, k->keys[i], k->values[i]);
    gn_known_fini(k);
    *k = bigger;
    return 0;
}

int gn_known_put(struct gn_known_ids *k, uint64_t id, uint32_t value)
{
    uint32_t *there = gn_known_find(k, id);
    if (there) {
        *there = value;
        return 0;
    }
    if (2 * (uint64_t)(k->n + 1) > k->capacity) {
        int rc = grow(k);
        if (rc < 0)
            return rc;
    }
    uint32_t i = place_of(k, id);
    while (k->keys[i])
        i = (i + 1) & (k->capacity - 1);
    k->keys[i] = id;
    k->values[i] = value;
    k->n++;
    return 0;
}

void gn_known_remove(struct gn_known_ids *k, uint64_t id)
{
    uint32_t *value = gn_known_find(k, id);
    if (!value)
        return;
    uint32_t mask = k->capacity - 1, hole = (uint32_t)(value - k->values);
    /* Entries that the hole displaced move up, so that no tombstone is needed. */
    for (uint32_t i = (hole + 1) & mask; k->keys[i]; i = (i + 1) & mask) {
        uint32_t home = place_of(k, k->keys[i]);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            k->keys[hole] = k->keys[i];
            k->values[hole] = k->values[i];
            hole = i;
        }
    }
    k->keys[hole] = 0;
    k->n--;
}

void gn_known_fini(struct gn_known_ids *k)
{
    free(k->keys);
    free(k->values);
    *k = (struct gn_known_ids){0};
}

static void free_memory(struct gn_known_memory *m)
{
    if (m)
        free(m->came);
    free(m);
}

int gn_known_memory_put(struct gn_known_memories *k, const struct gn_stream_memory *m,
                        uint32_t page_bytes, bool watch)
{
    if (gn_known_find(&k->ids, m->id))
        return -EEXIST;
    struct gn_known_memory *new = calloc(1, sizeof *new);
    if (!new)
        return -ENOMEM;
    new->m = *m;
    new->n_pages = m->bytes / page_bytes + (m->bytes % page_bytes != 0);
    if (watch && !(m->flags & GN_STREAM_MEMORY_KEPT)) {
        new->n_missing = new->n_pages;
        new->came = calloc(new->n_pages / 8 + 1, 1);
        if (!new->came)
            goto no_memory;
    }
    if (k->n == k->capacity) {
        uint32_t capacity = k->capacity ? 2 * k->capacity : 16;
        struct gn_known_memory **all = realloc(k->all, capacity * sizeof(*all));
        if (!all)
            goto no_memory;
        k->all = all;
        k->capacity = capacity;
    }
    if (gn_known_put(&k->ids, m->id, k->n) < 0)
        goto no_memory;
    k->all[k->n++] = new;
    k->bytes += m->bytes;
    return 0;

no_memory:
    free_memory(new);
    return -ENOMEM;
}

struct gn_known_memory *gn_known_memory_find(const struct gn_known_memories *k, uint64_t id)
{
    uint32_t *i = gn_known_find(&k->ids, id);
    return i ? k->all[*i] : NULL;
}

void gn_known_memory_remove(struct gn_known_memories *k, uint64_t id)
{
    uint32_t *found = gn_known_find(&k->ids, id);
    if (!found)
        return;
    uint32_t i = *found;
    k->bytes -= k->all[i]->m.bytes;
    free_memory(k->all[i]);
    gn_known_remove(&k->ids, id);
    k->n--;
    if (i != k->n) {
        k->all[i] = k->all[k->n];
        *gn_known_find(&k->ids, k->all[i]->m.id) = i;
    }
}

void gn_known_memory_came(struct gn_known_memory *m, uint64_t first, uint64_t n)
{
    if (!m->came || !m->n_missing)
        return;
    for (uint64_t page = first, end = first + n; page < end;) {
        if (page % 8 == 0 && end - page >= 8) {
            m->n_missing -= 8 - (unsigned)__builtin_popcount(m->came[page / 8]);
            m->came[page / 8] = 0xff;
            page += 8;
            continue;
        }
        unsigned char bit = (unsigned char)(1u << page % 8);
        if (!(m->came[page / 8] & bit))
            m->n_missing--;
        m->came[page / 8] |= bit;
        page++;
    }
}

void gn_known_memories_fini(struct gn_known_memories *k)
{
    for (uint32_t i = 0; i < k->n; i++)
        free_memory(k->all[i]);
    free(k->all);
    gn_known_fini(&k->ids);
    *k = (struct gn_known_memories){0};
}
