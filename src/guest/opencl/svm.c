/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared virtual memory. The program keeps a window of addresses free and asks the vGPU to keep the same one
 * free; an allocation is a block of a data segment that both map there. So a pointer holds on both sides,
 * inside other shared memory too, maps copy nothing, and fine-grained sharing is what shared memory does
 * anyway. Nothing of it is set up before the program shows an interest, and it is offered only where the
 * driver goes along (see the vGPU's side).
 *
 * Only shared pointers go to the vGPU as they are. The program's other memory is not there: a copy from or to
 * it goes through the data area like any transfer, and it is no argument of a kernel.
 */
#include "opencl_guest.h"
#include "transfer.h"

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
#define REGION_START                                                                                         \
    UINT64_C(0x200000000000) /* far from what kernels and sanitizers use on 47-bit machines */
#define REGION_BYTES    UINT64_C(0x200000000000)
#define ALIGNMENT_LIMIT 65536u
#define GIVE_BACK_BYTES (UINT64_C(1) << 20) /* freed pieces from here on return their pages to the system */
#define PAGE_BYTES      UINT64_C(4096)

/* ---- the window */

/* Addresses that nothing uses, here at least; NULL: none to be had. */
static void *reserve(uint64_t bytes, int attempt)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    uint64_t random = 0;
    void *want = NULL;
    /* The kernel's own choice, tried last, is near its choice for the worker's libraries. */
    if (attempt < WINDOW_TRIES / 2 && getrandom(&random, sizeof random, GRND_NONBLOCK) == sizeof random)
        want = (void *)(uintptr_t)(REGION_START + random % (REGION_BYTES / WINDOW_ALIGN) * WINDOW_ALIGN);
    void *at = mmap(want, bytes, PROT_NONE, flags | (want ? MAP_FIXED_NOREPLACE : 0), -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, bytes, MADV_DONTFORK);
    return at;
}

static bool agree(struct gn_cl_session *s, struct gn_cl_root *root, uint64_t *ret_capabilities,
                  uint64_t *ret_largest)
{
    uint64_t bytes = WINDOW_MOST;
    for (int i = 0; i < WINDOW_TRIES && bytes >= WINDOW_LEAST; i++) {
        void *at = reserve(bytes, i);
        if (!at) {
            bytes /= 2;
            continue;
        }
        cl_int result =
            gn_send_SvmWindow(s->session, (cl_platform_id)root, (uintptr_t)at, bytes, root->n_devices,
                              (cl_ulong *)ret_capabilities, (cl_ulong *)ret_largest);
        bool any = false;
        for (cl_uint d = 0; !result && d < root->n_devices; d++)
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
    struct gn_cl_session *s = gn_cl_session_of(&root->o);
    pthread_mutex_lock(&s->svm_open_lock);
    if (!s->svm_opened) {
        uint64_t *capabilities = calloc(root->n_devices, sizeof *capabilities);
        uint64_t *largest = calloc(root->n_devices, sizeof *largest);
        if (capabilities && largest && agree(s, root, capabilities, largest)) {
            for (cl_uint i = 0; i < root->n_devices; i++) {
                root->devices[i]->svm = capabilities[i];
                root->devices[i]->svm_largest = largest[i];
            }
        }
        free(capabilities);
        free(largest);
        s->svm_opened = true;
    }
    pthread_mutex_unlock(&s->svm_open_lock);
}

/* A part of a device shares as the whole does. */
static const struct gn_cl_device *whole(const struct gn_cl_device *d)
{
    while (d->o.parent)
        d = (const void *)d->o.parent;
    return d;
}

cl_device_svm_capabilities gn_svm_capabilities(const struct gn_cl_device *d)
{
    open_window(d->root);
    return whole(d)->svm;
}

/* ---- live allocations */

/* How many begin at or below an address. */
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

static struct gn_cl_svm *leave(struct gn_cl_session *s, const void *ptr)
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

/* The vGPU hears of it before anybody can be given the block anew. */
static void svm_free(struct gn_cl_session *s, const void *ptr)
{
    struct gn_cl_svm *m = leave(s, ptr);
    if (!m)
        return;
    struct gn_block block = m->block;
    gn_object_unref(&m->o);
    if (block.bytes >= GIVE_BACK_BYTES)
        madvise(block.base, block.bytes / PAGE_BYTES * PAGE_BYTES, MADV_REMOVE);
    gn_block_put(s->session, &block);
}

void *CL_API_CALL gn_clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment)
{
    struct gn_cl_context *c = gn_object_of(context, GN_KIND_CONTEXT);
    cl_device_svm_capabilities offered = 0;
    uint64_t largest = UINT64_MAX;
    if (!c || !size || (alignment & (alignment - 1)) || alignment > ALIGNMENT_LIMIT)
        return NULL;
    for (cl_uint i = 0; i < c->n_devices; i++) {
        offered |= gn_svm_capabilities(c->devices[i]);
        if (whole(c->devices[i])->svm_largest < largest)
            largest = whole(c->devices[i])->svm_largest;
    }
    if (!offered || size > largest)
        return NULL;
    struct gn_session *s = c->o.session;
    struct gn_cl_svm *m = (void *)gn_object_new(s, GN_KIND_SVM, &c->o);
    if (!m)
        return NULL;
    /* Blocks are aligned to their own size. */
    if (gn_block_take_in_window(s, size > alignment ? size : alignment, &m->block)) {
        gn_object_drop(&m->o);
        return NULL;
    }
    m->ptr = m->block.base;
    m->size = size;
    struct gn_block block = m->block;
    struct gn_area_ref ref = gn_block_ref(&block, 0);
    cl_int result = gn_send_Svm(s, &m->o, context, flags, size, alignment, (uintptr_t)m->ptr, &ref);
    if (result)
        gn_object_drop(&m->o);
    else if (!enter(s->detail, m))
        gn_object_unref(&m->o), result = CL_OUT_OF_HOST_MEMORY;
    if (result) {
        gn_block_put(s, &block);
        return NULL;
    }
    return block.base;
}

