/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_LOG_H
#define GN_BASE_LOG_H

#include <stddef.h>

/*
 * Log lines of Gantry's own programs (gantryd, workers, gantry) on stderr. Libraries log only at
 * DEBUG, and in a user's program nothing is logged unless GANTRY_LOG asks for it. Each line is one
 * write(2), so lines of several processes on one descriptor do not mix. Texts in a line are cleaned
 * (base/text.h). Any thread.
 */
enum gn_log_level { GN_LOG_NONE, GN_LOG_ERROR, GN_LOG_WARN, GN_LOG_INFO, GN_LOG_DEBUG };

/* Reads $GANTRY_LOG (none|error|warn|info|debug); without it `fallback` applies. The first argument
 * is the prefix of each line; it must stay valid. */
void gn_log_init(const char *who, enum gn_log_level fallback);

/* Sends lines to this descriptor from now on (default 2), which stays the caller's. */
void gn_log_to(int fd);

/* Passes lines, each with its newline, to this function from now on. NULL: writes to the descriptor
 * again, on the caller's thread. */
void gn_log_through(void (*write_line)(const char *line, size_t n));

int gn_log_enabled(enum gn_log_level level);

void gn_log(enum gn_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Writes a line of n bytes as it is, at any level, after cleaning it. The buffer must have room for
 * a newline after them. */
void gn_log_line(char *line, size_t n);

#define gn_debug(...) (gn_log_enabled(GN_LOG_DEBUG) ? gn_log(GN_LOG_DEBUG, __VA_ARGS__) : (void)0)

#endif
