/* SPDX-License-Identifier: Apache-2.0 */
/* Much memory: a thousand buffers, transfers that wait, long transfers, a source text larger than
 * the ring.
 */
#include "edge.h"

#include <string.h>

#define MIB ((size_t)1 << 20)

static cl_uint word(cl_uint buffer, size_t i)
{
    return (cl_uint)i * 2654435761u + buffer * 40503u;
}

static cl_uint *pattern(cl_uint buffer, size_t n)
{
    cl_uint *x = malloc(n * sizeof *x);
    CHECK(x != NULL);
    for (size_t i = 0; i < n; i++)
        x[i] = word(buffer, i);
    return x;
}

#define N_BUFFERS 1000u

/* Sizes from 4 bytes to 16 MiB whose sum is a gibibyte and no more. */
int case_many_buffers(int argc, char **argv)
{
    struct edge e;
    static cl_mem mems[N_BUFFERS];
    static size_t words[N_BUFFERS];
    size_t total = 0, largest = 16 * MIB;
    cl_uint seed = 3;
    (void)argc;
    (void)argv;
    for (cl_uint i = 0; i < N_BUFFERS; i++) {
        size_t bytes = i < 48 ? largest : (size_t)4 << (edge_random(&seed) % 19);
        words[i] = (bytes + edge_random(&seed) % (bytes / 4 + 1)) / 4;
        if (words[i] * 4 > largest)
            words[i] = largest / 4;
        total += words[i] * 4;
    }
    CHECK(total > 768 * MIB && total <= 1024 * MIB);
    edge_open(&e, 0);
    cl_kernel k = edge_kernel(&e, "add");
    for (cl_uint i = 0; i < N_BUFFERS; i++) {
        mems[i] = edge_buffer(&e, words[i] * 4);
        cl_uint *x = pattern(i, words[i]);
        NEED(clEnqueueWriteBuffer(e.queue, mems[i], CL_TRUE, 0, words[i] * 4, x, 0, NULL, NULL));
        free(x);
    }
    /* Whole groups of 64: PoCL compiles a kernel anew for each size of a group. */
    for (cl_uint i = 0; i < N_BUFFERS; i++) {
        edge_set_add(k, mems[i], i);
        if (words[i] >= 64)
            edge_launch(e.queue, k, words[i] / 64 * 64, 0, NULL, NULL);
    }
    cl_uint *back = malloc(largest);
    CHECK(back != NULL);
    for (cl_uint i = N_BUFFERS; i-- > 0;) {
        NEED(clEnqueueReadBuffer(e.queue, mems[i], CL_TRUE, 0, words[i] * 4, back, 0, NULL, NULL));
        for (size_t j = 0; j < words[i]; j++)
            CHECK(back[j] == word(i, j) + (j < words[i] / 64 * 64 ? i : 0));
    }
    free(back);
    for (cl_uint i = 0; i < N_BUFFERS; i++)
        NEED(clReleaseMemObject(mems[i]));
    NEED(clReleaseKernel(k));
    edge_close(&e);
    return 0;
}

/* Transfers of 256 MiB that do not block wait for an event which the same thread sets afterwards.
 */
int case_deferred(int argc, char **argv)
{
    struct edge e;
    const size_t n = 64 * MIB;
    cl_int rc;
    (void)argc;
    (void)argv;
    edge_open(&e, 0);
    cl_kernel k = edge_kernel(&e, "add");
    cl_mem m = edge_buffer(&e, n * 4);
    for (int round = 0; round < 2; round++) {
        cl_uint *x = pattern(7, n), *y = calloc(n, sizeof *y);
        CHECK(y != NULL);
        cl_event gate = clCreateUserEvent(e.context, &rc), wrote, read;
        NEED(rc);
        NEED(clEnqueueWriteBuffer(e.queue, m, CL_FALSE, 0, n * 4, x, 1, &gate, &wrote));
        edge_set_add(k, m, 1);
        edge_launch(e.queue, k, n, 1, &wrote, NULL);
        NEED(clEnqueueReadBuffer(e.queue, m, CL_FALSE, 0, n * 4, y, 0, NULL, &read));
        NEED(clFlush(e.queue));
        CHECK(y[0] == 0 && y[n - 1] == 0);
        NEED(clSetUserEventStatus(gate, CL_COMPLETE));
        if (round)
            NEED(clFinish(e.queue));
        else
            NEED(clWaitForEvents(1, &read));
        for (size_t i = 0; i < n; i++)
            CHECK(y[i] == word(7, i) + 1);
        NEED(clReleaseEvent(gate));
        NEED(clReleaseEvent(wrote));
        NEED(clReleaseEvent(read));
        free(x);
        free(y);
    }
    NEED(clReleaseMemObject(m));
    NEED(clReleaseKernel(k));
    edge_close(&e);
    return 0;
}

