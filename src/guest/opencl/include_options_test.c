/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of the folders found in build options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guest/opencl/include_options.h"

static char found[65536];

static void note(void *ctx, const char *path)
{
    (void)ctx;
    strcat(strcat(found, path), "|");
}

static void expect(const char *options, const char *folders)
{
    found[0] = 0;
    gn_include_options(options, note, NULL);
    assert_string_equal(found, folders);
}

static void folders_are_found(void **state)
{
    (void)state;
    expect(NULL, "");
    expect("", "");
    expect("-cl-fast-relaxed-math -DI=1 -w", "");
    expect("-I/a/b", "/a/b|");
    expect("-I /a/b", "/a/b|");
    expect("  -Irel\t-I\n.. -D X -I a/./b/ ", "rel|..|a/./b/|");
    expect("-I/a -I/b -I /c", "/a|/b|/c|");
}

static void every_reading_of_quotes_is_taken(void **state)
{
    (void)state;
    expect("-I \"/with blank\"", "/with blank|\"/with blank\"|");
    expect("-I\"/with blank\" -Dx", "/with blank|\"/with blank\"|");
    expect("\"-I/with blank\"", "/with blank|\"-I/with blank\"|");
    expect("-I /with\\ blank", "/with blank|/with\\ blank|");
    expect("-I '/it\\s'", "/it\\s|'/it\\s'|");
}

static void what_is_unfinished_names_nothing(void **state)
{
    (void)state;
    expect("-I", "");
    expect("-I \"", "");
    expect("-I -I", "-I|"); /* a folder of that name */
    expect("-I \"unclosed", "unclosed|\"unclosed|");
    expect("-D\"A -I/not/this\"", "");
    expect("-I\\", "\\|");
}

static void nothing_is_too_long(void **state)
{
    char *options = malloc(20000);
    (void)state;
    memset(options, 'a', 20000);
    memcpy(options, "-I/", 3);
    options[19999] = 0;
    found[0] = 0;
    gn_include_options(options, note, NULL);
    assert_true(strlen(found) < 4096); /* truncated: no such folder can exist */
    free(options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_found),
        cmocka_unit_test(every_reading_of_quotes_is_taken),
        cmocka_unit_test(what_is_unfinished_names_nothing),
        cmocka_unit_test(nothing_is_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
