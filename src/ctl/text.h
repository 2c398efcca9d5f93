/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_TEXT_H
#define GN_CTL_TEXT_H

#include <stddef.h>

/*
 * Text for a terminal, in the locale's encoding (the caller has called setlocale). Names come from
 * programs and drivers: control characters must not reach the terminal.
 */

/*
 * Returns a malloc'd copy that is safe to print: cleaned (base/text.h), with '?' for each character
 * that the locale cannot print. NULL: no memory.
 */
char *gn_text_printable(const char *name);
/* The number of terminal columns that the text occupies. */
int gn_text_width(const char *text);
/*
 * The number of bytes that fit into `columns` columns; *ret_columns is the number of columns they
 * occupy.
 */
size_t gn_text_cut(const char *text, int columns, int *ret_columns);

#endif
