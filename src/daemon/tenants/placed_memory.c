/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries sizes of leases to the placement, and holds answers until there is room
 * (placed_memory.h). gantryd's thread.
 */
#include "daemon/tenants/placed_memory.h"

#include <errno.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/migrate/migration.h"
#include "daemon/vgpu/serving_process.h"
#include "daemon/vgpu/worker.h"
#include "link/frame.h"

static struct gn_scheduler *scheduler_of(const struct gn_vgpu_record *v)
{
    return v->daemon->scheduler;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

bool gn_placed_memory_evicts(const struct gn_vgpu_record *v)
{
    return gn_placement_has_one(&v->placement) && !v->serving->uses_program_driver;
}

void gn_placed_memory_owned(struct gn_vgpu_record *v)
{
    if (v->placement.n)
        gn_placement_set_moves(scheduler_of(v), &v->placement, v->owned_by != NULL);
}

/* The scheduler's number of the first device of its platform. */
static uint32_t first_device(const struct gn_vgpu_record *v)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < v->platform; i++)
        first += v->daemon->machine.platforms[i].n_devices;
    return first;
}

uint64_t gn_placed_memory_slot(const struct gn_vgpu_record *v, uint32_t i)
{
    struct gn_placement_device d;
    const bool placed =
        scheduler_of(v) && gn_placement_device(scheduler_of(v), first_device(v) + v->order[i], &d);
    return placed ? d.slot_bytes : 1;
}

void gn_placed_memory_join(struct gn_vgpu_record *v)
{
    uint32_t devices[GN_WORKER_MAX_DEVICES], n = 0;
    if (!scheduler_of(v))
        return;
    const uint32_t first = first_device(v);
    for (; n < v->lease.n_parts; n++)
        devices[n] = first + v->order[n];
    if (gn_placement_join(scheduler_of(v), &v->placement, &v->tenant->shares,
                          v->tenant->rules.weight, v->weight, devices, n, gn_now_ns()))
        gn_quota_log(v->quota, GN_LOG_WARN,
                     "vgpu=%08x: no memory left to place its device memory; it is not evicted",
                     v->id);
    gn_placed_memory_owned(v);
}

void gn_placed_memory_leave(struct gn_vgpu_record *v)
{
    if (scheduler_of(v))
        gn_placement_leave(scheduler_of(v), &v->placement, gn_now_ns());
    v->held_bytes = v->pinned_bytes = 0;
}

void gn_placed_memory_exchange(struct gn_vgpu_record *a, struct gn_vgpu_record *b)
{
    GN_EXCHANGE(a->placement, b->placement);
    GN_EXCHANGE(a->pinned_bytes, b->pinned_bytes);
    GN_EXCHANGE(a->held_seq, b->held_seq);
    GN_EXCHANGE(a->held_bytes, b->held_bytes);
    gn_placement_bind(scheduler_of(a), &a->placement, &a->shares, gn_now_ns());
    gn_placement_bind(scheduler_of(b), &b->placement, &b->shares, gn_now_ns());
    gn_placed_memory_owned(a);
    gn_placed_memory_owned(b);
    gn_placed_memory_fit(a);
    gn_placed_memory_fit(b);
}

/* The lease and `more` on each of its devices. As gn_placement_resize(). */
static int resize(struct gn_vgpu_record *v, uint64_t more)
{
    const bool evicts = gn_placed_memory_evicts(v);
    int result = 1;
    for (uint32_t i = 0; i < v->placement.n && i < v->lease.n_parts; i++) {
        uint64_t bytes;
        if (!gn_add_u64(v->lease.parts[i].leased_bytes, more, &bytes))
            return -ENOSPC;
        const int rc =
            gn_placement_resize(scheduler_of(v), &v->placement, i, bytes,
                                evicts ? least(v->pinned_bytes, bytes) : bytes, gn_now_ns());
        result = rc < result ? rc : result;
    }
    return result;
}

/* Of a lease, and of `more` beside it, on the device: in whole slots. */
static uint64_t kept_bytes(const struct gn_vgpu_record *v, const struct gn_lease_device *d,
                           uint64_t more, uint64_t slot)
{
    const bool there = v->lease.n_parts == 1 && v->lease.parts[0].device == d;
    const uint64_t bytes = there ? v->lease.parts[0].leased_bytes + more : 0;
    return (bytes + slot - 1) / slot * slot;
}

/* Destinations of moves keep what they have, and so do their sources. If two that are being filled
 * could not have all, each would wait for the other. */
