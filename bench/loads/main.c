/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantry-load: runs one load on whatever OpenCL driver the loader finds. Steps: set up, one short
 * pass (kernel times by profiling, which also warms up), the measured rounds on a queue without
 * profiling, the check against the CPU.
 */
#include "load.h"

#include "base/clock.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Enough samples for a median; a long kernel is not worth more than one. */
#define PROFILE_SAMPLES 15
#define PROFILE_BATCH   16
#define PROFILE_NS      (UINT64_C(300) * 1000 * 1000)
#define CALIBRATIONS    6
#define CLOSE_ENOUGH    0.08

static const struct gn_load *const loads[] = {
    &gn_load_matrixmul,   &gn_load_blackscholes, &gn_load_scan, &gn_load_histogram,
    &gn_load_convolution, &gn_load_hotspot,      &gn_load_srad, &gn_load_pathfinder,
    &gn_load_nw,          &gn_load_walsh,        &gn_load_cfd,  &gn_load_lavamd,
    &gn_load_spin,
};
#define N_LOADS (sizeof(loads) / sizeof(loads[0]))

struct options {
    const char *platform;
    const char *device;
    double seconds; /* 0: go by iterations */
    uint64_t iterations;
    size_t size;      /* 0: the load's default */
    unsigned batch;   /* 0: the load's default */
    double kernel_us; /* 0: no calibration */
    size_t groups;    /* 0: the load's default */
    unsigned reads;
    unsigned pieces;
    double sleep_us;
    bool obey;
    bool ahead;
    bool summing;
    bool profile;
    bool check;
    bool json;
};

struct measurement {
    uint64_t iterations;
    uint64_t wall_ns;
    uint64_t cpu_ns; /* of this process, all threads */
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    stop = 1;
}

static const char usage[] =
    "usage: gantry-load NAME [--seconds S | --iterations N] [--size N] [--kernel-us T] [--batch "
    "N]\n"
    "                   [--groups N] [--pieces N] [--reads N] [--sleep-us T] [--check] [--json] "
    "[--no-profile]\n"
    "                   [--platform P] [--device D]\n"
    "       gantry-load NAME --obey [--ahead | --sum-profile] [...]\n"
    "       gantry-load --list [--json]\n"
    "Runs one OpenCL load and prints what it took. SIGINT and SIGTERM end it after the current "
    "round.\n"
    "  --seconds S     measure for at least S seconds (default 2)\n"
    "  --iterations N  measure N rounds\n"
    "  --size N        problem size, in the load's unit\n"
    "  --kernel-us T   find the size at which the kernel takes about T microseconds; 'table' "
    "takes T from "
    "FairGV\n"
    "  --batch N       launches or steps a round, where the load leaves it open\n"
    "  --pieces N      launches into which each launch is cut (spin alone)\n"
    "  --groups N, --reads N   work-groups of a launch, and blocking reads a round (spin alone)\n"
    "  --sleep-us T    sleep after each round (with --obey)\n"
    "  --obey          rounds when a line \"run SECONDS\" on stdin asks for them; a line of JSON "
    "answers "
    "each\n"
    "  --ahead         never leave the device without work: wait for a round when the next is "
    "queued\n"
    "  --sum-profile   profile every launch and tell the sum (with --obey)\n"
    "  --check         compare the result with a reference computed on the CPU; a difference ends "
    "in status "
    "1\n"
    "  --no-profile    skip the pass that measures kernel times\n"
    "  --platform P, --device D   an index or a part of the name; else $GANTRY_LOAD_PLATFORM, "
    "$GANTRY_LOAD_DEVICE\n";

static const struct gn_load *find_load(const char *name)
{
    for (size_t i = 0; i < N_LOADS; i++) {
        if (strcasecmp(loads[i]->name, name) == 0)
            return loads[i];
    }
    return NULL;
}

static void list_loads(bool json)
{
    if (json)
        fputs("{\"version\":1,\"loads\":[", stdout);
    for (size_t i = 0; i < N_LOADS; i++) {
        const struct gn_load *l = loads[i];

        if (json)
            printf("%s{\"name\":\"%s\",\"about\":\"%s\",\"size\":%zu,"
                   "\"size_unit\":\"%s\",\"table_kernel_"
                   "ns\":%.0f,"
                   "\"table_async_per_10ms\":%.3f,\"table_sync_per_10ms\":%.3f}",
                   i > 0 ? "," : "", l->name, l->about, l->size, l->size_unit, l->kernel_us * 1e3,
                   l->async_rate, l->sync_rate);
        else
            printf("%-22s %s (size: %s, default %zu)\n", l->name, l->about, l->size_unit, l->size);
    }
    if (json)
        fputs("]}\n", stdout);
}

