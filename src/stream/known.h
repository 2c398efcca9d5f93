/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_STREAM_KNOWN_H
#define GN_STREAM_KNOWN_H

#include "stream/layout.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * What of a stream has come, or has been sent: ids of objects, and memories with the pages that are
 * still missing. The ids are a stranger's, so they are spread by a number that he does not know.
 * One thread.
 */
struct gn_known_ids {
    uint64_t *keys; /* 0: empty; id 0 is never held */
    uint32_t *values;
    uint32_t capacity; /* a power of two */
    uint32_t n;
    uint64_t secret;
};

/* The value's place, or NULL. It holds until the next put or remove. */
uint32_t *gn_known_find(const struct gn_known_ids *k, uint64_t id);
/* -ENOMEM. An id that is there gets the value anew. id is not 0. */
int gn_known_put(struct gn_known_ids *k, uint64_t id, uint32_t value);
void gn_known_remove(struct gn_known_ids *k, uint64_t id);
void gn_known_fini(struct gn_known_ids *k);

struct gn_known_memory {
    struct gn_stream_memory m;
    uint64_t n_pages;
    uint64_t n_missing;  /* pages that never came */
    uint64_t n_in_round; /* pages that came in `round` */
    uint32_t round;
    unsigned char *came; /* a bit a page; NULL: nobody asks */
};

struct gn_known_memories {
    struct gn_known_ids ids; /* indices into `all` */
    struct gn_known_memory **all;
    uint32_t n, capacity;
    uint64_t bytes; /* of those that live */
};

/* -ENOMEM; -EEXIST: the id is there. With `watch` missing pages are counted. */
int gn_known_memory_put(struct gn_known_memories *k, const struct gn_stream_memory *m,
                        uint32_t page_bytes, bool watch);
struct gn_known_memory *gn_known_memory_find(const struct gn_known_memories *k, uint64_t id);
void gn_known_memory_remove(struct gn_known_memories *k, uint64_t id);
/* Pages that lie in the memory have come. */
void gn_known_memory_came(struct gn_known_memory *m, uint64_t first, uint64_t n);
void gn_known_memories_fini(struct gn_known_memories *k);

#endif
