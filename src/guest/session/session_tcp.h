/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_SESSION_SESSION_TCP_H
#define GN_GUEST_SESSION_SESSION_TCP_H

#include "guest/core/guest_core.h"

/*
 * A session whose vGPU is on another machine. Its memory has the layout of a shared one and is this
 * process's own: what is sent is described by records (link/record.h), and what comes is entered
 * into the same response slots, event table and data area that a worker here would have written. So
 * nothing above knows the difference but for the functions below.
 *
 * Reading the connection is a role: whichever thread waits takes it and tells the others what is
 * theirs, so that a call crosses no threads; the session's watcher thread has it when nobody waits.
 * Sending is done by whoever has something to send.
 */
struct gn_session_tcp;

/* NULL: the session is not a tcp session, or is one no more. */
static inline struct gn_session_tcp *gn_session_tcp_of(struct gn_session *s)
{
    return atomic_load_explicit(&s->tcp, memory_order_acquire);
}

/* Makes the segments that attach did not bring. */
int gn_session_tcp_make_memory(struct gn_attached *a);
/* Connects with the worker. From here on waits of this session go through it. */
int gn_session_tcp_open(struct gn_session *s, const struct gn_attached *a, struct gn_error *err);
/*
 * Not connected yet, of a session whose vGPU is about to go to another machine (ring_relay.c):
 * waits do not go through it, since who waits may have begun before; the watcher reads.
 */
int gn_session_tcp_new(struct gn_session *s, struct gn_session_tcp **ret);
/* One that nothing has come of; or of a session that shares its memory now. */
void gn_session_tcp_free(struct gn_session_tcp *r);
/*
 * Before whatever goes straight to the connection, and as long as what has been shipped is to be
 * sent or what lands is to come: all of it, or nothing. NULL: the ring is to be used. May be
 * nested. Any thread.
 */
struct gn_session_tcp *gn_session_tcp_enter(struct gn_session *s);
void gn_session_tcp_leave(struct gn_session_tcp *r);
/*
 * From now on nobody enters any more, and who waits does not read: this is one as
 * gn_session_tcp_new makes them. Then, whether anybody is in yet.
 */
void gn_session_tcp_turn(struct gn_session_tcp *r);
bool gn_session_tcp_has_turned(struct gn_session_tcp *r);
bool gn_session_tcp_is_empty(struct gn_session_tcp *r);
/* Tells of the data segments that there are already, and from then on of more. They fit: nothing
 * else has been sent. */
void gn_session_tcp_begin(struct gn_session_tcp *r, uint32_t grace_ms);
/* A message of the ring, with what goes along. What lies in the data area stays there until its
 * answer, or its event, has come; else
 * (`copied`) until this returns. 0 or -errno. Waits while too much is under way. */
struct gn_passed {
    struct gn_area_ref ref;
    uint64_t bytes;
    bool copied;
};
#define GN_MAX_PASSED 12u
int gn_session_tcp_pass(struct gn_session_tcp *r, const struct gn_msg *msg, uint32_t n_bytes,
                        const struct gn_passed *all, uint32_t n);
/* Nothing follows, before the move of this number, but what has been passed. */
void gn_session_tcp_say_paused(struct gn_session_tcp *r, uint32_t number);
/* The vGPU is in a file, or has a worker (NULL): gn_link's on_stop, whose ctx is the session. */
void gn_session_tcp_stop_word(void *session, const struct gn_link_stopped *stop);
/* The watcher's part while the vGPU is on another machine. True: the session is another kind now,
 * and its tcp has been freed. */
bool gn_session_tcp_watch(struct gn_session *s);
/* The link leads to a gantryd of this machine now, which has the vGPU: nothing more goes this way.
 * The lock is held. */
void gn_session_tcp_go_home(struct gn_session_tcp *r);
/* Held by whoever uses the session's link. */
pthread_mutex_t *gn_session_tcp_link_lock(struct gn_session_tcp *r);
/* The link leads to another gantryd now, which has the vGPU (follow_migration.c): from now on its
 * worker is talked to. The lock is held. */
void gn_session_tcp_go_over(struct gn_session_tcp *r);
/* The program ends: gantryd need not wait for it. Never waits. */
void gn_session_tcp_bye(struct gn_session_tcp *r);
/* Cut off, if the program has closed the connection. Any thread; never waits. */
void gn_session_tcp_look_at_descriptors(struct gn_session_tcp *r);
/* In a forked child: closes what it inherited. */
void gn_session_tcp_forked(struct gn_session_tcp *r);

/* Sends a message with its inputs; waits only while too much is under way. 0, or the API's
 * result_lost or result_no_memory. */
int gn_session_tcp_send(struct gn_session_tcp *r, struct gn_call *c);
/* A data segment of this process's, mapped, made known to the worker. */
int gn_session_tcp_segment(struct gn_session_tcp *r, uint64_t bytes, struct gn_segment *ret,
                           uint32_t *ret_index);
/*
 * The bytes at `ref` are what the calling thread's next message is about. They are taken from
 * `from`, memory of the program's, or, when that is NULL, from the area itself, and must stay there
 * until the command is over.
 */
int gn_session_tcp_ship(struct gn_session_tcp *r, const struct gn_area_ref *ref, const void *from,
                        uint64_t bytes);
/*
 * What the worker writes at `ref` comes to `to` instead, memory of the program's, until
 * gn_session_tcp_landed. False: it comes to the area, as ever. A loss ends the writing there before
 * any wait tells of it.
 */
bool gn_session_tcp_land(struct gn_session_tcp *r, const struct gn_area_ref *ref, void *to,
                         uint64_t bytes);
void gn_session_tcp_landed(struct gn_session_tcp *r, const struct gn_area_ref *ref);
/* How many pieces of so many bytes keep the way to the worker full. */
uint32_t gn_session_tcp_pieces(struct gn_session_tcp *r, uint32_t least, uint32_t most,
                               uint64_t piece_bytes);
/* The command that they were for has failed: nobody is to look at them any more. */
void gn_session_tcp_forget(struct gn_session_tcp *r, const void *from, uint64_t bytes);
/* Nobody needs what lies there any more, here or in the worker. */
void gn_session_tcp_free_pages(struct gn_session_tcp *r, uint32_t segment, uint64_t offset,
                               uint64_t bytes);
/* This process has ended an event by itself: a thread that waits for it may be reading. After the
 * event's end. */
void gn_session_tcp_nudge(struct gn_session_tcp *r);
/* Pushes on what waits to be sent. */
void gn_session_tcp_flush(struct gn_session_tcp *r);
/* Takes in what has come, without waiting: for programs that ask again and again instead of
 * waiting. */
void gn_session_tcp_look(struct gn_session_tcp *r);

#endif
