/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts of leased device memory (leases.h): grants, recalls and refusals. Called by memory.c and
 * by the code that starts and ends vGPUs, on gantryd's thread. Does no I/O: messages to workers go
 * through the account's ops. */
#include "daemon/tenants/leases.h"

#include "base/checked.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Slack is granted up to this part of the remaining room: near the limit, little memory is leased
 * without being used. */
#define SLACK_PART 8

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The room below a limit; limit 0: unlimited. */
static uint64_t room_of(uint64_t limit, uint64_t taken)
{
    return !limit ? UINT64_MAX - taken : limit > taken ? limit - taken : 0;
}

static bool is_over(const struct gn_lease_account *a)
{
    return a->limit_bytes && a->leased_bytes > a->limit_bytes;
}

void gn_account_init(struct gn_lease_account *a, const struct gn_lease_ops *ops,
                     uint64_t limit_bytes)
{
    a->ops = ops;
    a->limit_bytes = limit_bytes;
    a->leased_bytes = 0;
    gn_list_init(&a->holders);
    gn_list_init(&a->asks);
}

void gn_lease_device_init(struct gn_lease_device *d, uint64_t limit_bytes)
{
    d->limit_bytes = limit_bytes;
    d->resident_limit_bytes = 0;
    d->is_budget = false;
    d->leased_bytes = 0;
    gn_list_init(&d->parts);
    gn_list_init(&d->reserves);
}

uint64_t gn_lease_device_memory(const struct gn_lease_device *d)
{
    return d->resident_limit_bytes ? d->resident_limit_bytes : d->limit_bytes;
}

uint64_t gn_holder_limit(const struct gn_lease_holder *h)
{
    const struct gn_lease_device *d = h->n_parts == 1 ? h->parts[0].device : NULL;
    const uint64_t limits[] = {h->limit_bytes, h->account ? h->account->limit_bytes : 0,
                               d && d->is_budget ? gn_lease_device_memory(d) : 0};
    uint64_t lowest = 0;
    for (size_t i = 0; i < GN_ARRAY_SIZE(limits); i++)
        if (limits[i] && (!lowest || limits[i] < lowest))
            lowest = limits[i];
    return lowest;
}

void gn_holder_join(struct gn_lease_holder *h, struct gn_lease_account *a, uint64_t limit_bytes)
{
    *h = (struct gn_lease_holder){.account = a, .limit_bytes = limit_bytes};
    gn_list_append(&a->holders, &h->link);
    gn_list_init(&h->ask);
}

/* ---- devices */

static void link_part(struct gn_lease_holder *h, struct gn_lease_part *p)
{
    p->holder = h;
    gn_list_append(&p->device->parts, &p->link);
}

void gn_holder_add_device(struct gn_lease_holder *h, struct gn_lease_device *d)
{
    assert(h->n_parts < GN_LEASE_MAX_DEVICES);
    struct gn_lease_part *p = &h->parts[h->n_parts++];
    *p = (struct gn_lease_part){.device = d};
    link_part(h, p);
}

