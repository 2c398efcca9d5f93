/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared virtual memory: the memory. The program reserves a window of addresses and asks the vGPU
 * to reserve the same one; an allocation is a block of a data segment that both map there. So a
 * pointer is valid on both sides, also when it is stored in shared memory; maps copy nothing, and
 * fine-grained sharing works as in any shared memory. The window is set up when the program first
 * asks for it, and offered only where the driver supports it (see the vGPU's side). Called on the
 * program's threads.
 */
#include "guest/session/session_ops.h"
#include "opencl_guest.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define WINDOW_MOST  (UINT64_C(64) << 30)
#define WINDOW_LEAST (UINT64_C(1) << 30)
#define WINDOW_ALIGN (UINT64_C(1) << 30)
#define WINDOW_TRIES 8
/* Far from the addresses that kernels and sanitizers use on 47-bit machines. */
#define REGION_START    UINT64_C(0x200000000000)
#define REGION_BYTES    UINT64_C(0x200000000000)
#define ALIGNMENT_LIMIT 65536u
/* Freed blocks from this size on return their pages to the system. */
#define GIVE_BACK_BYTES (UINT64_C(1) << 20)
#define PAGE_BYTES      UINT64_C(4096)

/* ---- the window */

/* Reserves addresses that are unused in this process; NULL: none found. */
static void *reserve(uint64_t bytes, int attempt)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    uint64_t random = 0;
    void *want = NULL;
    /* The kernel's own choice, tried last, is close to the worker's libraries. */
    if (attempt < WINDOW_TRIES / 2 &&
        getrandom(&random, sizeof random, GRND_NONBLOCK) == sizeof random)
        want = (void *)(uintptr_t)(REGION_START +
                                   random % (REGION_BYTES / WINDOW_ALIGN) * WINDOW_ALIGN);
    void *at = mmap(want, bytes, PROT_NONE, flags | (want ? MAP_FIXED_NOREPLACE : 0), -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, bytes, MADV_DONTFORK);
    return at;
}

static bool agree_on_window(struct gn_cl_session *s, struct gn_cl_root *root,
                            uint64_t *ret_capabilities, uint64_t *ret_largest)
{
    const struct gn_cl_devices *devices = gn_cl_devices_of(root);
    uint64_t bytes = WINDOW_MOST;
    for (int i = 0; i < WINDOW_TRIES && bytes >= WINDOW_LEAST; i++) {
        void *at = reserve(bytes, i);
        if (!at) {
            bytes /= 2;
            continue;
        }
        cl_int result =
            gn_send_SvmWindow(s->session, (cl_platform_id)root, (uintptr_t)at, bytes, devices->n,
                              (cl_ulong *)ret_capabilities, (cl_ulong *)ret_largest);
        bool any = false;
        for (cl_uint d = 0; !result && d < devices->n; d++)
            any |= ret_capabilities[d] != 0;
        if (any) {
            gn_area_set_window(s->session, at, bytes);
            return true;
        }
        munmap(at, bytes);
        if (result != CL_MEM_OBJECT_ALLOCATION_FAILURE)
            return false;
    }
    return false;
}

static void open_window(struct gn_cl_root *root)
{
    const struct gn_cl_devices *devices = gn_cl_devices_of(root);
    struct gn_cl_session *s = gn_cl_session_of(&root->o);
    pthread_mutex_lock(&s->svm_open_lock);
    if (!s->svm_opened) {
        /* In a forked child these are the parent's values, after a loss those of the lost vGPU. */
        for (cl_uint i = 0; i < devices->n; i++)
            devices->all[i]->svm = 0;
        uint64_t *capabilities = calloc(devices->n, sizeof *capabilities);
        uint64_t *largest = calloc(devices->n, sizeof *largest);
        /*
         * A vGPU on another machine, or one that comes from there, cannot have memory at the same
         * addresses.
         */
        const bool far = !gn_session_shares_memory(s->session) ||
                         atomic_load_explicit(&s->session->was_far, memory_order_acquire);
        if (capabilities && largest && !far && agree_on_window(s, root, capabilities, largest)) {
            for (cl_uint i = 0; i < devices->n; i++) {
                devices->all[i]->svm = capabilities[i];
                devices->all[i]->svm_largest = largest[i];
            }
        }
        free(capabilities);
        free(largest);
        s->svm_opened = true;
    }
    pthread_mutex_unlock(&s->svm_open_lock);
}

/* A sub-device has the capabilities of its root device. */
static const struct gn_cl_device *root_device(const struct gn_cl_device *d)
{
    while (d->o.parent)
        d = (const void *)d->o.parent;
    return d;
}

cl_device_svm_capabilities gn_svm_capabilities(const struct gn_cl_device *d)
{
    open_window(d->root);
    return root_device(d)->svm;
}

/* ---- live allocations */

