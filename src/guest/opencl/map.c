/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps and unmaps. A mapped region lies in the data area, or, for CL_MEM_USE_HOST_PTR, at the program's own address. A
 * map is a read into it, an unmap of a region that was mapped for writing a write from it, so the vGPU knows of neither.
 */
#include "opencl_guest.h"
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

#define READS_MAP  (CL_MAP_READ | CL_MAP_WRITE)
#define WRITES_MAP (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)
#define ALIGN      4096u /* what a pointer into a buffer keeps of its offset */

static cl_int check(cl_command_queue command_queue, cl_mem mem, bool image, cl_map_flags flags, cl_uint n,
                    const cl_event *waits, struct gn_cl_queue **ret_q, struct gn_cl_mem **ret_m)
{
    struct gn_cl_queue *q = gn_object_of(command_queue, GN_KIND_QUEUE);
    if (!q)
        return CL_INVALID_COMMAND_QUEUE;
    struct gn_cl_mem *m = gn_object_beside(&q->o, mem, GN_KIND_MEM);
    if (!m || (m->type == CL_MEM_OBJECT_BUFFER) == image || m->type == CL_MEM_OBJECT_PIPE)
        return CL_INVALID_MEM_OBJECT;
    if (m->context != q->context)
        return CL_INVALID_CONTEXT;
    cl_int result = gn_check_waits(&q->o, n, waits);
    if (result)
        return result;
    if (flags & ~(cl_map_flags)(READS_MAP | WRITES_MAP) ||
        ((flags & CL_MAP_WRITE_INVALIDATE_REGION) && (flags & READS_MAP)))
        return CL_INVALID_VALUE;
    if (((flags & CL_MAP_READ) && (m->flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS))) ||
        ((flags & WRITES_MAP) && (m->flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS))))
        return CL_INVALID_OPERATION;
    *ret_q = q;
    *ret_m = m;
    return CL_SUCCESS;
}

/* What is sent for a map that reads nothing, and for an unmap that writes nothing. */
static cl_int send_marker(struct gn_cl_queue *q, cl_uint n, const cl_event *waits, const struct gn_command_show *show)
{
    atomic_fetch_add_explicit(&q->n_sent, 1, memory_order_release);
    return gn_send_clEnqueueMarkerWithWaitList(q->o.session, (cl_command_queue)q, n, waits, show);
}

/* Gives the caller's reference on e to the program, or away. */
static void show_event(struct gn_object *e, cl_event *event)
{
    if (event)
        *event = (cl_event)e;
    else
        gn_object_unref(e);
}

