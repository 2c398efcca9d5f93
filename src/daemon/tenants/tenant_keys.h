/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_TENANT_KEYS_H
#define GN_DAEMON_TENANTS_TENANT_KEYS_H

#include "daemon/tenants/tenants.h"

/* The key of the tenant's token that has this name. 0 or -ENOENT. */
int gn_tenants_find_psk(struct gn_tenants *all, const unsigned char *identity,
                        struct gn_tls_psk *ret);
/* Does any tenant have a token? */
bool gn_tenants_have_tokens(const struct gn_tenants *all);

#endif
