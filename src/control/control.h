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
 * policy, or one about tracing (below); a reply is {"version":1, ...} with "vgpus", "devices",
 * "gantryd", "tenants", "policy" or "trace", or
 * {"version":1,"error":{"what","why","fix"}}. Fields are only ever added; one that is not known is
 * left out.
 */
#define GN_CONTROL_VERSION 1

/* A vGPU and one of its devices. */
struct gn_control_share {
    const char *name; /* the device's */
    uint32_t index;   /* gantryd's number for it, as in gn_control_device */
    double share;     /* of what was charged of it in the last second or two, 0 to 1; below 0, as
                         entitled: it takes no turns */
    double entitled;  /* to, by weight, among those that had work in that time */
    uint64_t device_ns, used_ns, waited_ns, grants;
    bool interactive;
    bool used; /* its program has made a queue there */
};

/* A vGPU on its way: "moving". Its contents go in rounds, of which the stop's is the last. */
struct gn_control_moving {
    const char *what; /* "move", "checkpoint", "restore" */
    const char *to; /* "local", "remote", "passthrough", another gantryd's address; NULL: a file */
    const char *phase; /* "preparing", "ahead", "waiting" for builds, "stop", "loading" */
    uint32_t round;    /* 0: no contents have gone yet; then the sizes are 0 */
    uint64_t done_bytes, total_bytes; /* of the round: found unchanged or sent; all contents */
    uint64_t sent_bytes;              /* in all rounds, with all else */
    uint64_t elapsed_ns;
};

struct gn_control_vgpu {
    uint32_t id;
    const char *tenant;
    const char *program;
    uint32_t pid;        /* the program's; 0: not known (another pid namespace) */
    uint32_t worker_pid; /* 0: none now */
    const char *platform;
    const char *link;  /* "shm" */
    const char *mode;  /* "remote" */
    bool driver_stays; /* it was in its program, where the driver's library still is; left out if
                          not */
    const char *state; /* "running", "idle", "moving", "stopped", "lost" */
    const struct gn_control_moving *moving; /* NULL: it is not; left out then */
    uint32_t weight;
    uint64_t memory_bytes;
    uint64_t leased_bytes;       /* that it may use without asking; memory_bytes of it are used */
    uint64_t memory_limit_bytes; /* 0: none; left out then */
    uint64_t calls, sync_calls;
    uint64_t copies_two, copies_mapped, copies_bypass;
    uint32_t n_devices;
    const struct gn_control_share *devices;
};

struct gn_control_device {
    uint32_t index; /* gantryd's number for it, as long as that runs */
    const char *name;
    const char *vendor;
    const char *api;
    const char *platform;
    uint32_t platform_index;
    const char *type;       /* what it is: "cpu", "gpu", "accelerator", "custom" */
    const char *present_as; /* what programs see */
    uint32_t compute_units;
    uint32_t clock_mhz;
    uint64_t memory_bytes;
    uint64_t max_allocation_bytes;
    uint64_t local_memory_bytes;
    uint64_t slice_ns; /* how long a turn is while others wait */
    const char *version;
    const char *driver_version;
    uint32_t n_vgpus;      /* that may use it now, of all tenants */
    uint64_t leased_bytes; /* to them */
    /* So far, of all vGPUs that gantryd has had: "use"; and of those that the viewer does not see:
     * "others", left out where it sees all. */
    struct gn_control_use {
        uint64_t device_ns, used_ns, waited_ns, grants;
    } use;
    bool has_others;
    struct gn_control_others {
        uint32_t n_vgpus;
        double share, entitled; /* as in gn_control_share, together */
        uint64_t device_ns, waited_ns;
    } others;
};

/* gantryd itself. */
struct gn_control_status {
    const char *version; /* of the program: "0.1.0" */
    uint32_t pid;
    uint32_t uid;
    uint32_t n_platforms, n_devices, n_vgpus;
    const char *walls_mode;    /* "required", "available", "none" */
    const char *walls_have;    /* names of walls, with commas between; "": none */
    const char *walls_missing; /* the same, of those that cannot be had */
    bool draining;             /* it takes no new programs; left out if not */
    /* "limits", of those that may see everything: what there is room for, and what has been refused
     * since its start. */
    bool tells_limits;
    uint32_t n_descriptors, descriptor_limit, vgpu_places;
    uint64_t n_refused_vgpus, n_refused_leases, n_evicted, n_dropped_lines;
};