void CL_API_CALL gn_clSVMFree(cl_context context, void *svm_pointer)
{
    struct gn_cl_context *c = gn_object_of(context, GN_KIND_CONTEXT);
    if (c && svm_pointer)
        svm_free(gn_cl_session_of(&c->o), svm_pointer);
}

/* ---- commands */

struct command {
    struct gn_cl_queue *q;
    struct gn_session *session;
    struct gn_cl_session *s;
    struct gn_command_show show;
    struct gn_object *shown;
};

static cl_int check_queue(cl_command_queue command_queue, struct command *c)
{
    c->q = gn_object_of(command_queue, GN_KIND_QUEUE);
    if (!c->q)
        return CL_INVALID_COMMAND_QUEUE;
    c->session = c->q->o.session;
    c->s = c->session->detail;
    return gn_svm_capabilities(c->q->device) ? CL_SUCCESS : CL_INVALID_OPERATION;
}

/* The wait list, and the event when somebody wants one. */
static cl_int begin(struct command *c, cl_command_type type, int doubt, bool wanted, cl_uint n,
                    const cl_event *waits)
{
    cl_int result = gn_check_waits(&c->q->o, n, waits);
    if (result)
        return result;
    c->show = (struct gn_command_show){GN_NO_EVENT, 0, doubt};
    c->shown = wanted ? gn_event_new(&c->q->o, type, &c->show) : NULL;
    return wanted && !c->shown ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
}

static cl_int end(struct command *c, cl_int result, cl_bool blocking, cl_event *event)
{
    cl_event shown = NULL;
    int32_t error = 0;
    result = gn_command_sent(&c->q->o, c->shown, &shown, result);
    if (result || !shown)
        return result;
    if (blocking) {
        int lost = gn_event_wait(&c->session->events[c->shown->id], &c->session->waiter, &error);
        result = lost ? CL_OUT_OF_RESOURCES : gn_blocking_result(error);
        gn_settle(c->s);
    }
    if (event && !result)
        *event = shown;
    else
        gn_object_unref(c->shown);
    return result;
}

static bool is_inside(const struct command *c, const void *ptr, size_t bytes)
{
    return gn_svm_find(c->s, ptr, bytes) == GN_SVM_INSIDE;
}

