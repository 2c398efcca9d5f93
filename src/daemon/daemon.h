/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_H
#define GN_DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/tenants/fault_throttle.h"
#include "daemon/vgpu/kernel_caches.h"
#include "daemon/vgpu/owner.h"
#include "daemon/devices.h"
#include "daemon/loop.h"
#include "daemon/tenants/vgpu_owner.h"
#include "daemon/net/quota.h"
#include "daemon/tenants/refusals.h"
#include "daemon/schedule/scheduler.h"
#include "daemon/net/sockets.h"
#include "daemon/net/strangers.h"
#include "daemon/tenants/tenants.h"
#include "daemon/schedule/tracing.h"
#include "daemon/vgpu/worker_walls.h"
#include "daemon/vgpu/worker_log.h"
#include "link/frame.h"
#include "link/link_wire.h"
#include "link/tls.h"

/*
 * gantryd's objects and who ends whom. One thread owns all of it; the scheduler's own (scheduler.h)
 * touches nothing here.
 *
 *   connection --1:1-- vGPU --n:1-- host (a driver's template process)
 *
 * A connection's hang-up, or its program's death, ends its vGPU; a vGPU whose worker died stays
 * listed as lost until its connection goes. A host that died is started again by the next attach.
 */
struct gn_daemon;
struct gn_template;
struct gn_tcp_listener;
struct gn_late_attach;
struct gn_owner_deadlines;

/* Who is at the other end of a control connection from another machine. */
struct gn_session_tcp_peer {
    bool secure;       /* TLS */
    bool proved;       /* that he knows a tenant's token */
    bool control;      /* it came to the port for operators */
    enum gn_role role; /* CONTROL: and its certificate is an operator's */
    char subject[64];  /* the certificate's name: the tenant's. "": none */
    char address[64];  /* for the log */
};

struct gn_conn {
    struct gn_corpse corpse;
    struct gn_list link;
    struct gn_daemon *daemon;
    struct gn_quota *quota; /* of the user, or the address, at its other end */
    struct gn_source socket;
    struct gn_source process; /* pidfd of the program, once it attached; -1: it cannot be watched */
    bool process_proved;  /* the kernel says that the pidfd is the peer's: it may be killed by it */
    uint64_t taken_ticks; /* gn_process_ticks_now() when it connected */
    struct gn_frame_reader reader;
    struct gn_frame_writer writer;
    bool greeted;
    bool closing; /* once the queue is out */
    bool stuck;   /* not listened to: gn_quota_is_stuck() */
    bool waits;   /* connection_turns.c: its frame does */
    struct gn_list turn;
    struct gn_frame frame;
    bool control_only; /* it asks and attaches to nothing */
    bool claims;       /* a vGPU that comes from another gantryd, and nothing else */
    bool hears_near; /* its program may be told how another gantryd is reached on that one's machine
                      */
    pid_t pid;       /* of the program, in our namespace; 0: not visible from here */
    uid_t uid;       /* who connected, by the kernel's word */
    gid_t gid;
    enum gn_role role; /* of the socket that accepted it; it never changes */
    char program[GN_LINK_NAME_BYTES];
    bool remote; /* from another machine: `peer` says what is known, and the kernel nothing */
    bool bye;    /* the program has said that it ends */
    struct gn_session_tcp_peer peer;
    struct gn_tcp_listener *came_by; /* the tcp port; NULL: a socket of this machine */
    struct gn_stranger stranger;     /* over tcp, until its greeting is admitted */
    struct gn_tenant *tenant;        /* that the greeting was admitted to; NULL: none */
    bool is_bound;              /* it came by a tenant's socket, and is admitted to nothing else */
    struct gn_tenant *bound_to; /* that tenant; NULL: its socket is no more */
    uint32_t n_token;
    char token[GN_LINK_TOKEN_BYTES];
    struct gn_vgpu_record *vgpu;
    char *request; /* a control request in parts */
    size_t n_request;
    /* A reply that waits until the tenant's workers have done what it says. */
    char *held;
    uint32_t request_seq; /* of the control request in hand */
    uint32_t held_seq;
    struct gn_tenant *held_for;
    int file_fd; /* what the next control request is about; -1: nothing */
    uint64_t held_until_ns;
    /* connection_limits.c */
    struct gn_list of_quota, ungreeted;
    uint64_t since_ns;
    uint32_t held_fds;
    bool counts_as_vgpus;
    size_t held_bytes;
    struct gn_late_attach *late; /* attach.c; NULL: none */
};

