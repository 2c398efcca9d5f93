/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_TESTS_ICD_SLOTS_H
#define GN_TESTS_ICD_SLOTS_H

#include <CL/cl_icd.h>
#include <assert.h>
#include <stdint.h>

/*
 * Every slot of the dispatch table in its order, marked CORE, or INTEROP where a driver without
 * that interoperation may refuse it. The order is checked where the list is used. Slots are only
 * ever appended: newer headers may have more.
 */
/* clang-format off */
#define GN_ICD_SLOTS(CORE, INTEROP) \
    CORE(clGetPlatformIDs) CORE(clGetPlatformInfo) CORE(clGetDeviceIDs) CORE(clGetDeviceInfo)               \
    CORE(clCreateContext) CORE(clCreateContextFromType) CORE(clRetainContext) CORE(clReleaseContext)        \
    CORE(clGetContextInfo) CORE(clCreateCommandQueue) CORE(clRetainCommandQueue)                            \
    CORE(clReleaseCommandQueue) CORE(clGetCommandQueueInfo) CORE(clSetCommandQueueProperty)                 \
    CORE(clCreateBuffer) CORE(clCreateImage2D) CORE(clCreateImage3D) CORE(clRetainMemObject)                \
    CORE(clReleaseMemObject) CORE(clGetSupportedImageFormats) CORE(clGetMemObjectInfo)                      \
    CORE(clGetImageInfo) CORE(clCreateSampler) CORE(clRetainSampler) CORE(clReleaseSampler)                 \
    CORE(clGetSamplerInfo) CORE(clCreateProgramWithSource) CORE(clCreateProgramWithBinary)                  \
    CORE(clRetainProgram) CORE(clReleaseProgram) CORE(clBuildProgram) CORE(clUnloadCompiler)                \
    CORE(clGetProgramInfo) CORE(clGetProgramBuildInfo) CORE(clCreateKernel) CORE(clCreateKernelsInProgram)  \
    CORE(clRetainKernel) CORE(clReleaseKernel) CORE(clSetKernelArg) CORE(clGetKernelInfo)                   \
    CORE(clGetKernelWorkGroupInfo) CORE(clWaitForEvents) CORE(clGetEventInfo) CORE(clRetainEvent)           \
    CORE(clReleaseEvent) CORE(clGetEventProfilingInfo) CORE(clFlush) CORE(clFinish)                         \
    CORE(clEnqueueReadBuffer) CORE(clEnqueueWriteBuffer) CORE(clEnqueueCopyBuffer)                          \
    CORE(clEnqueueReadImage) CORE(clEnqueueWriteImage) CORE(clEnqueueCopyImage)                             \
    CORE(clEnqueueCopyImageToBuffer) CORE(clEnqueueCopyBufferToImage) CORE(clEnqueueMapBuffer)              \
    CORE(clEnqueueMapImage) CORE(clEnqueueUnmapMemObject) CORE(clEnqueueNDRangeKernel) CORE(clEnqueueTask)  \
    CORE(clEnqueueNativeKernel) CORE(clEnqueueMarker) CORE(clEnqueueWaitForEvents) CORE(clEnqueueBarrier)   \
    CORE(clGetExtensionFunctionAddress) INTEROP(clCreateFromGLBuffer) INTEROP(clCreateFromGLTexture2D)      \
    INTEROP(clCreateFromGLTexture3D) INTEROP(clCreateFromGLRenderbuffer) INTEROP(clGetGLObjectInfo)         \
    INTEROP(clGetGLTextureInfo) INTEROP(clEnqueueAcquireGLObjects) INTEROP(clEnqueueReleaseGLObjects)       \
    INTEROP(clGetGLContextInfoKHR) INTEROP(clGetDeviceIDsFromD3D10KHR) INTEROP(clCreateFromD3D10BufferKHR)  \
    INTEROP(clCreateFromD3D10Texture2DKHR) INTEROP(clCreateFromD3D10Texture3DKHR)                           \
    INTEROP(clEnqueueAcquireD3D10ObjectsKHR) INTEROP(clEnqueueReleaseD3D10ObjectsKHR)                       \
    CORE(clSetEventCallback) CORE(clCreateSubBuffer) CORE(clSetMemObjectDestructorCallback)                 \
    CORE(clCreateUserEvent) CORE(clSetUserEventStatus) CORE(clEnqueueReadBufferRect)                        \
    CORE(clEnqueueWriteBufferRect) CORE(clEnqueueCopyBufferRect) CORE(clCreateSubDevicesEXT)                \
    CORE(clRetainDeviceEXT) CORE(clReleaseDeviceEXT) INTEROP(clCreateEventFromGLsyncKHR)                    \
    CORE(clCreateSubDevices) CORE(clRetainDevice) CORE(clReleaseDevice) CORE(clCreateImage)                 \
    CORE(clCreateProgramWithBuiltInKernels) CORE(clCompileProgram) CORE(clLinkProgram)                      \
    CORE(clUnloadPlatformCompiler) CORE(clGetKernelArgInfo) CORE(clEnqueueFillBuffer)                       \
    CORE(clEnqueueFillImage) CORE(clEnqueueMigrateMemObjects) CORE(clEnqueueMarkerWithWaitList)             \
    CORE(clEnqueueBarrierWithWaitList) CORE(clGetExtensionFunctionAddressForPlatform)                       \
    INTEROP(clCreateFromGLTexture) INTEROP(clGetDeviceIDsFromD3D11KHR) INTEROP(clCreateFromD3D11BufferKHR)  \
    INTEROP(clCreateFromD3D11Texture2DKHR) INTEROP(clCreateFromD3D11Texture3DKHR)                           \
    INTEROP(clCreateFromDX9MediaSurfaceKHR) INTEROP(clEnqueueAcquireD3D11ObjectsKHR)                        \
    INTEROP(clEnqueueReleaseD3D11ObjectsKHR) INTEROP(clGetDeviceIDsFromDX9MediaAdapterKHR)                  \
    INTEROP(clEnqueueAcquireDX9MediaSurfacesKHR) INTEROP(clEnqueueReleaseDX9MediaSurfacesKHR)               \
    INTEROP(clCreateFromEGLImageKHR) INTEROP(clEnqueueAcquireEGLObjectsKHR)                                 \
    INTEROP(clEnqueueReleaseEGLObjectsKHR) INTEROP(clCreateEventFromEGLSyncKHR)                             \
    CORE(clCreateCommandQueueWithProperties) CORE(clCreatePipe) CORE(clGetPipeInfo) CORE(clSVMAlloc)        \
    CORE(clSVMFree) CORE(clEnqueueSVMFree) CORE(clEnqueueSVMMemcpy) CORE(clEnqueueSVMMemFill)               \
    CORE(clEnqueueSVMMap) CORE(clEnqueueSVMUnmap) CORE(clCreateSamplerWithProperties)                       \
    CORE(clSetKernelArgSVMPointer) CORE(clSetKernelExecInfo) CORE(clGetKernelSubGroupInfoKHR)               \
    CORE(clCloneKernel) CORE(clCreateProgramWithIL) CORE(clEnqueueSVMMigrateMem)                            \
    CORE(clGetDeviceAndHostTimer) CORE(clGetHostTimer) CORE(clGetKernelSubGroupInfo)                        \
    CORE(clSetDefaultDeviceCommandQueue) CORE(clSetProgramReleaseCallback)                                  \
    CORE(clSetProgramSpecializationConstant) CORE(clCreateBufferWithProperties)                             \
    CORE(clCreateImageWithProperties) CORE(clSetContextDestructorCallback)
/* clang-format on */

#define GN_ICD_COUNT_SLOT(name) +1
#define GN_ICD_N_SLOTS          (0 GN_ICD_SLOTS(GN_ICD_COUNT_SLOT, GN_ICD_COUNT_SLOT))

static_assert(sizeof(cl_icd_dispatch) >= GN_ICD_N_SLOTS * sizeof(void *),
              "the OpenCL headers lack slots of this list");

/* Tags of cl_khr_icd 2.0; headers before 2024 lack them. */
#ifndef CL_ICD2_TAG_KHR
#if INTPTR_MAX == INT32_MAX
#define CL_ICD2_TAG_KHR ((intptr_t)0x434C3331)
#else
#define CL_ICD2_TAG_KHR ((intptr_t)0x4F50454E434C3331)
#endif
#endif
#ifndef CL_PLATFORM_UNLOADABLE_KHR
#define CL_PLATFORM_UNLOADABLE_KHR 0x0921
#endif

#endif
