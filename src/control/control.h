/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CONTROL_H
#define GN_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/kernel.h"

/*
 * The control requests of a gantryd and their JSON. A request is
 * {"version":1,"request":"ls"|"devices"|"status"|"tenants"|"policy"}, a change of tenants or of the
 * policy, or one about tracing (below). A reply is {"version":1, ...} with "vgpus", "devices",
 * "gantryd", "tenants", "policy" or "trace", or {"version":1,"error":{"what","why","fix"}}. Later
 * versions only add fields; a field with an unknown value is left out.
 */
#define GN_CONTROL_VERSION 1

/* A vGPU's use of one of its devices. */
struct gn_control_share {
    const char *name; /* the device's name */
    uint32_t index;   /* gantryd's number of the device, as in gn_control_device */
    /*
     * Part of the time charged on the device in the last second or two, 0 to 1. Below 0, like
     * entitled: the vGPU takes no turns.
     */
    double share;
    double entitled; /* the part by weight, among the vGPUs that had work in that time */
    uint64_t device_ns, used_ns, waited_ns, grants;
    bool interactive;
    bool used; /* its program has made a queue there */
};

/* A vGPU in migration: "moving". Its contents are sent in rounds; the last one is the stop's. */
struct gn_control_moving {
    const char *what; /* "move", "checkpoint", "restore" */
    /* "local", "remote", "passthrough" or another gantryd's address; NULL: a file. */
    const char *to;
    const char *phase; /* "preparing", "ahead", "waiting" (for builds), "stop", "loading" */
    uint32_t round;    /* 0: no contents have been sent yet, and the sizes are 0 */
    /* In this round: bytes sent or found unchanged so far; bytes of all contents. */
    uint64_t done_bytes, total_bytes;
    uint64_t sent_bytes; /* in all rounds, with all other data */
    uint64_t elapsed_ns;
};

struct gn_control_vgpu {
    uint32_t id;
    const char *tenant;
    const char *program;
    uint32_t pid;        /* the program's; 0: unknown (another pid namespace) */
    uint32_t worker_pid; /* 0: no worker at the moment */
    const char *platform;
    const char *link; /* "shm" */
    const char *mode; /* "remote" */
    /* It was in its program, which still has the driver's library loaded. Left out if false. */
    bool driver_stays;
    const char *state;                      /* "running", "idle", "moving", "stopped", "lost" */
    const struct gn_control_moving *moving; /* NULL: not in migration, left out */
    uint32_t weight;
    uint64_t memory_bytes;
    /* Memory that it may use without asking; memory_bytes of it are in use. */
    uint64_t leased_bytes;
    uint64_t memory_limit_bytes; /* 0: no limit, left out */
    uint64_t calls, sync_calls;
    uint64_t copies_two, copies_mapped, copies_bypass;
    uint32_t n_devices;
    const struct gn_control_share *devices;
};

struct gn_control_device {
    uint32_t index; /* gantryd's number of the device while this gantryd runs */
    const char *name;
    const char *vendor;
    const char *api;
    const char *platform;
    uint32_t platform_index;
    const char *type;       /* the real type: "cpu", "gpu", "accelerator", "custom" */
    const char *present_as; /* the type that programs see */
    uint32_t compute_units;
    uint32_t clock_mhz;
    uint64_t memory_bytes;
    uint64_t max_allocation_bytes;
    uint64_t local_memory_bytes;
    uint64_t slice_ns; /* the length of a turn while others wait */
    const char *version;
    const char *driver_version;
    uint32_t n_vgpus;      /* vGPUs of all tenants that may use it now */
    uint64_t leased_bytes; /* leased to them */
    /*
     * "use": totals of all vGPUs that gantryd has had. "others": the same for the vGPUs that the
     * viewer may not see; left out if it may see all.
     */
    struct gn_control_use {
        uint64_t device_ns, used_ns, waited_ns, grants;
    } use;
    bool has_others;
    struct gn_control_others {
        uint32_t n_vgpus;
        double share, entitled; /* sums, as in gn_control_share */
        uint64_t device_ns, waited_ns;
    } others;
};

