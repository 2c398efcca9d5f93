/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_H
#define GN_VGPU_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/segment.h"

struct gn_backend_platform;
struct gn_tls;
struct stat;

/*
 * Shared between an in-process vGPU and the code that runs at its process's end. called_off: set
 * when the process ends; from then on the vGPU's threads start nothing that the program does not
 * ask for. arrival: the first thread to change it from GN_INBOUND_COMING decides whether the
 * program takes the vGPU over from a worker.
 */
enum gn_inbound { GN_INBOUND_COMING, GN_INBOUND_CLAIMED, GN_INBOUND_ABORTED };
struct gn_process_end {
    _Atomic bool called_off;
    _Atomic int arrival;
};

/*
 * The start parameters of a vGPU, filled in by the process that runs it. The vGPU owns the
 * descriptors and mappings and need not release them: a worker ends with its vGPU; in a program
 * they last as long as the process, or until a failed start releases them.
 */
struct gn_vgpu_boot {
    uint32_t id;
    const char *program; /* name for log lines, already quoted */
    const char *tenant;
    uint32_t weight;
    uint64_t memory_limit_bytes; /* 0: as much as the device has */
    /* Per device: its rank in the default order of devices; NULL: the order in which they stand. */
    const uint32_t *ranks;

    int session_fd; /* to the program; hangs up when the program is gone: gn_vgpu_serve returns */
    /* To gantryd (link/worker_control.h); hangs up when gantryd is gone: gn_vgpu_serve returns. */
    int control_fd;

    /* In-process only; else NULL. */
    struct gn_process_end *end;

    /* Mapped, shared and sealed. */
    struct gn_segment ring, events, data;
    /* Begins with struct gn_counters; written by the vGPU, read by gantryd. */
    struct gn_segment counters;
    struct gn_segment grants; /* struct gn_grant_page */
    bool takes_turns;         /* nothing is submitted to a device without its grant */
    bool placed;              /* the answer to an ask for memory may take minutes */
    bool evicts;              /* gantryd says which part of the memory is on the device */
    int tell_fd;              /* eventfd that makes gantryd read the grant page */

    /*
     * A tcp session: the program is on another machine. Its data connections come over control_fd,
     * and the segments are private to this process.
     */
    bool remote, tls;
    uint32_t grace_ms; /* how long to wait for the program to connect again */
    unsigned char session[32], key[32];

    /*
     * The vGPU is taken over from another worker, which sends session, events, data and state over
     * this socket. -1: no.
     */
    int load_fd;
    const struct gn_route *route; /* by which it comes (migrate/route.h); never NULL */
    /* Tcp session: the TLS state of load_fd, from gn_vgpu_receive_handover on; NULL: plain. */
    struct gn_tls *load_tls;
    /* Tcp session with TLS: name and key that the handover starts with. */
    unsigned char load_name[32], load_key[32];
    /*
     * The state comes from this checkpoint file; with a tcp session the session does, too. -1: no.
     */
    int file_fd;
    int contents_fd;  /* of the source, where the program hands over the session by load_fd; else
                       * -1 */
    bool load_secure; /* the connection to the source uses TLS with the key above */
    /*
     * Contents of memory objects (retained.h, delta_base.h). keeps: the number under which the
     * source retains them. kept: the number under which a program has retained this vGPU's. 0:
     * none.
     */
    uint64_t keeps, kept;
    uint64_t ring_at; /* the ring position from which on it serves */
    /* The program's output, for a vGPU from a checkpoint; not for tcp or in-process vGPUs. */
    int stdio_fds[2];
    struct gn_segment *more; /* data segments after the first */
    uint32_t n_more;

    /* Initialized, with the devices that the operator selected. */
    struct gn_backend_platform *platform;
};

/*
 * Serves the vGPU on the calling thread and the threads that it starts, until the program or
 * gantryd is gone. Returns the process's exit status. In a worker, descriptors 1 and 2 are the
 * program's stdout and stderr.
 */
int gn_vgpu_serve(const struct gn_vgpu_boot *boot);

/*
 * Passthrough: creates the vGPU in its own program, or, if the boot has a load_fd, takes it over
 * from a worker and waits for gantryd's decision. Its threads run with all signals blocked, and it
 * serves requests; the boot must stay. It never ends the process: when gantryd is gone, or takes
 * the vGPU away, the session socket hangs up and requests are rejected. 0, or -errno with a
 * sentence. If *ret is not NULL after an error, some of its threads are still running and the boot
 * must stay.
 */
struct gn_vgpu;
struct gn_error;
int gn_vgpu_start_in_program(struct gn_vgpu_boot *boot, struct gn_vgpu **ret, struct gn_error *err);

/*
 * Serves one message on the calling thread, as the ring thread of a worker would. Its answer, if it
 * wants one, is in its reply slot by the time of the return or later. Any thread. 0; -EAGAIN: the
 * vGPU has moved to another process that reads the ring; -EPIPE: there is no vGPU any more.
 */
int gn_vgpu_serve_message(struct gn_vgpu *v, const void *message, uint32_t n_bytes);

/*
 * In-process, with called_off set, when the process ends: waits until no thread of the vGPU's is
 * saving it or clearing up after it has left. Any thread; returns at until_ns at the latest.
 */
void gn_vgpu_process_ends(struct gn_vgpu *v, uint64_t until_ns);

/* In a forked child, which has none of the vGPU's threads: closes the inherited descriptors. */
void gn_vgpu_forked(struct gn_vgpu *v);

/*
 * Looks up one of the program's files, by the name that a compiler uses, during a build: opens it
 * for reading (`contents`), or only returns its stat data. Either pointer may be NULL when it is
 * not asked for. Any thread; waits for the program. -ENOENT at once when no build runs or the name
 * lies in none of the program's folders.
 */
int gn_vgpu_program_file(const char *name, bool contents, int *ret_fd, struct stat *ret_facts);

#endif
