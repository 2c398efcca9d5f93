/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels and launches. Arguments travel with the launch; the driver's kernel is given only those
 * that differ from its present ones, or whose driver's object is another one since. The ring thread
 * admits launches, a submitter gives them to the driver, and the serving threads handle requests.
 */
#include "kept_args.h"
#include "opencl_host.h"
#include "residency.h"
#include "slices.h"
#include "svm.h"
#include "variables.h"

#include <stdlib.h>
#include <string.h>

static void query_arg(const cl_icd_dispatch *cl, cl_kernel kernel, cl_uint i,
                      struct gn_arg_fact *fact);

struct gn_kernel_detail *gn_kernel_detail_new(struct gn_vgpu *v, cl_kernel kernel)
{
    struct gn_kernel_detail *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    pthread_mutex_init(&k->lock, NULL);
    k->driver = kernel;
    gn_list_init(&k->kept_link);
    gn_cl(v)->clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof k->n_args, &k->n_args, NULL);
    k->applied = calloc(k->n_args ? k->n_args : 1, sizeof *k->applied);
    if (!k->applied) {
        free(k);
        return NULL;
    }
    for (cl_uint i = 0; i < k->n_args; i++) {
        struct gn_arg_fact fact = {0};
        query_arg(gn_cl(v), kernel, i, &fact);
        k->applied[i].writes = fact.access;
    }
    gn_kept_args_add(v, k);
    return k;
}

void gn_kernel_detail_clone(struct gn_kernel_detail *k, struct gn_kernel_detail *from)
{
    pthread_mutex_lock(&from->lock);
    for (cl_uint i = 0; i < k->n_args && i < from->n_args; i++) {
        k->applied[i].kept = from->applied[i].kept;
        k->applied[i].kept_image = from->applied[i].kept_image;
    }
    pthread_mutex_unlock(&from->lock);
}

static void drop_buffer(const cl_icd_dispatch *cl, cl_mem *held)
{
    if (*held)
        cl->clReleaseMemObject(*held);
    *held = NULL;
}

void gn_kernel_detail_free(const cl_icd_dispatch *cl, struct gn_kernel_detail *k)
{
    for (cl_uint i = 0; k && i < k->n_args; i++) {
        drop_buffer(cl, &k->applied[i].over);
        free(k->applied[i].tail);
    }
    if (k) {
        gn_variables_unref(k->variables);
        free(k->applied);
    }
    free(k);
}

static bool starts_with(const char *s, const char *word)
{
    return strncmp(s, word, strlen(word)) == 0;
}

static void query_arg(const cl_icd_dispatch *cl, cl_kernel kernel, cl_uint i,
                      struct gn_arg_fact *fact)
{
    cl_kernel_arg_address_qualifier address = 0;
    cl_kernel_arg_access_qualifier access = CL_KERNEL_ARG_ACCESS_NONE;
    cl_kernel_arg_type_qualifier type = 0;
    char name[128] = "";
    fact->class = GN_ARG_CLASS_UNKNOWN;
    fact->access = 1;
    if (!cl->clGetKernelArgInfo ||
        cl->clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof address, &address,
                               NULL))
        return;
    cl->clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof access, &access, NULL);
    cl->clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof type, &type, NULL);
    if (cl->clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof name, name, NULL))
        name[0] = 0;
    if (starts_with(name, "image"))
        fact->class = GN_ARG_CLASS_IMAGE, fact->access = access != CL_KERNEL_ARG_ACCESS_READ_ONLY;
    else if (starts_with(name, "sampler_t"))
        fact->class = GN_ARG_CLASS_SAMPLER;
    else if (starts_with(name, "queue_t"))
        fact->class = GN_ARG_CLASS_QUEUE;
    else if (type & CL_KERNEL_ARG_TYPE_PIPE)
        fact->class = GN_ARG_CLASS_PIPE;
    else if (address == CL_KERNEL_ARG_ADDRESS_LOCAL)
        fact->class = GN_ARG_CLASS_LOCAL;
    else if (address == CL_KERNEL_ARG_ADDRESS_PRIVATE)
        fact->class = GN_ARG_CLASS_VALUE;
    else
        fact->class = GN_ARG_CLASS_MEM, fact->access = address != CL_KERNEL_ARG_ADDRESS_CONSTANT &&
                                                       !(type & CL_KERNEL_ARG_TYPE_CONST);
}

