/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_CORE_H
#define GN_VGPU_CORE_H

#include "base/list.h"
#include "link/frame.h"
#include "link/tcp.h"
#include "shm/counters.h"
#include "shm/event_table.h"
#include "shm/session_layout.h"
#include "vgpu/core/gate.h"
#include "vgpu/core/lease.h"
#include "vgpu/core/parts.h"
#include "vgpu/core/records.h"
#include "vgpu/core/turn.h"
#include "vgpu/session/session.h"
#include "vgpu/vgpu.h"
#include "wire/wire.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * A vGPU, for any API: the object table, pending commands, and the threads that serve them. The API
 * plugs in below (struct gn_vgpu_api); generated code fills the table of requests.
 *
 * Threads: the serving thread (session.h) receives, decodes, and admits commands; it alone creates
 * and destroys objects, but for the helper thread, which serves requests marked slow. A submit
 * thread a device hands commands to the driver when the serving thread cannot. The driver's own
 * threads report completions. The lease thread serves requests that need more memory than the lease
 * has, and may wait for gantryd.
 *
 * Long because every file of the folder works on these few structures.
 *
 * In passthrough the vGPU lives in its program, whose threads serve their own messages
 * (session_in_process.c).
 *
 * Lock order: `serving` (in a program), then device role, then vgpu->lock, then objects->lock. No
 * lock but a device's role is held over a call into the driver, since a driver may call back at
 * once.
 */
struct gn_vgpu;
struct gn_command;
struct gn_request;
struct gn_vgpu_tcp;
struct gn_vgpu_contents;

#define GN_OBJECT_CHUNK  1024u
#define GN_OBJECT_CHUNKS 4096u
#define GN_MAX_SEGMENTS  257u
#define GN_MAX_REFS      3u
#define GN_WRITES_ARGS   UINT32_MAX
#define GN_SPAN_PRIVATE  (UINT32_MAX - 1)

/* ---- objects */

struct gn_vobject {
    /* set once */
    struct gn_vgpu *vgpu;
    uint64_t id;
    uint16_t kind;
    void *driver;
    void *detail;           /* the API's, freed by its release */
    uint64_t charged_bytes; /* device memory taken from the lease for it; its release sees to it
                               that it goes back */
    /* any thread */
    _Atomic uint32_t n_refs; /* the table's, and each pending command's and slow request's */
    /* objects lock */
    struct gn_record_link *records, *last_record;
    struct gn_vobject **holds; /* by address, each once: gn_object_hold */
    uint32_t n_holds, holds_capacity;
    bool unsaveable; /* there was no memory for one, or it does not hold all: a program that
                        includes too much */
    bool given;      /* no request made it: a platform, a device */
    bool whole;      /* it has its detail and its record: others than its maker may look at it */
    struct gn_vobject *next_dead;
    /* the vGPU's lock */
    uint64_t last_walk; /* of released_objects.c that has seen it; the first is 1 */
};

struct gn_objects {
    struct gn_vobject *_Atomic *_Atomic chunks[GN_OBJECT_CHUNKS];
    uint32_t *generations[GN_OBJECT_CHUNKS]; /* the latest of each index: an older one is stale, a
                                                newer one a lie */
    pthread_mutex_t lock;
    struct gn_vobject *dead;               /* lock */
    struct gn_vobject *dead_behind_builds; /* lock: the builder's thread releases them */
    struct gn_vobject
        *aside; /* lock: during a load, objects whose index another has; found by their ids still */
    uint64_t last_serial; /* lock: of the records */
};

/* Puts an object under an id that the guest chose. NULL when the id is impossible or taken, or no
 * memory. */
struct gn_vobject *gn_object_put(struct gn_vgpu *v, uint64_t id, uint16_t kind, void *driver);
/* The same for objects that no request makes, at the start. */
bool gn_object_give(struct gn_vgpu *v, uint64_t id, uint16_t kind, void *driver);
/* With a reference, or NULL. *ret_lie is set when the id was never handed out: no honest guest
 * sends such a one. */
