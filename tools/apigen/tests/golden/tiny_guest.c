/* SPDX-License-Identifier: Apache-2.0 */
/* Written by apigen: do not edit. */
#include "tiny_guest.h"
#include "tiny_wire.h"

#include <stddef.h>
#include <string.h>

cl_int gn_send_clGetDeviceInfo(struct gn_session *session, cl_device_id device, cl_device_info param_name, size_t param_value_size, void *param_value, size_t *param_value_size_ret)
{
    struct gn_call c;
    struct gn_wire_clGetDeviceInfo *w = gn_call_begin(&c, session, GN_OP_clGetDeviceInfo, sizeof *w);
    w->device = gn_id_of(device);
    w->param_name = param_name;
    w->param_value_size = param_value_size;
    size_t valid_param_value_size_ret = 0;
    w->param_value_size_ret = gn_call_out(&c, &valid_param_value_size_ret, sizeof valid_param_value_size_ret);
    w->param_value = gn_call_out_limited(&c, param_value, (uint64_t)(param_value_size) * 1, &valid_param_value_size_ret, sizeof valid_param_value_size_ret, 1);
    cl_int result = gn_call_wait(&c);
    if (!result && param_value_size_ret)
        *param_value_size_ret = valid_param_value_size_ret;
    return result;
}

cl_int gn_send_Context(struct gn_session *session, struct gn_object *made, cl_uint num_devices, const cl_device_id *devices)
{
    struct gn_call c;
    struct gn_wire_Context *w = gn_call_begin(&c, session, GN_OP_Context, sizeof *w);
    w->id = made->id;
    w->num_devices = num_devices;
    w->devices = gn_call_handles(&c, devices, num_devices);
    return gn_call_wait(&c);
}

cl_int gn_send_clCreateBuffer(struct gn_session *session, struct gn_object *made, cl_context context, const cl_properties *properties, size_t size)
{
    struct gn_call c;
    struct gn_wire_clCreateBuffer *w = gn_call_begin(&c, session, GN_OP_clCreateBuffer, sizeof *w);
    w->id = made->id;
    w->context = gn_id_of(context);
    w->properties = gn_call_list(&c, properties);
    w->size = size;
    return gn_call_wait(&c);
}

cl_int gn_send_clCreateQueue(struct gn_session *session, struct gn_object *made, cl_context context, const cl_properties *properties)
{
    struct gn_call c;
    struct gn_wire_clCreateQueue *w = gn_call_begin(&c, session, GN_OP_clCreateQueue, sizeof *w);
    w->id = made->id;
    w->context = gn_id_of(context);
    w->properties = gn_call_list(&c, properties);
    return gn_call_wait(&c);
}

cl_int gn_send_Pipe(struct gn_session *session, struct gn_object *made, cl_context context, const cl_properties *properties)
{
    struct gn_call c;
    struct gn_wire_Pipe *w = gn_call_begin(&c, session, GN_OP_Pipe, sizeof *w);
    w->id = made->id;
    w->context = gn_id_of(context);
    w->properties = gn_call_list(&c, properties);
    return gn_call_wait(&c);
}

cl_int gn_send_clCreateProgram(struct gn_session *session, struct gn_object *made, cl_context context, const char *name)
{
    struct gn_call c;
    struct gn_wire_clCreateProgram *w = gn_call_begin(&c, session, GN_OP_clCreateProgram, sizeof *w);
    w->id = made->id;
    w->context = gn_id_of(context);
    w->name = gn_call_in(&c, name, name ? strlen(name) + 1 : 0);
    return gn_call_wait(&c);
}

cl_int gn_send_Build(struct gn_session *session, cl_program program, cl_uint num_devices, const cl_device_id *device_list, const char *options, cl_uint *log)
{
    struct gn_call c;
    struct gn_wire_Build *w = gn_call_begin(&c, session, GN_OP_Build, sizeof *w);
    w->program = gn_id_of(program);
    w->num_devices = num_devices;
    w->device_list = gn_call_handles(&c, device_list, num_devices);
    w->options = gn_call_in(&c, options, options ? strlen(options) + 1 : 0);
    c.outs_always = true;
    w->log = gn_call_out(&c, log, (uint64_t)(1) * sizeof(cl_uint));
    return gn_call_wait(&c);
}

