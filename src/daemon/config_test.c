/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of config.c, options.c and selector.c: valid files and command lines, and an error for each
 * mistake. */
#include "daemon/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/checked.h"
#include "link/worker_wire.h"
#include "place/place.h"

static int parse(const char *text, struct gn_config *c, struct gn_error *err)
{
    memset(c, 0, sizeof *c);
    return gn_config_parse("test.conf", text, strlen(text), c, err);
}

static void a_configuration_is_read(void **state)
{
    struct gn_config c;
    struct gn_error err;
    assert_int_equal(parse("# comment\n"
                           "; another\n"
                           "\n"
                           "[gantryd]\r\n"
                           "socket = /tmp/a b.sock \n"
                           "device=Card\n"
                           "  device = Other: Name:1,present-as=gpu\n"
                           "[ device Card:0 ]\n"
                           "present-as = accelerator\n"
                           "slice = 30\n"
                           "memory = 64M\n"
                           "slot = 2M\n"
                           "[gantryd]\n"
                           "device = Third",
                           &c, &err),
                     0);
    assert_string_equal(c.socket, "/tmp/a b.sock");
    assert_int_equal(c.n_devices, 3);
    assert_string_equal(c.devices[0].name, "Card");
    assert_int_equal(c.devices[0].index, -1);
    assert_int_equal(c.devices[0].present_as, 0);
    assert_string_equal(c.devices[1].name, "Other: Name");
    assert_int_equal(c.devices[1].index, 1);
    assert_int_equal(c.devices[1].present_as, GN_DEVICE_GPU);
    assert_string_equal(c.devices[2].name, "Third");
    assert_int_equal(c.n_settings, 1);
    assert_string_equal(c.settings[0].name, "Card");
    assert_int_equal(c.settings[0].index, 0);
    assert_int_equal(c.settings[0].present_as, GN_DEVICE_ACCELERATOR);
    assert_int_equal(c.settings[0].slice_ns, 30000000);
    assert_int_equal(c.settings[0].memory_bytes, 64 << 20);
    assert_int_equal(c.settings[0].slot_bytes, 2 << 20);
    assert_int_equal(c.slice_ns, 0);
    assert_int_equal(parse("", &c, &err), 0);
}

