/* SPDX-License-Identifier: Apache-2.0 */
/* Native kernels: a family left out of comparisons, since a function of the program cannot run in
 * another process. */
#include "difftest.h"

struct native_args {
    void *mem;
    int value;
};

static void CL_CALLBACK native_function(void *args)
{
    struct native_args *native = args;
    ((int *)native->mem)[0] = native->value;
}

static void run(void)
{
    struct env env;
    int words[4] = {0};
    cl_device_exec_capabilities caps = 0;
    cl_event event = NULL;
    env_init(&env);
    clGetDeviceInfo(env.device, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof(caps), &caps, NULL);
    note("native kernels: %s", caps & CL_EXEC_NATIVE_KERNEL ? "yes" : "no");
    cl_mem mem = env_buffer(&env, sizeof(words), words);
    struct native_args args = {mem, 99};
    const void *places[1] = {&args.mem};
    CALL(clEnqueueNativeKernel, env.queue, native_function, &args, sizeof(args), 1, &mem, places, 0,
         NULL, &event);
    if (event) {
        note_event_end("native kernel", event);
        CALL(clReleaseEvent, event);
    }
    env_dump_buffer(&env, "buffer", mem, sizeof(words));
    CALL(clEnqueueNativeKernel, env.queue, NULL, &args, sizeof(args), 1, &mem, places, 0, NULL,
         NULL);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static const struct diff_case native_cases[] = {
    {"run", run},
};
DIFF_FAMILY(native);
