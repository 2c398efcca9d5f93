/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_WORKER_WIRE_H
#define GN_LINK_WORKER_WIRE_H

#include <stdint.h>

#include "link/link_wire.h"

/*
 * Payloads of the frames between gantryd and what it starts: the probe, the template, a worker.
 * gantryd checks what a worker says as it checks a program's words. Both ends are of one build, so
 * there is no version here.
 */
enum gn_worker_op {
    /* gantryd <-> template */
    /* -> template; seq names the request. fd: the worker's end of its control socket */
    GN_WORKER_SPAWN = 32,
    GN_WORKER_SPAWNED = 33, /* <- gn_worker_spawned; fd: a pidfd. Or GN_LINK_ERROR */
    GN_WORKER_ENDED = 34,   /* <- gn_worker_ended */

    /* gantryd <-> worker, on its control socket */
    GN_WORKER_BOOT = 40,   /* -> gn_worker_boot, devices, wall; fds: see GN_WORKER_BOOT_FDS */
    GN_WORKER_BOOTED = 41, /* <- empty: the driver is up. Or GN_LINK_ERROR */
    /* -> gn_link_segment_made; fd: the segment. Sent before the program hears of it */
    GN_WORKER_SEGMENT = 42,
    GN_WORKER_END = 43,  /* -> empty: the program is gone, end now */
    GN_WORKER_LINK = 44, /* -> empty; fd: a data connection of the program's, its name read */

    /* probe -> gantryd */
    GN_PROBE_DRIVER = 48,   /* gn_probe_driver: one a driver, by --list-drivers */
    GN_PROBE_PLATFORM = 49, /* gn_probe_platform */
    GN_PROBE_DEVICE = 50,   /* gn_probe_device, of the platform before it */
    GN_PROBE_DONE = 51,     /* empty. Or GN_LINK_ERROR */

    GN_WORKER_WALLS = 52, /* --walls -> gantryd: gn_worker_walls. Or GN_LINK_ERROR */

    /* gantryd <-> worker, on its control socket: device memory */
    GN_WORKER_LEASE = 56,  /* <- gn_worker_lease: more is wanted; one at a time */
    GN_WORKER_LEASED = 57, /* -> gn_worker_leased: its answer, of the same seq */
    GN_WORKER_RECALL = 58, /* -> gn_worker_recall: what is leased and unused is wanted back */
    /* <- gn_worker_returned: once a RECALL, and whenever something comes back by itself */
    GN_WORKER_RETURNED = 59,

    /* gantryd <-> worker, on its control socket: a move. docs/moves.md */
    GN_WORKER_SAVE = 64, /* -> gn_worker_save; fd: where to. To the one that is left */
    /* <- gn_worker_moved: all has been written, and nothing goes on; or why not, and all goes on.
       fd: the session's socket, of a vGPU that stops */
    GN_WORKER_SAVED = 65,
    GN_WORKER_RESUME = 66, /* -> empty: go on as if nothing had been */
    GN_WORKER_LOADED = 67, /* <- gn_worker_moved: from the one that takes over; or why it can't */
    GN_WORKER_GO = 68,     /* -> empty: it is yours */
    GN_WORKER_STOPS = 70,  /* <- empty: all has been sent that can be ahead, and the gate closes */

