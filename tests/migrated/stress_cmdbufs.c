/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command buffers that are recorded, run and let go of over many steps. What they work on is one
 * machine of a few memories, each of whose words is the same number, and the model knows what each
 * recorded command makes of these numbers.
 */
#include "command_buffers.h"
#include "stress.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define DEFINE(name) static name##_fn name;
COMMAND_BUFFER_FUNCTIONS(DEFINE)

#define SIDE     32u
#define N_WORDS  (SIDE * SIDE)
#define BYTES    (N_WORDS * 4)
#define N_SHARED 3u /* memories that all buffers work on; the last is an image */
#define IMAGE    (N_SHARED - 1)
#define HIDDEN                                                                                     \
    N_SHARED /* of each buffer: nobody else has it, and the program lets go of it before it runs   \
              */
#define N_BUFFERS 4u
#define MOST      40u

static const size_t origin[3] = {0, 0, 0}, region[3] = {SIDE, SIDE, 1};

enum op { FILL, COPY, ADD, STIR };

struct recorded {
    enum op op;
    uint32_t to, from, n;
};

static cl_mem memory[N_SHARED];
static uint32_t model[N_SHARED];
static cl_kernel add, stir;

static struct buffer {
    cl_command_buffer_khr made;
    cl_command_queue queue;
    bool finalized, simultaneous;
    cl_mem hidden;
    uint32_t model; /* of the hidden memory */
    cl_program program;
    cl_kernel kernel; /* of its own: released when all is recorded */
    cl_sync_point_khr last;
    uint32_t n;
    struct recorded recorded[MOST];
} buffers[N_BUFFERS];

void set_up_cmdbufs(void)
{
    const cl_image_format format = {CL_R, CL_UNSIGNED_INT32};
    const cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = SIDE, .image_height = SIDE};
    const uint32_t zero[4] = {0};
    cl_int r;
    HOLDS(command_buffer_version(device));
#define FIND(name)                                                                                 \
    name = (name##_fn)(uintptr_t)clGetExtensionFunctionAddressForPlatform(platform, #name);        \
    HOLDS(name);
    COMMAND_BUFFER_FUNCTIONS(FIND)
    for (uint32_t i = 0; i < IMAGE; i++) {
        memory[i] = clCreateBuffer(context, 0, BYTES, NULL, &r);
        MUST(r);
        MUST(clEnqueueFillBuffer(queue, memory[i], zero, 4, 0, BYTES, 0, NULL, NULL));
    }
    memory[IMAGE] = clCreateImage(context, 0, &format, &desc, NULL, &r);
    MUST(r);
    MUST(clEnqueueFillImage(queue, memory[IMAGE], zero, origin, region, 0, NULL, NULL));
    MUST(clFinish(queue));
    cl_program program = build(source, "");
    add = kernel_of(program, "add");
    stir = kernel_of(program, "stir");
    MUST(clReleaseProgram(program));
}

/* ---- the model */

static uint32_t *word(struct buffer *b, uint32_t which)
{
    return which == HIDDEN ? &b->model : &model[which];
}

static void run_model(struct buffer *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        const struct recorded *c = &b->recorded[i];
        uint32_t *to = word(b, c->to);
        if (c->op == FILL)
            *to = c->n;
        else if (c->op == COPY)
            *to = *word(b, c->from);
        else
            *to = c->op == ADD ? *to + c->n : *to * 1664525u + c->n;
    }
}

static void check(void)
{
    static uint32_t read[N_WORDS];
    for (uint32_t i = 0; i < N_SHARED; i++) {
        if (i == IMAGE)
            MUST(clEnqueueReadImage(queue, memory[i], CL_TRUE, origin, region, 0, 0, read, 0, NULL,
                                    NULL));
        else
            MUST(clEnqueueReadBuffer(queue, memory[i], CL_TRUE, 0, BYTES, read, 0, NULL, NULL));
        for (uint32_t k = 0; k < N_WORDS; k++)
            HOLDS(read[k] == model[i]);
    }
}