struct gn_vgpu_record {
    struct gn_corpse corpse;
    struct gn_list link;
    struct gn_daemon *daemon;
    struct gn_quota *quota; /* of the user, or the address, of its program */
    struct gn_template *host;
    struct gn_conn *conn; /* NULL: the program is gone */
    uint32_t attach_seq;
    uint32_t id;
    uint32_t platform;
    uint64_t devices; /* of the platform, as bits: those that the tenant may use, or those it was
                         moved to */
    uint8_t order[GN_WORKER_MAX_DEVICES]; /* the same by number, as its program and its worker count
                                             them */
    uint8_t ranks[GN_WORKER_MAX_DEVICES]; /* of those: in which order they are offered to a program
                                             that does not choose; 0 first */
    struct gn_tenant *tenant;             /* there as long as this is */
    char program[GN_LINK_NAME_BYTES];
    pid_t program_pid;
    struct gn_owner owner;
    uint32_t weight;
    struct gn_lease_holder lease;
    bool refused_told; /* memory.c */
    struct gn_shares shares;
    bool takes_turns;  /* its worker waits for grants */
    bool driver_stays; /* a driver that cannot be unloaded is in its program, in use or not */
    bool hosted; /* passthrough: its program is its worker. `host` is NULL, `process` and worker_pid
                    are the program's */
    uint32_t n_segments;
    struct gn_cache *cache;       /* of its worker's kernels; NULL: none */
    struct gn_memory_group group; /* its worker's */

    bool starting; /* counted in its quota: its program waits for it */
    bool spawning; /* the template has not answered yet */
    pid_t template_pid;
    uint64_t asked_ns; /* that one for a worker, and then the worker to start its driver */
    bool driver_up;
    bool booted; /* the program has been told */
    bool ending; /* on its way out: killed at kill_at_ns, 0: killed already */
    uint64_t kill_at_ns;
    bool reaped; /* the template has told how the worker ended, or will never tell */
    pid_t worker_pid;
    pid_t inner_pid;          /* the same, as the template sees it */
    struct gn_source process; /* pidfd of the worker */
    struct gn_source control;
    struct gn_frame_reader reader;
    struct gn_frame_writer writer;

    struct gn_record_owner *owned_by; /* owner.h; NULL: it serves its program, or waits stopped */

    /* checkpoint.c. Its program waits, and the holder of the key may give it a worker again. */
    bool stopped;
    unsigned char stop_key[GN_LINK_STOP_KEY_BYTES];
    uint32_t wait_seq; /* of the program's WAIT */
    int hand_fd;       /* by which the program hands over its session; -1: the program does not wait
                          yet, or is on another machine */
    uint64_t
        ring_at; /* of a worker that loads a file, which is in data_fd: where the ring stands */

    /* A program on another machine. */
    bool remote, secure;
    uint64_t return_by_ns; /* its connection broke: it has until then; 0: it is connected */
    unsigned char session[GN_LINK_SESSION_BYTES], key[GN_LINK_KEY_BYTES];

    struct gn_worker_log log;
    int worker_fd; /* the other end of `control`, until a worker has it: what waits in its queue is
                      given up on this thread by nobody */
    int counters_fd;
    int ring_fd; /* kept for what the program counts itself */
    /* For the program, until it has them. */
    int session_fd, events_fd, data_fd;
    uint64_t ring_bytes, events_bytes, data_bytes;
};

