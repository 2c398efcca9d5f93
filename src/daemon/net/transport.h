/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_TRANSPORT_H
#define GN_DAEMON_NET_TRANSPORT_H

#include "daemon/net/connection.h"

/*
 * The way by which a peer is connected to gantryd, and the facts that gantryd has of the peer for
 * that reason. One table for each way: local (transport_local.c), a Unix socket, at which the
 * kernel names the peer's process and user; and tcp (transport_tcp.c), where the peer has
 * credentials, descriptors cannot be passed, and the program's process is out of sight.
 * c->transport is set when the connection is made and never changes. Other code calls the table,
 * or asks for a property; it never asks for the kind. gantryd's thread; no function waits.
 */
struct gn_claim;
struct gn_control_about;
struct gn_control_receipt;
struct gn_owner;
struct gn_peer;
struct gn_record_session_ops;
struct gn_tenant_rules;

struct gn_transport {
    /* ---- properties */

    /* The descriptors of its output that a program may attach with: GN_LINK_HAS_*. */
    uint32_t output_flags;
    /* The sessions of programs that are connected so. */
    const struct gn_record_session_ops *session;
    /* A vGPU that is announced so sends its contents by a data connection, which names the vGPU.
     * Else the announcement brings the socket. */
    bool names_streams;

    /* ---- the connection */

    /* Whether close(fd) returns at once. Else the closer has to call it. */
    bool (*closes_at_once)(int fd);
    /* The peer has greeted, and is admitted. */
    void (*greeted)(struct gn_conn *c, const struct gn_link_hello *h);
    /* Closes the connection when its program dies, if gantryd can see the program's process. */
    void (*watch_program)(struct gn_conn *c);
    /* Whether a watched program may run its vGPU in its own process. 0 or -EOPNOTSUPP. */
    int (*judge_in_process)(const struct gn_conn *c, struct gn_error *err);

    /* ---- the peer's identity */

    /* Writes a name for the peer: its user id, or its address. */
    void (*name_user)(const struct gn_conn *c, char *ret, size_t n);
    /* The program's socket, for workers to run as the user at its other end; -1: unknown. */
    int (*user_socket)(const struct gn_conn *c);
    /* Whether the peer was admitted as a user of this machine. Else a credential admitted it. */
    bool (*is_admitted_by_user)(const struct gn_conn *c);
    /* Adds the facts that only this way tells. Returns the groups that *peer refers to, malloc'd;
     * NULL: none. */
    gid_t *(*identify)(const struct gn_conn *c, struct gn_peer *peer);
    /* Whether the peer may attach. 0; -EACCES: no; -EPERM: no, its token is wrong. */
    int (*admits)(const struct gn_tenant_rules *r, const struct gn_peer *peer);
    /* Writes a remedy for a peer that may not attach to the tenant that is shown as `tenant`. */
    void (*advise_refused)(const struct gn_conn *c, const char *tenant, char *ret, size_t n);
    /* The owner of a vGPU that the peer attaches in this tenant. */
    struct gn_owner (*owner_of)(const struct gn_conn *c, const struct gn_tenant *t);
    /* Whether the peer may announce vGPUs of this tenant from another gantryd without being an
     * operator. */
    bool (*may_announce)(const struct gn_conn *c, const char *tenant);

    /* ---- frames of programs. False: malformed, or out of place */

    /* WAIT: the program waits for its vGPU, which is in a file. */
    bool (*serve_wait)(struct gn_conn *c, const struct gn_frame *f);
    /* RETURN: the program asks for its session on this connection. */
    bool (*serve_return)(struct gn_conn *c, const struct gn_frame *f);

    /* ---- vGPUs that come from another gantryd (migrate/inbound.h) */

    /* Whether a vGPU with such a session can come to this gantryd, announced so. 0 or -errno. */
    int (*judge_announced)(const struct gn_conn *c, const struct gn_control_about *about,
                           struct gn_error *err);
    /* The socket that the announcement brings: the caller's; untouched when a data connection is
     * to come. 0 or -errno. */
    int (*get_stream)(struct gn_conn *c, int *ret_fd, struct gn_error *err);
    /* Adds the address for a program that turns out to be on this machine. */
    void (*add_near_address)(const struct gn_conn *c, const struct gn_control_about *about,
                             struct gn_control_receipt *ret);
    /* CLAIM. False: malformed, and no descriptor is taken. */
    bool (*read_claim)(struct gn_conn *c, const struct gn_frame *f, struct gn_claim *ret);
};

extern const struct gn_transport gn_transport_local, gn_transport_tcp;

#endif