/* The load's kernel time; leaves the queue without profiling and the counts at zero. */
static uint64_t profile(struct gn_run *run)
{
    struct gn_load_kernel *main_kernel = &run->kernels[0];
    unsigned batch = run->batch;
    uint64_t start_ns;

    gn_load_use_queue(run, true);
    if (run->batch > PROFILE_BATCH)
        run->batch = PROFILE_BATCH;
    if (run->load->kernel_us < 1e5) {
        /* The first launch may compile; it is no sample. */
        run->load->round(run);
        for (size_t i = 0; i < run->n_kernels; i++)
            run->kernels[i].n_samples = 0;
    }
    start_ns = gn_now_ns();
    do {
        run->load->round(run);
    } while (main_kernel->n_samples < PROFILE_SAMPLES && gn_now_ns() - start_ns < PROFILE_NS);
    run->batch = batch;
    gn_load_use_queue(run, false);
    run->async_calls = 0;
    run->sync_calls = 0;
    run->launches = 0;
    return gn_load_kernel_ns(run);
}

static void warm_up(struct gn_run *run)
{
    unsigned batch = run->batch;

    if (run->batch > PROFILE_BATCH)
        run->batch = PROFILE_BATCH;
    run->load->round(run);
    run->batch = batch;
    run->async_calls = 0;
    run->sync_calls = 0;
    run->launches = 0;
}

static size_t round_size(const struct gn_load *load, double size)
{
    double steps = floor(size / (double)load->granule + 0.5);
    size_t rounded = steps < 1 ? load->granule : (size_t)steps * load->granule;

    if (rounded < load->min)
        return load->min;
    return rounded > load->max ? load->max : rounded;
}

/* Sets run->size so that the main kernel takes about target_us; keeps the nearest size seen. */
static void calibrate(struct gn_run *run, double target_us)
{
    size_t best_size = run->size;
    double best_error = HUGE_VAL;

    for (unsigned i = 0; i < CALIBRATIONS && !stop; i++) {
        size_t tried = run->size;
        double took_us;
        double error;

        gn_load_reset(run);
        run->load->setup(run);
        took_us = (double)profile(run) / 1e3;
        if (took_us <= 0)
            gn_load_die("the device gives no kernel times; use --size");
        error = fabs(log(took_us / target_us));
        if (error < best_error) {
            best_error = error;
            best_size = tried;
        }
        if (error < CLOSE_ENOUGH)
            break;
        run->size = round_size(run->load,
                               (double)tried * pow(target_us / took_us, 1.0 / run->load->exponent));
        if (run->size == tried)
            break;
    }
    run->size = best_size;
    gn_load_reset(run);
}

static uint64_t cpu_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct measurement measure(struct gn_run *run, const struct options *o)
{
    struct measurement m = {0};
    uint64_t limit_ns = (uint64_t)(o->seconds * 1e9);
    uint64_t start_cpu_ns = cpu_ns();
    uint64_t start_ns = gn_now_ns();

    do {
        run->load->round(run);
        m.iterations++;
    } while (!stop && (o->iterations > 0 ? m.iterations < o->iterations
                                         : gn_now_ns() - start_ns < limit_ns));
    m.wall_ns = gn_now_ns() - start_ns;
    m.cpu_ns = cpu_ns() - start_cpu_ns;
    return m;
}

static void print_json_string(const char *key, const char *value)
{
    printf("\"%s\":\"", key);
    for (; *value != '\0'; value++) {
        if (*value == '"' || *value == '\\')
            printf("\\%c", *value);
        else if ((unsigned char)*value >= 0x20)
            putchar(*value);
    }
    putchar('"');
}

