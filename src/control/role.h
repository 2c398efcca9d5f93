/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CONTROL_ROLE_H
#define GN_CONTROL_ROLE_H

/* Each role may do everything that the roles before it may. */
enum gn_role {
    GN_ROLE_PROGRAM, /* attach, and queries about the connection's own tenant */
    GN_ROLE_VIEW,    /* all queries, no command */
    GN_ROLE_CONTROL, /* everything */
};

#endif