cl_int gn_send_clGetFormats(struct gn_session *session, cl_context context, cl_mem near, cl_uint num_entries, cl_ulong *formats, cl_uint *num_formats)
{
    struct gn_call c;
    struct gn_wire_clGetFormats *w = gn_call_begin(&c, session, GN_OP_clGetFormats, sizeof *w);
    w->context = gn_id_of(context);
    w->near = gn_id_of(near);
    w->num_entries = num_entries;
    cl_uint valid_num_formats = 0;
    w->num_formats = gn_call_out(&c, &valid_num_formats, sizeof valid_num_formats);
    w->formats = gn_call_out_limited(&c, formats, (uint64_t)(num_entries) * sizeof(cl_ulong), &valid_num_formats, sizeof valid_num_formats, sizeof(cl_ulong));
    cl_int result = gn_call_wait(&c);
    if (!result && num_formats)
        *num_formats = valid_num_formats;
    return result;
}

cl_int gn_send_clSetProgramConstant(struct gn_session *session, cl_program program, size_t size, const void *value)
{
    struct gn_call c;
    struct gn_wire_clSetProgramConstant *w = gn_call_begin(&c, session, GN_OP_clSetProgramConstant, sizeof *w);
    w->program = gn_id_of(program);
    w->size = size;
    w->value = gn_call_in(&c, value, (uint64_t)(size) * 1);
    return gn_call_wait(&c);
}

cl_int gn_send_clSetDevices(struct gn_session *session, cl_context context, cl_uint num_devices, const cl_device_id *devices)
{
    struct gn_call c;
    struct gn_wire_clSetDevices *w = gn_call_begin(&c, session, GN_OP_clSetDevices, sizeof *w);
    w->context = gn_id_of(context);
    w->num_devices = num_devices;
    w->devices = gn_call_handles(&c, devices, num_devices);
    return gn_call_wait(&c);
}

cl_int gn_send_Load(struct gn_session *session, cl_program program, const struct gn_area_ref *bytes, size_t size, cl_ulong *sum)
{
    struct gn_call c;
    struct gn_wire_Load *w = gn_call_begin(&c, session, GN_OP_Load, sizeof *w);
    w->program = gn_id_of(program);
    w->bytes = *bytes;
    w->size = size;
    w->sum = gn_call_out(&c, sum, (uint64_t)(1) * sizeof(cl_ulong));
    return gn_call_wait(&c);
}

void gn_send_Forget(struct gn_session *session, cl_ulong object, cl_uint kind)
{
    struct gn_call c;
    struct gn_wire_Forget *w = gn_call_begin(&c, session, GN_OP_Forget, sizeof *w);
    w->object = object;
    w->kind = kind;
    gn_call_post(&c);
}

cl_int gn_send_Kernels(struct gn_session *session, cl_program program, cl_ulong *ids, cl_uint n)
{
    struct gn_call c;
    struct gn_wire_Kernels *w = gn_call_begin(&c, session, GN_OP_Kernels, sizeof *w);
    w->program = gn_id_of(program);
    w->ids = gn_call_in(&c, ids, (uint64_t)(n) * sizeof(cl_ulong));
    w->n = n;
    return gn_call_wait(&c);
}

cl_int gn_send_clEnqueueRead(struct gn_session *session, cl_command_queue command_queue, cl_mem buffer, const size_t *region, const struct gn_area_ref *ptr, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, const struct gn_command_show *show)
{
    struct gn_call c;
    struct gn_wire_clEnqueueRead *w = gn_call_begin(&c, session, GN_OP_clEnqueueRead, sizeof *w);
    gn_call_command(&c, &w->head, command_queue, num_events_in_wait_list, event_wait_list, show);
    w->present = 0;
    w->buffer = gn_id_of(buffer);
    gn_call_vec(w->region, &w->present, 0, region);
    w->ptr = *ptr;
    return gn_call_submit(&c, show);
}

cl_int gn_send_clEnqueueFill(struct gn_session *session, cl_command_queue command_queue, cl_mem buffer, const void *pattern, size_t pattern_size, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, const struct gn_command_show *show)
{
    struct gn_call c;
    struct gn_wire_clEnqueueFill *w = gn_call_begin(&c, session, GN_OP_clEnqueueFill, sizeof *w);
    gn_call_command(&c, &w->head, command_queue, num_events_in_wait_list, event_wait_list, show);
    w->buffer = gn_id_of(buffer);
    w->pattern = gn_call_in(&c, pattern, (uint64_t)(pattern_size) * 1);
    w->pattern_size = pattern_size;
    return gn_call_submit(&c, show);
}

