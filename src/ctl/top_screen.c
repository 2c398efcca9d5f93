/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live screen: draws frames by curses and handles keys and signals. One thread, which sleeps in
 * wgetch until a key is pressed or the next frame is due. top_layout.c makes the frames.
 */
#include <curses.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ctl/top.h"

static volatile sig_atomic_t ended;

static void end(int signal)
{
    (void)signal;
    ended = 1;
}

static void catch_signals(void (*handler)(int))
{
    static const int all[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    /* No SA_RESTART: a signal must end the wait for a key. */
    struct sigaction how = {.sa_handler = handler};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        sigaction(all[i], &how, NULL);
}

/* ---- styles */

static bool colours;

static void make_colours(void)
{
    const char *no = getenv("NO_COLOR");
    colours = has_colors() && !(no && *no);
    if (!colours)
        return;
    start_color();
    use_default_colors();
    init_pair(GN_TOP_FAIR, COLOR_GREEN, -1);
    init_pair(GN_TOP_LESS, COLOR_YELLOW, -1);
    init_pair(GN_TOP_MORE, COLOR_CYAN, -1);
    init_pair(GN_TOP_BAD, COLOR_RED, -1);
    init_pair(GN_TOP_SPECIAL, COLOR_MAGENTA, -1);
}

static attr_t look_of(enum gn_top_style style)
{
    switch (style) {
    case GN_TOP_BOLD:
        return A_BOLD;
    case GN_TOP_TITLES:
        return A_REVERSE;
    case GN_TOP_DIM:
        return A_DIM;
    case GN_TOP_PLAIN:
        return A_NORMAL;
    case GN_TOP_BAD:
        return A_BOLD | (colours ? (attr_t)COLOR_PAIR(style) : A_NORMAL);
    default:
        return colours ? (attr_t)COLOR_PAIR(style) : A_NORMAL;
    }
}

static void put(const char *text, size_t n, enum gn_top_style style, attr_t also)
{
    attron(look_of(style) | also);
    addnstr(text, (int)n);
    attroff(look_of(style) | also);
}

static void draw_line(int y, const struct gn_top_line *l)
{
    const attr_t also = l->style == GN_TOP_BOLD ? A_BOLD : A_NORMAL;
    size_t at = 0;
    move(y, 0);
    for (int i = 0; i < l->n_spans; i++) {
        const struct gn_top_span *s = &l->spans[i];
        put(l->text + at, s->at - at, l->style, A_NORMAL);
        put(l->text + s->at, s->n, s->style, also);
        at = s->at + s->n;
    }
    put(l->text + at, strlen(l->text + at), l->style, A_NORMAL);
    if (l->style == GN_TOP_TITLES)
        mvchgat(y, 0, -1, A_REVERSE, 0, NULL);
}

static int draw(const struct gn_top_sample *before, const struct gn_top_sample *now,
                struct gn_top_view *view)
{
    struct gn_top_rows rows;
    struct gn_top_frame frame;
    char clock[16];
    const time_t t = time(NULL);
    struct tm local;
    localtime_r(&t, &local);
    strftime(clock, sizeof clock, "%H:%M:%S", &local);
    view->clock = clock;
    getmaxyx(stdscr, view->height, view->width);
    int rc = gn_top_rows_make(before, now, view->device, view->order, view->reverse, &rows);
    if (rc)
        return rc;
    rc = gn_top_frame_make(now, &rows, view, &frame);
    erase();
    for (int i = 0; rc == 0 && i < frame.n_lines; i++) {
        const bool last = view->keys && view->height >= 4 && i == frame.n_lines - 1;
        draw_line(last ? view->height - 1 : i, &frame.lines[i]);
    }
    gn_top_frame_fini(&frame);
    gn_top_rows_fini(&rows);
    refresh();
    view->clock = NULL;
    return rc;
}

/* ---- keys */

static void set_order(struct gn_top_view *view, enum gn_top_order order)
{
    view->order = order;
    view->first = 0;
}

/* Handles a key. False: the key ends the screen. */
static bool take_key(int key, const struct gn_top_sample *now, struct gn_top_view *view)
{
    static const struct {
        int key;
        enum gn_top_order order;
    } orders[] = {{'s', GN_TOP_BY_SHARE}, {'n', GN_TOP_BY_NAME}, {'m', GN_TOP_BY_MEMORY},
                  {'c', GN_TOP_BY_CALLS}, {'y', GN_TOP_BY_SYNC}, {'w', GN_TOP_BY_WAIT},
                  {'t', GN_TOP_BY_TIME}};
    const int page = view->height > 4 ? view->height - 4 : 1;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
        if (orders[i].key == key)
            set_order(view, orders[i].order);
    switch (key) {
    case 'q':
    case 'Q':
    case 27:
        if (!view->help)
            return false;
        view->help = false;
        break;
    case 'h':
    case '?':
        view->help = !view->help;
        break;
    case 'r':
        view->reverse = !view->reverse;
        break;
    case 'd':
        view->device =
            view->device + 1 < (int)now->n_devices && now->n_devices > 1 ? view->device + 1 : -1;
        break;
    case ' ':
        view->paused = !view->paused;
        break;
    case KEY_UP:
        view->first--;
        break;
    case KEY_DOWN:
        view->first++;
        break;
    case KEY_PPAGE:
        view->first -= page;
        break;
    case KEY_NPAGE:
        view->first += page;
        break;
    case KEY_HOME:
        view->first = 0;
        break;
    case KEY_END:
        view->first = INT32_MAX - page;
        break;
    default:
        break;
    }
    return true;
}

/* Waits for a key until the next frame is due. -1: none. */
static int next_key(uint64_t due_ns)
{
    const uint64_t now = gn_now_ns();
    timeout(now < due_ns ? (int)((due_ns - now + 999999) / 1000000) : 0);
    return getch();
}

static int show(const struct gn_top_source *source, uint64_t delay_ns, struct gn_top_view *view,
                struct gn_error *err)
{
    struct gn_top_sample before = {0}, now = {0};
    char gone[sizeof err->what + 32];
    bool have_before = false;
    int rc = source->ask(source->ctx, &now, err);
    uint64_t due = gn_now_ns() + delay_ns;
    while (rc == 0 && !ended) {
        if (draw(have_before ? &before : NULL, &now, view)) {
            rc = gn_fail(err, ENOMEM, NULL, "out of memory");
            break;
        }
        const int key = next_key(due);
        if (ended || (key != ERR && !take_key(key, &now, view)))
            break;
        if (key != ERR || gn_now_ns() < due)
            continue;
        due = gn_now_ns() + delay_ns;
        if (view->paused)
            continue;
        struct gn_top_sample next = {0};
        if (source->ask(source->ctx, &next, err)) {
            /* Keep the last frame on the screen until gantryd, or its successor, answers. */
            snprintf(gone, sizeof gone, "waiting for gantryd: %s", err->what);
            view->gone = gone;
            have_before = false;
            continue;
        }
        const bool anew = view->gone != NULL;
        view->gone = NULL;
        gn_top_sample_fini(&before);
        before = now;
        now = next;
        have_before = !anew; /* another gantryd's counters start from 0 */
        if (view->device >= (int)now.n_devices)
            view->device = -1;
    }
    view->gone = NULL;
    gn_top_sample_fini(&before);
    gn_top_sample_fini(&now);
    return rc;
}

int gn_top_screen(const struct gn_top_source *source, uint64_t delay_ns, enum gn_top_order order,
                  struct gn_error *err)
{
    struct gn_top_view view = {.device = -1, .order = order, .tree = true, .keys = true};
    const char *term = getenv("TERM");
    if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
        return gn_fail(err, ENOTTY, "use gantry top --once", "this is not a terminal");
    ended = 0;
    SCREEN *screen = newterm(NULL, stdout, stdin);
    if (!screen)
        return gn_fail(err, ENOTTY, "set TERM, or use gantry top --once",
                       "there is no description of the terminal \"%.60s\"", term ? term : "");
    catch_signals(end);
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    set_escdelay(25);
    (void)curs_set(0);
    make_colours();
    int rc = show(source, delay_ns, &view, err);
    endwin();
    delscreen(screen);
    catch_signals(SIG_DFL);
    return rc;
}
