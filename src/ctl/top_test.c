/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests gantry top without gantryd and without a terminal: from gantryd's replies to rows, and to
 * lines of a given width.
 */
#include "ctl/top.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ctl/text.h"

#define SECOND UINT64_C(1000000000)

static const char devices[] =
    "\"policy\":\"fair\",\"devices\":[{\"index\":3,\"name\":\"Card "
    "A\"},{\"index\":5,\"name\":\"Card B\"}],"
    "\"tenants\":[{\"name\":\"blue\",\"weight\":200,\"memory_limit_bytes\":1073741824},"
    "{\"name\":\"green\",\"weight\":100},{\"name\":\"idle\",\"weight\":100}],";

static void read_sample(const char *vgpus, uint64_t at_ns, struct gn_top_sample *ret)
{
    char text[4096];
    snprintf(text, sizeof text, "{%s\"vgpus\":[%s]}", devices, vgpus);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    assert_int_equal(gn_top_sample_read(root, at_ns, ret), 0);
    json_decref(root);
}

static const char first[] =
    "{\"id\":\"00000002\",\"tenant\":\"blue\",\"program\":\"train\","
    "\"state\":\"running\",\"memory_bytes\":2048,"
    "\"calls\":1000,\"sync_calls\":10,\"devices\":[{\"index\":3,\"share\":0.5,\"entitled\":0.33,"
    "\"device_ns\":1000000000,"
    "\"waited_ns\":100,\"grants\":10,\"interactive\":false},"
    "{\"index\":5,\"share\":0,\"entitled\":0,\"device_ns\":0,\"grants\":0}]},"
    "{\"id\":\"00000001\",\"tenant\":\"blue\",\"program\":\"chat\","
    "\"state\":\"idle\",\"memory_bytes\":1024,\"memory_limit_bytes\":4096,"
    "\"calls\":0,\"sync_calls\":0,\"devices\":[{\"index\":3,\"share\":0.1,\"entitled\":0.33,"
    "\"device_ns\":0,\"grants\":5,"
    "\"interactive\":true}]},";
static const char second[] =
    "{\"id\":\"00000002\",\"tenant\":\"blue\",\"program\":\"train\","
    "\"state\":\"running\",\"memory_bytes\":2048,"
    "\"calls\":3000,\"sync_calls\":30,\"devices\":[{\"index\":3,\"share\":0.5,\"entitled\":0.33,"
    "\"device_ns\":1800000000,"
    "\"waited_ns\":400000100,\"grants\":210,\"interactive\":false}]},"
    "{\"id\":\"00000001\",\"tenant\":\"blue\",\"program\":\"chat\","
    "\"state\":\"lost\",\"memory_bytes\":1024,\"memory_limit_bytes\":4096,"
    "\"calls\":64000,\"sync_calls\":64000,\"devices\":[{\"index\":3,"
    "\"share\":0.1,\"entitled\":0.33,\"device_ns\":200000000,\"grants\":5,"
    "\"waited_ns\":1600000000,\"interactive\":true}]},"
    "{\"id\":\"0000000a\",\"tenant\":\"green\",\"program\":\"a new one\",\"state\":\"running\","
    "\"memory_bytes\":0,"
    "\"calls\":10,\"sync_calls\":0,\"devices\":[{\"index\":3,\"share\":0.4,\"entitled\":0.34,"
    "\"device_ns\":0,\"grants\":1},"
    "{\"index\":5,\"share\":1,\"entitled\":1,\"device_ns\":2000000000,\"grants\":4,"
    "\"waited_ns\":0}]}";

static char first_text[2048];
static struct gn_top_sample before, now;
static struct gn_top_rows rows;

static int set_up(void **state)
{
    snprintf(first_text, sizeof first_text, "%.*s", (int)strlen(first) - 1, first);
    read_sample(first_text, 10 * SECOND, &before);
    read_sample(second, 12 * SECOND, &now);
    return 0;
}

