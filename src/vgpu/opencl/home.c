/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers in the data area (homes). The driver sees buffers over host memory. They pay because some
 * drivers work on that memory in place, without maps. The specification does not promise this, so
 * the driver is tested first. Ring thread and lease thread make homes; the driver's threads end
 * them.
 */
#include "opencl_host.h"
#include "vgpu/core/vgpu_core.h"

#include <stdlib.h>
#include <sys/mman.h>

#define PROBE_BYTES 8192u
#define PROBE_WORD  UINT32_C(0x47a717e5)

struct gn_home {
    struct gn_vgpu *vgpu;
    struct gn_list link; /* in the vGPU's homes; homes_lock */
    size_t bytes;
    _Atomic uint32_t event; /* ends when the driver no longer uses the memory; GN_NO_EVENT: none */
};

/*
 * Made, but not entered as an object yet. Both happen on one thread, the ring thread or the lease
 * thread.
 */
static _Thread_local struct gn_home *new_home;

struct gn_home *gn_home_of_last_buffer(void)
{
    struct gn_home *home = new_home;
    new_home = NULL;
    return home;
}

/* True if the data written by one side is visible to the other without any map. */
static bool is_coherent(const cl_icd_dispatch *cl, cl_command_queue queue, cl_mem mem,
                        uint32_t *page)
{
    const size_t last = PROBE_BYTES / sizeof *page - 1;
    const uint32_t word = PROBE_WORD;
    uint32_t back = 0;
    if (cl->clEnqueueFillBuffer(queue, mem, &word, sizeof word, 0, PROBE_BYTES, 0, NULL, NULL) ||
        cl->clFinish(queue) || page[0] != word || page[last] != word)
        return false;
    page[0] = page[last] = ~word;
    return !cl->clEnqueueReadBuffer(queue, mem, CL_TRUE, last * sizeof *page, sizeof back, &back, 0,
                                    NULL, NULL) &&
           back == ~word &&
           !cl->clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, sizeof back, &back, 0, NULL, NULL) &&
           back == ~word;
}

static bool works_in_place(const cl_icd_dispatch *cl, cl_device_id device)
{
    cl_device_type type = 0;
    cl_bool unified = CL_FALSE;
    cl_int result;
    bool good = false;
    cl->clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    cl->clGetDeviceInfo(device, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof unified, &unified, NULL);
    if (!(type & CL_DEVICE_TYPE_CPU) || !unified)
        return false;
    void *page = mmap(NULL, PROBE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    cl_context context = cl->clCreateContext(NULL, 1, &device, NULL, NULL, &result);
    cl_command_queue queue = context ? cl->clCreateCommandQueue(context, device, 0, &result) : NULL;
    cl_mem mem =
        queue ? cl->clCreateBuffer(context, CL_MEM_USE_HOST_PTR, PROBE_BYTES, page, &result) : NULL;
    if (mem) {
        good = is_coherent(cl, queue, mem, page);
        cl->clReleaseMemObject(mem);
    }
    if (queue)
        cl->clReleaseCommandQueue(queue);
    if (context)
        cl->clReleaseContext(context);
    /* The page is not unmapped: the driver may use it for a while. */
    return good;
}

bool gn_home_possible(struct gn_vgpu *v, cl_context context)
{
    struct gn_opencl_vgpu *detail = v->detail;
    cl_uint n = 0;
    cl_device_id device;
    if (gn_cl(v)->clGetContextInfo(context, CL_CONTEXT_NUM_DEVICES, sizeof n, &n, NULL) || n != 1 ||
        gn_cl(v)->clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof device, &device, NULL))
        return false;
    cl_uint index = gn_device_index(v, device);
    if (index >= GN_ARRAY_SIZE(detail->in_place))
        return false;
    int in_place = atomic_load_explicit(&detail->in_place[index], memory_order_relaxed);
    if (in_place == GN_IN_PLACE_UNKNOWN) {
        in_place = works_in_place(gn_cl(v), detail->platform->devices[index]) ? GN_IN_PLACE_YES
                                                                              : GN_IN_PLACE_NO;
        atomic_store_explicit(&detail->in_place[index], in_place, memory_order_relaxed);
    }
    return in_place == GN_IN_PLACE_YES;
}

