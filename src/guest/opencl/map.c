/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps and unmaps. A mapped region is in the buffer's home, or a copy in the data area, or, for
 * CL_MEM_USE_HOST_PTR, at the program's own address. A map is sent as a read into the region, and
 * the unmap of a region mapped for writing as a write from it, so the vGPU needs no maps. Called on
 * the program's threads. Only blocking calls wait for the device.
 */
#include "alone.h"
#include "opencl_guest.h"
#include "opencl_pixel.h"
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

#define READS_MAP  (CL_MAP_READ | CL_MAP_WRITE)
#define WRITES_MAP (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)
/* A mapped pointer keeps its offset in the buffer modulo this. */
#define ALIGN     4096u
#define WHOLE_MAX (UINT64_C(64) << 20) /* maps of a larger buffer are allocated one by one */

static cl_int check_map(cl_command_queue command_queue, cl_mem mem, bool image, cl_map_flags flags,
                        cl_uint n, const cl_event *waits, struct gn_cl_queue **ret_q,
                        struct gn_cl_mem **ret_m)
{
    struct gn_cl_queue *q = gn_object_of(command_queue, GN_KIND_QUEUE);
    if (!q)
        return CL_INVALID_COMMAND_QUEUE;
    struct gn_cl_mem *m = gn_object_of_session(&q->o, mem, GN_KIND_MEM);
    if (!m || (m->type == CL_MEM_OBJECT_BUFFER) == image || m->type == CL_MEM_OBJECT_PIPE)
        return CL_INVALID_MEM_OBJECT;
    if (m->context != q->context)
        return CL_INVALID_CONTEXT;
    cl_int result = gn_command_begin(&q->o, n, waits);
    if (result)
        return result;
    if (((flags & CL_MAP_READ) && (m->flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS))) ||
        ((flags & WRITES_MAP) && (m->flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS))))
        return CL_INVALID_OPERATION;
    *ret_q = q;
    *ret_m = m;
    return CL_SUCCESS;
}

/* The driver's verdict on a map, and, for an image, its pitches. */
static cl_int probe_map(struct gn_cl_queue *q, struct gn_cl_mem *m, cl_map_flags flags,
                        const struct gn_cl_map *map, cl_ulong *pitches)
{
    const cl_ulong place[6] = {map->origin[0], map->origin[1], map->origin[2],
                               map->region[0], map->region[1], map->region[2]};
    return gn_send_MapProbe(q->o.session, (cl_command_queue)q, (cl_mem)m, flags, place, pitches);
}

static bool has_unusual_flags(cl_map_flags flags)
{
    return flags & ~(cl_map_flags)(READS_MAP | WRITES_MAP) ||
           ((flags & CL_MAP_WRITE_INVALIDATE_REGION) && (flags & READS_MAP));
}

/* ---- placement of regions */

void gn_mapping_put(struct gn_session *s, struct gn_cl_mapping *mapping)
{
    if (!mapping || atomic_fetch_sub_explicit(&mapping->n_refs, 1, memory_order_acq_rel) != 1)
        return;
    gn_block_free(s, &mapping->block);
    free(mapping);
}

static struct gn_cl_mapping *mapping_new(struct gn_session *s, uint64_t bytes)
{
    struct gn_cl_mapping *mapping = calloc(1, sizeof *mapping);
    if (mapping && gn_block_alloc(s, GN_AREA_PASSING, bytes, &mapping->block)) {
        free(mapping);
        return NULL;
    }
    if (mapping)
        atomic_init(&mapping->n_refs, 1);
    return mapping;
}