struct gn_vobject *gn_object_get(struct gn_vgpu *v, uint64_t id, uint16_t kind, bool *ret_lie);
void gn_object_remove(struct gn_vgpu *v, uint64_t id, uint16_t kind);
void gn_object_unref(struct gn_vobject *o);
/* A reference on an object that a list names without holding it; false when its end has begun. */
static inline bool gn_object_ref_if_held(struct gn_vobject *o)
{
    uint32_t n = atomic_load_explicit(&o->n_refs, memory_order_relaxed);
    while (n && !atomic_compare_exchange_weak_explicit(&o->n_refs, &n, n + 1, memory_order_acquire,
                                                       memory_order_relaxed))
        ;
    return n != 0;
}
/*
 * `other` lives as long as o does: the driver's object of o uses that of `other`, and so does the
 * program through o when it has no handle on `other` any more. Any thread that holds a reference on
 * both. 0 or -ENOMEM.
 */
int gn_object_hold(struct gn_vobject *o, struct gn_vobject *other);
/* Room for n objects more: gn_object_hold of the next n does not fail. 0 or -ENOMEM. */
int gn_object_reserve_holds(struct gn_vobject *o, uint32_t n);
/* The i-th object that o holds, without a reference; NULL: there are fewer. Any thread that holds a
 * reference on o. */
struct gn_vobject *gn_object_held(struct gn_vobject *o, uint32_t i);
/* The next one from *index on, without a reference; NULL: there is none. While nothing makes or
 * ends objects. */
struct gn_vobject *gn_object_next(struct gn_vgpu *v, uint32_t *index);
/* For a load: an index has been used up to this generation; an object of an earlier one, left from
 * before, is set aside. */
int gn_object_index_used(struct gn_vgpu *v, uint32_t index, uint32_t generation);
void gn_object_make_room(struct gn_vgpu *v, uint64_t id);
/* The load is over: releases the objects that it has set aside. */
void gn_objects_drop_aside(struct gn_vgpu *v);
/* Does a handle stand for it still? Any thread that holds a reference. */
bool gn_object_is_named(struct gn_vobject *o);
/* A thread of the vGPU's own says so once, and may then call the driver's releases. */
void gn_objects_own_thread(void);
/* The same for the thread that serves builds. */
void gn_objects_builder_thread(void);
/* Releases objects that the driver's threads have dropped. */
void gn_objects_bury(struct gn_vgpu *v);
/* The builder's thread: one of n_building is over; releases objects that waited for that. */
void gn_objects_built(struct gn_vgpu *v);

static inline void *gn_driver_of(const struct gn_vobject *o)
{
    return o ? o->driver : NULL;
}

/* ---- requests */

#define GN_REQUEST_MAX_OUTS 4u
#define GN_REQUEST_MAX_HELD 8u
#define GN_REQUEST_MAX_INS  6u

struct gn_build_includes;
struct gn_request {
    struct gn_vgpu *vgpu;
    const struct gn_request_class *class;
    struct gn_list link; /* in the helper's queue */
    uint32_t n_bytes;
    bool off_ring;  /* on the helper thread or the lease thread: it may wait */
    bool defer;     /* nothing has been done: to be served anew on the lease thread */
    bool fault;     /* sticky: the guest broke the protocol */
    bool no_memory; /* sticky: answered, and nothing done */
    bool answered;
    struct gn_area_ref brings; /* this data goes ahead of the answer, unless memory is shared */
    uint64_t brings_bytes;
    int32_t result;
    uint64_t charged_bytes; /* taken from the lease; the part that no object has got goes back at
                               the end */
    uint32_t n_outs, n_ins, n_held, n_arrays;
    struct {
        const struct gn_span *span;
        void *bytes;
    } outs[GN_REQUEST_MAX_OUTS],
        ins[GN_REQUEST_MAX_INS]; /* ins: private copies of what lay in the data area */
    struct gn_vobject *held[GN_REQUEST_MAX_HELD];
    struct {
        struct gn_vobject **objects;
        uint64_t n;
    } arrays[2];
    struct gn_record *record;   /* of the objects that it has made or changed; NULL: none yet */
    const unsigned char *whole; /* the bytes that inline spans name; more than `bytes` when a record
                                   is served again */
    bool anew;                  /* it is: nobody waits for its outputs */
    struct gn_build_includes
        *files; /* of the program's, that it has read; its record's, when it gets one */
    _Alignas(16) struct gn_list blobs; /* private memory, freed with the request */
    _Alignas(16) unsigned char bytes[GN_MSG_MAX_BYTES];
};

