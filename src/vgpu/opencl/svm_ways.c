/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways to implement shared virtual memory: commands and kernel arguments. Called by the ring
 * thread, by submitters, and by the helper thread (the test at the start).
 *
 * The driver's SVM functions may be used only for the driver's own allocations, except where a
 * device has fine-grain system sharing. On a CPU device everything is done without them: a command
 * is a native kernel, which holds the command's place in the queue while this file copies and
 * fills; a kernel argument is a buffer over host memory, at that address. One test shows whether
 * the driver works there in place, by a property that the specification defines: a native kernel
 * sees the address of a buffer that it is given. With system sharing an argument is the pointer
 * itself. A device with system sharing and without native kernels runs the commands by its own
 * functions.
 */
#include "svm.h"
#include "opencl_host.h"

#include <stdlib.h>
#include <string.h>

#define MOST_PATTERN 128u
#define TRIAL_BYTES  4096u
#define TRIAL_OFFSET 3u /* an argument may have any alignment */

/* ---- replacements of commands */

enum what { NOTHING, COPY, FILL };

struct job {
    enum what what;
    void *dst;
    const void *src;
    size_t size, pattern_size;
    unsigned char pattern[MOST_PATTERN];
};

static void fill(const struct job *j)
{
    size_t done = j->pattern_size < j->size ? j->pattern_size : j->size;
    memcpy(j->dst, j->pattern, done);
    /* The part already filled is the pattern for the rest. */
    while (done < j->size) {
        const size_t more = done < j->size - done ? done : j->size - done;
        memcpy((char *)j->dst + done, j->dst, more);
        done += more;
    }
}

/* On a driver's thread. The driver may place the arguments at any alignment. */
static void CL_CALLBACK run_job(void *args)
{
    struct job j;
    memcpy(&j, args, sizeof j);
    if (j.what == COPY)
        memmove(j.dst, j.src, j.size);
    else if (j.what == FILL)
        fill(&j);
}

static int32_t submit_job(struct gn_vgpu *v, struct job *j, cl_command_queue queue, cl_uint n_waits,
                          const cl_event *waits, cl_event *event)
{
    return gn_cl(v)->clEnqueueNativeKernel(queue, run_job, j, sizeof *j, 0, NULL, NULL, n_waits,
                                           waits, event);
}

/* ---- the test of the driver */

struct trial {
    const void *seen, *expected;
    int *good;
};

static void CL_CALLBACK run_trial(void *args)
{
    struct trial t;
    memcpy(&t, args, sizeof t);
    *t.good = t.seen == t.expected;
}

static bool test_device(const cl_icd_dispatch *cl, cl_context context, cl_device_id device,
                        cl_mem over, const void *expected)
{
    cl_int result;
    cl_command_queue queue = cl->clCreateCommandQueue(context, device, 0, &result);
    int *good = queue ? calloc(1, sizeof *good) : NULL;
    struct trial t = {over ? NULL : expected, expected, good};
    const void *at = &t.seen;
    bool passed = false;
    if (good)
        result = cl->clEnqueueNativeKernel(queue, run_trial, &t, sizeof t, over ? 1 : 0,
                                           over ? &over : NULL, over ? &at : NULL, 0, NULL, NULL);
    if (good && !cl->clFinish(queue)) {
        passed = !result && *good;
        free(good);
    } /* else the native kernel may still run */
    if (queue)
        cl->clReleaseCommandQueue(queue);
    return passed;
}

/*
 * True if a native kernel runs on each of these devices, and sees a buffer at the address of its
 * host memory.
 */