static void mistakes_name_their_line(void **state)
{
    static const struct {
        const char *text;
        const char *where;
        const char *what;
    } bad[] = {
        {"socket = x\n", "test.conf:1: ", "before any section"},
        {"[gantryd]\nsocket\n", "test.conf:2: ", "malformed line \"socket\""},
        {"[gantryd]\n= x\n", "test.conf:2: ", "malformed line"},
        {"[gantryd]\n\n# c\nsocket =\n", "test.conf:4: ", "no value for \"socket\""},
        {"[gantryd]\nsockte = x\n", "test.conf:2: ", "unknown key \"sockte\""},
        {"[gantryd]\npresent-as = gpu\n", "test.conf:2: ", "unknown key \"present-as\""},
        {"[gantryd]\nlisten = tcp:x\n", "test.conf:2: ", "is not an address"},
        {"[gantryd]\nlisten = unix:/x\n", "test.conf:2: ", "not an address to listen at"},
        {"[gantryd]\ninsecure = 1\n", "test.conf:2: ", "insecure cannot be"},
        {"[gantryd]\ntcp-grace = 5s\n", "test.conf:2: ", "the grace cannot be"},
        {"[gantryd]\nsocket = x\nsocket = y\n", "test.conf:3: ", "given twice"},
        {"[gantryd]\ndevice = x,present-as=toaster\n", "test.conf:2: ", "toaster"},
        {"[gantryd]\ndevice = :3\n", "test.conf:2: ", "names no device"},
        {"[gantryd\n", "test.conf:1: ", "malformed section"},
        {"[]\n", "test.conf:1: ", "unknown section"},
        {"[tenant]\n", "test.conf:1: ", "unknown section"},
        {"[tenant a b]\n", "test.conf:1: ", "\"a b\" is not a tenant's name"},
        {"[tenant a/b]\n", "test.conf:1: ", "not a tenant's name"},
        {"[tenant a]\n[tenant b]\n[tenant a]\n",
         "test.conf:3: ", "a second section of the tenant \"a\""},
        {"[tenant a]\ncolour = blue\n", "test.conf:2: ", "unknown key \"colour\""},
        {"[tenant a]\npresent-as = gpu\n", "test.conf:2: ", "unknown key"},
        {"[tenant a]\nweight =\n", "test.conf:2: ", "no value for \"weight\""},
        {"[tenant a]\nweight = 0\n", "test.conf:2: ", "\"0\" is not a weight"},
        {"[tenant a]\nweight = 1000001\n", "test.conf:2: ", "not a weight"},
        {"[tenant a]\nweight = -1\n", "test.conf:2: ", "not a weight"},
        {"[tenant a]\nweight = 1\nweight = 1\n", "test.conf:3: ", "given twice: \"weight\""},
        {"[tenant a]\ncap = 1.5\n", "test.conf:2: ", "\"1.5\" is more than the whole device"},
        {"[tenant a]\ncap = 101%\n", "test.conf:2: ", "more than the whole device"},
        {"[tenant a]\ncap = -0.1\n", "test.conf:2: ", "cannot be negative"},
        {"[tenant a]\nfloor = much\n", "test.conf:2: ", "\"much\" is not a part of a device"},
        {"[tenant a]\nfloor = 25\n", "test.conf:2: ", "more than the whole device"},
        {"[tenant a]\ncap = 1\ncap = 1\n", "test.conf:3: ", "given twice: \"cap\""},
        {"[tenant a]\nfloor = 1\nfloor = 1\n", "test.conf:3: ", "given twice: \"floor\""},
        {"[tenant a]\ncap = 25%\n\nfloor = 0.5\n[gantryd]\n",
         "test.conf:4: ", "floor of the tenant \"a\", 0.5, is above its cap, 0.25"},
        {"[tenant a]\nfloor = 0.5\ncap = 25%\n[gantryd]\n", "test.conf:3: ", "is above its cap"},
        {"[gantryd]\npolicy = fare\n", "test.conf:2: ", "there is no policy \"fare\""},
        {"[gantryd]\nslice = 0.01\n", "test.conf:2: ", "the slice cannot be"},
        {"[gantryd]\nstart-limit = 0\n", "test.conf:2: ", "the limit of a start cannot be"},
        {"[gantryd]\nbreach-pause = 0.5\n", "test.conf:2: ", "the pause after breaches cannot be"},
        {"[gantryd]\nkernel-limit = never\n", "test.conf:2: ", "the limit of a kernel cannot be"},
        {"[device a]\nmemory = 0\n", "test.conf:2: ", "a device cannot have memory ="},
        {"[device a]\nmemory = much\n", "test.conf:2: ", "\"much\" is not a size"},
        {"[device a]\nmemory = 1M\nmemory = 2M\n", "test.conf:3: ", "given twice"},
        {"[device a]\nslot = 0\n", "test.conf:2: ", "a slot cannot have \"0\""},
        {"[device a]\nslot = 1500K\n", "test.conf:2: ", "a slot cannot have \"1500K\""},
        {"[device a]\nslot = x\n", "test.conf:2: ", "\"x\" is not a size"},
        {"[device a]\nslot = 1M\nslot = 1M\n", "test.conf:3: ", "given twice: \"slot\""},
        {"[gantryd]\noversubscribe = on\n", "test.conf:2: ", "oversubscribe cannot be \"on\""},
        {"[gantryd]\nplace = left\n", "test.conf:2: ", "no placement policy \"left\""},
        {"[gantryd]\nswap-memory = 0\n", "test.conf:2: ", "evicted contents cannot be \"0\""},
        {"[gantryd]\nswap-share = 91%\n", "test.conf:2: ", "copies cannot be \"91%\""},
        {"[gantryd]\nresidency-max = 0\n", "test.conf:2: ", "residency period cannot be \"0\""},
        {"[gantryd]\nidle-after = 61min\n", "test.conf:2: ", "as idle cannot be \"61min\""},
        {"[device a]\nmemroy = 1M\n", "test.conf:2: ", "unknown key \"memroy\""},
        {"[tenant a]\nmemory = 0\n", "test.conf:2: ", "leaves nothing"},
        {"[tenant a]\nreserve = 1X\n", "test.conf:2: ", "\"1X\" is not a size"},
        {"[tenant a]\nreserve = 2M\nmemory = 1M\n[tenant b]\nweight = 1\n",
         "test.conf:3: ", "is above its memory limit, 1048576"},
        {"[tenant a]\nmemory = 1X\n", "test.conf:2: ", "\"1X\" is not a size"},
        {"[tenant a]\nmemory = 99999999999999T\n", "test.conf:2: ", "too large"},
        {"[tenant a]\nmemory = 1\nmemory = 2\n", "test.conf:3: ", "given twice"},
        {"[tenant a]\nvgpus = 0\n", "test.conf:2: ", "\"0\" is not a number of vGPUs"},
        {"[tenant a]\nvgpus = many\n", "test.conf:2: ", "\"many\" is not a number of vGPUs"},
        {"[tenant a]\nvgpus = 1\nvgpus = 2\n", "test.conf:3: ", "given twice"},
        {"[tenant a]\nuid = no-such-user-here\n",
         "test.conf:2: ", "there is no user \"no-such-user-here\""},
        {"[tenant a]\nuid = 4294967295\n", "test.conf:2: ", "there is no user"},
        {"[tenant a]\ngid = no-such-group-here\n", "test.conf:2: ", "there is no group"},
        {"[gantryd]\nlisten-control = unix:/x\n", "test.conf:2: ", "not an address to listen at"},
        {"[gantryd]\noperator-subject = "
         "0123456789012345678901234567890123456789012345678901234567890123\n",
         "test.conf:2: ", "is not a valid operator's name"},
        {"[tenant .]\n", "test.conf:1: ", "not a tenant's name"},
        {"[tenant ..]\n", "test.conf:1: ", "not a tenant's name"},
        {"[tenant a]\nuid = none\nuid = 5\n",
         "test.conf:3: ", "uid = none cannot be combined with others"},
        {"[tenant a]\nuid = any\nuid = none\n",
         "test.conf:3: ", "uid = none cannot be combined with others"},
        {"[tenant a]\nsocket = maybe\n", "test.conf:2: ", "socket cannot be \"maybe\""},
        {"[tenant a]\nsocket = yes\nsocket = yes\n", "test.conf:3: ", "given twice: \"socket\""},
        {"[tenant a]\nowner = kill, drain\n",
         "test.conf:2: ", "\"kill, drain\" is nothing that an owner can be allowed"},
        {"[tenant a]\nowner = ,\n", "test.conf:2: ", "nothing that an owner can be allowed"},
        {"[tenant a]\nmode = fast\n", "test.conf:2: ", "\"fast\" is not a mode"},
        {"[tenant a]\ndevice = x,present-as=gpu\n", "test.conf:2: ", "applies to all tenants"},
        {"[tenant a]\ndevice = :1\n", "test.conf:2: ", "names no device"},
        {"[tenant a]\ntoken-file = a\ntoken-file = b\n", "test.conf:3: ", "given twice"},
        {"[Gantryd]\n", "test.conf:1: ", "unknown section"},
        {"[device]\n", "test.conf:1: ", "unknown section"},
        {"[device x,present-as=gpu]\n", "test.conf:1: ", "a setting in a section's name"},
        {"[device x]\nslice = 0\n", "test.conf:2: ", "the slice cannot be \"0\""},
        {"[device x]\nslice = 30\nslice = 6\n", "test.conf:3: ", "given twice: \"slice\""},
        {"[device x]\npresent-as = dog\n", "test.conf:2: ", "presented as \"dog\""},
        {"[device x]\nsocket = y\n", "test.conf:2: ", "unknown key \"socket\""},
        {"[device x]\npresent-as = gpu\npresent-as = cpu\n", "test.conf:3: ", "given twice"},
    };
    for (size_t i = 0; i < GN_ARRAY_SIZE(bad); i++) {
        struct gn_config c;
        struct gn_error err = {{0}, {0}};
        assert_int_equal(parse(bad[i].text, &c, &err), -EBADMSG);
        if (strncmp(err.what, bad[i].where, strlen(bad[i].where)) != 0 ||
            !strstr(err.what, bad[i].what))
            fail_msg("\"%s\" gave \"%s\"", bad[i].text, err.what);
        assert_null(strchr(err.what, '\n'));
        gn_config_fini(&c);
    }
}

