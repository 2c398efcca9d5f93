/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses and prints parts of a device, for caps and floors. gantryd and gantry call it, on any
 * thread. It never depends on the locale.
 */
#include "base/part.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FIX "write a number from 0 to 1, a percentage such as 25%, or none"

int gn_part_parse(const char *text, uint32_t *ret, struct gn_error *err)
{
    const size_t n = strlen(text);
    const bool percent = n && text[n - 1] == '%';
    const uint64_t one = percent ? GN_PART_WHOLE / 100 : GN_PART_WHOLE;
    const char *p = text + (text[0] == '-');
    uint64_t value = 0, unit = one;
    bool digits = false, some = false;
    if (strcmp(text, "none") == 0) {
        *ret = 0;
        return 0;
    }
    for (; isdigit((unsigned char)*p); p++, digits = true) {
        some |= *p != '0';
        /* A value above the whole is rejected later, so further digits do not matter. */
        if (value <= GN_PART_WHOLE)
            value = value * 10 + (uint64_t)(*p - '0') * one;
    }
    if (*p == '.') {
        for (p++; isdigit((unsigned char)*p); p++, digits = true) {
            some |= *p != '0';
            unit /= 10;
            value += (uint64_t)(*p - '0') * unit;
            /* The digits that are cut off may be all that exceeds the whole. */
            if (unit == 0 && value == GN_PART_WHOLE && *p != '0')
                value++;
        }
    }
    if (!digits || p != text + n - percent)
        return gn_fail(err, EINVAL, FIX, "\"%.100s\" is not a part of a device", text);
    if (text[0] == '-')
        return gn_fail(err, EINVAL, FIX, "a part of a device cannot be negative: \"%.100s\"", text);
    if (value > GN_PART_WHOLE)
        return gn_fail(err, EINVAL, FIX, "\"%.100s\" is more than the whole device", text);
    if (some && value == 0)
        return gn_fail(err, EINVAL, FIX, "\"%.100s\" is less than a millionth of a device", text);
    *ret = (uint32_t)value;
    return 0;
}

char *gn_part_format(uint32_t part, char *ret)
{
    snprintf(ret, 16, "%u.%06u", part / GN_PART_WHOLE, part % GN_PART_WHOLE);
    size_t n = strlen(ret);
    while (ret[n - 1] == '0')
        ret[--n] = 0;
    if (ret[n - 1] == '.')
        ret[n - 1] = 0;
    return ret;
}
