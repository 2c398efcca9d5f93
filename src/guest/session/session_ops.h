/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_SESSION_SESSION_OPS_H
#define GN_GUEST_SESSION_SESSION_OPS_H

#include "guest/core/guest_core.h"

/*
 * How a program's session reaches its vGPU: one table for each place where the vGPU may be. s->ops
 * is the only word that says which it is now. Code outside the session's folders calls the
 * functions below, or asks for a property; it never asks for the kind.
 *
 *     ops         the vGPU is               a message                          next
 *     shm         in a worker here          goes into the ring                 in-process, relay
 *     in-process  in this process           is served by the calling thread    shm
 *     tcp         on another machine,       is sent by the calling thread      relay
 *                 since the attach
 *     relay       on another machine        goes into the ring; a thread of    shm
 *                                           this process sends it
 *
 * From shm to in-process: gn_in_process_adopt, when the vGPU is loaded here. From in-process to
 * shm: the first message that finds that a worker has the vGPU. From shm to relay: gn_relay_begin.
 * From tcp to relay: gn_relay_turn, before the vGPU comes to a worker here. From relay to shm:
 * gn_relay_end. A session that is lost keeps its table: gn_session_lost. While s->link is NULL, the
 * vGPU is in a checkpoint and no gantryd is there (stopped.c).
 */
struct gn_session_ops {
    const char *name;

    /* ---- properties */

    /* The vGPU maps the segments of this process: buffers can have homes there, and windows. Else
     * this process has copies of its own. */
    bool shares_memory;
    /* The vGPU's process prints to descriptors of this process's output. */
    bool prints_to_descriptors;
    /* The vGPU can move to another machine (ring_relay.c). */
    bool may_relay;
    /* The answer is in its slot when send returns. */
    bool answers_at_once;

    /* ---- attach */

    /* Makes the segments that gantryd has not sent. 0 or -errno. NULL: it has. */
    int (*make_memory)(struct gn_attached *a);
    /* Connects, once the segments are mapped. 0 or -errno. NULL: nothing to do. */
    int (*open)(struct gn_session *s, const struct gn_attached *a, struct gn_error *err);

    /* ---- messages. Any thread. NULL: nothing to do, or for send: GN_BY_RING */

    /* 0, the API's result_lost or result_no_memory, or GN_BY_RING: put it into the ring. */
    int (*send)(struct gn_session *s, struct gn_call *c);
    /* Sends the records that have gathered. */
    void (*flush)(struct gn_session *s);
    /* Reads the socket, without waiting. */
    void (*look)(struct gn_session *s);
    /*
     * This process has ended an event itself: wakes threads that wait for records. After the
     * event's end.
     */
    void (*event_ended)(struct gn_session *s);

    /* ---- the data area */

    /*
     * Another data segment; s->link_lock is held. 0 or -errno: -EAGAIN: try again, the vGPU is
     * between two workers; -EBADF: the program has closed the descriptors. *ret_counted: the other
     * side has counted the segment. ret->base is NULL when the segment is not mapped yet.
     */
    int (*add_segment)(struct gn_session *s, uint64_t bytes, struct gn_segment *ret,
                       uint32_t *ret_index, bool *ret_counted, struct gn_error *err);
    /* Nobody needs the bytes any more, on either side. s->link_lock is held. NULL: nothing to do.
     */
    void (*free_pages)(struct gn_session *s, uint32_t segment, uint64_t offset, uint64_t bytes);
    const struct gn_data_ops *data; /* NULL: the memory is shared */

    /* ---- the watcher, and the ends */

    /* The watcher's part until the vGPU is on this machine again: true. False: it is lost. NULL:
     * the watcher reads the session's socket. */
    bool (*watch)(struct gn_session *s);
    /* Cuts the session off when the program has closed its connection. Any thread; never waits.
     * NULL: the session's socket tells. */
    void (*look_at_descriptors)(struct gn_session *s);
    /* The lock of s->link. */
    pthread_mutex_t *(*link_lock)(struct gn_session *s);
    /* s->link leads to another gantryd now, which has the vGPU. The lock of the link is held. */
    void (*link_changed)(struct gn_session *s);
    /*
     * In a forked child: closes the inherited descriptors. cut_off: those without an inode may be
     * the program's own. NULL: nothing to do.
     */
    void (*forked)(struct gn_session *s, bool cut_off);
    /* The program ends: gantryd need not wait for it. Never waits. NULL: gantryd notices. */
    void (*bye)(struct gn_session *s);
};

#define GN_BY_RING 1

/*
 * Data that goes beside messages, straight from and to the program's memory, when the data area is
 * not shared. Between begin and end, on one thread; may be nested.
 */
