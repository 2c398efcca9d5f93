/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as people write and read them: K, M, G and T are powers of 1024. Pure. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "ctl/ctl.h"

static const char units[] = "KMGT";

int gn_ctl_parse_size(const char *text, uint64_t *ret, struct gn_error *err)
{
    static const char fix[] = "write a whole number, with K, M, G or T for powers of 1024";
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

char *gn_ctl_format_size(uint64_t bytes, char *ret)
{
    int unit = -1;
    double n = (double)bytes;
    while (n >= 1023.95 && unit < (int)sizeof units - 2) {
        n /= 1024;
        unit++;
    }
    if (unit < 0)
        snprintf(ret, 16, "%u", (unsigned)bytes);
    else
        snprintf(ret, 16, "%.1f%c", n, units[unit]);
    char *tail = strstr(ret, ".0");
    if (tail)
        memmove(tail, tail + 2, strlen(tail + 2) + 1);
    return ret;
}
