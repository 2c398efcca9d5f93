/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts of leased device memory (leases.h): grants, recalls and refusals. Called by memory.c and
 * by the code that starts and ends vGPUs, on gantryd's thread. Does no I/O: messages to workers go
 * through the account's ops. */
#include "daemon/tenants/leases.h"

#include <errno.h>

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

uint64_t gn_holder_limit(const struct gn_lease_holder *h)
{
    uint64_t of_all = h->account ? h->account->limit_bytes : 0;
    return !of_all ? h->limit_bytes : !h->limit_bytes ? of_all : least(of_all, h->limit_bytes);
}

void gn_holder_join(struct gn_lease_holder *h, struct gn_lease_account *a, uint64_t limit_bytes)
{
    *h = (struct gn_lease_holder){.account = a, .limit_bytes = limit_bytes};
    gn_list_append(&a->holders, &h->link);
    gn_list_init(&h->ask);
}

/* ---- recalls */

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
    h->tight = is_over(h->account);
    h->recall_until_ns = now_ns + GN_LEASE_RECALL_NS;
    h->account->ops->recall(h, h->tight);
}

/* Tells all holders when the account goes over or back under its limit: while it is over, memory
 * that they free must be returned at once. */
static void send_tightness(struct gn_lease_account *a, uint64_t now_ns)
{
    bool over = is_over(a);
    gn_list_for_each(h, &a->holders, struct gn_lease_holder, link)
    {
        if (h->tight != over && !h->recalled && (h->leased_bytes || h->tight))
            recall(h, now_ns);
    }
}

static void recall_others(struct gn_lease_holder *asker, uint64_t now_ns)
{
    asker->gathering = true;
    gn_list_for_each(h, &asker->account->holders, struct gn_lease_holder, link)
    {
        if (h != asker && h->leased_bytes && !h->ending && !h->silent)
            recall(h, now_ns);
    }
}

static bool is_waited_for(const struct gn_lease_holder *h, uint64_t now_ns)
{
    return h->leased_bytes &&
           (h->ending || (h->recalled && !h->silent && now_ns < h->recall_until_ns));
}

/* ---- asks */

static void answer(struct gn_lease_holder *h, uint64_t granted)
{
    h->need_bytes = 0;
    h->gathering = false;
    gn_list_remove(&h->ask);
    h->leased_bytes += granted;
    h->account->leased_bytes += granted;
    h->account->ops->answer(h, h->seq, granted);
}

static void grant(struct gn_lease_holder *h, uint64_t room, uint64_t own_room)
{
    uint64_t slack = h->want_bytes - h->need_bytes;
    slack = least(slack, own_room - h->need_bytes);
    slack = least(slack, (room - h->need_bytes) / (h->account->limit_bytes ? SLACK_PART : 1));
    answer(h, h->need_bytes + slack);
}

/* Answers the ask or lets it wait. Returns when to look again; 0: answered. */
static uint64_t try_answer(struct gn_lease_holder *h, uint64_t now_ns)
{
    struct gn_lease_account *a = h->account;
    uint64_t room = room_of(a->limit_bytes, a->leased_bytes),
             own_room =
                 room_of(h->limit_bytes ? least(h->limit_bytes, GN_LEASE_MOST) : GN_LEASE_MOST,
                         h->leased_bytes);
    uint64_t alone = room_of(a->limit_bytes, h->leased_bytes), next = h->ask_until_ns;
    if (h->need_bytes <= least(room, own_room)) {
        grant(h, room, own_room);
        return 0;
    }
    if (h->need_bytes <= least(alone, own_room) && now_ns < h->ask_until_ns) {
        bool wait = false;
        if (!h->gathering)
            recall_others(h, now_ns);
        gn_list_for_each(other, &a->holders, struct gn_lease_holder, link)
        {
            if (other == h || !is_waited_for(other, now_ns))
                continue;
            wait = true;
            if (!other->ending)
                next = least(next, other->recall_until_ns);
        }
        if (wait)
            return next;
    }
    answer(h, 0);
    return 0;
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
}

void gn_holder_gone(struct gn_lease_holder *h, uint64_t now_ns)
{
    struct gn_lease_account *a = h->account;
    if (!a)
        return;
    a->leased_bytes -= h->leased_bytes;
    gn_list_remove(&h->link);
    gn_list_remove(&h->ask);
    *h = (struct gn_lease_holder){.account = NULL};
    gn_account_settle(a, now_ns);
}

#define SWAP(a, b)                                                                                 \
    do {                                                                                           \
        __typeof__(a) was_ = (a);                                                                  \
        (a) = (b);                                                                                 \
        (b) = was_;                                                                                \
    } while (0)

void gn_holder_exchange(struct gn_lease_holder *a, struct gn_lease_holder *b)
{
    SWAP(a->leased_bytes, b->leased_bytes); /* the account's sum stays */
    SWAP(a->tight, b->tight);
    SWAP(a->recalled, b->recalled);
    SWAP(a->again, b->again);
    SWAP(a->silent, b->silent);
    SWAP(a->recall_until_ns, b->recall_until_ns);
}

int gn_holder_ask(struct gn_lease_holder *h, uint32_t seq, uint64_t need_bytes, uint64_t want_bytes,
                  uint64_t now_ns)
{
    if (!h->account || h->need_bytes || !need_bytes || want_bytes < need_bytes)
        return -EPROTO;
    h->seq = seq;
    h->need_bytes = need_bytes;
    h->want_bytes = want_bytes;
    h->gathering = false;
    h->ask_until_ns = now_ns + GN_LEASE_ASK_NS;
    gn_list_append(&h->account->asks, &h->ask);
    gn_account_settle(h->account, now_ns);
    return 0;
}

int gn_holder_returned(struct gn_lease_holder *h, uint64_t bytes, bool answers, uint64_t now_ns)
{
    if (!h->account || bytes > h->leased_bytes || (answers && !h->recalled) || (!answers && !bytes))
        return -EPROTO;
    h->leased_bytes -= bytes;
    h->account->leased_bytes -= bytes;
    if (answers) {
        h->recalled = h->silent = false;
        if (h->again)
            recall(h, now_ns);
    }
    gn_account_settle(h->account, now_ns);
    return 0;
}