/* Between two places that are both the program's own: the vGPU keeps the order, this process copies. */
static cl_int copy_at_home(struct command *c, cl_bool blocking, void *dst, const void *src, size_t size,
                           cl_uint n, const cl_event *waits, cl_event *event)
{
    struct gn_block block;
    struct gn_layout to = {dst, size, 1, 1, size, size, false};
    int32_t error = 0;
    if (gn_block_take(c->session, size, &block))
        return gn_session_lost(c->session) ? CL_OUT_OF_RESOURCES : CL_OUT_OF_HOST_MEMORY;
    cl_int result = begin(c, CL_COMMAND_SVM_MEMCPY, GN_SURE, true, n, waits);
    struct gn_object *shown = c->shown;
    if (!result) {
        memcpy(block.base, src, size);
        gn_object_ref(shown);
        result = gn_send_clEnqueueMarkerWithWaitList(c->session, (cl_command_queue)c->q, n, waits, &c->show);
        result = end(c, result, CL_FALSE, event);
        if (result)
            gn_object_unref(shown);
    }
    if (result) {
        gn_block_put(c->session, &block);
        return result;
    }
    if (!blocking)
        return gn_settle_later(c->s, shown, &block, &to);
    if (gn_event_wait(&c->session->events[shown->id], &c->session->waiter, &error))
        error = CL_OUT_OF_RESOURCES;
    result = gn_settle_later(c->s, shown, &block, &to);
    gn_settle(c->s);
    return error ? gn_blocking_result(error) : result;
}

cl_int CL_API_CALL gn_clEnqueueSVMMemcpy(cl_command_queue command_queue, cl_bool blocking_copy, void *dst_ptr,
                                         const void *src_ptr, size_t size, cl_uint num_events_in_wait_list,
                                         const cl_event *event_wait_list, cl_event *event)
{
    const uintptr_t dst = (uintptr_t)dst_ptr, src = (uintptr_t)src_ptr;
    struct command c;
    cl_int result = check_queue(command_queue, &c);
    if (result)
        return result;
    if (!dst || !src || !size)
        return CL_INVALID_VALUE;
    if (src < dst + size && dst < src + size)
        return CL_MEM_COPY_OVERLAP;
    enum gn_svm_place to = gn_svm_find(c.s, dst_ptr, size), from = gn_svm_find(c.s, src_ptr, size);
    if (to == GN_SVM_BEYOND || from == GN_SVM_BEYOND)
        return CL_INVALID_VALUE;
    if (to == GN_SVM_NOT && from == GN_SVM_NOT)
        return copy_at_home(&c, blocking_copy, dst_ptr, src_ptr, size, num_events_in_wait_list,
                            event_wait_list, event);
    if (to == GN_SVM_INSIDE && from == GN_SVM_INSIDE) {
        result = begin(&c, CL_COMMAND_SVM_MEMCPY, GN_SURE, event || blocking_copy, num_events_in_wait_list,
                       event_wait_list);
        if (result)
            return result;
        struct gn_area_ref none = {GN_SPAN_NULL, 0, 0};
        result = gn_send_SvmCopy(c.session, command_queue, dst, src, size, &none, 0, num_events_in_wait_list,
                                 event_wait_list, &c.show);
        return end(&c, result, blocking_copy, event);
    }
    result = gn_check_waits(&c.q->o, num_events_in_wait_list, event_wait_list);
    if (result)
        return result;
    bool write = to == GN_SVM_INSIDE;
    struct gn_transfer t = {.kind = GN_TRANSFER_SVM,
                            .write = write,
                            .origin = {write ? dst : src},
                            .region = {size, 1, 1},
                            .host = {write ? (char *)src_ptr : dst_ptr, size, 1, 1, size, size, false},
                            .type = CL_COMMAND_SVM_MEMCPY,
                            .doubt = GN_SURE};
    return gn_transfer(c.q, &t, blocking_copy, num_events_in_wait_list, event_wait_list, event);
}

