/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_TEXT_H
#define GN_BASE_TEXT_H

#include <stddef.h>

/*
 * Makes the n bytes at s safe for a terminal and a log, in place and without a change of length. A
 * '?' replaces each byte of a control character (C0, DEL, C1), of a character that changes the
 * direction or the lines of the text around it, of a character that terminals do not draw, and of
 * all that is not UTF-8. Every text that a program, a worker, a file or another machine has chosen
 * is cleaned here before it is printed.
 */
void gn_text_clean(char *s, size_t n);

#endif