cl_int gn_host_KernelFacts(struct gn_vgpu *v, struct gn_request *r,
                           const struct gn_args_KernelFacts *a)
{
    struct gn_arg_fact *facts = a->facts;
    cl_uint n = 0;
    (void)r;
    cl_int result = gn_cl(v)->clGetKernelInfo(a->kernel, CL_KERNEL_NUM_ARGS, sizeof n, &n, NULL);
    if (result)
        return result;
    *a->n_args = n;
    for (cl_uint i = 0; facts && i < n && (i + 1) * sizeof *facts <= a->bytes; i++)
        query_arg(gn_cl(v), a->kernel, i, &facts[i]);
    return CL_SUCCESS;
}

cl_int gn_host_Kernels(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Kernels *a)
{
    cl_kernel *kernels =
        a->num_kernels ? gn_request_alloc(r, gn_times(a->num_kernels, sizeof *kernels)) : NULL;
    cl_uint n = 0;
    if (a->num_kernels && !kernels)
        return CL_OUT_OF_HOST_MEMORY;
    cl_int result = gn_cl(v)->clCreateKernelsInProgram(a->program, a->num_kernels, kernels, &n);
    /* All of them belong to the vGPU, even if one cannot be entered. */
    bool good = !result && kernels;
    for (cl_uint i = 0; good && i < n && i < a->num_kernels; i++) {
        cl_int one =
            gn_request_made(r, GN_KIND_KERNEL, a->ids ? a->ids[i] : 0, kernels[i], CL_SUCCESS);
        result = result ? result : one;
    }
    if (a->num_kernels_ret)
        *a->num_kernels_ret = n;
    return result;
}

/* ---- arguments: a run of struct gn_arg, each followed by its tail */

/*
 * Checks sizes. A handle must have the size of a handle, because the driver reads as many bytes of
 * it as it is told.
 */
static bool is_valid_arg(const struct gn_arg *arg)
{
    switch (arg->kind) {
    case GN_ARG_BYTES:
        return arg->bytes <= GN_ARG_MAX_BYTES;
    case GN_ARG_MEM:
    case GN_ARG_SAMPLER:
    case GN_ARG_QUEUE:
        return arg->bytes == sizeof(void *);
    case GN_ARG_LOCAL:
    case GN_ARG_SVM:
    case GN_ARG_NULL:
        return true;
    default:
        return false;
    }
}

/*
 * Returns the next argument, or NULL at the end, and moves *at behind it. A malformed run sets
 * *fault.
 */
static const struct gn_arg *next_arg(const unsigned char *run, uint64_t bytes, uint64_t *at,
                                     bool *fault)
{
    const struct gn_arg *arg = (const void *)(run + *at);
    if (*at == bytes)
        return NULL;
    if (!gn_range_ok(*at, sizeof *arg, bytes) || arg->zero || !is_valid_arg(arg) ||
        !gn_range_ok(*at + sizeof *arg, gn_arg_tail(arg->kind, arg->bytes), bytes)) {
        *fault = true;
        return NULL;
    }
    *at += sizeof *arg + gn_arg_tail(arg->kind, arg->bytes);
    return arg;
}

static uint16_t arg_handle_kind(const struct gn_arg *arg)
{
    switch (arg->kind) {
    case GN_ARG_MEM:
        return GN_KIND_MEM;
    case GN_ARG_SAMPLER:
        return GN_KIND_SAMPLER;
    case GN_ARG_QUEUE:
        return GN_KIND_QUEUE;
    default:
        return 0;
    }
}

