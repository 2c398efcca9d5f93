/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_WORKER_WIRE_H
#define GN_LINK_WORKER_WIRE_H

#include <stdint.h>

#include "link/link_wire.h"

/*
 * Payloads of the frames between gantryd and the processes that it starts: probe, template, worker.
 * gantryd checks a worker's frames like a program's. Both ends come from one build, so there is no
 * version.
 *
 * In the lists below, "->" is from gantryd, "<-" to gantryd.
 */
enum gn_worker_op {
    /* gantryd <-> template */
    /* -> template; seq identifies the request. fd: the worker's end of its control socket */
    GN_WORKER_SPAWN = 32,
    GN_WORKER_SPAWNED = 33, /* <- gn_worker_spawned; fd: a pidfd. Or GN_LINK_ERROR */
    GN_WORKER_ENDED = 34,   /* <- gn_worker_ended */

    /* gantryd <-> worker, on its control socket */
    GN_WORKER_BOOT = 40,   /* -> gn_worker_boot, devices, wall; fds: GN_WORKER_BOOT_FDS */
    GN_WORKER_BOOTED = 41, /* <- empty: the driver is up. Or GN_LINK_ERROR */
    /* -> gn_link_segment_made; fd: the segment. Sent before the program is told of it */
    GN_WORKER_SEGMENT = 42,
    GN_WORKER_END = 43,  /* -> empty: the program is gone, exit now */
    GN_WORKER_LINK = 44, /* -> empty; fd: a data connection of the program, whose gn_link_data
                          * gantryd has read */

    /* probe -> gantryd */
    GN_PROBE_DRIVER = 48,   /* gn_probe_driver: one per driver, from --list-drivers */
    GN_PROBE_PLATFORM = 49, /* gn_probe_platform */
    GN_PROBE_DEVICE = 50,   /* gn_probe_device, of the preceding platform */
    GN_PROBE_DONE = 51,     /* empty. Or GN_LINK_ERROR */

    GN_WORKER_WALLS = 52, /* --walls -> gantryd: gn_worker_walls. Or GN_LINK_ERROR */

    /* gantryd <-> worker, on its control socket: device memory */
    GN_WORKER_LEASE = 56,  /* <- gn_worker_lease: asks for more memory; one at a time */
    GN_WORKER_LEASED = 57, /* -> gn_worker_leased: the answer, with the same seq */
    GN_WORKER_RECALL = 58, /* -> gn_worker_recall: return memory that is leased and unused */
    /* <- gn_worker_returned: once per RECALL, and whenever the worker returns memory by itself */
    GN_WORKER_RETURNED = 59,

    /*
     * gantryd <-> worker, on its control socket, if gn_worker_boot.evicts is set: which part of its
     * device memory is on the device. docs/memory.md
     */
    GN_WORKER_RESIDE = 60,  /* -> gn_worker_reside; seq: its number. One at a time */
    GN_WORKER_RESIDES = 61, /* <- gn_worker_resides: the answer, with the same seq */
    /* <- empty: a request waits for evicted memory; not repeated before the next RESIDE */
    GN_WORKER_WANTS_MEMORY = 62,
    /* -> empty: the worker frees copies of contents that are in the driver, and keeps none until a
     * RESIDE says so. <- empty: it has. One at a time */
    GN_WORKER_DISCARD = 63,

    /* gantryd <-> worker, on its control socket: migration. docs/moves.md */
    GN_WORKER_SAVE = 64, /* -> gn_worker_save, to the source; fd: the stream to write to */
    /*
     * <- gn_worker_moved: everything is written, and the vGPU stands still; or the error, and the
     * vGPU runs on. fd: the session's socket, if the vGPU is stopped
     */
    GN_WORKER_SAVED = 65,
    GN_WORKER_RESUME = 66, /* -> empty: abort; the source resumes */
    GN_WORKER_LOADED = 67, /* <- gn_worker_moved, from the destination: the vGPU is loaded; or
                            * the error */
    GN_WORKER_GO = 68,     /* -> empty: commit; the destination owns the vGPU */
    GN_WORKER_STOPS = 70,  /* <- empty: everything that can be sent ahead has been sent; the
                            * source begins to quiesce */

