/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVES_MUST_H
#define MOVES_MUST_H

#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

/* What these programs expect: the first thing that is otherwise is said on stdout, where the test
 * reads it, and ends the program. */

#define MUST(what)                                                                                 \
    do {                                                                                           \
        cl_int must_ = (what);                                                                     \
        if (must_) {                                                                               \
            printf("wrong: %s: %d (line %d)\n", #what, must_, __LINE__);                           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define HOLDS(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            printf("wrong: %s (line %d)\n", #what, __LINE__);                                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