static cl_int set_arg(const cl_icd_dispatch *cl, cl_kernel kernel, const struct gn_arg *arg,
                      void *driver)
{
    const void *tail = arg + 1;
    static char none[GN_ARG_MAX_BYTES]; /* a NULL of any size that a program may pass */
    switch (arg->kind) {
    case GN_ARG_LOCAL:
        return cl->clSetKernelArg(kernel, arg->index, arg->bytes, NULL);
    case GN_ARG_MEM:
    case GN_ARG_SAMPLER:
    case GN_ARG_QUEUE:
        return cl->clSetKernelArg(kernel, arg->index, arg->bytes, &driver);
    case GN_ARG_NULL:
        return arg->bytes <= sizeof none ? cl->clSetKernelArg(kernel, arg->index, arg->bytes, none)
                                         : CL_INVALID_ARG_SIZE;
    default:
        return cl->clSetKernelArg(kernel, arg->index, arg->bytes,
                                  arg->bytes > 8 ? tail : &arg->value);
    }
}

static bool same_arg(const struct gn_applied_arg *have, const struct gn_arg *arg)
{
    uint32_t tail = gn_arg_tail(arg->kind, arg->bytes);
    return memcmp(&have->arg, arg, sizeof *arg) == 0 &&
           (!tail || memcmp(have->tail, arg + 1, tail) == 0);
}

/*
 * Records the argument that the driver's kernel was given. Without memory it records nothing, and
 * the argument is given again next time.
 */
static void remember_arg(struct gn_applied_arg *have, const struct gn_arg *arg,
                         const struct gn_vobject *o)
{
    uint32_t tail = gn_arg_tail(arg->kind, arg->bytes);
    have->arg.kind = 0;
    if (tail) {
        void *room = realloc(have->tail, tail);
        if (!room)
            return;
        have->tail = room;
        memcpy(room, arg + 1, tail);
    }
    have->arg = *arg;
    have->incarnation = o ? o->incarnation : 0;
}

/* o: the object that the argument names, or NULL. */
static cl_int apply_arg(struct gn_vgpu *v, cl_kernel kernel, struct gn_kernel_detail *k,
                        const struct gn_arg *arg, const struct gn_vobject *o)
{
    const struct gn_mem_detail *mem = o && arg->kind == GN_ARG_MEM ? o->detail : NULL;
    if (arg->index < k->n_args && same_arg(&k->applied[arg->index], arg))
        return CL_SUCCESS;
    /* Before the driver gets it. An argument that the driver has already was marked then. */
    if (mem && mem->writes && (arg->index >= k->n_args || k->applied[arg->index].writes))
        gn_writes_by_kernel(v, mem->writes);
    /* For an index without an argument, the driver returns the error. */
    struct gn_applied_arg none = {0},
                          *have = arg->index < k->n_args ? &k->applied[arg->index] : &none;
    cl_int result = arg->kind == GN_ARG_SVM
                        ? gn_svm_set_arg(v, kernel, arg->index, arg->value, &have->over)
                        : set_arg(gn_cl(v), kernel, arg, gn_driver_of(o));
    if (!result) {
        have->kept = mem ? o->id : 0;
        have->kept_image = mem && mem->element_bytes;
    }
    if (!result && arg->kind != GN_ARG_SVM)
        drop_buffer(gn_cl(v), &have->over);
    if (have == &none)
        drop_buffer(gn_cl(v), &none.over);
    else if (result)
        have->arg.kind = 0;
    else
        remember_arg(have, arg, o);
    return result;
}

/*
 * Forgets an argument that the driver's kernel has if the object has another driver's object since:
 * it is set again. k->lock.
 */
static void forget_stale_arg(struct gn_kernel_detail *k, const struct gn_arg *arg,
                             const struct gn_vobject *o)
{
    if (o && arg->index < k->n_args && k->applied[arg->index].incarnation != o->incarnation)
        k->applied[arg->index].arg.kind = 0;
}

/*
 * Does so for all arguments of a launch, once after driver's objects have been replaced: so a
 * launch looks at one number, and not at each object. k->lock.
 */
static void forget_stale_args(struct gn_vgpu *v, struct gn_kernel_detail *k, const void *run,
                              uint64_t bytes, struct gn_vobject *const *objects)
{
    const struct gn_arg *arg;
    uint64_t at = 0;
    bool fault = false;
    k->n_replaced = gn_objects_replaced(&v->objects);
    while (run && (arg = next_arg(run, bytes, &at, &fault)))
        if (arg_handle_kind(arg))
            forget_stale_arg(k, arg, *objects++);
}

