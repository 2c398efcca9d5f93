/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CONTROL_JSON_REGION_H
#define GN_CONTROL_JSON_REGION_H

#include <stddef.h>

struct json_t;

/*
 * Memory for JSON in a process that lives for long: everything that jansson allocates comes from a
 * region of its own, which goes back to the system when nothing of it is in use. A listing of
 * hundreds of vGPUs is many thousands of small pieces; on the heap the C library keeps some of
 * every size for later, wherever they lie, and with them the pages around them.
 *
 * For the whole process, before its first JSON; from then on one thread only uses jansson.
 */
void gn_json_region_use(void);
/* What the region takes now, in bytes. */
size_t gn_json_region_bytes(void);

/* Names come from programs, drivers and command lines; one that is no UTF-8 has its odd bytes
 * replaced. NULL: no memory. */
struct json_t *gn_json_string(const char *s);
/* Compact text in ASCII, which no terminal obeys, whatever the names in it; the caller's to free();
 * takes root. digits: of numbers that are no integers; 0: all. NULL: root was NULL, or no memory.
 */
char *gn_json_text(struct json_t *root, unsigned digits);

#endif
