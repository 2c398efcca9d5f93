/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which memory objects are arguments of which kernels. PoCL frees an object at its release although
 * it is an argument, and a launch then uses freed memory: here it ends the process with a message.
 * With `retain` kernels keep their arguments instead, as some drivers do. Called on the program's
 * threads.
 */
#include "discrete.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_BUCKETS 1024u

struct argument {
    cl_mem handle; /* NULL: none, or not a memory object */
    uint64_t serial;
};

struct kernel {
    struct kernel *next;
    cl_kernel handle;
    unsigned n_references; /* the program's */
    cl_uint n_arguments;
    struct argument *arguments;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel *buckets[N_BUCKETS];

static struct kernel **link_of_locked(cl_kernel handle)
{
    struct kernel **link = &buckets[(uintptr_t)handle / 16 % N_BUCKETS];
    while (*link && (*link)->handle != handle)
        link = &(*link)->next;
    return link;
}

/* Of the kernel's own references to its arguments; no lock is held. */
static void let_go(struct argument *a, cl_uint n)
{
    for (cl_uint i = 0; i < n && dg_options.retain; i++) {
        if (!a[i].handle)
            continue;
        dg_objects_lock();
        struct dg_object *o = dg_object_locked(a[i].handle);
        if (o)
            o->n_kernels--;
        dg_objects_unlock();
        driver->clReleaseMemObject(a[i].handle);
    }
}

static void remove_kernel(cl_kernel handle)
{
    pthread_mutex_lock(&lock);
    struct kernel **link = link_of_locked(handle), *k = *link;
    if (k)
        *link = k->next;
    pthread_mutex_unlock(&lock);
    if (!k)
        return;
    let_go(k->arguments, k->n_arguments);
    free(k->arguments);
    free(k);
}

static struct kernel *add_kernel(cl_kernel handle)
{
    struct kernel *k = calloc(1, sizeof *k);
    if (k && !driver->clGetKernelInfo(handle, CL_KERNEL_NUM_ARGS, sizeof k->n_arguments,
                                      &k->n_arguments, NULL))
        k->arguments = calloc((size_t)k->n_arguments + 1, sizeof *k->arguments);
    if (!k || !k->arguments) {
        fprintf(stderr, "discrete: no memory for a kernel\n");
        abort();
    }
    k->handle = handle;
    k->n_references = 1;
    pthread_mutex_lock(&lock);
    struct kernel **link = link_of_locked(handle);
    k->next = *link;
    *link = k;
    pthread_mutex_unlock(&lock);
    return k;
}

static cl_kernel CL_API_CALL create_kernel(cl_program program, const char *name, cl_int *result)
{
    cl_kernel handle = driver->clCreateKernel(program, name, result);
    if (handle)
        add_kernel(handle);
    return handle;
}

static cl_int CL_API_CALL create_kernels(cl_program program, cl_uint n, cl_kernel *kernels,
                                         cl_uint *ret_n)
{
    cl_uint made = 0;
    const cl_int result = driver->clCreateKernelsInProgram(program, n, kernels, &made);
    for (cl_uint i = 0; !result && kernels && i < made; i++)
        add_kernel(kernels[i]);
    if (!result && ret_n)
        *ret_n = made;
    return result;
}

/* Sets an argument in the table: `value` is the program's. */
static void note(struct kernel *k, cl_uint index, cl_mem value)
{
    struct argument before, now = {0};
    dg_objects_lock();
    struct dg_object *o = value ? dg_object_locked(value) : NULL;
    if (o) {
        now = (struct argument){.handle = value, .serial = o->serial};
        o->n_kernels += dg_options.retain;
    }
    dg_objects_unlock();
    if (o && dg_options.retain)
        driver->clRetainMemObject(value);
    pthread_mutex_lock(&lock);
    before = k->arguments[index];
    k->arguments[index] = now;
    pthread_mutex_unlock(&lock);
    let_go(&before, 1);
}

static struct kernel *find(cl_kernel handle)
{
    pthread_mutex_lock(&lock);
    struct kernel *k = *link_of_locked(handle);
    pthread_mutex_unlock(&lock);
    return k;
}

static cl_kernel CL_API_CALL clone_kernel(cl_kernel source, cl_int *result)
{
    cl_kernel handle = driver->clCloneKernel(source, result);
    struct kernel *from = handle ? find(source) : NULL, *k = from ? add_kernel(handle) : NULL;
    for (cl_uint i = 0; k && i < k->n_arguments; i++)
        note(k, i, from->arguments[i].handle);
    return handle;
}

static cl_int CL_API_CALL retain_kernel(cl_kernel handle)
{
    const cl_int result = driver->clRetainKernel(handle);
    pthread_mutex_lock(&lock);
    struct kernel *k = result ? NULL : *link_of_locked(handle);
    if (k)
        k->n_references++;
    pthread_mutex_unlock(&lock);
    return result;
}

static cl_int CL_API_CALL release_kernel(cl_kernel handle)
{
    pthread_mutex_lock(&lock);
    struct kernel *k = *link_of_locked(handle);
    const bool last = k && --k->n_references == 0;
    pthread_mutex_unlock(&lock);
    if (last)
        remove_kernel(handle);
    return driver->clReleaseKernel(handle);
}

static cl_int CL_API_CALL set_argument(cl_kernel handle, cl_uint index, size_t size,
                                       const void *value)
{
    const cl_int result = driver->clSetKernelArg(handle, index, size, value);
    struct kernel *k = result ? NULL : find(handle);
    if (k && index < k->n_arguments)
        note(k, index, value && size == sizeof(cl_mem) ? *(cl_mem const *)value : NULL);
    return result;
}

/* Without shared memory there are no pointers to it. */
static cl_int CL_API_CALL exec_info(cl_kernel handle, cl_kernel_exec_info what, size_t size,
                                    const void *value)
{
    return CL_INVALID_OPERATION;
}

static void refuse_released(cl_kernel handle, cl_uint index)
{
    char name[128] = "";
    driver->clGetKernelInfo(handle, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    fprintf(stderr, "discrete: kernel %s is launched with argument %u, which has been released\n",
            name, index);
    abort();
}

cl_int dg_kernel_use(cl_kernel handle)
{
    struct kernel *k = find(handle);
    for (cl_uint i = 0; k && i < k->n_arguments; i++) {
        pthread_mutex_lock(&lock);
        const struct argument a = k->arguments[i];
        pthread_mutex_unlock(&lock);
        if (!a.handle)
            continue;
        dg_objects_lock();
        struct dg_object *o = dg_object_locked(a.handle);
        const bool there = o && o->serial == a.serial && (o->n_references || dg_options.retain);
        dg_objects_unlock();
        if (!there)
            refuse_released(handle, i);
        const cl_int result = dg_object_use(a.handle);
        if (result)
            return result;
    }
    return CL_SUCCESS;
}

void dg_replace_kernels(cl_icd_dispatch *table)
{
    table->clCreateKernel = create_kernel;
    table->clCreateKernelsInProgram = create_kernels;
    table->clCloneKernel = clone_kernel;
    table->clRetainKernel = retain_kernel;
    table->clReleaseKernel = release_kernel;
    table->clSetKernelArg = set_argument;
    table->clSetKernelExecInfo = exec_info;
}