static int tear_down(void **state)
{
    gn_top_rows_fini(&rows);
    gn_top_sample_fini(&before);
    gn_top_sample_fini(&now);
    return 0;
}

static const struct gn_top_row *row(const char *tenant, const char *vgpu)
{
    for (uint32_t i = 0; i < rows.n; i++)
        if (strcmp(rows.rows[i].tenant, tenant) == 0 &&
            (vgpu ? rows.rows[i].vgpu && !strcmp(rows.rows[i].vgpu->id, vgpu) : !rows.rows[i].vgpu))
            return &rows.rows[i];
    fail_msg("no row %s %s", tenant, vgpu ? vgpu : "");
    return NULL;
}

static void near(double got, double wanted)
{
    assert_true(got > wanted - 1e-6 && got < wanted + 1e-6);
}

static void make(int device, enum gn_top_order order, bool reverse)
{
    gn_top_rows_fini(&rows);
    assert_int_equal(gn_top_rows_make(&before, &now, device, order, reverse, &rows), 0);
}

static void rates_are_of_the_time_between(void **state)
{
    make(-1, GN_TOP_BY_SHARE, false);
    assert_int_equal(rows.n, 5);
    near(row("blue", "00000002")->calls, 1000);
    near(row("blue", "00000002")->syncs, 10);
    near(row("blue", "00000002")->waits, 0.2);
    near(row("blue", "00000001")->waits, 0.8);
    near(row("blue", NULL)->calls, 33000);
    near(row("blue", NULL)->waits, 0.5); /* the mean of its two vGPUs */
    near(row("green", NULL)->calls, 5);  /* new: its counters started at 0 */
    near(rows.loads[0].busy, 0.5);
    near(rows.loads[0].grants, 100.5);
    near(rows.loads[0].waiting, 1.0);
    near(rows.loads[1].busy, 1.0);
    assert_int_equal(rows.loads[0].n_users, 3);
    /* With a single sample the rates are unknown. */
    gn_top_rows_fini(&rows);
    assert_int_equal(gn_top_rows_make(NULL, &now, -1, GN_TOP_BY_SHARE, false, &rows), 0);
    assert_true(row("blue", NULL)->calls < 0 && row("blue", "00000002")->waits < 0 &&
                rows.loads[0].busy < 0);
}

static void a_tenants_share_is_its_vgpus_together(void **state)
{
    make(-1, GN_TOP_BY_SHARE, false);
    near(row("blue", NULL)->share, 0.6);
    near(row("blue", NULL)->entitled, 0.66);
    assert_int_equal(row("blue", NULL)->limit_bytes, 1 << 30);
    assert_int_equal(row("blue", NULL)->memory_bytes, 3072);
    assert_int_equal(row("blue", NULL)->class, GN_TOP_MIXED);
    assert_int_equal(row("blue", "00000001")->class, GN_TOP_INTERACTIVE);
    assert_int_equal(row("blue", "00000002")->class, GN_TOP_BULK);
    /* The share on the device of which it has most, or on the selected device. */
    near(row("green", NULL)->share, 1);
    assert_int_equal(row("green", NULL)->device, 1);
    make(0, GN_TOP_BY_SHARE, false);
    near(row("green", NULL)->share, 0.4);
    assert_int_equal(row("green", "0000000a")->device_ns, 0);
    make(1, GN_TOP_BY_SHARE, false);
    assert_true(row("blue", NULL)->share < 0);
}

static void orders(enum gn_top_order by, bool reverse, const char *wanted)
{
    char got[256] = "";
    make(-1, by, reverse);
    for (uint32_t i = 0; i < rows.n; i++) {
        const struct gn_top_row *r = &rows.rows[i];
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i ? " " : "",
                 r->vgpu ? r->vgpu->program : r->tenant);
    }
    assert_string_equal(got, wanted);
}

