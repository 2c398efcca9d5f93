/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prices of European options, one a work-item, by the Black-Scholes formula. The program waits
 * after every launch, so this load shows what a launch and a wait cost together.
 */
#include "load.h"

#include <math.h>

#define GROUP      64
#define RATE       0.02f
#define VOLATILITY 0.30f

static const char source[] = GN_LOAD_SOURCE(
    /* The normal distribution by Abramowitz and Stegun 26.2.17. */
    float normal_below(float d) {
        const float k = 1.0f / (1.0f + 0.2316419f * fabs(d));
        const float poly =
            k * (0.319381530f +
                 k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
        const float above = 0.39894228040143267794f * exp(-0.5f * d * d) * poly;

        return d > 0.0f ? 1.0f - above : above;
    }

    __kernel void black_scholes(__global const float *price, __global const float *strike,
                                __global const float *years, __global float *call,
                                __global float *put) {
        const int i = get_global_id(0);
        const float s = price[i];
        const float x = strike[i];
        const float t = years[i];
        const float spread = VOLATILITY * sqrt(t);
        const float d1 = (log(s / x) + (RATE + 0.5f * VOLATILITY * VOLATILITY) * t) / spread;
        const float n1 = normal_below(d1);
        const float n2 = normal_below(d1 - spread);
        const float discounted = x * exp(-RATE * t);

        call[i] = s * n1 - discounted * n2;
        put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
    });

struct blackscholes {
    float *host[3];   /* price, strike, years */
    cl_mem result[2]; /* call, put */
};

static void setup(struct gn_run *run)
{
    static const float low[3] = {5.0f, 1.0f, 0.25f};
    static const float high[3] = {30.0f, 100.0f, 10.0f};
    struct blackscholes *b = gn_load_alloc(run, 1, sizeof(*b));
    size_t bytes = run->size * sizeof(float);
    struct gn_load_kernel *k;
    cl_mem in[3];

    run->state = b;
    for (unsigned a = 0; a < 3; a++) {
        b->host[a] = gn_load_alloc(run, run->size, sizeof(float));
        for (size_t i = 0; i < run->size; i++)
            b->host[a][i] = gn_load_random_float(run, low[a], high[a]);
        in[a] = gn_load_buffer(run, CL_MEM_READ_ONLY, bytes, b->host[a]);
    }
    gn_load_build(run, source, "-DRATE=%.8ff -DVOLATILITY=%.8ff", (double)RATE, (double)VOLATILITY);
    k = gn_load_kernel(run, "black_scholes");
    for (cl_uint a = 0; a < 3; a++)
        GN_LOAD_ARG(k, a, in[a]);
    for (cl_uint a = 0; a < 2; a++) {
        b->result[a] = gn_load_buffer(run, CL_MEM_WRITE_ONLY, bytes, NULL);
        GN_LOAD_ARG(k, 3 + a, b->result[a]);
    }
}

static void round_once(struct gn_run *run)
{
    for (unsigned i = 0; i < run->batch; i++) {
        gn_load_launch(run, &run->kernels[0], run->size, GROUP);
        gn_load_finish(run);
    }
}

static double normal_below(double d)
{
    return 0.5 * erfc(-d / sqrt(2.0));
}

static bool check(struct gn_run *run)
{
    struct blackscholes *b = run->state;
    float *got[2];
    float *want[2];

    for (unsigned a = 0; a < 2; a++) {
        got[a] = gn_load_alloc(run, run->size, sizeof(float));
        want[a] = gn_load_alloc(run, run->size, sizeof(float));
        gn_load_read(run, b->result[a], 0, run->size * sizeof(float), got[a]);
    }
    for (size_t i = 0; i < run->size; i++) {
        double s = (double)b->host[0][i];
        double x = (double)b->host[1][i];
        double t = (double)b->host[2][i];
        double rate = (double)RATE;
        double volatility = (double)VOLATILITY;
        double spread = volatility * sqrt(t);
        double d1 = (log(s / x) + (rate + 0.5 * volatility * volatility) * t) / spread;
        double discounted = x * exp(-rate * t);

        want[0][i] = (float)(s * normal_below(d1) - discounted * normal_below(d1 - spread));
        want[1][i] = (float)(discounted * normal_below(spread - d1) - s * normal_below(-d1));
    }
    return gn_load_same_floats("call", got[0], want[0], run->size, 1e-4f) &&
           gn_load_same_floats("put", got[1], want[1], run->size, 1e-4f);
}

const struct gn_load gn_load_blackscholes = {
    .name = "BlackScholes",
    .about = "option prices, one a work-item",
    .size_unit = "options",
    .size = 6528,
    .granule = GROUP,
    .min = GROUP,
    .max = (size_t)1 << 26,
    .exponent = 1,
    .batch = 16,
    .kernel_us = 377,
    .async_rate = 26.318,
    .sync_rate = 26.355,
    .setup = setup,
    .round = round_once,
    .check = check,
};
