/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays an ICD loader on one driver: loads the library and takes from it what Khronos's loader
 * takes, by both versions of cl_khr_icd, checks every promise of docs/icd.md that can be seen from
 * outside, then runs a small program through the tables.
 *
 *     khronos-like LIBRARY [--vendor] [--load-only] [--no-platform]
 *
 * --vendor: a driver that promises cl_khr_icd only, not the whole of docs/icd.md. --load-only: no
 * program.
 * --no-platform: there is no daemon, so there must be no platform. Exit status 0 and "ok", or 1 and
 * one sentence on stdout.
 */
#include "khronos_like.h"

#include <CL/cl.h>
#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *(CL_API_CALL *get_extension_fn)(const char *);
typedef cl_int(CL_API_CALL *get_platforms_fn)(cl_uint, cl_platform_id *, cl_uint *);
typedef void *(CL_API_CALL *get_function_fn)(cl_platform_id, const char *);
typedef cl_int(CL_API_CALL *set_data_fn)(cl_platform_id, void *);

struct driver {
    void *library;
    get_extension_fn extension;
    get_platforms_fn platforms;
    get_function_fn function;
    set_data_fn set_data;
};

static const struct {
    const char *name;
    size_t offset;
    bool interop;
} slots[] = {
#define CORE(slot)    {#slot, offsetof(cl_icd_dispatch, slot), false},
#define INTEROP(slot) {#slot, offsetof(cl_icd_dispatch, slot), true},
    GN_ICD_SLOTS(CORE, INTEROP)
#undef CORE
#undef INTEROP
};

#define N_SLOTS (sizeof(slots) / sizeof(slots[0]))

void fail(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    _Exit(1);
}

static void *slot_of(const cl_icd_dispatch *table, size_t i)
{
    void *f;
    memcpy(&f, (const char *)table + slots[i].offset, sizeof(f));
    return f;
}

static bool is_tag(const void *f)
{
    return (intptr_t)f == CL_ICD2_TAG_KHR;
}

static bool has_tag(const void *handle)
{
    return is_tag(*(void *const *)&((const struct icd_object *)handle)->dispatch->clGetPlatformIDs);
}

const cl_icd_dispatch *table_for(const struct vendor *v, const void *handle)
{
    const struct icd_object *object = handle;
    if (!v->icd2)
        return object->dispatch;
    return object->dispatch_data;
}

const cl_icd_dispatch *check_object(const struct vendor *v, const void *handle, const char *what)
{
    const struct icd_object *object = handle;
    const struct icd_object *platform = (const void *)v->platform;

    if (!object)
        fail("%s is NULL", what);
    if (!object->dispatch)
        fail("%s has no dispatch table", what);
    if (v->own && object->dispatch != platform->dispatch)
        fail("%s has another dispatch table than its platform", what);
    if (has_tag(v->platform) && object->dispatch_data != &v->managed)
        fail("%s does not carry its platform's dispatch_data", what);
    return table_for(v, handle);
}

static cl_int CL_API_CALL unsupported(void)
{
    return CL_INVALID_OPERATION;
}

/* Where a function lies: the answer must be the driver itself, not the libOpenCL.so.1 in the global
 * scope. */
static void check_inside(const struct driver *d, void *f, const char *name)
{
    Dl_info info;
    struct link_map *driver;
    if (!dladdr(f, &info) || dlinfo(d->library, RTLD_DI_LINKMAP, &driver) != 0)
        fail("%s is not in any library", name);
    if ((uintptr_t)info.dli_fbase != driver->l_addr)
        fail("%s is in %s, not in the driver", name, info.dli_fname);
}

static void load(struct driver *d, const char *path, bool own)
{
    /* The program has libOpenCL.so.1 in its global scope; a driver that refers to names it exports
     * itself ends up there. */
    if (!dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_GLOBAL))
        fail("no libOpenCL.so.1: %s", dlerror());
    d->library = dlopen(path, RTLD_NOW);
    if (!d->library)
        fail("%s", dlerror());
    *(void **)&d->extension = dlsym(d->library, "clGetExtensionFunctionAddress");
    if (!d->extension)
        fail("clGetExtensionFunctionAddress is not exported");
    check_inside(d, (void *)d->extension, "clGetExtensionFunctionAddress");
    *(void **)&d->platforms = d->extension("clIcdGetPlatformIDsKHR");
    if (!d->platforms)
        fail("clIcdGetPlatformIDsKHR is not found");
    *(void **)&d->function = d->extension("clIcdGetFunctionAddressForPlatformKHR");
    *(void **)&d->set_data = d->extension("clIcdSetPlatformDispatchDataKHR");
    if (d->extension("clNoSuchFunction"))
        fail("clGetExtensionFunctionAddress knows a function that does not exist");
    if (own) {
        if (!dlsym(d->library, "clIcdGetPlatformIDsKHR") || !dlsym(d->library, "clGetPlatformInfo"))
            fail("ocl-icd looks for clIcdGetPlatformIDsKHR and clGetPlatformInfo with dlsym: one "
                 "is not "
                 "exported");
        if (!d->extension("clGetPlatformInfo"))
            fail("clGetExtensionFunctionAddress does not know clGetPlatformInfo");
    }
}

