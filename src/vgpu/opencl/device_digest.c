/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests whether a context's device can hash pages, and lets it do so. The launches go through a
 * queue of their own and are not commands of the vGPU: only the migration waits for them, and they
 * need no grant and no charge. Run by the saving thread and, for digests, by its hashing thread.
 */
#include "device_digest.h"

#include "backend/opencl/page_hash_cl.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TRIAL_PAGES 5u
#define TRIAL_TAIL  101u

enum shape { SUITS = -1, BY_ITEM = 0, BY_GROUP = 1, HERE };

struct gn_device_digests {
    uint32_t vgpu;
    const cl_icd_dispatch *cl;
    cl_context context;
    cl_device_id device;
    enum shape shape;
    bool tried;
    struct gn_cl_page_hash *hash; /* NULL: not ready, or failed */
};

static enum shape requested_shape(void)
{
    static const char *const words[] = {"item", "group", "host"};
    const char *given = getenv("GANTRY_PAGE_HASH");
    for (unsigned i = 0; given && i < GN_ARRAY_SIZE(words); i++)
        if (strcmp(given, words[i]) == 0)
            return (enum shape)i;
    if (given)
        gn_log(GN_LOG_WARN, "GANTRY_PAGE_HASH is none of item, group and host; ignored");
    return SUITS;
}

bool gn_device_digests_forced(void)
{
    const enum shape shape = requested_shape();
    return shape == BY_ITEM || shape == BY_GROUP;
}

struct gn_device_digests *gn_device_digests_new(struct gn_vgpu *v, cl_context context)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    const enum shape shape = requested_shape();
    cl_uint n = 0;
    cl_device_id device;
    cl_bool unified = CL_TRUE;
    if (shape == HERE ||
        cl->clGetContextInfo(context, CL_CONTEXT_NUM_DEVICES, sizeof n, &n, NULL) || n != 1 ||
        cl->clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof device, &device, NULL) ||
        cl->clGetDeviceInfo(device, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof unified, &unified,
                            NULL) ||
        (unified && shape == SUITS))
        return NULL;
    struct gn_device_digests *d = malloc(sizeof *d);
    if (d)
        *d = (struct gn_device_digests){
            .vgpu = v->boot->id, .cl = cl, .context = context, .device = device, .shape = shape};
    return d;
}

void gn_device_digests_free(struct gn_device_digests *d)
{
    if (d)
        gn_cl_page_hash_destroy(d->hash);
    free(d);
}

void gn_device_digests_trim(struct gn_device_digests *d)
{
    gn_cl_page_hash_trim(d->hash);
}

static void disable(struct gn_device_digests *d, const struct gn_error *err)
{
    gn_log(GN_LOG_WARN, "vgpu=%08x %s; %s", d->vgpu, err->what, err->fix);
    gn_cl_page_hash_destroy(d->hash);
    d->hash = NULL;
}

/* Compares the digests of some whole pages and of a short one with those computed on the host. */
static int compare_digests(struct gn_device_digests *d, cl_mem mem,
                           const struct gn_page_hasher *hasher, const unsigned char *bytes,
                           size_t n, struct gn_error *err)
{
    unsigned char there[(TRIAL_PAGES + 1) * GN_CL_PAGE_DIGEST_BYTES], here[GN_PAGE_DIGEST_MAX];
    int rc = gn_cl_page_hash_run(d->hash, mem, n, 0, TRIAL_PAGES + 1, there, err);
    for (uint32_t i = 0; i <= TRIAL_PAGES && !rc; i++) {
        gn_page_digest(hasher, bytes + (size_t)i * hasher->page_bytes,
                       i < TRIAL_PAGES ? hasher->page_bytes : TRIAL_TAIL, here);
        if (memcmp(here, there + (size_t)i * GN_CL_PAGE_DIGEST_BYTES, sizeof here))
            rc = gn_fail(err, EIO, "pages will be read and hashed by the processor",
                         "the device computes wrong page hashes");
    }
    return rc;
}

static int test_device(struct gn_device_digests *d, const struct gn_page_hasher *hasher,
                       struct gn_error *err)
{
    const size_t n = (size_t)TRIAL_PAGES * hasher->page_bytes + TRIAL_TAIL;
    unsigned char *bytes = malloc(n);
    cl_mem mem = NULL;
    cl_int result = CL_OUT_OF_HOST_MEMORY;
    uint32_t word = 1;
    for (size_t i = 0; bytes && i < n; i++) {
        word = word * 1664525u + 1013904223u;
        bytes[i] = i / hasher->page_bytes == 1 ? 0 : (unsigned char)(word >> 24);
    }
    if (bytes)
        mem = d->cl->clCreateBuffer(d->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, n, bytes,
                                    &result);
    int rc = mem ? compare_digests(d, mem, hasher, bytes, n, err)
                 : gn_fail(err, ENOMEM, "pages will be read and hashed by the processor",
                           "no memory to try whether the device hashes pages: error %d", result);
    if (mem)
        d->cl->clReleaseMemObject(mem);
    free(bytes);
    return rc;
}

void gn_device_digests_ready(struct gn_device_digests *d, const struct gn_page_hasher *hasher)
{
    struct gn_error err;
    if (d->tried)
        return;
    d->tried = true;
    int rc = gn_cl_page_hash_create(d->cl, d->context, d->device, hasher->key, hasher->page_bytes,
                                    d->shape, &d->hash, &err);
    if (!rc)
        rc = test_device(d, hasher, &err);
    if (rc)
        disable(d, &err);
    else
        gn_debug("vgpu=%08x the device hashes pages: %s", d->vgpu, gn_cl_page_hash_shape(d->hash));
}

int gn_device_digests_of(struct gn_device_digests *d, cl_mem mem, uint64_t mem_bytes,
                         uint64_t first, uint64_t n, void *ret)
{
    struct gn_error err;
    if (!d->hash)
        return -ENODEV;
    int rc = gn_cl_page_hash_run(d->hash, mem, mem_bytes, first, n, ret, &err);
    if (rc)
        disable(d, &err);
    return rc;
}
