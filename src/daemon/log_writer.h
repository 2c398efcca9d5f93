/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_LOG_WRITER_H
#define GN_DAEMON_LOG_WRITER_H

#include <stdint.h>

#include "base/error.h"

/* Writes gantryd's log to stderr on a thread of its own, so that an unread pipe, a stopped terminal
 * or a slow disk delays no other thread. Lines wait in GN_LOG_WRITER_BYTES of memory. A line
 * without room there is dropped and counted; the count is logged as soon as stderr accepts it. */
#define GN_LOG_WRITER_BYTES (256u << 10)

/* From now on gn_log() never blocks on stderr. 0 or -errno. */
int gn_log_writer_start(struct gn_error *err);
/* Waits at most timeout_ms until all lines are written; the rest is lost. After that gn_log()
 * writes to stderr itself again. */
void gn_log_writer_stop(int timeout_ms);
/* The number of lines dropped since the start. Any thread. */
uint64_t gn_log_writer_dropped(void);

#endif