static struct gn_cl_mapping *mapping_of_whole(struct gn_cl_mem *m)
{
    struct gn_cl_mapping *mapping, *made = NULL;
    for (;;) {
        pthread_mutex_lock(&m->lock);
        if (!m->mapping && made) {
            m->mapping = made;
            made = NULL;
        }
        mapping = m->mapping;
        if (mapping)
            atomic_fetch_add_explicit(&mapping->n_refs, 1, memory_order_relaxed);
        pthread_mutex_unlock(&m->lock);
        if (mapping || !(made = mapping_new(m->o.session, m->size)))
            break;
    }
    gn_mapping_put(m->o.session, made);
    return mapping;
}

/* Places a buffer's region. -1: no memory. */
static int place_buffer(struct gn_cl_mem *m, struct gn_cl_map *map)
{
    size_t at = map->origin[0];
    if (m->home && gn_session_enter_home(m->o.session)) {
        map->at_home = true;
        map->ptr = m->home + at;
        return 0;
    }
    if (m->host_ptr) {
        map->ptr = m->host_ptr + at;
        return 0;
    }
    if (m->size <= WHOLE_MAX && (map->mapping = mapping_of_whole(m))) {
        map->ptr = (char *)map->mapping->block.base + at;
        return 0;
    }
    map->mapping = mapping_new(m->o.session, map->region[0] + at % ALIGN);
    if (map->mapping)
        map->ptr = (char *)map->mapping->block.base + at % ALIGN;
    return map->mapping ? 0 : -1;
}

/*
 * Whether a live map for writing covers the region: then it has the program's data, which a read
 * must not overwrite.
 */
static bool is_under_write_map(struct gn_cl_mem *m, const struct gn_cl_map *map)
{
    bool covered = false;
    pthread_mutex_lock(&m->lock);
    for (const struct gn_cl_map *w = m->maps; w && !covered; w = w->next)
        covered = map->mapping && w->mapping == map->mapping && w->flags & WRITES_MAP &&
                  m->type == CL_MEM_OBJECT_BUFFER && map->origin[0] >= w->origin[0] &&
                  map->origin[0] + map->region[0] <= w->origin[0] + w->region[0];
    pthread_mutex_unlock(&m->lock);
    return covered;
}

static void add_map(struct gn_cl_mem *m, struct gn_cl_map *map)
{
    pthread_mutex_lock(&m->lock);
    map->next = m->maps;
    m->maps = map;
    m->n_maps++;
    pthread_mutex_unlock(&m->lock);
}

static struct gn_cl_map *remove_map(struct gn_cl_mem *m, const void *mapped_ptr)
{
    struct gn_cl_map *map = NULL;
    struct gn_cl_mapping *whole = NULL;
    pthread_mutex_lock(&m->lock);
    for (struct gn_cl_map **at = &m->maps; *at; at = &(*at)->next) {
        if ((*at)->ptr == mapped_ptr) {
            map = *at;
            *at = map->next;
            m->n_maps--;
            break;
        }
    }
    if (!m->n_maps) {
        whole = m->mapping;
        m->mapping = NULL;
    }
    pthread_mutex_unlock(&m->lock);
    gn_mapping_put(m->o.session, whole);
    return map;
}

/* ---- filling the region */

static struct gn_area_ref map_ref(const struct gn_cl_map *map)
{
    const struct gn_block *b = &map->mapping->block;
    return gn_block_ref(b, (uint64_t)((char *)map->ptr - (char *)b->base));
}

/*
 * For memory that the host may not read, the driver makes a copy first: a map for writing must
 * preserve the bytes that the program does not change.
 */