struct gn_control_driver {
    const char *api;
    const char *library; /* as its .icd file names it */
    uint32_t n_devices;  /* offered; 0: the driver failed, has none, or none is selected */
};

struct gn_control_tenant {
    const char *name;
    uint32_t weight;
    uint32_t cap, floor;          /* in millionths of a device; 0: none; left out then */
    uint32_t n_vgpus, vgpu_limit; /* 0: none said; left out then */
    uint64_t n_refused_vgpus;     /* since its making, as the next; left out when there was none */
    uint64_t
        n_refused_leases; /* allocations that its limit, or the device's memory, left no room for */
    uint64_t memory_bytes, leased_bytes; /* of all its vGPUs */
    uint64_t memory_limit_bytes;         /* 0: none; left out then */
    bool any_uid;                        /* "uids":"any" */
    bool token;                          /* one lets in */
    const char *socket; /* its own socket's path; NULL: it has none; left out then */
    uint32_t n_uids, n_gids, n_modes, n_devices;
    const uint32_t *uids, *gids;
    const char *const *modes;
    uint32_t n_owner;
    const char *const *owner;   /* what the owner of a vGPU may do: "kill", "checkpoint", "restore",
                                   "migrate", "mode" */
    const char *const *devices; /* selectors; none: every device */
};

#define GN_CONTROL_MAX_IDS     64
#define GN_CONTROL_MAX_VGPUS   1000000
#define GN_CONTROL_MAX_DEVICES 16
#define GN_CONTROL_MAX_MODES   4
#define GN_CONTROL_MAX_OWNER   8

/*
 * {"version":1,"request":"tenant-add"|"tenant-set"|"tenant-rm","name":NAME, ...}, with, but for
 * tenant-rm, any of "weight", "cap" and "floor" (0 to 1; 0: none), "memory_limit_bytes" (0: none),
 * "vgpu_limit" (0: none), "uids" (a list, empty for nobody, or "any"), "gids", "token" ("": none),
 * "socket" (true or false), "owner" (a list of "kill", "checkpoint", "restore", "migrate", "mode"),
 * "modes", "devices". A list takes the place of the one before; what is not named stays as it is.
 * The reply is "tenants": the one changed.
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
 * Who gets a device next: {"version":1,"request":"policy"}, or
 * {"version":1,"request":"policy-set","name":NAME}; the reply is "policy" (the name of the one in
 * force) and "policies".
 */
struct gn_control_policy {
    const char *name;
    const char *about; /* a line for people */
    bool in_force;     /* one of them is */
};

/*
 * Tracing: {"version":1,"request":"trace-start"} with, or without, "vgpu":ID; "trace-read", again
 * and again; "trace-stop", after which what is left can still be read. The reply is "trace":
 * {"now_ns", "dropped" (since it was asked last), "more" (ask again at once), "events": [{"at_ns",
 * "what", "vgpu", "device", "text", and what this kind tells: base/trace.h}, ...]}. It is the
 * connection's that began it, and ends with that.
 *
 * {"version":1,"request":"migrate","vgpu":ID,"to":"local"[,"device":NAME][,"drain_timeout_ms":N]
 *  [,"rounds":N][,"bandwidth_bytes":N]}:
 * to a new worker on this machine ("remote": out of its program; "passthrough": into it), after so
 * many rounds of contents while the program runs (0: stop and copy; otherwise 1), at most so many
 * bytes a second. The reply comes when it is done, and is "move".
 */
struct gn_trace_event;
struct gn_control_trace {
    uint64_t now_ns;    /* whatever is older has been told, or will never be */
    uint64_t n_dropped; /* events, since it was asked last */
    bool more;
};
enum gn_control_tracing { GN_CONTROL_TRACE_START, GN_CONTROL_TRACE_READ, GN_CONTROL_TRACE_STOP };