struct gn_daemon {
    struct gn_loop loop;
    struct gn_machine machine;
    struct gn_walls walls;
    struct gn_caches caches;
    struct gn_template *hosts; /* one a driver */
    struct gn_quotas quotas;
    struct {
        struct gn_list
            lines[2]; /* quotas: of users whose greetings wait ([true]), and other frames */
        struct gn_source timer;
    } turns;
    struct gn_source closed; /* eventfd: of what was to be closed some is */
    struct gn_list conns, vgpus;
    uint32_t n_conns;
    struct { /* connection_limits.c; counts that are shown grow for ever */
        uint32_t n_own_fds, n_fds, n_with_vgpus, n_vgpus;
        uint64_t n_bytes, told_ns;
        uint32_t n_untold, n_peak;
        uint64_t n_evicted, n_refused_vgpus;
    } crowd;
    uint64_t full_told_ns; /* connections.c */
    struct gn_sockets sockets;
    struct gn_source signals;
    struct gn_source grace; /* timerfd, armed only while a vGPU is on its way out */
    struct gn_tcp_listener *tcp, *tcp_control; /* NULL: none */
    uint64_t grace_at_ns;                      /* 0: not armed */
    uint32_t tcp_grace_ms, start_limit_ms;
    uint64_t watch_at_ns; /* passthrough.c; 0: nobody is to be watched */
    bool insecure; /* whoever comes over tcp without credentials may use the tenant `default` */
    struct gn_tenants tenants;
    struct gn_source lease_timer; /* timerfd, armed only while somebody waits for memory */
    uint64_t lease_timer_ns;      /* what it is set to; 0: nothing */
    uint32_t n_held;              /* replies */
    struct gn_refusals refusals;
    /* attach.c */
    uint64_t breach_pause_ns;
    struct gn_fault_throttle breaches;
    struct gn_list late_attaches;
    struct gn_source attach_timer; /* timerfd, armed only while one of them waits */
    struct gn_scheduler *scheduler;
    bool takes_turns; /* there is a policy: vGPUs from now on have the device one after the other */
    struct gn_tracing tracing;
    struct gn_source late; /* eventfd: the scheduler waits for holders of devices */
    bool stopping;
    bool draining;                           /* no program gets a vGPU that has none */
    struct gn_list arrivals;                 /* inbound.c */
    const struct gn_owner_deadlines *owners; /* what owners of records wait for */
};

/* listener.c: tells the service manager, if there is one (NOTIFY_SOCKET). */
void gn_notify_ready(void);

/* connections.c */
/* Of a struct gn_socket. */
void gn_conns_accept(struct gn_source *source, uint32_t events);
/* A connected Unix socket that does not block; gantryd's from now on. */
void gn_conns_add(struct gn_daemon *d, int fd, enum gn_role role, struct gn_tenant *bound_to);
/* One of another machine's program's; fd is as above. NULL: it is closed already. */
struct gn_conn *gn_conns_add_tcp(struct gn_daemon *d, int fd,
                                 const struct gn_session_tcp_peer *peer);
void gn_conn_close(struct gn_conn *c);
void gn_conns_close(struct gn_daemon *d);
/* Its frame's turn has come (connection_turns.h). */
void gn_conn_serve(struct gn_conn *c);
/* The closer has closed some descriptors: whoever was not listened to because of them may be now.
 */
void gn_conns_closed_some(struct gn_source *news, uint32_t events);
/* Frames to the program; a program that does not read is closed. */
void gn_conn_send(struct gn_conn *c, uint16_t op, uint32_t seq, const void *payload, size_t n,
                  const int *fds, int n_fds);
void gn_conn_refuse(struct gn_conn *c, uint32_t seq, int code, const struct gn_error *err);
int gn_conn_no_room(
    struct gn_error *err); /* the error for a descriptor that there is no room for; -EMFILE */
