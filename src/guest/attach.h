/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_ATTACH_H
#define GN_GUEST_ATTACH_H

#include "base/error.h"

#include <stdint.h>

struct gn_guest_api;
struct gn_session;

/*
 * Attaches the program to a vGPU of a platform (gantryd's number, gn_session_platforms): connects,
 * maps, starts the watcher. NULL with a sentence in err. Any thread of the program; waits until the
 * vGPU's driver is up. The session is never freed.
 */
struct gn_session *gn_session_open(const struct gn_guest_api *api, uint32_t platform,
                                   struct gn_error *err);

#endif
