/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_SESSION_SESSION_TCP_INTERNAL_H
#define GN_VGPU_SESSION_SESSION_TCP_INTERNAL_H

#include "vgpu/session/session_tcp.h"

#include "link/stream_in.h"
#include "link/stream_out.h"
#include "link/worker_wire.h"
#include "wire/wire.h"

/* What session_tcp.c (a session over tcp, served) and tcp_session_handover.c (the same, handed to
 * another worker) share. */
#define GN_REMOTE_CHUNK_BYTES (UINT64_C(1) << 20)

/* A message whose bulk data is on its way: the caller waits for its answer, so others may go first.
 */
struct gn_session_tcp_held {
    struct gn_list link;
    uint64_t batch;
    uint32_t n_bytes;
    unsigned char bytes[];
};

struct gn_vgpu_tcp {
    struct gn_vgpu *v;
    struct gn_stream_out out;
    int wake_fd, flush_fd;
    pthread_mutex_t print_lock; /* from reading what was printed until it is appended */
    int print_fds[2]; /* what this process writes to its stdout and stderr comes out here */
    _Atomic bool flush_armed;
    _Atomic int n_handshakes;
    _Atomic bool eager; /* the program waits for an event whose end is just being told */
    pthread_mutex_t next_lock;
    struct gn_tcp next; /* next_lock: the connection to go on with; fd -1: none */
    /* the socket thread */
    struct gn_tcp tcp;
    struct gn_stream_in in;
    struct gn_spin_habit habit;
    uint64_t n_batches; /* that are complete */
    struct gn_list held;
    uint32_t n_held;
    unsigned char *touched[GN_MAX_SEGMENTS]; /* of each segment, a bit a chunk; NULL: nothing yet */
    uint64_t touched_bytes, most_touched;
    struct {
        uint32_t seq;
        int fd; /* memory that its contents come into; -1: no file is on its way */
        uint64_t left;
        struct gn_session_file facts;
    } file;
    bool bye;
    pthread_mutex_t pause_lock;
    pthread_cond_t pause_wake;
    uint32_t paused; /* pause_lock: the number of the move before which the program has sent its
                        last message */
    struct {
        bool begun;
        struct gn_worker_hand_far far; /* its counts: how many are to come yet */
    } taking;                          /* whoever loads: where another worker stood */
};

/* Something comes to lie there. False: the program has more than it may, and the vGPU ends. */
bool gn_vgpu_tcp_touch(struct gn_vgpu_tcp *h, uint32_t segment, uint64_t at, uint64_t bytes);

#endif
