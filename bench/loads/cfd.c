/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow of a gas: a finite-volume Euler solver with three stages a step on cells that know their
 * four neighbours by number. Modelled on cfd's mix of calls: eight commands and fourteen
 * synchronous calls a step, 87 synchronous calls in 10 ms when kernels take 198 microseconds on
 * average.
 */
#include "load.h"

#include <math.h>
#include <string.h>

#define GROUP       64
#define SIDES       4
#define STAGES      3
#define VALUES      4 /* density, momentum x and y, energy; each an array of its own */
#define VISCOSITY   0.25f
#define GAMMA       1.4f
#define WIDE        64 /* cells a row; rows follow from the size */
#define CHECK_STEPS 6

static const char source[] = GN_LOAD_SOURCE(
    float pressure(float4 u) {
        return (GAMMA - 1.0f) * (u.w - 0.5f * (u.y * u.y + u.z * u.z) / u.x);
    }

    float wave_speed(float4 u) {
        return sqrt((u.y * u.y + u.z * u.z)) / u.x + sqrt(GAMMA * pressure(u) / u.x);
    }

    float4 cell(__global const float *v, int i, int n) {
        return (float4)(v[i], v[n + i], v[2 * n + i], v[3 * n + i]);
    }

    float4 through(float4 u, float nx, float ny) {
        const float p = pressure(u);
        const float out = (u.y * nx + u.z * ny) / u.x;

        return (float4)(u.x * out, u.y * out + p * nx, u.z * out + p * ny, (u.w + p) * out);
    }

    __kernel void flux(__global const float *v, __global const int *neighbour,
                       __global const float *normal, __global float *change, int n) {
        const int i = get_global_id(0);
        const float4 mine = cell(v, i, n);
        const float speed = wave_speed(mine);
        float4 sum = (float4)(0.0f);

        for (int side = 0; side < SIDES; side++) {
            const float4 other = cell(v, neighbour[side * n + i], n);
            const float nx = normal[2 * side];
            const float ny = normal[2 * side + 1];

            sum -= 0.5f * (through(mine, nx, ny) + through(other, nx, ny));
            sum += VISCOSITY * (speed + wave_speed(other)) * (other - mine);
        }
        change[i] = sum.x;
        change[n + i] = sum.y;
        change[2 * n + i] = sum.z;
        change[3 * n + i] = sum.w;
    }

    __kernel void step_factor(__global const float *v, __global float *factor, int n) {
        const int i = get_global_id(0);

        factor[i] = 0.4f / wave_speed(cell(v, i, n));
    }

    __kernel void time_step(__global const float *old, __global const float *change,
                            __global const float *factor, __global float *v, int n, float divisor) {
        const int i = get_global_id(0);
        const float f = factor[i] / divisor;

        for (int k = 0; k < VALUES; k++)
            v[k * n + i] = old[k * n + i] + f * change[k * n + i];
    });

enum { FLUX, STEP_FACTOR, TIME_STEP };

static const float normals[2 * SIDES] = {1, 0, -1, 0, 0, 1, 0, -1};

struct cfd {
    float *start;
    int32_t *neighbour;
    cl_mem now;
    cl_mem old;
};

/* A periodic grid, written down as a list of neighbours: the kernel does not know that it is one.
 */
static void fill_neighbours(int32_t *neighbour, size_t n)
{
    size_t high = n / WIDE;

    for (size_t i = 0; i < n; i++) {
        size_t x = i % WIDE;
        size_t y = i / WIDE;

        neighbour[i] = (int32_t)(y * WIDE + (x + 1) % WIDE);
        neighbour[n + i] = (int32_t)(y * WIDE + (x + WIDE - 1) % WIDE);
        neighbour[2 * n + i] = (int32_t)((y + 1) % high * WIDE + x);
        neighbour[3 * n + i] = (int32_t)((y + high - 1) % high * WIDE + x);
    }
}