/* `t` is the read that fills the region; its data lie in map->block, or, without a block, at map->ptr. */
static cl_int fill(struct gn_cl_queue *q, struct gn_cl_map *map, struct gn_transfer *t, cl_bool blocking, cl_uint n,
                   const cl_event *waits, cl_event *event)
{
    struct gn_session *s = q->o.session;
    struct gn_command_show show = {GN_NO_EVENT, 0, t->doubt};
    bool reads = !(map->flags & CL_MAP_WRITE_INVALIDATE_REGION);
    int32_t error = 0;
    if (reads && map->block.segment == GN_NO_BLOCK)
        return gn_transfer(q, t, blocking, n, waits, event);
    struct gn_object *e = gn_event_new(&q->o, t->type, &show);
    if (!e)
        return CL_OUT_OF_HOST_MEMORY;
    cl_int result;
    if (reads) {
        struct gn_area_ref ref = gn_block_ref(&map->block, (uint64_t)((char *)map->ptr - (char *)map->block.base));
        result = gn_transfer_send(q, t, &ref, n, waits, &show);
    } else {
        show.doubt = GN_SURE;
        result = send_marker(q, n, waits, &show);
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
    if (error) {
        gn_object_unref(e);
        return error == GN_EVENT_WAIT_FAILED ? gn_blocking_result(error) : CL_MAP_FAILURE;
    }
    show_event(e, event);
    return CL_SUCCESS;
}

static void *map_region(struct gn_cl_queue *q, struct gn_cl_mem *m, struct gn_cl_map *map, struct gn_transfer *t,
                        char *at_host, size_t skew, cl_bool blocking, cl_uint n, const cl_event *waits, cl_event *event,
                        cl_int *errcode_ret)
{
    cl_int result = CL_SUCCESS;
    map->block.segment = GN_NO_BLOCK;
    if (at_host) {
        map->ptr = at_host;
    } else if (gn_block_take(q->o.session, map->bytes + skew, &map->block)) {
        result = gn_session_lost(q->o.session) ? CL_OUT_OF_RESOURCES : CL_MAP_FAILURE;
    } else {
        map->ptr = (char *)map->block.base + skew;
    }
    t->host.ptr = map->ptr;
    if (!result)
        result = fill(q, map, t, blocking, n, waits, event);
    if (result) {
        gn_block_put(q->o.session, &map->block);
        free(map);
        return gn_refuse(errcode_ret, result);
    }
    pthread_mutex_lock(&m->lock);
    map->next = m->maps;
    m->maps = map;
    m->n_maps++;
    void *ptr = map->ptr;
    pthread_mutex_unlock(&m->lock);
    if (errcode_ret)
        *errcode_ret = CL_SUCCESS;
    return ptr;
}

void *CL_API_CALL gn_clEnqueueMapBuffer(cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_map,
                                        cl_map_flags map_flags, size_t offset, size_t size,
                                        cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event,
                                        cl_int *errcode_ret)
{
    struct gn_cl_queue *q;
    struct gn_cl_mem *m;
    cl_int result =
        check(command_queue, buffer, false, map_flags, num_events_in_wait_list, event_wait_list, &q, &m);
    if (!result && (!size || !gn_range_ok(offset, size, m->size)))
        result = CL_INVALID_VALUE;
    struct gn_cl_map *map = result ? NULL : calloc(1, sizeof *map);
    if (!map)
        return gn_refuse(errcode_ret, result ? result : CL_OUT_OF_HOST_MEMORY);
    map->flags = map_flags;
    map->origin[0] = offset;
    map->region[0] = map->bytes = size;
    struct gn_transfer t = {.kind = GN_TRANSFER_BUFFER,
                            .mem = m,
                            .origin = {offset},
                            .region = {size, 1, 1},
                            .host = {NULL, size, 1, 1, size, size},
                            .type = CL_COMMAND_MAP_BUFFER,
                            .doubt = m->source ? GN_ASK(CL_SUCCESS) : GN_SURE};
    return map_region(q, m, map, &t, m->host_ptr ? m->host_ptr + offset : NULL, offset % ALIGN, blocking_map,
                      num_events_in_wait_list, event_wait_list, event, errcode_ret);
}

void *CL_API_CALL gn_clEnqueueMapImage(cl_command_queue command_queue, cl_mem image, cl_bool blocking_map,
                                       cl_map_flags map_flags, const size_t *origin, const size_t *region,
                                       size_t *image_row_pitch, size_t *image_slice_pitch, cl_uint num_events_in_wait_list,
                                       const cl_event *event_wait_list, cl_event *event, cl_int *errcode_ret)
{
    struct gn_cl_queue *q;
    struct gn_cl_mem *m;
    char *at_host = NULL;
    cl_int result = check(command_queue, image, true, map_flags, num_events_in_wait_list, event_wait_list, &q, &m);
    if (!result && (!origin || !region || !image_row_pitch || !region[0] || !region[1] || !region[2]))
        result = CL_INVALID_VALUE;
    bool lines = !result && m->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    bool layered = !result && (lines || m->type == CL_MEM_OBJECT_IMAGE3D || m->type == CL_MEM_OBJECT_IMAGE2D_ARRAY);
    if (!result && layered && !image_slice_pitch)
        result = CL_INVALID_VALUE;
    struct gn_cl_map *map = result ? NULL : calloc(1, sizeof *map);
    if (!map)
        return gn_refuse(errcode_ret, result ? result : CL_OUT_OF_HOST_MEMORY);
    size_t row = region[0] * m->element_bytes, row_pitch = row, slice_pitch = row * region[1];
    if (m->host_ptr) {
        row_pitch = m->row_pitch;
        slice_pitch = m->slice_pitch ? m->slice_pitch : row_pitch * region[1];
        at_host = m->host_ptr + origin[0] * m->element_bytes +
                  (lines ? origin[1] * slice_pitch : origin[1] * row_pitch + origin[2] * slice_pitch);
    } else if (lines) {
        slice_pitch = row;
    }
    map->flags = map_flags;
    memcpy(map->origin, origin, sizeof map->origin);
    memcpy(map->region, region, sizeof map->region);
    map->bytes = row * region[1] * region[2];
    struct gn_transfer t = {.kind = GN_TRANSFER_IMAGE, .mem = m, .type = CL_COMMAND_MAP_IMAGE, .doubt = GN_ASK(CL_SUCCESS)};
    memcpy(t.origin, origin, sizeof t.origin);
    memcpy(t.region, region, sizeof t.region);
    t.host = (struct gn_layout){NULL, row, region[1], region[2], lines ? slice_pitch : row_pitch,
                                lines ? slice_pitch * region[1] : slice_pitch};
    void *ptr = map_region(q, m, map, &t, at_host, 0, blocking_map, num_events_in_wait_list, event_wait_list, event,
                           errcode_ret);
    if (ptr) {
        *image_row_pitch = row_pitch;
        if (image_slice_pitch)
            *image_slice_pitch = layered ? slice_pitch : 0;
    }
    return ptr;
}

/* The write that an unmap is, from where the region lies. */
static struct gn_transfer unmap_transfer(struct gn_cl_mem *m, const struct gn_cl_map *map)
{
    struct gn_transfer t = {.write = true, .mem = m, .type = CL_COMMAND_UNMAP_MEM_OBJECT, .doubt = GN_SURE};
    memcpy(t.origin, map->origin, sizeof t.origin);
    memcpy(t.region, map->region, sizeof t.region);
    if (m->type == CL_MEM_OBJECT_BUFFER) {
        t.kind = GN_TRANSFER_BUFFER;
        t.host = (struct gn_layout){map->ptr, map->bytes, 1, 1, map->bytes, map->bytes};
        return t;
    }
    t.kind = GN_TRANSFER_IMAGE;
    bool lines = m->type == CL_MEM_OBJECT_IMAGE1D_ARRAY, home = map->block.segment == GN_NO_BLOCK;
    size_t row = map->region[0] * m->element_bytes;
    size_t row_pitch = home ? m->row_pitch : row;
    size_t slice_pitch = home && m->slice_pitch ? m->slice_pitch : lines ? row : row_pitch * map->region[1];
    t.host = (struct gn_layout){map->ptr, row, map->region[1], map->region[2], lines ? slice_pitch : row_pitch,
                                lines ? slice_pitch * map->region[1] : slice_pitch};
    return t;
}

cl_int CL_API_CALL gn_clEnqueueUnmapMemObject(cl_command_queue command_queue, cl_mem memobj, void *mapped_ptr,
                                              cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
                                              cl_event *event)
{
    struct gn_cl_queue *q;
    struct gn_cl_mem *m;
    struct gn_object *o = gn_object_of(command_queue, GN_KIND_QUEUE);
    if (!o)
        return CL_INVALID_COMMAND_QUEUE;
    m = gn_object_beside(o, memobj, GN_KIND_MEM);
    if (!m)
        return CL_INVALID_MEM_OBJECT;
    cl_int result = check(command_queue, memobj, m->type != CL_MEM_OBJECT_BUFFER, 0, num_events_in_wait_list,
                          event_wait_list, &q, &m);
    if (result)
        return result;
    struct gn_session *s = q->o.session;
    struct gn_cl_map *map = NULL;
    pthread_mutex_lock(&m->lock);
    for (struct gn_cl_map **at = &m->maps; *at; at = &(*at)->next) {
        if ((*at)->ptr == mapped_ptr) {
            map = *at;
            *at = map->next;
            m->n_maps--;
            break;
        }
    }
    pthread_mutex_unlock(&m->lock);
    if (!map)
        return CL_INVALID_VALUE;
    struct gn_transfer t = unmap_transfer(m, map);
    bool writes = map->flags & WRITES_MAP;
    if (writes && map->block.segment == GN_NO_BLOCK) {
        result = gn_transfer(q, &t, CL_FALSE, num_events_in_wait_list, event_wait_list, event);
        free(map);
        return result;
    }
    struct gn_command_show show = {GN_NO_EVENT, 0, GN_SURE};
    struct gn_object *e = gn_event_new(&q->o, CL_COMMAND_UNMAP_MEM_OBJECT, &show);
    if (!e)
        result = CL_OUT_OF_HOST_MEMORY;
    if (!result && writes) {
        struct gn_area_ref ref = gn_block_ref(&map->block, (uint64_t)((char *)map->ptr - (char *)map->block.base));
        result = gn_transfer_send(q, &t, &ref, num_events_in_wait_list, event_wait_list, &show);
    } else if (!result) {
        result = send_marker(q, num_events_in_wait_list, event_wait_list, &show);
    }
    if (result) {
        if (e) {
            gn_event_finish(&s->events[e->id], result, NULL);
            gn_object_unref(e);
        }
        pthread_mutex_lock(&m->lock);
        map->next = m->maps;
        m->maps = map;
        m->n_maps++;
        pthread_mutex_unlock(&m->lock);
        return result;
    }
    if (event) {
        gn_object_ref(e);
        *event = (cl_event)e;
    }
    if (map->block.segment == GN_NO_BLOCK)
        gn_object_unref(e);
    else
        gn_settle_later(s->detail, e, &map->block, NULL);
    free(map);
    return CL_SUCCESS;
}