/* The number of allocations that begin at or below an address. */
static size_t rank_locked(const struct gn_cl_session *s, const char *at)
{
    size_t low = 0, high = s->n_svm;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->svm[middle]->ptr <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

enum gn_svm_place gn_svm_find(struct gn_cl_session *s, const void *ptr, size_t bytes)
{
    enum gn_svm_place place = GN_SVM_NOT;
    pthread_mutex_lock(&s->svm_lock);
    size_t n = rank_locked(s, ptr);
    if (n) {
        const struct gn_cl_svm *m = s->svm[n - 1];
        uint64_t offset = (uint64_t)((const char *)ptr - m->ptr);
        if (offset < m->size || (offset == m->size && !bytes))
            place = gn_range_ok(offset, bytes, m->size) ? GN_SVM_INSIDE : GN_SVM_BEYOND;
    }
    pthread_mutex_unlock(&s->svm_lock);
    return place;
}

static bool enter(struct gn_cl_session *s, struct gn_cl_svm *m)
{
    bool room = true;
    pthread_mutex_lock(&s->svm_lock);
    if (s->n_svm == s->svm_capacity) {
        size_t capacity = s->svm_capacity ? s->svm_capacity * 2 : 64;
        struct gn_cl_svm **grown = realloc(s->svm, capacity * sizeof(struct gn_cl_svm *));
        room = grown != NULL;
        if (room) {
            s->svm = grown;
            s->svm_capacity = capacity;
        }
    }
    if (room) {
        size_t n = rank_locked(s, m->ptr);
        memmove(&s->svm[n + 1], &s->svm[n], (s->n_svm - n) * sizeof(struct gn_cl_svm *));
        s->svm[n] = m;
        s->n_svm++;
    }
    pthread_mutex_unlock(&s->svm_lock);
    return room;
}

static struct gn_cl_svm *remove_allocation(struct gn_cl_session *s, const void *ptr)
{
    struct gn_cl_svm *m = NULL;
    pthread_mutex_lock(&s->svm_lock);
    size_t n = rank_locked(s, ptr);
    if (n && s->svm[n - 1]->ptr == ptr) {
        m = s->svm[n - 1];
        s->n_svm--;
        memmove(&s->svm[n - 1], &s->svm[n], (s->n_svm - n + 1) * sizeof(struct gn_cl_svm *));
    }
    pthread_mutex_unlock(&s->svm_lock);
    return m;
}

/* Tells the vGPU before the block can be allocated again. */
void gn_svm_free(struct gn_cl_session *s, const void *ptr)
{
    struct gn_cl_svm *m = remove_allocation(s, ptr);
    if (!m)
        return;
    struct gn_block block = m->block;
    gn_object_unref(&m->o);
    if (block.bytes >= GIVE_BACK_BYTES)
        madvise(block.base, block.bytes / PAGE_BYTES * PAGE_BYTES, MADV_REMOVE);
    gn_block_free(s->session, &block);
}

void *CL_API_CALL gn_clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size,
                                cl_uint alignment)
{
    struct gn_cl_context *c = gn_object_of(context, GN_KIND_CONTEXT);
    cl_device_svm_capabilities offered = 0;
    uint64_t largest = UINT64_MAX;
    if (!c || !size || (alignment & (alignment - 1)) || alignment > ALIGNMENT_LIMIT)
        return NULL;
    for (cl_uint i = 0; i < c->n_devices; i++) {
        offered |= gn_svm_capabilities(c->devices[i]);
        if (root_device(c->devices[i])->svm_largest < largest)
            largest = root_device(c->devices[i])->svm_largest;
    }
    if (!offered || size > largest)
        return NULL;
    struct gn_session *s = c->o.session;
    struct gn_cl_svm *m = (void *)gn_object_new(s, GN_KIND_SVM, &c->o);
    if (!m)
        return NULL;
    /* Blocks are aligned to their own size. */
    if (!gn_session_await_home(s)) {
        gn_object_drop(&m->o);
        return NULL;
    }
    if (gn_block_alloc(s, GN_AREA_WINDOW, size > alignment ? size : alignment, &m->block)) {
        gn_session_leave_home(s);
        gn_object_drop(&m->o);
        return NULL;
    }
    m->ptr = m->block.base;
    m->size = size;
    struct gn_block block = m->block;
    struct gn_area_ref ref = gn_block_ref(&block, 0);
    cl_int result = gn_send_Svm(s, &m->o, context, flags, size, alignment, (uintptr_t)m->ptr, &ref);
    gn_session_leave_home(s);
    if (result)
        gn_object_drop(&m->o);
    else if (!enter(s->detail, m))
        gn_object_unref(&m->o), result = CL_OUT_OF_HOST_MEMORY;
    if (result) {
        gn_block_free(s, &block);
        return NULL;
    }
    return block.base;
}

void CL_API_CALL gn_clSVMFree(cl_context context, void *svm_pointer)
{
    struct gn_cl_context *c = gn_object_of(context, GN_KIND_CONTEXT);
    if (c && svm_pointer)
        gn_svm_free(gn_cl_session_of(&c->o), svm_pointer);
}
