/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command buffers (cl_khr_command_buffer): recording and running. A buffer's records make it again
 * on another worker, in the order of its commands (records.h), so the numbers that the program has
 * must be the same there: a synchronization point is the number of its command, not the driver's.
 * Recording runs on the ring thread, or on the lease thread when gantryd has to be asked for
 * memory. A run is one command, which is submitted like any other.
 *
 * A driver may check a recorded command less than an enqueued one: PoCL 3.1 reads through a NULL
 * memory object, and through the command that it failed to make when a launch is invalid. Both are
 * refused here.
 */
#include "opencl_carried.h"
#include "opencl_host.h"
#include "residency.h"
#include "variables.h"

#include <stdlib.h>
#include <string.h>

#define MOST_COMMANDS 16384u
/* memory of the driver and the records for a command, besides its request's bytes */
#define COMMAND_BYTES 2048u

/* Bytes that a recorded fill or copy writes. */
struct written {
    struct gn_writes *writes; /* held; NULL: the command writes no memory object, or is a launch */
    uint64_t at, n;
};

struct recorded {
    cl_sync_point_khr point;        /* the driver's number */
    struct gn_kernel_copy kernel;   /* of a launch */
    struct gn_variables *variables; /* of that kernel's program, or NULL; held */
    struct written written;
};

struct gn_cmdbuf_detail {
    cl_context context;  /* set once */
    cl_device_id device; /* set once */
    /* held during the driver's recording calls, so that they have one order */
    pthread_mutex_t lock;
    /* lock */
    bool finalized;
    uint32_t n, capacity;
    struct recorded *commands;
};

/* ---- life of a buffer */

/* Whether the device has a carried version of the extension. */
static bool has_command_buffers(struct gn_vgpu *v, cl_device_id device)
{
    const struct gn_carried *c = gn_carried_named(GN_COMMAND_BUFFER, sizeof GN_COMMAND_BUFFER - 1);
    size_t bytes = 0;
    if (gn_cl(v)->clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS_WITH_VERSION, 0, NULL, &bytes) ||
        !bytes)
        return false;
    cl_name_version *list = malloc(bytes);
    const bool has =
        list &&
        !gn_cl(v)->clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS_WITH_VERSION, bytes, list, NULL) &&
        gn_carried_version(c, list, bytes / sizeof *list);
    free(list);
    return has;
}

static void *find_extension(void *ctx, const char *name)
{
    return gn_cl_extension(ctx, name);
}

int gn_extensions_start(struct gn_vgpu *v)
{
    struct gn_opencl_vgpu *detail = v->detail;
    bool has = false;
    detail->extensions = calloc(1, sizeof *detail->extensions);
    for (cl_uint i = 0; i < detail->platform->n_devices; i++)
        has |= has_command_buffers(v, detail->platform->devices[i]);
    /* Without the extension, the driver's table may end before the function that finds its calls.
     */
    if (detail->extensions && has)
        gn_extensions_find(detail->extensions, find_extension, detail->platform);
    return detail->extensions ? 0 : -1;
}

void *gn_host_CommandBuffer(struct gn_vgpu *v, struct gn_request *r,
                            const struct gn_args_CommandBuffer *a, cl_int *result)
{
    const struct gn_extensions *e = gn_extensions(v);
    cl_device_id device = NULL;
    cl_command_buffer_flags_khr flags = 0;
    (void)r;
    *result = CL_INVALID_COMMAND_QUEUE;
    if (!a->command_queue || gn_cl(v)->clGetCommandQueueInfo(a->command_queue, CL_QUEUE_DEVICE,
                                                             sizeof device, &device, NULL))
        return NULL;
    *result = CL_INVALID_OPERATION;
    if (!e->clCreateCommandBufferKHR || !e->clReleaseCommandBufferKHR ||
        !has_command_buffers(v, device))
        return NULL;
    /* CL_COMMAND_BUFFER_FLAGS_KHR is the only key that may stand here. */
    for (const cl_command_buffer_properties_khr *p = a->properties; p && p[0]; p += 2)
        flags |= p[1];
    cl_command_buffer_khr made =
        e->clCreateCommandBufferKHR(1, &a->command_queue, a->properties, result);
    if (!made || !(flags & ~(cl_command_buffer_flags_khr)CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR))
        return made;
    /* A flag of an extension that is not carried. */
    e->clReleaseCommandBufferKHR(made);
    *result = CL_INVALID_PROPERTY;
    return NULL;
}

