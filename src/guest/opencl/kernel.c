/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels and their arguments. Once the driver has accepted an argument of some size, setting it
 * needs no message: it is stored here and sent with the launch. Arguments that cannot be judged
 * here are judged by the driver. Called on the program's threads, one at a time per kernel.
 */
#include "opencl_guest.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ARGS ((cl_uint)UINT16_MAX + 1)

/* The vGPU's answers are not trusted; they may differ between two requests. */
static cl_int query_kernel_facts(struct gn_cl_kernel *k)
{
    struct gn_arg_fact stack[32], *facts = stack;
    cl_uint n = 0;
    cl_int result = gn_send_KernelFacts(k->o.session, (cl_kernel)k, stack, sizeof stack, &n);
    if (!result && n > MOST_ARGS)
        result = CL_OUT_OF_RESOURCES;
    if (!result && n > GN_ARRAY_SIZE(stack)) {
        const cl_uint room = n;
        facts = calloc(n, sizeof *facts);
        result = facts
                     ? gn_send_KernelFacts(k->o.session, (cl_kernel)k, facts, n * sizeof *facts, &n)
                     : CL_OUT_OF_HOST_MEMORY;
        if (!result && n > room)
            result = CL_OUT_OF_RESOURCES;
    }
    k->args = result ? NULL : calloc(n ? n : 1, sizeof *k->args);
    if (!result && !k->args)
        result = CL_OUT_OF_HOST_MEMORY;
    for (cl_uint i = 0; !result && i < n; i++)
        k->args[i].fact = facts[i];
    k->n_args = result ? 0 : n;
    /* With several devices, the value is the same on all devices that have the kernel. */
    const struct gn_cl_program *p = k->program;
    const struct gn_cl_device *device = p->n_devices            ? p->devices[0]
                                        : p->context->n_devices ? p->context->devices[0]
                                                                : NULL;
    if (!result)
        gn_send_clGetKernelWorkGroupInfo(k->o.session, (cl_kernel)k, (cl_device_id)device,
                                         CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof k->required,
                                         k->required, NULL);
    /* Global sizes are divided by these, so none may be 0. */
    if (!k->required[0] || !k->required[1] || !k->required[2])
        memset(k->required, 0, sizeof k->required);
    if (facts != stack)
        free(facts);
    return result;
}

cl_int gn_made_clCreateKernel(struct gn_object *made, cl_program program, const char *kernel_name)
{
    struct gn_cl_kernel *k = (void *)made;
    (void)kernel_name;
    k->program = (void *)program;
    return query_kernel_facts(k);
}

static bool store_arg(struct gn_cl_kernel *k, cl_uint i, const struct gn_arg *arg,
                      const void *value)
{
    struct gn_cl_arg *a = &k->args[i];
    uint32_t tail = gn_arg_tail(arg->kind, arg->bytes);
    if (tail > a->tail_capacity) {
        void *room = realloc(a->tail, tail);
        if (!room)
            return false;
        a->tail = room;
        a->tail_capacity = tail;
    }
    if (tail) {
        memset((char *)a->tail + arg->bytes, 0, tail - arg->bytes);
        memcpy(a->tail, value, arg->bytes);
    }
    a->arg = *arg;
    k->n_set += !a->set;
    a->set = true;
    return true;
}

cl_int gn_made_clCloneKernel(struct gn_object *made, cl_kernel source_kernel)
{
    struct gn_cl_kernel *k = (void *)made, *source = (void *)source_kernel;
    k->program = source->program;
    /*
     * A clone's parent is the program, as for any kernel: the source kernel may be released first.
     */
    gn_object_ref(&source->program->o);
    k->o.parent = &source->program->o;
    gn_object_unref(&source->o);
    cl_int result = query_kernel_facts(k);
    for (cl_uint i = 0; !result && i < k->n_args && i < source->n_args; i++) {
        if (source->args[i].set && !store_arg(k, i, &source->args[i].arg, source->args[i].tail))
            result = CL_OUT_OF_HOST_MEMORY;
        k->args[i].good_bytes = source->args[i].good_bytes;
        k->args[i].good_empty_bytes = source->args[i].good_empty_bytes;
        k->args[i].good_shape = source->args[i].good_shape;
        k->args[i].named = source->args[i].named;
    }
    return result;
}

