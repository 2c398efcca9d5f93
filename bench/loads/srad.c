/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speckle-reducing anisotropic diffusion of an image. Every step sums the image on the device,
 * reads the sums, works out a coefficient on the host, writes it back and launches two stencils:
 * kernels of tens of microseconds and about 2.6 synchronous calls a launch, the load that is
 * hardest on anything between a program and its device.
 */
#include "load.h"

#include <math.h>
#include <string.h>

#define GROUP       256
#define GROUPS      4 /* of the reduction */
#define GROUP_X     32
#define GROUP_Y     4
#define LAMBDA      0.5f
#define CHECK_STEPS 8

static const char source[] = GN_LOAD_SOURCE(
    /* state[0] is the squared coefficient of variation that the host works out each step, state[1]
     * the step.
     */
    __kernel void diffusion(__global const float *image, __global float *c,
                            __global const float *state, int n) {
        const int x = get_global_id(0);
        const int y = get_global_id(1);
        const int i = y * n + x;
        const float here = image[i];
        const float north = image[y > 0 ? i - n : i] - here;
        const float south = image[y < n - 1 ? i + n : i] - here;
        const float west = image[x > 0 ? i - 1 : i] - here;
        const float east = image[x < n - 1 ? i + 1 : i] - here;
        const float gradient =
            (north * north + south * south + west * west + east * east) / (here * here);
        const float laplace = (north + south + west + east) / here;
        const float above = 0.5f * gradient - 0.0625f * laplace * laplace;
        const float below = 1.0f + 0.25f * laplace;
        const float q = above / (below * below);
        const float q0 = state[0];

        c[i] = clamp(1.0f / (1.0f + (q - q0) / (q0 * (1.0f + q0))), 0.0f, 1.0f);
    }

    __kernel void update(__global const float *from, __global const float *c, __global float *to,
                         int n) {
        const int x = get_global_id(0);
        const int y = get_global_id(1);
        const int i = y * n + x;
        const float here = from[i];
        const int south = y < n - 1 ? i + n : i;
        const int east = x < n - 1 ? i + 1 : i;
        const float flow = c[i] * (from[y > 0 ? i - n : i] - here) +
                           c[south] * (from[south] - here) +
                           c[i] * (from[x > 0 ? i - 1 : i] - here) + c[east] * (from[east] - here);

        to[i] = here + 0.25f * LAMBDA * flow;
    }

    __kernel void squares(__global const float *image, __global float *square) {
        const int i = get_global_id(0);

        square[i] = image[i] * image[i];
    }

    __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void sums(
        __global const float *image, __global const float *square, __global float *partial,
        __global float *square_partial, int per_item) {
        __local float a[GROUP];
        __local float b[GROUP];
        const int lane = get_local_id(0);
        const int stride = get_global_size(0);
        float sum = 0.0f;
        float square_sum = 0.0f;

        for (int k = 0; k < per_item; k++) {
            sum += image[k * stride + (int)get_global_id(0)];
            square_sum += square[k * stride + (int)get_global_id(0)];
        }
        a[lane] = sum;
        b[lane] = square_sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int reach = GROUP / 2; reach > 0; reach /= 2) {
            if (lane < reach) {
                a[lane] += a[lane + reach];
                b[lane] += b[lane + reach];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (lane == 0) {
            partial[get_group_id(0)] = a[0];
            square_partial[get_group_id(0)] = b[0];
        }
    });

enum { DIFFUSION, UPDATE, SQUARES, SUMS };

struct srad {
    float *start;
    cl_mem image[2];
    cl_mem partial;
    cl_mem square_partial;
    cl_mem state;
    unsigned now;
};

static void setup(struct gn_run *run)
{
    struct srad *s = gn_load_alloc(run, 1, sizeof(*s));
    size_t n = run->size;
    size_t bytes = n * n * sizeof(float);
    cl_int n_arg = (cl_int)n;
    cl_int per_item = (cl_int)(n * n / (GROUP * GROUPS));
    cl_mem c;
    cl_mem square;

    run->state = s;
    s->start = gn_load_alloc(run, n * n, sizeof(float));
    for (size_t i = 0; i < n * n; i++)
        s->start[i] = expf(gn_load_random_float(run, 0.2f, 1.0f));
    for (unsigned i = 0; i < 2; i++)
        s->image[i] = gn_load_buffer(run, CL_MEM_READ_WRITE, bytes, s->start);
    c = gn_load_buffer(run, CL_MEM_READ_WRITE, bytes, NULL);
    square = gn_load_buffer(run, CL_MEM_READ_WRITE, bytes, NULL);
    s->partial = gn_load_buffer(run, CL_MEM_READ_WRITE, GROUPS * sizeof(float), NULL);
    s->square_partial = gn_load_buffer(run, CL_MEM_READ_WRITE, GROUPS * sizeof(float), NULL);
    s->state = gn_load_buffer(run, CL_MEM_READ_ONLY, 2 * sizeof(float), NULL);
    gn_load_build(run, source, "-DGROUP=%d -DLAMBDA=%.8ff", GROUP, (double)LAMBDA);
    gn_load_kernel(run, "diffusion");
    gn_load_kernel(run, "update");
    gn_load_kernel(run, "squares");
    gn_load_kernel(run, "sums");
    GN_LOAD_ARG(&run->kernels[DIFFUSION], 1, c);
    GN_LOAD_ARG(&run->kernels[DIFFUSION], 2, s->state);
    GN_LOAD_ARG(&run->kernels[DIFFUSION], 3, n_arg);
    GN_LOAD_ARG(&run->kernels[UPDATE], 1, c);
    GN_LOAD_ARG(&run->kernels[UPDATE], 3, n_arg);
    GN_LOAD_ARG(&run->kernels[SQUARES], 1, square);
    GN_LOAD_ARG(&run->kernels[SUMS], 1, square);
    GN_LOAD_ARG(&run->kernels[SUMS], 2, s->partial);
    GN_LOAD_ARG(&run->kernels[SUMS], 3, s->square_partial);
    GN_LOAD_ARG(&run->kernels[SUMS], 4, per_item);
}

static float coefficient(const float *partial, const float *square_partial, size_t n_pixels)
{
    float mean = 0.0f;
    float mean_square = 0.0f;

    for (unsigned i = 0; i < GROUPS; i++) {
        mean += partial[i] / (float)n_pixels;
        mean_square += square_partial[i] / (float)n_pixels;
    }
    /* A finished image has no variation left; the floor keeps the stencil from dividing by nothing.
     */
    return fmaxf((mean_square - mean * mean) / (mean * mean), 1e-4f);
}

/* Four launches and ten synchronous calls. */
static void step(struct gn_run *run, unsigned number)
{
    struct srad *s = run->state;
    const size_t global[2] = {run->size, run->size};
    const size_t local[2] = {GROUP_X, GROUP_Y};
    size_t n_pixels = run->size * run->size;
    float partial[GROUPS];
    float square_partial[GROUPS];
    float q0;
    float step_number = (float)number;
    float peek;

    GN_LOAD_ARG(&run->kernels[SQUARES], 0, s->image[s->now]);
    gn_load_launch(run, &run->kernels[SQUARES], n_pixels, GROUP);
    gn_load_finish(run);
    GN_LOAD_ARG(&run->kernels[SUMS], 0, s->image[s->now]);
    gn_load_launch(run, &run->kernels[SUMS], GROUPS * GROUP, GROUP);
    gn_load_finish(run);
    gn_load_read(run, s->partial, 0, sizeof(partial), partial);
    gn_load_read(run, s->square_partial, 0, sizeof(square_partial), square_partial);
    q0 = coefficient(partial, square_partial, n_pixels);
    gn_load_write(run, s->state, 0, sizeof(q0), &q0);
    gn_load_write(run, s->state, sizeof(q0), sizeof(step_number), &step_number);
    GN_LOAD_ARG(&run->kernels[DIFFUSION], 0, s->image[s->now]);
    gn_load_launch_2d(run, &run->kernels[DIFFUSION], global, local);
    gn_load_finish(run);
    GN_LOAD_ARG(&run->kernels[UPDATE], 0, s->image[s->now]);
    s->now = 1 - s->now;
    GN_LOAD_ARG(&run->kernels[UPDATE], 2, s->image[s->now]);
    gn_load_launch_2d(run, &run->kernels[UPDATE], global, local);
    gn_load_finish(run);
    gn_load_read(run, s->image[s->now], 0, sizeof(peek), &peek);
    gn_load_finish(run); /* nothing is pending: a synchronous call that waits for nobody */
}

/* Back to the first image each round, so that long runs do not end on an image without structure.
 */
static void restart(struct gn_run *run)
{
    struct srad *s = run->state;

    s->now = 0;
    gn_load_write(run, s->image[0], 0, run->size * run->size * sizeof(float), s->start);
}

static void round_once(struct gn_run *run)
{
    restart(run);
    for (unsigned i = 0; i < run->batch; i++)
        step(run, i);
}

static void reference_step(const float *from, float *c, float *to, size_t n)
{
    double sum = 0;
    double square_sum = 0;
    float partial[GROUPS] = {0};
    float square_partial[GROUPS] = {0};
    float q0;

    for (size_t i = 0; i < n * n; i++) {
        sum += (double)from[i];
        square_sum += (double)(from[i] * from[i]);
    }
    partial[0] = (float)sum;
    square_partial[0] = (float)square_sum;
    q0 = coefficient(partial, square_partial, n * n);
    for (size_t i = 0; i < n * n; i++) {
        float here = from[i];
        float north = from[i >= n ? i - n : i] - here;
        float south = from[i < n * (n - 1) ? i + n : i] - here;
        float west = from[i % n > 0 ? i - 1 : i] - here;
        float east = from[i % n < n - 1 ? i + 1 : i] - here;
        float gradient =
            (north * north + south * south + west * west + east * east) / (here * here);
        float laplace = (north + south + west + east) / here;
        float below = 1.0f + 0.25f * laplace;
        float q = (0.5f * gradient - 0.0625f * laplace * laplace) / (below * below);

        c[i] = fminf(fmaxf(1.0f / (1.0f + (q - q0) / (q0 * (1.0f + q0))), 0.0f), 1.0f);
    }
    for (size_t i = 0; i < n * n; i++) {
        float here = from[i];
        size_t south = i < n * (n - 1) ? i + n : i;
        size_t east = i % n < n - 1 ? i + 1 : i;
        float flow = c[i] * (from[i >= n ? i - n : i] - here) + c[south] * (from[south] - here) +
                     c[i] * (from[i % n > 0 ? i - 1 : i] - here) + c[east] * (from[east] - here);

        to[i] = here + 0.25f * LAMBDA * flow;
    }
}

static bool check(struct gn_run *run)
{
    struct srad *s = run->state;
    size_t n = run->size;
    size_t bytes = n * n * sizeof(float);
    float *got = gn_load_alloc(run, n * n, sizeof(float));
    float *c = gn_load_alloc(run, n * n, sizeof(float));
    float *want[2];

    restart(run);
    for (unsigned i = 0; i < CHECK_STEPS; i++)
        step(run, i);
    gn_load_read(run, s->image[s->now], 0, bytes, got);
    want[0] = gn_load_alloc(run, n * n, sizeof(float));
    want[1] = gn_load_alloc(run, n * n, sizeof(float));
    memcpy(want[0], s->start, bytes);
    for (unsigned i = 0; i < CHECK_STEPS; i++)
        reference_step(want[i % 2], c, want[1 - i % 2], n);
    return gn_load_same_floats("pixel", got, want[CHECK_STEPS % 2], n * n, 2e-3f);
}

const struct gn_load gn_load_srad = {
    .name = "srad",
    .about = "diffusion with sums read every step",
    .size_unit = "rows",
    .size = 288,
    .granule = 32,
    .min = 32,
    .max = 8192,
    .exponent = 2,
    .batch = 32,
    .mean = true,
    .kernel_us = 46,
    .async_rate = 247.525,
    .sync_rate = 643.589,
    .setup = setup,
    .round = round_once,
    .check = check,
};
