/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of placement policies, by index and by name. gantryd calls it for its configuration,
 * `gantry sim` for its options; any thread may, because the table is constant. It never holds state
 * of a device.
 */
#include <string.h>

#include "place/place.h"

static const struct gn_place_policy *const policies[] = {
    &gn_place_turn_policy,
    &gn_place_first_fit,
    &gn_place_size,
    &gn_place_utilization_policy,
};

const struct gn_place_policy *gn_place_policy_at(unsigned i)
{
    return i < GN_ARRAY_SIZE(policies) ? policies[i] : NULL;
}

const struct gn_place_policy *gn_place_policy_find(const char *name)
{
    for (unsigned i = 0; i < GN_ARRAY_SIZE(policies); i++)
        if (strcmp(policies[i]->name, name) == 0)
            return policies[i];
    return NULL;
}
