/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_TCP_SESSION_HANDOVER_H
#define GN_VGPU_MIGRATE_TCP_SESSION_HANDOVER_H

#include <stdint.h>

struct gn_frame;
struct gn_route;
struct gn_vgpu;

/*
 * Where a session over tcp stands, for the destination: what is in the data area and belongs to no
 * object, and what the program has sent or was sent and the other side has not taken. The source's
 * session may share memory with the program: then the session begins anew at the destination, and
 * only the data area is handed over. Behind the closed gate; the thread that saves.
 */
/* Found once, and valid as long as the gate is closed. Its frames are HAND_TCP, HELD, AREA and SENT
 * (link/worker_wire.h). */
struct gn_tcp_handover;
/* 0 or -errno; the caller frees *ret in any case. */
int gn_tcp_handover_new(struct gn_vgpu *v, const struct gn_route *route,
                        struct gn_tcp_handover **ret);
/* The bytes of all payloads, and frame_bytes more for each frame. */
uint64_t gn_tcp_handover_size(const struct gn_tcp_handover *s, uint32_t frame_bytes);
/* Calls carry_one for each frame, until it fails: that is the result. A payload is valid until
 * carry_one returns. */
int gn_tcp_handover_send(const struct gn_tcp_handover *s,
                         int (*carry_one)(void *ctx, const struct gn_frame *f), void *ctx);
void gn_tcp_handover_free(struct gn_tcp_handover *s); /* NULL does nothing */

#endif
