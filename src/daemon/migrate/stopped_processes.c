/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that a migration needs answers of, and whether one of them is stopped. Their user
 * can stop them at any time, and could otherwise hold up `gantry drain` for as long as the slowest
 * migration may take. gantryd's thread; it reads /proc and never waits.
 */
#include "daemon/migrate/stopped_processes.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "control/control.h"
#include "daemon/migrate/migration.h"
#include "daemon/process_stat.h"
#include "daemon/vgpu/worker.h"

#define LOOK_NS UINT64_C(250000000) /* between two looks at the processes of one migration */

enum { MAX_AWAITED = 3 };

/* Asked after /proc was read: the process has not ended, so the number was its own all the time. */
static bool is_alive(const struct gn_awaited_process *p)
{
    struct pollfd ended = {.fd = p->pidfd, .events = POLLIN};
    return poll(&ended, 1, 0) == 0;
}

/* A worker with one thread held by a debugger answers nothing. Of a program, which may have any
 * number of threads, only the first thread's state is read. */
static bool is_stopped(const struct gn_awaited_process *p)
{
    const char state = p->program ? gn_process_state(p->pid) : 0;
    return (p->program ? state == 'T' || state == 't' : gn_process_is_stopped(p->pid)) &&
           is_alive(p);
}

static int fail_stopped(const struct gn_awaited_process *p, int code, struct gn_error *ret)
{
    char fix[64];
    snprintf(fix, sizeof fix, "continue it with kill -CONT %d, then ask again", (int)p->pid);
    return p->program ? gn_fail(ret, code, fix, "the program \"%s\" (%d) is stopped", p->program,
                                (int)p->pid)
                      : gn_fail(ret, code, fix, "the worker %d is stopped", (int)p->pid);
}

int gn_refuse_stopped_program(const struct gn_vgpu_record *v, struct gn_error *err)
{
    struct gn_awaited_process p;
    return gn_vgpus_program(v, &p) && gn_process_state(p.pid) == 'T' && is_alive(&p)
               ? fail_stopped(&p, EBUSY, err)
               : 0;
}

int gn_refuse_stopped_worker(const struct gn_vgpu_record *v, struct gn_error *err)
{
    struct gn_awaited_process p;
    return v->serving->process(v, &p) && is_stopped(&p) ? fail_stopped(&p, EBUSY, err) : 0;
}

static bool look(struct gn_stop_watch *w, const struct gn_awaited_process *awaited, unsigned n,
                 uint64_t limit_ns, uint64_t now_ns, struct gn_error *err)
{
    w->look_ns = now_ns + LOOK_NS;
    for (unsigned i = 0; i < n; i++) {
        if (!is_stopped(&awaited[i]))
            continue;
        if (w->pid != awaited[i].pid) {
            w->pid = awaited[i].pid;
            w->since_ns = now_ns;
            return false;
        }
        if (now_ns - w->since_ns < limit_ns)
            return false;
        return fail_stopped(&awaited[i], ETIMEDOUT, err) < 0;
    }
    w->pid = 0;
    return false;
}

/* Whether it is the program's turn to answer. */
static bool awaits_program(const struct gn_migration *m)
{
    const enum gn_transaction_state state = m->tx.state;
    return (m->tx.kind == GN_TX_OUTBOUND && (state == GN_TX_BOOTING || state == GN_TX_SAVED)) ||
           (m->tx.kind == GN_TX_RESTORE && state == GN_TX_SAVED);
}

/* A process that is two of these is listed twice. */
static unsigned list_awaited(const struct gn_migration *m,
                             struct gn_awaited_process ret[static MAX_AWAITED])
{
    const struct gn_vgpu_record *v = m->from, *to = m->to;
    const bool loads = to && m->tx.state != GN_TX_LOADED;
    unsigned n = 0;
    n += awaits_program(m) && gn_vgpus_program(v, &ret[n]);
    n += loads && to->serving->process(to, &ret[n]); /* the program, where it serves itself */
    n += m->source_busy && v->serving->process(v, &ret[n]);
    return n;
}

/* An inbound migration waits for its worker until that has loaded, then for its program, which
 * decides. An outbound one whose source has saved waits for its program, too, however long that
 * takes when no asker is left to hear that the program is stopped. */
static bool is_watched(const struct gn_migration *m)
{
    const enum gn_transaction_state state = m->tx.state;
    if (m->tx.kind == GN_TX_INBOUND)
        return state == GN_TX_BOOTING || state == GN_TX_PRECOPY;
    return m->tx.kind != GN_TX_OUTBOUND || state != GN_TX_SAVED || m->asker;
}

uint64_t gn_migration_next_look(const struct gn_migration *m)
{
    if (!is_watched(m))
        return UINT64_MAX;
    return m->stop_watch.look_ns ? m->stop_watch.look_ns : m->began_ns + LOOK_NS;
}

bool gn_migration_awaits_stopped(struct gn_migration *m, uint64_t now_ns, struct gn_error *err)
{
    struct gn_awaited_process awaited[MAX_AWAITED];
    const uint32_t limit_ms =
        m->how.drain_timeout_ms ? m->how.drain_timeout_ms : GN_CONTROL_DRAIN_MS;
    return look(&m->stop_watch, awaited, list_awaited(m, awaited), (uint64_t)limit_ms * 1000000u,
                now_ns, err);
}