static cl_uint get_platforms(const struct driver *d, cl_platform_id *to, cl_uint room, bool own)
{
    cl_platform_id again[16];
    cl_uint n = 77;

    if (own) {
        CHECK(d->platforms(0, NULL, NULL) == CL_INVALID_VALUE);
        CHECK(d->platforms(0, to, NULL) == CL_INVALID_VALUE);
    }
    if (d->platforms(0, NULL, &n) != CL_SUCCESS || n == 0)
        return 0;
    CHECK(n <= room && n <= 16);
    CHECK(d->platforms(n, to, NULL) == CL_SUCCESS);
    CHECK(d->platforms(n, again, NULL) == CL_SUCCESS);
    if (memcmp(to, again, n * sizeof(*to)) != 0)
        fail("the platforms are other ones when asked again");
    return n;
}

static void check_table(const struct driver *d, const struct vendor *v)
{
    const cl_icd_dispatch *table = ((const struct icd_object *)v->platform)->dispatch;

    for (size_t i = 0; i < N_SLOTS; i++) {
        void *f = slot_of(table, i);
        if (slots[i].offset != i * sizeof(void *))
            fail("slot %zu is not %s: the list is out of order", i, slots[i].name);
        if (!f && v->own)
            fail("slot %zu, %s, is NULL", i, slots[i].name);
        if (f && !is_tag(f))
            check_inside(d, f, slots[i].name);
    }
}

/* What Khronos's loader does on a platform with the tag; false when it hasn't one. */
static bool manage(const struct driver *d, struct vendor *v)
{
    const cl_icd_dispatch *table = ((const struct icd_object *)v->platform)->dispatch;
    bool unload_tag = is_tag(*(void *const *)&table->clUnloadCompiler);
    /* As large as a driver may take a platform of its own to be. */
    union {
        struct icd_object object;
        char room[1024];
    } stranger = {.object = {(cl_icd_dispatch *)table, NULL}};

    if (has_tag(v->platform) != unload_tag)
        fail("the tag of cl_khr_icd 2.0 is in one of clGetPlatformIDs and clUnloadCompiler only");
    if (!unload_tag)
        return false;
    if (!d->function || !d->set_data)
        fail("the tag is there, %s is not", d->function ? "clIcdSetPlatformDispatchDataKHR"
                                                        : "clIcdGetFunctionAddressForPlatformKHR");
    if (d->function(v->platform, "clNoSuchFunction"))
        fail("clIcdGetFunctionAddressForPlatformKHR knows a function that does not exist");
    if (v->own) {
        CHECK(d->function(NULL, "clFinish") == NULL);
        CHECK(d->function((cl_platform_id)&stranger, "clFinish") == NULL);
        CHECK(d->set_data(NULL, &stranger) == CL_INVALID_PLATFORM);
        CHECK(d->set_data((cl_platform_id)&stranger, &stranger) == CL_INVALID_PLATFORM);
        CHECK(stranger.object.dispatch_data == NULL);
    }
    for (size_t i = 0; i < N_SLOTS; i++) {
        void *f = d->function(v->platform, slots[i].name);
        void *old = slot_of(table, i);
        if (!f && !slots[i].interop)
            fail("clIcdGetFunctionAddressForPlatformKHR does not know %s", slots[i].name);
        if (f)
            check_inside(d, f, slots[i].name);
        if (v->own && f != old && !is_tag(old))
            fail("%s is another function by name than in the table", slots[i].name);
        if (!f)
            f = (void *)unsupported;
        memcpy((char *)&v->managed + slots[i].offset, &f, sizeof(f));
    }
    CHECK(d->set_data(v->platform, &v->managed) == CL_SUCCESS);
    if (((const struct icd_object *)v->platform)->dispatch_data != &v->managed)
        fail("clIcdSetPlatformDispatchDataKHR did not set the platform's dispatch_data");
    return true;
}

