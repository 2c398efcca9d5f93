/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_TABLE_H
#define GN_CTL_TABLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A table of text with aligned columns, for people. The last column is not padded. Widths are those
 * on a terminal in the locale's encoding (setlocale is the caller's); what cannot be printed
 * becomes '?'.
 */
#define GN_TABLE_MAX_COLUMNS 16

struct gn_table_column {
    const char *title;
    bool right; /* numbers */
};

struct gn_table {
    const struct gn_table_column *columns;
    int n_columns;
    size_t n_cells, capacity;
    char **cells; /* row after row */
    bool failed;  /* memory is out: printing says so */
};

void gn_table_init(struct gn_table *t, const struct gn_table_column *columns, int n_columns);
void gn_table_fini(struct gn_table *t);
/* The next cell, copied; NULL is shown as "-". Of blanks in a row one is left, since columns stand
 * two apart; a picture keeps all. */
void gn_table_add(struct gn_table *t, const char *text);
void gn_table_add_picture(struct gn_table *t, const char *text);
void gn_table_add_number(struct gn_table *t, unsigned long long n);
void gn_table_add_size(struct gn_table *t, unsigned long long bytes);
/* To stdout, titles first. 0 or -ENOMEM. Full rows only. */
int gn_table_print(const struct gn_table *t);

#endif
