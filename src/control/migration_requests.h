/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CONTROL_MIGRATION_REQUESTS_H
#define GN_CONTROL_MIGRATION_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/kernel.h"

/*
 * The control requests of migrations, drains, kills and checkpoints, and their replies; control.h
 * has the rules that all requests follow.
 *
 * Migration: {"version":1,"request":"migrate","vgpu":ID,"to":"local"[,"device":NAME]
 * [,"drain_timeout_ms":N][,"rounds":N][,"bandwidth_bytes":N]} moves a vGPU to a new worker on this
 * machine ("remote": out of its program; "passthrough": into it). Contents are sent in that many
 * rounds while the program runs (0: stop and copy; default 1), with at most that many bytes a
 * second. The reply is "move" and comes when the migration is done.
 */
#define GN_CONTROL_DRAIN_MS   10000u
#define GN_CONTROL_ROUNDS     1u
#define GN_CONTROL_MAX_ROUNDS 16u
struct gn_control_wish {
    const char *vgpu; /* its id, or a unique prefix of it */
    const char *to;
    /* Another device of this gantryd: NAME-PART[:INDEX] or FROM=TO. NULL: the same device. */
    const char *device;
    const char *ticket; /* in hex, if `to` is the address of another gantryd; NULL: none */
    /* In hex, over tcp: the session's name; the ticket is its key; NULL: none. */
    const char *name;
    bool secure; /* over tcp: that gantryd was reached through TLS */
    /* Over tcp: its address for programs on its own machine. NULL: none. */
    const char *near;
    const char *kernel; /* in hex: that machine's kernel id (base/kernel.h); NULL without `near` */
    uint32_t drain_timeout_ms;
    uint32_t rounds;
    uint64_t bandwidth_bytes; /* bytes a second; 0: no limit */
    bool stop;                /* for a checkpoint */
};

struct gn_control_move {
    uint32_t id;
    const char *to;
    uint64_t downtime_ns; /* from closing the gate until the new worker is told to resume */
    uint64_t precopy_ns;
    /* Before the stop: until the driver has completed its work, while the program runs. */
    uint64_t hold_ns;
    uint64_t boot_ns, drain_ns, save_ns, load_ns;
    /*
     * Parts of the drain: until no call is in progress, until the driver is done, until its
     * completions have been delivered. Parts of the save: tables, and contents. Then: until all is
     * loaded, and until the destination is told to resume.
     */
    uint64_t stand_ns, driver_ns, ends_ns, tables_ns, contents_ns, loaded_ns, commit_ns;
    uint64_t bytes, read_bytes; /* Bytes sent; bytes read from memory objects during the stop. */
    /*
     * All pages; of these: pages of memory objects that the destination already had; pages of
     * zeros, sent without contents; during the stop, pages compared by samples, pages hashed, and
     * of the hashed ones those hashed by the device; pages sent before the stop, and during it.
     */
    uint64_t pages, pages_kept, pages_zero, pages_sampled, pages_hashed, pages_device,
        pages_precopy, pages_stop;
};

/*
 * Migration to another gantryd. The client asks the source for a description of the vGPU:
 * {"version":1,"request":"about","vgpu":ID}, answered by "about". It sends that to the destination:
 * {"version":1,"request":"receive","about":{...}}, after a FILE frame with a socket; the reply is
 * "receive": {"ticket":HEX}, or an error. Then it asks the source to "migrate" with
 * "to":ADDRESS,"ticket":HEX, after a FILE frame with the socket's other end. Nothing stops before
 * that.
 *
 * A program that is attached over tcp ("remote":true in "about", and "secure" with TLS) moves to
 * another gantryd over tcp. Then "receive" comes over tcp, from a client that has the tenant's
 * token, without a FILE frame, and its reply has a "name" as well. The contents go through a
 * connection that begins with that name (gn_link_data); the FILE frame to the source carries its
 * descriptor.
 */
