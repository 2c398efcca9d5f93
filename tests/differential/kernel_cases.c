/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: creation, queries, arguments of every kind and wrong ones, clones, execution
 * information. */
#include "difftest.h"

static const char *const names[] = {"empty", "add",   "copy",   "ids",       "scalars", "local_sum",
                                    "table", "fixed", "hinted", "volatiles", "hello"};
#define N_NAMES (sizeof(names) / sizeof(names[0]))

static void info(void)
{
    struct env env;
    env_init(&env);
    env_program(&env);
    info_program_all(env.program);
    for (size_t i = 0; i < N_NAMES; i++) {
        cl_kernel kernel = MAKE(clCreateKernel, env.program, names[i]);
        info_kernel_all(kernel);
        info_workgroup_all(kernel, env.device);
        info_workgroup_all(kernel, NULL);
        CALL(clReleaseKernel, kernel);
    }
    env_fini(&env);
}

static void attributes(void)
{
    struct env env;
    env_init(&env);
    for (size_t i = 0; i < N_NAMES; i++) {
        cl_kernel kernel = MAKE(clCreateKernel, env_program(&env), names[i]);
        info_kernel_attributes(kernel);
        CALL(clReleaseKernel, kernel);
    }
    env_fini(&env);
}

static void arg_info(void)
{
    struct env env;
    env_init(&env);
    env_program(&env);
    for (size_t i = 0; i < N_NAMES; i++) {
        cl_uint n = 0;
        cl_kernel kernel = MAKE(clCreateKernel, env.program, names[i]);
        clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof(n), &n, NULL);
        for (cl_uint a = 0; a <= n; a++)
            info_kernel_arg_all(kernel, a);
        CALL(clReleaseKernel, kernel);
    }
    if (env.images) {
        cl_kernel kernel = MAKE(clCreateKernel, env.program, "image_copy");
        for (cl_uint a = 0; a < 3; a++)
            info_kernel_arg_all(kernel, a);
        CALL(clReleaseKernel, kernel);
    }
    /* Without the option a driver may or may not keep it. */
    const char *source =
        "kernel void plain(global float *x, local int *y, constant char *z, const int w) { }\n";
    cl_program program = MAKE(clCreateProgramWithSource, env.context, 1, &source, NULL);
    CALL(clBuildProgram, program, 0, NULL, "", NULL, NULL);
    cl_kernel kernel = MAKE(clCreateKernel, program, "plain");
    for (cl_uint a = 0; a < 4; a++)
        info_kernel_arg_all(kernel, a);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseProgram, program);
    env_fini(&env);
}

static void sub_groups(void)
{
    static const struct {
        const char *name;
        cl_kernel_sub_group_info param;
        bool takes_sizes;
    } queries[] = {
        {"CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE", CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE,
         true},
        {"CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE", CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, true},
        {"CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT", CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT,
         false},
        {"CL_KERNEL_MAX_NUM_SUB_GROUPS", CL_KERNEL_MAX_NUM_SUB_GROUPS, false},
        {"CL_KERNEL_COMPILE_NUM_SUB_GROUPS", CL_KERNEL_COMPILE_NUM_SUB_GROUPS, false},
    };
    struct env env;
    env_init(&env);
    cl_kernel kernel = env_kernel(&env, "add");
    for (size_t i = 0; i < 5; i++) {
        size_t in[3] = {16, 1, 1}, out[3] = {0}, size = 0;
        note("%s", queries[i].name);
        CALL(clGetKernelSubGroupInfo, kernel, env.device, queries[i].param, sizeof(in), in,
             sizeof(out), out, &size);
        note_bytes("answer", out, sizeof(out));
        CALL(clGetKernelSubGroupInfo, kernel, env.device, queries[i].param, sizeof(size_t), in,
             sizeof(size_t), out, &size);
        CALL(clGetKernelSubGroupInfo, kernel, env.device, queries[i].param, 0, NULL, sizeof(size_t),
             out, NULL);
        CALL(clGetKernelSubGroupInfo, kernel, env.device, queries[i].param, sizeof(in), in, 1, out,
             NULL);
        CALL(clGetKernelSubGroupInfo, kernel, (cl_device_id)NULL, queries[i].param, sizeof(in), in,
             sizeof(out), out, NULL);
    }
    CALL(clGetKernelSubGroupInfo, (cl_kernel)NULL, env.device, CL_KERNEL_MAX_NUM_SUB_GROUPS, 0,
         NULL, 0, NULL, NULL);
    CALL(clGetKernelSubGroupInfo, kernel, env.device, 0, 0, NULL, 0, NULL, NULL);
    CALL(clReleaseKernel, kernel);
    env_fini(&env);
}

