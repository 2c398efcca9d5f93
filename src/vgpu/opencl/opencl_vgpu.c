/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL vGPU: connects the vendor's driver to the core. Life of objects, completion of
 * commands, and the data that the program receives at attach. The core calls these functions on its
 * threads; the completion callbacks run on the driver's.
 */
#include "base/log.h"
#include "event_callbacks.h"
#include "kept_args.h"
#include "opencl_host.h"
#include "residency.h"
#include "slices.h"
#include "variables.h"
#include "vgpu/core/serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cl_uint gn_device_index(struct gn_vgpu *v, cl_device_id device)
{
    const struct gn_cl_platform *p = gn_platform_of(v);
    while (device) {
        for (cl_uint i = 0; i < p->n_devices; i++)
            if (p->devices[i] == device)
                return i;
        cl_device_id parent = NULL;
        if (gn_cl(v)->clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent,
                                      NULL))
            break;
        device = parent;
    }
    return 0;
}

static int start(struct gn_vgpu *v)
{
    struct gn_opencl_vgpu *detail = calloc(1, sizeof *detail);
    struct gn_cl_platform *p = gn_cl_platform_of(v->boot->platform);
    if (!detail)
        return -1;
    v->driver = (void *)p->dispatch;
    v->driver_stays = !p->base.ops->can_leave(&p->base);
    pthread_mutex_init(&detail->homes_lock, NULL);
    gn_list_init(&detail->homes);
    detail->platform = p;
    detail->svm = gn_svm_vgpu_new();
    v->detail = detail;
    v->n_devices = p->n_devices;
    v->devices = calloc(p->n_devices, sizeof *v->devices);
    if (!v->devices || !detail->svm || gn_extensions_start(v) ||
        !gn_object_put_initial(v, gn_id_make(0, 1), GN_KIND_PLATFORM, p->id))
        return -1;
    for (cl_uint i = 0; i < p->n_devices; i++) {
        cl_device_type type = 0;
        if (!gn_object_put_initial(v, gn_id_make(i + 1, 1), GN_KIND_DEVICE, p->devices[i]))
            return -1;
        /* The real type, not the one that is shown. */
        p->dispatch->clGetDeviceInfo(p->devices[i], CL_DEVICE_TYPE, sizeof type, &type, NULL);
        v->on_processors |= (type & CL_DEVICE_TYPE_CPU) != 0;
    }
    gn_learn_largest(v);
    gn_slices_start(v);
    return gn_residency_start(v) || gn_kept_args_start(v) ? -1 : 0;
}

static void leave(struct gn_vgpu *v)
{
    struct gn_backend_platform *p = v->boot->platform;
    gn_context_messages_drop(v);
    p->ops->leave(p);
}

cl_int gn_host_Devices(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Devices *a)
{
    const struct gn_cl_platform *p = gn_platform_of(v);
    (void)r;
    *a->n_devices = p->n_devices;
    *a->on_processors = v->on_processors;
    for (cl_uint i = 0; a->types && i < a->n_types && i < p->n_devices; i++)
        a->types[i] = p->types[i];
    for (cl_uint i = 0; a->ranks && i < a->n_types; i++)
        a->ranks[i] = v->boot->ranks && i < p->n_devices ? v->boot->ranks[i] : i;
    return CL_SUCCESS;
}

