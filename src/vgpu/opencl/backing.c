/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies contents out to their backing, and in again. Where the device hashes pages
 * (device_digest.h), it has digests of the backing's pages from the last copy, and only pages with
 * other digests are read. Called by residency.c, under its lock. Never decides which memory is
 * copied, or how long a backing stays.
 */
#include "backing.h"
#include "device_digest.h"
#include "opencl_host.h"

#include "backend/opencl/page_hash_cl.h"
#include "vgpu/migrate/outgoing.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES   ((uint64_t)GN_OUTGOING_PAGE_BYTES)
#define DIGEST_BYTES GN_CL_PAGE_DIGEST_BYTES
#define AT_ONCE      4096u /* pages; their digests take 128 KiB of the device's memory */
#define RUN_PAGES    16u   /* a read takes as long as so many pages more */

struct gn_backing_device {
    struct gn_list link;
    const struct gn_backing_devices *all;
    const cl_icd_dispatch *cl;
    cl_context context; /* retained */
    struct gn_device_digests *digests;
    uint32_t n_users;
};

/* ---- devices that hash */

void gn_backing_devices_init(struct gn_backing_devices *all)
{
    gn_list_init(&all->contexts);
}

/* A kernel may not read a CL_MEM_WRITE_ONLY buffer. */
static bool is_hashable(const struct gn_copied *c)
{
    return !gn_copied_is_image(c) && !(c->flags & CL_MEM_WRITE_ONLY);
}

static void drop_hasher(struct gn_backing_devices *all)
{
    if (gn_list_empty(&all->contexts))
        gn_page_hasher_fini(&all->hasher);
}

static struct gn_backing_device *add_device(struct gn_vgpu *v, struct gn_backing_devices *all,
                                            cl_context context)
{
    struct gn_error ignored;
    struct gn_device_digests *digests = gn_device_digests_new(v, context);
    struct gn_backing_device *d = digests ? calloc(1, sizeof *d) : NULL;
    if (!d || (gn_list_empty(&all->contexts) &&
               gn_page_hasher_init(&all->hasher, GN_PAGE_HASH_NH, PAGE_BYTES, 0, &ignored))) {
        free(d);
        gn_device_digests_free(digests);
        return NULL;
    }
    *d = (struct gn_backing_device){
        .all = all, .cl = gn_cl(v), .context = context, .digests = digests};
    d->cl->clRetainContext(context);
    gn_list_append(&all->contexts, &d->link);
    return d;
}

struct gn_backing_device *gn_backing_device_get(struct gn_vgpu *v, struct gn_backing_devices *all,
                                                cl_context context, const struct gn_copied *c)
{
    struct gn_backing_device *found = NULL;
    if (!is_hashable(c))
        return NULL;
    gn_list_for_each(d, &all->contexts, struct gn_backing_device, link)
    {
        if (d->context == context)
            found = d;
    }
    if (!found && !(found = add_device(v, all, context)))
        return NULL;
    found->n_users++;
    return found;
}

void gn_backing_device_put(struct gn_backing_devices *all, struct gn_backing_device *d)
{
    if (!d || --d->n_users)
        return;
    gn_list_remove(&d->link);
    gn_device_digests_free(d->digests);
    d->cl->clReleaseContext(d->context);
    free(d);
    drop_hasher(all);
}

void gn_backing_devices_trim(struct gn_backing_devices *all)
{
    gn_list_for_each(d, &all->contexts, struct gn_backing_device, link)
    {
        gn_device_digests_trim(d->digests);
    }
}

/* ---- contents */

bool gn_backing_init(struct gn_backing *b, uint64_t bytes)
{
    *b = (struct gn_backing){.bytes = malloc(bytes)};
    return b->bytes != NULL;
}

void gn_backing_fini(struct gn_backing *b)
{
    free(b->bytes);
    free(b->digests);
    *b = (struct gn_backing){0};
}

static uint64_t pages_of(const struct gn_copied *c)
{
    return (c->bytes + PAGE_BYTES - 1) / PAGE_BYTES;
}