/* How a kind of request is served: one row of the generated table. */
struct gn_request_class {
    const char *name;
    uint32_t fixed_bytes;
    bool slow, quiet;
    bool brings;  /* a command that reads into its area */
    bool ordered; /* a command that, without a wait list, follows everything before it in its queue
                   */
    bool fence;   /* a command that everything after it in its queue follows */
    bool many; /* a command for which the driver runs many: the times of its event are not theirs */
    bool adds; /* a request that adds to an object: another one does not replace it */
    void (*serve)(struct gn_vgpu *, struct gn_request *);
    void (*admit)(struct gn_vgpu *, struct gn_command *);
    int32_t (*submit)(struct gn_vgpu *, struct gn_command *, void *queue, uint32_t n_waits,
                      void *const *waits, void **event);
    /*
     * The answer for a command that has to wait, since the driver judges it only when it gets it:
     * 0, or an error, and then the command is dropped. The serving thread, without a lock. NULL: 0.
     */
    int32_t (*judge)(struct gn_vgpu *, struct gn_command *);
    uint16_t key_at, key_bytes; /* for requests that change an object: the place of the key that
                                   names the changed part */
    uint16_t creates;           /* GN_KIND_*, 0: nothing */
    uint32_t writes; /* bit i: the command writes refs[i]; GN_WRITES_ARGS: its arguments tell */
    uint32_t n_parents;
    uint16_t parents[3]; /* offsets of the handles that an object is made from */
};

static inline const void *gn_request_message(const struct gn_request *r)
{
    return r->bytes;
}

void gn_request_init(struct gn_request *r, struct gn_vgpu *v);
/* Writes the outputs to where the guest wants them and wakes it. */
void gn_request_answer(struct gn_request *r);
void gn_request_fini(struct gn_request *r);

/* Decoding. Each fault is sticky; a handle of an object that is gone decodes as NULL, and the
 * driver judges that. */
struct gn_vobject *gn_request_object(struct gn_request *r, uint16_t kind, uint64_t id);
void *gn_request_objects(struct gn_request *r, uint16_t kind, const struct gn_span *span,
                         uint64_t n);
void *gn_request_in(struct gn_request *r, const struct gn_span *span, uint64_t bytes);
void *gn_request_string(struct gn_request *r, const struct gn_span *span);
void *gn_request_list(struct gn_request *r, const struct gn_span *span);
/*
 * No other key is in the list, which may be NULL: a driver might use the value of an unknown key as
 * a pointer.
 */
bool gn_list_knows(const void *list, const uint64_t *keys, size_t n);
void *gn_request_out(struct gn_request *r, const struct gn_span *span, uint64_t bytes);
/* A span that must name something. */
void gn_request_need(struct gn_request *r, const struct gn_span *span);
void *gn_request_area(struct gn_request *r, const struct gn_area_ref *ref, uint64_t bytes);
/* Private memory that lives as long as the request; NULL when there is none left. */
void *gn_request_alloc(struct gn_request *r, uint64_t bytes);
/* After decoding: true when the request is not to be served. */
bool gn_request_faulty(struct gn_request *r);
/*
 * Charges device memory for the objects that the request is about to make. False when there is
 * none, or when only gantryd can tell: then the request is served again, from its beginning, where
 * it may wait. Call it before anything is made.
 */
bool gn_request_charge(struct gn_request *r, uint64_t bytes);
/*
 * Registers the object of a creating request (NULL: none) under its id; the request's charge is the
 * object's from then on. Returns the result to answer.
 */
int32_t gn_request_made(struct gn_request *r, uint16_t kind, uint64_t id, void *driver,
                        int32_t result);
void gn_request_changed(struct gn_request *r, struct gn_vobject *o);

/* Multiplications of lengths that saturate: a length that does not fit never matches a span. */
static inline uint64_t gn_times(uint64_t a, uint64_t b)
{
    uint64_t product = UINT64_MAX;
    gn_mul_u64(a, b, &product);
    return product;
}

/* ---- commands */

enum gn_event_state { GN_EVENT_UNUSED, GN_EVENT_PENDING, GN_EVENT_GIVEN, GN_EVENT_OVER };

/* The vGPU's own view of an event; the shared table is never read back. Under vgpu->lock. */
struct gn_vevent {
    enum gn_event_state state;
    bool user;  /* the program sets it */
    bool begun; /* the driver has a part of its command */
    int32_t error;
    struct gn_command *producer; /* while GIVEN: holds the driver's event */
    struct gn_list
        blocked; /* struct gn_blocker: commands that wait for this one to be given or over */
    struct gn_list watches;
};

struct gn_blocker {
    struct gn_list link;
    struct gn_command *command;
    uint32_t event;
};

