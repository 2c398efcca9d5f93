/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_TEST_FRONT_ICD_H
#define GN_TEST_FRONT_ICD_H

/*
 * What an OpenCL driver consists of that stands in front of PoCL: included once by such a driver,
 * which defines replace_calls(). All handles are PoCL's own; a call that the driver does not
 * replace goes to PoCL.
 */
#include <CL/cl_icd.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *pocl;
static const cl_icd_dispatch *theirs; /* PoCL's own table */
static cl_icd_dispatch ours;          /* what every handle of the platform's leads to */

/* Puts the driver's functions into `ours`, which holds PoCL's. Once, before the platform is handed
 * out. */
static void replace_calls(void);

__attribute__((constructor)) static void load_pocl(void)
{
    pocl = dlopen("libpocl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!pocl) {
        fprintf(stderr, "front_icd: %s\n", dlerror());
        abort();
    }
}

/* The next of the words that an environment variable holds, from *at on. */
static inline bool next_word(const char **at, char *word, size_t room)
{
    size_t n = strcspn(*at += strspn(*at, " "), " ");
    if (!n || n >= room)
        return false;
    memcpy(word, *at, n);
    word[n] = 0;
    *at += n;
    return true;
}

static cl_int CL_API_CALL platform_ids(cl_uint n, cl_platform_id *ids, cl_uint *ret_n)
{
    typedef cl_int(CL_API_CALL * ids_fn)(cl_uint, cl_platform_id *, cl_uint *);
    cl_platform_id one = NULL;
    union {
        void *object;
        ids_fn call;
    } get = {dlsym(pocl, "clIcdGetPlatformIDsKHR")};
    union {
        void *object;
        void *(CL_API_CALL *call)(const char *);
    } find = {dlsym(pocl, "clGetExtensionFunctionAddress")};
    if (!get.object && find.object)
        get.object = find.call("clIcdGetPlatformIDsKHR");
    if (!get.object || get.call(1, &one, NULL) || !one)
        return CL_PLATFORM_NOT_FOUND_KHR;
    if (!theirs) {
        /* What every handle of a driver begins with. */
        theirs = *(const cl_icd_dispatch *const *)(const void *)one;
        ours = *theirs;
        replace_calls();
        *(const cl_icd_dispatch **)(void *)one = &ours;
    }
    if (ids && n)
        ids[0] = one;
    if (ret_n)
        *ret_n = 1;
    return CL_SUCCESS;
}

__attribute__((visibility("default"))) cl_int CL_API_CALL
clIcdGetPlatformIDsKHR(cl_uint n, cl_platform_id *ids, cl_uint *ret_n)
{
    return platform_ids(n, ids, ret_n);
}

__attribute__((visibility("default"))) void *CL_API_CALL
clGetExtensionFunctionAddress(const char *name)
{
    union {
        cl_int(CL_API_CALL *call)(cl_uint, cl_platform_id *, cl_uint *);
        void *object;
    } own = {platform_ids};
    union {
        void *object;
        void *(CL_API_CALL *call)(const char *);
    } find = {dlsym(pocl, "clGetExtensionFunctionAddress")};
    return strcmp(name, "clIcdGetPlatformIDsKHR") == 0 ? own.object
           : find.object                               ? find.call(name)
                                                       : NULL;
}

#endif