/* Of all pages, by the device; the caller owns them. NULL: not now. */
static unsigned char *compute_digests(struct gn_backing_device *on, const struct gn_copied *c)
{
    const uint64_t n = pages_of(c);
    unsigned char *digests = malloc(n * DIGEST_BYTES);
    bool good = digests != NULL;
    if (good)
        gn_device_digests_ready(on->digests, &on->all->hasher);
    for (uint64_t first = 0; good && first < n; first += AT_ONCE) {
        const uint64_t some = n - first < AT_ONCE ? n - first : AT_ONCE;
        good = !gn_device_digests_of(on->digests, c->mem, c->bytes, first, some,
                                     digests + first * DIGEST_BYTES);
    }
    if (!good)
        free(digests);
    return good ? digests : NULL;
}

static bool is_equal(const unsigned char *a, const unsigned char *b, uint64_t page)
{
    return !memcmp(a + page * DIGEST_BYTES, b + page * DIGEST_BYTES, DIGEST_BYTES);
}

/* From `page` on: the first run of pages whose digests differ. False: there is none. */
static bool next_run(const struct gn_backing *b, const unsigned char *digests, uint64_t n,
                     uint64_t page, uint64_t *ret_first, uint64_t *ret_end)
{
    while (page < n && is_equal(b->digests, digests, page))
        page++;
    *ret_first = page;
    while (page < n && !is_equal(b->digests, digests, page))
        page++;
    *ret_end = page;
    return *ret_first < n;
}

/* Is it quicker to read the changed pages alone? */
static bool reads_changed(const struct gn_backing *b, const struct gn_copied *c,
                          const unsigned char *digests)
{
    const uint64_t n = pages_of(c);
    uint64_t cost = 0, first, end;
    if (!digests || !b->digests)
        return false;
    for (uint64_t page = 0; next_run(b, digests, n, page, &first, &end); page = end)
        cost += RUN_PAGES + end - first;
    return cost < n;
}

static cl_int read_changed(struct gn_vgpu *v, struct gn_copy_queue *q, const struct gn_backing *b,
                           const struct gn_copied *c, const unsigned char *digests,
                           uint64_t *copied_bytes)
{
    cl_int result = CL_SUCCESS;
    uint64_t first, end;
    for (uint64_t page = 0; !result && next_run(b, digests, pages_of(c), page, &first, &end);
         page = end) {
        const uint64_t at = first * PAGE_BYTES, left = c->bytes - at;
        const uint64_t run = (end - first) * PAGE_BYTES, bytes = run < left ? run : left;
        result = gn_memory_read(v, q, c, at, bytes, b->bytes + at);
        *copied_bytes += bytes;
    }
    return result;
}

cl_int gn_backing_save(struct gn_vgpu *v, struct gn_backing *b, const struct gn_copied *c,
                       bool holds, struct gn_backing_device *on, uint64_t *copied_bytes)
{
    unsigned char *digests = on ? compute_digests(on, c) : NULL;
    struct gn_copy_queue q;
    cl_int result = CL_OUT_OF_RESOURCES;
    if (digests)
        *copied_bytes += pages_of(c) * DIGEST_BYTES;
    if (gn_copy_queue_open(v, c->mem, &q)) {
        const bool some = holds && reads_changed(b, c, digests);
        result = some ? read_changed(v, &q, b, c, digests, copied_bytes)
                      : gn_memory_read(v, &q, c, 0, c->bytes, b->bytes);
        *copied_bytes += some ? 0 : c->bytes;
        gn_copy_queue_close(v, &q);
    }
    free(b->digests);
    b->digests = digests;
    return result;
}

cl_int gn_backing_load(struct gn_vgpu *v, const struct gn_backing *b, const struct gn_copied *c)
{
    struct gn_copy_queue q;
    if (!gn_copy_queue_open(v, c->mem, &q))
        return CL_OUT_OF_RESOURCES;
    const cl_int result = gn_memory_write(v, &q, c, 0, c->bytes, b->bytes);
    gn_copy_queue_close(v, &q);
    return result;
}
