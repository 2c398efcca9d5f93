/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the control requests and replies against a source that answers from constants. */
#include "control/source.h"
#include "control/json_region.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct gn_control_placed placed = {"evicted", 192, 128, 64, 3, 4, 5, 6};

static const struct gn_control_share shares[] = {
    {"Card A", 0, 0.25, 1 / 3.0, 1, 2, 3, UINT64_MAX, false, true, NULL},
    {"Card B", 1, 0, 1, 0, 0, 0, 0, true, false, &placed},
};

static const struct gn_control_moving moving = {"move", "local", "ahead", 1, 2, 3, 4, 5};

static void vgpus(void *ctx, void (*each)(void *arg, const struct gn_control_vgpu *), void *arg)
{
    struct gn_control_vgpu v = {.id = 0x0000beef,
                                .tenant = "default",
                                .program = "odd\xff\"name",
                                .pid = 12,
                                .platform = "Vendor",
                                .link = "shm",
                                .mode = "remote",
                                .state = "idle",
                                .weight = 100,
                                .memory_bytes = 5,
                                .leased_bytes = 6,
                                .calls = UINT64_MAX,
                                .n_devices = 2,
                                .devices = shares};
    each(arg, &v);
    v.memory_limit_bytes = 77;
    v.worker_pid = 13;
    v.pid = 0;
    v.program = "second";
    v.state = "moving";
    v.moving = &moving;
    each(arg, &v);
}

static const struct gn_control_slots slots = {"turn", 64, 54, 7, 2, 4096, 3, 250, 0.25, 1};

static void devices(void *ctx, void (*each)(void *arg, const struct gn_control_device *), void *arg)
{
    struct gn_control_device d = {.index = 4,
                                  .name = "Card A",
                                  .vendor = "V",
                                  .api = "opencl",
                                  .platform = "Vendor",
                                  .type = "cpu",
                                  .present_as = "gpu",
                                  .memory_bytes = 1024,
                                  .slice_ns = 6000000,
                                  .version = "1",
                                  .driver_version = "2",
                                  .n_vgpus = 3,
                                  .leased_bytes = 9,
                                  .use = {1, 2, 3, 4},
                                  .has_others = true,
                                  .others = {5, 0.5, 0.25, 6, 7}};
    each(arg, &d);
    d.slots = &slots;
    d.has_others = false;
    each(arg, &d);
}

static void status(void *ctx, struct gn_control_status *ret)
{
    *ret = (struct gn_control_status){
        "1.2.3", 7, 8, 1, 2, 3, "available", "files", "processes", .draining = false};
}

static void drivers(void *ctx, void (*each)(void *arg, const struct gn_control_driver *), void *arg)
{
    struct gn_control_driver d = {"opencl", "libvendor.so.1", 2};
    each(arg, &d);
}

static void tenants(void *ctx, void (*each)(void *arg, const struct gn_control_tenant *), void *arg)
{
    static const uint32_t uids[] = {5, 4294967294u}, gids[] = {7};
    static const char *const modes[] = {"remote"}, *const selectors[] = {"Card:0"},
                             *const owner[] = {"kill", "mode"};
    struct gn_control_tenant t = {
        .name = "default", .weight = 100, .any_uid = true, .n_modes = 1, .modes = modes};
    each(arg, &t);
    t = (struct gn_control_tenant){.name = "blue",
                                   .weight = 3,
                                   .cap = 250000,
                                   .floor = 100000,
                                   .n_vgpus = 2,
                                   .memory_bytes = 1,
                                   .leased_bytes = 2,
                                   .memory_limit_bytes = 3,
                                   .reserve_bytes = 4,
                                   .token = true,
                                   .socket = "/run/s",
                                   .n_owner = 2,
                                   .owner = owner,
                                   .n_uids = 2,
                                   .uids = uids,
                                   .n_gids = 1,
                                   .gids = gids,
                                   .n_modes = 1,
                                   .modes = modes,
                                   .n_devices = 1,
                                   .devices = selectors};
    each(arg, &t);
}

static void policies(void *ctx, void (*each)(void *arg, const struct gn_control_policy *),
                     void *arg)
{
    each(arg, &(struct gn_control_policy){"one", "the \"first\"", false});
    each(arg, &(struct gn_control_policy){"two", "the second", true});
}