cl_int gn_send_clEnqueueMigrate(struct gn_session *session, cl_command_queue command_queue, cl_uint num_mem_objects, const cl_mem *mem_objects, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, const struct gn_command_show *show)
{
    struct gn_call c;
    struct gn_wire_clEnqueueMigrate *w = gn_call_begin(&c, session, GN_OP_clEnqueueMigrate, sizeof *w);
    gn_call_command(&c, &w->head, command_queue, num_events_in_wait_list, event_wait_list, show);
    w->num_mem_objects = num_mem_objects;
    w->mem_objects = gn_call_handles(&c, mem_objects, num_mem_objects);
    return gn_call_submit(&c, show);
}

cl_int gn_send_Launch(struct gn_session *session, cl_command_queue command_queue, cl_program program, const void *args, cl_uint args_bytes, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, const struct gn_command_show *show)
{
    struct gn_call c;
    struct gn_wire_Launch *w = gn_call_begin(&c, session, GN_OP_Launch, sizeof *w);
    gn_call_command(&c, &w->head, command_queue, num_events_in_wait_list, event_wait_list, show);
    w->program = gn_id_of(program);
    w->args = gn_call_in(&c, args, (uint64_t)(args_bytes) * 1);
    w->args_bytes = args_bytes;
    return gn_call_submit(&c, show);
}

cl_int gn_send_Finish(struct gn_session *session, cl_command_queue command_queue, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, const struct gn_command_show *show)
{
    struct gn_call c;
    struct gn_wire_Finish *w = gn_call_begin(&c, session, GN_OP_Finish, sizeof *w);
    gn_call_command(&c, &w->head, command_queue, num_events_in_wait_list, event_wait_list, show);
    return gn_call_submit(&c, show);
}

cl_int gn_send_clCreateCommandBufferKHR(struct gn_session *session, struct gn_object *made, cl_command_queue queue, const cl_properties *properties)
{
    struct gn_call c;
    struct gn_wire_clCreateCommandBufferKHR *w = gn_call_begin(&c, session, GN_OP_clCreateCommandBufferKHR, sizeof *w);
    w->id = made->id;
    w->queue = gn_id_of(queue);
    w->properties = gn_call_list(&c, properties);
    return gn_call_wait(&c);
}

cl_int gn_send_clCommandBarrierKHR(struct gn_session *session, cl_command_buffer_khr command_buffer, cl_uint *sync_point)
{
    struct gn_call c;
    struct gn_wire_clCommandBarrierKHR *w = gn_call_begin(&c, session, GN_OP_clCommandBarrierKHR, sizeof *w);
    w->command_buffer = gn_id_of(command_buffer);
    w->sync_point = gn_call_out(&c, sync_point, (uint64_t)(1) * sizeof(cl_uint));
    return gn_call_wait(&c);
}

cl_int gn_send_clCommandFillKHR(struct gn_session *session, cl_command_buffer_khr command_buffer, cl_mem buffer)
{
    struct gn_call c;
    struct gn_wire_clCommandFillKHR *w = gn_call_begin(&c, session, GN_OP_clCommandFillKHR, sizeof *w);
    w->command_buffer = gn_id_of(command_buffer);
    w->buffer = gn_id_of(buffer);
    return gn_call_wait(&c);
}

cl_int gn_send_EnqueueCommandBuffer(struct gn_session *session, cl_command_queue command_queue, cl_command_buffer_khr command_buffer, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, const struct gn_command_show *show)
{
    struct gn_call c;
    struct gn_wire_EnqueueCommandBuffer *w = gn_call_begin(&c, session, GN_OP_EnqueueCommandBuffer, sizeof *w);
    gn_call_command(&c, &w->head, command_queue, num_events_in_wait_list, event_wait_list, show);
    w->command_buffer = gn_id_of(command_buffer);
    return gn_call_submit(&c, show);
}

