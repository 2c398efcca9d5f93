/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of requests that make, change or release objects, except programs and kernels. Run by
 * the ring thread, the lease thread, and the loading thread. They pass no pointer of the program to
 * the driver.
 */
#include "opencl_host.h"
#include "opencl_pixel.h"
#include "residency.h"
#include "vgpu/migrate/route.h"

#include <stdlib.h>
#include <string.h>

/*
 * Replaces a host pointer that the program passed where none is allowed, so that the driver sees
 * one and refuses it.
 */
static char some_host_memory[64];

cl_int gn_host_DestroyObject(struct gn_vgpu *v, struct gn_request *r,
                             const struct gn_args_DestroyObject *a)
{
    (void)r;
    gn_object_remove(v, a->object, (uint16_t)a->kind);
    return CL_SUCCESS;
}

cl_int gn_host_DeviceType(struct gn_vgpu *v, struct gn_request *r,
                          const struct gn_args_DeviceType *a)
{
    cl_uint n;
    cl_device_id *devices =
        a->has_devices ? gn_request_alloc(r, gn_times(a->num_entries, sizeof *devices)) : NULL;
    if (a->has_devices && !devices)
        return CL_OUT_OF_HOST_MEMORY;
    return gn_cl(v)->clGetDeviceIDs(gn_platform_of(v)->id, a->device_type, a->num_entries, devices,
                                    a->has_number ? &n : NULL);
}

cl_int gn_host_SubDevices(struct gn_vgpu *v, struct gn_request *r,
                          const struct gn_args_SubDevices *a)
{
    cl_device_id *devices =
        a->ids ? gn_request_alloc(r, gn_times(a->n_ids, sizeof *devices)) : NULL;
    cl_uint n = 0;
    if (a->ids && !devices)
        return CL_OUT_OF_HOST_MEMORY;
    /* The driver always finds a terminator, even if the guest sends none. */
    cl_device_partition_property *properties =
        a->properties
            ? gn_request_alloc(r, gn_times(a->n_properties + UINT64_C(3), sizeof *properties))
            : NULL;
    if (a->properties && !properties)
        return CL_OUT_OF_HOST_MEMORY;
    if (properties)
        memcpy(properties, a->properties, a->n_properties * sizeof *properties);
    if (properties && properties[0] != CL_DEVICE_PARTITION_EQUALLY &&
        properties[0] != CL_DEVICE_PARTITION_BY_COUNTS &&
        properties[0] != CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN)
        return CL_INVALID_VALUE;
    cl_int result = gn_cl(v)->clCreateSubDevices(a->in_device, properties, a->n_ids, devices, &n);
    bool good = !result && a->ids;
    for (cl_uint i = 0; good && i < n && i < a->n_ids; i++) {
        cl_int one = gn_request_made(r, GN_KIND_DEVICE, a->ids[i], devices[i], CL_SUCCESS);
        result = result ? result : one;
    }
    if (a->num_devices_ret)
        *a->num_devices_ret = n;
    return result;
}

/*
 * The vGPUs of this process that receive messages about contexts. A worker has one vGPU; a program
 * with in-process vGPUs has one for each platform. Set with a vGPU's first context, until it
 * leaves.
 */
#define MAX_TARGETS  64u
#define TARGET_SHIFT 26u
#define TARGET_MASK  ((uint64_t)(MAX_TARGETS - 1) << TARGET_SHIFT)
_Static_assert(GN_OBJECT_CHUNK *(uint64_t)GN_OBJECT_CHUNKS <= UINT64_C(1) << TARGET_SHIFT,
               "an index leaves room");
static struct gn_vgpu *_Atomic message_targets[MAX_TARGETS];
static _Atomic uint32_t next_target;
_Static_assert(sizeof(void *) >= sizeof(uint64_t), "an id travels as a pointer");