static bool test_devices(const cl_icd_dispatch *cl, const cl_device_id *devices, cl_uint n,
                         bool buffers)
{
    /* Static, because the driver may use it for a while after the release. */
    static _Alignas(64) unsigned char page[TRIAL_BYTES];
    unsigned char *at = page + TRIAL_OFFSET;
    cl_int result;
    cl_context context = cl->clCreateContext(NULL, n, devices, NULL, NULL, &result);
    cl_mem over = context && buffers ? cl->clCreateBuffer(context, CL_MEM_USE_HOST_PTR,
                                                          TRIAL_BYTES - TRIAL_OFFSET, at, &result)
                                     : NULL;
    bool good = context && (over || !buffers);
    for (cl_uint i = 0; good && i < n; i++)
        good = test_device(cl, context, devices[i], over, at);
    if (over)
        cl->clReleaseMemObject(over);
    if (context)
        cl->clReleaseContext(context);
    return good;
}

/*
 * The capabilities that one device could offer. System sharing is left out: the program's other
 * pointers are not shared.
 */
struct offer {
    cl_device_svm_capabilities capabilities;
    bool system;    /* any pointer may be given to the driver */
    bool native;    /* the commands can be native kernels */
    bool functions; /* the commands can be the driver's functions */
};

static struct offer offer_of(const cl_icd_dispatch *cl, cl_device_id device)
{
    cl_device_svm_capabilities all = 0;
    cl_device_exec_capabilities runs = 0;
    cl_device_type type = 0;
    struct offer o = {0};
    if (!cl->clSVMAlloc || !cl->clSVMFree || !cl->clSetKernelArgSVMPointer ||
        cl->clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof all, &all, NULL) ||
        cl->clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL))
        return o;
    cl->clGetDeviceInfo(device, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof runs, &runs, NULL);
    o.native =
        (type & CL_DEVICE_TYPE_CPU) && (runs & CL_EXEC_NATIVE_KERNEL) && cl->clEnqueueNativeKernel;
    o.system = all & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM;
    o.functions =
        o.system && cl->clEnqueueSVMMemcpy && cl->clEnqueueSVMMap && cl->clEnqueueSVMUnmap;
    if (o.native || o.functions)
        o.capabilities = all & (CL_DEVICE_SVM_COARSE_GRAIN_BUFFER |
                                CL_DEVICE_SVM_FINE_GRAIN_BUFFER | CL_DEVICE_SVM_ATOMICS);
    return o;
}

void gn_svm_find_ways(struct gn_vgpu *v, cl_device_svm_capabilities *ret_capabilities)
{
    struct gn_opencl_vgpu *detail = v->detail;
    const struct gn_cl_platform *p = gn_platform_of(v);
    struct gn_svm_ways ways = {.native = true, .pointers = true};
    struct offer *offers = calloc(p->n_devices ? p->n_devices : 1, sizeof *offers);
    cl_device_id *devices = calloc(p->n_devices ? p->n_devices : 1, sizeof *devices);
    cl_uint n = 0;
    for (cl_uint i = 0; offers && devices && i < p->n_devices; i++) {
        offers[i] = offer_of(gn_cl(v), p->devices[i]);
        if (!offers[i].capabilities)
            continue;
        devices[n++] = p->devices[i];
        ways.native &= offers[i].native;
        ways.pointers &= offers[i].system;
    }
    ways.native = ways.native && n && test_devices(gn_cl(v), devices, n, !ways.pointers);
    /* One way for all devices: a device that supports only another one offers nothing. */
    for (cl_uint i = 0; i < p->n_devices; i++)
        ret_capabilities[i] =
            offers && (ways.native || offers[i].functions) ? offers[i].capabilities : 0;
    ways.pointers |= !ways.native;
    detail->svm_ways = ways;
    free(offers);
    free(devices);
}

/* ---- arguments */