static cl_int read_by_copy(struct gn_cl_queue *q, const struct gn_cl_map *map,
                           const struct gn_transfer *whole, cl_bool blocking, cl_uint n,
                           const cl_event *waits, cl_event *event)
{
    cl_command_queue queue = (cl_command_queue)q;
    struct gn_cl_mem *m = whole->mem;
    /* An image over a buffer has the buffer's bytes, and PoCL can copy the buffer only. */
    const bool over = m->type == CL_MEM_OBJECT_IMAGE1D_BUFFER && m->source;
    const bool image = m->type != CL_MEM_OBJECT_BUFFER && !over;
    const size_t from = map->origin[0] * (over ? m->element_bytes : 1);
    size_t bytes = gn_layout_bytes(&whole->host);
    cl_event copied = NULL;
    cl_int result;
    cl_mem copy =
        gn_clCreateBuffer((cl_context)m->context, CL_MEM_READ_WRITE, bytes, NULL, &result);
    if (!copy)
        return result;
    if (image)
        result = gn_clEnqueueCopyImageToBuffer(queue, (cl_mem)m, copy, map->origin, map->region, 0,
                                               n, waits, &copied);
    else
        result = gn_clEnqueueCopyBuffer(queue, (cl_mem)(over ? m->source : m), copy, from, 0, bytes,
                                        n, waits, &copied);
    if (!result) {
        struct gn_transfer t = {.kind = GN_TRANSFER_RECT,
                                .mem = (void *)copy,
                                .region = {bytes, 1, 1},
                                .host = whole->host,
                                .type = whole->type,
                                .doubt = GN_ASK(CL_SUCCESS)};
        result = gn_transfer(q, &t, blocking, 1, &copied, event);
        gn_clReleaseEvent(copied);
    }
    gn_clReleaseMemObject(copy);
    return result;
}

/*
 * Maps a buffer at home: only waits for earlier commands. Where a marker would wait for too much
 * (in an out-of-order queue), or the driver must judge the call, it reads one byte instead. The
 * home must not move until that is complete.
 */
static cl_int await_region(struct gn_cl_queue *q, const struct gn_transfer *t, cl_bool blocking,
                           cl_uint n, const cl_event *waits, cl_event *event)
{
    static char nowhere; /* gn_settle copies under a lock */
    char here;
    struct gn_session *s = q->o.session;
    int32_t error = 0;
    gn_session_copied(s, GN_COPIED_NEVER);
    if (!n && !event && t->doubt == GN_SURE && gn_queue_idle(q)) {
        gn_session_leave_home(s);
        return gn_session_lost(s) ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
    }
    if (t->doubt != GN_SURE || (!n && !gn_queue_in_order(q))) {
        struct gn_transfer byte = *t;
        byte.region[0] = 1;
        byte.host = (struct gn_layout){blocking ? &here : &nowhere, 1, 1, 1, 1, 1, false};
        cl_event own = NULL;
        cl_int result = gn_transfer_staged(q, &byte, blocking, n, waits, blocking ? event : &own);
        if (blocking || result) {
            gn_session_leave_home(s);
            return result;
        }
        if (event) {
            gn_object_ref((struct gn_object *)own);
            *event = own;
        }
        gn_settle_home_later(s->detail, (struct gn_object *)own);
        return CL_SUCCESS;
    }
    struct gn_command_show show = {GN_NO_EVENT, 0, GN_SURE};
    struct gn_object *e = gn_event_new(&q->o, t->type, &show);
    if (!e) {
        gn_session_leave_home(s);
        return CL_OUT_OF_HOST_MEMORY;
    }
    cl_int result = gn_send_marker(q, n, waits, &show);
    if (result) {
        gn_event_finish(&s->events[e->id], result, NULL);
    } else if (blocking) {
        if (gn_event_wait(&s->events[e->id], &s->waiter, &error))
            error = CL_OUT_OF_RESOURCES;
        gn_settle(s->detail);
        result = gn_blocking_result(error);
    }
    if (blocking || result) {
        gn_session_leave_home(s);
    } else {
        gn_object_ref(e);
        gn_settle_home_later(s->detail, e);
    }
    if (event && !result)
        *event = (cl_event)e;
    else
        gn_object_unref(e);
    return result;
}

