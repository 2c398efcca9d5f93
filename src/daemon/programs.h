/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_PROGRAMS_H
#define GN_DAEMON_PROGRAMS_H

#include "daemon/net/connection.h"

/* Serves the frames and ends of connections (programs.c). gantryd's thread. */
extern const struct gn_conn_ops gn_programs;

#endif