#define GN_CONTROL_TICKET_BYTES 32
#define GN_CONTROL_NEAR_BYTES   272
struct gn_control_receipt {
    bool named;
    char near[GN_CONTROL_NEAR_BYTES]; /* "": not given */
    unsigned char kernel[GN_KERNEL_BYTES];
    unsigned char ticket[GN_CONTROL_TICKET_BYTES], name[GN_CONTROL_TICKET_BYTES];
};
#define GN_CONTROL_MOVE_DEVICES 64
struct gn_control_about {
    uint32_t id;
    const char *tenant, *program, *api, *platform;
    uint32_t weight;
    bool remote, secure;  /* its program is attached over tcp; through TLS */
    uint64_t need_bytes;  /* device memory that it needs */
    uint64_t limit_bytes; /* the vGPU's own limit; 0: none */
    uint32_t n_devices;
    struct gn_control_about_device {
        const char *name, *vendor, *version, *driver_version, *shown_as;
        uint64_t memory_bytes, max_allocation_bytes, local_memory_bytes;
        uint32_t compute_units;
    } devices[GN_CONTROL_MOVE_DEVICES];
};

/*
 * Drain of a gantryd: after {"version":1,"request":"drain"} no program without a vGPU gets one
 * here, until {"version":1,"request":"drain","undo":true}. Existing vGPUs stay. The reply is
 * "drain": {"draining", "coming": vGPUs that were admitted before and have not arrived yet}. "ls"
 * and "status" say "draining":true meanwhile.
 *
 * The error of a refused "about" or "receive" has a "kind" where the client needs it: "gone": there
 * is no such vGPU, or its program has ended; "memory": there is not enough device memory now.
 */
#define GN_CONTROL_KIND_GONE   "gone"
#define GN_CONTROL_KIND_MEMORY "memory"
#define GN_CONTROL_KIND_USAGE  "usage" /* the client's command line is wrong */
struct gn_control_drain {
    bool draining;
    uint32_t n_coming;
};

/*
 * {"version":1,"request":"kill","vgpu":ID[,"reason":TEXT]} ends a vGPU as the loss of its worker
 * does. The reply is "kill": {"id", "result":"ended"}; an error of the kind "gone": there is no
 * such vGPU, or it has ended.
 *
 * Commands of owners: over a socket for programs, "kill", "checkpoint", "checkpoint-keep",
 * "restore" and "migrate" within this gantryd are carried out for the owner of the vGPU if its
 * tenant allows it ("owner").
 */

/*
 * {"version":1,"request":"checkpoint","vgpu":ID,"stop":BOOL[,"drain_timeout_ms":N]}, after a FILE
 * frame with the end of a pipe (docs/link.md). The reply is "checkpoint". Its "state" is running:
 * all data is in the pipe and the program runs on; or saved: all data is in the pipe and the
 * program waits for {"version":1,"request":"checkpoint-keep"}, which says that the file is safe and
 * that the program must stop. Then the state is stopped. If the connection ends before that, the
 * program runs on.
 *
 * {"version":1,"request":"restore","vgpu":ID,"tenant":NAME,"key":HEX,"ring_at":N}, after a FILE
 * frame with that file at offset 0; the other fields come from the file. The reply is "restore",
 * with "result" restored, or absent and "why": no program waits for it now.
 */
#define GN_CONTROL_KEY_BYTES 32
struct gn_control_checkpoint {
    uint32_t id;
    const char *state;
    uint64_t downtime_ns; /* from when the gate began to close */
    uint64_t hold_ns;     /* before that, until the driver was done */
    uint64_t drain_ns, save_ns;
    uint64_t pages, pages_zero, bytes;
};

struct gn_control_restore {
    uint32_t id;
    char tenant[64];
    unsigned char key[GN_CONTROL_KEY_BYTES];
    uint64_t ring_at;
};

struct gn_control_restored {
    uint32_t id;
    uint64_t boot_ns, load_ns, bytes;
};

#endif
