/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats rows as lines. If the columns do not fit, the least important ones are left out; a line
 * that is still too long is cut. Only the last column holds blanks, so that scripts can split the
 * lines. Pure.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "ctl/ctl.h"
#include "ctl/text.h"
#include "ctl/top.h"

#define GAP       2
#define WIDE      4096 /* the width of a frame without a given width */
#define BAR_LEAST 12
#define BAR_MOST  40
#define NEAR      0.05 /* part of the device: shares this close to the entitlement count as fair */
#define SLOTS_BAR 20
#define MAX_LOADS 4 /* maximum number of devices with a line of their own */

/* In display order. Columns with the lowest `worth` are left out first. */
enum column {
    TENANT,
    VGPU,
    CLASS,
    SHARE,
    BAR,
    ENTITLED,
    MEMORY,
    LIMIT,
    CALLS,
    SYNC,
    WAIT,
    TIME,
    STATE,
    DEVICE,
    PROGRAM,
    N_COLUMNS
};
static const struct {
    const char *title;
    int least, worth;
    bool right;
} columns[N_COLUMNS] = {
    [TENANT] = {"TENANT", 6, 60, false},
    [VGPU] = {"VGPU", 8, 95, false},
    [CLASS] = {"CLASS", 11, 30, false},
    [SHARE] = {"SHARE", 5, 100, true},
    [BAR] = {"BAR", BAR_LEAST + 2, 50, false},
    [ENTITLED] = {"OF", 4, 70, true},
    [MEMORY] = {"MEMORY", 7, 45, true},
    [LIMIT] = {"LIMIT", 7, 20, true},
    [CALLS] = {"CALLS/S", 7, 40, true},
    [SYNC] = {"SYNC/S", 7, 25, true},
    [WAIT] = {"WAIT", 5, 55, true},
    [TIME] = {"TIME", 6, 35, true},
    [STATE] = {"STATE", 7, 15, false},
    [DEVICE] = {"DEV", 3, 10, true},
    [PROGRAM] = {"PROGRAM", 10, 99, false},
};

/* ---- lines */

static struct gn_top_line *new_line(struct gn_top_frame *f, enum gn_top_style style, char *text)
{
    struct gn_top_line *grown =
        text ? realloc(f->lines, ((size_t)f->n_lines + 1) * sizeof *grown) : NULL;
    if (!grown) {
        free(text);
        return NULL;
    }
    f->lines = grown;
    grown[f->n_lines] = (struct gn_top_line){.text = text, .style = style};
    return &grown[f->n_lines++];
}

/* Adds a line, cut to the width. 0 or -ENOMEM. */
__attribute__((format(printf, 4, 5))) static int
say(struct gn_top_frame *f, int width, enum gn_top_style style, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    int wide;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    if (text)
        text[gn_text_cut(text, width, &wide)] = 0;
    return new_line(f, style, text) ? 0 : -ENOMEM;
}

/* ---- values */

static void format_count(double n, char *to, size_t room)
{
    if (n < 0)
        snprintf(to, room, "-");
    else if (n < 9999.5)
        snprintf(to, room, "%.0f", n);
    else if (n < 999950)
        snprintf(to, room, "%.1fk", n / 1e3);
    else
        snprintf(to, room, "%.1fM", n / 1e6);
}

/* A part above zero is never shown as 0%. */
static void format_part(double part, char *to, size_t room)
{
    if (part < 0)
        snprintf(to, room, "-");
    else if (part > 0 && part < 0.005)
        snprintf(to, room, "<1%%");
    else
        snprintf(to, room, "%.0f%%", part * 100);
}

static void format_time(uint64_t ns, char *to, size_t room)
{
    const unsigned long long ms = ns / 1000000, s = ms / 1000;
    if (!ns)
        snprintf(to, room, "-");
    else if (s < 10)
        snprintf(to, room, "%llu.%02llus", s, ms % 1000 / 10);
    else if (s < 60)
        snprintf(to, room, "%llu.%llus", s, ms % 1000 / 100);
    else if (s < 3600)
        snprintf(to, room, "%llum%02llus", s / 60, s % 60);
    else
        snprintf(to, room, "%lluh%02llum", s / 3600, s / 60 % 60);
}

