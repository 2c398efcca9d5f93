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
 * What a hosted vGPU and whoever ends its process know of each other. called_off: set once the
 * process ends; from then on the vGPU's threads begin nothing that the program does not ask for.
 * arrival: whoever takes it from COMING first decides whether a vGPU that is taken over from a
 * worker comes.
 */
enum gn_inbound { GN_INBOUND_COMING, GN_INBOUND_CLAIMED, GN_INBOUND_ABORTED };
struct gn_process_end {
    _Atomic bool called_off;
    _Atomic int arrival;
};

/*
 * What a vGPU starts from. Who hosts it fills it; descriptors and mappings are the vGPU's from then
 * on, and none of them need be given back: a worker ends with its vGPU, and in a program they go
 * with the program or with a start that fails.
 */
struct gn_vgpu_boot {
    uint32_t id;
    const char *program; /* its name, for log lines; quoted already */
    const char *tenant;
    uint32_t weight;
    uint64_t memory_limit_bytes; /* 0: what the device has */
    const uint32_t *ranks; /* of each device: in which order they are offered to a program that does
                              not choose. NULL: as they stand */

    int session_fd; /* to the program. Hangs up when the program is gone: then gn_vgpu_serve returns
                     */
    int control_fd; /* to gantryd: link/worker_control.h. Hangs up when gantryd is gone: likewise */

    bool hosted; /* passthrough: this process is the program */
    /* Of a hosted one; else NULL. */
    struct gn_process_end *end;

    /* Mapped, shared and sealed. */
    struct gn_segment ring, events, data;
    struct gn_segment counters; /* struct gn_counters at its start; written here, read by gantryd */
    struct gn_segment grants;   /* struct gn_grant_page */
    bool takes_turns;           /* nothing goes to a device without its grant */
    int tell_fd;                /* an eventfd: gantryd is to look at the grants */

    /* The program is on another machine: data connections come over control_fd, and nobody else has
     * these segments. */
    bool remote, tls;
    uint32_t grace_ms; /* how long to wait for a new connection when one broke */
    unsigned char session[32], key[32];

    /* It takes over from another worker: session, events, data and what the vGPU consists of come
     * from there. -1: it does not. */
    int load_fd;
    bool beside; /* that one is the same gantryd's, and the program elsewhere: its stream goes on as
                    it stands */
    struct gn_tls *load_tls; /* what comes over it is TLS's; of a remote one, from
                                gn_vgpu_receive_handover on. NULL: it is plain */
    unsigned char load_name[32],
        load_key[32]; /* the key that begins with, of a remote one with tls */
    int file_fd; /* what the vGPU consists of comes from here instead, a file; of a remote one the
                    session, too. -1: no */
    bool near;  /* or from here, a worker on another machine, and the session from the program, over
                   load_fd */
    int far_fd; /* -1: not near */
    bool far_secure; /* by TLS, with the key above */
    uint64_t keeps,
        kept; /* as the one that has it says of contents (retained.h, delta_base.h). 0: neither */
    uint64_t ring_at; /* the ring's position from which on it serves */
    int stdio_fds[2]; /* the program's output, of one that comes from a file; not of a remote or a
                         hosted one */
    struct gn_segment *more; /* data segments behind the first */
    uint32_t n_more;

    struct gn_backend_platform
        *platform; /* brought up, with the devices that the operator selected */
};

/*
 * Serves the vGPU on the calling thread and those it starts, until the program or gantryd is gone.
 * Returns the process's exit status. The worker has its program's stdout and stderr on descriptors
 * 1 and 2.
 */
int gn_vgpu_serve(const struct gn_vgpu_boot *boot);

/*
 * Passthrough: makes the vGPU in its own program, or, if the boot has a load_fd, takes it over from
 * a worker; then it waits for gantryd, which decides. Its threads are started, with all signals
 * blocked, and it serves; the boot must stay. Nothing ends the process: when gantryd is gone, or
 * takes the vGPU away, the session's socket hangs up and requests are turned away. 0, or -errno
 * with a sentence; then *ret is not NULL if some of its threads are there all the same, and the
 * boot must stay.
 */
struct gn_vgpu;
struct gn_error;
int gn_vgpu_start_in_program(struct gn_vgpu_boot *boot, struct gn_vgpu **ret, struct gn_error *err);

/* Serves one message on the calling thread, as the ring thread would; the answer, if it wants one,
 * is in its reply slot by then or later. Any thread. 0; -EAGAIN: it lives elsewhere now, and hears
 * the ring; -EPIPE: there is no vGPU any more. */
int gn_vgpu_serve_message(struct gn_vgpu *v, const void *message, uint32_t n_bytes);

/*
 * Hosted, called_off is set, and the process ends: waits until no thread of the vGPU's saves it,
 * nor clears up behind it. Any thread; at the latest at until_ns.
 */
void gn_vgpu_process_ends(struct gn_vgpu *v, uint64_t until_ns);

/* In a forked child, which has none of the vGPU's threads: closes the descriptors that the child
 * has inherited. */
void gn_vgpu_forked(struct gn_vgpu *v);

/*
 * A file of the program's by the name that a compiler knows, while a build goes on: opened for
 * reading (`contents`), or its facts alone. Either pointer may be NULL when it is not asked for.
 * Any thread; waits for the program. -ENOENT at once when no build goes on or the name lies in none
 * of the program's folders.
 */
int gn_vgpu_program_file(const char *name, bool contents, int *ret_fd, struct stat *ret_facts);

#endif