/* The vGPU's place in `speakers`; NULL: none is free. */
static struct gn_vgpu *_Atomic *message_target_of(struct gn_vgpu *v)
{
    for (uint32_t i = 0; i < MAX_TARGETS; i++)
        if (atomic_load(&message_targets[i]) == v)
            return &message_targets[i];
    /*
     * Places are used in rotation: a driver may still report about a context of the vGPU that left
     * its place last.
     */
    for (uint32_t i = 0; i < MAX_TARGETS; i++) {
        struct gn_vgpu *none = NULL;
        struct gn_vgpu *_Atomic *place =
            &message_targets[atomic_fetch_add(&next_target, 1) % MAX_TARGETS];
        if (atomic_compare_exchange_strong(place, &none, v))
            return place;
    }
    return NULL;
}

void gn_context_messages_drop(struct gn_vgpu *v)
{
    for (uint32_t i = 0; i < MAX_TARGETS; i++) {
        struct gn_vgpu *me = v;
        atomic_compare_exchange_strong(&message_targets[i], &me, NULL);
    }
}

static void CL_CALLBACK on_context_message(const char *text, const void *private_info,
                                           size_t private_bytes, void *user_data)
{
    /*
     * user_data holds the context's id and its vGPU's place, by value, because a driver may call at
     * any later time. The index in an id has fewer bits than its field, so the place fits beside
     * it.
     */
    const uint64_t said = (uintptr_t)user_data;
    struct gn_vgpu *v = atomic_load(&message_targets[(uint32_t)said >> TARGET_SHIFT]);
    struct {
        struct gn_session_context head;
        char text[1024];
    } notice = {.head = {.cookie = said & ~TARGET_MASK}};
    (void)private_info;
    (void)private_bytes;
    /*
     * Messages about objects that are made again have been delivered before; those about a vGPU
     * that has left are dropped.
     */
    if (!v || gn_vgpu_is_elsewhere(&v->life))
        return;
    size_t bytes = strnlen(text, sizeof notice.text - 1);
    memcpy(notice.text, text, bytes);
    notice.head.text_bytes = (uint32_t)bytes + 1;
    gn_vgpu_notify(v, GN_SESSION_CONTEXT, &notice, sizeof notice.head + bytes + 1);
}

void *gn_host_Context(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Context *a,
                      cl_int *result)
{
    uint64_t id = ((const struct gn_wire_Context *)gn_request_message(r))->id;
    cl_context_properties *properties = NULL;
    if (a->n_properties && a->properties) {
        /* One more for the terminator: a key in the last place would have no value. */
        properties =
            gn_request_alloc(r, gn_times(a->n_properties + UINT64_C(1), sizeof *properties));
        if (!properties) {
            *result = CL_OUT_OF_HOST_MEMORY;
            return NULL;
        }
        memcpy(properties, a->properties, a->n_properties * sizeof *properties);
        properties[a->n_properties - 1] = 0;
        for (cl_uint i = 0; i + 1 < a->n_properties && properties[i]; i += 2) {
            if (properties[i] == CL_CONTEXT_PLATFORM) {
                properties[i + 1] = (cl_context_properties)gn_platform_of(v)->id;
            } else if (properties[i] != CL_CONTEXT_INTEROP_USER_SYNC) {
                *result = CL_INVALID_PROPERTY;
                return NULL;
            }
        }
    }
    struct gn_vgpu *_Atomic *target = a->notify ? message_target_of(v) : NULL;
    /* An impossible id is refused when the object is entered; the driver may report before that. */
    id = (id & ~TARGET_MASK) | (target ? (uint64_t)(target - message_targets) << TARGET_SHIFT : 0);
    return gn_cl(v)->clCreateContext(properties, a->num_devices, a->devices,
                                     target ? on_context_message : NULL,
                                     target ? (void *)(uintptr_t)id : NULL, result);
}

/*
 * The id under which the program knows the device; 0 for a device that is neither a root device nor
 * among those named.
 */
static cl_ulong device_id_of(struct gn_vgpu *v, const struct gn_request *r,
                             const struct gn_args_ContextDevices *a, cl_device_id device)
{
    const struct gn_cl_platform *p = gn_platform_of(v);
    for (cl_uint i = 0; a->device_list && i < a->num_devices; i++)
        if (a->device_list[i] == device)
            return r->arrays[0].objects[i]->id;
    for (cl_uint i = 0; i < p->n_devices; i++)
        if (p->devices[i] == device)
            return gn_id_make(i + 1, 1);
    return 0;
}

