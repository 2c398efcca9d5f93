/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OpenCL driver that can be unloaded, and says so (CL_PLATFORM_UNLOADABLE_KHR): one device whose
 * memory is malloc'd, contexts, queues, buffers and events, no programs. Commands are over when
 * their call returns. It holds a descriptor of "the device" (/dev/full) as long as it is loaded,
 * and a thread of its own. When it is unloaded, a line in the file $LEAVING_REPORT says what nobody
 * has released.
 *
 * With $LATE (late.h) it is the machine's own processors, works where a program's memory lies, and
 * says what it has to say late; with an f in it, it says nothing of an event that is over when it
 * is asked to. With $LEAVING_STAYS it cannot be unloaded. While there is a file $LEAVING_AWAY it
 * has no device.
 */
#include "late.h"

#include <CL/cl_icd.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef CL_PLATFORM_UNLOADABLE_KHR /* cl_khr_icd 2.0; not in older headers */
#define CL_PLATFORM_UNLOADABLE_KHR 0x0921
#endif

#define EXPORT __attribute__((visibility("default")))

enum kind { CONTEXT, QUEUE, MEM, EVENT, N_KINDS };

/* What every handle points to. */
struct object {
    const cl_icd_dispatch *dispatch;
    enum kind kind;
    atomic_uint n_refs;
    struct object *of; /* held: a queue's, buffer's or event's context or queue */
    cl_bitfield flags;
    size_t bytes;
    unsigned char *memory;
    bool borrowed; /* its memory is the program's */
    cl_command_type command;
    unsigned number;      /* of a command, in its queue; of a queue: how many it has had */
    atomic_uint finished; /* a queue's: so many are over, whoever knows */
    atomic_bool over;     /* a command's: the driver has said so */
    struct destructor {
        struct destructor *next;
        void(CL_CALLBACK *call)(cl_mem, void *);
        void *arg;
    } * destructors; /* a buffer's, the last one first */
};

static const cl_icd_dispatch dispatch;
static struct object platform = {.dispatch = &dispatch}, device = {.dispatch = &dispatch};
static _Atomic long n_left[N_KINDS], bytes_left;
static int device_fd = -1;
static pthread_t own_thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static bool ends; /* lock */

static void *wait_for_the_end(void *arg)
{
    pthread_mutex_lock(&lock);
    while (!ends)
        pthread_cond_wait(&wake, &lock);
    pthread_mutex_unlock(&lock);
    return arg;
}

/*
 * $LEAVING_HOLD is "PLACE FIFO": a thread that gets to that place says so in the file
 * $LEAVING_REPORT and stands there until there is a byte in the FIFO: "load", in this library's
 * constructor; "open", where the driver is brought up; "make", where a buffer is made; "release",
 * where one is released. The process's end must meet nobody there, as in a driver of C++ whose
 * static objects have destructors.
 */
static _Atomic int n_standing;

static void hold_at(const char *place)
{
    const char *hold = getenv("LEAVING_HOLD"), *path = hold ? strchr(hold, ' ') : NULL,
               *report = getenv("LEAVING_REPORT");
    char byte;
    if (!path || (size_t)(path - hold) != strlen(place) || memcmp(hold, place, strlen(place)))
        return;
    n_standing++;
    FILE *f = report ? fopen(report, "ae") : NULL;
    if (f) {
        fprintf(f, "stands %s\n", place);
        fclose(f);
    }
    const int fd = open(path + 1, O_RDONLY | O_CLOEXEC);
    while (read(fd, &byte, 1) < 0 && errno == EINTR)
        continue;
    close(fd);
    n_standing--;
}

static void look_at_exit(void)
{
    if (n_standing)
        abort();
}

__attribute__((constructor)) static void constructed(void)
{
    if (!getenv("LEAVING_HOLD"))
        return;
    atexit(look_at_exit);
    hold_at("load");
}

/* The device is opened at the first call, not when the library is loaded. */
static void open_device(void)
{
    device_fd = open("/dev/full", O_RDWR | O_CLOEXEC);
    if (pthread_create(&own_thread, NULL, wait_for_the_end, NULL))
        abort();
    if (getenv("LATE"))
        late_start();
}