/* A gibibyte there and back, blocking, by calls of odd sizes. */
int case_pieces(int argc, char **argv)
{
    struct edge e;
    const size_t bytes = 1024 * MIB;
    (void)argc;
    (void)argv;
    edge_open(&e, 0);
    cl_mem m = edge_buffer(&e, bytes);
    cl_uint *x = pattern(1, bytes / 4), *y = malloc(bytes);
    CHECK(y != NULL);
    size_t at = 0, step = 700 * MIB + 13;
    while (at < bytes) {
        size_t n = bytes - at < step ? bytes - at : step;
        NEED(clEnqueueWriteBuffer(e.queue, m, CL_TRUE, at, n, (char *)x + at, 0, NULL, NULL));
        at += n;
        step = step / 3 + 1;
    }
    NEED(clEnqueueReadBuffer(e.queue, m, CL_TRUE, 0, bytes, y, 0, NULL, NULL));
    CHECK(memcmp(x, y, bytes) == 0);
    memset(y, 0, bytes);
    for (at = 0, step = 1; at < bytes; at += step, step = step * 5 + 1) {
        size_t n = bytes - at < step ? bytes - at : step;
        NEED(clEnqueueReadBuffer(e.queue, m, CL_TRUE, at, n, (char *)y + at, 0, NULL, NULL));
    }
    CHECK(memcmp(x, y, bytes) == 0);
    free(x);
    free(y);
    NEED(clReleaseMemObject(m));
    edge_close(&e);
    return 0;
}

/* Ten mebibytes of source, in one piece and in twenty thousand. */
int case_big_source(int argc, char **argv)
{
    struct edge e;
    const size_t bytes = 10 * MIB;
    static const char end[] = "\nkernel void last(global uint *x) { x[0] = 42; }\n";
    static const char *lines[20000];
    cl_int rc;
    cl_uint x = 0;
    (void)argc;
    (void)argv;
    edge_open(&e, 0);
    char *text = malloc(bytes + sizeof end), *back = malloc(bytes + sizeof end);
    CHECK(text != NULL && back != NULL);
    for (size_t i = 0; i < bytes; i++)
        text[i] = i % 1024 == 1023 ? '\n' : i % 1024 < 2 ? '/' : (char)('a' + i % 26);
    memcpy(text + bytes, end, sizeof end);
    for (int split = 0; split < 2; split++) {
        const char *whole = text;
        for (int i = 0; i < 20000; i++)
            lines[i] = i < 19999 ? "// a line like many\n" : end;
        cl_program p = split ? clCreateProgramWithSource(e.context, 20000, lines, NULL, &rc)
                             : clCreateProgramWithSource(e.context, 1, &whole, NULL, &rc);
        NEED(rc);
        if (!split) {
            size_t n = 0;
            NEED(clGetProgramInfo(p, CL_PROGRAM_SOURCE, 0, NULL, &n));
            CHECK(n == bytes + sizeof end);
            NEED(clGetProgramInfo(p, CL_PROGRAM_SOURCE, n, back, NULL));
            CHECK(memcmp(text, back, n) == 0);
        }
        NEED(clBuildProgram(p, 0, NULL, "", NULL, NULL));
        cl_kernel k = clCreateKernel(p, "last", &rc);
        NEED(rc);
        cl_mem m = edge_buffer(&e, sizeof x);
        NEED(clSetKernelArg(k, 0, sizeof m, &m));
        edge_launch(e.queue, k, 1, 0, NULL, NULL);
        NEED(clEnqueueReadBuffer(e.queue, m, CL_TRUE, 0, sizeof x, &x, 0, NULL, NULL));
        CHECK(x == 42);
        NEED(clReleaseMemObject(m));
        NEED(clReleaseKernel(k));
        NEED(clReleaseProgram(p));
    }
    free(text);
    free(back);
    edge_close(&e);
    return 0;
}
