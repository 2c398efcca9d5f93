/* SPDX-License-Identifier: Apache-2.0 */
/* How far a vGPU is on its way. What its worker's counters say is a claim, and only shown. */
#include "control/control.h"
#include "daemon/migrate/transaction.h"
#include "shm/counters.h"

static uint64_t at_most(uint64_t n, uint64_t most)
{
    return n < most ? n : most;
}

static const char *phase_of(const struct gn_move *m, uint64_t waits)
{
    /* Of a checkpoint nothing goes ahead of the stop. */
    if (!m->asked || (m->what == GN_MOVE_SAVE && !m->stops))
        return "preparing";
    if (m->saved || m->what == GN_MOVE_RESTORE)
        return "loading";
    if (m->stops)
        return "stop";
    return waits ? "waiting" : "ahead";
}

static const char *what_of(const struct gn_move *m)
{
    static const char *const names[] = {[GN_MOVE_LOCAL] = "move",
                                        [GN_MOVE_AWAY] = "move",
                                        [GN_MOVE_SAVE] = "checkpoint",
                                        [GN_MOVE_RESTORE] = "restore"};
    return names[m->what];
}

void gn_move_progress(const struct gn_move *m, const struct gn_counters *n, uint64_t now_ns,
                      struct gn_control_moving *ret)
{
    /* Of an earlier save, before this one is asked for. */
    const bool counted = m->asked && m->what != GN_MOVE_RESTORE && n->save_round;
    *ret =
        (struct gn_control_moving){.what = what_of(m),
                                   .to = m->what == GN_MOVE_AWAY    ? m->address
                                         : m->what == GN_MOVE_LOCAL ? gn_move_names[m->where]
                                                                    : NULL,
                                   .phase = phase_of(m, n->save_waits),
                                   .elapsed_ns = now_ns > m->began_ns ? now_ns - m->began_ns : 0};
    if (!counted)
        return;
    ret->round = (uint32_t)at_most(n->save_round, UINT32_MAX);
    ret->total_bytes = n->save_bytes;
    ret->done_bytes = at_most(n->save_round_bytes, n->save_bytes);
    ret->sent_bytes = n->save_sent_bytes;
}