    /* source worker -> destination worker, before the stream */
    GN_WORKER_HAND = 72,         /* gn_worker_hand; fds: GN_WORKER_HAND_FDS */
    GN_WORKER_HAND_SEGMENT = 73, /* gn_link_segment_made; fd: another data segment, in index
                                  * order. Later segments come from gantryd */
    /* destination -> source, unless the stream is a file */
    /* empty; seq: a round; everything sent before that round has been recreated */
    GN_WORKER_HAND_MADE = 75,
    /* seq 1: the devices differ and are compatible; 0: they are the same. Before the first MADE */
    GN_WORKER_HAND_FITS = 76,
    GN_WORKER_HAND_RETAINED = 77, /* u64 ids, at most GN_WORKER_HAND_RETAINED_MOST a frame, of
                                   * memory objects whose contents of `kept` are still retained
                                   * here. Before FITS */
    /* source -> destination, after the stream */
    GN_WORKER_HAND_LAST = 74, /* gn_worker_hand_last; fds: the current stdout and stderr */
    /*
     * For a program on another machine there are no descriptors; between the stream and HAND_LAST
     * come:
     */
    GN_WORKER_HAND_TCP = 80,  /* gn_worker_hand_tcp */
    GN_WORKER_HAND_HELD = 81, /* a u64, the batch that a message waits for, and the message; in
                               * order */
    GN_WORKER_HAND_AREA = 82, /* gn_worker_hand_area, and the bytes there */
    /*
     * ROUTE_TCP_SAME_DAEMON: records that the program may not have received, in order. seq 0: bytes
     * of whole small records; seq 1: one record, of DATA without the payload, which is in an area
     */
    GN_WORKER_HAND_SENT = 83,
};

/*
 * BOOT's descriptors, in this order. stdout and stderr are always present: /dev/null for a program
 * that has none.
 */
enum {
    GN_WORKER_BOOT_SESSION,
    GN_WORKER_BOOT_RING,
    GN_WORKER_BOOT_EVENTS,
    GN_WORKER_BOOT_DATA,
    GN_WORKER_BOOT_COUNTERS,
    GN_WORKER_BOOT_GRANTS,      /* shm/grant.h */
    GN_WORKER_BOOT_GRANT_EVENT, /* an eventfd: tells gantryd to look at the grants */
    GN_WORKER_BOOT_STDOUT,
    GN_WORKER_BOOT_STDERR,
    GN_WORKER_BOOT_LOG, /* a pipe for lines of gantryd's log */
    GN_WORKER_BOOT_FDS
};

#define GN_WORKER_MAX_DEVICES 64

/* Kinds of device, as bits: the actual kind, and the kind presented to a program. */
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
    uint32_t platform;  /* its index in the driver */
    uint32_t n_devices; /* the number of gn_worker_boot_device that follow */
    uint32_t weight;
    uint64_t ring_bytes;
    uint64_t events_bytes;
    uint64_t data_bytes;
    uint64_t counters_bytes;
    uint64_t memory_limit_bytes; /* 0: none */
    char program[GN_LINK_NAME_BYTES];
    char tenant[GN_LINK_TENANT_BYTES];
    uint32_t remote;   /* GN_WORKER_REMOTE_*; 0: the program is on this machine */
    uint32_t grace_ms; /* tcp: how long to wait for the program to reconnect */
    uint8_t session[GN_LINK_SESSION_BYTES], key[GN_LINK_KEY_BYTES];
    uint32_t takes_turns; /* commands are submitted to a device only with its grant */
    uint32_t loads;       /* GN_WORKER_LOADS_*: the worker loads an existing vGPU. The session's
                           * descriptor is the stream, through which events and data come */
    uint64_t ring_at;     /* LOADS_FILE, with the file in the data area's place (tcp: in the
                           * session's place): the position in the request ring */
    uint8_t load_name[GN_LINK_SESSION_BYTES], load_key[GN_LINK_KEY_BYTES]; /* with load_tls */
    uint32_t load_tls; /* the source opens with TLS, and proves load_key */
    uint32_t route;    /* LOADS_WORKER: enum gn_worker_route */
    uint32_t evicts;   /* gantryd says which part of the memory is on the device: RESIDE. Until the
                        * first one all may be */
    uint32_t placed; /* the answer to an ask may wait until there is room on the device: minutes */
};
_Static_assert(sizeof(struct gn_worker_boot) == 416, "boot");

