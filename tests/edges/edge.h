/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EDGE_H
#define EDGE_H

#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * What the hard programs share. Each is a case of one executable: plain OpenCL that does one hard
 * thing and compares its results with what the processor computes. A case returns its exit status;
 * the first thing that is wrong ends it with a sentence and status 1. Any thread may use everything
 * here.
 */
struct edge {
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue; /* in order, or what edge_open was told */
    cl_program program;
    cl_mem large; /* lost.c's own */
};

/* One thread's sentence, whole: the lock is kept until the end. */
#define EDGE_FAIL(...)                                                                             \
    do {                                                                                           \
        flockfile(stderr);                                                                         \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                            \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputc('\n', stderr);                                                                       \
        exit(1);                                                                                   \
    } while (0)

/* An OpenCL call that must succeed. */
#define NEED(call)                                                                                 \
    do {                                                                                           \
        cl_int need_rc_ = (call);                                                                  \
        if (need_rc_ != CL_SUCCESS)                                                                \
            EDGE_FAIL("%s returned %d", #call, (int)need_rc_);                                     \
    } while (0)

/* Something that must hold. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            EDGE_FAIL("not so: %s", #condition);                                                   \
    } while (0)

/* The first platform's first device, a context, a queue and a program with all kernels, built. */
void edge_open(struct edge *e, cl_command_queue_properties properties);
void edge_close(struct edge *e);
cl_kernel edge_kernel(const struct edge *e, const char *name);
cl_mem edge_buffer(const struct edge *e, size_t bytes);

/* Launches over one dimension. */
void edge_launch(cl_command_queue q, cl_kernel k, size_t n, cl_uint n_waits, const cl_event *waits,
                 cl_event *event);
/* x[i] += v */
void edge_set_add(cl_kernel k, cl_mem x, cl_uint v);
/* Sets x[0] after so long that only its end by force is awaited: about a minute. */
void edge_launch_endless(const struct edge *e, cl_mem x, cl_event *event);

/* A small piece of work from nothing to nothing, checked: does everything still work here? */
void edge_whole_life(void);

/* A line to the driver of the test, at once; a line from it (what it says does not matter). */
void edge_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void edge_hear(void);

static inline uint32_t edge_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Starts it on a thread of that name (at most 15 letters); edge_join waits for all of them. */
void edge_thread(const char *name, void *(*run)(void *), void *arg);
void edge_join(void);

/* The cases. */
int case_one_queue(int argc, char **argv);
int case_whole_writes(int argc, char **argv);
int case_own_contexts(int argc, char **argv);
int case_churn(int argc, char **argv);
int case_dag(int argc, char **argv);
int case_two_devices(int argc, char **argv);
int case_live_events(int argc, char **argv);
int case_cmdbufs(int argc, char **argv);
int case_cmdbuf_dies(int argc, char **argv);
int case_told_end(int argc, char **argv);
int case_long_wait_list(int argc, char **argv);
int case_many_buffers(int argc, char **argv);
int case_deferred(int argc, char **argv);
int case_pieces(int argc, char **argv);
int case_big_source(int argc, char **argv);
int case_leave(int argc, char **argv);
int case_fork(int argc, char **argv);
int case_fork_exec(int argc, char **argv);
int case_execed(int argc, char **argv);
int case_close_fds(int argc, char **argv);
int case_signals(int argc, char **argv);
int case_small_stacks(int argc, char **argv);
int case_steps(int argc, char **argv);
int case_life(int argc, char **argv);
int case_idle(int argc, char **argv);
int case_lost_waits(int argc, char **argv);
int case_lost_kernel(int argc, char **argv);
int case_no_daemon(int argc, char **argv);
int case_anew(int argc, char **argv);
int case_anew_devices(int argc, char **argv);

#endif