static void setup(struct gn_run *run)
{
    struct cfd *c = gn_load_alloc(run, 1, sizeof(*c));
    size_t n = run->size;
    size_t bytes = n * VALUES * sizeof(float);
    cl_int n_arg = (cl_int)n;
    struct gn_load_kernel *flux;
    struct gn_load_kernel *step_factor;
    struct gn_load_kernel *time_step;
    cl_mem neighbour;
    cl_mem normal;
    cl_mem change;
    cl_mem factor;

    run->state = c;
    c->start = gn_load_alloc(run, n * VALUES, sizeof(float));
    c->neighbour = gn_load_alloc(run, n * SIDES, sizeof(int32_t));
    for (size_t i = 0; i < n; i++) {
        c->start[i] = gn_load_random_float(run, 1.3f, 1.5f);
        c->start[n + i] = gn_load_random_float(run, 0.2f, 0.6f);
        c->start[2 * n + i] = gn_load_random_float(run, -0.2f, 0.2f);
        c->start[3 * n + i] = gn_load_random_float(run, 2.5f, 2.8f);
    }
    fill_neighbours(c->neighbour, n);
    c->now = gn_load_buffer(run, CL_MEM_READ_WRITE, bytes, c->start);
    c->old = gn_load_buffer(run, CL_MEM_READ_WRITE, bytes, NULL);
    change = gn_load_buffer(run, CL_MEM_READ_WRITE, bytes, NULL);
    factor = gn_load_buffer(run, CL_MEM_READ_WRITE, n * sizeof(float), NULL);
    neighbour = gn_load_buffer(run, CL_MEM_READ_ONLY, n * SIDES * sizeof(int32_t), c->neighbour);
    normal = gn_load_buffer(run, CL_MEM_READ_ONLY, sizeof(normals), normals);
    gn_load_build(run, source, "-DSIDES=%d -DVALUES=%d -DVISCOSITY=%.8ff -DGAMMA=%.8ff", SIDES,
                  VALUES, (double)VISCOSITY, (double)GAMMA);
    flux = gn_load_kernel(run, "flux");
    GN_LOAD_ARG(flux, 0, c->now);
    GN_LOAD_ARG(flux, 1, neighbour);
    GN_LOAD_ARG(flux, 2, normal);
    GN_LOAD_ARG(flux, 3, change);
    GN_LOAD_ARG(flux, 4, n_arg);
    step_factor = gn_load_kernel(run, "step_factor");
    GN_LOAD_ARG(step_factor, 0, c->now);
    GN_LOAD_ARG(step_factor, 1, factor);
    GN_LOAD_ARG(step_factor, 2, n_arg);
    time_step = gn_load_kernel(run, "time_step");
    GN_LOAD_ARG(time_step, 0, c->old);
    GN_LOAD_ARG(time_step, 1, change);
    GN_LOAD_ARG(time_step, 2, factor);
    GN_LOAD_ARG(time_step, 3, c->now);
    GN_LOAD_ARG(time_step, 4, n_arg);
}

static void launch_and_wait(struct gn_run *run, unsigned kernel)
{
    gn_load_launch(run, &run->kernels[kernel], run->size, GROUP);
    gn_load_finish(run);
}

static void step(struct gn_run *run)
{
    struct cfd *c = run->state;
    float peek;

    gn_load_copy(run, c->now, c->old, run->size * VALUES * sizeof(float));
    gn_load_finish(run);
    launch_and_wait(run, STEP_FACTOR);
    for (unsigned stage = 0; stage < STAGES; stage++) {
        float divisor = (float)(STAGES - stage);

        launch_and_wait(run, FLUX);
        gn_load_read(run, c->now, 0, sizeof(peek), &peek);
        GN_LOAD_ARG(&run->kernels[TIME_STEP], 5, divisor);
        launch_and_wait(run, TIME_STEP);
        gn_load_read(run, c->now, 0, sizeof(peek), &peek);
    }
}