#define GN_WORKER_LOADS_WORKER 1u /* from the source worker, by `route` */
#define GN_WORKER_LOADS_FILE                                                                       \
    2u /* the session comes from the program, the vGPU from a file; with tcp both come from the    \
        * file */

/*
 * How a vGPU gets from its source to its destination. A route is two choices: the destination
 * shares the program's memory, or the contents are copied; and the session is handed over as
 * descriptors, or as the state of its tcp stream (vgpu/migrate/route.h).
 */
enum gn_worker_route {
    GN_ROUTE_SHM, /* memory shared; descriptors. The program is on this machine before and after */
    GN_ROUTE_TCP, /* memory copied; tcp stream. The program connects to another gantryd */
    GN_ROUTE_TCP_SAME_DAEMON, /* memory copied; tcp stream, which continues: the program is not
                               * told */
    GN_ROUTE_TCP_TO_SHM,      /* memory copied; descriptors, which the program hands over itself:
                               * it is on the destination's machine, where the vGPU was not */
    GN_ROUTE_N
};

#define GN_WORKER_REMOTE_PLAIN 1u
#define GN_WORKER_REMOTE_TLS   2u

struct gn_worker_boot_device {
    uint32_t index;      /* in the platform, as probed */
    uint32_t present_as; /* GN_DEVICE_*; 0: the actual kind */
    uint32_t rank;       /* the order in which devices are listed: 0 first */
    uint32_t zero;
};

struct gn_worker_lease {
    uint64_t need_bytes;   /* the smallest useful amount */
    uint64_t want_bytes;   /* with slack for later allocations */
    uint64_t pinned_bytes; /* of all that is leased and needed: can never be evicted */
    uint64_t pins;         /* 1: it asks for pinned bytes, too, and is refused without them */
};

struct gn_worker_leased {
    uint64_t granted_bytes; /* 0: refused */
};

struct gn_worker_recall {
    uint32_t tight; /* 1: from now on return freed memory at once; 0: not any more */
    uint32_t zero;
};

struct gn_worker_returned {
    uint64_t bytes;
    uint32_t answers; /* 1: this answers a RECALL */
    uint32_t zero;
    uint64_t pinned_bytes; /* as in gn_worker_lease; also sent when they have become fewer */
};
_Static_assert(sizeof(struct gn_worker_lease) == 32 && sizeof(struct gn_worker_returned) == 24,
               "leases");

/*
 * gantryd lowers the bytes only while the vGPU has no grant, and grants the device again only after
 * the answer to RESIDE_ALL.
 */
#define GN_WORKER_RESIDE_ALL UINT64_MAX
struct gn_worker_reside {
    /* At most so much of the vGPU's memory is in the driver from now on; the worker evicts the rest
     * before it answers. RESIDE_ALL: the worker brings everything in before it answers. */
    uint64_t bytes;
    /* Boolean: of what is in the driver, or comes in, copies in host memory may stay. */
    uint64_t keeps_copies;
};

struct gn_worker_resides {
    /* In the driver now. More than RESIDE's bytes: the rest is pinned, or cannot be evicted now. */
    uint64_t resident_bytes;
    uint64_t pinned_bytes; /* as in gn_worker_lease */
    uint64_t copied_bytes; /* between device and host memory for this answer */
    /*
     * To RESIDE_ALL: the driver has no room for so many bytes, which stay in host memory;
     * RESIDE_ALL comes again when there may be room. 0 after GN_WORKER_REFUSALS such answers in a
     * row: the program gets errors. gantryd ends a worker that sends more.
     */
    uint64_t refused_bytes;
};
#define GN_WORKER_REFUSALS 2u

