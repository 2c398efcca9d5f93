/* SPDX-License-Identifier: Apache-2.0 */
/* Sub-devices: every way to partition, their queries, work on them, contexts of several, errors. */
#include "difftest.h"

static void partition(void)
{
    struct env env;
    cl_device_id subs[64];
    env_init(&env);
    const cl_device_partition_property lists[][6] = {
        {CL_DEVICE_PARTITION_EQUALLY, 1, 0},
        {CL_DEVICE_PARTITION_EQUALLY, 2, 0},
        {CL_DEVICE_PARTITION_EQUALLY, 100000, 0},
        {CL_DEVICE_PARTITION_EQUALLY, 0, 0},
        {CL_DEVICE_PARTITION_BY_COUNTS, 1, CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0},
        {CL_DEVICE_PARTITION_BY_COUNTS, 1, 1, CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0},
        {CL_DEVICE_PARTITION_BY_COUNTS, 100000, CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0},
        {CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN, CL_DEVICE_AFFINITY_DOMAIN_NUMA, 0},
        {CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN, CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE, 0},
        {CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN, 0x7777, 0},
        {0x7777, 1, 0},
        {0},
    };
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        cl_uint n = 0;
        note("list %zu", i);
        CALL(clCreateSubDevices, env.device, lists[i], 0, NULL, &n);
        memset(subs, 0, sizeof(subs));
        if (n > 64 || CALL(clCreateSubDevices, env.device, lists[i], 64, subs, NULL) != CL_SUCCESS)
            continue;
        for (cl_uint d = 0; d < n; d++) {
            name_handle(ARG_DEVICE, subs[d]);
            if (d == 0)
                info_device_all(subs[d]);
            info_device(subs[d], "CL_DEVICE_PARENT_DEVICE");
            info_device(subs[d], "CL_DEVICE_PARTITION_TYPE");
            info_device(subs[d], "CL_DEVICE_MAX_COMPUTE_UNITS");
        }
        for (cl_uint d = 0; d < n; d++) {
            CALL(clRetainDevice, subs[d]);
            CALL(clReleaseDevice, subs[d]);
            CALL(clReleaseDevice, subs[d]);
        }
    }
    env_fini(&env);
}

static void errors(void)
{
    struct env env;
    cl_device_id subs[4];
    cl_uint n = 0;
    const cl_device_partition_property one[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    env_init(&env);
    CALL(clCreateSubDevices, (cl_device_id)NULL, one, 4, subs, &n);
    CALL(clCreateSubDevices, env.device, NULL, 4, subs, &n);
    CALL(clCreateSubDevices, env.device, one, 0, subs, &n);
    CALL(clCreateSubDevices, env.device, one, 0, NULL, NULL);
    cl_uint units = 0;
    clGetDeviceInfo(env.device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, NULL);
    if (units > 1)
        CALL(clCreateSubDevices, env.device, one, 1, subs, &n);
    env_fini(&env);
}

static void work(void)
{
    struct env env;
    cl_device_id subs[64] = {0};
    cl_uint n = 0;
    const cl_device_partition_property one[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    int words[64] = {0};
    env_init(&env);
    if (CALL(clCreateSubDevices, env.device, one, 64, subs, &n) != CL_SUCCESS)
        case_end("no sub-devices");
    if (n > 4)
        n = 4;
    for (cl_uint d = 0; d < n; d++)
        name_handle(ARG_DEVICE, subs[d]);
    cl_context context = MAKE(clCreateContext, NULL, n, subs, NULL, NULL);
    info_context_all(context);
    const char *source = kernels_source;
    cl_program program = MAKE(clCreateProgramWithSource, context, 1, &source, NULL);
    CALL(clBuildProgram, program, n, subs, "-cl-kernel-arg-info", NULL, NULL);
    info_program_all(program);
    cl_kernel kernel = MAKE(clCreateKernel, program, "add");
    cl_mem mem = MAKE(clCreateBuffer, context, CL_MEM_COPY_HOST_PTR, sizeof(words), words);
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    for (cl_uint d = 0; d < n; d++) {
        int k = 10 * (int)d + 1;
        size_t global = 64;
        cl_event event = NULL;
        cl_command_queue queue = MAKE(clCreateCommandQueue, context, subs[d], 0);
        info_queue_all(queue);
        info_workgroup_all(kernel, subs[d]);
        CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
        CALL(clEnqueueNDRangeKernel, queue, kernel, 1, NULL, &global, NULL, 0, NULL, &event);
        CALL(clEnqueueReadBuffer, queue, mem, CL_TRUE, 0, sizeof(words), words, 1, &event, NULL);
        note_bytes("read", words, sizeof(words));
        CALL(clReleaseEvent, event);
        CALL(clReleaseCommandQueue, queue);
    }
    /* The parent is not in that context. */
    MAKE(clCreateCommandQueue, context, env.device, 0);
    CALL(clReleaseMemObject, mem);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseProgram, program);
    CALL(clReleaseContext, context);
    for (cl_uint d = 0; d < n; d++)
        CALL(clReleaseDevice, subs[d]);
    env_fini(&env);
}

static const struct diff_case subdevice_cases[] = {
    {"partition", partition},
    {"errors", errors},
    {"work", work},
};
DIFF_FAMILY(subdevice);
