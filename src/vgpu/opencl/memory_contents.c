/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of memory objects, into a stream and out of one. The file uses queues of its own, one
 * for each context, invisible to the program. Memory that the program has closed to host reads or
 * writes (CL_MEM_HOST_*) is copied on the device, to or from a buffer that is open to them. Where
 * the driver's maps expose the memory itself (tested once for each context), contents are accessed
 * in place.
 *
 * Views of other objects (sub-buffers, images over buffers) are not sent, nor is memory in the data
 * area, which stays where the program is. Run by the saving thread, by its hashing thread
 * (sources), and by the loading thread.
 */
#include "device_digest.h"
#include "memory_copy.h"
#include "opencl_host.h"
#include "residency.h"
#include "variables.h"
#include "vgpu/migrate/save.h"
#include "vgpu/migrate/delta_base.h"

#include "base/array.h"
#include "base/fault.h"
#include "migrate/verify.h"
#include "stream/known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PROBE_BYTES 8192u
#define PROBE_WORD  UINT32_C(0x2f9b51c3)

struct context_queue {
    struct gn_copy_queue copy;
    bool in_place;                     /* a map exposes the memory itself */
    struct gn_device_digests *digests; /* computed by the device; NULL: by the host */
};

/* A memory that is being loaded. */
struct incoming {
    struct gn_vobject *object; /* held */
    void *mapped;              /* NULL: contents are written by commands */
};

struct gn_contents {
    struct context_queue **queues;
    uint32_t n;
    /* during a load */
    struct incoming *in;
    uint32_t n_in, in_capacity;
    struct gn_known_ids places; /* in `in` */
};

static struct gn_contents *contents_of(struct gn_vgpu *v)
{
    struct gn_opencl_vgpu *detail = v->detail;
    if (!detail->contents)
        detail->contents = calloc(1, sizeof *detail->contents);
    return detail->contents;
}

static void close_contents(struct gn_vgpu *v)
{
    struct gn_opencl_vgpu *detail = v->detail;
    struct gn_contents *c = detail->contents;
    for (uint32_t i = 0; c && i < c->n; i++) {
        struct context_queue *q = c->queues[i];
        gn_cl(v)->clFinish(q->copy.queue);
        gn_device_digests_free(q->digests);
        gn_copy_queue_close(v, &q->copy);
        free(q);
    }
    if (c) {
        free(c->queues);
        free(c->in);
        gn_known_fini(&c->places);
    }
    free(c);
    detail->contents = NULL;
}

/*
 * True if a map, while it lasts, shows the device's writes, and the device sees writes to the map.
 */
static bool is_map_coherent(const cl_icd_dispatch *cl, cl_command_queue queue, cl_mem mem)
{
    const size_t last = PROBE_BYTES / sizeof(uint32_t) - 1;
    const uint32_t word = PROBE_WORD;
    uint32_t back = 0;
    cl_int result;
    bool good = false;
    volatile uint32_t *at = cl->clEnqueueMapBuffer(queue, mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                                   0, PROBE_BYTES, 0, NULL, NULL, &result);
    if (!at)
        return false;
    at[0] = at[last] = ~word;
    if (!cl->clEnqueueFillBuffer(queue, mem, &word, sizeof word, 0, PROBE_BYTES, 0, NULL, NULL) &&
        !cl->clFinish(queue) && at[0] == word && at[last] == word) {
        at[last] = ~word;
        good = !cl->clEnqueueReadBuffer(queue, mem, CL_TRUE, last * sizeof back, sizeof back, &back,
                                        0, NULL, NULL) &&
               back == ~word;
    }
    cl->clEnqueueUnmapMemObject(queue, mem, (void *)(uintptr_t)at, 0, NULL, NULL);
    cl->clFinish(queue);
    return good;
}

static bool test_in_place(struct gn_vgpu *v, const struct context_queue *q)
{
    cl_int result;
    if (!gn_home_possible(v, q->copy.context))
        return false;
    cl_mem mem =
        gn_cl(v)->clCreateBuffer(q->copy.context, CL_MEM_READ_WRITE, PROBE_BYTES, NULL, &result);
    bool good = mem && is_map_coherent(gn_cl(v), q->copy.queue, mem);
    if (mem)
        gn_cl(v)->clReleaseMemObject(mem);
    return good;
}

