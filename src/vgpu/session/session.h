/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_SESSION_SESSION_H
#define GN_VGPU_SESSION_SESSION_H

#include "shm/event_table.h"
#include "vgpu/vgpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The vGPU's end of a session: how it serves its program's messages, and how it answers. One table
 * per kind of session: shm (session_shm.c), tcp (session_tcp.c) and in-process
 * (session_in_process.c). v->session is set before gn_vgpu_open and never changes. Code outside
 * this folder calls the table, or asks for a property of the session; it never asks for its kind.
 */
struct gn_command;
struct gn_error;
struct gn_frame;
struct gn_request;
struct gn_session_state;
struct gn_vgpu;

struct gn_vgpu_session_ops {
    const char *name;
    /* The name of the vGPU's threads; NULL: that of the thread that starts them. */
    const char *thread_name;

    /* ---- properties */

    /* The program maps the segments of this process: their descriptors can be handed over, the
     * program waits on the event table itself, and its bulk data is there before its message. Else
     * this process has a copy of its own. */
    bool shares_memory;
    /* The process is the program: it goes on when the vGPU ends, so the vGPU's threads return. */
    bool in_program;
    /* A thread of the vGPU serves the program's messages. Else the program's threads do. */
    bool has_serving_thread;
    /* The driver opens the program's files by way of the program (include_files.h). */
    bool asks_for_files;
    /* The vGPU maps the window of shared virtual memory. Else the program has mapped it. */
    bool maps_window;

    /* ---- life */

    /* Before the vGPU's threads start. 0 or -errno. NULL: nothing to do. */
    int (*start)(struct gn_vgpu *v);
    /* Serves on the calling thread until the program is gone or the vGPU has a fault. NULL: the
     * program's threads serve. */
    void (*serve)(struct gn_vgpu *v);
    /* The vGPU has a fault. Any thread. NULL: the serving thread notices. */
    void (*faulted)(struct gn_vgpu *v);
    /* The program or gantryd is gone, or gantryd ends the vGPU. The control thread, last: does not
     * return in a worker. */
    void (*end)(struct gn_vgpu *v);
    /*
     * Neither the vGPU nor a driver uses the mapped segments any more. Any thread. NULL: the
     * process ends.
     */
    void (*unmap)(struct gn_vgpu *v);
    /* A connection of the program's to go on with; takes fd. The control thread; never waits. */
    void (*connect)(struct gn_vgpu *v, int fd);
    /* Bytes that the program may hold in its data area; UINT64_MAX: no limit but gantryd's. */
    uint64_t (*area_limit)(const struct gn_vgpu *v);

    /* ---- to the program. Any thread; none waits */

    void (*reply)(struct gn_vgpu *v, uint32_t token, int32_t result, const void *payload, size_t n);
    /* As reply, with the request's outputs in the data area, which are written already. */
    void (*answer)(struct gn_vgpu *v, const struct gn_request *r, uint32_t token,
                   const void *payload, size_t n);
    void (*post_event)(struct gn_vgpu *v, uint32_t index, enum gn_event_phase phase);
    /* `c` (may be NULL) is the command that the event belongs to. */
    void (*end_event)(struct gn_vgpu *v, uint32_t index, int32_t error,
                      const struct gn_event_times *times, const struct gn_command *c);
    int (*send_frame)(struct gn_vgpu *v, uint16_t op, uint32_t seq, const void *payload, size_t n);

    /* ---- the doorbell: wakes of the serving thread. Any thread */

    /* Something else than a message is to be done. */
    void (*wake)(struct gn_vgpu *v);
    /* The serving thread is about to wait for gantryd: sends the answers that it has put off. NULL:
     * it puts off none. */
    void (*send_pending)(struct gn_vgpu *v);
    /*
     * The serving thread sleeps until it is woken, and serves nothing; a request waits for evicted
     * memory, for minutes. Ends the vGPU's waits if the program is gone meanwhile. NULL: the thread
     * may sleep without the session.
     */
    void (*await_memory)(struct gn_vgpu *v);
    /* The program is likely to send next: the serving thread is to look for its message. False: it
     * can not look without cost, and has not been woken. */
    bool (*expect_message)(struct gn_vgpu *v);
    /* gantryd recalls leased memory: the unused part is given back soon. */
    void (*recall_memory)(struct gn_vgpu *v);
    /* The gate may have changed while the serving thread is quiesced. */
    void (*gate_changed)(struct gn_vgpu *v);

    /* ---- migrations: the source */

