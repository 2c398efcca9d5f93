/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BENCH_LOAD_H
#define GN_BENCH_LOAD_H

/*
 * The frame that every load shares: a device, a queue, memory that is freed together, counted
 * calls, kernel times by profiling, comparison with a reference. A load is a description (struct
 * gn_load) and three functions; main.c runs it. Loads are plain OpenCL programs and know nothing of
 * Gantry. One thread; any OpenCL error ends the program with status 1 and one sentence, so no
 * function here returns an error.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <CL/cl.h>

#define GN_LOAD_MAX_BUFFERS 24
#define GN_LOAD_MAX_BLOCKS  32
#define GN_LOAD_MAX_KERNELS 8

/* Kernel source written as code. Constants come as -D options, for a macro argument holds no
 * directives. */
#define GN_LOAD_SOURCE(...) #__VA_ARGS__

struct gn_load_kernel {
    cl_kernel kernel;
    const char *name;
    uint64_t launches;    /* in the profiling pass only */
    uint64_t *samples_ns; /* device times from the profiling pass */
    size_t n_samples;
    size_t max_samples;
};

struct gn_run {
    /* set once, before setup */
    const struct gn_load *load;
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    size_t size;    /* the load's own measure of its problem, a multiple of load->granule */
    unsigned batch; /* launches, or steps, between two synchronous calls, where the load leaves it
                       open */
    size_t groups;  /* work-groups of a launch, and blocking reads a round, in spin alone */
    unsigned reads;
    unsigned pieces; /* into which spin itself cuts a launch */
    bool ahead;      /* gn_load_finish waits for what there was at the last one, so the device never
                        waits for the      program */
    bool summing; /* every launch's time on the device goes into profiled_ns, without waiting for it
                   */

    cl_command_queue queue;
    bool profiling; /* queue has profiling and every launch is timed */
    cl_program program;

    /* Calls of the measured part: enqueues that do not wait, and calls that return only with an
     * answer. */
    uint64_t async_calls;
    uint64_t sync_calls;
    uint64_t launches;
    cl_event behind;      /* where ahead: the last gn_load_finish's place in the queue */
    uint64_t profiled_ns; /* where summing: of all launches that a gn_load_finish has followed */
    cl_event *events;     /* those that none has */
    size_t n_events;
    size_t max_events;

    struct gn_load_kernel
        kernels[GN_LOAD_MAX_KERNELS]; /* [0] is the one that --kernel-us speaks of */
    size_t n_kernels;
    cl_mem buffers[GN_LOAD_MAX_BUFFERS];
    size_t n_buffers;
    void *blocks[GN_LOAD_MAX_BLOCKS];
    size_t n_blocks;
    uint64_t random;
    void *state; /* the load's own, from gn_load_alloc */
};

struct gn_load {
    const char *name;
    const char *about;
    const char *size_unit;
    size_t size; /* default: hits kernel_us roughly on PoCL with one thread */
    size_t granule;
    size_t min;
    size_t max;
    double exponent; /* kernel time grows with size to this power */
    unsigned batch;  /* default of gn_run.batch */
    size_t groups;   /* default of gn_run.groups */
    bool mean; /* kernel_us is the mean over all launches, not the median of the main kernel's */
    /* What the load stands in for: FairGV's table 3; 0 where it gives none. Calls are per 10 ms. */
    double kernel_us;
    double async_rate;
    double sync_rate;

    void (*setup)(struct gn_run *run);
    void (*round)(struct gn_run *run); /* one iteration; its last call is synchronous */
    /* After the measured part; may run the device again from a fresh start. */
    bool (*check)(struct gn_run *run);
};

extern const struct gn_load gn_load_matrixmul, gn_load_blackscholes, gn_load_scan,
    gn_load_histogram, gn_load_convolution, gn_load_hotspot, gn_load_srad, gn_load_pathfinder,
    gn_load_nw, gn_load_walsh, gn_load_cfd, gn_load_lavamd, gn_load_spin;

/* Ends the program with status 1 and "gantry-load: ..." on stderr. */
_Noreturn void gn_load_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Dies unless rc is CL_SUCCESS. */
void gn_load_need(cl_int rc, const char *call);

/* platform and device: an index, a part of the name, or NULL for the first. */
void gn_load_open(struct gn_run *run, const char *platform, const char *device);
void gn_load_close(struct gn_run *run);
/* Frees what setup made, so that setup can run again with another size. */
void gn_load_reset(struct gn_run *run);
/* A fresh queue on the same device; the old one is finished and released. */
void gn_load_use_queue(struct gn_run *run, bool profiling);

/* For setup. Memory and buffers live until gn_load_reset. */
void *gn_load_alloc(struct gn_run *run, size_t count, size_t item_bytes);
cl_mem gn_load_buffer(struct gn_run *run, cl_mem_flags flags, size_t bytes, const void *init);
void gn_load_build(struct gn_run *run, const char *source, const char *options_fmt, ...)
    __attribute__((format(printf, 3, 4)));
struct gn_load_kernel *gn_load_kernel(struct gn_run *run, const char *name);
void gn_load_arg(struct gn_load_kernel *k, cl_uint index, size_t bytes, const void *value);
#define GN_LOAD_ARG(k, index, value) gn_load_arg((k), (index), sizeof(value), &(value))

/* Repeatable pseudo-random numbers: the same sequence after each gn_load_reset. */
uint32_t gn_load_random(struct gn_run *run);
float gn_load_random_float(struct gn_run *run, float low, float high);

/* Takes orders from stdin until its end; see obey.c. After setup. sleep_ns: after every round. */
void gn_load_obey(struct gn_run *run, uint64_t sleep_ns);

/* For rounds: counted calls. Local sizes are always given: the loads use barriers. */
void gn_load_launch(struct gn_run *run, struct gn_load_kernel *k, size_t global, size_t local);
/* Work-items from an offset on. */
void gn_load_launch_from(struct gn_run *run, struct gn_load_kernel *k, size_t offset, size_t global,
                         size_t local);
void gn_load_launch_2d(struct gn_run *run, struct gn_load_kernel *k, const size_t global[2],
                       const size_t local[2]);
void gn_load_copy(struct gn_run *run, cl_mem from, cl_mem to, size_t bytes);
void gn_load_read(struct gn_run *run, cl_mem mem, size_t offset, size_t bytes, void *to);
void gn_load_write(struct gn_run *run, cl_mem mem, size_t offset, size_t bytes, const void *from);
void gn_load_finish(struct gn_run *run);
/* Waits for everything, also where ahead; not counted. */
void gn_load_drain(struct gn_run *run);

/* True when every pair differs by at most tolerance * max(1, |want|); says the first that does not
 * on stderr.
 */
bool gn_load_same_floats(const char *what, const float *got, const float *want, size_t n,
                         float tolerance);
bool gn_load_same_ints(const char *what, const int32_t *got, const int32_t *want, size_t n);

/* Median device time of one launch of k, from the profiling pass; 0 without samples. Sorts the
 * samples. */
uint64_t gn_load_median_ns(struct gn_load_kernel *k);
/* The load's kernel time as load->mean defines it; 0 without samples. */
uint64_t gn_load_kernel_ns(struct gn_run *run);

#endif
