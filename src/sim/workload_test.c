/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests descriptions of workloads, by file, by words and recorded: their meaning, and the error for
 * every mistake.
 */
#include "sim/workload.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/checked.h"

static int parse(struct gn_sim_workload *w, const char *text, struct gn_error *err)
{
    gn_sim_workload_init(w);
    return gn_sim_workload_parse(w, "lab.sim", text, strlen(text), err);
}

static void a_description_is_read(void **state)
{
    struct gn_sim_workload w;
    struct gn_error err;
    assert_int_equal(
        parse(
            &w,
            "# two tenants\n[sim]\ndevices = 4\ntime = 1.5min\nslice=30ms\nspin = 0\nseed = 9\n"
            "policy = fair\npolicy = rr,credit\ntrace = /tmp/x.csv\n"
            "[tenant blue]\nweight = 300\ncap = 50%\nfloor = 0.125\n"
            "kernel = exp:200us\nvgpus = 3\n"
            "[program train]\ntenant = blue\nweight = 7\nkernel = 1ms..2.5ms\nthink = 1us/2us/1us\n"
            "arrive = 0..5s\nstay = 1h\nburst = 16\n"
            "[ tenant  green ]\ncopies = 10\nevery = 10ms\n",
            &err),
        0);
    assert_int_equal(w.n_devices, 4);
    assert_true(w.time_ns == 90 * UINT64_C(1000000000));
    assert_int_equal(w.slice_ns, 30000000);
    assert_int_equal(w.spin_ns, 0);
    assert_int_equal(w.n_policies, 3);
    assert_string_equal(w.policies[2]->name, "credit");
    assert_string_equal(w.trace_path, "/tmp/x.csv");
    assert_int_equal(w.n_tenants, 2);
    assert_int_equal(w.tenants[0].weight, 300);
    assert_int_equal(w.tenants[0].cap, 500000);
    assert_int_equal(w.tenants[0].floor, 125000);
    assert_int_equal(w.n_programs, 3);
    assert_string_equal(w.programs[0].name, "blue");
    assert_int_equal(w.programs[0].kernel.shape, GN_SIM_EXPONENTIAL);
    assert_int_equal(w.programs[0].weight, 100);
    assert_int_equal(w.programs[1].weight, 7);
    assert_int_equal(w.programs[1].kernel.ns[1], 2500000);
    assert_int_equal(w.programs[1].think.n, 3);
    assert_int_equal(w.programs[1].burst, 16);
    assert_true(w.programs[1].leaves && !w.programs[0].leaves);
    assert_true(w.programs[2].scheduled);
    w.trace_path[0] = 0;
    assert_int_equal(gn_sim_workload_finish(&w, &err), 0);
    assert_int_equal(gn_sim_workload_vgpus(&w), 3 + 1 + 10);
    gn_sim_workload_fini(&w);
}

static void words_mean_what_a_file_does(void **state)
{
    struct gn_sim_workload w;
    struct gn_error err;
    gn_sim_workload_init(&w);
    assert_int_equal(gn_sim_workload_add_tenant(&w, "a", &err), 0);
    assert_int_equal(gn_sim_workload_add_tenant(&w, "b:3,cap=25%,kernel=20us/5ms,vgpus=2", &err),
                     0);
    assert_int_equal(gn_sim_workload_add_program(&w, "p,tenant=a,think=1ms", &err), 0);
    assert_int_equal(gn_sim_workload_finish(&w, &err), 0);
    assert_int_equal(w.tenants[0].weight, 100);
    assert_int_equal(w.tenants[1].weight, 3);
    assert_int_equal(w.tenants[1].cap, 250000);
    assert_int_equal(w.n_programs, 2);
    assert_string_equal(w.programs[0].name, "b");
    assert_int_equal(w.programs[0].kernel.shape, GN_SIM_ONE_OF);
    assert_int_equal(w.programs[1].tenant, 0);
    assert_string_equal(w.policies[0]->name, "fair");
    assert_true(w.time_ns == 10 * UINT64_C(1000000000));
    gn_sim_workload_fini(&w);
}

