/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_LEASES_H
#define GN_DAEMON_TENANTS_LEASES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/*
 * Accounts of device memory. A worker allocates from a lease that gantryd granted it. gantryd
 * counts the lease of each worker (a holder), the sum over a tenant (an account), and the sum over
 * all tenants on each device. No grant takes a sum above its limit, and nothing depends on the
 * worker's word about its use, except during a migration within one account and its devices: the
 * destination may share memory of the source, which the source names, and that is counted once (a
 * loan, at most the source's lease).
 *
 * An account may have a reserve on a device: other accounts get only the memory beyond all reserves
 * that are not used up.
 *
 * An ask names no device. Of a holder with several devices, a lease is booked on the first of them
 * that has room, and on the next for the rest; returned memory leaves the last one first.
 *
 * A worker asks when its lease does not cover an allocation: for the missing bytes, and for slack
 * beyond them. If its tenant or its devices have too little room, the unused memory of the other
 * holders there is recalled first, and holders that are ending are waited for; only then is the ask
 * refused. A holder that does not answer a recall in time is `silent`: no ask waits for it again
 * until it answers.
 *
 * Pure: no I/O, and time is an argument (monotonic nanoseconds). One thread.
 */

#define GN_LEASE_RECALL_NS UINT64_C(1000000000) /* to answer a recall */
#define GN_LEASE_ASK_NS    UINT64_C(2500000000) /* to answer an ask, in any case */

/* The most that a holder may have, with or without a limit: far above any device, and small enough
 * that sums over thousands of holders do not overflow. So a worker that asks for as much as
 * possible takes nothing from others where there is no limit. */
#define GN_LEASE_MOST (UINT64_C(1) << 50)

#define GN_LEASE_MAX_DEVICES 64

struct gn_lease_holder;

/* The limit that refused an ask. */
enum gn_lease_refusal {
    GN_LEASE_TENANT_FULL = 1,
    GN_LEASE_HOLDER_FULL = 2, /* the limit of the holder alone, or GN_LEASE_MOST */
    GN_LEASE_DEVICE_FULL = 4
};

/* Messages to a holder's worker. The functions must not call back into this file. */
struct gn_lease_ops {
    /* Answers an ask: granted_bytes more; 0: refused, for the reason in h->refusal. */
    void (*answer)(struct gn_lease_holder *h, uint32_t seq, uint64_t granted_bytes);
    /* Asks the worker to return unused memory and, while tight, also memory that it frees later.
     * The worker must answer. */
    void (*recall)(struct gn_lease_holder *h, bool tight);
};

struct gn_lease_account {
    const struct gn_lease_ops *ops;
    uint64_t limit_bytes; /* 0: none */
    uint64_t leased_bytes;
    struct gn_list holders;
    struct gn_list asks;
};

/* The memory of one device, for all tenants. Not moved while a holder uses it. */
struct gn_lease_device {
    uint64_t limit_bytes; /* 0: none */
    /* The memory where the limit includes host memory for evicted contents: a holder's bound, as
     * all that it has must fit at once. 0: the limit. */
    uint64_t resident_limit_bytes;
    bool is_budget; /* gn_lease_device_memory() is below the device's: programs see it instead */
    uint64_t leased_bytes;
    struct gn_list parts;
    struct gn_list reserves;
};

/* Memory of one device that no other account can lease. It does not move while it is in force. */
struct gn_lease_reserve {
    struct gn_list link; /* in the device's reserves */
    const struct gn_lease_account *account;
    struct gn_lease_device *device;
    uint64_t bytes;
    uint64_t leased_bytes; /* to the account's holders, on this device */
};

/* The part of a holder's lease that is booked on one device. */
struct gn_lease_part {
    struct gn_list link; /* in the device's parts */
    struct gn_lease_holder *holder;
    struct gn_lease_device *device;
    uint64_t leased_bytes;
};

struct gn_lease_holder {
    struct gn_list link;              /* in the account's holders */
    struct gn_list ask;               /* in the account's asks */
    struct gn_lease_account *account; /* NULL: not in an account */
    uint64_t limit_bytes;             /* of this holder alone; 0: none */
    uint64_t leased_bytes;
    uint32_t n_parts; /* 0: on no device that is counted */
    struct gn_lease_part parts[GN_LEASE_MAX_DEVICES];
    /* A loan: lent_bytes of leased_bytes are counted in the lender's lease instead, and not in
     * `parts`. The two holders refer to each other. */
    struct gn_lease_holder *lender, *borrower;
    uint64_t lent_bytes;
    uint64_t lendable_bytes; /* the most that further grants may bring lent_bytes to */
    uint64_t passed_bytes;   /* passed on by an ended loan; its worker may still return these */
    bool ending;             /* its worker is ending: its memory becomes free without a recall */
    bool tight;              /* the value of `tight` in the last recall */
    /* recalled: it owes an answer; again: another recall follows that answer */
    bool recalled, again;
    bool silent;
    uint64_t recall_until_ns;
    /* the pending ask; need_bytes 0: none */
    uint32_t seq;
    uint64_t need_bytes, want_bytes;
    /* The other holders of the account, and of the devices, have been asked to return memory for
     * it. */
    bool gathering, gathering_devices;
    uint64_t ask_until_ns;
    enum gn_lease_refusal refusal; /* of the last refused ask */
};

void gn_account_init(struct gn_lease_account *a, const struct gn_lease_ops *ops,
                     uint64_t limit_bytes);
/* Sets the limit. A limit below the leased sum recalls all slack and stops further grants. */
void gn_account_set_limit(struct gn_lease_account *a, uint64_t limit_bytes, uint64_t now_ns);

void gn_lease_device_init(struct gn_lease_device *d, uint64_t limit_bytes);
/* The device's memory, without host memory for evicted contents; 0: unknown. */
uint64_t gn_lease_device_memory(const struct gn_lease_device *d);

/* Puts a reserve in force, which may be more than what is free: then others get no more until it
 * is, and return what they free. gn_lease_unreserve() ends it. After both, all accounts have to be
 * settled. */
void gn_lease_reserve(struct gn_lease_reserve *r, const struct gn_lease_account *a,
                      struct gn_lease_device *d, uint64_t bytes);
void gn_lease_unreserve(struct gn_lease_reserve *r);
/* The bytes that reserves keep from this account: those that are not leased yet. */
uint64_t gn_lease_reserved(const struct gn_lease_device *d, const struct gn_lease_account *a);

/* The most that the holder could get if it were alone: the lower of its own limit, its account's,
 * and the budget of its device, without host memory, if it has one device; 0: no limit. */
uint64_t gn_holder_limit(const struct gn_lease_holder *h);

void gn_holder_join(struct gn_lease_holder *h, struct gn_lease_account *a, uint64_t limit_bytes);
/* Books the holder's later leases on this device, too, after the devices that it has already. */
void gn_holder_add_device(struct gn_lease_holder *h, struct gn_lease_device *d);
/* gone: the worker is dead and its memory is free; does nothing if the holder is in no account.
 * ending: the worker is about to end. */
void gn_holder_gone(struct gn_lease_holder *h, uint64_t now_ns);
void gn_holder_ending(struct gn_lease_holder *h);
/* Begins a loan to `to`, which has leased nothing and has the same account and devices. It ends
 * with either holder, or with an exchange. Then `to` has the lent bytes, and `from` no longer; if
 * `to` ends first, they stay with `from`. No effect if `from` has a loan already. */
void gn_holder_lend(struct gn_lease_holder *from, struct gn_lease_holder *to);
/* How much of the lender's memory the borrower may share now. */
void gn_holder_set_lendable(struct gn_lease_holder *borrower, uint64_t bytes);
/* Two holders of one account exchange their workers: leases, devices and recalls go with these;
 * limits and pending asks stay. Ends a loan between them. */
void gn_holder_exchange(struct gn_lease_holder *a, struct gn_lease_holder *b);

/* Messages from the worker: an ask, and returned memory (answers: in answer to a recall). -EPROTO
 * for a message that no correct worker sends. */
int gn_holder_ask(struct gn_lease_holder *h, uint32_t seq, uint64_t need_bytes, uint64_t want_bytes,
                  uint64_t now_ns);
int gn_holder_returned(struct gn_lease_holder *h, uint64_t bytes, bool answers, uint64_t now_ns);

/* Handles deadlines and pending asks. Returns when to call it again; 0: not needed. */
uint64_t gn_account_settle(struct gn_lease_account *a, uint64_t now_ns);

#endif