struct gn_vqueue {
    /* set once */
    struct gn_vobject *object;
    struct gn_vdevice *device;
    bool in_order, profiling; /* as the program sees it */
    bool measured;            /* the driver tells when its commands ran */
    uint32_t n_visits;        /* turn.c; vgpu->lock */
    struct gn_list link;      /* in the device's queues; ring thread, under vgpu->lock */
    /* vgpu->lock */
    struct gn_list pending;
    int32_t late_error;      /* of a command that no event shows; the next finish tells it */
    struct gn_command *last; /* last one given to the driver */
    /*
     * Commands that the driver has and whose ends are not reported to the program, in that order:
     * those with an event, and those that wait for commands of other queues.
     */
    struct gn_list open;
    bool telling; /* somebody tells the ends of `open`, and will tell those that come meanwhile */
    _Atomic uint32_t n_unflushed;
};

struct gn_vdevice {
    struct gn_vgpu *vgpu;
    uint32_t index;
    struct gn_list queues;     /* vgpu->lock */
    _Atomic uint32_t n_queues; /* their number, for checks without the lock */
    pthread_mutex_t role;      /* its holder submits */
    struct gn_turn turn;
    _Atomic bool dirty;        /* something may have become ready */
    bool blocks;               /* the driver holds its callers up: leave it to the thread. Role */
    uint32_t n_slow;           /* Role */
    uint32_t n_passes;         /* Role: passes over the queues */
    uint32_t n_short;          /* Role: launches in a row from which nothing was learned */
    _Atomic uint32_t n_parts;  /* parts of commands that the driver has */
    _Atomic bool part_waits;   /* something waits for the end of one */
    _Atomic uint32_t n_asking; /* threads that wait in gn_device_acquire */
    pthread_t thread;
    _Atomic uint32_t woken; /* a futex of this process's */
};

struct gn_command {
    struct gn_vgpu *vgpu;
    const struct gn_request_class *class;
    struct gn_vqueue *queue;
    struct gn_vobject *queue_object; /* the reference that keeps it, until the command is over */
    _Atomic uint32_t n_refs;
    /* vgpu->lock */
    struct gn_list link; /* in its queue's pending, then open */
    bool open, ended;
    uint32_t covers; /* commands of a turn that its end stands for; 0: the driver does not have it,
                        or nobody takes turns */
    int32_t end_error;
    uint32_t n_blockers;
    bool ordered, fence;
    int32_t doomed; /* an event that it waits for has failed */
    bool asked;     /* somebody waits for the driver's verdict */
    /* set at admission */
    bool fault, no_memory;
    struct gn_vobject *refs[GN_MAX_REFS];
    void **objects; /* of an array of handles: the driver's */
    struct gn_vobject **object_refs;
    uint32_t n_objects;
    uint32_t n_waits;
    struct gn_blocker *blockers; /* one a wait; those that wait are linked */
    /* Commands of its wait list that the driver has. `n_producers` until the driver has this one,
     * too; then `n_before`: their ends are told before its own, and the references are dropped. */
    uint32_t n_producers; /* vgpu->lock */
    uint32_t n_before;
    struct gn_command **producers;
    _Atomic bool told; /* the program has been told its end */
    void *area;
    struct gn_area_ref area_ref;
    uint64_t area_bytes;
    uint64_t batch;            /* vgpu->lock: bulk data that it waits for, a blocker; 0: none */
    struct gn_list batch_link; /* vgpu->lock */
    void *blobs[4];            /* private copies of what lay in the data area */
    uint64_t blob_bytes[4];
    uint32_t blob_spans[4]; /* where in bytes the span stands that names it */
    uint32_t n_blobs;
    /* the submitter */
    void *driver_event;
    uint64_t submit_ns;
    struct gn_cutting *cut;      /* it goes in parts; the role */
    bool teaches;                /* its end measures a launch of its kernel */
    bool followed;               /* its end marks the objects that it wrote */
    struct gn_event_times times; /* the thread that reports the end, before vgpu->lock */
    uint32_t n_bytes;
    _Alignas(16) unsigned char bytes[];
};

static inline void *gn_command_message(struct gn_command *c)
{
    return c->bytes;
}

void gn_command_ref(struct gn_command *c, uint32_t i, uint16_t kind, uint64_t id);
void gn_command_in(struct gn_command *c, struct gn_span *span, uint64_t bytes);
void gn_command_objects(struct gn_command *c, uint16_t kind, struct gn_span *span, uint64_t n);
void *gn_command_area(struct gn_command *c, const struct gn_area_ref *ref, uint64_t bytes);
const void *gn_command_bytes(const struct gn_command *c, const struct gn_span *span);

