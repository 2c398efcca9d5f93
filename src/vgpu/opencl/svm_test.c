/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of shared virtual memory against guests that lie and drivers that refuse. */
#include "vgpu/core/evict.h"
#include "opencl_host.h"
#include "svm.h"

#include "shm/counters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define GIB       (UINT64_C(1) << 30)
#define SEGMENT   (UINT64_C(64) << 10)
#define N_DEVICES 2u

/* ---- a simulated driver */

static struct {
    cl_device_type type;
    cl_device_svm_capabilities svm;
    bool foreign;   /* has no native kernels */
    bool paused;    /* accepts a native kernel and runs none */
    bool stern;     /* refuses native kernels */
    bool elsewhere; /* works on copies of host memory */
    bool full;      /* has no shared memory left */
    int n_allocated, n_run;
    unsigned char *host; /* of the latest buffer */
    int n_buffers;
    cl_mem argument; /* set last */
    const void *pointer;
    bool by_value; /* the kernel's argument is no pointer */
} driver;

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info name, size_t size,
                                      void *value, size_t *size_ret)
{
    (void)device, (void)size, (void)size_ret;
    if (name == CL_DEVICE_TYPE)
        *(cl_device_type *)value = driver.type;
    else if (name == CL_DEVICE_SVM_CAPABILITIES)
        *(cl_device_svm_capabilities *)value = driver.svm;
    else if (name == CL_DEVICE_EXECUTION_CAPABILITIES)
        *(cl_device_exec_capabilities *)value =
            driver.foreign ? CL_EXEC_KERNEL : CL_EXEC_KERNEL | CL_EXEC_NATIVE_KERNEL;
    else if (name == CL_DEVICE_MAX_MEM_ALLOC_SIZE)
        *(cl_ulong *)value = GIB;
    else
        return CL_INVALID_VALUE;
    return CL_SUCCESS;
}

static int some_object;

static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint n,
                                             const cl_device_id *devices,
                                             void(CL_CALLBACK *notify)(const char *, const void *,
                                                                       size_t, void *),
                                             void *user_data, cl_int *result)
{
    (void)properties, (void)n, (void)devices, (void)notify, (void)user_data, (void)result;
    return (cl_context)&some_object;
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                                 cl_command_queue_properties properties,
                                                 cl_int *result)
{
    (void)context, (void)device, (void)properties, (void)result;
    return (cl_command_queue)&some_object;
}

static unsigned char elsewhere[8];

static cl_int CL_API_CALL native(cl_command_queue queue, void(CL_CALLBACK *f)(void *), void *args,
                                 size_t bytes, cl_uint n_mems, const cl_mem *mems,
                                 const void **places, cl_uint n, const cl_event *waits,
                                 cl_event *event)
{
    (void)queue, (void)n, (void)waits, (void)event;
    unsigned char copy[512];
    assert_true(bytes <= sizeof copy);
    memcpy(copy, args, bytes);
    if (driver.stern)
        return CL_INVALID_OPERATION;
    for (cl_uint i = 0; i < n_mems; i++) {
        assert_non_null(mems[i]);
        const void *at = driver.elsewhere ? elsewhere : driver.host;
        memcpy(copy + ((const unsigned char *)places[i] - (const unsigned char *)args), &at,
               sizeof at);
    }
    driver.n_run++;
    if (!driver.paused)
        f(copy);
    return CL_SUCCESS;
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t size,
                                        void *host, cl_int *result)
{
    (void)context, (void)result;
    assert_true(flags & CL_MEM_USE_HOST_PTR && size && host);
    driver.host = host;
    driver.n_buffers++;
    return (cl_mem)&some_object;
}

