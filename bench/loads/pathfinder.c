/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cheapest way down a grid of costs, moving straight or one to the side: dynamic programming
 * over rows, twenty rows a launch, each work-group recomputing a border of twenty columns so that
 * no group waits for another. The original idles between its few launches; this load keeps its mix
 * of calls (about three synchronous ones a launch) and leaves the idling out.
 */
#include "load.h"

#include <string.h>

#define GROUP    256
#define DEPTH    20
#define LAUNCHES 5
#define ROWS     (1 + DEPTH * LAUNCHES)
#define INSIDE   (GROUP - 2 * DEPTH)

static const char source[] =
    GN_LOAD_SOURCE(__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void walk_down(
        __global const int *wall, __global const int *from, __global int *to, int columns,
        int row) {
        __local int line[2][GROUP];
        const int far = 1 << 29;
        const int lane = get_local_id(0);
        const int x = (int)get_group_id(0) * (GROUP - 2 * DEPTH) - DEPTH + lane;
        const int on_wall = x >= 0 && x < columns;
        const int left = max(lane - 1, 0);
        const int right = min(lane + 1, GROUP - 1);
        int best = on_wall ? from[x] : far;

        for (int i = 0; i < DEPTH; i++) {
            line[i & 1][lane] = best;
            barrier(CLK_LOCAL_MEM_FENCE);
            best = min(best, min(line[i & 1][left], line[i & 1][right]));
            best = on_wall ? best + wall[(row + i) * columns + x] : far;
        }
        if (on_wall && lane >= DEPTH && lane < GROUP - DEPTH)
            to[x] = best;
    });

struct pathfinder {
    int32_t *wall; /* ROWS x size */
    int32_t *result;
    cl_mem line[2];
};

static void setup(struct gn_run *run)
{
    struct pathfinder *p = gn_load_alloc(run, 1, sizeof(*p));
    size_t columns = run->size;
    cl_int columns_arg = (cl_int)columns;
    struct gn_load_kernel *k;
    cl_mem wall;

    run->state = p;
    p->wall = gn_load_alloc(run, ROWS * columns, sizeof(int32_t));
    p->result = gn_load_alloc(run, columns, sizeof(int32_t));
    for (size_t i = 0; i < ROWS * columns; i++)
        p->wall[i] = (int32_t)(gn_load_random(run) % 10);
    wall = gn_load_buffer(run, CL_MEM_READ_ONLY, ROWS * columns * sizeof(int32_t), p->wall);
    for (unsigned i = 0; i < 2; i++)
        p->line[i] = gn_load_buffer(run, CL_MEM_READ_WRITE, columns * sizeof(int32_t), NULL);
    gn_load_build(run, source, "-DGROUP=%d -DDEPTH=%d", GROUP, DEPTH);
    k = gn_load_kernel(run, "walk_down");
    GN_LOAD_ARG(k, 0, wall);
    GN_LOAD_ARG(k, 3, columns_arg);
}

/* Five launches and 14 synchronous calls: one write, five waits, eight reads of which the last
 * brings the result. */
static void round_once(struct gn_run *run)
{
    struct pathfinder *p = run->state;
    struct gn_load_kernel *k = &run->kernels[0];
    size_t groups = (run->size + INSIDE - 1) / INSIDE;

    gn_load_write(run, p->line[0], 0, run->size * sizeof(int32_t), p->wall);
    for (unsigned i = 0; i < LAUNCHES; i++) {
        cl_int row = (cl_int)(1 + i * DEPTH);
        int32_t peek[2];

        GN_LOAD_ARG(k, 1, p->line[i % 2]);
        GN_LOAD_ARG(k, 2, p->line[1 - i % 2]);
        GN_LOAD_ARG(k, 4, row);
        gn_load_launch(run, k, groups * GROUP, GROUP);
        gn_load_finish(run);
        gn_load_read(run, p->line[1 - i % 2], 0, sizeof(peek[0]), &peek[0]);
        if (i % 2 == 0 && i < LAUNCHES - 1)
            gn_load_read(run, p->line[1 - i % 2], (run->size - 1) * sizeof(int32_t),
                         sizeof(peek[1]), &peek[1]);
    }
    gn_load_read(run, p->line[LAUNCHES % 2], 0, run->size * sizeof(int32_t), p->result);
}

static bool check(struct gn_run *run)
{
    struct pathfinder *p = run->state;
    size_t columns = run->size;
    int32_t *best = gn_load_alloc(run, columns, sizeof(int32_t));
    int32_t *next = gn_load_alloc(run, columns, sizeof(int32_t));

    memcpy(best, p->wall, columns * sizeof(int32_t));
    for (size_t row = 1; row < ROWS; row++) {
        int32_t *old = best;

        for (size_t x = 0; x < columns; x++) {
            int32_t least = best[x];

            if (x > 0 && best[x - 1] < least)
                least = best[x - 1];
            if (x < columns - 1 && best[x + 1] < least)
                least = best[x + 1];
            next[x] = least + p->wall[row * columns + x];
        }
        best = next;
        next = old;
    }
    return gn_load_same_ints("cost", p->result, best, columns);
}

const struct gn_load gn_load_pathfinder = {
    .name = "pathfinder",
    .about = "cheapest path down a grid, 20 rows a launch",
    .size_unit = "columns",
    .size = 12312,
    .granule = INSIDE,
    .min = INSIDE,
    .max = (size_t)1 << 24,
    .exponent = 1,
    .batch = 1,
    .kernel_us = 592,
    .async_rate = 0.027,
    .sync_rate = 0.078,
    .setup = setup,
    .round = round_once,
    .check = check,
};
