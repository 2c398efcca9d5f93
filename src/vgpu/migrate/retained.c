/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of memory objects that have left the process; see retained.h. The keeper of the leaving
 * vGPU fills them; the loading thread of the returning vGPU uses them, possibly before the first
 * has finished.
 */
#include "vgpu/migrate/retained.h"

#include "base/array.h"
#include "base/list.h"
#include "base/room.h"
#include "stream/hash.h"
#include "stream/known.h"
#include "vgpu/migrate/outgoing.h"
#include "vgpu/migrate/save.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>

#define PIECE_BYTES UINT64_C(1048576) /* whole pages */
#define LEAVES_S    20

struct retained_memory {
    uint64_t id, bytes;
    unsigned char *at; /* mapped; NULL: none */
};

struct gn_retained {
    struct gn_list link;
    uint64_t number;
    /*
     * kept.lock. filling: contents are being added, and the filling thread frees it if it has left
     * the list; whole: all are there
     */
    bool filling, whole;
    /* used by the filling thread, then by the returning vGPU */
    struct retained_memory *all;
    uint32_t n, capacity;
    struct gn_known_ids places; /* indices in `all` */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct gn_list list; /* under lock */
} kept = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, GN_LIST_INIT(kept.list)};

static struct gn_retained *find_locked(uint64_t number)
{
    gn_list_for_each(r, &kept.list, struct gn_retained, link)
    {
        if (r->number == number)
            return r;
    }
    return NULL;
}

uint64_t gn_retained_promise(void)
{
    struct gn_retained *r = calloc(1, sizeof *r);
    if (!r || getrandom(&r->number, sizeof r->number, 0) != sizeof r->number || !r->number) {
        free(r);
        return 0;
    }
    pthread_mutex_lock(&kept.lock);
    gn_list_append(&kept.list, &r->link);
    pthread_mutex_unlock(&kept.lock);
    return r->number;
}

static void unmap(struct retained_memory *one)
{
    if (one->at)
        munmap(one->at, one->bytes);
    one->at = NULL;
}

static void destroy(struct gn_retained *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        unmap(&r->all[i]);
    gn_known_fini(&r->places);
    free(r->all);
    free(r);
}

static uint64_t count_bytes(struct gn_vgpu *v)
{
    uint64_t all = 0, bytes;
    uint32_t at = 0;
    struct gn_writes *writes;
    struct gn_vobject *o;
    for (; (o = gn_object_next(v, &at)); at++)
        if (v->api->contents->look(v, o, false, &bytes, &writes))
            all += bytes;
    return all;
}

struct gn_retained *gn_retained_begin(struct gn_vgpu *v)
{
    if (v->retained && count_bytes(v) > gn_room() / 2)
        gn_retained_drop(v->retained);
    pthread_mutex_lock(&kept.lock);
    struct gn_retained *r = find_locked(v->retained);
    if (r)
        r->filling = true;
    pthread_mutex_unlock(&kept.lock);
    return r;
}

/* Zero pages are skipped, so they take no memory. */
static void copy_nonzero_pages(unsigned char *to, const unsigned char *from, uint64_t n)
{
    for (uint64_t at = 0; at < n; at += GN_OUTGOING_PAGE_BYTES) {
        const uint64_t page = n - at < GN_OUTGOING_PAGE_BYTES ? n - at : GN_OUTGOING_PAGE_BYTES;
        if (!gn_stream_all_zero(from + at, page))
            memcpy(to + at, from + at, page);
    }
}

static int read_contents(const struct gn_page_source *source, unsigned char *to, uint64_t n)
{
    unsigned char *piece = source->memory ? NULL : malloc(PIECE_BYTES);
    int rc = source->memory || piece ? 0 : -1;
    for (uint64_t at = 0; at < n && !rc; at += PIECE_BYTES) {
        const uint64_t bytes = n - at < PIECE_BYTES ? n - at : PIECE_BYTES;
        if (piece)
            rc = source->read(source->ctx, at, piece, bytes);
        if (!rc)
            copy_nonzero_pages(to + at, piece ? piece : (const unsigned char *)source->memory + at,
                               bytes);
    }
    free(piece);
    return rc;
}

