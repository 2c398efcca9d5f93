/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vGPU's lease of device memory: see lease.h. Any thread charges and refunds; the control thread
 * delivers gantryd's answers and recalls. Never calls the driver.
 */
#include "vgpu/core/lease.h"

#include "base/checked.h"
#include "base/descriptor.h"
#include "link/frame.h"
#include "link/worker_wire.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Asked for on top of the need. gantryd grants less when little is left. */
#define SLACK_BYTES (UINT64_C(32) << 20)
/* The commands of command buffers pin two kilobytes each: gantryd is asked for one in hundreds. */
#define PIN_SLACK_BYTES (UINT64_C(1) << 20)
/*
 * Gantryd answers well within it, unless it places memory. Without an answer the allocation fails,
 * and a late grant becomes slack.
 */
#define ANSWER_TIMEOUT_S 10
#define SEND_TIMEOUT_MS  10000

/* What is to be charged. */
struct charge {
    uint64_t bytes;
    enum gn_lease_part part;
    bool pinned;        /* `bytes` will be pinned */
    uint64_t pin_bytes; /* of charged ones will be pinned, too */
};

/* On the stack of the thread that waits. Under the lease's lock. */
struct gn_lease_asker {
    struct charge charge;
    struct gn_worker_lease ask;
    bool answered, taken;
};

int gn_lease_init(struct gn_lease *l, int control_fd, struct gn_counters *counters)
{
    memset(l, 0, sizeof *l);
    l->control_fd = control_fd;
    l->counters = counters;
    pthread_mutex_init(&l->send_lock, NULL);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->answered, NULL);
    l->wake_fd = gn_fd_event(EFD_NONBLOCK);
    return l->wake_fd < 0 ? -errno : 0;
}

static void move_locked(struct gn_lease *l, uint64_t bytes, enum gn_lease_part from,
                        enum gn_lease_part to)
{
    if (from != GN_LEASE_PINNED)
        l->part_bytes[from] -= bytes;
    if (to != GN_LEASE_PINNED)
        l->part_bytes[to] += bytes;
}

static uint64_t pinned_locked(const struct gn_lease *l)
{
    return l->used_bytes - l->part_bytes[GN_LEASE_EVICTABLE] - l->part_bytes[GN_LEASE_EVICTED];
}

/* As gantryd is to count them: with those that it has granted, and that are not pinned yet. */
static uint64_t told_pinned_locked(const struct gn_lease *l)
{
    const uint64_t pinned = pinned_locked(l) + l->pins_ahead_bytes, told = l->told_pinned_bytes;
    return l->asks_pins && told >= pinned && told - pinned < PIN_SLACK_BYTES ? told : pinned;
}

/* The number to send: gantryd may have granted an open ask already. */
static uint64_t pinned_to_tell_locked(const struct gn_lease *l)
{
    const uint64_t told = told_pinned_locked(l);
    return l->asker && l->asker->ask.pins && l->asker->ask.pinned_bytes > told
               ? l->asker->ask.pinned_bytes
               : told;
}

static bool may_pin_locked(const struct gn_lease *l, uint64_t bytes)
{
    uint64_t pinned;
    return !l->asks_pins ||
           (gn_add_u64(pinned_locked(l), bytes, &pinned) && pinned <= l->told_pinned_bytes);
}

static bool charge_locked(struct gn_lease *l, const struct charge *c)
{
    if (c->bytes > l->leased_bytes - l->used_bytes)
        return false;
    l->used_bytes += c->bytes;
    move_locked(l, c->bytes, GN_LEASE_PINNED, c->part);
    if (c->pinned && c->part != GN_LEASE_PINNED)
        l->pins_ahead_bytes += c->bytes + c->pin_bytes;
    gn_counter_set(&l->counters->memory_bytes, l->used_bytes);
    return true;
}

static int send_frame_with_fd(struct gn_lease *l, uint16_t op, uint32_t seq, const void *payload,
                              size_t n, int fd)
{
    pthread_mutex_lock(&l->send_lock);
    int rc = gn_frame_send(l->control_fd, SEND_TIMEOUT_MS, op, 0, seq, payload, n, &fd, fd >= 0);
    pthread_mutex_unlock(&l->send_lock);
    return rc;
}