cl_int CL_API_CALL gn_clCreateKernelsInProgram(cl_program program, cl_uint num_kernels,
                                               cl_kernel *kernels, cl_uint *num_kernels_ret)
{
    struct gn_cl_program *p = gn_object_of(program, GN_KIND_PROGRAM);
    cl_uint n = 0, n_made = 0;
    if (!p)
        return CL_INVALID_PROGRAM;
    cl_int result = gn_send_Kernels(p->o.session, program, 0, NULL, &n);
    if (result || !kernels) {
        if (!result && num_kernels_ret)
            *num_kernels_ret = n;
        return result;
    }
    if (num_kernels < n)
        return CL_INVALID_VALUE;
    struct gn_cl_kernel **made = calloc(n ? n : 1, sizeof(struct gn_cl_kernel *));
    cl_ulong *ids = calloc(n ? n : 1, sizeof *ids);
    if (!made || !ids)
        result = CL_OUT_OF_HOST_MEMORY;
    while (!result && n_made < n) {
        made[n_made] = (void *)gn_object_new(p->o.session, GN_KIND_KERNEL, &p->o);
        if (!made[n_made]) {
            result = CL_OUT_OF_HOST_MEMORY;
            break;
        }
        made[n_made]->program = p;
        ids[n_made] = made[n_made]->o.id;
        n_made++;
    }
    bool known = false;
    if (!result) {
        result = gn_send_Kernels(p->o.session, program, n_made, ids, &n);
        known = !result;
        n = n_made;
    }
    for (cl_uint i = 0; !result && i < n_made; i++)
        result = query_kernel_facts(made[i]);
    for (cl_uint i = 0; i < n_made; i++) {
        if (!result)
            kernels[i] = (cl_kernel)made[i];
        else if (known)
            gn_object_unref(&made[i]->o);
        else
            gn_object_drop(&made[i]->o);
    }
    if (!result && num_kernels_ret)
        *num_kernels_ret = n;
    free(made);
    free(ids);
    return result;
}

/* ---- arguments */

/* Asks the driver about one argument, and remembers its size if it is accepted. */
static cl_int ask_driver_about_arg(struct gn_cl_kernel *k, cl_uint i, const struct gn_arg *arg,
                                   const void *value)
{
    struct {
        struct gn_arg arg;
        unsigned char tail[1024];
    } stack, *run = &stack;
    uint32_t tail = gn_arg_tail(arg->kind, arg->bytes);
    if (tail > sizeof stack.tail && !(run = malloc(sizeof *arg + tail)))
        return CL_OUT_OF_HOST_MEMORY;
    run->arg = *arg;
    if (tail) {
        memset(run->tail, 0, tail);
        memcpy(run->tail, value, arg->bytes);
    }
    cl_int result = gn_send_SetArg(k->o.session, (cl_kernel)k, run, sizeof *arg + tail);
    if (run != &stack)
        free(run);
    if (!result && i < k->n_args) {
        if (!store_arg(k, i, arg, value))
            return CL_OUT_OF_HOST_MEMORY;
        if (arg->kind == GN_ARG_LOCAL)
            k->args[i].good_empty_bytes = arg->bytes;
        /* An address does not show that a value of this size is valid. */
        else if (arg->kind != GN_ARG_SVM)
            k->args[i].good_bytes = arg->bytes;
    }
    return result;
}

static struct gn_object *object_in(const struct gn_cl_kernel *k, const void *arg_value,
                                   uint16_t kind)
{
    void *handle;
    memcpy(&handle, arg_value, sizeof handle);
    return gn_object_of_session(&k->o, handle, kind);
}

/*
 * Whether the value is one of Gantry's live handles, for an argument without compiler information.
 * Does not read memory that may be unmapped.
 */
static bool may_be_handle(const void *arg_value)
{
    uintptr_t handle;
    memcpy(&handle, arg_value, sizeof handle);
    return handle && handle % 64 == 0 && gn_handle_known((const void *)handle);
}

