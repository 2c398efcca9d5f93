/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit test of addresses: parsing, printing, and the default.
 */
#include "base/checked.h"
#include "link/address.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static void addresses_are_parsed(void **state)
{
    struct gn_address a;
    struct gn_error err;
    char longest[GN_ADDRESS_MAX_HOST + 16];
    assert_int_equal(gn_address_parse("unix:/tmp/g.sock", &a, &err), 0);
    assert_string_equal(a.path, "/tmp/g.sock");
    assert_int_equal(gn_address_parse("unix:relative", &a, NULL), 0);
    assert_string_equal(a.path, "relative");
    assert_int_equal(gn_address_parse("unix:", &a, &err), -EINVAL);
    assert_int_equal(gn_address_parse("", &a, &err), -EINVAL);
    assert_int_equal(gn_address_parse("/tmp/g.sock", &a, &err), -EINVAL);
    assert_int_equal(gn_address_parse("UNIX:/tmp/g.sock", &a, &err), -EINVAL);
    assert_false(a.tcp);
    assert_int_equal(gn_address_parse("tcp:host:1", &a, &err), 0);
    assert_true(a.tcp);
    assert_string_equal(a.host, "host");
    assert_int_equal(a.port, 1);
    assert_int_equal(gn_address_parse("tcp:[::1]:65535", &a, &err), 0);
    assert_string_equal(a.host, "::1");
    assert_int_equal(a.port, 65535);
    static const char *const bad[] = {"tcp:",           "tcp:host",    "tcp:host:",   "tcp::1",
                                      "tcp:host:65536", "tcp:host:1x", "tcp:host:-1", "tcp:::1:2",
                                      "tcp:[::1]",      "tcp:[::1]2",  "tcp:[]:2",    "tcp:[::1:2",
                                      "tcp:host: 1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(gn_address_parse(bad[i], &a, &err), -EINVAL);
        assert_non_null(strstr(err.what, bad[i]));
    }
    memset(longest, 'h', sizeof longest);
    memcpy(longest, "tcp:", 4);
    memcpy(longest + 4 + GN_ADDRESS_MAX_HOST, ":1", 3);
    assert_int_equal(gn_address_parse(longest, &a, &err), 0);
    memcpy(longest + 4 + GN_ADDRESS_MAX_HOST, "h:1", 4);
    assert_int_equal(gn_address_parse(longest, &a, &err), -EINVAL);

    memset(longest, 'p', sizeof longest);
    memcpy(longest, "unix:", 5);
    longest[5 + GN_ADDRESS_MAX_PATH] = 0;
    assert_int_equal(gn_address_parse(longest, &a, &err), 0);
    assert_int_equal(strlen(a.path), GN_ADDRESS_MAX_PATH);
    longest[5 + GN_ADDRESS_MAX_PATH] = 'p';
    longest[6 + GN_ADDRESS_MAX_PATH] = 0;
    assert_int_equal(gn_address_parse(longest, &a, &err), -ENAMETOOLONG);
}

static void the_default_is_looked_for_in_order(void **state)
{
    struct gn_address a;
    char dir[] = "/tmp/gantry-address-XXXXXX", path[128];
    assert_non_null(mkdtemp(dir));
    setenv("GANTRY_CONNECT", "unix:/from/env", 1);
    setenv("XDG_RUNTIME_DIR", dir, 1);
    assert_int_equal(gn_address_resolve("unix:/given", &a, NULL), 0);
    assert_string_equal(a.path, "/given");
    assert_int_equal(gn_address_resolve(NULL, &a, NULL), 0);
    assert_string_equal(a.path, "/from/env");
    setenv("GANTRY_CONNECT", "nonsense", 1);
    assert_int_equal(gn_address_resolve(NULL, &a, NULL), -EINVAL);

    /* XDG_RUNTIME_DIR counts only if the socket file exists. */
    setenv("GANTRY_CONNECT", "", 1);
    assert_int_equal(gn_address_resolve(NULL, &a, NULL), 0);
    assert_string_equal(a.path, "/run/gantry/gantry.sock");
    snprintf(path, sizeof path, "%s/gantry", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/gantry/gantry.sock", dir);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(gn_address_resolve(NULL, &a, NULL), 0);
    assert_string_equal(a.path, path);
    setenv("XDG_RUNTIME_DIR", "relative", 1);
    assert_int_equal(gn_address_resolve(NULL, &a, NULL), 0);
    assert_string_equal(a.path, "/run/gantry/gantry.sock");
    unlink(path);
    *strrchr(path, '/') = 0;
    rmdir(path);
    rmdir(dir);
}

static void what_is_printed_is_parsed_again(void **state)
{
    static const char *const texts[] = {"unix:/run/gantry/gantry.sock", "tcp:host:7000",
                                        "tcp:[::1]:65535", "tcp:127.0.0.1:1"};
    for (size_t i = 0; i < GN_ARRAY_SIZE(texts); i++) {
        struct gn_address a;
        char text[GN_ADDRESS_TEXT_BYTES];
        assert_int_equal(gn_address_parse(texts[i], &a, NULL), 0);
        gn_address_print(&a, text);
        assert_string_equal(text, texts[i]);
    }
}

static void a_daemon_has_a_default_too(void **state)
{
    struct gn_address a;
    assert_int_equal(gn_address_default_socket(0, "/run/user/0", &a, NULL), 0);
    assert_string_equal(a.path, "/run/gantry/gantry.sock");
    assert_int_equal(gn_address_default_socket(7, "/run/user/7", &a, NULL), 0);
    assert_string_equal(a.path, "/run/user/7/gantry/gantry.sock");
    assert_int_equal(gn_address_default_socket(7, NULL, &a, NULL), -ENOENT);
    assert_int_equal(gn_address_default_socket(7, "relative", &a, NULL), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_parsed),
        cmocka_unit_test(the_default_is_looked_for_in_order),
        cmocka_unit_test(what_is_printed_is_parsed_again),
        cmocka_unit_test(a_daemon_has_a_default_too),
    };
    return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
