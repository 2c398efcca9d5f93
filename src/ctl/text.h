/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_TEXT_H
#define GN_CTL_TEXT_H

#include <stddef.h>

/*
 * Text on a terminal, in the locale's encoding (setlocale is the caller's). Names come from
 * programs and drivers: nothing that they hold reaches a terminal as a command.
 */

/* A copy that is safe to print, malloc'd: cleaned (base/text.h), and '?' for what this locale
 * cannot print. NULL: no memory. */
char *gn_text_printable(const char *name);
/* How many columns it takes. */
int gn_text_width(const char *text);
/* How many bytes of it fit into so many columns; *ret_columns: those that they take. */
size_t gn_text_cut(const char *text, int columns, int *ret_columns);

#endif