static void create_errors(void)
{
    struct env env;
    cl_kernel none = NULL;
    cl_uint n = 0;
    size_t size = 0;
    env_init(&env);
    env_program(&env);
    MAKE(clCreateKernel, (cl_program)NULL, "add");
    MAKE(clCreateKernel, env.program, NULL);
    MAKE(clCreateKernel, env.program, "");
    MAKE(clCreateKernel, env.program, "no_such_kernel");
    MAKE(clCreateKernel, env.program, "ad");
    CALL(clRetainKernel, none);
    CALL(clReleaseKernel, none);
    CALL(clGetKernelInfo, none, CL_KERNEL_NUM_ARGS, sizeof(n), &n, NULL);
    CALL(clGetKernelArgInfo, none, 0, CL_KERNEL_ARG_NAME, 0, NULL, NULL);
    CALL(clGetKernelWorkGroupInfo, none, env.device, CL_KERNEL_WORK_GROUP_SIZE, sizeof(size), &size,
         NULL);
    CALL(clCreateKernelsInProgram, (cl_program)NULL, 0, NULL, &n);
    cl_kernel kernel = env_kernel(&env, "add");
    CALL(clRetainKernel, kernel);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseKernel, kernel);
    env_fini(&env);
}

static int by_name(const void *a, const void *b)
{
    char x[64] = "", y[64] = "";
    clGetKernelInfo(*(const cl_kernel *)a, CL_KERNEL_FUNCTION_NAME, sizeof(x), x, NULL);
    clGetKernelInfo(*(const cl_kernel *)b, CL_KERNEL_FUNCTION_NAME, sizeof(y), y, NULL);
    return strcmp(x, y);
}

static void in_program(void)
{
    struct env env;
    cl_kernel kernels[64] = {0};
    cl_uint n = 0;
    size_t total = 0;
    env_init(&env);
    env_program(&env);
    clGetProgramInfo(env.program, CL_PROGRAM_NUM_KERNELS, sizeof(total), &total, NULL);
    CALL(clCreateKernelsInProgram, env.program, 0, NULL, &n);
    note("as many as the program says: %s", n == total ? "yes" : "no");
    CALL(clCreateKernelsInProgram, env.program, 1, kernels, &n);
    CALL(clCreateKernelsInProgram, env.program, 64, kernels, &n);
    qsort(kernels, n, sizeof(kernels[0]), by_name); /* their order is nobody's promise */
    for (cl_uint i = 0; i < n; i++) {
        name_handle(ARG_KERNEL, kernels[i]);
        info_kernel_all(kernels[i]);
        CALL(clReleaseKernel, kernels[i]);
    }
    CALL(clCreateKernelsInProgram, env.program, 64, kernels, NULL);
    env_fini(&env);
}

