/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_ICD_FILE_H
#define GN_ICD_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* The .icd files of OpenCL loaders: the first line of each names a driver's library. Any thread. */

/* Whether the name ends as the names of such files do. */
bool gn_icd_is_name(const char *name);
/* Reads the first line without blanks at its end; false if it is empty. */
bool gn_icd_read(const char *path, char *ret, size_t n);

#endif