cl_int gn_host_ContextDevices(struct gn_vgpu *v, struct gn_request *r,
                              const struct gn_args_ContextDevices *a)
{
    size_t bytes = 0;
    *a->n = 0;
    cl_int result = gn_cl(v)->clGetContextInfo(a->context, CL_CONTEXT_DEVICES, 0, NULL, &bytes);
    cl_device_id *devices = result ? NULL : gn_request_alloc(r, bytes);
    if (!result && !devices)
        result = CL_OUT_OF_HOST_MEMORY;
    if (!result)
        result = gn_cl(v)->clGetContextInfo(a->context, CL_CONTEXT_DEVICES, bytes, devices, NULL);
    for (size_t i = 0; !result && a->ids && i < bytes / sizeof *devices && *a->n < a->n_ids; i++) {
        cl_ulong id = device_id_of(v, r, a, devices[i]);
        if (id)
            a->ids[(*a->n)++] = id;
    }
    return result;
}

/*
 * The driver cannot use memory at the program's address. The contents travel, and the guest copies
 * them back where the specification requires it (map and unmap).
 */
static cl_mem_flags driver_flags(cl_mem_flags flags, bool has_host_ptr, const void **host_ptr)
{
    const cl_mem_flags host = CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR;
    if (!has_host_ptr)
        *host_ptr = NULL;
    else if (!*host_ptr)
        *host_ptr = some_host_memory;
    if (has_host_ptr && (flags & host) == CL_MEM_USE_HOST_PTR && !(flags & CL_MEM_ALLOC_HOST_PTR))
        flags = (flags & ~(cl_mem_flags)CL_MEM_USE_HOST_PTR) | CL_MEM_COPY_HOST_PTR;
    return flags;
}

/* True if a driver that accepts these flags will read the memory at host_ptr. */
static bool has_contents(cl_mem_flags flags, bool has_host_ptr)
{
    const cl_mem_flags host =
        flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR);
    return has_host_ptr && (host == CL_MEM_USE_HOST_PTR ||
                            ((host & CL_MEM_COPY_HOST_PTR) && !(host & CL_MEM_USE_HOST_PTR)));
}

static void *create_buffer(struct gn_vgpu *v, const struct gn_args_Buffer *a, cl_mem_flags flags,
                           size_t size, const void *host_ptr, cl_int *result)
{
    if (a->properties)
        return gn_cl(v)->clCreateBufferWithProperties(a->context, a->properties, flags, size,
                                                      (void *)host_ptr, result);
    return gn_cl(v)->clCreateBuffer(a->context, flags, size, (void *)host_ptr, result);
}

/* Refuses a buffer that is too large: the error is `why`, unless the driver finds another one. */
static void *refuse_buffer(struct gn_vgpu *v, const struct gn_args_Buffer *a, cl_mem_flags flags,
                           const void *host_ptr, cl_int why, cl_int *result)
{
    cl_mem tried = create_buffer(v, a, flags, 1, host_ptr ? some_host_memory : NULL, result);
    if (tried) {
        gn_cl(v)->clReleaseMemObject(tried);
        *result = why;
    }
    return NULL;
}

/*
 * Turns the message into the object's record, which makes the object again: contents are saved
 * apart, so the record must not name them. A buffer at home keeps the place of its home.
 */
static void forget_contents(uint64_t *flags, struct gn_area_ref *host_ptr, uint64_t *initial,
                            uint32_t *has_host_ptr)
{
    *flags &= ~(uint64_t)(CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR);
    *host_ptr = (struct gn_area_ref){.segment = GN_SPAN_NULL};
    *initial = 0;
    *has_host_ptr = CL_FALSE;
}

/* The flags that the program sees for an object just made. */
static cl_mem_flags flags_of(struct gn_vgpu *v, cl_mem mem, cl_mem_flags given)
{
    cl_mem_flags flags = given;
    return gn_cl(v)->clGetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof flags, &flags, NULL) ? given
                                                                                       : flags;
}