/* sure: the driver has accepted such an argument before. */
static cl_int set_arg(struct gn_cl_kernel *k, const struct gn_arg *arg, const void *value,
                      bool sure)
{
    if (!sure || gn_session_lost(k->o.session))
        return ask_driver_about_arg(k, arg->index, arg, value);
    return store_arg(k, arg->index, arg, value) ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
}

/* The class of an argument without compiler information, judged by the handle that it contains. */
static uint32_t class_of_value(const struct gn_cl_kernel *k, size_t arg_size, const void *arg_value)
{
    if (arg_size != sizeof(cl_mem) || !may_be_handle(arg_value))
        return GN_ARG_CLASS_VALUE;
    if (object_in(k, arg_value, GN_KIND_SAMPLER))
        return GN_ARG_CLASS_SAMPLER;
    return object_in(k, arg_value, GN_KIND_MEM) ? GN_ARG_CLASS_MEM : GN_ARG_CLASS_VALUE;
}

static bool has_handle(const void *arg_value)
{
    void *handle;
    memcpy(&handle, arg_value, sizeof handle);
    return handle != NULL;
}

static uint16_t kind_of_class(uint32_t class)
{
    return class == GN_ARG_CLASS_SAMPLER ? GN_KIND_SAMPLER
           : class == GN_ARG_CLASS_QUEUE ? GN_KIND_QUEUE
                                         : GN_KIND_MEM;
}

/*
 * The object that the value is a handle of; NULL: none. A wrong kind of object is left to the
 * driver to reject.
 */
static struct gn_object *object_of_value(const struct gn_cl_kernel *k, const void *arg_value,
                                         uint16_t wanted)
{
    static const uint16_t kinds[] = {GN_KIND_MEM, GN_KIND_SAMPLER, GN_KIND_QUEUE};
    struct gn_object *o = object_in(k, arg_value, wanted);
    for (size_t i = 0; !o && i < GN_ARRAY_SIZE(kinds) && may_be_handle(arg_value); i++)
        o = object_in(k, arg_value, kinds[i]);
    return o;
}

static uint8_t arg_of_kind(uint16_t kind)
{
    return kind == GN_KIND_SAMPLER ? GN_ARG_SAMPLER
           : kind == GN_KIND_QUEUE ? GN_ARG_QUEUE
                                   : GN_ARG_MEM;
}

/*
 * Properties besides the size that a driver checks: the kind of object, and the access flags of an
 * image.
 */
static uint64_t shape_of(const struct gn_object *o)
{
    const struct gn_cl_mem *m = (const void *)o;
    if (o->kind != GN_KIND_MEM)
        return o->kind;
    if (m->type == CL_MEM_OBJECT_BUFFER)
        return m->type;
    return m->type | (m->flags & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY |
                                  CL_MEM_KERNEL_READ_AND_WRITE))
                         << 32;
}

