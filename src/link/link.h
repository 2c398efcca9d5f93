/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_H
#define GN_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "link/link_wire.h"
#include "link/role.h"

/*
 * A program's connection to gantryd, one per vGPU. It lists platforms, attaches to one, requests
 * more data segments, and carries control requests. Calls are synchronous, and one thread uses a
 * link at a time. It logs nothing, starts no thread and raises no signal; gn_link_connect fails at
 * once when no gantryd listens.
 *
 * Each kind of link (Unix socket, tcp) fills the same table of functions; callers use the wrappers
 * below it.
 */
struct gn_link;

struct gn_platform_list {
    uint32_t n;
    struct gn_platform {
        uint32_t index; /* the number to attach with */
        uint32_t n_devices;
        char api[GN_LINK_API_BYTES]; /* "opencl" */
        char name[GN_LINK_NAME_BYTES];
    } items[GN_LINK_MAX_PLATFORMS];
};

struct gn_attach_request {
    uint32_t platform;
    const char *tenant; /* NULL: the tenant of the connection */
    uint32_t weight;    /* 0: the tenant's */
    uint64_t memory_bytes;
    int stdout_fd, stderr_fd; /* the program's, not owned; -1 if it has none */
    /*
     * Passthrough: creates the vGPU in this process, with instructions from control_fd, which it
     * owns. NULL: a worker serves the vGPU.
     */
    int (*host)(void *ctx, const char *library, int control_fd, struct gn_error *err);
    void *ctx;
};

/* The caller owns the descriptors. The segments are sealed memfds of exactly these sizes. */
struct gn_attached {
    uint32_t vgpu_id;
    uint32_t platform;
    int session_fd; /* hangs up when the worker is gone */
    int ring_fd, events_fd, data_fd;
    uint64_t ring_bytes, events_bytes, data_bytes;
    uint64_t memory_limit_bytes;
    bool remote; /* a tcp session: the segments are private to this process, session_fd is -1,
                  * and data connections carry the changes */
    uint32_t grace_ms;
};

struct gn_tcp;
struct gn_stream_hello;

struct gn_link_ops {
    const char *name; /* "shm" or "tcp" */
    int (*platforms)(struct gn_link *, struct gn_platform_list *ret);
    int (*attach)(struct gn_link *, const struct gn_attach_request *, struct gn_attached *ret,
                  struct gn_error *);
    int (*segment)(struct gn_link *, uint64_t bytes, int *ret_fd, uint32_t *ret_index,
                   struct gn_error *);
    int (*control)(struct gn_link *, const char *request, char **ret_reply, struct gn_error *);
    int (*poll_fd)(const struct gn_link *);
    int (*hear)(struct gn_link *); /* NULL: gantryd sends nothing unrequested */
    int (*data)(struct gn_link *, uint64_t received, uint64_t deadline_ns, struct gn_tcp *ret,
                struct gn_stream_hello *ret_hello, uint64_t *ret_trip_ns, struct gn_error *);
    void (*bye)(struct gn_link *);
    void (*close)(struct gn_link *);
};

struct gn_link {
    const struct gn_link_ops *ops;
    /*
     * gantryd asks this process to take its vGPU over into passthrough; the callee owns control_fd.
     * Called on the thread that reads the frame; it must not wait for gantryd nor use this link.
     * Set before the attach. NULL: ignored.
     */
    void (*on_host)(void *ctx, const char *library, int control_fd);
    void *on_host_ctx;
    /*
     * A frame about a migration to another gantryd: op is MOVE (with its payload), LEAVE or STAY,
     * `number` the migration's. As on_host. NULL: ignored.
     */
    void (*on_move)(void *ctx, uint16_t op, uint32_t number, const struct gn_link_move *what);
    /*
     * Tcp only: the vGPU was saved to a file and stopped (`stop`), or has a worker (NULL). As
     * on_host. NULL: ignored.
     */
    void (*on_stop)(void *ctx, const struct gn_link_stopped *stop);
};

/*
 * Connects a program to a gantryd. `address` is the user's, or NULL for the default. 0 or -errno;
 * -ENOENT, -ECONNREFUSED: no gantryd listens; -EACCES: this user or token is not admitted. The
 * tenant and the token come from $GANTRY_TENANT and $GANTRY_TOKEN.
 */
