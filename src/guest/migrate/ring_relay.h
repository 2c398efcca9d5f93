/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_MIGRATE_RING_RELAY_H
#define GN_GUEST_MIGRATE_RING_RELAY_H

#include "guest/core/guest_core.h"

struct gn_session_tcp;

/* While the vGPU of a session that has a ring is on another machine: on its way there, there, and
 * on its way back (docs/moves.md). */

/*
 * The vGPU goes from where it shares our memory to another machine. Ready for it: what a connection
 * needs is there, and nobody is at home; or -errno and why not, -ECANCELED when `is_off`. Then it
 * is either called off, or done: link_lock, and the lock of the link over tcp.
 */
int gn_relay_prepare(struct gn_session *s, bool (*is_off)(void *ctx), void *ctx,
                     struct gn_session_tcp **ret, struct gn_error *err);
void gn_relay_call_off(struct gn_session *s, struct gn_session_tcp *r);
/*
 * The vGPU goes from another machine to share our memory, where threads have sent to it by
 * themselves: from now on they use the ring, for good, and a thread of ours sends what comes there.
 * Then, until none of them is in the middle of something: 0, or -errno and why not, -ECANCELED when
 * `is_off`; it goes on by the ring in any case.
 */
int gn_relay_turn(struct gn_session *s, bool (*is_off)(void *ctx), void *ctx, struct gn_error *err);
void gn_relay_begin(struct gn_session *s, struct gn_session_tcp *r, uint32_t grace_ms);
/* Sends what is in the ring, and what comes there, until the vGPU is lost or shares our memory
 * again. The calling thread. */
void gn_relay_run(struct gn_session *s);
/*
 * The vGPU is to share our memory again. From now on nothing more is taken out of the ring, which
 * the far one is told: when it is so, the mover of the session is woken. True: so it is, and
 * *ret_at is where the ring stands. Any thread.
 */
void gn_relay_pause(struct gn_session *s, uint32_t number);
bool gn_relay_quiesced(struct gn_session *s, uint64_t *ret_at);
/* Nothing has come of it; or it does, link_lock and the lock of the link over tcp: then nobody
 * sends there, and the relay ends. */
void gn_relay_go_on(struct gn_session *s);
void gn_relay_end(struct gn_session *s);

#endif