#define GN_WORKER_SAVE_FILE 1u /* a checkpoint: no worker takes the session over */
#define GN_WORKER_SAVE_STOP 2u /* a checkpoint after which the program stands still */
#define GN_WORKER_SAVE_TLS  4u /* the connection uses TLS, with `key` and its name */
struct gn_worker_save {
    uint32_t drain_timeout_ms;
    uint32_t n_ahead; /* rounds of contents sent while the program runs; 0: the program stands still
                       * while all is sent */
    uint64_t bytes_per_s; /* limit for these rounds; 0: none */
    uint32_t flags;       /* GN_WORKER_SAVE_* */
    uint32_t vgpu_id; /* the id shown to users: a worker that has loaded a vGPU was started under
                       * another one */
    uint8_t key[GN_LINK_STOP_KEY_BYTES];
    uint8_t name[GN_LINK_SESSION_BYTES];
    uint32_t mark;  /* ROUTE_TCP: the number sent to the program behind the last record of this
                     * worker */
    uint32_t route; /* enum gn_worker_route */
};
_Static_assert(sizeof(struct gn_worker_save) == 96, "save");

struct gn_worker_moved {
    int32_t error;         /* 0 or -errno, explained by what and fix */
    uint32_t driver_stays; /* SAVED by a program in passthrough: the driver's library stays
                            * loaded */
    uint64_t began_ns, quiet_ns, done_ns; /* CLOCK_MONOTONIC: quiescing began (destination: the
                                           * load began); the device was idle; the end */
    uint64_t bytes, pages, pages_zero;    /* of the stream */
    uint64_t ahead_ns;                    /* duration of the rounds ahead */
    uint64_t hold_ns; /* then, until the driver was idle, while the program continued */
    uint64_t pages_total, pages_kept, pages_ahead, pages_stop, sampled, hashed, device;
    uint64_t read_bytes;           /* read from memory objects after quiescing */
    uint64_t stood_ns, drained_ns; /* CLOCK_MONOTONIC: no more calls were served; the driver was
                                    * idle, though completions may be unreported */
    uint64_t reported_ns;          /* everything except contents was written */
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
    uint64_t ring_at; /* position in the request ring: all before it has been served. Copied memory:
                       * bytes of the data area */
    uint32_t n_segments; /* of data, including the first */
    uint32_t zero;
    /*
     * Retained contents of memory objects. keeps: the source will retain them under this number.
     * kept: the number under which the destination retained them earlier, when the source loaded
     * them from it. 0: none.
     */
    uint64_t keeps, kept;
};
#define GN_WORKER_HAND_RETAINED_MOST 512u

/* The state of the session's tcp stream (link/record.h). */
struct gn_worker_hand_tcp {
    uint64_t received;  /* bytes of whole records processed */
    uint64_t small;     /* the part of `received` in small records */
    uint64_t n_batches; /* complete batches of bulk data */
    uint32_t n_held;    /* number of HELD messages */
    uint32_t n_areas;
    uint64_t first, acknowledged; /* ROUTE_TCP_SAME_DAEMON: positions in the stream to the program:
                                   * the start of SAID, and of the last acknowledgement */
    uint32_t n_said;
    uint32_t zero;
};
_Static_assert(sizeof(struct gn_worker_hand_tcp) == 56, "hand");

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

/* Follows the devices of BOOT: the confinement that the worker sets up for itself (src/wall). */
struct gn_worker_boot_wall {
    uint32_t mode;        /* enum gn_wall_mode */
    uint32_t change_user; /* 0 or 1 */
    uint32_t uid;
    uint32_t gid;
    uint64_t data_bytes;  /* limit of private memory; 0: none */
    uint64_t group_bytes; /* limit of memory of all its processes, if `group` is set; 0: none */
    uint32_t n_groups;
    uint32_t groups[GN_WORKER_MAX_GROUPS];
    uint32_t layered; /* 1: the kernel cache is mounted in layers already; 0: the worker creates
                       * its directory */
    char cache[GN_WORKER_CACHE_BYTES]; /* "": none */
    char group[GN_WORKER_GROUP_BYTES]; /* the directory of its memory cgroup, which the worker
                                        * creates; "": none */
};
_Static_assert(sizeof(struct gn_worker_boot_wall) == 1832, "boot wall");

/* The kinds of confinement available on this machine. */
struct gn_worker_walls {
    uint32_t have;         /* GN_WALL_* */
    uint32_t landlock_abi; /* 0: none */
    uint32_t layers;       /* 1: layered directories can be mounted (wall/layers.h) */
    uint32_t zero;
};

#define GN_PROBE_LIBRARY_BYTES 1024

struct gn_probe_driver {
    char api[GN_LINK_API_BYTES];
    char library[GN_PROBE_LIBRARY_BYTES]; /* for dlopen */
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