cl_int CL_API_CALL gn_clGetDeviceInfo(cl_device_id device, cl_device_info param_name, size_t param_value_size, void *param_value, size_t *param_value_size_ret)
{
    struct gn_object *object = gn_object_anew(device, GN_KIND_DEVICE);
    if (!object)
        return CL_INVALID_DEVICE;
    switch (param_name) {
    case CL_DEVICE_TYPE:
    case CL_DEVICE_PLATFORM:
        return gn_local_clGetDeviceInfo(device, param_name, param_value_size, param_value, param_value_size_ret);
    default:
        break;
    }
    return gn_send_clGetDeviceInfo(object->session, device, param_name, param_value_size, param_value, param_value_size_ret);
}

cl_int CL_API_CALL gn_clRetainDevice(cl_device_id device)
{
    struct gn_object *object = gn_object_of(device, GN_KIND_DEVICE);
    if (!object)
        return CL_INVALID_DEVICE;
    return gn_device_retain(object);
}

cl_int CL_API_CALL gn_clReleaseDevice(cl_device_id device)
{
    struct gn_object *object = gn_object_of(device, GN_KIND_DEVICE);
    if (!object)
        return CL_INVALID_DEVICE;
    return gn_device_release(object);
}

cl_int CL_API_CALL gn_clRetainDeviceEXT(cl_device_id device)
{
    (void)device;
    return CL_INVALID_OPERATION;
}

cl_mem CL_API_CALL gn_clCreateBuffer(cl_context context, const cl_properties *properties, size_t size, cl_int *errcode_ret)
{
    struct gn_object *object = gn_object_of(context, GN_KIND_CONTEXT);
    if (!object)
        return gn_refuse(errcode_ret, CL_INVALID_CONTEXT);
    struct gn_object *made = gn_object_new(object->session, GN_KIND_MEM, object);
    if (!made)
        return gn_refuse(errcode_ret, CL_OUT_OF_HOST_MEMORY);
    cl_int result = gn_send_clCreateBuffer(object->session, made, context, properties, size);
    if (!result)
        result = gn_made_clCreateBuffer(made, context, properties, size);
    if (result)
        gn_object_drop(made), made = NULL;
    if (errcode_ret)
        *errcode_ret = result;
    return (void *)made;
}

cl_command_queue CL_API_CALL gn_clCreateQueue(cl_context context, const cl_properties *properties, cl_int *errcode_ret)
{
    struct gn_object *object = gn_object_of(context, GN_KIND_CONTEXT);
    if (!object)
        return gn_refuse(errcode_ret, CL_INVALID_CONTEXT);
    struct gn_object *made = gn_object_new(object->session, GN_KIND_QUEUE, object);
    if (!made)
        return gn_refuse(errcode_ret, CL_OUT_OF_HOST_MEMORY);
    cl_int result = gn_send_clCreateQueue(object->session, made, context, properties);
    if (result)
        gn_object_drop(made), made = NULL;
    if (errcode_ret)
        *errcode_ret = result;
    return (void *)made;
}

cl_program CL_API_CALL gn_clCreateProgram(cl_context context, const char *name, cl_int *errcode_ret)
{
    struct gn_object *object = gn_object_of(context, GN_KIND_CONTEXT);
    if (!object)
        return gn_refuse(errcode_ret, CL_INVALID_CONTEXT);
    struct gn_object *made = gn_object_new(object->session, GN_KIND_PROGRAM, object);
    if (!made)
        return gn_refuse(errcode_ret, CL_OUT_OF_HOST_MEMORY);
    cl_int result = gn_send_clCreateProgram(object->session, made, context, name);
    if (result)
        gn_object_drop(made), made = NULL;
    if (errcode_ret)
        *errcode_ret = result;
    return (void *)made;
}

cl_int CL_API_CALL gn_clGetFormats(cl_context context, cl_mem near, cl_uint num_entries, cl_ulong *formats, cl_uint *num_formats)
{
    struct gn_object *object = gn_object_of(context, GN_KIND_CONTEXT);
    if (!object)
        return CL_INVALID_CONTEXT;
    if (near && !gn_object_of_session(object, near, GN_KIND_MEM))
        return CL_INVALID_MEM_OBJECT;
    return gn_send_clGetFormats(object->session, context, near, num_entries, formats, num_formats);
}

cl_int CL_API_CALL gn_clSetProgramConstant(cl_program program, size_t size, const void *value)
{
    struct gn_object *object = gn_object_of(program, GN_KIND_PROGRAM);
    if (!object)
        return CL_INVALID_PROGRAM;
    return gn_send_clSetProgramConstant(object->session, program, size, value);
}

