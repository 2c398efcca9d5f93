/* SPDX-License-Identifier: Apache-2.0 */
/* Written by apigen: do not edit. */
#include "tiny_host.h"

#include <stddef.h>

bool gn_asks_clGetDeviceInfo(cl_device_info param_name)
{
    switch (param_name) {
    case CL_DEVICE_NAME:
    case CL_DEVICE_VENDOR:
        return true;
    default:
        return false;
    }
}

static void host_clGetDeviceInfo(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_clGetDeviceInfo *w = gn_request_message(r);
    struct gn_args_clGetDeviceInfo a = {0};
    a.device_object = gn_request_object(r, GN_KIND_DEVICE, w->device);
    a.device = gn_driver_of(a.device_object);
    a.param_name = w->param_name;
    a.param_value_size = w->param_value_size;
    a.param_value = gn_request_out(r, &w->param_value, gn_times(w->param_value_size, 1));
    a.param_value_size_ret = gn_request_out(r, &w->param_value_size_ret, gn_times(1, sizeof(size_t)));
    r->fault |= w->zero_end != 0;
    if (gn_request_faulty(r))
        return;
    const bool known = gn_asks_clGetDeviceInfo(a.param_name);
    if (!known) {
        a.param_name = CL_DEVICE_NAME;
        a.param_value = NULL;
        a.param_value_size = 0;
        a.param_value_size_ret = NULL;
    }
    r->result = gn_cl(v)->clGetDeviceInfo ? gn_cl(v)->clGetDeviceInfo(a.device, a.param_name, a.param_value_size, a.param_value, a.param_value_size_ret) : CL_INVALID_OPERATION;
    if (!known && r->result == CL_SUCCESS)
        r->result = CL_INVALID_VALUE;
}

static void host_Context(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_Context *w = gn_request_message(r);
    struct gn_args_Context a = {0};
    a.num_devices = w->num_devices;
    a.devices = gn_request_objects(r, GN_KIND_DEVICE, &w->devices, w->num_devices);
    gn_request_need(r, &w->devices);
    r->fault |= w->zero_end != 0;
    if (gn_request_faulty(r))
        return;
    cl_int result = CL_SUCCESS;
    void *made = gn_host_Context(v, r, &a, &result);
    r->result = gn_request_made(r, GN_KIND_CONTEXT, w->id, made, result);
}

static void host_clCreateBuffer(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_clCreateBuffer *w = gn_request_message(r);
    struct gn_args_clCreateBuffer a = {0};
    a.context_object = gn_request_object(r, GN_KIND_CONTEXT, w->context);
    a.context = gn_driver_of(a.context_object);
    a.properties = gn_request_list(r, &w->properties);
    a.size = w->size;
    if (gn_request_faulty(r))
        return;
    if (!gn_list_knows(a.properties, NULL, 0)) {
        r->result = gn_request_made(r, GN_KIND_MEM, w->id, NULL, CL_INVALID_PROPERTY);
        return;
    }
    cl_int result = CL_SUCCESS;
    void *made = NULL;
    if (gn_cl(v)->clCreateBuffer)
        made = gn_cl(v)->clCreateBuffer(a.context, a.properties, a.size, &result);
    else
        result = CL_INVALID_OPERATION;
    r->result = gn_request_made(r, GN_KIND_MEM, w->id, made, result);
}

static const uint64_t keys_clCreateQueue_properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_SIZE};

static void host_clCreateQueue(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_clCreateQueue *w = gn_request_message(r);
    struct gn_args_clCreateQueue a = {0};
    a.context_object = gn_request_object(r, GN_KIND_CONTEXT, w->context);
    a.context = gn_driver_of(a.context_object);
    a.properties = gn_request_list(r, &w->properties);
    if (gn_request_faulty(r))
        return;
    if (!gn_list_knows(a.properties, keys_clCreateQueue_properties, GN_ARRAY_SIZE(keys_clCreateQueue_properties))) {
        r->result = gn_request_made(r, GN_KIND_QUEUE, w->id, NULL, CL_INVALID_VALUE);
        return;
    }
    cl_int result = CL_SUCCESS;
    void *made = NULL;
    if (gn_cl(v)->clCreateQueue)
        made = gn_cl(v)->clCreateQueue(a.context, a.properties, &result);
    else
        result = CL_INVALID_OPERATION;
    r->result = gn_request_made(r, GN_KIND_QUEUE, w->id, made, result);
}

