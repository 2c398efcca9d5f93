/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_SESSION_SESSION_TCP_INTERNAL_H
#define GN_VGPU_SESSION_SESSION_TCP_INTERNAL_H

#include "vgpu/core/vgpu_core.h"

#include "link/stream_in.h"
#include "link/stream_out.h"
#include "link/tcp.h"
#include "link/worker_wire.h"
#include "wire/wire.h"

/*
 * A session over tcp, for session_tcp.c and session_tcp_send.c, which serve it, session_tcp_load.c,
 * which takes it from another worker, and migrate/tcp_session_handover.c, which hands it to one.
 * The session's memory is this process's own; the program gets its changes as records
 * (link/record.h). The socket thread serves the connection.
 */
#define GN_REMOTE_CHUNK_BYTES (UINT64_C(1) << 20)
/* Runs of pages, or of records' frames, that one handover may have. */
#define GN_REMOTE_MAX_AREAS (UINT32_C(1) << 22)

/*
 * A message whose bulk data has not come yet. The program waits for its answer, so later messages
 * may be served first.
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
    pthread_mutex_t print_lock; /* held from reading printed text until it is appended */
    int print_fds[2];           /* the read ends of this process's stdout and stderr */
    _Atomic bool flush_armed;
    _Atomic int n_handshakes;
    _Atomic bool eager; /* the program waits for an event whose end is being appended */
    pthread_mutex_t next_lock;
    struct gn_tcp next; /* next_lock: the connection to continue with; fd -1: none */
    /* the socket thread */
    struct gn_tcp tcp;
    struct gn_stream_in in;
    struct gn_spin_habit habit;
    uint64_t n_batches; /* received completely */
    struct gn_list held;
    uint32_t n_held;
    unsigned char
        *touched[GN_MAX_SEGMENTS]; /* for each segment, a bit for each chunk; NULL: none yet */
    uint64_t touched_bytes, most_touched;
    struct {
        uint32_t seq;
        int fd; /* a memory file that receives the contents; -1: no file is being received */
        uint64_t left;
        struct gn_session_file facts;
    } file;
    bool bye;
    bool gone;           /* the program has not come back */
    uint64_t lost_at_ns; /* when the connection broke */
    pthread_mutex_t pause_lock;
    pthread_cond_t pause_wake;
    uint32_t paused; /* pause_lock: the number of the migration before which the program has sent
                        its last message */
    struct {
        bool begun;
        struct gn_worker_hand_tcp far; /* its counts are of frames that have not come yet */
    } taking; /* the loading thread: where the session stood at the source */
};

/* Counts memory that is about to be filled. False: the program fills more than it may, and the vGPU
 * ends. */
bool gn_vgpu_tcp_touch(struct gn_vgpu_tcp *h, uint32_t segment, uint64_t at, uint64_t bytes);
/* ---- session_tcp_send.c */

/* True on the socket thread, which sends when it has no more to serve. */
extern _Thread_local bool gn_vgpu_tcp_is_socket_thread;
/* Wakes the socket thread. Any thread. */
void gn_vgpu_tcp_wake(struct gn_vgpu_tcp *h);
/* Sends the records that have gathered, as far as the socket has room. */
void gn_vgpu_tcp_flush(struct gn_vgpu_tcp *h);
/* After an append: the vGPU ends when there was no room left to buffer the record. */
void gn_vgpu_tcp_overflow(struct gn_vgpu_tcp *h, int rc);
/* Entries of the table in session.h. */
void gn_vgpu_tcp_reply(struct gn_vgpu *v, uint32_t token, int32_t result, const void *payload,
                       size_t n);
void gn_vgpu_tcp_answer(struct gn_vgpu *v, const struct gn_request *r, uint32_t token,
                        const void *payload, size_t n);
void gn_vgpu_tcp_post_event(struct gn_vgpu *v, uint32_t index, enum gn_event_phase phase);
void gn_vgpu_tcp_end_event(struct gn_vgpu *v, uint32_t index, int32_t error,
                           const struct gn_event_times *times, const struct gn_command *c);
int gn_vgpu_tcp_send_frame(struct gn_vgpu *v, uint16_t op, uint32_t seq, const void *payload,
                           size_t n);
/* Before there are other threads: the process's stdout and stderr go to the program from now on. 0
 * or -errno. */
int gn_vgpu_tcp_catch_prints(struct gn_vgpu_tcp *h);
/* Output of this process up to now goes before the records that are appended from now on; while
 * objects are made anew, it is dropped. */
void gn_vgpu_tcp_pass_prints(struct gn_vgpu_tcp *h);

/* ---- session_tcp_load.c */

/* The destination, before its socket thread serves: each frame of gn_tcp_handover_send, in order,
 * all of them untrusted. 0, -EPROTO or -ENOMEM. */
struct gn_frame;
int gn_vgpu_tcp_load_frame(struct gn_vgpu_tcp *h, const struct gn_frame *f);
bool gn_vgpu_tcp_is_loaded(const struct gn_vgpu_tcp *h);
/* When the vGPU has been loaded: the stream goes on. 0, or -EPROTO: frames are missing, or there is
 * no such stream. */
int gn_vgpu_tcp_resume_stream(struct gn_vgpu_tcp *h);

#endif