#define GN_CONTROL_DRAIN_MS   10000u
#define GN_CONTROL_ROUNDS     1u
#define GN_CONTROL_MAX_ROUNDS 16u
struct gn_control_wish {
    const char *vgpu; /* its id, or as much of it as only it has */
    const char *to;
    const char
        *device; /* another one, in this gantryd: NAME-PART[:INDEX] or FROM=TO; NULL: the same */
    const char *ticket; /* in hex, where `to` is the address of another gantryd; NULL: none */
    const char *name;   /* in hex, over tcp: what the ticket is the key of; NULL: none */
    bool secure;        /* over tcp: that gantryd was reached by TLS */
    const char *near; /* over tcp: how its machine's own programs reach it; NULL: they are not to */
    const char *kernel; /* in hex: that machine's (base/kernel.h); NULL without `near` */
    uint32_t drain_timeout_ms;
    uint32_t rounds;
    uint64_t bandwidth_bytes; /* a second; 0: no limit */
    bool stop;                /* of a checkpoint */
};

struct gn_control_move {
    uint32_t id;
    const char *to;
    uint64_t downtime_ns; /* from the gate's closing to the word that the new worker may go */
    uint64_t precopy_ns;
    uint64_t hold_ns; /* ahead of the stop: until the driver was done with what it had been given,
                         the program going on */
    uint64_t boot_ns, drain_ns, save_ns, load_ns;
    /* Parts of the drain: until no call went on, the driver was done, its ends were told. Of the
     * save: what there is, and contents. Then until all was loaded, and until the new host was told
     * to go. */
    uint64_t stand_ns, driver_ns, ends_ns, tables_ns, contents_ns, loaded_ns, commit_ns;
    uint64_t bytes, read_bytes; /* sent; in the stop read out of memory objects */
    /* All there are; of these, in memories that whoever takes over had from before; sent by name;
     * in the stop told by their samples, and hashed, of these by the device; sent before it, and in
     * it. */
    uint64_t pages, pages_kept, pages_zero, pages_sampled, pages_hashed, pages_device,
        pages_precopy, pages_stop;
};

/*
 * To another gantryd. Who asks has the one that is left tell what there is:
 * {"version":1,"request":"about","vgpu":ID}, answered by "about"; shows it to the other one:
 * {"version":1,"request":"receive","about":{...}}, after a FILE that brought a socket, and is
 * answered "receive": {"ticket":HEX}, or why not; then asks the first one to "migrate" with
 * "to":ADDRESS,"ticket":HEX, after a FILE that brought the socket's other end. Until then nothing
 * has stopped.
 *
 * A program that is attached over tcp ("remote":true in "about", and "secure" where that is TLS)
 * goes to another gantryd over tcp. Then "receive" comes over tcp, from who has the tenant's token,
 * without a FILE, and is answered a "name" as well; the contents come by a connection that begins
 * with the name (gn_link_data), and its descriptor is what FILE brings the first one.
 */
#define GN_CONTROL_TICKET_BYTES 32
#define GN_CONTROL_NEAR_BYTES   272
struct gn_control_receipt {
    bool named;
    char near[GN_CONTROL_NEAR_BYTES]; /* "": not told */
    unsigned char kernel[GN_KERNEL_BYTES];
    unsigned char ticket[GN_CONTROL_TICKET_BYTES], name[GN_CONTROL_TICKET_BYTES];
};
#define GN_CONTROL_MOVE_DEVICES 64
struct gn_control_about {
    uint32_t id;
    const char *tenant, *program, *api, *platform;
    uint32_t weight;
    bool remote, secure;  /* its program is attached over tcp; through TLS */
    uint64_t need_bytes;  /* of device memory */
    uint64_t limit_bytes; /* the vGPU's own; 0: none */
    uint32_t n_devices;
    struct gn_control_about_device {
        const char *name, *vendor, *version, *driver_version, *shown_as;
        uint64_t memory_bytes, max_allocation_bytes, local_memory_bytes;
        uint32_t compute_units;
    } devices[GN_CONTROL_MOVE_DEVICES];
};

/*
 * A gantryd is emptied: {"version":1,"request":"drain"} and, from then on, no program gets a vGPU
 * here that has none, until
 * {"version":1,"request":"drain","undo":true}. Who has one keeps it. The reply is "drain":
 * {"draining", "coming": vGPUs that were let in before and are not there yet}. "ls" and "status"
 * say "draining":true meanwhile.
 *
 * Of a refused "about" or "receive" the error has a "kind" where it matters which one it is:
 * "gone": there is no such vGPU, or its program has ended; "memory": there is not enough for it,
 * now.
 */
