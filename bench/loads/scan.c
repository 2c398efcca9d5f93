/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exclusive prefix sums of many short arrays, one array of 1,024 numbers a work-group. The program
 * waits after every launch.
 */
#include "load.h"

#define GROUP   256
#define SEGMENT (4 * GROUP)

static const char source[] =
    GN_LOAD_SOURCE(__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void scan_segments(
        __global const uint4 *in, __global uint4 *out) {
        __local uint line[2][GROUP];
        const int lane = get_local_id(0);
        const int i = get_global_id(0);
        const uint4 v = in[i];
        const uint total = v.x + v.y + v.z + v.w;
        uint sum = total;
        int from = 0;

        line[0][lane] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int distance = 1; distance < GROUP; distance *= 2) {
            if (lane >= distance)
                sum += line[from][lane - distance];
            line[1 - from][lane] = sum;
            from = 1 - from;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        const uint before = sum - total;
        out[i] = (uint4)(before, before + v.x, before + v.x + v.y, before + v.x + v.y + v.z);
    });

struct scan {
    uint32_t *host;
    cl_mem out;
};

static void setup(struct gn_run *run)
{
    struct scan *s = gn_load_alloc(run, 1, sizeof(*s));
    size_t bytes = run->size * sizeof(uint32_t);
    struct gn_load_kernel *k;
    cl_mem in;

    run->state = s;
    s->host = gn_load_alloc(run, run->size, sizeof(uint32_t));
    for (size_t i = 0; i < run->size; i++)
        s->host[i] = gn_load_random(run) & 0xffff;
    in = gn_load_buffer(run, CL_MEM_READ_ONLY, bytes, s->host);
    s->out = gn_load_buffer(run, CL_MEM_WRITE_ONLY, bytes, NULL);
    gn_load_build(run, source, "-DGROUP=%d", GROUP);
    k = gn_load_kernel(run, "scan_segments");
    GN_LOAD_ARG(k, 0, in);
    GN_LOAD_ARG(k, 1, s->out);
}

static void round_once(struct gn_run *run)
{
    for (unsigned i = 0; i < run->batch; i++) {
        gn_load_launch(run, &run->kernels[0], run->size / 4, GROUP);
        gn_load_finish(run);
    }
}

static bool check(struct gn_run *run)
{
    struct scan *s = run->state;
    int32_t *got = gn_load_alloc(run, run->size, sizeof(int32_t));
    int32_t *want = gn_load_alloc(run, run->size, sizeof(int32_t));
    uint32_t sum = 0;

    gn_load_read(run, s->out, 0, run->size * sizeof(int32_t), got);
    for (size_t i = 0; i < run->size; i++) {
        if (i % SEGMENT == 0)
            sum = 0;
        want[i] = (int32_t)sum;
        sum += s->host[i];
    }
    return gn_load_same_ints("prefix sum", got, want, run->size);
}

const struct gn_load gn_load_scan = {
    .name = "scan",
    .about = "prefix sums of arrays of 1,024 numbers",
    .size_unit = "numbers",
    .size = 79872,
    .granule = SEGMENT,
    .min = SEGMENT,
    .max = (size_t)1 << 28,
    .exponent = 1,
    .batch = 32,
    .kernel_us = 171,
    .async_rate = 54.705,
    .sync_rate = 54.757,
    .setup = setup,
    .round = round_once,
    .check = check,
};
