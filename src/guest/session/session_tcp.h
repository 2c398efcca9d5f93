/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_SESSION_SESSION_TCP_H
#define GN_GUEST_SESSION_SESSION_TCP_H

#include "guest/core/guest_core.h"

/*
 * A session with a vGPU on another machine. Its memory is laid out like shared memory and is this
 * process's own: records (link/record.h) describe the data that is sent, and received data is
 * written into the same response slots, event table and data area that a local worker would write.
 * So other code need not know the difference; it uses session_ops.h.
 *
 * Reading the connection is a role: a waiting thread takes it and passes on the results of others,
 * so that a call crosses no threads; the session's watcher thread has it when no thread waits.
 * Sending is done by the thread that has data to send.
 */
struct gn_session_tcp;

/* NULL: the session is not a tcp session, or is one no more. */
static inline struct gn_session_tcp *gn_session_tcp_of(struct gn_session *s)
{
    return atomic_load_explicit(&s->tcp, memory_order_acquire);
}

/* Makes the segments that gantryd has not sent. */
int gn_session_tcp_make_memory(struct gn_attached *a);
/* Connects to the worker. From here on waits of this session read the connection. */
int gn_session_tcp_open(struct gn_session *s, const struct gn_attached *a, struct gn_error *err);
/*
 * Not connected yet: for a session that is about to leave for another machine (ring_relay.c). Its
 * waits do not read the connection, since they may have begun before; the watcher reads.
 */
int gn_session_tcp_new(struct gn_session *s, struct gn_session_tcp **ret);
/* For a migration that failed, or a session that shares its memory again. */
void gn_session_tcp_free(struct gn_session_tcp *r);
/*
 * Before data goes straight to the connection, and until the data has been sent or has landed: all
 * of it goes that way, or nothing does. NULL: use the ring. May be nested. Any thread.
 */
struct gn_session_tcp *gn_session_tcp_enter(struct gn_session *s);
void gn_session_tcp_leave(struct gn_session_tcp *r);
/*
 * From now on no thread enters, and waiting threads do not read: the session is as after
 * gn_session_tcp_new. Then: has every thread left?
 */
void gn_session_tcp_turn(struct gn_session_tcp *r);
bool gn_session_tcp_has_turned(struct gn_session_tcp *r);
bool gn_session_tcp_is_empty(struct gn_session_tcp *r);
/*
 * Announces the data segments that exist, and later ones when they are added. They fit: nothing
 * else has been sent.
 */
void gn_session_tcp_begin(struct gn_session_tcp *r, uint32_t grace_ms);
/*
 * A message of the ring, with its data. The data stays in the area until its answer or event has
 * come; with `copied`, until this returns. 0 or -errno. Waits while too much is unsent.
 */
struct gn_passed {
    struct gn_area_ref ref;
    uint64_t bytes;
    bool copied;
};
#define GN_MAX_PASSED 12u
int gn_session_tcp_pass(struct gn_session_tcp *r, const struct gn_msg *msg, uint32_t n_bytes,
                        const struct gn_passed *all, uint32_t n);
/* No message follows before the migration of this number. */
void gn_session_tcp_send_paused(struct gn_session_tcp *r, uint32_t number);
/*
 * The vGPU is in a checkpoint, or has a worker again (NULL): gn_link's on_stop, with the session as
 * ctx.
 */
void gn_session_tcp_stop_word(void *session, const struct gn_link_stopped *stop);
/* The watcher's part while the vGPU is on another machine. True: the session is another kind now,
 * and its tcp has been freed. */
bool gn_session_tcp_watch(struct gn_session *s);
/*
 * The link leads to a gantryd of this machine now, which has the vGPU: nothing more goes over this
 * connection. The lock is held.
 */
void gn_session_tcp_end_shared(struct gn_session_tcp *r);
/* The lock of the session's link. */
pthread_mutex_t *gn_session_tcp_link_lock(struct gn_session_tcp *r);
/*
 * The link leads to another gantryd now, which has the vGPU (follow_migration.c): connects to its
 * worker. The lock is held.
 */
void gn_session_tcp_go_over(struct gn_session_tcp *r);
/* The program ends: gantryd need not wait for it. Never waits. */
void gn_session_tcp_bye(struct gn_session_tcp *r);
/* Cuts the session off if the program has closed the connection. Any thread; never waits. */
void gn_session_tcp_look_at_descriptors(struct gn_session_tcp *r);
/* In a forked child: closes the inherited descriptors. */
void gn_session_tcp_forked(struct gn_session_tcp *r);

/*
 * Sends a message with its inputs; waits only while too much is unsent. 0, or the API's result_lost
 * or result_no_memory.
 */
int gn_session_tcp_send(struct gn_session_tcp *r, struct gn_call *c);
/* A data segment of this process's, mapped and announced to the worker. */
int gn_session_tcp_segment(struct gn_session_tcp *r, uint64_t bytes, struct gn_segment *ret,
                           uint32_t *ret_index);
/* gn_data_ship (session_ops.h). */
int gn_session_tcp_ship(struct gn_session_tcp *r, const struct gn_area_ref *ref, const void *from,
                        uint64_t bytes);
/* gn_data_unship (session_ops.h). */
void gn_session_tcp_unship(void);
/* gn_data_land (session_ops.h). */
bool gn_session_tcp_land(struct gn_session_tcp *r, const struct gn_area_ref *ref, void *to,
                         uint64_t bytes);
void gn_session_tcp_landed(struct gn_session_tcp *r, const struct gn_area_ref *ref);
/* gn_data_pieces (session_ops.h). */
uint32_t gn_session_tcp_pieces(struct gn_session_tcp *r, uint32_t least, uint32_t most,
                               uint64_t piece_bytes);
/* gn_data_forget (session_ops.h). */
void gn_session_tcp_forget(struct gn_session_tcp *r, const void *from, uint64_t bytes);
/* The bytes are not needed any more, here or in the worker. */
void gn_session_tcp_free_pages(struct gn_session_tcp *r, uint32_t segment, uint64_t offset,
                               uint64_t bytes);
/*
 * This process has ended an event itself: a thread that waits for it may be reading. After the
 * event's end.
 */
void gn_session_tcp_nudge(struct gn_session_tcp *r);
/* Sends the records that have gathered. */
void gn_session_tcp_flush(struct gn_session_tcp *r);
/* Reads the socket, without waiting: for programs that poll instead of waiting. */
void gn_session_tcp_look(struct gn_session_tcp *r);

#endif
