/* SPDX-License-Identifier: Apache-2.0 */
/* Between the recorder and the program that starts it; cases use difftest.h alone. */
#ifndef GN_DIFFTEST_RECORD_H
#define GN_DIFFTEST_RECORD_H

#include "difftest.h"

#define RECORD_LINE_BYTES (256 * 1024)

/* Transcript lines go to fd; the line being built is kept in shared_line (RECORD_LINE_BYTES, kept
 * by the caller). */
void record_start(int fd, char *shared_line);

#endif