static char policy_set[64];

static int set_policy(void *ctx, const char *name, struct gn_error *err)
{
    snprintf(policy_set, sizeof policy_set, "%s", name);
    return strcmp(name, "two") == 0 ? 0 : gn_fail(err, 22, "there are two", "it is not there");
}

static bool is_placed;
static char place_set[64];

static void places(void *ctx, void (*each)(void *arg, const struct gn_control_policy *), void *arg)
{
    each(arg, &(struct gn_control_policy){"left", "to the left", false});
    each(arg, &(struct gn_control_policy){"right", "to the right", is_placed});
}

static int set_place(void *ctx, const char *name, struct gn_error *err)
{
    snprintf(place_set, sizeof place_set, "%s", name);
    return is_placed ? 0 : gn_fail(err, ENOTSUP, "turn it on", "it is off");
}

static struct gn_control_change changed;
static char name_changed[64];
static int n_changes;

static int change(void *ctx, const struct gn_control_change *c, struct gn_error *err)
{
    n_changes++;
    changed = *c;
    snprintf(name_changed, sizeof name_changed, "%s", c->name);
    return strcmp(c->name, "red") == 0 ? gn_fail(err, 1, "paint it", "it is red") : 0;
}

static bool is_draining;

static bool draining(void *ctx)
{
    return is_draining;
}

static int drain(void *ctx, bool on, struct gn_control_drain *ret, struct gn_error *err)
{
    is_draining = on;
    *ret = (struct gn_control_drain){on, 3};
    return 0;
}

static int about(void *ctx, const char *vgpu, struct gn_control_about *ret, struct gn_error *err)
{
    return gn_fail(err, strcmp(vgpu, "1f") == 0 ? ENOENT : EBUSY, NULL, "not now");
}

static const struct gn_control_queries queries = {.vgpus = vgpus,
                                                  .devices = devices,
                                                  .status = status,
                                                  .drivers = drivers,
                                                  .tenants = tenants,
                                                  .policies = policies,
                                                  .places = places,
                                                  .draining = draining,
                                                  .about = about};
static const struct gn_control_commands commands = {
    .set_policy = set_policy, .set_place = set_place, .drain = drain, .change = change};
static const struct gn_control_source source = {.queries = &queries, .commands = &commands};

static char *ask(const char *request)
{
    char *reply = gn_control_handle(&source, GN_ROLE_CONTROL, request, strlen(request));
    assert_non_null(reply);
    return reply;
}

#define DEVICES                                                                                    \
    "\"devices\":[{\"name\":\"Card A\",\"index\":0,\"share\":0.25,"                                \
    "\"entitled\":0.333333,\"device_ns\":1,\"used_ns\":2,\"waited_ns\":3,"                         \
    "\"grants\":9223372036854775807,\"interactive\":false,\"used\":true},"                         \
    "{\"name\":\"Card B\",\"index\":1,\"share\":0.0,\"entitled\":1.0,\"device_ns\":0,"             \
    "\"used_ns\":0,\"waited_ns\":0,\"grants\":0,"                                                  \
    "\"interactive\":true,\"used\":false,\"placement_state\":\"evicted\",\"memory_bytes\":192,"    \
    "\"resident_bytes\":128,\"pinned_bytes\":64,\"residencies\":3,\"swap_in_bytes\":4,"            \
    "\"swap_out_bytes\":5,\"evicted_ns\":6}]"