static void unlink_parts(struct gn_lease_holder *h)
{
    for (uint32_t i = 0; i < h->n_parts; i++)
        gn_list_remove(&h->parts[i].link);
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* The room for an account on a device. */
static uint64_t room_on_device(const struct gn_lease_device *d, const struct gn_lease_account *a)
{
    const uint64_t room = room_of(d->limit_bytes, d->leased_bytes);
    return d->limit_bytes ? room - least(room, gn_lease_reserved(d, a)) : room;
}

/* The same if no other account had leased anything, and neither had other holders of this one. */
static uint64_t room_if_alone(const struct gn_lease_part *p)
{
    const struct gn_lease_device *d = p->device;
    uint64_t room = room_of(gn_lease_device_memory(d), p->leased_bytes);
    gn_list_for_each(r, (struct gn_list *)(uintptr_t)&d->reserves, struct gn_lease_reserve, link)
    {
        if (r->account != p->holder->account && d->limit_bytes)
            room -= least(room, r->bytes);
    }
    return room;
}

static uint64_t room_on_devices(const struct gn_lease_holder *h, bool alone)
{
    uint64_t room = h->n_parts ? 0 : UINT64_MAX;
    for (uint32_t i = 0; i < h->n_parts; i++) {
        const struct gn_lease_part *p = &h->parts[i];
        room = sum(room, alone ? room_if_alone(p) : room_on_device(p->device, h->account));
    }
    return room;
}

static bool has_bounded_devices(const struct gn_lease_holder *h)
{
    for (uint32_t i = 0; i < h->n_parts; i++)
        if (!h->parts[i].device->limit_bytes)
            return false;
    return h->n_parts != 0;
}

static struct gn_lease_reserve *reserve_of(const struct gn_lease_account *a,
                                           struct gn_lease_device *d)
{
    gn_list_for_each(r, &d->reserves, struct gn_lease_reserve, link)
    {
        if (r->account == a)
            return r;
    }
    return NULL;
}

/* Takes or frees memory of a part's device. */
static void change_part(struct gn_lease_part *p, uint64_t bytes, bool takes)
{
    struct gn_lease_reserve *r = reserve_of(p->holder->account, p->device);
    const uint64_t change = takes ? bytes : -bytes; /* modulo 2^64 */
    p->leased_bytes += change;
    p->device->leased_bytes += change;
    if (r)
        r->leased_bytes += change;
}

/* Counts these bytes of the holder's lease in the account and on the devices, which have room.
 * Memory that the account has freed for it may lie in a reserve that came later. */
static void book(struct gn_lease_holder *h, uint64_t bytes)
{
    h->account->leased_bytes += bytes;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < h->n_parts && bytes; i++) {
            const struct gn_lease_device *d = h->parts[i].device;
            const uint64_t room =
                pass ? room_of(d->limit_bytes, d->leased_bytes) : room_on_device(d, h->account);
            const uint64_t n = least(bytes, room);
            change_part(&h->parts[i], n, true);
            bytes -= n;
        }
}

static void unbook(struct gn_lease_holder *h, uint64_t bytes)
{
    h->account->leased_bytes -= bytes;
    for (uint32_t i = h->n_parts; i-- && bytes;) {
        const uint64_t n = least(bytes, h->parts[i].leased_bytes);
        change_part(&h->parts[i], n, false);
        bytes -= n;
    }
}

/* ---- reserves */

void gn_lease_reserve(struct gn_lease_reserve *r, const struct gn_lease_account *a,
                      struct gn_lease_device *d, uint64_t bytes)
{
    *r = (struct gn_lease_reserve){.account = a, .device = d, .bytes = bytes};
    gn_list_for_each(p, &d->parts, struct gn_lease_part, link)
    {
        if (p->holder->account == a)
            r->leased_bytes += p->leased_bytes;
    }
    gn_list_append(&d->reserves, &r->link);
}

void gn_lease_unreserve(struct gn_lease_reserve *r)
{
    gn_list_remove(&r->link);
}

uint64_t gn_lease_reserved(const struct gn_lease_device *d, const struct gn_lease_account *a)
{
    uint64_t bytes = 0;
    gn_list_for_each(r, (struct gn_list *)(uintptr_t)&d->reserves, struct gn_lease_reserve, link)
    {
        if (r->account != a && r->bytes > r->leased_bytes)
            bytes = sum(bytes, r->bytes - r->leased_bytes);
    }
    return bytes;
}

/* ---- loans */

/* The bytes of the lease that are counted as the holder's. */
static uint64_t own_bytes(const struct gn_lease_holder *h)
{
    return h->leased_bytes - h->lent_bytes;
}

/* The part of an ask that the lender's lease covers. */
static uint64_t loan_for(const struct gn_lease_holder *h, uint64_t bytes)
{
    const uint64_t most = h->lender ? least(h->lendable_bytes, h->lender->leased_bytes) : 0;
    return least(bytes, most > h->lent_bytes ? most - h->lent_bytes : 0);
}

void gn_holder_lend(struct gn_lease_holder *from, struct gn_lease_holder *to)
{
    assert(from->account == to->account && !to->leased_bytes);
    if (from->borrower || from->lender)
        return;
    from->borrower = to;
    to->lender = from;
}

void gn_holder_set_lendable(struct gn_lease_holder *borrower, uint64_t bytes)
{
    borrower->lendable_bytes = bytes;
}

static void end_loan(struct gn_lease_holder *borrower)
{
    borrower->lender->borrower = NULL;
    borrower->lender = NULL;
    borrower->lent_bytes = borrower->lendable_bytes = 0;
}

/* Counts the lent bytes as the borrower's, and ends the loan. The sums of the account and of each
 * device stay. */
