/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts and command queues. Called on the program's threads. Contexts of a lost vGPU stay lost;
 * a new one is created on a new vGPU.
 */
#include "home.h"
#include "guest/opencl/callback.h"
#include "opencl_guest.h"

#include <stdlib.h>
#include <string.h>

#define CALLBACKS_NS UINT64_C(1000000000)

/*
 * The platform that the properties name, or NULL if they name none. CL_INVALID_PLATFORM: it is not
 * a platform.
 */
static cl_int named_platform(const cl_context_properties *properties, struct gn_cl_root **ret)
{
    *ret = NULL;
    for (; properties && properties[0]; properties += 2) {
        if (properties[0] != CL_CONTEXT_PLATFORM)
            continue;
        *ret = gn_object_of((void *)properties[1], GN_KIND_PLATFORM);
        if (!*ret)
            return CL_INVALID_PLATFORM;
    }
    return CL_SUCCESS;
}

/*
 * Asks the driver for the context's devices: it may list a device once that was given twice, or a
 * root device in place of its sub-devices.
 */
static cl_int query_devices(struct gn_cl_context *c, cl_uint num_devices,
                            const cl_device_id *devices)
{
    const struct gn_cl_devices *all = gn_cl_devices_of(c->root);
    cl_uint n = 0, room = num_devices + all->n;
    cl_ulong *ids = malloc(room * sizeof *ids);
    c->devices = malloc(room * sizeof(struct gn_cl_device *));
    if (!ids || !c->devices) {
        free(ids);
        return CL_OUT_OF_HOST_MEMORY;
    }
    cl_int result =
        gn_send_ContextDevices(c->o.session, (cl_context)c, num_devices, devices, ids, room, &n);
    for (cl_uint i = 0; !result && i < n && i < room; i++) {
        struct gn_cl_device *found = NULL;
        for (cl_uint k = 0; !found && k < num_devices; k++)
            if (gn_id_of(devices[k]) == ids[i])
                found = (void *)devices[k];
        for (cl_uint k = 0; !found && k < all->n; k++)
            if (all->all[k]->o.id == ids[i])
                found = all->all[k];
        if (found) {
            gn_object_ref(&found->o);
            c->devices[c->n_devices++] = found;
        }
    }
    free(ids);
    return result;
}

static cl_context create(const cl_context_properties *properties, cl_uint num_devices,
                         const cl_device_id *devices,
                         void(CL_CALLBACK *pfn_notify)(const char *, const void *, size_t, void *),
                         void *user_data, cl_int *ret)
{
    struct gn_cl_root *root;
    cl_int result = named_platform(properties, &root);
    if (!devices || !num_devices || (!pfn_notify && user_data))
        return gn_refuse(ret, CL_INVALID_VALUE);
    if (result)
        return gn_refuse(ret, result);
    struct gn_cl_device *first = gn_object_of(devices[0], GN_KIND_DEVICE);
    if (!first || !gn_objects_of_session(&first->o, devices, num_devices, GN_KIND_DEVICE) ||
        (root && root != first->root))
        return gn_refuse(ret, CL_INVALID_DEVICE);
    struct gn_cl_context *c = (void *)gn_object_new(first->o.session, GN_KIND_CONTEXT, NULL);
    if (!c)
        return gn_refuse(ret, CL_OUT_OF_HOST_MEMORY);
    c->o.dispatch = first->o.dispatch;
    c->o.dispatch_data = first->o.dispatch_data;
    c->root = first->root;
    atomic_init(&c->home_limit, GN_HOME_NOT_ASKED);
    c->notify = pfn_notify;
    c->user_data = user_data;
    c->properties = (void *)gn_copy_list(properties, &c->n_properties);
    if (properties && !c->properties)
        result = CL_OUT_OF_HOST_MEMORY;
    if (!result)
        result = gn_send_Context(c->o.session, &c->o, c->properties, c->n_properties, num_devices,
                                 devices, pfn_notify != NULL);
    if (result) {
        free(c->properties);
        gn_object_drop(&c->o);
        return gn_refuse(ret, result);
    }
    result = query_devices(c, num_devices, devices);
    if (result) {
        gn_object_unref(&c->o);
        return gn_refuse(ret, result);
    }
    if (pfn_notify)
        gn_context_listen(c);
    *ret = CL_SUCCESS;
    return (cl_context)c;
}

