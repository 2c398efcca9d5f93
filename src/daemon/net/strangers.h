/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_STRANGERS_H
#define GN_DAEMON_NET_STRANGERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/*
 * Strangers: tcp connections that have not proved anything yet, from accept() until their greeting
 * is admitted. Their number and their time are limited. When there are too many, the address with
 * the most of them loses its oldest. An address also pays for the processor time of its failed
 * handshakes: after a burst of GN_STRANGERS_BURST_NS it may use 1/GN_STRANGERS_PART of the time.
 *
 * gantryd's thread only. Time is an argument; nothing is allocated.
 */
#define GN_STRANGERS_MOST     256u
#define GN_STRANGERS_NS       UINT64_C(5000000000)
#define GN_STRANGERS_BURST_NS UINT64_C(500000000)
#define GN_STRANGERS_PART     20u
/* Addresses with a debt; the one that owes least is replaced. */
#define GN_STRANGERS_ADDRESSES 256u

struct gn_stranger {
    struct gn_list link; /* alone in the list: not a stranger */
    uint64_t address;
    uint64_t deadline_ns;
    /* processor time of its handshake so far */
    uint64_t cost_ns;
    void (*end)(struct gn_stranger *s, const char *why); /* why NULL: its deadline has passed */
};

struct gn_strangers {
    struct gn_list all; /* the oldest first */
    uint32_t n;
    struct gn_strangers_cost {
        uint64_t address;
        uint64_t paid_at_ns; /* when its debt is paid */
    } costs[GN_STRANGERS_ADDRESSES];
};

void gn_strangers_init(struct gn_strangers *s);
/* Whether a connection from this address may be accepted now. */
bool gn_strangers_may_come(const struct gn_strangers *s, uint64_t address, uint64_t now_ns);
/* The stranger to end before another one is added; NULL: none. */
struct gn_stranger *gn_strangers_in_excess(struct gn_strangers *s);
/* The caller has set x->end. */
void gn_strangers_add(struct gn_strangers *s, struct gn_stranger *x, uint64_t address,
                      uint64_t now_ns);
/* `to` takes the place and the deadline of `from`, which is no longer a stranger. The caller has
 * set to->end. */
void gn_strangers_replace(struct gn_stranger *from, struct gn_stranger *to);
bool gn_stranger_is(const struct gn_stranger *x);
/* admit: x has proved its identity. refuse: it has not, and its address pays for its handshake.
 * Both ignore x if it is not a stranger. */
void gn_strangers_admit(struct gn_strangers *s, struct gn_stranger *x);
void gn_strangers_refuse(struct gn_strangers *s, struct gn_stranger *x, uint64_t now_ns);
/* late: the first stranger past its deadline; NULL: none. deadline: the earliest deadline; 0: no
 * strangers. */
struct gn_stranger *gn_strangers_late(struct gn_strangers *s, uint64_t now_ns);
uint64_t gn_strangers_deadline(const struct gn_strangers *s);

#endif
