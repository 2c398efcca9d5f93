/* SPDX-License-Identifier: Apache-2.0 */
#include "control/control.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *const device_names[] = {"Card A", "Card B"};

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
                                .calls = UINT64_MAX,
                                .n_devices = 2,
                                .devices = device_names};
    each(arg, &v);
    v.memory_limit_bytes = 77;
    v.worker_pid = 13;
    v.pid = 0;
    v.program = "second";
    each(arg, &v);
}

static void devices(void *ctx, void (*each)(void *arg, const struct gn_control_device *), void *arg)
{
    struct gn_control_device d = {.name = "Card A",
                                  .vendor = "V",
                                  .api = "opencl",
                                  .platform = "Vendor",
                                  .type = "cpu",
                                  .present_as = "gpu",
                                  .memory_bytes = 1024,
                                  .version = "1",
                                  .driver_version = "2",
                                  .n_vgpus = 3};
    each(arg, &d);
}

static void status(void *ctx, struct gn_control_status *ret)
{
    *ret = (struct gn_control_status){"1.2.3", 7, 8, 1, 2, 3};
}

static void drivers(void *ctx, void (*each)(void *arg, const struct gn_control_driver *), void *arg)
{
    struct gn_control_driver d = {"opencl", "libvendor.so.1", 2};
    each(arg, &d);
}

static const struct gn_control_source source = {
    .vgpus = vgpus, .devices = devices, .status = status, .drivers = drivers};

static char *ask(const char *request)
{
    char *reply = gn_control_handle(&source, request, strlen(request));
    assert_non_null(reply);
    return reply;
}

static void ls_lists_vgpus_by_the_contract(void **state)
{
    char *reply = ask("{\"version\":1,\"request\":\"ls\"}");
    assert_string_equal(
        reply,
        "{\"version\":1,\"vgpus\":[{\"id\":\"0000beef\",\"tenant\":\"default\",\"program\":\"odd?\\\"name\","
        "\"pid\":12,\"platform\":\"Vendor\",\"link\":\"shm\",\"mode\":\"remote\",\"state\":\"idle\","
        "\"weight\":100,\"memory_bytes\":5,\"calls\":9223372036854775807,\"sync_calls\":0,"
        "\"copies\":{\"two\":0,\"mapped\":0,\"bypass\":0},"
        "\"devices\":[{\"name\":\"Card A\"},{\"name\":\"Card B\"}]},"
        "{\"id\":\"0000beef\",\"tenant\":\"default\",\"program\":\"second\","
        "\"worker_pid\":13,\"platform\":\"Vendor\",\"link\":\"shm\",\"mode\":\"remote\",\"state\":\"idle\","
        "\"weight\":100,\"memory_bytes\":5,\"memory_limit_bytes\":77,\"calls\":9223372036854775807,"
        "\"sync_calls\":0,\"copies\":{\"two\":0,\"mapped\":0,\"bypass\":0},"
        "\"devices\":[{\"name\":\"Card A\"},{\"name\":\"Card B\"}]}]}");
    free(reply);
}

static void devices_are_listed(void **state)
{
    char *reply = ask("{\"request\":\"devices\",\"version\":1}");
    assert_string_equal(
        reply, "{\"version\":1,\"devices\":[{\"name\":\"Card A\",\"vendor\":\"V\",\"api\":\"opencl\","
               "\"platform\":\"Vendor\",\"platform_index\":0,\"type\":\"cpu\",\"present_as\":\"gpu\","
               "\"compute_units\":0,"
               "\"clock_mhz\":0,\"memory_bytes\":1024,\"max_allocation_bytes\":0,\"local_memory_bytes\":0,"
               "\"version\":\"1\",\"driver_version\":\"2\",\"vgpus\":3}]}");
    free(reply);
}

static void status_tells_of_gantryd(void **state)
{
    char *reply = ask("{\"version\":1,\"request\":\"status\"}");
    assert_string_equal(
        reply,
        "{\"version\":1,\"gantryd\":{\"version\":\"1.2.3\",\"pid\":7,\"uid\":8,\"platforms\":1,\"devices\":2,"
        "\"vgpus\":3,\"drivers\":[{\"api\":\"opencl\",\"library\":\"libvendor.so.1\",\"devices\":2}]}}");
    free(reply);
}

static void a_request_is_made_and_understood(void **state)
{
    char *request = gn_control_request("ls");
    char *reply = ask(request);
    assert_non_null(strstr(reply, "\"vgpus\":["));
    free(request);
    free(reply);
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
    /* Not a string's end: a request is its bytes. */
    char *reply = gn_control_handle(&source, "{\"version\":1,\"request\":\"ls\"}\0", 29);
    assert_non_null(strstr(reply, "\"error\""));
    free(reply);
}

static void errors_have_their_three_parts(void **state)
{
    char *all = gn_control_error("w", "y", "f"), *one = gn_control_error("w", NULL, "");
    assert_string_equal(all, "{\"version\":1,\"error\":{\"what\":\"w\",\"why\":\"y\",\"fix\":\"f\"}}");
    assert_string_equal(one, "{\"version\":1,\"error\":{\"what\":\"w\"}}");
    free(all);
    free(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ls_lists_vgpus_by_the_contract), cmocka_unit_test(devices_are_listed),
        cmocka_unit_test(status_tells_of_gantryd),        cmocka_unit_test(a_request_is_made_and_understood),
        cmocka_unit_test(bad_requests_get_an_error),      cmocka_unit_test(errors_have_their_three_parts),
    };
    return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