/* [####|##...]: '#' up to the share, '|' at the entitlement. */
static void format_bar(const struct gn_top_row *r, int wide, char *to)
{
    const int inside = wide - 2;
    const int full = (int)(r->share * inside + 0.5), mark = (int)(r->entitled * inside + 0.5) - 1;
    if (r->share < 0) {
        memcpy(to, "-", 2);
        return;
    }
    to[0] = '[';
    for (int i = 0; i < inside; i++)
        to[1 + i] = i < full ? '#' : '.';
    if (r->entitled > 0)
        to[1 + (mark < 0 ? 0 : mark)] = '|';
    to[1 + inside] = ']';
    to[2 + inside] = 0;
}

static const char *class_name(enum gn_top_class class)
{
    static const char *const names[] = {"-", "bulk", "interactive", "mixed"};
    return names[class];
}

#define CELL_BYTES 160

struct layout {
    int widths[N_COLUMNS]; /* 0: the column is left out */
    int width;
};

static void format_cell(const struct gn_top_sample *now, const struct gn_top_view *view,
                        const struct layout *l, const struct gn_top_row *r, enum column c,
                        char to[CELL_BYTES])
{
    to[0] = 0;
    switch (c) {
    case TENANT:
        snprintf(to, CELL_BYTES, "%s", view->tree && r->vgpu ? "" : r->tenant);
        break;
    case VGPU:
        snprintf(to, CELL_BYTES, "%s",
                 r->vgpu              ? r->vgpu->id
                 : !l->widths[TENANT] ? r->tenant
                 : view->tree         ? ""
                                      : "-");
        break;
    case CLASS:
        snprintf(to, CELL_BYTES, "%s", class_name(r->class));
        break;
    case SHARE:
        format_part(r->share, to, CELL_BYTES);
        break;
    case BAR:
        format_bar(r, l->widths[BAR], to);
        break;
    case ENTITLED:
        format_part(r->entitled, to, CELL_BYTES);
        break;
    case MEMORY:
        if (!r->others)
            gn_ctl_format_size(r->memory_bytes, to);
        break;
    case LIMIT:
        if (r->limit_bytes)
            gn_ctl_format_size(r->limit_bytes, to);
        break;
    case CALLS:
        format_count(r->calls, to, CELL_BYTES);
        break;
    case SYNC:
        format_count(r->syncs, to, CELL_BYTES);
        break;
    case WAIT:
        format_part(r->waits, to, CELL_BYTES);
        break;
    case TIME:
        format_time(r->device_ns, to, CELL_BYTES);
        break;
    case STATE:
        snprintf(to, CELL_BYTES, "%s", r->vgpu ? r->vgpu->state : "");
        break;
    case DEVICE:
        if (r->device >= 0)
            snprintf(to, CELL_BYTES, "%u", now->devices[r->device].index);
        break;
    default:
        if (r->vgpu)
            snprintf(to, CELL_BYTES, "%s", r->vgpu->program);
        else
            snprintf(to, CELL_BYTES, "%u vGPU%s", r->n_vgpus, r->n_vgpus == 1 ? "" : "s");
    }
    if (!to[0] && (c != TENANT || !view->tree) && (c != VGPU || !view->tree))
        memcpy(to, "-", 2);
}

/* ---- columns */

static int total(const struct layout *l)
{
    int sum = -GAP;
    for (int c = 0; c < N_COLUMNS; c++)
        sum += l->widths[c] ? l->widths[c] + GAP : 0;
    return sum;
}

/*
 * Chooses the columns' widths. Numbers have a fixed width, so that frames do not shift; names get
 * the width they need, up to a limit.
 */