static void host_Pipe(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_Pipe *w = gn_request_message(r);
    struct gn_args_Pipe a = {0};
    a.context_object = gn_request_object(r, GN_KIND_CONTEXT, w->context);
    a.context = gn_driver_of(a.context_object);
    a.properties = gn_request_list(r, &w->properties);
    gn_request_need(r, &w->properties);
    if (gn_request_faulty(r))
        return;
    cl_int result = CL_SUCCESS;
    void *made = gn_host_Pipe(v, r, &a, &result);
    r->result = gn_request_made(r, GN_KIND_MEM, w->id, made, result);
}

static void host_clCreateProgram(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_clCreateProgram *w = gn_request_message(r);
    struct gn_args_clCreateProgram a = {0};
    a.context_object = gn_request_object(r, GN_KIND_CONTEXT, w->context);
    a.context = gn_driver_of(a.context_object);
    a.name = gn_request_string(r, &w->name);
    if (gn_request_faulty(r))
        return;
    cl_int result = CL_SUCCESS;
    void *made = NULL;
    if (gn_cl(v)->clCreateProgram)
        made = gn_cl(v)->clCreateProgram(a.context, a.name, &result);
    else
        result = CL_INVALID_OPERATION;
    r->result = gn_request_made(r, GN_KIND_PROGRAM, w->id, made, result);
}

static void host_Build(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_Build *w = gn_request_message(r);
    struct gn_args_Build a = {0};
    a.program_object = gn_request_object(r, GN_KIND_PROGRAM, w->program);
    a.program = gn_driver_of(a.program_object);
    a.num_devices = w->num_devices;
    a.device_list = gn_request_objects(r, GN_KIND_DEVICE, &w->device_list, w->num_devices);
    a.options = gn_request_string(r, &w->options);
    a.log = gn_request_out(r, &w->log, gn_times(1, sizeof(cl_uint)));
    r->fault |= w->zero_end != 0;
    if (gn_request_faulty(r))
        return;
    r->result = gn_host_Build(v, r, &a);
    gn_request_changed(r, a.program_object);
}

static void host_clGetFormats(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_clGetFormats *w = gn_request_message(r);
    struct gn_args_clGetFormats a = {0};
    a.context_object = gn_request_object(r, GN_KIND_CONTEXT, w->context);
    a.context = gn_driver_of(a.context_object);
    a.near_object = gn_request_object(r, GN_KIND_MEM, w->near);
    a.near = gn_driver_of(a.near_object);
    a.num_entries = w->num_entries;
    a.formats = gn_request_out(r, &w->formats, gn_times(w->num_entries, sizeof(cl_ulong)));
    a.num_formats = gn_request_out(r, &w->num_formats, gn_times(1, sizeof(cl_uint)));
    r->fault |= w->zero_end != 0;
    if (gn_request_faulty(r))
        return;
    r->result = gn_cl(v)->clGetFormats ? gn_cl(v)->clGetFormats(a.context, a.near, a.num_entries, a.formats, a.num_formats) : CL_INVALID_OPERATION;
}

static void host_clSetProgramConstant(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_clSetProgramConstant *w = gn_request_message(r);
    struct gn_args_clSetProgramConstant a = {0};
    a.program_object = gn_request_object(r, GN_KIND_PROGRAM, w->program);
    a.program = gn_driver_of(a.program_object);
    a.size = w->size;
    a.value = gn_request_in(r, &w->value, gn_times(w->size, 1));
    if (gn_request_faulty(r))
        return;
    r->result = gn_cl(v)->clSetProgramConstant ? gn_cl(v)->clSetProgramConstant(a.program, a.size, a.value) : CL_INVALID_OPERATION;
    gn_request_changed(r, a.program_object);
}

