/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses sizes in options and configurations. gantryd and gantry call it, on any thread. It never
 * depends on the locale.
 */
#include "base/size.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/checked.h"

int gn_size_parse(const char *text, uint64_t *ret, struct gn_error *err)
{
    static const char fix[] = "write a whole number, with K, M, G or T for powers of 1024",
                      units[] = "KMGT";
    const char *p = text;
    uint64_t n = 0;
    bool fits = true;
    for (; isdigit((unsigned char)*p); p++)
        fits = fits && gn_mul_u64(n, 10, &n) && gn_add_u64(n, (uint64_t)(*p - '0'), &n);
    const char *unit = p > text && *p ? strchr(units, toupper((unsigned char)*p)) : NULL;
    if (unit) {
        fits = fits && gn_mul_u64(n, UINT64_C(1) << (10 * (unit - units + 1)), &n);
        p++;
    }
    if (p == text || *p)
        return gn_fail(err, EINVAL, fix, "\"%.100s\" is not a size", text);
    if (!fits)
        return gn_fail(err, EINVAL, fix, "the size %.100s is too large", text);
    *ret = n;
    return 0;
}
