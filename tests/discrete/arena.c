/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the emulated device: a range of addresses of its own, first fit. New and freed
 * memory is poisoned, so that a use of memory without contents, or after its release, is seen in
 * results, and is the same in each run. Called on any thread. state.c counts the capacity:
 * there are more addresses than memory.
 */
#include "discrete.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE   4096u
#define FACTOR 8u /* addresses to a byte of capacity: `lazy` promises more than there is */

struct block {
    struct block *next; /* by address; blocks leave no gaps below the end */
    size_t offset, bytes;
    bool used;
};

static struct {
    pthread_mutex_t lock;
    unsigned char *base;
    size_t bytes, end; /* of addresses; of those that have been used */
    struct block *blocks;
} arena = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool reserve_locked(void)
{
    if (arena.base)
        return true;
    const size_t bytes = dg_options.capacity_bytes * FACTOR + (1u << 30);
    void *base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return false;
    arena.base = base;
    arena.bytes = bytes;
    return true;
}

static struct block *new_block(size_t offset, size_t bytes, struct block *next)
{
    struct block *b = malloc(sizeof *b);
    if (b)
        *b = (struct block){.next = next, .offset = offset, .bytes = bytes};
    return b;
}

/* Makes the arena longer, by memory that nobody has used. */
static struct block *extend_locked(struct block **link, size_t bytes)
{
    unsigned char *at = arena.base + arena.end;
    if (bytes > arena.bytes - arena.end || mprotect(at, bytes, PROT_READ | PROT_WRITE))
        return NULL;
    struct block *b = new_block(arena.end, bytes, NULL);
    if (!b)
        return NULL;
    memset(at, DG_POISON, bytes);
    arena.end += bytes;
    return *link = b;
}

static struct block *find_locked(size_t bytes)
{
    struct block **link = &arena.blocks;
    for (; *link; link = &(*link)->next) {
        struct block *b = *link;
        if (b->used || b->bytes < bytes)
            continue;
        if (b->bytes > bytes) {
            struct block *rest = new_block(b->offset + bytes, b->bytes - bytes, b->next);
            if (!rest)
                return NULL;
            b->next = rest;
            b->bytes = bytes;
        }
        return b;
    }
    return extend_locked(link, bytes);
}

unsigned char *dg_arena_allocate(size_t bytes)
{
    struct block *b = NULL;
    pthread_mutex_lock(&arena.lock);
    if (bytes <= SIZE_MAX - PAGE && reserve_locked())
        b = find_locked((bytes + PAGE - 1) / PAGE * PAGE);
    if (b)
        b->used = true;
    pthread_mutex_unlock(&arena.lock);
    return b ? arena.base + b->offset : NULL;
}

static void join_locked(struct block *b)
{
    while (b && b->next && !b->used && !b->next->used) {
        struct block *next = b->next;
        b->bytes += next->bytes;
        b->next = next->next;
        free(next);
    }
}

void dg_arena_free(unsigned char *at)
{
    struct block *before = NULL;
    pthread_mutex_lock(&arena.lock);
    for (struct block *b = arena.blocks; b; before = b, b = b->next) {
        if (arena.base + b->offset != at)
            continue;
        memset(at, DG_POISON, b->bytes);
        b->used = false;
        join_locked(b);
        join_locked(before);
        break;
    }
    pthread_mutex_unlock(&arena.lock);
}
