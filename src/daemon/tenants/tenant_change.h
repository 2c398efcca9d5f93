/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_TENANT_CHANGE_H
#define GN_DAEMON_TENANTS_TENANT_CHANGE_H

#include "control/control.h"
#include "daemon/daemon.h"

/* Applies a change of a tenant. 0, or -errno and nothing has changed. *ret_wait_for: the tenant
 * with workers that must still follow the change; untouched if there is none. */
int gn_tenant_change(struct gn_daemon *d, const struct gn_control_change *c,
                     struct gn_tenant **ret_wait_for, struct gn_error *err);

/* Tells the scheduler what the rules say of its share. After its first vGPU, and any change. */
void gn_tenant_reckon(struct gn_daemon *d, struct gn_tenant *t);

#endif