__attribute__((destructor)) static void unloaded(void)
{
    const char *path = getenv("LEAVING_REPORT");
    FILE *f = path ? fopen(path, "ae") : NULL;
    if (device_fd >= 0) {
        late_end();
        pthread_mutex_lock(&lock);
        ends = true;
        pthread_cond_signal(&wake);
        pthread_mutex_unlock(&lock);
        pthread_join(own_thread, NULL);
        close(device_fd);
    }
    if (!f)
        return;
    fprintf(f, "unloaded: %ld contexts, %ld queues, %ld buffers, %ld events, %ld bytes\n",
            n_left[CONTEXT], n_left[QUEUE], n_left[MEM], n_left[EVENT], bytes_left);
    fclose(f);
}

/* ---- objects */

static void *new_object(enum kind kind, void *of)
{
    struct object *o = calloc(1, sizeof *o);
    if (!o)
        abort();
    o->dispatch = &dispatch;
    o->kind = kind;
    o->n_refs = 1;
    o->of = of;
    if (of)
        o->of->n_refs++;
    n_left[kind]++;
    return o;
}

static cl_int retain(void *handle)
{
    ((struct object *)handle)->n_refs++;
    return CL_SUCCESS;
}

static cl_int release(void *handle);

static void gone(void *arg)
{
    struct object *o = arg;
    struct object *of = o->of;
    while (o->destructors) {
        struct destructor *d = o->destructors;
        o->destructors = d->next;
        d->call((cl_mem)o, d->arg);
        free(d);
    }
    n_left[o->kind]--;
    bytes_left -= (long)(o->memory ? o->bytes : 0);
    if (!o->borrowed)
        free(o->memory);
    free(o);
    release(of);
}

static cl_int release(void *handle)
{
    struct object *o = handle;
    if (!o || --o->n_refs)
        return CL_SUCCESS;
    if (o->destructors && getenv("LATE"))
        late_say('d', gone, o);
    else
        gone(o);
    return CL_SUCCESS;
}

static void *made(cl_int *result, void *object)
{
    if (result)
        *result = CL_SUCCESS;
    return object;
}

static void *failed(cl_int *result, cl_int error)
{
    if (result)
        *result = error;
    return NULL;
}

static cl_int answer(const void *from, size_t n, size_t size, void *value, size_t *size_ret)
{
    if (value && size < n)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, from, n);
    if (size_ret)
        *size_ret = n;
    return CL_SUCCESS;
}

static cl_int answer_text(const char *text, size_t size, void *value, size_t *size_ret)
{
    return answer(text, strlen(text) + 1, size, value, size_ret);
}

static cl_int answer_number(uint64_t n, size_t bytes, size_t size, void *value, size_t *size_ret)
{
    return answer(&n, bytes, size, value, size_ret);
}

/* ---- platform and device */

