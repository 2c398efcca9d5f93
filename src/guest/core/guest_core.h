/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_CORE_H
#define GN_GUEST_CORE_H

#include "base/list.h"
#include "guest/core/area.h"
#include "guest/core/call.h"
#include "link/link.h"
#include "shm/event_table.h"
#include "shm/session_layout.h"
#include "wire/wire.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A program's side of a vGPU, for any API: the session, handles, the data area, calls. Any thread
 * of the program may be in here at any time. Nothing is printed except by report.h. Lock order: an
 * API's own locks, then session->ids_lock, area->lock, slabs. No lock is held while waiting for a
 * vGPU.
 */

#define GN_OBJECT_MAGIC 0x6e67u
#define GN_MAX_KINDS    16

struct gn_session;

/* Every handle that a program sees begins so; the first two words belong to the ICD loader
 * (docs/icd.md). */
struct gn_object {
    const void *dispatch;
    void *dispatch_data;
    uint16_t magic; /* GN_OBJECT_MAGIC while it lives */
    uint16_t kind;
    uint32_t epoch; /* gn_epoch when it was made */
    uint64_t id;
    struct gn_session *session;
    struct gn_object *parent; /* holds a reference on it */
    _Atomic uint32_t n_refs;  /* the program's, and those of its children */
    bool rooted;              /* a platform or root device: never counted, never freed */
    bool known;               /* the vGPU has it: its end must be told */
};

/* Goes up in every forked child: a handle of the parent's is no handle there. */
#define GN_FIRST_EPOCH 1u
extern _Atomic uint32_t gn_epoch;

/*
 * A platform or root device of the parent's, in a forked child, or of a session that is lost.
 * Loaders and programs keep these for as long as they live, so the same handle must come to stand
 * for another session of this process. False: it can't.
 */
extern bool (*gn_root_revive)(struct gn_object *o);

/* The object behind a handle that a program gave, or NULL: no object, another kind, another
 * process's. */
static inline void *gn_object_of(const void *handle, uint16_t kind)
{
    struct gn_object *o = (struct gn_object *)handle;
    if (!o || o->magic != GN_OBJECT_MAGIC || o->kind != kind)
        return NULL;
    if (__atomic_load_n(&o->epoch, __ATOMIC_ACQUIRE) !=
            atomic_load_explicit(&gn_epoch, memory_order_relaxed) &&
        !(o->rooted && gn_root_revive(o)))
        return NULL;
    return o;
}

/* The object, and of the same session. */
static inline void *gn_object_of_session(const struct gn_object *beside, const void *handle,
                                         uint16_t kind)
{
    struct gn_object *o = gn_object_of(handle, kind);
    return o && o->session == beside->session ? o : NULL;
}

static inline uint64_t gn_id_of(const void *handle)
{
    return handle ? ((const struct gn_object *)handle)->id : 0;
}

/* A new object with one reference, its own id, and a reference on its parent; zero behind struct
 * gn_object. NULL: no memory, or 2^20 of them are there. */
struct gn_object *gn_object_new(struct gn_session *s, uint16_t kind, struct gn_object *parent);
/* Unmakes one that the vGPU never came to know. */
void gn_object_drop(struct gn_object *o);
static inline void gn_object_ref(struct gn_object *o)
{
    if (!o->rooted)
        atomic_fetch_add_explicit(&o->n_refs, 1, memory_order_relaxed);
}
/* The last reference ends it: the API releases its parts, the vGPU is told, the parent released. */
void gn_object_unref(struct gn_object *o);

/* Does this address lie where objects are made? For values that may be a handle or any number. */
bool gn_handle_known(const void *handle);

/* ---- events: indices in the session's table */

/* An armed entry, or GN_NO_EVENT. */
uint32_t gn_event_index_alloc(struct gn_session *s);
/* When nobody refers to it any more; it is used again once it is terminal. */
void gn_event_index_put(struct gn_session *s, uint32_t index);

/* ---- the session */

/* Between the core's own files. */
int gn_area_init(struct gn_session *s, struct gn_segment first);
/* Reserved addresses, which both sides have agreed on; once. */
void gn_area_set_window(struct gn_session *s, void *base, uint64_t bytes);
void gn_handles_before_fork(void);
void gn_handles_after_fork(void);