struct gn_data_ops {
    /* All that follows until `end` goes this way, or nothing does: false. */
    bool (*begin)(struct gn_session *s);
    void (*end)(struct gn_session *s);
    int (*ship)(struct gn_session *s, const struct gn_area_ref *ref, const void *from,
                uint64_t bytes);
    void (*unship)(struct gn_session *s);
    bool (*land)(struct gn_session *s, const struct gn_area_ref *ref, void *to, uint64_t bytes);
    void (*landed)(struct gn_session *s, const struct gn_area_ref *ref);
    void (*forget)(struct gn_session *s, const void *from, uint64_t bytes);
    uint32_t (*pieces)(struct gn_session *s, uint32_t least, uint32_t most, uint64_t piece_bytes);
};

extern const struct gn_session_ops gn_session_shm, gn_session_in_process, gn_session_tcp_direct,
    gn_session_relay;

static inline const struct gn_session_ops *gn_session_ops(struct gn_session *s)
{
    return atomic_load_explicit(&s->ops, memory_order_acquire);
}

static inline bool gn_session_shares_memory(struct gn_session *s)
{
    return gn_session_ops(s)->shares_memory;
}

static inline void gn_session_flush(struct gn_session *s)
{
    const struct gn_session_ops *ops = gn_session_ops(s);
    if (ops->flush)
        ops->flush(s);
}

/* For programs that ask again and again instead of waiting. */
static inline void gn_session_look_for_news(struct gn_session *s)
{
    const struct gn_session_ops *ops = gn_session_ops(s);
    if (ops->look)
        ops->look(s);
}

static inline void gn_session_event_ended(struct gn_session *s)
{
    const struct gn_session_ops *ops = gn_session_ops(s);
    if (ops->event_ended)
        ops->event_ended(s);
}

/* ---- data beside messages. The functions below are called between begin and end, when begin has
 * returned true */

static inline bool gn_data_begin(struct gn_session *s)
{
    const struct gn_data_ops *data = gn_session_ops(s)->data;
    return data && data->begin(s);
}

/* begun: the result of begin. */
static inline void gn_data_end(struct gn_session *s, bool begun)
{
    if (begun)
        gn_session_ops(s)->data->end(s);
}

/*
 * The bytes at `ref` belong to the calling thread's next message. They are read from `from`, memory
 * of the program's, or, when that is NULL, from the area, and must stay there until the command is
 * over. 0 or -errno.
 */
static inline int gn_data_ship(struct gn_session *s, const struct gn_area_ref *ref,
                               const void *from, uint64_t bytes)
{
    return gn_session_ops(s)->data->ship(s, ref, from, bytes);
}

/*
 * Bytes that the vGPU writes at `ref` go to `to`, memory of the program's, until gn_data_landed.
 * False: they go to the area. A loss ends the writing there before any wait reports it.
 */
static inline bool gn_data_land(struct gn_session *s, const struct gn_area_ref *ref, void *to,
                                uint64_t bytes)
{
    return gn_session_ops(s)->data->land(s, ref, to, bytes);
}

static inline void gn_data_landed(struct gn_session *s, const struct gn_area_ref *ref)
{
    gn_session_ops(s)->data->landed(s, ref);
}

/* The command of the bytes has failed: they are not read any more. */
static inline void gn_data_forget(struct gn_session *s, const void *from, uint64_t bytes)
{
    gn_session_ops(s)->data->forget(s, from, bytes);
}

/* How many pieces of so many bytes keep the connection busy; between least and most. */
static inline uint32_t gn_data_pieces(struct gn_session *s, uint32_t least, uint32_t most,
                                      uint64_t piece_bytes)
{
    return gn_session_ops(s)->data->pieces(s, least, most, piece_bytes);
}

/*
 * The message is not sent: the data that was shipped for it belongs to no other. The thread that
 * has shipped, before gn_data_end; without data it does nothing.
 */
static inline void gn_data_unship(struct gn_session *s)
{
    const struct gn_data_ops *data = gn_session_ops(s)->data;
    if (data)
        data->unship(s);
}

/* ---- between attach.c, core/session.c and the kinds of session */

/* Sets all fields that do not depend on the attach. */
void gn_session_init(struct gn_session *s, const struct gn_guest_api *api,
                     const struct gn_session_migration_ops *migration,
                     const struct gn_session_ops *ops);
/* Starts the watcher; from now on a fork and the process's end know the session. 0 or -errno. */
int gn_session_start(struct gn_session *s);
/* Held by `bye`, for all open sessions. */
void gn_sessions_lock(void);
void gn_sessions_unlock(void);

#endif
