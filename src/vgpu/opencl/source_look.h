/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SOURCE_LOOK_H
#define GN_SOURCE_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What a program's text shows of its kernels: may their groups run in several launches one after
 * the other, and which of the functions that tell a group where it stands do they ask? It is read
 * word by word, not compiled, so every doubt counts against cutting. Pure; any thread.
 *
 * Groups that wait for groups which come later would wait for ever. That needs a loop, and memory
 * that is read anew in each round: a text with any loop in it and any atomic function, volatile
 * object or fence of global memory is left whole, however harmless it may be. Left whole as well:
 * what includes files (their text isn't here), pastes words together, or names what no portable
 * kernel has (inline assembly, compiler builtins, pipes, kernels that enqueue kernels).
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
    const char *whole; /* why it runs whole; NULL: it may be cut */
    bool newer;    /* of a version in which a program may have variables of its own that outlive a
                      launch */
    bool declares; /* it seems to declare such variables; one that a macro hides is not seen */
    bool loops, waits, quotes;
};

/* Zeros at the start; the program's text, in one part or more, then its build options. */
void gn_source_look(struct gn_source_facts *f, const char *text, size_t n);
void gn_source_look_options(struct gn_source_facts *f, const char *options);
/* After both: the verdict stands in `whole`. */
void gn_source_judge(struct gn_source_facts *f);

#endif
