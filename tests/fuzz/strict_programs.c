/* SPDX-License-Identifier: Apache-2.0 */
/* The strict driver's programs and kernels: see strict_driver.h. */
#include "strict_driver_internal.h"

#define N_ARGS    6
#define ARG_BYTES 8 /* of arguments 0 to 4; argument 5 is a struct */
#define BIG_ARG   256

static cl_program CL_API_CALL program_with_source(cl_context c, cl_uint n, const char **strings,
                                                  const size_t *lengths, cl_int *result)
{
    struct thing *context = of(c, CONTEXT);
    if (!context || !n || !strings)
        return fail(result, CL_INVALID_VALUE);
    for (cl_uint i = 0; i < n; i++)
        read_all(strings[i], lengths && lengths[i] ? lengths[i] : strlen(strings[i]));
    return made(result, strict_new(PROGRAM, context));
}

static cl_program CL_API_CALL program_with_binary(cl_context c, cl_uint n, const cl_device_id *ids,
                                                  const size_t *lengths,
                                                  const unsigned char **binaries, cl_int *status,
                                                  cl_int *result)
{
    struct thing *context = of(c, CONTEXT);
    if (!context || !n || !ids || !lengths || !binaries || !strict_devices_good(n, ids))
        return fail(result, CL_INVALID_VALUE);
    for (cl_uint i = 0; i < n; i++) {
        if (!lengths[i] || !binaries[i])
            return fail(result, CL_INVALID_VALUE);
        read_all(binaries[i], lengths[i]);
        if (status)
            status[i] = CL_SUCCESS;
    }
    return made(result, strict_new(PROGRAM, context));
}

static cl_program CL_API_CALL program_with_builtin(cl_context c, cl_uint n, const cl_device_id *ids,
                                                   const char *names, cl_int *result)
{
    struct thing *context = of(c, CONTEXT);
    if (!context || !names || !strict_devices_good(n, ids))
        return fail(result, CL_INVALID_VALUE);
    read_all(names, strlen(names) + 1);
    return made(result, strict_new(PROGRAM, context));
}

static cl_program CL_API_CALL program_with_il(cl_context c, const void *il, size_t n,
                                              cl_int *result)
{
    struct thing *context = of(c, CONTEXT);
    if (!context || !il || !n)
        return fail(result, CL_INVALID_VALUE);
    read_all(il, n);
    return made(result, strict_new(PROGRAM, context));
}

static cl_int CL_API_CALL build(cl_program p, cl_uint n, const cl_device_id *ids,
                                const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                                void *arg)
{
    FUZZ_CHECK(!notify && !arg);
    if (options)
        read_all(options, strlen(options) + 1);
    return of(p, PROGRAM) && strict_devices_good(n, ids) ? CL_SUCCESS : CL_INVALID_PROGRAM;
}

static cl_int CL_API_CALL compile(cl_program p, cl_uint n, const cl_device_id *ids,
                                  const char *options, cl_uint n_headers, const cl_program *headers,
                                  const char **names, void(CL_CALLBACK *notify)(cl_program, void *),
                                  void *arg)
{
    if (!n_headers != !headers || !n_headers != !names)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < n_headers; i++) {
        if (!of(headers[i], PROGRAM))
            return CL_INVALID_PROGRAM;
        read_all(names[i], strlen(names[i]) + 1);
    }
    return build(p, n, ids, options, notify, arg);
}

static cl_program CL_API_CALL link_program(cl_context c, cl_uint n, const cl_device_id *ids,
                                           const char *options, cl_uint n_programs,
                                           const cl_program *programs,
                                           void(CL_CALLBACK *notify)(cl_program, void *), void *arg,
                                           cl_int *result)
{
    struct thing *context = of(c, CONTEXT);
    (void)notify, (void)arg;
    if (options)
        read_all(options, strlen(options) + 1);
    if (!context || !strict_devices_good(n, ids) || !n_programs || !programs)
        return fail(result, CL_INVALID_VALUE);
    for (cl_uint i = 0; i < n_programs; i++)
        if (!of(programs[i], PROGRAM))
            return fail(result, CL_INVALID_PROGRAM);
    return made(result, strict_new(PROGRAM, context));
}

static cl_int CL_API_CALL unload_compiler(cl_platform_id p)
{
    return of(p, PLATFORM) ? CL_SUCCESS : CL_INVALID_PLATFORM;
}

