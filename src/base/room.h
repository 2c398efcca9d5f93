/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_ROOM_H
#define GN_BASE_ROOM_H

#include <stdint.h>

/* How many bytes this process may still allocate before the machine runs short: the lower of the
 * machine's available memory and the remainder of its cgroups' limits (version 2). An estimate for
 * this moment; 0 if it is unknown. Any thread. */
uint64_t gn_room(void);
/* The same for tests, with other places for /proc and for the mount of the cgroups. */
uint64_t gn_room_by(const char *proc, const char *groups);

#endif
