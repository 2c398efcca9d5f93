/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SOURCE_LOOK_H
#define GN_SOURCE_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Examines a program's text: whether the groups of its kernels may run in several launches one
 * after the other, and which position functions (get_group_id ...) its kernels call. The text is
 * scanned word by word, not compiled, so every doubt counts against slicing. Pure; any thread.
 *
 * Groups that wait for later groups would wait forever. Such a wait needs a loop, and memory that
 * each iteration reads again. A text with any loop and any atomic function, volatile object or
 * fence of global memory is therefore left whole, even if it is harmless. Also left whole: a text
 * that includes files (their text is not here), pastes words together, or names something outside
 * portable OpenCL C (inline assembly, compiler builtins, pipes, kernels that enqueue kernels).
 */
enum gn_source_asks {
    GN_ASKS_GROUP_ID = 1,
    GN_ASKS_NUM_GROUPS = 2,
    GN_ASKS_GLOBAL_SIZE = 4,
    GN_ASKS_GLOBAL_OFFSET = 8,
    GN_ASKS_LINEAR_ID = 16,
};

struct gn_source_facts {
    uint32_t asks;     /* enum gn_source_asks */
    const char *whole; /* why launches run whole; NULL: they may be sliced */
    bool newer;        /* the OpenCL C version may have program-scope variables */
    bool declares;     /* it seems to declare such variables; one hidden by a macro is not found */
    bool loops, waits, quotes;
};

/* Start from zeros; pass the program's text, in one part or more, then its build options. */
void gn_source_look(struct gn_source_facts *f, const char *text, size_t n);
void gn_source_look_options(struct gn_source_facts *f, const char *options);
/* Call it last: writes the verdict into `whole`. */
void gn_source_conclude(struct gn_source_facts *f);

#endif