static cl_int CL_API_CALL program_release_callback(cl_program p,
                                                   void(CL_CALLBACK *reported)(cl_program, void *),
                                                   void *arg)
{
    (void)arg;
    return of(p, PROGRAM) && reported ? CL_SUCCESS : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL specialization(cl_program p, cl_uint id, size_t size, const void *value)
{
    (void)id;
    if (!of(p, PROGRAM) || !value)
        return CL_INVALID_VALUE;
    read_all(value, size);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL program_info(cl_program p, cl_program_info what, size_t size, void *value,
                                       size_t *size_ret)
{
    static const size_t sizes[2] = {100, 50};
    if (!of(p, PROGRAM))
        return CL_INVALID_PROGRAM;
    if (what == CL_PROGRAM_NUM_DEVICES)
        return answer_number(2, sizeof(cl_uint), size, value, size_ret);
    if (what == CL_PROGRAM_BINARY_SIZES)
        return answer(sizes, sizeof sizes, size, value, size_ret);
    if (what == CL_PROGRAM_BINARIES) {
        unsigned char **into = value;
        if (into && size < sizeof sizes)
            return CL_INVALID_VALUE;
        for (int i = 0; into && i < 2; i++)
            if (into[i])
                write_all(into[i], sizes[i]);
        if (size_ret)
            *size_ret = sizeof sizes;
        return CL_SUCCESS;
    }
    return answer("text", 5, size, value, size_ret);
}

static cl_int CL_API_CALL build_info(cl_program p, cl_device_id d, cl_program_build_info what,
                                     size_t size, void *value, size_t *size_ret)
{
    (void)what;
    return of(p, PROGRAM) && of(d, DEVICE) ? answer("a log", 6, size, value, size_ret)
                                           : CL_INVALID_PROGRAM;
}

static cl_int CL_API_CALL release_program(cl_program p)
{
    return strict_release(p, PROGRAM, CL_INVALID_PROGRAM);
}

static cl_kernel CL_API_CALL create_kernel(cl_program p, const char *name, cl_int *result)
{
    struct thing *program = of(p, PROGRAM);
    if (!program || !name)
        return fail(result, CL_INVALID_VALUE);
    read_all(name, strlen(name) + 1);
    return made(result, strict_new(KERNEL, program));
}

static cl_int CL_API_CALL create_kernels(cl_program p, cl_uint n, cl_kernel *kernels,
                                         cl_uint *n_ret)
{
    struct thing *program = of(p, PROGRAM);
    if (!program || (kernels && n < 3))
        return CL_INVALID_VALUE;
    for (int i = 0; kernels && i < 3; i++)
        kernels[i] = strict_new(KERNEL, program);
    if (n_ret)
        *n_ret = 3;
    return CL_SUCCESS;
}

static cl_kernel CL_API_CALL clone_kernel(cl_kernel k, cl_int *result)
{
    struct thing *kernel = of(k, KERNEL);
    return kernel ? made(result, strict_new(KERNEL, kernel->parent))
                  : fail(result, CL_INVALID_KERNEL);
}

static cl_int CL_API_CALL set_arg(cl_kernel k, cl_uint index, size_t size, const void *value)
{
    if (!of(k, KERNEL))
        return CL_INVALID_KERNEL;
    if (index >= N_ARGS)
        return CL_INVALID_ARG_INDEX;
    if (index == 1) /* local memory */
        return value || !size ? CL_INVALID_ARG_VALUE : CL_SUCCESS;
    if (!value)
        return CL_INVALID_ARG_VALUE;
    if (size != (index == N_ARGS - 1 ? BIG_ARG : ARG_BYTES))
        return CL_INVALID_ARG_SIZE;
    read_all(value, size);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL set_arg_svm(cl_kernel k, cl_uint index, const void *value)
{
    (void)value;
    return of(k, KERNEL) && index < N_ARGS ? CL_SUCCESS : CL_INVALID_ARG_INDEX;
}

static cl_int CL_API_CALL exec_info(cl_kernel k, cl_kernel_exec_info what, size_t size,
                                    const void *value)
{
    if (!of(k, KERNEL) || !value || !size)
        return CL_INVALID_VALUE;
    read_all(value, size);
    for (size_t i = 0; what == CL_KERNEL_EXEC_INFO_SVM_PTRS && i < size / sizeof(void *); i++) {
        const void *p = ((void *const *)value)[i];
        if (p)
            read_all(p, 1);
    }
    return CL_SUCCESS;
}

static cl_int CL_API_CALL kernel_info(cl_kernel k, cl_kernel_info what, size_t size, void *value,
                                      size_t *size_ret)
{
    if (!of(k, KERNEL))
        return CL_INVALID_KERNEL;
    if (what == CL_KERNEL_CONTEXT)
        return answer(&of(k, KERNEL)->parent->parent, sizeof(void *), size, value, size_ret);
    if (what == CL_KERNEL_NUM_ARGS)
        return answer_number(N_ARGS, sizeof(cl_uint), size, value, size_ret);
    return answer("kernel", 7, size, value, size_ret);
}

static cl_int CL_API_CALL kernel_arg_info(cl_kernel k, cl_uint index, cl_kernel_arg_info what,
                                          size_t size, void *value, size_t *size_ret)
{
    static const char *const types[N_ARGS] = {"float*",    "float*",  "image2d_t",
                                              "sampler_t", "queue_t", "struct"};
    if (!of(k, KERNEL) || index >= N_ARGS)
        return CL_INVALID_ARG_INDEX;
    switch (what) {
    case CL_KERNEL_ARG_TYPE_NAME:
        return answer(types[index], strlen(types[index]) + 1, size, value, size_ret);
    case CL_KERNEL_ARG_TYPE_QUALIFIER:
        return answer_number(0, sizeof(cl_bitfield), size, value, size_ret);
    default:
        return answer_number(index ? CL_KERNEL_ARG_ADDRESS_LOCAL : CL_KERNEL_ARG_ADDRESS_GLOBAL, 4,
                             size, value, size_ret);
    }
}

static cl_int CL_API_CALL work_group_info(cl_kernel k, cl_device_id d,
                                          cl_kernel_work_group_info what, size_t size, void *value,
                                          size_t *size_ret)
{
    static const size_t none_demanded[3];
    if (!of(k, KERNEL) || (d && !of(d, DEVICE)))
        return CL_INVALID_KERNEL;
    if (what == CL_KERNEL_COMPILE_WORK_GROUP_SIZE)
        return answer(none_demanded, sizeof none_demanded, size, value, size_ret);
    return answer_number(64, 8, size, value, size_ret);
}

static cl_int CL_API_CALL sub_group_info(cl_kernel k, cl_device_id d, cl_kernel_sub_group_info what,
                                         size_t in_size, const void *in, size_t size, void *value,
                                         size_t *size_ret)
{
    if (in)
        read_all(in, in_size);
    return work_group_info(k, d, what, size, value, size_ret);
}

static cl_int CL_API_CALL release_kernel(cl_kernel k)
{
    return strict_release(k, KERNEL, CL_INVALID_KERNEL);
}

void strict_programs(cl_icd_dispatch *table)
{
    table->clCreateProgramWithSource = program_with_source;
    table->clCreateProgramWithBinary = program_with_binary;
    table->clCreateProgramWithBuiltInKernels = program_with_builtin;
    table->clCreateProgramWithIL = program_with_il;
    table->clBuildProgram = build;
    table->clCompileProgram = compile;
    table->clLinkProgram = link_program;
    table->clUnloadPlatformCompiler = unload_compiler;
    table->clSetProgramReleaseCallback = program_release_callback;
    table->clSetProgramSpecializationConstant = specialization;
    table->clGetProgramInfo = program_info;
    table->clGetProgramBuildInfo = build_info;
    table->clReleaseProgram = release_program;
    table->clCreateKernel = create_kernel;
    table->clCreateKernelsInProgram = create_kernels;
    table->clCloneKernel = clone_kernel;
    table->clSetKernelArg = set_arg;
    table->clSetKernelArgSVMPointer = set_arg_svm;
    table->clSetKernelExecInfo = exec_info;
    table->clGetKernelInfo = kernel_info;
    table->clGetKernelArgInfo = kernel_arg_info;
    table->clGetKernelWorkGroupInfo = work_group_info;
    table->clGetKernelSubGroupInfo = sub_group_info;
    table->clGetKernelSubGroupInfoKHR = sub_group_info;
    table->clReleaseKernel = release_kernel;
}
