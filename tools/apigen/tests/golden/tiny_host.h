/* SPDX-License-Identifier: Apache-2.0 */
/* Written by apigen: do not edit. */
#ifndef GN_TINY_HOST_H
#define GN_TINY_HOST_H

#include "vgpu/opencl/opencl_host_rt.h"
#include "tiny_wire.h"

struct gn_args_clGetDeviceInfo {
    cl_device_id device;
    struct gn_vobject *device_object;
    cl_device_info param_name;
    size_t param_value_size;
    void *param_value;
    size_t *param_value_size_ret;
};

struct gn_args_Context {
    cl_uint num_devices;
    const cl_device_id *devices;
};

struct gn_args_clCreateBuffer {
    cl_context context;
    struct gn_vobject *context_object;
    const cl_properties *properties;
    size_t size;
};

struct gn_args_clCreateQueue {
    cl_context context;
    struct gn_vobject *context_object;
    const cl_properties *properties;
};

struct gn_args_Pipe {
    cl_context context;
    struct gn_vobject *context_object;
    const cl_properties *properties;
};

struct gn_args_clCreateProgram {
    cl_context context;
    struct gn_vobject *context_object;
    const char *name;
};

struct gn_args_Build {
    cl_program program;
    struct gn_vobject *program_object;
    cl_uint num_devices;
    const cl_device_id *device_list;
    const char *options;
    cl_uint *log;
};

struct gn_args_clGetFormats {
    cl_context context;
    struct gn_vobject *context_object;
    cl_mem near;
    struct gn_vobject *near_object;
    cl_uint num_entries;
    cl_ulong *formats;
    cl_uint *num_formats;
};

struct gn_args_clSetProgramConstant {
    cl_program program;
    struct gn_vobject *program_object;
    size_t size;
    const void *value;
};

struct gn_args_clSetDevices {
    cl_context context;
    struct gn_vobject *context_object;
    cl_uint num_devices;
    const cl_device_id *devices;
};

struct gn_args_Load {
    cl_program program;
    struct gn_vobject *program_object;
    const void *bytes;
    size_t size;
    cl_ulong *sum;
};

struct gn_args_Forget {
    cl_ulong object;
    cl_uint kind;
};

struct gn_args_Kernels {
    cl_program program;
    struct gn_vobject *program_object;
    cl_ulong *ids;
    cl_uint n;
};

struct gn_args_clCreateCommandBufferKHR {
    cl_command_queue queue;
    struct gn_vobject *queue_object;
    const cl_properties *properties;
};

struct gn_args_clCommandBarrierKHR {
    cl_command_buffer_khr command_buffer;
    struct gn_vobject *command_buffer_object;
    cl_uint *sync_point;
};

struct gn_args_clCommandFillKHR {
    cl_command_buffer_khr command_buffer;
    struct gn_vobject *command_buffer_object;
    cl_mem buffer;
    struct gn_vobject *buffer_object;
};

/* Handwritten handlers. A creating one returns the driver's object and sets *result. */
void *gn_host_Context(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Context *a, cl_int *result);
void *gn_host_Pipe(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Pipe *a, cl_int *result);
cl_int gn_host_Build(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Build *a);
cl_int gn_host_Load(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Load *a);
cl_int gn_host_Forget(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Forget *a);
cl_int gn_host_Kernels(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Kernels *a);
void gn_admit_Launch(struct gn_vgpu *v, struct gn_command *c);
int32_t gn_submit_Launch(struct gn_vgpu *v, struct gn_command *c, cl_command_queue queue, cl_uint n_waits, const cl_event *waits, cl_event *event);
void gn_admit_Finish(struct gn_vgpu *v, struct gn_command *c);
int32_t gn_submit_Finish(struct gn_vgpu *v, struct gn_command *c, cl_command_queue queue, cl_uint n_waits, const cl_event *waits, cl_event *event);
cl_int gn_host_clCommandFillKHR(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_clCommandFillKHR *a);
void gn_admit_EnqueueCommandBuffer(struct gn_vgpu *v, struct gn_command *c);
int32_t gn_submit_EnqueueCommandBuffer(struct gn_vgpu *v, struct gn_command *c, cl_command_queue queue, cl_uint n_waits, const cl_event *waits, cl_event *event);

/* Whether an answer to that question is known by type: the driver is asked no other. */
bool gn_asks_clGetDeviceInfo(cl_device_info param_name);

/* What a command that has to wait would be answered, as far as can be told: 0, or an error. */
int32_t gn_judge_clEnqueueFill(struct gn_vgpu *v, struct gn_command *c);

/* The driver's entry points of extensions, which are asked for by name; NULL: it has none. */
struct gn_extensions {
    cl_command_buffer_khr(CL_API_CALL *clCreateCommandBufferKHR)(cl_command_queue queue, const cl_properties *properties, cl_int *errcode_ret);
    cl_int(CL_API_CALL *clReleaseCommandBufferKHR)(cl_command_buffer_khr command_buffer);
    cl_int(CL_API_CALL *clCommandBarrierKHR)(cl_command_buffer_khr command_buffer, cl_command_queue command_queue, cl_uint *sync_point, cl_mutable_command_khr *mutable_handle);
    cl_int(CL_API_CALL *clCommandFillKHR)(cl_command_buffer_khr command_buffer, cl_command_queue command_queue, cl_mem buffer, cl_mutable_command_khr *mutable_handle);
};

void gn_extensions_find(struct gn_extensions *e, void *(*find)(void *ctx, const char *name), void *ctx);

extern const struct gn_request_class gn_tiny_requests[GN_OP_MAX];

#endif
