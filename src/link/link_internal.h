/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_INTERNAL_H
#define GN_LINK_INTERNAL_H

#include "link/address.h"
#include "link/frame.h"
#include "link/link.h"
#include "link/tcp.h"

/*
 * A program's connection with gantryd, of either kind. link_unix.c has the shared part, link_tcp.c
 * the part for tcp.
 */
#define GN_LINK_ATTACH_TIMEOUT_MS 120000

struct gn_link_end {
    struct gn_link base;
    struct gn_tcp socket;
    bool tcp;
    uint32_t seq;
    uint64_t features; /* GN_LINK_FEATURE_*, for HELLO */
    int patience_ms;   /* timeout of control replies; -1: none */
    struct gn_frame_reader reader;
    struct gn_platform_list platforms;
    /* tcp */
    struct gn_address address;
    bool lost, attached;
    bool secure;       /* TLS, also on data connections */
    uint32_t grace_ms; /* of a session that was claimed here */
    uint8_t session[GN_LINK_SESSION_BYTES], key[GN_LINK_KEY_BYTES];
    /* Only while connecting. */
    const struct gn_link_move *ticket; /* of a claim that is protected by TLS; else NULL */
    struct gn_link_credentials credentials;
    struct gn_tcp left; /* the connection to the source of a migration, until LEFT is sent; fd
                         * -1: none */
    uint32_t left_number;
    struct gn_link_ready left_ready;
};

static inline struct gn_link_end *gn_link_end_of(const struct gn_link *l)
{
    return (struct gn_link_end *)gn_container_of(l, struct gn_link_end, base);
}

/* Decodes an ERROR frame into err; returns its code. */
int gn_link_refused(const struct gn_frame *f, struct gn_error *err);
/* Sets err for a connection that failed with `code`; returns -errno. */
int gn_link_lost(struct gn_error *err, int code);
/*
 * Sends a request and waits for the frame that answers it. want 0: any answer except ERROR.
 * Dispatches unrequested frames that arrive meanwhile.
 */
int gn_link_ask(struct gn_link_end *u, int timeout_ms, uint16_t op, const void *payload, size_t n,
                const int *fds, int n_fds, uint16_t want, struct gn_frame *ret,
                struct gn_error *err);
/*
 * link_unix.c: opens a connection and exchanges hellos with these features. Identity as for
 * gn_link_connect_control_as, `ticket` for a claim protected by TLS; both may be NULL.
 */
int gn_link_connect_for(const char *address, uint64_t features,
                        const struct gn_link_credentials *credentials,
                        const struct gn_link_move *ticket, struct gn_link **ret,
                        struct gn_error *err);
/*
 * The value to present to gantryd: `said`, or the environment variable `name` when that is NULL, or
 * "".
 */
const char *gn_link_shown(const char *said, const char *name);
/* Dispatches unrequested frames of gantryd. 0 or -errno. */
int gn_link_end_dispatch(struct gn_link *l);
/* The first request of a connection. */
int gn_link_hello_exchange(struct gn_link_end *u, struct gn_error *err);
int gn_link_attach_message(const struct gn_attach_request *request, struct gn_link_attach *ret,
                           struct gn_error *err);

int gn_link_end_platforms(struct gn_link *l, struct gn_platform_list *ret);
int gn_link_end_control(struct gn_link *l, const char *request, char **ret_reply,
                        struct gn_error *err);
int gn_link_end_poll_fd(const struct gn_link *l);
void gn_link_end_close(struct gn_link *l);

/* link_tcp.c: connects u to u->address. */
int gn_link_tcp_open(struct gn_link_end *u, struct gn_error *err);

#endif