/* The last reference is gone: for gn_command_unref alone. */
void gn_command_free(struct gn_command *c);
static inline void gn_command_unref(struct gn_command *c)
{
    if (c && atomic_fetch_sub_explicit(&c->n_refs, 1, memory_order_acq_rel) == 1)
        gn_command_free(c);
}
/* Takes off one that is pending, and goes on elsewhere; the caller holds its queue. */
void gn_command_forget(struct gn_command *c);
/* Its event's place in the table that the program sees; NULL: it has none. */
struct gn_event_entry *gn_command_entry(const struct gn_command *c);
/* Its event's index, or GN_NO_EVENT. */
uint32_t gn_command_event(const struct gn_command *c);
/* Hands it, or a part of it, to the driver, after the driver's event `after` (NULL: none). The
 * role. */
int32_t gn_command_give(struct gn_vdevice *d, struct gn_command *c, uint64_t now_ns, void *after,
                        void **ret_event);
/* The driver has taken it, or a part: answers the program if it has asked. */
void gn_command_accepted(struct gn_command *c);
/* Submits c behind a command that the driver has. */
void gn_command_follow_locked(struct gn_command *c, struct gn_command *producer);
/* The ring thread: takes a command in, submits it when nothing keeps it. */
void gn_command_admit(struct gn_vgpu *v, const struct gn_request_class *class,
                      const unsigned char *bytes, uint32_t n_bytes, uint64_t batch);
/* All bulk data up to this batch is here. The thread that receives. */
void gn_commands_batch_came(struct gn_vgpu *v, uint64_t batch);
/*
 * Submits ready commands, or lets the device's thread do it. Any thread that holds no lock and is
 * not the driver's.
 */
void gn_device_pump(struct gn_vdevice *d);
void gn_device_wake(struct gn_vdevice *d);
/*
 * Takes the role for another purpose than to submit: the holder gives it up soon. 0 or -ETIMEDOUT.
 * By CLOCK_MONOTONIC.
 */
int gn_device_acquire(struct gn_vdevice *d, const struct timespec *until);
void gn_device_release(struct gn_vdevice *d);
/* Could some command go to the driver now? vgpu->lock. */
bool gn_device_has_ready_locked(const struct gn_vdevice *d);
/* The serving thread, before it waits: flushes the driver's queues. */
void gn_vgpu_flush(struct gn_vgpu *v);
/* The same, before it sleeps: parks the grants that it does not need. */
void gn_vgpu_rest(struct gn_vgpu *v);
/*
 * How long to hold a device that others wait for, in the hope of more commands; 0: no such device.
 */
uint64_t gn_vgpu_hold_ns(struct gn_vgpu *v);
/* After that: there was more, or not. */
void gn_vgpu_held(struct gn_vgpu *v, bool came);
/* A command's end, from the driver's thread or the submitter. Takes the submitter's reference. */
void gn_command_over(struct gn_command *c, int32_t error);
void gn_device_init(struct gn_vgpu *v, uint32_t index);
/* Their threads. */
int gn_devices_start(struct gn_vgpu *v);
struct gn_vqueue *gn_queue_new(struct gn_vgpu *v, struct gn_vobject *object, uint32_t device,
                               bool in_order, bool profiling, bool measured);
void gn_queue_free(struct gn_vqueue *q);

/* ---- events */

/* Under vgpu->lock; NULL when the index is outside the table or there is no memory. */
struct gn_vevent *gn_vevent_at(struct gn_vgpu *v, uint32_t index);
void gn_vevent_given_locked(struct gn_vevent *e, struct gn_command *producer);
/* *told gets the watches to tell, after the lock is gone. */
void gn_vevent_over_locked(struct gn_vevent *e, int32_t error, struct gn_list *told);
void gn_vevent_told(struct gn_vgpu *v, struct gn_list *told, int32_t error);
void gn_vevent_submitted(struct gn_vgpu *v, uint32_t index);
int gn_user_event_new(struct gn_vgpu *v, uint32_t index);
int gn_user_event_set(struct gn_vgpu *v, uint32_t index, int32_t status);
/* Tells the program on its session socket when the event gets to `phase`. */
int gn_event_watch(struct gn_vgpu *v, uint32_t index, int32_t phase, uint64_t cookie);

