/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_ICD_H
#define GN_BASE_ICD_H

#include <stdbool.h>
#include <stddef.h>

/* The .icd files of OpenCL loaders: the first line of each names a driver's library. Any thread. */
bool gn_icd_is_name(const char *name);
/* Whether this library, as an .icd file names it, is Gantry's own. */
bool gn_icd_is_gantrys(const char *library);
/* Reads the first line without blanks at its end; false if it is empty. */
bool gn_icd_read(const char *path, char *ret, size_t n);

#endif
