/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_TESTS_DIRECT_LATE_H
#define GN_TESTS_DIRECT_LATE_H

#include <stdbool.h>

/*
 * What a driver says, and when: on a thread of its own, and of the kinds named in $LATE only when
 * somebody writes that letter into the FIFO $LATE_FIFO. Each that was said, or that waits to be, is
 * a line in the file $LATE_REPORT: "asked KIND", "said KIND". c  a copy is over        d  a buffer
 * is no more n  a word about the context that was made last r  no word: the driver's thread stands
 * in a release of a copy's event until then: "stands r" Without $LATE_FIFO there is no thread, and
 * nothing is said of those kinds.
 */
void late_start(void);
/* Not while something is said. */
void late_end(void);
bool late_is(char kind);
/* Says it: on the driver's thread, when its kind may be said. */
void late_say(char kind, void (*say)(void *arg), void *arg);
/* On the driver's thread: waits until this kind may go on. Elsewhere nothing. */
void late_stand(char kind);

#endif