    /* worker -> worker, before the stream */
    GN_WORKER_HAND = 72,         /* gn_worker_hand; fds: GN_WORKER_HAND_FDS */
    GN_WORKER_HAND_SEGMENT = 73, /* gn_link_segment_made; fd: another data segment, in their order.
                                    Later ones come from gantryd */
    /* the other way, of a stream that is no file */
    /* empty; seq: the round before which all is made that came before it */
    GN_WORKER_HAND_MADE = 75,
    /* seq: 1: its devices are others, and will do; 0: they are the same. Before all MADE */
    GN_WORKER_HAND_FITS = 76,
    GN_WORKER_HAND_KEPT = 77, /* ids, u64 each, up to GN_WORKER_HAND_KEPT_MOST: of memories that are
                                 still here from `kept`. Before FITS */
    /* and behind it */
    GN_WORKER_HAND_LAST = 74, /* gn_worker_hand_last; fds: stdout, stderr as they are now */
    /* of a program on another machine there are no descriptors; behind the stream come, before
       HAND_LAST: */
    GN_WORKER_HAND_FAR = 80,  /* gn_worker_hand_far */
    GN_WORKER_HAND_HELD = 81, /* u64: the batch that it waits for; a message. In their order */
    GN_WORKER_HAND_AREA = 82, /* gn_worker_hand_area; what lies there */
    /* BESIDE: what the program may not have got; seq 0: bytes of whole small records; 1: a record,
       of DATA without its payload, which lies in the area. In their order */
    GN_WORKER_HAND_SAID = 83,
};

/* BOOT's descriptors, in this order. stdout and stderr are there always: /dev/null where the
 * program has none. */
enum {
    GN_WORKER_BOOT_SESSION,
    GN_WORKER_BOOT_RING,
    GN_WORKER_BOOT_EVENTS,
    GN_WORKER_BOOT_DATA,
    GN_WORKER_BOOT_COUNTERS,
    GN_WORKER_BOOT_GRANTS, /* shm/grant.h */
    GN_WORKER_BOOT_TELL,   /* an eventfd: gantryd is to look at the grants */
    GN_WORKER_BOOT_STDOUT,
    GN_WORKER_BOOT_STDERR,
    GN_WORKER_BOOT_LOG, /* what it has to say in gantryd's log */
    GN_WORKER_BOOT_FDS
};

#define GN_WORKER_MAX_DEVICES 64

/* The kinds of device, as bits: what a device is, and what it is shown as. */
#define GN_DEVICE_CPU         1u
#define GN_DEVICE_GPU         2u
#define GN_DEVICE_ACCELERATOR 4u
#define GN_DEVICE_CUSTOM      8u

struct gn_worker_spawned {
    uint32_t pid;
    uint32_t zero;
};

struct gn_worker_ended {
    uint32_t pid;
    int32_t status; /* as from waitpid */
};

struct gn_worker_boot {
    uint32_t vgpu_id;
    uint32_t platform;  /* in its driver */
    uint32_t n_devices; /* gn_worker_boot_device that follow */
    uint32_t weight;
    uint64_t ring_bytes;
    uint64_t events_bytes;
    uint64_t data_bytes;
    uint64_t counters_bytes;
    uint64_t memory_limit_bytes; /* 0: none */
    char program[GN_LINK_NAME_BYTES];
    char tenant[GN_LINK_TENANT_BYTES];
    uint32_t remote;   /* GN_WORKER_REMOTE_*; 0: the program is on this machine */
    uint32_t grace_ms; /* for a program elsewhere to come back */
    uint8_t session[GN_LINK_SESSION_BYTES], key[GN_LINK_KEY_BYTES];
    uint32_t takes_turns; /* nothing goes to a device without its grant */
    uint32_t loads;   /* GN_WORKER_LOADS_*: it takes a vGPU over: the session's descriptor is where
                         from; events and data come there */
    uint64_t ring_at; /* of LOADS_FILE, whose descriptor is in the data area's place; of a remote
                         one, in the session's */
    uint8_t load_name[GN_LINK_SESSION_BYTES],
        load_key[GN_LINK_KEY_BYTES]; /* of LOADS_WORKER, REMOTE_TLS: who comes begins with TLS */
    uint32_t load_tls;               /* of LOADS_FAR: likewise */
    uint32_t zero;
};
_Static_assert(sizeof(struct gn_worker_boot) == 408, "boot");

#define GN_WORKER_LOADS_WORKER 1u /* all of it comes from the worker that has it */
#define GN_WORKER_LOADS_FILE                                                                       \
    2u /* the session comes from the program, the vGPU from a file; of a remote one both do */