/* gantryd counts more as pinned than there is: it will be told. */
static void note_fewer_pinned_locked(struct gn_lease *l)
{
    if (l->patient && told_pinned_locked(l) < l->told_pinned_bytes)
        gn_lease_wake(l);
}

static int send_frame(struct gn_lease *l, uint16_t op, uint32_t seq, const void *payload, size_t n)
{
    return send_frame_with_fd(l, op, seq, payload, n, -1);
}

int gn_lease_report(struct gn_lease *l, uint16_t op, const void *payload, size_t n, int fd)
{
    return send_frame_with_fd(l, op, 0, payload, n, fd);
}

int gn_lease_answer(struct gn_lease *l, uint16_t op, uint32_t seq, const void *payload, size_t n)
{
    return send_frame(l, op, seq, payload, n);
}

/* until NULL: until it ends or something changes. 0, or why not to wait on. */
static int wait_locked(struct gn_lease *l, const struct timespec *until)
{
    if (l->ended)
        return -ECANCELED;
    if (!until)
        return -pthread_cond_wait(&l->answered, &l->lock);
    return -pthread_cond_clockwait(&l->answered, &l->lock, CLOCK_MONOTONIC, until);
}

/* The ask for the bytes, or for pins alone; need_bytes is at least 1. */
static struct gn_worker_lease question_locked(const struct gn_lease *l, const struct charge *c)
{
    const uint64_t left = l->leased_bytes - l->used_bytes, bytes = c->bytes;
    struct gn_worker_lease ask = {.need_bytes = bytes > left ? bytes - left : 1,
                                  .pinned_bytes = pinned_locked(l) + l->pins_ahead_bytes +
                                                  (c->pinned ? bytes : 0)};
    ask.want_bytes = ask.need_bytes;
    if (bytes > left)
        (void)gn_add_u64(ask.need_bytes, SLACK_BYTES, &ask.want_bytes);
    ask.pins = c->pinned && l->asks_pins;
    if (ask.pins &&
        (!gn_add_u64(ask.pinned_bytes, c->pin_bytes + PIN_SLACK_BYTES - 1, &ask.pinned_bytes)))
        ask.pinned_bytes = UINT64_MAX;
    if (ask.pins)
        ask.pinned_bytes -= ask.pinned_bytes % PIN_SLACK_BYTES;
    return ask;
}

/*
 * Asks gantryd for the missing bytes. The control thread charges the answer as soon as it arrives,
 * before a recall right behind it can take it away. 0: charged.
 */
static int request_bytes_locked(struct gn_lease *l, const struct charge *c,
                                const struct timespec *until)
{
    struct gn_lease_asker asker = {.charge = *c, .ask = question_locked(l, c)};
    const struct gn_worker_lease ask = asker.ask;
    const uint32_t seq = ++l->seq;
    int rc;
    if (!ask.pins)
        l->told_pinned_bytes = ask.pinned_bytes;
    l->asking = true;
    l->asker = &asker;
    pthread_mutex_unlock(&l->lock);
    rc = send_frame(l, GN_WORKER_LEASE, seq, &ask, sizeof ask);
    const bool sent = !rc;
    pthread_mutex_lock(&l->lock);
    while (rc == 0 && !asker.answered)
        rc = wait_locked(l, until);
    if (asker.answered)
        return asker.taken ? 0 : -ENOMEM;
    /*
     * `asking` stays set until the answer comes, so no thread asks again; its grant becomes slack.
     * A request that was not sent gets no answer.
     */
    l->asker = NULL;
    if (!sent) {
        l->asking = false;
        pthread_cond_broadcast(&l->answered);
    }
    return rc;
}