static void tenants_and_their_vgpus_are_sorted(void **state)
{
    orders(GN_TOP_BY_SHARE, false, "green a new one blue train chat");
    orders(GN_TOP_BY_SHARE, true, "blue chat train green a new one");
    orders(GN_TOP_BY_NAME, false, "blue chat train green a new one");
    orders(GN_TOP_BY_NAME, true, "green a new one blue train chat");
    orders(GN_TOP_BY_CALLS, false, "blue chat train green a new one");
    orders(GN_TOP_BY_MEMORY, false, "blue train chat green a new one");
    orders(GN_TOP_BY_WAIT, false, "blue chat train green a new one");
    orders(GN_TOP_BY_TIME, false, "blue train chat green a new one");
    assert_null(gn_top_order_name(GN_TOP_N_ORDERS));
}

/* ---- lines */

static struct gn_top_frame frame(int width, int height, struct gn_top_view *view)
{
    struct gn_top_frame f;
    view->width = width;
    view->height = height;
    assert_int_equal(gn_top_frame_make(&now, &rows, view, &f), 0);
    return f;
}

static void a_plain_frame_is_this(void **state)
{
    static const char *const wanted[] = {
        "gantry top: 3 vGPUs of 2 tenants, 2 devices, policy fair",
        "device 3: busy 50%, 100 turns a second, 1.0 waiting  Card A",
        "device 5: busy 100%, 2 turns a second, 0.0 waiting  Card B",
        "TENANT  VGPU      CLASS        SHARE  BAR               OF   MEMORY    LIMIT  CALLS/S   "
        "SYNC/S   WAIT    TIME  STATE    DEV  "
        "PROGRAM",
        "blue    -         mixed          60%  [#######|....]   66%       3K       1G    33.0k    "
        "32.0k    50%   2.00s  -          3  2 "
        "vGPUs",
        "blue    00000001  interactive    10%  [#..|........]   33%       1K       4K    32.0k    "
        "32.0k    80%   0.20s  lost       3  chat",
        "blue    00000002  bulk           50%  [###|##......]   33%       2K        -     1000    "
        "   10    20%   1.80s  running    3  "
        "train",
        "green   -         bulk          100%  [###########|]  100%        0        -        5    "
        "    0     0%   2.00s  -          5  1 "
        "vGPU",
        "green   0000000a  bulk          100%  [###########|]  100%        0        -        5    "
        "    0     0%   2.00s  running    5  a "
        "new one",
    };
    struct gn_top_view view = {.device = -1};
    make(-1, GN_TOP_BY_NAME, false);
    struct gn_top_frame f = frame(0, 0, &view);
    for (int i = 0; i < f.n_lines && i < (int)(sizeof wanted / sizeof wanted[0]); i++)
        assert_string_equal(f.lines[i].text, wanted[i]);
    assert_int_equal(f.n_lines, sizeof wanted / sizeof wanted[0]);
    gn_top_frame_fini(&f);
}

/*
 * gantryd lists only the tenant's own vGPUs to it, but reports the totals of all vGPUs for each
 * device.
 */
