/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_H
#define GN_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "link/link_wire.h"
#include "link/role.h"

/*
 * A program's end of its connection with gantryd: one a vGPU. It lists platforms, attaches to one,
 * asks for more data segments, and carries control requests. Calls are synchronous and belong to
 * one thread at a time. Nothing is logged, no thread is started, no signal is raised; without a
 * daemon gn_link_connect fails at once.
 *
 * Kinds of link fill the same table; callers use the functions below it.
 */
struct gn_link;

struct gn_platform_list {
    uint32_t n;
    struct gn_platform {
        uint32_t index; /* what attach wants */
        uint32_t n_devices;
        char api[GN_LINK_API_BYTES]; /* "opencl" */
        char name[GN_LINK_NAME_BYTES];
    } items[GN_LINK_MAX_PLATFORMS];
};

struct gn_attach_request {
    uint32_t platform;
    const char *tenant; /* NULL: that of the connection */
    uint32_t weight;    /* 0: the tenant's */
    uint64_t memory_bytes;
    int stdout_fd, stderr_fd; /* the program's; -1 if it has none. Stay the caller's. */
    /* Passthrough: makes the vGPU in this process from what comes over control_fd, which it takes.
     * NULL: a worker is to host it. */
    int (*host)(void *ctx, const char *library, int control_fd, struct gn_error *err);
    void *ctx;
};

/* The descriptors are the caller's. The segments are sealed memfds of exactly these sizes. */
struct gn_attached {
    uint32_t vgpu_id;
    uint32_t platform;
    int session_fd; /* hangs up when the worker is gone */
    int ring_fd, events_fd, data_fd;
    uint64_t ring_bytes, events_bytes, data_bytes;
    uint64_t memory_limit_bytes;
    bool remote; /* on another machine: the segments are this process's alone, session_fd is -1,
                    data connections carry the rest */
    uint32_t grace_ms;
};

struct gn_tcp;
struct gn_stream_hello;

struct gn_link_ops {
    const char *name; /* "shm" */
    int (*platforms)(struct gn_link *, struct gn_platform_list *ret);
    int (*attach)(struct gn_link *, const struct gn_attach_request *, struct gn_attached *ret,
                  struct gn_error *);
    int (*segment)(struct gn_link *, uint64_t bytes, int *ret_fd, uint32_t *ret_index,
                   struct gn_error *);
    int (*control)(struct gn_link *, const char *request, char **ret_reply, struct gn_error *);
    int (*poll_fd)(const struct gn_link *);
    int (*hear)(struct gn_link *); /* NULL: nothing comes unasked */
    int (*data)(struct gn_link *, uint64_t received, uint64_t deadline_ns, struct gn_tcp *ret,
                struct gn_stream_hello *ret_hello, uint64_t *ret_trip_ns, struct gn_error *);
    void (*bye)(struct gn_link *);
    void (*close)(struct gn_link *);
};

struct gn_link {
    const struct gn_link_ops *ops;
    /*
     * gantryd wants this process to host its vGPU from now on; takes control_fd. Called by
     * whichever thread finds the word among what it reads, and must not wait for gantryd nor use
     * this link. Set before the attach; NULL: the word is let be.
     */
    void (*on_host)(void *ctx, const char *library, int control_fd);
    void *on_host_ctx;
    /* A move to another gantryd: MOVE (what), LEAVE or STAY, of this number. As on_host. NULL: the
     * word is let be. */
    void (*on_move)(void *ctx, uint16_t op, uint32_t number, const struct gn_link_move *what);
    /* Over tcp: its vGPU is in a file (`stop`), or has a worker (NULL). As on_host. NULL: the word
     * is let be. */
    void (*on_stop)(void *ctx, const struct gn_link_stopped *stop);
};

/*
 * `address` as given by the user, or NULL for the default. 0 or -errno: -ENOENT, -ECONNREFUSED: no
 * daemon; -EACCES: not for this user or token. The tenant and the token that gantryd is shown are
 * $GANTRY_TENANT and $GANTRY_TOKEN.
 */
