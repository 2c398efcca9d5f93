/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-calls: what single OpenCL calls cost on whatever driver the loader finds. A plain OpenCL
 * program on one thread; run.py runs it natively and through Gantry and compares. With --only and
 * --count it makes a known number of calls of one kind, so that system calls and messages can be
 * divided by it.
 */
#include "base/clock.h"

#include <CL/cl.h>

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB(n)        ((size_t)(n) << 10)
#define MIB(n)        ((size_t)(n) << 20)
#define LARGEST       MIB(64)
#define ENQUEUE_BATCH 100

struct bench {
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel; /* empty, no arguments */
    cl_mem small;     /* 64 bytes */
    cl_mem large;     /* LARGEST bytes */
    cl_mem pinned;    /* the same, CL_MEM_ALLOC_HOST_PTR */
    cl_event done;    /* complete */
    char *host;       /* LARGEST bytes, touched */
    uint64_t count;   /* calls of each measurement; 0: its own default */
    uint64_t group;   /* calls of a group; 0: the measurement's own default */
    bool json;
    bool first; /* no figure printed yet */
};

struct figure {
    uint64_t median_ns;
    uint64_t p10_ns;
    uint64_t p90_ns;
};

static _Noreturn void die(const char *what, cl_int rc)
{
    fprintf(stderr, "bench-calls: %s failed: %d\n", what, rc);
    exit(1);
}

static void need(cl_int rc, const char *what)
{
    if (rc != CL_SUCCESS)
        die(what, rc);
}

