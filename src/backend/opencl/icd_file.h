/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_ICD_FILE_H
#define GN_ICD_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* The OpenCL loaders' .icd files: each names a driver's library on its first line. Any thread. */

/* Whether it ends as such a file's name does. */
bool gn_icd_is_name(const char *name);
/* The first line without blanks at its end; false when the file has none. */
bool gn_icd_read(const char *path, char *ret, size_t n);

#endif