static void *make_buffer(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Buffer *a,
                         cl_int *result)
{
    const uint64_t limit = v->boot->memory_limit_bytes;
    const void *host_ptr = a->host_ptr;
    if (!a->svm && has_contents(a->flags, a->has_host_ptr) &&
        (host_ptr ? a->initial : 0) < a->size) {
        gn_vgpu_fault(v, "a buffer's initial contents are shorter than the buffer", "Buffer");
        return NULL;
    }
    cl_mem_flags flags = a->flags;
    *a->at_home = CL_FALSE;
    if (a->home && (a->initial != a->size || !host_ptr)) {
        gn_vgpu_fault(v, "a buffer's home does not have its size", "Buffer");
        return NULL;
    }
    if (a->svm) { /* charged at its allocation */
        if (gn_svm_live(v, a->svm, a->size))
            return create_buffer(v, a, flags, a->size, (const void *)(uintptr_t)a->svm, result);
        *result = CL_INVALID_HOST_PTR;
        return NULL;
    }
    r->pins = gn_residency_will_pin(v, r, a->context, 0);
    /* First check: more than the reported device memory. Second: more than is available now. */
    const bool too_large = limit && a->size > limit;
    if (too_large || !gn_mem_charge(v, r, a->size, a->flags)) {
        if (r->defer)
            return NULL;
        flags = driver_flags(flags, a->has_host_ptr, &host_ptr);
        return refuse_buffer(v, a, flags, host_ptr,
                             too_large ? CL_INVALID_BUFFER_SIZE : CL_MEM_OBJECT_ALLOCATION_FAILURE,
                             result);
    }
    /* Memory in the data area cannot be evicted, and its buffer stays at home in every worker. */
    if (a->home && !gn_residency_is_on(v) && !v->boot->evicts && gn_home_possible(v, a->context) &&
        (r->anew || gn_home_has_room(v, a->size))) {
        *a->at_home = CL_TRUE;
        return gn_home_buffer(v, a->context, flags, a->size, (void *)(uintptr_t)host_ptr, result);
    }
    if (a->home && r->anew) {
        /* Its contents are in the data area, and this driver does not work there in place. */
        *result = CL_INVALID_OPERATION;
        return NULL;
    }
    flags = driver_flags(flags, a->has_host_ptr, &host_ptr);
    cl_mem mem = create_buffer(v, a, flags, a->size, host_ptr, result);
    return r->charged_bytes ? mem : gn_mem_settle(v, r, mem, result);
}

void *gn_host_Buffer(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Buffer *a,
                     cl_int *result)
{
    struct gn_wire_Buffer *w = (void *)r->bytes;
    struct gn_args_Buffer plain = *a;
    /*
     * The vGPU comes from a worker that did not share the program's memory. That memory is the
     * program's own now; the buffer may be mapped there. So the buffer gets no home.
     */
    if (r->anew && v->boot->route->session_from_program && a->home) {
        forget_contents(&plain.flags, &w->host_ptr, &plain.initial, &w->has_host_ptr);
        plain.host_ptr = NULL;
        plain.has_host_ptr = plain.home = CL_FALSE;
    }
    void *made = make_buffer(v, r, &plain, result);
    if (made && a->told_flags)
        *a->told_flags = flags_of(v, made, a->flags);
    if (made && !a->svm && !*a->at_home) {
        forget_contents(&w->flags, &w->host_ptr, &w->initial, &w->has_host_ptr);
        w->home = CL_FALSE;
    }
    return made;
}

/*
 * The number of bytes that the driver will read from a host pointer, according to the
 * specification.
 */
static uint64_t image_initial_bytes(const cl_image_format *format, const cl_image_desc *d)
{
    uint64_t row =
        d->image_row_pitch ? d->image_row_pitch : gn_times(d->image_width, gn_pixel_bytes(format));
    uint64_t slice;
    switch (d->image_type) {
    case CL_MEM_OBJECT_IMAGE1D:
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
        return row;
    case CL_MEM_OBJECT_IMAGE2D:
        return gn_times(row, d->image_height);
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
        slice = d->image_slice_pitch ? d->image_slice_pitch : row;
        return gn_times(slice, d->image_array_size);
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
        slice = d->image_slice_pitch ? d->image_slice_pitch : gn_times(row, d->image_height);
        return gn_times(slice, d->image_array_size);
    default:
        slice = d->image_slice_pitch ? d->image_slice_pitch : gn_times(row, d->image_height);
        return gn_times(slice, d->image_depth);
    }
}