static void tenants_are_read(void **state)
{
    struct gn_config c;
    struct gn_error err;
    assert_int_equal(parse("[tenant default]\n"
                           "memory = 512M\n"
                           "[ tenant blue.team-1 ]\n"
                           "weight = 300\n"
                           "memory = 4g\n"
                           "cap = 75%\n"
                           "floor = 0.125\n"
                           "uid = 1000\n"
                           "uid = root\n"
                           "gid = 44\n"
                           "gid = root\n"
                           "mode = remote\n"
                           "mode = passthrough\n"
                           "device = Card\n"
                           "device = Other:1\n"
                           "token-file = /nonexistent/token\n"
                           "[gantryd]\n"
                           "socket = /s\n"
                           "[tenant open]\n"
                           "uid = any\n"
                           "vgpus = 12\n"
                           "memory = none\n",
                           &c, &err),
                     0);
    assert_int_equal(c.n_tenants, 3);
    const struct gn_tenant_rules *r = &c.tenants[0].rules;
    assert_string_equal(r->name, "default");
    assert_int_equal(r->weight, 100);
    assert_int_equal(r->memory_limit_bytes, 512 << 20);
    assert_int_equal(r->vgpus, 0);
    assert_false(gn_tenant_admits_others(r));
    r = &c.tenants[1].rules;
    assert_string_equal(r->name, "blue.team-1");
    assert_int_equal(r->weight, 300);
    assert_true(r->memory_limit_bytes == 4ull << 30);
    assert_int_equal(r->cap, 750000);
    assert_int_equal(r->floor, 125000);
    assert_int_equal(r->n_uids, 2);
    assert_int_equal(r->uids[0], 1000);
    assert_int_equal(r->uids[1], 0);
    assert_int_equal(r->n_gids, 2);
    assert_int_equal(r->gids[0], 44);
    assert_int_equal(r->modes, GN_MODE_REMOTE | GN_MODE_PASSTHROUGH);
    assert_int_equal(r->n_devices, 2);
    assert_int_equal(r->devices[1].index, 1);
    assert_string_equal(c.tenants[1].token_file, "/nonexistent/token");
    assert_int_equal(c.tenants[1].token_line, 16);
    assert_int_equal(c.tenants[1].floor_line, 7);
    assert_int_equal(r->n_token, 0);
    r = &c.tenants[2].rules;
    assert_true(r->any_uid && r->vgpus == 12 && !r->memory_limit_bytes && !r->cap && !r->floor);
    gn_config_fini(&c);
    assert_null(c.tenants);
}