/* gantryd itself. */
struct gn_control_status {
    const char *version; /* of gantryd: "0.1.0" */
    uint32_t pid;
    uint32_t uid;
    uint32_t n_platforms, n_devices, n_vgpus;
    const char *walls_mode;    /* "required", "available", "none" */
    const char *walls_have;    /* names of walls, separated by commas; "": none */
    const char *walls_missing; /* names of the walls that this machine cannot have */
    bool draining;             /* gantryd accepts no new programs; left out if false */
    /*
     * "limits", for viewers that may see everything: the capacity, and the number of refusals since
     * gantryd started.
     */
    bool tells_limits;
    uint32_t n_descriptors, descriptor_limit, vgpu_places;
    uint64_t n_refused_vgpus, n_refused_leases, n_evicted, n_dropped_lines;
};

struct gn_control_driver {
    const char *api;
    const char *library; /* as its .icd file names it */
    uint32_t n_devices;  /* devices offered; 0: the driver failed, has none, or none is selected */
};

struct gn_control_tenant {
    const char *name;
    uint32_t weight;
    uint32_t cap, floor;          /* in millionths of a device; 0: none, left out */
    uint32_t n_vgpus, vgpu_limit; /* 0: no limit, left out */
    uint64_t n_refused_vgpus;     /* counts since the tenant was made; left out if 0 */
    /* Allocations refused because of the tenant's limit or because the device's memory was full. */
    uint64_t n_refused_leases;
    uint64_t memory_bytes, leased_bytes; /* sums over all its vGPUs */
    uint64_t memory_limit_bytes;         /* 0: no limit, left out */
    bool any_uid;                        /* "uids":"any" */
    bool token;                          /* the tenant has a token */
    const char *socket;                  /* path of the tenant's own socket; NULL: none, left out */
    uint32_t n_uids, n_gids, n_modes, n_devices;
    const uint32_t *uids, *gids;
    const char *const *modes;
    uint32_t n_owner;
    /*
     * The commands that the owner of a vGPU may give: "kill", "checkpoint", "restore", "migrate",
     * "mode".
     */
    const char *const *owner;
    const char *const *devices; /* selectors; none: every device */
};

#define GN_CONTROL_MAX_IDS     64
#define GN_CONTROL_MAX_VGPUS   1000000
#define GN_CONTROL_MAX_DEVICES 16
#define GN_CONTROL_MAX_MODES   4
#define GN_CONTROL_MAX_OWNER   8

/*
 * {"version":1,"request":"tenant-add"|"tenant-set"|"tenant-rm","name":NAME, ...}, with (except for
 * tenant-rm) any of "weight", "cap" and "floor" (0 to 1; 0: none), "memory_limit_bytes" (0: none),
 * "vgpu_limit" (0: none), "uids" (a list, empty for no user, or "any"), "gids", "token" ("": none),
 * "socket" (true or false), "owner" (a list of "kill", "checkpoint", "restore", "migrate", "mode"),
 * "modes", "devices". A list replaces the previous one; fields that are absent do not change. The
 * reply is "tenants", with the changed one.
 */
struct gn_control_change {
    enum gn_control_what { GN_CONTROL_ADD = 1, GN_CONTROL_SET, GN_CONTROL_REMOVE } what;
    const char *name;
    bool has_weight, has_cap, has_floor, has_memory, has_vgpus, has_uids, has_gids, has_token,
        has_socket, has_owner, has_modes, has_devices;
    uint32_t weight;
    uint32_t cap, floor; /* in millionths */
    uint64_t memory_limit_bytes;
    uint32_t vgpus;
    bool any_uid, socket;
    uint32_t n_uids, n_gids, n_modes, n_devices;
    uint32_t uids[GN_CONTROL_MAX_IDS], gids[GN_CONTROL_MAX_IDS];
    const char *token;
    size_t n_token;
    uint32_t n_owner;
    const char *owner[GN_CONTROL_MAX_OWNER];
    const char *modes[GN_CONTROL_MAX_MODES];
    const char *devices[GN_CONTROL_MAX_DEVICES];
};

/*
 * The scheduling policy: {"version":1,"request":"policy"}, or
 * {"version":1,"request":"policy-set","name":NAME}. The reply is "policy" (the name of the one in
 * force) and "policies".
 */