static int init_mem(struct gn_vobject *o, const struct gn_request *r)
{
    const cl_icd_dispatch *cl = gn_cl(o->vgpu);
    const struct gn_msg *msg = gn_request_message(r);
    cl_mem_object_type type = 0;
    struct gn_mem_detail *detail = calloc(1, sizeof *detail);
    struct gn_home *home = gn_home_of_last_buffer();
    if (!detail)
        return -1;
    detail->home = home;
    detail->svm =
        msg->op == GN_OP_Buffer && ((const struct gn_wire_Buffer *)(const void *)msg)->svm;
    cl->clGetMemObjectInfo(o->driver, CL_MEM_TYPE, sizeof type, &type, NULL);
    detail->lines = type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    if (type != CL_MEM_OBJECT_BUFFER && type != CL_MEM_OBJECT_PIPE)
        cl->clGetImageInfo(o->driver, CL_IMAGE_ELEMENT_SIZE, sizeof detail->element_bytes,
                           &detail->element_bytes, NULL);
    if (gn_mem_writes_made(o, detail, r) ||
        (o->charged_bytes && !(detail->charge = gn_mem_charge_keep(o)))) {
        gn_writes_unref(detail->writes);
        free(detail);
        return -1;
    }
    o->detail = detail;
    gn_residency_made(o, r);
    return 0;
}

static int init_program(struct gn_vobject *o, const struct gn_request *r)
{
    struct gn_program_detail *p = calloc(1, sizeof *p);
    if (!p || !(p->variables = gn_variables_new())) {
        free(p);
        return -1;
    }
    /* A linked program has variables of its own, declared by its inputs. */
    for (uint32_t list = 0; list < r->n_arrays; list++)
        for (uint64_t i = 0; i < r->arrays[list].n; i++) {
            const struct gn_vobject *input = r->arrays[list].objects[i];
            if (input && input->kind == GN_KIND_PROGRAM && input->detail &&
                atomic_load_explicit(
                    &((struct gn_program_detail *)input->detail)->variables->is_declared,
                    memory_order_acquire))
                atomic_store_explicit(&p->variables->is_declared, true, memory_order_release);
        }
    o->detail = p;
    return 0;
}

static void program_free(struct gn_vgpu *v, struct gn_program_detail *p)
{
    if (!p)
        return;
    gn_slices_program_release(v, p->sliced);
    gn_variables_unref(p->variables);
    free(p);
}

/*
 * Returns the variables of the program that a new kernel is made from, or of the kernel that it is
 * a clone of. NULL: the program has none.
 */
static struct gn_variables *variables_of(struct gn_vgpu *v, const struct gn_request *r)
{
    for (uint32_t i = 0; i < r->n_held; i++) {
        const struct gn_vobject *from = r->held[i];
        struct gn_variables *x = NULL;
        if (!from->detail)
            continue; /* the object that is being made */
        if (from->kind == GN_KIND_KERNEL)
            x = ((struct gn_kernel_detail *)from->detail)->variables;
        else if (from->kind == GN_KIND_PROGRAM)
            x = ((struct gn_program_detail *)from->detail)->variables;
        if (x && (from->kind == GN_KIND_KERNEL || gn_variables_exist(v, x, from->driver)))
            return gn_variables_ref(x);
    }
    return NULL;
}

static int init_kernel(struct gn_vobject *o, const struct gn_request *r)
{
    struct gn_kernel_detail *k = gn_kernel_detail_new(o->vgpu, o->driver);
    if (!k)
        return -1;
    k->sliced = gn_slices_kernel(o->vgpu, o->driver);
    k->variables = variables_of(o->vgpu, r);
    for (uint32_t i = 0; i < r->n_held; i++)
        if (r->held[i] != o && r->held[i]->kind == GN_KIND_KERNEL && r->held[i]->detail)
            gn_kernel_detail_clone(k, r->held[i]->detail);
    o->detail = k;
    return 0;
}

static int init_object(struct gn_vobject *o, const struct gn_request *r)
{
    switch (o->kind) {
    case GN_KIND_CONTEXT:
        gn_event_callbacks_context_made(o);
        return 0;
    case GN_KIND_QUEUE:
        return gn_queue_made(o);
    case GN_KIND_MEM:
        return init_mem(o, r);
    case GN_KIND_PROGRAM:
        return init_program(o, r);
    case GN_KIND_KERNEL:
        return init_kernel(o, r);
    case GN_KIND_CMDBUF:
        return gn_cmdbuf_made(o, r);
    default:
        return 0;
    }
}

