/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and matches device selectors, as operators write them on the command line and in the
 * configuration file (selector.h). Pure; any thread. */
#include "daemon/tenants/selector.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "link/worker_wire.h"

static const struct {
    const char *name;
    uint32_t kind;
} kinds[] = {
    {"gpu", GN_DEVICE_GPU}, {"cpu", GN_DEVICE_CPU}, {"accelerator", GN_DEVICE_ACCELERATOR}};

uint32_t gn_kind_parse(const char *text)
{
    for (size_t i = 0; i < GN_ARRAY_SIZE(kinds); i++)
        if (strcmp(text, kinds[i].name) == 0)
            return kinds[i].kind;
    return 0;
}

const char *gn_kind_name(uint32_t kind)
{
    for (size_t i = 0; i < GN_ARRAY_SIZE(kinds); i++)
        if (kind & kinds[i].kind)
            return kinds[i].name;
    return "custom";
}

/* Removes ":digits" from the end of name and returns the number; -1: there is none, -2: it is out
 * of range. */
static int cut_index(char *name)
{
    char *colon = strrchr(name, ':');
    if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return -1;
    if (strlen(colon + 1) > 4)
        return -2;
    *colon = 0;
    return atoi(colon + 1);
}

int gn_selector_parse(const char *text, struct gn_selector *ret, struct gn_error *err)
{
    static const char fix[] = "write NAME-PART[:INDEX][,present-as=gpu|cpu|accelerator]";
    struct gn_selector s = {.index = -1};
    const char *comma = strchr(text, ',');
    size_t n = comma ? (size_t)(comma - text) : strlen(text);
    if (n >= sizeof s.name)
        return gn_fail(err, EINVAL, fix, "the device name in \"%.64s...\" is too long", text);
    memcpy(s.name, text, n);
    s.index = cut_index(s.name);
    if (!s.name[0])
        return gn_fail(err, EINVAL, fix, "the device selector \"%s\" names no device", text);
    if (s.index == -2)
        return gn_fail(err, EINVAL, fix, "the device selector \"%s\" has an index out of range",
                       text);
    if (comma) {
        if (strncmp(comma + 1, "present-as=", 11) != 0)
            return gn_fail(err, EINVAL, fix,
                           "the device selector \"%s\" has an unknown setting \"%s\"", text,
                           comma + 1);
        s.present_as = gn_kind_parse(comma + 12);
        if (!s.present_as)
            return gn_fail(err, EINVAL, fix, "a device cannot be presented as \"%s\"", comma + 12);
    }
    *ret = s;
    return 0;
}

bool gn_selector_matches_name(const struct gn_selector *s, const char *device_name)
{
    return strcasestr(device_name, s->name) != NULL;
}

bool gn_selector_takes(const struct gn_selector *s, int nth)
{
    return s->index < 0 || s->index == nth;
}
