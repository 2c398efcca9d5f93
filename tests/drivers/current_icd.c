/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PoCL as a current driver: one in front of it that has what younger drivers have. $CURRENT says
 * what, as words: variables: its device has program-scope variables, and it tells the size of those
 * of a program (4 if one of them is called "counter"; else 0).
 */
#include "drivers/front_icd.h"

#define VARIABLE_BYTES 64000u

static bool has(const char *what)
{
    const char *at = getenv("CURRENT");
    char word[128];
    while (at && next_word(&at, word, sizeof word))
        if (!strcmp(word, what))
            return true;
    return false;
}

static cl_int answer(const void *bytes, size_t n, size_t size, void *value, size_t *size_ret)
{
    if (value && size < n)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, bytes, n);
    if (size_ret)
        *size_ret = n;
    return CL_SUCCESS;
}

/* ---- program-scope variables */

/* PoCL's binaries hold the names of what they declare. */
static bool has_counter(cl_program program)
{
    size_t bytes = 0;
    bool found = false;
    if (theirs->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) || !bytes)
        return false;
    unsigned char *binary = malloc(bytes);
    if (binary && !theirs->clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL))
        found = memmem(binary, bytes, "counter", strlen("counter")) != NULL;
    free(binary);
    return found;
}

static cl_int CL_API_CALL build_info(cl_program program, cl_device_id device, cl_program_build_info what, size_t size, void *value,
                                     size_t *size_ret)
{
    if (!has("variables") || what != CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE)
        return theirs->clGetProgramBuildInfo(program, device, what, size, value, size_ret);
    const size_t bytes = has_counter(program) ? 4 : 0;
    return answer(&bytes, sizeof bytes, size, value, size_ret);
}

/* ---- devices */

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size, void *value, size_t *size_ret)
{
    const size_t variables = VARIABLE_BYTES;
    if (what == CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE && has("variables"))
        return answer(&variables, sizeof variables, size, value, size_ret);
    return theirs->clGetDeviceInfo(device, what, size, value, size_ret);
}

static void replace_calls(void)
{
    ours.clGetProgramBuildInfo = build_info;
    ours.clGetDeviceInfo = device_info;
}
