/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_SESSION_SESSION_TCP_H
#define GN_VGPU_SESSION_SESSION_TCP_H

#include "link/tcp.h"
#include "vgpu/core/vgpu_core.h"

/*
 * A vGPU whose program is on another machine: its session's memory is this process's own, and what
 * the program would see there is sent to it as records (link/record.h). The thread that serves the
 * request ring elsewhere serves the connection here.
 */
struct gn_vgpu_tcp;

/* Before the vGPU's threads start; sets v->remote. */
int gn_vgpu_tcp_start(struct gn_vgpu *v);
/* Serves until the program has said goodbye, or has not come back in time, or the vGPU ends. The
 * calling thread. */
void gn_vgpu_tcp_loop(struct gn_vgpu_tcp *h);
/* A data connection, taken. Never waits. The control thread. */
void gn_vgpu_tcp_link(struct gn_vgpu_tcp *h, int fd);

/* It has something to do, or may: the gate has changed. Any thread. */
void gn_vgpu_tcp_wake(struct gn_vgpu_tcp *h);

/*
 * A move to another worker (tcp_session_handover.c), behind the closed gate. The old worker's: the
 * last word that the program gets from it, of this move; and where the session stands, with what
 * lies in the data area and belongs to no object. Whoever saves. The program of one that is handed
 * may share its memory with this worker (v->remote is NULL): then its session begins anew, and only
 * the data area is handed. Beside: the program hears of nothing; what it has been told and may not
 * have got is handed, too, and it goes on with its stream at the new one.
 */
struct gn_error;
struct gn_frame;
void gn_vgpu_tcp_send_quiesced(struct gn_vgpu_tcp *h, uint32_t number);
/* Before the gate closes, where the program's memory is to be the new worker's, too: asks it to
 * send no more, and waits until all that it has sent is taken. Until the time: -ETIMEDOUT. */
int gn_vgpu_tcp_pause(struct gn_vgpu_tcp *h, uint32_t number, uint64_t until_ns,
                      struct gn_error *err);
/* Nothing has come of it: before its gate opens. Any thread. */
void gn_vgpu_tcp_go_on(struct gn_vgpu_tcp *h);
enum gn_far_way {
    GN_FAR_ON,     /* to a worker of another gantryd, to which the program goes on sending */
    GN_FAR_NEAR,   /* to one that shares memory with the program: nothing is under way, and the
                      program has its data area itself */
    GN_FAR_BESIDE, /* as above */
};
/* What is handed: found once, and good as long as the gate is closed. Frames HAND_FAR, HELD, AREA
 * and SAID (link/worker_wire.h). */
struct gn_far_session;
struct gn_far_size {
    uint64_t n_frames, bytes; /* of their payloads */
};
int gn_far_session_new(struct gn_vgpu *v, enum gn_far_way way, struct gn_far_session **ret,
                       struct gn_error *err);
struct gn_far_size gn_far_session_size(const struct gn_far_session *s);
/* Until one is not carried, which is the result. A payload holds until carry_one returns. */
int gn_far_session_hand(const struct gn_far_session *s,
                        int (*carry_one)(void *ctx, const struct gn_frame *f), void *ctx);
void gn_far_session_free(struct gn_far_session *s); /* NULL does nothing */
/* The new one's, before its socket thread serves: each of them, in order, which nobody vouches for.
 * 0, -EPROTO or -ENOMEM. */
int gn_vgpu_tcp_take(struct gn_vgpu_tcp *h, const struct gn_frame *f);
bool gn_vgpu_tcp_has_taken(const struct gn_vgpu_tcp *h);
/* And when the vGPU has been loaded: it goes on there. 0 or -EPROTO: not all has come, or there is
 * no such stream. */
int gn_vgpu_tcp_goes_on(struct gn_vgpu_tcp *h);
/* This process's output up to now goes before what is appended from now on; while objects are made
 * anew, nowhere. */
void gn_vgpu_tcp_pass_prints(struct gn_vgpu_tcp *h);
/* Another data segment of so many bytes, which must be the next. 0 or -EPROTO. */
int gn_vgpu_tcp_add_segment(struct gn_vgpu_tcp *h, uint64_t index, uint64_t bytes);

/* What the program is told; any thread, none of them waits. */
void gn_vgpu_tcp_reply(struct gn_vgpu_tcp *h, uint32_t token, int32_t result, const void *payload,
                       size_t n);
/* The same with outputs that lie in the data area. */
void gn_vgpu_tcp_answer(struct gn_vgpu_tcp *h, const struct gn_request *r, uint32_t token,
                        const void *payload, size_t n);
void gn_vgpu_tcp_event(struct gn_vgpu_tcp *h, uint32_t index, enum gn_event_phase phase);
void gn_vgpu_tcp_event_end(struct gn_vgpu_tcp *h, uint32_t index, int32_t error,
                           const struct gn_event_times *times, const struct gn_command *c);
int gn_vgpu_tcp_frame(struct gn_vgpu_tcp *h, uint16_t op, uint32_t seq, const void *payload,
                      size_t n);

/* Bytes that a program of another machine may hold here: its limit, or by default a part of this
 * machine's memory. It may fill twice as much, and something for what passes through. */
uint64_t gn_vgpu_tcp_limit(const struct gn_vgpu *v);

#endif
