/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_REPORT_H
#define GN_GUEST_REPORT_H

#include "base/error.h"

/*
 * The reason why this process gets no vGPU, as one line on its stderr, once a process; GANTRY_LOG=none silences it. Never waits.
 * Any thread.
 */
void gn_session_report(const struct gn_error *err);

#endif
