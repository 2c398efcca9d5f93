/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that a file appears complete or not at all: examines its directory at each step. */
#include "ctl/whole_file.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

struct place {
    char folder[32], path[48];
    struct gn_whole_file file;
    struct gn_error err;
};

/* Counts the files in the directory; `last` is the name of the last one. */
static int shown(const struct place *p, char last[static 256])
{
    DIR *d = opendir(p->folder);
    int n = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        n++;
        snprintf(last, 256, "%s", e->d_name);
    }
    closedir(d);
    return n;
}

static void holds(const char *path, const char *text)
{
    char got[64] = {0};
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_true(fread(got, 1, sizeof got - 1, f) == strlen(text));
    assert_string_equal(got, text);
    fclose(f);
}

static void fill(struct place *p, const char *text)
{
    FILE *f = fopen(p->path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

static void begin(struct place *p)
{
    assert_int_equal(gn_whole_file_open(&p->file, p->path, &p->err), 0);
    assert_int_equal(write(p->file.fd, "whole", 5), 5);
}

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    assert_non_null(p);
    strcpy(p->folder, "/tmp/gn-whole-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    snprintf(p->path, sizeof p->path, "%s/a", p->folder);
    p->file.fd = -1;
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    char last[256];
    gn_whole_file_close(&p->file, false);
    gn_whole_file_fini(&p->file);
    if (shown(p, last))
        unlink(p->path);
    assert_int_equal(rmdir(p->folder), 0);
    free(p);
    return 0;
}

static void shown_when_whole(void **state)
{
    struct place *p = *state;
    char last[256];
    struct stat st;
    begin(p);
    /* On a file system without O_TMPFILE the temporary name is visible. */
    assert_int_equal(shown(p, last), p->file.temporary ? 1 : 0);
    assert_int_equal(gn_whole_file_sync(&p->file, &p->err), 0);
    assert_int_equal(gn_whole_file_name(&p->file, &p->err), 0);
    assert_int_equal(shown(p, last), 1);
    holds(p->path, "whole");
    assert_int_equal(stat(p->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    gn_whole_file_close(&p->file, false);
    holds(p->path, "whole");
}

static void kept_before_it_has_its_name(void **state)
{
    struct place *p = *state;
    char last[256];
    begin(p);
    assert_int_equal(gn_whole_file_keep(&p->file, &p->err), 0);
    assert_non_null(p->file.temporary);
    assert_int_equal(shown(p, last), 1);
    assert_int_equal(strncmp(last, "a.", 2), 0);
    holds(p->file.temporary, "whole");
    assert_int_equal(gn_whole_file_name(&p->file, &p->err), 0);
    assert_int_equal(shown(p, last), 1);
    assert_string_equal(last, "a");
    holds(p->path, "whole");
}

static void kept_and_given_up(void **state)
{
    struct place *p = *state;
    char last[256];
    begin(p);
    assert_int_equal(gn_whole_file_keep(&p->file, &p->err), 0);
    gn_whole_file_close(&p->file, false);
    assert_int_equal(shown(p, last), 0);
}

static void kept_for_good(void **state)
{
    struct place *p = *state;
    char last[256];
    begin(p);
    assert_int_equal(gn_whole_file_keep(&p->file, &p->err), 0);
    gn_whole_file_close(&p->file, true);
    assert_int_equal(shown(p, last), 1);
    holds(p->file.temporary, "whole");
    unlink(p->file.temporary);
}

static void takes_the_place_of_what_was_there(void **state)
{
    struct place *p = *state;
    char last[256];
    fill(p, "old");
    begin(p);
    holds(p->path, "old");
    assert_int_equal(gn_whole_file_name(&p->file, &p->err), 0);
    holds(p->path, "whole");
    assert_int_equal(shown(p, last), 1);
}

static void what_was_there_stays_when_it_fails(void **state)
{
    struct place *p = *state;
    char last[256];
    fill(p, "old");
    begin(p);
    gn_whole_file_close(&p->file, false);
    holds(p->path, "old");
    assert_int_equal(shown(p, last), 1);
}

static void places_that_do_not_do(void **state)
{
    struct place *p = *state;
    assert_int_equal(gn_whole_file_open(&p->file, p->folder, &p->err), -EEXIST);
    assert_non_null(strstr(p->err.what, "not a regular file"));
    gn_whole_file_close(&p->file, false);
    gn_whole_file_fini(&p->file);
    assert_int_equal(gn_whole_file_open(&p->file, "/none/such", &p->err), -ENOENT);
    assert_non_null(strstr(p->err.what, "No such file"));
}

int main(void)
{
#define EACH(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        EACH(shown_when_whole),
        EACH(kept_before_it_has_its_name),
        EACH(kept_and_given_up),
        EACH(kept_for_good),
        EACH(takes_the_place_of_what_was_there),
        EACH(what_was_there_stays_when_it_fails),
        EACH(places_that_do_not_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