static void token_files_are_read_with_the_file(void **state)
{
    char conf[] = "/tmp/gantry-config-XXXXXX", token[] = "/tmp/gantry-token-XXXXXX", text[128];
    static const struct {
        const char *token;
        const char *complaint; /* NULL: valid */
    } cases[] = {
        {"0123456789abcdef", NULL},
        {"0123456789abcdef \r\n", NULL},
        {"0123456789abcde", "16 to 255 characters, not 15"},
        {"", "is empty"},
        {"\n", "is empty"},
        {"0123456789 bcdef", "without blanks"},
        {"0123456789\x01_bcdef", "without blanks"},
        {"0123456789\xff_bcdef", "without blanks"},
    };
    for (size_t i = 0; i <= GN_ARRAY_SIZE(cases); i++) {
        struct gn_config c = {.n_devices = 0};
        struct gn_error err = {{0}, {0}};
        const bool there = i < GN_ARRAY_SIZE(cases);
        if (i == 0)
            close(mkstemp(conf)), close(mkstemp(token));
        FILE *f = fopen(token, "w");
        fputs(there ? cases[i].token : "", f);
        fclose(f);
        if (!there)
            unlink(token);
        f = fopen(conf, "w");
        snprintf(text, sizeof text, "\n[tenant a]\ntoken-file = %s\n", token);
        fputs(text, f);
        fclose(f);
        int rc = gn_config_read(conf, &c, &err);
        if (there && !cases[i].complaint) {
            assert_int_equal(rc, 0);
            assert_int_equal(c.tenants[0].rules.n_token, 16);
            assert_memory_equal(c.tenants[0].rules.token, "0123456789abcdef", 17);
        } else {
            assert_int_equal(rc, -EBADMSG);
            assert_non_null(strstr(err.what, ":3: "));
            assert_non_null(strstr(err.what, there ? cases[i].complaint : "No such file"));
        }
        gn_config_fini(&c);
    }
    unlink(conf);
}