/* `t` is the read that fills the region. */
static cl_int fill_region(struct gn_cl_queue *q, struct gn_cl_map *map, struct gn_transfer *t,
                          cl_bool blocking, cl_uint n, const cl_event *waits, cl_event *event)
{
    struct gn_session *s = q->o.session;
    struct gn_command_show show = {GN_NO_EVENT, 0, t->doubt};
    bool reads = !(map->flags & CL_MAP_WRITE_INVALIDATE_REGION) || map->flags & CL_MAP_READ;
    int32_t error = 0;
    /* Shared virtual memory needs no read. */
    reads = reads && !t->mem->svm && !is_under_write_map(t->mem, map);
    if (map->at_home)
        return await_region(q, t, blocking, n, waits, event);
    if (reads && t->mem->flags & CL_MEM_HOST_WRITE_ONLY)
        return read_by_copy(q, map, t, blocking, n, waits, event);
    if (reads && !map->mapping)
        return gn_transfer(q, t, blocking, n, waits, event);
    struct gn_object *e = gn_event_new(&q->o, t->type, &show);
    if (!e)
        return CL_OUT_OF_HOST_MEMORY;
    cl_int result;
    if (!reads) {
        show.doubt = GN_SURE;
        result = gn_send_marker(q, n, waits, &show);
    } else {
        struct gn_area_ref ref = map_ref(map);
        gn_session_copied(s, GN_COPIED_BY_MAP);
        result = gn_transfer_send(q, t, &ref, n, waits, &show);
    }
    if (result) {
        gn_event_finish(&s->events[e->id], result, NULL);
        gn_object_unref(e);
        return result;
    }
    if (blocking) {
        if (gn_event_wait(&s->events[e->id], &s->waiter, &error))
            error = CL_OUT_OF_RESOURCES;
        gn_settle(s->detail);
    }
    if (event && !error)
        *event = (cl_event)e;
    else
        gn_object_unref(e);
    if (error && gn_session_lost(s))
        return CL_OUT_OF_RESOURCES;
    return !error                          ? CL_SUCCESS
           : error == GN_EVENT_WAIT_FAILED ? gn_blocking_result(error)
                                           : CL_MAP_FAILURE;
}

/* Completes a map, after the region has been placed or not (ptr NULL). */
static void *map_region(struct gn_cl_queue *q, struct gn_cl_mem *m, struct gn_cl_map *map,
                        struct gn_transfer *t, cl_bool blocking, cl_uint n, const cl_event *waits,
                        cl_event *event, cl_int *errcode_ret)
{
    cl_int result = map->ptr                        ? CL_SUCCESS
                    : gn_session_lost(q->o.session) ? CL_OUT_OF_RESOURCES
                                                    : CL_MAP_FAILURE;
    void *ptr = map->ptr;
    t->host.ptr = ptr;
    if (!result)
        result = fill_region(q, map, t, blocking, n, waits, event);
    else if (map->at_home)
        gn_session_leave_home(q->o.session);
    if (result) {
        gn_mapping_put(q->o.session, map->mapping);
        free(map);
        return gn_refuse(errcode_ret, result);
    }
    add_map(m, map);
    if (errcode_ret)
        *errcode_ret = CL_SUCCESS;
    return ptr;
}

/* ---- entry points */

void *CL_API_CALL gn_clEnqueueMapBuffer(cl_command_queue command_queue, cl_mem buffer,
                                        cl_bool blocking_map, cl_map_flags map_flags, size_t offset,
                                        size_t size, cl_uint num_events_in_wait_list,
                                        const cl_event *event_wait_list, cl_event *event,
                                        cl_int *errcode_ret)
{
    struct gn_cl_queue *q;
    struct gn_cl_mem *m;
    cl_int result = check_map(command_queue, buffer, false, map_flags, num_events_in_wait_list,
                              event_wait_list, &q, &m);
    if (!result && (!size || !gn_range_ok(offset, size, m->size)))
        result = CL_INVALID_VALUE;
    struct gn_cl_map *map = result ? NULL : calloc(1, sizeof *map);
    if (!map)
        return gn_refuse(errcode_ret, result ? result : CL_OUT_OF_HOST_MEMORY);
    map->flags = map_flags;
    map->origin[0] = offset;
    map->region[0] = size;
    map->region[1] = map->region[2] = 1;
    if (has_unusual_flags(map_flags) && (result = probe_map(q, m, map_flags, map, NULL))) {
        free(map);
        return gn_refuse(errcode_ret, result);
    }
    struct gn_transfer t = {.kind = GN_TRANSFER_BUFFER,
                            .mem = m,
                            .origin = {offset},
                            .region = {size, 1, 1},
                            .host = {NULL, size, 1, 1, size, size, false},
                            .type = CL_COMMAND_MAP_BUFFER,
                            .doubt = m->source ? GN_ASK(CL_SUCCESS) : GN_SURE};
    place_buffer(m, map);
    return map_region(q, m, map, &t, blocking_map, num_events_in_wait_list, event_wait_list, event,
                      errcode_ret);
}

