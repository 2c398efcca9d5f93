/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_ROLE_H
#define GN_LINK_ROLE_H

/*
 * The roles of connections to gantryd. The listener that accepts a connection sets its role, and
 * nothing raises it later. Each role may do everything that the roles before it may.
 */
enum gn_role {
    GN_ROLE_PROGRAM, /* attach, and queries about the connection's own tenant */
    GN_ROLE_VIEW,    /* all queries, no command */
    GN_ROLE_CONTROL, /* everything */
    GN_ROLE_N
};

#endif