static void rights_of_owners_and_rules_of_users(void **state)
{
    static const struct {
        const char *text;
        uint32_t owner;
        bool has_rule, socket;
    } cases[] = {
        {"[tenant a]\n", GN_RIGHT_KILL, false, false},
        {"[tenant a]\nowner = none\nsocket = yes\n", 0, false, true},
        {"[tenant a]\nowner = mode, migrate\nuid = none\n", GN_RIGHT_MODE | GN_RIGHT_MIGRATE, true,
         false},
        {"[tenant a]\nowner = restore\nowner = checkpoint kill\ngid = 0\n",
         GN_RIGHT_RESTORE | GN_RIGHT_CHECKPOINT | GN_RIGHT_KILL, true, false},
        {"[tenant a]\nsocket = no\nuid = 0\n", GN_RIGHT_KILL, true, false},
    };
    for (size_t i = 0; i < GN_ARRAY_SIZE(cases); i++) {
        struct gn_config c = {.n_devices = 0};
        struct gn_error err;
        assert_int_equal(gn_config_parse("f", cases[i].text, strlen(cases[i].text), &c, &err), 0);
        const struct gn_tenant_rules *r = &c.tenants[0].rules;
        assert_int_equal(r->owner, cases[i].owner);
        assert_int_equal(r->socket, cases[i].socket);
        assert_int_equal(gn_tenant_has_rule(r), cases[i].has_rule);
        gn_config_fini(&c);
    }
}

static void lines_that_are_no_text_are_refused(void **state)
{
    struct gn_config c = {.n_devices = 0};
    struct gn_error err;
    static char longest[5000];
    assert_int_equal(gn_config_parse("f", "[gantryd]\nso\0cket = x\n", 22, &c, &err), -EBADMSG);
    assert_non_null(strstr(err.what, "f:2:"));
    memset(longest, 'x', sizeof longest);
    assert_int_equal(gn_config_parse("f", longest, sizeof longest, &c, &err), -EBADMSG);
}

static void files_that_cannot_be_read_are_named(void **state)
{
    struct gn_config c = {.n_devices = 0};
    struct gn_error err;
    assert_int_equal(gn_config_read("/nonexistent/g.conf", &c, &err), -ENOENT);
    assert_non_null(strstr(err.what, "/nonexistent/g.conf"));
    assert_int_equal(gn_config_read("/tmp", &c, &err), -EBADMSG);
    assert_int_equal(gn_config_read("/dev/zero", &c, &err), -EBADMSG);
}

static void selectors_are_parsed_and_matched(void **state)
{
    struct gn_selector s;
    struct gn_error err;
    char longest[300];
    assert_int_equal(gn_selector_parse("pthread", &s, &err), 0);
    assert_true(gn_selector_matches_name(&s, "PTHREAD-skylake"));
    assert_false(gn_selector_matches_name(&s, "basic"));
    assert_true(gn_selector_takes(&s, 0) && gn_selector_takes(&s, 9));
    assert_int_equal(gn_selector_parse("a:b:12", &s, &err), 0);
    assert_string_equal(s.name, "a:b");
    assert_true(gn_selector_takes(&s, 12));
    assert_false(gn_selector_takes(&s, 11));
    assert_int_equal(gn_selector_parse("a:b", &s, &err), 0);
    assert_string_equal(s.name, "a:b");
    assert_int_equal(s.index, -1);
    assert_int_equal(gn_selector_parse("x:0,present-as=cpu", &s, &err), 0);
    assert_int_equal(s.present_as, GN_DEVICE_CPU);
    assert_int_equal(gn_selector_parse("", &s, &err), -EINVAL);
    assert_int_equal(gn_selector_parse(",present-as=cpu", &s, &err), -EINVAL);
    assert_int_equal(gn_selector_parse("x,", &s, &err), -EINVAL);
    assert_int_equal(gn_selector_parse("x,present-as=", &s, &err), -EINVAL);
    assert_int_equal(gn_selector_parse("x,memory=4G", &s, &err), -EINVAL);
    assert_int_equal(gn_selector_parse("x:99999", &s, &err), -EINVAL);
    memset(longest, 'l', sizeof longest);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(gn_selector_parse(longest, &s, &err), -EINVAL);
}