struct gn_control_policy {
    const char *name;
    const char *about; /* one line for people */
    bool in_force;     /* true for exactly one */
};

/*
 * Tracing: {"version":1,"request":"trace-start"}, with or without "vgpu":ID; then "trace-read"
 * repeatedly; then "trace-stop", after which the remaining events can still be read. The reply is
 * "trace": {"now_ns", "dropped" (since the last request), "more" (ask again at once), "events":
 * [{"at_ns", "what", "vgpu", "device", "text", and the fields of this kind (base/trace.h)}, ...]}.
 * The trace belongs to the connection that started it and ends with that connection.
 *
 * Migration: {"version":1,"request":"migrate","vgpu":ID,"to":"local"[,"device":NAME]
 * [,"drain_timeout_ms":N][,"rounds":N][,"bandwidth_bytes":N]} moves a vGPU to a new worker on this
 * machine ("remote": out of its program; "passthrough": into it). Contents are sent in that many
 * rounds while the program runs (0: stop and copy; default 1), with at most that many bytes a
 * second. The reply is "move" and comes when the migration is done.
 */
struct gn_trace_event;
struct gn_control_trace {
    uint64_t now_ns;    /* All older events have been sent, or are lost. */
    uint64_t n_dropped; /* events lost since the last request */
    bool more;
};
enum gn_control_tracing { GN_CONTROL_TRACE_START, GN_CONTROL_TRACE_READ, GN_CONTROL_TRACE_STOP };

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

/* Returns an error reply, malloc'd, as --json prints it. `why` and `fix` may be NULL. */
char *gn_control_error(const char *what, const char *why, const char *fix);
/* The same with a "kind". */
char *gn_control_error_of_kind(const char *what, const struct gn_error *err, const char *kind);

/*
 * tenant_request.c: parses the object of a request as a change. 0 or -EINVAL; *ret points into the
 * object.
 */
struct json_t;
int gn_control_parse_change(const struct json_t *request, enum gn_control_what what,
                            struct gn_control_change *ret, struct gn_error *err);
/* Returns the text of a change request, malloc'd. */
char *gn_control_change_request(const struct gn_control_change *change);

/* Returns the text of a "policy-set" request, malloc'd. */
char *gn_control_policy_request(const char *name);

/* trace_reply.c: returns the text of a "trace-start" request, malloc'd; vgpu may be NULL. */
char *gn_control_trace_request(const char *vgpu);
/*
 * move_request.c: builds the text of a request, malloc'd; parses a request into *ret,
 * with texts that point into the request; builds the reply of a finished migration, malloc'd.
 */
char *gn_control_move_request(const struct gn_control_wish *wish);
int gn_control_parse_wish(const struct json_t *request, struct gn_control_wish *ret,
                          struct gn_error *err);
char *gn_control_move_reply(const struct gn_control_move *m);

/* kill_request.c: returns the text of the request, malloc'd; reason may be NULL. */
char *gn_control_kill_request(const char *vgpu, const char *reason);

/* drain_request.c: returns the text of the request, malloc'd. */
char *gn_control_drain_request(bool on);

/*
 * receive_request.c: return the texts of requests, malloc'd; `about` is the object in the reply to
 * the first one.
 */
char *gn_control_about_request(const char *vgpu);
char *gn_control_receive_request(struct json_t *about);
/* Parses exactly n bytes in hex. gn_control_print_hex prints them; its ret has room for 2 n + 1. */
bool gn_control_parse_hex(const char *text, unsigned char *ret, size_t n);
void gn_control_print_hex(const unsigned char *bytes, size_t n, char *ret);

/* checkpoint_request.c: return the texts of requests and replies, malloc'd. */
char *gn_control_checkpoint_request(const struct gn_control_wish *wish);
char *gn_control_checkpoint_reply(const struct gn_control_checkpoint *c);
char *gn_control_restore_request(const struct gn_control_restore *wish);
char *gn_control_restore_reply(const struct gn_control_restored *r);

/* Returns the text of a request that has only a name, malloc'd. */
char *gn_control_request(const char *name);

#endif