static struct context_queue *queue_for(struct gn_vgpu *v, cl_mem mem)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    struct gn_contents *c = contents_of(v);
    cl_context context = NULL;
    if (!c || cl->clGetMemObjectInfo(mem, CL_MEM_CONTEXT, sizeof context, &context, NULL))
        return NULL;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->queues[i]->copy.context == context)
            return c->queues[i];
    struct context_queue **more = realloc(c->queues, (c->n + 1) * sizeof(struct context_queue *));
    if (!more)
        return NULL;
    c->queues = more;
    struct context_queue *q = calloc(1, sizeof *q);
    if (!q || !gn_copy_queue_open(v, mem, &q->copy)) {
        free(q);
        return NULL;
    }
    q->in_place = !gn_device_digests_forced() && test_in_place(v, q);
    if (!q->in_place)
        q->digests = gn_device_digests_new(v, context);
    c->queues[c->n++] = q;
    return q;
}

/* ---- properties of contents */

struct content {
    struct gn_copied copied;
    const void *home; /* of a buffer in the program's memory: its address */
};

/* False: nothing of it is sent. `homes`: include memory that lies in the program's memory. */
static bool describe_contents(struct gn_vgpu *v, const struct gn_vobject *o, bool homes,
                              struct content *ret)
{
    const struct gn_mem_detail *detail = o->detail;
    cl_mem parent = NULL;
    if (o->kind != GN_KIND_MEM || !detail || (detail->home && !homes) || detail->borrowed ||
        detail->svm)
        return false;
    *ret = (struct content){0};
    gn_cl(v)->clGetMemObjectInfo(o->driver, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent,
                                 NULL);
    if (parent || !gn_copied_describe(gn_cl(v), o->driver, detail->element_bytes, &ret->copied))
        return false;
    return !detail->home || !gn_cl(v)->clGetMemObjectInfo(o->driver, CL_MEM_HOST_PTR,
                                                          sizeof ret->home, &ret->home, NULL);
}

static const char *find_obstacle(struct gn_vgpu *v, struct gn_vobject *const *objects, uint32_t n)
{
    uint64_t copied = 0;
    /* A save reads the driver's objects; while it lasts, nothing is evicted. */
    if (gn_vgpu_has_evicted(v) && !gn_budget_await_whole(&v->budget, false))
        return "memory that is evicted";
    if (gn_residency_bring_in_all(v, &copied))
        return "more memory than the driver has now";
    for (uint32_t i = 0; i < n; i++) {
        const struct gn_vobject *o = objects[i];
        cl_mem_object_type type = 0;
        cl_uint levels = 0;
        const char *why = gn_variables_obstacle(o);
        if (why)
            return why;
        if (o->kind != GN_KIND_MEM)
            continue;
        gn_cl(v)->clGetMemObjectInfo(o->driver, CL_MEM_TYPE, sizeof type, &type, NULL);
        if (type == CL_MEM_OBJECT_PIPE)
            return "a pipe, whose contents cannot be read";
        if (type != CL_MEM_OBJECT_BUFFER &&
            !gn_cl(v)->clGetImageInfo(o->driver, CL_IMAGE_NUM_MIP_LEVELS, sizeof levels, &levels,
                                      NULL) &&
            levels > 1)
            return "an image with mip levels, which cannot be moved yet";
    }
    return NULL;
}

/* ---- saving */

static bool get_contents(struct gn_vgpu *v, const struct gn_vobject *o, bool homes,
                         uint64_t *ret_bytes, struct gn_writes **ret_writes)
{
    struct content c;
    if (!describe_contents(v, o, homes, &c))
        return false;
    *ret_bytes = c.copied.bytes;
    *ret_writes = ((const struct gn_mem_detail *)o->detail)->writes;
    /* The program writes its memory without commands, so changes are found by hash. */
    if (c.home)
        gn_writes_by_kernel(v, *ret_writes);
    return true;
}

