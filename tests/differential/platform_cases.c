/* SPDX-License-Identifier: Apache-2.0 */
/* Platforms and devices: the lists, every query, the timers, extension functions by name. */
#include "difftest.h"

static void ids(void)
{
    cl_platform_id platforms[16] = {0};
    cl_uint n = 0;
    cl_platform_id mine = env_platform();
    /* How many there are belongs to the loader's configuration; that there is one is what counts.
     */
    cl_int code = clGetPlatformIDs(16, platforms, &n);
    note("clGetPlatformIDs -> %s, some: %s", error_name(code), n > 0 ? "yes" : "no");
    code = clGetPlatformIDs(0, NULL, &n);
    note("clGetPlatformIDs(count only) -> %s, some: %s", error_name(code), n > 0 ? "yes" : "no");
    CALL(clGetPlatformIDs, 0, platforms, NULL);
    CALL(clGetPlatformIDs, 0, NULL, NULL);
    CALL(clGetPlatformIDs, 16, platforms, NULL);
    note("again the same: %s", platforms[diff_platform_index] == mine ? "yes" : "no");
}

static void info(void)
{
    info_platform_all(env_platform());
}

static void devices(void)
{
    static const cl_device_type types[] = {CL_DEVICE_TYPE_DEFAULT,
                                           CL_DEVICE_TYPE_CPU,
                                           CL_DEVICE_TYPE_GPU,
                                           CL_DEVICE_TYPE_ACCELERATOR,
                                           CL_DEVICE_TYPE_CUSTOM,
                                           CL_DEVICE_TYPE_ALL,
                                           CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU,
                                           0,
                                           1u << 20,
                                           1u << 20 | CL_DEVICE_TYPE_CPU,
                                           1u << 20 | CL_DEVICE_TYPE_GPU};
    cl_platform_id platform = env_platform();
    cl_device_id found[16];
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        cl_uint n = 77;
        memset(found, 0, sizeof(found));
        cl_device_type type = types[i];
        if (CALL(clGetDeviceIDs, platform, type, 16, found, &n) != CL_SUCCESS)
            continue;
        for (cl_uint d = 0; d < n && d < 16; d++) {
            name_handle_once(ARG_DEVICE, found[d]);
            note("  %s", handle_name(found[d]));
        }
        CALL(clGetDeviceIDs, platform, type, 0, NULL, &n);
        CALL(clGetDeviceIDs, platform, type, 1, found, NULL);
    }
    cl_uint n = 0;
    CALL(clGetDeviceIDs, platform, CL_DEVICE_TYPE_ALL, 0, found, NULL);
    CALL(clGetDeviceIDs, platform, CL_DEVICE_TYPE_ALL, 0, NULL, NULL);
    CALL(clGetDeviceIDs, platform, CL_DEVICE_TYPE_ALL, 0, found, &n);
}

static void device_info(void)
{
    cl_device_id found[16] = {0};
    cl_uint n = 0;
    CALL(clGetDeviceIDs, env_platform(), CL_DEVICE_TYPE_ALL, 16, found, &n);
    for (cl_uint d = 0; d < n && d < 4; d++) {
        name_handle_once(ARG_DEVICE, found[d]);
        info_device_all(found[d]);
    }
}

/* The sizes of memory agree with each other, whatever they are at the moment. */
static void memory_sizes(void)
{
    struct env env;
    cl_ulong global = 0, largest = 0, constant = 0;
    env_init(&env);
    CALL_CODE(clGetDeviceInfo, env.device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(global), &global,
              NULL);
    CALL_CODE(clGetDeviceInfo, env.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(largest), &largest,
              NULL);
    CALL_CODE(clGetDeviceInfo, env.device, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, sizeof(constant),
              &constant, NULL);
    note("largest allocation within global memory: %s, at least a quarter of it or 1 GiB: %s",
         largest <= global ? "yes" : "no",
         largest >= global / 4 || largest >= (cl_ulong)1 << 30 ? "yes" : "no");
    note("constant buffer within an allocation: %s", constant <= largest ? "yes" : "no");
    env_fini(&env);
}

static void device_errors(void)
{
    cl_device_type type = 0;
    size_t size = 0;
    cl_ulong a = 0, b = 0;
    struct env env;
    env_init(&env);
    CALL(clGetDeviceInfo, (cl_device_id)NULL, CL_DEVICE_TYPE, sizeof(type), &type, NULL);
    CALL(clGetDeviceInfo, env.device, CL_DEVICE_TYPE, 0, &type, &size);
    CALL(clGetDeviceInfo, env.device, 0, sizeof(type), &type, &size);
    CALL(clRetainDevice, (cl_device_id)NULL);
    CALL(clReleaseDevice, (cl_device_id)NULL);
    CALL(clRetainDevice, env.device);
    CALL(clReleaseDevice, env.device);
    CALL(clReleaseDevice, env.device); /* a root device is not counted */
    CALL(clGetDeviceInfo, env.device, CL_DEVICE_TYPE, sizeof(type), &type, NULL);
    CALL_CODE(clGetDeviceAndHostTimer, (cl_device_id)NULL, &a, &b);
    CALL_CODE(clGetHostTimer, (cl_device_id)NULL, &a);
    CALL(clSetDefaultDeviceCommandQueue, (cl_context)NULL, env.device, env.queue);
    env_fini(&env);
}