cl_int gn_host_SetArg(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_SetArg *a)
{
    struct gn_kernel_detail *k = a->kernel_object ? a->kernel_object->detail : NULL;
    uint64_t at = 0;
    bool fault = false;
    const struct gn_arg *arg = a->args ? next_arg(a->args, a->bytes, &at, &fault) : NULL;
    if (fault || !arg) {
        gn_vgpu_fault(v, "an argument is malformed", "SetArg");
        return CL_INVALID_VALUE;
    }
    if (!k)
        return CL_INVALID_KERNEL;
    uint16_t kind = arg_handle_kind(arg);
    struct gn_vobject *o = kind ? gn_request_object(r, kind, arg->value) : NULL;
    if (r->absent) /* it is not answered */
        return CL_OUT_OF_RESOURCES;
    if (arg->kind == GN_ARG_SVM && !gn_svm_address_ok(v, arg->value))
        return CL_INVALID_ARG_VALUE;
    pthread_mutex_lock(&k->lock);
    forget_stale_arg(k, arg, o);
    cl_int result = apply_arg(v, a->kernel, k, arg, o);
    pthread_mutex_unlock(&k->lock);
    return result;
}

/* ---- copies of kernels, for recorded launches */

struct gn_vobject **gn_kernel_args_named(struct gn_request *r, const void *run, uint64_t bytes,
                                         uint32_t *ret_n, cl_int *result)
{
    const struct gn_arg *arg;
    uint64_t at = 0;
    uint32_t n = 0;
    bool fault = r->n_arrays == GN_ARRAY_SIZE(r->arrays), evicted = false;
    while (run && (arg = next_arg(run, bytes, &at, &fault)))
        n += arg_handle_kind(arg) != 0;
    struct gn_vobject **named = fault ? NULL : gn_request_alloc(r, n * sizeof *named);
    *ret_n = 0;
    *result = fault ? CL_INVALID_VALUE : CL_OUT_OF_HOST_MEMORY;
    if (named) {
        r->arrays[r->n_arrays].objects = named;
        for (at = 0; run && (arg = next_arg(run, bytes, &at, &fault));) {
            bool lie = false;
            if (!arg_handle_kind(arg))
                continue;
            named[*ret_n] = gn_object_get(r->vgpu, arg->value, arg_handle_kind(arg), &lie);
            /* The driver's copy of the kernel keeps its arguments. */
            evicted |= named[*ret_n] && (!gn_request_bring_in(r, named[*ret_n]) ||
                                         gn_residency_pin_for(r, named[*ret_n]));
            r->arrays[r->n_arrays].n = ++*ret_n;
            fault |= lie;
        }
        r->n_arrays++;
    }
    if (evicted)
        *result = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (fault)
        gn_vgpu_fault(r->vgpu, "an argument is malformed", r->class->name);
    return fault || evicted ? NULL : named;
}

static cl_int clone_kernel(const cl_icd_dispatch *cl, const struct gn_vobject *kernel,
                           struct gn_kernel_copy *copy)
{
    struct gn_kernel_detail *k = kernel->detail;
    cl_int result = CL_INVALID_OPERATION;
    pthread_mutex_lock(&k->lock);
    if (cl->clCloneKernel)
        copy->kernel = cl->clCloneKernel(kernel->driver, &result);
    pthread_mutex_unlock(&k->lock);
    copy->n_args = k->n_args;
    return result;
}

/* o: the object that the argument names, or NULL. */
static cl_int set_copy_arg(struct gn_vgpu *v, struct gn_kernel_copy *copy, const struct gn_arg *arg,
                           const struct gn_vobject *o)
{
    if (arg->kind != GN_ARG_SVM)
        return set_arg(gn_cl(v), copy->kernel, arg, gn_driver_of(o));
    if (!gn_svm_address_ok(v, arg->value))
        return CL_INVALID_KERNEL_ARGS;
    if (!copy->over && !(copy->over = calloc(copy->n_args, sizeof(cl_mem))))
        return CL_OUT_OF_HOST_MEMORY;
    return gn_svm_set_arg(v, copy->kernel, arg->index, arg->value, &copy->over[arg->index]);
}

