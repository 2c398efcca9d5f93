/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the form of tenants' names, as gantryd does. Pure. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "client/client.h"

#define MAX_TENANT_BYTES 63

int gn_client_check_tenant(const char *name, struct gn_error *err)
{
    size_t n = strlen(name);
    for (const char *p = name; *p; p++)
        if (!isascii(*p) || !(isalnum(*p) || strchr("_.-", *p)))
            n = 0;
    if (n == 0 || n > MAX_TENANT_BYTES || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return gn_fail(err, EINVAL, "use up to 63 letters, digits, _ . and -",
                       "\"%.100s\" is not a tenant's name", name);
    return 0;
}