static void ls_lists_vgpus_by_the_contract(void **state)
{
    char *reply = ask("{\"version\":1,\"request\":\"ls\"}");
    assert_string_equal(
        reply,
        "{\"version\":1,\"vgpus\":[{\"id\":\"0000beef\","
        "\"tenant\":\"default\",\"program\":\"odd?\\\"name\","
        "\"pid\":12,\"platform\":\"Vendor\",\"link\":\"shm\","
        "\"mode\":\"remote\",\"state\":\"idle\","
        "\"weight\":100,\"memory_bytes\":5,\"leased_bytes\":6,\"calls\":9223372036854775807,"
        "\"sync_calls\":0,"
        "\"copies\":{\"two\":0,\"mapped\":0,\"bypass\":0}," DEVICES "},"
        "{\"id\":\"0000beef\",\"tenant\":\"default\",\"program\":\"second\","
        "\"worker_pid\":13,\"platform\":\"Vendor\",\"link\":\"shm\","
        "\"mode\":\"remote\",\"state\":\"moving\","
        "\"moving\":{\"what\":\"move\",\"to\":\"local\",\"phase\":\"ahead\","
        "\"round\":1,\"done_bytes\":2,\"total_bytes\":3,"
        "\"sent_bytes\":4,\"elapsed_ns\":5},"
        "\"weight\":100,\"memory_bytes\":5,\"leased_bytes\":6,\"memory_limit_bytes\":77,\"calls\":"
        "9223372036854775807,"
        "\"sync_calls\":0,\"copies\":{\"two\":0,\"mapped\":0,\"bypass\":0}," DEVICES "}]}");
    free(reply);
}

static void devices_are_listed(void **state)
{
#define DEVICE                                                                                     \
    "{\"name\":\"Card A\",\"index\":4,\"vendor\":\"V\",\"api\":\"opencl\","                        \
    "\"platform\":\"Vendor\",\"platform_index\":0,\"type\":\"cpu\",\"present_as\":\"gpu\","        \
    "\"compute_units\":0,\"clock_mhz\":0,\"memory_bytes\":1024,\"max_allocation_bytes\":0,"        \
    "\"local_memory_bytes\":0,\"slice_ns\":6000000,\"version\":\"1\","                             \
    "\"driver_version\":\"2\",\"vgpus\":3,\"leased_bytes\":9,"
#define USE "\"use\":{\"device_ns\":1,\"used_ns\":2,\"waited_ns\":3,\"grants\":4}"
    char *reply = ask("{\"request\":\"devices\",\"version\":1}");
    assert_string_equal(
        reply,
        "{\"version\":1,\"devices\":[" DEVICE USE ",\"others\":{\"vgpus\":5,\"share\":0.5,"
        "\"entitled\":0.25,\"device_ns\":6,\"waited_ns\":7}}," DEVICE
        "\"place\":\"turn\",\"slot_bytes\":64,\"slots\":54,\"free_slots\":7,\"reserved_slots\":2,"
        "\"swap_bytes\":4096,\"swaps\":3,\"copying_ns\":250,\"copier_busy\":0.25,"
        "\"rearranged\":1," USE "}]}");
    free(reply);
}

static void status_tells_of_gantryd(void **state)
{
    char *reply = ask("{\"version\":1,\"request\":\"status\"}");
    assert_string_equal(
        reply,
        "{\"version\":1,\"gantryd\":{\"version\":\"1.2.3\",\"pid\":7,\"uid\":8,\"platforms\":1,"
        "\"devices\":2,"
        "\"vgpus\":3,\"walls\":{\"mode\":\"available\","
        "\"have\":\"files\",\"missing\":\"processes\"},"
        "\"drivers\":[{\"api\":\"opencl\",\"library\":\"libvendor.so.1\",\"devices\":2}]}}");
    free(reply);
}

static void a_gantryd_is_emptied_until_that_is_undone(void **state)
{
    static const char *const bad[] = {",\"undo\":1", ",\"undo\":\"true\"", ",\"undo\":null"};
    char *request = gn_control_drain_request(true), *reply = ask(request), other[64];
    assert_string_equal(reply, "{\"version\":1,\"drain\":{\"draining\":true,\"coming\":3}}");
    assert_true(is_draining);
    free(request);
    free(reply);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(other, sizeof other, "{\"version\":1,\"request\":\"drain\"%s}", bad[i]);
        reply = ask(other);
        assert_non_null(strstr(reply, "\"error\""));
        assert_true(is_draining);
        free(reply);
    }
    reply = ask("{\"version\":1,\"request\":\"ls\"}");
    assert_non_null(strstr(reply, "],\"draining\":true}"));
    free(reply);
    request = gn_control_drain_request(false);
    reply = ask(request);
    assert_string_equal(reply, "{\"version\":1,\"drain\":{\"draining\":false,\"coming\":3}}");
    assert_false(is_draining);
    free(request);
    free(reply);
}

