/* SPDX-License-Identifier: Apache-2.0 */
/* Written by apigen: do not edit. */
#ifndef GN_TINY_GUEST_H
#define GN_TINY_GUEST_H

#include "guest/opencl/opencl_guest_rt.h"

/* Requests: encode, send, wait. */
cl_int gn_send_clGetDeviceInfo(struct gn_session *session, cl_device_id device, cl_device_info param_name, size_t param_value_size, void *param_value, size_t *param_value_size_ret);
cl_int gn_send_Context(struct gn_session *session, struct gn_object *made, cl_uint num_devices, const cl_device_id *devices);
cl_int gn_send_clCreateBuffer(struct gn_session *session, struct gn_object *made, cl_context context, const cl_properties *properties, size_t size);
cl_int gn_send_clCreateQueue(struct gn_session *session, struct gn_object *made, cl_context context, const cl_properties *properties);
cl_int gn_send_Pipe(struct gn_session *session, struct gn_object *made, cl_context context, const cl_properties *properties);
cl_int gn_send_clCreateProgram(struct gn_session *session, struct gn_object *made, cl_context context, const char *name);
cl_int gn_send_Build(struct gn_session *session, cl_program program, cl_uint num_devices, const cl_device_id *device_list, const char *options, cl_uint *log);
cl_int gn_send_clGetFormats(struct gn_session *session, cl_context context, cl_mem near, cl_uint num_entries, cl_ulong *formats, cl_uint *num_formats);
cl_int gn_send_clSetProgramConstant(struct gn_session *session, cl_program program, size_t size, const void *value);
cl_int gn_send_clSetDevices(struct gn_session *session, cl_context context, cl_uint num_devices, const cl_device_id *devices);
cl_int gn_send_Load(struct gn_session *session, cl_program program, const struct gn_area_ref *bytes, size_t size, cl_ulong *sum);
void gn_send_Forget(struct gn_session *session, cl_ulong object, cl_uint kind);
cl_int gn_send_Kernels(struct gn_session *session, cl_program program, cl_ulong *ids, cl_uint n);
cl_int gn_send_clEnqueueRead(struct gn_session *session, cl_command_queue command_queue, cl_mem buffer, const size_t *region, const struct gn_area_ref *ptr, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, const struct gn_command_show *show);
cl_int gn_send_clEnqueueFill(struct gn_session *session, cl_command_queue command_queue, cl_mem buffer, const void *pattern, size_t pattern_size, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, const struct gn_command_show *show);
cl_int gn_send_clEnqueueMigrate(struct gn_session *session, cl_command_queue command_queue, cl_uint num_mem_objects, const cl_mem *mem_objects, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, const struct gn_command_show *show);
cl_int gn_send_Launch(struct gn_session *session, cl_command_queue command_queue, cl_program program, const void *args, cl_uint args_bytes, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, const struct gn_command_show *show);
cl_int gn_send_Finish(struct gn_session *session, cl_command_queue command_queue, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, const struct gn_command_show *show);
cl_int gn_send_clCreateCommandBufferKHR(struct gn_session *session, struct gn_object *made, cl_command_queue queue, const cl_properties *properties);
cl_int gn_send_clCommandBarrierKHR(struct gn_session *session, cl_command_buffer_khr command_buffer, cl_uint *sync_point);
cl_int gn_send_clCommandFillKHR(struct gn_session *session, cl_command_buffer_khr command_buffer, cl_mem buffer);
cl_int gn_send_EnqueueCommandBuffer(struct gn_session *session, cl_command_queue command_queue, cl_command_buffer_khr command_buffer, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, const struct gn_command_show *show);

/* Entry points: generated, or handwritten where the description says local or stub. */
cl_int CL_API_CALL gn_clGetDeviceIDs(cl_uint num_entries, cl_device_id *devices);
cl_int CL_API_CALL gn_clGetDeviceInfo(cl_device_id device, cl_device_info param_name, size_t param_value_size, void *param_value, size_t *param_value_size_ret);
cl_int CL_API_CALL gn_clRetainDevice(cl_device_id device);
cl_int CL_API_CALL gn_clReleaseDevice(cl_device_id device);
cl_int CL_API_CALL gn_clRetainDeviceEXT(cl_device_id device);
cl_context CL_API_CALL gn_clCreateContext(const cl_device_id *devices, void(CL_CALLBACK *pfn_notify)(const char *, void *), void *user_data, cl_int *errcode_ret);
cl_mem CL_API_CALL gn_clCreateBuffer(cl_context context, const cl_properties *properties, size_t size, cl_int *errcode_ret);
cl_command_queue CL_API_CALL gn_clCreateQueue(cl_context context, const cl_properties *properties, cl_int *errcode_ret);
cl_program CL_API_CALL gn_clCreateProgram(cl_context context, const char *name, cl_int *errcode_ret);
cl_int CL_API_CALL gn_clGetFormats(cl_context context, cl_mem near, cl_uint num_entries, cl_ulong *formats, cl_uint *num_formats);
cl_int CL_API_CALL gn_clSetProgramConstant(cl_program program, size_t size, const void *value);
cl_int CL_API_CALL gn_clSetDevices(cl_context context, cl_uint num_devices, const cl_device_id *devices);
cl_int CL_API_CALL gn_clEnqueueRead(cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_read, const size_t *host_origin, const size_t *region, void *ptr, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event);
cl_int CL_API_CALL gn_clEnqueueFill(cl_command_queue command_queue, cl_mem buffer, const void *pattern, size_t pattern_size, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event);
cl_int CL_API_CALL gn_clEnqueueMigrate(cl_command_queue command_queue, cl_uint num_mem_objects, const cl_mem *mem_objects, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event);
cl_command_buffer_khr CL_API_CALL gn_clCreateCommandBufferKHR(cl_command_queue queue, const cl_properties *properties, cl_int *errcode_ret);
cl_int CL_API_CALL gn_clReleaseCommandBufferKHR(cl_command_buffer_khr command_buffer);
cl_int CL_API_CALL gn_clCommandBarrierKHR(cl_command_buffer_khr command_buffer, cl_command_queue command_queue, cl_uint *sync_point, cl_mutable_command_khr *mutable_handle);
cl_int CL_API_CALL gn_clCommandFillKHR(cl_command_buffer_khr command_buffer, cl_command_queue command_queue, cl_mem buffer, cl_mutable_command_khr *mutable_handle);

/* What generated entry points expect from handwritten files. */
cl_int gn_local_clGetDeviceInfo(cl_device_id device, cl_device_info param_name, size_t param_value_size, void *param_value, size_t *param_value_size_ret);
cl_int gn_made_clCreateBuffer(struct gn_object *made, cl_context context, const cl_properties *properties, size_t size);
int gn_check_clEnqueueFill(cl_command_queue command_queue, cl_mem buffer, const void *pattern, size_t pattern_size);

/* Where a message's inputs are named: offsets of its gn_spans, the last one 0. */
const uint16_t *gn_tiny_inputs(uint16_t op);

extern struct _cl_icd_dispatch gn_tiny_dispatch;

/* The function behind the name of an entry point that is in the table, or NULL. */
void *gn_tiny_function(const char *name);
/* The function behind the name of an extension's entry point, and which extension that is; or NULL. */
void *gn_tiny_extension_function(const char *name, const char **ret_extension);

#endif