cl_int gn_svm_set_arg(struct gn_vgpu *v, cl_kernel kernel, cl_uint index, uint64_t address,
                      cl_mem *held)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    void *at = (void *)(uintptr_t)address;
    cl_context context;
    cl_mem over = NULL;
    cl_int result;
    if (!cl->clSetKernelArgSVMPointer)
        return CL_INVALID_OPERATION;
    if (((struct gn_opencl_vgpu *)v->detail)->svm_ways.pointers)
        return cl->clSetKernelArgSVMPointer(kernel, index, at);
    /*
     * A driver may accept a buffer for any argument of a handle's size (a double, an image, a
     * sampler), but a pointer only for a pointer argument: so test with NULL first.
     */
    result = cl->clSetKernelArgSVMPointer(kernel, index, NULL);
    if (result)
        return result;
    if (at) {
        /*
         * The address may be freed by now, or just behind an allocation; a kernel may get it if it
         * does not access it.
         */
        const uint64_t bytes = gn_svm_reach(v, address);
        result = cl->clGetKernelInfo(kernel, CL_KERNEL_CONTEXT, sizeof context, &context, NULL);
        over = result ? NULL
                      : cl->clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                           bytes ? bytes : 1, at, &result);
        if (!over)
            return result;
    }
    result = cl->clSetKernelArg(kernel, index, sizeof over, &over);
    if (result) {
        if (over)
            cl->clReleaseMemObject(over);
        return result;
    }
    if (*held)
        cl->clReleaseMemObject(*held);
    *held = over;
    return CL_SUCCESS;
}

bool gn_svm_tells_lists(struct gn_vgpu *v)
{
    return ((struct gn_opencl_vgpu *)v->detail)->svm_ways.pointers;
}

/* ---- commands. Without a way there is no live allocation. */

static bool runs_natively(struct gn_vgpu *v)
{
    return ((struct gn_opencl_vgpu *)v->detail)->svm_ways.native;
}

void gn_admit_SvmCopy(struct gn_vgpu *v, struct gn_command *c)
{
    const struct gn_wire_SvmCopy *w = gn_command_message(c);
    (void)v;
    c->fault |= (!w->dst || !w->src) && (!c->area || w->block_bytes != w->size);
}

int32_t gn_submit_SvmCopy(struct gn_vgpu *v, struct gn_command *c, cl_command_queue queue,
                          cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    const struct gn_wire_SvmCopy *w = gn_command_message(c);
    void *dst = w->dst ? (void *)(uintptr_t)w->dst : c->area;
    const void *src = w->src ? (const void *)(uintptr_t)w->src : c->area;
    if ((w->dst && !gn_svm_live(v, w->dst, w->size)) ||
        (w->src && !gn_svm_live(v, w->src, w->size)))
        return CL_INVALID_VALUE;
    if (runs_natively(v))
        return submit_job(v, &(struct job){.what = COPY, .dst = dst, .src = src, .size = w->size},
                          queue, n_waits, waits, event);
    return gn_cl(v)->clEnqueueSVMMemcpy(queue, CL_FALSE, dst, src, w->size, n_waits, waits, event);
}

static void CL_CALLBACK free_pattern(cl_event event, cl_int status, void *pattern)
{
    (void)event;
    (void)status;
    free(pattern);
}

/*
 * Fills with the driver's copies, each of everything filled so far: PoCL 8 crashes when it fills
 * memory that it has not allocated, although it reports system sharing. The driver reads the
 * pattern when it runs the first copy, and the command may be gone by then, so the pattern is
 * copied, and freed at the end of that copy.
 */
static int32_t fill_by_copies(struct gn_vgpu *v, cl_command_queue queue, char *dst,
                              const void *pattern, size_t pattern_size, size_t size,
                              cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    cl_event last = NULL, next;
    size_t done = pattern_size < size ? pattern_size : size;
    void *lasting = malloc(pattern_size);
    if (!lasting)
        return CL_OUT_OF_HOST_MEMORY;
    memcpy(lasting, pattern, pattern_size);
    cl_int result =
        cl->clEnqueueSVMMemcpy(queue, CL_FALSE, dst, lasting, done, n_waits, waits, &last);
    if (result) {
        free(lasting);
        return result;
    }
    if (cl->clSetEventCallback(last, CL_COMPLETE, free_pattern, lasting)) {
        cl->clWaitForEvents(1, &last);
        free(lasting);
    }
    while (!result && done < size) {
        const size_t more = done < size - done ? done : size - done;
        result = cl->clEnqueueSVMMemcpy(queue, CL_FALSE, dst + done, dst, more, 1, &last, &next);
        if (result)
            cl->clWaitForEvents(1, &last);
        cl->clReleaseEvent(last);
        last = next;
        done += more;
    }
    if (!result)
        *event = last;
    return result;
}