static bool is_layered(const struct gn_cl_mem *m)
{
    return m->type == CL_MEM_OBJECT_IMAGE1D_ARRAY || m->type == CL_MEM_OBJECT_IMAGE3D ||
           m->type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
}

/* Images of one row: their pitch has no effect. */
static bool is_flat(const struct gn_cl_mem *m)
{
    return m->type == CL_MEM_OBJECT_IMAGE1D || m->type == CL_MEM_OBJECT_IMAGE1D_BUFFER;
}

/*
 * The driver's pitches for an image's map, asked once per image; unusual flags are always asked
 * about. A map for writing only is not tried, since its unmap could overwrite the results of
 * another queue's kernel.
 */
static cl_int ask_pitches(struct gn_cl_queue *q, struct gn_cl_mem *m, const struct gn_cl_map *map,
                          size_t reported[2])
{
    const bool odd = has_unusual_flags(map->flags),
               readable = !(m->flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS));
    pthread_mutex_lock(&m->lock);
    const bool asked = m->map_asked;
    reported[0] = m->map_row_pitch;
    reported[1] = m->map_slice_pitch;
    pthread_mutex_unlock(&m->lock);
    if (asked && !odd)
        return CL_SUCCESS;
    cl_int result;
    if (odd || readable) {
        cl_ulong pitches[2] = {0, 0};
        result = probe_map(q, m, odd ? map->flags : CL_MAP_READ, map, pitches);
        reported[0] = pitches[0];
        reported[1] = pitches[1];
    } else {
        result = gn_send_clGetImageInfo(m->o.session, (cl_mem)m, CL_IMAGE_ROW_PITCH,
                                        sizeof reported[0], &reported[0], NULL);
        if (!result)
            result = gn_send_clGetImageInfo(m->o.session, (cl_mem)m, CL_IMAGE_SLICE_PITCH,
                                            sizeof reported[1], &reported[1], NULL);
    }
    if (result)
        return result;
    pthread_mutex_lock(&m->lock);
    m->map_asked = true;
    m->map_row_pitch = reported[0];
    m->map_slice_pitch = reported[1];
    pthread_mutex_unlock(&m->lock);
    return CL_SUCCESS;
}

/*
 * Chooses the layout of an image's region in the data area, or at the program's own address: the
 * driver's, where it can be asked. `told` is the value for the program: for one row the pitch may
 * be anything. It is 0 where the driver reports none, as PoCL does for a 1D image over a buffer.
 */