static void host_clSetDevices(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_clSetDevices *w = gn_request_message(r);
    struct gn_args_clSetDevices a = {0};
    a.context_object = gn_request_object(r, GN_KIND_CONTEXT, w->context);
    a.context = gn_driver_of(a.context_object);
    a.num_devices = w->num_devices;
    a.devices = gn_request_objects(r, GN_KIND_DEVICE, &w->devices, w->num_devices);
    r->fault |= w->zero_end != 0;
    if (gn_request_faulty(r))
        return;
    r->result = gn_cl(v)->clSetDevices ? gn_cl(v)->clSetDevices(a.context, a.num_devices, a.devices) : CL_INVALID_OPERATION;
}

static void host_Load(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_Load *w = gn_request_message(r);
    struct gn_args_Load a = {0};
    a.program_object = gn_request_object(r, GN_KIND_PROGRAM, w->program);
    a.program = gn_driver_of(a.program_object);
    a.bytes = gn_request_area(r, &w->bytes, gn_times(w->size, 1));
    a.size = w->size;
    a.sum = gn_request_out(r, &w->sum, gn_times(1, sizeof(cl_ulong)));
    gn_request_need(r, &w->sum);
    if (gn_request_faulty(r))
        return;
    r->result = gn_host_Load(v, r, &a);
}

static void host_Forget(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_Forget *w = gn_request_message(r);
    struct gn_args_Forget a = {0};
    a.object = w->object;
    a.kind = w->kind;
    r->fault |= w->zero_end != 0;
    if (gn_request_faulty(r))
        return;
    r->result = gn_host_Forget(v, r, &a);
}

static void host_Kernels(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_Kernels *w = gn_request_message(r);
    struct gn_args_Kernels a = {0};
    a.program_object = gn_request_object(r, GN_KIND_PROGRAM, w->program);
    a.program = gn_driver_of(a.program_object);
    a.ids = gn_request_in(r, &w->ids, gn_times(w->n, sizeof(cl_ulong)));
    a.n = w->n;
    gn_request_need(r, &w->ids);
    r->fault |= w->zero_end != 0;
    if (gn_request_faulty(r))
        return;
    r->result = gn_host_Kernels(v, r, &a);
}

static void admit_clEnqueueRead(struct gn_vgpu *v, struct gn_command *c)
{
    struct gn_wire_clEnqueueRead *w = gn_command_message(c);
    (void)v;
    (void)w;
    c->fault |= w->zero_end != 0;
    gn_command_ref(c, 0, GN_KIND_MEM, w->buffer);
    c->area = gn_command_area(c, &w->ptr, gn_times(gn_product(w->region), 1));
}

static int32_t submit_clEnqueueRead(struct gn_vgpu *v, struct gn_command *c, void *queue, uint32_t n_waits,
                       void *const *waits, void **event)
{
    const struct gn_wire_clEnqueueRead *w = gn_command_message(c);
    (void)w;
    /* A vendor's table may have holes, or end with an older version. */
    if (!gn_cl(v)->clEnqueueRead)
        return CL_INVALID_OPERATION;
    return gn_cl(v)->clEnqueueRead(queue, gn_driver_of(c->refs[0]), CL_FALSE, gn_zero3, w->present & 1u ? (const size_t *)w->region : NULL, c->area, n_waits, (const cl_event *)waits, (cl_event *)event);
}

static void admit_clEnqueueFill(struct gn_vgpu *v, struct gn_command *c)
{
    struct gn_wire_clEnqueueFill *w = gn_command_message(c);
    (void)v;
    (void)w;
    gn_command_ref(c, 0, GN_KIND_MEM, w->buffer);
    gn_command_in(c, &w->pattern, gn_times(w->pattern_size, 1));
}

static int32_t submit_clEnqueueFill(struct gn_vgpu *v, struct gn_command *c, void *queue, uint32_t n_waits,
                       void *const *waits, void **event)
{
    const struct gn_wire_clEnqueueFill *w = gn_command_message(c);
    (void)w;
    /* A vendor's table may have holes, or end with an older version. */
    if (!gn_cl(v)->clEnqueueFill)
        return CL_INVALID_OPERATION;
    return gn_cl(v)->clEnqueueFill(queue, gn_driver_of(c->refs[0]), gn_command_bytes(c, &w->pattern), w->pattern_size, n_waits, (const cl_event *)waits, (cl_event *)event);
}

