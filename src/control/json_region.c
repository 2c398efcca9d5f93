/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory region for jansson, and JSON texts. gantryd and gantry call it on the one thread that
 * uses jansson. It never allocates jansson's memory from the heap once gn_json_region_use has been
 * called.
 */
#include "control/json_region.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"

#define BLOCK_BYTES (UINT64_C(256) << 10)
#define ALIGNMENT   16u

/* Each block is mapped on its own, so that freeing it does not raise the heap's mmap threshold. */
struct block {
    struct block *next;
    uint64_t bytes, used;
};

static struct {
    struct block *blocks; /* pieces come from the first block */
    uint64_t n_pieces;    /* pieces in use */
    uint64_t bytes;
} region;

static struct block *more_room(uint64_t n)
{
    uint64_t least, bytes;
    if (!gn_add_u64(n, gn_align_up(sizeof(struct block), ALIGNMENT), &least) ||
        least > SIZE_MAX / 2)
        return NULL;
    bytes = least <= BLOCK_BYTES ? BLOCK_BYTES : least;
    struct block *b = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED)
        return NULL;
    *b = (struct block){
        .next = region.blocks, .bytes = bytes, .used = gn_align_up(sizeof *b, ALIGNMENT)};
    region.blocks = b;
    region.bytes += bytes;
    return b;
}

static void *take(size_t size)
{
    uint64_t n;
    if (!gn_add_u64(size ? size : 1, ALIGNMENT - 1, &n))
        return NULL;
    n -= n % ALIGNMENT;
    struct block *b = region.blocks;
    if ((!b || n > b->bytes - b->used) && !(b = more_room(n)))
        return NULL;
    void *piece = (char *)b + b->used;
    b->used += n;
    region.n_pieces++;
    return piece;
}

static void give_back(void *piece)
{
    if (!piece || --region.n_pieces)
        return;
    for (struct block *b = region.blocks, *next; b; b = next) {
        next = b->next;
        munmap(b, b->bytes);
    }
    region.blocks = NULL;
    region.bytes = 0;
}

void gn_json_region_use(void)
{
    json_set_alloc_funcs(take, give_back);
}

size_t gn_json_region_bytes(void)
{
    return region.bytes;
}

struct json_t *gn_json_string(const char *s)
{
    json_t *j = json_string(s);
    if (j)
        return j;
    char *plain = strdup(s);
    if (!plain)
        return NULL;
    for (char *p = plain; *p; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    j = json_string(plain);
    free(plain);
    return j;
}

char *gn_json_text(struct json_t *root, unsigned digits)
{
    json_malloc_t ignored;
    json_free_t drop;
    char *in =
             root ? json_dumps(root, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(digits))
                  : NULL,
         *out = in ? strdup(in) : NULL;
    json_get_alloc_funcs(&ignored, &drop);
    drop(in);
    json_decref(root);
    return out;
}