static void report(struct gn_run *run, const struct options *o, const struct measurement *m,
                   bool same)
{
    double wall_10ms = (double)m->wall_ns / 1e7;
    uint64_t kernel_ns = gn_load_kernel_ns(run);
    char platform[256] = "";
    char device[256] = "";

    clGetPlatformInfo(run->platform, CL_PLATFORM_NAME, sizeof(platform), platform, NULL);
    clGetDeviceInfo(run->device, CL_DEVICE_NAME, sizeof(device), device, NULL);
    if (!o->json) {
        printf("%s on %s: size %zu (%s)\n", run->load->name, device, run->size,
               run->load->size_unit);
        printf("  %llu rounds of %llu launches in %.3f s: %.1f us a round\n",
               (unsigned long long)m->iterations,
               (unsigned long long)(run->launches / m->iterations), (double)m->wall_ns / 1e9,
               (double)m->wall_ns / 1e3 / (double)m->iterations);
        printf("  calls in 10 ms: %.3f asynchronous, %.3f synchronous\n",
               (double)run->async_calls / wall_10ms, (double)run->sync_calls / wall_10ms);
        for (size_t i = 0; i < run->n_kernels; i++)
            printf("  %s: %.1f us (median of %zu)\n", run->kernels[i].name,
                   (double)gn_load_median_ns(&run->kernels[i]) / 1e3, run->kernels[i].n_samples);
        printf("  result: %s\n", !o->check ? "not checked" : same ? "right" : "WRONG");
        return;
    }
    printf("{\"version\":1,");
    print_json_string("load", run->load->name);
    putchar(',');
    print_json_string("platform", platform);
    putchar(',');
    print_json_string("device", device);
    printf(
        ",\"size\":%zu,\"batch\":%u,\"iterations\":%llu,\"wall_ns\":%llu,"
        "\"cpu_ns\":%llu,\"launches\":%llu,"
        "\"async_calls\":%llu,\"sync_calls\":%llu,\"async_per_10ms\":%.4f,\"sync_per_10ms\":%.4f,"
        "\"kernel_ns\":%llu,\"kernels\":[",
        run->size, run->batch, (unsigned long long)m->iterations, (unsigned long long)m->wall_ns,
        (unsigned long long)m->cpu_ns, (unsigned long long)run->launches,
        (unsigned long long)run->async_calls, (unsigned long long)run->sync_calls,
        (double)run->async_calls / wall_10ms, (double)run->sync_calls / wall_10ms,
        (unsigned long long)kernel_ns);
    for (size_t i = 0; i < run->n_kernels; i++)
        printf("%s{\"name\":\"%s\",\"median_ns\":%llu,\"samples\":%zu}", i > 0 ? "," : "",
               run->kernels[i].name, (unsigned long long)gn_load_median_ns(&run->kernels[i]),
               run->kernels[i].n_samples);
    printf("],\"checked\":%s,\"right\":%s}\n", o->check ? "true" : "false",
           !o->check ? "null"
           : same    ? "true"
                     : "false");
}

static _Noreturn void bad_usage(const char *what, const char *value)
{
    fprintf(stderr, "gantry-load: %s%s%s\n%s", what, value != NULL ? " " : "",
            value != NULL ? value : "", usage);
    exit(2);
}

static double parse_number(const char *option, const char *text)
{
    char *end;
    double value;

    errno = 0;
    value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !(value > 0) || value > 1e15) {
        fprintf(stderr, "gantry-load: %s wants a number above 0, not \"%s\"\n", option, text);
        exit(2);
    }
    return value;
}

