/* SPDX-License-Identifier: Apache-2.0 */
/* Written by apigen: do not edit. */
#ifndef GN_TINY_WIRE_H
#define GN_TINY_WIRE_H

#include "wire/wire.h"

#include <assert.h>
#include <stddef.h>

enum gn_kind {
    GN_KIND_DEVICE = 1,
    GN_KIND_CONTEXT = 2,
    GN_KIND_QUEUE = 3,
    GN_KIND_MEM = 4,
    GN_KIND_PROGRAM = 5,
    GN_KIND_EVENT = 6,
    GN_KIND_CMDBUF = 7,
    GN_KIND_MAX = 8
};

enum gn_tiny_op {
    GN_OP_clGetDeviceInfo = 2,
    GN_OP_Context = 11,
    GN_OP_clCreateBuffer = 12,
    GN_OP_clCreateQueue = 21,
    GN_OP_Pipe = 22,
    GN_OP_clCreateProgram = 13,
    GN_OP_Build = 14,
    GN_OP_clGetFormats = 15,
    GN_OP_clSetProgramConstant = 16,
    GN_OP_clSetDevices = 17,
    GN_OP_Load = 18,
    GN_OP_Forget = 19,
    GN_OP_Kernels = 20,
    GN_OP_clEnqueueRead = 30,
    GN_OP_clEnqueueFill = 31,
    GN_OP_clEnqueueMigrate = 32,
    GN_OP_Launch = 33,
    GN_OP_Finish = 34,
    GN_OP_clCreateCommandBufferKHR = 40,
    GN_OP_clCommandBarrierKHR = 42,
    GN_OP_clCommandFillKHR = 43,
    GN_OP_EnqueueCommandBuffer = 44,
    GN_OP_MAX = 45
};