/* Charges bytes that need no ask: the lease covers them, and gantryd knows of those pinned. */
static bool charge_known_locked(struct gn_lease *l, const struct charge *c)
{
    uint64_t pins;
    return (!c->pinned || (gn_add_u64(c->bytes, c->pin_bytes, &pins) && may_pin_locked(l, pins))) &&
           charge_locked(l, c);
}

static int charge(struct gn_lease *l, const struct charge *c, bool may_wait)
{
    struct timespec latest;
    const struct timespec *until = l->patient ? NULL : &latest;
    pthread_mutex_lock(&l->lock);
    int rc = charge_known_locked(l, c) ? 0 : l->control_fd < 0 ? -ENOMEM : -EAGAIN;
    if (rc == -EAGAIN && may_wait) {
        clock_gettime(CLOCK_MONOTONIC, &latest);
        latest.tv_sec += ANSWER_TIMEOUT_S;
        while (l->asking && rc == -EAGAIN) {
            const int failed = wait_locked(l, until);
            if (failed)
                rc = failed;
            else if (charge_known_locked(l, c))
                rc = 0;
        }
        if (rc == -EAGAIN)
            rc = request_bytes_locked(l, c, until);
        /* Refused, but another thread may have freed memory meanwhile. */
        if (rc && charge_known_locked(l, c))
            rc = 0;
        if (rc)
            rc = -ENOMEM;
    }
    pthread_mutex_unlock(&l->lock);
    return rc;
}

int gn_lease_charge(struct gn_lease *l, uint64_t bytes, bool may_wait, bool pinned)
{
    return charge(l, &(struct charge){bytes, GN_LEASE_PINNED, pinned, 0}, may_wait);
}

int gn_lease_charge_ahead(struct gn_lease *l, uint64_t bytes, bool pinned)
{
    return charge(l, &(struct charge){bytes, GN_LEASE_EVICTED, pinned, 0}, true);
}

int gn_lease_charge_pins(struct gn_lease *l, uint64_t bytes, uint64_t pin_bytes)
{
    return charge(l, &(struct charge){bytes, GN_LEASE_EVICTED, true, pin_bytes}, true);
}

void gn_lease_end_pins(struct gn_lease *l, uint64_t bytes)
{
    pthread_mutex_lock(&l->lock);
    l->pins_ahead_bytes -= bytes;
    note_fewer_pinned_locked(l);
    pthread_mutex_unlock(&l->lock);
}

bool gn_lease_may_pin(struct gn_lease *l, uint64_t bytes)
{
    pthread_mutex_lock(&l->lock);
    const bool may = may_pin_locked(l, bytes);
    pthread_mutex_unlock(&l->lock);
    return may;
}

void gn_lease_move(struct gn_lease *l, uint64_t bytes, enum gn_lease_part from,
                   enum gn_lease_part to)
{
    pthread_mutex_lock(&l->lock);
    move_locked(l, bytes, from, to);
    note_fewer_pinned_locked(l);
    pthread_mutex_unlock(&l->lock);
}

void gn_lease_figures(struct gn_lease *l, uint64_t *ret_resident_bytes, uint64_t *ret_pinned_bytes)
{
    pthread_mutex_lock(&l->lock);
    *ret_resident_bytes = l->used_bytes - l->part_bytes[GN_LEASE_EVICTED];
    *ret_pinned_bytes = pinned_to_tell_locked(l);
    pthread_mutex_unlock(&l->lock);
}

void gn_lease_end(struct gn_lease *l)
{
    pthread_mutex_lock(&l->lock);
    l->ended = true;
    pthread_cond_broadcast(&l->answered);
    pthread_mutex_unlock(&l->lock);
}

void gn_lease_wake(struct gn_lease *l)
{
    (void)gn_fd_signal(l->wake_fd); /* a full counter wakes, too */
}

void gn_lease_leave(struct gn_lease *l, struct gn_counters *counters)
{
    pthread_mutex_lock(&l->lock);
    const int fd = l->wake_fd;
    l->counters = counters;
    l->tight = false;
    l->wake_fd = -1;
    pthread_mutex_unlock(&l->lock);
    gn_fd_close(fd);
}

