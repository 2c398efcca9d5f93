/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_LOG_H
#define GN_BASE_LOG_H

#include <stddef.h>

/*
 * Log lines on stderr of Gantry's own programs (gantryd, workers, gantry). Libraries log at DEBUG
 * only. In a user's program nothing is logged unless GANTRY_LOG asks for it. A line is one
 * write(2), so that lines of several processes on one descriptor do not mix. Each line is cleaned
 * (base/text.h) before it is written.
 */
enum gn_log_level { GN_LOG_NONE, GN_LOG_ERROR, GN_LOG_WARN, GN_LOG_INFO, GN_LOG_DEBUG };

/*
 * Reads $GANTRY_LOG (none|error|warn|info|debug); `fallback` is the level without it. The first
 * argument prefixes each line; it must be static.
 */
void gn_log_init(const char *process_name, enum gn_log_level fallback);

/* Sends lines to this descriptor from now on (default 2). The caller keeps it open. */
void gn_log_to(int fd);

/*
 * Passes each line, with its newline, to this function from now on, on the thread that logs. NULL:
 * lines go to the descriptor again.
 */
void gn_log_through(void (*write_line)(const char *line, size_t n));

int gn_log_enabled(enum gn_log_level level);

void gn_log(enum gn_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Writes a line without a prefix, at any level: n bytes, cleaned, and a newline, for which line
 * must have room.
 */
void gn_log_line(char *line, size_t n);

#define gn_debug(...) (gn_log_enabled(GN_LOG_DEBUG) ? gn_log(GN_LOG_DEBUG, __VA_ARGS__) : (void)0)

#endif