int gn_cmdbuf_made(struct gn_vobject *o, const struct gn_request *r)
{
    struct gn_cmdbuf_detail *d = calloc(1, sizeof *d);
    if (!d)
        return -1;
    pthread_mutex_init(&d->lock, NULL);
    /* The request names only the queue. */
    gn_cl(o->vgpu)->clGetCommandQueueInfo(r->held[0]->driver, CL_QUEUE_DEVICE, sizeof d->device,
                                          &d->device, NULL);
    gn_cl(o->vgpu)->clGetCommandQueueInfo(r->held[0]->driver, CL_QUEUE_CONTEXT, sizeof d->context,
                                          &d->context, NULL);
    o->detail = d;
    return 0;
}

static void release_command(struct gn_vgpu *v, const struct recorded *c)
{
    gn_kernel_copy_fini(gn_cl(v), &c->kernel);
    gn_variables_unref(c->variables);
    gn_writes_unref(c->written.writes);
}

void gn_cmdbuf_release(struct gn_vobject *o)
{
    struct gn_vgpu *v = o->vgpu;
    struct gn_cmdbuf_detail *d = o->detail;
    gn_extensions(v)->clReleaseCommandBufferKHR(o->driver);
    /* After the buffer: PoCL 3.1 uses a kernel that it has released. */
    for (uint32_t i = 0; d && i < d->n; i++)
        release_command(v, &d->commands[i]);
    if (d) {
        free(d->commands);
        pthread_mutex_destroy(&d->lock);
    }
    free(d);
}

cl_int gn_host_clFinalizeCommandBufferKHR(struct gn_vgpu *v, struct gn_request *r,
                                          const struct gn_args_clFinalizeCommandBufferKHR *a)
{
    struct gn_cmdbuf_detail *d = a->command_buffer_object ? a->command_buffer_object->detail : NULL;
    cl_int result = CL_INVALID_OPERATION;
    (void)r;
    if (!d)
        return CL_INVALID_COMMAND_BUFFER_KHR;
    pthread_mutex_lock(&d->lock);
    if (!d->finalized && gn_extensions(v)->clFinalizeCommandBufferKHR)
        result = gn_extensions(v)->clFinalizeCommandBufferKHR(a->command_buffer);
    d->finalized |= !result;
    pthread_mutex_unlock(&d->lock);
    return result;
}

/* ---- recording */

/* A command that is being recorded. */
struct recording {
    struct gn_vgpu *v;
    struct gn_request *r;
    struct gn_vobject *buffer;
    struct gn_cmdbuf_detail *d; /* locked from begin to end */
    cl_sync_point_khr *ret_point;
    cl_uint n_waits;
    cl_sync_point_khr *waits; /* the driver's */
    /* objects that the command names; the buffer holds them once the driver has the command */
    struct gn_vobject **uses;
    uint32_t n_uses;
    struct recorded command;
};

static bool reserve_command(struct gn_cmdbuf_detail *d)
{
    if (d->n < d->capacity)
        return true;
    const uint32_t capacity = d->capacity ? 2 * d->capacity : 8;
    struct recorded *commands = realloc(d->commands, capacity * sizeof *commands);
    if (!commands)
        return false;
    d->commands = commands;
    d->capacity = capacity;
    return true;
}

/* Translates the program's sync points into the driver's, into rec->waits. */
static cl_int find_waits(struct recording *rec, cl_uint n, const cl_sync_point_khr *list)
{
    if (!n != !list)
        return CL_INVALID_SYNC_POINT_WAIT_LIST_KHR;
    if (!n)
        return CL_SUCCESS;
    rec->n_waits = n;
    rec->waits = gn_request_alloc(rec->r, gn_times(n, sizeof *rec->waits));
    if (!rec->waits)
        return CL_OUT_OF_HOST_MEMORY;
    for (cl_uint i = 0; i < n; i++) {
        if (!list[i] || list[i] > rec->d->n)
            return CL_INVALID_SYNC_POINT_WAIT_LIST_KHR;
        rec->waits[i] = rec->d->commands[list[i] - 1].point;
    }
    return CL_SUCCESS;
}