static void check_platform(const struct vendor *v)
{
    const cl_icd_dispatch *cl = check_object(v, v->platform, "the platform");
    char text[8192];
    size_t bytes = 0;
    cl_bool unloadable = CL_TRUE;
    cl_uint n = 0;
    cl_device_id first[16], second[16];

    CHECK(cl->clGetPlatformInfo(v->platform, CL_PLATFORM_EXTENSIONS, sizeof(text), text, &bytes) ==
          CL_SUCCESS);
    CHECK(bytes == strlen(text) + 1);
    if (!strstr(text, "cl_khr_icd"))
        fail("cl_khr_icd is not among the platform's extensions");
    CHECK(cl->clGetPlatformInfo(v->platform, CL_PLATFORM_ICD_SUFFIX_KHR, 0, NULL, &bytes) ==
          CL_SUCCESS);
    CHECK(bytes > 0 && bytes < sizeof(text));
    CHECK(cl->clGetPlatformInfo(v->platform, CL_PLATFORM_ICD_SUFFIX_KHR, bytes, text, NULL) ==
          CL_SUCCESS);
    if (v->own) {
        if (strcmp(text, "GANTRY") != 0 && strcmp(text, "FAKE") != 0)
            fail("the suffix is %s, not GANTRY", text);
        CHECK(cl->clGetPlatformInfo(v->platform, CL_PLATFORM_UNLOADABLE_KHR, sizeof(unloadable),
                                    &unloadable, NULL) == CL_SUCCESS);
        if (unloadable)
            fail("the platform lets itself be unloaded");
    }

    /* What ocl-icd asks to sort platforms, before the program has made any call. */
    cl_int err = cl->clGetDeviceIDs(v->platform, CL_DEVICE_TYPE_ACCELERATOR, 0, NULL, &n);
    CHECK(err == CL_SUCCESS || err == CL_DEVICE_NOT_FOUND);
    CHECK(cl->clGetDeviceIDs(v->platform, CL_DEVICE_TYPE_ALL, 0, NULL, &n) == CL_SUCCESS);
    CHECK(n > 0 && n <= 16);
    CHECK(cl->clGetDeviceIDs(v->platform, CL_DEVICE_TYPE_ALL, n, first, NULL) == CL_SUCCESS);
    CHECK(cl->clGetDeviceIDs(v->platform, CL_DEVICE_TYPE_ALL, n, second, NULL) == CL_SUCCESS);
    for (cl_uint i = 0; i < n; i++)
        check_object(v, first[i], "a device");
    if (memcmp(first, second, n * sizeof(*first)) != 0)
        fail("the devices have other handles when asked again");
}

/* Like a loader's: the platforms hold pointers into them as long as the process lives. */
static struct vendor vendors[16];

int main(int argc, char **argv)
{
    bool own = true, load_only = false, no_platform = false;
    struct driver d = {0};
    cl_platform_id platforms[16];
    cl_uint n;

    if (argc < 2)
        fail("usage: khronos-like LIBRARY [--vendor] [--load-only] [--no-platform]");
    for (int i = 2; i < argc; i++) {
        own = own && strcmp(argv[i], "--vendor") != 0;
        load_only = load_only || strcmp(argv[i], "--load-only") == 0;
        no_platform = no_platform || strcmp(argv[i], "--no-platform") == 0;
    }

    load(&d, argv[1], own && !load_only);
    n = get_platforms(&d, platforms, 16, own);
    if (no_platform) {
        cl_uint none = 77;
        CHECK(n == 0);
        CHECK(d.platforms(0, NULL, &none) == -1001); /* CL_PLATFORM_NOT_FOUND_KHR */
        CHECK(none == 0);
        CHECK(dlclose(d.library) == 0);
        printf("ok: no platform\n");
        return 0;
    }
    if (n == 0)
        fail("the driver offers no platform");
    for (cl_uint i = 0; i < n; i++) {
        struct vendor *v = &vendors[i];
        v->platform = platforms[i];
        v->own = own;
        check_table(&d, v);
        bool icd2 = manage(&d, v);
        if (own && !icd2)
            fail("the platform has not the tag of cl_khr_icd 2.0");
        /* First as a loader that doesn't know 2.0, then as one that does: the objects must serve
         * both. */
        for (int round = 0; round <= icd2; round++) {
            v->icd2 = round == 1;
            check_platform(v);
            if (!load_only)
                run_program(v);
        }
    }
    printf("ok\n");
    return 0;
}
