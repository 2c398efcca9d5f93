/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_STREAM_KNOWN_H
#define GN_STREAM_KNOWN_H

#include "stream/layout.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The part of a stream that has been received or sent: the ids of objects, and memories with the
 * number of their missing pages. The ids come from an untrusted peer, so a secret number randomizes
 * their hash. Not thread-safe: one thread.
 */
struct gn_known_ids {
    uint64_t *keys; /* 0: empty slot; id 0 is never stored */
    uint32_t *values;
    uint32_t capacity; /* a power of two */
    uint32_t n;
    uint64_t secret;
};

/* Pointer to the id's value, valid until the next put or remove; NULL: not stored. */
uint32_t *gn_known_find(const struct gn_known_ids *k, uint64_t id);
/* Stores a value for an id, which is not 0; replaces an existing one. 0 or -ENOMEM. */
int gn_known_put(struct gn_known_ids *k, uint64_t id, uint32_t value);
void gn_known_remove(struct gn_known_ids *k, uint64_t id);
void gn_known_fini(struct gn_known_ids *k);

struct gn_known_memory {
    struct gn_stream_memory m;
    uint64_t n_pages;
    uint64_t n_missing;  /* pages not received in any round */
    uint64_t n_in_round; /* pages received in `round` */
    uint32_t round;
    unsigned char *came; /* one bit per page; NULL: not tracked */
};

struct gn_known_memories {
    struct gn_known_ids ids; /* indices into `all` */
    struct gn_known_memory **all;
    uint32_t n, capacity;
    uint64_t bytes; /* total size of the memories stored */
};

/* 0; -ENOMEM; -EEXIST: the id is already stored. watch: count missing pages. */
int gn_known_memory_put(struct gn_known_memories *k, const struct gn_stream_memory *m,
                        uint32_t page_bytes, bool watch);
struct gn_known_memory *gn_known_memory_find(const struct gn_known_memories *k, uint64_t id);
void gn_known_memory_remove(struct gn_known_memories *k, uint64_t id);
/* Marks pages as received. They lie in the memory. */
void gn_known_memory_came(struct gn_known_memory *m, uint64_t first, uint64_t n);
void gn_known_memories_fini(struct gn_known_memories *k);

#endif
