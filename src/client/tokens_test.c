/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the parsing of --token-file and the choice of a token for a tenant. */
#include "client/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define BLUE  "blue-has-a-token-that-is-long-enough"
#define OTHER "another-token-as-long-as-that-one"

/* The test's working directory holds `blue`, `other`, `red=x` (a token each) and `short`. */
static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(name, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int make_folder(void **state)
{
    static char folder[] = "/tmp/gn-tokens-XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) < 0)
        return -1;
    write_file("blue", BLUE "\n");
    write_file("other", OTHER);
    write_file("red=x", OTHER);
    write_file("short", "1234\n");
    *state = folder;
    return 0;
}

static int remove_folder(void **state)
{
    return unlink("blue") || unlink("other") || unlink("red=x") || unlink("short") || chdir("/") ||
                   rmdir(*state)
               ? -1
               : 0;
}

static int take(struct gn_client_tokens *ret, struct gn_error *err, const char *a, const char *b)
{
    const char *const files[] = {a, b};
    *err = (struct gn_error){{0}, {0}};
    return gn_client_tokens_read(files, !!a + !!b, ret, err);
}

static void a_tenant_has_its_own(void **state)
{
    struct gn_client_tokens t;
    struct gn_error err;
    assert_int_equal(take(&t, &err, "blue=blue", "other"), 0);
    assert_string_equal(gn_client_tokens_find(&t, "blue"), BLUE);
    assert_string_equal(gn_client_tokens_find(&t, "red"), OTHER);
    assert_int_equal(take(&t, &err, "other", "blue=blue"), 0);
    assert_string_equal(gn_client_tokens_find(&t, "blue"), BLUE);
    assert_int_equal(take(&t, &err, "blue=blue", NULL), 0);
    assert_null(gn_client_tokens_find(&t, "red"));
    assert_int_equal(take(&t, &err, NULL, NULL), 0);
    assert_null(gn_client_tokens_find(&t, "blue"));
    gn_client_tokens_forget(&t);
}

static void a_files_name_may_have_anything_in_it(void **state)
{
    struct gn_client_tokens t;
    struct gn_error err;
    assert_int_equal(take(&t, &err, "./red=x", NULL), 0);
    assert_string_equal(gn_client_tokens_find(&t, "blue"), OTHER);
    assert_int_equal(take(&t, &err, "blue=red=x", NULL), 0);
    assert_string_equal(gn_client_tokens_find(&t, "blue"), OTHER);
    assert_null(gn_client_tokens_find(&t, "red"));
    /* The token of tenant red in the file x, which does not exist. */
    assert_int_equal(take(&t, &err, "red=x", NULL), -ENOENT);
}

static void what_is_none_is_said(void **state)
{
    struct gn_client_tokens t;
    struct gn_error err;
    assert_int_equal(take(&t, &err, "blue=short", NULL), -EINVAL);
    assert_non_null(strstr(err.what, "16 to 255 characters"));
    assert_int_equal(take(&t, &err, "blue=nothing", NULL), -ENOENT);
    assert_non_null(strstr(err.what, "nothing"));
    assert_int_equal(take(&t, &err, "blue=blue", "blue=other"), -EINVAL);
    assert_non_null(strstr(err.what, "for the tenant blue"));
    assert_int_equal(take(&t, &err, "blue", "other"), -EINVAL);
    assert_non_null(strstr(err.what, "for all others"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tenant_has_its_own),
        cmocka_unit_test(a_files_name_may_have_anything_in_it),
        cmocka_unit_test(what_is_none_is_said),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
