/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Product of two square matrices through tiles in local memory. Launches run back to back with
 * almost no synchronous call between them, so this load shows what an enqueue costs. Sizes from 48
 * to 256 span the kernel times of FairGV's figure 2 on a CPU device.
 */
#include "load.h"

#define TILE 16

static const char source[] =
    GN_LOAD_SOURCE(__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void matrix_mul(
        __global const float *a, __global const float *b, __global float *c, int n) {
        __local float a_tile[TILE][TILE];
        __local float b_tile[TILE][TILE];
        const int x = get_local_id(0);
        const int y = get_local_id(1);
        const int column = get_global_id(0);
        const int row = get_global_id(1);
        float sum = 0.0f;

        for (int t = 0; t < n; t += TILE) {
            a_tile[y][x] = a[row * n + t + x];
            b_tile[y][x] = b[(t + y) * n + column];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int k = 0; k < TILE; k++)
                sum += a_tile[y][k] * b_tile[k][x];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        c[row * n + column] = sum;
    });

struct matrixmul {
    cl_mem c;
    float *a_host;
    float *b_host;
};

static void setup(struct gn_run *run)
{
    struct matrixmul *m = gn_load_alloc(run, 1, sizeof(*m));
    size_t n = run->size;
    size_t bytes = n * n * sizeof(float);
    cl_int n_arg = (cl_int)n;
    struct gn_load_kernel *k;
    cl_mem a;
    cl_mem b;

    run->state = m;
    m->a_host = gn_load_alloc(run, n * n, sizeof(float));
    m->b_host = gn_load_alloc(run, n * n, sizeof(float));
    for (size_t i = 0; i < n * n; i++) {
        m->a_host[i] = gn_load_random_float(run, -1.0f, 1.0f);
        m->b_host[i] = gn_load_random_float(run, -1.0f, 1.0f);
    }
    a = gn_load_buffer(run, CL_MEM_READ_ONLY, bytes, m->a_host);
    b = gn_load_buffer(run, CL_MEM_READ_ONLY, bytes, m->b_host);
    m->c = gn_load_buffer(run, CL_MEM_WRITE_ONLY, bytes, NULL);
    gn_load_build(run, source, "-DTILE=%d", TILE);
    k = gn_load_kernel(run, "matrix_mul");
    GN_LOAD_ARG(k, 0, a);
    GN_LOAD_ARG(k, 1, b);
    GN_LOAD_ARG(k, 2, m->c);
    GN_LOAD_ARG(k, 3, n_arg);
}

static void round_once(struct gn_run *run)
{
    const size_t global[2] = {run->size, run->size};
    const size_t local[2] = {TILE, TILE};

    for (unsigned i = 0; i < run->batch; i++)
        gn_load_launch_2d(run, &run->kernels[0], global, local);
    gn_load_finish(run);
}

static bool check(struct gn_run *run)
{
    struct matrixmul *m = run->state;
    size_t n = run->size;
    float *c = gn_load_alloc(run, n * n, sizeof(float));
    float *want = gn_load_alloc(run, n, sizeof(float));

    gn_load_read(run, m->c, 0, n * n * sizeof(float), c);
    /* Every row of a small product, sixteen rows of a large one. */
    for (size_t row = 0; row < n; row += n < 256 ? 1 : n / 16) {
        for (size_t column = 0; column < n; column++) {
            double sum = 0;

            for (size_t k = 0; k < n; k++)
                sum += (double)m->a_host[row * n + k] * (double)m->b_host[k * n + column];
            want[column] = (float)sum;
        }
        if (!gn_load_same_floats("product", c + row * n, want, n, 1e-4f))
            return false;
    }
    return true;
}

const struct gn_load gn_load_matrixmul = {
    .name = "matrixMul",
    .about = "matrix product, tiles in local memory",
    .size_unit = "rows",
    .size = 64,
    .granule = TILE,
    .min = 2 * TILE,
    .max = 4096,
    .exponent = 3,
    .batch = 1340,
    .kernel_us = 207,
    .async_rate = 44.241,
    .sync_rate = 0.033,
    .setup = setup,
    .round = round_once,
    .check = check,
};
