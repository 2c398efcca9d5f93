/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_CONNECTION_H
#define GN_DAEMON_NET_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/loop.h"
#include "daemon/net/quota.h"
#include "daemon/net/sockets.h"
#include "daemon/net/strangers.h"
#include "link/frame.h"
#include "link/link_wire.h"
#include "link/tls.h"

/* Connections of programs and of `gantry`. gantryd's thread. */
struct gn_daemon;
struct gn_late_attach;
struct gn_tcp_listener;
struct gn_tenant;
struct gn_transport;
struct gn_vgpu_record;

/* The peer of a control connection from another machine. */
struct gn_session_tcp_peer {
    bool secure;       /* TLS */
    bool proved;       /* it knows a tenant's token */
    bool control;      /* it came to the port for operators */
    enum gn_role role; /* CONTROL: and its certificate is an operator's */
    char subject[64];  /* the certificate's name: the tenant's. "": none */
    char address[64];  /* for the log */
};

struct gn_conn {
    struct gn_corpse corpse;
    struct gn_list link;
    struct gn_daemon *daemon;
    const struct gn_transport *transport; /* transport.h */
    struct gn_quota *quota;               /* of the peer's user or address */
    struct gn_source socket;
    struct gn_source process; /* pidfd of the program, once it attached; -1: it cannot be watched */
    bool process_proved;  /* the kernel says that the pidfd is the peer's: it may be killed by it */
    uint64_t taken_ticks; /* gn_process_ticks_now() when it connected */
    struct gn_frame_reader reader;
    struct gn_frame_writer writer;
    bool greeted;
    bool closing; /* once the queue is out */
    bool stuck;   /* not listened to: gn_quota_is_stuck() */
    bool waits;   /* connection_turns.c: its frame does */
    struct gn_list turn;
    struct gn_frame frame;
    bool control_only; /* it asks and attaches to nothing */
    bool claims;       /* a vGPU that comes from another gantryd, and nothing else */
    bool hears_near; /* its program may be told how another gantryd is reached on that one's machine
                      */
    pid_t pid;       /* of the program, in our namespace; 0: not visible from here */
    uid_t uid;       /* the peer's, as the kernel says */
    gid_t gid;
    enum gn_role role; /* of the socket that accepted it; it never changes */
    char program[GN_LINK_NAME_BYTES];
    bool bye;                        /* the program has said that it ends */
    struct gn_session_tcp_peer peer; /* over tcp; else zeros */
    struct gn_tcp_listener *came_by; /* the tcp port; NULL: a socket of this machine */
    struct gn_stranger stranger;     /* over tcp, until its greeting is admitted */
    struct gn_tenant *tenant;        /* that the greeting was admitted to; NULL: none */
    bool is_bound;              /* it came by a tenant's socket, and is admitted to nothing else */
    struct gn_tenant *bound_to; /* that tenant; NULL: its socket is no more */
    uint32_t n_token;
    char token[GN_LINK_TOKEN_BYTES];
    struct gn_vgpu_record *vgpu;
    char *request; /* a control request in parts */
    size_t n_request;
    /* A reply that waits until the tenant's workers have followed the change. */
    char *held;
    uint32_t request_seq; /* of the control request in hand */
    uint32_t held_seq;
    struct gn_tenant *held_for;
    int file_fd; /* a descriptor that the next control request is about; -1: none */
    uint64_t held_until_ns;
    /* connection_limits.c */
    struct gn_list of_quota, ungreeted;
    uint64_t since_ns;
    uint32_t held_fds;
    bool counts_as_vgpus;
    size_t held_bytes;
    struct gn_late_attach *late; /* attach.c; NULL: none */
};

/* How frames and ends of connections are served. The code of connections knows vGPUs, sessions and
 * requests through this table alone. */
struct gn_conn_ops {
    /* Serves a frame of a peer that has greeted. NULL, or the violation, which ends the connection.
     */
    const char *(*frame)(struct gn_conn *c, const struct gn_frame *f);
    /* The connection is closed: nothing that it has asked for is answered any more; and its vGPU
     * has lost its program, or waits for it to come back. */
    void (*forget)(struct gn_conn *c);
    void (*leave)(struct gn_conn *c);
    /* A data connection, by the session that it names. It stays the caller's. False: there is no
     * such session. */
    bool (*data)(struct gn_daemon *d, const struct gn_link_data *name, int fd);
    /* The key of this name, for a TLS handshake. 0 or -ENOENT. */
    int (*find_key)(struct gn_daemon *d, const unsigned char *identity, struct gn_tls_psk *ret);
    /* Of Unix sockets, and of tcp. */
    const struct gn_transport *local, *tcp;
};

/* Accepts connections at a struct gn_socket. */
void gn_conns_accept(struct gn_source *source, uint32_t events);
/* A connected Unix socket that does not block; gantryd's from now on. */
void gn_conns_add(struct gn_daemon *d, int fd, enum gn_role role, struct gn_tenant *bound_to);
/* The same of a program on another machine. NULL: it is closed already. */
struct gn_conn *gn_conns_add_tcp(struct gn_daemon *d, int fd,
                                 const struct gn_session_tcp_peer *peer);
void gn_conn_close(struct gn_conn *c);
void gn_conns_close(struct gn_daemon *d);
/* Its frame's turn has come (connection_turns.h). */
void gn_conn_serve(struct gn_conn *c);
/* The closer has closed some descriptors: connections that were not listened to because of them may
 * be now. */
void gn_conns_closed_some(struct gn_source *news, uint32_t events);
/* Sends a frame; a peer that does not read is closed. */
void gn_conn_send(struct gn_conn *c, uint16_t op, uint32_t seq, const void *payload, size_t n,
                  const int *fds, int n_fds);
/* The same without descriptors, and not at once: a connection that breaks over a frame may end the
 * vGPU that the caller has in hand. */
void gn_conn_queue(struct gn_conn *c, uint16_t op, uint32_t seq, const void *payload, size_t n);
/* Whether the peer has not hung up yet, as far as can be read. */
bool gn_conn_has_peer(const struct gn_conn *c);
void gn_conn_refuse(struct gn_conn *c, uint32_t seq, int code, const struct gn_error *err);
/* The error of a descriptor that there is no room for: -EMFILE. */
int gn_conn_no_room(struct gn_error *err);
/* A control request's reply. */
void gn_conn_reply(struct gn_conn *c, uint32_t seq, const char *text);

#endif
