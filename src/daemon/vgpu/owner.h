/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_OWNER_H
#define GN_DAEMON_VGPU_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "link/frame.h"
#include "link/link_wire.h"

/*
 * The owner of a vGPU record that does not simply serve its program: a migration of any kind. The
 * code on life cycles and tcp sessions calls the owner through
 * this table, and knows no kind of owner by name. (tenants/vgpu_owner.h is about the user or
 * tenant of a vGPU, and has nothing to do with this.)
 *
 * A record's `owned_by` is NULL when nothing is under way. The owner sets and clears it. Each call
 * may do so, and may end the record; its memory lasts until this turn of the loop is over. All
 * calls are on gantryd's thread.
 */
struct gn_daemon;
struct gn_vgpu_record;
struct gn_record_owner;
struct gn_worker_boot;

/* Is all that the record's worker had saved, so that the worker is not needed any more? */
enum gn_record_saved {
    GN_RECORD_NOT_SAVED,
    GN_RECORD_SAVED_HERE, /* its program may come back to this gantryd */
    GN_RECORD_SAVED_ELSEWHERE
};

/* Each function may be NULL. */
struct gn_record_owner_ops {
    /* The worker's driver is up, and the worker can be watched. */
    void (*up)(struct gn_record_owner *o, struct gn_vgpu_record *v);
    /* A frame of the worker's. 1: it is dealt with, and nothing more may be read now, as the record
     * may have another worker; 0: it is not the owner's; -EPROTO. */
    int (*acknowledged)(struct gn_record_owner *o, struct gn_vgpu_record *v,
                        const struct gn_frame *f);
    /* The worker is dead. True: the owner has dealt with it, and the vGPU is not lost. */
    bool (*died)(struct gn_record_owner *o, struct gn_vgpu_record *v);
    /* The program is gone, or the record is to end. */
    void (*left)(struct gn_record_owner *o, struct gn_vgpu_record *v);

    /* The connection of a program over tcp has broken, or is back. */
    void (*link)(struct gn_record_owner *o, struct gn_vgpu_record *v, bool is_back);
    /* The program and its worker have got another data segment. */
    void (*segment)(struct gn_record_owner *o, struct gn_vgpu_record *v,
                    const struct gn_link_segment_made *made, int fd);
    /* The record with the session that the worker of v is to serve; NULL: v itself. */
    struct gn_vgpu_record *(*session_of)(struct gn_record_owner *o, const struct gn_vgpu_record *v);
    /* Fills in the source that a worker loads from when it starts. */
    void (*boot)(struct gn_record_owner *o, const struct gn_vgpu_record *v,
                 struct gn_worker_boot *boot);
    enum gn_record_saved (*saved)(const struct gn_record_owner *o, const struct gn_vgpu_record *v);
    /* The vGPU is on its way, and must not be ended by a command. */
    bool (*holds)(const struct gn_record_owner *o, const struct gn_vgpu_record *v);
};

struct gn_record_owner {
    const struct gn_record_owner_ops *ops;
};

/* Deadlines of owners. */
struct gn_owner_deadlines {
    /* When the first deadline is; 0: there is none. */
    uint64_t (*first)(struct gn_daemon *d);
    void (*expire)(struct gn_daemon *d, uint64_t now_ns);
};

#endif
