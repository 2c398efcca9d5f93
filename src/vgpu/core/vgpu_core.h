/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_CORE_H
#define GN_VGPU_CORE_H

#include "base/list.h"
#include "link/frame.h"
#include "link/tcp.h"
#include "shm/counters.h"
#include "shm/event_table.h"
#include "shm/session_layout.h"
#include "vgpu/core/command.h"
#include "vgpu/core/gate.h"
#include "vgpu/core/lease.h"
#include "vgpu/core/life.h"
#include "vgpu/core/objects.h"
#include "vgpu/core/parts.h"
#include "vgpu/core/records.h"
#include "vgpu/core/request.h"
#include "vgpu/core/resident_budget.h"
#include "vgpu/core/turn.h"
#include "vgpu/session/session.h"
#include "vgpu/vgpu.h"
#include "wire/wire.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * A vGPU, for any API: the object table (objects.h), requests (request.h), pending commands
 * (command.h), and the threads that serve them. The API plugs in below (struct gn_vgpu_api);
 * generated code fills the table of requests.
 *
 * Threads: the serving thread (session.h) receives, decodes, and admits commands; it alone creates
 * and destroys objects, but for the helper thread, which serves requests marked slow. A submit
 * thread a device hands commands to the driver when the serving thread cannot. The driver's own
 * threads report completions. The lease thread serves requests that need more memory than the lease
 * has, or than may be in the driver (resident_budget.h), and may wait for gantryd. The serving
 * thread waits for gantryd only where a request needs evicted memory.
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

#define GN_MAX_SEGMENTS 257u

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
    /* ---- evicted objects, where gn_vgpu.evicts is set (evict.h) */

    /* The object gets a driver's object, if it is evicted. 0 or an error. The role, or a thread
     * that serves a request. */
    int32_t (*bring_in)(struct gn_vobject *o);
    /* All objects get one; those that the driver refuses stay evicted. 0, or the first error. Adds
     * the bytes that are copied. Any thread that holds no lock but `serving` and a role. */
    int32_t (*bring_in_all)(struct gn_vgpu *v, uint64_t *copied_bytes);
    /* Has the driver an object of it? Any thread. */
    bool (*is_resident)(struct gn_vobject *o);
    /* The bytes of all objects that are evicted. Any thread. */
    uint64_t (*evicted_bytes)(struct gn_vgpu *v);
    /* Is there something to evict? Any thread. */
    bool (*has_resident)(struct gn_vgpu *v);
    /*
     * Evicts until the lease counts at most so many bytes in the driver; 0: all that can be
     * evicted. Returns the bytes that were copied. Nothing is in the driver, and the caller has all
     * roles.
     */
    uint64_t (*evict)(struct gn_vgpu *v, uint64_t most_bytes);
    /* Whether copies of contents that are in the driver may stay in host memory from now on; if
     * not, frees those that there are. Any thread that holds no lock; waits for copies. */
    void (*keep_copies)(struct gn_vgpu *v, bool keep);
    /* A command that writes its objects is about to be given to the driver, and copies of contents
     * in the driver are in host memory. The role. */
    void (*will_write)(struct gn_vgpu *v, const struct gn_command *c);

    /* This process has given it away and is about to end: so is all that the program is to be told
     * of the driver's. */
    void (*end)(struct gn_vgpu *v);
    const struct gn_vgpu_contents *contents; /* save.h; NULL: it cannot be saved */
    uint16_t queue_kind;
    int32_t out_of_memory;  /* answer when this process has no memory */
    int32_t no_room;        /* answer when the device has none */
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

/* What a vGPU needs of migrate/ (migrate/transfer.h). */
struct gn_worker_save;
struct gn_vgpu_migration_ops {
    /* ---- gantryd's orders about where the vGPU runs. The control thread */

    /* Saves the vGPU for another worker or into a checkpoint; takes fd. */
    void (*outbound)(struct gn_vgpu *v, int fd, const struct gn_worker_save *how);
    /* The migration is aborted: the vGPU resumes here. */
    void (*resume)(struct gn_vgpu *v);
    /* The vGPU is loaded, and this process owns it from now on. */
    void (*resume_as_owner)(struct gn_vgpu *v);

