/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_OPENCL_INTEROP_H
#define GN_OPENCL_INTEROP_H

#include <CL/cl.h>
#include <stdint.h>

/* Slots of the dispatch table that return errors; the D3D ones have no type on Linux. */
cl_mem CL_API_CALL gn_clCreateFromGLBuffer(cl_context c, cl_mem_flags f, cl_uint b,
                                           cl_int *errcode_ret);
cl_mem CL_API_CALL gn_clCreateFromGLTexture2D(cl_context c, cl_mem_flags f, cl_uint t, cl_int m,
                                              cl_uint x, cl_int *errcode_ret);
cl_mem CL_API_CALL gn_clCreateFromGLTexture3D(cl_context c, cl_mem_flags f, cl_uint t, cl_int m,
                                              cl_uint x, cl_int *errcode_ret);
cl_mem CL_API_CALL gn_clCreateFromGLTexture(cl_context c, cl_mem_flags f, cl_uint t, cl_int m,
                                            cl_uint x, cl_int *errcode_ret);
cl_mem CL_API_CALL gn_clCreateFromGLRenderbuffer(cl_context c, cl_mem_flags f, cl_uint r,
                                                 cl_int *errcode_ret);
cl_event CL_API_CALL gn_clCreateEventFromGLsyncKHR(cl_context c, void *sync, cl_int *errcode_ret);
cl_mem CL_API_CALL gn_clCreateFromEGLImageKHR(cl_context c, void *d, void *i, cl_mem_flags f,
                                              const intptr_t *p, cl_int *errcode_ret);
cl_event CL_API_CALL gn_clCreateEventFromEGLSyncKHR(cl_context c, void *sync, void *display,
                                                    cl_int *errcode_ret);
cl_mem CL_API_CALL gn_clCreateFromD3D10BufferKHR(cl_context c, cl_mem_flags f, void *r,
                                                 cl_int *errcode_ret);
cl_mem CL_API_CALL gn_clCreateFromD3D10Texture2DKHR(cl_context c, cl_mem_flags f, void *r,
                                                    cl_uint s, cl_int *errcode_ret);
cl_mem CL_API_CALL gn_clCreateFromD3D10Texture3DKHR(cl_context c, cl_mem_flags f, void *r,
                                                    cl_uint s, cl_int *errcode_ret);
cl_mem CL_API_CALL gn_clCreateFromD3D11BufferKHR(cl_context c, cl_mem_flags f, void *r,
                                                 cl_int *errcode_ret);
cl_mem CL_API_CALL gn_clCreateFromD3D11Texture2DKHR(cl_context c, cl_mem_flags f, void *r,
                                                    cl_uint s, cl_int *errcode_ret);
cl_mem CL_API_CALL gn_clCreateFromD3D11Texture3DKHR(cl_context c, cl_mem_flags f, void *r,
                                                    cl_uint s, cl_int *errcode_ret);
cl_mem CL_API_CALL gn_clCreateFromDX9MediaSurfaceKHR(cl_context c, cl_mem_flags f, cl_uint t,
                                                     void *i, cl_uint p, cl_int *errcode_ret);
cl_int CL_API_CALL gn_clGetGLObjectInfo(void);
cl_int CL_API_CALL gn_clGetGLTextureInfo(void);
cl_int CL_API_CALL gn_clEnqueueAcquireGLObjects(void);
cl_int CL_API_CALL gn_clEnqueueReleaseGLObjects(void);
cl_int CL_API_CALL gn_clGetGLContextInfoKHR(void);
cl_int CL_API_CALL gn_clEnqueueAcquireEGLObjectsKHR(void);
cl_int CL_API_CALL gn_clEnqueueReleaseEGLObjectsKHR(void);
cl_int CL_API_CALL gn_clGetDeviceIDsFromD3D10KHR(void);
cl_int CL_API_CALL gn_clEnqueueAcquireD3D10ObjectsKHR(void);
cl_int CL_API_CALL gn_clEnqueueReleaseD3D10ObjectsKHR(void);
cl_int CL_API_CALL gn_clGetDeviceIDsFromD3D11KHR(void);
cl_int CL_API_CALL gn_clEnqueueAcquireD3D11ObjectsKHR(void);
cl_int CL_API_CALL gn_clEnqueueReleaseD3D11ObjectsKHR(void);
cl_int CL_API_CALL gn_clGetDeviceIDsFromDX9MediaAdapterKHR(void);
cl_int CL_API_CALL gn_clEnqueueAcquireDX9MediaSurfacesKHR(void);
cl_int CL_API_CALL gn_clEnqueueReleaseDX9MediaSurfacesKHR(void);

#endif
