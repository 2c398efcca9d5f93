/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_ICD_H
#define GN_BASE_ICD_H

#include <stdbool.h>
#include <stddef.h>

/* The OpenCL loaders' .icd files: each names a driver's library on its first line. Any thread. */
bool gn_icd_is_name(const char *name);
/* Is this library, as an .icd file names it, Gantry's own? */
bool gn_icd_is_gantrys(const char *library);
/* That line without blanks at its end; false when the file has none. */
bool gn_icd_read(const char *path, char *ret, size_t n);

#endif
