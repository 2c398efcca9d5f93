/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The features that a vGPU uses of its devices, and whether other devices have them: see
 * device_compat.h. The saving or loading thread calls it; no command's path goes through it.
 */
#include "device_compat.h"

#include "base/log.h"
#include "opencl_carried.h"
#include "opencl_host.h"
#include "vgpu/core/records.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- features in use */

static void raise_to(uint64_t *have, uint64_t n)
{
    if (n > *have)
        *have = n;
}

/* The devices of a context, as a bit mask. */
static uint64_t devices_of(struct gn_vgpu *v, cl_context context)
{
    cl_device_id devices[GN_WORKER_MAX_DEVICES];
    size_t n = 0;
    uint64_t all = 0;
    if (!context ||
        gn_cl(v)->clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof devices, devices, &n))
        return 0;
    for (size_t i = 0; i < n / sizeof *devices; i++)
        all |= UINT64_C(1) << gn_device_index(v, devices[i]);
    return all;
}

static void note_image(struct gn_uses *u, const struct gn_saved_image *image)
{
    for (uint32_t i = 0; i < u->n_images; i++)
        if (!memcmp(&u->images[i], image, sizeof *image))
            return;
    if (u->n_images < GN_USED_IMAGES)
        u->images[u->n_images++] = *image;
}

static void note_image_sides(struct gn_vgpu *v, cl_mem mem, cl_mem_object_type type,
                             struct gn_saved_uses *u)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    size_t width = 0, height = 0, depth = 0, layers = 0;
    cl->clGetImageInfo(mem, CL_IMAGE_WIDTH, sizeof width, &width, NULL);
    cl->clGetImageInfo(mem, CL_IMAGE_HEIGHT, sizeof height, &height, NULL);
    cl->clGetImageInfo(mem, CL_IMAGE_DEPTH, sizeof depth, &depth, NULL);
    cl->clGetImageInfo(mem, CL_IMAGE_ARRAY_SIZE, sizeof layers, &layers, NULL);
    raise_to(&u->image_layers, layers);
    if (type == CL_MEM_OBJECT_IMAGE3D) {
        raise_to(&u->image3d[0], width);
        raise_to(&u->image3d[1], height);
        raise_to(&u->image3d[2], depth);
    } else if (type == CL_MEM_OBJECT_IMAGE1D_BUFFER) {
        raise_to(&u->image_elements, width);
    } else {
        raise_to(&u->image2d[0], width);
        raise_to(&u->image2d[1], height);
    }
}

static void note_mem(struct gn_vgpu *v, cl_mem mem, struct gn_uses *uses)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    cl_context context = NULL;
    cl_mem_object_type type = 0;
    cl_mem_flags flags = 0;
    cl_image_format format = {0};
    size_t bytes = 0;
    cl->clGetMemObjectInfo(mem, CL_MEM_CONTEXT, sizeof context, &context, NULL);
    cl->clGetMemObjectInfo(mem, CL_MEM_TYPE, sizeof type, &type, NULL);
    cl->clGetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof flags, &flags, NULL);
    cl->clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
    const bool image = type != CL_MEM_OBJECT_BUFFER && type != CL_MEM_OBJECT_PIPE;
    if (image)
        cl->clGetImageInfo(mem, CL_IMAGE_FORMAT, sizeof format, &format, NULL);
    const struct gn_saved_image one = {.order = format.image_channel_order,
                                       .type = format.image_channel_data_type,
                                       .kind = type,
                                       .flags = flags &
                                                (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY |
                                                 CL_MEM_READ_ONLY | CL_MEM_KERNEL_READ_AND_WRITE)};
    const uint64_t on = devices_of(v, context);
    for (uint32_t i = 0; i < v->n_devices; i++) {
        if (!(on >> i & 1))
            continue;
        raise_to(&uses[i].most.largest_bytes, bytes);
        if (image) {
            note_image(&uses[i], &one);
            note_image_sides(v, mem, type, &uses[i].most);
        }
    }
}