#define GN_WORKER_LOADS_BESIDE                                                                     \
    3u /* all of it from a worker of this gantryd, without TLS, and the program's stream goes on   \
        * as it stands                                                                             \
        */

#define GN_WORKER_LOADS_FAR                                                                        \
    4u /* the session comes from the program, the vGPU from a worker on another machine, over tcp, \
          in the data area's place */

#define GN_WORKER_REMOTE_PLAIN 1u
#define GN_WORKER_REMOTE_TLS   2u

struct gn_worker_boot_device {
    uint32_t index;      /* in the platform, as probed */
    uint32_t present_as; /* GN_DEVICE_*, 0: as it is */
    uint32_t rank;       /* 0: offered first to a program that does not choose; and so on */
    uint32_t zero;
};

struct gn_worker_lease {
    uint64_t need_bytes; /* less is of no use */
    uint64_t want_bytes; /* with slack, so that the next one need not ask */
};

struct gn_worker_leased {
    uint64_t granted_bytes; /* 0: refused */
};

struct gn_worker_recall {
    uint32_t tight; /* 1: give back at once what is freed from now on, too; 0: no longer */
    uint32_t zero;
};

struct gn_worker_returned {
    uint64_t bytes;
    uint32_t answers; /* 1: a RECALL */
    uint32_t zero;
};
_Static_assert(sizeof(struct gn_worker_lease) == 16 && sizeof(struct gn_worker_returned) == 16,
               "leases");

#define GN_WORKER_SAVE_FILE 1u /* a checkpoint: nobody takes the session over */
#define GN_WORKER_SAVE_STOP 2u /* and the program does not go on */
#define GN_WORKER_SAVE_FAR                                                                         \
    4u /* to a worker that shares no memory with this one, nor with the program: over tcp */
#define GN_WORKER_SAVE_TLS 8u /* by TLS, with key and its name */
#define GN_WORKER_SAVE_BESIDE                                                                      \
    16u /* FAR, to a worker of this gantryd: the program is told nothing, and goes on with its     \
           stream there */
#define GN_WORKER_SAVE_NEAR                                                                        \
    32u /* FAR, to a worker that shares memory with the program: it is to be silent before the     \
           stop */
struct gn_worker_save {
    uint32_t drain_timeout_ms;
    uint32_t
        n_ahead; /* rounds of contents while the program runs; 0: it stands while all is sent */
    uint64_t bytes_per_s; /* of these rounds; 0: no limit */
    uint32_t flags;       /* GN_WORKER_SAVE_* */
    uint32_t
        vgpu_id; /* as people know it: a worker that has taken over was started under another */
    uint8_t key[GN_LINK_STOP_KEY_BYTES];
    uint8_t name[GN_LINK_SESSION_BYTES];
    uint32_t mark; /* FAR: what the program is told behind the last word that it gets from here */
    uint32_t zero;
};
_Static_assert(sizeof(struct gn_worker_save) == 96, "save");

struct gn_worker_moved {
    int32_t error;         /* 0 or a negative errno: what and fix say more */
    uint32_t driver_stays; /* SAVED by a program: its driver's library will stay loaded */
    uint64_t began_ns, quiet_ns, done_ns; /* CLOCK_MONOTONIC: the gate began to close (the load
                                             began); nothing ran; the end */
    uint64_t bytes, pages, pages_zero;    /* of the stream */
    uint64_t ahead_ns;                    /* what could be ahead took so long */
    uint64_t hold_ns; /* and then, until the driver had nothing to do, the program going on */
    uint64_t pages_total, pages_kept, pages_ahead, pages_stop, sampled, hashed, device;
    uint64_t read_bytes; /* out of memory objects in the stop */
    uint64_t stood_ns,
        drained_ns;   /* no call went on; the driver had nothing to do, its ends not all told */
    uint64_t told_ns; /* all but contents was written */
    char what[384];
    char fix[256];
};
_Static_assert(sizeof(struct gn_worker_moved) == 800, "moved");

