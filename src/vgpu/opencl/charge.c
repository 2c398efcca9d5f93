/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charges device memory to this vGPU's tenant: before the driver allocates it, adjusted to the size
 * that the driver reports, and refunded when the driver has freed it. Bytes are counted as
 * requested. Ring thread and lease thread; a charge ends on the thread on which the driver destroys
 * its object. It never talks to gantryd itself: the lease does.
 */
#include "opencl_host.h"
#include "device_answers.h"
#include "memory_copy.h"
#include "opencl_pixel.h"

#include <stdlib.h>
#include <string.h>

/* ---- before */

/* What an eviction takes of the device to copy memory with these flags. */
static uint64_t bytes_to_copy(const struct gn_vgpu *v, cl_mem_flags flags)
{
    return v->evicts && gn_is_closed(flags) ? GN_COPY_LEAST_BYTES : 0;
}

bool gn_mem_charge(struct gn_vgpu *v, struct gn_request *r, uint64_t bytes, cl_mem_flags flags)
{
    /* The driver refuses a size beyond any device's limit, with its own error. */
    return bytes > ((const struct gn_opencl_vgpu *)v->detail)->largest_bytes ||
           gn_request_charge(r, bytes + bytes_to_copy(v, flags));
}

void gn_learn_largest(struct gn_vgpu *v)
{
    static const cl_device_info sides[] = {
        CL_DEVICE_IMAGE2D_MAX_WIDTH,  CL_DEVICE_IMAGE2D_MAX_HEIGHT, CL_DEVICE_IMAGE3D_MAX_WIDTH,
        CL_DEVICE_IMAGE3D_MAX_HEIGHT, CL_DEVICE_IMAGE3D_MAX_DEPTH,  CL_DEVICE_IMAGE_MAX_ARRAY_SIZE};
    struct gn_opencl_vgpu *detail = v->detail;
    for (cl_uint d = 0; d < detail->platform->n_devices; d++) {
        cl_device_id device = detail->platform->devices[d];
        cl_ulong bytes = 0;
        gn_cl(v)->clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof bytes, &bytes, NULL);
        if (bytes > detail->largest_bytes)
            detail->largest_bytes = bytes;
        for (size_t i = 0; i < GN_ARRAY_SIZE(sides); i++) {
            size_t side = 0;
            gn_cl(v)->clGetDeviceInfo(device, sides[i], sizeof side, &side, NULL);
            if (side > detail->largest_side)
                detail->largest_side = side;
        }
    }
}

uint64_t gn_image_bytes(struct gn_vgpu *v, const cl_image_format *format, const cl_image_desc *d)
{
    const uint64_t most = ((const struct gn_opencl_vgpu *)v->detail)->largest_side;
    uint64_t width = d->image_width, height = 1, depth = 1, layers = 1, sum = 0;
    if (width > most || d->image_height > most || d->image_depth > most)
        return UINT64_MAX;
    switch (d->image_type) {
    case CL_MEM_OBJECT_IMAGE3D:
        depth = d->image_depth;
        height = d->image_height;
        break;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
        layers = d->image_array_size;
        height = d->image_height;
        break;
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
        layers = d->image_array_size;
        break;
    case CL_MEM_OBJECT_IMAGE2D:
        height = d->image_height;
        break;
    default:
        break;
    }
    for (cl_uint level = 0; level == 0 || (level < d->num_mip_levels && level < 64); level++) {
        const uint64_t extent[3] = {width, height, depth};
        if (!gn_add_u64(sum, gn_times(gn_product(extent), gn_times(layers, gn_pixel_bytes(format))),
                        &sum))
            return UINT64_MAX;
        width = width > 1 ? width / 2 : width;
        height = height > 1 ? height / 2 : height;
        depth = depth > 1 ? depth / 2 : depth;
    }
    return sum;
}

/* ---- after */

void *gn_mem_settle(struct gn_vgpu *v, struct gn_request *r, cl_mem mem, cl_int *result)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    cl_mem_flags flags = 0;
    size_t size = 0;
    if (!mem || cl->clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof size, &size, NULL) ||
        cl->clGetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof flags, &flags, NULL))
        return mem;
    const uint64_t bytes = size + bytes_to_copy(v, flags);
    if (bytes > r->charged_bytes && !gn_request_charge(r, bytes - r->charged_bytes)) {
        cl->clReleaseMemObject(mem);
        *result = CL_MEM_OBJECT_ALLOCATION_FAILURE;
        return NULL;
    }
    if (bytes < r->charged_bytes) {
        gn_lease_refund(&v->lease, r->charged_bytes - bytes);
        r->charged_bytes = bytes;
    }
    return mem;
}

/* ---- until it is gone */

/*
 * The vGPU's reference is not always the last: sub-buffers, commands and the driver's caches hold
 * an object, too. So the bytes are refunded after both events: the vGPU's release, and the
 * destructor callback of each driver's object that the vGPU's has had. The callback alone is not
 * enough, because it comes before the memory is free.
 */
struct gn_mem_charge {
    struct gn_vgpu *v;
    uint64_t bytes;
    enum gn_lease_part part; /* under the residency's lock, until the vGPU's release */
    _Atomic int n_awaited;   /* of these events */
};

static void CL_CALLBACK on_destroyed(cl_mem mem, void *user_data)
{
    (void)mem;
    gn_mem_charge_end(user_data);
}

struct gn_mem_charge *gn_mem_charge_keep(struct gn_vobject *o)
{
    struct gn_mem_charge *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->v = o->vgpu;
    c->bytes = o->charged_bytes;
    c->part = GN_LEASE_PINNED;
    o->charged_bytes = 0;
    atomic_init(&c->n_awaited, 1);
    gn_mem_charge_renew(c, o->driver);
    return c;
}