/* The bytes of a request, which its record keeps. */
static uint64_t bytes_of(const struct gn_request *r)
{
    uint64_t bytes = r->n_bytes;
    for (uint32_t i = 0; i < r->n_ins; i++)
        bytes += r->ins[i].span->bytes;
    return bytes;
}

static cl_int begin_locked(struct recording *rec, uint32_t most_uses, cl_uint n_waits,
                           const cl_sync_point_khr *waits)
{
    if (rec->d->finalized)
        return CL_INVALID_OPERATION;
    if (rec->d->n == MOST_COMMANDS)
        return CL_OUT_OF_RESOURCES;
    const cl_int result = find_waits(rec, n_waits, waits);
    if (result)
        return result;
    rec->uses = gn_request_alloc(rec->r, gn_times(most_uses, sizeof *rec->uses));
    if (!rec->uses || !reserve_command(rec->d) || gn_object_reserve_holds(rec->buffer, most_uses))
        return CL_OUT_OF_HOST_MEMORY;
    rec->r->pins = true;
    return gn_request_charge(rec->r, COMMAND_BYTES + bytes_of(rec->r)) ? CL_SUCCESS
                                                                       : CL_OUT_OF_RESOURCES;
}

/*
 * On success the buffer's lock is held until end_recording(). After an error nothing is recorded,
 * and end_recording() must not be called.
 */
static cl_int begin_recording(struct gn_vgpu *v, struct gn_request *r, struct gn_vobject *buffer,
                              uint32_t most_uses, cl_uint n_waits, const cl_sync_point_khr *waits,
                              cl_sync_point_khr *ret_point, struct recording *rec)
{
    *rec = (struct recording){.v = v, .r = r, .buffer = buffer, .ret_point = ret_point};
    rec->d = buffer ? buffer->detail : NULL;
    if (!rec->d)
        return CL_INVALID_COMMAND_BUFFER_KHR;
    pthread_mutex_lock(&rec->d->lock);
    const cl_int result = begin_locked(rec, most_uses, n_waits, waits);
    if (result)
        pthread_mutex_unlock(&rec->d->lock);
    return result;
}

/* Adds an object that lives as long as the buffer, if the command is recorded. */
static cl_int add_use(struct recording *rec, struct gn_vobject *o, cl_int missing)
{
    if (!o)
        return missing;
    rec->uses[rec->n_uses++] = o;
    /* The driver's command keeps the driver's object. */
    return gn_residency_pin_for(rec->r, o);
}

/*
 * Same as add_use(), for memory that the command reads, and for memory in which it writes these
 * bytes.
 */
static cl_int read_mem(struct recording *rec, struct gn_vobject *mem)
{
    return add_use(rec, mem, CL_INVALID_MEM_OBJECT);
}

static cl_int write_mem(struct recording *rec, struct gn_vobject *mem, uint64_t offset, uint64_t n)
{
    const cl_int result = add_use(rec, mem, CL_INVALID_MEM_OBJECT);
    const struct gn_mem_detail *detail = result ? NULL : mem->detail;
    if (detail && detail->writes &&
        gn_mem_range(detail, offset, n, &rec->command.written.at, &rec->command.written.n))
        rec->command.written.writes = gn_writes_ref(detail->writes);
    return result;
}

/* Finishes a recording, with the driver's result or an earlier error. */
static cl_int end_recording(struct recording *rec, cl_int result)
{
    struct gn_cmdbuf_detail *d = rec->d;
    if (result) {
        release_command(rec->v, &rec->command);
    } else {
        d->commands[d->n++] = rec->command;
        for (uint32_t i = 0; i < rec->n_uses; i++)
            (void)gn_object_hold(rec->buffer, rec->uses[i]); /* has room since begin_recording() */
        if (rec->ret_point)
            *rec->ret_point = d->n;
        rec->buffer->charged_bytes += rec->r->charged_bytes;
        rec->r->charged_bytes = 0;
    }
    pthread_mutex_unlock(&d->lock);
    return result;
}

/*
 * The common parts of all record requests: `a` are the arguments, `rec` is the recording, which
 * names at most most_uses objects.
 */
#define BEGIN(rec, a, most_uses)                                                                   \
    begin_recording(v, r, (a)->command_buffer_object, most_uses,                                   \
                    (a)->num_sync_points_in_wait_list, (a)->sync_point_wait_list, (a)->sync_point, \
                    rec)