/*
 * True: the vGPU was lost and there is a new one. A program that has no object of the lost vGPU
 * left continues with its old device handles; a program that still has one gets the loss as an
 * error until it has released all.
 */
static bool replace_lost_vgpu(cl_device_id device)
{
    struct gn_cl_device *d = gn_object_of(device, GN_KIND_DEVICE);
    if (!d || !d->o.rooted)
        return false;
    struct gn_session *s = d->root->o.session; /* the device may belong to an earlier session */
    gn_session_look(s);
    /* A callback that reports the loss may hold an object until it returns. */
    if (gn_session_lost(s) && gn_session_is_used(s))
        gn_callbacks_finish(CALLBACKS_NS);
    return gn_session_lost(s) && !gn_session_is_used(s) && gn_root_revive(&d->o);
}

cl_context CL_API_CALL gn_clCreateContext(const cl_context_properties *properties,
                                          cl_uint num_devices, const cl_device_id *devices,
                                          void(CL_CALLBACK *pfn_notify)(const char *, const void *,
                                                                        size_t, void *),
                                          void *user_data, cl_int *errcode_ret)
{
    cl_int result;
    if (devices && num_devices)
        (void)replace_lost_vgpu(devices[0]);
    cl_context c = create(properties, num_devices, devices, pfn_notify, user_data, &result);
    if (!c && result == CL_OUT_OF_RESOURCES && replace_lost_vgpu(devices[0]))
        c = create(properties, num_devices, devices, pfn_notify, user_data, &result);
    if (errcode_ret)
        *errcode_ret = result;
    return c;
}

cl_context CL_API_CALL gn_clCreateContextFromType(
    const cl_context_properties *properties, cl_device_type device_type,
    void(CL_CALLBACK *pfn_notify)(const char *, const void *, size_t, void *), void *user_data,
    cl_int *errcode_ret)
{
    struct gn_cl_root *root;
    cl_device_id devices[64];
    cl_uint n = 0;
    cl_int result = named_platform(properties, &root);
    if (!pfn_notify && user_data)
        result = CL_INVALID_VALUE;
    if (!result && !root && !(root = gn_first_platform()))
        result = CL_INVALID_PLATFORM;
    if (!result)
        result = gn_clGetDeviceIDs((cl_platform_id)root, device_type, GN_ARRAY_SIZE(devices),
                                   devices, &n);
    if (result)
        return gn_refuse(errcode_ret, result);
    return gn_clCreateContext(properties, n < GN_ARRAY_SIZE(devices) ? n : GN_ARRAY_SIZE(devices),
                              devices, pfn_notify, user_data, errcode_ret);
}