static cl_int choose_pitches(struct gn_cl_queue *q, struct gn_cl_mem *m, struct gn_cl_map *map,
                             size_t reported[2])
{
    const bool lines = m->type == CL_MEM_OBJECT_IMAGE1D_ARRAY, layered = is_layered(m);
    const size_t row = map->region[0] * m->element_bytes, rows = lines ? 1 : map->region[1];
    cl_int result = CL_SUCCESS;
    if (!m->host_ptr || is_flat(m))
        result = ask_pitches(q, m, map, reported);
    map->row_pitch = m->host_ptr ? m->row_pitch : reported[0] < row ? row : reported[0];
    if (m->host_ptr)
        map->slice_pitch = m->slice_pitch ? m->slice_pitch
                           : layered      ? m->row_pitch * map->region[1]
                                          : 0;
    else
        map->slice_pitch =
            layered && reported[1] < map->row_pitch * rows ? map->row_pitch * rows : reported[1];
    if (!is_flat(m))
        reported[0] = map->row_pitch;
    reported[1] = layered ? map->slice_pitch : 0;
    return result;
}

static struct gn_layout image_layout(const struct gn_cl_mem *m, const struct gn_cl_map *map)
{
    bool lines = m->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    size_t slice = map->slice_pitch ? map->slice_pitch : map->row_pitch * map->region[1];
    return (struct gn_layout){
        map->ptr,       map->region[0] * m->element_bytes, map->region[1],
        map->region[2], lines ? slice : map->row_pitch,    lines ? slice * map->region[1] : slice,
        false};
}

void *CL_API_CALL gn_clEnqueueMapImage(cl_command_queue command_queue, cl_mem image,
                                       cl_bool blocking_map, cl_map_flags map_flags,
                                       const size_t *origin, const size_t *region,
                                       size_t *image_row_pitch, size_t *image_slice_pitch,
                                       cl_uint num_events_in_wait_list,
                                       const cl_event *event_wait_list, cl_event *event,
                                       cl_int *errcode_ret)
{
    struct gn_cl_queue *q;
    struct gn_cl_mem *m;
    cl_int result = check_map(command_queue, image, true, map_flags, num_events_in_wait_list,
                              event_wait_list, &q, &m);
    if (!result && (!origin || !region || !image_row_pitch || !region[0] || !region[1] ||
                    !region[2] || !gn_inside_image(m, origin, region)))
        result = CL_INVALID_VALUE;
    if (!result && is_layered(m) && !image_slice_pitch)
        result = CL_INVALID_VALUE;
    struct gn_cl_map *map = result ? NULL : calloc(1, sizeof *map);
    if (!map)
        return gn_refuse(errcode_ret, result ? result : CL_OUT_OF_HOST_MEMORY);
    map->flags = map_flags;
    memcpy(map->origin, origin, sizeof map->origin);
    memcpy(map->region, region, sizeof map->region);
    struct gn_transfer t = {.kind = GN_TRANSFER_IMAGE,
                            .mem = m,
                            .type = CL_COMMAND_MAP_IMAGE,
                            .doubt = GN_ASK(CL_SUCCESS)};
    memcpy(t.origin, origin, sizeof t.origin);
    memcpy(t.region, region, sizeof t.region);
    const bool lines = m->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    size_t reported[2] = {0, 0};
    result = choose_pitches(q, m, map, reported);
    if (result) {
        free(map);
        return gn_refuse(errcode_ret, result);
    }
    if (m->host_ptr) {
        map->ptr = m->host_ptr + origin[0] * m->element_bytes +
                   (lines ? origin[1] * map->slice_pitch
                          : origin[1] * map->row_pitch + origin[2] * map->slice_pitch);
    } else {
        t.area_row_pitch = map->row_pitch;
        t.area_slice_pitch = map->slice_pitch;
        map->mapping =
            mapping_new(m->o.session, gn_pitched_bytes(m->element_bytes, t.region, t.area_row_pitch,
                                                       t.area_slice_pitch, lines));
        map->ptr = map->mapping ? map->mapping->block.base : NULL;
    }
    t.host = image_layout(m, map);
    void *ptr = map_region(q, m, map, &t, blocking_map, num_events_in_wait_list, event_wait_list,
                           event, errcode_ret);
    if (ptr && reported[0]) {
        *image_row_pitch = reported[0];
        if (image_slice_pitch)
            *image_slice_pitch = reported[1];
    }
    return ptr;
}

