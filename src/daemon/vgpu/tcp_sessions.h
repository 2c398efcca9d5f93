/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_TCP_SESSIONS_H
#define GN_DAEMON_VGPU_TCP_SESSIONS_H

#include "daemon/daemon.h"

/* vGPUs whose programs are on other machines: their sessions' names and keys, and programs that
 * come back. gantryd's thread. */

int gn_vgpus_make_session(struct gn_vgpu_record *v, const struct gn_conn *c);
/* The key of the vGPU whose session has this name, for TLS. 0 or -ENOENT. */
int gn_vgpus_find_key(const struct gn_daemon *d, const unsigned char *name, struct gn_tls_psk *ret);
/* NULL: none has this name and this key, or not on such a connection. */
struct gn_vgpu_record *gn_vgpus_of_conn(const struct gn_conn *c, const unsigned char *session,
                                        const unsigned char *key);
/* The program on its connection: this is its session. Not sent at once: if that ended the
 * connection, it might end v. */
void gn_vgpus_notify_session(struct gn_vgpu_record *v, uint32_t seq);
/* For a data connection: where its vGPU speaks TLS the name alone, as the handshake with the worker
 * is the proof. */
struct gn_vgpu_record *gn_vgpus_for_data(struct gn_daemon *d, const unsigned char *session,
                                         const unsigned char *proof);
/* Hands a data connection to the worker, or lets go of it when there is none. fd stays the
 * caller's. */
void gn_vgpus_link(struct gn_vgpu_record *v, int fd);
/* The program asks for its session on this connection. 0 or -errno. */
int gn_vgpus_return(struct gn_vgpu_record *v, struct gn_conn *c, struct gn_error *err);
/* The connection broke. True: the vGPU is kept for a while. */
bool gn_vgpus_keep(struct gn_vgpu_record *v);

#endif
