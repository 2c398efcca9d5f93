/* SPDX-License-Identifier: Apache-2.0 */
/* The list of the APIs whose drivers this build opens. Called by workers, and by programs in
 * passthrough; any thread. */
#include "backend/backend.h"

#include <stddef.h>
#include <string.h>

#include "backend/opencl/cl_backend.h"

const struct gn_backend_ops *const gn_backends[] = {&gn_cl_backend, NULL};

const struct gn_backend_ops *gn_backend_named(const char *api)
{
    for (int i = 0; gn_backends[i]; i++)
        if (strcmp(gn_backends[i]->info->name, api) == 0)
            return gn_backends[i];
    return NULL;
}