/* ---- the API below */

struct gn_vgpu_api {
    const char *name; /* as backends and front ends call it: "opencl" */
    const struct gn_request_class *requests;
    uint32_t n_requests;
    int (*start)(struct gn_vgpu *v);
    /* A new object is in the table, and nobody but its maker looks at it: fill in its detail; not
     * 0: no memory. */
    int (*made)(struct gn_vobject *o, const struct gn_request *r);
    /* Whether a request that ends with this result may still have modified the object. NULL: never.
     */
    bool (*changes_though)(int32_t result);
    /* The program's handle no longer names the object, which may stay referenced: called once,
     * without locks, by whichever thread took the name away. NULL: nothing to do. */
    void (*unnamed)(struct gn_vobject *o);
    void (*release)(struct gn_vobject *o);
    /* Whether a driver may hold the release of such an object back until a build is over. NULL: of
     * none. */
    bool (*release_waits_for_builds)(uint16_t kind);
    void (*flush)(struct gn_vgpu *v, void *queue);
    /* Calls over(c, status) once, from any thread, maybe before it returns. */
    int32_t (*when_over)(struct gn_vgpu *v, void *event, struct gn_command *c);
    /* Calls gn_part_over(part, event, status) once, likewise. */
    int32_t (*when_part_over)(struct gn_vgpu *v, void *event, struct gn_part *part);
    void (*release_event)(struct gn_vgpu *v, void *event);
    void (*finish)(struct gn_vgpu *v, void *queue);
    bool (*is_over)(struct gn_vgpu *v, void *event);
    /* Calls quiet(arg) once the event is over, from any thread. Not 0: it will not. */
    int32_t (*when_quiet)(struct gn_vgpu *v, void *event, void (*quiet)(void *arg), void *arg);
    void (*times)(struct gn_vgpu *v, void *event, struct gn_event_times *ret);
    /* A command of the host's that writes objects is over, while somebody follows writes. Any
     * thread. NULL: nothing is followed. */
    void (*wrote)(struct gn_vgpu *v, struct gn_command *c);
    /* When the device worked for it, by its own clock; left alone when the driver does not tell. */
    void (*ran)(struct gn_vgpu *v, void *event, uint64_t *ret_start_ns, uint64_t *ret_end_ns);
    /* The vGPU has left this program, and no object is left: releases everything else of the
     * driver's that can go. */
    void (*leave)(struct gn_vgpu *v);
    /* This process has given it away and is about to end: so is all that the program is to be told
     * of the driver's. */
    void (*end)(struct gn_vgpu *v);
    const struct gn_vgpu_contents *contents; /* save.h; NULL: it cannot be saved */
    uint16_t queue_kind;
    int32_t out_of_memory;  /* answer when this process has no memory */
    int32_t wait_failed;    /* result of a command whose wait list failed */
    int32_t invalid_handle; /* a stale queue */
};

/* Something of ours to do that is as slow as a build. */
struct gn_job {
    struct gn_list link;
    void (*run)(struct gn_job *job);
};

/* A thread that serves requests which the ring thread must not wait for; started at the first.
 * Under helper_lock. */
struct gn_helper {
    struct gn_vgpu *vgpu;
    struct gn_list queue, jobs; /* jobs: only when nobody waits for a request */
    bool started;
};

/* gantryd's orders about where the vGPU runs (migrate/transfer_destination.c). The control thread.
 */
struct gn_worker_save;
struct gn_vgpu_migration_ops {
    /* Saves the vGPU for another worker or into a checkpoint; takes fd. */
    void (*outbound)(struct gn_vgpu *v, int fd, const struct gn_worker_save *how);
    /* The migration is aborted: the vGPU resumes here. */
    void (*resume)(struct gn_vgpu *v);
    /* The vGPU is loaded, and this process owns it from now on. */
    void (*resume_as_owner)(struct gn_vgpu *v);
};

