/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_TABLE_H
#define GN_CTL_TABLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A text table with aligned columns, for people. The last column is not padded. Widths are terminal
 * columns in the locale's encoding (the caller has called setlocale); characters that cannot be
 * printed become '?'.
 */
#define GN_TABLE_MAX_COLUMNS 40

struct gn_table_column {
    const char *title;
    bool right; /* right-aligned, for numbers */
};

struct gn_table {
    const struct gn_table_column *columns;
    int n_columns;
    size_t n_cells, capacity;
    char **cells; /* row by row */
    bool failed;  /* out of memory: gn_table_print() returns -ENOMEM */
};

void gn_table_init(struct gn_table *t, const struct gn_table_column *columns, int n_columns);
void gn_table_fini(struct gn_table *t);
/*
 * Adds the next cell, a copy of the text; NULL is shown as "-". gn_table_add() reduces runs of
 * blanks to one, because two blanks separate columns; gn_table_add_picture() keeps them.
 */
void gn_table_add(struct gn_table *t, const char *text);
void gn_table_add_picture(struct gn_table *t, const char *text);
void gn_table_add_number(struct gn_table *t, unsigned long long n);
void gn_table_add_size(struct gn_table *t, unsigned long long bytes);
/* Prints to stdout, titles first. All rows must be complete. 0 or -ENOMEM. */
int gn_table_print(const struct gn_table *t);

#endif
