/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CONTROL_JSON_REGION_H
#define GN_CONTROL_JSON_REGION_H

#include <stddef.h>

struct json_t;

/*
 * Memory for JSON in a long-lived process. All of jansson's allocations come from a separate
 * region, which returns to the system when none of it is in use. A listing of hundreds of vGPUs
 * makes many thousands of small allocations; on the heap, the C library would retain some of every
 * size, and with them the pages around them.
 *
 * It applies to the whole process. Call it before the first JSON; from then on only one thread may
 * use jansson.
 */
void gn_json_region_use(void);
/* Returns the region's current size in bytes. */
size_t gn_json_region_bytes(void);

/*
 * Makes a JSON string of a name from a program, a driver or a command line. Replaces the non-ASCII
 * bytes of a name that is not UTF-8. NULL: out of memory.
 */
struct json_t *gn_json_string(const char *s);
/*
 * Returns compact ASCII text without characters that a terminal interprets; free() it. Releases
 * root. digits: precision of real numbers; 0: full. NULL: root was NULL, or out of memory.
 */
char *gn_json_text(struct json_t *root, unsigned digits);

#endif