static void *create_image(struct gn_vgpu *v, const struct gn_args_Image *a, cl_mem_flags flags,
                          const cl_image_desc *desc, const void *host_ptr, cl_int *result)
{
    if (a->properties)
        return gn_cl(v)->clCreateImageWithProperties(
            a->context, a->properties, flags, a->image_format, desc, (void *)host_ptr, result);
    return gn_cl(v)->clCreateImage(a->context, flags, a->image_format, desc, (void *)host_ptr,
                                   result);
}

/* As refuse_buffer: tries the smallest image of that kind to find other errors. */
static void *refuse_image(struct gn_vgpu *v, const struct gn_args_Image *a, cl_mem_flags flags,
                          const void *host_ptr, cl_int *result)
{
    cl_image_desc least = *a->image_desc;
    least.image_width = 1;
    least.image_height = least.image_height ? 1 : 0;
    least.image_depth = least.image_depth ? 1 : 0;
    least.image_array_size = least.image_array_size ? 1 : 0;
    least.image_row_pitch = least.image_slice_pitch = 0;
    least.num_mip_levels = 0;
    least.mem_object = NULL;
    cl_mem tried = create_image(v, a, flags, &least, host_ptr ? some_host_memory : NULL, result);
    if (tried) {
        gn_cl(v)->clReleaseMemObject(tried);
        *result = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    }
    return NULL;
}

/*
 * The image of a record, whose contents come apart. A driver may refuse pitches without host
 * memory, so there is some for the call.
 */
static void *make_pitched_image(struct gn_vgpu *v, const struct gn_args_Image *a,
                                cl_mem_flags flags, const cl_image_desc *desc, cl_int *result)
{
    void *host = calloc(1, image_initial_bytes(a->image_format, desc));
    void *made = host ? create_image(v, a, flags | CL_MEM_COPY_HOST_PTR, desc, host, result) : NULL;
    if (!host)
        *result = CL_OUT_OF_HOST_MEMORY;
    free(host);
    return made;
}

static bool is_image(const struct gn_vobject *o)
{
    const struct gn_mem_detail *detail = o ? o->detail : NULL;
    return detail && detail->element_bytes;
}

static void *make_image(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Image *a,
                        cl_int *result)
{
    const void *host_ptr = a->host_ptr;
    cl_image_desc desc;
    if (a->image_desc) {
        desc = *a->image_desc;
        desc.mem_object = a->source;
        if (a->image_format && has_contents(a->flags, a->has_host_ptr) &&
            (host_ptr ? a->initial : 0) < image_initial_bytes(a->image_format, &desc)) {
            gn_vgpu_fault(v, "an image's initial contents are shorter than the image", "Image");
            return NULL;
        }
    }
    cl_mem_flags flags = driver_flags(a->flags, a->has_host_ptr, &host_ptr);
    /* A view of an image pins it. */
    if (is_image(a->source_object) && (*result = gn_residency_pin_for(r, a->source_object)))
        return NULL;
    /* An image over another object's memory has none of its own. */
    if (!a->image_desc || !a->image_format || a->source)
        return create_image(v, a, flags, a->image_desc ? &desc : NULL, host_ptr, result);
    r->pins = gn_residency_will_pin(v, r, a->context, desc.num_mip_levels);
    if (!gn_mem_charge(v, r, gn_image_bytes(v, a->image_format, &desc), a->flags))
        return r->defer ? NULL : refuse_image(v, a, flags, host_ptr, result);
    const bool pitched = r->anew && (desc.image_row_pitch || desc.image_slice_pitch);
    void *made = pitched ? make_pitched_image(v, a, flags, &desc, result)
                         : create_image(v, a, flags, &desc, host_ptr, result);
    return gn_mem_settle(v, r, made, result);
}

void *gn_host_Image(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Image *a,
                    cl_int *result)
{
    struct gn_wire_Image *w = (void *)r->bytes;
    void *made = make_image(v, r, a, result);
    if (!made)
        return NULL;
    if (a->told_flags)
        *a->told_flags = flags_of(v, made, a->flags);
    forget_contents(&w->flags, &w->host_ptr, &w->initial, &w->has_host_ptr);
    return made;
}