/* The driver's destructor callback: it no longer uses the buffer's memory. On a driver's thread. */
static void CL_CALLBACK on_driver_release(cl_mem mem, void *user_data)
{
    struct gn_home *home = user_data;
    struct gn_vgpu *v = home->vgpu;
    struct gn_opencl_vgpu *detail = v->detail;
    (void)mem;
    pthread_mutex_lock(&detail->homes_lock);
    gn_list_remove(&home->link);
    gn_lease_remove_home(&v->lease, home->bytes);
    uint32_t event = atomic_load_explicit(&home->event, memory_order_acquire);
    if (event != GN_NO_EVENT)
        gn_vgpu_event_end(v, event, 0, NULL, NULL);
    pthread_mutex_unlock(&detail->homes_lock);
    free(home);
    /*
     * A driver may release a buffer late, even after its last queue was finished and its vGPU has
     * ended.
     */
    gn_vgpu_unhold(v);
}

bool gn_home_has_room(struct gn_vgpu *v, size_t size)
{
    const uint64_t limit = v->session->area_limit(v);
    return limit == UINT64_MAX || gn_range_ok(gn_lease_home_bytes(&v->lease), size, limit);
}

void gn_homes_end(struct gn_vgpu *v)
{
    struct gn_opencl_vgpu *detail = v->detail;
    pthread_mutex_lock(&detail->homes_lock);
    gn_list_for_each(home, &detail->homes, struct gn_home, link)
    {
        uint32_t event = atomic_exchange_explicit(&home->event, GN_NO_EVENT, memory_order_acq_rel);
        if (event != GN_NO_EVENT)
            gn_vgpu_event_end(v, event, 0, NULL, NULL);
    }
    pthread_mutex_unlock(&detail->homes_lock);
}

cl_mem gn_home_buffer(struct gn_vgpu *v, cl_context context, cl_mem_flags flags, size_t size,
                      void *bytes, cl_int *result)
{
    struct gn_opencl_vgpu *detail = v->detail;
    struct gn_home *home = malloc(sizeof *home);
    if (!home) {
        *result = CL_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    home->vgpu = v;
    home->bytes = size;
    atomic_init(&home->event, GN_NO_EVENT);
    /* The specification's default. A driver may apply it only when there is no flag at all. */
    if (!flags)
        flags = CL_MEM_READ_WRITE;
    flags &= ~(cl_mem_flags)(CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR);
    cl_mem mem =
        gn_cl(v)->clCreateBuffer(context, flags | CL_MEM_USE_HOST_PTR, size, bytes, result);
    if (!mem) {
        free(home);
        return NULL;
    }
    gn_vgpu_hold(v);
    pthread_mutex_lock(&detail->homes_lock);
    gn_list_append(&detail->homes, &home->link);
    gn_lease_add_home(&v->lease, size);
    pthread_mutex_unlock(&detail->homes_lock);
    *result = gn_cl(v)->clSetMemObjectDestructorCallback(mem, on_driver_release, home);
    if (*result) {
        gn_cl(v)->clReleaseMemObject(mem);
        on_driver_release(mem, home);
        return NULL;
    }
    new_home = home;
    return mem;
}

cl_int gn_host_LeaveHome(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_LeaveHome *a)
{
    bool lie = false;
    (void)r;
    struct gn_vobject *o = gn_object_get(v, a->buffer, GN_KIND_MEM, &lie);
    struct gn_mem_detail *detail = o ? o->detail : NULL;
    if (lie || !gn_event_at(v->events, a->event))
        gn_vgpu_fault(v, "a buffer that is not at home leaves its home", "LeaveHome");
    else if (detail && !detail->home)
        gn_vgpu_event_end(v, a->event, 0, NULL,
                          NULL); /* it had one before it was on another machine */
    else if (detail)
        atomic_store_explicit(&detail->home->event, a->event, memory_order_release);
    if (o)
        gn_object_unref(o);
    return CL_SUCCESS;
}

static struct gn_home *home_of(const struct gn_vobject *o)
{
    const struct gn_mem_detail *detail = o->kind == GN_KIND_MEM ? o->detail : NULL;
    return detail ? detail->home : NULL;
}

uint32_t gn_home_release_event(const struct gn_vobject *o)
{
    struct gn_home *home = home_of(o);
    return home ? atomic_load_explicit(&home->event, memory_order_acquire) : GN_NO_EVENT;
}

void gn_home_set_release_event(struct gn_vobject *o, uint32_t event)
{
    struct gn_home *home = home_of(o);
    if (home)
        atomic_store_explicit(&home->event, event, memory_order_release);
    else if (event != GN_NO_EVENT)
        gn_vgpu_event_end(o->vgpu, event, 0, NULL, NULL);
}

cl_int gn_host_HomeBytes(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_HomeBytes *a)
{
    const struct gn_wire_HomeBytes *w = gn_request_message(r);
    gn_count(&v->counters->copies_mapped, 1);
    /* The area needs no owner check: it contains only the program's own bytes. */
    if (a->bytes) {
        r->brings = w->bytes;
        r->brings_bytes = a->size;
    }
    return CL_SUCCESS;
}
