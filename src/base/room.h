/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_ROOM_H
#define GN_BASE_ROOM_H

#include <stdint.h>

/*
 * Returns how many bytes this process may still allocate before memory becomes short: the lesser of
 * the machine's available memory and the room in its control groups (version 2). An estimate of
 * this moment; 0 if the kernel does not tell. Any thread.
 */
uint64_t gn_room(void);
/* The same with a test's files in place of /proc and of the mount point of control groups. */
uint64_t gn_room_by(const char *proc, const char *groups);

#endif
