/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_INTERNAL_H
#define GN_LINK_INTERNAL_H

#include "link/address.h"
#include "link/frame.h"
#include "link/link.h"
#include "link/tcp.h"

/* A program's connection with gantryd, of either kind: link_unix.c has what they share, link_tcp.c
 * what only tcp does. */
#define GN_LINK_ATTACH_TIMEOUT_MS 120000

struct gn_link_end {
    struct gn_link base;
    struct gn_tcp socket;
    bool tcp;
    uint32_t seq;
    uint64_t features; /* GN_LINK_FEATURE_*, for the greeting */
    int patience_ms;   /* of control requests; -1: as long as it takes */
    struct gn_frame_reader reader;
    struct gn_platform_list platforms;
    /* tcp */
    struct gn_address address;
    bool lost, attached;
    bool secure;       /* TLS, on data connections too */
    uint32_t grace_ms; /* of a session that was claimed there */
    uint8_t session[GN_LINK_SESSION_BYTES], key[GN_LINK_KEY_BYTES];
    /* While it connects. */
    const struct gn_link_move *ticket; /* of a claim that TLS is to protect; NULL */
    struct gn_link_who who;
    struct gn_tcp left; /* with the one that was left, until it is told; fd -1 */
    uint32_t left_number;
    struct gn_link_ready left_ready;
};

static inline struct gn_link_end *gn_link_end_of(const struct gn_link *l)
{
    return (struct gn_link_end *)gn_container_of(l, struct gn_link_end, base);
}

/* Takes an ERROR frame apart. */
int gn_link_refused(const struct gn_frame *f, struct gn_error *err);
/* An error's sentence for a failed frame; returns its code. */
int gn_link_lost(struct gn_error *err, int code);
/* Sends a request and waits for the frame that answers it. want 0: any but an ERROR. */
int gn_link_ask(struct gn_link_end *u, int timeout_ms, uint16_t op, const void *payload, size_t n,
                const int *fds, int n_fds, uint16_t want, struct gn_frame *ret,
                struct gn_error *err);
/* link_unix.c: a connection, greeted with these features. `who`: as of gn_link_connect_control_as;
 * `ticket`: of a claim that goes through TLS; either NULL: none. */
int gn_link_connect_for(const char *address, uint64_t features, const struct gn_link_who *who,
                        const struct gn_link_move *ticket, struct gn_link **ret,
                        struct gn_error *err);
/* What is shown of this name: `said`, or the environment's when that is NULL; "": nothing. */
const char *gn_link_shown(const char *said, const char *name);
/* What gantryd says unasked. 0 or -errno. */
int gn_link_end_hear(struct gn_link *l);
/* The first request of a connection. */
int gn_link_hello_exchange(struct gn_link_end *u, struct gn_error *err);
int gn_link_attach_message(const struct gn_attach_request *request, struct gn_link_attach *ret,
                           struct gn_error *err);

int gn_link_end_platforms(struct gn_link *l, struct gn_platform_list *ret);
int gn_link_end_control(struct gn_link *l, const char *request, char **ret_reply,
                        struct gn_error *err);
int gn_link_end_poll_fd(const struct gn_link *l);
void gn_link_end_close(struct gn_link *l);

/* link_tcp.c: connects u, whose address is set. */
int gn_link_tcp_open(struct gn_link_end *u, struct gn_error *err);

#endif
