/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_REPORT_H
#define GN_GUEST_REPORT_H

#include "base/error.h"

/*
 * Writes a line "gantry: ..." to the program's stderr, about a trouble that no error code tells; at
 * most a few lines in a program's life. GANTRY_LOG=none silences it. Never waits. Any thread.
 */
void gn_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The reason why this process gets no vGPU, once a process, where somebody expects Gantry. */
void gn_session_report(const struct gn_error *err);

#endif
