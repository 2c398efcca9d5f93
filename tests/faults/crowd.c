/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of many programs that start together: waits until the descriptor that its argument names
 * hangs up, attaches, says when it had its devices (CLOCK_MONOTONIC, ns) and waits until stdin
 * hangs up.
 */
#include <CL/cl.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct timespec t;
    cl_platform_id platform;
    cl_device_id device;
    char c;
    if (argc != 2)
        return 2;
    while (read(atoi(argv[1]), &c, 1) > 0)
        continue;
    cl_int rc = clGetPlatformIDs(1, &platform, NULL);
    if (rc == CL_SUCCESS)
        rc = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    clock_gettime(CLOCK_MONOTONIC, &t);
    printf("%d %lld\n", (int)rc, (long long)t.tv_sec * 1000000000 + t.tv_nsec);
    fflush(stdout);
    while (read(0, &c, 1) > 0)
        continue;
    return rc != CL_SUCCESS;
}
