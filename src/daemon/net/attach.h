/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_ATTACH_H
#define GN_DAEMON_NET_ATTACH_H

#include "daemon/net/connection.h"

/* Programs' wishes for vGPUs (attach.c). gantryd's thread. */

/* False: it is malformed. */
bool gn_attach_frame(struct gn_conn *c, const struct gn_frame *f);
/* An attach that waits ends with its connection. */
void gn_attach_forget(struct gn_conn *c);
void gn_attaches_timer(struct gn_source *timer, uint32_t events);

#endif
