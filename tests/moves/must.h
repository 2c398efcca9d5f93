/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVES_MUST_H
#define MOVES_MUST_H

#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

/* What these programs expect: the first thing that is otherwise is said on stdout, where the test
 * reads it, and ends the program. */

#define MUST(what)                                                                                 \
    do {                                                                                           \
        cl_int must_ = (what);                                                                     \
        if (must_) {                                                                               \
            printf("wrong: %s: %d (line %d)\n", #what, must_, __LINE__);                           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define HOLDS(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            printf("wrong: %s (line %d)\n", #what, __LINE__);                                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* The first device, alone in a context, and a queue in order. */
static inline void must_open(cl_device_id *ret_device, cl_context *ret_context,
                             cl_command_queue *ret_queue)
{
    cl_platform_id platform;
    cl_int r;
    MUST(clGetPlatformIDs(1, &platform, NULL));
    MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, ret_device, NULL));
    *ret_context = clCreateContext(NULL, 1, ret_device, NULL, NULL, &r);
    MUST(r);
    *ret_queue = clCreateCommandQueue(*ret_context, *ret_device, 0, &r);
    MUST(r);
}

#endif