static void lay_out(const struct gn_top_sample *now, const struct gn_top_rows *rows,
                    const struct gn_top_view *view, struct layout *l)
{
    for (int c = 0; c < N_COLUMNS; c++)
        l->widths[c] = columns[c].least;
    for (uint32_t i = 0; i < rows->n; i++) {
        const int name = gn_text_width(rows->rows[i].tenant);
        if (name > l->widths[TENANT])
            l->widths[TENANT] = view->width && name > 20 ? 20 : name;
        const int state = rows->rows[i].vgpu ? (int)strlen(rows->rows[i].vgpu->state) : 0;
        if (state > l->widths[STATE])
            l->widths[STATE] = state;
    }
    if (now->n_devices < 2)
        l->widths[DEVICE] = 0;
    while (total(l) > l->width) {
        int least = PROGRAM;
        for (int c = 0; c < N_COLUMNS; c++)
            if (l->widths[c] && columns[c].worth < columns[least].worth)
                least = c;
        if (least == PROGRAM)
            least = VGPU;
        if (!l->widths[least] || least == SHARE)
            break;
        l->widths[least] = 0;
    }
    /* Half of the spare width goes to the bar, the rest to the program. */
    const int spare = l->width - total(l);
    if (l->widths[BAR] && view->width && spare > 1)
        l->widths[BAR] += spare / 2 < BAR_MOST - BAR_LEAST ? spare / 2 : BAR_MOST - BAR_LEAST;
    l->widths[PROGRAM] += l->width - total(l);
    if (l->widths[PROGRAM] < 0)
        l->widths[PROGRAM] = 0;
}

static enum gn_top_style share_style(const struct gn_top_row *r)
{
    if (r->share < 0 || r->entitled <= 0)
        return GN_TOP_PLAIN;
    return r->share < r->entitled - NEAR   ? GN_TOP_LESS
           : r->share > r->entitled + NEAR ? GN_TOP_MORE
                                           : GN_TOP_FAIR;
}

static enum gn_top_style cell_style(const struct gn_top_row *r, enum column c)
{
    if (c == SHARE || c == BAR)
        return share_style(r);
    if (c == CLASS && r->class == GN_TOP_INTERACTIVE)
        return GN_TOP_SPECIAL;
    if (c == STATE && r->vgpu && strcmp(r->vgpu->state, "lost") == 0)
        return GN_TOP_BAD;
    return GN_TOP_PLAIN;
}

/* Adds a line of cells; r NULL: the titles. */
static int say_row(struct gn_top_frame *f, const struct gn_top_sample *now,
                   const struct gn_top_view *view, const struct layout *l,
                   const struct gn_top_row *r)
{
    char cell[CELL_BYTES],
        *text = malloc((N_COLUMNS + 1) * (CELL_BYTES + BAR_MOST) + (size_t)l->width);
    struct gn_top_line line = {.style = !r ? GN_TOP_TITLES : r->vgpu ? GN_TOP_PLAIN : GN_TOP_BOLD};
    size_t at = 0;
    int blanks = 0;
    if (!text)
        return -ENOMEM;
    for (int c = 0; c < N_COLUMNS; c++) {
        const int room = l->widths[c];
        int wide;
        if (!room)
            continue;
        if (r)
            format_cell(now, view, l, r, (enum column)c, cell);
        else
            snprintf(cell, sizeof cell, "%s", columns[c].title);
        const size_t n = gn_text_cut(cell, room, &wide);
        blanks += columns[c].right ? room - wide : 0;
        memset(text + at, ' ', (size_t)blanks);
        at += (size_t)blanks;
        const enum gn_top_style style = r ? cell_style(r, (enum column)c) : GN_TOP_PLAIN;
        if (style != GN_TOP_PLAIN && line.n_spans < GN_TOP_SPANS)
            line.spans[line.n_spans++] = (struct gn_top_span){.at = at, .n = n, .style = style};
        memcpy(text + at, cell, n);
        at += n;
        blanks = GAP + (columns[c].right ? 0 : room - wide);
    }
    while (at && text[at - 1] == ' ')
        at--;
    text[at] = 0;
    /* The terminal may be narrower than a single column. */
    int wide;
    const size_t fits = gn_text_cut(text, l->width, &wide);
    text[fits] = 0;
    while (line.n_spans && line.spans[line.n_spans - 1].at + line.spans[line.n_spans - 1].n > fits)
        line.n_spans--;
    struct gn_top_line *to = new_line(f, line.style, text);
    if (!to)
        return -ENOMEM;
    line.text = to->text;
    *to = line;
    return 0;
}