void gn_mem_charge_renew(struct gn_mem_charge *c, cl_mem mem)
{
    const cl_icd_dispatch *cl = gn_cl(c->v);
    if (!cl->clSetMemObjectDestructorCallback)
        return;
    /* The vGPU's own release is awaited, too, so this is not the last. */
    atomic_fetch_add_explicit(&c->n_awaited, 1, memory_order_relaxed);
    if (cl->clSetMemObjectDestructorCallback(mem, on_destroyed, c))
        atomic_fetch_sub_explicit(&c->n_awaited, 1, memory_order_relaxed);
}

void gn_mem_charge_move(struct gn_mem_charge *c, enum gn_lease_part to)
{
    if (c && c->part != to)
        gn_lease_move(&c->v->lease, c->bytes, c->part, to);
    if (c)
        c->part = to;
}

uint64_t gn_mem_charge_bytes(const struct gn_vobject *o)
{
    const struct gn_mem_charge *c = ((const struct gn_mem_detail *)o->detail)->charge;
    return c ? c->bytes : 0;
}

bool gn_mem_charge_is_freed(const struct gn_mem_charge *c)
{
    return atomic_load_explicit(&c->n_awaited, memory_order_acquire) == 1;
}

void gn_mem_charge_end(struct gn_mem_charge *c)
{
    if (!c || atomic_fetch_sub_explicit(&c->n_awaited, 1, memory_order_acq_rel) != 1)
        return;
    gn_mem_charge_move(c, GN_LEASE_PINNED);
    gn_lease_refund(&c->v->lease, c->bytes);
    free(c);
}

/* ---- programs */

bool gn_program_prints(struct gn_vobject *o)
{
    static const char word[] = "printf";
    bool found = false;
    pthread_mutex_lock(&o->vgpu->objects.lock);
    for (const struct gn_record_link *l = o->records; l && !found; l = l->next)
        found = memmem(l->record->bytes, l->record->n_bytes, word, sizeof word - 1) != NULL;
    pthread_mutex_unlock(&o->vgpu->objects.lock);
    return found;
}

/* The buffer belongs to the device and stays when the program has ended. */
static bool charge_printf(struct gn_vgpu *v, cl_device_id device)
{
    struct gn_opencl_vgpu *detail = v->detail;
    const cl_uint index = gn_device_index(v, device);
    size_t bytes = 0;
    if (index >= GN_ARRAY_SIZE(detail->prints) || detail->prints[index])
        return true;
    gn_cl(v)->clGetDeviceInfo(device, CL_DEVICE_PRINTF_BUFFER_SIZE, sizeof bytes, &bytes, NULL);
    if (gn_lease_charge(&v->lease, bytes, true, true))
        return false;
    detail->prints[index] = true;
    detail->printf_bytes += bytes;
    return true;
}

bool gn_program_charge(struct gn_vgpu *v, struct gn_request *r, struct gn_vobject *o,
                       cl_program program, bool prints)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    cl_device_id devices[GN_WORKER_MAX_DEVICES];
    uint64_t *charged = o ? &o->charged_bytes : &r->charged_bytes;
    uint64_t total = 0;
    size_t bytes = 0;
    /* For a program with more sub-devices than that the query fails; nothing is charged. */
    if (cl->clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof devices, devices, &bytes))
        return true;
    for (size_t i = 0; i < bytes / sizeof devices[0]; i++) {
        size_t most = 0, variables = 0;
        if (prints && !charge_printf(v, devices[i]))
            return false;
        if (!cl->clGetDeviceInfo(devices[i], CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE, sizeof most, &most,
                                 NULL) &&
            most &&
            !cl->clGetProgramBuildInfo(program, devices[i],
                                       CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE,
                                       sizeof variables, &variables, NULL) &&
            !gn_add_u64(total, variables, &total))
            return false;
    }
    if (total > *charged && gn_lease_charge(&v->lease, total - *charged, true, true))
        return false;
    if (total < *charged)
        gn_lease_refund(&v->lease, *charged - total);
    *charged = total;
    return true;
}

/* ---- answers to queries */

cl_int gn_host_clGetDeviceInfo(struct gn_vgpu *v, struct gn_request *r,
                               const struct gn_args_clGetDeviceInfo *a)
{
    const uint64_t limit = v->boot->memory_limit_bytes;
    const uint64_t used = atomic_load_explicit(&v->counters->memory_bytes, memory_order_relaxed);
    cl_int result;
    if (!gn_device_answers_answer(v, a->device, a->param_name, a->param_value_size, a->param_value,
                                  a->param_value_size_ret, &result))
        result = gn_cl(v)->clGetDeviceInfo(a->device, a->param_name, a->param_value_size,
                                           a->param_value, a->param_value_size_ret);
    cl_ulong *bytes = a->param_value;
    size_t *kib = a->param_value;
    (void)r;
    if (result || !limit || !a->param_value)
        return result;
    switch (a->param_name) {
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        /*
         * The driver's own answers have this size. A stored answer of another device may have any
         * length.
         */
        if (a->param_value_size >= sizeof *bytes && *bytes > limit)
            *bytes = limit;
        break;
    case CL_DEVICE_GLOBAL_FREE_MEMORY_AMD: /* in kilobytes: the total, and the largest free block */
        for (size_t i = 0; i < 2 && (i + 1) * sizeof *kib <= a->param_value_size; i++)
            if (kib[i] > (limit > used ? limit - used : 0) / 1024)
                kib[i] = (limit > used ? limit - used : 0) / 1024;
        break;
    default:
        break;
    }
    return result;
}