cl_int CL_API_CALL gn_clEnqueueSVMMemFill(cl_command_queue command_queue, void *svm_ptr, const void *pattern,
                                          size_t pattern_size, size_t size, cl_uint num_events_in_wait_list,
                                          const cl_event *event_wait_list, cl_event *event)
{
    struct command c;
    cl_int result = check_queue(command_queue, &c);
    if (result)
        return result;
    if (!svm_ptr || !pattern || !size || !pattern_size || pattern_size > 128 ||
        (pattern_size & (pattern_size - 1)) || size % pattern_size || (uintptr_t)svm_ptr % pattern_size ||
        !is_inside(&c, svm_ptr, size))
        return CL_INVALID_VALUE;
    result =
        begin(&c, CL_COMMAND_SVM_MEMFILL, GN_SURE, event != NULL, num_events_in_wait_list, event_wait_list);
    if (result)
        return result;
    result = gn_send_SvmFill(c.session, command_queue, (uintptr_t)svm_ptr, pattern, pattern_size, size,
                             num_events_in_wait_list, event_wait_list, &c.show);
    return end(&c, result, CL_FALSE, event);
}

cl_int CL_API_CALL gn_clEnqueueSVMMap(cl_command_queue command_queue, cl_bool blocking_map,
                                      cl_map_flags flags, void *svm_ptr, size_t size,
                                      cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
                                      cl_event *event)
{
    const cl_map_flags known = CL_MAP_READ | CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
    struct command c;
    cl_int result = check_queue(command_queue, &c);
    if (result)
        return result;
    if (!svm_ptr || !size || !is_inside(&c, svm_ptr, size))
        return CL_INVALID_VALUE;
    bool usual = flags && !(flags & ~known) &&
                 (!(flags & CL_MAP_WRITE_INVALIDATE_REGION) || flags == CL_MAP_WRITE_INVALIDATE_REGION);
    result = begin(&c, CL_COMMAND_SVM_MAP, usual ? GN_SURE : GN_ASK(CL_SUCCESS), event || blocking_map,
                   num_events_in_wait_list, event_wait_list);
    if (result)
        return result;
    result = gn_send_SvmMap(c.session, command_queue, flags, (uintptr_t)svm_ptr, size,
                            num_events_in_wait_list, event_wait_list, &c.show);
    return end(&c, result, blocking_map, event);
}

cl_int CL_API_CALL gn_clEnqueueSVMUnmap(cl_command_queue command_queue, void *svm_ptr,
                                        cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
                                        cl_event *event)
{
    struct command c;
    cl_int result = check_queue(command_queue, &c);
    if (result)
        return result;
    if (!svm_ptr || !is_inside(&c, svm_ptr, 0))
        return CL_INVALID_VALUE;
    result =
        begin(&c, CL_COMMAND_SVM_UNMAP, GN_SURE, event != NULL, num_events_in_wait_list, event_wait_list);
    if (result)
        return result;
    result = gn_send_SvmUnmap(c.session, command_queue, (uintptr_t)svm_ptr, num_events_in_wait_list,
                              event_wait_list, &c.show);
    return end(&c, result, CL_FALSE, event);
}

cl_int CL_API_CALL gn_clEnqueueSVMMigrateMem(cl_command_queue command_queue, cl_uint num_svm_pointers,
                                             const void **svm_pointers, const size_t *sizes,
                                             cl_mem_migration_flags flags, cl_uint num_events_in_wait_list,
                                             const cl_event *event_wait_list, cl_event *event)
{
    const cl_mem_migration_flags known = CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
    struct command c;
    cl_int result = check_queue(command_queue, &c);
    if (result)
        return result;
    if (!num_svm_pointers || !svm_pointers)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < num_svm_pointers; i++)
        if (!is_inside(&c, svm_pointers[i], sizes ? sizes[i] : 0))
            return CL_INVALID_VALUE;
    cl_ulong *all = calloc(num_svm_pointers, 2 * sizeof *all);
    if (!all)
        return CL_OUT_OF_HOST_MEMORY;
    for (cl_uint i = 0; i < num_svm_pointers; i++) {
        all[i] = (uintptr_t)svm_pointers[i];
        all[num_svm_pointers + i] = sizes ? sizes[i] : 0;
    }
    result = begin(&c, CL_COMMAND_SVM_MIGRATE_MEM, flags & ~known ? GN_ASK(CL_INVALID_VALUE) : GN_SURE,
                   event != NULL, num_events_in_wait_list, event_wait_list);
    if (!result) {
        result = gn_send_SvmMigrate(c.session, command_queue, all, all + num_svm_pointers, num_svm_pointers,
                                    flags, num_events_in_wait_list, event_wait_list, &c.show);
        result = end(&c, result, CL_FALSE, event);
    }
    free(all);
    return result;
}