cl_int CL_API_CALL gn_clSetDevices(cl_context context, cl_uint num_devices, const cl_device_id *devices)
{
    struct gn_object *object = gn_object_of(context, GN_KIND_CONTEXT);
    if (!object)
        return CL_INVALID_CONTEXT;
    if (devices && !gn_objects_of_session(object, devices, num_devices, GN_KIND_DEVICE))
        return CL_INVALID_DEVICE;
    return gn_send_clSetDevices(object->session, context, num_devices, devices);
}

cl_int CL_API_CALL gn_clEnqueueFill(cl_command_queue command_queue, cl_mem buffer, const void *pattern, size_t pattern_size, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event)
{
    struct gn_object *object = gn_object_of(command_queue, GN_KIND_QUEUE);
    if (!object)
        return CL_INVALID_COMMAND_QUEUE;
    if (buffer && !gn_object_of_session(object, buffer, GN_KIND_MEM))
        return CL_INVALID_MEM_OBJECT;
    cl_int result = gn_command_begin(object, num_events_in_wait_list, event_wait_list);
    if (result)
        return result;
    struct gn_command_show show = {GN_NO_EVENT, 0, GN_ASK(0)};
    show.doubt = gn_check_clEnqueueFill(command_queue, buffer, pattern, pattern_size);
    struct gn_object *shown = event ? gn_event_new(object, CL_COMMAND_FILL_BUFFER, &show) : NULL;
    if (event && !shown)
        return CL_OUT_OF_HOST_MEMORY;
    result = gn_send_clEnqueueFill(object->session, command_queue, buffer, pattern, pattern_size, num_events_in_wait_list, event_wait_list, &show);
    return gn_command_sent(object, shown, event, result);
}

cl_int CL_API_CALL gn_clEnqueueMigrate(cl_command_queue command_queue, cl_uint num_mem_objects, const cl_mem *mem_objects, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event)
{
    struct gn_object *object = gn_object_of(command_queue, GN_KIND_QUEUE);
    if (!object)
        return CL_INVALID_COMMAND_QUEUE;
    if (mem_objects && !gn_objects_of_session(object, mem_objects, num_mem_objects, GN_KIND_MEM))
        return CL_INVALID_MEM_OBJECT;
    cl_int result = gn_command_begin(object, num_events_in_wait_list, event_wait_list);
    if (result)
        return result;
    struct gn_command_show show = {GN_NO_EVENT, 0, GN_ASK(0)};
    struct gn_object *shown = event ? gn_event_new(object, CL_COMMAND_MIGRATE_MEM_OBJECTS, &show) : NULL;
    if (event && !shown)
        return CL_OUT_OF_HOST_MEMORY;
    result = gn_send_clEnqueueMigrate(object->session, command_queue, num_mem_objects, mem_objects, num_events_in_wait_list, event_wait_list, &show);
    return gn_command_sent(object, shown, event, result);
}

cl_command_buffer_khr CL_API_CALL gn_clCreateCommandBufferKHR(cl_command_queue queue, const cl_properties *properties, cl_int *errcode_ret)
{
    struct gn_object *object = gn_object_of(queue, GN_KIND_QUEUE);
    if (!object)
        return gn_refuse(errcode_ret, CL_INVALID_COMMAND_QUEUE);
    struct gn_object *made = gn_object_new(object->session, GN_KIND_CMDBUF, object);
    if (!made)
        return gn_refuse(errcode_ret, CL_OUT_OF_HOST_MEMORY);
    cl_int result = gn_send_clCreateCommandBufferKHR(object->session, made, queue, properties);
    if (result)
        gn_object_drop(made), made = NULL;
    if (errcode_ret)
        *errcode_ret = result;
    return (void *)made;
}

cl_int CL_API_CALL gn_clReleaseCommandBufferKHR(cl_command_buffer_khr command_buffer)
{
    struct gn_object *object = gn_object_of(command_buffer, GN_KIND_CMDBUF);
    if (!object)
        return CL_INVALID_COMMAND_BUFFER_KHR;
    return gn_cmdbuf_release(object);
}

