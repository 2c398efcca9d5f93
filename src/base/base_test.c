/* SPDX-License-Identifier: Apache-2.0 */
/* Tests arithmetic, errors, texts, parts of a device, lists, vectors and room in memory. */
#include "base/array.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/iov.h"
#include "base/list.h"
#include "base/part.h"
#include "base/room.h"
#include "base/text.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static void ranges_do_not_wrap(void **state)
{
    assert_true(gn_range_ok(0, 0, 0));
    assert_true(gn_range_ok(4, 4, 8));
    assert_false(gn_range_ok(4, 5, 8));
    assert_false(gn_range_ok(9, 0, 8));
    assert_false(gn_range_ok(UINT64_MAX, 2, 8));
    assert_false(gn_range_ok(2, UINT64_MAX, 8));
}

static void arithmetic_reports_overflow(void **state)
{
    uint64_t r = 7;
    assert_false(gn_add_u64(UINT64_MAX, 1, &r));
    assert_false(gn_mul_u64(UINT64_MAX, 2, &r));
    assert_int_equal(r, 7);
    assert_true(gn_mul_u64(6, 7, &r));
    assert_int_equal(r, 42);
}

static void failures_carry_a_sentence(void **state)
{
    struct gn_error err;
    assert_int_equal(gn_fail(&err, ENOENT, "do this", "no %s", "thing"), -ENOENT);
    assert_string_equal(err.what, "no thing");
    assert_string_equal(err.fix, "do this");
    assert_int_equal(gn_fail(NULL, EIO, NULL, "unheard"), -EIO);
}

static void texts_are_cleaned(void **state)
{
    static const struct {
        const char *text, *clean;
    } all[] = {
        {"plain ~ text", "plain ~ text"},
        {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"a\nb\tc\x1b[31m\x7f", "a?b?c?[31m?"},
        {"\xc2\x9b", "??"},      /* CSI as one character of C1 */
        {"\x9b", "?"},           /* the same as the single byte that some terminals interpret */
        {"\xe2\x80\xae", "???"}, /* RIGHT-TO-LEFT OVERRIDE */
        {"\xe2\x81\xa6x\xe2\x81\xa9", "???x???"}, /* isolates */
        {"\xd8\x9c\xe2\x80\x8e\xe2\x80\xa8", "????????"},
        {"a\xe2\x80\x8b"
         "b\xef\xbb\xbf",
         "a???b???"},                                     /* ZERO WIDTH SPACE, byte order mark */
        {"\xf3\xa0\x80\x80\xf3\xa0\x81\xbf", "????????"}, /* the first and the last tag character */
        {"\xc2\xad\xc2\xae\xef\xb8\x8f", "??\xc2\xae???"},
        {"\xc0\x8a \xe0\x80\x8a", "?? ???"}, /* overlong encodings of newline */
        {"\xed\xa0\x80", "???"},             /* half of a surrogate */
        {"\xf4\x90\x80\x80", "????"},        /* beyond the last character */
        {"ab\xc3", "ab?"},
        {"\xe2\x82", "??"},
        {"\xc3(", "?("},
    };
    for (size_t i = 0; i < GN_ARRAY_SIZE(all); i++) {
        char text[64];
        const size_t n = strlen(all[i].text);
        memcpy(text, all[i].text, n + 1);
        gn_text_clean(text, n);
        assert_string_equal(text, all[i].clean);
    }
}

static void parts_are_what_people_write(void **state)
{
    static const struct {
        const char *text;
        uint32_t part;
    } good[] = {
        {"0", 0},          {"none", 0},
        {"0%", 0},         {"0.0", 0},
        {"1", 1000000},    {"1.0", 1000000},
        {"100%", 1000000}, {"100.000%", 1000000},
        {"0.25", 250000},  {"25%", 250000},
        {".5", 500000},    {"12.5%", 125000},
        {"0.000001", 1},   {"0.0001%", 1},
        {"007%", 70000},   {"0.3333333", 333333},
        {"1.", 1000000},   {"0.99999999", 999999},
    };
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "is not a part"},
        {"%", "is not a part"},
        {".", "is not a part"},
        {"x", "is not a part"},
        {"0.5x", "is not a part"},
        {"0.5%%", "is not a part"},
        {"0,5", "is not a part"},
        {"1e-1", "is not a part"},
        {"+0.5", "is not a part"},
        {" 0.5", "is not a part"},
        {"0.5 ", "is not a part"},
        {"0x1", "is not a part"},
        {"nan", "is not a part"},
        {"inf", "is not a part"},
        {"None", "is not a part"},
        {"0.5.5", "is not a part"},
        {"-0.1", "negative"},
        {"-25%", "negative"},
        {"--1", "is not a part"},
        {"1.5", "more than the whole"},
        {"25", "more than the whole"},
        {"101%", "more than the whole"},
        {"1.0000001", "more than the whole"},
        {"100.00001%", "more than the whole"},
        {"99999999999999999999999999", "more than the whole"},
        {"0.0000001", "less than a millionth"},
        {"0.00001%", "less than a millionth"},
    };
    for (size_t i = 0; i < GN_ARRAY_SIZE(good); i++) {
        uint32_t part = 7;
        assert_int_equal(gn_part_parse(good[i].text, &part, NULL), 0);
        assert_int_equal(part, good[i].part);
    }
    for (size_t i = 0; i < GN_ARRAY_SIZE(bad); i++) {
        struct gn_error err = {{0}, {0}};
        uint32_t part = 7;
        assert_int_equal(gn_part_parse(bad[i].text, &part, &err), -EINVAL);
        assert_int_equal(part, 7);
        assert_true(err.fix[0]);
        if (!strstr(err.what, bad[i].says))
            fail_msg("\"%s\" is not in \"%s\"", bad[i].says, err.what);
    }
    char text[16];
    assert_string_equal(gn_part_format(250000, text), "0.25");
    assert_string_equal(gn_part_format(1000000, text), "1");
    assert_string_equal(gn_part_format(0, text), "0");
    assert_string_equal(gn_part_format(1, text), "0.000001");
    assert_string_equal(gn_part_format(UINT32_MAX, text), "4294.967295");
}