static void it_is_said_which_vgpu_is_gone(void **state)
{
    char *gone = ask("{\"version\":1,\"request\":\"about\",\"vgpu\":\"1f\"}"),
         *busy = ask("{\"version\":1,\"request\":\"about\",\"vgpu\":\"2\"}");
    assert_string_equal(gone,
                        "{\"version\":1,\"error\":{\"what\":\"cannot move the vGPU\",\"why\":\"not "
                        "now\",\"kind\":\"gone\"}}");
    assert_string_equal(
        busy, "{\"version\":1,\"error\":{\"what\":\"cannot move the vGPU\",\"why\":\"not now\"}}");
    free(gone);
    free(busy);
}

static void a_request_is_made_and_understood(void **state)
{
    char *request = gn_control_request("ls");
    char *reply = ask(request);
    assert_non_null(strstr(reply, "\"vgpus\":["));
    free(request);
    free(reply);
}

/*
 * A word of a command line that is not UTF-8 is sent all the same, and refused like an unknown one.
 */
static void no_word_of_a_wish_is_left_out(void **state)
{
    const struct gn_control_wish wish = {
        .vgpu = "caf\xe9", .to = "local", .device = "GeForce\xff", .drain_timeout_ms = 1};
    char *move = gn_control_move_request(&wish), *save = gn_control_checkpoint_request(&wish),
         *about = gn_control_about_request(wish.vgpu);
    assert_non_null(move);
    assert_non_null(save);
    assert_non_null(about);
    assert_non_null(strstr(move, "\"vgpu\":\"caf?\""));
    assert_non_null(strstr(move, "\"device\":\"GeForce?\""));
    assert_non_null(strstr(save, "\"vgpu\":\"caf?\""));
    assert_non_null(strstr(about, "\"vgpu\":\"caf?\""));
    free(move);
    free(save);
    free(about);
}

static void bad_requests_get_an_error(void **state)
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "1",
        "\"ls\"",
        "{\"version\":1}",
        "{\"version\":2,\"request\":\"ls\"}",
        "{\"version\":\"1\",\"request\":\"ls\"}",
        "{\"request\":\"ls\"}",
        "{\"version\":1,\"request\":7}",
        "{\"version\":1,\"request\":\"rm\"}",
        "{\"version\":1,\"request\":\"ls\"} trailing",
        "{\"version\":1,\"request\":\"ls\",\"request\":\"ls\"}",
        "{\"version\":1,\"request\":\"\xff\"}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char *reply = ask(bad[i]);
        assert_memory_equal(reply, "{\"version\":1,\"error\":{\"what\":\"", 30);
        free(reply);
    }
    /* A NUL is not the end: a request has a length. */
    char *reply =
        gn_control_handle(&source, GN_ROLE_CONTROL, "{\"version\":1,\"request\":\"ls\"}\0", 29);
    assert_non_null(strstr(reply, "\"error\""));
    free(reply);
}

#define BLUE                                                                                       \
    "{\"name\":\"blue\",\"weight\":3,\"cap\":0.25,\"floor\":0.1,\"vgpus\":2,"                      \
    "\"memory_bytes\":1,\"leased_bytes\":2,"                                                       \
    "\"memory_limit_bytes\":3,\"reserve_bytes\":4,"                                                \
    "\"uids\":[5,4294967294],\"gids\":[7],\"token\":true,"                                         \
    "\"socket\":\"/run/s\",\"owner\":[\"kill\",\"mode\"],"                                         \
    "\"modes\":[\"remote\"],\"devices\":[\"Card:0\"]}"

static void tenants_are_listed_without_their_tokens(void **state)
{
    char *reply = ask("{\"version\":1,\"request\":\"tenants\"}");
    assert_string_equal(
        reply, "{\"version\":1,\"tenants\":[{\"name\":\"default\",\"weight\":100,\"vgpus\":0,"
               "\"memory_bytes\":0,\"leased_bytes\":0,\"uids\":\"any\",\"gids\":[],\"token\":false,"
               "\"owner\":[],"
               "\"modes\":[\"remote\"],\"devices\":[]}," BLUE "]}");
    free(reply);
}