/* ---- the lines above and below the rows */

static int say_head(struct gn_top_frame *f, const struct gn_top_sample *now,
                    const struct gn_top_rows *rows, const struct gn_top_view *view, int width)
{
    char text[256];
    const uint32_t n_tenants = rows->n_tenants;
    snprintf(text, sizeof text,
             "gantry top%s%s: %u vGPU%s of %u tenant%s, %u device%s, policy %s%s",
             view->clock ? " " : "", view->clock ? view->clock : "", now->n_vgpus,
             now->n_vgpus == 1 ? "" : "s", n_tenants, n_tenants == 1 ? "" : "s", now->n_devices,
             now->n_devices == 1 ? "" : "s", now->policy[0] ? now->policy : "-",
             view->paused ? ", PAUSED" : "");
    return say(f, width, GN_TOP_BOLD, "%s", text);
}

static int say_load(struct gn_top_frame *f, const struct gn_top_sample *now,
                    const struct gn_top_rows *rows, uint32_t d, int width)
{
    const struct gn_top_load *l = &rows->loads[d];
    char busy[16], grants[16], waiting[16] = "-";
    format_part(l->busy, busy, sizeof busy);
    format_count(l->grants, grants, sizeof grants);
    if (l->waiting >= 0)
        snprintf(waiting, sizeof waiting, "%.1f", l->waiting);
    return say(f, width, GN_TOP_PLAIN, "device %u: busy %s, %s turns a second, %s waiting  %s",
               now->devices[d].index, busy, grants, waiting, now->devices[d].name);
}

/* [####....]: '#' for slots in use. */
static void format_slots(const struct gn_top_device *d, char to[SLOTS_BAR + 3])
{
    const int full = (int)((double)(d->n_slots - d->n_free) * SLOTS_BAR / (double)d->n_slots + 0.5);
    to[0] = '[';
    for (int i = 0; i < SLOTS_BAR; i++)
        to[1 + i] = i < full ? '#' : '.';
    to[1 + SLOTS_BAR] = ']';
    to[2 + SLOTS_BAR] = 0;
}

static int say_slots(struct gn_top_frame *f, const struct gn_top_sample *now,
                     const struct gn_top_rows *rows, uint32_t d, int width)
{
    const struct gn_top_device *of = &now->devices[d];
    char bar[SLOTS_BAR + 3], copying[16];
    format_slots(of, bar);
    format_part(rows->loads[d].copying, copying, sizeof copying);
    return say(f, width, GN_TOP_PLAIN,
               "device %u: memory %s %llu of %llu slots in use, %llu reserved, copying %s",
               of->index, bar, (unsigned long long)(of->n_slots - of->n_free),
               (unsigned long long)of->n_slots, (unsigned long long)of->n_reserved, copying);
}

static int say_hint(struct gn_top_frame *f, const struct gn_top_sample *now,
                    const struct gn_top_rows *rows, const struct gn_top_view *view, int width)
{
    if (view->gone)
        return say(f, width, GN_TOP_BAD, "%s", view->gone);
    if (strcmp(now->policy, "none") == 0 && now->n_vgpus)
        return say(f, width, GN_TOP_DIM,
                   "no policy: all vGPUs use a device at once, without shares; gantry policy fair "
                   "changes that");
    if (!now->n_vgpus && rows->n)
        return say(f, width, GN_TOP_DIM,
                   "this tenant has no programs; gantry run -- PROGRAM starts one");
    if (!now->n_vgpus)
        return say(f, width, GN_TOP_DIM,
                   "no program uses a device; gantry run -- PROGRAM starts one");
    return 0;
}