/* The write that an unmap sends, from the region's place. */
static struct gn_transfer unmap_transfer(struct gn_cl_mem *m, const struct gn_cl_map *map)
{
    struct gn_transfer t = {
        .write = true, .mem = m, .type = CL_COMMAND_UNMAP_MEM_OBJECT, .doubt = GN_SURE};
    memcpy(t.origin, map->origin, sizeof t.origin);
    memcpy(t.region, map->region, sizeof t.region);
    if (m->type == CL_MEM_OBJECT_BUFFER) {
        t.kind = GN_TRANSFER_BUFFER;
        t.host = (struct gn_layout){map->ptr,       map->region[0], 1,    1,
                                    map->region[0], map->region[0], false};
        return t;
    }
    t.kind = GN_TRANSFER_IMAGE;
    t.host = image_layout(m, map);
    if (map->mapping) {
        t.area_row_pitch = map->row_pitch;
        t.area_slice_pitch = map->slice_pitch;
    }
    return t;
}

cl_int CL_API_CALL gn_clEnqueueUnmapMemObject(cl_command_queue command_queue, cl_mem memobj,
                                              void *mapped_ptr, cl_uint num_events_in_wait_list,
                                              const cl_event *event_wait_list, cl_event *event)
{
    struct gn_cl_queue *q;
    struct gn_cl_mem *m;
    struct gn_object *o = gn_object_of(command_queue, GN_KIND_QUEUE);
    if (!o)
        return CL_INVALID_COMMAND_QUEUE;
    m = gn_object_of_session(o, memobj, GN_KIND_MEM);
    if (!m)
        return CL_INVALID_MEM_OBJECT;
    cl_int result = check_map(command_queue, memobj, m->type != CL_MEM_OBJECT_BUFFER, 0,
                              num_events_in_wait_list, event_wait_list, &q, &m);
    if (result)
        return result;
    struct gn_session *s = q->o.session;
    struct gn_cl_map *map = remove_map(m, mapped_ptr);
    if (!map)
        return CL_INVALID_VALUE;
    struct gn_transfer t = unmap_transfer(m, map);
    /*
     * The program's writes to the home are visible to the thread that sets homes_shut, or are sent
     * to the vGPU as for other regions.
     */
    atomic_thread_fence(memory_order_seq_cst);
    bool at_home = map->at_home && !atomic_load_explicit(&s->homes_shut, memory_order_seq_cst);
    bool writes = (map->flags & WRITES_MAP) && !m->svm && !at_home;
    if (at_home && !event && !num_events_in_wait_list) {
        /* The data is in place already, and no event shows the time. */
        free(map);
        return gn_session_lost(s) ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
    }
    if (writes && !map->mapping) {
        result = gn_transfer(q, &t, CL_FALSE, num_events_in_wait_list, event_wait_list, event);
        free(map);
        return result;
    }
    struct gn_command_show show = {GN_NO_EVENT, 0, GN_SURE};
    struct gn_object *e = gn_event_new(&q->o, CL_COMMAND_UNMAP_MEM_OBJECT, &show);
    if (!e)
        result = CL_OUT_OF_HOST_MEMORY;
    if (!result && writes) {
        struct gn_area_ref ref = map_ref(map);
        gn_session_copied(s, GN_COPIED_BY_MAP);
        result = gn_transfer_send(q, &t, &ref, num_events_in_wait_list, event_wait_list, &show);
    } else if (!result) {
        result = gn_send_marker(q, num_events_in_wait_list, event_wait_list, &show);
    }
    if (result) {
        if (e) {
            gn_event_finish(&s->events[e->id], result, NULL);
            gn_object_unref(e);
        }
        add_map(m, map);
        return result;
    }
    if (event) {
        gn_object_ref(e);
        *event = (cl_event)e;
    }
    gn_settle_mapping_later(s->detail, e, map->mapping);
    free(map);
    return CL_SUCCESS;
}