static void timers(void)
{
    cl_ulong device = 0, host = 0, host2 = 0;
    struct env env;
    env_init(&env);
    cl_int code = CALL_CODE(clGetDeviceAndHostTimer, env.device, &device, &host);
    cl_int code2 = CALL_CODE(clGetHostTimer, env.device, &host2);
    if (code == CL_SUCCESS && code2 == CL_SUCCESS)
        note("host timers go forward: %s, device timer set: %s", host2 >= host ? "yes" : "no",
             device ? "yes" : "no");
    CALL_CODE(clGetDeviceAndHostTimer, env.device, NULL, &host);
    CALL_CODE(clGetDeviceAndHostTimer, env.device, &device, NULL);
    CALL_CODE(clGetHostTimer, env.device, NULL);
    env_fini(&env);
}

static void default_queue(void)
{
    struct env env;
    env_init(&env);
    CALL(clSetDefaultDeviceCommandQueue, env.context, env.device, env.queue);
    CALL(clSetDefaultDeviceCommandQueue, env.context, (cl_device_id)NULL, env.queue);
    CALL(clSetDefaultDeviceCommandQueue, env.context, env.device, (cl_command_queue)NULL);
    env_fini(&env);
}

static void unload_compiler(void)
{
    struct env env;
    env_init(&env);
    CALL(clUnloadPlatformCompiler, env.platform);
    CALL(clUnloadPlatformCompiler, (cl_platform_id)NULL);
    env_program(&env);
    note("a program builds after that");
    env_fini(&env);
}

static const struct diff_case platform_cases[] = {
    {"ids", ids},
    {"info", info},
    {"devices", devices},
    {"device_info", device_info},
    {"memory_sizes", memory_sizes},
    {"device_errors", device_errors},
    {"timers", timers},
    {"default_queue", default_queue},
    {"unload_compiler", unload_compiler},
};
DIFF_FAMILY(platform);

static void lists(void)
{
    cl_device_id found[16] = {0};
    cl_uint n = 0;
    cl_platform_id platform = env_platform();
    info_platform(platform, "CL_PLATFORM_EXTENSIONS");
    info_platform(platform, "CL_PLATFORM_EXTENSIONS_WITH_VERSION");
    CALL(clGetDeviceIDs, platform, CL_DEVICE_TYPE_ALL, 16, found, &n);
    for (cl_uint d = 0; d < n && d < 4; d++) {
        name_handle_once(ARG_DEVICE, found[d]);
        info_device(found[d], "CL_DEVICE_EXTENSIONS");
        info_device(found[d], "CL_DEVICE_EXTENSIONS_WITH_VERSION");
        info_device(found[d], "CL_DEVICE_OPENCL_C_FEATURES");
    }
}

/* The two lists of extensions, with versions and without, must agree whatever they hold. */
static void lists_agree(void)
{
    struct env env;
    static char plain[65536];
    static cl_name_version versions[512];
    size_t size = 0;
    env_init(&env);
    if (env_device_version(&env) < 30)
        case_end("not in this version");
    CALL(clGetDeviceInfo, env.device, CL_DEVICE_EXTENSIONS, sizeof(plain), plain, NULL);
    CALL_CODE(clGetDeviceInfo, env.device, CL_DEVICE_EXTENSIONS_WITH_VERSION, sizeof(versions),
              versions, &size);
    unsigned missing = 0, words = 0;
    for (size_t i = 0; i < size / sizeof(versions[0]); i++)
        missing += !strstr(plain, versions[i].name);
    for (char *save = NULL, *word = strtok_r(plain, " ", &save); word;
         word = strtok_r(NULL, " ", &save))
        words++;
    note("as many: %s, missing: %u", words == size / sizeof(versions[0]) ? "yes" : "no", missing);
    env_fini(&env);
}

static void functions(void)
{
    static const char *const names[] = {"clNoSuchFunctionKHR", "clNoSuchFunction", ""};
    cl_platform_id platform = env_platform();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        note("name \"%s\"", names[i]);
        CALL_PTR(clGetExtensionFunctionAddressForPlatform, platform, names[i]);
        CALL_PTR(clGetExtensionFunctionAddress, names[i]);
    }
    CALL_PTR(clGetExtensionFunctionAddressForPlatform, (cl_platform_id)NULL, "clNoSuchFunctionKHR");
    /* cl_khr_icd asks for this one of every driver. */
    CALL_PTR(clGetExtensionFunctionAddressForPlatform, platform, "clIcdGetPlatformIDsKHR");
}

static const struct diff_case extensions_cases[] = {
    {"lists", lists},
    {"lists_agree", lists_agree},
    {"functions", functions},
};
DIFF_FAMILY(extensions);