struct gn_wire_clGetDeviceInfo {
    struct gn_msg msg;
    uint64_t device; /* device */
    uint64_t param_value_size; /* size_t */
    struct gn_span param_value; /* out */
    struct gn_span param_value_size_ret; /* out */
    uint32_t param_name; /* cl_device_info */
    uint32_t zero_end;
};
static_assert(offsetof(struct gn_wire_clGetDeviceInfo, device) == 16, "wire");
static_assert(offsetof(struct gn_wire_clGetDeviceInfo, param_value_size) == 24, "wire");
static_assert(offsetof(struct gn_wire_clGetDeviceInfo, param_value) == 32, "wire");
static_assert(offsetof(struct gn_wire_clGetDeviceInfo, param_value_size_ret) == 48, "wire");
static_assert(offsetof(struct gn_wire_clGetDeviceInfo, param_name) == 64, "wire");
static_assert(offsetof(struct gn_wire_clGetDeviceInfo, zero_end) == 68, "wire");
static_assert(sizeof(struct gn_wire_clGetDeviceInfo) == 72, "wire");
static_assert(72 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_Context {
    struct gn_msg msg;
    uint64_t id; /* what the new object is called */
    struct gn_span devices; /* handles */
    uint32_t num_devices; /* cl_uint */
    uint32_t zero_end;
};
static_assert(offsetof(struct gn_wire_Context, id) == 16, "wire");
static_assert(offsetof(struct gn_wire_Context, devices) == 24, "wire");
static_assert(offsetof(struct gn_wire_Context, num_devices) == 40, "wire");
static_assert(offsetof(struct gn_wire_Context, zero_end) == 44, "wire");
static_assert(sizeof(struct gn_wire_Context) == 48, "wire");
static_assert(48 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_clCreateBuffer {
    struct gn_msg msg;
    uint64_t id; /* what the new object is called */
    uint64_t context; /* context */
    struct gn_span properties; /* list */
    uint64_t size; /* size_t */
};
static_assert(offsetof(struct gn_wire_clCreateBuffer, id) == 16, "wire");
static_assert(offsetof(struct gn_wire_clCreateBuffer, context) == 24, "wire");
static_assert(offsetof(struct gn_wire_clCreateBuffer, properties) == 32, "wire");
static_assert(offsetof(struct gn_wire_clCreateBuffer, size) == 48, "wire");
static_assert(sizeof(struct gn_wire_clCreateBuffer) == 56, "wire");
static_assert(56 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_clCreateQueue {
    struct gn_msg msg;
    uint64_t id; /* what the new object is called */
    uint64_t context; /* context */
    struct gn_span properties; /* list */
};
static_assert(offsetof(struct gn_wire_clCreateQueue, id) == 16, "wire");
static_assert(offsetof(struct gn_wire_clCreateQueue, context) == 24, "wire");
static_assert(offsetof(struct gn_wire_clCreateQueue, properties) == 32, "wire");
static_assert(sizeof(struct gn_wire_clCreateQueue) == 48, "wire");
static_assert(48 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_Pipe {
    struct gn_msg msg;
    uint64_t id; /* what the new object is called */
    uint64_t context; /* context */
    struct gn_span properties; /* list */
};
static_assert(offsetof(struct gn_wire_Pipe, id) == 16, "wire");
static_assert(offsetof(struct gn_wire_Pipe, context) == 24, "wire");
static_assert(offsetof(struct gn_wire_Pipe, properties) == 32, "wire");
static_assert(sizeof(struct gn_wire_Pipe) == 48, "wire");
static_assert(48 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_clCreateProgram {
    struct gn_msg msg;
    uint64_t id; /* what the new object is called */
    uint64_t context; /* context */
    struct gn_span name; /* string */
};
static_assert(offsetof(struct gn_wire_clCreateProgram, id) == 16, "wire");
static_assert(offsetof(struct gn_wire_clCreateProgram, context) == 24, "wire");
static_assert(offsetof(struct gn_wire_clCreateProgram, name) == 32, "wire");
static_assert(sizeof(struct gn_wire_clCreateProgram) == 48, "wire");
static_assert(48 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_Build {
    struct gn_msg msg;
    uint64_t program; /* program */
    struct gn_span device_list; /* handles */
    struct gn_span options; /* string */
    struct gn_span log; /* out */
    uint32_t num_devices; /* cl_uint */
    uint32_t zero_end;
};
static_assert(offsetof(struct gn_wire_Build, program) == 16, "wire");
static_assert(offsetof(struct gn_wire_Build, device_list) == 24, "wire");
static_assert(offsetof(struct gn_wire_Build, options) == 40, "wire");
static_assert(offsetof(struct gn_wire_Build, log) == 56, "wire");
static_assert(offsetof(struct gn_wire_Build, num_devices) == 72, "wire");
static_assert(offsetof(struct gn_wire_Build, zero_end) == 76, "wire");
static_assert(sizeof(struct gn_wire_Build) == 80, "wire");
static_assert(80 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_clGetFormats {
    struct gn_msg msg;
    uint64_t context; /* context */
    uint64_t near; /* mem */
    struct gn_span formats; /* out */
    struct gn_span num_formats; /* out */
    uint32_t num_entries; /* cl_uint */
    uint32_t zero_end;
};
static_assert(offsetof(struct gn_wire_clGetFormats, context) == 16, "wire");
static_assert(offsetof(struct gn_wire_clGetFormats, near) == 24, "wire");
static_assert(offsetof(struct gn_wire_clGetFormats, formats) == 32, "wire");
static_assert(offsetof(struct gn_wire_clGetFormats, num_formats) == 48, "wire");
static_assert(offsetof(struct gn_wire_clGetFormats, num_entries) == 64, "wire");
static_assert(offsetof(struct gn_wire_clGetFormats, zero_end) == 68, "wire");
static_assert(sizeof(struct gn_wire_clGetFormats) == 72, "wire");
static_assert(72 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_clSetProgramConstant {
    struct gn_msg msg;
    uint64_t program; /* program */
    uint64_t size; /* size_t */
    struct gn_span value; /* in */
};
static_assert(offsetof(struct gn_wire_clSetProgramConstant, program) == 16, "wire");
static_assert(offsetof(struct gn_wire_clSetProgramConstant, size) == 24, "wire");
static_assert(offsetof(struct gn_wire_clSetProgramConstant, value) == 32, "wire");
static_assert(sizeof(struct gn_wire_clSetProgramConstant) == 48, "wire");
static_assert(48 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_clSetDevices {
    struct gn_msg msg;
    uint64_t context; /* context */
    struct gn_span devices; /* handles */
    uint32_t num_devices; /* cl_uint */
    uint32_t zero_end;
};
static_assert(offsetof(struct gn_wire_clSetDevices, context) == 16, "wire");
static_assert(offsetof(struct gn_wire_clSetDevices, devices) == 24, "wire");
static_assert(offsetof(struct gn_wire_clSetDevices, num_devices) == 40, "wire");
static_assert(offsetof(struct gn_wire_clSetDevices, zero_end) == 44, "wire");
static_assert(sizeof(struct gn_wire_clSetDevices) == 48, "wire");
static_assert(48 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_Load {
    struct gn_msg msg;
    uint64_t program; /* program */
    struct gn_area_ref bytes; /* size */
    uint64_t size; /* size_t */
    struct gn_span sum; /* out */
};
static_assert(offsetof(struct gn_wire_Load, program) == 16, "wire");
static_assert(offsetof(struct gn_wire_Load, bytes) == 24, "wire");
static_assert(offsetof(struct gn_wire_Load, size) == 40, "wire");
static_assert(offsetof(struct gn_wire_Load, sum) == 48, "wire");
static_assert(sizeof(struct gn_wire_Load) == 64, "wire");
static_assert(64 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_Forget {
    struct gn_msg msg;
    uint64_t object; /* cl_ulong */
    uint32_t kind; /* cl_uint */
    uint32_t zero_end;
};
static_assert(offsetof(struct gn_wire_Forget, object) == 16, "wire");
static_assert(offsetof(struct gn_wire_Forget, kind) == 24, "wire");
static_assert(offsetof(struct gn_wire_Forget, zero_end) == 28, "wire");
static_assert(sizeof(struct gn_wire_Forget) == 32, "wire");
static_assert(32 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_Kernels {
    struct gn_msg msg;
    uint64_t program; /* program */
    struct gn_span ids; /* in */
    uint32_t n; /* cl_uint */
    uint32_t zero_end;
};
static_assert(offsetof(struct gn_wire_Kernels, program) == 16, "wire");
static_assert(offsetof(struct gn_wire_Kernels, ids) == 24, "wire");
static_assert(offsetof(struct gn_wire_Kernels, n) == 40, "wire");
static_assert(offsetof(struct gn_wire_Kernels, zero_end) == 44, "wire");
static_assert(sizeof(struct gn_wire_Kernels) == 48, "wire");
static_assert(48 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_clEnqueueRead {
    struct gn_msg msg;
    struct gn_command_head head;
    uint64_t buffer; /* mem */
    uint64_t region[3]; /* vec */
    struct gn_area_ref ptr; /* product(region) */
    uint32_t present; /* bit i: vector i was not NULL */
    uint32_t zero_end;
};
static_assert(offsetof(struct gn_wire_clEnqueueRead, head) == 16, "wire");
static_assert(offsetof(struct gn_wire_clEnqueueRead, buffer) == 48, "wire");
static_assert(offsetof(struct gn_wire_clEnqueueRead, region) == 56, "wire");
static_assert(offsetof(struct gn_wire_clEnqueueRead, ptr) == 80, "wire");
static_assert(offsetof(struct gn_wire_clEnqueueRead, present) == 96, "wire");
static_assert(offsetof(struct gn_wire_clEnqueueRead, zero_end) == 100, "wire");
static_assert(sizeof(struct gn_wire_clEnqueueRead) == 104, "wire");
static_assert(104 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_clEnqueueFill {
    struct gn_msg msg;
    struct gn_command_head head;
    uint64_t buffer; /* mem */
    struct gn_span pattern; /* in */
    uint64_t pattern_size; /* size_t */
};
static_assert(offsetof(struct gn_wire_clEnqueueFill, head) == 16, "wire");
static_assert(offsetof(struct gn_wire_clEnqueueFill, buffer) == 48, "wire");
static_assert(offsetof(struct gn_wire_clEnqueueFill, pattern) == 56, "wire");
static_assert(offsetof(struct gn_wire_clEnqueueFill, pattern_size) == 72, "wire");
static_assert(sizeof(struct gn_wire_clEnqueueFill) == 80, "wire");
static_assert(80 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_clEnqueueMigrate {
    struct gn_msg msg;
    struct gn_command_head head;
    struct gn_span mem_objects; /* handles */
    uint32_t num_mem_objects; /* cl_uint */
    uint32_t zero_end;
};
static_assert(offsetof(struct gn_wire_clEnqueueMigrate, head) == 16, "wire");
static_assert(offsetof(struct gn_wire_clEnqueueMigrate, mem_objects) == 48, "wire");
static_assert(offsetof(struct gn_wire_clEnqueueMigrate, num_mem_objects) == 64, "wire");
static_assert(offsetof(struct gn_wire_clEnqueueMigrate, zero_end) == 68, "wire");
static_assert(sizeof(struct gn_wire_clEnqueueMigrate) == 72, "wire");
static_assert(72 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_Launch {
    struct gn_msg msg;
    struct gn_command_head head;
    uint64_t program; /* program */
    struct gn_span args; /* in */
    uint32_t args_bytes; /* cl_uint */
    uint32_t zero_end;
};
static_assert(offsetof(struct gn_wire_Launch, head) == 16, "wire");
static_assert(offsetof(struct gn_wire_Launch, program) == 48, "wire");
static_assert(offsetof(struct gn_wire_Launch, args) == 56, "wire");
static_assert(offsetof(struct gn_wire_Launch, args_bytes) == 72, "wire");
static_assert(offsetof(struct gn_wire_Launch, zero_end) == 76, "wire");
static_assert(sizeof(struct gn_wire_Launch) == 80, "wire");
static_assert(80 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_Finish {
    struct gn_msg msg;
    struct gn_command_head head;
};
static_assert(offsetof(struct gn_wire_Finish, head) == 16, "wire");
static_assert(sizeof(struct gn_wire_Finish) == 48, "wire");
static_assert(48 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_clCreateCommandBufferKHR {
    struct gn_msg msg;
    uint64_t id; /* what the new object is called */
    uint64_t queue; /* queue */
    struct gn_span properties; /* list */
};
static_assert(offsetof(struct gn_wire_clCreateCommandBufferKHR, id) == 16, "wire");
static_assert(offsetof(struct gn_wire_clCreateCommandBufferKHR, queue) == 24, "wire");
static_assert(offsetof(struct gn_wire_clCreateCommandBufferKHR, properties) == 32, "wire");
static_assert(sizeof(struct gn_wire_clCreateCommandBufferKHR) == 48, "wire");
static_assert(48 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_clCommandBarrierKHR {
    struct gn_msg msg;
    uint64_t command_buffer; /* cmdbuf */
    struct gn_span sync_point; /* out */
};
static_assert(offsetof(struct gn_wire_clCommandBarrierKHR, command_buffer) == 16, "wire");
static_assert(offsetof(struct gn_wire_clCommandBarrierKHR, sync_point) == 24, "wire");
static_assert(sizeof(struct gn_wire_clCommandBarrierKHR) == 40, "wire");
static_assert(40 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_clCommandFillKHR {
    struct gn_msg msg;
    uint64_t command_buffer; /* cmdbuf */
    uint64_t buffer; /* mem */
};
static_assert(offsetof(struct gn_wire_clCommandFillKHR, command_buffer) == 16, "wire");
static_assert(offsetof(struct gn_wire_clCommandFillKHR, buffer) == 24, "wire");
static_assert(sizeof(struct gn_wire_clCommandFillKHR) == 32, "wire");
static_assert(32 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

struct gn_wire_EnqueueCommandBuffer {
    struct gn_msg msg;
    struct gn_command_head head;
    uint64_t command_buffer; /* cmdbuf */
};
static_assert(offsetof(struct gn_wire_EnqueueCommandBuffer, head) == 16, "wire");
static_assert(offsetof(struct gn_wire_EnqueueCommandBuffer, command_buffer) == 48, "wire");
static_assert(sizeof(struct gn_wire_EnqueueCommandBuffer) == 56, "wire");
static_assert(56 <= GN_MSG_MAX_BYTES, "a message fits in the ring");

#endif
