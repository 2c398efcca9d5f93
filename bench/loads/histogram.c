/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histogram of bytes into 256 bins: each work-group counts into local memory, a second kernel adds
 * the groups' counts. After the two launches the program waits and reads the 1 KiB of bins.
 */
#include "load.h"

#define BINS   256
#define GROUP  64
#define GROUPS 32

static const char source[] = GN_LOAD_SOURCE(
    __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void count_bytes(
        __global const uint *data, __global uint *partial, int words_per_item) {
        __local uint bins[BINS];
        const int lane = get_local_id(0);
        const int stride = get_global_size(0);

        for (int bin = lane; bin < BINS; bin += GROUP)
            bins[bin] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int w = 0; w < words_per_item; w++) {
            const uint word = data[w * stride + (int)get_global_id(0)];

            atomic_inc(&bins[word & 255]);
            atomic_inc(&bins[(word >> 8) & 255]);
            atomic_inc(&bins[(word >> 16) & 255]);
            atomic_inc(&bins[word >> 24]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int bin = lane; bin < BINS; bin += GROUP)
            partial[(int)get_group_id(0) * BINS + bin] = bins[bin];
    }

    __kernel void add_counts(__global const uint *partial, __global uint *bins) {
        const int bin = get_global_id(0);
        uint sum = 0;

        for (int g = 0; g < GROUPS; g++)
            sum += partial[g * BINS + bin];
        bins[bin] = sum;
    });

struct histogram {
    uint32_t *host;
    cl_mem bins;
    int32_t got[BINS];
};

static void setup(struct gn_run *run)
{
    struct histogram *h = gn_load_alloc(run, 1, sizeof(*h));
    cl_int words_per_item = (cl_int)(run->size / (GROUP * GROUPS));
    struct gn_load_kernel *count;
    struct gn_load_kernel *add;
    cl_mem data;
    cl_mem partial;

    run->state = h;
    h->host = gn_load_alloc(run, run->size, sizeof(uint32_t));
    for (size_t i = 0; i < run->size; i++)
        h->host[i] = gn_load_random(run);
    data = gn_load_buffer(run, CL_MEM_READ_ONLY, run->size * sizeof(uint32_t), h->host);
    partial = gn_load_buffer(run, CL_MEM_READ_WRITE, GROUPS * BINS * sizeof(uint32_t), NULL);
    h->bins = gn_load_buffer(run, CL_MEM_WRITE_ONLY, BINS * sizeof(uint32_t), NULL);
    gn_load_build(run, source, "-DBINS=%d -DGROUP=%d -DGROUPS=%d", BINS, GROUP, GROUPS);
    count = gn_load_kernel(run, "count_bytes");
    GN_LOAD_ARG(count, 0, data);
    GN_LOAD_ARG(count, 1, partial);
    GN_LOAD_ARG(count, 2, words_per_item);
    add = gn_load_kernel(run, "add_counts");
    GN_LOAD_ARG(add, 0, partial);
    GN_LOAD_ARG(add, 1, h->bins);
}

static void round_once(struct gn_run *run)
{
    struct histogram *h = run->state;

    for (unsigned i = 0; i < run->batch; i++) {
        gn_load_launch(run, &run->kernels[0], GROUP * GROUPS, GROUP);
        gn_load_launch(run, &run->kernels[1], BINS, GROUP);
        gn_load_finish(run);
        gn_load_read(run, h->bins, 0, sizeof(h->got), h->got);
    }
}

static bool check(struct gn_run *run)
{
    struct histogram *h = run->state;
    int32_t want[BINS] = {0};

    for (size_t i = 0; i < run->size; i++) {
        for (unsigned shift = 0; shift < 32; shift += 8)
            want[(h->host[i] >> shift) & 255]++;
    }
    return gn_load_same_ints("bin", h->got, want, BINS);
}

const struct gn_load gn_load_histogram = {
    .name = "histogram",
    .about = "256 bins, local counters and a merge",
    .size_unit = "words of four bytes",
    .size = 18432,
    .granule = GROUP * GROUPS,
    .min = GROUP * GROUPS,
    .max = (size_t)1 << 28,
    .exponent = 1,
    .batch = 16,
    .kernel_us = 431,
    .async_rate = 39.561,
    .sync_rate = 39.588,
    .setup = setup,
    .round = round_once,
    .check = check,
};
