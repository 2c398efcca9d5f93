/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_MIGRATE_INBOUND_H
#define GN_DAEMON_MIGRATE_INBOUND_H

#include "daemon/daemon.h"

/*
 * vGPUs that come from another gantryd (docs/moves.md). An operator announces one, with a socket
 * that its old worker writes to: devices and memory are looked at now, and he gets a ticket. The
 * program shows it, once; a worker loads what comes; then the program decides. gantryd's thread.
 *
 * Of a program on another machine it is announced over tcp, by who has its tenant's token; the
 * socket is a data connection of its own, which begins with the arrival's name, and the ticket is
 * that name's key.
 */
struct gn_control_about;
struct gn_control_receipt;
struct gn_inbound;

int gn_inbound_announce(struct gn_conn *c, const struct gn_control_about *about,
                        struct gn_control_receipt *ret, struct gn_error *err);
/* A data connection of this name: takes a copy of it. False: nobody waits for it. */
bool gn_inbound_accept_stream(struct gn_daemon *d, const unsigned char *name,
                              const unsigned char *proof, int fd);
/* The key of this name. 0 or -ENOENT. */
int gn_inbound_find_key(struct gn_daemon *d, const unsigned char *name, struct gn_tls_psk *ret);
/* CLAIM, PASS or GO, of a program's. False: malformed, or out of place. */
bool gn_inbound_frame(struct gn_conn *c, struct gn_frame_reader *reader, const struct gn_frame *f);
/* Who announced it is gone. */
void gn_inbound_conn_closed(struct gn_daemon *d, const struct gn_conn *c);
/* This gantryd is being emptied: what is on its way here, and could not yet go on here, goes on
 * where it was. */
void gn_inbound_refuse_all(struct gn_daemon *d);
/* When the first ticket runs out, 0: there is none; and those that have. */
uint64_t gn_inbound_deadline(const struct gn_daemon *d);
void gn_inbound_expire(struct gn_daemon *d, uint64_t now_ns);

#endif