static void a_change_is_made_and_understood(void **state)
{
    struct gn_control_change c = {.what = GN_CONTROL_ADD,
                                  .name = "blue",
                                  .has_weight = true,
                                  .has_cap = true,
                                  .has_floor = true,
                                  .has_memory = true,
                                  .has_reserve = true,
                                  .reserve_bytes = 1ull << 33,
                                  .has_uids = true,
                                  .has_gids = true,
                                  .has_token = true,
                                  .has_socket = true,
                                  .socket = true,
                                  .has_owner = true,
                                  .n_owner = 1,
                                  .owner = {"migrate"},
                                  .has_modes = true,
                                  .has_devices = true,
                                  .weight = 9,
                                  .cap = 1000000,
                                  .floor = 333333,
                                  .memory_limit_bytes = 1ull << 40,
                                  .n_uids = 2,
                                  .uids = {1, 4294967294u},
                                  .n_gids = 1,
                                  .gids = {0},
                                  .token = "0123456789abcdef",
                                  .n_token = 16,
                                  .n_modes = 1,
                                  .modes = {"remote"},
                                  .n_devices = 1,
                                  .devices = {"a \"card\""}};
    char *request = gn_control_change_request(&c), *reply = ask(request);
    assert_string_equal(reply, "{\"version\":1,\"tenants\":[" BLUE "]}");
    assert_string_equal(name_changed, "blue");
    assert_true(changed.what == GN_CONTROL_ADD && changed.has_weight && changed.weight == 9);
    assert_true(changed.has_cap && changed.cap == 1000000 && changed.has_floor &&
                changed.floor == 333333);
    assert_true(changed.has_memory && changed.memory_limit_bytes == 1ull << 40);
    assert_true(changed.has_reserve && changed.reserve_bytes == 1ull << 33);
    assert_true(changed.n_uids == 2 && changed.uids[1] == 4294967294u && !changed.any_uid);
    assert_true(changed.n_gids == 1 && changed.gids[0] == 0);
    assert_true(changed.n_token == 16 && changed.n_modes == 1 && changed.n_devices == 1);
    assert_true(changed.has_socket && changed.socket && changed.has_owner && changed.n_owner == 1);
    free(request);
    free(reply);
    c = (struct gn_control_change){
        .what = GN_CONTROL_SET, .name = "blue", .has_uids = true, .any_uid = true};
    request = gn_control_change_request(&c);
    free(ask(request));
    assert_true(changed.what == GN_CONTROL_SET && changed.has_uids && changed.any_uid &&
                !changed.has_weight && !changed.has_cap && !changed.has_floor &&
                !changed.has_memory && !changed.has_reserve && !changed.has_gids &&
                !changed.has_token && !changed.has_modes && !changed.has_devices);
    free(request);
    reply = ask("{\"version\":1,\"request\":\"tenant-rm\",\"name\":\"gone\"}");
    assert_string_equal(reply, "{\"version\":1,\"tenants\":[]}");
    free(reply);
    reply = ask("{\"version\":1,\"request\":\"tenant-rm\",\"name\":\"red\"}");
    assert_string_equal(
        reply, "{\"version\":1,\"error\":{\"what\":\"cannot remove the tenant\",\"why\":\"it is "
               "red\",\"fix\":\"paint it\"}}");
    free(reply);
    c.has_token = true;
    c.token = "\xff\xff";
    c.n_token = 2;
    assert_null(gn_control_change_request(&c)); /* not UTF-8 */
}