static void mistakes_name_their_line(void **state)
{
    static const struct {
        const char *text;
        const char *where;
        const char *what;
    } bad[] = {
        {"devices = 1\n", "lab.sim:1: ", "before any section"},
        {"[sim]\ndevices\n", "lab.sim:2: ", "malformed line"},
        {"[sim\n", "lab.sim:1: ", "malformed section"},
        {"[gantryd]\n", "lab.sim:1: ", "unknown section \"gantryd\""},
        {"[tenant]\n", "lab.sim:1: ", "unknown section"},
        {"[tenant a b]\n", "lab.sim:1: ", "\"a b\" is not a name"},
        {"[tenant a]\n\n[tenant a]\n", "lab.sim:3: ", "a second description of the tenant \"a\""},
        {"[program a]\n[program a]\n", "lab.sim:2: ", "a second description of the program \"a\""},
        {"[program a]\n[tenant a]\nkernel = 1ms\n",
         "lab.sim:3: ", "a second description of the program \"a\""},
        {"[sim]\ndevices = 0\n", "lab.sim:2: ", "\"0\" is not a number of devices"},
        {"[sim]\ndevices = 1001\n", "lab.sim:2: ", "not a number of devices"},
        {"[sim]\ndevices = 1\ndevices = 2\n", "lab.sim:3: ", "given twice: \"devices\""},
        {"[sim]\ntime = 0\n", "lab.sim:2: ", "shows nothing"},
        {"[sim]\ntime = 10\n", "lab.sim:2: ", "\"10\" is not a time"},
        {"[sim]\ntime = 31 days\n", "lab.sim:2: ", "not a time"},
        {"[sim]\ntime = 721h\n", "lab.sim:2: ", "not a time"},
        {"[sim]\nslice = 0\n", "lab.sim:2: ", "gives nobody the device"},
        {"[sim]\nslice = -1ms\n", "lab.sim:2: ", "not a time"},
        {"[sim]\nspin = 1.ms\n", "lab.sim:2: ", "not a time"},
        {"[sim]\nseed = x\n", "lab.sim:2: ", "\"x\" is not a seed"},
        {"[sim]\npolicy = lottery\n", "lab.sim:2: ", "there is no policy \"lottery\""},
        {"[sim]\npolicy = fair,\n", "lab.sim:2: ", "there is no policy \"\""},
        {"[sim]\npolicy = fair\npolicy = fair\n", "lab.sim:3: ", "named twice"},
        {"[sim]\ncolour = blue\n", "lab.sim:2: ", "unknown key \"colour\""},
        {"[tenant a]\nweight = 0\n", "lab.sim:2: ", "\"0\" is not a weight"},
        {"[tenant a]\nweight = 1000001\n", "lab.sim:2: ", "not a weight"},
        {"[tenant a]\nweight = 1\nweight = 1\n", "lab.sim:3: ", "given twice: \"weight\""},
        {"[tenant a]\ncap = 1.5\n", "lab.sim:2: ", "a cap of \"1.5\" is more than a device has"},
        {"[tenant a]\ncap = 101%\n", "lab.sim:2: ", "more than a device has"},
        {"[tenant a]\ncap = 0\n", "lab.sim:2: ", "is nothing"},
        {"[tenant a]\ncap = half\n", "lab.sim:2: ", "a cap cannot be \"half\""},
        {"[tenant a]\ncap = 99999999999999999999%\n", "lab.sim:2: ", "a cap cannot be"},
        {"[tenant a]\nfloor = 30%\ncap = 20%\n",
         "lab.sim:3: ", "the floor of \"a\" is above its cap"},
        {"[tenant a]\nfloor = 60%\n[tenant b]\nfloor = 50%\n",
         "lab.sim:4: ", "the floors promise 110 % of a device"},
        {"[tenant a]\nfloor = 60%\ncopies = 2\n", "lab.sim:3: ", "the floors promise 120 %"},
        {"[tenant a]\ncolour = blue\n", "lab.sim:2: ", "unknown key \"colour\""},
        {"[tenant a]\nkernel = 0\n", "lab.sim:2: ", "a kernel of no time"},
        {"[tenant a]\nkernel = exp:\n", "lab.sim:2: ", "\"exp:\" is not a time"},
        {"[tenant a]\nkernel = 2ms..1ms\n", "lab.sim:2: ", "ends before it begins"},
        {"[tenant a]\nkernel = 1ms/\n", "lab.sim:2: ", "not a time"},
        {"[tenant a]\nkernel = 1s/1s/1s/1s/1s/1s/1s/1s/1s\n", "lab.sim:2: ", "too many choices"},
        {"[tenant a]\nevery = 0\n", "lab.sim:2: ", "launches in no time"},
        {"[tenant a]\nevery = 1s\nthink = 1s\n",
         "lab.sim:3: ", "either a while after the last kernel (think) or"},
        {"[tenant a]\nvgpus = 0\n", "lab.sim:2: ", "not a number of vGPUs"},
        {"[program p]\ntenant = a\n", "lab.sim:2: ", "there is no tenant \"a\" so far"},
        {"[tenant a]\n[program p]\ntenant = a\ntenant = a\n",
         "lab.sim:4: ", "given twice: \"tenant\""},
        {"[program p]\ncap = 5%\n", "lab.sim:2: ", "unknown key \"cap\""},
    };
    for (size_t i = 0; i < GN_ARRAY_SIZE(bad); i++) {
        struct gn_sim_workload w;
        struct gn_error err = {{0}, {0}};
        assert_int_equal(parse(&w, bad[i].text, &err), -EBADMSG);
        if (strncmp(err.what, bad[i].where, strlen(bad[i].where)) != 0 ||
            !strstr(err.what, bad[i].what))
            fail_msg("\"%s\" gave \"%s\"", bad[i].text, err.what);
        assert_null(strchr(err.what, '\n'));
        gn_sim_workload_fini(&w);
    }
}