    /* ---- another process has the vGPU. Behind the closed gate */

    /* This process no longer reports the ends of homes of released objects. */
    void (*drop_home_events)(struct gn_vgpu *v);
    /* In a program: removes all objects, and retains the contents that the program is to retain;
     * ends early when the process ends. The keeper. */
    void (*remove_objects)(struct gn_vgpu *v);
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
        program_cpu; /* where the program sent its last message from; the ring thread writes */
    bool came;       /* set once: into its program, while that ran (a switch) */
    bool evicts;     /* set by the API's start: objects may have no driver's object */
    /* The memory objects that have none now, without their views. The API counts them, and evicts
     * only under the roles of all devices. */
    _Atomic uint32_t n_evicted;
    /* Those that have one, and a copy in host memory that is right until they are written. Changed
     * as n_evicted. */
    _Atomic uint32_t n_copies;
    bool driver_stays; /* set by the API's start: the driver's library cannot be unloaded */
    /* In a program: the thread that holds it serves. Before all other locks. */
    pthread_mutex_t serving;
    pthread_t control; /* in a program: the keeper joins it before it clears up */
    struct gn_vgpu_life life;
    bool told_to_end;          /* control thread: gantryd's END */
    _Atomic uint32_t n_inside; /* in a program: the driver's reports that are being handled */
    _Atomic uint32_t n_holds;  /* holds on the mappings: the vGPU's own, and one for each callback
                                  that the driver may still make */
    _Atomic int fault;         /* the guest broke the protocol: the vGPU ends */
    struct gn_gate gate;
    bool listens;        /* set once: there is a control thread */
    _Atomic bool moving; /* a thread saves it */
    /* gate.lock: in a program, a duplicate of the socket that the vGPU is being saved to; -1 */
    int save_fd;
    _Atomic bool clears;            /* in a program: the keeper clears up, if it is away */
    pthread_mutex_t writes_lock;    /* write_tracking.h */
    bool ends_held;                 /* lock: an end waits to be told for one of another queue */
    _Atomic uint32_t follow_writes; /* so many do: commands that write are followed to their ends */
    struct gn_delta_base *delta_base; /* NULL: none. The loading thread, then the saving thread */
    /* In a program, while the vGPU is being saved: the number of the contents that the program will
     * retain (retained.h); 0: none. The thread that saves, then the control thread, then the
     * keeper. */
    uint64_t retained;
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
    struct gn_resident_budget budget;
    struct gn_vgpu_tcp *tcp; /* session_tcp.c's own; NULL: another kind of session */
    struct gn_tcp
        sent_to; /* of a migration over tcp, saved and not decided: the connection stays until this
                    worker ends, or resumes. The saving thread, then the control thread */
    struct gn_list batch_waiters; /* lock */
    void *detail;                 /* the API's */
};

/* May an object have no driver's object? A submitter that holds its device's role, and the serving
 * thread: nothing is evicted meanwhile. */
static inline bool gn_vgpu_has_evicted(const struct gn_vgpu *v)
{
    /* Acquires: with the objects that have come in, their copies (n_copies). */
    return atomic_load_explicit(&v->n_evicted, memory_order_acquire) != 0;
}

/* Has host memory a copy of contents that are in the driver? As gn_vgpu_has_evicted. */
static inline bool gn_vgpu_has_copies(const struct gn_vgpu *v)
{
    return atomic_load_explicit(&v->n_copies, memory_order_relaxed) != 0;
}

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

static inline int gn_vgpu_notify(struct gn_vgpu *v, uint16_t op, const void *payload, size_t n)
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
/* Descriptors that the program sent under a number; -1 while they have not all come. Helper thread:
 * waits. */
int gn_vgpu_set_folders(struct gn_vgpu *v, uint64_t number, uint32_t n, int *ret_fds);

#endif
