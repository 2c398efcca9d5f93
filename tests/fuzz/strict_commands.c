/* SPDX-License-Identifier: Apache-2.0 */
/* The strict driver's commands, their events, and shared virtual memory: see strict_driver.h. */
#include "strict_driver_internal.h"

static struct thing *outstanding;
static bool commands_wait;

static void tell(struct thing *e)
{
    void(CL_CALLBACK * reported)(cl_event, cl_int, void *) = e->reported;
    e->reported = NULL;
    if (reported)
        reported((cl_event)e, e->status, e->told_arg);
}

bool strict_driver_end(unsigned which, int status)
{
    struct thing **at = &outstanding;
    unsigned n = 0;
    for (struct thing *e = outstanding; e; e = e->next)
        n++;
    if (!n)
        return false;
    for (which %= n; which; which--)
        at = &(*at)->next;
    struct thing *e = *at;
    *at = e->next;
    e->status = status;
    tell(e);
    strict_drop(e);
    return true;
}

cl_int strict_queued(cl_command_queue h, cl_uint n, const cl_event *waits, cl_event *event)
{
    struct thing *q = of(h, QUEUE);
    if (!q)
        return CL_INVALID_COMMAND_QUEUE;
    if (!n != !waits)
        return CL_INVALID_EVENT_WAIT_LIST;
    for (cl_uint i = 0; i < n; i++)
        if (!of(waits[i], EVENT))
            return CL_INVALID_EVENT_WAIT_LIST;
    if (!event)
        return CL_SUCCESS;
    struct thing *e = strict_new(EVENT, q);
    if (commands_wait) {
        e->status = CL_SUBMITTED;
        e->n_refs++;
        e->next = outstanding;
        outstanding = e;
    }
    *event = (cl_event)e;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL flush(cl_command_queue q)
{
    return of(q, QUEUE) ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE;
}

static cl_int CL_API_CALL finish(cl_command_queue q)
{
    while (strict_driver_end(0, CL_COMPLETE))
        continue;
    return flush(q);
}

static cl_int CL_API_CALL event_callback(cl_event h, cl_int type,
                                         void(CL_CALLBACK *reported)(cl_event, cl_int, void *),
                                         void *arg)
{
    struct thing *e = of(h, EVENT);
    FUZZ_CHECK(e && type == CL_COMPLETE && reported && !e->reported);
    e->reported = reported;
    e->told_arg = arg;
    if (e->status <= CL_COMPLETE)
        tell(e);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL event_info(cl_event h, cl_event_info what, size_t size, void *value,
                                     size_t *size_ret)
{
    struct thing *e = of(h, EVENT);
    FUZZ_CHECK(e && what == CL_EVENT_COMMAND_EXECUTION_STATUS);
    return answer(&e->status, sizeof e->status, size, value, size_ret);
}

static cl_int CL_API_CALL profiling_info(cl_event h, cl_profiling_info what, size_t size,
                                         void *value, size_t *size_ret)
{
    FUZZ_CHECK(of(h, EVENT));
    return answer_number(what, 8, size, value, size_ret);
}

static cl_int CL_API_CALL retain_event(cl_event e)
{
    of(e, EVENT)->n_refs++;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_event(cl_event e)
{
    return strict_release(e, EVENT, CL_INVALID_EVENT);
}

bool strict_inside(struct thing *buffer, size_t offset, size_t n)
{
    return buffer && buffer->type == CL_MEM_OBJECT_BUFFER && n && offset <= buffer->bytes &&
           n <= buffer->bytes - offset;
}

static cl_int CL_API_CALL read_buffer(cl_command_queue q, cl_mem b, cl_bool blocking, size_t offset,
                                      size_t n, void *to, cl_uint n_waits, const cl_event *waits,
                                      cl_event *event)
{
    FUZZ_CHECK(!blocking);
    if (!strict_inside(of(b, MEM), offset, n) || !to)
        return CL_INVALID_VALUE;
    cl_int result = strict_queued(q, n_waits, waits, event);
    if (!result)
        write_all(to, n);
    return result;
}

static cl_int CL_API_CALL write_buffer(cl_command_queue q, cl_mem b, cl_bool blocking,
                                       size_t offset, size_t n, const void *from, cl_uint n_waits,
                                       const cl_event *waits, cl_event *event)
{
    FUZZ_CHECK(!blocking);
    if (!strict_inside(of(b, MEM), offset, n) || !from)
        return CL_INVALID_VALUE;
    read_all(from, n);
    return strict_queued(q, n_waits, waits, event);
}

bool strict_rectangle(const size_t *origin, const size_t *region, size_t row, size_t slice,
                      size_t *ret_from, size_t *ret_bytes)
{
    const size_t big = 1u << 20;
    if (!origin || !region)
        return false;
    read_all(origin, 24);
    read_all(region, 24);
    for (int i = 0; i < 3; i++)
        if (!region[i] || region[i] > big || origin[i] > big)
            return false;
    row = row ? row : region[0];
    if (row < region[0] || row > big)
        return false;
    slice = slice ? slice : row * region[1];
    if (slice < row * region[1] || slice % row || slice > big * 64)
        return false;
    *ret_from = origin[2] * slice + origin[1] * row + origin[0];
    *ret_bytes = (region[2] - 1) * slice + (region[1] - 1) * row + region[0];
    return true;
}

static cl_int rect(cl_command_queue q, cl_mem b, const size_t *buffer_origin,
                   const size_t *host_origin, const size_t *region, size_t b_row, size_t b_slice,
                   size_t h_row, size_t h_slice, void *to, const void *from, cl_uint n_waits,
                   const cl_event *waits, cl_event *event)
{
    size_t b_from, b_bytes, h_from, h_bytes;
    if (!strict_rectangle(buffer_origin, region, b_row, b_slice, &b_from, &b_bytes) ||
        !strict_rectangle(host_origin, region, h_row, h_slice, &h_from, &h_bytes) ||
        !strict_inside(of(b, MEM), b_from, b_bytes) || (!to && !from))
        return CL_INVALID_VALUE;
    cl_int result = strict_queued(q, n_waits, waits, event);
    if (!result && to)
        write_all((char *)to + h_from, h_bytes);
    if (!result && from)
        read_all((const char *)from + h_from, h_bytes);
    return result;
}

static cl_int CL_API_CALL read_rect(cl_command_queue q, cl_mem b, cl_bool blocking,
                                    const size_t *buffer_origin, const size_t *host_origin,
                                    const size_t *region, size_t b_row, size_t b_slice,
                                    size_t h_row, size_t h_slice, void *to, cl_uint n_waits,
                                    const cl_event *waits, cl_event *event)
{
    FUZZ_CHECK(!blocking);
    return rect(q, b, buffer_origin, host_origin, region, b_row, b_slice, h_row, h_slice, to, NULL,
                n_waits, waits, event);
}

static cl_int CL_API_CALL write_rect(cl_command_queue q, cl_mem b, cl_bool blocking,
                                     const size_t *buffer_origin, const size_t *host_origin,
                                     const size_t *region, size_t b_row, size_t b_slice,
                                     size_t h_row, size_t h_slice, const void *from,
                                     cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    FUZZ_CHECK(!blocking);
    return rect(q, b, buffer_origin, host_origin, region, b_row, b_slice, h_row, h_slice, NULL,
                from, n_waits, waits, event);
}

static cl_int CL_API_CALL fill_buffer(cl_command_queue q, cl_mem b, const void *pattern,
                                      size_t pattern_bytes, size_t offset, size_t n,
                                      cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    if (!pattern || !pattern_bytes || pattern_bytes > 128 ||
        (pattern_bytes & (pattern_bytes - 1)) || !strict_inside(of(b, MEM), offset, n))
        return CL_INVALID_VALUE;
    read_all(pattern, pattern_bytes);
    return strict_queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL copy_buffer(cl_command_queue q, cl_mem a, cl_mem b, size_t from,
                                      size_t to, size_t n, cl_uint n_waits, const cl_event *waits,
                                      cl_event *event)
{
    return strict_inside(of(a, MEM), from, n) && strict_inside(of(b, MEM), to, n)
               ? strict_queued(q, n_waits, waits, event)
               : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL copy_rect(cl_command_queue q, cl_mem a, cl_mem b, const size_t *from,
                                    const size_t *to, const size_t *region, size_t a_row,
                                    size_t a_slice, size_t b_row, size_t b_slice, cl_uint n_waits,
                                    const cl_event *waits, cl_event *event)
{
    size_t at, n;
    if (!strict_rectangle(from, region, a_row, a_slice, &at, &n) ||
        !strict_inside(of(a, MEM), at, n) ||
        !strict_rectangle(to, region, b_row, b_slice, &at, &n) || !strict_inside(of(b, MEM), at, n))
        return CL_INVALID_VALUE;
    return strict_queued(q, n_waits, waits, event);
}

bool strict_in_image(struct thing *m, const size_t *origin, const size_t *region)
{
    if (!m || !m->element || !origin || !region)
        return false;
    const size_t size[3] = {m->width, m->height, m->depth};
    read_all(origin, 24);
    read_all(region, 24);
    for (int i = 0; i < 3; i++)
        if (!region[i] || origin[i] > size[i] || region[i] > size[i] - origin[i])
            return false;
    return true;
}

/* Row by row, each where the pitches put it. */
static cl_int image_rows(struct thing *m, const size_t *region, size_t row, size_t slice, char *to,
                         const char *from)
{
    bool lines = m->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    size_t bytes = region[0] * m->element;
    if ((row && row < bytes) || row > MAX_MEMORY || slice > MAX_MEMORY)
        return CL_INVALID_VALUE;
    row = row ? row : bytes;
    if (slice && slice < (lines ? row : row * region[1]))
        return CL_INVALID_VALUE;
    if (lines)
        row = slice ? slice : row;
    slice = lines ? 0 : slice ? slice : row * region[1];
    for (size_t z = 0; z < region[2]; z++)
        for (size_t y = 0; y < region[1]; y++) {
            if (to)
                write_all(to + z * slice + y * row, bytes);
            else
                read_all(from + z * slice + y * row, bytes);
        }
    return CL_SUCCESS;
}

static cl_int CL_API_CALL read_image(cl_command_queue q, cl_mem h, cl_bool blocking,
                                     const size_t *origin, const size_t *region, size_t row,
                                     size_t slice, void *to, cl_uint n_waits, const cl_event *waits,
                                     cl_event *event)
{
    struct thing *m = of(h, MEM);
    FUZZ_CHECK(!blocking);
    if (!of(q, QUEUE) || !strict_in_image(m, origin, region) || !to)
        return CL_INVALID_VALUE;
    cl_int result = image_rows(m, region, row, slice, to, NULL);
    return result ? result : strict_queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL write_image(cl_command_queue q, cl_mem h, cl_bool blocking,
                                      const size_t *origin, const size_t *region, size_t row,
                                      size_t slice, const void *from, cl_uint n_waits,
                                      const cl_event *waits, cl_event *event)
{
    struct thing *m = of(h, MEM);
    FUZZ_CHECK(!blocking);
    if (!of(q, QUEUE) || !strict_in_image(m, origin, region) || !from)
        return CL_INVALID_VALUE;
    cl_int result = image_rows(m, region, row, slice, NULL, from);
    return result ? result : strict_queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL fill_image(cl_command_queue q, cl_mem h, const void *color,
                                     const size_t *origin, const size_t *region, cl_uint n_waits,
                                     const cl_event *waits, cl_event *event)
{
    if (!color || !strict_in_image(of(h, MEM), origin, region))
        return CL_INVALID_VALUE;
    read_all(color, 16);
    return strict_queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL copy_image(cl_command_queue q, cl_mem a, cl_mem b, const size_t *from,
                                     const size_t *to, const size_t *region, cl_uint n_waits,
                                     const cl_event *waits, cl_event *event)
{
    return strict_in_image(of(a, MEM), from, region) && strict_in_image(of(b, MEM), to, region)
               ? strict_queued(q, n_waits, waits, event)
               : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL image_to_buffer(cl_command_queue q, cl_mem a, cl_mem b,
                                          const size_t *from, const size_t *region, size_t to,
                                          cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    return strict_in_image(of(a, MEM), from, region) && strict_inside(of(b, MEM), to, 1)
               ? strict_queued(q, n_waits, waits, event)
               : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL buffer_to_image(cl_command_queue q, cl_mem a, cl_mem b, size_t from,
                                          const size_t *to, const size_t *region, cl_uint n_waits,
                                          const cl_event *waits, cl_event *event)
{
    return strict_in_image(of(b, MEM), to, region) && strict_inside(of(a, MEM), from, 1)
               ? strict_queued(q, n_waits, waits, event)
               : CL_INVALID_VALUE;
}

static void *CL_API_CALL map_buffer(cl_command_queue q, cl_mem b, cl_bool blocking,
                                    cl_map_flags flags, size_t offset, size_t n, cl_uint n_waits,
                                    const cl_event *waits, cl_event *event, cl_int *result)
{
    struct thing *m = of(b, MEM);
    (void)flags, (void)blocking;
    *result =
        strict_inside(m, offset, n) ? strict_queued(q, n_waits, waits, event) : CL_INVALID_VALUE;
    if (*result)
        return NULL;
    if (!m->memory)
        m->memory = calloc(1, m->bytes);
    FUZZ_CHECK(m->memory);
    return m->memory + offset;
}

static void *CL_API_CALL map_image(cl_command_queue q, cl_mem h, cl_bool blocking,
                                   cl_map_flags flags, const size_t *origin, const size_t *region,
                                   size_t *row, size_t *slice, cl_uint n_waits,
                                   const cl_event *waits, cl_event *event, cl_int *result)
{
    struct thing *m = of(h, MEM);
    (void)flags, (void)blocking;
    *result = strict_in_image(m, origin, region) && row ? strict_queued(q, n_waits, waits, event)
                                                        : CL_INVALID_VALUE;
    if (*result)
        return NULL;
    *row = 64;
    if (slice)
        *slice = 64;
    if (!m->memory)
        m->memory = calloc(1, m->bytes);
    return m->memory;
}

static cl_int CL_API_CALL unmap(cl_command_queue q, cl_mem h, void *at, cl_uint n_waits,
                                const cl_event *waits, cl_event *event)
{
    struct thing *m = of(h, MEM);
    FUZZ_CHECK(m && m->memory && (unsigned char *)at >= m->memory &&
               (unsigned char *)at < m->memory + m->bytes);
    return strict_queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL migrate(cl_command_queue q, cl_uint n, const cl_mem *all,
                                  cl_mem_migration_flags flags, cl_uint n_waits,
                                  const cl_event *waits, cl_event *event)
{
    (void)flags;
    if (!n || !all)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < n; i++)
        if (!of(all[i], MEM))
            return CL_INVALID_MEM_OBJECT;
    return strict_queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL launch(cl_command_queue q, cl_kernel k, cl_uint dim, const size_t *offset,
                                 const size_t *global, const size_t *local, cl_uint n_waits,
                                 const cl_event *waits, cl_event *event)
{
    if (!of(k, KERNEL) || dim < 1 || dim > 3 || !global)
        return CL_INVALID_WORK_DIMENSION;
    read_all(global, dim * sizeof *global);
    if (offset)
        read_all(offset, dim * sizeof *offset);
    if (local)
        read_all(local, dim * sizeof *local);
    return strict_queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL task(cl_command_queue q, cl_kernel k, cl_uint n_waits,
                               const cl_event *waits, cl_event *event)
{
    return of(k, KERNEL) ? strict_queued(q, n_waits, waits, event) : CL_INVALID_KERNEL;
}

/* ---- shared virtual memory: addresses are the window's, which lies over what the test has mapped
 */

static void *CL_API_CALL svm_alloc(cl_context c, cl_svm_mem_flags flags, size_t size,
                                   cl_uint alignment)
{
    (void)flags, (void)alignment;
    return of(c, CONTEXT) && size && size <= MAX_MEMORY ? malloc(1) : NULL;
}

static void CL_API_CALL svm_free(cl_context c, void *p)
{
    FUZZ_CHECK(of(c, CONTEXT));
    free(p);
}

static cl_int CL_API_CALL svm_copy(cl_command_queue q, cl_bool blocking, void *to, const void *from,
                                   size_t n, cl_uint n_waits, const cl_event *waits,
                                   cl_event *event)
{
    FUZZ_CHECK(!blocking);
    if (!to || !from)
        return CL_INVALID_VALUE;
    read_all(from, n);
    write_all(to, n);
    return strict_queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL svm_fill(cl_command_queue q, void *to, const void *pattern,
                                   size_t pattern_bytes, size_t n, cl_uint n_waits,
                                   const cl_event *waits, cl_event *event)
{
    if (!pattern_bytes || pattern_bytes > 128 || n % pattern_bytes)
        return CL_INVALID_VALUE;
    read_all(pattern, pattern_bytes);
    for (size_t i = 0; i < n; i += pattern_bytes)
        memcpy((char *)to + i, pattern, pattern_bytes);
    return strict_queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL svm_map(cl_command_queue q, cl_bool blocking, cl_map_flags flags,
                                  void *at, size_t n, cl_uint n_waits, const cl_event *waits,
                                  cl_event *event)
{
    (void)flags;
    FUZZ_CHECK(!blocking);
    read_all(at, n);
    return strict_queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL svm_unmap(cl_command_queue q, void *at, cl_uint n_waits,
                                    const cl_event *waits, cl_event *event)
{
    read_all(at, 1);
    return strict_queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL svm_migrate(cl_command_queue q, cl_uint n, const void **at,
                                      const size_t *sizes, cl_mem_migration_flags flags,
                                      cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    (void)flags;
    if (!n || !at)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < n; i++)
        read_all(at[i], sizes && sizes[i] ? sizes[i] : 1);
    return strict_queued(q, n_waits, waits, event);
}

void strict_commands(cl_icd_dispatch *table)
{
    table->clFlush = flush;
    table->clFinish = finish;
    table->clSetEventCallback = event_callback;
    table->clGetEventInfo = event_info;
    table->clGetEventProfilingInfo = profiling_info;
    table->clRetainEvent = retain_event;
    table->clReleaseEvent = release_event;
    table->clEnqueueReadBuffer = read_buffer;
    table->clEnqueueWriteBuffer = write_buffer;
    table->clEnqueueReadBufferRect = read_rect;
    table->clEnqueueWriteBufferRect = write_rect;
    table->clEnqueueFillBuffer = fill_buffer;
    table->clEnqueueCopyBuffer = copy_buffer;
    table->clEnqueueCopyBufferRect = copy_rect;
    table->clEnqueueReadImage = read_image;
    table->clEnqueueWriteImage = write_image;
    table->clEnqueueFillImage = fill_image;
    table->clEnqueueCopyImage = copy_image;
    table->clEnqueueCopyImageToBuffer = image_to_buffer;
    table->clEnqueueCopyBufferToImage = buffer_to_image;
    table->clEnqueueMapBuffer = map_buffer;
    table->clEnqueueMapImage = map_image;
    table->clEnqueueUnmapMemObject = unmap;
    table->clEnqueueMigrateMemObjects = migrate;
    table->clEnqueueNDRangeKernel = launch;
    table->clEnqueueTask = task;
    table->clEnqueueMarker = NULL; /* holes are allowed */
    table->clEnqueueMarkerWithWaitList = strict_queued;
    table->clEnqueueBarrierWithWaitList = strict_queued;
    table->clSVMAlloc = svm_alloc;
    table->clSVMFree = svm_free;
    table->clEnqueueSVMMemcpy = svm_copy;
    table->clEnqueueSVMMemFill = svm_fill;
    table->clEnqueueSVMMap = svm_map;
    table->clEnqueueSVMUnmap = svm_unmap;
    table->clEnqueueSVMMigrateMem = svm_migrate;
}

void strict_commands_start(bool later)
{
    outstanding = NULL;
    commands_wait = later;
}
