/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fast Walsh transform of many vectors of 8,192 numbers: one pass over global memory that combines
 * four quarters, then eleven stages in local memory. Inputs are small integers, so that floating
 * point is exact. GViM used the program; FairGV's table does not list it, so its kernel time is
 * this project's choice.
 */
#include "load.h"

#define GROUP   256
#define LENGTH  8192
#define QUARTER (LENGTH / 4)

static const char source[] = GN_LOAD_SOURCE(
    __kernel
    __attribute__((reqd_work_group_size(GROUP, 1, 1))) void walsh_inner(__global float *data) {
        __local float part[QUARTER];
        const int lane = get_local_id(0);
        __global float *mine = data + (int)get_group_id(0) * QUARTER;

        for (int i = 0; i < QUARTER; i += GROUP)
            part[i + lane] = mine[i + lane];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int reach = 1; reach < QUARTER; reach *= 2) {
            for (int pair = lane; pair < QUARTER / 2; pair += GROUP) {
                const int low = (pair & (reach - 1)) + 2 * (pair & ~(reach - 1));
                const float a = part[low];
                const float b = part[low + reach];

                part[low] = a + b;
                part[low + reach] = a - b;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        for (int i = 0; i < QUARTER; i += GROUP)
            mine[i + lane] = part[i + lane];
    }

    __kernel void walsh_outer(__global const float *in, __global float *out) {
        const int i = get_global_id(0);
        const int at = (i / QUARTER) * 4 * QUARTER + i % QUARTER;
        const float a = in[at];
        const float b = in[at + QUARTER];
        const float c = in[at + 2 * QUARTER];
        const float d = in[at + 3 * QUARTER];

        out[at] = a + b + c + d;
        out[at + QUARTER] = a - b + c - d;
        out[at + 2 * QUARTER] = a + b - c - d;
        out[at + 3 * QUARTER] = a - b - c + d;
    });

struct walsh {
    float *host;
    cl_mem out;
};

static void setup(struct gn_run *run)
{
    struct walsh *w = gn_load_alloc(run, 1, sizeof(*w));
    size_t n = run->size * LENGTH;
    struct gn_load_kernel *inner;
    struct gn_load_kernel *outer;
    cl_mem in;

    run->state = w;
    w->host = gn_load_alloc(run, n, sizeof(float));
    for (size_t i = 0; i < n; i++)
        w->host[i] = (float)(gn_load_random(run) % 17) - 8.0f;
    in = gn_load_buffer(run, CL_MEM_READ_ONLY, n * sizeof(float), w->host);
    w->out = gn_load_buffer(run, CL_MEM_READ_WRITE, n * sizeof(float), NULL);
    gn_load_build(run, source, "-DGROUP=%d -DQUARTER=%d", GROUP, QUARTER);
    inner = gn_load_kernel(run, "walsh_inner");
    GN_LOAD_ARG(inner, 0, w->out);
    outer = gn_load_kernel(run, "walsh_outer");
    GN_LOAD_ARG(outer, 0, in);
    GN_LOAD_ARG(outer, 1, w->out);
}

static void round_once(struct gn_run *run)
{
    for (unsigned i = 0; i < run->batch; i++) {
        gn_load_launch(run, &run->kernels[1], run->size * QUARTER, GROUP);
        gn_load_launch(run, &run->kernels[0], run->size * 4 * GROUP, GROUP);
        gn_load_finish(run);
    }
}

static bool check(struct gn_run *run)
{
    struct walsh *w = run->state;
    size_t n = run->size * LENGTH;
    float *got = gn_load_alloc(run, n, sizeof(float));

    gn_load_read(run, w->out, 0, n * sizeof(float), got);
    for (size_t v = 0; v < run->size; v++) {
        float *want = w->host + v * LENGTH; /* transformed in place: the device has its own copy */

        for (size_t reach = 1; reach < LENGTH; reach *= 2) {
            for (size_t i = 0; i < LENGTH; i++) {
                if ((i & reach) == 0) {
                    float a = want[i];
                    float b = want[i + reach];

                    want[i] = a + b;
                    want[i + reach] = a - b;
                }
            }
        }
    }
    return gn_load_same_floats("coefficient", got, w->host, n, 0.0f);
}

const struct gn_load gn_load_walsh = {
    .name = "fastWalshTransform",
    .about = "Walsh transforms of 8,192 numbers each",
    .size_unit = "vectors",
    .size = 6,
    .granule = 1,
    .min = 1,
    .max = 16384,
    .exponent = 1,
    .batch = 16,
    .kernel_us = 300,
    .setup = setup,
    .round = round_once,
    .check = check,
};
