/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps by copy: the program gets a place in the object's shadow, host memory as large as the object
 * (or its CL_MEM_USE_HOST_PTR), which the map fills from device memory when it runs, and the unmap
 * writes back. PoCL does the map itself, too, behind the gate that copies: it counts maps, knows
 * the layout of images, and makes the events. Called on the program's threads.
 */
#include "discrete.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dg_mapping {
    struct dg_mapping *next;
    cl_mem handle;
    unsigned char *given;
    void *of_driver;
    struct dg_copy copy;
    bool writes;
};

/* The object's memory with a shadow. NULL: it has none of its own, and PoCL maps it. */
static struct dg_memory *memory_to_map(cl_mem handle, cl_int *result)
{
    *result = CL_SUCCESS;
    dg_objects_lock();
    struct dg_object *o = dg_object_locked(handle);
    struct dg_memory *m = o ? o->memory : NULL;
    if (m && !m->shadow) {
        m->shadow = malloc(m->bytes);
        if (m->shadow)
            memset(m->shadow, DG_POISON, m->bytes);
        else
            *result = CL_MAP_FAILURE;
    }
    dg_objects_unlock();
    return m;
}

static void *fail(cl_int why, cl_int *result)
{
    if (result)
        *result = why;
    return NULL;
}

/* The map is enqueued: enters it, copies when it runs, waits for that if the program does. */
static void *enter(struct dg_gate *gate, struct dg_mapping *mapping, const struct dg_copy *copy,
                   cl_event own, cl_bool blocking, cl_event *event, cl_int *result)
{
    struct dg_memory *m = copy->memory;
    const size_t offset = (size_t)((unsigned char *)mapping->of_driver - m->base);
    if ((unsigned char *)mapping->of_driver < m->base || offset >= m->bytes ||
        (copy->moves && !gate)) {
        fprintf(stderr, "discrete: PoCL maps other memory than the object's\n");
        abort();
    }
    cl_int waited = CL_SUCCESS;
    unsigned char *given = mapping->given = m->shadow + offset;
    mapping->copy = *copy;
    mapping->copy.offset = offset;
    dg_objects_lock();
    mapping->next = m->mappings;
    m->mappings = mapping;
    dg_objects_unlock();
    dg_state_add(DG_MAPS, 1);
    if (copy->moves)
        dg_state_transferred(DG_FROM_DEVICE, copy->n_slices * copy->n_rows * copy->row_bytes);
    const struct dg_copy now = mapping->copy;
    dg_gate_close(gate, &now, CL_SUCCESS);
    if (blocking)
        waited = driver->clWaitForEvents(1, &own);
    if (event)
        *event = own;
    else
        driver->clReleaseEvent(own);
    if (result)
        *result = waited;
    return waited ? NULL : given;
}

static void *CL_API_CALL map_buffer(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                    cl_map_flags flags, size_t offset, size_t size, cl_uint n,
                                    const cl_event *waits, cl_event *event, cl_int *result)
{
    cl_int r;
    struct dg_memory *m = memory_to_map(mem, &r);
    if (!r)
        r = dg_object_use(mem);
    if (r)
        return fail(r, result);
    if (!m)
        return driver->clEnqueueMapBuffer(queue, mem, blocking, flags, offset, size, n, waits,
                                          event, result);
    const bool moves = !(flags & CL_MAP_WRITE_INVALIDATE_REGION);
    const struct dg_crossing crossing = {
        .mem = mem, .direction = DG_FROM_DEVICE, .bytes = moves ? size : 0, .copies = moves};
    const struct dg_copy copy = {.memory = m,
                                 .row_bytes = size,
                                 .n_rows = 1,
                                 .n_slices = 1,
                                 .direction = DG_FROM_DEVICE,
                                 .moves = moves};
    cl_event own = NULL;
    struct dg_mapping *mapping = calloc(1, sizeof *mapping);
    if (!mapping)
        return fail(CL_OUT_OF_HOST_MEMORY, result);
    struct dg_gate *gate = dg_gate_make(queue, &crossing, &n, &waits);
    mapping->of_driver =
        driver->clEnqueueMapBuffer(queue, mem, CL_FALSE, flags, offset, size, n, waits, &own, &r);
    mapping->handle = mem;
    mapping->writes = flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);
    if (mapping->of_driver)
        return enter(gate, mapping, &copy, own, blocking, event, result);
    free(mapping);
    return fail(dg_gate_close(gate, NULL, r), result);
}