static cl_int set_copy_args(struct gn_vgpu *v, const struct gn_kernel_detail *k,
                            struct gn_kernel_copy *copy, const void *run, uint64_t bytes,
                            struct gn_vobject *const *named)
{
    const struct gn_arg *arg;
    uint64_t at = 0;
    uint32_t n_given = 0, n = 0;
    cl_int result = CL_SUCCESS;
    bool fault = false;
    while (!result && run && (arg = next_arg(run, bytes, &at, &fault))) {
        const struct gn_vobject *o = arg_handle_kind(arg) ? named[n++] : NULL;
        const struct gn_mem_detail *mem = o && arg->kind == GN_ARG_MEM ? o->detail : NULL;
        /* Arguments come in rising order, so the count shows that none is missing. */
        if (arg->index != n_given++ || n_given > k->n_args)
            return CL_INVALID_KERNEL_ARGS;
        if (mem && mem->writes && k->applied[arg->index].writes)
            gn_writes_by_kernel(v, mem->writes);
        result = set_copy_arg(v, copy, arg, o);
    }
    return result || n_given == k->n_args ? result : CL_INVALID_KERNEL_ARGS;
}

cl_int gn_kernel_copy_init(struct gn_vgpu *v, struct gn_kernel_copy *copy,
                           const struct gn_vobject *kernel, const void *run, uint64_t bytes,
                           struct gn_vobject *const *named)
{
    *copy = (struct gn_kernel_copy){0};
    const cl_int result = clone_kernel(gn_cl(v), kernel, copy);
    return result ? result : set_copy_args(v, kernel->detail, copy, run, bytes, named);
}

void gn_kernel_copy_fini(const cl_icd_dispatch *cl, const struct gn_kernel_copy *copy)
{
    if (copy->kernel)
        cl->clReleaseKernel(copy->kernel);
    for (cl_uint i = 0; copy->over && i < copy->n_args; i++)
        if (copy->over[i])
            cl->clReleaseMemObject(copy->over[i]);
    free(copy->over);
}

/* ---- launches */

void gn_admit_Launch(struct gn_vgpu *v, struct gn_command *c)
{
    const struct gn_wire_Launch *w = gn_command_message(c);
    const unsigned char *run = gn_command_bytes(c, &w->args);
    const struct gn_arg *arg;
    uint64_t at = 0;
    uint32_t n = 0;
    while (run && (arg = next_arg(run, w->args_bytes, &at, &c->fault)))
        n += arg_handle_kind(arg) != 0;
    if (c->fault || !n)
        return;
    c->object_refs = calloc(n, sizeof *c->object_refs);
    if (!c->object_refs) {
        c->no_memory = true;
        return;
    }
    at = 0;
    while ((arg = next_arg(run, w->args_bytes, &at, &c->fault))) {
        uint16_t kind = arg_handle_kind(arg);
        bool lie = false;
        if (!kind)
            continue;
        c->object_refs[c->n_objects++] = gn_object_get(v, arg->value, kind, &lie);
        c->fault |= lie;
    }
}

/*
 * Enqueues the groups of a box: an NDRange of its own, with the program's offset plus the box's
 * position.
 */
static cl_int enqueue_part(const cl_icd_dispatch *cl, cl_command_queue queue, cl_kernel kernel,
                           const struct gn_wire_Launch *w, const struct gn_box *box,
                           cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    size_t offset[3], size[3], local[3];
    for (uint32_t i = 0; i < w->work_dim; i++) {
        local[i] = w->local_work_size[i];
        offset[i] = (w->present & 1 ? w->global_work_offset[i] : 0) + box->first[i] * local[i];
        size[i] = box->n[i] * local[i];
    }
    return cl->clEnqueueNDRangeKernel(queue, kernel, w->work_dim, offset, size, local, n_waits,
                                      waits, event);
}

static void raise_to(_Atomic uint64_t *most, uint64_t n)
{
    uint64_t have = atomic_load_explicit(most, memory_order_relaxed);
    while (n > have && !atomic_compare_exchange_weak_explicit(most, &have, n, memory_order_relaxed,
                                                              memory_order_relaxed)) {
    }
}

/* Raises the recorded maxima to these sizes. */
void gn_kernel_note_sizes(struct gn_kernel_detail *k, cl_uint work_dim,
                          const size_t *local_work_size)
{
    uint64_t items = 1;
    for (uint32_t i = 0; i < work_dim; i++) {
        items *= local_work_size[i];
        raise_to(&k->most_sides[i], local_work_size[i]);
    }
    raise_to(&k->most_items, items);
}