static const char *const help[] = {
    "SHARE  part of the device time used in the last second or two",
    "OF     its entitlement by weight, among vGPUs that had work; | in the bar",
    "CLASS  interactive: it waits for each of its commands; bulk: it does not",
    "WAIT   part of the time that it had work while another held the device; a tenant's: the mean",
    "TIME   device time so far    CALLS/S, SYNC/S  calls, synchronous calls",
    "",
    "q quit   space pause   up, down, page up, page down   h this",
    "sort: s share  n name  m memory  c calls  y sync  w waiting  t time  r reverse",
    "d next device only, or all: for each row the device with its largest share",
};

static int say_keys(struct gn_top_frame *f, const struct gn_top_view *view,
                    const struct gn_top_sample *now, int width)
{
    char device[32] = "";
    if (view->device >= 0 && (uint32_t)view->device < now->n_devices)
        snprintf(device, sizeof device, "[device %u] ", now->devices[view->device].index);
    return say(f, width, GN_TOP_TITLES,
               "%sq quit  h help  sort [%s%s]: s n m c y w t  r reverse%s  space pause", device,
               gn_top_order_name((int)view->order), view->reverse ? ", reversed" : "",
               now->n_devices > 1 ? "  d device" : "");
}

int gn_top_frame_make(const struct gn_top_sample *now, const struct gn_top_rows *rows,
                      struct gn_top_view *view, struct gn_top_frame *ret)
{
    struct layout l = {.width = view->width > 0 ? view->width : WIDE};
    const int height = view->height > 0 ? view->height : INT32_MAX;
    const int keys = view->keys && height >= 4, title = height >= 3, titles = height >= 2;
    int rc = 0, left = height - keys - title - titles;
    memset(ret, 0, sizeof *ret);
    lay_out(now, rows, view, &l);
    if (title)
        rc = say_head(ret, now, rows, view, l.width);
    /* At least half of the lines are for rows. */
    const uint32_t most = view->height > 0 ? MAX_LOADS : UINT32_MAX;
    for (uint32_t d = 0, n = 0; rc == 0 && d < now->n_devices && n < most; d++) {
        if ((view->device >= 0 && d != (uint32_t)view->device) || left <= height / 2)
            continue;
        rc = say_load(ret, now, rows, d, l.width);
        n++;
        left--;
        if (rc == 0 && now->devices[d].n_slots && left > height / 2) {
            rc = say_slots(ret, now, rows, d, l.width);
            left--;
        }
    }
    const int before = ret->n_lines;
    if (rc == 0 && (left > height / 2 || (view->gone && left > 0)))
        rc = say_hint(ret, now, rows, view, l.width);
    left -= ret->n_lines - before;
    if (view->help) {
        for (size_t i = 0; rc == 0 && left > 0 && i < GN_ARRAY_SIZE(help); i++, left--)
            rc = say(ret, l.width, GN_TOP_PLAIN, "%s", help[i]);
    } else {
        if (rc == 0 && titles)
            rc = say_row(ret, now, view, &l, NULL);
        if (view->first > (int)rows->n - left)
            view->first = (int)rows->n - left;
        if (view->first < 0)
            view->first = 0;
        for (uint32_t i = (uint32_t)view->first; rc == 0 && i < rows->n && left > 0; i++, left--)
            rc = say_row(ret, now, view, &l, &rows->rows[i]);
    }
    if (rc == 0 && keys)
        rc = say_keys(ret, view, now, l.width);
    return rc;
}

void gn_top_frame_fini(struct gn_top_frame *f)
{
    for (int i = 0; i < f->n_lines; i++)
        free(f->lines[i].text);
    free(f->lines);
    memset(f, 0, sizeof *f);
}
