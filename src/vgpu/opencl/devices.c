/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vGPU's devices in a stream: the answers that its program received and the features that it
 * uses; and whether the devices here can replace them. The saving or loading thread calls it; it
 * never changes a driver's object.
 */
#include "device_compat.h"
#include "opencl_host.h"
#include "vgpu/migrate/save.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_TEXT 256u

/* For display, also by programs that show a file. */
static const struct {
    cl_device_info info;
    uint32_t part;
} texts[] = {{CL_DEVICE_NAME, GN_PART_NAME},
             {CL_DEVICE_VENDOR, GN_PART_VENDOR},
             {CL_DEVICE_VERSION, GN_PART_VERSION},
             {CL_DRIVER_VERSION, GN_PART_DRIVER_VERSION}};

static int save_fact(struct gn_stream_writer *w, const struct gn_device_answers_fact *f)
{
    const uint32_t head[2] = {f->number, 0};
    const struct iovec iov[2] = {{(void *)(uintptr_t)head, sizeof head}, {f->bytes, f->n}};
    return gn_stream_part_iov(w, GN_PART_FACT, iov, f->n ? 2 : 1);
}

static int save_device(struct gn_vgpu *v, uint32_t i, struct gn_stream_writer *w,
                       const struct gn_uses *uses)
{
    const struct gn_opencl_vgpu *detail = v->detail;
    const struct gn_device_answers_device *reported =
        detail->reported && detail->reported[i].n ? &detail->reported[i] : NULL;
    struct gn_device_answers_device here = {0};
    int rc = reported ? 0 : gn_device_answers_ask(v, detail->platform->devices[i], &here);
    if (!reported)
        reported = &here;
    const struct gn_stream_device_state state = {
        .memory_bytes = gn_device_answers_number(reported, CL_DEVICE_GLOBAL_MEM_SIZE, 0),
        .largest_bytes = gn_device_answers_number(reported, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 0),
        .work_group = gn_device_answers_number(reported, CL_DEVICE_MAX_WORK_GROUP_SIZE, 0),
        .n_units = (uint32_t)gn_device_answers_number(reported, CL_DEVICE_MAX_COMPUTE_UNITS, 0)};
    if (!rc)
        rc = gn_stream_entry_begin(w, GN_STREAM_DEVICES, i, 0, NULL, 0);
    if (!rc)
        rc = gn_stream_part(w, GN_PART_STATE, &state, sizeof state);
    for (size_t t = 0; !rc && t < GN_ARRAY_SIZE(texts); t++) {
        int n;
        const char *text = gn_device_answers_text(reported, texts[t].info, DEVICE_TEXT - 1, &n);
        rc = gn_stream_part(w, texts[t].part, text, (uint64_t)n);
    }
    for (uint32_t f = 0; !rc && f < reported->n; f++)
        rc = save_fact(w, &reported->facts[f]);
    if (!rc)
        rc = gn_stream_part(w, GN_PART_API, &uses->most, sizeof uses->most);
    for (uint32_t k = 0; !rc && k < uses->n_images; k++)
        rc = gn_stream_part(w, GN_PART_API + 1, &uses->images[k], sizeof uses->images[k]);
    if (!rc)
        rc = gn_stream_entry_end(w);
    gn_device_answers_fini(&here);
    return rc;
}

int gn_opencl_save_devices(struct gn_vgpu *v, struct gn_stream_writer *w,
                           struct gn_vobject *const *objects, uint32_t n,
                           struct gn_record *const *records, uint32_t n_records)
{
    struct gn_uses *uses = calloc(v->n_devices, sizeof *uses);
    int rc = uses ? 0 : -ENOMEM;
    if (!rc)
        gn_uses_look(v, objects, n, records, n_records, uses);
    for (uint32_t i = 0; !rc && i < v->n_devices; i++)
        rc = save_device(v, i, w, &uses[i]);
    free(uses);
    return rc;
}

/* ---- at the destination */

static int read_uses(const struct gn_stream_entry *e, struct gn_uses *ret)
{
    struct gn_stream_entry all = *e;
    struct gn_stream_part part;
    ret->n_images = 0;
    if (!gn_stream_copy_part(e, GN_PART_API, &ret->most, sizeof ret->most))
        return -EBADMSG;
    while (gn_stream_next_part(&all, &part)) {
        if (part.part != GN_PART_API + 1)
            continue;
        if (part.n != sizeof ret->images[0] || ret->n_images == GN_USED_IMAGES)
            return -EBADMSG;
        memcpy(&ret->images[ret->n_images++], part.bytes, part.n);
    }
    return 0;
}

/*
 * A device with equal answers needs no check. For another one, stores the answers that the program
 * received.
 */
