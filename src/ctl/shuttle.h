/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_SHUTTLE_H
#define GN_CTL_SHUTTLE_H

#include "base/error.h"

/*
 * What a vGPU goes through to where TLS is spoken, from a worker that was started without: it is
 * behind its walls, and can load nothing any more. `gantry` speaks TLS in its place.
 */
struct gn_shuttle;
struct gn_tls_psk;

/* *fd, a connection whose other end begins with TLS by this key, becomes the end of a socket pair
 * for the worker. 0 or -errno. */
int gn_shuttle_start(int *fd, const struct gn_tls_psk *key, struct gn_shuttle **ret,
                     struct gn_error *err);
/* It is decided: what is under way is of no use. NULL does nothing. */
void gn_shuttle_stop(struct gn_shuttle *s);

#endif
