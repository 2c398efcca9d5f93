/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a struct gn_error. All of Gantry calls it, on any thread. It never allocates or logs. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

int gn_fail(struct gn_error *err, int code, const char *fix, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(err->what, sizeof err->what, fmt, ap);
        va_end(ap);
        snprintf(err->fix, sizeof err->fix, "%s", fix ? fix : "");
    }
    return -code;
}