static void scalar_args(void)
{
    struct env env;
    char c = -2;
    unsigned char uc = 250;
    short s = -300;
    unsigned short us = 60000;
    int i = -70000;
    unsigned ui = 4000000000u;
    long l = -5000000000;
    unsigned long ul = 0x0123456789abcdef;
    float f = 1.5f, v[4] = {1, 2, 3, 4};
    struct {
        int a;
        float b;
        char c[4];
    } item = {77, 2.25f, {1, 2, 3, 4}};
    size_t one = 1;
    env_init(&env);
    cl_mem mem = env_buffer(&env, 13 * 8, NULL);
    cl_kernel kernel = env_kernel(&env, "scalars");
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, kernel, 1, sizeof(c), &c);
    CALL(clSetKernelArg, kernel, 2, sizeof(uc), &uc);
    CALL(clSetKernelArg, kernel, 3, sizeof(s), &s);
    CALL(clSetKernelArg, kernel, 4, sizeof(us), &us);
    CALL(clSetKernelArg, kernel, 5, sizeof(i), &i);
    CALL(clSetKernelArg, kernel, 6, sizeof(ui), &ui);
    CALL(clSetKernelArg, kernel, 7, sizeof(l), &l);
    CALL(clSetKernelArg, kernel, 8, sizeof(ul), &ul);
    CALL(clSetKernelArg, kernel, 9, sizeof(f), &f);
    CALL(clSetKernelArg, kernel, 10, sizeof(v), v);
    CALL(clSetKernelArg, kernel, 11, sizeof(item), &item);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
    /* Arguments are taken at the launch: what is set next changes nothing that was enqueued. */
    ul = 1;
    CALL(clSetKernelArg, kernel, 8, sizeof(ul), &ul);
    env_dump_buffer(&env, "first", mem, 13 * 8);
    /* An eight-byte number that happens to be a handle's value is a number. */
    cl_mem lookalikes[3] = {mem, (cl_mem)env.context, (cl_mem)kernel};
    for (int n = 0; n < 3; n++) {
        cl_ulong got[13] = {0};
        CALL(clSetKernelArg, kernel, 8, sizeof(cl_ulong), &lookalikes[n]);
        CALL(clSetKernelArg, kernel, 7, sizeof(cl_ulong), &lookalikes[n]);
        CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
        CALL(clEnqueueReadBuffer, env.queue, mem, CL_TRUE, 0, sizeof(got), got, 0, NULL, NULL);
        note("kept as it is: %s %s", got[6] == (cl_ulong)(uintptr_t)lookalikes[n] ? "yes" : "no",
             got[7] == (cl_ulong)(uintptr_t)lookalikes[n] ? "yes" : "no");
    }
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void local_and_constant(void)
{
    struct env env;
    int lookup[16];
    unsigned k = 3;
    cl_mem none = NULL;
    size_t global = 16, local = 4;
    env_init(&env);
    for (int i = 0; i < 16; i++)
        lookup[i] = i * i;
    cl_mem out = env_buffer(&env, 64, lookup), table = env_buffer(&env, 64, lookup);
    cl_kernel kernel = env_kernel(&env, "local_sum");
    CALL(clSetKernelArg, kernel, 0, sizeof(out), &out);
    CALL(clSetKernelArg, kernel, 1, 4 * sizeof(unsigned), NULL);
    CALL(clSetKernelArg, kernel, 2, 4, NULL);
    CALL(clSetKernelArg, kernel, 3, sizeof(k), &k);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    env_dump_buffer(&env, "sums", out, 64);
    CALL(clSetKernelArg, kernel, 1, 0, NULL);
    CALL(clSetKernelArg, kernel, 1, 65540, NULL);
    CALL(clSetKernelArg, kernel, 1, 16, &k);
    cl_ulong local_size = 0;
    clGetDeviceInfo(env.device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof(local_size), &local_size, NULL);
    CALL(clReleaseKernel, kernel);
    kernel = env_kernel(&env, "table");
    CALL(clSetKernelArg, kernel, 0, sizeof(out), &out);
    CALL(clSetKernelArg, kernel, 1, sizeof(table), &table);
    CALL(clSetKernelArg, kernel, 2, sizeof(none), NULL); /* a NULL buffer, both spellings */
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    env_dump_buffer(&env, "table", out, 64);
    CALL(clSetKernelArg, kernel, 2, sizeof(none), &none);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    env_dump_buffer(&env, "table", out, 64);
    CALL(clSetKernelArg, kernel, 2, sizeof(out), &out);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    env_dump_buffer(&env, "table", out, 64);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, out);
    CALL(clReleaseMemObject, table);
    env_fini(&env);
}