void *gn_host_clCreatePipe(struct gn_vgpu *v, struct gn_request *r,
                           const struct gn_args_clCreatePipe *a, cl_int *result)
{
    if (!gn_cl(v)->clCreatePipe) {
        *result = CL_INVALID_OPERATION;
        return NULL;
    }
    r->pins = true;
    if (!gn_mem_charge(v, r, gn_times(a->pipe_packet_size, a->pipe_max_packets), 0)) {
        *result = CL_MEM_OBJECT_ALLOCATION_FAILURE;
        return NULL;
    }
    /* Pipes have no properties. The driver reports other errors first. */
    const bool known = gn_list_knows(a->properties, NULL, 0);
    const cl_pipe_properties *properties = known ? a->properties : NULL;
    cl_mem made =
        gn_cl(v)->clCreatePipe(a->context, a->flags, a->pipe_packet_size, a->pipe_max_packets,
                               (void *)(uintptr_t)properties, result);
    if (made && !known) {
        gn_cl(v)->clReleaseMemObject(made);
        made = NULL;
        *result = CL_INVALID_VALUE;
    }
    return made;
}

void *gn_host_clCreateSubBuffer(struct gn_vgpu *v, struct gn_request *r,
                                const struct gn_args_clCreateSubBuffer *a, cl_int *result)
{
    (void)r;
    /* The size of another type's description is not known. */
    if (a->buffer_create_type != CL_BUFFER_CREATE_TYPE_REGION) {
        *result = CL_INVALID_VALUE;
        return NULL;
    }
    return gn_cl(v)->clCreateSubBuffer(a->buffer, a->flags, a->buffer_create_type,
                                       a->buffer_create_info, result);
}

cl_int gn_host_MapProbe(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_MapProbe *a)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    const struct gn_mem_detail *detail = a->mem_object ? a->mem_object->detail : NULL;
    size_t origin[3], region[3], row_pitch = 0, slice_pitch = 0;
    cl_event mapped = NULL;
    cl_int result = CL_SUCCESS;
    void *ptr;
    (void)r;
    if (!detail || !a->place)
        return CL_INVALID_MEM_OBJECT;
    for (uint32_t i = 0; i < 3; i++) {
        origin[i] = a->place[i];
        region[i] = a->place[i + 3];
    }
    /* The driver may write at the unmap what the map has shown. */
    if (a->map_flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION))
        gn_writes_may_change(detail->writes);
    if (detail->element_bytes)
        ptr = cl->clEnqueueMapImage(a->command_queue, a->mem, CL_FALSE, a->map_flags, origin,
                                    region, &row_pitch, &slice_pitch, 0, NULL, &mapped, &result);
    else
        ptr = cl->clEnqueueMapBuffer(a->command_queue, a->mem, CL_FALSE, a->map_flags, origin[0],
                                     region[0], 0, NULL, &mapped, &result);
    if (result)
        return result;
    result = cl->clEnqueueUnmapMemObject(a->command_queue, a->mem, ptr, 1, &mapped, NULL);
    cl->clReleaseEvent(mapped);
    if (a->pitches) {
        a->pitches[0] = row_pitch;
        a->pitches[1] = slice_pitch;
    }
    return result;
}

cl_int gn_host_UserEvent(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_UserEvent *a)
{
    (void)r;
    if (gn_user_event_new(v, a->event))
        gn_vgpu_fault(v, "a user event's index is taken", "UserEvent");
    return CL_SUCCESS;
}

cl_int gn_host_UserEventStatus(struct gn_vgpu *v, struct gn_request *r,
                               const struct gn_args_UserEventStatus *a)
{
    (void)r;
    if (gn_user_event_set(v, a->event, a->status))
        gn_vgpu_fault(v, "a status is set for an event that is no open user event",
                      "UserEventStatus");
    return CL_SUCCESS;
}

cl_int gn_host_WatchEvent(struct gn_vgpu *v, struct gn_request *r,
                          const struct gn_args_WatchEvent *a)
{
    (void)r;
    gn_event_watch(v, a->event, a->phase, a->cookie);
    return CL_SUCCESS;
}