cl_int CL_API_CALL gn_clGetContextInfo(cl_context context, cl_context_info param_name,
                                       size_t param_value_size, void *param_value,
                                       size_t *param_value_size_ret)
{
    struct gn_cl_context *c = gn_object_of(context, GN_KIND_CONTEXT);
    if (!c)
        return CL_INVALID_CONTEXT;
    switch (param_name) {
    case CL_CONTEXT_REFERENCE_COUNT: {
        cl_uint n = atomic_load_explicit(&c->o.n_refs, memory_order_relaxed);
        return gn_answer(&n, sizeof n, param_value_size, param_value, param_value_size_ret);
    }
    case CL_CONTEXT_NUM_DEVICES:
        return gn_answer(&c->n_devices, sizeof c->n_devices, param_value_size, param_value,
                         param_value_size_ret);
    case CL_CONTEXT_DEVICES:
        return gn_answer(c->devices, c->n_devices * sizeof *c->devices, param_value_size,
                         param_value, param_value_size_ret);
    case CL_CONTEXT_PROPERTIES:
        return gn_answer(c->properties, c->n_properties * sizeof *c->properties, param_value_size,
                         param_value, param_value_size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}

cl_int CL_API_CALL gn_clSetContextDestructorCallback(
    cl_context context, void(CL_CALLBACK *pfn_notify)(cl_context, void *), void *user_data)
{
    struct gn_cl_context *c = gn_object_of(context, GN_KIND_CONTEXT);
    if (!c)
        return CL_INVALID_CONTEXT;
    if (!pfn_notify)
        return CL_INVALID_VALUE;
    return gn_add_destructor(&c->destructors, (void *)pfn_notify, user_data);
}

/* ---- command queues */

static cl_int queue_made(struct gn_object *made, cl_context context, cl_device_id device)
{
    struct gn_cl_queue *q = (void *)made;
    pthread_mutex_init(&q->user_lock, NULL);
    q->context = (void *)context;
    q->device = (void *)device;
    gn_object_ref(&q->device->o);
    /* The actual properties: a driver may add to those that were asked for. */
    return gn_send_clGetCommandQueueInfo(made->session, (cl_command_queue)made, CL_QUEUE_PROPERTIES,
                                         sizeof q->properties, &q->properties, NULL);
}

cl_int gn_made_clCreateCommandQueue(struct gn_object *made, cl_context context, cl_device_id device,
                                    cl_command_queue_properties properties)
{
    (void)properties;
    return queue_made(made, context, device);
}

cl_int gn_made_clCreateCommandQueueWithProperties(struct gn_object *made, cl_context context,
                                                  cl_device_id device,
                                                  const cl_queue_properties *properties)
{
    struct gn_cl_queue *q = (void *)made;
    q->given = (void *)gn_copy_list(properties, &q->n_given);
    return properties && !q->given ? CL_OUT_OF_HOST_MEMORY : queue_made(made, context, device);
}

cl_int gn_local_clGetCommandQueueInfo(cl_command_queue command_queue,
                                      cl_command_queue_info param_name, size_t param_value_size,
                                      void *param_value, size_t *param_value_size_ret)
{
    struct gn_cl_queue *q = gn_object_of(command_queue, GN_KIND_QUEUE);
    switch (param_name) {
    case CL_QUEUE_CONTEXT:
        return gn_answer(&q->context, sizeof q->context, param_value_size, param_value,
                         param_value_size_ret);
    case CL_QUEUE_DEVICE:
        return gn_answer(&q->device, sizeof q->device, param_value_size, param_value,
                         param_value_size_ret);
    case CL_QUEUE_REFERENCE_COUNT: {
        cl_uint n = atomic_load_explicit(&q->o.n_refs, memory_order_relaxed);
        return gn_answer(&n, sizeof n, param_value_size, param_value, param_value_size_ret);
    }
    case CL_QUEUE_PROPERTIES_ARRAY:
        return gn_answer(q->given, q->n_given * sizeof *q->given, param_value_size, param_value,
                         param_value_size_ret);
    case CL_QUEUE_DEVICE_DEFAULT: {
        /*
         * On-device queues are not supported. The driver judges the query; its handle would be
         * meaningless to the program.
         */
        void *queue = NULL;
        cl_int result = gn_send_clGetCommandQueueInfo(q->o.session, command_queue, param_name,
                                                      sizeof queue, &queue, NULL);
        queue = NULL;
        return result ? result
                      : gn_answer(&queue, sizeof queue, param_value_size, param_value,
                                  param_value_size_ret);
    }
    default:
        return gn_answer(&q->properties, sizeof q->properties, param_value_size, param_value,
                         param_value_size_ret);
    }
}
