/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, probing and bringing up drivers, with the fake driver that the first argument names. */
#include "backend/backend.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "backend/opencl/cl_backend.h"
#include "backend/opencl/cl_platform.h"

static const char *fake;

struct names {
    int n;
    char all[8][256];
};

static void take_name(void *ctx, const char *library)
{
    struct names *names = ctx;
    assert_true(names->n < 8);
    snprintf(names->all[names->n++], sizeof names->all[0], "%s", library);
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void drivers_are_found_as_the_loaders_do(void **state)
{
    char dir[] = "/tmp/gantry-vendors-XXXXXX", path[256];
    struct names names = {.n = 0};
    struct gn_error err;
    assert_non_null(mkdtemp(dir));
    write_file(dir, "b.icd", "libb.so\nignored\n");
    write_file(dir, "a.icd", "/opt/a/liba.so \r\n");
    write_file(dir, "c.icd.bak", "libno.so\n");
    write_file(dir, "empty.icd", "");
    write_file(dir, "blank.icd", "\nlibno.so\n");
    write_file(dir, ".icd", "libno.so\n");
    setenv("OCL_ICD_VENDORS", dir, 1);
    assert_int_equal(gn_cl_list_drivers(take_name, &names, &err), 0);
    assert_int_equal(names.n, 2);
    assert_string_equal(names.all[0], "/opt/a/liba.so");
    assert_string_equal(names.all[1], "libb.so");

    /* One file, by its path; by its name inside OPENCL_VENDOR_PATH; a library. */
    snprintf(path, sizeof path, "%s/b.icd", dir);
    setenv("OCL_ICD_VENDORS", path, 1);
    names.n = 0;
    assert_int_equal(gn_cl_list_drivers(take_name, &names, &err), 0);
    assert_int_equal(names.n, 1);
    assert_string_equal(names.all[0], "libb.so");
    setenv("OCL_ICD_VENDORS", "a.icd", 1);
    setenv("OPENCL_VENDOR_PATH", dir, 1);
    names.n = 0;
    assert_int_equal(gn_cl_list_drivers(take_name, &names, &err), 0);
    assert_string_equal(names.all[0], "/opt/a/liba.so");
    setenv("OCL_ICD_VENDORS", "libx.so", 1);
    names.n = 0;
    assert_int_equal(gn_cl_list_drivers(take_name, &names, &err), 0);
    assert_string_equal(names.all[0], "libx.so");
    setenv("OCL_ICD_VENDORS", "", 1);
    names.n = 0;
    assert_int_equal(gn_cl_list_drivers(take_name, &names, &err), 0);
    assert_int_equal(names.n, 2);

    setenv("OCL_ICD_VENDORS", "/nonexistent/x.icd", 1);
    assert_int_equal(gn_cl_list_drivers(take_name, &names, &err), -ENOENT);
    setenv("OCL_ICD_VENDORS", "", 1);
    setenv("OPENCL_VENDOR_PATH", "/nonexistent", 1);
    assert_int_equal(gn_cl_list_drivers(take_name, &names, &err), -ENOENT);
    assert_non_null(strstr(err.what, "/nonexistent"));
    unsetenv("OCL_ICD_VENDORS");
    unsetenv("OPENCL_VENDOR_PATH");
    for (const char *const *f = (const char *const[]){"a.icd", "b.icd", "c.icd.bak", "empty.icd",
                                                      "blank.icd", ".icd", NULL};
         *f; f++) {
        snprintf(path, sizeof path, "%s/%s", dir, *f);
        unlink(path);
    }
    rmdir(dir);
}

static void take_facts(void *ctx, const struct gn_platform_facts *facts)
{
    struct gn_platform_facts *copy = ctx;
    assert_int_equal(copy->n_devices, 0);
    *copy = *facts;
}

static void *open_fake(void)
{
    void *library = NULL;
    struct gn_error err;
    assert_int_equal(gn_backend_named("opencl")->open_library(fake, &library, &err), 0);
    return library;
}

static void facts_are_probed(void **state)
{
    static struct gn_platform_facts facts;
    struct gn_error err;
    assert_int_equal(gn_cl_backend.probe(open_fake(), take_facts, &facts, &err), 0);
    assert_string_equal(facts.name, "Fake Platform");
    assert_int_equal(facts.n_devices, 2);
    assert_string_equal(facts.devices[1].name, "Fake Device Two");
    assert_string_equal(facts.devices[1].vendor, "");
    assert_int_equal(facts.devices[0].kind, GN_BACKEND_GPU);
    assert_int_equal(facts.devices[1].kind, GN_BACKEND_ACCELERATOR);
    assert_int_equal(facts.devices[0].compute_units, 3);
    assert_int_equal(facts.devices[0].memory_bytes, 1 << 30);
}

static void drivers_with_nothing_to_offer_are_left_out(void **state)
{
    static const struct {
        const char *mode;
        int rc;
    } cases[] = {{"gantry", 0}, {"no-device", 0}, {"not-an-icd", -ENOSYS}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gn_platform_facts facts = {.n_devices = 0};
        struct gn_error err;
        void *library = open_fake();
        setenv("FAKE_VENDOR", cases[i].mode, 1);
        assert_int_equal(gn_cl_backend.probe(library, take_facts, &facts, &err), cases[i].rc);
        assert_int_equal(facts.n_devices, 0);
        unsetenv("FAKE_VENDOR");
    }
}

static void a_platform_comes_up_with_its_chosen_devices(void **state)
{
    struct gn_backend_platform *base;
    struct gn_error err;
    const struct gn_device_choice both[] = {{.index = 0, .present_as = GN_BACKEND_CPU},
                                            {.index = 1}};
    const struct gn_device_choice second = {.index = 1, .present_as = GN_BACKEND_GPU},
                                  none = {.index = 2};
    void *library = open_fake();
    assert_int_equal(gn_cl_backend.bring_up(library, 0, both, 2, &base, &err), 0);
    struct gn_cl_platform *p = gn_cl_platform_of(base);
    assert_int_equal(p->n_devices, 2);
    assert_int_equal(p->types[0], CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_DEFAULT);
    assert_int_equal(p->types[1], CL_DEVICE_TYPE_ACCELERATOR);
    assert_non_null(p->dispatch->clGetDeviceInfo);
    assert_non_null(gn_cl_extension(p, "clIcdGetPlatformIDsKHR"));
    assert_null(gn_cl_extension(p, "clNoSuchThing"));
    free(p);
    assert_int_equal(gn_cl_backend.bring_up(library, 0, &second, 1, &base, &err), 0);
    p = gn_cl_platform_of(base);
    assert_int_equal(p->n_devices, 1);
    assert_int_equal(p->types[0], CL_DEVICE_TYPE_GPU);
    free(p);
    assert_int_equal(gn_cl_backend.bring_up(library, 0, &none, 1, &base, &err), -ENODEV);
    assert_int_equal(gn_cl_backend.bring_up(library, 1, both, 2, &base, &err), -ENODEV);
}

static void a_library_that_is_not_there_is_an_error(void **state)
{
    void *library;
    struct gn_error err;
    assert_int_equal(gn_cl_backend.open_library("/nonexistent/lib.so", &library, &err), -ENOENT);
    assert_non_null(strstr(err.what, "/nonexistent/lib.so"));
    assert_null(gn_backend_named("metal"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drivers_are_found_as_the_loaders_do),
        cmocka_unit_test(facts_are_probed),
        cmocka_unit_test(drivers_with_nothing_to_offer_are_left_out),
        cmocka_unit_test(a_platform_comes_up_with_its_chosen_devices),
        cmocka_unit_test(a_library_that_is_not_there_is_an_error),
    };
    if (argc != 2)
        return 2;
    fake = argv[1];
    unsetenv("FAKE_VENDOR");
    return cmocka_run_group_tests_name("cl_backend", tests, NULL, NULL);
}