static void admit_clEnqueueMigrate(struct gn_vgpu *v, struct gn_command *c)
{
    struct gn_wire_clEnqueueMigrate *w = gn_command_message(c);
    (void)v;
    (void)w;
    c->fault |= w->zero_end != 0;
    gn_command_objects(c, GN_KIND_MEM, &w->mem_objects, w->num_mem_objects);
}

static int32_t submit_clEnqueueMigrate(struct gn_vgpu *v, struct gn_command *c, void *queue, uint32_t n_waits,
                       void *const *waits, void **event)
{
    const struct gn_wire_clEnqueueMigrate *w = gn_command_message(c);
    (void)w;
    /* A vendor's table may have holes, or end with an older version. */
    if (!gn_cl(v)->clEnqueueMigrate)
        return CL_INVALID_OPERATION;
    return gn_cl(v)->clEnqueueMigrate(queue, w->num_mem_objects, (const cl_mem *)gn_command_drivers(c), n_waits, (const cl_event *)waits, (cl_event *)event);
}

static void admit_Launch(struct gn_vgpu *v, struct gn_command *c)
{
    struct gn_wire_Launch *w = gn_command_message(c);
    (void)v;
    (void)w;
    c->fault |= w->zero_end != 0;
    gn_command_ref(c, 0, GN_KIND_PROGRAM, w->program);
    gn_command_in(c, &w->args, gn_times(w->args_bytes, 1));
    if (!c->fault)
        gn_admit_Launch(v, c);
}

static int32_t submit_Launch(struct gn_vgpu *v, struct gn_command *c, void *queue, uint32_t n_waits,
                       void *const *waits, void **event)
{
    const struct gn_wire_Launch *w = gn_command_message(c);
    (void)w;
    return gn_submit_Launch(v, c, queue, n_waits, (const cl_event *)waits, (cl_event *)event);
}

static void admit_Finish(struct gn_vgpu *v, struct gn_command *c)
{
    struct gn_wire_Finish *w = gn_command_message(c);
    (void)v;
    (void)w;
    if (!c->fault)
        gn_admit_Finish(v, c);
}

static int32_t submit_Finish(struct gn_vgpu *v, struct gn_command *c, void *queue, uint32_t n_waits,
                       void *const *waits, void **event)
{
    const struct gn_wire_Finish *w = gn_command_message(c);
    (void)w;
    return gn_submit_Finish(v, c, queue, n_waits, (const cl_event *)waits, (cl_event *)event);
}

static const uint64_t keys_clCreateCommandBufferKHR_properties[] = {CL_COMMAND_BUFFER_FLAGS_KHR};

static void host_clCreateCommandBufferKHR(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_clCreateCommandBufferKHR *w = gn_request_message(r);
    struct gn_args_clCreateCommandBufferKHR a = {0};
    a.queue_object = gn_request_object(r, GN_KIND_QUEUE, w->queue);
    a.queue = gn_driver_of(a.queue_object);
    a.properties = gn_request_list(r, &w->properties);
    if (gn_request_faulty(r))
        return;
    if (!gn_list_knows(a.properties, keys_clCreateCommandBufferKHR_properties, GN_ARRAY_SIZE(keys_clCreateCommandBufferKHR_properties))) {
        r->result = gn_request_made(r, GN_KIND_CMDBUF, w->id, NULL, CL_INVALID_VALUE);
        return;
    }
    cl_int result = CL_SUCCESS;
    void *made = NULL;
    if (gn_extensions(v)->clCreateCommandBufferKHR)
        made = gn_extensions(v)->clCreateCommandBufferKHR(a.queue, a.properties, &result);
    else
        result = CL_INVALID_OPERATION;
    r->result = gn_request_made(r, GN_KIND_CMDBUF, w->id, made, result);
}

static void host_clCommandBarrierKHR(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_clCommandBarrierKHR *w = gn_request_message(r);
    struct gn_args_clCommandBarrierKHR a = {0};
    a.command_buffer_object = gn_request_object(r, GN_KIND_CMDBUF, w->command_buffer);
    a.command_buffer = gn_driver_of(a.command_buffer_object);
    a.sync_point = gn_request_out(r, &w->sync_point, gn_times(1, sizeof(cl_uint)));
    if (gn_request_faulty(r))
        return;
    r->result = gn_extensions(v)->clCommandBarrierKHR ? gn_extensions(v)->clCommandBarrierKHR(a.command_buffer, NULL, a.sync_point, NULL) : CL_INVALID_OPERATION;
    gn_request_changed(r, a.command_buffer_object);
}