/* Compiled objects, and objects that hold them. */
static bool release_waits_for_builds(uint16_t kind)
{
    return kind == GN_KIND_PROGRAM || kind == GN_KIND_KERNEL || kind == GN_KIND_CONTEXT ||
           kind == GN_KIND_CMDBUF;
}

/* The addresses of a freed allocation are available at once, in a load as well as in a request. */
static void on_unnamed(struct gn_vobject *o)
{
    if (o->kind == GN_KIND_SVM)
        gn_svm_forget(o->vgpu, o->id);
}

/* A program with a failed build has a status and a log, even if only its options were invalid. */
static bool changes_on_failure(int32_t result)
{
    switch (result) {
    case CL_BUILD_PROGRAM_FAILURE:
    case CL_COMPILE_PROGRAM_FAILURE:
    case CL_INVALID_BUILD_OPTIONS:
    case CL_INVALID_COMPILER_OPTIONS:
        return true;
    default:
        return false;
    }
}

static void release(struct gn_vobject *o)
{
    const cl_icd_dispatch *cl = gn_cl(o->vgpu);
    switch (o->kind) {
    case GN_KIND_CONTEXT:
        cl->clReleaseContext(o->driver);
        break;
    case GN_KIND_QUEUE:
        if (o->detail)
            gn_queue_free(o->detail);
        cl->clReleaseCommandQueue(o->driver);
        break;
    case GN_KIND_MEM:
        gn_residency_gone(o);
        if (o->driver)
            cl->clReleaseMemObject(o->driver);
        if (o->detail) {
            gn_mem_charge_end(((struct gn_mem_detail *)o->detail)->charge);
            gn_writes_unref(((struct gn_mem_detail *)o->detail)->writes);
        }
        free(o->detail);
        break;
    case GN_KIND_SAMPLER:
        cl->clReleaseSampler(o->driver);
        break;
    case GN_KIND_PROGRAM:
        program_free(o->vgpu, o->detail);
        cl->clReleaseProgram(o->driver);
        break;
    case GN_KIND_KERNEL:
        if (o->detail) {
            gn_kept_args_remove(o->vgpu, o->detail);
            gn_slices_kernel_release(o->vgpu, ((struct gn_kernel_detail *)o->detail)->sliced);
        }
        cl->clReleaseKernel(o->driver);
        gn_kernel_detail_free(cl, o->detail);
        break;
    case GN_KIND_CMDBUF:
        gn_cmdbuf_release(o);
        break;
    case GN_KIND_DEVICE:
        if (cl->clReleaseDevice)
            cl->clReleaseDevice(o->driver);
        break;
    default:
        break;
    }
}

static void flush(struct gn_vgpu *v, void *queue)
{
    gn_cl(v)->clFlush(queue);
}

static void CL_CALLBACK on_event_complete(cl_event event, cl_int status, void *user_data)
{
    struct gn_command *c = user_data;
    (void)event;
    /* A finish succeeds even if the command before it failed. */
    gn_command_over(c, status < 0 && c->class != &gn_opencl_requests[GN_OP_Finish] ? status : 0);
}

static int32_t when_over(struct gn_vgpu *v, void *event, struct gn_command *c)
{
    return gn_event_callbacks_ask(v, event, on_event_complete, c);
}

static void CL_CALLBACK on_part_complete(cl_event event, cl_int status, void *user_data)
{
    gn_part_over(user_data, event, status < 0 ? status : 0);
}

static int32_t when_part_over(struct gn_vgpu *v, void *event, struct gn_part *part)
{
    return gn_event_callbacks_ask(v, event, on_part_complete, part);
}

static void release_event(struct gn_vgpu *v, void *event)
{
    gn_cl(v)->clReleaseEvent(event);
}

static void finish(struct gn_vgpu *v, void *queue)
{
    gn_cl(v)->clFinish(queue);
}

