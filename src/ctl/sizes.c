/* SPDX-License-Identifier: Apache-2.0 */
/* Formats sizes for people: K, M, G and T are powers of 1024. Pure. */
#include <stdio.h>
#include <string.h>

#include "ctl/ctl.h"

static const char units[] = "KMGT";

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