static void pass_loan_on(struct gn_lease_holder *borrower)
{
    struct gn_lease_holder *lender = borrower->lender;
    uint64_t bytes = borrower->lent_bytes;
    lender->leased_bytes -= bytes;
    lender->passed_bytes += bytes;
    for (uint32_t i = lender->n_parts; i-- && bytes;)
        for (uint32_t k = 0; k < borrower->n_parts; k++)
            if (borrower->parts[k].device == lender->parts[i].device) {
                const uint64_t n = least(bytes, lender->parts[i].leased_bytes);
                lender->parts[i].leased_bytes -= n;
                borrower->parts[k].leased_bytes += n;
                bytes -= n;
            }
    end_loan(borrower);
}

/* The lender has returned memory, and has less now than it has lent: the borrower still has that,
 * so it stays counted, as the borrower's. */
static void keep_loan_covered(struct gn_lease_holder *lender)
{
    struct gn_lease_holder *borrower = lender->borrower;
    if (!borrower || borrower->lent_bytes <= lender->leased_bytes)
        return;
    const uint64_t bytes = borrower->lent_bytes - lender->leased_bytes;
    borrower->lent_bytes -= bytes;
    book(borrower, bytes);
}

/* ---- recalls */

static bool is_tight(const struct gn_lease_holder *h)
{
    for (uint32_t i = 0; i < h->n_parts; i++) {
        const struct gn_lease_device *d = h->parts[i].device;
        if (h->parts[i].leased_bytes && d->limit_bytes &&
            sum(d->leased_bytes, gn_lease_reserved(d, h->account)) > d->limit_bytes)
            return true;
    }
    return is_over(h->account);
}

static void recall(struct gn_lease_holder *h, uint64_t now_ns)
{
    if (h->recalled) {
        /* The answer under way may have been sent before this recall, so another one must follow
         * it. */
        h->again = true;
        return;
    }
    h->recalled = true;
    h->again = false;
    h->tight = is_tight(h);
    h->recall_until_ns = now_ns + GN_LEASE_RECALL_NS;
    h->account->ops->recall(h, h->tight);
}

/* Tells all holders when the account goes over or back under its limit, or a device's reserves
 * begin or cease to lack memory that they have: meanwhile, memory that they free must be returned
 * at once. */
static void send_tightness(struct gn_lease_account *a, uint64_t now_ns)
{
    gn_list_for_each(h, &a->holders, struct gn_lease_holder, link)
    {
        if (h->tight != is_tight(h) && !h->recalled && (h->leased_bytes || h->tight))
            recall(h, now_ns);
    }
}

static void recall_for(const struct gn_lease_holder *asker, struct gn_lease_holder *h,
                       uint64_t now_ns)
{
    if (h != asker && h->leased_bytes && !h->ending && !h->silent)
        recall(h, now_ns);
}

static void recall_in_account(struct gn_lease_holder *asker, uint64_t now_ns)
{
    asker->gathering = true;
    gn_list_for_each(h, &asker->account->holders, struct gn_lease_holder, link)
    {
        recall_for(asker, h, now_ns);
    }
}

static bool has_lease_on(const struct gn_lease_holder *h, const struct gn_lease_part *parts,
                         uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < h->n_parts; k++)
            if (h->parts[k].device == parts[i].device && h->parts[k].leased_bytes)
                return true;
    return false;
}

/* Recalls from each holder on the asker's devices once: a second recall costs a second answer. */
static void recall_on_devices(struct gn_lease_holder *asker, uint64_t now_ns)
{
    asker->gathering_devices = true;
    for (uint32_t i = 0; i < asker->n_parts; i++) {
        gn_list_for_each(p, &asker->parts[i].device->parts, struct gn_lease_part, link)
        {
            if (p->leased_bytes && !has_lease_on(p->holder, asker->parts, i) &&
                !(asker->gathering && p->holder->account == asker->account))
                recall_for(asker, p->holder, now_ns);
        }
    }
}

static bool is_waited_for(const struct gn_lease_holder *h, uint64_t now_ns)
{
    return h->leased_bytes &&
           (h->ending || (h->recalled && !h->silent && now_ns < h->recall_until_ns));
}

/* Whether other holders may still return memory of the account, and when that ends at the latest:
 * lowers *next. */
static bool may_get_from_account(const struct gn_lease_holder *asker, uint64_t now_ns,
                                 uint64_t *next)
{
    bool wait = false;
    gn_list_for_each(h, &asker->account->holders, struct gn_lease_holder, link)
    {
        if (h == asker || !is_waited_for(h, now_ns))
            continue;
        wait = true;
        if (!h->ending)
            *next = least(*next, h->recall_until_ns);
    }
    return wait;
}

