/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints tables on stdout. Cells may come from programs and drivers: control characters must not
 * reach the terminal. Main thread.
 */
#include "ctl/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/text.h"

#define GAP 2

void gn_table_init(struct gn_table *t, const struct gn_table_column *columns, int n_columns)
{
    memset(t, 0, sizeof *t);
    t->columns = columns;
    t->n_columns = n_columns;
}

void gn_table_fini(struct gn_table *t)
{
    for (size_t i = 0; i < t->n_cells; i++)
        free(t->cells[i]);
    free(t->cells);
    memset(t, 0, sizeof *t);
}

/*
 * Columns are separated by at least two blanks, so a cell has no two blanks in a row, and none at
 * either end.
 */
static void squeeze_blanks(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        if (*from != ' ' || (to > text && to[-1] != ' '))
            *to++ = *from;
    while (to > text && to[-1] == ' ')
        to--;
    *to = 0;
}

void gn_table_add_picture(struct gn_table *t, const char *text)
{
    if (t->n_cells == t->capacity) {
        size_t more = t->capacity ? t->capacity * 2 : 64;
        char **grown = realloc(t->cells, more * sizeof *grown);
        if (!grown) {
            t->failed = true;
            return;
        }
        t->cells = grown;
        t->capacity = more;
    }
    t->cells[t->n_cells] = gn_text_printable(text && *text ? text : "-");
    if (!t->cells[t->n_cells]) {
        t->failed = true;
        return;
    }
    t->n_cells++;
}

void gn_table_add(struct gn_table *t, const char *text)
{
    const size_t at = t->n_cells;
    gn_table_add_picture(t, text);
    if (t->n_cells == at)
        return;
    squeeze_blanks(t->cells[at]);
    /* the text held only blanks */
    if (!*t->cells[at])
        strcpy(t->cells[at], "-");
}

void gn_table_add_number(struct gn_table *t, unsigned long long n)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", n);
    gn_table_add(t, text);
}

void gn_table_add_size(struct gn_table *t, unsigned long long bytes)
{
    char text[16];
    gn_table_add(t, gn_ctl_format_size(bytes, text));
}

static void print_cell(const struct gn_table *t, int column, const char *text, int wide)
{
    int pad = wide - gn_text_width(text);
    bool last = column == t->n_columns - 1, right = t->columns[column].right;
    printf("%*s%s", right ? pad : 0, "", text);
    if (last)
        putchar('\n');
    else
        printf("%*s", GAP + (right ? 0 : pad), "");
}

int gn_table_print(const struct gn_table *t)
{
    int widths[GN_TABLE_MAX_COLUMNS];
    size_t n_columns = (size_t)t->n_columns;
    if (t->failed)
        return -ENOMEM;
    for (size_t c = 0; c < n_columns; c++) {
        widths[c] = gn_text_width(t->columns[c].title);
        for (size_t i = c; i < t->n_cells; i += n_columns)
            if (gn_text_width(t->cells[i]) > widths[c])
                widths[c] = gn_text_width(t->cells[i]);
    }
    for (size_t c = 0; c < n_columns; c++)
        print_cell(t, (int)c, t->columns[c].title, widths[c]);
    for (size_t i = 0; i + n_columns <= t->n_cells; i += n_columns)
        for (size_t c = 0; c < n_columns; c++)
            print_cell(t, (int)c, t->cells[i + c], widths[c]);
    return 0;
}