static void mistakes_in_words_are_refused(void **state)
{
    static const struct {
        bool program;
        const char *words;
        const char *what;
    } bad[] = {
        {false, "", "\"\" is not a name"},
        {false, "a:0", "\"0\" is not a weight"},
        {false, "a:", "\"\" is not a weight"},
        {false, "a:1,weight=2", "given twice"},
        {false, "a,cap", "\"cap\" sets nothing"},
        {false, "a,cap=", "sets nothing"},
        {false, "a,=1", "sets nothing"},
        {false, "a,", "sets nothing"},
        {false, "a,cap=2", "more than a device has"},
        {true, "p", "the program \"p\" has no tenant"},
        {true, "p,tenant=x", "there is no tenant \"x\""},
    };
    for (size_t i = 0; i < GN_ARRAY_SIZE(bad); i++) {
        struct gn_sim_workload w;
        struct gn_error err = {{0}, {0}};
        gn_sim_workload_init(&w);
        assert_int_equal((bad[i].program ? gn_sim_workload_add_program
                                         : gn_sim_workload_add_tenant)(&w, bad[i].words, &err),
                         -EINVAL);
        if (!strstr(err.what, bad[i].what))
            fail_msg("\"%s\" gave \"%s\"", bad[i].words, err.what);
        gn_sim_workload_fini(&w);
    }
}

static void what_is_described_is_judged_as_a_whole(void **state)
{
    struct gn_sim_workload w;
    struct gn_error err = {{0}, {0}};
    assert_int_equal(parse(&w, "[sim]\n", &err), 0);
    assert_int_equal(gn_sim_workload_finish(&w, &err), -EINVAL);
    assert_non_null(strstr(err.what, "no tenants"));
    gn_sim_workload_fini(&w);
    assert_int_equal(parse(&w, "[program p]\n", &err), 0);
    assert_int_equal(gn_sim_workload_finish(&w, &err), -EBADMSG);
    assert_non_null(strstr(err.what, "\"p\" has no tenant"));
    gn_sim_workload_fini(&w);
    assert_int_equal(parse(&w, "[tenant a]\ncopies = 50000\nvgpus = 3\n", &err), 0);
    assert_int_equal(gn_sim_workload_finish(&w, &err), -EINVAL);
    assert_non_null(strstr(err.what, "more than 100000 vGPUs"));
    gn_sim_workload_fini(&w);
}

/* ---- recorded */

/* Reads text as a recorded workload, next to a tenant "a" of weight 7. */
static int record(struct gn_sim_workload *w, const char *text, size_t n, struct gn_error *err)
{
    char path[] = "/tmp/gantry-trace-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, n), n);
    close(fd);
    gn_sim_workload_init(w);
    assert_int_equal(gn_sim_workload_add_tenant(w, "a:7", err), 0);
    assert_int_equal(gn_sim_workload_set(w, "trace", path, err), 0);
    int rc = gn_sim_workload_finish(w, err);
    unlink(path);
    return rc;
}