    /* Before the gate closes, when the destination will share the program's memory: the program
     * sends no more, and all that it has sent is served. -ETIMEDOUT at until_ns
     * (CLOCK_MONOTONIC). */
    int (*pause_program)(struct gn_vgpu *v, uint32_t number, uint64_t until_ns,
                         struct gn_error *err);
    /* Behind the closed gate: the last thing that the program is told by this worker. */
    void (*send_quiesced)(struct gn_vgpu *v, uint32_t number);
    /* The migration is aborted: before the gate opens. */
    void (*resume)(struct gn_vgpu *v);

    /* ---- migrations: the destination */

    /* A data segment that the program has; it must be the next one. 0 or -EPROTO. */
    int (*add_segment)(struct gn_vgpu *v, uint64_t index, uint64_t bytes);
    /* One frame of where the session stood, from a checkpoint. 0, -EPROTO, -ENOMEM, or -EOPNOTSUPP:
     * such a session has none. */
    int (*load_frame)(struct gn_vgpu *v, const struct gn_frame *f);
    /* All of them have been loaded. 0, or -EPROTO: some are missing. */
    int (*loaded)(struct gn_vgpu *v);
    /* Where the program's output goes: stdout and stderr; takes both. 0 or -errno. */
    int (*set_output)(struct gn_vgpu *v, const int fds[2]);
    /* This worker owns the vGPU now: before the gate opens. */
    void (*resume_as_owner)(struct gn_vgpu *v);
};

extern const struct gn_vgpu_session_ops gn_vgpu_session_shm, gn_vgpu_session_tcp,
    gn_vgpu_session_in_process;

/* Of a session that shares memory (session_shm.c); session_in_process.c uses these, too. */
void gn_shm_reply(struct gn_vgpu *v, uint32_t token, int32_t result, const void *payload, size_t n);
void gn_shm_answer(struct gn_vgpu *v, const struct gn_request *r, uint32_t token,
                   const void *payload, size_t n);
void gn_shm_post_event(struct gn_vgpu *v, uint32_t index, enum gn_event_phase phase);
void gn_shm_end_event(struct gn_vgpu *v, uint32_t index, int32_t error,
                      const struct gn_event_times *times, const struct gn_command *c);
int gn_shm_send_frame(struct gn_vgpu *v, uint16_t op, uint32_t seq, const void *payload, size_t n);
void gn_shm_refuse_connection(struct gn_vgpu *v, int fd);
uint64_t gn_shm_area_limit(const struct gn_vgpu *v);
void gn_shm_wake(struct gn_vgpu *v);
bool gn_shm_expect_message(struct gn_vgpu *v);
void gn_shm_gate_changed(struct gn_vgpu *v);
int gn_shm_pause_program(struct gn_vgpu *v, uint32_t number, uint64_t until_ns,
                         struct gn_error *err);
void gn_shm_send_quiesced(struct gn_vgpu *v, uint32_t number);
void gn_shm_resume(struct gn_vgpu *v);
int gn_shm_add_segment(struct gn_vgpu *v, uint64_t index, uint64_t bytes);
int gn_shm_load_frame(struct gn_vgpu *v, const struct gn_frame *f);
int gn_shm_loaded(struct gn_vgpu *v);
void gn_shm_resume_as_owner(struct gn_vgpu *v);
/*
 * session_in_process.c: the thread that has the serving thread's part which no message asks for,
 * until the vGPU ends or another process has it: then it clears up. arg is the vGPU.
 */
void *gn_vgpu_keeper_thread(void *arg);
/* The entries that the tables of both sessions that share memory have in common. */
#define GN_SHM_SESSION_ENTRIES                                                                     \
    .shares_memory = true, .connect = gn_shm_refuse_connection, .area_limit = gn_shm_area_limit,   \
    .reply = gn_shm_reply, .answer = gn_shm_answer, .post_event = gn_shm_post_event,               \
    .end_event = gn_shm_end_event, .send_frame = gn_shm_send_frame, .wake = gn_shm_wake,           \
    .expect_message = gn_shm_expect_message, .recall_memory = gn_shm_wake,                         \
    .gate_changed = gn_shm_gate_changed, .pause_program = gn_shm_pause_program,                    \
    .send_quiesced = gn_shm_send_quiesced, .resume = gn_shm_resume,                                \
    .add_segment = gn_shm_add_segment, .load_frame = gn_shm_load_frame, .loaded = gn_shm_loaded,   \
    .resume_as_owner = gn_shm_resume_as_owner

/* A worker's end (session_shm.c): the process exits. */
_Noreturn void gn_vgpu_end_worker(struct gn_vgpu *v);

#endif
