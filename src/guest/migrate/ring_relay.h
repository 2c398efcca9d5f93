/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_MIGRATE_RING_RELAY_H
#define GN_GUEST_MIGRATE_RING_RELAY_H

#include "guest/core/guest_core.h"

struct gn_moving;
struct gn_session_tcp;

/*
 * While the vGPU of a session with a ring is on another machine: on its way there, there, and on
 * its way back (docs/moves.md).
 */

/*
 * Prepares a session that shares memory for a migration to another machine: makes a connection, and
 * waits until no thread uses shared buffers. 0, or -errno with a sentence, -ECANCELED when m is
 * called off. Then the migration is called off, or done, under link_lock and the lock of the link
 * over tcp.
 */
int gn_relay_prepare(struct gn_session *s, const struct gn_moving *m, struct gn_session_tcp **ret,
                     struct gn_error *err);
void gn_relay_call_off(struct gn_session *s, struct gn_session_tcp *r);
/*
 * Prepares a tcp session for a migration to this machine: from now on threads use the ring, for
 * good, and a thread of this process sends its messages. Then waits until no thread sends directly:
 * 0, or -errno with a sentence, -ECANCELED when m is called off; the ring stays in use in any case.
 */
int gn_relay_turn(struct gn_session *s, const struct gn_moving *m, struct gn_error *err);
void gn_relay_begin(struct gn_session *s, struct gn_session_tcp *r, uint32_t grace_ms);
/*
 * Sends the messages of the ring of this session until the vGPU is lost or shares memory again. The
 * calling thread. NULL.
 */
void *gn_relay_run(void *session);
/*
 * The vGPU is to share memory again. From now on the relay reads nothing from the ring, and tells
 * the far worker so: then it wakes the thread that follows the migration, which calls again. True:
 * it stands, and *ret_at is the position in the ring. Any thread.
 */
bool gn_relay_pause(struct gn_session *s, uint32_t number, uint64_t *ret_at);
/*
 * The migration failed: the relay continues. Or it is done, under link_lock and the lock of the
 * link over tcp: no thread sends there, and the relay ends.
 */
void gn_relay_go_on(struct gn_session *s);
void gn_relay_end(struct gn_session *s);

#endif