#define GN_CONTROL_KIND_GONE   "gone"
#define GN_CONTROL_KIND_MEMORY "memory"
#define GN_CONTROL_KIND_USAGE  "usage" /* the command line that asks for it is wrong */
struct gn_control_drain {
    bool draining;
    uint32_t n_coming;
};

/*
 * {"version":1,"request":"kill","vgpu":ID[,"reason":TEXT]} ends a vGPU as the loss of its worker
 * does. The reply is "kill":
 * {"id", "result":"ended"}; an error of the kind "gone": there is none, or it has ended.
 *
 * Commands of owners: over a socket for programs "kill", "checkpoint", "checkpoint-keep", "restore"
 * and "migrate" within this gantryd are carried out for the owner of the vGPU where its tenant
 * allows it ("owner").
 */

/*
 * {"version":1,"request":"checkpoint","vgpu":ID,"stop":BOOL[,"drain_timeout_ms":N]}, after a FILE
 * that brought the end of a pipe (docs/link.md). The reply is "checkpoint", with "state" running:
 * it is all in the pipe, and the program goes on; or saved: it is, and the program waits for
 * {"version":1,"request":"checkpoint-keep"}: the file is safe, the program is to stop. Then state
 * is stopped. The end of the connection before that lets it go on.
 *
 * {"version":1,"request":"restore","vgpu":ID,"tenant":NAME,"key":HEX,"ring_at":N}, after a FILE:
 * that file, at its beginning; the rest is what it says. The reply is "restore", with "result"
 * restored, or absent and "why": nobody waits for it now.
 */
#define GN_CONTROL_KEY_BYTES 32
struct gn_control_checkpoint {
    uint32_t id;
    const char *state;
    uint64_t downtime_ns; /* since the gate began to close */
    uint64_t hold_ns;     /* ahead of that, until the driver was done */
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

/* An error's reply, malloc'd, as --json prints it. `why` and `fix` may be NULL. */
char *gn_control_error(const char *what, const char *why, const char *fix);
/* The same with a "kind". */
char *gn_control_error_of_kind(const char *what, const struct gn_error *err, const char *kind);

/* tenant_request.c: the object of a request, as a change. 0 or -EINVAL; *ret points into the
 * object. */
struct json_t;
int gn_control_parse_change(const struct json_t *request, enum gn_control_what what,
                            struct gn_control_change *ret, struct gn_error *err);
/* The text of a change's request, malloc'd. */
char *gn_control_change_request(const struct gn_control_change *change);

/* "policy-set"'s, malloc'd. */
char *gn_control_policy_request(const char *name);

/* trace_reply.c: "trace-start"'s, malloc'd; vgpu may be NULL. */
char *gn_control_trace_request(const char *vgpu);
/* move_request.c: the text of a request, malloc'd; a request's wish, whose texts are the request's;
 * what is said of one that is done. */
char *gn_control_move_request(const struct gn_control_wish *wish);
int gn_control_parse_wish(const struct json_t *request, struct gn_control_wish *ret,
                          struct gn_error *err);
char *gn_control_move_reply(const struct gn_control_move *m);

/* kill_request.c: the text of the request, malloc'd; reason may be NULL. */
char *gn_control_kill_request(const char *vgpu, const char *reason);

/* drain_request.c: the text of the request, malloc'd. */
char *gn_control_drain_request(bool on);

/* receive_request.c: the texts of requests, malloc'd; `about` is the object that the first of them
 * was answered. */
char *gn_control_about_request(const char *vgpu);
char *gn_control_receive_request(struct json_t *about);
/* Exactly n bytes in hex, and the other way: ret has room for 2 n + 1. */
bool gn_control_parse_hex(const char *text, unsigned char *ret, size_t n);
void gn_control_print_hex(const unsigned char *bytes, size_t n, char *ret);

/* checkpoint_request.c: the texts of requests and replies, malloc'd. */
char *gn_control_checkpoint_request(const struct gn_control_wish *wish);
char *gn_control_checkpoint_reply(const struct gn_control_checkpoint *c);
char *gn_control_restore_request(const struct gn_control_restore *wish);
char *gn_control_restore_reply(const struct gn_control_restored *r);

/* A request with no more than its name, malloc'd. */
char *gn_control_request(const char *name);

#endif
