/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of scheduling policies, by index and by name. gantryd calls it for its configuration
 * and for `gantry policy`, `gantry sim` for its options; any thread may, because the table is
 * constant. It never holds state of a device.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sched/policy.h"

static const struct gn_sched_policy *const policies[] = {
    &gn_sched_fair,   &gn_sched_credit, &gn_sched_credit_hs,
    &gn_sched_strict, &gn_sched_rr,     &gn_sched_xenocredit,
};

const struct gn_sched_policy *gn_sched_policy_at(unsigned i)
{
    return i < GN_ARRAY_SIZE(policies) ? policies[i] : NULL;
}

const char *gn_sched_policy_names(char *text, size_t n)
{
    size_t at = 0;
    text[0] = 0;
    for (unsigned i = 0; i < GN_ARRAY_SIZE(policies) && at < n; i++)
        at += (size_t)snprintf(text + at, n - at, "%s%s", i ? ", " : "", policies[i]->name);
    return text;
}

const struct gn_sched_policy *gn_sched_policy_find(const char *name)
{
    for (unsigned i = 0; i < GN_ARRAY_SIZE(policies); i++)
        if (strcmp(policies[i]->name, name) == 0)
            return policies[i];
    return NULL;
}
