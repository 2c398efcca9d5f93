/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress of a migration, for `gantry ls`. The counters are its worker's claims: they are
 * shown, and nothing depends on them. gantryd's thread.
 */
#include "control/control.h"
#include "daemon/migrate/migration.h"
#include "shm/counters.h"

static uint64_t at_most(uint64_t n, uint64_t most)
{
    return n < most ? n : most;
}

static const char *phase_of(const struct gn_migration *m, uint64_t waits)
{
    switch (m->tx.state) {
    case GN_TX_BOOTING:
        return "preparing";
    case GN_TX_PRECOPY:
        /* Into a file nothing goes ahead of the stop. */
        return m->how.flags & GN_WORKER_SAVE_FILE ? "preparing" : waits ? "waiting" : "ahead";
    case GN_TX_STOPPING:
    case GN_TX_LOADED:
    case GN_TX_DEST_FAILED:
    case GN_TX_SOURCE_FAILED:
        return "stop";
    default:
        return "loading";
    }
}

void gn_migration_progress(const struct gn_migration *m, const struct gn_counters *n,
                           uint64_t now_ns, struct gn_control_moving *ret)
{
    const enum gn_transaction_kind kind = m->tx.kind;
    /* Before the source is asked to save, its counters are those of an earlier save. */
    const bool counted =
        m->tx.state != GN_TX_BOOTING && kind != GN_TX_RESTORE && n->save_round != 0;
    *ret = (struct gn_control_moving){
        .what = m->ops->what,
        .to = kind == GN_TX_OUTBOUND                            ? m->address
              : kind == GN_TX_LOCAL || kind == GN_TX_IN_PROCESS ? gn_migrate_names[m->where]
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