static void *CL_API_CALL map_image(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                   cl_map_flags flags, const size_t *origin, const size_t *region,
                                   size_t *row_pitch, size_t *slice_pitch, cl_uint n,
                                   const cl_event *waits, cl_event *event, cl_int *result)
{
    cl_int r;
    struct dg_memory *m = memory_to_map(mem, &r);
    if (!r)
        r = dg_object_use(mem);
    if (r)
        return fail(r, result);
    if (!m || !region)
        return driver->clEnqueueMapImage(queue, mem, blocking, flags, origin, region, row_pitch,
                                         slice_pitch, n, waits, event, result);
    const bool moves = !(flags & CL_MAP_WRITE_INVALIDATE_REGION);
    size_t element = 0;
    driver->clGetImageInfo(mem, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, NULL);
    struct dg_copy copy = {.memory = m,
                           .row_bytes = region[0] * element,
                           .n_rows = region[1],
                           .n_slices = region[2],
                           .direction = DG_FROM_DEVICE,
                           .moves = moves};
    const struct dg_crossing crossing = {
        .mem = mem,
        .direction = DG_FROM_DEVICE,
        .bytes = moves ? copy.row_bytes * copy.n_rows * copy.n_slices : 0,
        .copies = moves};
    cl_event own = NULL;
    struct dg_mapping *mapping = calloc(1, sizeof *mapping);
    if (!mapping)
        return fail(CL_OUT_OF_HOST_MEMORY, result);
    struct dg_gate *gate = dg_gate_make(queue, &crossing, &n, &waits);
    mapping->of_driver = driver->clEnqueueMapImage(queue, mem, CL_FALSE, flags, origin, region,
                                                   row_pitch, slice_pitch, n, waits, &own, &r);
    mapping->handle = mem;
    mapping->writes = flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);
    if (mapping->of_driver) {
        driver->clGetImageInfo(mem, CL_IMAGE_ROW_PITCH, sizeof copy.row_pitch, &copy.row_pitch,
                               NULL);
        driver->clGetImageInfo(mem, CL_IMAGE_SLICE_PITCH, sizeof copy.slice_pitch,
                               &copy.slice_pitch, NULL);
        return enter(gate, mapping, &copy, own, blocking, event, result);
    }
    free(mapping);
    return fail(dg_gate_close(gate, NULL, r), result);
}

static struct dg_mapping *take(cl_mem handle, const void *given)
{
    struct dg_mapping *found = NULL;
    dg_objects_lock();
    struct dg_object *o = dg_object_locked(handle);
    struct dg_mapping **link = o ? &o->memory->mappings : NULL;
    while (link && *link && ((*link)->handle != handle || (*link)->given != given))
        link = &(*link)->next;
    if (link && *link) {
        found = *link;
        *link = found->next;
    }
    dg_objects_unlock();
    return found;
}

static void put_back(struct dg_mapping *mapping)
{
    dg_objects_lock();
    mapping->next = mapping->copy.memory->mappings;
    mapping->copy.memory->mappings = mapping;
    dg_objects_unlock();
}

static cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem mem, void *at, cl_uint n,
                                const cl_event *waits, cl_event *event)
{
    struct dg_mapping *mapping = take(mem, at);
    if (!mapping)
        return driver->clEnqueueUnmapMemObject(queue, mem, at, n, waits, event);
    struct dg_copy copy = mapping->copy;
    const uint64_t bytes =
        mapping->writes ? (uint64_t)copy.n_slices * copy.n_rows * copy.row_bytes : 0;
    const struct dg_crossing crossing = {
        .mem = mem, .direction = DG_TO_DEVICE, .bytes = bytes, .copies = true};
    copy.direction = DG_TO_DEVICE;
    copy.moves = mapping->writes;
    copy.forgets = true;
    struct dg_gate *gate = dg_gate_make(queue, &crossing, &n, &waits);
    const cl_int result = dg_gate_close(
        gate, &copy,
        driver->clEnqueueUnmapMemObject(queue, mem, mapping->of_driver, n, waits, event));
    if (result) {
        put_back(mapping);
    } else {
        if (bytes)
            dg_state_transferred(DG_TO_DEVICE, bytes);
        free(mapping);
    }
    return result;
}

void dg_replace_maps(cl_icd_dispatch *table)
{
    table->clEnqueueMapBuffer = map_buffer;
    table->clEnqueueMapImage = map_image;
    table->clEnqueueUnmapMemObject = unmap;
}