/* A control request's reply. */
void gn_conn_reply(struct gn_conn *c, uint32_t seq, const char *text);

/* attach.c: false for a malformed one. An attach that waits is forgotten with its connection. */
bool gn_attach_frame(struct gn_conn *c, const struct gn_frame *f);
void gn_attach_forget(struct gn_conn *c);
void gn_attaches_timer(struct gn_source *timer, uint32_t events);

/* memory.c: what is said and heard of device memory. */
extern const struct gn_lease_ops gn_memory_ops;
/* A worker's frame. 1: it was about memory; 0: not; -EPROTO. */
int gn_memory_frame(struct gn_vgpu_record *v, const struct gn_frame *f);
/* After whatever may have changed the books: sets the timer, sends replies that have waited for it.
 */
void gn_memory_settle(struct gn_daemon *d);
void gn_memory_timer(struct gn_source *timer, uint32_t events);
/* Keeps a reply until the tenant's workers have given back what was recalled. */
void gn_memory_hold(struct gn_conn *c, struct gn_tenant *t, uint32_t seq, char *reply);
void gn_memory_drop_held(struct gn_conn *c);

/* create.c: a vGPU for the program at c's end, whose attach is answered later. 0 or -errno, and
 * then it has none. */
int gn_vgpus_start(struct gn_conn *c, struct gn_tenant *tenant, uint32_t seq,
                   const struct gn_link_attach *a, const int *stdio, struct gn_error *err);
/* lifecycle.c: the life of a vGPU, seen from outside its worker. Killing a hosted one is its
 * program's end. */
void gn_vgpus_kill(struct gn_vgpu_record *v);
/*
 * What was to be said to its worker could not be, -errno. A program that has closed its end has let
 * go of its vGPU and goes on: its socket's end is heard next. Another one is killed.
 */
void gn_vgpus_unreachable(struct gn_vgpu_record *v, int rc);
/* Ends it by an operator's or its owner's wish, as when its worker is lost. 0 or -errno: -ENOENT:
 * it has ended already. */
int gn_vgpus_end(struct gn_vgpu_record *v, struct gn_error *err);
/* To its worker; lost when there is none, the worker's end when it does not read. */
void gn_vgpus_notify_worker(struct gn_vgpu_record *v, uint16_t op, uint32_t seq,
                            const void *payload, size_t n);
int gn_vgpus_add_segment(struct gn_vgpu_record *v, uint32_t seq, uint64_t bytes,
                         struct gn_error *err);
/* From now on the program at c's end is to v what a worker is. 0 or -errno. */
int gn_vgpus_watch_program(struct gn_vgpu_record *v, const struct gn_conn *c, struct gn_error *err);
/* The program is gone: the vGPU ends, its worker within the grace. */
void gn_vgpus_leave(struct gn_vgpu_record *v);
void gn_vgpus_spawned(struct gn_vgpu_record *v, pid_t pid, int pidfd);
/* Its program has done what counts against its user (fault_throttle.h). */
void gn_vgpus_note_fault(const struct gn_vgpu_record *v);
/* How the worker ended, as from waitpid. After the pidfd has told that it did, or before. */
void gn_vgpus_ended(struct gn_vgpu_record *v, int status);
/* The template is gone: whatever it still owed is not to be waited for. */
void gn_vgpus_in_process_lost(struct gn_vgpu_record *v);
void gn_vgpus_spawn_failed(struct gn_vgpu_record *v, const struct gn_error *err);
/* Sets the timer to the first of the deadlines. */
void gn_vgpus_arm(struct gn_daemon *d);
/* The same when nothing has changed but that there is a deadline more. 0: none. */
void gn_vgpus_arm_by(struct gn_daemon *d, uint64_t at_ns);
void gn_vgpus_grace(struct gn_source *timer, uint32_t events);
const char *gn_vgpus_state(const struct gn_vgpu_record *v);
/* It has commands that are not complete. */
bool gn_vgpus_is_busy(const struct gn_vgpu_record *v);
/* create.c: it lives elsewhere, and its worker here is only waited for: another may have its id. */
void gn_vgpus_give_up_id(struct gn_vgpu_record *v);
struct gn_vgpu_record *gn_vgpus_find(struct gn_daemon *d, uint32_t id);