/* The same for the devices. */
static bool may_get_from_devices(const struct gn_lease_holder *asker, uint64_t now_ns,
                                 uint64_t *next)
{
    bool wait = false;
    for (uint32_t i = 0; i < asker->n_parts; i++) {
        gn_list_for_each(p, &asker->parts[i].device->parts, struct gn_lease_part, link)
        {
            if (p->holder == asker || !p->leased_bytes || !is_waited_for(p->holder, now_ns))
                continue;
            wait = true;
            if (!p->holder->ending)
                *next = least(*next, p->holder->recall_until_ns);
        }
    }
    return wait;
}

/* ---- asks */

static void answer(struct gn_lease_holder *h, uint64_t granted)
{
    const uint64_t lent = loan_for(h, granted);
    h->need_bytes = 0;
    h->gathering = h->gathering_devices = false;
    gn_list_remove(&h->ask);
    h->leased_bytes += granted;
    h->lent_bytes += lent;
    book(h, granted - lent);
    h->account->ops->answer(h, h->seq, granted);
}

static void refuse(struct gn_lease_holder *h, enum gn_lease_refusal reason)
{
    h->refusal = reason;
    answer(h, 0);
}

static void grant(struct gn_lease_holder *h, uint64_t room, uint64_t own_room, uint64_t device_room)
{
    const uint64_t need = h->need_bytes, own_need = need - loan_for(h, need);
    uint64_t slack = h->want_bytes - need;
    slack = least(slack, own_room - need);
    slack = least(slack, (room - own_need) / (h->account->limit_bytes ? SLACK_PART : 1));
    slack = least(slack, (device_room - own_need) / (has_bounded_devices(h) ? SLACK_PART : 1));
    answer(h, need + slack);
}

/* Answers the ask or lets it wait. Returns when to look again; 0: answered. */
static uint64_t try_answer(struct gn_lease_holder *h, uint64_t now_ns)
{
    const struct gn_lease_account *a = h->account;
    /* own_need: the part that account and devices have to cover */
    const uint64_t need = h->need_bytes, own_need = need - loan_for(h, need),
                   room = room_of(a->limit_bytes, a->leased_bytes),
                   alone_room = room_on_devices(h, true),
                   device_room = least(room_on_devices(h, false), alone_room),
                   own_limit =
                       h->limit_bytes ? least(h->limit_bytes, GN_LEASE_MOST) : GN_LEASE_MOST,
                   own_room = room_of(own_limit, h->leased_bytes);
    uint64_t next = h->ask_until_ns;
    bool wait = true;
    if (need <= own_room && own_need <= least(room, device_room)) {
        grant(h, room, own_room, device_room);
        return 0;
    }
    if (need > own_room) {
        refuse(h, GN_LEASE_HOLDER_FULL);
        return 0;
    }
    /* Not even alone: waiting does not help. */
    if (own_need > room_of(a->limit_bytes, own_bytes(h))) {
        refuse(h, GN_LEASE_TENANT_FULL);
        return 0;
    }
    if (own_need > alone_room) {
        refuse(h, GN_LEASE_DEVICE_FULL);
        return 0;
    }
    if (now_ns < h->ask_until_ns && own_need > room && !h->gathering)
        recall_in_account(h, now_ns);
    if (now_ns < h->ask_until_ns && own_need > device_room && !h->gathering_devices)
        recall_on_devices(h, now_ns);
    if (own_need > room)
        wait = may_get_from_account(h, now_ns, &next);
    if (wait && own_need > device_room)
        wait = may_get_from_devices(h, now_ns, &next);
    if (wait && now_ns < h->ask_until_ns)
        return next;
    refuse(h, own_need > room ? GN_LEASE_TENANT_FULL : GN_LEASE_DEVICE_FULL);
    return 0;
}

/* Looks again at the asks on these devices: a lease there has become smaller. */
static void settle_devices(const struct gn_lease_part *parts, uint32_t n, uint64_t now_ns)
{
    for (uint32_t i = 0; i < n; i++) {
        gn_list_for_each(p, &parts[i].device->parts, struct gn_lease_part, link)
        {
            if (p->holder->need_bytes)
                (void)try_answer(p->holder, now_ns);
        }
    }
}

