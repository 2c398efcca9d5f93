/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution of a square image with a separable filter of 17 taps: a pass over rows, a pass over
 * columns, each through a tile in local memory; zero outside of the image. The program waits after
 * every launch.
 */
#include "load.h"

#include <math.h>

#define RADIUS 8
#define TAPS   (2 * RADIUS + 1)
#define WIDE   32
#define HIGH   8

static const char source[] = GN_LOAD_SOURCE(
    __kernel __attribute__((reqd_work_group_size(WIDE, HIGH, 1))) void convolve_rows(
        __global const float *in, __global float *out, __constant float *taps, int n) {
        __local float tile[HIGH][WIDE + 2 * RADIUS];
        const int lane = get_local_id(0);
        const int line = get_local_id(1);
        const int y = get_global_id(1);
        const int first = (int)get_group_id(0) * WIDE - RADIUS;
        float sum = 0.0f;

        for (int x = lane; x < WIDE + 2 * RADIUS; x += WIDE) {
            const int from = first + x;

            tile[line][x] = from >= 0 && from < n ? in[y * n + from] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int t = 0; t <= 2 * RADIUS; t++)
            sum += taps[t] * tile[line][lane + t];
        out[y * n + (int)get_global_id(0)] = sum;
    }

    __kernel __attribute__((reqd_work_group_size(WIDE, HIGH, 1))) void convolve_columns(
        __global const float *in, __global float *out, __constant float *taps, int n) {
        __local float tile[HIGH + 2 * RADIUS][WIDE];
        const int lane = get_local_id(0);
        const int line = get_local_id(1);
        const int x = get_global_id(0);
        const int first = (int)get_group_id(1) * HIGH - RADIUS;
        float sum = 0.0f;

        for (int y = line; y < HIGH + 2 * RADIUS; y += HIGH) {
            const int from = first + y;

            tile[y][lane] = from >= 0 && from < n ? in[from * n + x] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int t = 0; t <= 2 * RADIUS; t++)
            sum += taps[t] * tile[line + t][lane];
        out[(int)get_global_id(1) * n + x] = sum;
    });

struct convolution {
    float taps[TAPS];
    float *host;
    cl_mem out;
};

static void setup(struct gn_run *run)
{
    struct convolution *c = gn_load_alloc(run, 1, sizeof(*c));
    size_t n = run->size;
    size_t bytes = n * n * sizeof(float);
    cl_int n_arg = (cl_int)n;
    struct gn_load_kernel *rows;
    struct gn_load_kernel *columns;
    cl_mem in;
    cl_mem between;
    cl_mem taps;

    run->state = c;
    for (int t = -RADIUS; t <= RADIUS; t++)
        c->taps[t + RADIUS] = expf(-(float)(t * t) / 24.0f) / 8.6f;
    c->host = gn_load_alloc(run, n * n, sizeof(float));
    for (size_t i = 0; i < n * n; i++)
        c->host[i] = gn_load_random_float(run, 0.0f, 16.0f);
    in = gn_load_buffer(run, CL_MEM_READ_ONLY, bytes, c->host);
    between = gn_load_buffer(run, CL_MEM_READ_WRITE, bytes, NULL);
    c->out = gn_load_buffer(run, CL_MEM_WRITE_ONLY, bytes, NULL);
    taps = gn_load_buffer(run, CL_MEM_READ_ONLY, sizeof(c->taps), c->taps);
    gn_load_build(run, source, "-DRADIUS=%d -DWIDE=%d -DHIGH=%d", RADIUS, WIDE, HIGH);
    rows = gn_load_kernel(run, "convolve_rows");
    columns = gn_load_kernel(run, "convolve_columns");
    GN_LOAD_ARG(rows, 0, in);
    GN_LOAD_ARG(rows, 1, between);
    GN_LOAD_ARG(columns, 0, between);
    GN_LOAD_ARG(columns, 1, c->out);
    for (unsigned i = 0; i < 2; i++) {
        GN_LOAD_ARG(&run->kernels[i], 2, taps);
        GN_LOAD_ARG(&run->kernels[i], 3, n_arg);
    }
}

static void round_once(struct gn_run *run)
{
    const size_t global[2] = {run->size, run->size};
    const size_t local[2] = {WIDE, HIGH};

    for (unsigned i = 0; i < run->batch; i++) {
        for (unsigned pass = 0; pass < 2; pass++) {
            gn_load_launch_2d(run, &run->kernels[pass], global, local);
            gn_load_finish(run);
        }
    }
}

static void convolve(const float *taps, const float *in, float *out, size_t n, bool columns)
{
    for (size_t y = 0; y < n; y++) {
        for (size_t x = 0; x < n; x++) {
            size_t at = columns ? y : x;
            float sum = 0.0f;

            for (int t = -RADIUS; t <= RADIUS; t++) {
                ptrdiff_t from = (ptrdiff_t)at + t;

                if (from >= 0 && from < (ptrdiff_t)n)
                    sum += taps[t + RADIUS] *
                           (columns ? in[(size_t)from * n + x] : in[y * n + (size_t)from]);
            }
            out[y * n + x] = sum;
        }
    }
}

static bool check(struct gn_run *run)
{
    struct convolution *c = run->state;
    size_t n = run->size;
    float *between = gn_load_alloc(run, n * n, sizeof(float));
    float *want = gn_load_alloc(run, n * n, sizeof(float));
    float *got = gn_load_alloc(run, n * n, sizeof(float));

    gn_load_read(run, c->out, 0, n * n * sizeof(float), got);
    convolve(c->taps, c->host, between, n, false);
    convolve(c->taps, between, want, n, true);
    return gn_load_same_floats("pixel", got, want, n * n, 1e-4f);
}

const struct gn_load gn_load_convolution = {
    .name = "convolutionSeparable",
    .about = "17-tap filter over rows, then columns",
    .size_unit = "rows",
    .size = 192,
    .granule = WIDE,
    .min = WIDE,
    .max = 16384,
    .exponent = 2,
    .batch = 16,
    .kernel_us = 391,
    .async_rate = 19.223,
    .sync_rate = 19.281,
    .setup = setup,
    .round = round_once,
    .check = check,
};