struct gn_guest_api {
    const char *name;
    uint16_t n_kinds;
    size_t
        object_bytes[GN_MAX_KINDS]; /* of the API's struct of each kind, struct gn_object first */
    uint16_t destroy_op_kind_event; /* the kind whose ids are event indices: made and ended without
                                       a message */
    /* The object's last reference is gone: releases its parts. */
    void (*gone)(struct gn_object *o);
    /* Tells the vGPU. */
    void (*destroy)(struct gn_session *s, uint64_t id, uint16_t kind);
    /* On the session's watcher thread, signals blocked: a frame came; a loss was declared (frame
     * NULL). */
    void (*on_frame)(struct gn_session *s, uint16_t op, const void *payload, uint32_t n);
    /* Completes calls whose commands may have ended. Any thread. */
    void (*settle)(struct gn_session *s);
    /*
     * For a message (ring_relay.c): offsets of the gn_spans of its inputs, up to a 0; and the other
     * data that goes along. False: none. *ret_bytes 0: up to the end of its block.
     */
    const uint16_t *(*inputs)(uint16_t op);
    bool (*brings)(const void *message, uint32_t n_bytes, struct gn_area_ref *ret_ref,
                   uint64_t *ret_bytes);
    /*
     * Results of calls and ends of events when the vGPU is lost; results when memory is out. Both
     * negative.
     */
    int32_t result_lost, result_no_memory;
};

struct gn_in_process;
struct gn_session_ops;
struct gn_session_tcp;

/* What a session has received about a migration to another gantryd. */
enum gn_migration_note {
    GN_NOTE_LEAVE,    /* the source has saved everything: the program may decide */
    GN_NOTE_OFF,      /* the source has called it off */
    GN_NOTE_QUIESCED, /* over tcp: the worker has sent its last record before this migration */
    GN_NOTE_PAUSE,    /* over tcp: the worker wants no more messages before this migration */
    GN_N_NOTES
};

/* The program's part in migrations and checkpoints (migrate/follow_migration.h). */
struct gn_session_migration_ops {
    /* Records what the source's worker or gantryd has sent. The thread that reads the connection.
     */
    void (*note)(struct gn_session *s, enum gn_migration_note what, uint32_t number);
    /*
     * gantryd or the worker has hung up: waits for the end of a migration in progress. True:
     * another gantryd has the vGPU now; said once for each migration. The watcher.
     */
    bool (*await_decision)(struct gn_session *s);
    /*
     * The vGPU is in a checkpoint: until it is restored, perhaps by another gantryd, the program's
     * messages wait. Takes worker_end, the worker's end of the session's socket. True: a worker has
     * the vGPU again. The watcher.
     */
    bool (*await_restored)(struct gn_session *s, const struct gn_link_stopped *stop,
                           int worker_end);
};

struct gn_session {
    /* set once */
    const struct gn_guest_api *api;
    uint32_t epoch;
    /* Exchanged under link_lock. NULL: the vGPU is in a checkpoint, and no gantryd is there. */
    struct gn_link *link;
    /* Where the vGPU is: session_ops.h has the table of states. */
    const struct gn_session_ops *_Atomic ops;
    struct gn_session_tcp *_Atomic tcp;       /* of tcp and relay; else NULL */
    struct gn_in_process *_Atomic in_process; /* of in-process */
    struct gn_session_tcp
        *turned; /* a former tcp; threads that waited by its hook may look at it */
    /* How many uses of shared buffers go on without a message. homes_shut: no more may begin, since
     * the vGPU is about to leave this machine, or has left. */
    _Atomic uint32_t n_at_home;
    _Atomic bool homes_shut;
    /* The vGPU was on another machine and shares this process's memory again: for good, but not the
     * buffers that it shared before (ring_relay.c). */
    _Atomic bool was_far;
    int socket;
    int epoll_fd; /* the watcher's, while the vGPU is on this machine; -1 */
    uint32_t vgpu_id;
    uint32_t platform; /* gantryd's number for it, when it attached */
    struct gn_segment ring_segment, event_segment;
    struct gn_session_view view;
    struct gn_event_entry *events;
    struct gn_ring_producer requests;
    struct gn_replies replies;
    struct gn_waiter waiter; /* of waits for events; set by the API at attach */
    struct gn_lost lost;
    const char *_Atomic lost_why; /* when the program has brought it about; set before `lost` */
    _Atomic bool loss_told;
    struct gn_area area;
    pthread_mutex_t link_lock;   /* one control request at a time */
    pthread_mutex_t socket_lock; /* one frame at a time */
    pthread_mutex_t folders_lock;
    struct gn_list folders; /* folders_lock: of the builds that go on */
    pthread_mutex_t ids_lock;
    uint32_t *free_ids, n_free_ids, n_ids, ids_capacity; /* ids_lock */
    uint32_t n_roots, *generations; /* ids_lock; the ids of platforms and root devices */
    pthread_mutex_t events_lock;
    uint32_t *free_events, n_free_events, n_events, events_capacity; /* events_lock */
    uint32_t *zombies, n_zombies,
        first_zombie; /* events_lock: a ring of events_capacity, let go before they ended */
    void *detail;     /* the API's */
    /* A migration to another gantryd (follow_migration.c). */
    const struct gn_session_migration_ops *migration; /* set once */
    struct gn_link *to; /* link lock: with the other one, from the claim to the decision; NULL */
    char address[GN_LINK_ADDRESS_BYTES]; /* link lock: of the one that it lives at; "": where it has
                                            attached */
    pthread_mutex_t moving_lock;         /* innermost */
    pthread_cond_t moving_wake;
    _Atomic int turn_fd; /* an eventfd, from the first such move on: the watcher is to look at the
                            link anew; -1 */
    struct gn_moving *moving;        /* moving_lock, as the rest: the one that goes on; NULL */
    uint32_t move_notes[GN_N_NOTES]; /* of each, the number of the latest migration; 0 */
    struct gn_relay
        *relay; /* reads the ring while the vGPU is on another machine; NULL: none, or not yet */
    uint32_t relay_pause;           /* of the move for which it is to stand still; 0: of none */
    bool move_deserted;             /* the source has gone */
    uint32_t n_moves, n_moves_seen; /* to another gantryd; of which the watcher knows */
};