struct gn_vgpu {
    const struct gn_vgpu_boot *boot;
    const struct gn_vgpu_api *api;
    const struct gn_vgpu_session_ops *session;     /* set once */
    const struct gn_vgpu_migration_ops *migration; /* set once */
    void *driver;                                  /* the API's function table */
    struct gn_session_view view;
    struct gn_event_entry *events;
    struct gn_ring_consumer ring;
    struct gn_lost lost;
    bool on_processors;   /* some device of it is this machine's processors */
    cpu_set_t processors; /* that this process, and with it such a device, may use; set once */
    _Atomic uint32_t
        program_cpu;   /* where the program sent its last message from; the ring thread writes */
    bool came;         /* set once: into its program, while that ran (a switch) */
    bool driver_stays; /* set by the API's start: the driver's library cannot be unloaded */
    /* In a program: the thread that holds it serves. Before all other locks. */
    pthread_mutex_t serving;
    pthread_t control;                  /* in a program: the keeper joins it before it clears up */
    _Atomic bool ended;                 /* in a program: the vGPU's threads are told to end */
    bool told_to_end;                   /* control thread: gantryd's END */
    _Atomic bool saved_awaiting_commit; /* all of it has been written for another host, and nothing
                                  goes on until gantryd's word */
    _Atomic bool away;                  /* in a program: another process has the vGPU */
    _Atomic uint32_t n_inside; /* in a program: the driver's reports that are being handled */
    _Atomic uint32_t n_holds;  /* holds on the mappings: the vGPU's own, and one for each callback
                                  that the driver may still make */
    _Atomic int fault;         /* the guest broke the protocol: the vGPU ends */
    struct gn_gate gate;
    bool listens;        /* set once: there is a control thread */
    _Atomic bool moving; /* it is being saved */
    /* gate.lock: in a program, a duplicate of the socket that the vGPU is being saved to; -1 */
    int save_fd;
    _Atomic bool clears;            /* in a program, away: the keeper clears up */
    _Atomic bool arriving;          /* it is being made anew, or waits for the word to go on */
    pthread_mutex_t writes_lock;    /* write_tracking.h */
    bool ends_held;                 /* lock: an end waits to be told for one of another queue */
    _Atomic uint32_t follow_writes; /* so many do: commands that write are followed to their ends */
    struct gn_delta_base *way_back; /* NULL: none. The loading thread, then the saving thread */
    /* In a program, while the vGPU is being saved: the number of the contents that the program will
     * retain (retained.h); 0: none. The thread that saves, then the control thread, then the
     * keeper. */
    uint64_t remains;
    _Atomic uint32_t n_followed; /* of these, and of launches that teach, the driver has so many */
    _Atomic uint32_t n_left;     /* released queues whose last command the driver still has */
    struct gn_counters *counters_there; /* those that gantryd reads, of a vGPU that is not ours yet;
                                           NULL: counters are */
    struct gn_counters load_counters;   /* counters until the vGPU is ours */

    /* Data segments; index 0 is there from the start. A slot is written once, before its index is
     * announced. */
    struct gn_segment segments[GN_MAX_SEGMENTS];
    _Atomic uint32_t n_segments; /* those with an index below are there */

    pthread_mutex_t lock;
    struct gn_vevent *event_chunks[GN_EVENT_ENTRIES / GN_OBJECT_CHUNK]; /* lock */
    uint64_t n_kept_walks;                                              /* lock */
    struct gn_vdevice *devices;
    uint32_t n_devices;
    const struct gn_slicer *slicer; /* set by the API's start; NULL: nothing is cut */
    uint64_t slice_groups; /* tests and benchmarks: everything is cut into parts of so many; 0:
                              where it helps */

    struct gn_objects objects;

    pthread_mutex_t segments_lock;
    pthread_cond_t segments_wake;
    pthread_mutex_t frames_lock;
    struct gn_frame_writer frames; /* frames_lock: to the program, over the session's socket */
    pthread_mutex_t helper_lock;
    pthread_cond_t helper_wake;
    struct gn_helper builder, lessee; /* of slow requests; of those that need a larger lease */
    _Atomic uint32_t n_building;      /* requests that the builder has, or will get */
    uint32_t n_helped,
        n_helping; /* helper_lock: in their queues, and taken out of them and not over */
    void (*help)(struct gn_vgpu *v,
                 const struct gn_request *request); /* set once: serves slow requests */

    struct gn_list folders; /* helper_lock: descriptors that came for requests */
    struct gn_counters *counters;
    struct gn_lease lease;
    struct gn_vgpu_tcp *tcp; /* session_tcp.c's own; NULL: another kind of session */
    struct gn_tcp
        sent_to; /* of a migration over tcp, saved and not decided: the connection stays until this
                    worker ends, or resumes. The saving thread, then the control thread */
    struct gn_list batch_waiters; /* lock */
    void *detail;                 /* the API's */
};

