/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_SESSION_SESSION_IN_PROCESS_H
#define GN_GUEST_SESSION_SESSION_IN_PROCESS_H

#include <stdint.h>

#include "base/error.h"

/*
 * Passthrough: the vGPU is in this process, in a library of its own (link/direct.h) that is loaded
 * from the folder of this one. The session has its memory and sockets all the same: only messages
 * go another way.
 */
struct gn_in_process;

/* For struct gn_attach_request: ctx is a struct gn_in_process **. */
int gn_in_process_open(void *ctx, const char *library, int control_fd, struct gn_error *err);
/*
 * For struct gn_link's on_host, with the session as ctx: takes its vGPU over from a worker, on a
 * thread of its own.
 */
struct gn_session;
void gn_in_process_adopt(void *ctx, const char *library, int control_fd);

#endif