static void round_once(struct gn_run *run)
{
    for (unsigned i = 0; i < run->batch; i++)
        step(run);
}

struct gas {
    float v[VALUES];
};

static float pressure(struct gas u)
{
    return (GAMMA - 1.0f) * (u.v[3] - 0.5f * (u.v[1] * u.v[1] + u.v[2] * u.v[2]) / u.v[0]);
}

static float wave_speed(struct gas u)
{
    return sqrtf(u.v[1] * u.v[1] + u.v[2] * u.v[2]) / u.v[0] + sqrtf(GAMMA * pressure(u) / u.v[0]);
}

static struct gas cell(const float *v, size_t i, size_t n)
{
    return (struct gas){{v[i], v[n + i], v[2 * n + i], v[3 * n + i]}};
}

static void add_through(struct gas *sum, struct gas u, float nx, float ny)
{
    float p = pressure(u);
    float out = (u.v[1] * nx + u.v[2] * ny) / u.v[0];

    sum->v[0] -= 0.5f * u.v[0] * out;
    sum->v[1] -= 0.5f * (u.v[1] * out + p * nx);
    sum->v[2] -= 0.5f * (u.v[2] * out + p * ny);
    sum->v[3] -= 0.5f * (u.v[3] + p) * out;
}

static void reference_step(const struct cfd *c, float *now, float *old, float *change, size_t n)
{
    memcpy(old, now, n * VALUES * sizeof(float));
    for (unsigned stage = 0; stage < STAGES; stage++) {
        for (size_t i = 0; i < n; i++) {
            struct gas mine = cell(now, i, n);
            struct gas sum = {{0}};

            for (unsigned side = 0; side < SIDES; side++) {
                struct gas other = cell(now, (size_t)c->neighbour[side * n + i], n);
                float viscosity = VISCOSITY * (wave_speed(mine) + wave_speed(other));

                add_through(&sum, mine, normals[2 * side], normals[2 * side + 1]);
                add_through(&sum, other, normals[2 * side], normals[2 * side + 1]);
                for (unsigned k = 0; k < VALUES; k++)
                    sum.v[k] += viscosity * (other.v[k] - mine.v[k]);
            }
            for (unsigned k = 0; k < VALUES; k++)
                change[k * n + i] = sum.v[k];
        }
        for (size_t i = 0; i < n; i++) {
            float f = 0.4f / wave_speed(cell(old, i, n)) / (float)(STAGES - stage);

            for (unsigned k = 0; k < VALUES; k++)
                now[k * n + i] = old[k * n + i] + f * change[k * n + i];
        }
    }
}

static bool check(struct gn_run *run)
{
    struct cfd *c = run->state;
    size_t n = run->size;
    size_t bytes = n * VALUES * sizeof(float);
    float *got = gn_load_alloc(run, n * VALUES, sizeof(float));
    float *old = gn_load_alloc(run, n * VALUES, sizeof(float));
    float *change = gn_load_alloc(run, n * VALUES, sizeof(float));

    gn_load_write(run, c->now, 0, bytes, c->start);
    for (unsigned i = 0; i < CHECK_STEPS; i++)
        step(run);
    gn_load_read(run, c->now, 0, bytes, got);
    for (unsigned i = 0; i < CHECK_STEPS; i++)
        reference_step(c, c->start, old, change, n);
    return gn_load_same_floats("value", got, c->start, n * VALUES, 1e-3f);
}

const struct gn_load gn_load_cfd = {
    .name = "cfd",
    .about = "Euler equations, a wait after every command",
    .size_unit = "cells",
    .size = 13696,
    .granule = WIDE,
    .min = 4 * WIDE,
    .max = (size_t)1 << 24,
    .exponent = 1,
    .batch = 4,
    .mean = true,
    .kernel_us = 198,
    .async_rate = 49.761,
    .sync_rate = 87.130,
    .setup = setup,
    .round = round_once,
    .check = check,
};