static cl_int CL_API_CALL release_buffer(cl_mem mem)
{
    assert_ptr_equal(mem, &some_object);
    driver.n_buffers--;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL set_arg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    (void)kernel, (void)index;
    assert_int_equal(size, sizeof driver.argument);
    memcpy(&driver.argument, value, size);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL kernel_info(cl_kernel kernel, cl_kernel_info name, size_t size,
                                      void *value, size_t *size_ret)
{
    const cl_context context = (cl_context)&some_object;
    (void)kernel, (void)size_ret;
    assert_int_equal(name, CL_KERNEL_CONTEXT);
    memcpy(value, &context, size);
    return CL_SUCCESS;
}

/* The driver's functions for shared memory. */
static cl_int CL_API_CALL copy(cl_command_queue queue, cl_bool blocking, void *dst, const void *src,
                               size_t size, cl_uint n, const cl_event *waits, cl_event *event)
{
    (void)queue, (void)blocking, (void)n, (void)waits;
    memcpy(dst, src, size);
    *event = (cl_event)&some_object;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL map(cl_command_queue queue, cl_bool blocking, cl_map_flags flags,
                              void *at, size_t size, cl_uint n, const cl_event *waits,
                              cl_event *event)
{
    (void)queue, (void)blocking, (void)flags, (void)at, (void)size, (void)n, (void)waits,
        (void)event;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL unmap(cl_command_queue queue, void *at, cl_uint n, const cl_event *waits,
                                cl_event *event)
{
    (void)queue, (void)at, (void)n, (void)waits, (void)event;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_event(cl_event event)
{
    assert_ptr_equal(event, &some_object);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL finish(cl_command_queue queue)
{
    (void)queue;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_queue(cl_command_queue queue)
{
    (void)queue;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_context(cl_context context)
{
    (void)context;
    return CL_SUCCESS;
}

static void *CL_API_CALL allocate(cl_context context, cl_svm_mem_flags flags, size_t size,
                                  cl_uint alignment)
{
    (void)context, (void)flags, (void)size, (void)alignment;
    driver.n_allocated += !driver.full;
    return driver.full ? NULL : &some_object;
}

static void CL_API_CALL give_back(cl_context context, void *pointer)
{
    (void)context;
    assert_ptr_equal(pointer, &some_object);
    driver.n_allocated--;
}

static cl_int CL_API_CALL set_svm_arg(cl_kernel kernel, cl_uint index, const void *value)
{
    (void)kernel, (void)index;
    if (driver.by_value)
        return CL_INVALID_ARG_VALUE;
    driver.pointer = value;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL exec_info(cl_kernel kernel, cl_kernel_exec_info name, size_t size,
                                    const void *value)
{
    (void)kernel, (void)name, (void)size, (void)value;
    return CL_SUCCESS;
}

/* Commands are complete when they are accepted. */
static cl_int CL_API_CALL set_callback(cl_event event, cl_int status,
                                       void(CL_CALLBACK *over)(cl_event, cl_int, void *),
                                       void *data)
{
    over(event, status, data);
    return CL_SUCCESS;
}

/* ---- a vGPU on it */

static cl_icd_dispatch table = {
    .clGetDeviceInfo = device_info,
    .clCreateContext = create_context,
    .clCreateCommandQueue = create_queue,
    .clEnqueueNativeKernel = native,
    .clCreateBuffer = create_buffer,
    .clReleaseMemObject = release_buffer,
    .clSetKernelArg = set_arg,
    .clGetKernelInfo = kernel_info,
    .clEnqueueSVMMemcpy = copy,
    .clEnqueueSVMMap = map,
    .clEnqueueSVMUnmap = unmap,
    .clReleaseEvent = release_event,
    .clSetEventCallback = set_callback,
    .clFinish = finish,
    .clReleaseCommandQueue = release_queue,
    .clReleaseContext = release_context,
    .clSVMAlloc = allocate,
    .clSVMFree = give_back,
    .clSetKernelArgSVMPointer = set_svm_arg,
    .clSetKernelExecInfo = exec_info,
};
static struct gn_cl_platform platform = {.n_devices = N_DEVICES};
static struct gn_opencl_vgpu detail = {.platform = &platform};
static struct gn_vgpu_boot boot;
static struct gn_counters counters;
static struct gn_vgpu *v;
static struct gn_request r; /* the latest one */
static bool anew;           /* it comes from a record */
static uint64_t window; /* addresses that are free here; in the test only the vGPU reserves them */

static int open_vgpu(void **state)
{
    (void)state;
    memset(&driver, 0, sizeof driver);
    memset(&counters, 0, sizeof counters);
    anew = false;
    driver.type = CL_DEVICE_TYPE_CPU;
    driver.svm =
        CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_BUFFER | CL_DEVICE_SVM_ATOMICS;
    v = calloc(1, sizeof *v);
    v->boot = &boot;
    v->session = &gn_vgpu_session_shm;
    gn_budget_init(&v->budget, &v->lease, &gn_evict_ops, v);
    v->driver = &table;
    v->detail = &detail;
    v->counters = &counters;
    assert_int_equal(gn_lease_init(&v->lease, -1, &counters), 0);
    v->lease.leased_bytes = UINT64_MAX;
    detail.svm = gn_svm_vgpu_new();
    gn_lost_init(&v->lost);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(gn_segment_create("test", SEGMENT, &v->segments[i]), 0);
        assert_int_equal(gn_segment_map(&v->segments[i]), 0);
    }
    atomic_init(&v->n_segments, 3);
    void *at = mmap(NULL, GIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    munmap(at, GIB);
    window = (uintptr_t)at;
    return 0;
}

static int close_vgpu(void **state)
{
    (void)state;
    munmap((void *)(uintptr_t)window, GIB);
    for (int i = 0; i < 3; i++)
        gn_segment_fini(&v->segments[i]);
    gn_svm_vgpu_free(detail.svm);
    close(v->lease.wake_fd);
    free(v);
    return 0;
}

static bool faulty(void)
{
    return atomic_exchange_explicit(&v->fault, 0, memory_order_relaxed) != 0;
}

static cl_int ask_window(uint64_t address, uint64_t bytes, cl_ulong *capabilities)
{
    cl_ulong largest[N_DEVICES] = {0};
    struct gn_args_SvmWindow a = {.address = address,
                                  .bytes = bytes,
                                  .n_devices = N_DEVICES,
                                  .capabilities = capabilities,
                                  .largest = largest};
    gn_request_init(&r, v);
    r.anew = anew;
    cl_int result = gn_host_SvmWindow(v, &r, &a);
    if (!result)
        assert_true(largest[0] == GIB && largest[1] == GIB);
    return result;
}

static void open_window(void)
{
    cl_ulong capabilities[N_DEVICES];
    assert_int_equal(ask_window(window, GIB, capabilities), CL_SUCCESS);
    assert_true(capabilities[0] && capabilities[1]);
}

/* An allocation as a guest would request it; `segment` counts from 0. */
static bool take(uint64_t id, uint64_t address, uint64_t size, uint32_t segment, uint64_t offset)
{
    struct gn_wire_Svm w = {
        .id = id, .address = address, .size = size, .pages = {segment + 1, 0, offset}};
    cl_int result = CL_SUCCESS;
    gn_request_init(&r, v);
    r.anew = anew;
    memcpy(r.bytes, &w, sizeof w);
    struct gn_args_Svm a = {.context = (cl_context)&some_object,
                            .size = size,
                            .address = address,
                            .pages = gn_vgpu_area(v, segment + 1, offset, size)};
    void *made = gn_host_Svm(v, &r, &a, &result);
    assert_true(!made == (result != CL_SUCCESS));
    assert_int_equal(driver.n_allocated, 0);
    return made != NULL;
}

/* ---- the window */

static void only_a_sane_window_is_taken(void **state)
{
    cl_ulong capabilities[N_DEVICES];
    (void)state;
    static const struct {
        uint64_t address, bytes;
    } bad[] = {{0, GIB},
               {12345, GIB},
               {GIB, 0},
               {GIB, 12345},
               {GIB, UINT64_MAX - 4095},
               {GIB, UINT64_C(2) << 40},
               {UINT64_C(1) << 47, GIB},
               {UINT64_MAX - 4095, 4096}};
    for (size_t i = 0; i < GN_ARRAY_SIZE(bad); i++) {
        assert_int_not_equal(ask_window(bad[i].address, bad[i].bytes, capabilities), CL_SUCCESS);
        assert_true(faulty());
    }
    open_window();
    assert_false(faulty());
    assert_int_not_equal(ask_window(window + 2 * GIB, GIB, capabilities), CL_SUCCESS);
    assert_true(faulty());
}

static void a_window_over_something_is_refused_and_harms_nothing(void **state)
{
    cl_ulong capabilities[N_DEVICES];
    char *mine = mmap((void *)(uintptr_t)(window + 8192), 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    (void)state;
    mine[0] = 'x';
    assert_int_equal(ask_window(window, GIB, capabilities), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    assert_false(faulty());
    assert_int_equal(mine[0], 'x');
    munmap(mine, 4096);
    open_window();
}

static void only_driver_capabilities_are_offered(void **state)
{
    cl_ulong capabilities[N_DEVICES] = {1, 1};
    (void)state;
    driver.type = CL_DEVICE_TYPE_GPU;
    assert_int_equal(ask_window(window, GIB, capabilities), CL_INVALID_OPERATION);
    assert_true(!capabilities[0] && !capabilities[1]);
    assert_int_equal(driver.n_run, 0);

    driver.type = CL_DEVICE_TYPE_CPU;
    driver.svm = 0;
    assert_int_equal(ask_window(window, GIB, capabilities), CL_INVALID_OPERATION);
    assert_true(!capabilities[0] && !capabilities[1]);

    driver.type = CL_DEVICE_TYPE_GPU;
    driver.svm = CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_SYSTEM;
    assert_int_equal(ask_window(window, GIB, capabilities), CL_SUCCESS);
    assert_int_equal(capabilities[0], CL_DEVICE_SVM_COARSE_GRAIN_BUFFER);
    assert_int_equal(driver.n_run, 0);
    assert_false(faulty());
}

static void offers_nothing(void)
{
    cl_ulong capabilities[N_DEVICES] = {1, 1};
    assert_int_equal(ask_window(window, GIB, capabilities), CL_INVALID_OPERATION);
    assert_true(!capabilities[0] && !capabilities[1]);
    assert_int_equal(driver.n_buffers, 0);
}

static void a_driver_that_runs_no_native_kernel_offers_nothing(void **state)
{
    (void)state;
    driver.paused = true;
    offers_nothing();
    assert_int_equal(driver.n_run, 1);
}

static void a_driver_that_refuses_native_kernels_offers_nothing(void **state)
{
    (void)state;
    driver.stern = true;
    offers_nothing();
}

static void a_driver_without_native_kernels_offers_nothing(void **state)
{
    (void)state;
    driver.foreign = true;
    offers_nothing();
}

static void a_driver_that_copies_host_memory_offers_nothing(void **state)
{
    (void)state;
    driver.elsewhere = true;
    offers_nothing();
}

/* ---- replacements of the driver's functions */

static void an_argument_is_a_buffer_at_that_address(void **state)
{
    cl_mem held = NULL;
    (void)state;
    open_window();
    assert_int_equal(driver.n_run, N_DEVICES);
    assert_int_equal(driver.n_buffers, 0);
    assert_true(take(1, window, 64, 0, 0));
    assert_int_equal(gn_svm_set_arg(v, NULL, 0, window + 9, &held), CL_SUCCESS);
    assert_ptr_equal(driver.host, (void *)(uintptr_t)(window + 9));
    assert_true(held && driver.argument == held && driver.n_buffers == 1);
    /* Also at an address without an allocation: only a kernel accesses it. */
    assert_int_equal(gn_svm_set_arg(v, NULL, 0, window + 64, &held), CL_SUCCESS);
    assert_int_equal(driver.n_buffers, 1);
    assert_int_equal(gn_svm_set_arg(v, NULL, 0, 0, &held), CL_SUCCESS);
    assert_true(!held && !driver.argument && !driver.n_buffers && !driver.pointer);
    assert_false(gn_svm_tells_lists(v));
}

static void an_argument_that_is_no_pointer_stays(void **state)
{
    cl_mem held = NULL;
    (void)state;
    open_window();
    assert_true(take(1, window, 64, 0, 0));
    driver.argument = (cl_mem)&some_object;
    driver.by_value = true;
    assert_int_equal(gn_svm_set_arg(v, NULL, 0, window, &held), CL_INVALID_ARG_VALUE);
    assert_int_equal(gn_svm_set_arg(v, NULL, 0, 0, &held), CL_INVALID_ARG_VALUE);
    assert_true(!held && !driver.n_buffers && driver.argument == (cl_mem)&some_object);
}

static void with_system_sharing_an_argument_is_the_pointer(void **state)
{
    cl_mem held = NULL;
    (void)state;
    driver.svm |= CL_DEVICE_SVM_FINE_GRAIN_SYSTEM;
    open_window();
    assert_int_equal(gn_svm_set_arg(v, NULL, 0, window + 9, &held), CL_SUCCESS);
    assert_ptr_equal(driver.pointer, (void *)(uintptr_t)(window + 9));
    assert_true(!held && !driver.n_buffers);
    assert_true(gn_svm_tells_lists(v));
}

/* Submits a fill of the bytes from the beginning of the window. */
static int32_t fill(uint64_t bytes, uint64_t pattern_bytes, const void *pattern)
{
    union {
        struct gn_wire_SvmFill w;
        unsigned char bytes[512];
    } m = {.w = {.address = window,
                 .size = bytes,
                 .pattern_size = pattern_bytes,
                 .pattern = {0, (uint32_t)pattern_bytes, sizeof m.w}}};
    cl_event event = NULL;
    struct gn_command *c = calloc(1, sizeof *c + sizeof m);
    memcpy(m.bytes + sizeof m.w, pattern, pattern_bytes);
    memcpy(gn_command_message(c), &m, sizeof m);
    const int32_t result = gn_submit_SvmFill(v, c, (cl_command_queue)&some_object, 0, NULL, &event);
    free(c);
    return result;
}

static void a_fill_repeats_its_pattern(void **state)
{
    static const unsigned char pattern[128] = {1, 2, 3, 4, 5, 6, 7, 8};
    const unsigned char *at = (void *)(uintptr_t)window;
    (void)state;
    for (int way = 0; way < 2; way++) {
        driver.svm |= way ? CL_DEVICE_SVM_FINE_GRAIN_SYSTEM : 0;
        driver.foreign = way;
        open_window();
        assert_true(take(1, window, 1000, 0, 0));
        assert_int_equal(fill(1000, 8, pattern), CL_SUCCESS);
        for (int i = 0; i < 1000; i++)
            assert_int_equal(at[i], pattern[i % 8]);
        assert_int_equal(fill(256, 128, pattern), CL_SUCCESS);
        assert_int_equal(at[128], 1);
        assert_int_equal(at[8], 0);
        assert_int_equal(at[256], 1);
        assert_int_equal(fill(1001, 8, pattern), CL_INVALID_VALUE);
        assert_int_equal(fill(1000, 0, pattern), CL_INVALID_VALUE);
        close_vgpu(NULL);
        open_vgpu(NULL);
    }
}

/* ---- allocations */

static void an_allocation_is_the_segment_at_its_address(void **state)
{
    (void)state;
    open_window();
    assert_true(take(1, window + 4096, 100, 1, 4096));
    assert_false(faulty());
    strcpy((char *)v->segments[1].base + 4096, "shared");
    assert_string_equal((char *)(uintptr_t)(window + 4096), "shared");
    /* Charged to the request, which passes the charge to its object. */
    assert_int_equal(r.charged_bytes, 100);
    assert_int_equal(atomic_load(&counters.memory_bytes), 100);
    gn_svm_forget(v, 1);
    assert_false(gn_svm_live(v, window + 4096, 1));
    gn_request_fini(&r);
    assert_int_equal(atomic_load(&counters.memory_bytes), 0);
}

static void an_allocation_that_the_lease_does_not_cover_is_none(void **state)
{
    (void)state;
    open_window();
    v->lease.leased_bytes = 99;
    assert_false(take(1, window + 4096, 100, 1, 4096));
    assert_false(faulty());
    assert_int_equal(r.charged_bytes, 0);
    assert_false(r.defer); /* there is no gantryd to ask */
    assert_true(take(1, window + 4096, 99, 1, 4096));
    assert_false(take(2, window + 8192, 1, 1, 8192));
    gn_svm_forget(v, 1);
}

static void live_allocations_are_exact(void **state)
{
    (void)state;
    open_window();
    assert_true(take(1, window + 256, 100, 0, 256));
    assert_true(take(2, window + 512, 256, 0, 512));
    assert_true(take(3, window + SEGMENT, 64, 1, 0));
    assert_true(gn_svm_live(v, window + 256, 100));
    assert_true(gn_svm_live(v, window + 355, 1));
    assert_true(gn_svm_live(v, window + 767, 1));
    assert_true(gn_svm_live(v, window + SEGMENT, 64));
    assert_false(gn_svm_live(v, window + 255, 1));
    assert_false(gn_svm_live(v, window + 256, 101));
    assert_false(gn_svm_live(v, window + 300, UINT64_MAX));
    assert_false(gn_svm_live(v, window + 400, 1));
    assert_false(gn_svm_live(v, window + 256, 512));
    assert_false(gn_svm_live(v, 0, 0));
    assert_false(gn_svm_live(v, UINT64_MAX, 1));
    gn_svm_forget(v, 1);
    gn_svm_forget(v, 77);
    assert_false(gn_svm_live(v, window + 256, 1));
    assert_true(gn_svm_live(v, window + 512, 256));
    /* A pointer for a kernel only has to stay out of this process's own memory. */
    assert_true(gn_svm_address_ok(v, 0));
    assert_true(gn_svm_address_ok(v, window + 256));
    assert_true(gn_svm_address_ok(v, window + GIB - 1));
    assert_false(gn_svm_address_ok(v, window - 1));
    assert_false(gn_svm_address_ok(v, window + GIB));
    assert_false(gn_svm_address_ok(v, (uintptr_t)&some_object));
    assert_false(faulty());
}

static void a_lie_about_an_allocation_ends_the_vgpu(void **state)
{
    (void)state;
    assert_false(take(1, window, 64, 0, 0)); /* no window yet */
    assert_true(faulty());
    open_window();
    static const struct {
        int64_t at;
        uint32_t segment;
        uint64_t offset, size;
    } lies[] = {
        {-4096, 1, 0, 64},                        /* before the window */
        {(int64_t)(GIB - SEGMENT / 2), 1, 0, 64}, /* its segment ends behind the window */
        {(int64_t)GIB, 1, 0, 64},                 /* behind the window */
        {100, 1, 0, 64},                          /* between pages */
        {0, 1, 4096, 64},                         /* the segment would begin before the window */
        {4096, 1, 0, 64},                         /* over another segment */
        {128, 0, 128, 64},                        /* over another allocation */
        {64, 0, 64, 128},                         /* likewise, from below */
        {(int64_t)(4 * SEGMENT), 0, 0, 64},       /* a segment in a second place */
        {0, 1, 0, SEGMENT + 1},                   /* more than the segment holds */
    };
    assert_true(take(1, window + 128, 64, 0, 128));
    for (size_t i = 0; i < GN_ARRAY_SIZE(lies); i++) {
        assert_false(
            take(2, window + (uint64_t)lies[i].at, lies[i].size, lies[i].segment, lies[i].offset));
        assert_true(faulty());
    }
    assert_false(take(2, 0, 64, 1, 64));
    assert_true(faulty());
    assert_true(gn_svm_live(v, window + 128, 64));
    assert_true(take(2, window + SEGMENT, 64, 1, 0));
    assert_false(faulty());
}

static void a_driver_without_memory_is_believed(void **state)
{
    (void)state;
    open_window();
    driver.full = true;
    assert_false(take(1, window, 64, 0, 0));
    assert_false(faulty());
    assert_false(gn_svm_live(v, window, 1));
}

static void a_list_of_pointers_holds_live_ones_only(void **state)
{
    uint64_t list[3];
    struct gn_args_clSetKernelExecInfo a = {.param_name = CL_KERNEL_EXEC_INFO_SVM_PTRS,
                                            .param_value_size = sizeof list,
                                            .param_value = list};
    (void)state;
    open_window();
    assert_true(take(1, window, 64, 0, 0));
    list[0] = window;
    list[1] = window + 32;
    list[2] = 0;
    assert_int_equal(gn_host_clSetKernelExecInfo(v, &r, &a), CL_SUCCESS);
    list[2] = (uintptr_t)&some_object;
    assert_int_equal(gn_host_clSetKernelExecInfo(v, &r, &a), CL_INVALID_VALUE);
    list[2] = window + 4096;
    assert_int_equal(gn_host_clSetKernelExecInfo(v, &r, &a), CL_INVALID_VALUE);
    /* In a record: it was live once. */
    r.anew = true;
    assert_int_equal(gn_host_clSetKernelExecInfo(v, &r, &a), CL_SUCCESS);
    list[2] = (uintptr_t)&some_object;
    assert_int_equal(gn_host_clSetKernelExecInfo(v, &r, &a), CL_INVALID_VALUE);
    a.param_value = NULL;
    assert_int_equal(gn_host_clSetKernelExecInfo(v, &r, &a), CL_SUCCESS);
    assert_false(faulty());
}

static void a_load_may_reuse_a_freed_place(void **state)
{
    (void)state;
    anew = true;
    open_window();
    assert_true(take(1, window, 64, 0, 0));
    assert_true(take(2, window + 64, 64, 0, 64));
    assert_true(take(3, window + 32, 64, 0, 32));
    assert_false(faulty());
    assert_false(gn_svm_live(v, window, 1));
    assert_true(gn_svm_live(v, window + 32, 64));
    gn_svm_forget(v, 1);
    gn_svm_forget(v, 2);
    assert_true(gn_svm_live(v, window + 32, 64));
    gn_svm_forget(v, 3);
    assert_false(gn_svm_live(v, window + 32, 1));
}

static void in_process_program_keeps_its_window(void **state)
{
    char *mine = mmap((void *)(uintptr_t)window, 8192, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    (void)state;
    mine[0] = mine[4096] = 'x';
    v->session = &gn_vgpu_session_in_process;
    open_window();
    assert_true(mine[0] == 'x' && mine[4096] == 'x');
    v->session = &gn_vgpu_session_shm;
    munmap(mine, 8192);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, open_vgpu, close_vgpu)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(only_a_sane_window_is_taken),
        CASE(a_window_over_something_is_refused_and_harms_nothing),
        CASE(only_driver_capabilities_are_offered),
        CASE(a_driver_that_runs_no_native_kernel_offers_nothing),
        CASE(a_driver_that_refuses_native_kernels_offers_nothing),
        CASE(a_driver_without_native_kernels_offers_nothing),
        CASE(a_driver_that_copies_host_memory_offers_nothing),
        CASE(an_argument_is_a_buffer_at_that_address),
        CASE(an_argument_that_is_no_pointer_stays),
        CASE(with_system_sharing_an_argument_is_the_pointer),
        CASE(a_fill_repeats_its_pattern),
        CASE(an_allocation_is_the_segment_at_its_address),
        CASE(an_allocation_that_the_lease_does_not_cover_is_none),
        CASE(live_allocations_are_exact),
        CASE(a_lie_about_an_allocation_ends_the_vgpu),
        CASE(a_driver_without_memory_is_believed),
        CASE(a_list_of_pointers_holds_live_ones_only),
        CASE(a_load_may_reuse_a_freed_place),
        CASE(in_process_program_keeps_its_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