static void changes_that_are_none_change_nothing(void **state)
{
    static const char *const bad[] = {
        "",
        ",\"name\":7",
        ",\"name\":\"a\\u0000b\"",
        ",\"name\":\"blue\",\"colour\":1",
        ",\"name\":\"blue\",\"weight\":0",
        ",\"name\":\"blue\",\"weight\":-1",
        ",\"name\":\"blue\",\"weight\":4294967296",
        ",\"name\":\"blue\",\"weight\":1.5",
        ",\"name\":\"blue\",\"weight\":\"1\"",
        ",\"name\":\"blue\",\"cap\":1.5",
        ",\"name\":\"blue\",\"cap\":-0.1",
        ",\"name\":\"blue\",\"cap\":\"25%\"",
        ",\"name\":\"blue\",\"cap\":1e300",
        ",\"name\":\"blue\",\"floor\":2",
        ",\"name\":\"blue\",\"floor\":null",
        ",\"name\":\"blue\",\"memory_limit_bytes\":-1",
        ",\"name\":\"blue\",\"memory_limit_bytes\":99999999999999999999",
        ",\"name\":\"blue\",\"reserve_bytes\":-1",
        ",\"name\":\"blue\",\"reserve_bytes\":null",
        ",\"name\":\"blue\",\"uids\":\"all\"",
        ",\"name\":\"blue\",\"uids\":[\"root\"]",
        ",\"name\":\"blue\",\"uids\":[4294967295]",
        ",\"name\":\"blue\",\"gids\":\"any\"",
        ",\"name\":\"blue\",\"gids\":[-1]",
        ",\"name\":\"blue\",\"token\":null",
        ",\"name\":\"blue\",\"socket\":\"yes\"",
        ",\"name\":\"blue\",\"owner\":\"kill\"",
        ",\"name\":\"blue\",\"modes\":[1]",
        ",\"name\":\"blue\",\"modes\":[\"a\",\"a\",\"a\",\"a\",\"a\"]",
        ",\"name\":\"blue\",\"devices\":\"all\"",
        ",\"name\":\"blue\",\"devices\":[\"a\\u0000b\"]",
    };
    char request[512];
    const int before = n_changes;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(request, sizeof request, "{\"version\":1,\"request\":\"tenant-set\"%s}", bad[i]);
        char *reply = ask(request);
        if (!strstr(reply, "\"error\""))
            fail_msg("%s gave %s", request, reply);
        free(reply);
    }
    free(ask("{\"version\":1,\"request\":\"tenant-rm\",\"name\":\"blue\",\"weight\":1}"));
    assert_int_equal(n_changes, before);
}

static void a_policy_is_shown_and_changed(void **state)
{
    static const char both[] =
        "{\"version\":1,\"policy\":\"two\",\"policies\":["
        "{\"name\":\"one\",\"about\":\"the \\\"first\\\"\"},{\"name\":\"two\",\"about\":\"the "
        "second\"}]}";
    static const char *const bad[] = {"", ",\"name\":7", ",\"name\":null"};
    char request[128];
    char *reply = ask("{\"version\":1,\"request\":\"policy\"}");
    assert_string_equal(reply, both);
    assert_string_equal(policy_set, "");
    free(reply);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(request, sizeof request, "{\"version\":1,\"request\":\"policy-set\"%s}", bad[i]);
        reply = ask(request);
        assert_non_null(strstr(reply, "is not the name of a policy"));
        free(reply);
    }
    assert_string_equal(policy_set, "");
    char *made = gn_control_policy_request("two");
    reply = ask(made);
    assert_string_equal(reply, both);
    assert_string_equal(policy_set, "two");
    free(made);
    free(reply);
    reply = ask("{\"version\":1,\"request\":\"policy-set\",\"name\":\"three\"}");
    assert_string_equal(
        reply,
        "{\"version\":1,\"error\":{\"what\":\"cannot change the policy\",\"why\":\"it is not "
        "there\","
        "\"fix\":\"there are two\",\"kind\":\"usage\"}}");
    free(reply);
}

static void a_placement_policy_is_shown_and_changed(void **state)
{
#define PLACES                                                                                     \
    "\"policies\":[{\"name\":\"left\",\"about\":\"to the left\"},"                                 \
    "{\"name\":\"right\",\"about\":\"to the right\"}]}"
    static const char off[] = "{\"version\":1," PLACES,
                      on[] = "{\"version\":1,\"place\":\"right\"," PLACES,
                      refused[] =
                          "{\"version\":1,\"error\":{\"what\":\"cannot change the placement "
                          "policy\",\"why\":\"it is off\",\"fix\":\"turn it on\"}}";
    for (int i = 0; i < 2; i++) {
        is_placed = i == 1;
        place_set[0] = 0;
        char *reply = ask("{\"version\":1,\"request\":\"place\"}");
        assert_string_equal(reply, is_placed ? on : off);
        assert_string_equal(place_set, "");
        free(reply);
        char *made = gn_control_place_request("left");
        reply = ask(made);
        assert_string_equal(reply, is_placed ? on : refused);
        assert_string_equal(place_set, "left");
        free(made);
        free(reply);
        reply = ask("{\"version\":1,\"request\":\"place-set\",\"name\":7}");
        assert_non_null(strstr(reply, "is not the name of a policy"));
        free(reply);
    }
}

