/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_PROGRAMS_H
#define GN_DAEMON_PROGRAMS_H

#include "daemon/net/connection.h"

/* programs.c: what gantryd does at the frames and ends of connections. gantryd's thread. */
extern const struct gn_conn_ops gn_programs;

#endif