/* An unreadable status counts as complete: there is nothing to wait for. */
static bool is_over(struct gn_vgpu *v, void *event)
{
    cl_int status = CL_COMPLETE;
    (void)gn_cl(v)->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                                   NULL);
    return status <= CL_COMPLETE;
}

struct quiet {
    void (*call)(void *arg);
    void *arg;
};

static void CL_CALLBACK on_quiet(cl_event event, cl_int status, void *user_data)
{
    struct quiet q = *(struct quiet *)user_data;
    (void)event;
    (void)status;
    free(user_data);
    q.call(q.arg);
}

static int32_t when_quiet(struct gn_vgpu *v, void *event, void (*call)(void *arg), void *arg)
{
    struct quiet *q = malloc(sizeof *q);
    if (!q)
        return CL_OUT_OF_HOST_MEMORY;
    *q = (struct quiet){call, arg};
    int32_t result = gn_event_callbacks_ask(v, event, on_quiet, q);
    if (result)
        free(q);
    return result;
}

static void get_event_times(struct gn_vgpu *v, void *event, struct gn_event_times *ret)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    cl_ulong submit = 0, start_ns = 0, end_ns = 0;
    cl->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_SUBMIT, sizeof submit, &submit, NULL);
    cl->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start_ns, &start_ns,
                                NULL);
    cl->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end_ns, &end_ns, NULL);
    /*
     * The device's clock differs from the program's: the end is set to now, and the intervals come
     * from the device.
     */
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    uint64_t run_ns = end_ns > start_ns ? end_ns - start_ns : 0;
    uint64_t wait_ns = start_ns > submit ? start_ns - submit : 0;
    ret->end_ns = now_ns;
    ret->start_ns = now_ns - run_ns;
    if (ret->start_ns < ret->submit_ns)
        ret->submit_ns = ret->start_ns > wait_ns ? ret->start_ns - wait_ns : 0;
}

static void get_run_times(struct gn_vgpu *v, void *event, uint64_t *ret_start_ns,
                          uint64_t *ret_end_ns)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    cl_ulong start_ns = 0, end_ns = 0;
    if (cl->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start_ns, &start_ns,
                                    NULL) ||
        cl->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end_ns, &end_ns, NULL))
        return;
    *ret_start_ns = start_ns;
    *ret_end_ns = end_ns;
}

const struct gn_vgpu_api gn_opencl_vgpu_api = {
    .name = "opencl",
    .requests = gn_opencl_requests,
    .n_requests = GN_OP_MAX,
    .start = start,
    .made = init_object,
    .changes_though = changes_on_failure,
    .unnamed = on_unnamed,
    .release = release,
    .release_waits_for_builds = release_waits_for_builds,
    .flush = flush,
    .when_over = when_over,
    .when_part_over = when_part_over,
    .release_event = release_event,
    .finish = finish,
    .is_over = is_over,
    .when_quiet = when_quiet,
    .wrote = gn_opencl_wrote,
    .times = get_event_times,
    .ran = get_run_times,
    .leave = leave,
    .bring_in = gn_residency_bring_in,
    .bring_in_all = gn_residency_bring_in_all,
    .is_resident = gn_residency_is_resident,
    .evicted_bytes = gn_residency_evicted_bytes,
    .has_resident = gn_residency_has_resident,
    .evict = gn_residency_evict,
    .keep_copies = gn_residency_keep_copies,
    .will_write = gn_opencl_will_write,
    .end = gn_homes_end,
    .contents = &gn_opencl_contents,
    .queue_kind = GN_KIND_QUEUE,
    .out_of_memory = CL_OUT_OF_RESOURCES,
    .no_room = CL_MEM_OBJECT_ALLOCATION_FAILURE,
    .wait_failed = GN_EVENT_WAIT_FAILED,
    .invalid_handle = CL_INVALID_COMMAND_QUEUE,
};
