/* SPDX-License-Identifier: Apache-2.0 */
/* What the numbers in a checkpoint are called. Written by hand from api/opencl.api; a test
 * compares. */
#include "ctl/inspect.h"

#include <string.h>

#include "base/checked.h"

/* The `handles` line, whose order is their numbers. */
static const char *const opencl_kinds[] = {NULL,     "platform", "device",  "context",
                                           "queue",  "mem",      "sampler", "program",
                                           "kernel", "event",    "svm",     "cmdbuf"};

/* Requests that are commands, by the calls of OpenCL that they stand for. */
static const struct {
    uint32_t op;
    const char *call;
} opencl_commands[] = {
    {38, "clFinish"},
    {64, "clEnqueueSVMMemcpy"},
    {65, "clEnqueueSVMMemFill"},
    {66, "clEnqueueSVMMap"},
    {67, "clEnqueueSVMUnmap"},
    {68, "clEnqueueSVMMigrateMem"},
    {150, "clEnqueueReadBuffer"},
    {151, "clEnqueueReadBufferRect"},
    {152, "clEnqueueWriteBuffer"},
    {153, "clEnqueueWriteBufferRect"},
    {154, "clEnqueueFillBuffer"},
    {155, "clEnqueueCopyBuffer"},
    {156, "clEnqueueCopyBufferRect"},
    {159, "clEnqueueMigrateMemObjects"},
    {160, "clEnqueueReadImage"},
    {161, "clEnqueueWriteImage"},
    {162, "clEnqueueFillImage"},
    {163, "clEnqueueCopyImage"},
    {164, "clEnqueueCopyImageToBuffer"},
    {165, "clEnqueueCopyBufferToImage"},
    {181, "clEnqueueNDRangeKernel"},
    {187, "clEnqueueMarkerWithWaitList"},
    {188, "clEnqueueBarrierWithWaitList"},
    {206, "clEnqueueCommandBufferKHR"},
};

const char *gn_inspect_kind_name(const char *api, uint32_t kind)
{
    return strcmp(api, "opencl") == 0 && kind < GN_ARRAY_SIZE(opencl_kinds) ? opencl_kinds[kind]
                                                                            : NULL;
}

const char *gn_inspect_call_name(const char *api, uint32_t op)
{
    for (size_t i = 0; strcmp(api, "opencl") == 0 && i < GN_ARRAY_SIZE(opencl_commands); i++)
        if (opencl_commands[i].op == op)
            return opencl_commands[i].call;
    return NULL;
}