int gn_link_connect(const char *address, struct gn_link **ret, struct gn_error *err);
/*
 * The same, for control requests only: no platforms are listed. On this machine it tries the
 * sockets beside `address`. For queries (GN_ROLE_VIEW): control, view, then the program socket,
 * which answers about the caller's own tenant only. For commands (GN_ROLE_CONTROL): control, then
 * the program socket, which accepts some commands for the caller's own vGPUs.
 */
int gn_link_connect_control(const char *address, enum gn_role role, struct gn_link **ret,
                            struct gn_error *err);
/* The caller's identity. NULL: from the environment. */
struct gn_link_credentials {
    const char *tenant, *token;
    enum gn_role role; /* for control requests, as above; GN_ROLE_PROGRAM for programs */
};
int gn_link_connect_control_as(const char *address, const struct gn_link_credentials *credentials,
                               struct gn_link **ret, struct gn_error *err);

/* The platforms that gantryd listed when the connection was made. Sends no message. */
static inline int gn_link_platforms(struct gn_link *l, struct gn_platform_list *ret)
{
    return l->ops->platforms(l, ret);
}

/* At most once per connection. Returns when the worker has initialized its driver. */
static inline int gn_link_attach(struct gn_link *l, const struct gn_attach_request *request,
                                 struct gn_attached *ret, struct gn_error *err)
{
    return l->ops->attach(l, request, ret, err);
}

/*
 * Requests another data segment, which the worker knows before this returns. -EMFILE: this process
 * had no room for the descriptor; the segment exists and its index is returned, but its memory is
 * not accessible.
 */
static inline int gn_link_segment(struct gn_link *l, uint64_t bytes, int *ret_fd,
                                  uint32_t *ret_index, struct gn_error *err)
{
    return l->ops->segment(l, bytes, ret_fd, ret_index, err);
}

/*
 * Sends a JSON request and returns its JSON reply (malloc'd). -errno only if no reply came: a
 * refusal is a reply.
 */
static inline int gn_link_control(struct gn_link *l, const char *request, char **ret_reply,
                                  struct gn_error *err)
{
    return l->ops->control(l, request, ret_reply, err);
}

/*
 * Opens a data connection of a tcp session (record.h) and exchanges hellos; reconnects to gantryd
 * first when that connection is lost. `received`: bytes of records that this side has processed. 0;
 * -ENODEV: gantryd says that the session has ended; another -errno: not possible now, try again.
 * The caller owns the connection. ret_hello->now_ns is replaced by the offset of the worker's clock
 * from ours (may wrap); *ret_trip_ns is the round trip of the hellos.
 */
static inline int gn_link_data(struct gn_link *l, uint64_t received, uint64_t deadline_ns,
                               struct gn_tcp *ret, struct gn_stream_hello *ret_hello,
                               uint64_t *ret_trip_ns, struct gn_error *err)
{
    return l->ops->data(l, received, deadline_ns, ret, ret_hello, ret_trip_ns, err);
}

/* Tells gantryd that the program ends, so its tcp session need not wait for it. Never blocks. */
static inline void gn_link_bye(struct gn_link *l)
{
    if (l->ops->bye)
        l->ops->bye(l);
}

/* Sets the timeout of control replies; -1: none. 30 seconds by default. */
void gn_link_set_patience(struct gn_link *l, int timeout_ms);
/*
 * Sends a descriptor that the next control request refers to; the caller keeps it. Unix sockets
 * only. 0 or -errno.
 */
int gn_link_send_file(struct gn_link *l, int fd, struct gn_error *err);
/*
 * For a program with a stopped vGPU: gn_link_wait tells gantryd that the program waits, with the
 * descriptors of GN_LINK_WAIT_FDS, which the caller keeps. gn_link_wait_accepted blocks without
 * limit until gantryd answers: GN_LINK_HAND, GN_LINK_RESTORED, or -errno (-EPIPE: gantryd is gone).
 */
int gn_link_wait(struct gn_link *l, const struct gn_link_wait *wait,
                 const int fds[static GN_LINK_WAIT_FDS], struct gn_error *err);
int gn_link_wait_accepted(struct gn_link *l, struct gn_error *err);
/*
 * The same over tcp, where no descriptors are handed over; reconnects to gantryd when the
 * connection is lost. 1: the vGPU has a worker, which gn_link_data reaches; 0: the program waits,
 * with the session in *ret (on_stop tells when to ask again); -errno: try again. wait->platform is
 * ignored: the platform is found by name.
 */
int gn_link_wait_tcp(struct gn_link *l, const struct gn_link_wait *wait,
                     const struct gn_platform *platform, uint64_t deadline_ns,
                     struct gn_attached *ret, struct gn_error *err);

