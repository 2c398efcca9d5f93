/* SPDX-License-Identifier: Apache-2.0 */
/* Rectangles of buffers: reads, writes and copies with pitches and origins in two and three
 * dimensions, and errors. */
#include "difftest.h"

enum { BYTES = 4096 };

struct rect {
    size_t buffer[3], host[3], region[3], buffer_row, buffer_slice, host_row, host_slice;
};

static const struct rect rects[] = {
    {{0, 0, 0}, {0, 0, 0}, {16, 16, 1}, 0, 0, 0, 0},
    {{4, 2, 0}, {1, 3, 0}, {9, 5, 1}, 64, 0, 32, 0},
    {{4, 2, 1}, {1, 3, 2}, {9, 5, 3}, 32, 512, 16, 256},
    {{0, 0, 0}, {0, 0, 0}, {1, 1, 1}, 0, 0, 0, 0},
    {{3, 0, 0}, {0, 0, 0}, {13, 7, 5}, 16, 112, 13, 91},
    {{0, 0, 3}, {0, 0, 0}, {64, 4, 4}, 64, 256, 0, 0},
};
#define N_RECTS (sizeof(rects) / sizeof(rects[0]))

static void write(void)
{
    struct env env;
    static char host[BYTES], zero[BYTES];
    env_init(&env);
    fill_pattern(host, sizeof(host), 4);
    for (size_t i = 0; i < N_RECTS; i++) {
        const struct rect *r = &rects[i];
        cl_event event = NULL;
        cl_bool blocking = i % 2 == 0;
        cl_mem mem = env_buffer(&env, BYTES, zero);
        CALL(clEnqueueWriteBufferRect, env.queue, mem, blocking, r->buffer, r->host, r->region,
             r->buffer_row, r->buffer_slice, r->host_row, r->host_slice, host, 0, NULL, &event);
        if (event) {
            note_event_end("write", event);
            info_event_all(event);
            CALL(clReleaseEvent, event);
        }
        env_dump_buffer(&env, "buffer", mem, BYTES);
        CALL(clReleaseMemObject, mem);
    }
    env_fini(&env);
}

