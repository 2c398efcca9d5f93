/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the parts of `gantry` that need neither a daemon nor a terminal: sizes, suggestions, the
 * command line.
 */
#include "base/size.h"
#include "ctl/ctl.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "base/checked.h"

static void sizes_are_powers_of_1024(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},
                {"7", 7},
                {"1K", 1024},
                {"3m", 3u << 20},
                {"2G", 2ull << 30},
                {"5T", 5ull << 40},
                {"18446744073709551615", UINT64_MAX},
                {"16777215T", 16777215ull << 40}};
    static const char *const bad[] = {"",
                                      "K",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1.5G",
                                      "1KB",
                                      "1 K",
                                      "0x10",
                                      "1P",
                                      "1k1",
                                      "18446744073709551616",
                                      "16777216T"};
    struct gn_error err;
    for (size_t i = 0; i < GN_ARRAY_SIZE(good); i++) {
        uint64_t n = 99;
        assert_int_equal(gn_size_parse(good[i].text, &n, &err), 0);
        assert_true(n == good[i].bytes);
    }
    for (size_t i = 0; i < GN_ARRAY_SIZE(bad); i++) {
        uint64_t n = 99;
        assert_int_equal(gn_size_parse(bad[i], &n, &err), -EINVAL);
        assert_int_equal(n, 99);
    }
}

static void sizes_are_short(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } all[] = {{0, "0"},
               {1023, "1023"},
               {1024, "1K"},
               {1536, "1.5K"},
               {1048575, "1M"},
               {64u << 20, "64M"},
               {(uint64_t)2 << 40, "2T"},
               {UINT64_MAX, "16777216T"}};
    char text[16];
    for (size_t i = 0; i < GN_ARRAY_SIZE(all); i++)
        assert_string_equal(gn_ctl_format_size(all[i].bytes, text), all[i].text);
}

static const char *const names[] = {"run", "ls", "devices", "doctor", "help"};

static const char *name(int i)
{
    return names[i];
}