static cl_int CL_API_CALL platform_ids(cl_uint n, cl_platform_id *ids, cl_uint *ret_n)
{
    hold_at("open");
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_device);
    if (ids && n)
        ids[0] = (cl_platform_id)&platform;
    if (ret_n)
        *ret_n = 1;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL platform_info(cl_platform_id p, cl_platform_info what, size_t size,
                                        void *value, size_t *size_ret)
{
    (void)p;
    switch (what) {
    case CL_PLATFORM_UNLOADABLE_KHR:
        return answer_number(!getenv("LEAVING_STAYS"), sizeof(cl_bool), size, value, size_ret);
    case CL_PLATFORM_VERSION:
        return answer_text("OpenCL 1.2 leaving", size, value, size_ret);
    case CL_PLATFORM_PROFILE:
        return answer_text("FULL_PROFILE", size, value, size_ret);
    case CL_PLATFORM_EXTENSIONS:
        return answer_text("cl_khr_icd", size, value, size_ret);
    case CL_PLATFORM_ICD_SUFFIX_KHR:
        return answer_text("LEAVING", size, value, size_ret);
    case CL_PLATFORM_NAME:
    case CL_PLATFORM_VENDOR:
        return answer_text("Leaving", size, value, size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_device_type device_type(void)
{
    return getenv("LATE") ? CL_DEVICE_TYPE_CPU : CL_DEVICE_TYPE_ACCELERATOR;
}

static cl_int CL_API_CALL device_ids(cl_platform_id p, cl_device_type type, cl_uint n,
                                     cl_device_id *ids, cl_uint *ret_n)
{
    const char *away = getenv("LEAVING_AWAY");
    (void)p;
    if (!(type & (device_type() | CL_DEVICE_TYPE_DEFAULT)) || (away && access(away, F_OK) == 0))
        return CL_DEVICE_NOT_FOUND;
    if (ids && n)
        ids[0] = (cl_device_id)&device;
    if (ret_n)
        *ret_n = 1;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL device_info(cl_device_id d, cl_device_info what, size_t size, void *value,
                                      size_t *size_ret)
{
    const void *const no_parent = NULL, *const its_platform = &platform;
    (void)d;
    switch (what) {
    case CL_DEVICE_TYPE:
        return answer_number(device_type(), sizeof(cl_device_type), size, value, size_ret);
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        return answer_number(getenv("LATE") != NULL, sizeof(cl_bool), size, value, size_ret);
    case CL_DEVICE_NAME:
    case CL_DEVICE_VENDOR:
    case CL_DRIVER_VERSION:
        return answer_text("Leaving", size, value, size_ret);
    case CL_DEVICE_VERSION:
        return answer_text("OpenCL 1.2 leaving", size, value, size_ret);
    case CL_DEVICE_EXTENSIONS:
        return answer_text("", size, value, size_ret);
    case CL_DEVICE_PLATFORM:
        return answer(&its_platform, sizeof its_platform, size, value, size_ret);
    case CL_DEVICE_PARENT_DEVICE:
        return answer(&no_parent, sizeof no_parent, size, value, size_ret);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        return answer_number(UINT64_C(1) << 30, sizeof(cl_ulong), size, value, size_ret);
    case CL_DEVICE_QUEUE_PROPERTIES:
        return answer_number(CL_QUEUE_PROFILING_ENABLE, sizeof(cl_bitfield), size, value, size_ret);
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN:
        return answer_number(1024, sizeof(cl_uint), size, value, size_ret);
    case CL_DEVICE_AVAILABLE:
        return answer_number(CL_TRUE, sizeof(cl_bool), size, value, size_ret);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        return answer_number(1, sizeof(cl_uint), size, value, size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL keep_device(cl_device_id d)
{
    (void)d;
    return CL_SUCCESS;
}

/* ---- contexts, queues, buffers */

/* Of the context that was made last. */
static struct {
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *);
    void *arg;
} notice;

static void say_notice(void *arg)
{
    (void)arg;
    notice.notify("a word", NULL, 0, notice.arg);
}

static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint n,
                                             const cl_device_id *ids,
                                             void(CL_CALLBACK *notify)(const char *, const void *,
                                                                       size_t, void *),
                                             void *arg, cl_int *result)
{
    (void)properties, (void)n, (void)ids;
    if (notify && late_is('n')) {
        notice.notify = notify;
        notice.arg = arg;
        late_say('n', say_notice, NULL);
    }
    return made(result, new_object(CONTEXT, NULL));
}

static cl_int CL_API_CALL retain_context(cl_context c)
{
    return retain(c);
}

static cl_int CL_API_CALL release_context(cl_context c)
{
    return release(c);
}

static cl_int CL_API_CALL context_info(cl_context c, cl_context_info what, size_t size, void *value,
                                       size_t *size_ret)
{
    const void *const id = &device;
    (void)c;
    switch (what) {
    case CL_CONTEXT_DEVICES:
        return answer(&id, sizeof id, size, value, size_ret);
    case CL_CONTEXT_NUM_DEVICES:
        return answer_number(1, sizeof(cl_uint), size, value, size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_command_queue CL_API_CALL create_queue(cl_context c, cl_device_id d,
                                                 cl_command_queue_properties properties,
                                                 cl_int *result)
{
    struct object *q = new_object(QUEUE, c);
    (void)d;
    q->flags = properties;
    return made(result, q);
}

static cl_int CL_API_CALL release_queue(cl_command_queue q)
{
    return release(q);
}

static cl_int CL_API_CALL queue_info(cl_command_queue h, cl_command_queue_info what, size_t size,
                                     void *value, size_t *size_ret)
{
    const struct object *q = (const void *)h;
    const void *const id = &device;
    switch (what) {
    case CL_QUEUE_CONTEXT:
        return answer(&q->of, sizeof q->of, size, value, size_ret);
    case CL_QUEUE_DEVICE:
        return answer(&id, sizeof id, size, value, size_ret);
    case CL_QUEUE_PROPERTIES:
        return answer(&q->flags, sizeof q->flags, size, value, size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL flush(cl_command_queue q)
{
    (void)q;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL finish(cl_command_queue h)
{
    struct object *q = (void *)h;
    q->finished = q->number;
    return CL_SUCCESS;
}

static cl_mem CL_API_CALL create_buffer(cl_context c, cl_mem_flags flags, size_t bytes, void *host,
                                        cl_int *result)
{
    hold_at("make");
    const bool borrows = flags & CL_MEM_USE_HOST_PTR;
    if (borrows && !getenv("LATE"))
        return failed(result, CL_INVALID_VALUE);
    struct object *m = new_object(MEM, c);
    m->flags = flags;
    m->bytes = bytes;
    m->borrowed = borrows;
    m->memory = borrows ? host : calloc(1, bytes);
    if (!m->memory)
        abort();
    if (host && !borrows)
        memcpy(m->memory, host, bytes);
    bytes_left += (long)bytes;
    return made(result, m);
}

static cl_int CL_API_CALL release_mem(cl_mem m)
{
    hold_at("release");
    return release(m);
}

static cl_int CL_API_CALL mem_callback(cl_mem h, void(CL_CALLBACK *call)(cl_mem, void *), void *arg)
{
    struct object *m = (void *)h;
    struct destructor *d = malloc(sizeof *d);
    if (!d)
        abort();
    *d = (struct destructor){m->destructors, call, arg};
    m->destructors = d;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL mem_info(cl_mem h, cl_mem_info what, size_t size, void *value,
                                   size_t *size_ret)
{
    const struct object *m = (const void *)h;
    const void *const none = NULL;
    switch (what) {
    case CL_MEM_TYPE:
        return answer_number(CL_MEM_OBJECT_BUFFER, sizeof(cl_mem_object_type), size, value,
                             size_ret);
    case CL_MEM_FLAGS:
        return answer(&m->flags, sizeof m->flags, size, value, size_ret);
    case CL_MEM_SIZE:
        return answer(&m->bytes, sizeof m->bytes, size, value, size_ret);
    case CL_MEM_CONTEXT:
        return answer(&m->of, sizeof m->of, size, value, size_ret);
    case CL_MEM_HOST_PTR:
    case CL_MEM_ASSOCIATED_MEMOBJECT:
        return answer(&none, sizeof none, size, value, size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}

/* ---- commands */

static cl_int over(cl_command_queue h, cl_command_type command, cl_event *event)
{
    struct object *q = (void *)h;
    q->number++;
    if (event) {
        struct object *e = new_object(EVENT, q);
        e->command = command;
        e->number = q->number;
        e->over = !late_is('f') && (command != CL_COMMAND_COPY_BUFFER || !late_is('c'));
        *event = (cl_event)e;
    }
    return CL_SUCCESS;
}

static unsigned char *memory_of(cl_mem m)
{
    return ((struct object *)m)->memory;
}

static cl_int CL_API_CALL read_buffer(cl_command_queue q, cl_mem m, cl_bool blocking, size_t at,
                                      size_t n, void *to, cl_uint n_waits, const cl_event *waits,
                                      cl_event *event)
{
    (void)blocking, (void)n_waits, (void)waits;
    memcpy(to, memory_of(m) + at, n);
    return over(q, CL_COMMAND_READ_BUFFER, event);
}

static cl_int CL_API_CALL write_buffer(cl_command_queue q, cl_mem m, cl_bool blocking, size_t at,
                                       size_t n, const void *from, cl_uint n_waits,
                                       const cl_event *waits, cl_event *event)
{
    (void)blocking, (void)n_waits, (void)waits;
    memcpy(memory_of(m) + at, from, n);
    return over(q, CL_COMMAND_WRITE_BUFFER, event);
}

static cl_int CL_API_CALL copy_buffer(cl_command_queue q, cl_mem from, cl_mem to, size_t from_at,
                                      size_t to_at, size_t n, cl_uint n_waits,
                                      const cl_event *waits, cl_event *event)
{
    (void)n_waits, (void)waits;
    memmove(memory_of(to) + to_at, memory_of(from) + from_at, n);
    return over(q, CL_COMMAND_COPY_BUFFER, event);
}

static cl_int CL_API_CALL fill_buffer(cl_command_queue q, cl_mem m, const void *pattern,
                                      size_t pattern_bytes, size_t at, size_t n, cl_uint n_waits,
                                      const cl_event *waits, cl_event *event)
{
    (void)n_waits, (void)waits;
    for (size_t i = 0; i < n; i += pattern_bytes)
        memcpy(memory_of(m) + at + i, pattern, pattern_bytes);
    return over(q, CL_COMMAND_FILL_BUFFER, event);
}

static cl_int CL_API_CALL marker(cl_command_queue q, cl_uint n_waits, const cl_event *waits,
                                 cl_event *event)
{
    (void)n_waits, (void)waits;
    return over(q, CL_COMMAND_MARKER, event);
}

static cl_event CL_API_CALL user_event(cl_context c, cl_int *result)
{
    struct object *e = new_object(EVENT, c);
    e->command = CL_COMMAND_USER;
    e->number = 1;
    return made(result, e);
}

static cl_int CL_API_CALL set_status(cl_event e, cl_int status)
{
    (void)status;
    ((struct object *)e)->over = true;
    return CL_SUCCESS;
}

struct word {
    struct object *event;
    void(CL_CALLBACK *reported)(cl_event, cl_int, void *);
    void *arg;
};

static void say_over(void *arg)
{
    struct word w = *(struct word *)arg;
    free(arg);
    w.event->over = true;
    w.reported((cl_event)w.event, CL_COMPLETE, w.arg);
    release(w.event);
}

static cl_int CL_API_CALL event_callback(cl_event e, cl_int status,
                                         void(CL_CALLBACK *reported)(cl_event, cl_int, void *),
                                         void *arg)
{
    struct object *o = (void *)e;
    (void)status;
    if (late_is('f')) {
        o->over = true;
        return CL_SUCCESS;
    }
    if (!getenv("LATE")) {
        reported(e, CL_COMPLETE, arg);
        return CL_SUCCESS;
    }
    struct word *w = malloc(sizeof *w);
    if (!w)
        abort();
    *w = (struct word){o, reported, arg};
    retain(o);
    late_say(o->command == CL_COMMAND_COPY_BUFFER ? 'c' : '-', say_over, w);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL event_info(cl_event h, cl_event_info what, size_t size, void *value,
                                     size_t *size_ret)
{
    const struct object *e = (const void *)h;
    if (what == CL_EVENT_COMMAND_EXECUTION_STATUS)
        return answer_number(e->over || e->number <= e->of->finished ? CL_COMPLETE : CL_RUNNING,
                             sizeof(cl_int), size, value, size_ret);
    return what == CL_EVENT_COMMAND_TYPE
               ? answer(&e->command, sizeof e->command, size, value, size_ret)
               : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL profiling_info(cl_event e, cl_profiling_info what, size_t size,
                                         void *value, size_t *size_ret)
{
    (void)e, (void)what;
    return answer_number(1, sizeof(cl_ulong), size, value, size_ret);
}

static cl_int CL_API_CALL retain_event(cl_event e)
{
    return retain(e);
}

static cl_int CL_API_CALL release_event(cl_event e)
{
    if (((const struct object *)(const void *)e)->command == CL_COMMAND_COPY_BUFFER)
        late_stand('r');
    return release(e);
}

static void *CL_API_CALL extension(const char *name)
{
    return strcmp(name, "clIcdGetPlatformIDsKHR") == 0 ? (void *)(uintptr_t)platform_ids : NULL;
}

static const cl_icd_dispatch dispatch = {
    .clGetPlatformIDs = platform_ids,
    .clGetPlatformInfo = platform_info,
    .clGetDeviceIDs = device_ids,
    .clGetDeviceInfo = device_info,
    .clRetainDevice = keep_device,
    .clReleaseDevice = keep_device,
    .clCreateContext = create_context,
    .clRetainContext = retain_context,
    .clReleaseContext = release_context,
    .clGetContextInfo = context_info,
    .clCreateCommandQueue = create_queue,
    .clReleaseCommandQueue = release_queue,
    .clGetCommandQueueInfo = queue_info,
    .clFlush = flush,
    .clFinish = finish,
    .clCreateBuffer = create_buffer,
    .clGetMemObjectInfo = mem_info,
    .clReleaseMemObject = release_mem,
    .clSetMemObjectDestructorCallback = mem_callback,
    .clEnqueueReadBuffer = read_buffer,
    .clEnqueueWriteBuffer = write_buffer,
    .clEnqueueCopyBuffer = copy_buffer,
    .clEnqueueFillBuffer = fill_buffer,
    .clEnqueueMarkerWithWaitList = marker,
    .clEnqueueBarrierWithWaitList = marker,
    .clCreateUserEvent = user_event,
    .clSetUserEventStatus = set_status,
    .clSetEventCallback = event_callback,
    .clGetEventInfo = event_info,
    .clGetEventProfilingInfo = profiling_info,
    .clRetainEvent = retain_event,
    .clReleaseEvent = release_event,
    .clGetExtensionFunctionAddress = extension,
};

EXPORT void *CL_API_CALL clGetExtensionFunctionAddress(const char *name)
{
    return extension(name);
}
