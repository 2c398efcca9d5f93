/* SPDX-License-Identifier: Apache-2.0 */
/* Program objects: from source, binaries, built-in kernels and IL; queries before and after the
 * build; errors. */
#include "difftest.h"

static const char *const small = "kernel void one(global int *a) { a[get_global_id(0)] += 1; }\n"
                                 "kernel void two(global int *a) { a[get_global_id(0)] += 2; }\n";

static void run_one(struct env *env, cl_program program)
{
    int words[8] = {0};
    size_t global = 8;
    cl_mem mem = env_buffer(env, sizeof(words), words);
    cl_kernel kernel = MAKE(clCreateKernel, program, "two");
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    CALL(clEnqueueNDRangeKernel, env->queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    env_dump_buffer(env, "ran", mem, sizeof(words));
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, mem);
}

static void source(void)
{
    struct env env;
    env_init(&env);
    cl_program program =
        MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&small, NULL);
    info_program_all(program);
    info_build_all(program, env.device);
    MAKE(clCreateKernel, program, "one");
    CALL(clBuildProgram, program, 1, &env.device, NULL, NULL, NULL);
    info_program_all(program);
    info_build_all(program, env.device);
    run_one(&env, program);
    CALL(clRetainProgram, program);
    CALL(clReleaseProgram, program);
    CALL(clReleaseProgram, program);
    /* The same text in pieces, with lengths and without. */
    const char *pieces[3] = {"kernel void one(global int *a) { a[get_global_id(0)] += 1; }\nXXXX",
                             "kernel void two(global int *a)", " { a[get_global_id(0)] += 2; }\n"};
    size_t lengths[3] = {strlen(pieces[0]) - 4, 0, 0};
    program = MAKE(clCreateProgramWithSource, env.context, 3, pieces, lengths);
    info_program_all(program);
    CALL(clBuildProgram, program, 0, NULL, "", NULL, NULL);
    run_one(&env, program);
    CALL(clReleaseProgram, program);
    env_fini(&env);
}

static void source_errors(void)
{
    struct env env;
    const char *none[1] = {NULL};
    env_init(&env);
    MAKE(clCreateProgramWithSource, (cl_context)NULL, 1, (const char **)&small, NULL);
    MAKE(clCreateProgramWithSource, env.context, 0, (const char **)&small, NULL);
    /* No NULL list of strings: PoCL 3.1 crashes. */
    MAKE(clCreateProgramWithSource, env.context, 1, none, NULL);
    CALL(clRetainProgram, (cl_program)NULL);
    CALL(clReleaseProgram, (cl_program)NULL);
    cl_uint word = 0;
    cl_int status = 0;
    CALL(clGetProgramInfo, (cl_program)NULL, CL_PROGRAM_NUM_DEVICES, sizeof(word), &word, NULL);
    CALL(clGetProgramBuildInfo, (cl_program)NULL, env.device, CL_PROGRAM_BUILD_STATUS,
         sizeof(status), &status, NULL);
    cl_program program =
        MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&small, NULL);
    CALL(clGetProgramBuildInfo, program, (cl_device_id)NULL, CL_PROGRAM_BUILD_STATUS,
         sizeof(status), &status, NULL);
    CALL(clReleaseProgram, program);
    env_fini(&env);
}

static void binaries(void)
{
    struct env env;
    size_t size = 0, got = 0;
    cl_int status = ERRCODE_UNSET;
    env_init(&env);
    cl_program program =
        MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&small, NULL);
    /* Before the build there is none. */
    CALL(clGetProgramInfo, program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, &got);
    CALL(clBuildProgram, program, 0, NULL, NULL, NULL, NULL);
    CALL_CODE(clGetProgramInfo, program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, &got);
    note("answer of %zu bytes, empty: %s", got, size ? "no" : "yes");
    CALL_CODE(clGetProgramInfo, program, CL_PROGRAM_BINARY_SIZES, sizeof(size) - 1, &size, &got);
    unsigned char *binary = malloc(size + 1), *pointers[1] = {binary};
    binary[size] = 0x5a;
    CALL_CODE(clGetProgramInfo, program, CL_PROGRAM_BINARIES, sizeof(pointers), pointers, &got);
    note("answer of %zu bytes, within its size: %s", got, binary[size] == 0x5a ? "yes" : "no");
    /* No NULL among the pointers, which skips that device: PoCL 3.1 crashes. */
    CALL(clGetProgramInfo, program, CL_PROGRAM_BINARIES, 0, NULL, &got);
    CALL(clGetProgramInfo, program, CL_PROGRAM_BINARIES, sizeof(pointers) - 1, pointers, &got);
    CALL(clReleaseProgram, program);
    const unsigned char *given = binary;
    program = MAKE(clCreateProgramWithBinary, env.context, 1, &env.device, &size, &given, &status);
    note("binary status %s", error_name(status));
    info_program_all(program);
    info_build_all(program, env.device);
    MAKE(clCreateKernel, program, "two");
    CALL(clBuildProgram, program, 0, NULL, NULL, NULL, NULL);
    info_program_all(program);
    info_build_all(program, env.device);
    run_one(&env, program);
    CALL(clReleaseProgram, program);
    program = MAKE(clCreateProgramWithBinary, env.context, 1, &env.device, &size, &given, NULL);
    CALL(clReleaseProgram, program);
    free(binary);
    env_fini(&env);
}

