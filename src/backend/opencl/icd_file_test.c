/* SPDX-License-Identifier: Apache-2.0 */
/* The .icd files that name drivers, and which library is Gantry's own. */
#include "backend/api_info.h"
#include "backend/opencl/icd_file.h"
#include "base/checked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static void an_icd_file_names_a_library(void **state)
{
    static const struct {
        const char *text, *library; /* NULL: none */
    } cases[] = {{"libx.so\n", "libx.so"},
                 {"libx.so \t\r\nmore", "libx.so"},
                 {"libx.so", "libx.so"},
                 {"\nlibx.so\n", NULL},
                 {"", NULL}};
    char path[] = "/tmp/gn-icd-XXXXXX", library[32];
    (void)state;
    assert_true(gn_icd_is_name("a.icd") && !gn_icd_is_name(".icd") && !gn_icd_is_name("a.icd~") &&
                !gn_icd_is_name("a"));
    close(mkstemp(path));
    for (size_t i = 0; i < GN_ARRAY_SIZE(cases); i++) {
        FILE *f = fopen(path, "we");
        fputs(cases[i].text, f);
        fclose(f);
        assert_int_equal(gn_icd_read(path, library, sizeof library), cases[i].library != NULL);
        if (cases[i].library)
            assert_string_equal(library, cases[i].library);
    }
    unlink(path);
    assert_false(gn_icd_read(path, library, sizeof library));
}

static void test_front_ends(void **state)
{
    (void)state;
    assert_true(gn_api_is_front_end("libgantry-opencl.so"));
    assert_true(gn_api_is_front_end("/usr/lib/libgantry-opencl.so"));
    assert_false(gn_api_is_front_end("/usr/lib/libgantry-opencl.so/libpocl.so"));
    assert_false(gn_api_is_front_end("libpocl.so"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_icd_file_names_a_library),
        cmocka_unit_test(test_front_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