static void what_is_not_listed_is_seen_as_others(void **state)
{
    static const char text[] =
        "{\"policy\":\"fair\",\"tenants\":[{\"name\":\"green\",\"weight\":100}],\"vgpus\":[],"
        "\"devices\":["
        "{\"index\":0,\"name\":\"A\",\"use\":{\"device_ns\":%llu,"
        "\"used_ns\":%llu,\"waited_ns\":%llu,\"grants\":%llu},"
        "\"others\":{\"vgpus\":2,\"share\":1.0,\"entitled\":1.0,"
        "\"device_ns\":5000000000,\"waited_ns\":%llu}},"
        "{\"index\":1,\"name\":\"B\",\"use\":{\"device_ns\":7,\"used_ns\":7,\"waited_ns\":0,"
        "\"grants\":0},\"others\":{\"vgpus\":0}}]}";
    static const struct {
        unsigned long long device_ns, used_ns;
        double busy;
    } cases[] = {
        {960000000, 0, 0.96}, {0, 1000000000, 1.0} /* one long command */, {1500000000, 0, 1.0}};
    char buffer[2048];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gn_top_sample was, is;
        for (int j = 0; j < 2; j++) {
            snprintf(buffer, sizeof buffer, text, 5 + j * cases[i].device_ns,
                     3 + j * cases[i].used_ns, 1000000000ull * (unsigned)j, 10ull * (unsigned)j,
                     1000000000ull * (unsigned)j);
            json_t *root = json_loads(buffer, 0, NULL);
            assert_int_equal(gn_top_sample_read(root, (10 + (unsigned)j) * SECOND, j ? &is : &was),
                             0);
            json_decref(root);
        }
        gn_top_rows_fini(&rows);
        assert_int_equal(gn_top_rows_make(&was, &is, -1, GN_TOP_BY_SHARE, false, &rows), 0);
        near(rows.loads[0].busy, cases[i].busy);
        near(rows.loads[0].grants, 10);
        near(rows.loads[0].waiting, 1);
        near(rows.loads[1].busy, 0);
        assert_int_equal(rows.n, 1);
        assert_true(rows.rows[0].others && rows.rows[0].n_vgpus == 2 && rows.rows[0].device == 0);
        near(rows.rows[0].share, 1);
        near(rows.rows[0].waits, 0.5);
        struct gn_top_view view = {.device = -1};
        struct gn_top_frame f;
        assert_int_equal(gn_top_frame_make(&is, &rows, &view, &f), 0);
        assert_string_equal(f.lines[0].text,
                            "gantry top: 0 vGPUs of 0 tenants, 2 devices, policy fair");
        assert_string_equal(f.lines[3].text,
                            "this tenant has no programs; gantry run -- PROGRAM starts one");
        assert_memory_equal(f.lines[5].text, "others  -", 9);
        assert_non_null(strstr(f.lines[5].text, "2 vGPUs"));
        gn_top_frame_fini(&f);
        gn_top_rows_fini(&rows);
        assert_int_equal(gn_top_rows_make(&was, &is, 1, GN_TOP_BY_SHARE, false, &rows), 0);
        assert_int_equal(rows.n, 0);
        gn_top_sample_fini(&was);
        gn_top_sample_fini(&is);
    }
}

/* A device whose memory is placed has a second line. */
static void slots_are_a_bar(void **state)
{
    static const char text[] =
        "{\"policy\":\"fair\",\"tenants\":[],\"vgpus\":[],\"devices\":["
        "{\"index\":0,\"name\":\"A\",\"slots\":54,\"free_slots\":%d,\"reserved_slots\":2,"
        "\"copying_ns\":%d},{\"index\":1,\"name\":\"B\"}]}";
    static const struct {
        int n_free, copying_ns;
        const char *wanted;
    } cases[] = {
        {54, 0, "[....................] 0 of 54 slots in use, 2 reserved, copying 0%"},
        {18, 100000000, "[#############.......] 36 of 54 slots in use, 2 reserved, copying 10%"},
        {0, 2000000000, "[####################] 54 of 54 slots in use, 2 reserved, copying 100%"},
        {55, -1, "[....................] 0 of 54 slots in use, 2 reserved, copying 0%"},
    };
    char buffer[512], line[128];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gn_top_sample was, is;
        for (int j = 0; j < 2; j++) {
            snprintf(buffer, sizeof buffer, text, cases[i].n_free, j ? cases[i].copying_ns : 0);
            json_t *root = json_loads(buffer, 0, NULL);
            assert_int_equal(gn_top_sample_read(root, (10 + (unsigned)j) * SECOND, j ? &is : &was),
                             0);
            json_decref(root);
        }
        gn_top_rows_fini(&rows);
        assert_int_equal(gn_top_rows_make(&was, &is, -1, GN_TOP_BY_SHARE, false, &rows), 0);
        struct gn_top_view view = {.device = -1};
        struct gn_top_frame f;
        assert_int_equal(gn_top_frame_make(&is, &rows, &view, &f), 0);
        snprintf(line, sizeof line, "device 0: memory %s", cases[i].wanted);
        assert_string_equal(f.lines[2].text, line);
        assert_memory_equal(f.lines[3].text, "device 1: busy ", 15);
        gn_top_frame_fini(&f);
        view.height = 6; /* half of the lines are for vGPUs */
        assert_int_equal(gn_top_frame_make(&is, &rows, &view, &f), 0);
        assert_null(strstr(f.lines[2].text, "slots"));
        gn_top_frame_fini(&f);
        gn_top_sample_fini(&was);
        gn_top_sample_fini(&is);
    }
    /* Before there are two samples. */
    struct gn_top_sample one;
    snprintf(buffer, sizeof buffer, text, 54, 7);
    json_t *root = json_loads(buffer, 0, NULL);
    assert_int_equal(gn_top_sample_read(root, SECOND, &one), 0);
    json_decref(root);
    gn_top_rows_fini(&rows);
    assert_int_equal(gn_top_rows_make(NULL, &one, -1, GN_TOP_BY_SHARE, false, &rows), 0);
    assert_true(rows.loads[0].copying < 0);
    gn_top_sample_fini(&one);
}