static void host_clCommandFillKHR(struct gn_vgpu *v, struct gn_request *r)
{
    const struct gn_wire_clCommandFillKHR *w = gn_request_message(r);
    struct gn_args_clCommandFillKHR a = {0};
    a.command_buffer_object = gn_request_object(r, GN_KIND_CMDBUF, w->command_buffer);
    a.command_buffer = gn_driver_of(a.command_buffer_object);
    a.buffer_object = gn_request_object(r, GN_KIND_MEM, w->buffer);
    a.buffer = gn_driver_of(a.buffer_object);
    if (gn_request_faulty(r))
        return;
    r->result = gn_host_clCommandFillKHR(v, r, &a);
    gn_request_changed(r, a.command_buffer_object);
}

static void admit_EnqueueCommandBuffer(struct gn_vgpu *v, struct gn_command *c)
{
    struct gn_wire_EnqueueCommandBuffer *w = gn_command_message(c);
    (void)v;
    (void)w;
    gn_command_ref(c, 0, GN_KIND_CMDBUF, w->command_buffer);
    if (!c->fault)
        gn_admit_EnqueueCommandBuffer(v, c);
}

static int32_t submit_EnqueueCommandBuffer(struct gn_vgpu *v, struct gn_command *c, void *queue, uint32_t n_waits,
                       void *const *waits, void **event)
{
    const struct gn_wire_EnqueueCommandBuffer *w = gn_command_message(c);
    (void)w;
    return gn_submit_EnqueueCommandBuffer(v, c, queue, n_waits, (const cl_event *)waits, (cl_event *)event);
}

