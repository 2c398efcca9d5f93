/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_LEASES_H
#define GN_DAEMON_TENANTS_LEASES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/*
 * The books of device memory. A worker hands out memory from a lease that it has; gantryd keeps
 * what each worker has on lease (a holder) and the sum of a tenant's (an account), and no grant
 * ever takes the sum above the account's limit. A worker's own word on what it uses plays no part.
 *
 * A worker asks when its lease does not cover an allocation, for that much and some slack beyond
 * it. When the account has too little room, the slack of its other holders is recalled first; a
 * holder that is ending is waited for; only then the ask is refused. Whoever does not answer a
 * recall in time is `silent`: nobody waits for him again until he does.
 *
 * Pure: no I/O, time is an argument (any monotonic nanoseconds). One thread.
 */

#define GN_LEASE_RECALL_NS UINT64_C(1000000000) /* for a recall's answer */
#define GN_LEASE_ASK_NS    UINT64_C(2500000000) /* for an ask's, whatever it waits for */

/* No holder has more, limit or not: far above any device, and thousands of them do not overflow a
 * sum. So a worker that asks for all there can be takes nothing from others where there is no
 * limit. */
#define GN_LEASE_MOST (UINT64_C(1) << 50)

struct gn_lease_holder;

/* What the books want said to a holder's worker. Neither may call back into the books. */
struct gn_lease_ops {
    /* The answer to an ask: so many bytes more, 0: refused. */
    void (*answer)(struct gn_lease_holder *h, uint32_t seq, uint64_t granted_bytes);
    /* Give back what is not used; while tight, also what is freed from now on. An answer is
     * expected. */
    void (*recall)(struct gn_lease_holder *h, bool tight);
};

struct gn_lease_account {
    const struct gn_lease_ops *ops;
    uint64_t limit_bytes; /* 0: none */
    uint64_t leased_bytes;
    struct gn_list holders;
    struct gn_list asks;
};

struct gn_lease_holder {
    struct gn_list link;              /* in the account's holders */
    struct gn_list ask;               /* in its asks */
    struct gn_lease_account *account; /* NULL: in none */
    uint64_t limit_bytes;             /* of its own; 0: none */
    uint64_t leased_bytes;
    bool ending;          /* what it has comes free by itself, soon */
    bool tight;           /* it was told so */
    bool recalled, again; /* an answer is owed; another recall is to follow it */
    bool silent;
    uint64_t recall_until_ns;
    /* its ask; need_bytes 0: none */
    uint32_t seq;
    uint64_t need_bytes, want_bytes;
    bool gathering; /* the others have been asked for it */
    uint64_t ask_until_ns;
};

void gn_account_init(struct gn_lease_account *a, const struct gn_lease_ops *ops,
                     uint64_t limit_bytes);
/* A limit below what is leased recalls all slack and stops further grants. */
void gn_account_set_limit(struct gn_lease_account *a, uint64_t limit_bytes, uint64_t now_ns);

/* What the holder could have if it were alone in its account: the lesser of the limits; 0: no
 * limit. */
uint64_t gn_holder_limit(const struct gn_lease_holder *h);

void gn_holder_join(struct gn_lease_holder *h, struct gn_lease_account *a, uint64_t limit_bytes);
/* Its worker is dead: what it had is free. Does nothing when it is in no account. */
void gn_holder_gone(struct gn_lease_holder *h, uint64_t now_ns);
void gn_holder_ending(struct gn_lease_holder *h);

/* The worker's words. -EPROTO for what no worker of ours says. */
int gn_holder_ask(struct gn_lease_holder *h, uint32_t seq, uint64_t need_bytes, uint64_t want_bytes,
                  uint64_t now_ns);
int gn_holder_returned(struct gn_lease_holder *h, uint64_t bytes, bool answers, uint64_t now_ns);

/* To be called at the time that it returned last; 0: at none. */
uint64_t gn_account_settle(struct gn_lease_account *a, uint64_t now_ns);

#endif
