/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CLIENT_SHUTTLE_H
#define GN_CLIENT_SHUTTLE_H

#include "base/error.h"

/*
 * A relay for moving a vGPU to a gantryd that requires TLS when the vGPU's worker was started
 * without TLS: such a worker is sandboxed and can load no libraries any more, so `gantry` speaks
 * TLS for it.
 */
struct gn_shuttle;
struct gn_tls_psk;

/*
 * Takes the connection *fd and replaces *fd by an end of a socket pair for the worker. The
 * connection's peer expects TLS with this key. 0 or -errno.
 */
int gn_shuttle_start(int *fd, const struct gn_tls_psk *key, struct gn_shuttle **ret,
                     struct gn_error *err);
/*
 * Stops the relay, which the move needs no longer, and frees it. Data in transit are dropped. NULL
 * is ignored.
 */
void gn_shuttle_stop(struct gn_shuttle *s);

#endif