/*
 * link_move.c: the program's part in a migration to another gantryd. `l` is its link to the source
 * gantryd, `to` the link to the destination. `to` is over tcp if `l` is; it may also be over tcp if
 * `l` is not. gn_link_connect_claim connects to the destination in order to claim the vGPU there.
 */
int gn_link_connect_claim(const struct gn_link *l, const struct gn_link_move *what,
                          struct gn_link **ret, struct gn_error *err);
/*
 * For a program attached over tcp: connects to the destination by its Unix socket, if that gantryd
 * runs on this machine. -errno: it does not, or is not reachable this way.
 */
int gn_link_connect_near(const struct gn_link_move *what, struct gn_link **ret,
                         struct gn_error *err);
/*
 * Claims the vGPU at the destination. The caller keeps ring_fd (unused over tcp) and hand_fd: the
 * socket through which the new worker receives the session after gn_link_connect_near, else -1.
 */
int gn_link_claim(struct gn_link *to, const struct gn_link_claim *claim, int ring_fd, int hand_fd,
                  struct gn_error *err);
/*
 * The destination's answers so far: GN_LINK_CLAIMED (*ret_claimed), GN_LINK_READY (*ret_ready), 0:
 * none yet, or -errno: the claim has failed. Never blocks.
 */
int gn_link_claim_accepted(struct gn_link *to, struct gn_link_claimed *ret_claimed,
                           struct gn_link_ready *ret_ready, struct gn_error *err);
/*
 * Passes on a data segment that the source has created since the claim; the caller keeps fd. Does
 * nothing over tcp, where records announce segments.
 */
int gn_link_pass(struct gn_link *to, uint32_t index, uint64_t bytes, int fd);
/* Tells the source COMES (`near`: COMES_NEAR), or STAY with the reason. */
int gn_link_send_comes(struct gn_link *l, uint32_t number, bool near);
int gn_link_send_stays(struct gn_link *l, uint32_t number, const struct gn_error *why);
/*
 * Commits the migration: sends GO to the destination. `l` then becomes the link to the destination,
 * and `to` is consumed. 0; or -errno: nothing has changed, and `to` is closed.
 *
 * Unix socket to Unix socket: `l` retains its descriptor number, and the source is told LEFT. A
 * poll on that number that is in progress waits for the old socket, and must be woken. To tcp: the
 * descriptor changes, data connections come from the destination, and the caller tells the source
 * with gn_link_send_left once the first of them is open. From tcp to a Unix socket: the descriptor
 * changes, and the source is told LEFT.
 */
int gn_link_go_over(struct gn_link *l, struct gn_link *to, uint32_t number,
                    const struct gn_link_claimed *claimed, const struct gn_link_ready *ready);
void gn_link_send_left(struct gn_link *l);
/* Over tcp: how long the destination retains a session without connections, in milliseconds. */
uint32_t gn_link_grace_ms(const struct gn_link *to);

/*
 * For `gantry`: opens the tcp connection through which a vGPU's contents reach the gantryd at
 * `address`, which has issued `name` and `ticket`. Returns 0 when that gantryd has accepted it; the
 * caller owns the descriptor. `secure`: the process that writes to it begins with TLS.
 */
int gn_link_dial_stream(const char *address, const uint8_t name[static GN_LINK_SESSION_BYTES],
                        const uint8_t ticket[static GN_LINK_TICKET_BYTES], bool secure, int *ret_fd,
                        struct gn_error *err);
/* Whether this link is protected by TLS. */
bool gn_link_is_secure(const struct gn_link *l);

/*
 * Reads and dispatches frames that gantryd has sent unrequested, if any. One thread at a time, as
 * for requests. 0, or -errno: gantryd is gone.
 */
static inline int gn_link_dispatch(struct gn_link *l)
{
    return l->ops->hear ? l->ops->hear(l) : 0;
}

/*
 * A descriptor to poll: readable when gn_link_dispatch has something to read, hung up when gantryd
 * is gone.
 */
static inline int gn_link_poll_fd(const struct gn_link *l)
{
    return l->ops->poll_fd(l);
}

/* Closes the link without sending anything. */
static inline void gn_link_close(struct gn_link *l)
{
    l->ops->close(l);
}
/*
 * In a forked child: closes the descriptors and frees nothing, since a thread of the parent may
 * have been using the link at the fork. The parent's link is unaffected.
 */
void gn_link_forked(struct gn_link *l);

#endif
