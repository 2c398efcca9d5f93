/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command queues. Sharing device time requires measuring it, and the driver measures best (FairGV
 * 3.3.1): the driver's queues then have profiling enabled, even if the program did not ask for it.
 * Queries return only the properties that the program asked for. Run by the ring thread and the
 * loading thread.
 */
#include "opencl_host.h"
#include "opencl_host_rt.h"

#include <string.h>

#define MAX_PROPERTIES 16u

/*
 * For the queue that this thread has made and not yet entered as an object: the program did not ask
 * for profiling.
 */
static _Thread_local bool profiling_is_ours;

int gn_queue_made(struct gn_vobject *o)
{
    const cl_icd_dispatch *cl = gn_cl(o->vgpu);
    cl_device_id device = NULL;
    cl_command_queue_properties properties = 0;
    cl->clGetCommandQueueInfo(o->driver, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    cl->clGetCommandQueueInfo(o->driver, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    const bool measured = properties & CL_QUEUE_PROFILING_ENABLE;
    const cl_uint index = gn_device_index(o->vgpu, device);
    atomic_fetch_or_explicit(&o->vgpu->counters->devices, UINT64_C(1) << index,
                             memory_order_relaxed);
    o->detail =
        gn_queue_new(o->vgpu, o, index, !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE),
                     measured && !profiling_is_ours, measured);
    profiling_is_ours = false;
    return o->detail ? 0 : -1;
}

void *gn_host_clCreateCommandQueue(struct gn_vgpu *v, struct gn_request *r,
                                   const struct gn_args_clCreateCommandQueue *a, cl_int *result)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    void *made = NULL;
    profiling_is_ours = false;
    *result = CL_INVALID_OPERATION;
    (void)r;
    if (!cl->clCreateCommandQueue)
        return NULL;
    if (v->boot->takes_turns && !(a->properties & CL_QUEUE_PROFILING_ENABLE)) {
        made = cl->clCreateCommandQueue(a->context, a->device,
                                        a->properties | CL_QUEUE_PROFILING_ENABLE, result);
        profiling_is_ours = made != NULL;
    }
    /* The errors are those of the program's own request. */
    if (!made)
        made = cl->clCreateCommandQueue(a->context, a->device, a->properties, result);
    return made;
}

/*
 * Copies the program's list and adds profiling. False: the program asks for profiling itself, the
 * queue is a device queue, or the list is too long.
 */
static bool add_profiling(const cl_queue_properties *asked, cl_queue_properties *ret)
{
    uint32_t n = 0;
    bool found = false;
    for (; asked && asked[n]; n += 2) {
        if (n + 5 > MAX_PROPERTIES)
            return false;
        ret[n] = asked[n];
        ret[n + 1] = asked[n + 1];
        if (asked[n] != CL_QUEUE_PROPERTIES)
            continue;
        if (found || asked[n + 1] & (CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_ON_DEVICE))
            return false;
        found = true;
        ret[n + 1] |= CL_QUEUE_PROFILING_ENABLE;
    }
    if (!found) {
        ret[n++] = CL_QUEUE_PROPERTIES;
        ret[n++] = CL_QUEUE_PROFILING_ENABLE;
    }
    ret[n] = 0;
    return true;
}

void *gn_host_clCreateCommandQueueWithProperties(
    struct gn_vgpu *v, struct gn_request *r,
    const struct gn_args_clCreateCommandQueueWithProperties *a, cl_int *result)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    cl_queue_properties properties[MAX_PROPERTIES];
    void *made = NULL;
    profiling_is_ours = false;
    *result = CL_INVALID_OPERATION;
    (void)r;
    if (!cl->clCreateCommandQueueWithProperties)
        return NULL;
    if (v->boot->takes_turns && add_profiling(a->properties, properties)) {
        made = cl->clCreateCommandQueueWithProperties(a->context, a->device, properties, result);
        profiling_is_ours = made != NULL;
    }
    if (!made)
        made = cl->clCreateCommandQueueWithProperties(a->context, a->device, a->properties, result);
    return made;
}

cl_int gn_host_clGetCommandQueueInfo(struct gn_vgpu *v, struct gn_request *r,
                                     const struct gn_args_clGetCommandQueueInfo *a)
{
    const struct gn_vqueue *q = a->command_queue_object ? a->command_queue_object->detail : NULL;
    cl_command_queue_properties *properties = a->param_value;
    (void)r;
    cl_int result =
        gn_cl(v)->clGetCommandQueueInfo(a->command_queue, a->param_name, a->param_value_size,
                                        a->param_value, a->param_value_size_ret);
    if (result == CL_SUCCESS && q && !q->profiling && a->param_name == CL_QUEUE_PROPERTIES &&
        properties)
        *properties &= ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
    /* The value would be the driver's own handle. */
    if (result == CL_SUCCESS && a->param_name == CL_QUEUE_DEVICE_DEFAULT && a->param_value)
        memset(a->param_value, 0, a->param_value_size);
    return result;
}
