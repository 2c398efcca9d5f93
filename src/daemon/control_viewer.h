/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_CONTROL_VIEWER_H
#define GN_DAEMON_CONTROL_VIEWER_H

#include "control/source.h"
#include "daemon/daemon.h"

/* The peer of a control request. It is the `ctx` of the queries and commands of that request. */
struct gn_viewer {
    struct gn_daemon *d;
    struct gn_conn *c;
    struct gn_tenant
        *wait_for; /* the reply waits until this tenant's workers have followed the change */
};

/* Viewers and operators see every tenant, other peers only their own. */
static inline bool gn_viewer_sees(const struct gn_viewer *w, const struct gn_tenant *t)
{
    return w->c->role >= GN_ROLE_VIEW || w->c->tenant == t;
}

/* control_queries.c: finds a vGPU that the viewer may see, by its id or by a unique prefix of it. 0
 * or -errno: -ENOENT: there is none. */
int gn_viewer_find_vgpu(const struct gn_viewer *w, const char *text, struct gn_vgpu_record **ret,
                        struct gn_error *err);

extern const struct gn_control_queries gn_daemon_queries;

#endif
