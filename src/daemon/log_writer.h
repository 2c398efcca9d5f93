/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_LOG_WRITER_H
#define GN_DAEMON_LOG_WRITER_H

#include <stdint.h>

#include "base/error.h"

/*
 * Writes gantryd's log to stderr on a thread of its own, so that a pipe that nobody reads, a
 * stopped terminal or a slow disk holds up nobody else. Lines wait in memory of
 * GN_LOG_WRITER_BYTES; a line that finds no room there is dropped and counted, and a line says how
 * many were, as soon as stderr takes it.
 */
#define GN_LOG_WRITER_BYTES (256u << 10)

/* From now on gn_log() never waits for stderr. 0 or -errno. */
int gn_log_writer_start(struct gn_error *err);
/* Waits until the lines that are there have been written, at most timeout_ms; the others are lost.
 * gn_log() writes by itself again. */
void gn_log_writer_stop(int timeout_ms);
/* Lines dropped since the start. Any thread. */
uint64_t gn_log_writer_dropped(void);

#endif