static void both_formats_say_the_same(void **state)
{
    static const char *const texts[] = {
        "start_ns,vgpu,tenant,kernel_ns\n3000,1,a,10\n# a comment\n\n0,1,a,20\n0,x,b,"
        "30\r\n3000,1,a,40",
        "kernel_ns,queue,start_ns,tenant,vgpu\n10,0,3000,a,1\n20,0,0,a,1\n30,"
        "9,0,b,x\n40,,3000,a,1\n",
        "{\"start_ns\":3000,\"vgpu\":1,\"tenant\":\"a\",\"kernel_ns\":10}\n"
        "{\"start_ns\":0,\"vgpu\":\"1\",\"tenant\":\"a\",\"kernel_ns\":20,\"name\":\"saxpy\"}\n"
        "{\"start_ns\":0,\"vgpu\":\"x\",\"tenant\":\"b\",\"kernel_ns\":30}\n"
        "{\"start_ns\":3000,\"vgpu\":\"1\",\"tenant\":\"a\",\"kernel_ns\":40}\n"};
    for (size_t i = 0; i < GN_ARRAY_SIZE(texts); i++) {
        static const uint64_t kernels[] = {20, 10, 40};
        struct gn_sim_workload w;
        struct gn_error err = {{0}, {0}};
        if (record(&w, texts[i], strlen(texts[i]), &err))
            fail_msg("%s", err.what);
        assert_int_equal(w.trace.n_requests, 4);
        assert_int_equal(w.trace.n_vgpus, 2);
        assert_int_equal(w.n_tenants, 2);
        assert_int_equal(w.tenants[0].weight, 7);
        assert_int_equal(w.tenants[1].weight, 100);
        assert_int_equal(w.n_programs, 2);
        assert_int_equal(w.time_ns, 3040);
        uint32_t at = w.trace.vgpus[0].first;
        for (int k = 0; k < 3; k++, at = w.trace.requests[at].next) {
            assert_int_equal(w.trace.requests[at].kernel_ns, kernels[k]);
            assert_int_equal(w.trace.requests[at].vgpu, 0);
        }
        assert_true(at == GN_SIM_NONE);
        gn_sim_workload_fini(&w);
    }
}

static void mistakes_in_recordings_name_their_line(void **state)
{
#define NAMES "start_ns,vgpu,tenant,kernel_ns\n"
    static const struct {
        const char *text;
        int line;
        const char *what;
    } bad[] = {
        {"1,2,3,4\n", 1, "there is no column \"start_ns\""},
        {"start_ns,vgpu,tenant\n", 1, "there is no column \"kernel_ns\""},
        {"start_ns,vgpu,tenant,kernel_ns,vgpu\n", 1, "two columns are called \"vgpu\""},
        {NAMES "0,x,a\n", 2, "too few values"},
        {NAMES "0,x,a,1,1\n", 2, "one value too many"},
        {NAMES "-1,x,a,1\n", 2, "not a time: \"-1\""},
        {NAMES "0,x,a,1.5\n", 2, "not a time: \"1.5\""},
        {NAMES "0,x,a,0\n", 2, "a kernel of no time"},
        {NAMES "0,x,a,99999999999999999999\n", 2, "not a time"},
        {NAMES "0,x y,a,1\n", 2, "not a name: \"x y\""},
        {NAMES "0,x,,1\n", 2, "not a name: \"\""},
        {NAMES "0,x,a,1\n1,x,b,1\n", 3, "a second tenant of the vGPU \"x\""},
        {"{\"start_ns\":0}\n", 1, "there is no \"vgpu\""},
        {"{\"start_ns\":0,\n", 1, "not a JSON object"},
        {"{\"start_ns\":0.5,\"vgpu\":1,\"tenant\":\"a\",\"kernel_ns\":1}\n", 1,
         "neither a name nor a whole number"},
        {"{\"start_ns\":\"0\",\"vgpu\":1,\"tenant\":\"a\",\"kernel_ns\":1}\n", 1,
         "neither a name nor a whole number"},
        {"{\"start_ns\":0,\"vgpu\":1,\"tenant\":\"a\",\"kernel_ns\":1}\n[]\n", 2,
         "not a JSON object"},
    };
    for (size_t i = 0; i < GN_ARRAY_SIZE(bad); i++) {
        struct gn_sim_workload w;
        struct gn_error err = {{0}, {0}};
        char where[16];
        snprintf(where, sizeof where, ":%d: ", bad[i].line);
        assert_int_equal(record(&w, bad[i].text, strlen(bad[i].text), &err), -EBADMSG);
        if (!strstr(err.what, where) || !strstr(err.what, bad[i].what) || strchr(err.what, '\n'))
            fail_msg("\"%s\" gave \"%s\"", bad[i].text, err.what);
        gn_sim_workload_fini(&w);
    }
}