static int compare_device(struct gn_vgpu *v, uint32_t i, struct gn_device_answers_device *reported,
                          const struct gn_uses *uses)
{
    struct gn_opencl_vgpu *detail = v->detail;
    struct gn_device_answers_device here;
    struct gn_device_lacks lacks = {0};
    int rc = gn_device_answers_ask(v, detail->platform->devices[i], &here);
    if (rc || gn_device_answers_same(reported, &here)) {
        if (!rc)
            gn_device_answers_fini(&here);
        return rc;
    }
    if (!detail->lacks && !(detail->lacks = calloc(1, sizeof *detail->lacks)))
        rc = -ENOMEM;
    if (!rc) {
        int n;
        const char *name = gn_device_answers_text(&here, CL_DEVICE_NAME, 60, &n);
        lacks.bytes =
            (size_t)snprintf(lacks.text, sizeof lacks.text, "the device \"%.*s\" lacks ", n, name);
        gn_device_compat_check(v, i, reported, &here, uses, &lacks);
        if (lacks.n)
            gn_device_compat_add(detail->lacks, &lacks);
    }
    gn_device_answers_fini(&here);
    return rc ? rc : gn_device_answers_keep(v, i, reported);
}

int gn_opencl_check_device(struct gn_vgpu *v, const struct gn_stream_entry *e, bool *ret_last,
                           struct gn_error *err)
{
    struct gn_device_answers_device reported = {0};
    struct gn_uses *uses = malloc(sizeof *uses);
    int rc = uses ? read_uses(e, uses) : -ENOMEM;
    if (!rc && (uses->most.n_devices != v->n_devices || e->id >= v->n_devices)) {
        rc = gn_fail(err, ENODEV, NULL, "it has %u devices, and %u are available here",
                     uses->most.n_devices, v->n_devices);
        free(uses);
        return rc;
    }
    if (!rc)
        rc = gn_device_answers_read(e, &reported);
    if (!rc)
        rc = compare_device(v, (uint32_t)e->id, &reported, uses);
    *ret_last = e->id + 1 == v->n_devices;
    gn_device_answers_fini(&reported);
    free(uses);
    return rc ? gn_fail(err, -rc, NULL,
                        rc == -ENOMEM ? "no memory left to compare the devices"
                                      : "a device is malformed")
              : 0;
}

int gn_opencl_compare_devices(struct gn_vgpu *v, bool *ret_others, struct gn_error *err)
{
    struct gn_opencl_vgpu *detail = v->detail;
    struct gn_device_lacks *l = detail->lacks;
    int rc = 0;
    detail->lacks = NULL;
    *ret_others = detail->reported != NULL;
    if (l && l->n)
        rc = l->left_out ? gn_fail(err, ENODEV, "choose a device that has it", "%s, and %u more",
                                   l->text, l->left_out)
                         : gn_fail(err, ENODEV, "choose a device that has it", "%s", l->text);
    free(l);
    return rc;
}

/* ---- kernels */

int gn_opencl_save_object(struct gn_vgpu *v, struct gn_stream_writer *w, const struct gn_vobject *o)
{
    const struct gn_kernel_detail *k = o->kind == GN_KIND_KERNEL ? o->detail : NULL;
    const struct gn_saved_kernel state = {
        .work_items = k ? atomic_load_explicit(&k->most_items, memory_order_relaxed) : 0};
    (void)v;
    return k ? gn_stream_part(w, GN_PART_API, &state, sizeof state) : 0;
}

/*
 * The destination's driver decides how large a kernel's work-groups may be, because it has built
 * the kernel.
 */
int gn_opencl_check_object(struct gn_vgpu *v, const struct gn_vobject *o,
                           const struct gn_stream_entry *e, struct gn_error *err)
{
    const struct gn_opencl_vgpu *detail = v->detail;
    struct gn_saved_kernel state;
    char name[128] = "";
    if (o->kind != GN_KIND_KERNEL || !detail->reported)
        return 0;
    if (!gn_stream_copy_part(e, GN_PART_API, &state, sizeof state))
        return gn_fail(err, EBADMSG, NULL, "a kernel is malformed");
    struct gn_kernel_detail *k = o->detail;
    if (k)
        atomic_store_explicit(&k->most_items, state.work_items, memory_order_relaxed);
    for (uint32_t i = 0; i < v->n_devices; i++) {
        size_t most = 0;
        if (gn_cl(v)->clGetKernelWorkGroupInfo(o->driver, detail->platform->devices[i],
                                               CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most,
                                               NULL) ||
            state.work_items <= most)
            continue;
        (void)gn_cl(v)->clGetKernelInfo(o->driver, CL_KERNEL_FUNCTION_NAME, sizeof name, name,
                                        NULL);
        return gn_fail(err, ENODEV, "choose a device that has it",
                       "its kernel %.60s uses work-groups of %llu, and the device allows %zu", name,
                       (unsigned long long)state.work_items, most);
    }
    return 0;
}
