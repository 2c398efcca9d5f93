/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that only counts, for experiments in which its length and shape are the question: size
 * is the steps of one work-item, --groups how many work-groups there are (many and short ones can
 * be split, one long one cannot),
 * --pieces into how many launches the program itself cuts them, --batch how often between two
 * waits, --reads the blocking reads of one number after each wait. A batch of 1 with reads is a
 * program that talks to its device all the time.
 */
#include "load.h"

#define GROUP 16

static const char source[] = GN_LOAD_SOURCE(__kernel __attribute__((
    reqd_work_group_size(GROUP, 1, 1))) void spin(__global uint *out, uint steps) {
    uint x = (uint)get_global_id(0);

    for (uint i = 0; i < steps; i++)
        x = x * 1664525u + 1013904223u;
    if (get_local_id(0) == 0)
        out[get_global_id(0) / GROUP] = x;
});

struct spin {
    cl_mem out;
};

static void setup(struct gn_run *run)
{
    struct spin *s = gn_load_alloc(run, 1, sizeof(*s));
    cl_uint steps = (cl_uint)run->size;
    struct gn_load_kernel *k;

    run->state = s;
    s->out = gn_load_buffer(run, CL_MEM_WRITE_ONLY, run->groups * sizeof(cl_uint), NULL);
    gn_load_build(run, source, "-DGROUP=%d", GROUP);
    k = gn_load_kernel(run, "spin");
    GN_LOAD_ARG(k, 0, s->out);
    GN_LOAD_ARG(k, 1, steps);
}

static void round_once(struct gn_run *run)
{
    struct spin *s = run->state;
    cl_uint number;

    for (unsigned i = 0; i < run->batch; i++) {
        for (size_t p = 0; p < run->pieces; p++) {
            size_t from = run->groups * p / run->pieces;
            size_t to = run->groups * (p + 1) / run->pieces;

            gn_load_launch_from(run, &run->kernels[0], from * GROUP, (to - from) * GROUP, GROUP);
        }
    }
    gn_load_finish(run);
    for (unsigned i = 0; i < run->reads; i++)
        gn_load_read(run, s->out, 0, sizeof(number), &number);
}

static bool check(struct gn_run *run)
{
    struct spin *s = run->state;
    int32_t *got = gn_load_alloc(run, run->groups, sizeof(*got));
    int32_t *want = gn_load_alloc(run, run->groups, sizeof(*want));

    gn_load_read(run, s->out, 0, run->groups * sizeof(*got), got);
    for (size_t g = 0; g < run->groups; g++) {
        uint32_t x = (uint32_t)(g * GROUP);

        for (size_t i = 0; i < run->size; i++)
            x = x * 1664525u + 1013904223u;
        want[g] = (int32_t)x;
    }
    return gn_load_same_ints("group", got, want, run->groups);
}

const struct gn_load gn_load_spin = {
    .name = "spin",
    .about = "a kernel of any length and shape that only counts",
    .size_unit = "steps of a work-item",
    .size = 9400,
    .granule = 1,
    .min = 1,
    .max = (size_t)1 << 31,
    .exponent = 1,
    .batch = 16,
    .groups = 16,
    .kernel_us = 200,
    .setup = setup,
    .round = round_once,
    .check = check,
};
