/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_RECORD_SESSION_H
#define GN_DAEMON_VGPU_RECORD_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "daemon/migrate/transaction.h"
#include "link/worker_wire.h"

/*
 * gantryd's part in a session between a program and its vGPU. One table for each kind: shm
 * (session_shm.c), where program and worker share memory, which gantryd makes and hands to both;
 * and tcp (session_tcp.c), where each has memory of its own, and gantryd gives the program a name
 * and a key. A record has the table of its program's transport (net/transport.h), and keeps it; a
 * record for the destination of a migration has the source's. Other code calls the table, or asks
 * for a property; it never asks for the kind. gantryd's thread; no function waits.
 */
struct gn_conn;
struct gn_control_about;
struct gn_link_claimed;
struct gn_link_stopped;
struct gn_owner;
struct gn_vgpu_record;

/* How a vGPU leaves for another gantryd. */
struct gn_outbound_route {
    enum gn_worker_route route;
    bool source_by_tcp; /* the source itself writes to tcp; else `gantry` stands between */
    bool secure;        /* the program's session there uses TLS */
};

struct gn_record_session_ops {
    const char *name; /* the link between the program and a worker, as `gantry ls` shows it */

    /* ---- properties */

    /* The data area is in the worker's own memory, with the contents of all buffers. Else it is in
     * the program's. */
    bool worker_has_area;
    /* To a worker of this gantryd, be it at once or by the file of a stop; and from another
     * gantryd. */
    enum gn_worker_route route_here, route_inbound;
    /* Of an outbound migration: the program may find the destination on its own machine, and then
     * share memory with the vGPU. */
    bool may_become_shm;
    /* The transaction of a stop. */
    enum gn_transaction_kind stop_kind;

    /* ---- life */

    /* A new session, with the program of c. 0 or -errno. */
    int (*begin)(struct gn_vgpu_record *v, const struct gn_conn *c);
    /* Makes the memory that a worker needs and the session does not bring, in the worker's record.
     * 0 or -errno. */
    int (*make_memory)(struct gn_vgpu_record *n);
    /* Adds the session of v to the first message to a worker that is to serve it. */
    void (*fill_boot)(const struct gn_vgpu_record *v, struct gn_worker_boot *boot);
    /* Answers the program's ATTACH with its session. */
    void (*send_attached)(struct gn_vgpu_record *v);
    /* gantryd needs the program's end of the worker's socket no more. */
    void (*close_program_end)(struct gn_vgpu_record *v);
    /* The program's connection has broken. True: v is kept for a while, as the program may come
     * back. */
    bool (*await_return)(struct gn_vgpu_record *v);
    /* Whether the program is there, as far as its process and its connection tell; true when v has
     * lost its connection already. */
    bool (*has_program)(const struct gn_vgpu_record *v);
    /* Whether gantryd sees that the program's process runs. */
    bool (*is_program_running)(const struct gn_vgpu_record *v);

    /* ---- migrations */

    /* Whether the program can take part in a migration now, in a checkpoint, or host its vGPU. Each
     * 0 or -errno; judge_migration: -ENOENT: the program has ended. */
    int (*judge_migration)(const struct gn_vgpu_record *v, struct gn_error *err);
    int (*judge_checkpoint)(const struct gn_vgpu_record *v, bool stop, struct gn_error *err);
    int (*judge_in_process)(const struct gn_vgpu_record *v, struct gn_error *err);
    /* To a gantryd that is reached by tcp, or else by a Unix socket; secure: by TLS. 0 or
     * -EOPNOTSUPP. */
    int (*plan_outbound)(const struct gn_vgpu_record *v, bool by_tcp, bool secure,
                         struct gn_outbound_route *ret, struct gn_error *err);
    /* Adds the session to the vGPU's description for another gantryd. */
    void (*describe)(const struct gn_vgpu_record *v, struct gn_control_about *ret);
    /* Of a vGPU that comes from another gantryd: its session here. contents_fd: the stream of the
     * contents, when the session itself comes by another; -1: by the same. announcer: the peer that
     * has announced the vGPU. 0 or -errno. */
    int (*begin_claimed)(struct gn_vgpu_record *v, const struct gn_conn *c, int contents_fd,
                         const struct gn_owner *announcer);
    /* Answers the program's CLAIM. */
    void (*send_claimed)(struct gn_vgpu_record *v, const struct gn_link_claimed *claimed);

    /* ---- stops and restores */

    /* The source of a stop has saved: whether gantryd has all that the program's later wait needs.
     * 0 or -EPROTO. */
    int (*judge_saved)(const struct gn_vgpu_record *v, struct gn_error *err);
    /* Tells the program that its vGPU is in a file. 0 or -errno. */
    int (*send_stopped)(struct gn_vgpu_record *v, const struct gn_link_stopped *stopped,
                        struct gn_error *err);
    /* The program has been told for the first time. */
    void (*was_notified)(struct gn_vgpu_record *v);
    /* Of a stopped vGPU: whether its program waits for the restore already. */
    bool (*awaits_restore)(const struct gn_vgpu_record *v);
    /* Gives the file to the worker's record. Returns the descriptor by which the worker gets the
     * session; both stay with their owners. */
    int (*pass_file)(const struct gn_vgpu_record *v, struct gn_vgpu_record *n, int file_fd);
    /* The worker is up: asks the program for its session, unless the file has it. */
    void (*request_session)(struct gn_vgpu_record *v);
    /* The worker is about to go on. */
    void (*send_restored)(struct gn_vgpu_record *v);
    /* The restore has failed: the program waits anew. */
    void (*refuse_restore)(struct gn_vgpu_record *v, const struct gn_error *err);
};

extern const struct gn_record_session_ops gn_record_session_shm, gn_record_session_tcp;

#endif
