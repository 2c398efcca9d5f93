/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_STRANGERS_H
#define GN_DAEMON_NET_STRANGERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/*
 * Connections over tcp of which nobody has proved anything yet: from their accept to the greeting
 * that is admitted. They are bounded in number and time, all together; where there are too many the
 * address with the most of them gives way. An address pays for the processor time of handshakes
 * that came to nothing: it may use GN_STRANGERS_BURST_NS of it, and a twentieth of the time after
 * that.
 *
 * gantryd's only thread; time is an argument, and nothing is allocated.
 */
#define GN_STRANGERS_MOST      256u
#define GN_STRANGERS_NS        UINT64_C(5000000000)
#define GN_STRANGERS_BURST_NS  UINT64_C(500000000)
#define GN_STRANGERS_PART      20u
#define GN_STRANGERS_ADDRESSES 256u /* whose costs are known; the one that owes least gives way */

struct gn_stranger {
    struct gn_list link; /* alone: it is none */
    uint64_t address;
    uint64_t deadline_ns;
    uint64_t cost_ns;                                    /* of processor time so far */
    void (*end)(struct gn_stranger *s, const char *why); /* why NULL: its time is over */
};

struct gn_strangers {
    struct gn_list all; /* the oldest first */
    uint32_t n;
    struct gn_strangers_cost {
        uint64_t address;
        uint64_t paid_at_ns; /* when what it owes is paid */
    } costs[GN_STRANGERS_ADDRESSES];
};

void gn_strangers_init(struct gn_strangers *s);
/* Whether one more of this address is to be talked to. */
bool gn_strangers_may_come(const struct gn_strangers *s, uint64_t address, uint64_t now_ns);
/* The one that has to go before one more is added; NULL: none. */
struct gn_stranger *gn_strangers_in_excess(struct gn_strangers *s);
/* x->end is set. */
void gn_strangers_add(struct gn_strangers *s, struct gn_stranger *x, uint64_t address,
                      uint64_t now_ns);
/* `to` takes the place of `from`, which is none any more. to->end is set. */
void gn_strangers_replace(struct gn_stranger *from, struct gn_stranger *to);
bool gn_stranger_is(const struct gn_stranger *x);
/* It has proved what it had to; or it has not, and its address pays. Nothing happens to one that is
 * none. */
void gn_strangers_admit(struct gn_strangers *s, struct gn_stranger *x);
void gn_strangers_refuse(struct gn_strangers *s, struct gn_stranger *x, uint64_t now_ns);
/* The first whose time is over; NULL: none. And when the next one's is; 0: there is none. */
struct gn_stranger *gn_strangers_late(struct gn_strangers *s, uint64_t now_ns);
uint64_t gn_strangers_deadline(const struct gn_strangers *s);

#endif
