/* SPDX-License-Identifier: Apache-2.0 */
#include "cmdbuf.h"

#include <sched.h>
#include <time.h>

#define CMDBUF_DEFINE(name) name##_fn name;
COMMAND_BUFFER_FUNCTIONS(CMDBUF_DEFINE)

void cmdbuf_init(struct env *env)
{
    env_init(env);
    if (!command_buffer_version(env->device))
        case_end("the device has no command buffers");
#define CMDBUF_FIND(name)                                                                          \
    name = (name##_fn)(uintptr_t)clGetExtensionFunctionAddressForPlatform(env->platform, #name);   \
    if (!name)                                                                                     \
        case_end("the platform has no " #name);
    COMMAND_BUFFER_FUNCTIONS(CMDBUF_FIND)
}

cl_command_buffer_khr cmdbuf_make(cl_command_queue queue, cl_command_buffer_flags_khr flags)
{
    const cl_command_buffer_properties_khr properties[] = {CL_COMMAND_BUFFER_FLAGS_KHR, flags, 0};
    return MAKE(clCreateCommandBufferKHR, 1, &queue, properties);
}

static cl_int state_of(cl_command_buffer_khr buffer, cl_command_buffer_state_khr *state)
{
    return clGetCommandBufferInfoKHR(buffer, CL_COMMAND_BUFFER_STATE_KHR, sizeof(*state), state,
                                     NULL);
}

void cmdbuf_note_state(cl_command_buffer_khr buffer)
{
    static const char *const names[] = {"recording", "executable", "pending", "invalid"};
    cl_command_buffer_state_khr state = 99;
    cl_int code = state_of(buffer, &state);
    note("  state of %s: %s %s", handle_name(buffer), error_name(code),
         state < 4 ? names[state] : "?");
}

void cmdbuf_settle(cl_command_buffer_khr buffer)
{
    cl_command_buffer_state_khr state;
    const time_t until = time(NULL) + 10;
    while (state_of(buffer, &state) == CL_SUCCESS && state == CL_COMMAND_BUFFER_STATE_PENDING_KHR &&
           time(NULL) < until)
        sched_yield();
    cmdbuf_note_state(buffer);
}
