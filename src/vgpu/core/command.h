/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_COMMAND_H
#define GN_VGPU_COMMAND_H

#include "base/list.h"
#include "shm/event_table.h"
#include "vgpu/core/request.h"
#include "vgpu/core/turn.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Commands, the queues and devices that they go to, and their events. */
struct gn_cutting;
struct gn_vgpu;

#define GN_MAX_REFS 3u

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
    void **objects; /* of an array of handles: room for the driver's; gn_command_drivers */
    struct gn_vobject **object_refs;
    uint32_t n_objects;
    uint32_t n_waits;
    struct gn_blocker *blockers; /* one a wait; those that wait are linked */
    /* Commands of its wait list that the driver has. `n_producers` until the driver has this one,
     * too; then `n_before`: their ends are told before its own, and the references are dropped. */
    uint32_t n_producers; /* vgpu->lock */
    uint32_t n_before;
    struct gn_command **producers;
    _Atomic bool reported; /* the program has been told its end */
    void *area;
    struct gn_area_ref area_ref;
    uint64_t area_bytes;
    uint64_t batch;            /* vgpu->lock: bulk data that it waits for, a blocker; 0: none */
    struct gn_list batch_link; /* vgpu->lock */
    void *blobs[4];            /* private copies of data in the area */
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
/* The driver's objects of the array of handles, as they are now; NULL: there is no array. The role.
 */
void **gn_command_drivers(struct gn_command *c);
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
int32_t gn_command_issue(struct gn_vdevice *d, struct gn_command *c, uint64_t now_ns, void *after,
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
void gn_vgpu_park_grants(struct gn_vgpu *v);
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

/* The program is told, with the cookie, when an event gets to `phase`. vgpu->lock. */
struct gn_vevent_watch {
    struct gn_list link; /* in gn_vevent.watches */
    int32_t phase;
    uint64_t cookie;
};

/* Under vgpu->lock; NULL when the index is outside the table or there is no memory. */
struct gn_vevent *gn_vevent_at(struct gn_vgpu *v, uint32_t index);
void gn_vevent_given_locked(struct gn_vevent *e, struct gn_command *producer);
/* *told gets the watches to tell, after the lock is gone. */
void gn_vevent_over_locked(struct gn_vevent *e, int32_t error, struct gn_list *reported);
void gn_vevent_notify(struct gn_vgpu *v, struct gn_list *reported, int32_t error);
void gn_vevent_submitted(struct gn_vgpu *v, uint32_t index);
int gn_user_event_new(struct gn_vgpu *v, uint32_t index);
int gn_user_event_set(struct gn_vgpu *v, uint32_t index, int32_t status);
/* Tells the program on its session socket when the event gets to `phase`. */
int gn_event_watch(struct gn_vgpu *v, uint32_t index, int32_t phase, uint64_t cookie);

#endif