static const void *get_home(struct gn_vgpu *v, const struct gn_vobject *o, uint64_t *ret_bytes)
{
    struct content c;
    if (!describe_contents(v, o, true, &c) || !c.home)
        return NULL;
    *ret_bytes = c.copied.bytes;
    return c.home;
}

/* The source of a memory's contents. */
struct source {
    struct gn_vgpu *v;
    struct content content;
    struct context_queue *queue;
    void *mapped; /* NULL: not read in place */
    const struct gn_page_hasher *there;
};

/*
 * Reads exactly the requested range. A page's marks are cleared just before: anything read earlier
 * could be older than a write with its mark gone.
 */
static int read_source(void *ctx, uint64_t offset, void *dst, uint64_t n)
{
    struct source *s = ctx;
    const struct content *c = &s->content;
    /*
     * Copied even though it is mapped: the program may write here while its vGPU is quiesced, and a
     * page that changed during sending would not match its checksum.
     */
    if (c->home)
        return memcpy(dst, (const unsigned char *)c->home + offset, n), 0;
    return gn_memory_read(s->v, &s->queue->copy, &c->copied, offset, n, dst) ? -EIO : 0;
}

static int digest_source(void *ctx, uint64_t first_page, uint64_t n_pages, void *ret)
{
    const struct source *s = ctx;
    return gn_device_digests_of(s->queue->digests, s->content.copied.mem, s->content.copied.bytes,
                                first_page, n_pages, ret);
}

static void prepare_source(struct gn_vgpu *v, struct gn_page_source *source)
{
    const struct source *s = source->ctx;
    gn_device_digests_ready(s->queue->digests, s->there);
}

/* True if the device can hash its pages. A kernel may not read a CL_MEM_WRITE_ONLY buffer. */
static bool device_hashes(const struct context_queue *q, const struct content *c)
{
    return q->digests && !c->home && !gn_copied_is_image(&c->copied) &&
           !(c->copied.flags & CL_MEM_WRITE_ONLY);
}

static int open_source(struct gn_vgpu *v, struct gn_vobject *o, const struct gn_page_hasher *there,
                       struct gn_page_source *ret, struct gn_error *err)
{
    struct source *s = calloc(1, sizeof *s);
    cl_int result = CL_SUCCESS;
    if (!s || !describe_contents(v, o, true, &s->content) ||
        !(s->queue = queue_for(v, o->driver))) {
        free(s);
        return gn_fail(err, ENOMEM, NULL, "no memory left to read the contents of its memory");
    }
    s->v = v;
    s->there = there;
    if (!s->content.home && !gn_copied_is_image(&s->content.copied) && s->queue->in_place &&
        !(s->content.copied.flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)))
        s->mapped = gn_cl(v)->clEnqueueMapBuffer(s->queue->copy.queue, s->content.copied.mem,
                                                 CL_TRUE, CL_MAP_READ, 0, s->content.copied.bytes,
                                                 0, NULL, NULL, &result);
    *ret = (struct gn_page_source){.memory = s->mapped,
                                   .read = read_source,
                                   .digest =
                                       device_hashes(s->queue, &s->content) ? digest_source : NULL,
                                   .ctx = s};
    return 0;
}

static void shut_source(struct gn_vgpu *v, struct gn_page_source *source)
{
    struct source *s = source->ctx;
    if (s && s->mapped)
        gn_cl(v)->clEnqueueUnmapMemObject(s->queue->copy.queue, s->content.copied.mem, s->mapped, 0,
                                          NULL, NULL);
    free(s);
    *source = (struct gn_page_source){0};
}

/* ---- loading */

/* Homes are loaded when the program does not bring them with its memory. */
static bool describe_here(struct gn_vgpu *v, const struct gn_vobject *o, struct content *ret)
{
    return describe_contents(v, o, !v->session->shares_memory, ret);
}

static struct gn_vobject *find_object(struct gn_vgpu *v, uint64_t id, uint64_t bytes,
                                      struct content *ret)
{
    bool lie = false;
    struct gn_vobject *o = gn_object_get(v, id, GN_KIND_MEM, &lie);
    if (o && (!describe_here(v, o, ret) || ret->copied.bytes != bytes)) {
        gn_object_unref(o);
        return NULL;
    }
    return o;
}

