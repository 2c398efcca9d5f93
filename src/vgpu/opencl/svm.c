/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared virtual memory, the vGPU's side. Program and vGPU reserve the same window of addresses; an
 * allocation lies in a data segment that both map there, so a pointer means the same bytes on both
 * sides and nothing is ever copied for it.
 *
 * The driver never learns of these allocations. If the driver allocated and Gantry put shared pages
 * under the allocation, its address would have to be free in the program too, which cannot be
 * guaranteed. So this is offered only on devices that use this process's memory (a CPU, or
 * system-wide fine grain), and implemented as svm_ways.c says. The driver still decides which
 * flags, sizes and alignments are valid: it is asked for an allocation of that kind, which is freed
 * at once.
 *
 * An address is a number that the guest chose. Commands run only inside a live allocation, checked
 * at submission; a kernel's pointer at least points into the window, which contains nothing of this
 * process. Pages stay mapped as long as the vGPU lives, so a late free removes no page under a
 * command.
 *
 * A vGPU that migrates takes the window and the live allocations along as records (records.h). The
 * bytes stay in the program's segments, which the new worker maps at the same addresses.
 */
#include "opencl_host.h"
#include "slices.h"
#include "svm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define WINDOW_LIMIT_BYTES (UINT64_C(1) << 40)
#define ADDRESS_LIMIT      (UINT64_C(1) << 47)

struct live {
    uint64_t address, bytes, id;
};

struct gn_svm_vgpu {
    pthread_mutex_t lock;
    /* lock */
    uint64_t window, window_bytes; /* 0: no window */
    /* the address in the window at which a data segment is mapped; 0: not mapped */
    uint64_t segment_at[GN_MAX_SEGMENTS];
    struct live *live; /* by address, no two overlap */
    size_t n_live, live_capacity;
};

struct gn_svm_vgpu *gn_svm_vgpu_new(void)
{
    struct gn_svm_vgpu *s = calloc(1, sizeof *s);
    if (s)
        pthread_mutex_init(&s->lock, NULL);
    return s;
}

void gn_svm_vgpu_free(struct gn_svm_vgpu *s)
{
    if (s && s->window)
        munmap((void *)(uintptr_t)s->window, s->window_bytes);
    if (s)
        free(s->live);
    free(s);
}

static struct gn_svm_vgpu *svm_of(struct gn_vgpu *v)
{
    return ((struct gn_opencl_vgpu *)v->detail)->svm;
}

/* ---- live allocations */

