/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_MIGRATE_INBOUND_H
#define GN_DAEMON_MIGRATE_INBOUND_H

#include "daemon/daemon.h"

/*
 * vGPUs that come from another gantryd (docs/moves.md). An operator announces a vGPU, with a
 * socket that its source writes to; this gantryd checks devices and memory, and answers with a
 * ticket. The program shows the ticket, once; a worker loads the vGPU; then the program decides.
 * gantryd's thread.
 *
 * The vGPU of a program on another machine is announced over tcp, by a connection that was
 * admitted to its tenant. The socket is then a data connection, which begins with the arrival's
 * name; the ticket is that name's key.
 */
struct gn_control_about;
struct gn_control_receipt;

/* A program's CLAIM, as its transport reads it. */
struct gn_claim {
    struct gn_link_claim frame;
    int ring_fd, hand_fd; /* -1: none. hand_fd: the session comes by it */
    bool is_session;      /* the descriptors are of the right kinds */
    bool named;           /* the vGPU must have been announced over tcp; else must not */
    bool near;            /* the session was over tcp, and becomes one in shared memory */
};

int gn_inbound_announce(struct gn_conn *c, const struct gn_control_about *about,
                        struct gn_control_receipt *ret, struct gn_error *err);
/* Takes a copy of a data connection of this name. False: no arrival has this name. */
bool gn_inbound_accept_stream(struct gn_daemon *d, const unsigned char *name,
                              const unsigned char *proof, int fd);
/* The key of this name. 0 or -ENOENT. */
int gn_inbound_find_key(struct gn_daemon *d, const unsigned char *name, struct gn_tls_psk *ret);
/* CLAIM, PASS or GO, of a program's. False: malformed, or out of place. */
bool gn_inbound_frame(struct gn_conn *c, struct gn_frame_reader *reader, const struct gn_frame *f);
/* This gantryd is being drained: vGPUs that have not loaded everything stay at their source. */
void gn_inbound_refuse_all(struct gn_daemon *d);

#endif
