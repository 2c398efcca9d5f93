/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes messages about device memory between the workers' sockets and the accounts (leases.c),
 * sets the limits of the workers' processes to their leases, and delays replies to operators until
 * workers have followed a change. Called by lifecycle.c for workers' frames and by the control
 * requests, on gantryd's thread. Never waits for a worker: a timer ends each wait.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/daemon.h"
#include "daemon/migrate/migration.h"
#include "daemon/tenants/memory.h"
#include "daemon/tenants/placed_memory.h"
#include "daemon/vgpu/record_session.h"
#include "daemon/vgpu/worker.h"
#include "shm/counters.h"

static struct gn_vgpu_record *vgpu_of(struct gn_lease_holder *h)
{
    return gn_container_of(h, struct gn_vgpu_record, lease);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void apply_limits(struct gn_vgpu_record *v)
{
    if (v->serving->follow_lease)
        v->serving->follow_lease(v);
}

static void log_full_devices(struct gn_vgpu_record *v)
{
    const struct gn_platform_record *p = &v->daemon->machine.platforms[v->platform];
    const struct gn_device_record *first = &p->devices[v->order[0]];
    uint64_t leased = 0, limit = 0, reserved = 0;
    char of[GN_LINK_NAME_BYTES + 32], more[160] = "";
    for (uint32_t i = 0; i < v->lease.n_parts; i++) {
        leased += v->lease.parts[i].device->leased_bytes;
        limit += v->lease.parts[i].device->limit_bytes;
        reserved += gn_lease_reserved(v->lease.parts[i].device, &v->tenant->memory);
    }
    if (v->lease.n_parts == 1)
        snprintf(of, sizeof of, "the device \"%s\"", first->facts.name);
    else
        snprintf(of, sizeof of, "its %u devices together", v->lease.n_parts);
    if (first->memory.resident_limit_bytes)
        snprintf(more, sizeof more,
                 ", or raise swap-memory, which is part of that; one vGPU has at most the "
                 "device's own %llu MiB",
                 (unsigned long long)first->memory.resident_limit_bytes >> 20);
    else if (v->lease.n_parts == 1 && first->memory.is_budget)
        snprintf(more, sizeof more, ", or raise memory in the device's [device] section");
    gn_quota_log(
        v->quota, GN_LOG_WARN,
        "vgpu=%08x: no more device memory for \"%s\" (%d), which has %llu MiB: of %s "
        "%llu MiB of %llu are leased and %llu reserved for other tenants; end or move another "
        "program there%s",
        v->id, v->program, (int)v->program_pid, (unsigned long long)v->lease.leased_bytes >> 20, of,
        (unsigned long long)leased >> 20, (unsigned long long)limit >> 20,
        (unsigned long long)reserved >> 20, more);
}

/* Counts every refusal, but logs only the first of a vGPU for each reason: a program may retry
 * forever. */
static void note_refused(struct gn_vgpu_record *v)
{
    const struct gn_lease_account *a = &v->tenant->memory;
    v->tenant->n_refused_leases++;
    if (v->refusals_told & v->lease.refusal)
        return;
    v->refusals_told |= v->lease.refusal;
    if (v->lease.refusal == GN_LEASE_DEVICE_FULL) {
        log_full_devices(v);
        return;
    }
    gn_quota_log(
        v->quota, GN_LOG_WARN,
        "vgpu=%08x: no more device memory for \"%s\" (%d): it has %llu MiB, the tenant \"%s\" "
        "%llu MiB of %llu",
        v->id, v->program, (int)v->program_pid, (unsigned long long)v->lease.leased_bytes >> 20,
        v->tenant->rules.name, (unsigned long long)a->leased_bytes >> 20,
        (unsigned long long)a->limit_bytes >> 20);
}

static void answer(struct gn_lease_holder *h, uint32_t seq, uint64_t granted_bytes)
{
    struct gn_vgpu_record *v = vgpu_of(h);
    if (granted_bytes)
        apply_limits(v);
    else
        note_refused(v);
    if (!gn_placed_memory_holds(v, seq, granted_bytes))
        gn_placed_memory_answer(v, seq, granted_bytes);
}

static void recall(struct gn_lease_holder *h, bool tight)
{
    struct gn_worker_recall r = {.tight = tight};
    gn_vgpus_notify_worker(vgpu_of(h), GN_WORKER_RECALL, 0, &r, sizeof r);
}

const struct gn_lease_ops gn_memory_ops = {answer, recall};

static uint64_t read_counter(const struct gn_vgpu_record *v, size_t at)
{
    uint64_t value = 0;
    return pread(v->counters_fd, &value, sizeof value, (off_t)at) == sizeof value ? value : 0;
}

/* Of the buffers at home, as the worker counts. */
static uint64_t home_bytes(const struct gn_vgpu_record *v)
{
    return read_counter(v, offsetof(struct gn_counters, home_bytes));
}

/* A destination may share the buffers that the source has at home. */
static void update_loan(struct gn_lease_holder *h)
{
    if (h->lender)
        gn_holder_set_lendable(h, home_bytes(vgpu_of(h->lender)));
}

void gn_memory_leave(struct gn_vgpu_record *v)
{
    gn_holder_gone(&v->lease, gn_now_ns());
    gn_placed_memory_leave(v);
}

void gn_memory_exchange(struct gn_vgpu_record *a, struct gn_vgpu_record *b)
{
    gn_holder_exchange(&a->lease, &b->lease);
    gn_placed_memory_exchange(a, b);
}

static int ask(struct gn_vgpu_record *v, uint32_t seq, const struct gn_worker_lease *l)
{
    uint64_t want_bytes = l->want_bytes;
    if (!gn_placed_memory_admits(v, l, &want_bytes)) {
        v->lease.refusal = GN_LEASE_DEVICE_FULL;
        note_refused(v);
        gn_placed_memory_answer(v, seq, 0);
        return 0;
    }
    return gn_holder_ask(&v->lease, seq, l->need_bytes, want_bytes, gn_now_ns());
}

int gn_memory_frame(struct gn_vgpu_record *v, const struct gn_frame *f)
{
    struct gn_worker_lease l;
    struct gn_worker_returned r;
    int rc = -EPROTO;
    if (f->op != GN_WORKER_LEASE && f->op != GN_WORKER_RETURNED)
        return gn_placed_memory_frame(v, f);
    if (f->n_fds == 0 && v->driver_up) {
        update_loan(&v->lease);
        if (f->op == GN_WORKER_LEASE && gn_frame_payload(f, &l, sizeof l))
            rc = ask(v, f->seq, &l);
        else if (f->op == GN_WORKER_RETURNED && gn_frame_payload(f, &r, sizeof r) &&
                 r.answers <= 1 && r.zero == 0)
            /* One that only tells of its pinned bytes returns none. */
            rc = !r.bytes && !r.answers && v->placement.n
                     ? 0
                     : gn_holder_returned(&v->lease, r.bytes, r.answers, gn_now_ns());
        if (rc == 0 && f->op == GN_WORKER_RETURNED) {
            apply_limits(v);
            v->pinned_bytes = r.pinned_bytes;
            gn_placed_memory_fit(v);
        }
    }
    gn_memory_settle(v->daemon);
    return rc ? rc : 1;
}

/* On a device with memory of its own, no buffer is at home. */
static bool works_on_host_memory(const struct gn_vgpu_record *v)
{
    const struct gn_platform_record *p = &v->daemon->machine.platforms[v->platform];
    for (uint32_t i = 0; i < v->lease.n_parts; i++)
        if (!(p->devices[v->order[i]].facts.kind & GN_DEVICE_CPU))
            return false;
    return true;
}

void gn_memory_lend(struct gn_vgpu_record *from, struct gn_vgpu_record *to)
{
    if (from->devices == to->devices && !from->session_ops->worker_has_area &&
        works_on_host_memory(from))
        gn_holder_lend(&from->lease, &to->lease);
}

/* ---- whether there is room */

uint64_t gn_memory_used(const struct gn_vgpu_record *v)
{
    return least(read_counter(v, offsetof(struct gn_counters, memory_bytes)),
                 v->lease.leased_bytes);
}

/* The leased memory that the worker would return. A destination counts none until its commit. */
static uint64_t unused_bytes(const struct gn_vgpu_record *v)
{
    const uint64_t own_bytes = v->lease.leased_bytes - v->lease.lent_bytes;
    if (v->lease.ending)
        return own_bytes;
    return v->state == GN_RECORD_PENDING ? 0 : own_bytes - least(own_bytes, gn_memory_used(v));
}

static uint64_t room_of(uint64_t limit, uint64_t leased, uint64_t unused)
{
    leased -= least(leased, unused);
    return limit > leased ? limit - leased : 0;
}

uint64_t gn_memory_tenant_room(const struct gn_tenant *t)
{
    uint64_t unused = 0;
    if (!t->memory.limit_bytes)
        return UINT64_MAX;
    gn_list_for_each(h, (struct gn_list *)(uintptr_t)&t->memory.holders, struct gn_lease_holder,
                     link)
    {
        unused += unused_bytes(vgpu_of(h));
    }
    return room_of(t->memory.limit_bytes, t->memory.leased_bytes, unused);
}

uint64_t gn_memory_device_room(const struct gn_daemon *d, const struct gn_tenant *t,
                               uint32_t platform, uint64_t devices)
{
    const struct gn_platform_record *p = &d->machine.platforms[platform];
    uint64_t limit = 0, leased = 0, unused = 0;
    for (uint32_t i = 0; i < p->n_devices; i++) {
        if (!(devices >> i & 1))
            continue;
        if (!p->devices[i].memory.limit_bytes)
            return UINT64_MAX;
        limit += p->devices[i].memory.limit_bytes;
        leased += p->devices[i].memory.leased_bytes +
                  gn_lease_reserved(&p->devices[i].memory, &t->memory);
    }
    gn_list_for_each(v, (struct gn_list *)(uintptr_t)&d->vgpus, struct gn_vgpu_record, link)
    {
        uint64_t there = 0;
        for (uint32_t i = 0; v->platform == platform && i < v->lease.n_parts; i++)
            if (devices >> v->order[i] & 1)
                there += v->lease.parts[i].leased_bytes;
        unused += least(there, unused_bytes(v));
    }
    return room_of(limit, leased, unused);
}

static uint64_t whole_mib(uint64_t bytes)
{
    return (bytes >> 20) + (bytes % (1u << 20) != 0);
}

/* The bytes of its lease on a device that cannot be evicted. */
static uint64_t kept_on(const struct gn_lease_device *d, const struct gn_vgpu_record *v, bool moves)
{
    uint64_t leased = 0;
    for (uint32_t i = 0; i < v->lease.n_parts; i++)
        if (v->lease.parts[i].device == d)
            leased += v->lease.parts[i].leased_bytes;
    return moves || !gn_placed_memory_evicts(v) ? leased : least(leased, v->pinned_bytes);
}

/* Not: its worker is about to end, after a move. */
static bool is_moved(const struct gn_vgpu_record *v)
{
    gn_list_for_each(m, &v->daemon->migrations, struct gn_migration, link)
    {
        if (m->from == v || m->to == v)
            return true;
    }
    return false;
}

/* What other moves' destinations will have on a device beside their leases. */
static uint64_t expected_on(const struct gn_lease_device *d, const struct gn_vgpu_record *to)
{
    uint64_t bytes = 0;
    gn_list_for_each(m, (struct gn_list *)(uintptr_t)&to->daemon->migrations, struct gn_migration,
                     link)
    {
        if (!m->from || !m->to || m->to == to || !m->to->lease.n_parts ||
            m->to->lease.parts[0].device != d)
            continue;
        const uint64_t used = gn_memory_used(m->from);
        bytes += used - least(used, m->to->lease.leased_bytes);
    }
    return bytes;
}

/* Both workers have their contents on the device at once, and neither can be evicted; nor can other
 * vGPUs that move. Two moves without room for both would wait for each other. */
static uint64_t room_beside(const struct gn_vgpu_record *from, const struct gn_vgpu_record *to)
{
    const struct gn_daemon *daemon = from->daemon;
    uint64_t room = UINT64_MAX;
    for (uint32_t i = 0; to->placement.n && i < to->lease.n_parts; i++) {
        const struct gn_lease_device *d = to->lease.parts[i].device;
        const uint64_t slot = gn_placed_memory_slot(to, i);
        uint64_t taken = gn_lease_reserved(d, &to->tenant->memory) + expected_on(d, to);
        gn_list_for_each(v, (struct gn_list *)(uintptr_t)&daemon->vgpus, struct gn_vgpu_record,
                         link)
        {
            const uint64_t kept = v == to ? 0 : kept_on(d, v, v == from || is_moved(v));
            taken += (kept + slot - 1) / slot * slot;
        }
        const uint64_t left = gn_lease_device_memory(d) - least(gn_lease_device_memory(d), taken);
        room = least(room, left / slot * slot);
    }
    return room;
}

int gn_memory_judge_migration(const struct gn_vgpu_record *from, const struct gn_vgpu_record *to,
                              struct gn_error *err)
{
    const uint64_t used = gn_memory_used(from), shared = to->lease.lender ? home_bytes(from) : 0,
                   copied = used - least(used, shared);
    const uint64_t of_tenant = gn_memory_tenant_room(from->tenant),
                   on_devices = least(
                       room_beside(from, to),
                       gn_memory_device_room(from->daemon, to->tenant, to->platform, to->devices)),
                   room = least(of_tenant, on_devices);
    if (copied <= room)
        return 0;
    return gn_fail(err, ENOMEM,
                   "free that much, or move the vGPU by a file: gantry checkpoint --stop, then "
                   "gantry restore",
                   "it needs %llu MiB of device memory for a second copy of its contents, %llu MiB "
                   "more than %s left",
                   (unsigned long long)whole_mib(copied),
                   (unsigned long long)whole_mib(copied - room),
                   of_tenant < on_devices ? "its tenant has" : "the device has");
}

/* ---- replies that wait for workers */

static bool is_settled(const struct gn_tenant *t)
{
    gn_list_for_each(h, (struct gn_list *)(uintptr_t)&t->memory.holders, struct gn_lease_holder,
                     link)
    {
        if (h->recalled && !h->silent && !h->ending)
            return false;
    }
    return true;
}

void gn_memory_drop_held(struct gn_conn *c)
{
    if (!c->held)
        return;
    free(c->held);
    c->held = NULL;
    c->daemon->n_held--;
}

static void send_held(struct gn_conn *c)
{
    char *reply = c->held;
    c->held = NULL;
    c->daemon->n_held--;
    gn_conn_reply(c, c->held_seq, reply);
    free(reply);
}

void gn_memory_hold(struct gn_conn *c, struct gn_tenant *t, uint32_t seq, char *reply)
{
    if (c->held)
        send_held(c); /* one held reply at a time, so that replies keep their order */
    c->held = reply;
    c->held_seq = seq;
    c->held_for = t;
    c->held_until_ns = gn_now_ns() + GN_LEASE_RECALL_NS;
    c->daemon->n_held++;
    if (!t)
        send_held(c);
}

static struct gn_conn *find_due_reply(struct gn_daemon *d, uint64_t now_ns)
{
    gn_list_for_each(c, &d->conns, struct gn_conn, link)
    {
        if (c->held && (now_ns >= c->held_until_ns || is_settled(c->held_for)))
            return c;
    }
    return NULL;
}

/* ---- the timer */

void gn_memory_settle(struct gn_daemon *d)
{
    const uint64_t now = gn_now_ns();
    uint64_t next = 0;
    gn_list_for_each(t, &d->tenants.all, struct gn_tenant, link)
    {
        if (gn_list_empty(&t->memory.asks))
            continue;
        uint64_t at = gn_account_settle(&t->memory, now);
        if (at && (!next || at < next))
            next = at;
    }
    /* Sending may close the connection of a peer that does not read, and with it others, so the
     * search starts over. */
    struct gn_conn *over;
    while (d->n_held && (over = find_due_reply(d, now)))
        send_held(over);
    if (d->n_held) {
        gn_list_for_each(c, &d->conns, struct gn_conn,
                         link) if (c->held && (!next || c->held_until_ns < next)) next =
            c->held_until_ns;
    }
    if (next == d->lease_timer_ns)
        return;
    struct itimerspec when = {.it_value = {.tv_sec = (time_t)(next / 1000000000u),
                                           .tv_nsec = (long)(next % 1000000000u)}};
    d->lease_timer_ns = next;
    (void)timerfd_settime(d->lease_timer.fd, TFD_TIMER_ABSTIME, &when, NULL);
}

void gn_memory_timer(struct gn_source *timer, uint32_t events)
{
    struct gn_daemon *d = gn_container_of(timer, struct gn_daemon, lease_timer);
    uint64_t expirations;
    (void)!read(timer->fd, &expirations, sizeof expirations);
    d->lease_timer_ns = 0;
    gn_memory_settle(d);
}