static bool add_memory(struct gn_retained *r, const struct retained_memory *one)
{
    struct retained_memory *all = gn_array_reserve(r->all, r->n, &r->capacity, sizeof *all);
    if (!all)
        return false;
    r->all = all;
    if (gn_known_put(&r->places, one->id, r->n))
        return false;
    r->all[r->n++] = *one;
    return true;
}

void gn_retained_keep(struct gn_retained *r, struct gn_vgpu *v, struct gn_vobject *o)
{
    const struct gn_vgpu_contents *contents = v->api->contents;
    struct retained_memory one = {.id = o->id};
    struct gn_page_source source;
    struct gn_writes *writes;
    struct gn_error ignored;
    if (!r || !contents->look(v, o, false, &one.bytes, &writes) ||
        contents->open(v, o, NULL, &source, &ignored))
        return;
    one.at = mmap(NULL, one.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (one.at != MAP_FAILED && (read_contents(&source, one.at, one.bytes) || !add_memory(r, &one)))
        unmap(&one);
    contents->shut(v, &source);
}

void gn_retained_done(struct gn_retained *r, struct gn_vgpu *v)
{
    if (!r)
        return;
    v->api->contents->end(v);
    pthread_mutex_lock(&kept.lock);
    r->filling = false;
    r->whole = true;
    const bool wanted = find_locked(r->number);
    pthread_cond_broadcast(&kept.wake);
    pthread_mutex_unlock(&kept.lock);
    if (!wanted)
        destroy(r);
}

void gn_retained_remove_objects(struct gn_vgpu *v)
{
    struct gn_retained *r = v->api->contents ? gn_retained_begin(v) : NULL;
    struct gn_vobject *o;
    uint32_t index = 0;
    while (!gn_vgpu_is_called_off(v) && (o = gn_object_next(v, &index))) {
        gn_retained_keep(r, v, o);
        gn_object_remove(v, o->id, o->kind);
    }
    gn_retained_done(r, v);
}

uint32_t gn_retained_list(uint64_t number, uint64_t **ret_ids)
{
    struct gn_retained *r;
    struct timespec until;
    uint32_t n = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LEAVES_S;
    *ret_ids = NULL;
    pthread_mutex_lock(&kept.lock);
    while ((r = find_locked(number)) && !r->whole &&
           !pthread_cond_timedwait(&kept.wake, &kept.lock, &until))
        ;
    if (r && r->whole && r->n && (*ret_ids = malloc(r->n * sizeof **ret_ids)))
        for (; n < r->n; n++)
            (*ret_ids)[n] = r->all[n].id;
    pthread_mutex_unlock(&kept.lock);
    return n;
}

static struct retained_memory *find_memory(uint64_t number, uint64_t id)
{
    pthread_mutex_lock(&kept.lock);
    struct gn_retained *r = find_locked(number);
    pthread_mutex_unlock(&kept.lock);
    const uint32_t *at = r && r->whole ? gn_known_find(&r->places, id) : NULL;
    return at ? &r->all[*at] : NULL;
}

const void *gn_retained_find(uint64_t number, uint64_t id, uint64_t bytes)
{
    const struct retained_memory *one = find_memory(number, id);
    return one && one->bytes == bytes ? one->at : NULL;
}

void gn_retained_drop_one(uint64_t number, uint64_t id)
{
    struct retained_memory *one = find_memory(number, id);
    if (one)
        unmap(one);
}

void gn_retained_drop(uint64_t number)
{
    pthread_mutex_lock(&kept.lock);
    struct gn_retained *r = number ? find_locked(number) : NULL;
    if (r)
        gn_list_remove(&r->link);
    const bool filling = r && r->filling;
    pthread_cond_broadcast(&kept.wake);
    pthread_mutex_unlock(&kept.lock);
    if (r && !filling)
        destroy(r);
}