#define ARGV(...)                                                                                  \
    (sizeof((char *[]){"gantryd", __VA_ARGS__}) / sizeof(char *)), (char *[])                      \
    {                                                                                              \
        "gantryd", __VA_ARGS__, NULL                                                               \
    }

static void the_command_line_is_parsed(void **state)
{
    struct gn_config c;
    struct gn_error err;
    enum gn_options_action action;
    assert_int_equal(gn_options_parse(1, (char *[]){"gantryd", NULL}, &c, &action, &err), 0);
    assert_int_equal(action, GN_OPTIONS_RUN);
    assert_int_equal(gn_options_parse(ARGV("--socket", "/s", "--device=a", "--device", "b:1"), &c,
                                      &action, &err),
                     0);
    assert_string_equal(c.socket, "/s");
    assert_int_equal(c.n_devices, 2);
    assert_int_equal(gn_options_parse(ARGV("--help"), &c, &action, &err), 0);
    assert_int_equal(action, GN_OPTIONS_HELP);
    assert_int_equal(gn_options_parse(ARGV("--version"), &c, &action, &err), 0);
    assert_int_equal(action, GN_OPTIONS_VERSION);
}

static void wrong_command_lines_are_refused(void **state)
{
    static char *const bad[][4] = {
        {"gantryd", "--sock", "/s"},
        {"gantryd", "--listen", "x"},
        {"gantryd", "-s", "/s"},
        {"gantryd", "--socket"},
        {"gantryd", "--socket", ""},
        {"gantryd", "--help=yes"},
        {"gantryd", "stray"},
        {"gantryd", "--"},
        {"gantryd", "-"},
        {"gantryd", ""},
        {"gantryd", "--device", ":1"},
        {"gantryd", "--policy", "fare"},
        {"gantryd", "--policy", ""},
        {"gantryd", "--slice", "0"},
        {"gantryd", "--slice", "2s"},
        {"gantryd", "--slice", "10001"},
        {"gantryd", "--kernel-limit", "-1"},
        {"gantryd", "--kernel-limit", "0.05"},
        {"gantryd", "--oversubscribe=yes"},
        {"gantryd", "--oversubscribe", "--place", "left"},
        {"gantryd", "--oversubscribe", "--policy", "none"},
        {"gantryd", "--oversubscribe", "--swap-share=-1"},
        {"gantryd", "--oversubscribe", "--swap-memory=1X"},
        {"gantryd", "--oversubscribe", "--idle-after=1h"},
        {"gantryd", "--place", "turn"},
        {"gantryd", "--swap-memory", "1G"},
        {"gantryd", "--swap-share", "0"},
        {"gantryd", "--residency-max", "30s"},
        {"gantryd", "--idle-after", "20s"},
    };
    for (size_t i = 0; i < GN_ARRAY_SIZE(bad); i++) {
        struct gn_config c;
        struct gn_error err = {{0}, {0}};
        enum gn_options_action action;
        char *argv[5] = {NULL};
        int argc = 0;
        for (; argc < 4 && bad[i][argc]; argc++)
            argv[argc] = bad[i][argc];
        assert_int_equal(gn_options_parse(argc, argv, &c, &action, &err), -EINVAL);
        assert_true(err.what[0]);
    }
}

