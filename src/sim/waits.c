/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes of waiting times: row 0 has one class for each number below 64, row k has 64 classes for
 * numbers of 6 + k bits. The simulation calls it on its thread. It never allocates more than 59
 * rows.
 */
#include "sim/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void gn_sim_waits_fini(struct gn_sim_waits *w)
{
    for (int i = 0; i < GN_SIM_WAIT_ROWS; i++)
        free(w->rows[i]);
    memset(w, 0, sizeof *w);
}

static int row_of(uint64_t ns)
{
    return ns < 64 ? 0 : 58 - __builtin_clzll(ns);
}

/* Returns the greatest value of a class. */
static uint64_t most_of(int row, int column)
{
    if (row == 0)
        return (uint64_t)column;
    return ((UINT64_C(64) + (uint64_t)column + 1) << (row - 1)) - 1;
}

static uint64_t *count_of(struct gn_sim_waits *w, int row, int column)
{
    if (!w->rows[row] && !(w->rows[row] = calloc(64, sizeof **w->rows)))
        return NULL;
    return &w->rows[row][column];
}

int gn_sim_waits_add(struct gn_sim_waits *w, uint64_t ns)
{
    const int row = row_of(ns);
    const int column = (int)(row == 0 ? ns : (ns >> (row - 1)) - 64);
    uint64_t *count = count_of(w, row, column);
    if (!count)
        return -ENOMEM;
    ++*count;
    w->n++;
    w->sum_ns += ns;
    if (ns > w->longest_ns)
        w->longest_ns = ns;
    return 0;
}

int gn_sim_waits_merge(struct gn_sim_waits *to, const struct gn_sim_waits *from)
{
    for (int row = 0; row < GN_SIM_WAIT_ROWS; row++) {
        for (int column = 0; from->rows[row] && column < 64; column++) {
            uint64_t *count = count_of(to, row, column);
            if (!count)
                return -ENOMEM;
            *count += from->rows[row][column];
        }
    }
    to->n += from->n;
    to->sum_ns += from->sum_ns;
    if (from->longest_ns > to->longest_ns)
        to->longest_ns = from->longest_ns;
    return 0;
}

uint64_t gn_sim_waits_mean(const struct gn_sim_waits *w)
{
    return w->n ? (uint64_t)((w->sum_ns + w->n / 2) / w->n) : 0;
}

uint64_t gn_sim_waits_percentile(const struct gn_sim_waits *w, unsigned percent)
{
    const uint64_t wanted = (uint64_t)(((gn_sim_wide)w->n * percent + 99) / 100);
    uint64_t seen = 0;
    for (int row = 0; row < GN_SIM_WAIT_ROWS; row++) {
        for (int column = 0; w->rows[row] && column < 64; column++) {
            seen += w->rows[row][column];
            if (w->rows[row][column] && seen >= wanted)
                return most_of(row, column) < w->longest_ns ? most_of(row, column) : w->longest_ns;
        }
    }
    return 0;
}