int gn_link_connect(const char *address, struct gn_link **ret, struct gn_error *err);
/*
 * The same, for control requests only: no platforms are listed. On this machine it tries the
 * sockets beside `address`: for queries (GN_ROLE_VIEW) control, view, then the program socket,
 * which knows the caller's tenant alone; for commands (GN_ROLE_CONTROL) control, then the program
 * socket, where owners have commands.
 */
int gn_link_connect_control(const char *address, enum gn_role role, struct gn_link **ret,
                            struct gn_error *err);
/* As the one that `who` says; what it leaves NULL is the environment's. */
struct gn_link_who {
    const char *tenant, *token;
    enum gn_role role; /* of control requests, as above; a program's is GN_ROLE_PROGRAM */
};
int gn_link_connect_control_as(const char *address, const struct gn_link_who *who,
                               struct gn_link **ret, struct gn_error *err);

/* What gantryd offered when the connection was made; costs no message. */
static inline int gn_link_platforms(struct gn_link *l, struct gn_platform_list *ret)
{
    return l->ops->platforms(l, ret);
}

/* Once a connection. Returns when the worker has brought its driver up. */
static inline int gn_link_attach(struct gn_link *l, const struct gn_attach_request *request,
                                 struct gn_attached *ret, struct gn_error *err)
{
    return l->ops->attach(l, request, ret, err);
}

/*
 * Another data segment, known to the worker by the time this returns; -EMFILE: its index is, and
 * this process has no room for its descriptor, which is lost.
 */
static inline int gn_link_segment(struct gn_link *l, uint64_t bytes, int *ret_fd,
                                  uint32_t *ret_index, struct gn_error *err)
{
    return l->ops->segment(l, bytes, ret_fd, ret_index, err);
}

/* A JSON request and its JSON reply (malloc'd). -errno only when no reply came: a refusal is a
 * reply too. */
static inline int gn_link_control(struct gn_link *l, const char *request, char **ret_reply,
                                  struct gn_error *err)
{
    return l->ops->control(l, request, ret_reply, err);
}

/*
 * A data connection of a remote session (record.h), its hello exchanged; connects with gantryd anew
 * when that is lost, too. `received`: what this side has taken so far. 0; -ENODEV: gantryd says
 * that the session is no more; another -errno: not to be had now. The connection is the caller's.
 * ret_hello->now_ns becomes what the worker's clock is ahead of ours (may wrap); *ret_trip_ns is
 * how long the question and its answer took.
 */
static inline int gn_link_data(struct gn_link *l, uint64_t received, uint64_t deadline_ns,
                               struct gn_tcp *ret, struct gn_stream_hello *ret_hello,
                               uint64_t *ret_trip_ns, struct gn_error *err)
{
    return l->ops->data(l, received, deadline_ns, ret, ret_hello, ret_trip_ns, err);
}

/* The program ends: its remote session need not be kept for it. Never waits. */
static inline void gn_link_bye(struct gn_link *l)
{
    if (l->ops->bye)
        l->ops->bye(l);
}

/* How long a control request's reply may take; -1: as long as gantryd is there. 30 seconds
 * otherwise. */
void gn_link_set_patience(struct gn_link *l, int timeout_ms);
/* A descriptor, which stays the caller's, that the next control request is about. On this machine
 * only. 0 or -errno. */
int gn_link_send_file(struct gn_link *l, int fd, struct gn_error *err);
/*
 * The program of a vGPU that was stopped waits: says so, with the descriptors of GN_LINK_WAIT_FDS,
 * which stay the caller's; then hears, for as long as it takes, GN_LINK_HAND or GN_LINK_RESTORED,
 * or -errno: -EPIPE: gantryd is gone.
 */
int gn_link_wait(struct gn_link *l, const struct gn_link_wait *wait,
                 const int fds[static GN_LINK_WAIT_FDS], struct gn_error *err);
int gn_link_wait_accepted(struct gn_link *l, struct gn_error *err);
/*
 * The same over tcp, where nothing is handed over; connects with gantryd anew when the connection
 * is lost. 1: the vGPU has a worker, which gn_link_data reaches; 0: it waits, and *ret says as what
 * (on_stop tells when that may be over); -errno: ask again. `wait` but for its platform, which is
 * found by name.
 */