/* The number of allocations that begin at or below an address. */
static size_t rank_locked(const struct gn_svm_vgpu *s, uint64_t address)
{
    size_t low = 0, high = s->n_live;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->live[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool gn_svm_live(struct gn_vgpu *v, uint64_t address, uint64_t bytes)
{
    struct gn_svm_vgpu *s = svm_of(v);
    pthread_mutex_lock(&s->lock);
    size_t n = rank_locked(s, address);
    bool inside = n && gn_range_ok(address - s->live[n - 1].address, bytes, s->live[n - 1].bytes);
    pthread_mutex_unlock(&s->lock);
    return inside;
}

uint64_t gn_svm_reach(struct gn_vgpu *v, uint64_t address)
{
    struct gn_svm_vgpu *s = svm_of(v);
    uint64_t bytes = 0;
    pthread_mutex_lock(&s->lock);
    size_t n = rank_locked(s, address);
    if (n && address - s->live[n - 1].address < s->live[n - 1].bytes)
        bytes = s->live[n - 1].bytes - (address - s->live[n - 1].address);
    pthread_mutex_unlock(&s->lock);
    return bytes;
}

bool gn_svm_address_ok(struct gn_vgpu *v, uint64_t address)
{
    struct gn_svm_vgpu *s = svm_of(v);
    if (!address)
        return true;
    pthread_mutex_lock(&s->lock);
    bool inside = s->window && address >= s->window && address - s->window < s->window_bytes;
    pthread_mutex_unlock(&s->lock);
    return inside;
}

/* False when it overlaps another. */
static bool add_live_locked(struct gn_svm_vgpu *s, const struct live *l)
{
    size_t n = rank_locked(s, l->address);
    if ((n && s->live[n - 1].address + s->live[n - 1].bytes > l->address) ||
        (n < s->n_live && l->address + l->bytes > s->live[n].address))
        return false;
    memmove(&s->live[n + 1], &s->live[n], (s->n_live - n) * sizeof *s->live);
    s->live[n] = *l;
    s->n_live++;
    return true;
}

static bool make_room_locked(struct gn_svm_vgpu *s)
{
    if (s->n_live < s->live_capacity)
        return true;
    size_t capacity = s->live_capacity ? s->live_capacity * 2 : 64;
    struct live *grown = realloc(s->live, capacity * sizeof *grown);
    if (!grown)
        return false;
    s->live = grown;
    s->live_capacity = capacity;
    return true;
}

static void forget_locked(struct gn_svm_vgpu *s, size_t i)
{
    s->n_live--;
    memmove(&s->live[i], &s->live[i + 1], (s->n_live - i) * sizeof *s->live);
}

void gn_svm_forget(struct gn_vgpu *v, uint64_t id)
{
    struct gn_svm_vgpu *s = svm_of(v);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_live; i++) {
        if (s->live[i].id == id) {
            forget_locked(s, i);
            break;
        }
    }
    pthread_mutex_unlock(&s->lock);
}

/*
 * During a load, an allocation that the program has freed meanwhile may still be in the list when
 * another one takes its place.
 */
static void forget_range_locked(struct gn_svm_vgpu *s, const struct live *l)
{
    for (size_t i = s->n_live; i--;)
        if (s->live[i].address < l->address + l->bytes &&
            l->address < s->live[i].address + s->live[i].bytes)
            forget_locked(s, i);
}

/* ---- the window */

static cl_int open_window(const struct gn_vgpu *v, struct gn_svm_vgpu *s, uint64_t address,
                          uint64_t bytes)
{
    void *want = (void *)(uintptr_t)address;
    void *at = want;
    /* A program with an in-process vGPU has reserved the window for both. */
    if (v->session->maps_window)
        at = mmap(want, bytes, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (at != want) { /* before Linux 4.17 the flag is a hint */
        munmap(at, bytes);
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    }
    pthread_mutex_lock(&s->lock);
    s->window = address;
    s->window_bytes = bytes;
    pthread_mutex_unlock(&s->lock);
    return CL_SUCCESS;
}

cl_int gn_host_SvmWindow(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_SvmWindow *a)
{
    struct gn_svm_vgpu *s = svm_of(v);
    const struct gn_cl_platform *p = gn_platform_of(v);
    const cl_icd_dispatch *cl = gn_cl(v);
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t end;
    bool any = false;
    (void)r;
    if (s->window || !a->address || a->address % page || !a->bytes || a->bytes % page ||
        a->bytes > WINDOW_LIMIT_BYTES || !gn_add_u64(a->address, a->bytes, &end) ||
        end > ADDRESS_LIMIT || a->n_devices < p->n_devices) {
        gn_vgpu_fault(v, "the window for shared virtual memory is invalid", "SvmWindow");
        return CL_INVALID_VALUE;
    }
    gn_svm_find_ways(v, a->capabilities);
    for (cl_uint i = 0; i < p->n_devices; i++) {
        cl->clGetDeviceInfo(p->devices[i], CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof a->largest[i],
                            &a->largest[i], NULL);
        if (v->boot->memory_limit_bytes && a->largest[i] > v->boot->memory_limit_bytes)
            a->largest[i] = v->boot->memory_limit_bytes;
        any |= a->capabilities[i] != 0;
    }
    cl_int result = any ? open_window(v, s, a->address, a->bytes) : CL_SUCCESS;
    /*
     * Without a window the request must not become part of the vGPU's records, and if the vGPU had
     * one, the program was told so: fail in both cases.
     */
    return result || any ? result : CL_INVALID_OPERATION;
}

/* ---- allocations */

/* Maps a data segment into the window, or checks that it is mapped there already. */
static bool map_segment_locked(struct gn_vgpu *v, struct gn_svm_vgpu *s, uint32_t index,
                               uint64_t at)
{
    const struct gn_segment *segment = &v->segments[index];
    if (s->segment_at[index])
        return s->segment_at[index] == at;
    if (!s->window || at < s->window ||
        !gn_range_ok(at - s->window, segment->bytes, s->window_bytes) ||
        at % (uint64_t)sysconf(_SC_PAGESIZE))
        return false;
    for (uint32_t i = 0; i < GN_MAX_SEGMENTS; i++)
        if (s->segment_at[i] && at < s->segment_at[i] + v->segments[i].bytes &&
            s->segment_at[i] < at + segment->bytes)
            return false;
    if (!v->session->maps_window) { /* the program maps it there itself */
        s->segment_at[index] = at;
        return true;
    }
    void *base = mmap((void *)(uintptr_t)at, segment->bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, segment->fd, 0);
    if (base == MAP_FAILED)
        return false;
    /* Processes that a driver starts (a linker, a compiler) must not get the program's memory. */
    madvise(base, segment->bytes, MADV_DONTFORK);
    s->segment_at[index] = at;
    return true;
}

void *gn_host_Svm(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Svm *a,
                  cl_int *result)
{
    const struct gn_wire_Svm *w = gn_request_message(r);
    struct gn_svm_vgpu *s = svm_of(v);
    const cl_icd_dispatch *cl = gn_cl(v);
    struct live l = {a->address, a->size, w->id};
    *result = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    r->pins = true;
    if (!gn_request_charge(r, a->size))
        return NULL;
    void *tried = a->context && cl->clSVMAlloc
                      ? cl->clSVMAlloc(a->context, a->flags, a->size, a->alignment)
                      : NULL;
    if (!tried)
        return NULL;
    cl->clSVMFree(a->context, tried);
    pthread_mutex_lock(&s->lock);
    bool room = make_room_locked(s);
    bool there = a->pages && a->address >= w->pages.offset &&
                 map_segment_locked(v, s, w->pages.segment - 1, a->address - w->pages.offset);
    if (there && r->anew)
        forget_range_locked(s, &l);
    bool good = there && (!room || add_live_locked(s, &l));
    pthread_mutex_unlock(&s->lock);
    if (!good)
        gn_vgpu_fault(v, "an allocation of shared virtual memory is not at the guest's address",
                      "Svm");
    if (!good || !room)
        return NULL;
    *result = CL_SUCCESS;
    return (void *)(uintptr_t)a->address;
}

cl_int gn_host_clSetKernelExecInfo(struct gn_vgpu *v, struct gn_request *r,
                                   const struct gn_args_clSetKernelExecInfo *a)
{
    const uint64_t *pointers =
        a->param_value; /* in a record, their targets may have been freed since */
    if (!gn_cl(v)->clSetKernelExecInfo)
        return CL_INVALID_OPERATION;
    if (a->param_name != CL_KERNEL_EXEC_INFO_SVM_PTRS &&
        a->param_name != CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM)
        return CL_INVALID_VALUE;
    if (a->param_name == CL_KERNEL_EXEC_INFO_SVM_PTRS && pointers)
        for (size_t i = 0; i < a->param_value_size / sizeof *pointers; i++)
            if (pointers[i] && !gn_svm_live(v, pointers[i], 0) &&
                !(r->anew && gn_svm_address_ok(v, pointers[i])))
                return CL_INVALID_VALUE;
    if (a->kernel_object && a->kernel_object->detail)
        gn_slices_kernel_knows_more(v,
                                    ((struct gn_kernel_detail *)a->kernel_object->detail)->sliced);
    /* Drivers differ about an empty list. */
    const bool filled = pointers && a->param_value_size;
    if (a->param_name == CL_KERNEL_EXEC_INFO_SVM_PTRS && filled && !gn_svm_tells_lists(v))
        return CL_SUCCESS;
    return gn_cl(v)->clSetKernelExecInfo(a->kernel, a->param_name, a->param_value_size,
                                         a->param_value);
}
