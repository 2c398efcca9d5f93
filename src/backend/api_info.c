/* SPDX-License-Identifier: Apache-2.0 */
/* The list of APIs, for processes that open no driver. Any thread. */
#include "backend/api_info.h"

#include <stddef.h>
#include <string.h>

#include "backend/opencl/cl_info.h"

const struct gn_api_info *const gn_api_infos[] = {&gn_cl_info, NULL};

bool gn_api_is_front_end(const char *library)
{
    const char *slash = strrchr(library, '/');
    for (int i = 0; gn_api_infos[i]; i++)
        if (strcmp(slash ? slash + 1 : library, gn_api_infos[i]->front_end) == 0)
            return true;
    return false;
}
