/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_ROOM_H
#define GN_BASE_ROOM_H

#include <stdint.h>

/*
 * How many bytes this process may still take without anybody being short of memory for it: what the
 * machine has available, and what its control groups (version 2) leave it. An estimate of this
 * moment; 0 when nobody says. Any thread.
 */
uint64_t gn_room(void);
/* The same by the files of a test: /proc, and where control groups are mounted. */
uint64_t gn_room_by(const char *proc, const char *groups);

#endif