enum {
    GN_WORKER_HAND_SESSION,
    GN_WORKER_HAND_EVENTS,
    GN_WORKER_HAND_DATA,
    GN_WORKER_HAND_STDOUT,
    GN_WORKER_HAND_STDERR,
    GN_WORKER_HAND_FDS
};

struct gn_worker_hand {
    uint64_t ring_at;    /* a position of the request ring, before which nothing is left to do */
    uint32_t n_segments; /* of data, the first one among them */
    uint32_t zero;
    /* Contents of memory objects. keeps: who gives it away will keep them under this number. kept:
     * they came from who kept them under this one. 0: not so. */
    uint64_t keeps, kept;
};
#define GN_WORKER_HAND_KEPT_MOST 512u

/* Where the session's stream of records stands (link/record.h). */
struct gn_worker_hand_far {
    uint64_t received;  /* bytes of whole records that were taken */
    uint64_t small;     /* of these, in small ones */
    uint64_t n_batches; /* of bulk data, that are whole */
    uint32_t n_held;    /* messages */
    uint32_t n_areas;
    uint64_t first, acknowledged; /* BESIDE: of what the program was told: where SAID begins, and
                                     how much of it the program has got */
    uint32_t n_said;
    uint32_t zero;
};
_Static_assert(sizeof(struct gn_worker_hand_far) == 56, "hand");

struct gn_worker_hand_area {
    uint32_t segment;
    uint32_t zero;
    uint64_t at;
};

struct gn_worker_hand_last {
    uint64_t ring_at; /* the next position of the request ring */
};

#define GN_WORKER_MAX_GROUPS  64
#define GN_WORKER_CACHE_BYTES 1024
#define GN_WORKER_GROUP_BYTES 512

/* Behind the devices of BOOT: the walls that the worker is to raise around itself (src/wall). */
struct gn_worker_boot_wall {
    uint32_t mode;        /* enum gn_wall_mode */
    uint32_t change_user; /* 0 or 1 */
    uint32_t uid;
    uint32_t gid;
    uint64_t data_bytes;  /* of private memory; 0: no bound */
    uint64_t group_bytes; /* of memory of all of its processes, when `group` is made; 0: no bound */
    uint32_t n_groups;
    uint32_t groups[GN_WORKER_MAX_GROUPS];
    uint32_t layered; /* 1: the cache is there, in layers; 0: the worker makes its folder */
    char cache[GN_WORKER_CACHE_BYTES]; /* "": none */
    char group[GN_WORKER_GROUP_BYTES]; /* the folder of its memory cgroup, which the worker makes;
                                          "": none */
};
_Static_assert(sizeof(struct gn_worker_boot_wall) == 1832, "boot wall");

/* What of the walls can be had here. */
struct gn_worker_walls {
    uint32_t have;         /* GN_WALL_* */
    uint32_t landlock_abi; /* 0: none */
    uint32_t layers;       /* 1: folders in layers can be mounted (wall/layers.h) */
    uint32_t zero;
};

#define GN_PROBE_LIBRARY_BYTES 1024

struct gn_probe_driver {
    char api[GN_LINK_API_BYTES];
    char library[GN_PROBE_LIBRARY_BYTES]; /* what dlopen takes */
};

struct gn_probe_platform {
    uint32_t index; /* in the driver */
    uint32_t zero;
    char name[GN_LINK_NAME_BYTES];
    char version[GN_LINK_NAME_BYTES];
};

struct gn_probe_device {
    uint32_t index; /* in the platform */
    uint32_t kind;  /* GN_DEVICE_* */
    uint32_t compute_units;
    uint32_t clock_mhz;
    uint64_t memory_bytes;
    uint64_t max_allocation_bytes;
    uint64_t local_memory_bytes;
    char name[GN_LINK_NAME_BYTES];
    char vendor[GN_LINK_NAME_BYTES];
    char version[GN_LINK_NAME_BYTES];
    char driver_version[GN_LINK_NAME_BYTES];
};
_Static_assert(sizeof(struct gn_probe_device) == 552, "probe device");

#endif