int32_t gn_submit_Launch(struct gn_vgpu *v, struct gn_command *c, cl_command_queue queue,
                         cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    const struct gn_wire_Launch *w = gn_command_message(c);
    const cl_icd_dispatch *cl = gn_cl(v);
    const unsigned char *run = gn_command_bytes(c, &w->args);
    const struct gn_arg *arg;
    struct gn_vobject *kernel = c->refs[0];
    cl_int result = CL_SUCCESS;
    uint64_t at = 0;
    uint32_t n = 0;
    bool fault = false;
    if (!kernel)
        return CL_INVALID_KERNEL;
    struct gn_kernel_detail *k = kernel->detail;
    gn_variables_use(k->variables);
    cl_kernel driver_kernel = kernel->driver;
    if (c->cut)
        gn_slices_variant(c->cut, &driver_kernel, &k);
    pthread_mutex_lock(&k->lock);
    if (k->n_replaced != gn_objects_replaced(&v->objects))
        forget_stale_args(v, k, run, w->args_bytes, c->object_refs);
    while (!result && run && (arg = next_arg(run, w->args_bytes, &at, &fault))) {
        const struct gn_vobject *o = arg_handle_kind(arg) ? c->object_refs[n++] : NULL;
        result = arg->kind != GN_ARG_SVM || gn_svm_address_ok(v, arg->value)
                     ? apply_arg(v, driver_kernel, k, arg, o)
                     : CL_INVALID_ARG_VALUE;
    }
    if (!result && c->cut)
        result = enqueue_part(cl, queue, driver_kernel, w, &c->cut->now, n_waits, waits, event);
    else if (!result && w->task)
        result = cl->clEnqueueTask(queue, kernel->driver, n_waits, waits, event);
    else if (!result)
        result = cl->clEnqueueNDRangeKernel(
            queue, kernel->driver, w->work_dim,
            w->present & 1 ? (const size_t *)w->global_work_offset : NULL,
            w->present & 2 ? (const size_t *)w->global_work_size : NULL,
            w->present & 4 ? (const size_t *)w->local_work_size : NULL, n_waits, waits, event);
    pthread_mutex_unlock(&k->lock);
    if (!result && !w->task && w->present & 4 && w->work_dim <= 3)
        gn_kernel_note_sizes(kernel->detail, w->work_dim, (const size_t *)w->local_work_size);
    return result;
}

/* ---- clFinish */

void gn_admit_Finish(struct gn_vgpu *v, struct gn_command *c)
{
    (void)v;
    (void)c;
}

int32_t gn_submit_Finish(struct gn_vgpu *v, struct gn_command *c, cl_command_queue queue,
                         cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    struct gn_vqueue *q = c->queue;
    const cl_icd_dispatch *cl = gn_cl(v);
    int32_t late;
    (void)n_waits;
    (void)waits;
    pthread_mutex_lock(&v->lock);
    late = q->late_error;
    q->late_error = 0;
    cl_event last = q->in_order && q->last ? q->last->driver_event : NULL;
    if (last)
        cl->clRetainEvent(last);
    pthread_mutex_unlock(&v->lock);
    if (late) {
        if (last)
            cl->clReleaseEvent(last);
        return late;
    }
    cl_int status = CL_QUEUED;
    if (last &&
        !cl->clGetEventInfo(last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                            NULL) &&
        status <= CL_COMPLETE) {
        /*
         * Nothing is left to wait for. Some drivers do not call back for an event that is complete.
         */
        cl->clReleaseEvent(last);
        return CL_SUCCESS;
    }
    if (last) {
        /*
         * In an in-order queue the end of the last event is the end of all, so nothing needs to be
         * enqueued.
         */
        *event = last;
        return CL_SUCCESS;
    }
    if (q->in_order)
        return CL_SUCCESS;
    return cl->clEnqueueMarkerWithWaitList ? cl->clEnqueueMarkerWithWaitList(queue, 0, NULL, event)
                                           : cl->clEnqueueMarker(queue, event);
}