uint64_t gn_account_settle(struct gn_lease_account *a, uint64_t now_ns)
{
    uint64_t next = 0;
    gn_list_for_each(h, &a->holders, struct gn_lease_holder, link)
    {
        if (h->recalled && !h->silent && now_ns >= h->recall_until_ns)
            h->silent = true;
    }
    gn_list_for_each(h, &a->asks, struct gn_lease_holder, ask)
    {
        uint64_t at = try_answer(h, now_ns);
        if (at && (!next || at < next))
            next = at;
    }
    send_tightness(a, now_ns);
    return next;
}

void gn_account_set_limit(struct gn_lease_account *a, uint64_t limit_bytes, uint64_t now_ns)
{
    a->limit_bytes = limit_bytes;
    gn_account_settle(a, now_ns);
}

void gn_holder_ending(struct gn_lease_holder *h)
{
    h->ending = true;
    if (h->lender) { /* shared bytes stay with the lender, which may lend them to another holder */
        h->leased_bytes -= h->lent_bytes;
        h->passed_bytes += h->lent_bytes;
        end_loan(h);
    }
}

void gn_holder_gone(struct gn_lease_holder *h, uint64_t now_ns)
{
    struct gn_lease_account *a = h->account;
    if (!a)
        return;
    struct gn_lease_part parts[GN_LEASE_MAX_DEVICES];
    const uint32_t n_parts = h->n_parts;
    if (h->borrower)
        pass_loan_on(h->borrower);
    unbook(h, own_bytes(h));
    if (h->lender)
        end_loan(h);
    unlink_parts(h);
    memcpy(parts, h->parts, n_parts * sizeof parts[0]);
    gn_list_remove(&h->link);
    gn_list_remove(&h->ask);
    *h = (struct gn_lease_holder){.account = NULL};
    gn_account_settle(a, now_ns);
    settle_devices(parts, n_parts, now_ns);
}

void gn_holder_exchange(struct gn_lease_holder *a, struct gn_lease_holder *b)
{
    if (a->lender == b)
        pass_loan_on(a);
    if (b->lender == a)
        pass_loan_on(b);
    unlink_parts(a);
    unlink_parts(b);
    GN_EXCHANGE(a->leased_bytes,
                b->leased_bytes); /* the sums of the account and of each device stay */
    GN_EXCHANGE(a->passed_bytes, b->passed_bytes);
    GN_EXCHANGE(a->n_parts, b->n_parts);
    for (uint32_t i = 0; i < GN_LEASE_MAX_DEVICES; i++)
        GN_EXCHANGE(a->parts[i], b->parts[i]);
    for (uint32_t i = 0; i < a->n_parts; i++)
        link_part(a, &a->parts[i]);
    for (uint32_t i = 0; i < b->n_parts; i++)
        link_part(b, &b->parts[i]);
    GN_EXCHANGE(a->tight, b->tight);
    GN_EXCHANGE(a->recalled, b->recalled);
    GN_EXCHANGE(a->again, b->again);
    GN_EXCHANGE(a->silent, b->silent);
    GN_EXCHANGE(a->recall_until_ns, b->recall_until_ns);
}

int gn_holder_ask(struct gn_lease_holder *h, uint32_t seq, uint64_t need_bytes, uint64_t want_bytes,
                  uint64_t now_ns)
{
    if (!h->account || h->need_bytes || !need_bytes || want_bytes < need_bytes)
        return -EPROTO;
    h->seq = seq;
    h->need_bytes = need_bytes;
    h->want_bytes = want_bytes;
    h->gathering = h->gathering_devices = false;
    h->ask_until_ns = now_ns + GN_LEASE_ASK_NS;
    gn_list_append(&h->account->asks, &h->ask);
    gn_account_settle(h->account, now_ns);
    return 0;
}

int gn_holder_returned(struct gn_lease_holder *h, uint64_t bytes, bool answers, uint64_t now_ns)
{
    if (!h->account || bytes > sum(h->leased_bytes, h->passed_bytes) || (answers && !h->recalled) ||
        (!answers && !bytes))
        return -EPROTO;
    const uint64_t passed = bytes - least(bytes, h->leased_bytes);
    h->passed_bytes -= passed;
    bytes -= passed;
    const uint64_t own = least(bytes, own_bytes(h));
    unbook(h, own);
    h->lent_bytes -= bytes - own;
    h->leased_bytes -= bytes;
    keep_loan_covered(h);
    if (answers) {
        h->recalled = h->silent = false;
        if (h->again)
            recall(h, now_ns);
    }
    gn_account_settle(h->account, now_ns);
    settle_devices(h->parts, h->n_parts, now_ns);
    return 0;
}