static int fail_write(struct gn_error *err, cl_int result)
{
    return gn_fail(err, EIO, NULL, "the driver cannot write memory contents: error %d", result);
}

static int fail_no_memory(struct gn_error *err)
{
    return gn_fail(err, ENOMEM, NULL, "no memory left to load memory contents");
}

/* Prepares for a memory that the stream announces. */
static int expect_memory(struct gn_vgpu *v, const struct gn_stream_memory *m, struct gn_error *err)
{
    struct gn_contents *c = contents_of(v);
    struct content content;
    cl_int result = CL_SUCCESS;
    /* Each object has one memory, under its own id, so it is found again. */
    struct gn_vobject *o =
        m->id == m->object ? find_object(v, m->object, m->bytes, &content) : NULL;
    if (!o || !c || gn_known_find(&c->places, m->id)) {
        gn_object_unref(o);
        return gn_fail(err, EBADMSG, NULL,
                       "contents are announced for no memory object, or for one of another size");
    }
    struct context_queue *q = queue_for(v, o->driver);
    struct incoming *in = gn_array_reserve(c->in, c->n_in, &c->in_capacity, sizeof *in);
    if (in)
        c->in = in;
    if (!q || !in || gn_known_put(&c->places, m->id, c->n_in)) {
        gn_object_unref(o);
        return fail_no_memory(err);
    }
    in += c->n_in++;
    *in = (struct incoming){.object = o};
    if (!gn_copied_is_image(&content.copied) && q->in_place &&
        !(content.copied.flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)))
        in->mapped =
            gn_cl(v)->clEnqueueMapBuffer(q->copy.queue, content.copied.mem, CL_TRUE, CL_MAP_WRITE,
                                         0, content.copied.bytes, 0, NULL, NULL, &result);
    if (v->delta_base)
        gn_delta_base_expect(v->delta_base, m->id, m->bytes,
                             ((const struct gn_mem_detail *)o->detail)->writes,
                             device_hashes(q, &content));
    return 0;
}

static void release_incoming(struct gn_vgpu *v, struct incoming *in)
{
    struct context_queue *q = in->mapped ? queue_for(v, in->object->driver) : NULL;
    if (q)
        gn_cl(v)->clEnqueueUnmapMemObject(q->copy.queue, in->object->driver, in->mapped, 0, NULL,
                                          NULL);
    gn_object_unref(in->object);
}

static bool forget_memory(struct gn_vgpu *v, uint64_t memory)
{
    struct gn_contents *c = contents_of(v);
    const uint32_t *place = c ? gn_known_find(&c->places, memory) : NULL;
    if (!place)
        return false;
    const uint32_t at = *place;
    if (v->delta_base)
        gn_delta_base_gone(v->delta_base, memory);
    release_incoming(v, &c->in[at]);
    gn_known_remove(&c->places, memory);
    c->in[at] = c->in[--c->n_in];
    if (at < c->n_in)
        *gn_known_find(&c->places, c->in[at].object->id) = at;
    return true;
}

static int write_whole(struct gn_vgpu *v, struct context_queue *q, const struct content *c,
                       uint64_t at, uint64_t n, const void *from, struct gn_error *err)
{
    const cl_int result = gn_memory_write(v, &q->copy, &c->copied, at, n, from);
    return result ? fail_write(err, result) : 0;
}

static int read_pages(struct gn_vgpu *v, struct gn_stream_reader *r,
                      const struct gn_stream_section *s, void *const *where)
{
    int rc = gn_stream_read_pages(r, where);
    if (!rc && v->delta_base)
        gn_delta_base_came(v->delta_base, r, s, where);
    return rc;
}

/* Runs of zeros may be longer than a piece. */
static int write_runs(struct gn_vgpu *v, struct gn_stream_reader *r,
                      const struct gn_stream_section *s, struct context_queue *q,
                      const struct content *content, const uint64_t *at, struct gn_error *err)
{
    void *where[GN_STREAM_MOST_RUNS];
    uint64_t room = 0, used = 0;
    for (uint32_t i = 0; i < s->n_runs; i++)
        room += gn_stream_run_bytes(r, s, i);
    unsigned char *all = malloc(room ? room : 1);
    if (!all)
        return fail_no_memory(err);
    for (uint32_t i = 0; i < s->n_runs; i++) {
        where[i] = all + used;
        used += gn_stream_run_bytes(r, s, i);
    }
    int rc = read_pages(v, r, s, where);
    for (uint32_t i = 0; !rc && i < s->n_runs; i++)
        rc = write_whole(v, q, content, at[i], gn_stream_run_bytes(r, s, i), where[i], err);
    free(all);
    return rc;
}