#define RECORD(rec, call, ...)                                                                     \
    (gn_extensions(v)->call                                                                        \
         ? gn_extensions(v)->call(a->command_buffer, NULL, __VA_ARGS__, (rec)->n_waits,            \
                                  (rec)->waits, &(rec)->command.point, NULL)                       \
         : CL_INVALID_OPERATION)

cl_int
gn_host_clCommandBarrierWithWaitListKHR(struct gn_vgpu *v, struct gn_request *r,
                                        const struct gn_args_clCommandBarrierWithWaitListKHR *a)
{
    struct recording rec;
    cl_int result = BEGIN(&rec, a, 2);
    if (result)
        return result;
    result = CL_INVALID_OPERATION;
    if (gn_extensions(v)->clCommandBarrierWithWaitListKHR)
        result = gn_extensions(v)->clCommandBarrierWithWaitListKHR(
            a->command_buffer, NULL, rec.n_waits, rec.waits, &rec.command.point, NULL);
    return end_recording(&rec, result);
}

cl_int gn_host_clCommandCopyBufferKHR(struct gn_vgpu *v, struct gn_request *r,
                                      const struct gn_args_clCommandCopyBufferKHR *a)
{
    struct recording rec;
    cl_int result = BEGIN(&rec, a, 2);
    if (result)
        return result;
    result = read_mem(&rec, a->src_buffer_object);
    if (!result)
        result = write_mem(&rec, a->dst_buffer_object, a->dst_offset, a->size);
    if (!result)
        result = RECORD(&rec, clCommandCopyBufferKHR, a->src_buffer, a->dst_buffer, a->src_offset,
                        a->dst_offset, a->size);
    return end_recording(&rec, result);
}

cl_int gn_host_clCommandCopyBufferRectKHR(struct gn_vgpu *v, struct gn_request *r,
                                          const struct gn_args_clCommandCopyBufferRectKHR *a)
{
    struct recording rec;
    cl_int result = BEGIN(&rec, a, 2);
    if (result)
        return result;
    result = read_mem(&rec, a->src_buffer_object);
    if (!result)
        result = write_mem(&rec, a->dst_buffer_object, 0, UINT64_MAX);
    if (!result)
        result = RECORD(&rec, clCommandCopyBufferRectKHR, a->src_buffer, a->dst_buffer,
                        a->src_origin, a->dst_origin, a->region, a->src_row_pitch,
                        a->src_slice_pitch, a->dst_row_pitch, a->dst_slice_pitch);
    return end_recording(&rec, result);
}

cl_int gn_host_clCommandCopyBufferToImageKHR(struct gn_vgpu *v, struct gn_request *r,
                                             const struct gn_args_clCommandCopyBufferToImageKHR *a)
{
    struct recording rec;
    cl_int result = BEGIN(&rec, a, 2);
    if (result)
        return result;
    result = read_mem(&rec, a->src_buffer_object);
    if (!result)
        result = write_mem(&rec, a->dst_image_object, 0, UINT64_MAX);
    if (!result)
        result = RECORD(&rec, clCommandCopyBufferToImageKHR, a->src_buffer, a->dst_image,
                        a->src_offset, a->dst_origin, a->region);
    return end_recording(&rec, result);
}

cl_int gn_host_clCommandCopyImageKHR(struct gn_vgpu *v, struct gn_request *r,
                                     const struct gn_args_clCommandCopyImageKHR *a)
{
    struct recording rec;
    cl_int result = BEGIN(&rec, a, 2);
    if (result)
        return result;
    result = read_mem(&rec, a->src_image_object);
    if (!result)
        result = write_mem(&rec, a->dst_image_object, 0, UINT64_MAX);
    if (!result)
        result = RECORD(&rec, clCommandCopyImageKHR, a->src_image, a->dst_image, a->src_origin,
                        a->dst_origin, a->region);
    return end_recording(&rec, result);
}

cl_int gn_host_clCommandCopyImageToBufferKHR(struct gn_vgpu *v, struct gn_request *r,
                                             const struct gn_args_clCommandCopyImageToBufferKHR *a)
{
    struct recording rec;
    cl_int result = BEGIN(&rec, a, 2);
    if (result)
        return result;
    result = read_mem(&rec, a->src_image_object);
    if (!result)
        result = write_mem(&rec, a->dst_buffer_object, a->dst_offset, UINT64_MAX);
    if (!result)
        result = RECORD(&rec, clCommandCopyImageToBufferKHR, a->src_image, a->dst_buffer,
                        a->src_origin, a->region, a->dst_offset);
    return end_recording(&rec, result);
}

