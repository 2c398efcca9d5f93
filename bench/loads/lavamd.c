/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forces between particles in a periodic cube of boxes: each box, a work-group, meets its 27
 * neighbours, itself included. One launch of nearly two seconds, then thirty synchronous calls: the
 * load that shows what one long kernel does to everybody else.
 */
#include "load.h"

#include <math.h>

#define PARTICLES  64 /* a box, one a work-item */
#define NEIGHBOURS 27
#define ALPHA      0.5f
#define PEEKS      29

static const char source[] = GN_LOAD_SOURCE(
    /* Positions are relative to the particle's box, whose edge is 1; w is the charge. */
    __kernel __attribute__((reqd_work_group_size(PARTICLES, 1, 1))) void forces(
        __global const float4 *particle, __global float4 *force, int boxes) {
        __local float4 other[PARTICLES];
        const int lane = get_local_id(0);
        const int box = get_group_id(0);
        const int bx = box % boxes;
        const int by = box / boxes % boxes;
        const int bz = box / (boxes * boxes);
        const float4 mine = particle[box * PARTICLES + lane];
        float4 sum = (float4)(0.0f);

        for (int k = 0; k < NEIGHBOURS; k++) {
            const int dx = k % 3 - 1;
            const int dy = k / 3 % 3 - 1;
            const int dz = k / 9 - 1;
            const int there =
                (bx + dx + boxes) % boxes +
                boxes * ((by + dy + boxes) % boxes + boxes * ((bz + dz + boxes) % boxes));

            other[lane] = particle[there * PARTICLES + lane] + (float4)(dx, dy, dz, 0.0f);
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int j = 0; j < PARTICLES; j++) {
                const float4 d = mine - other[j];
                const float r2 = d.x * d.x + d.y * d.y + d.z * d.z;
                const float pull = other[j].w * exp(-ALPHA * r2);

                sum.x += pull * d.x;
                sum.y += pull * d.y;
                sum.z += pull * d.z;
                sum.w += pull;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        force[box * PARTICLES + lane] = sum;
    });

struct lavamd {
    cl_float4 *particle;
    cl_mem force;
};

static void setup(struct gn_run *run)
{
    struct lavamd *l = gn_load_alloc(run, 1, sizeof(*l));
    size_t n = run->size * run->size * run->size * PARTICLES;
    cl_int boxes = (cl_int)run->size;
    struct gn_load_kernel *k;
    cl_mem particle;

    run->state = l;
    l->particle = gn_load_alloc(run, n, sizeof(*l->particle));
    for (size_t i = 0; i < n; i++) {
        for (unsigned axis = 0; axis < 3; axis++)
            l->particle[i].s[axis] = gn_load_random_float(run, 0.0f, 1.0f);
        l->particle[i].s[3] = gn_load_random_float(run, 0.1f, 1.0f);
    }
    particle = gn_load_buffer(run, CL_MEM_READ_ONLY, n * sizeof(*l->particle), l->particle);
    l->force = gn_load_buffer(run, CL_MEM_WRITE_ONLY, n * sizeof(*l->particle), NULL);
    gn_load_build(run, source, "-DPARTICLES=%d -DNEIGHBOURS=%d -DALPHA=%.8ff", PARTICLES,
                  NEIGHBOURS, (double)ALPHA);
    k = gn_load_kernel(run, "forces");
    GN_LOAD_ARG(k, 0, particle);
    GN_LOAD_ARG(k, 1, l->force);
    GN_LOAD_ARG(k, 2, boxes);
}

static void round_once(struct gn_run *run)
{
    struct lavamd *l = run->state;
    cl_float4 peek;

    gn_load_launch(run, &run->kernels[0], run->size * run->size * run->size * PARTICLES, PARTICLES);
    gn_load_finish(run);
    for (size_t i = 0; i < PEEKS; i++)
        gn_load_read(run, l->force, i * sizeof(peek), sizeof(peek), &peek);
}

/* One box against the definition: displacement to every particle of every box within one step of
 * it. */
static void reference_box(const struct lavamd *l, int boxes, int box, float *want)
{
    int at[3] = {box % boxes, box / boxes % boxes, box / (boxes * boxes)};

    for (unsigned i = 0; i < PARTICLES; i++) {
        const cl_float4 *mine = &l->particle[box * PARTICLES + (int)i];
        double sum[4] = {0};

        for (int k = 0; k < NEIGHBOURS; k++) {
            int step[3] = {k % 3 - 1, k / 3 % 3 - 1, k / 9 - 1};
            int there = 0;

            for (int axis = 2; axis >= 0; axis--)
                there = there * boxes + (at[axis] + step[axis] + boxes) % boxes;
            for (int j = 0; j < PARTICLES; j++) {
                const cl_float4 *other = &l->particle[there * PARTICLES + j];
                double d[3];
                double r2 = 0;
                double pull;

                for (unsigned axis = 0; axis < 3; axis++) {
                    d[axis] = (double)mine->s[axis] - ((double)other->s[axis] + step[axis]);
                    r2 += d[axis] * d[axis];
                }
                pull = (double)other->s[3] * exp(-(double)ALPHA * r2);
                for (unsigned axis = 0; axis < 3; axis++)
                    sum[axis] += pull * d[axis];
                sum[3] += pull;
            }
        }
        for (unsigned axis = 0; axis < 4; axis++)
            want[4 * i + axis] = (float)sum[axis];
    }
}

static bool check(struct gn_run *run)
{
    struct lavamd *l = run->state;
    int boxes = (int)run->size;
    int n_boxes = boxes * boxes * boxes;
    size_t box_bytes = PARTICLES * sizeof(cl_float4);
    float got[PARTICLES * 4];
    float want[PARTICLES * 4];

    /* Eight boxes from all over the cube, the corners among them. */
    for (int i = 0; i < 8; i++) {
        int box = (int)((int64_t)(n_boxes - 1) * i / 7);

        gn_load_read(run, l->force, (size_t)box * box_bytes, box_bytes, got);
        reference_box(l, boxes, box, want);
        if (!gn_load_same_floats("force", got, want, PARTICLES * 4, 1e-3f))
            return false;
    }
    return true;
}

const struct gn_load gn_load_lavamd = {
    .name = "lavaMD",
    .about = "forces between particles, one long kernel",
    .size_unit = "boxes a side",
    .size = 12,
    .granule = 1,
    .min = 3,
    .max = 128,
    .exponent = 3,
    .batch = 1,
    .kernel_us = 1908357,
    .async_rate = 0.002,
    .sync_rate = 0.061,
    .setup = setup,
    .round = round_once,
    .check = check,
};