static int load_pages(struct gn_vgpu *v, struct gn_stream_reader *r,
                      const struct gn_stream_section *s, struct gn_error *err)
{
    const uint32_t page_bytes = gn_stream_reader_about(r)->page_bytes;
    struct gn_contents *c = contents_of(v);
    const uint32_t *place = c ? gn_known_find(&c->places, s->memory->id) : NULL;
    struct incoming *in = place ? &c->in[*place] : NULL;
    struct content content;
    void *where[GN_STREAM_MOST_RUNS];
    uint64_t at[GN_STREAM_MOST_RUNS];
    if (!in)
        return gn_fail(err, c ? EBADMSG : ENOMEM, NULL,
                       "contents came for no memory object, or there is no memory for them");
    for (uint32_t i = 0; i < s->n_runs; i++)
        at[i] = s->runs[i].first_page * page_bytes;
    unsigned char *to = in->mapped;
    if (!to) {
        struct context_queue *q = queue_for(v, in->object->driver);
        if (!q || !describe_here(v, in->object, &content) ||
            content.copied.bytes != s->memory->bytes)
            return fail_no_memory(err);
        return write_runs(v, r, s, q, &content, at, err);
    }
    for (uint32_t i = 0; i < s->n_runs; i++)
        where[i] = to + at[i];
    return read_pages(v, r, s, where);
}

static int fill_memory(struct gn_vgpu *v, uint64_t memory, const void *from, struct gn_error *err)
{
    struct gn_contents *c = contents_of(v);
    const uint32_t *place = c ? gn_known_find(&c->places, memory) : NULL;
    struct incoming *in = place ? &c->in[*place] : NULL;
    struct context_queue *q = in ? queue_for(v, in->object->driver) : NULL;
    struct content content;
    if (!q || !describe_here(v, in->object, &content))
        return fail_no_memory(err);
    if (!in->mapped)
        return write_whole(v, q, &content, 0, content.copied.bytes, from, err);
    memcpy(in->mapped, from, content.copied.bytes);
    return 0;
}

static int load_section(struct gn_vgpu *v, struct gn_stream_reader *r,
                        const struct gn_stream_section *s, struct gn_error *err)
{
    int rc = 0;
    GN_FAULT("load-contents");
    if (s->what == GN_STREAM_IS_PAGES)
        return load_pages(v, r, s, err);
    for (uint32_t i = 0; i < s->n_memories && !rc; i++)
        rc = expect_memory(v, &s->memories[i], err);
    return rc;
}

static void end_load(struct gn_vgpu *v)
{
    struct gn_opencl_vgpu *detail = v->detail;
    struct gn_contents *c = detail->contents;
    for (uint32_t i = 0; c && i < c->n_in; i++)
        release_incoming(v, &c->in[i]);
    if (c)
        c->n_in = 0;
    close_contents(v);
}

const struct gn_vgpu_contents gn_opencl_contents = {.obstacle = find_obstacle,
                                                    .save_devices = gn_opencl_save_devices,
                                                    .check_device = gn_opencl_check_device,
                                                    .judge_devices = gn_opencl_compare_devices,
                                                    .save_object = gn_opencl_save_object,
                                                    .check_object = gn_opencl_check_object,
                                                    .look = get_contents,
                                                    .home = get_home,
                                                    .open = open_source,
                                                    .ready = prepare_source,
                                                    .shut = shut_source,
                                                    .settle = gn_opencl_drain_queues,
                                                    .end = close_contents,
                                                    .leaving = gn_home_release_event,
                                                    .leave_by = gn_home_set_release_event,
                                                    .load = load_section,
                                                    .fill = fill_memory,
                                                    .gone = forget_memory,
                                                    .loaded = end_load};
