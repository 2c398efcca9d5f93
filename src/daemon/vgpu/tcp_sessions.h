/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_TCP_SESSIONS_H
#define GN_DAEMON_VGPU_TCP_SESSIONS_H

#include "daemon/daemon.h"

/* vGPUs with programs on other machines: names and keys of sessions, and programs that come back.
 * gantryd's thread. */

/* A name and a key for a new session with the program of c. 0 or -errno. */
int gn_vgpus_make_session(struct gn_vgpu_record *v, const struct gn_conn *c);
/* The key of the session of this name, for TLS. 0 or -ENOENT. */
int gn_vgpus_find_key(const struct gn_daemon *d, const unsigned char *name, struct gn_tls_psk *ret);
/* The vGPU of this session's name and key. NULL: there is none, or its session needs TLS, which
 * this connection lacks. */
struct gn_vgpu_record *gn_vgpus_of_conn(const struct gn_conn *c, const unsigned char *session,
                                        const unsigned char *key);
/* Tells the program its session. Not sent at once: a connection that breaks over it might end v. */
void gn_vgpus_notify_session(struct gn_vgpu_record *v, uint32_t seq);
/* The vGPU of a data connection. With TLS the name is enough, as the handshake with the worker
 * proves the key. */
struct gn_vgpu_record *gn_vgpus_for_data(struct gn_daemon *d, const unsigned char *session,
                                         const unsigned char *proof);
/* Hands a data connection to the worker, or drops it when there is none. fd stays the caller's. */
void gn_vgpus_link(struct gn_vgpu_record *v, int fd);
/* The program asks for its session on this connection. 0 or -errno. */
int gn_vgpus_return(struct gn_vgpu_record *v, struct gn_conn *c, struct gn_error *err);
/* The connection broke. True: the vGPU is kept for a while. */
bool gn_vgpus_await_return(struct gn_vgpu_record *v);

#endif