static bool has_title(const struct gn_top_frame *f, const char *title)
{
    for (int i = 0; i < f->n_lines; i++)
        if (f->lines[i].style == GN_TOP_TITLES && strstr(f->lines[i].text, "SHARE"))
            return strstr(f->lines[i].text, title) != NULL;
    return false;
}

static void nothing_is_wider_or_longer_than_the_screen(void **state)
{
    make(-1, GN_TOP_BY_SHARE, false);
    for (int width = 1; width < 200; width++) {
        for (int height = 1; height < 14; height++) {
            struct gn_top_view view = {
                .device = -1, .tree = true, .keys = true, .clock = "12:00:00", .help = height % 2};
            struct gn_top_frame f = frame(width, height, &view);
            assert_true(f.n_lines <= height && f.n_lines > 0);
            for (int i = 0; i < f.n_lines; i++) {
                const struct gn_top_line *l = &f.lines[i];
                assert_true(gn_text_width(l->text) <= width);
                for (int s = 0, at = 0; s < l->n_spans; s++) {
                    assert_true((int)l->spans[s].at >= at &&
                                l->spans[s].at + l->spans[s].n <= strlen(l->text));
                    at = (int)(l->spans[s].at + l->spans[s].n);
                }
            }
            gn_top_frame_fini(&f);
        }
    }
}

static void what_tells_least_goes_first(void **state)
{
    static const char *const in_order[] = {"DEV",     "STATE",  "LIMIT", "SYNC/S", "CLASS",  "TIME",
                                           "CALLS/S", "MEMORY", "BAR",   "WAIT",   "TENANT", "OF"};
    const size_t n = sizeof in_order / sizeof in_order[0];
    size_t gone = 0;
    make(-1, GN_TOP_BY_SHARE, false);
    for (int width = 160; width >= 20; width--) {
        struct gn_top_view view = {.device = -1};
        struct gn_top_frame f = frame(width, 0, &view);
        while (gone < n && !has_title(&f, in_order[gone]))
            gone++;
        for (size_t i = 0; i < n; i++)
            assert_int_equal(has_title(&f, in_order[i]), i >= gone);
        assert_true(has_title(&f, "SHARE"));
        gn_top_frame_fini(&f);
    }
    assert_int_equal(gone, n);
}

static void a_short_screen_scrolls(void **state)
{
    struct gn_top_view view = {.device = -1, .first = 100};
    make(-1, GN_TOP_BY_NAME, false);
    struct gn_top_frame f = frame(100, 5, &view); /* head, one device, titles, two rows */
    assert_int_equal(view.first, 3);
    assert_non_null(strstr(f.lines[f.n_lines - 1].text, "a new one"));
    gn_top_frame_fini(&f);
    view.first = -5;
    f = frame(100, 5, &view);
    assert_int_equal(view.first, 0);
    gn_top_frame_fini(&f);
}