const struct gn_request_class gn_tiny_requests[GN_OP_MAX] = {
    [GN_OP_clGetDeviceInfo] = {.name = "clGetDeviceInfo", .fixed_bytes = sizeof(struct gn_wire_clGetDeviceInfo), .serve = host_clGetDeviceInfo},
    [GN_OP_Context] = {.name = "Context", .fixed_bytes = sizeof(struct gn_wire_Context), .serve = host_Context, .creates = GN_KIND_CONTEXT},
    [GN_OP_clCreateBuffer] = {.name = "clCreateBuffer", .fixed_bytes = sizeof(struct gn_wire_clCreateBuffer), .serve = host_clCreateBuffer, .creates = GN_KIND_MEM, .parents = {offsetof(struct gn_wire_clCreateBuffer, context)}, .n_parents = 1},
    [GN_OP_clCreateQueue] = {.name = "clCreateQueue", .fixed_bytes = sizeof(struct gn_wire_clCreateQueue), .serve = host_clCreateQueue, .creates = GN_KIND_QUEUE, .parents = {offsetof(struct gn_wire_clCreateQueue, context)}, .n_parents = 1},
    [GN_OP_Pipe] = {.name = "Pipe", .fixed_bytes = sizeof(struct gn_wire_Pipe), .serve = host_Pipe, .creates = GN_KIND_MEM, .parents = {offsetof(struct gn_wire_Pipe, context)}, .n_parents = 1},
    [GN_OP_clCreateProgram] = {.name = "clCreateProgram", .fixed_bytes = sizeof(struct gn_wire_clCreateProgram), .serve = host_clCreateProgram, .creates = GN_KIND_PROGRAM, .parents = {offsetof(struct gn_wire_clCreateProgram, context)}, .n_parents = 1},
    [GN_OP_Build] = {.name = "Build", .fixed_bytes = sizeof(struct gn_wire_Build), .serve = host_Build, .slow = true},
    [GN_OP_clGetFormats] = {.name = "clGetFormats", .fixed_bytes = sizeof(struct gn_wire_clGetFormats), .serve = host_clGetFormats},
    [GN_OP_clSetProgramConstant] = {.name = "clSetProgramConstant", .fixed_bytes = sizeof(struct gn_wire_clSetProgramConstant), .serve = host_clSetProgramConstant, .key_at = offsetof(struct gn_wire_clSetProgramConstant, size), .key_bytes = sizeof(((struct gn_wire_clSetProgramConstant *)0)->size)},
    [GN_OP_clSetDevices] = {.name = "clSetDevices", .fixed_bytes = sizeof(struct gn_wire_clSetDevices), .serve = host_clSetDevices},
    [GN_OP_Load] = {.name = "Load", .fixed_bytes = sizeof(struct gn_wire_Load), .serve = host_Load},
    [GN_OP_Forget] = {.name = "Forget", .fixed_bytes = sizeof(struct gn_wire_Forget), .serve = host_Forget, .quiet = true},
    [GN_OP_Kernels] = {.name = "Kernels", .fixed_bytes = sizeof(struct gn_wire_Kernels), .serve = host_Kernels, .parents = {offsetof(struct gn_wire_Kernels, program)}, .n_parents = 1},
    [GN_OP_clEnqueueRead] = {.name = "clEnqueueRead", .fixed_bytes = sizeof(struct gn_wire_clEnqueueRead), .admit = admit_clEnqueueRead, .submit = submit_clEnqueueRead, .writes = 0, .brings = true},
    [GN_OP_clEnqueueFill] = {.name = "clEnqueueFill", .fixed_bytes = sizeof(struct gn_wire_clEnqueueFill), .admit = admit_clEnqueueFill, .submit = submit_clEnqueueFill, .writes = 1, .judge = gn_judge_clEnqueueFill},
    [GN_OP_clEnqueueMigrate] = {.name = "clEnqueueMigrate", .fixed_bytes = sizeof(struct gn_wire_clEnqueueMigrate), .admit = admit_clEnqueueMigrate, .submit = submit_clEnqueueMigrate, .writes = 0, .ordered = true, .fence = true},
    [GN_OP_Launch] = {.name = "Launch", .fixed_bytes = sizeof(struct gn_wire_Launch), .admit = admit_Launch, .submit = submit_Launch, .writes = GN_WRITES_ARGS},
    [GN_OP_Finish] = {.name = "Finish", .fixed_bytes = sizeof(struct gn_wire_Finish), .admit = admit_Finish, .submit = submit_Finish, .writes = 0, .ordered = true},
    [GN_OP_clCreateCommandBufferKHR] = {.name = "clCreateCommandBufferKHR", .fixed_bytes = sizeof(struct gn_wire_clCreateCommandBufferKHR), .serve = host_clCreateCommandBufferKHR, .creates = GN_KIND_CMDBUF, .parents = {offsetof(struct gn_wire_clCreateCommandBufferKHR, queue)}, .n_parents = 1},
    [GN_OP_clCommandBarrierKHR] = {.name = "clCommandBarrierKHR", .fixed_bytes = sizeof(struct gn_wire_clCommandBarrierKHR), .serve = host_clCommandBarrierKHR, .adds = true},
    [GN_OP_clCommandFillKHR] = {.name = "clCommandFillKHR", .fixed_bytes = sizeof(struct gn_wire_clCommandFillKHR), .serve = host_clCommandFillKHR, .adds = true},
    [GN_OP_EnqueueCommandBuffer] = {.name = "EnqueueCommandBuffer", .fixed_bytes = sizeof(struct gn_wire_EnqueueCommandBuffer), .admit = admit_EnqueueCommandBuffer, .submit = submit_EnqueueCommandBuffer, .writes = 1, .many = true},
};

void gn_extensions_find(struct gn_extensions *e, void *(*find)(void *ctx, const char *name), void *ctx)
{
    e->clCreateCommandBufferKHR = (__typeof__(e->clCreateCommandBufferKHR))(uintptr_t)find(ctx, "clCreateCommandBufferKHR");
    e->clReleaseCommandBufferKHR = (__typeof__(e->clReleaseCommandBufferKHR))(uintptr_t)find(ctx, "clReleaseCommandBufferKHR");
    e->clCommandBarrierKHR = (__typeof__(e->clCommandBarrierKHR))(uintptr_t)find(ctx, "clCommandBarrierKHR");
    e->clCommandFillKHR = (__typeof__(e->clCommandFillKHR))(uintptr_t)find(ctx, "clCommandFillKHR");
}
