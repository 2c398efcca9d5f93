/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a launch is cut into parts: arithmetic only. Called by the submitter, for launches that would
 * keep other vGPUs waiting. Never calls the driver, allocates nothing.
 */
#include "vgpu/core/slice.h"

#include "base/checked.h"

uint64_t gn_grid_groups(const struct gn_grid *g)
{
    uint64_t n = 0;
    if (!gn_mul_u64(g->groups[0], g->groups[1], &n) || !gn_mul_u64(n, g->groups[2], &n))
        return 0;
    return n;
}

/*
 * A box is a run of units of one level: groups of a row, rows of a plane, or planes. A level that
 * has been started is completed before a higher one, and its rest is never smaller than `least`, so
 * that every later cut finds enough groups in its level.
 */
uint64_t gn_grid_cut(const struct gn_grid *g, uint64_t at, uint64_t want, uint64_t least,
                     struct gn_box *ret)
{
    const uint64_t all = gn_grid_groups(g), row = g->groups[0], plane = row * g->groups[1];
    const uint64_t unit[4] = {1, row, plane, all};
    unsigned level = 2;
    if (!all || at >= all)
        return 0;
    least = least ? least : 1;
    want = want > least ? want : least;
    while (level && (at % unit[level] || unit[level] > want))
        level--;
    const uint64_t room = (unit[level + 1] - at % unit[level + 1]) / unit[level];
    uint64_t k = want / unit[level];
    while (k < room && k * unit[level] < least)
        k++;
    if (k > room || (room - k) * unit[level] < least)
        k = room;
    *ret = (struct gn_box){{at % row, at / row % g->groups[1], at / plane},
                           {level ? row : k,
                            level == 2 ? g->groups[1]
                            : level    ? k
                                       : 1,
                            level == 2 ? k : 1}};
    return k * unit[level];
}

uint64_t gn_pace_of(uint64_t groups, uint64_t ns)
{
    if (!groups || !ns)
        return 0;
    const uint64_t ps = ns > UINT64_MAX / 1000 ? UINT64_MAX / groups : ns * 1000 / groups;
    return ps ? ps : 1;
}

uint64_t gn_pace_learn(uint64_t pace_ps, uint64_t sample_ps)
{
    if (!pace_ps || !sample_ps)
        return pace_ps ? pace_ps : sample_ps;
    if (sample_ps < pace_ps)
        return sample_ps + (pace_ps - sample_ps) / 4;
    return pace_ps + (sample_ps - pace_ps) / 4;
}

uint64_t gn_pace_ns(uint64_t pace_ps, uint64_t groups)
{
    uint64_t ps;
    if (gn_mul_u64(pace_ps, groups, &ps))
        return ps / 1000;
    return groups > UINT64_MAX / (pace_ps / 1000 + 1) ? UINT64_MAX : pace_ps / 1000 * groups;
}

bool gn_slice_is_long(uint64_t groups, uint64_t pace_ps)
{
    return !pace_ps || gn_pace_ns(pace_ps, groups) > GN_SLICE_LONG_NS;
}

enum gn_slice_verdict gn_slice_decide(const struct gn_slice_case *k, uint64_t *ret_groups)
{
    const uint64_t least_ns = gn_pace_ns(k->pace_ps, k->least);
    if (k->n_open >= k->max_open)
        return GN_SLICE_WAIT;
    if (!k->pace_ps) {
        /* The first part is measured before more is submitted. */
        if (k->n_open)
            return GN_SLICE_WAIT;
        *ret_groups = k->least;
        return k->groups >= 2 * k->least ? GN_SLICE_PART : GN_SLICE_ALL;
    }
    const uint64_t left_ns = k->left_ns / k->max_open;
    if (gn_pace_ns(k->pace_ps, k->groups) <= left_ns || k->groups < 2 * k->least)
        return GN_SLICE_ALL;
    /* Late in the slice: a part that would run mostly past its end waits for the next slice. */
    if (k->left_ns < k->slice_ns / 2 && k->left_ns < least_ns / 2)
        return GN_SLICE_STOP;
    *ret_groups =
        least_ns >= left_ns ? k->least : (uint64_t)((__uint128_t)left_ns * 1000 / k->pace_ps);
    return GN_SLICE_PART;
}
