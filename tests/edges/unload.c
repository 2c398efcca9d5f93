/* SPDX-License-Identifier: Apache-2.0 */
/* A program that loads the ICD loader, uses it, unloads it, and does so again: as plugins come and
 * go. */
#include <CL/cl.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *function(void *loader, const char *name)
{
    void *f = dlsym(loader, name);
    if (!f) {
        fprintf(stderr, "no %s: %s\n", name, dlerror());
        exit(1);
    }
    return f;
}

/* Functions come as data pointers from dlsym. */
#define GET(name)                                                                                  \
    do {                                                                                           \
        void *f_ = function(loader, "cl" #name);                                                   \
        memcpy(&cl.name, &f_, sizeof f_);                                                          \
    } while (0)

#define NEED(call)                                                                                 \
    do {                                                                                           \
        cl_int rc_ = (call);                                                                       \
        if (rc_ != CL_SUCCESS) {                                                                   \
            fprintf(stderr, "%s returned %d\n", #call, (int)rc_);                                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

int main(void)
{
    for (int i = 0; i < 3; i++) {
        struct {
            cl_int (*GetPlatformIDs)(cl_uint, cl_platform_id *, cl_uint *);
            cl_int (*GetDeviceIDs)(cl_platform_id, cl_device_type, cl_uint, cl_device_id *,
                                   cl_uint *);
            cl_context (*CreateContext)(const cl_context_properties *, cl_uint,
                                        const cl_device_id *,
                                        void (*)(const char *, const void *, size_t, void *),
                                        void *, cl_int *);
            cl_command_queue (*CreateCommandQueue)(cl_context, cl_device_id,
                                                   cl_command_queue_properties, cl_int *);
            cl_int (*Finish)(cl_command_queue);
            cl_int (*ReleaseCommandQueue)(cl_command_queue);
            cl_int (*ReleaseContext)(cl_context);
        } cl;
        void *loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
        cl_platform_id platform;
        cl_device_id device;
        cl_int rc;
        if (!loader) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        GET(GetPlatformIDs);
        GET(GetDeviceIDs);
        GET(CreateContext);
        GET(CreateCommandQueue);
        GET(Finish);
        GET(ReleaseCommandQueue);
        GET(ReleaseContext);
        NEED(cl.GetPlatformIDs(1, &platform, NULL));
        NEED(cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
        cl_context context = cl.CreateContext(NULL, 1, &device, NULL, NULL, &rc);
        NEED(rc);
        cl_command_queue q = cl.CreateCommandQueue(context, device, 0, &rc);
        NEED(rc);
        NEED(cl.Finish(q));
        NEED(cl.ReleaseCommandQueue(q));
        NEED(cl.ReleaseContext(context));
        if (dlclose(loader)) {
            fprintf(stderr, "dlclose: %s\n", dlerror());
            return 1;
        }
        /* The test is about a loader that is really gone. */
        if (dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_NOLOAD)) {
            fprintf(stderr, "the loader stayed\n");
            return 1;
        }
    }
    return 0;
}