/* Moves the unused bytes out of the lease. */
static void shed_unused_locked(struct gn_lease *l)
{
    l->returning_bytes += l->leased_bytes - l->used_bytes;
    l->leased_bytes = l->used_bytes;
}

void gn_lease_refund(struct gn_lease *l, uint64_t bytes)
{
    if (!bytes)
        return;
    pthread_mutex_lock(&l->lock);
    l->used_bytes -= bytes;
    gn_counter_set(&l->counters->memory_bytes, l->used_bytes);
    note_fewer_pinned_locked(l);
    if (l->tight) {
        shed_unused_locked(l);
        gn_lease_wake(l);
    }
    pthread_mutex_unlock(&l->lock);
}

void gn_lease_add_home(struct gn_lease *l, uint64_t bytes)
{
    pthread_mutex_lock(&l->lock);
    l->home_bytes += bytes;
    gn_counter_set(&l->counters->home_bytes, l->home_bytes);
    pthread_mutex_unlock(&l->lock);
}

void gn_lease_remove_home(struct gn_lease *l, uint64_t bytes)
{
    pthread_mutex_lock(&l->lock);
    l->home_bytes -= bytes;
    gn_counter_set(&l->counters->home_bytes, l->home_bytes);
    pthread_mutex_unlock(&l->lock);
}

uint64_t gn_lease_home_bytes(struct gn_lease *l)
{
    pthread_mutex_lock(&l->lock);
    const uint64_t bytes = l->home_bytes;
    pthread_mutex_unlock(&l->lock);
    return bytes;
}

static void answer_asker_locked(struct gn_lease *l, struct gn_lease_asker *asker, bool granted)
{
    asker->answered = true;
    asker->taken = granted && charge_locked(l, &asker->charge);
    if (!asker->ask.pins)
        return;
    if (asker->taken) {
        l->told_pinned_bytes = asker->ask.pinned_bytes;
        return;
    }
    /* gantryd may count the pins of an ask that it has refused: for want of other memory, say. */
    l->owes_pinned = true;
    gn_lease_wake(l);
}

void gn_lease_answered(struct gn_lease *l, uint32_t seq, uint64_t granted_bytes)
{
    pthread_mutex_lock(&l->lock);
    l->leased_bytes += granted_bytes;
    if (l->asking && l->seq == seq) {
        l->asking = false;
        if (l->asker)
            answer_asker_locked(l, l->asker, granted_bytes != 0);
        l->asker = NULL;
    }
    pthread_cond_broadcast(&l->answered);
    pthread_mutex_unlock(&l->lock);
}

void gn_lease_recalled(struct gn_lease *l, bool tight)
{
    pthread_mutex_lock(&l->lock);
    l->tight = tight;
    atomic_store_explicit(&l->recall, true, memory_order_relaxed);
    pthread_mutex_unlock(&l->lock);
}

void gn_lease_shed(struct gn_lease *l)
{
    pthread_mutex_lock(&l->lock);
    if (gn_lease_is_recalled(l)) {
        atomic_store_explicit(&l->recall, false, memory_order_relaxed);
        l->owed = true;
        shed_unused_locked(l);
        gn_lease_wake(l);
    }
    pthread_mutex_unlock(&l->lock);
}

int gn_lease_settle(struct gn_lease *l)
{
    gn_fd_drain(l->wake_fd);
    pthread_mutex_lock(&l->lock);
    const uint64_t pinned = told_pinned_locked(l);
    struct gn_worker_returned r = {
        .bytes = l->returning_bytes, .answers = l->owed, .pinned_bytes = pinned_to_tell_locked(l)};
    const bool fewer = l->owes_pinned || (l->patient && pinned < l->told_pinned_bytes);
    const bool sends = r.bytes || r.answers || fewer;
    l->returning_bytes = 0;
    l->owed = l->owes_pinned = false;
    l->told_pinned_bytes = pinned;
    pthread_mutex_unlock(&l->lock);
    return sends ? send_frame(l, GN_WORKER_RETURNED, 0, &r, sizeof r) : 0;
}
