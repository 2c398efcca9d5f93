/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CONTROL_H
#define GN_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "control/migration_requests.h"

/*
 * The control requests of a gantryd and their JSON. A request is
 * {"version":1,"request":"ls"|"devices"|"status"|"tenants"|"policy"|"place"}, a change of tenants
 * or of a policy, or one about tracing (below). A reply is {"version":1, ...} with "vgpus",
 * "devices", "gantryd", "tenants", "policy", "place" or "trace", or
 * {"version":1,"error":{"what","why","fix"}}. Later versions only add fields; a field with an
 * unknown value is left out.
 */
#define GN_CONTROL_VERSION 1

/* A vGPU's memory on a device whose memory is placed (--oversubscribe). */
struct gn_control_placed {
    const char *state; /* "resident", "leaving", "evicted" or "coming" */
    uint64_t memory_bytes, resident_bytes, pinned_bytes;
    uint64_t n_residencies; /* how often it came in after an eviction */
    uint64_t in_bytes, out_bytes;
    uint64_t evicted_ns; /* with work, but not on the device in all */
};

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
    bool used;                              /* its program has made a queue there */
    const struct gn_control_placed *placed; /* NULL: not placed, its fields are left out */
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

/* The slots of a device whose memory is placed. */
struct gn_control_slots {
    const char *place; /* the placement policy */
    uint64_t slot_bytes;
    uint32_t n_slots, n_free, n_reserved;
    uint64_t swap_bytes;   /* host memory for evicted contents */
    uint64_t n_swaps;      /* vGPUs that came in after an eviction */
    uint64_t copying_ns;   /* the time that swaps took */
    double copier_busy;    /* the same as a part of the time since gantryd started */
    uint64_t n_rearranged; /* how often the policy has given vGPUs other slots */
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
    uint64_t memory_bytes; /* its budget, or the driver's figure */
    uint64_t max_allocation_bytes;
    uint64_t local_memory_bytes;
    uint64_t slice_ns; /* the length of a turn while others wait */
    const char *version;
    const char *driver_version;
    uint32_t n_vgpus;                     /* vGPUs of all tenants that may use it now */
    uint64_t leased_bytes;                /* on it, to vGPUs of all tenants */
    const struct gn_control_slots *slots; /* NULL: not placed, its fields are left out */
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
    uint64_t reserve_bytes;              /* on each of its devices; 0: none, left out */
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
 * "reserve_bytes" (0: none), "vgpu_limit" (0: none), "uids" (a list, empty for no user, or "any"),
 * "gids", "token" ("": none), "socket" (true or false), "owner" (a list of "kill", "checkpoint",
 * "restore", "migrate", "mode"), "modes", "devices". A list replaces the previous one; fields that
 * are absent do not change. The reply is "tenants", with the changed one.
 */
struct gn_control_change {
    enum gn_control_what { GN_CONTROL_ADD = 1, GN_CONTROL_SET, GN_CONTROL_REMOVE } what;
    const char *name;
    bool has_weight, has_cap, has_floor, has_memory, has_reserve, has_vgpus, has_uids, has_gids,
        has_token, has_socket, has_owner, has_modes, has_devices;
    uint32_t weight;
    uint32_t cap, floor; /* in millionths */
    uint64_t memory_limit_bytes, reserve_bytes;
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
    bool in_force;     /* true for exactly one; of placement policies for none or one */
};

/*
 * The placement policy: {"version":1,"request":"place"}, or
 * {"version":1,"request":"place-set","name":NAME}. The reply is "place" (the name of the one in
 * force; left out: no device's memory is placed) and "policies".
 */

/*
 * Tracing: {"version":1,"request":"trace-start"}, with or without "vgpu":ID; then "trace-read"
 * repeatedly; then "trace-stop", after which the remaining events can still be read. The reply is
 * "trace": {"now_ns", "dropped" (since the last request), "more" (ask again at once), "events":
 * [{"at_ns", "what", "vgpu", "device", "text", and the fields of this kind (base/trace.h)}, ...]}.
 * The trace belongs to the connection that started it and ends with that connection.
 */
struct gn_trace_event;
struct gn_control_trace {
    uint64_t now_ns;    /* All older events have been sent, or are lost. */
    uint64_t n_dropped; /* events lost since the last request */
    bool more;
};
enum gn_control_tracing { GN_CONTROL_TRACE_START, GN_CONTROL_TRACE_READ, GN_CONTROL_TRACE_STOP };

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

/* Return the texts of "policy-set" and "place-set" requests, malloc'd. */
char *gn_control_policy_request(const char *name);
char *gn_control_place_request(const char *name);

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