static bool would_block_moves(const struct gn_vgpu_record *v, uint64_t more)
{
    const struct gn_lease_device *d = v->lease.parts[0].device;
    const uint64_t slot = gn_placed_memory_slot(v, 0), most = gn_lease_device_memory(d);
    uint64_t kept = 0;
    bool is_filled = false;
    if (v->lease.n_parts != 1 || !v->owned_by || more > most)
        return false;
    gn_list_for_each(m, &v->daemon->migrations, struct gn_migration, link)
    {
        is_filled = is_filled || m->to == v;
        kept += m->to ? kept_bytes(m->to, d, m->to == v ? more : 0, slot) : 0;
        kept += m->to && m->from ? kept_bytes(m->from, d, 0, slot) : 0;
    }
    return is_filled && kept > most;
}

/* The lease fits; the pinned bytes of the ask may exceed the tenant's part. */
static bool may_pin(const struct gn_vgpu_record *v, const struct gn_worker_lease *ask)
{
    return !ask->pins || gn_placement_pins_all(scheduler_of(v), &v->placement);
}

bool gn_placed_memory_admits(struct gn_vgpu_record *v, const struct gn_worker_lease *ask,
                             uint64_t *want_bytes)
{
    const uint64_t before = v->pinned_bytes;
    if (!v->placement.n)
        return true;
    if (would_block_moves(v, ask->need_bytes))
        return false;
    v->pinned_bytes = ask->pinned_bytes;
    /* Neither side of a move can be evicted: slack could be what there is no room for. */
    if (v->owned_by)
        *want_bytes = ask->need_bytes;
    /* Slack is worth no wait. */
    if (resize(v, *want_bytes) == 1 && may_pin(v, ask))
        return true;
    *want_bytes = ask->need_bytes;
    if (resize(v, *want_bytes) >= 0 && may_pin(v, ask))
        return true;
    v->pinned_bytes = before;
    gn_placed_memory_fit(v);
    return false;
}

void gn_placed_memory_fit(struct gn_vgpu_record *v)
{
    (void)resize(v, 0); /* a lease that was admitted is never refused */
}

bool gn_placed_memory_holds(struct gn_vgpu_record *v, uint32_t seq, uint64_t granted_bytes)
{
    if (resize(v, 0) || !granted_bytes)
        return false;
    v->held_seq = seq;
    v->held_bytes = granted_bytes;
    gn_debug("vgpu=%08x waits for room for %llu MiB", v->id,
             (unsigned long long)granted_bytes >> 20);
    return true;
}

void gn_placed_memory_answer(struct gn_vgpu_record *v, uint32_t seq, uint64_t granted_bytes)
{
    const struct gn_worker_leased l = {.granted_bytes = granted_bytes};
    gn_vgpus_notify_worker(v, GN_WORKER_LEASED, seq, &l, sizeof l);
}

int gn_placed_memory_frame(struct gn_vgpu_record *v, const struct gn_frame *f)
{
    struct gn_worker_resides r;
    if (f->op != GN_WORKER_RESIDES && f->op != GN_WORKER_WANTS_MEMORY && f->op != GN_WORKER_DISCARD)
        return 0;
    if (f->n_fds || !v->driver_up)
        return -EPROTO;
    int rc = -EPROTO;
    if (f->op == GN_WORKER_WANTS_MEMORY && f->n_payload == 0) {
        gn_debug("vgpu=%08x waits for evicted memory", v->id);
        rc = gn_placement_wanted(scheduler_of(v), &v->placement, gn_now_ns());
    } else if (f->op == GN_WORKER_DISCARD && f->n_payload == 0) {
        rc = gn_placement_discarded(scheduler_of(v), &v->placement, gn_now_ns());
    } else if (f->op == GN_WORKER_RESIDES && gn_frame_payload(f, &r, sizeof r)) {
        gn_debug("vgpu=%08x has %llu MiB on its device, %llu pinned", v->id,
                 (unsigned long long)r.resident_bytes >> 20,
                 (unsigned long long)r.pinned_bytes >> 20);
        if (r.refused_bytes)
            gn_quota_log(v->quota, GN_LOG_WARN,
                         "vgpu=%08x: the driver has no room for %llu MiB of its memory; others use "
                         "the device",
                         v->id, (unsigned long long)(r.refused_bytes + (1 << 20) - 1) >> 20);
        rc = gn_placement_answered(scheduler_of(v), &v->placement, f->seq, &r, gn_now_ns());
        if (!rc) {
            v->pinned_bytes = r.pinned_bytes;
            gn_placed_memory_fit(v);
        }
    }
    return rc ? rc : 1;
}

void gn_placed_memory_release(struct gn_vgpu_record *v)
{
    const uint64_t bytes = v->held_bytes;
    if (!bytes || resize(v, 0) == 0)
        return;
    v->held_bytes = 0;
    gn_placed_memory_answer(v, v->held_seq, bytes);
}
