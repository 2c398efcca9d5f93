/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the APIs that `gantry` supports. Pure data and a lookup. */
#include <stddef.h>
#include <string.h>

#include "ctl/api.h"
#include "ctl/opencl/cl_ctl.h"

const struct gn_ctl_api *const gn_ctl_apis[] = {&gn_cl_ctl, NULL};

const struct gn_ctl_api *gn_ctl_api_named(const char *name)
{
    for (int i = 0; gn_ctl_apis[i]; i++)
        if (strcmp(gn_ctl_apis[i]->info->name, name) == 0)
            return gn_ctl_apis[i];
    return NULL;
}
