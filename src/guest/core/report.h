/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_REPORT_H
#define GN_GUEST_REPORT_H

#include "base/error.h"

/*
 * Writes a line "gantry: ..." to the program's stderr, for a problem without an error code; a few
 * lines per process at most. GANTRY_LOG=none silences it. Never waits. Any thread.
 */
void gn_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reports why this process gets no vGPU, once, and only where the user expects Gantry. */
void gn_session_report(const struct gn_error *err);

#endif