static void settings_of_placement_are_parsed(void **state)
{
    struct gn_config c;
    struct gn_error err;
    enum gn_options_action action;
    char path[] = "/tmp/gantry-config-XXXXXX";
    static const char text[] = "[gantryd]\noversubscribe = yes\nplace = size\nswap-memory = 3G\n"
                               "swap-share = 0.25\nresidency-max = 2min\nidle-after = 1.5\n";
    assert_int_equal(gn_options_parse(ARGV("--oversubscribe"), &c, &action, &err), 0);
    const struct gn_placement_options *o = &c.placement;
    assert_true(o->on);
    assert_true(!o->policy && !o->swap_bytes && !o->share_set);
    assert_true(!o->residency_max_ns && !o->idle_ns);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    assert_int_equal(gn_options_parse(ARGV("--config", path), &c, &action, &err), 0);
    assert_true(o->on);
    assert_string_equal(o->policy->name, "size");
    assert_true(o->swap_bytes == UINT64_C(3) << 30);
    assert_true(o->share_set && o->share == 250000);
    assert_true(o->residency_max_ns == UINT64_C(120000000000));
    assert_true(o->idle_ns == UINT64_C(1500000000));
    assert_int_equal(
        gn_options_parse(ARGV("--config", path, "--place=utilization", "--swap-share", "0",
                              "--swap-memory=1M", "--residency-max=500ms", "--idle-after=7s"),
                         &c, &action, &err),
        0);
    assert_string_equal(o->policy->name, "utilization");
    assert_int_equal(o->swap_bytes, 1 << 20);
    assert_true(o->share_set && o->share == 0);
    assert_int_equal(o->residency_max_ns, 500000000);
    assert_true(o->idle_ns == UINT64_C(7000000000));
    unlink(path);
}

static void wrong_settings_of_placement_say_the_way_out(void **state)
{
    static const struct {
        char *const argv[4];
        const char *what, *fix;
    } cases[] = {
        {{"gantryd", "--oversubscribe", "--place", "left"},
         "there is no placement policy \"left\"",
         "the policies are turn, first-fit, size, utilization"},
        {{"gantryd", "--place", "turn"}, "place needs oversubscribe", "give --oversubscribe, too"},
        {{"gantryd", "--swap-share", "0"},
         "swap-share needs oversubscribe",
         "give --oversubscribe, too"},
        {{"gantryd", "--oversubscribe", "--policy", "none"},
         "the policy none has no turns",
         "choose another policy, or leave oversubscribe out"},
        {{"gantryd", "--oversubscribe", "--swap-share", "95%"},
         "the share of copies cannot be \"95%\"",
         "a percentage up to 90%"},
    };
    for (size_t i = 0; i < GN_ARRAY_SIZE(cases); i++) {
        struct gn_config c;
        struct gn_error err = {{0}, {0}};
        enum gn_options_action action;
        char *argv[5] = {NULL};
        int argc = 0;
        for (; argc < 4 && cases[i].argv[argc]; argc++)
            argv[argc] = cases[i].argv[argc];
        assert_int_equal(gn_options_parse(argc, argv, &c, &action, &err), -EINVAL);
        assert_non_null(strstr(err.what, cases[i].what));
        assert_non_null(strstr(err.fix, cases[i].fix));
    }
}

static void the_command_line_wins_over_the_file(void **state)
{
    char path[] = "/tmp/gantry-config-XXXXXX";
    static const char text[] =
        "[gantryd]\nsocket = /file\ndevice = one\ndevice = two\n[device one]\npresent-as = gpu\n";
    struct gn_config c;
    struct gn_error err;
    enum gn_options_action action;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    assert_int_equal(gn_options_parse(ARGV("--config", path), &c, &action, &err), 0);
    assert_string_equal(c.socket, "/file");
    assert_int_equal(c.n_devices, 2);
    assert_int_equal(
        gn_options_parse(ARGV("--socket", "/line", "--config", path, "--device", "three"), &c,
                         &action, &err),
        0);
    assert_string_equal(c.socket, "/line");
    assert_int_equal(c.n_devices, 1);
    assert_string_equal(c.devices[0].name, "three");
    assert_int_equal(c.n_settings, 1);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_configuration_is_read),
        cmocka_unit_test(mistakes_name_their_line),
        cmocka_unit_test(tenants_are_read),
        cmocka_unit_test(token_files_are_read_with_the_file),
        cmocka_unit_test(rights_of_owners_and_rules_of_users),
        cmocka_unit_test(lines_that_are_no_text_are_refused),
        cmocka_unit_test(files_that_cannot_be_read_are_named),
        cmocka_unit_test(selectors_are_parsed_and_matched),
        cmocka_unit_test(the_command_line_is_parsed),
        cmocka_unit_test(wrong_command_lines_are_refused),
        cmocka_unit_test(the_command_line_wins_over_the_file),
        cmocka_unit_test(settings_of_placement_are_parsed),
        cmocka_unit_test(wrong_settings_of_placement_say_the_way_out),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