static void errors_have_their_three_parts(void **state)
{
    char *all = gn_control_error("w", "y", "f"), *one = gn_control_error("w", NULL, "");
    assert_string_equal(all,
                        "{\"version\":1,\"error\":{\"what\":\"w\",\"why\":\"y\",\"fix\":\"f\"}}");
    assert_string_equal(one, "{\"version\":1,\"error\":{\"what\":\"w\"}}");
    free(all);
    free(one);
}

/*
 * A source without commands: a command that a role does not allow must be refused before it is
 * called.
 */
static void each_role_has_its_requests(void **state)
{
    static const char *const questions[] = {"ls",      "devices", "status",
                                            "tenants", "policy",  "place"};
    /* Owners have the last ones: for programs the handler decides. */
    static const char *const refused[] = {
        "trace-start", "trace-read", "trace-stop",      "policy-set", "place-set",
        "tenant-add",  "tenant-set", "tenant-rm",       "drain",      "kill",
        "migrate",     "checkpoint", "checkpoint-keep", "restore"};
    const size_t n_refused = sizeof refused / sizeof refused[0], n_owners = 5;
    const struct gn_control_source no_commands = {.queries = &queries};
    char request[128];
    for (enum gn_role role = GN_ROLE_PROGRAM; role < GN_ROLE_CONTROL; role++) {
        for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
            snprintf(request, sizeof request, "{\"version\":1,\"request\":\"%s\"}", questions[i]);
            char *reply = gn_control_handle(&no_commands, role, request, strlen(request));
            assert_null(strstr(reply, "\"error\""));
            free(reply);
        }
        for (size_t i = 0; i < n_refused - (role == GN_ROLE_PROGRAM ? n_owners : 0); i++) {
            snprintf(request, sizeof request, "{\"version\":1,\"request\":\"%s\"}", refused[i]);
            char *reply = gn_control_handle(&no_commands, role, request, strlen(request));
            assert_non_null(strstr(reply, "\"what\":\"cannot "));
            assert_non_null(strstr(reply, "\"why\":\"only operators may, "));
            free(reply);
        }
    }
}

static void many_vgpus(void *ctx, void (*each)(void *arg, const struct gn_control_vgpu *),
                       void *arg)
{
    for (int i = 0; i < 1000; i++)
        vgpus(ctx, each, arg);
}

static void nothing_of_an_answer_is_kept(void **state)
{
    const struct gn_control_queries listing = {.vgpus = many_vgpus};
    const struct gn_control_source many = {.queries = &listing};
    static const char request[] = "{\"version\":1,\"request\":\"ls\"}";
    assert_int_equal(gn_json_region_bytes(), 0);
    char *reply = gn_control_handle(&many, GN_ROLE_CONTROL, request, strlen(request));
    assert_true(strlen(reply) > 256 * 1024); /* larger than a block, in one allocation too */
    assert_string_equal(reply + strlen(reply) - 2, "]}");
    free(reply);
    assert_int_equal(gn_json_region_bytes(), 0);
}

int main(void)
{
    gn_json_region_use();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ls_lists_vgpus_by_the_contract),
        cmocka_unit_test(each_role_has_its_requests),
        cmocka_unit_test(devices_are_listed),
        cmocka_unit_test(status_tells_of_gantryd),
        cmocka_unit_test(a_gantryd_is_emptied_until_that_is_undone),
        cmocka_unit_test(it_is_said_which_vgpu_is_gone),
        cmocka_unit_test(a_request_is_made_and_understood),
        cmocka_unit_test(tenants_are_listed_without_their_tokens),
        cmocka_unit_test(a_change_is_made_and_understood),
        cmocka_unit_test(changes_that_are_none_change_nothing),
        cmocka_unit_test(a_policy_is_shown_and_changed),
        cmocka_unit_test(a_placement_policy_is_shown_and_changed),
        cmocka_unit_test(no_word_of_a_wish_is_left_out),
        cmocka_unit_test(bad_requests_get_an_error),
        cmocka_unit_test(errors_have_their_three_parts),
        cmocka_unit_test(nothing_of_an_answer_is_kept),
    };
    return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