int gn_link_wait_far(struct gn_link *l, const struct gn_link_wait *wait,
                     const struct gn_platform *platform, uint64_t deadline_ns,
                     struct gn_attached *ret, struct gn_error *err);

/*
 * link_move.c: the program's part in a move to another gantryd. `l` is its link with the one that
 * it leaves, `to` the one with the other: over tcp when l is, and maybe when it is not. A
 * connection there, for a claim; ring_fd stays the caller's, and is of no use over tcp.
 */
int gn_link_connect_claim(const struct gn_link *l, const struct gn_link_move *what,
                          struct gn_link **ret, struct gn_error *err);
/* The same where l leads over tcp, and that gantryd is on this machine: by its socket. -errno: it
 * is not, or is not to be reached so. */
int gn_link_connect_near(const struct gn_link_move *what, struct gn_link **ret,
                         struct gn_error *err);
/* hand_fd: of such a one, what its worker gets the session by; else -1. Stays the caller's, too. */
int gn_link_claim(struct gn_link *to, const struct gn_link_claim *claim, int ring_fd, int hand_fd,
                  struct gn_error *err);
/* What it has said since: GN_LINK_CLAIMED (*ret_claimed), GN_LINK_READY (*ret_ready), 0: nothing,
 * or -errno: it is over. Never waits. */
int gn_link_claim_accepted(struct gn_link *to, struct gn_link_claimed *ret_claimed,
                           struct gn_link_ready *ret_ready, struct gn_error *err);
/* A segment that the other one has made; fd stays the caller's. Over tcp nothing: records tell of
 * those. */
int gn_link_pass(struct gn_link *to, uint32_t index, uint64_t bytes, int fd);
/* COMES (`near`: COMES_NEAR), or STAY and why. */
int gn_link_say_comes(struct gn_link *l, uint32_t number, bool near);
int gn_link_say_stays(struct gn_link *l, uint32_t number, const struct gn_error *why);
/*
 * It is decided: GO. When that is out, l becomes the link with the other one, under the same
 * descriptor, and who was left is told. A poll that has begun goes on to wait for that one, and
 * must be woken. Takes `to`. 0; or -errno and nothing has changed, and `to` is closed. Over tcp the
 * descriptor is another one, data connections come from the other one, and who was left is told by
 * gn_link_say_left, when the first of them is there. From tcp to a socket of this machine it is
 * another one, too, and who was left is told.
 */
int gn_link_go_over(struct gn_link *l, struct gn_link *to, uint32_t number,
                    const struct gn_link_claimed *claimed, const struct gn_link_ready *ready);
void gn_link_say_left(struct gn_link *l);
/* Over tcp, of what was claimed: how long a session there is kept whose connections broke. */
uint32_t gn_link_grace_ms(const struct gn_link *to);

/*
 * For `gantry`: the connection that a vGPU's contents go through to the gantryd at this address
 * (tcp), which has given the name and the ticket for it; it has taken it when this returns 0. The
 * descriptor is the caller's. `secure`: whoever writes begins with TLS.
 */
int gn_link_dial_stream(const char *address, const uint8_t name[static GN_LINK_SESSION_BYTES],
                        const uint8_t ticket[static GN_LINK_TICKET_BYTES], bool secure, int *ret_fd,
                        struct gn_error *err);
/* Is what goes over this link protected by TLS? */
bool gn_link_is_secure(const struct gn_link *l);

/* Takes what gantryd has sent unasked, if anything; one thread at a time, as for requests. 0, or
 * -errno: it is gone. */
static inline int gn_link_hear(struct gn_link *l)
{
    return l->ops->hear ? l->ops->hear(l) : 0;
}

/* Hangs up when gantryd is gone; readable when gn_link_hear has something to take. */
static inline int gn_link_poll_fd(const struct gn_link *l)
{
    return l->ops->poll_fd(l);
}

/* Sends nothing. */
static inline void gn_link_close(struct gn_link *l)
{
    l->ops->close(l);
}
/* In a forked child: closes the descriptors, and leaves all else as it is, of which another thread
 * of the parent's may have been in the middle. The parent's goes on. */
void gn_link_forked(struct gn_link *l);

#endif