/* ---- a buffer's life */

static void create(struct buffer *b, uint32_t n)
{
    const cl_command_buffer_properties_khr flags[] = {CL_COMMAND_BUFFER_FLAGS_KHR,
                                                      CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
    cl_int r;
    *b = (struct buffer){.queue = dice(2) ? queue : unordered, .simultaneous = dice(2), .model = n};
    b->made = clCreateCommandBufferKHR(1, &b->queue, b->simultaneous ? flags : NULL, &r);
    MUST(r);
    b->hidden = clCreateBuffer(context, 0, BYTES, NULL, &r);
    MUST(r);
    MUST(clEnqueueFillBuffer(queue, b->hidden, &n, 4, 0, BYTES, 0, NULL, NULL));
    MUST(clFinish(queue));
    b->program = build(source, "");
    b->kernel = kernel_of(b->program, "add");
}

static void launch(struct buffer *b, cl_kernel k, cl_mem mem, uint32_t n, cl_uint n_waits)
{
    const size_t n_items = N_WORDS;
    MUST(clSetKernelArg(k, 0, sizeof mem, &mem));
    MUST(clSetKernelArg(k, 1, sizeof n, &n));
    MUST(clCommandNDRangeKernelKHR(b->made, NULL, NULL, k, 1, NULL, &n_items, NULL, n_waits,
                                   n_waits ? &b->last : NULL, &b->last, NULL));
    /* That which it is not launched with. */
    n = ~n;
    MUST(clSetKernelArg(k, 0, sizeof memory[0], &memory[0]));
    MUST(clSetKernelArg(k, 1, sizeof n, &n));
}

static void copy(struct buffer *b, uint32_t to, uint32_t from, const cl_mem mems[], cl_uint n_waits)
{
    const cl_sync_point_khr *waits = n_waits ? &b->last : NULL;
    if (to == IMAGE)
        MUST(clCommandCopyBufferToImageKHR(b->made, NULL, mems[from], mems[to], 0, origin, region,
                                           n_waits, waits, &b->last, NULL));
    else if (from == IMAGE)
        MUST(clCommandCopyImageToBufferKHR(b->made, NULL, mems[from], mems[to], origin, region, 0,
                                           n_waits, waits, &b->last, NULL));
    else if (dice(2))
        MUST(clCommandCopyBufferKHR(b->made, NULL, mems[from], mems[to], 0, 0, BYTES, n_waits,
                                    waits, &b->last, NULL));
    else
        MUST(clCommandCopyBufferRectKHR(b->made, NULL, mems[from], mems[to], origin, origin,
                                        (size_t[3]){SIDE * 4, SIDE, 1}, SIDE * 4, 0, SIDE * 4, 0,
                                        n_waits, waits, &b->last, NULL));
}

static void record_one(struct buffer *b, uint32_t n)
{
    struct recorded *c = &b->recorded[b->n];
    const cl_mem mems[] = {memory[0], memory[1], memory[IMAGE], b->hidden};
    const cl_uint n_waits = b->n ? 1 : 0;
    *c = (struct recorded){(enum op)dice(4), dice(HIDDEN + 1), dice(HIDDEN + 1), n};
    if (c->op == COPY && c->from == c->to)
        c->op = FILL;
    if (c->op >= ADD && c->to == IMAGE)
        c->to = HIDDEN;
    if (c->op == COPY)
        copy(b, c->to, c->from, mems, n_waits);
    else if (c->op >= ADD)
        launch(b, c->op == STIR ? stir : dice(2) ? add : b->kernel, mems[c->to], n, n_waits);
    else if (c->to == IMAGE)
        MUST(clCommandFillImageKHR(b->made, NULL, mems[IMAGE], (uint32_t[4]){n}, origin, region,
                                   n_waits, n_waits ? &b->last : NULL, &b->last, NULL));
    else
        MUST(clCommandFillBufferKHR(b->made, NULL, mems[c->to], &n, 4, 0, BYTES, n_waits,
                                    n_waits ? &b->last : NULL, &b->last, NULL));
    HOLDS(b->last == ++b->n);
}

static cl_command_buffer_state_khr state_of(const struct buffer *b)
{
    cl_command_buffer_state_khr state = 99;
    MUST(clGetCommandBufferInfoKHR(b->made, CL_COMMAND_BUFFER_STATE_KHR, sizeof state, &state,
                                   NULL));
    return state;
}

static void record(struct buffer *b, uint32_t n)
{
    HOLDS(state_of(b) == CL_COMMAND_BUFFER_STATE_RECORDING_KHR);
    for (uint32_t i = 1 + dice(4); i && b->n < MOST; i--)
        record_one(b, n + i);
    if (b->n < MOST && dice(3))
        return;
    MUST(clFinalizeCommandBufferKHR(b->made));
    b->finalized = true;
    MUST(clReleaseMemObject(b->hidden));
    MUST(clReleaseKernel(b->kernel));
    MUST(clReleaseProgram(b->program));
}

/* A few runs, each behind the one before, all behind an event of the program's; the buffer may be
 * let go of meanwhile. */
static void run(struct buffer *b)
{
    const uint32_t n_runs = b->simultaneous ? 1 + dice(3) : 1;
    const bool fails = dice(6) == 0, ends = dice(5) == 0;
    cl_event events[4];
    cl_int r;
    cl_command_queue other = NULL;
    events[0] = clCreateUserEvent(context, &r);
    MUST(r);
    if (b->queue == unordered && dice(2)) {
        other = clCreateCommandQueueWithProperties(
            context, device,
            (const cl_queue_properties[]){CL_QUEUE_PROPERTIES,
                                          CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0},
            &r);
        MUST(r);
    }
    for (uint32_t i = 0; i < n_runs; i++) {
        cl_command_queue *on = other ? &other : i % 2 ? &b->queue : NULL;
        MUST(clEnqueueCommandBufferKHR(on ? 1 : 0, on, b->made, 1, &events[i], &events[i + 1]));
        MUST(clFlush(on ? *on : b->queue));
    }
    HOLDS(state_of(b) == CL_COMMAND_BUFFER_STATE_PENDING_KHR);
    HOLDS(b->simultaneous ||
          clEnqueueCommandBufferKHR(0, NULL, b->made, 0, NULL, NULL) == CL_INVALID_OPERATION);
    if (ends)
        MUST(clReleaseCommandBufferKHR(b->made));
    if (dice(2))
        usleep(dice(20000));
    MUST(clSetUserEventStatus(events[0], fails ? -7 : CL_COMPLETE));
    r = clWaitForEvents(1, &events[n_runs]);
    HOLDS(r == (fails ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS));
    HOLDS(ends || state_of(b) == CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR);
    for (uint32_t i = 0; i < n_runs && !fails; i++)
        run_model(b);
    for (uint32_t i = 0; i <= n_runs; i++)
        MUST(clReleaseEvent(events[i]));
    if (other)
        MUST(clReleaseCommandQueue(other));
    if (ends)
        b->made = NULL;
    check();
}

/* Runs that the program sees no events of, and reads behind them. */
static void run_blindly(struct buffer *b)
{
    const uint32_t n_runs = b->simultaneous ? 1 + dice(3) : 1;
    for (uint32_t i = 0; i < n_runs; i++) {
        MUST(clEnqueueCommandBufferKHR(0, NULL, b->made, 0, NULL, NULL));
        if (b->queue == unordered)
            MUST(clEnqueueBarrierWithWaitList(b->queue, 0, NULL, NULL));
        run_model(b);
    }
    MUST(clFinish(b->queue));
    HOLDS(state_of(b) == CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR);
    check();
}

void cmdbuf_step(uint32_t n)
{
    struct buffer *b = &buffers[dice(N_BUFFERS)];
    if (!b->made)
        create(b, n);
    else if (!b->finalized)
        record(b, n * 2654435761u);
    else if (dice(2))
        run(b);
    else
        run_blindly(b);
}
