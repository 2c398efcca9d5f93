/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_SESSION_SESSION_TCP_INTERNAL_H
#define GN_GUEST_SESSION_SESSION_TCP_INTERNAL_H

#include "guest/session/session_tcp.h"

#include "link/stream_in.h"
#include "link/stream_out.h"

/*
 * Shared by session_tcp.c (records, and the threads that read and send them) and
 * session_tcp_watch.c (connections, the watcher).
 */
#define MAX_LANDINGS 128u
/* How long after a read by a waiting thread the watcher leaves the socket alone. */
#define GN_REMOTE_LEASE_NS 1000000u
#define MAX_WANTS                                                                                  \
    256u /* files asked for at once: builds over there have as many threads at most                \
          */

struct gn_session_tcp {
    struct gn_wait_hook hook;
    struct gn_session *s;
    uint64_t grace_ns;
    int epoll_fd, wake_fd, flush_fd, lease_fd;
    int nudge_fd;             /* polled by a reading thread, not by the watcher */
    pthread_mutex_t dialling; /* lock of the session's link */
    struct gn_stream_out out;
    _Atomic uint64_t clock_ahead; /* the worker's clock minus this machine's */
    _Atomic uint64_t trip_ns;     /* round trip, when last measured */
    pthread_mutex_t landings_lock;
    struct landing {
        uint32_t segment; /* GN_NO_BLOCK: unused */
        uint64_t offset, bytes;
        char *to;
    } landings[MAX_LANDINGS];                /* landings_lock */
    pthread_cond_t landings_wake;            /* landings_lock */
    const struct landing *_Atomic receiving; /* the landing of the record that is being read;
                                                landings_lock to begin; NULL: none */
    /* the thread that has the role */
    struct gn_tcp tcp;
    struct gn_stream_in in;
    struct gn_spin_habit habit;
    /* any thread; sequentially consistent, so that no thread parks while none reads */
    _Alignas(64) _Atomic uint32_t role;
    _Atomic uint32_t n_parked, baton;
    _Atomic uint32_t n_inside; /* threads that send and land directly now */
    _Atomic uint32_t n_hooked;
    _Atomic bool turned;      /* no more threads begin to */
    _Atomic uint32_t n_turns; /* reads by waiting threads; the thread that has the role counts */
    _Atomic bool broken;
    _Atomic bool cut_off;      /* the program has closed its descriptors */
    _Atomic bool leaving;      /* the program ends, and gantryd has been told */
    _Atomic bool gone_over;    /* to another gantryd; its worker is not connected yet */
    _Atomic bool gone_home;    /* to a gantryd of this machine: the connection is over */
    _Atomic bool room_watched; /* the reading thread also waits for room in the socket */
    _Atomic bool flush_armed, lease_armed;
    uint32_t n_segments; /* link_lock */
    /*
     * The vGPU is in a checkpoint, or gantryd says so (session_tcp_stopped.c). `dialling`, except
     * the flags.
     */
    _Atomic bool stopped, ask_due; /* ask gantryd whether the vGPU waits there */
    struct gn_link_stopped stop;
    struct gn_platform platform; /* by its names */
    /*
     * Files that a build of the worker includes: requests are read by any reader, and answered by
     * the watcher.
     */
    pthread_mutex_t wants_lock;
    struct gn_list wants;         /* wants_lock */
    uint32_t n_wants;             /* wants_lock */
    _Atomic bool answers_waiting; /* for room */
    struct want *answering;       /* the watcher's */
};

struct want {
    struct gn_list link;
    uint32_t seq, n;
    /* once it is being answered */
    bool begun;
    int fd;
    uint64_t at;
    struct gn_session_file file;
    char payload[];
};

/* Sets a timer. */
void gn_session_tcp_arm(int timer, uint64_t ns);
/* The role of reading. False: another thread has it. */
bool gn_session_tcp_acquire_role(struct gn_session_tcp *r);
/* Passes it on to a thread that waits for it. */
void gn_session_tcp_leave_role(struct gn_session_tcp *r);
/* All sleeping threads look again. */
void gn_session_tcp_wake_all(struct gn_session_tcp *r);
/* The connection is broken: the watcher makes a new one. */
void gn_session_tcp_broke(struct gn_session_tcp *r);
/*
 * The program has closed descriptors of the session: it is lost, and the watcher may sleep for
 * ever. Any thread.
 */
void gn_session_tcp_cut_off(struct gn_session_tcp *r);
/* The program ends or has cut the session off: no connection is made any more. */
static inline bool gn_session_tcp_is_over(struct gn_session_tcp *r)
{
    return atomic_load_explicit(&r->leaving, memory_order_seq_cst) ||
           atomic_load_explicit(&r->cut_off, memory_order_seq_cst);
}
/* The watcher, when ask_due is set. */
void gn_session_tcp_ask_stopped(struct gn_session_tcp *r);
/* The watcher, without a connection: until the vGPU has a worker again, or the program ends. */
void gn_session_tcp_await_restored(struct gn_session_tcp *r);
/* With the role, when the connection is not read any more: ends the record that was being read. */
void gn_session_tcp_dropped(struct gn_session_tcp *r);
extern const struct gn_in_ops gn_session_tcp_in_ops;
extern const struct gn_wait_hook gn_session_tcp_hook;

#endif
