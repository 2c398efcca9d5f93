/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temperature of a chip over time: explicit steps of the heat equation on a square grid, one launch
 * a step, thousands of steps between two synchronous calls. Two arguments are set anew before each
 * launch, as such programs do.
 */
#include "load.h"

#include <string.h>

#define GROUP_X     32
#define GROUP_Y     4
#define AMBIENT     80.0f
#define CHECK_STEPS 24

static const char source[] = GN_LOAD_SOURCE(__kernel void heat_step(
    __global const float *power, __global const float *from, __global float *to, int n) {
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int i = y * n + x;
    const float here = from[i];
    const float north = from[y > 0 ? i - n : i];
    const float south = from[y < n - 1 ? i + n : i];
    const float west = from[x > 0 ? i - 1 : i];
    const float east = from[x < n - 1 ? i + 1 : i];

    to[i] = here + 0.1f * (power[i] + (north + south - 2.0f * here) + (west + east - 2.0f * here) +
                           0.05f * (AMBIENT - here));
});

struct hotspot {
    float *power;
    float *start;
    cl_mem grid[2];
    unsigned now; /* the grid that holds the newest step */
};

static void setup(struct gn_run *run)
{
    struct hotspot *h = gn_load_alloc(run, 1, sizeof(*h));
    size_t n = run->size;
    size_t bytes = n * n * sizeof(float);
    cl_int n_arg = (cl_int)n;
    struct gn_load_kernel *k;
    cl_mem power;

    run->state = h;
    h->power = gn_load_alloc(run, n * n, sizeof(float));
    h->start = gn_load_alloc(run, n * n, sizeof(float));
    for (size_t i = 0; i < n * n; i++) {
        h->power[i] = gn_load_random_float(run, 0.0f, 1.0f);
        h->start[i] = gn_load_random_float(run, 75.0f, 95.0f);
    }
    power = gn_load_buffer(run, CL_MEM_READ_ONLY, bytes, h->power);
    h->grid[0] = gn_load_buffer(run, CL_MEM_READ_WRITE, bytes, h->start);
    h->grid[1] = gn_load_buffer(run, CL_MEM_READ_WRITE, bytes, NULL);
    gn_load_build(run, source, "-DAMBIENT=%.8ff", (double)AMBIENT);
    k = gn_load_kernel(run, "heat_step");
    GN_LOAD_ARG(k, 0, power);
    GN_LOAD_ARG(k, 3, n_arg);
}

static void steps(struct gn_run *run, unsigned count)
{
    const size_t global[2] = {run->size, run->size};
    const size_t local[2] = {GROUP_X, GROUP_Y};
    struct hotspot *h = run->state;

    for (unsigned i = 0; i < count; i++) {
        GN_LOAD_ARG(&run->kernels[0], 1, h->grid[h->now]);
        h->now = 1 - h->now;
        GN_LOAD_ARG(&run->kernels[0], 2, h->grid[h->now]);
        gn_load_launch_2d(run, &run->kernels[0], global, local);
    }
    gn_load_finish(run);
}

static void round_once(struct gn_run *run)
{
    steps(run, run->batch);
}

static void reference_step(const float *power, const float *from, float *to, size_t n)
{
    for (size_t y = 0; y < n; y++) {
        for (size_t x = 0; x < n; x++) {
            size_t i = y * n + x;
            float here = from[i];
            float vertical = from[y > 0 ? i - n : i] + from[y < n - 1 ? i + n : i] - 2.0f * here;
            float horizontal = from[x > 0 ? i - 1 : i] + from[x < n - 1 ? i + 1 : i] - 2.0f * here;

            to[i] = here + 0.1f * (power[i] + vertical + horizontal + 0.05f * (AMBIENT - here));
        }
    }
}

static bool check(struct gn_run *run)
{
    struct hotspot *h = run->state;
    size_t n = run->size;
    size_t bytes = n * n * sizeof(float);
    float *got = gn_load_alloc(run, n * n, sizeof(float));
    float *want[2];

    h->now = 0;
    gn_load_write(run, h->grid[0], 0, bytes, h->start);
    steps(run, CHECK_STEPS);
    gn_load_read(run, h->grid[h->now], 0, bytes, got);
    want[0] = gn_load_alloc(run, n * n, sizeof(float));
    want[1] = gn_load_alloc(run, n * n, sizeof(float));
    memcpy(want[0], h->start, bytes);
    for (unsigned i = 0; i < CHECK_STEPS; i++)
        reference_step(h->power, want[i % 2], want[1 - i % 2], n);
    return gn_load_same_floats("temperature", got, want[CHECK_STEPS % 2], n * n, 1e-4f);
}

const struct gn_load gn_load_hotspot = {
    .name = "hotspot",
    .about = "heat equation, one launch a step",
    .size_unit = "rows",
    .size = 480,
    .granule = GROUP_X,
    .min = GROUP_X,
    .max = 16384,
    .exponent = 2,
    .batch = 4250,
    .kernel_us = 133,
    .async_rate = 59.520,
    .sync_rate = 0.014,
    .setup = setup,
    .round = round_once,
    .check = check,
};