static void binary_errors(void)
{
    static const unsigned char rubbish[64] = "this is no program";
    struct env env;
    const unsigned char *given = rubbish;
    size_t size = sizeof(rubbish), zero = 0;
    cl_int status = ERRCODE_UNSET;
    cl_device_id no_device = NULL;
    env_init(&env);
    MAKE(clCreateProgramWithBinary, (cl_context)NULL, 1, &env.device, &size, &given, &status);
    MAKE(clCreateProgramWithBinary, env.context, 0, &env.device, &size, &given, &status);
    MAKE(clCreateProgramWithBinary, env.context, 1, NULL, &size, &given, &status);
    /* No NULL list of binaries or of lengths: PoCL 3.1 crashes. */
    MAKE(clCreateProgramWithBinary, env.context, 1, &no_device, &size, &given, &status);
    MAKE(clCreateProgramWithBinary, env.context, 1, &env.device, &zero, &given, &status);
    note("status %s", error_name(status));
    status = ERRCODE_UNSET;
    MAKE(clCreateProgramWithBinary, env.context, 1, &env.device, &size, &given, &status);
    note("status %s", error_name(status));
    env_fini(&env);
}

static void null_binary(void)
{
    struct env env;
    const unsigned char *none = NULL;
    size_t size = 64;
    cl_int status = ERRCODE_UNSET;
    env_init(&env);
    MAKE(clCreateProgramWithBinary, env.context, 1, &env.device, &size, &none, &status);
    note("status %s", error_name(status));
    env_fini(&env);
}

static void built_in(void)
{
    struct env env;
    static char names[4096];
    env_init(&env);
    cl_int code =
        clGetDeviceInfo(env.device, CL_DEVICE_BUILT_IN_KERNELS, sizeof(names), names, NULL);
    note("built-in kernels: %s", error_name(code));
    MAKE(clCreateProgramWithBuiltInKernels, (cl_context)NULL, 1, &env.device, names);
    MAKE(clCreateProgramWithBuiltInKernels, env.context, 0, &env.device, names);
    MAKE(clCreateProgramWithBuiltInKernels, env.context, 1, NULL, names);
    MAKE(clCreateProgramWithBuiltInKernels, env.context, 1, &env.device, NULL);
    MAKE(clCreateProgramWithBuiltInKernels, env.context, 1, &env.device, "no.such.kernel");
    if (names[0]) {
        char *end = strchr(names, ';');
        if (end)
            *end = '\0';
        note_string("name", names);
        cl_program program =
            MAKE(clCreateProgramWithBuiltInKernels, env.context, 1, &env.device, names);
        if (program) {
            info_program_all(program);
            CALL(clReleaseProgram, program);
        }
    }
    env_fini(&env);
}

static void il(void)
{
    static const unsigned words[5] = {0x07230203, 0x00010000, 0, 1, 0};
    struct env env;
    size_t size = 0;
    env_init(&env);
    clGetDeviceInfo(env.device, CL_DEVICE_IL_VERSION, 0, NULL, &size);
    note("has an IL: %s", size > 1 ? "yes" : "no");
    MAKE(clCreateProgramWithIL, (cl_context)NULL, words, sizeof(words));
    MAKE(clCreateProgramWithIL, env.context, NULL, sizeof(words));
    MAKE(clCreateProgramWithIL, env.context, words, 0);
    cl_program program = MAKE(clCreateProgramWithIL, env.context, words, sizeof(words));
    if (program)
        CALL(clReleaseProgram, program);
    /* No constants for a program from source: PoCL 3.1 aborts. */
    int value = 3;
    CALL(clSetProgramSpecializationConstant, (cl_program)NULL, 0, sizeof(value), &value);
    env_fini(&env);
}

static struct latch released;

static void CL_CALLBACK on_release(cl_program program, void *user)
{
    latch_hit(&released, *(int *)user, 0);
}

static void release_callback(void)
{
    struct env env;
    int tag = 4;
    env_init(&env);
    latch_init(&released);
    cl_program program =
        MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&small, NULL);
    CALL(clSetProgramReleaseCallback, (cl_program)NULL, on_release, &tag);
    CALL(clSetProgramReleaseCallback, program, NULL, &tag);
    cl_int code = CALL(clSetProgramReleaseCallback, program, on_release, &tag);
    CALL(clReleaseProgram, program);
    if (code == CL_SUCCESS)
        note("called: %s", latch_wait(&released, 1) ? "yes" : "no");
    env_fini(&env);
}

/* A kernel keeps its program. */
static void outlived(void)
{
    struct env env;
    int words[4] = {0};
    size_t global = 4;
    env_init(&env);
    cl_program program =
        MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&small, NULL);
    CALL(clBuildProgram, program, 0, NULL, NULL, NULL, NULL);
    cl_kernel kernel = MAKE(clCreateKernel, program, "one");
    CALL(clReleaseProgram, program);
    cl_mem mem = env_buffer(&env, sizeof(words), words);
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    env_dump_buffer(&env, "ran", mem, sizeof(words));
    info_kernel_all(kernel);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static const struct diff_case program_cases[] = {
    {"source", source},
    {"source_errors", source_errors},
    {"binaries", binaries},
    {"binary_errors", binary_errors},
    {"null_binary", null_binary},
    {"built_in", built_in},
    {"il", il},
    {"release_callback", release_callback},
    {"outlived", outlived},
};
DIFF_FAMILY(program);
