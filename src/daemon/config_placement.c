/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of `--oversubscribe` (config.h): each key and option, and whether they agree with the
 * others. Called by config.c and options.c at gantryd's start; control_commands.c finds policies by
 * name here. Pure; it never looks at a device.
 */
#include "daemon/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/part.h"
#include "base/size.h"
#include "place/place.h"

#define MOST_SHARE  (GN_PART_WHOLE / 10 * 9)
#define LONGEST_NS  UINT64_C(3600000000000)
#define SHORTEST_NS UINT64_C(1000000)

_Static_assert(GN_PART_WHOLE == GN_PLACE_WHOLE, "a share has one unit");

int gn_config_set_oversubscribe(struct gn_config *config, const char *value, struct gn_error *err)
{
    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return gn_fail(err, EINVAL, "write yes or no", "oversubscribe cannot be \"%.100s\"", value);
    config->placement.on = value[0] == 'y';
    return 0;
}

int gn_place_policy_parse(const char *name, const struct gn_place_policy **ret,
                          struct gn_error *err)
{
    char fix[160] = "the policies are ";
    const struct gn_place_policy *p = gn_place_policy_find(name);
    if (p) {
        *ret = p;
        return 0;
    }
    for (unsigned i = 0; (p = gn_place_policy_at(i)); i++) {
        const size_t n = strlen(fix);
        snprintf(fix + n, sizeof fix - n, "%s%s", i ? ", " : "", p->name);
    }
    return gn_fail(err, EINVAL, fix, "there is no placement policy \"%.100s\"", name);
}

int gn_config_set_place(struct gn_config *config, const char *value, struct gn_error *err)
{
    return gn_place_policy_parse(value, &config->placement.policy, err);
}

int gn_config_set_swap_memory(struct gn_config *config, const char *value, struct gn_error *err)
{
    uint64_t bytes;
    int rc = gn_size_parse(value, &bytes, err);
    if (rc)
        return rc;
    if (!bytes)
        return gn_fail(err, EINVAL, "give a size, or leave oversubscribe out",
                       "the host memory for evicted contents cannot be \"%.100s\"", value);
    config->placement.swap_bytes = bytes;
    return 0;
}

int gn_config_set_swap_share(struct gn_config *config, const char *value, struct gn_error *err)
{
    struct gn_error inner;
    uint32_t share;
    if (gn_part_parse(value, &share, &inner) || share > MOST_SHARE)
        return gn_fail(err, EINVAL,
                       "write a percentage up to 90%, such as 10%, or 0 to swap at each turn",
                       "the share of copies cannot be \"%.100s\"", value);
    config->placement.share_set = true;
    config->placement.share = share;
    return 0;
}

/* A number of seconds, or one with the unit ms, s or min. */
static int parse_time(const char *what, const char *value, uint64_t *ret_ns, struct gn_error *err)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"", 1e9}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}};
    char *end = NULL;
    const double n = value[0] >= '0' && value[0] <= '9' ? strtod(value, &end) : 0;
    for (size_t i = 0; end && i < GN_ARRAY_SIZE(units); i++) {
        const double ns = n * units[i].ns;
        if (strcmp(end, units[i].name) != 0 || !(ns >= SHORTEST_NS && ns <= LONGEST_NS))
            continue;
        *ret_ns = (uint64_t)ns;
        return 0;
    }
    return gn_fail(err, EINVAL, "write a time from 1ms to 60min, such as 30s",
                   "%s cannot be \"%.100s\"", what, value);
}

int gn_config_set_residency_max(struct gn_config *config, const char *value, struct gn_error *err)
{
    return parse_time("the longest residency period", value, &config->placement.residency_max_ns,
                      err);
}

int gn_config_set_idle_after(struct gn_config *config, const char *value, struct gn_error *err)
{
    return parse_time("the time until a vGPU counts as idle", value, &config->placement.idle_ns,
                      err);
}

int gn_slot_parse(const char *value, uint64_t *ret, struct gn_error *err)
{
    uint64_t bytes;
    int rc = gn_size_parse(value, &bytes, err);
    if (rc)
        return rc;
    if (!bytes || bytes % (1u << 20) != 0)
        return gn_fail(err, EINVAL, "give whole MiB, at least 1M", "a slot cannot have \"%.100s\"",
                       value);
    *ret = bytes;
    return 0;
}

void gn_config_override_placement(struct gn_config *config, const struct gn_config *given)
{
    struct gn_placement_options *to = &config->placement;
    const struct gn_placement_options *from = &given->placement;
    to->on |= from->on;
    if (from->policy)
        to->policy = from->policy;
    if (from->swap_bytes)
        to->swap_bytes = from->swap_bytes;
    if (from->share_set) {
        to->share_set = true;
        to->share = from->share;
    }
    if (from->residency_max_ns)
        to->residency_max_ns = from->residency_max_ns;
    if (from->idle_ns)
        to->idle_ns = from->idle_ns;
}

int gn_config_check_placement(const struct gn_config *config, struct gn_error *err)
{
    const struct gn_placement_options *o = &config->placement;
    const struct {
        const char *name;
        bool set;
    } options[] = {{"place", o->policy != NULL},
                   {"swap-memory", o->swap_bytes != 0},
                   {"swap-share", o->share_set},
                   {"residency-max", o->residency_max_ns != 0},
                   {"idle-after", o->idle_ns != 0}};
    for (size_t i = 0; !o->on && i < GN_ARRAY_SIZE(options); i++)
        if (options[i].set)
            return gn_fail(err, EINVAL, "give --oversubscribe, too, or leave it out",
                           "%s needs oversubscribe", options[i].name);
    if (o->on && config->policy_set && !config->policy)
        return gn_fail(err, EINVAL, "choose another policy, or leave oversubscribe out",
                       "oversubscribe needs vGPUs that take turns, and the policy " GN_POLICY_NONE
                       " has no turns");
    return 0;
}