/* ---- freeing in the order of a queue */

struct freeing {
    struct gn_cl_queue *q; /* held */
    cl_event gate;         /* a user event: the program's function has run. NULL: there is no function */
    void(CL_CALLBACK *free_func)(cl_command_queue, cl_uint, void **, void *);
    void *user_data;
    cl_uint n;
    void *pointers[];
};

/* The queue has come to it. On the callback thread. */
static void CL_CALLBACK free_now(cl_event event, cl_int status, void *user_data)
{
    struct freeing *f = user_data;
    (void)event;
    if (status >= 0 && f->free_func)
        f->free_func((cl_command_queue)f->q, f->n, f->pointers, f->user_data);
    for (cl_uint i = 0; status >= 0 && !f->free_func && i < f->n; i++)
        svm_free(gn_cl_session_of(&f->q->o), f->pointers[i]);
    if (f->gate) {
        gn_clSetUserEventStatus(f->gate, status < 0 ? status : CL_COMPLETE);
        gn_clReleaseEvent(f->gate);
    }
    gn_object_unref(&f->q->o);
    free(f);
}

/*
 * Freeing is the program's to do, so to the vGPU it is a marker. With a function of the program's it is two:
 * the second waits for a user event that is set once the function has returned, so that the event, and what
 * follows in the queue, come after it.
 */
cl_int CL_API_CALL gn_clEnqueueSVMFree(
    cl_command_queue command_queue, cl_uint num_svm_pointers, void **svm_pointers,
    void(CL_CALLBACK *pfn_free_func)(cl_command_queue, cl_uint, void **, void *), void *user_data,
    cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event)
{
    struct command first, second;
    cl_int result = check_queue(command_queue, &first);
    if (result)
        return result;
    second = first;
    if (!num_svm_pointers || !svm_pointers)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < num_svm_pointers; i++)
        if (!svm_pointers[i])
            return CL_INVALID_VALUE;
    struct freeing *f = calloc(1, sizeof *f + num_svm_pointers * sizeof *f->pointers);
    if (!f)
        return CL_OUT_OF_HOST_MEMORY;
    f->q = first.q;
    f->free_func = pfn_free_func;
    f->user_data = user_data;
    f->n = num_svm_pointers;
    memcpy(f->pointers, svm_pointers, num_svm_pointers * sizeof *f->pointers);
    gn_object_ref(&f->q->o);

    result = begin(&first, CL_COMMAND_SVM_FREE, GN_SURE, true, num_events_in_wait_list, event_wait_list);
    if (!result && pfn_free_func) {
        f->gate = gn_clCreateUserEvent((cl_context)f->q->context, &result);
        if (result) {
            gn_event_finish(&first.session->events[first.shown->id], result, NULL);
            gn_object_unref(first.shown);
        }
    }
    cl_event came = NULL;
    if (!result) {
        result = gn_send_clEnqueueMarkerWithWaitList(first.session, command_queue, num_events_in_wait_list,
                                                     event_wait_list, &first.show);
        result = end(&first, result, CL_FALSE, &came);
    }
    if (result) {
        if (f->gate) {
            gn_clSetUserEventStatus(f->gate, result);
            gn_clReleaseEvent(f->gate);
        }
        gn_object_unref(&f->q->o);
        free(f);
        return result;
    }
    if (f->gate) {
        result = begin(&second, CL_COMMAND_SVM_FREE, GN_SURE, event != NULL, 1, &f->gate);
        if (!result) {
            result =
                gn_send_clEnqueueMarkerWithWaitList(second.session, command_queue, 1, &f->gate, &second.show);
            result = end(&second, result, CL_FALSE, event);
        }
    } else if (event) {
        gn_object_ref(first.shown);
        *event = came;
    }
    if (gn_clSetEventCallback(came, CL_COMPLETE, free_now, f)) {
        /* No memory for a callback: wait for it here. */
        int32_t error = 0;
        if (gn_event_wait(&first.session->events[first.shown->id], &first.session->waiter, &error))
            error = CL_OUT_OF_RESOURCES;
        free_now(came, error, f);
    }
    gn_object_unref(first.shown);
    return result;
}