static const struct gn_load *parse(int argc, char **argv, struct options *o)
{
    enum {
        SECONDS = 256,
        ITERATIONS,
        SIZE,
        KERNEL_US,
        BATCH,
        CHECK,
        JSON,
        NO_PROFILE,
        PLATFORM,
        DEVICE,
        LIST,
        HELP,
        GROUPS,
        READS,
        PIECES,
        SLEEP_US,
        OBEY,
        AHEAD,
        SUM_PROFILE
    };
    static const struct option known[] = {
        {"seconds", required_argument, NULL, SECONDS},
        {"iterations", required_argument, NULL, ITERATIONS},
        {"size", required_argument, NULL, SIZE},
        {"kernel-us", required_argument, NULL, KERNEL_US},
        {"batch", required_argument, NULL, BATCH},
        {"groups", required_argument, NULL, GROUPS},
        {"reads", required_argument, NULL, READS},
        {"pieces", required_argument, NULL, PIECES},
        {"sleep-us", required_argument, NULL, SLEEP_US},
        {"obey", no_argument, NULL, OBEY},
        {"ahead", no_argument, NULL, AHEAD},
        {"sum-profile", no_argument, NULL, SUM_PROFILE},
        {"check", no_argument, NULL, CHECK},
        {"json", no_argument, NULL, JSON},
        {"no-profile", no_argument, NULL, NO_PROFILE},
        {"platform", required_argument, NULL, PLATFORM},
        {"device", required_argument, NULL, DEVICE},
        {"list", no_argument, NULL, LIST},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    const struct gn_load *load;
    const char *kernel_us = NULL;
    bool list = false;
    int c;

    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (c) {
        case SECONDS:
            o->seconds = parse_number("--seconds", optarg);
            break;
        case ITERATIONS:
            o->iterations = (uint64_t)parse_number("--iterations", optarg);
            break;
        case SIZE:
            o->size = (size_t)parse_number("--size", optarg);
            break;
        case KERNEL_US:
            kernel_us = optarg;
            break;
        case BATCH:
            o->batch = (unsigned)parse_number("--batch", optarg);
            break;
        case GROUPS:
            o->groups = (size_t)parse_number("--groups", optarg);
            break;
        case READS:
            o->reads = (unsigned)parse_number("--reads", optarg);
            break;
        case PIECES:
            o->pieces = (unsigned)parse_number("--pieces", optarg);
            break;
        case SLEEP_US:
            o->sleep_us = parse_number("--sleep-us", optarg);
            break;
        case OBEY:
            o->obey = true;
            break;
        case AHEAD:
            o->ahead = true;
            break;
        case SUM_PROFILE:
            o->summing = true;
            break;
        case CHECK:
            o->check = true;
            break;
        case JSON:
            o->json = true;
            break;
        case NO_PROFILE:
            o->profile = false;
            break;
        case PLATFORM:
            o->platform = optarg;
            break;
        case DEVICE:
            o->device = optarg;
            break;
        case LIST:
            list = true;
            break;
        case HELP:
            fputs(usage, stdout);
            exit(0);
        default:
            fputs(usage, stderr);
            exit(2);
        }
    }
    if (list) {
        list_loads(o->json);
        exit(0);
    }
    if (optind != argc - 1)
        bad_usage("name one load", NULL);
    load = find_load(argv[optind]);
    if (load == NULL)
        bad_usage("no such load:", argv[optind]);
    if (kernel_us != NULL)
        o->kernel_us = strcmp(kernel_us, "table") == 0 ? load->kernel_us
                                                       : parse_number("--kernel-us", kernel_us);
    return load;
}

int main(int argc, char **argv)
{
    struct options o = {
        .platform = getenv("GANTRY_LOAD_PLATFORM"),
        .device = getenv("GANTRY_LOAD_DEVICE"),
        .seconds = 2,
        .profile = true,
    };
    struct gn_run run = {0};
    struct measurement m;
    bool same = true;

    run.load = parse(argc, argv, &o);
    run.batch = o.batch > 0 ? o.batch : run.load->batch;
    run.groups = o.groups > 0 ? o.groups : run.load->groups;
    run.reads = o.reads;
    run.pieces = o.pieces > 0 ? o.pieces : 1;
    if (run.pieces > 1 && run.pieces > run.groups)
        gn_load_die("%u pieces of %zu groups", run.pieces, run.groups);
    run.summing = o.summing;
    run.size = round_size(run.load, o.size > 0 ? (double)o.size : (double)run.load->size);
    if (o.size > 0 && run.size != o.size)
        fprintf(stderr, "gantry-load: size %zu, the nearest that %s can do\n", run.size,
                run.load->name);
    gn_load_open(&run, o.platform, o.device);
    if (!o.obey) {
        signal(SIGINT, on_signal);
        signal(SIGTERM, on_signal);
    }
    if (o.kernel_us > 0)
        calibrate(&run, o.kernel_us);
    run.load->setup(&run);
    if (o.profile)
        profile(&run);
    else if (run.load->kernel_us < 1e5)
        warm_up(&run);
    if (o.obey) {
        run.ahead = o.ahead;
        gn_load_obey(&run, (uint64_t)(o.sleep_us * 1e3));
        gn_load_close(&run);
        return 0;
    }
    m = measure(&run, &o);
    if (o.check) {
        uint64_t counts[3] = {run.async_calls, run.sync_calls, run.launches};

        same = run.load->check(&run);
        run.async_calls = counts[0];
        run.sync_calls = counts[1];
        run.launches = counts[2];
    }
    report(&run, &o, &m, same);
    gn_load_close(&run);
    return same ? 0 : 1;
}