static void arg_errors(void)
{
    struct env env;
    int k = 1;
    long wide = 1;
    size_t global = 4;
    env_init(&env);
    cl_mem mem = env_buffer(&env, 64, NULL);
    cl_kernel kernel = env_kernel(&env, "add");
    CALL(clSetKernelArg, (cl_kernel)NULL, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, kernel, 2, sizeof(k), &k);
    CALL(clSetKernelArg, kernel, 0xffffffffu, sizeof(k), &k);
    CALL(clSetKernelArg, kernel, 1, 0, &k);
    CALL(clSetKernelArg, kernel, 1, 1, &k);
    CALL(clSetKernelArg, kernel, 1, sizeof(wide), &wide);
    CALL(clSetKernelArg, kernel, 0, 4, &mem);
    CALL(clSetKernelArg, kernel, 0, 16, &mem);
    CALL(clSetKernelArg, kernel, 0, 0, NULL);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    /* A wrong setting leaves the right one. */
    CALL(clSetKernelArg, kernel, 1, 1, &k);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    CALL(clReleaseKernel, kernel);
    if (env.images) {
        cl_kernel image_kernel = env_kernel(&env, "image_copy");
        cl_sampler none = NULL;
        CALL(clSetKernelArg, image_kernel, 2, sizeof(none), &none);
        CALL(clSetKernelArg, image_kernel, 2, sizeof(none), NULL);
        CALL(clSetKernelArg, image_kernel, 2, 4, &none);
        CALL(clReleaseKernel, image_kernel);
    }
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void null_value(void)
{
    struct env env;
    env_init(&env);
    cl_kernel kernel = env_kernel(&env, "add");
    CALL(clSetKernelArg, kernel, 1, sizeof(int), NULL);
    CALL(clReleaseKernel, kernel);
    env_fini(&env);
}

static const char plain_kinds[] =
    "kernel void takes(global int *g, constant int *c, local int *l, int v, float4 f) { g[0] = "
    "c[0] + l[0] + v + f.x; }\n";
static const char image_kinds[] =
    "kernel void takes(read_only image2d_t i, write_only image2d_t w, sampler_t s, global int *g)\n"
    "{ write_imagef(w, (int2)(0, 0), read_imagef(i, s, (int2)(0, 0))); g[0] = 1; }\n";

static void set_without_value(struct env *env, const char *source, cl_uint n_args,
                              const char *options)
{
    static const size_t sizes[] = {8, 0, 1, 4, 16, 4};
    cl_program program = MAKE(clCreateProgramWithSource, env->context, 1, &source, NULL);
    CALL(clBuildProgram, program, 0, NULL, options, NULL, NULL);
    cl_kernel kernel = MAKE(clCreateKernel, program, "takes");
    for (cl_uint i = 0; i < n_args; i++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
            CALL(clSetKernelArg, kernel, i, sizes[s], NULL);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseProgram, program);
}

/* Whatever the compiler tells of the arguments. */
static void without_value(void)
{
    struct env env;
    env_init(&env);
    for (int reported = 0; reported < 2; reported++) {
        set_without_value(&env, plain_kinds, 5, reported ? "-cl-kernel-arg-info" : "");
        if (env.images)
            set_without_value(&env, image_kinds, 4, reported ? "-cl-kernel-arg-info" : "");
    }
    env_fini(&env);
}

/* What is refused is not set, and leaves nothing for later. */
static void refused_value(void)
{
    struct env env;
    size_t global = 1;
    int v = 3, words[4] = {1, 2, 3, 4};
    float f[4] = {1, 1, 1, 1};
    const char *source = plain_kinds;
    env_init(&env);
    cl_mem mem = env_buffer(&env, sizeof(words), words);
    cl_program program = MAKE(clCreateProgramWithSource, env.context, 1, &source, NULL);
    CALL(clBuildProgram, program, 0, NULL, "", NULL, NULL);
    cl_kernel kernel = MAKE(clCreateKernel, program, "takes");
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, kernel, 1, sizeof(mem), &mem);
    CALL(clSetKernelArg, kernel, 2, 64, NULL);
    CALL(clSetKernelArg, kernel, 3, sizeof(v), NULL);
    CALL(clSetKernelArg, kernel, 4, sizeof(f), f);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    CALL(clSetKernelArg, kernel, 3, sizeof(v), &v);
    CALL(clSetKernelArg, kernel, 3, sizeof(v), NULL);
    CALL(clSetKernelArg, kernel, 3, sizeof(mem), NULL);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseProgram, program);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

/* What one image was taken for says nothing of another kind of image, nor of a sampler or a buffer.
 */