cl_int CL_API_CALL gn_clCommandBarrierKHR(cl_command_buffer_khr command_buffer, cl_command_queue command_queue, cl_uint *sync_point, cl_mutable_command_khr *mutable_handle)
{
    struct gn_object *object = gn_object_of(command_buffer, GN_KIND_CMDBUF);
    if (!object)
        return CL_INVALID_COMMAND_BUFFER_KHR;
    if (command_queue)
        return CL_INVALID_COMMAND_QUEUE;
    if (mutable_handle)
        return CL_INVALID_VALUE;
    struct gn_addition *addition = gn_cmdbuf_add(object, NULL, 0);
    if (!addition)
        return CL_OUT_OF_HOST_MEMORY;
    return gn_cmdbuf_added(object, addition, gn_send_clCommandBarrierKHR(object->session, command_buffer, sync_point));
}

cl_int CL_API_CALL gn_clCommandFillKHR(cl_command_buffer_khr command_buffer, cl_command_queue command_queue, cl_mem buffer, cl_mutable_command_khr *mutable_handle)
{
    struct gn_object *object = gn_object_of(command_buffer, GN_KIND_CMDBUF);
    if (!object)
        return CL_INVALID_COMMAND_BUFFER_KHR;
    if (command_queue)
        return CL_INVALID_COMMAND_QUEUE;
    if (buffer && !gn_object_of_session(object, buffer, GN_KIND_MEM))
        return CL_INVALID_MEM_OBJECT;
    if (mutable_handle)
        return CL_INVALID_VALUE;
    void *const named[] = {buffer};
    struct gn_addition *addition = gn_cmdbuf_add(object, named, 1);
    if (!addition)
        return CL_OUT_OF_HOST_MEMORY;
    return gn_cmdbuf_added(object, addition, gn_send_clCommandFillKHR(object->session, command_buffer, buffer));
}

const uint16_t *gn_tiny_inputs(uint16_t op)
{
    static const uint16_t none[1];
    switch (op) {
    case GN_OP_Context: {
        static const uint16_t at[] = {offsetof(struct gn_wire_Context, devices), 0};
        return at;
    }
    case GN_OP_clCreateBuffer: {
        static const uint16_t at[] = {offsetof(struct gn_wire_clCreateBuffer, properties), 0};
        return at;
    }
    case GN_OP_clCreateQueue: {
        static const uint16_t at[] = {offsetof(struct gn_wire_clCreateQueue, properties), 0};
        return at;
    }
    case GN_OP_Pipe: {
        static const uint16_t at[] = {offsetof(struct gn_wire_Pipe, properties), 0};
        return at;
    }
    case GN_OP_clCreateProgram: {
        static const uint16_t at[] = {offsetof(struct gn_wire_clCreateProgram, name), 0};
        return at;
    }
    case GN_OP_Build: {
        static const uint16_t at[] = {offsetof(struct gn_wire_Build, device_list), offsetof(struct gn_wire_Build, options), 0};
        return at;
    }
    case GN_OP_clSetProgramConstant: {
        static const uint16_t at[] = {offsetof(struct gn_wire_clSetProgramConstant, value), 0};
        return at;
    }
    case GN_OP_clSetDevices: {
        static const uint16_t at[] = {offsetof(struct gn_wire_clSetDevices, devices), 0};
        return at;
    }
    case GN_OP_Kernels: {
        static const uint16_t at[] = {offsetof(struct gn_wire_Kernels, ids), 0};
        return at;
    }
    case GN_OP_clEnqueueRead: {
        static const uint16_t at[] = {offsetof(struct gn_wire_clEnqueueRead, head.waits), 0};
        return at;
    }
    case GN_OP_clEnqueueFill: {
        static const uint16_t at[] = {offsetof(struct gn_wire_clEnqueueFill, head.waits), offsetof(struct gn_wire_clEnqueueFill, pattern), 0};
        return at;
    }
    case GN_OP_clEnqueueMigrate: {
        static const uint16_t at[] = {offsetof(struct gn_wire_clEnqueueMigrate, head.waits), offsetof(struct gn_wire_clEnqueueMigrate, mem_objects), 0};
        return at;
    }
    case GN_OP_Launch: {
        static const uint16_t at[] = {offsetof(struct gn_wire_Launch, head.waits), offsetof(struct gn_wire_Launch, args), 0};
        return at;
    }
    case GN_OP_Finish: {
        static const uint16_t at[] = {offsetof(struct gn_wire_Finish, head.waits), 0};
        return at;
    }
    case GN_OP_clCreateCommandBufferKHR: {
        static const uint16_t at[] = {offsetof(struct gn_wire_clCreateCommandBufferKHR, properties), 0};
        return at;
    }
    case GN_OP_EnqueueCommandBuffer: {
        static const uint16_t at[] = {offsetof(struct gn_wire_EnqueueCommandBuffer, head.waits), 0};
        return at;
    }
    default:
        return none;
    }
}

