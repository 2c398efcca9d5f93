/* SPDX-License-Identifier: Apache-2.0 */
/* Fills in an error (error.h). Called everywhere, on any thread. Never logs: the caller decides
 * about that. */
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