static void note_queue(struct gn_vgpu *v, const struct gn_vobject *o, struct gn_uses *uses)
{
    cl_device_id device = NULL;
    cl_command_queue_properties properties = 0;
    gn_cl(v)->clGetCommandQueueInfo(o->driver, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    gn_cl(v)->clGetCommandQueueInfo(o->driver, CL_QUEUE_PROPERTIES, sizeof properties, &properties,
                                    NULL);
    if (device)
        uses[gn_device_index(v, device)].most.queue_properties |= properties;
}

static void note_kernel(struct gn_vgpu *v, const struct gn_vobject *o, struct gn_uses *uses)
{
    const struct gn_kernel_detail *k = o->detail;
    cl_context context = NULL;
    gn_cl(v)->clGetKernelInfo(o->driver, CL_KERNEL_CONTEXT, sizeof context, &context, NULL);
    const uint64_t on = devices_of(v, context);
    for (uint32_t i = 0; i < v->n_devices; i++) {
        cl_ulong local = 0;
        if (!(on >> i & 1))
            continue;
        /* A kernel that was not built for this device has none. */
        if (!gn_cl(v)->clGetKernelWorkGroupInfo(o->driver, gn_platform_of(v)->devices[i],
                                                CL_KERNEL_LOCAL_MEM_SIZE, sizeof local, &local,
                                                NULL))
            raise_to(&uses[i].most.local_bytes, local);
        if (!k)
            continue;
        raise_to(&uses[i].most.work_items,
                 atomic_load_explicit(&k->most_items, memory_order_relaxed));
        for (int side = 0; side < 3; side++)
            raise_to(&uses[i].most.work_sizes[side],
                     atomic_load_explicit(&k->most_sides[side], memory_order_relaxed));
    }
}

static void note_sub_device(struct gn_vgpu *v, const struct gn_vobject *o, struct gn_uses *uses)
{
    const uint32_t i = gn_device_index(v, o->driver);
    cl_uint units = 0;
    if (o->driver == gn_platform_of(v)->devices[i])
        return;
    gn_cl(v)->clGetDeviceInfo(o->driver, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
    if (units > uses[i].most.sub_units)
        uses[i].most.sub_units = units;
}

void gn_uses_look(struct gn_vgpu *v, struct gn_vobject *const *objects, uint32_t n,
                  struct gn_record *const *records, uint32_t n_records, struct gn_uses *ret)
{
    uint32_t flags = 0;
    memset(ret, 0, v->n_devices * sizeof *ret);
    for (uint32_t i = 0; i < n; i++) {
        const struct gn_vobject *o = objects[i];
        const uint64_t on = o->kind == GN_KIND_CONTEXT ? devices_of(v, o->driver) : 0;
        for (uint32_t d = 0; d < v->n_devices; d++)
            ret[d].most.flags |= on >> d & 1 ? GN_USES_IT : 0;
        if (o->kind == GN_KIND_MEM)
            note_mem(v, o->driver, ret);
        else if (o->kind == GN_KIND_QUEUE)
            note_queue(v, o, ret);
        else if (o->kind == GN_KIND_KERNEL)
            note_kernel(v, o, ret);
        else if (o->kind == GN_KIND_DEVICE)
            note_sub_device(v, o, ret);
    }
    /* The program's own binary, or one of a program that it was linked from. */
    for (uint32_t i = 0; i < n_records; i++)
        if (records[i]->op == GN_OP_ProgramFromBinaries)
            flags = GN_USES_BINARY;
    pthread_mutex_lock(&v->lease.lock);
    const uint64_t used = v->lease.used_bytes;
    pthread_mutex_unlock(&v->lease.lock);
    for (uint32_t d = 0; d < v->n_devices; d++) {
        ret[d].most.n_devices = v->n_devices;
        if (!(ret[d].most.flags & GN_USES_IT))
            continue;
        ret[d].most.flags |= flags;
        ret[d].most.memory_bytes = used;
    }
}

/* ---- missing features */

static void append_items(struct gn_device_lacks *l, const char *text, uint32_t n_items)
{
    const size_t n = strlen(text), sep = l->n ? 2 : 0;
    l->n += n_items;
    /* Leaves room for the number of items that do not fit. */
    if (l->left_out || l->bytes + sep + n + 16 >= sizeof l->text) {
        l->left_out += n_items;
        return;
    }
    l->bytes += (size_t)snprintf(l->text + l->bytes, sizeof l->text - l->bytes, "%s%s",
                                 sep ? ", " : "", text);
}

void gn_device_compat_add(struct gn_device_lacks *l, const struct gn_device_lacks *more)
{
    append_items(l, more->text, more->n - more->left_out);
    l->n += more->left_out;
    l->left_out += more->left_out;
}

void gn_lack(struct gn_device_lacks *l, const char *format, ...)
{
    char one[200];
    va_list ap;
    va_start(ap, format);
    vsnprintf(one, sizeof one, format, ap);
    va_end(ap);
    gn_debug("incompatible device: it lacks %s", one);
    append_items(l, one, 1);
}

struct pair {
    const struct gn_device_answers_device *reported, *here;
    struct gn_device_lacks *l;
};

/* Checks a size in use. */
static void need_size(const struct pair *p, cl_device_info number, uint32_t i, uint64_t used,
                      const char *what)
{
    const uint64_t has = gn_device_answers_number(p->here, number, i);
    if (used > has)
        gn_lack(p->l, "%s of %llu (it has %llu)", what, (unsigned long long)used,
                (unsigned long long)has);
}

static void need_bytes(const struct pair *p, cl_device_info number, uint64_t used, const char *what)
{
    const uint64_t has = gn_device_answers_number(p->here, number, 0);
    if (used > has)
        gn_lack(p->l, "%llu KiB of %s (it has %llu)", (unsigned long long)((used + 1023) / 1024),
                what, (unsigned long long)(has / 1024));
}

/* Checks an ability that the program was told of and may rely on. */
static void need_bits(const struct pair *p, cl_device_info number, const char *what,
                      const char *parts)
{
    const uint64_t reported = gn_device_answers_number(p->reported, number, 0),
                   has = gn_device_answers_number(p->here, number, 0);
    if (reported && !has)
        gn_lack(p->l, "%s", what);
    else if (reported & ~has)
        gn_lack(p->l, "%s of %s (0x%llx)", parts, what, (unsigned long long)(reported & ~has));
}

static void need_at_least(const struct pair *p, cl_device_info number, const char *what)
{
    const uint64_t reported = gn_device_answers_number(p->reported, number, 0),
                   has = gn_device_answers_number(p->here, number, 0);
    if (has < reported)
        gn_lack(p->l, "%s", what);
}

static void need_same(const struct pair *p, cl_device_info number, const char *what)
{
    const uint64_t reported = gn_device_answers_number(p->reported, number, 0),
                   has = gn_device_answers_number(p->here, number, 0);
    if (has != reported)
        gn_lack(p->l, "%s %llu (it has %llu)", what, (unsigned long long)reported,
                (unsigned long long)has);
}

/*
 * True if the device is of the same kind with the same driver, so that it accepts the other one's
 * binaries. Memory size and clock rate are not compared: they may change from day to day.
 */
static bool takes_binaries(const struct pair *p)
{
    static const cl_device_info kind[] = {CL_DEVICE_NAME, CL_DEVICE_VENDOR, CL_DEVICE_VENDOR_ID,
                                          CL_DEVICE_VERSION, CL_DRIVER_VERSION};
    for (size_t i = 0; i < GN_ARRAY_SIZE(kind); i++) {
        const struct gn_device_answers_fact *reported =
                                                gn_device_answers_find(p->reported, kind[i]),
                                            *here = gn_device_answers_find(p->here, kind[i]);
        if (!reported || !here || reported->n != here->n ||
            memcmp(reported->bytes, here->bytes, reported->n) != 0)
            return false;
    }
    return true;
}

static bool has_word(const char *words, int n, const char *word, size_t n_word)
{
    for (int at = 0; at < n;) {
        size_t len = 0;
        while (at + (int)len < n && words[at + (int)len] != ' ')
            len++;
        if (len == n_word && !memcmp(words + at, word, len))
            return true;
        at += (int)len + 1;
    }
    return false;
}

/* Whether programs see the extension on this device. */
static bool has_extension(const struct gn_device_answers_device *t, const struct gn_carried *c)
{
    int n;
    const char *names = gn_device_answers_text(t, CL_DEVICE_EXTENSIONS, 65536, &n);
    const struct gn_device_answers_fact *versions =
        gn_device_answers_find(t, CL_DEVICE_EXTENSIONS_WITH_VERSION);
    if (!c->below)
        return has_word(names, n, c->name, strlen(c->name));
    return versions && gn_carried_version(c, (const void *)versions->bytes,
                                          versions->n / sizeof(cl_name_version));
}

static void need_extensions(const struct pair *p)
{
    for (size_t i = 0; i < GN_ARRAY_SIZE(gn_carried); i++)
        if (has_extension(p->reported, &gn_carried[i]) && !has_extension(p->here, &gn_carried[i]))
            gn_lack(p->l, "%s", gn_carried[i].name);
}

/*
 * Compares capabilities and required queue properties with those that the program was told of.
 * need_extensions reports a device without the extension.
 */
static void need_command_buffers(const struct pair *p)
{
    const struct gn_carried *c = gn_carried_named(GN_COMMAND_BUFFER, sizeof GN_COMMAND_BUFFER - 1);
    if (!has_extension(p->reported, c) || !has_extension(p->here, c))
        return;
    need_bits(p, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, "command buffers", "some abilities");
    if (gn_device_answers_number(p->here, CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR,
                                 0) &
        ~gn_device_answers_number(p->reported,
                                  CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR, 0))
        gn_lack(p->l, "command buffers on any queue");
}

/* The version in "OpenCL 3.0 ..." and "OpenCL C 1.2 ...". */
static uint32_t version_in(const char *text, int n)
{
    uint32_t numbers[2] = {0, 0};
    int at = 0;
    while (at < n && (text[at] < '0' || text[at] > '9'))
        at++;
    for (int i = 0; i < 2; i++, at++)
        for (; at < n && text[at] >= '0' && text[at] <= '9' && numbers[i] < 1000; at++)
            numbers[i] = numbers[i] * 10 + (uint32_t)(text[at] - '0');
    return numbers[0] * 1000 + numbers[1];
}

static void need_version(const struct pair *p, cl_device_info number, const char *what)
{
    int n_told, n_here;
    const char *reported = gn_device_answers_text(p->reported, number, 256, &n_told),
               *here = gn_device_answers_text(p->here, number, 256, &n_here);
    const uint32_t of = version_in(reported, n_told), has = version_in(here, n_here);
    if (has < of)
        gn_lack(p->l, "%s %u.%u (it has %u.%u)", what, of / 1000, of % 1000, has / 1000,
                has % 1000);
}

/* ---- images */

static const char *const kinds_of_image[] = {"2D image", "3D image",       "2D image array",
                                             "1D image", "1D image array", "1D image of a buffer"};

static bool has_format(struct gn_vgpu *v, cl_context context, const struct gn_saved_image *image)
{
    const cl_mem_object_type kind = image->kind;
    cl_uint n = 0;
    bool found = false;
    if (gn_cl(v)->clGetSupportedImageFormats(context, image->flags, kind, 0, NULL, &n) || !n ||
        n > 100000)
        return false;
    cl_image_format *all = calloc(n, sizeof *all);
    if (all && !gn_cl(v)->clGetSupportedImageFormats(context, image->flags, kind, n, all, NULL))
        for (cl_uint i = 0; i < n && !found; i++)
            found = all[i].image_channel_order == image->order &&
                    all[i].image_channel_data_type == image->type;
    free(all);
    return found;
}

/* The driver lists formats for a context, so one is made for the query. */
static void need_formats(struct gn_vgpu *v, uint32_t device, const struct gn_uses *uses,
                         struct gn_device_lacks *l)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)gn_platform_of(v)->id, 0};
    cl_int result;
    if (!uses->n_images)
        return;
    cl_context context = cl->clCreateContext(properties, 1, &gn_platform_of(v)->devices[device],
                                             NULL, NULL, &result);
    for (uint32_t i = 0; i < uses->n_images; i++) {
        const struct gn_saved_image *image = &uses->images[i];
        const uint32_t kind = image->kind - CL_MEM_OBJECT_IMAGE2D;
        if (!context || !has_format(v, context, image))
            gn_lack(l, "the format of a %s (order 0x%x, type 0x%x)",
                    kind < GN_ARRAY_SIZE(kinds_of_image) ? kinds_of_image[kind] : "image",
                    image->order, image->type);
    }
    if (context)
        cl->clReleaseContext(context);
}