/*
 * Does the program run on a processor that no device of it uses? Then a thread that waits there is
 * in no kernel's way. Any thread.
 */
static inline bool gn_vgpu_is_apart(const struct gn_vgpu *v)
{
    const uint32_t cpu = atomic_load_explicit(&v->program_cpu, memory_order_relaxed);
    return !v->on_processors || (cpu != GN_CPU_UNKNOWN && !CPU_ISSET(cpu, &v->processors));
}

/* In a program the vGPU's threads return once the vGPU has ended; in a worker the process exits. */
static inline bool gn_vgpu_threads_return(const struct gn_vgpu *v)
{
    return v->session->in_program && gn_lost_is(&v->lost);
}

/* ---- to the program, over any session: session.h */

static inline void gn_vgpu_reply(struct gn_vgpu *v, uint32_t token, int32_t result,
                                 const void *payload, size_t n)
{
    v->session->reply(v, token, result, payload, n);
}

static inline void gn_vgpu_event_post(struct gn_vgpu *v, uint32_t index, enum gn_event_phase phase)
{
    v->session->post_event(v, index, phase);
}

static inline void gn_vgpu_event_end(struct gn_vgpu *v, uint32_t index, int32_t error,
                                     const struct gn_event_times *times, const struct gn_command *c)
{
    v->session->end_event(v, index, error, times, c);
}

/*
 * Frames to the program, in order. Any thread; never waits: frames that the program does not read
 * are buffered, and a program that leaves too many unread loses its vGPU. 0, or -errno: nobody will
 * read it.
 */
static inline int gn_vgpu_send(struct gn_vgpu *v, uint16_t op, uint32_t seq, const void *payload,
                               size_t n)
{
    return v->session->send_frame(v, op, seq, payload, n);
}

static inline int gn_vgpu_tell(struct gn_vgpu *v, uint16_t op, const void *payload, size_t n)
{
    return gn_vgpu_send(v, op, 0, payload, n);
}

/*
 * A driver may call back when its vGPU has left the program: the memory that the callback touches
 * stays mapped until then. Hold before the driver gets the callback, unhold at the callback's end.
 * Any thread.
 */
void gn_vgpu_hold(struct gn_vgpu *v);
void gn_vgpu_unhold(struct gn_vgpu *v);
/* Around the handling of a report of the driver's that the gate waits for, on the driver's thread:
 * a vGPU that leaves the program also waits for the return. */
void gn_vgpu_enter(struct gn_vgpu *v);
void gn_vgpu_return(struct gn_vgpu *v);
/* Runs the job, which must stay, on the helper thread. False: it will not run. Any thread. */
bool gn_vgpu_do(struct gn_vgpu *v, struct gn_job *job);
/* A message, copied: serves it or takes it in. The ring thread. */
void gn_vgpu_handle(struct gn_vgpu *v, struct gn_request *r, uint32_t n_bytes, uint64_t batch);

/* Counters that more than one thread writes. */
static inline void gn_count(_Atomic uint64_t *counter, int64_t n)
{
    atomic_fetch_add_explicit(counter, (uint64_t)n, memory_order_relaxed);
}

/* A place in a data segment, or NULL when [offset, offset + bytes) is not inside it. The guest may
 * write there at any time: nothing is to be read from it twice. */
void *gn_vgpu_area(struct gn_vgpu *v, uint32_t segment, uint64_t offset, uint64_t bytes);
void gn_vgpu_fault(struct gn_vgpu *v, const char *why, const char *what);
/* A thread of the vGPU's: as gn_thread_start. */
int gn_vgpu_start_thread(const struct gn_vgpu *v, void *(*run)(void *), void *arg, pthread_t *ret);
/*
 * In a program: the process ends. The vGPU's threads begin nothing more that the program does not
 * ask for.
 */
static inline bool gn_vgpu_is_called_off(const struct gn_vgpu *v)
{
    return v->boot->end && atomic_load_explicit(&v->boot->end->called_off, memory_order_seq_cst);
}
/* Serves until the program or gantryd is gone; the api's detail is set. Returns the exit status. */
int gn_vgpu_run(struct gn_vgpu *v, const struct gn_vgpu_boot *boot, const struct gn_vgpu_api *api);

/* Descriptors that the program sent under a number; -1 while they have not all come. Helper thread:
 * waits. */
int gn_vgpu_set_folders(struct gn_vgpu *v, uint64_t number, uint32_t n, int *ret_fds);

#endif