void gn_admit_SvmFill(struct gn_vgpu *v, struct gn_command *c)
{
    (void)v;
    (void)c;
}

int32_t gn_submit_SvmFill(struct gn_vgpu *v, struct gn_command *c, cl_command_queue queue,
                          cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    const struct gn_wire_SvmFill *w = gn_command_message(c);
    const void *pattern = gn_command_bytes(c, &w->pattern);
    struct job j = {.what = FILL,
                    .dst = (void *)(uintptr_t)w->address,
                    .size = w->size,
                    .pattern_size = w->pattern_size};
    if (!gn_svm_live(v, w->address, w->size) || !pattern || !w->pattern_size ||
        w->pattern_size > sizeof j.pattern)
        return CL_INVALID_VALUE;
    if (!runs_natively(v))
        return fill_by_copies(v, queue, j.dst, pattern, w->pattern_size, w->size, n_waits, waits,
                              event);
    memcpy(j.pattern, pattern, w->pattern_size);
    return submit_job(v, &j, queue, n_waits, waits, event);
}

void gn_admit_SvmMap(struct gn_vgpu *v, struct gn_command *c)
{
    (void)v;
    (void)c;
}

int32_t gn_submit_SvmMap(struct gn_vgpu *v, struct gn_command *c, cl_command_queue queue,
                         cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    const struct gn_wire_SvmMap *w = gn_command_message(c);
    if (!gn_svm_live(v, w->address, w->size))
        return CL_INVALID_VALUE;
    if (runs_natively(v))
        return submit_job(v, &(struct job){.what = NOTHING}, queue, n_waits, waits, event);
    return gn_cl(v)->clEnqueueSVMMap(queue, CL_FALSE, w->flags, (void *)(uintptr_t)w->address,
                                     w->size, n_waits, waits, event);
}

void gn_admit_SvmUnmap(struct gn_vgpu *v, struct gn_command *c)
{
    (void)v;
    (void)c;
}

int32_t gn_submit_SvmUnmap(struct gn_vgpu *v, struct gn_command *c, cl_command_queue queue,
                           cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    const struct gn_wire_SvmUnmap *w = gn_command_message(c);
    if (!gn_svm_live(v, w->address, 0))
        return CL_INVALID_VALUE;
    if (runs_natively(v))
        return submit_job(v, &(struct job){.what = NOTHING}, queue, n_waits, waits, event);
    return gn_cl(v)->clEnqueueSVMUnmap(queue, (void *)(uintptr_t)w->address, n_waits, waits, event);
}

void gn_admit_SvmMigrate(struct gn_vgpu *v, struct gn_command *c)
{
    (void)v;
    (void)c;
}

int32_t gn_submit_SvmMigrate(struct gn_vgpu *v, struct gn_command *c, cl_command_queue queue,
                             cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    const struct gn_wire_SvmMigrate *w = gn_command_message(c);
    const uint64_t *addresses = gn_command_bytes(c, &w->addresses);
    const uint64_t *sizes = gn_command_bytes(c, &w->sizes);
    if (!addresses || !sizes)
        return CL_INVALID_VALUE;
    if (!runs_natively(v) && !gn_cl(v)->clEnqueueSVMMigrateMem)
        return CL_INVALID_OPERATION;
    for (uint32_t i = 0; i < w->n; i++)
        if (!gn_svm_live(v, addresses[i], sizes[i]))
            return CL_INVALID_VALUE;
    if (runs_natively(v))
        return submit_job(v, &(struct job){.what = NOTHING}, queue, n_waits, waits, event);
    return gn_cl(v)->clEnqueueSVMMigrateMem(queue, w->n, (const void **)addresses,
                                            (const size_t *)sizes, w->flags, n_waits, waits, event);
}