void gn_device_compat_check(struct gn_vgpu *v, uint32_t device,
                            const struct gn_device_answers_device *reported,
                            const struct gn_device_answers_device *here, const struct gn_uses *uses,
                            struct gn_device_lacks *l)
{
    const struct pair p = {reported, here, l};
    const struct gn_saved_uses *u = &uses->most;
    int n;
    need_bytes(&p, CL_DEVICE_GLOBAL_MEM_SIZE, u->memory_bytes, "device memory");
    need_bytes(&p, CL_DEVICE_MAX_MEM_ALLOC_SIZE, u->largest_bytes, "memory in one allocation");
    need_bytes(&p, CL_DEVICE_LOCAL_MEM_SIZE, u->local_bytes, "local memory");
    need_size(&p, CL_DEVICE_MAX_WORK_GROUP_SIZE, 0, u->work_items, "work-groups");
    for (uint32_t side = 0; side < 3; side++)
        need_size(&p, CL_DEVICE_MAX_WORK_ITEM_SIZES, side, u->work_sizes[side],
                  "work-groups with a side");
    need_size(&p, CL_DEVICE_IMAGE2D_MAX_WIDTH, 0, u->image2d[0], "images with a width");
    need_size(&p, CL_DEVICE_IMAGE2D_MAX_HEIGHT, 0, u->image2d[1], "images with a height");
    need_size(&p, CL_DEVICE_IMAGE3D_MAX_WIDTH, 0, u->image3d[0], "3D images with a width");
    need_size(&p, CL_DEVICE_IMAGE3D_MAX_HEIGHT, 0, u->image3d[1], "3D images with a height");
    need_size(&p, CL_DEVICE_IMAGE3D_MAX_DEPTH, 0, u->image3d[2], "3D images with a depth");
    need_size(&p, CL_DEVICE_IMAGE_MAX_ARRAY_SIZE, 0, u->image_layers, "image arrays with a length");
    need_size(&p, CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, 0, u->image_elements,
              "images of buffers with a length");
    need_size(&p, CL_DEVICE_MAX_COMPUTE_UNITS, 0, u->sub_units, "a sub-device with compute units");
    if (u->queue_properties &
        ~gn_device_answers_number(here, CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, 0))
        gn_lack(l, "%s",
                u->queue_properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE &
                        ~gn_device_answers_number(here, CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, 0)
                    ? "out-of-order queues"
                    : "queues with profiling");
    const char *name = gn_device_answers_text(reported, CL_DEVICE_NAME, 60, &n);
    if ((u->flags & GN_USES_BINARY) && !takes_binaries(&p))
        gn_lack(l, "the source of a program that has only a binary of \"%.*s\" is there", n, name);
    need_extensions(&p);
    need_command_buffers(&p);
    need_bits(&p, CL_DEVICE_DOUBLE_FP_CONFIG, "double precision", "some abilities");
    need_bits(&p, CL_DEVICE_HALF_FP_CONFIG, "half precision", "some abilities");
    need_bits(&p, CL_DEVICE_SINGLE_FP_CONFIG, "single precision", "some abilities");
    need_bits(&p, CL_DEVICE_SVM_CAPABILITIES, "shared virtual memory", "some kinds");
    need_bits(&p, CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES, "atomic operations", "some kinds");
    need_bits(&p, CL_DEVICE_ATOMIC_FENCE_CAPABILITIES, "atomic fences", "some kinds");
    need_at_least(&p, CL_DEVICE_IMAGE_SUPPORT, "images");
    need_at_least(&p, CL_DEVICE_COMPILER_AVAILABLE, "a compiler");
    need_at_least(&p, CL_DEVICE_LINKER_AVAILABLE, "a linker");
    need_at_least(&p, CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT, "the generic address space");
    need_at_least(&p, CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT, "work-group functions");
    need_at_least(&p, CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, "work-groups of unlike sizes");
    need_at_least(&p, CL_DEVICE_MAX_NUM_SUB_GROUPS, "as many sub-groups in a work-group");
    need_same(&p, CL_DEVICE_ADDRESS_BITS, "the address size in bits:");
    need_same(&p, CL_DEVICE_ENDIAN_LITTLE, "the byte order, little-endian:");
    if (gn_device_answers_number(here, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 0) >
        gn_device_answers_number(reported, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 0))
        gn_lack(
            l, "sub-buffers aligned to %llu bits (it needs %llu)",
            (unsigned long long)gn_device_answers_number(reported, CL_DEVICE_MEM_BASE_ADDR_ALIGN,
                                                         0),
            (unsigned long long)gn_device_answers_number(here, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 0));
    need_version(&p, CL_DEVICE_VERSION, "OpenCL");
    need_version(&p, CL_DEVICE_OPENCL_C_VERSION, "OpenCL C");
    need_formats(v, device, uses, l);
}
