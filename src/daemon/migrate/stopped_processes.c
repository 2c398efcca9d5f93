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
#include "daemon/daemon.h"
#include "daemon/migrate/migration.h"
#include "daemon/process_stat.h"

#define LOOK_NS UINT64_C(250000000) /* between two looks at the processes of one migration */

enum { MAX_AWAITED = 3 };

struct awaited {
    pid_t pid;
    int pidfd;
    const char *name; /* a program's; NULL: it is a worker */
};

static bool add_program(const struct gn_vgpu_record *v, struct awaited *ret)
{
    const struct gn_conn *c = v->conn;
    if (!c || c->pid <= 0 || c->process.fd < 0)
        return false;
    *ret = (struct awaited){.pid = c->pid, .pidfd = c->process.fd, .name = v->program};
    return true;
}

static bool add_worker(const struct gn_vgpu_record *v, struct awaited *ret)
{
    if (v->worker_pid <= 0 || v->process.fd < 0)
        return false;
    *ret = (struct awaited){.pid = v->worker_pid, .pidfd = v->process.fd};
    return true;
}

/* Asked after /proc was read: the process has not ended, so the number was its own all the time. */
static bool is_alive(const struct awaited *p)
{
    struct pollfd ended = {.fd = p->pidfd, .events = POLLIN};
    return poll(&ended, 1, 0) == 0;
}

/* A worker with one thread held by a debugger answers nothing. Of a program, which may have any
 * number of threads, only the first thread's state is read. */
static bool is_stopped(const struct awaited *p)
{
    const char state = p->name ? gn_process_state(p->pid) : 0;
    return (p->name ? state == 'T' || state == 't' : gn_process_is_stopped(p->pid)) && is_alive(p);
}

static void say_stopped(const struct awaited *p, int code, struct gn_error *ret)
{
    char fix[64];
    snprintf(fix, sizeof fix, "continue it with kill -CONT %d, then ask again", (int)p->pid);
    if (p->name)
        gn_fail(ret, code, fix, "the program \"%s\" (%d) is stopped", p->name, (int)p->pid);
    else
        gn_fail(ret, code, fix, "the worker %d is stopped", (int)p->pid);
}

int gn_refuse_stopped_program(const struct gn_vgpu_record *v, struct gn_error *err)
{
    struct awaited p;
    if (!add_program(v, &p) || gn_process_state(p.pid) != 'T' || !is_alive(&p))
        return 0;
    say_stopped(&p, EBUSY, err);
    return -EBUSY;
}

int gn_refuse_stopped_worker(const struct gn_vgpu_record *v, struct gn_error *err)
{
    struct awaited p;
    /* In passthrough the program is the worker. */
    if (!(v->hosted ? add_program(v, &p) : add_worker(v, &p)) || !is_stopped(&p))
        return 0;
    say_stopped(&p, EBUSY, err);
    return -EBUSY;
}

static bool look(struct gn_stop_watch *w, const struct awaited *awaited, unsigned n,
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
        say_stopped(&awaited[i], ETIMEDOUT, err);
        return true;
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

static unsigned list_awaited(const struct gn_migration *m, struct awaited ret[static MAX_AWAITED])
{
    const struct gn_vgpu_record *v = m->from, *to = m->to;
    const bool loads = to && m->tx.state != GN_TX_LOADED;
    unsigned n = 0;
    /* In passthrough the program is the worker. */
    if (awaits_program(m) || (m->source_busy && v->hosted) || (loads && to->hosted))
        n += add_program(v, &ret[n]);
    if (m->source_busy && !v->hosted)
        n += add_worker(v, &ret[n]);
    if (loads && !to->hosted)
        n += add_worker(to, &ret[n]);
    return n;
}

uint64_t gn_migration_next_look(const struct gn_migration *m)
{
    return m->stop_watch.look_ns ? m->stop_watch.look_ns : m->began_ns + LOOK_NS;
}

bool gn_migration_awaits_stopped(struct gn_migration *m, uint64_t now_ns, struct gn_error *err)
{
    struct awaited awaited[MAX_AWAITED];
    const uint32_t limit_ms =
        m->tx.kind == GN_TX_RESTORE ? GN_CONTROL_DRAIN_MS : m->how.drain_timeout_ms;
    /* The program decides, however long it takes, and no asker is left to hear that it is stopped.
     */
    if (m->tx.kind == GN_TX_OUTBOUND && m->tx.state == GN_TX_SAVED && !m->asker) {
        m->stop_watch.look_ns = UINT64_MAX;
        return false;
    }
    return look(&m->stop_watch, awaited, list_awaited(m, awaited), (uint64_t)limit_ms * 1000000u,
                now_ns, err);
}

bool gn_inbound_awaits_stopped(struct gn_stop_watch *watch, const struct gn_vgpu_record *v,
                               uint64_t now_ns, struct gn_error *err)
{
    struct awaited worker;
    const unsigned n = add_worker(v, &worker);
    return look(watch, &worker, n, (uint64_t)GN_CONTROL_DRAIN_MS * 1000000u, now_ns, err);
}
