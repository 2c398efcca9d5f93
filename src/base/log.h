/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_LOG_H
#define GN_BASE_LOG_H

#include <stddef.h>

/*
 * Lines on stderr of the programs that are Gantry's own (gantryd, workers, gantry). Libraries log
 * at DEBUG only. In a user's program nothing is logged unless GANTRY_LOG asks for it. A line is
 * written with one write(2), so lines of several processes on one descriptor do not mix. Whatever a
 * line quotes is cleaned (base/text.h).
 */
enum gn_log_level { GN_LOG_NONE, GN_LOG_ERROR, GN_LOG_WARN, GN_LOG_INFO, GN_LOG_DEBUG };

/* Reads $GANTRY_LOG (none|error|warn|info|debug); without it `fallback` holds. `who` prefixes each
 * line; static. */
void gn_log_init(const char *who, enum gn_log_level fallback);

/* Lines go to this descriptor from now on (default 2). Not owned. */
void gn_log_to(int fd);

/* Lines go to this function from now on, each with its newline; NULL: to the descriptor again, on
 * the caller's thread. */
void gn_log_through(void (*write_line)(const char *line, size_t n));

int gn_log_enabled(enum gn_log_level level);

void gn_log(enum gn_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A line as it stands, whatever the level: n bytes, cleaned, and the newline that line has room for
 * behind them. */
void gn_log_line(char *line, size_t n);

#define gn_debug(...) (gn_log_enabled(GN_LOG_DEBUG) ? gn_log(GN_LOG_DEBUG, __VA_ARGS__) : (void)0)

#endif