struct item {
    int n;
    struct gn_list link;
};

/* The elements stay when the array moves. Where no room can be made, array and capacity stay. */
static void array_grows_and_keeps_elements(void **state)
{
    uint32_t n = 0, capacity = 0, *all = NULL, most = UINT32_C(1) << 31;
    (void)state;
    for (; n < 1000; n++) {
        uint32_t *more = gn_array_reserve(all, n, &capacity, sizeof *more);
        assert_non_null(more);
        assert_true(capacity > n);
        all = more;
        all[n] = n;
    }
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(all[i], i);
    assert_ptr_equal(gn_array_reserve(all, capacity - 1, &capacity, sizeof *all), all);
    assert_null(gn_array_reserve(all, most, &most, 1));
    assert_int_equal(most, UINT32_C(1) << 31);
    free(all);
}

static void list_keeps_order_while_removing(void **state)
{
    struct gn_list head = GN_LIST_INIT(head);
    struct item items[4];
    int seen = 0;
    for (int i = 0; i < 4; i++) {
        items[i].n = i;
        gn_list_append(&head, &items[i].link);
    }
    gn_list_for_each(it, &head, struct item, link)
    {
        assert_int_equal(it->n, seen++);
        gn_list_remove(&it->link);
    }
    assert_int_equal(seen, 4);
    assert_true(gn_list_empty(&head));
}

static void bytes_are_dropped_off_the_front(void **state)
{
    char a[3], c[4];
    struct iovec all[] = {{a, sizeof a}, {NULL, 0}, {c, sizeof c}, {NULL, 0}}, *iov = all;
    int n = 4;
    (void)state;
    gn_iov_advance(&iov, &n, 2);
    assert_true(n == 4 && iov->iov_base == a + 2 && iov->iov_len == 1);
    gn_iov_advance(&iov, &n, 1);
    assert_true(n == 2 && iov->iov_base == c && iov->iov_len == sizeof c);
    gn_iov_advance(&iov, &n, 0);
    assert_int_equal(n, 2);
    gn_iov_advance(&iov, &n, 4);
    assert_int_equal(n, 0);
}

static void put(const char *root, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* The narrowest limit decides. */
static void room_is_what_machine_and_groups_leave(void **state)
{
    static const char *const folders[] = {"self", "g", "g/a", "g/a/b"};
    static const char *const files[] = {"meminfo",          "self/cgroup",    "g/memory.max",
                                        "g/memory.current", "g/a/memory.max", "g/a/memory.current",
                                        "g/a/b/memory.max"};
    char root[] = "/tmp/gantry-room-XXXXXX", groups[64], path[256];
    assert_non_null(mkdtemp(root));
    snprintf(groups, sizeof groups, "%s/g", root);
    assert_int_equal(gn_room_by(root, groups), 0);
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    put(root, "meminfo", "MemTotal:  9 kB\nMemAvailable:     5000 kB\n");
    assert_int_equal(gn_room_by(root, groups), 5000 * 1024);
    put(root, "self/cgroup", "1:name=systemd:/else\n0::/a/b\n");
    put(root, "g/a/b/memory.max", "max\n");
    assert_int_equal(gn_room_by(root, groups), 5000 * 1024);
    put(root, "g/a/memory.max", "2000000\n");
    put(root, "g/a/memory.current", "500000\n");
    assert_int_equal(gn_room_by(root, groups), 1500000);
    put(root, "g/memory.max", "2000000\n");
    put(root, "g/memory.current", "2500000\n");
    assert_int_equal(gn_room_by(root, groups), 0);
    put(root, "self/cgroup", "0::/\n");
    put(root, "g/memory.current", "1\n");
    assert_int_equal(gn_room_by(root, groups), 1999999);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", root, files[i]);
        assert_int_equal(unlink(path), 0);
    }
    for (size_t i = 4; i--;) {
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        assert_int_equal(rmdir(path), 0);
    }
    assert_int_equal(rmdir(root), 0);
    assert_true(gn_room() > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_do_not_wrap),
        cmocka_unit_test(arithmetic_reports_overflow),
        cmocka_unit_test(failures_carry_a_sentence),
        cmocka_unit_test(texts_are_cleaned),
        cmocka_unit_test(parts_are_what_people_write),
        cmocka_unit_test(array_grows_and_keeps_elements),
        cmocka_unit_test(list_keeps_order_while_removing),
        cmocka_unit_test(bytes_are_dropped_off_the_front),
        cmocka_unit_test(room_is_what_machine_and_groups_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