static void read(void)
{
    struct env env;
    static char host[BYTES], back[BYTES];
    env_init(&env);
    fill_pattern(host, sizeof(host), 4);
    cl_mem mem = env_buffer(&env, BYTES, host);
    for (size_t i = 0; i < N_RECTS; i++) {
        const struct rect *r = &rects[i];
        cl_event event = NULL;
        cl_bool blocking = i % 2 == 0;
        memset(back, 0, sizeof(back));
        CALL(clEnqueueReadBufferRect, env.queue, mem, blocking, r->buffer, r->host, r->region,
             r->buffer_row, r->buffer_slice, r->host_row, r->host_slice, back, 0, NULL, &event);
        if (event) {
            note_event_end("read", event);
            info_event_all(event);
            CALL(clReleaseEvent, event);
        }
        note_bytes("host", back, sizeof(back));
    }
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void copy(void)
{
    struct env env;
    static char host[BYTES], zero[BYTES];
    env_init(&env);
    fill_pattern(host, sizeof(host), 4);
    cl_mem from = env_buffer(&env, BYTES, host);
    for (size_t i = 0; i < N_RECTS; i++) {
        const struct rect *r = &rects[i];
        cl_event event = NULL;
        cl_mem to = env_buffer(&env, BYTES, zero);
        CALL(clEnqueueCopyBufferRect, env.queue, from, to, r->host, r->buffer, r->region,
             r->host_row, r->host_slice, r->buffer_row, r->buffer_slice, 0, NULL, &event);
        if (event) {
            note_event_end("copy", event);
            info_event_all(event);
            CALL(clReleaseEvent, event);
        }
        env_dump_buffer(&env, "to", to, BYTES);
        CALL(clReleaseMemObject, to);
    }
    /* Within one buffer: apart, and overlapping. */
    CALL(clEnqueueCopyBufferRect, env.queue, from, from, V3(0, 0, 0), V3(16, 0, 0), V3(8, 8, 1), 64,
         0, 64, 0, 0, NULL, NULL);
    CALL(clEnqueueCopyBufferRect, env.queue, from, from, V3(0, 0, 0), V3(0, 16, 0), V3(8, 8, 1), 64,
         0, 64, 0, 0, NULL, NULL);
    CALL(clEnqueueCopyBufferRect, env.queue, from, from, V3(0, 0, 0), V3(4, 4, 0), V3(8, 8, 1), 64,
         0, 64, 0, 0, NULL, NULL);
    CALL(clEnqueueCopyBufferRect, env.queue, from, from, V3(0, 0, 0), V3(0, 0, 0), V3(8, 8, 1), 64,
         0, 64, 0, 0, NULL, NULL);
    CALL(clEnqueueCopyBufferRect, env.queue, from, from, V3(0, 0, 0), V3(0, 0, 2), V3(8, 8, 2), 16,
         256, 16, 256, 0, NULL, NULL);
    CALL(clEnqueueCopyBufferRect, env.queue, from, from, V3(0, 0, 0), V3(16, 0, 0), V3(8, 8, 1), 64,
         0, 32, 0, 0, NULL, NULL);
    env_dump_buffer(&env, "from", from, BYTES);
    CALL(clReleaseMemObject, from);
    env_fini(&env);
}

static void errors(void)
{
    struct env env;
    static char host[BYTES];
    cl_mem no_mem = NULL;
    cl_command_queue no_queue = NULL;
    env_init(&env);
    cl_mem mem = env_buffer(&env, BYTES, host), to = env_buffer(&env, BYTES, host);
    const size_t *o = V3(0, 0, 0), *r = V3(8, 8, 1);
    CALL(clEnqueueReadBufferRect, no_queue, mem, CL_TRUE, o, o, r, 0, 0, 0, 0, host, 0, NULL, NULL);
    CALL(clEnqueueReadBufferRect, env.queue, no_mem, CL_TRUE, o, o, r, 0, 0, 0, 0, host, 0, NULL,
         NULL);
    CALL(clEnqueueReadBufferRect, env.queue, mem, CL_TRUE, o, o, r, 0, 0, 0, 0, NULL, 0, NULL,
         NULL);
    CALL(clEnqueueReadBufferRect, env.queue, mem, CL_TRUE, o, o, V3(0, 8, 1), 0, 0, 0, 0, host, 0,
         NULL, NULL);
    CALL(clEnqueueReadBufferRect, env.queue, mem, CL_TRUE, o, o, V3(8, 0, 1), 0, 0, 0, 0, host, 0,
         NULL, NULL);
    CALL(clEnqueueReadBufferRect, env.queue, mem, CL_TRUE, o, o, V3(8, 8, 0), 0, 0, 0, 0, host, 0,
         NULL, NULL);
    CALL(clEnqueueReadBufferRect, env.queue, mem, CL_TRUE, o, o, r, 4, 0, 0, 0, host, 0, NULL,
         NULL);
    CALL(clEnqueueReadBufferRect, env.queue, mem, CL_TRUE, o, o, r, 0, 0, 4, 0, host, 0, NULL,
         NULL);
    CALL(clEnqueueReadBufferRect, env.queue, mem, CL_TRUE, o, o, r, 16, 17, 0, 0, host, 0, NULL,
         NULL);
    CALL(clEnqueueReadBufferRect, env.queue, mem, CL_TRUE, o, o, r, 16, 64, 0, 0, host, 0, NULL,
         NULL);
    CALL(clEnqueueReadBufferRect, env.queue, mem, CL_TRUE, o, o, r, 0, 0, 16, 17, host, 0, NULL,
         NULL);
    CALL(clEnqueueReadBufferRect, env.queue, mem, CL_TRUE, V3(0, 60, 0), o, r, 64, 0, 0, 0, host, 0,
         NULL, NULL);
    CALL(clEnqueueReadBufferRect, env.queue, mem, CL_TRUE, o, o, V3(4097, 1, 1), 0, 0, 0, 0, host,
         0, NULL, NULL);
    CALL(clEnqueueWriteBufferRect, no_queue, mem, CL_TRUE, o, o, r, 0, 0, 0, 0, host, 0, NULL,
         NULL);
    CALL(clEnqueueWriteBufferRect, env.queue, no_mem, CL_TRUE, o, o, r, 0, 0, 0, 0, host, 0, NULL,
         NULL);
    CALL(clEnqueueWriteBufferRect, env.queue, mem, CL_TRUE, o, o, r, 0, 0, 0, 0, NULL, 0, NULL,
         NULL);
    CALL(clEnqueueWriteBufferRect, env.queue, mem, CL_TRUE, o, o, V3(8, 8, 0), 0, 0, 0, 0, host, 0,
         NULL, NULL);
    CALL(clEnqueueWriteBufferRect, env.queue, mem, CL_TRUE, o, o, r, 4, 0, 0, 0, host, 0, NULL,
         NULL);
    CALL(clEnqueueWriteBufferRect, env.queue, mem, CL_TRUE, o, o, r, 16, 17, 0, 0, host, 0, NULL,
         NULL);
    CALL(clEnqueueWriteBufferRect, env.queue, mem, CL_TRUE, V3(0, 60, 0), o, r, 64, 0, 0, 0, host,
         0, NULL, NULL);
    CALL(clEnqueueCopyBufferRect, no_queue, mem, to, o, o, r, 0, 0, 0, 0, 0, NULL, NULL);
    /* No copy from or to NULL: PoCL 3.1 crashes. */
    CALL(clEnqueueCopyBufferRect, env.queue, mem, to, o, o, V3(8, 0, 1), 0, 0, 0, 0, 0, NULL, NULL);
    CALL(clEnqueueCopyBufferRect, env.queue, mem, to, o, o, r, 4, 0, 0, 0, 0, NULL, NULL);
    CALL(clEnqueueCopyBufferRect, env.queue, mem, to, o, o, r, 0, 0, 4, 0, 0, NULL, NULL);
    CALL(clEnqueueCopyBufferRect, env.queue, mem, to, o, o, r, 16, 17, 0, 0, 0, NULL, NULL);
    CALL(clEnqueueCopyBufferRect, env.queue, mem, to, V3(0, 60, 0), o, r, 64, 0, 0, 0, 0, NULL,
         NULL);
    CALL(clEnqueueCopyBufferRect, env.queue, mem, to, o, V3(0, 60, 0), r, 0, 0, 64, 0, 0, NULL,
         NULL);
    CALL(clReleaseMemObject, mem);
    CALL(clReleaseMemObject, to);
    env_fini(&env);
}

static void null_vectors(void)
{
    struct env env;
    static char host[BYTES];
    env_init(&env);
    cl_mem mem = env_buffer(&env, BYTES, host), to = env_buffer(&env, BYTES, host);
    const size_t *o = V3(0, 0, 0), *r = V3(8, 8, 1);
    CALL(clEnqueueReadBufferRect, env.queue, mem, CL_TRUE, NULL, o, r, 0, 0, 0, 0, host, 0, NULL,
         NULL);
    CALL(clEnqueueReadBufferRect, env.queue, mem, CL_TRUE, o, NULL, r, 0, 0, 0, 0, host, 0, NULL,
         NULL);
    CALL(clEnqueueReadBufferRect, env.queue, mem, CL_TRUE, o, o, NULL, 0, 0, 0, 0, host, 0, NULL,
         NULL);
    CALL(clEnqueueWriteBufferRect, env.queue, mem, CL_TRUE, NULL, o, r, 0, 0, 0, 0, host, 0, NULL,
         NULL);
    CALL(clEnqueueCopyBufferRect, env.queue, mem, to, NULL, o, r, 0, 0, 0, 0, 0, NULL, NULL);
    CALL(clEnqueueCopyBufferRect, env.queue, mem, to, o, NULL, r, 0, 0, 0, 0, 0, NULL, NULL);
    CALL(clEnqueueCopyBufferRect, env.queue, mem, to, o, o, NULL, 0, 0, 0, 0, 0, NULL, NULL);
    CALL(clReleaseMemObject, mem);
    CALL(clReleaseMemObject, to);
    env_fini(&env);
}

static const struct diff_case rect_cases[] = {
    {"write", write},
    {"read", read},
    {"copy", copy},
    {"errors", errors},
    {"null_vectors", null_vectors},
};
DIFF_FAMILY(rect);