cl_int gn_host_clCommandFillBufferKHR(struct gn_vgpu *v, struct gn_request *r,
                                      const struct gn_args_clCommandFillBufferKHR *a)
{
    struct recording rec;
    cl_int result = BEGIN(&rec, a, 2);
    if (result)
        return result;
    result = write_mem(&rec, a->buffer_object, a->offset, a->size);
    if (!result)
        result = RECORD(&rec, clCommandFillBufferKHR, a->buffer, a->pattern, a->pattern_size,
                        a->offset, a->size);
    return end_recording(&rec, result);
}

cl_int gn_host_clCommandFillImageKHR(struct gn_vgpu *v, struct gn_request *r,
                                     const struct gn_args_clCommandFillImageKHR *a)
{
    struct recording rec;
    cl_int result = BEGIN(&rec, a, 2);
    if (result)
        return result;
    result = write_mem(&rec, a->image_object, 0, UINT64_MAX);
    if (!result)
        result = RECORD(&rec, clCommandFillImageKHR, a->image, a->fill_color, a->origin, a->region);
    return end_recording(&rec, result);
}

/* ---- launches */

/*
 * Checks work-group sizes as the specification of clEnqueueNDRangeKernel does. All sizes in `local`
 * are set.
 */
static cl_int check_local(struct gn_vgpu *v, cl_device_id device, cl_kernel kernel, cl_uint dims,
                          const size_t *global, const size_t *local)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    size_t sides[3] = {0}, required[3] = {0}, most = 0, of_kernel = 0;
    uint64_t items = 1;
    cl_bool unlike = CL_FALSE;
    cl->clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sides, sides, NULL);
    cl->clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof most, &most, NULL);
    cl->clGetDeviceInfo(device, CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, sizeof unlike, &unlike,
                        NULL);
    cl->clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof of_kernel,
                                 &of_kernel, NULL);
    cl->clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof required,
                                 required, NULL);
    if (of_kernel && of_kernel < most)
        most = of_kernel;
    for (cl_uint i = 0; i < dims; i++)
        items = gn_times(items, local[i]);
    if (items > most)
        return CL_INVALID_WORK_GROUP_SIZE;
    for (cl_uint i = 0; i < dims; i++)
        if (local[i] > sides[i])
            return CL_INVALID_WORK_ITEM_SIZE;
    for (cl_uint i = 0; i < dims; i++)
        if ((global[i] % local[i] && !unlike) || (required[0] && local[i] != required[i]))
            return CL_INVALID_WORK_GROUP_SIZE;
    return CL_SUCCESS;
}

/* A sub-buffer must begin at the device's alignment. */
static cl_int check_alignment(struct gn_vgpu *v, cl_device_id device,
                              struct gn_vobject *const *named, uint32_t n)
{
    cl_uint bits = 0;
    gn_cl(v)->clGetDeviceInfo(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL);
    for (uint32_t i = 0; bits >= 8 && i < n; i++) {
        const struct gn_mem_detail *mem =
            named[i] && named[i]->kind == GN_KIND_MEM ? named[i]->detail : NULL;
        if (mem && mem->borrowed && !mem->element_bytes && mem->origin % (bits / 8))
            return CL_MISALIGNED_SUB_BUFFER_OFFSET;
    }
    return CL_SUCCESS;
}

static bool all_chosen(const size_t *sizes, cl_uint n)
{
    for (cl_uint i = 0; sizes && i < n; i++)
        if (!sizes[i])
            return false;
    return sizes;
}

/* The program's work-group size; without one, the size that the source requires. */
static const size_t *required_local_size(struct gn_vgpu *v, cl_device_id device, cl_kernel kernel,
                                         const size_t *local, size_t room[3])
{
    if (local ||
        gn_cl(v)->clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                           3 * sizeof *room, room, NULL))
        return local;
    return all_chosen(room, 3) ? room : NULL;
}

