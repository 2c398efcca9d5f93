/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of the numbers in a checkpoint. Written by hand from api/opencl.api; a test compares
 * the two.
 */
#include "ctl/opencl/cl_ctl.h"

#include <stddef.h>

#include "base/checked.h"

/* Indexed by kind: the order of the `handles` line in api/opencl.api. */
static const char *const kinds[] = {NULL,      "platform", "device", "context", "queue", "mem",
                                    "sampler", "program",  "kernel", "event",   "svm",   "cmdbuf"};

/* The requests that are commands, and the OpenCL calls that they stand for. */
static const struct {
    uint32_t op;
    const char *call;
} commands[] = {
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

const char *gn_cl_kind_name(uint32_t kind)
{
    return kind < GN_ARRAY_SIZE(kinds) ? kinds[kind] : NULL;
}

const char *gn_cl_call_name(uint32_t op)
{
    for (size_t i = 0; i < GN_ARRAY_SIZE(commands); i++)
        if (commands[i].op == op)
            return commands[i].call;
    return NULL;
}