struct _cl_icd_dispatch gn_tiny_dispatch = {
    .clGetDeviceIDs = gn_clGetDeviceIDs,
    .clGetDeviceInfo = gn_clGetDeviceInfo,
    .clRetainDevice = gn_clRetainDevice,
    .clReleaseDevice = gn_clReleaseDevice,
    .clRetainDeviceEXT = gn_clRetainDeviceEXT,
    .clCreateContext = gn_clCreateContext,
    .clCreateBuffer = gn_clCreateBuffer,
    .clCreateQueue = gn_clCreateQueue,
    .clCreateProgram = gn_clCreateProgram,
    .clGetFormats = gn_clGetFormats,
    .clSetProgramConstant = gn_clSetProgramConstant,
    .clSetDevices = gn_clSetDevices,
    .clEnqueueRead = gn_clEnqueueRead,
    .clEnqueueFill = gn_clEnqueueFill,
    .clEnqueueMigrate = gn_clEnqueueMigrate,
    /* Version 2.0 of cl_khr_icd: these two say so, and no loader calls them. */
    .clGetPlatformIDs = (cl_api_clGetPlatformIDs)GN_ICD2_TAG,
    .clUnloadCompiler = (cl_api_clUnloadCompiler)GN_ICD2_TAG,
    .clCreateFromGLBuffer = (void *)gn_clCreateFromGLBuffer,
};

static const struct {
    const char *name;
    void *function;
} functions[] = {
    {"clCreateBuffer", (void *)gn_clCreateBuffer},
    {"clCreateContext", (void *)gn_clCreateContext},
    {"clCreateFromGLBuffer", (void *)gn_clCreateFromGLBuffer},
    {"clCreateProgram", (void *)gn_clCreateProgram},
    {"clCreateQueue", (void *)gn_clCreateQueue},
    {"clEnqueueFill", (void *)gn_clEnqueueFill},
    {"clEnqueueMigrate", (void *)gn_clEnqueueMigrate},
    {"clEnqueueRead", (void *)gn_clEnqueueRead},
    {"clGetDeviceIDs", (void *)gn_clGetDeviceIDs},
    {"clGetDeviceInfo", (void *)gn_clGetDeviceInfo},
    {"clGetFormats", (void *)gn_clGetFormats},
    {"clReleaseDevice", (void *)gn_clReleaseDevice},
    {"clRetainDevice", (void *)gn_clRetainDevice},
    {"clRetainDeviceEXT", (void *)gn_clRetainDeviceEXT},
    {"clSetDevices", (void *)gn_clSetDevices},
    {"clSetProgramConstant", (void *)gn_clSetProgramConstant},
};

void *gn_tiny_function(const char *name)
{
    size_t low = 0, high = sizeof functions / sizeof functions[0];
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(name, functions[middle].name);
        if (!order)
            return functions[middle].function;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

void *gn_tiny_extension_function(const char *name, const char **ret_extension)
{
    if (!strcmp(name, "clCommandBarrierKHR")) {
        *ret_extension = "cl_khr_command_buffer";
        return (void *)gn_clCommandBarrierKHR;
    }
    if (!strcmp(name, "clCommandFillKHR")) {
        *ret_extension = "cl_khr_command_buffer";
        return (void *)gn_clCommandFillKHR;
    }
    if (!strcmp(name, "clCreateCommandBufferKHR")) {
        *ret_extension = "cl_khr_command_buffer";
        return (void *)gn_clCreateCommandBufferKHR;
    }
    if (!strcmp(name, "clReleaseCommandBufferKHR")) {
        *ret_extension = "cl_khr_command_buffer";
        return (void *)gn_clReleaseCommandBufferKHR;
    }
    (void)name, (void)ret_extension;
    return NULL;
}