/* For transaction.c. worker_boot.c: a worker for this record. What is its alone is made (control
 * socket, boot message); ring_fd, counters_fd and the grants' descriptors are there. `program`: its
 * connection, whose user the worker becomes. */
int gn_vgpus_boot_worker(struct gn_vgpu_record *v, const struct gn_conn *program, int session_fd,
                         struct gn_error *err);
/* lifecycle.c: from now on v's worker is n's, and n's is v's. 0, or -EBUSY and nothing has changed.
 */
int gn_vgpus_swap_workers(struct gn_vgpu_record *v, struct gn_vgpu_record *n);
/* create.c: events and data area of a session of which no memory comes. 0 or -errno. */
int gn_vgpus_make_memory(struct gn_vgpu_record *v);
/* A record for a worker that is to take the place of this one's. NULL: no memory, and a sentence.
 */
struct gn_vgpu_record *gn_vgpus_blank(const struct gn_vgpu_record *like, struct gn_error *err);

/* device_load.c: the devices of the platform, as bits, that it has made a queue for, by its
 * worker's word. */
uint64_t gn_loads_of(const struct gn_vgpu_record *v);
/* In which order these devices, given as bits, are offered to a vGPU that is about to start. */
void gn_loads_rank(struct gn_daemon *d, uint32_t platform, uint64_t devices,
                   uint8_t ranks[static GN_WORKER_MAX_DEVICES]);

/* segments.c: is it a session's ring? Reading it can neither wait nor fail then: it is memory, and
 * of that size for good. */
bool gn_segment_is_session(int fd);
/* create.c, for them: a record of a vGPU that is stopped, with these devices (0: all that its
 * tenant may use). id: as an operator announced it, used if it is free; 0: new. Takes ring_fd. */
struct gn_vgpu_record *gn_vgpus_make_stopped(struct gn_conn *c, struct gn_tenant *tenant,
                                             uint32_t id, const struct gn_link_wait *w,
                                             uint64_t devices, const uint8_t *order, int ring_fd,
                                             struct gn_error *err);
/* Asks the worker to end, and sees to it that it does. */
void gn_vgpus_end_worker(struct gn_vgpu_record *v);
/* A stopped vGPU's worker is dead: what it had is free. */
void gn_vgpus_worker_over(struct gn_vgpu_record *v);
/* The worker is dead, and nobody takes its place. */
void gn_vgpus_lost(struct gn_vgpu_record *v);

/* late_holders.c: `late` is ready. */
void gn_late_holders(struct gn_source *late, uint32_t events);

/* orphans.c: before anything is started; and after a worker's death. */
void gn_orphans_adopt(void);
void gn_orphans_kill(struct gn_daemon *d);

/* tenant_change.c: what the rules say of its share, told the scheduler. After its first vGPU, and
 * any change. */
void gn_tenant_reckon(struct gn_daemon *d, struct gn_tenant *t);

/* shares.c: figures, part and entitled of every vGPU, as of now. */
void gn_shares_reckon(struct gn_daemon *d);
/* What v has had of its devices stays in their sums: before it leaves them. */
void gn_shares_leave(struct gn_vgpu_record *v);
/* Its part in the device of this number; NULL: none. */
const struct gn_share *gn_shares_on(const struct gn_vgpu_record *v, uint32_t device);

/* control_commands.c: the reply, malloc'd; NULL: no memory. *ret_wait_for: the reply tells of a
 * change that this tenant's workers have still to follow. */
char *gn_daemon_answer(struct gn_daemon *d, struct gn_conn *c, const char *request, size_t n,
                       struct gn_tenant **ret_wait_for);

#endif