static cl_int record_launch(struct gn_vgpu *v, struct recording *rec,
                            const struct gn_args_RecordLaunch *a, struct gn_vobject *const *named,
                            uint32_t n_named)
{
    const cl_device_id device = rec->d->device;
    cl_context context = NULL;
    size_t room[3];
    cl_int result = add_use(rec, a->kernel_object, CL_INVALID_KERNEL);
    if (result)
        return result;
    gn_cl(v)->clGetKernelInfo(a->kernel, CL_KERNEL_CONTEXT, sizeof context, &context, NULL);
    if (context != rec->d->context)
        return CL_INVALID_CONTEXT;
    if (a->work_dim < 1 || a->work_dim > 3)
        return CL_INVALID_WORK_DIMENSION;
    const size_t *local = required_local_size(v, device, a->kernel, a->local_work_size, room);
    if (all_chosen(local, a->work_dim) && all_chosen(a->global_work_size, a->work_dim))
        result = check_local(v, device, a->kernel, a->work_dim, a->global_work_size, local);
    if (!result)
        result = check_alignment(v, device, named, n_named);
    for (uint32_t i = 0; !result && i < n_named; i++)
        result = add_use(rec, named[i], CL_INVALID_KERNEL_ARGS);
    if (!result)
        result = gn_kernel_copy_init(v, &rec->command.kernel, a->kernel_object, a->args,
                                     a->args_bytes, named);
    if (!result)
        result = RECORD(rec, clCommandNDRangeKernelKHR, NULL, rec->command.kernel.kernel,
                        a->work_dim, a->global_work_offset, a->global_work_size, local);
    const struct gn_kernel_detail *k = a->kernel_object->detail;
    if (!result && k->variables)
        rec->command.variables = gn_variables_ref(k->variables);
    if (!result && all_chosen(a->local_work_size, a->work_dim))
        gn_kernel_note_sizes(a->kernel_object->detail, a->work_dim, a->local_work_size);
    return result;
}

cl_int gn_host_RecordLaunch(struct gn_vgpu *v, struct gn_request *r,
                            const struct gn_args_RecordLaunch *a)
{
    struct recording rec;
    uint32_t n_named;
    cl_int result;
    struct gn_vobject **named = gn_kernel_args_named(r, a->args, a->args_bytes, &n_named, &result);
    if (!named)
        return result;
    result = BEGIN(&rec, a, n_named + 1);
    return result ? result : end_recording(&rec, record_launch(v, &rec, a, named, n_named));
}

/* ---- running */

/* The buffer's kernels may write variables of their programs, and a driver may begin at once. */
static void use_variables(struct gn_cmdbuf_detail *d)
{
    pthread_mutex_lock(&d->lock);
    for (uint32_t i = 0; i < d->n; i++)
        gn_variables_use(d->commands[i].variables);
    pthread_mutex_unlock(&d->lock);
}

void gn_admit_EnqueueCommandBuffer(struct gn_vgpu *v, struct gn_command *c)
{
    (void)v;
    (void)c;
}

int32_t gn_submit_EnqueueCommandBuffer(struct gn_vgpu *v, struct gn_command *c,
                                       cl_command_queue queue, cl_uint n_waits,
                                       const cl_event *waits, cl_event *event)
{
    const struct gn_wire_EnqueueCommandBuffer *w = gn_command_message(c);
    const struct gn_extensions *e = gn_extensions(v);
    cl_int result = CL_INVALID_COMMAND_BUFFER_KHR;
    /* The command's queue may differ from the buffer's. */
    if (c->refs[0] && e->clEnqueueCommandBufferKHR) {
        use_variables(c->refs[0]->detail);
        result = e->clEnqueueCommandBufferKHR(1, &queue, c->refs[0]->driver, n_waits, waits, event);
    }
    if (result && !w->shown && !c->asked) {
        /*
         * The program does not see the event, so the error is reported as for a command without
         * one.
         */
        pthread_mutex_lock(&v->lock);
        if (!c->queue->late_error)
            c->queue->late_error = result;
        pthread_mutex_unlock(&v->lock);
    }
    return result;
}

void gn_cmdbuf_wrote(struct gn_vgpu *v, struct gn_vobject *o)
{
    struct gn_cmdbuf_detail *d = o->detail;
    pthread_mutex_lock(&d->lock);
    for (uint32_t i = 0; i < d->n; i++)
        if (d->commands[i].written.writes)
            gn_writes_by_cpu(v, d->commands[i].written.writes, d->commands[i].written.at,
                             d->commands[i].written.n);
    pthread_mutex_unlock(&d->lock);
}
