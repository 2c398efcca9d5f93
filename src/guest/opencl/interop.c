/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points for sharing objects with another API of the process. The vGPU is in another process,
 * so each of them returns an error, with the signature of its slot in the dispatch table. Called on
 * the program's threads.
 */
#include "opencl_interop.h"
#include "opencl_guest.h"

#define REFUSE(name)                                                                               \
    cl_int CL_API_CALL gn_##name(void)                                                             \
    {                                                                                              \
        return CL_INVALID_OPERATION;                                                               \
    }
#define REFUSE_OBJECT(type, name, ...)                                                             \
    type CL_API_CALL gn_##name(__VA_ARGS__, cl_int *errcode_ret)                                   \
    {                                                                                              \
        return gn_refuse(errcode_ret, CL_INVALID_OPERATION);                                       \
    }

REFUSE_OBJECT(cl_mem, clCreateFromGLBuffer, cl_context c, cl_mem_flags f, cl_uint b)
REFUSE_OBJECT(cl_mem, clCreateFromGLTexture2D, cl_context c, cl_mem_flags f, cl_uint t, cl_int m,
              cl_uint x)
REFUSE_OBJECT(cl_mem, clCreateFromGLTexture3D, cl_context c, cl_mem_flags f, cl_uint t, cl_int m,
              cl_uint x)
REFUSE_OBJECT(cl_mem, clCreateFromGLTexture, cl_context c, cl_mem_flags f, cl_uint t, cl_int m,
              cl_uint x)
REFUSE_OBJECT(cl_mem, clCreateFromGLRenderbuffer, cl_context c, cl_mem_flags f, cl_uint r)
REFUSE_OBJECT(cl_event, clCreateEventFromGLsyncKHR, cl_context c, void *sync)
REFUSE_OBJECT(cl_mem, clCreateFromEGLImageKHR, cl_context c, void *d, void *i, cl_mem_flags f,
              const intptr_t *p)
REFUSE_OBJECT(cl_event, clCreateEventFromEGLSyncKHR, cl_context c, void *sync, void *display)
REFUSE_OBJECT(cl_mem, clCreateFromD3D10BufferKHR, cl_context c, cl_mem_flags f, void *r)
REFUSE_OBJECT(cl_mem, clCreateFromD3D10Texture2DKHR, cl_context c, cl_mem_flags f, void *r,
              cl_uint s)
REFUSE_OBJECT(cl_mem, clCreateFromD3D10Texture3DKHR, cl_context c, cl_mem_flags f, void *r,
              cl_uint s)
REFUSE_OBJECT(cl_mem, clCreateFromD3D11BufferKHR, cl_context c, cl_mem_flags f, void *r)
REFUSE_OBJECT(cl_mem, clCreateFromD3D11Texture2DKHR, cl_context c, cl_mem_flags f, void *r,
              cl_uint s)
REFUSE_OBJECT(cl_mem, clCreateFromD3D11Texture3DKHR, cl_context c, cl_mem_flags f, void *r,
              cl_uint s)
REFUSE_OBJECT(cl_mem, clCreateFromDX9MediaSurfaceKHR, cl_context c, cl_mem_flags f, cl_uint t,
              void *i, cl_uint p)

REFUSE(clGetGLObjectInfo)
REFUSE(clGetGLTextureInfo)
REFUSE(clEnqueueAcquireGLObjects)
REFUSE(clEnqueueReleaseGLObjects)
REFUSE(clGetGLContextInfoKHR)
REFUSE(clEnqueueAcquireEGLObjectsKHR)
REFUSE(clEnqueueReleaseEGLObjectsKHR)
REFUSE(clGetDeviceIDsFromD3D10KHR)
REFUSE(clEnqueueAcquireD3D10ObjectsKHR)
REFUSE(clEnqueueReleaseD3D10ObjectsKHR)
REFUSE(clGetDeviceIDsFromD3D11KHR)
REFUSE(clEnqueueAcquireD3D11ObjectsKHR)
REFUSE(clEnqueueReleaseD3D11ObjectsKHR)
REFUSE(clGetDeviceIDsFromDX9MediaAdapterKHR)
REFUSE(clEnqueueAcquireDX9MediaSurfacesKHR)
REFUSE(clEnqueueReleaseDX9MediaSurfacesKHR)