/* The result of a call whose send has ended with rc, which is not 0. */
static inline int32_t gn_session_failure(const struct gn_session *s, int rc)
{
    return rc == -EPIPE ? s->api->result_lost : s->api->result_no_memory;
}
/* Platforms of the daemon that this process is to use; -errno when there is none. */
int gn_session_platforms(struct gn_platform_list *ret);
static inline bool gn_session_lost(const struct gn_session *s)
{
    return gn_lost_is(&s->lost);
}
/*
 * Before reading or writing in a buffer's home. False: the home is not the vGPU's memory, or will
 * not be soon.
 */
static inline bool gn_session_enter_home(struct gn_session *s)
{
    /* Either this thread sees homes_shut, or the thread that sets it sees n_at_home. */
    atomic_fetch_add_explicit(&s->n_at_home, 1, memory_order_seq_cst);
    if (!atomic_load_explicit(&s->homes_shut, memory_order_seq_cst))
        return true;
    atomic_fetch_sub_explicit(&s->n_at_home, 1, memory_order_release);
    return false;
}
static inline void gn_session_leave_home(struct gn_session *s)
{
    atomic_fetch_sub_explicit(&s->n_at_home, 1, memory_order_release);
}
/*
 * The same for a caller that needs the home: waits while a migration is undecided. False: the vGPU
 * is on another machine.
 */
bool gn_session_await_home(struct gn_session *s);
/* The program's wishes from its environment; 0: as for the tenant. */
void gn_session_wishes(uint32_t *ret_weight, uint64_t *ret_memory_bytes);
/* Counts how data moved where the vGPU can't tell: without a message, by one copy made here or by
 * none; or by a transfer of the vGPU's into memory that the program uses in place. */
enum gn_copied { GN_COPIED_ONCE, GN_COPIED_NEVER, GN_COPIED_BY_MAP };
static inline void gn_session_copied(struct gn_session *s, enum gn_copied how)
{
    struct gn_session_counts *c = s->view.counts;
    _Atomic uint64_t *const counts[] = {[GN_COPIED_ONCE] = &c->copies_mapped,
                                        [GN_COPIED_NEVER] = &c->copies_bypass,
                                        [GN_COPIED_BY_MAP] = &c->maps};
    atomic_fetch_add_explicit(counts[how], 1, memory_order_relaxed);
}
/* Descriptors for the worker, under a number that a later request names. Stay the caller's. */
int gn_session_send_fds(struct gn_session *s, uint16_t op, uint32_t number, const int *fds, int n);
/* A number for such a request. */
uint32_t gn_session_number(void);

/* ---- include folders of builds */

#define GN_FOLDERS_MAX 64u
struct gn_folders;

/* The working directory of now; NULL when there is no memory: then a build includes nothing. */
struct gn_folders *gn_folders_open(struct gn_session *s);
/* A folder as the build's options name it. */
void gn_folders_add(struct gn_folders *f, const char *path);
/* From now on files are given out. Their number, 0: there are none; and the names of the folders,
 * for the vGPU. */
uint32_t gn_folders_offer(struct gn_folders *f, const char **ret_names, size_t *ret_n);
void gn_folders_close(struct gn_folders *f);
/* The answer to a GN_SESSION_WANT; *ret_fd: the file, the caller's, or -1. */
void gn_folders_look(struct gn_session *s, const void *payload, uint32_t n,
                     struct gn_session_file *ret, int *ret_fd);
/* The watcher thread: a GN_SESSION_WANT came. */
void gn_folders_answer(struct gn_session *s, uint32_t seq, const void *payload, uint32_t n);

#endif