cl_int CL_API_CALL gn_clSetKernelArg(cl_kernel kernel, cl_uint arg_index, size_t arg_size,
                                     const void *arg_value)
{
    struct gn_cl_kernel *k = gn_object_of(kernel, GN_KIND_KERNEL);
    struct gn_arg arg = {.index = (uint16_t)arg_index,
                         .kind = GN_ARG_BYTES,
                         .bytes = (uint32_t)(arg_size < UINT32_MAX ? arg_size : UINT32_MAX)};
    if (!k)
        return CL_INVALID_KERNEL;
    if (arg_index >= k->n_args)
        return CL_INVALID_ARG_INDEX;
    /* Without a value the argument is local memory, and its size is limited by the device only. */
    if (arg_size > GN_ARG_MAX_BYTES && arg_value)
        return CL_INVALID_ARG_SIZE;
    struct gn_cl_arg *a = &k->args[arg_index];
    uint32_t class = a->fact.class;
    struct gn_object *o = NULL; /* the object that the value is a handle of */
    uint64_t shape = 0;
    bool sure = false;

    if (!arg_value) {
        /* Local memory, a NULL memory object, or an error: the driver decides. */
        arg.kind = GN_ARG_LOCAL;
        sure = arg_size && (class == GN_ARG_CLASS_LOCAL || a->good_empty_bytes == arg_size);
        return set_arg(k, &arg, NULL, sure);
    }
    if (class == GN_ARG_CLASS_UNKNOWN)
        class = class_of_value(k, arg_size, arg_value);
    switch (class) {
    case GN_ARG_CLASS_LOCAL: {
        /* The driver must see that a value was given; its contents do not matter. */
        static const char zeros[1024];
        if (arg_size > sizeof zeros)
            return CL_INVALID_ARG_VALUE;
        arg_value = zeros;
        break;
    }
    case GN_ARG_CLASS_MEM:
    case GN_ARG_CLASS_IMAGE:
    case GN_ARG_CLASS_PIPE:
    case GN_ARG_CLASS_SAMPLER:
    case GN_ARG_CLASS_QUEUE: {
        const uint16_t kind = kind_of_class(class);
        arg.kind = GN_ARG_NULL;
        if (arg_size != sizeof(void *) && kind != GN_KIND_MEM)
            return CL_INVALID_ARG_SIZE;
        /* the driver judges the size, or the missing object */
        if (arg_size != sizeof(void *) || !has_handle(arg_value))
            break;
        o = object_of_value(k, arg_value, kind);
        if (!o)
            return kind == GN_KIND_MEM       ? CL_INVALID_MEM_OBJECT
                   : kind == GN_KIND_SAMPLER ? CL_INVALID_SAMPLER
                                             : CL_INVALID_DEVICE_QUEUE;
        arg.kind = arg_of_kind(o->kind);
        arg.value = o->id;
        shape = shape_of(o);
        sure = a->good_bytes == arg_size && a->good_shape == shape;
        break;
    }
    default:
        if (arg_size && arg_size <= sizeof arg.value)
            memcpy(&arg.value, arg_value, arg_size);
        sure = arg_size && a->good_bytes == arg_size && !a->good_shape;
        break;
    }
    cl_int result = set_arg(k, &arg, arg_value, sure);
    if (!result) {
        a->good_shape = shape;
        a->named = o;
    }
    return result;
}

cl_int CL_API_CALL gn_clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint arg_index,
                                               const void *arg_value)
{
    struct gn_cl_kernel *k = gn_object_of(kernel, GN_KIND_KERNEL);
    struct gn_arg arg = {
        .index = (uint16_t)arg_index, .kind = GN_ARG_SVM, .bytes = sizeof arg_value};
    if (!k)
        return CL_INVALID_KERNEL;
    if (arg_index >= k->n_args)
        return CL_INVALID_ARG_INDEX;
    /* The program's other memory is not accessible to the vGPU. */
    if (arg_value && gn_svm_find(gn_cl_session_of(&k->o), arg_value, 0) != GN_SVM_INSIDE)
        return CL_INVALID_ARG_VALUE;
    arg.value = (uintptr_t)arg_value;
    const struct gn_cl_arg *a = &k->args[arg_index];
    return set_arg(k, &arg, NULL, a->set && a->arg.kind == GN_ARG_SVM);
}

cl_int gn_local_clGetKernelInfo(cl_kernel kernel, cl_kernel_info param_name,
                                size_t param_value_size, void *param_value,
                                size_t *param_value_size_ret)
{
    struct gn_cl_kernel *k = gn_object_of(kernel, GN_KIND_KERNEL);
    switch (param_name) {
    case CL_KERNEL_CONTEXT:
        return gn_answer(&k->program->context, sizeof k->program->context, param_value_size,
                         param_value, param_value_size_ret);
    case CL_KERNEL_PROGRAM:
        return gn_answer(&k->program, sizeof k->program, param_value_size, param_value,
                         param_value_size_ret);
    default: {
        cl_uint n = atomic_load_explicit(&k->o.n_refs, memory_order_relaxed);
        return gn_answer(&n, sizeof n, param_value_size, param_value, param_value_size_ret);
    }
    }
}