static void *allocate(size_t count, size_t bytes)
{
    void *p = calloc(count, bytes);

    if (p == NULL) {
        fputs("bench-calls: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

static void open_device(struct bench *b)
{
    static const char *const source = "__kernel void nothing(void) {}";
    cl_int rc;

    need(clGetPlatformIDs(1, &b->platform, NULL), "clGetPlatformIDs");
    need(clGetDeviceIDs(b->platform, CL_DEVICE_TYPE_ALL, 1, &b->device, NULL), "clGetDeviceIDs");
    b->context = clCreateContext(NULL, 1, &b->device, NULL, NULL, &rc);
    need(rc, "clCreateContext");
    b->queue = clCreateCommandQueue(b->context, b->device, 0, &rc);
    need(rc, "clCreateCommandQueue");
    b->program = clCreateProgramWithSource(b->context, 1, (const char **)&source, NULL, &rc);
    need(rc, "clCreateProgramWithSource");
    need(clBuildProgram(b->program, 1, &b->device, NULL, NULL, NULL), "clBuildProgram");
    b->kernel = clCreateKernel(b->program, "nothing", &rc);
    need(rc, "clCreateKernel");
    b->small = clCreateBuffer(b->context, CL_MEM_READ_WRITE, 64, NULL, &rc);
    need(rc, "clCreateBuffer");
    b->large = clCreateBuffer(b->context, CL_MEM_READ_WRITE, LARGEST, NULL, &rc);
    need(rc, "clCreateBuffer");
    b->pinned =
        clCreateBuffer(b->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, LARGEST, NULL, &rc);
    need(rc, "clCreateBuffer");
    b->host = allocate(LARGEST, 1);
    memset(b->host, 1, LARGEST);
    need(clEnqueueWriteBuffer(b->queue, b->small, CL_TRUE, 0, 64, b->host, 0, NULL, NULL),
         "clEnqueueWriteBuffer");
    /* Pages that nobody has written are all the same page of zeros, and read as fast as the cache.
     */
    need(clEnqueueWriteBuffer(b->queue, b->large, CL_TRUE, 0, LARGEST, b->host, 0, NULL, NULL),
         "clEnqueueWriteBuffer");
    need(clEnqueueWriteBuffer(b->queue, b->pinned, CL_TRUE, 0, LARGEST, b->host, 0, NULL, NULL),
         "clEnqueueWriteBuffer");
    need(clEnqueueMarkerWithWaitList(b->queue, 0, NULL, &b->done), "clEnqueueMarkerWithWaitList");
    need(clWaitForEvents(1, &b->done), "clWaitForEvents");
}

static void close_device(struct bench *b)
{
    clReleaseEvent(b->done);
    clReleaseMemObject(b->small);
    clReleaseMemObject(b->large);
    clReleaseMemObject(b->pinned);
    clReleaseKernel(b->kernel);
    clReleaseProgram(b->program);
    clReleaseCommandQueue(b->queue);
    clReleaseContext(b->context);
    free(b->host);
}

/* The calls to measure, one function each. */

static void call_image_formats(struct bench *b, size_t bytes)
{
    cl_uint n;

    need(clGetSupportedImageFormats(b->context, CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE2D, 0, NULL,
                                    &n),
         "clGetSupportedImageFormats");
}

static void call_work_group_info(struct bench *b, size_t bytes)
{
    cl_ulong local;

    need(clGetKernelWorkGroupInfo(b->kernel, b->device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof(local),
                                  &local, NULL),
         "clGetKernelWorkGroupInfo");
}

/* Creating an object cannot be answered without the driver: the synchronous null call wherever
 * queries are cached. */
static void call_create_sampler(struct bench *b, size_t bytes)
{
    cl_int rc;
    cl_sampler sampler =
        clCreateSampler(b->context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &rc);

    need(rc, "clCreateSampler");
    clReleaseSampler(sampler);
}

static void call_create_buffer(struct bench *b, size_t bytes)
{
    cl_int rc;
    cl_mem mem = clCreateBuffer(b->context, CL_MEM_READ_WRITE, 64, NULL, &rc);

    need(rc, "clCreateBuffer");
    clReleaseMemObject(mem);
}

static void call_event_status(struct bench *b, size_t bytes)
{
    cl_int status;

    need(clGetEventInfo(b->done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL),
         "clGetEventInfo");
}

static void call_finish(struct bench *b, size_t bytes)
{
    need(clFinish(b->queue), "clFinish");
}

static void call_launch(struct bench *b, size_t bytes)
{
    const size_t one = 1;

    need(clEnqueueNDRangeKernel(b->queue, b->kernel, 1, NULL, &one, &one, 0, NULL, NULL),
         "clEnqueueNDRangeKernel");
}

static void call_launch_finish(struct bench *b, size_t bytes)
{
    call_launch(b, bytes);
    call_finish(b, bytes);
}

static void call_read(struct bench *b, size_t bytes)
{
    need(clEnqueueReadBuffer(b->queue, bytes <= 64 ? b->small : b->large, CL_TRUE, 0, bytes,
                             b->host, 0, NULL, NULL),
         "clEnqueueReadBuffer");
}

static void call_write(struct bench *b, size_t bytes)
{
    need(clEnqueueWriteBuffer(b->queue, bytes <= 64 ? b->small : b->large, CL_TRUE, 0, bytes,
                              b->host, 0, NULL, NULL),
         "clEnqueueWriteBuffer");
}

/* Map for reading and writing, change every byte, unmap, wait. */
static void map_and_change(struct bench *b, cl_mem mem, size_t bytes)
{
    cl_int rc;
    uint64_t *p = clEnqueueMapBuffer(b->queue, mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes,
                                     0, NULL, NULL, &rc);

    need(rc, "clEnqueueMapBuffer");
    for (size_t i = 0; i < bytes / sizeof(*p); i++)
        p[i] += UINT64_C(0x0101010101010101);
    need(clEnqueueUnmapMemObject(b->queue, mem, p, 0, NULL, NULL), "clEnqueueUnmapMemObject");
    call_finish(b, bytes);
}

static void call_map(struct bench *b, size_t bytes)
{
    map_and_change(b, b->large, bytes);
}

/* The same of a buffer whose memory the host asked to have at hand. */
static void call_map_pinned(struct bench *b, size_t bytes)
{
    map_and_change(b, b->pinned, bytes);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static struct figure summarise(uint64_t *samples_ns, size_t n)
{
    qsort(samples_ns, n, sizeof(*samples_ns), by_value);
    return (struct figure){samples_ns[n / 2], samples_ns[n / 10], samples_ns[n - 1 - n / 10]};
}

static void print_figure(struct bench *b, const char *name, size_t bytes, uint64_t calls,
                         struct figure f)
{
    double gb_s = bytes >= KIB(64) && f.median_ns > 0 ? (double)bytes / (double)f.median_ns : 0;

    if (b->json) {
        printf("%s{\"name\":\"%s\",\"calls\":%llu,\"bytes\":%zu,\"median_ns\":%llu,\"p10_ns\":%llu,"
               "\"p90_"
               "ns\":%llu}",
               b->first ? "" : ",", name, (unsigned long long)calls, bytes,
               (unsigned long long)f.median_ns, (unsigned long long)f.p10_ns,
               (unsigned long long)f.p90_ns);
    } else {
        printf("%-22s %10zu B %12llu ns (p10 %llu, p90 %llu)", name, bytes,
               (unsigned long long)f.median_ns, (unsigned long long)f.p10_ns,
               (unsigned long long)f.p90_ns);
        printf(gb_s > 0 ? " %.2f GB/s\n" : "\n", gb_s);
    }
    b->first = false;
}

/*
 * A group of calls is made without reading the clock between them; one sample is the
 * mean of a group. pause_ns lets every spinning waiter go to sleep before each sample.
 */
struct measurement {
    const char *name;
    void (*call)(struct bench *b, size_t bytes);
    size_t bytes;
    unsigned group;
    uint64_t calls;
    uint64_t pause_ns;
    bool drain; /* clFinish after each group, outside of the measured time */
    bool data;  /* of the transfers, which --data alone measures */
};

static const struct measurement measurements[] = {
    {"image_formats", call_image_formats, 0, 10, 20000, 0, false, false},
    {"work_group_info", call_work_group_info, 0, 10, 20000, 0, false, false},
    {"create_sampler", call_create_sampler, 0, 1, 20000, 0, false, false},
    {"create_buffer", call_create_buffer, 0, 1, 4000, 0, false, false},
    {"event_status", call_event_status, 0, 100, 100000, 0, false, false},
    {"finish_idle", call_finish, 0, 1, 20000, 0, false, false},
    {"enqueue", call_launch, 0, ENQUEUE_BATCH, 20000, 0, true, false},
    {"launch", call_launch_finish, 0, 1, 10000, 0, false, false},
    {"launch_parked", call_launch_finish, 0, 1, 150, 5000000, false, false},
    {"read", call_read, 4, 1, 10000, 0, false, false},
    {"write", call_write, 4, 1, 10000, 0, false, false},
    {"read", call_read, KIB(64), 1, 2000, 0, false, true},
    {"write", call_write, KIB(64), 1, 2000, 0, false, true},
    {"map", call_map, KIB(64), 1, 2000, 0, false, true},
    {"map_pinned", call_map_pinned, KIB(64), 1, 2000, 0, false, true},
    {"read", call_read, MIB(1), 1, 500, 0, false, true},
    {"write", call_write, MIB(1), 1, 500, 0, false, true},
    {"map", call_map, MIB(1), 1, 500, 0, false, true},
    {"map_pinned", call_map_pinned, MIB(1), 1, 500, 0, false, true},
    {"read", call_read, MIB(4), 1, 100, 0, false, true},
    {"write", call_write, MIB(4), 1, 100, 0, false, true},
    {"map", call_map, MIB(4), 1, 100, 0, false, true},
    {"map_pinned", call_map_pinned, MIB(4), 1, 100, 0, false, true},
    {"read", call_read, MIB(16), 1, 40, 0, false, true},
    {"write", call_write, MIB(16), 1, 40, 0, false, true},
    {"map", call_map, MIB(16), 1, 40, 0, false, true},
    {"map_pinned", call_map_pinned, MIB(16), 1, 40, 0, false, true},
    {"read", call_read, MIB(64), 1, 15, 0, false, true},
    {"write", call_write, MIB(64), 1, 15, 0, false, true},
    {"map", call_map, MIB(64), 1, 15, 0, false, true},
    {"map_pinned", call_map_pinned, MIB(64), 1, 15, 0, false, true},
};
#define N_MEASUREMENTS (sizeof(measurements) / sizeof(measurements[0]))

static void measure(struct bench *b, const struct measurement *m)
{
    const uint64_t calls = b->count > 0 ? b->count : m->calls;
    const uint64_t group = b->group > 0 ? b->group : m->group;
    size_t n = (size_t)((calls + group - 1) / group);
    uint64_t *samples_ns = allocate(n, sizeof(*samples_ns));

    for (unsigned i = 0; i < 3; i++)
        m->call(b, m->bytes);
    need(clFinish(b->queue), "clFinish");
    for (size_t s = 0; s < n; s++) {
        uint64_t start_ns;

        if (m->pause_ns > 0)
            nanosleep(&(struct timespec){.tv_nsec = (long)m->pause_ns}, NULL);
        start_ns = gn_now_ns();
        for (uint64_t i = 0; i < group; i++)
            m->call(b, m->bytes);
        samples_ns[s] = (gn_now_ns() - start_ns) / group;
        if (m->drain)
            need(clFinish(b->queue), "clFinish");
    }
    print_figure(b, m->name, m->bytes, n * group, summarise(samples_ns, n));
    free(samples_ns);
}

static const char usage[] =
    "usage: bench-calls [--data] [--only NAME] [--bytes N] [--count N] [--group N] [--json]\n"
    "Measures single OpenCL calls on the first device of the first platform.\n"
    "  --data       transfers of 64 KiB and more, and only those\n"
    "  --only NAME  one measurement (--list names them); --bytes N only those of that size\n"
    "  --count N    make N calls of each, rounded up to whole groups\n"
    "  --group N    calls between two readings of the clock (and, for enqueues, two clFinish)\n";

static void list(void)
{
    for (size_t i = 0; i < N_MEASUREMENTS; i++)
        printf("%s %zu\n", measurements[i].name, measurements[i].bytes);
}

static bool parse_count(const char *option, const char *text, uint64_t *count)
{
    char *end;

    errno = 0;
    *count = strtoull(text, &end, 10);
    if (errno == 0 && *end == '\0' && *count > 0 && *count <= UINT64_C(100000000))
        return true;
    fprintf(stderr, "bench-calls: %s wants a number from 1 to 100000000, not \"%s\"\n", option,
            text);
    return false;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"data", no_argument, NULL, 'd'},
        {"only", required_argument, NULL, 'o'},
        {"bytes", required_argument, NULL, 'b'},
        {"count", required_argument, NULL, 'c'},
        {"group", required_argument, NULL, 'g'},
        {"json", no_argument, NULL, 'j'},
        {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct bench b = {.first = true};
    bool data = false;
    const char *only = NULL;
    const char *bytes = NULL;
    size_t n_run = 0;
    int c;

    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (c) {
        case 'd':
            data = true;
            break;
        case 'o':
            only = optarg;
            break;
        case 'b':
            bytes = optarg;
            break;
        case 'c':
            if (!parse_count("--count", optarg, &b.count))
                return 2;
            break;
        case 'g':
            if (!parse_count("--group", optarg, &b.group))
                return 2;
            break;
        case 'j':
            b.json = true;
            break;
        case 'l':
            list();
            return 0;
        case 'h':
            fputs(usage, stdout);
            return 0;
        default:
            fputs(usage, stderr);
            return 2;
        }
    }
    if (optind != argc) {
        fputs(usage, stderr);
        return 2;
    }
    for (size_t i = 0; i < N_MEASUREMENTS; i++) {
        const struct measurement *m = &measurements[i];

        if (m->data != data || (only != NULL && strcmp(only, m->name) != 0) ||
            (bytes != NULL && strtoull(bytes, NULL, 10) != m->bytes))
            continue;
        if (n_run++ == 0) {
            open_device(&b);
            if (b.json)
                fputs("{\"version\":1,\"figures\":[", stdout);
        }
        measure(&b, m);
    }
    if (n_run == 0) {
        fputs("bench-calls: no such measurement; --list names them\n", stderr);
        return 2;
    }
    if (b.json)
        fputs("]}\n", stdout);
    close_device(&b);
    return 0;
}
