/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Needleman-Wunsch: the best alignment score of two sequences. The score table is cut into 18 by 18
 * tiles; a launch fills one diagonal of tiles, a work-group a tile, its items marching over the
 * tile in a slanted line. Only the tiles' edges are kept, so the table may be larger than memory.
 * 35 launches of growing and shrinking size, then one read.
 */
#include "load.h"

#define GROUP    64 /* rows of a tile, one a work-item */
#define TILES    18 /* a side */
#define ROWS     (GROUP * TILES)
#define MATCH    3
#define MISMATCH (-2)
#define GAP      4

static const char source[] = GN_LOAD_SOURCE(
    /* edges: the lowest finished row, the rightmost finished column, the tiles' corners; see struct
       nw. */
    __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void fill_diagonal(
        __global const uchar *down, __global const uchar *across, __global int *edges, int wide,
        int diagonal, int first_row) {
        __local int line[2][GROUP];
        const int lane = get_local_id(0);
        const int tile_row = first_row + (int)get_group_id(0);
        const int tile_column = diagonal - tile_row;
        const int row = tile_row * GROUP + lane + 1;
        const int before = tile_column * wide;
        __global int *top = edges;
        __global int *left = top + TILES * wide + 1;
        __global int *corner = left + ROWS + 1;
        const uchar mine = down[row - 1];
        int here = left[row];
        int slant = lane == 0 ? corner[tile_row * (TILES + 1) + tile_column] : left[row - 1];

        barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
        for (int step = 0; step < wide + GROUP - 1; step++) {
            const int x = step - lane;

            if (x >= 0 && x < wide) {
                const int up = lane == 0 ? top[before + x + 1] : line[(step + 1) & 1][lane - 1];
                const int both = slant + (mine == across[before + x] ? MATCH : MISMATCH);

                here = max(both, max(up, here) - GAP);
                slant = up;
                if (lane == GROUP - 1)
                    top[before + x + 1] = here;
            }
            line[step & 1][lane] = here;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        left[row] = here;
        if (lane == GROUP - 1)
            corner[(tile_row + 1) * (TILES + 1) + tile_column + 1] = here;
    });

struct nw {
    size_t columns;
    uint8_t *down;   /* ROWS */
    uint8_t *across; /* columns */
    cl_mem start;    /* edges before the first launch */
    cl_mem edges;    /* columns + 1, then ROWS + 1, then (TILES + 1)^2 numbers */
    size_t edges_bytes;
    int32_t score;
};

static void setup(struct gn_run *run)
{
    struct nw *w = gn_load_alloc(run, 1, sizeof(*w));
    cl_int wide = (cl_int)run->size;
    struct gn_load_kernel *k;
    size_t n_edges;
    int32_t *start;
    int32_t *corner;
    cl_mem down;
    cl_mem across;

    run->state = w;
    w->columns = run->size * TILES;
    w->down = gn_load_alloc(run, ROWS, 1);
    w->across = gn_load_alloc(run, w->columns, 1);
    for (size_t i = 0; i < ROWS; i++)
        w->down[i] = (uint8_t)(gn_load_random(run) % 4);
    for (size_t i = 0; i < w->columns; i++)
        w->across[i] = (uint8_t)(gn_load_random(run) % 4);
    n_edges = w->columns + 1 + ROWS + 1 + (TILES + 1) * (TILES + 1);
    w->edges_bytes = n_edges * sizeof(int32_t);
    start = gn_load_alloc(run, n_edges, sizeof(int32_t));
    for (size_t i = 0; i <= w->columns; i++)
        start[i] = -GAP * (int32_t)i;
    for (size_t i = 0; i <= ROWS; i++)
        start[w->columns + 1 + i] = -GAP * (int32_t)i;
    corner = start + w->columns + 1 + ROWS + 1;
    for (size_t i = 0; i <= TILES; i++) {
        corner[i] = -GAP * (int32_t)(i * run->size);
        corner[i * (TILES + 1)] = -GAP * (int32_t)(i * GROUP);
    }
    down = gn_load_buffer(run, CL_MEM_READ_ONLY, ROWS, w->down);
    across = gn_load_buffer(run, CL_MEM_READ_ONLY, w->columns, w->across);
    w->start = gn_load_buffer(run, CL_MEM_READ_ONLY, w->edges_bytes, start);
    w->edges = gn_load_buffer(run, CL_MEM_READ_WRITE, w->edges_bytes, NULL);
    gn_load_build(run, source, "-DGROUP=%d -DTILES=%d -DROWS=%d -DMATCH=%d -DMISMATCH=%d -DGAP=%d",
                  GROUP, TILES, ROWS, MATCH, MISMATCH, GAP);
    k = gn_load_kernel(run, "fill_diagonal");
    GN_LOAD_ARG(k, 0, down);
    GN_LOAD_ARG(k, 1, across);
    GN_LOAD_ARG(k, 2, w->edges);
    GN_LOAD_ARG(k, 3, wide);
}

static void round_once(struct gn_run *run)
{
    struct nw *w = run->state;
    struct gn_load_kernel *k = &run->kernels[0];

    gn_load_copy(run, w->start, w->edges, w->edges_bytes);
    for (cl_int diagonal = 0; diagonal < 2 * TILES - 1; diagonal++) {
        cl_int first_row = diagonal < TILES ? 0 : diagonal - TILES + 1;
        cl_int last_row = diagonal < TILES ? diagonal : TILES - 1;

        GN_LOAD_ARG(k, 4, diagonal);
        GN_LOAD_ARG(k, 5, first_row);
        gn_load_launch(run, k, (size_t)(last_row - first_row + 1) * GROUP, GROUP);
    }
    gn_load_read(run, w->edges, w->columns * sizeof(int32_t), sizeof(w->score), &w->score);
}

static bool check(struct gn_run *run)
{
    struct nw *w = run->state;
    int32_t *line = gn_load_alloc(run, w->columns + 1, sizeof(int32_t));

    for (size_t x = 0; x <= w->columns; x++)
        line[x] = -GAP * (int32_t)x;
    for (size_t y = 1; y <= ROWS; y++) {
        int32_t slant = line[0];
        int32_t here = -GAP * (int32_t)y;

        line[0] = here;
        for (size_t x = 1; x <= w->columns; x++) {
            int32_t up = line[x];
            int32_t both = slant + (w->down[y - 1] == w->across[x - 1] ? MATCH : MISMATCH);
            int32_t gap = (up > here ? up : here) - GAP;

            here = both > gap ? both : gap;
            slant = up;
            line[x] = here;
        }
    }
    return gn_load_same_ints("score", &w->score, &line[w->columns], 1);
}

const struct gn_load gn_load_nw = {
    .name = "nw",
    .about = "sequence alignment, a diagonal of tiles a launch",
    .size_unit = "columns of a tile",
    .size = 7168,
    .granule = 64,
    .min = 64,
    .max = (size_t)1 << 20,
    .exponent = 1,
    .batch = 1,
    .kernel_us = 11032,
    .async_rate = 2.666,
    .sync_rate = 0.076,
    .setup = setup,
    .round = round_once,
    .check = check,
};
