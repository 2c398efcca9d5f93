/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes evicted memory objects out of the arguments of the driver's kernels: see kept_args.h. A
 * pointer becomes NULL; an image becomes one of a pixel, which the kernel alone keeps, since there
 * are no NULL images. The eviction calls it on the serving thread; kernels come and go on any. It
 * changes no argument of the program's: a launch brings all of these.
 */
#include "kept_args.h"
#include "opencl_host.h"

#include "base/log.h"

#include <stdlib.h>

struct gn_kept_args {
    pthread_mutex_t lock;   /* after the role, before a kernel's; held over calls into the driver */
    struct gn_list kernels; /* lock: struct gn_kernel_detail.kept_link */
};

static struct gn_kept_args *kept_args_of(const struct gn_vgpu *v)
{
    return v->evicts ? ((const struct gn_opencl_vgpu *)v->detail)->kept_args : NULL;
}

int gn_kept_args_start(struct gn_vgpu *v)
{
    if (!v->evicts)
        return 0;
    struct gn_kept_args *x = calloc(1, sizeof *x);
    if (!x)
        return -1;
    pthread_mutex_init(&x->lock, NULL);
    gn_list_init(&x->kernels);
    ((struct gn_opencl_vgpu *)v->detail)->kept_args = x;
    return 0;
}

void gn_kept_args_add(struct gn_vgpu *v, struct gn_kernel_detail *k)
{
    struct gn_kept_args *x = kept_args_of(v);
    if (!x)
        return;
    pthread_mutex_lock(&x->lock);
    gn_list_append(&x->kernels, &k->kept_link);
    pthread_mutex_unlock(&x->lock);
}

void gn_kept_args_remove(struct gn_vgpu *v, struct gn_kernel_detail *k)
{
    struct gn_kept_args *x = kept_args_of(v);
    if (!x)
        return;
    pthread_mutex_lock(&x->lock);
    gn_list_remove(&k->kept_link);
    pthread_mutex_unlock(&x->lock);
}

/* ---- an image of a pixel */

/* NULL: the driver makes none of this type. */
static cl_mem make_pixel(const cl_icd_dispatch *cl, cl_context context, cl_mem_object_type type)
{
    const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
    cl_image_desc desc = {.image_type = type,
                          .image_width = 1,
                          .image_height = 1,
                          .image_depth = 1,
                          .image_array_size = 1};
    cl_int result;
    if (type == CL_MEM_OBJECT_IMAGE1D_BUFFER &&
        !(desc.mem_object = cl->clCreateBuffer(context, 0, 4, NULL, &result)))
        return NULL;
    cl_mem image = cl->clCreateImage(context, 0, &format, &desc, NULL, &result);
    if (desc.mem_object)
        cl->clReleaseMemObject(desc.mem_object);
    return image;
}

/* The type that the kernel declares is not always known. False: the driver takes none. */
static bool set_pixel(const cl_icd_dispatch *cl, cl_kernel kernel, cl_uint index)
{
    static const cl_mem_object_type types[] = {
        CL_MEM_OBJECT_IMAGE2D,       CL_MEM_OBJECT_IMAGE3D, CL_MEM_OBJECT_IMAGE2D_ARRAY,
        CL_MEM_OBJECT_IMAGE1D_ARRAY, CL_MEM_OBJECT_IMAGE1D, CL_MEM_OBJECT_IMAGE1D_BUFFER};
    cl_context context = NULL;
    bool set = false;
    if (!cl->clCreateImage ||
        cl->clGetKernelInfo(kernel, CL_KERNEL_CONTEXT, sizeof context, &context, NULL))
        return false;
    for (size_t i = 0; !set && i < GN_ARRAY_SIZE(types); i++) {
        cl_mem pixel = make_pixel(cl, context, types[i]);
        if (!pixel)
            continue;
        set = !cl->clSetKernelArg(kernel, index, sizeof pixel, &pixel);
        cl->clReleaseMemObject(pixel);
    }
    return set;
}

/* ---- arguments */

/* Has the object with this id no driver's object, or is there no such object any more? */
static bool is_absent(struct gn_vgpu *v, uint64_t id)
{
    bool lie = false;
    struct gn_vobject *o = gn_object_get(v, id, GN_KIND_MEM, &lie);
    const bool absent = !gn_driver_of(o);
    gn_object_unref(o);
    return absent;
}

static void drop_of_kernel(struct gn_vgpu *v, struct gn_kernel_detail *k)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    const cl_mem none = NULL;
    for (cl_uint i = 0; i < k->n_args; i++) {
        struct gn_applied_arg *have = &k->applied[i];
        if (!have->kept || !is_absent(v, have->kept))
            continue;
        const bool dropped = have->kept_image
                                 ? set_pixel(cl, k->driver, i)
                                 : !cl->clSetKernelArg(k->driver, i, sizeof none, &none);
        if (!dropped) {
            gn_debug("vgpu=%08x a kernel keeps argument %u, which is evicted", v->boot->id, i);
            continue;
        }
        have->kept = 0;
        have->arg.kind = 0; /* the next launch sets it */
    }
}

void gn_kept_args_drop(struct gn_vgpu *v)
{
    struct gn_kept_args *x = kept_args_of(v);
    if (!x)
        return;
    pthread_mutex_lock(&x->lock);
    gn_list_for_each(k, &x->kernels, struct gn_kernel_detail, kept_link)
    {
        pthread_mutex_lock(&k->lock);
        drop_of_kernel(v, k);
        pthread_mutex_unlock(&k->lock);
    }
    pthread_mutex_unlock(&x->lock);
}