static void recordings_that_are_none_are_refused(void **state)
{
    struct gn_sim_workload w;
    struct gn_error err = {{0}, {0}};
    static char longest[6000];
    assert_int_equal(record(&w, "", 0, &err), -EBADMSG);
    assert_non_null(strstr(err.what, "holds no launches"));
    gn_sim_workload_fini(&w);
    assert_int_equal(record(&w, NAMES "0,x\0y,a,1\n", sizeof NAMES + 10, &err), -EBADMSG);
    assert_non_null(strstr(err.what, ":2: "));
    gn_sim_workload_fini(&w);
    memset(longest, '1', sizeof longest);
    assert_int_equal(record(&w, longest, sizeof longest, &err), -EBADMSG);
    assert_non_null(strstr(err.what, "not a line of text"));
    gn_sim_workload_fini(&w);
    gn_sim_workload_init(&w);
    assert_int_equal(gn_sim_workload_set(&w, "trace", "/dev/zero", &err), 0);
    assert_int_equal(gn_sim_workload_finish(&w, &err), -EBADMSG);
    assert_int_equal(gn_sim_workload_set(&w, "trace", "/nonexistent/t", &err), 0);
    assert_int_equal(gn_sim_workload_finish(&w, &err), -ENOENT);
    assert_non_null(strstr(err.what, "/nonexistent/t"));
    gn_sim_workload_fini(&w);
}

/* ---- times */

static void times_are_written_short(void **state)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } all[] = {{0, "0ns"},           {999, "999ns"},       {1000, "1us"},         {1540, "1.54us"},
               {15400, "15.4us"},    {6000000, "6ms"},     {123456789, "123ms"},  {9996000, "10ms"},
               {1500000000, "1.5s"}, {10000000000, "10s"}, {600000000000, "600s"}};
    char text[24];
    for (size_t i = 0; i < GN_ARRAY_SIZE(all); i++)
        assert_string_equal(gn_sim_format_ns(all[i].ns, text), all[i].text);
}

/* Drawn numbers have the described distribution, and a stream depends on its own number only. */
static void what_is_drawn_is_as_described(void **state)
{
    struct gn_sim_random random, same, other;
    struct gn_sim_time t;
    struct gn_error err;
    double sum = 0, squares = 0;
    int alike = 0, n = 100000, large = 0;
    gn_sim_random_init(&random, 1, 5);
    gn_sim_random_init(&same, 1, 5);
    gn_sim_random_init(&other, 1, 6);
    assert_int_equal(gn_sim_parse_time("exp:1ms", &t, &err), 0);
    for (int i = 0; i < n; i++) {
        uint64_t ns = gn_sim_draw(&t, &random);
        assert_int_equal(ns, gn_sim_draw(&t, &same));
        alike += ns == gn_sim_draw(&t, &other);
        sum += (double)ns / 1e6;
        squares += (double)ns / 1e6 * ((double)ns / 1e6);
        large += ns > 3000000;
    }
    assert_true(alike < 10);
    assert_true(sum / n > 0.98 && sum / n < 1.02); /* the mean */
    /* the mean of squares: twice the square of the mean */
    assert_true(squares / n > 1.92 && squares / n < 2.08);
    assert_true(large > 0.045 * n && large < 0.055 * n); /* above three times the mean: e^-3 */
    assert_int_equal(gn_sim_parse_time("10us..20us", &t, &err), 0);
    uint64_t least = UINT64_MAX, most = 0;
    for (int i = 0; i < n; i++) {
        uint64_t ns = gn_sim_draw(&t, &random);
        least = ns < least ? ns : least;
        most = ns > most ? ns : most;
    }
    assert_true(least >= 10000 && least < 10010 && most <= 20000 && most > 19990);
    assert_int_equal(gn_sim_parse_time("1us/1us/4us", &t, &err), 0);
    sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)gn_sim_draw(&t, &random);
    assert_true(sum / n > 1970 && sum / n < 2030);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_description_is_read),
        cmocka_unit_test(words_mean_what_a_file_does),
        cmocka_unit_test(mistakes_name_their_line),
        cmocka_unit_test(mistakes_in_words_are_refused),
        cmocka_unit_test(what_is_described_is_judged_as_a_whole),
        cmocka_unit_test(both_formats_say_the_same),
        cmocka_unit_test(mistakes_in_recordings_name_their_line),
        cmocka_unit_test(recordings_that_are_none_are_refused),
        cmocka_unit_test(times_are_written_short),
        cmocka_unit_test(what_is_drawn_is_as_described),
    };
    return cmocka_run_group_tests_name("sim-workload", tests, NULL, NULL);
}