static void shares_have_a_colour(void **state)
{
    struct gn_top_view view = {.device = 0};
    make(0, GN_TOP_BY_NAME, false);
    struct gn_top_frame f = frame(0, 0, &view);
    const struct gn_top_line *chat = NULL, *train = NULL;
    for (int i = 0; i < f.n_lines; i++) {
        chat = strstr(f.lines[i].text, "chat") ? &f.lines[i] : chat;
        train = strstr(f.lines[i].text, "train") ? &f.lines[i] : train;
    }
    assert_int_equal(chat->spans[0].style, GN_TOP_SPECIAL);
    assert_memory_equal(chat->text + chat->spans[0].at, "interactive", 11);
    assert_int_equal(chat->spans[1].style, GN_TOP_LESS);
    assert_int_equal(chat->spans[3].style, GN_TOP_BAD);
    assert_memory_equal(chat->text + chat->spans[3].at, "lost", 4);
    assert_int_equal(train->spans[0].style, GN_TOP_MORE);
    gn_top_frame_fini(&f);
}

static void words_that_are_not_gantryds_do_no_harm(void **state)
{
    static const char *const all[] = {
        "{}",
        "{\"vgpus\":7,\"tenants\":{},\"devices\":\"x\",\"policy\":[]}",
        "{\"vgpus\":[7,null,{}],\"tenants\":[[]],\"devices\":[1,{\"index\":-1}]}",
        "{\"devices\":[{\"name\":\"d\"}],\"vgpus\":[{\"id\":\"a\\u001b[2J\","
        "\"tenant\":\"\\u0007\",\"program\":\"\\u009b\\u202e\","
        "\"calls\":-1,\"devices\":[{\"share\":1e300,\"entitled\":-1},{\"share\":\"1\"},"
        "{\"share\":0.5,\"device_ns\":-5}]}]}",
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct gn_top_sample odd;
        struct gn_top_rows r;
        struct gn_top_frame f;
        struct gn_top_view view = {.device = -1, .width = 60, .height = 12, .keys = true};
        json_t *root = json_loads(all[i], 0, NULL);
        assert_non_null(root);
        assert_int_equal(gn_top_sample_read(root, SECOND, &odd), 0);
        assert_int_equal(gn_top_rows_make(&before, &odd, -1, GN_TOP_BY_SHARE, false, &r), 0);
        assert_int_equal(gn_top_frame_make(&odd, &r, &view, &f), 0);
        for (int l = 0; l < f.n_lines; l++)
            assert_int_equal(strcspn(f.lines[l].text, "\033\007\n"), strlen(f.lines[l].text));
        gn_top_frame_fini(&f);
        gn_top_rows_fini(&r);
        gn_top_sample_fini(&odd);
        json_decref(root);
    }
}

static void a_cut_name_ends_between_characters(void **state)
{
    char name[256] = "x", text[512];
    struct gn_top_sample s;
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        skip();
    for (int i = 0; i < 60; i++)
        strcat(name, "\xc3\xa9");
    snprintf(text, sizeof text, "{\"id\":\"1\",\"tenant\":\"%s\"}", name);
    read_sample(text, SECOND, &s);
    assert_int_equal(strlen(s.vgpus[0].tenant), 63);
    name[63] = 0;
    assert_string_equal(s.vgpus[0].tenant, name);
    gn_top_sample_fini(&s);
    setlocale(LC_CTYPE, "C");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(rates_are_of_the_time_between),
        CASE(a_tenants_share_is_its_vgpus_together),
        CASE(tenants_and_their_vgpus_are_sorted),
        CASE(a_plain_frame_is_this),
        CASE(what_is_not_listed_is_seen_as_others),
        CASE(slots_are_a_bar),
        CASE(nothing_is_wider_or_longer_than_the_screen),
        CASE(what_tells_least_goes_first),
        CASE(a_short_screen_scrolls),
        CASE(shares_have_a_colour),
        CASE(words_that_are_not_gantryds_do_no_harm),
        CASE(a_cut_name_ends_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