static void other_object(void)
{
    const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
    const cl_image_desc flat = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 8, .image_height = 8};
    const cl_image_desc deep = {
        .image_type = CL_MEM_OBJECT_IMAGE3D, .image_width = 8, .image_height = 8, .image_depth = 4};
    const char *source = image_kinds;
    struct env env;
    env_init(&env);
    if (!env.images)
        case_end("no images");
    cl_mem mem = env_buffer(&env, 64, NULL);
    cl_mem in = MAKE(clCreateImage, env.context, CL_MEM_READ_ONLY, &format, &flat, NULL);
    cl_mem out = MAKE(clCreateImage, env.context, CL_MEM_WRITE_ONLY, &format, &flat, NULL);
    cl_mem both = MAKE(clCreateImage, env.context, CL_MEM_READ_WRITE, &format, &flat, NULL);
    cl_mem volume = MAKE(clCreateImage, env.context, CL_MEM_READ_ONLY, &format, &deep, NULL);
    cl_sampler sampler =
        MAKE(clCreateSampler, env.context, CL_FALSE, CL_ADDRESS_NONE, CL_FILTER_NEAREST);
    for (int reported = 0; reported < 2; reported++) {
        cl_program program = MAKE(clCreateProgramWithSource, env.context, 1, &source, NULL);
        CALL(clBuildProgram, program, 0, NULL, reported ? "-cl-kernel-arg-info" : "", NULL, NULL);
        cl_kernel kernel = MAKE(clCreateKernel, program, "takes");
        for (cl_uint i = 0; i < 4; i++) {
            CALL(clSetKernelArg, kernel, i, sizeof(in), &in);
            CALL(clSetKernelArg, kernel, i, sizeof(out), &out);
            CALL(clSetKernelArg, kernel, i, sizeof(both), &both);
            CALL(clSetKernelArg, kernel, i, sizeof(volume), &volume);
            CALL(clSetKernelArg, kernel, i, sizeof(mem), &mem);
            CALL(clSetKernelArg, kernel, i, sizeof(sampler), &sampler);
            CALL(clSetKernelArg, kernel, i, sizeof(in), &in);
        }
        CALL(clReleaseKernel, kernel);
        CALL(clReleaseProgram, program);
    }
    CALL(clReleaseSampler, sampler);
    CALL(clReleaseMemObject, in);
    CALL(clReleaseMemObject, out);
    CALL(clReleaseMemObject, both);
    CALL(clReleaseMemObject, volume);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void clone_kernel(void)
{
    struct env env;
    int k = 5, words[4] = {0};
    size_t global = 4;
    env_init(&env);
    cl_mem mem = env_buffer(&env, sizeof(words), words);
    cl_kernel kernel = env_kernel(&env, "add");
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
    cl_kernel copy = MAKE(clCloneKernel, kernel);
    MAKE(clCloneKernel, (cl_kernel)NULL);
    if (copy) {
        info_kernel_all(copy);
        k = 100;
        CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
        CALL(clEnqueueNDRangeKernel, env.queue, copy, 1, NULL, &global, NULL, 0, NULL, NULL);
        env_dump_buffer(&env, "by the clone", mem, sizeof(words));
        CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
        env_dump_buffer(&env, "by both", mem, sizeof(words));
        CALL(clReleaseKernel, copy);
    }
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

/* A buffer may be released once it is an argument of something enqueued. */
static void release_after_launch(void)
{
    struct env env;
    int k = 5, words[4] = {0};
    size_t global = 4;
    cl_event event = NULL;
    env_init(&env);
    cl_mem mem = env_buffer(&env, sizeof(words), words);
    cl_kernel kernel = env_kernel(&env, "add");
    cl_event user = MAKE(clCreateUserEvent, env.context);
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 1, &user, &event);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, mem);
    CALL(clSetUserEventStatus, user, CL_COMPLETE);
    note_event_end("launch", event);
    CALL(clReleaseEvent, event);
    CALL(clReleaseEvent, user);
    env_fini(&env);
}

static const struct diff_case kernel_cases[] = {
    {"info", info},
    {"attributes", attributes},
    {"arg_info", arg_info},
    {"sub_groups", sub_groups},
    {"create_errors", create_errors},
    {"in_program", in_program},
    {"scalar_args", scalar_args},
    {"local_and_constant", local_and_constant},
    {"arg_errors", arg_errors},
    {"null_value", null_value},
    {"without_value", without_value},
    {"refused_value", refused_value},
    {"other_object", other_object},
    {"clone", clone_kernel},
    {"release_after_launch", release_after_launch},
};
DIFF_FAMILY(kernel);