static void a_near_name_is_suggested(void **state)
{
    static const struct {
        const char *word, *name;
    } all[] = {{"rnu", "run"},     {"lss", "ls"},    {"device", "devices"}, {"docotr", "doctor"},
               {"dev", "devices"}, {"hlep", "help"}, {"policy", NULL},      {"top", NULL},
               {"", NULL},         {"x", NULL}};
    char endless[1000];
    for (size_t i = 0; i < GN_ARRAY_SIZE(all); i++) {
        const char *got = gn_ctl_nearest(all[i].word, name, GN_ARRAY_SIZE(names));
        if (all[i].name)
            assert_string_equal(got, all[i].name);
        else
            assert_null(got);
    }
    memset(endless, 'r', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    assert_null(gn_ctl_nearest(endless, name, GN_ARRAY_SIZE(names)));
}

static const struct gn_ctl_command run = {
    .name = "run", .options = GN_OPTION_CONNECT | GN_OPTION_RUN, .max_rest = -1};
static const struct gn_ctl_command ls = {
    .name = "ls", .options = GN_OPTION_CONNECT | GN_OPTION_JSON, .max_rest = 0};

static const struct gn_ctl_command tenant = {
    .name = "tenant", .options = GN_OPTION_TENANT | GN_OPTION_ANYWHERE, .max_rest = 2};

static void options_end_where_the_program_begins(void **state)
{
    struct gn_error err = {{0}, {0}};
    struct gn_ctl_args args;
    char *argv[] = {(char[]){"run"},  (char[]){"--weight=7"}, (char[]){"--memory"}, (char[]){"2K"},
                    (char[]){"prog"}, (char[]){"--json"},     (char[]){"--"},       NULL};
    assert_int_equal(gn_ctl_parse(&run, 7, argv, &args, &err), 0);
    assert_int_equal(args.weight, 7);
    assert_int_equal(args.memory_bytes, 2048);
    assert_false(args.json);
    assert_ptr_equal(args.rest, argv + 4);

    char *dashes[] = {(char[]){"run"}, (char[]){"--"}, (char[]){"--help"}, NULL};
    assert_int_equal(gn_ctl_parse(&run, 3, dashes, &args, &err), 0);
    assert_false(args.help);
    assert_string_equal(args.rest[0], "--help");
}

static void parts_are_taken(void **state)
{
    struct gn_error err = {{0}, {0}};
    struct gn_ctl_args args;
    char *argv[] = {(char[]){"tenant"},  (char[]){"--cap=25%"}, (char[]){"set"},
                    (char[]){"--floor"}, (char[]){"none"},      NULL};
    assert_int_equal(gn_ctl_parse(&tenant, 5, argv, &args, &err), 0);
    assert_true(args.has_cap && args.cap == 250000 && args.has_floor && args.floor == 0);
    assert_string_equal(args.rest[0], "set");
    argv[1] = NULL;
    assert_int_equal(gn_ctl_parse(&tenant, 1, argv, &args, &err), 0);
    assert_false(args.has_cap || args.has_floor);
}

static void wrong_words_get_a_sentence(void **state)
{
    static const struct {
        const struct gn_ctl_command *command;
        const char *words[3];
        const char *says;
    } all[] = {
        {&ls, {"--jsn"}, "unknown option --jsn"},
        {&ls, {"--weight", "1"}, "unknown option --weight"},
        {&ls, {"--json=1"}, "takes no value"},
        {&ls, {"--connect"}, "needs a value"},
        {&ls, {"--connect="}, "needs an address"},
        {&ls, {"x"}, "unexpected argument \"x\""},
        {&ls, {"-j"}, "unknown option -j"},
        {&run, {"--json", "x"}, "unknown option --json"},
        {&run, {"--tenant", "a b", "x"}, "not a tenant's name"},
        {&run, {"--tenant", "", "x"}, "not a tenant's name"},
        {&run, {"--tenant", "caf\xc3\xa9", "x"}, "not a tenant's name"},
        {&run, {"--weight", "0", "x"}, "not a weight"},
        {&run, {"--weight", "1000001", "x"}, "not a weight"},
        {&run, {"--weight", "-1", "x"}, "not a weight"},
        {&run, {"--weight", "1e3", "x"}, "not a weight"},
        {&run, {"--cap", "1", "x"}, "unknown option --cap"},
        {&tenant, {"--cap", "1.5"}, "more than the whole device"},
        {&tenant, {"--cap", "-1"}, "cannot be negative"},
        {&tenant, {"--cap="}, "is not a part of a device"},
        {&tenant, {"--floor", "25"}, "more than the whole device"},
        {&tenant, {"--floor", "half"}, "is not a part of a device"},
        {&run, {"--memory", "0", "x"}, "allows no memory"},
        {&run, {"--memory", "lots", "x"}, "not a size"},
        {&tenant, {"--memory", "8388608T"}, "more than any device has"},
        {&run, {"--mode", "local", "x"}, "not a mode"},
        {&run, {"--mode", "fast", "x"}, "not a mode"},
    };
    for (size_t i = 0; i < GN_ARRAY_SIZE(all); i++) {
        struct gn_error err = {{0}, {0}};
        struct gn_ctl_args args;
        char words[4][64] = {"command"}, *argv[5] = {words[0]};
        int n = 1;
        for (int j = 0; j < 3 && all[i].words[j]; j++, n++) {
            strcpy(words[n], all[i].words[j]);
            argv[n] = words[n];
        }
        assert_int_equal(gn_ctl_parse(all[i].command, n, argv, &args, &err), -EINVAL);
        if (!strstr(err.what, all[i].says))
            fail_msg("\"%s\" is not in \"%s\"", all[i].says, err.what);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_powers_of_1024),
        cmocka_unit_test(sizes_are_short),
        cmocka_unit_test(a_near_name_is_suggested),
        cmocka_unit_test(options_end_where_the_program_begins),
        cmocka_unit_test(wrong_words_get_a_sentence),
        cmocka_unit_test(parts_are_taken),
    };
    return cmocka_run_group_tests_name("ctl", tests, NULL, NULL);
}
