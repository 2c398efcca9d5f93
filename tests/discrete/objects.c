/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory objects of the emulated device. Each buffer or image with memory of its own gets a piece
 * of the arena, which PoCL is given by CL_MEM_USE_HOST_PTR; the program's own flags and pointer are
 * in a table here, and queries answer from it. The program's pointer is read at the creation and
 * by unmaps, and written by maps alone. Called on any thread; destructor callbacks come on PoCL's.
 */
#include "objects.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_BUCKETS    4096u
#define HOST_FLAGS   (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)
#define ACCESS_FLAGS (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY)

struct dg_callback {
    struct dg_callback *next;
    void(CL_CALLBACK *call)(cl_mem, void *);
    void *data;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct dg_object *buckets[N_BUCKETS];
static uint64_t last_serial;

void dg_objects_lock(void)
{
    pthread_mutex_lock(&lock);
}

void dg_objects_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static struct dg_object **bucket(cl_mem handle)
{
    return &buckets[(uintptr_t)handle / 16 % N_BUCKETS];
}

struct dg_object *dg_object_locked(cl_mem handle)
{
    struct dg_object *o = *bucket(handle);
    while (o && o->handle != handle)
        o = o->next;
    return o;
}

/* ---- memory */

struct dg_memory *dg_memory_create(size_t bytes, cl_int *result)
{
    static _Atomic uint64_t n_creations;
    const uint64_t n = atomic_fetch_add(&n_creations, 1) + 1;
    *result = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (dg_options.fail && n % dg_options.fail == 0) {
        dg_state_add(DG_REFUSALS, 1);
        return NULL;
    }
    if (!dg_options.lazy && !dg_state_charge(bytes))
        return NULL;
    struct dg_memory *m = calloc(1, sizeof *m);
    if (m)
        m->base = dg_arena_allocate(bytes);
    if (!m || !m->base) {
        if (!dg_options.lazy)
            dg_state_uncharge(bytes);
        free(m);
        return NULL;
    }
    m->bytes = bytes;
    m->charged = !dg_options.lazy;
    *result = CL_SUCCESS;
    return m;
}

void dg_memory_destroy(struct dg_memory *m)
{
    if (m->charged)
        dg_state_uncharge(m->bytes);
    dg_arena_free(m->base);
    if (m->shadow != m->host_ptr)
        free(m->shadow);
    free(m);
}

static cl_int use_memory(struct dg_memory *m)
{
    if (m->charged)
        return CL_SUCCESS;
    if (!dg_state_charge(m->bytes))
        return CL_OUT_OF_RESOURCES;
    m->charged = true;
    return CL_SUCCESS;
}

cl_int dg_object_use(cl_mem handle)
{
    cl_int result = CL_SUCCESS;
    if (!dg_options.lazy)
        return CL_SUCCESS;
    dg_objects_lock();
    struct dg_object *o = dg_object_locked(handle);
    if (o)
        result = use_memory(o->memory);
    dg_objects_unlock();
    return result;
}

/* ---- objects */

/*
 * PoCL does not tell when an image over a buffer is destroyed. Such an image keeps the buffer, so
 * both are gone with the buffer's end.
 */
static bool is_silent(cl_mem handle)
{
    cl_mem_object_type type = 0;
    driver->clGetMemObjectInfo(handle, CL_MEM_TYPE, sizeof type, &type, NULL);
    return type == CL_MEM_OBJECT_IMAGE1D_BUFFER;
}

/* Moves the silent objects of this memory from the chain to *ret. */
static void take_silent_locked(struct dg_object **link, const struct dg_memory *m,
                               struct dg_object **ret)
{
    while (*link) {
        struct dg_object *o = *link;
        if (o->memory != m || !o->silent) {
            link = &o->next;
            continue;
        }
        *link = o->next;
        o->next = *ret;
        *ret = o;
    }
}

static void finish(struct dg_timer *t)
{
    struct dg_object *o =
        (struct dg_object *)(void *)((char *)t - offsetof(struct dg_object, late));
    for (struct dg_callback *c = o->done; c; c = o->done) {
        o->done = c->next;
        c->call(o->handle, c->data);
        free(c);
    }
    struct dg_object *silent = NULL;
    dg_objects_lock();
    const bool last = --o->memory->n_objects == 0;
    for (size_t i = 0; last && i < N_BUCKETS; i++)
        take_silent_locked(&buckets[i], o->memory, &silent);
    dg_objects_unlock();
    if (last)
        dg_memory_destroy(o->memory);
    while (silent) {
        struct dg_object *next = silent->next;
        free(silent);
        silent = next;
    }
    free(o);
}

/* PoCL no longer uses the object. Its callbacks are the last ones: it was the first. */
static void CL_CALLBACK on_destroyed(cl_mem handle, void *data)
{
    struct dg_object *o = data;
    (void)handle;
    dg_objects_lock();
    struct dg_object **link = bucket(o->handle);
    while (*link != o)
        link = &(*link)->next;
    *link = o->next;
    dg_objects_unlock();
    if (dg_options.late_ns)
        dg_timer_add(&o->late, dg_now_ns() + dg_options.late_ns);
    else
        finish(&o->late);
}

static void enter(cl_mem handle, const struct dg_object *as)
{
    struct dg_object *o = malloc(sizeof *o);
    const bool silent = is_silent(handle);
    if (!o || (!silent && driver->clSetMemObjectDestructorCallback(handle, on_destroyed, o))) {
        fprintf(stderr, "discrete: no memory for a memory object\n");
        abort();
    }
    *o = *as;
    o->handle = handle;
    o->silent = silent;
    o->n_references = 1;
    o->late.run = finish;
    dg_objects_lock();
    o->serial = ++last_serial;
    o->next = *bucket(handle);
    *bucket(handle) = o;
    o->memory->n_objects += !silent;
    dg_objects_unlock();
}

/* The default, which PoCL adds only where there is no flag at all. */
static cl_mem_flags added(cl_mem_flags flags)
{
    return flags && !(flags & ACCESS_FLAGS) ? CL_MEM_READ_WRITE : 0;
}

cl_mem dg_object_enter(cl_mem handle, struct dg_memory *m, cl_mem_flags flags, cl_int *result)
{
    enter(handle, &(struct dg_object){
                      .memory = m, .host_flags = flags & HOST_FLAGS, .added_flags = added(flags)});
    if (result)
        *result = CL_SUCCESS;
    return handle;
}

cl_mem dg_object_enter_part(cl_mem handle, cl_mem whole, size_t origin, cl_mem_flags flags,
                            cl_int *result)
{
    struct dg_object part = {0};
    dg_objects_lock();
    struct dg_object *o = dg_object_locked(whole);
    if (o)
        part = (struct dg_object){.memory = o->memory,
                                  .origin = o->origin + origin,
                                  .host_flags = o->host_flags,
                                  .added_flags = flags & ACCESS_FLAGS ? 0 : o->added_flags};
    dg_objects_unlock();
    if (part.memory)
        enter(handle, &part);
    if (result)
        *result = CL_SUCCESS;
    return handle;
}

cl_mem_flags dg_device_flags(cl_mem_flags flags)
{
    flags &= ~(cl_mem_flags)HOST_FLAGS;
    return (flags & ACCESS_FLAGS ? flags : flags | CL_MEM_READ_WRITE) | CL_MEM_USE_HOST_PTR;
}

bool dg_host_flags_right(cl_mem_flags flags, const void *host_ptr)
{
    const bool uses = flags & CL_MEM_USE_HOST_PTR, copies = flags & CL_MEM_COPY_HOST_PTR;
    return !(uses && (copies || flags & CL_MEM_ALLOC_HOST_PTR)) && (uses || copies) == !!host_ptr;
}

static cl_mem CL_API_CALL create_buffer_with(cl_context context,
                                             const cl_mem_properties *properties,
                                             cl_mem_flags flags, size_t size, void *host_ptr,
                                             cl_int *result)
{
    cl_int r;
    /* PoCL refuses arguments that cannot be right. */
    if (!size || !dg_host_flags_right(flags, host_ptr))
        return driver->clCreateBufferWithProperties(context, properties, flags, size, host_ptr,
                                                    result);
    static unsigned char probed[1];
    /* Without memory as yet, since PoCL may refuse it for a better reason. */
    cl_mem handle = driver->clCreateBufferWithProperties(context, properties,
                                                         dg_device_flags(flags), size, probed, &r);
    struct dg_memory *m = NULL;
    if (handle) {
        driver->clReleaseMemObject(handle);
        if (size > dg_options.capacity_bytes)
            r = CL_INVALID_BUFFER_SIZE;
        else
            m = dg_memory_create(size, &r);
        handle = m ? driver->clCreateBufferWithProperties(context, properties,
                                                          dg_device_flags(flags), size, m->base, &r)
                   : NULL;
    }
    if (!handle) {
        if (m)
            dg_memory_destroy(m);
        if (result)
            *result = r;
        return NULL;
    }
    dg_state_add(DG_CREATIONS, 1);
    if (host_ptr) {
        memcpy(m->base, host_ptr, size);
        dg_state_transferred(DG_TO_DEVICE, size);
    }
    if (flags & CL_MEM_USE_HOST_PTR)
        m->shadow = m->host_ptr = host_ptr;
    return dg_object_enter(handle, m, flags, result);
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t size,
                                        void *host_ptr, cl_int *result)
{
    return create_buffer_with(context, NULL, flags, size, host_ptr, result);
}

static cl_mem CL_API_CALL create_part(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
                                      const void *info, cl_int *result)
{
    const cl_buffer_region *region = info;
    cl_mem handle = driver->clCreateSubBuffer(buffer, flags, type, info, result);
    return handle ? dg_object_enter_part(handle, buffer, region->origin, flags, result) : NULL;
}

static cl_int CL_API_CALL retain(cl_mem handle)
{
    cl_int result = driver->clRetainMemObject(handle);
    dg_objects_lock();
    struct dg_object *o = dg_object_locked(handle);
    if (o && !result)
        o->n_references++;
    dg_objects_unlock();
    return result;
}

static cl_int CL_API_CALL release(cl_mem handle)
{
    dg_objects_lock();
    struct dg_object *o = dg_object_locked(handle);
    if (o && o->n_references)
        o->n_references--;
    dg_objects_unlock();
    return driver->clReleaseMemObject(handle);
}

static cl_int CL_API_CALL on_destruction(cl_mem handle, void(CL_CALLBACK *call)(cl_mem, void *),
                                         void *data)
{
    struct dg_callback *c = call ? malloc(sizeof *c) : NULL;
    dg_objects_lock();
    struct dg_object *o = dg_object_locked(handle);
    if (o && c) {
        *c = (struct dg_callback){.next = o->done, .call = call, .data = data};
        o->done = c;
    }
    dg_objects_unlock();
    if (o && c)
        return CL_SUCCESS;
    free(c);
    return driver->clSetMemObjectDestructorCallback(handle, call, data);
}

static cl_int CL_API_CALL memory_info(cl_mem handle, cl_mem_info what, size_t size, void *value,
                                      size_t *size_ret)
{
    cl_int result = driver->clGetMemObjectInfo(handle, what, size, value, size_ret);
    if (result || !value)
        return result;
    dg_objects_lock();
    struct dg_object *o = dg_object_locked(handle);
    if (o && what == CL_MEM_FLAGS) {
        cl_mem_flags *flags = value;
        *flags = (*flags & ~(HOST_FLAGS | o->added_flags)) | o->host_flags;
    } else if (o && what == CL_MEM_HOST_PTR) {
        char *host_ptr = o->memory->host_ptr;
        *(void **)value = host_ptr ? host_ptr + o->origin : NULL;
    } else if (o && what == CL_MEM_REFERENCE_COUNT) {
        *(cl_uint *)value -= o->n_kernels;
    }
    dg_objects_unlock();
    return result;
}

void dg_replace_objects(cl_icd_dispatch *table)
{
    table->clCreateBuffer = create_buffer;
    table->clCreateBufferWithProperties = create_buffer_with;
    table->clCreateSubBuffer = create_part;
    table->clRetainMemObject = retain;
    table->clReleaseMemObject = release;
    table->clSetMemObjectDestructorCallback = on_destruction;
    table->clGetMemObjectInfo = memory_info;
}
