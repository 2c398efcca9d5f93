/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_OPENCL_HOST_RT_H
#define GN_OPENCL_HOST_RT_H

#include "backend/opencl/cl_platform.h"
#include "link/worker_wire.h"
#include "opencl_arguments.h"
#include "opencl_names.h"
#include "opencl_pixel.h"
#include "vgpu/core/vgpu_core.h"
#include "vgpu/migrate/write_tracking.h"

#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <pthread.h>

/* What generated and handwritten handlers of the OpenCL vGPU share. */

struct gn_svm_vgpu;
struct gn_home;
struct gn_device_answers_device;
struct gn_variables;
struct gn_device_lacks;

/* Whether a device's driver works on host memory in place: it is tried once, by the first buffer
 * that would gain. */
enum gn_in_place { GN_IN_PLACE_UNKNOWN, GN_IN_PLACE_NO, GN_IN_PLACE_YES };

/* What is known of programs whose launches may go in parts (slices.h). */
struct gn_slices {
    pthread_mutex_t lock;
    struct gn_list programs;
};

struct gn_opencl_vgpu {
    struct gn_cl_platform *platform;
    struct gn_extensions *extensions; /* set once */
    uint64_t largest_bytes;           /* of any device's allocations */
    uint64_t largest_side;            /* of any device's images, in pixels or layers */
    struct gn_svm_vgpu *svm;
    struct gn_svm_ways {
        bool native;              /* commands are native kernels */
        bool pointers;            /* arguments are the pointers themselves */
    } svm_ways;                   /* set with the window */
    struct gn_contents *contents; /* while it is saved or loaded */
    struct gn_device_answers_device *
        told; /* device_answers.h: of each device, where it is another than it was; NULL: of none */
    struct gn_device_lacks
        *lacks; /* while it is loaded: what the devices here have been found to lack */
    /* Helper thread. */
    bool prints[GN_WORKER_MAX_DEVICES]; /* a program that may print was built for this device */
    uint64_t printf_bytes;              /* charged for that, as long as the vGPU is there */
    struct gn_slices slices;
    atomic_bool ends_tried, tells_ends; /* event_callbacks.c: whether the driver calls back for what
                                           is over has been looked at; it does */
    /* home.c */
    pthread_mutex_t homes_lock;
    struct gn_list homes;                        /* that the driver has not let go of */
    uint64_t homes_bytes;                        /* homes_lock: the sum of theirs */
    _Atomic int in_place[GN_WORKER_MAX_DEVICES]; /* enum gn_in_place, by device; whoever looks first
                                                    finds out */
};

/* memory_contents.c: what memory objects hold, for moves. */
extern const struct gn_vgpu_contents gn_opencl_contents;
/* queue_drain.c: of the above. */
int gn_opencl_drain_queues(struct gn_vgpu *v, struct gn_vobject *const *objects, uint32_t n,
                           uint64_t timeout_ns, struct gn_error *err);

static inline const cl_icd_dispatch *gn_cl(const struct gn_vgpu *v)
{
    return v->driver;
}

static inline const struct gn_extensions *gn_extensions(const struct gn_vgpu *v)
{
    return ((const struct gn_opencl_vgpu *)v->detail)->extensions;
}

static inline struct gn_cl_platform *gn_platform_of(const struct gn_vgpu *v)
{
    return ((const struct gn_opencl_vgpu *)v->detail)->platform;
}

/* The device that a driver's device is, or is a part of: an index in vgpu->devices. */
cl_uint gn_device_index(struct gn_vgpu *v, cl_device_id device);

/* Kinds of detail: a queue's is struct gn_vqueue. */
struct gn_mem_detail {
    size_t element_bytes; /* of an image's element; 0: no image */
    bool lines;           /* an array of lines: a slice pitch apart, in the second dimension */
    struct gn_mem_charge *charge; /* device memory that it holds; NULL: none of its own */
    struct gn_home *home; /* of a buffer in the data area; the driver's last callback frees it,
                             after the release */
    /* Who writes the memory: this object's own, or, of a sub-buffer or an image over a buffer,
     * those bytes of that buffer's. */
    struct gn_writes *writes;
    bool borrowed;
    bool svm; /* it lies in shared virtual memory: of which the driver knows nothing, and which
                 stays with the program */
    uint64_t origin, extent; /* in that memory; extent: at most */
};

/* A program's. */
struct gn_program_detail {
    struct gn_sliced_program *sliced; /* helper thread, in a build; NULL: its launches run whole */
    struct gn_variables *variables;   /* set once; held */
};

/* devices.c: of struct gn_vgpu_contents. */
struct gn_stream_writer;
struct gn_stream_entry;
struct gn_record;
int gn_opencl_save_devices(struct gn_vgpu *v, struct gn_stream_writer *w,
                           struct gn_vobject *const *objects, uint32_t n,
                           struct gn_record *const *records, uint32_t n_records);
int gn_opencl_check_device(struct gn_vgpu *v, const struct gn_stream_entry *e, bool *ret_last,
                           struct gn_error *err);
int gn_opencl_judge_devices(struct gn_vgpu *v, bool *ret_others, struct gn_error *err);
int gn_opencl_save_object(struct gn_vgpu *v, struct gn_stream_writer *w,
                          const struct gn_vobject *o);
int gn_opencl_check_object(struct gn_vgpu *v, const struct gn_vobject *o,
                           const struct gn_stream_entry *e, struct gn_error *err);

/* writes.c. After creation; 0 or no memory. */
int gn_mem_writes_made(struct gn_vobject *o, struct gn_mem_detail *detail,
                       const struct gn_request *r);
/* Where these bytes of an object lie in its memory; false: outside, and the driver has refused to
 * write there. */
bool gn_mem_range(const struct gn_mem_detail *detail, uint64_t offset, uint64_t bytes,
                  uint64_t *ret_at, uint64_t *ret_bytes);
/* A command that writes objects is over. */
void gn_opencl_wrote(struct gn_vgpu *v, struct gn_command *c);

/* After creation of a queue: its detail. Not 0: no memory. */
int gn_queue_made(struct gn_vobject *o);

/* Device memory on the tenant's account (charge.c). False: it may not be had now; see
 * gn_request_charge. */
bool gn_mem_charge(struct gn_vgpu *v, struct gn_request *r, uint64_t bytes);
/* The pixels of an image, without padding; UINT64_MAX when that does not fit, or when no device has
 * such an image. */
uint64_t gn_image_bytes(struct gn_vgpu *v, const cl_image_format *format, const cl_image_desc *d);
/* At the start: what no device has more of. */
void gn_learn_largest(struct gn_vgpu *v);
/* After creation: makes the charge what the driver says that it took. NULL and *result: no room for
 * that, it is gone again. */
void *gn_mem_settle(struct gn_vgpu *v, struct gn_request *r, cl_mem mem, cl_int *result);
/* From now on the object's charge ends by itself, once the driver has destroyed it and
 * gn_mem_charge_end was called after our own release. NULL: no memory. */
struct gn_mem_charge *gn_mem_charge_keep(struct gn_vobject *o);
void gn_mem_charge_end(struct gn_mem_charge *c);
/* After a build or a link that went well: charges what the driver says that the program holds, to
 * the program (NULL: to the request, whose object it becomes). False: there is no room for that.
 * Helper thread. */
bool gn_program_charge(struct gn_vgpu *v, struct gn_request *r, struct gn_vobject *o,
                       cl_program program, bool prints);
/* May its kernels print, as far as what it was made from shows? */
bool gn_program_prints(struct gn_vobject *o);
/* programs.c: the program's text, a string to free, and its length. NULL: there is none. */
char *gn_program_source(const cl_icd_dispatch *cl, cl_program program, size_t *ret_bytes);

struct gn_kernel_detail {
    pthread_mutex_t
        lock; /* held from the first argument to the launch: a kernel has one set of arguments */
    cl_uint n_args;
    struct gn_applied_arg {
        struct gn_arg arg; /* kind 0: not set */
        void *tail;        /* of arg: malloc'd */
        cl_mem
            over; /* the buffer that an address in shared virtual memory is given as; NULL: none */
        bool writes;                 /* memory given here may be written */
    } * applied;                     /* what the driver's kernel was given last */
    struct gn_sliced_kernel *sliced; /* set once; NULL: its launches run whole */
    struct gn_variables *variables;  /* set once; held; NULL: its program has none */
    /* Of the work-groups that the program chose the size of: the most items, and the longest sides.
     * Whoever submits. */
    _Atomic uint64_t most_items, most_sides[3];
};

/*
 * The objects that a run of arguments names, each a struct gn_arg followed by its tail; as an array
 * of the request. NULL: an error in *result. On the thread that serves.
 */
struct gn_vobject **gn_kernel_args_named(struct gn_request *r, const void *run, uint64_t bytes,
                                         uint32_t *ret_n, cl_int *result);

/* A copy of a kernel with arguments of its own. */
struct gn_kernel_copy {
    cl_kernel kernel;
    cl_uint n_args;
    cl_mem *over; /* n_args buffers over shared virtual memory, or NULL */
};
/* With the arguments of a run, which names these objects. fini also after an error. On the thread
 * that serves. */
cl_int gn_kernel_copy_init(struct gn_vgpu *v, struct gn_kernel_copy *copy,
                           const struct gn_vobject *kernel, const void *run, uint64_t bytes,
                           struct gn_vobject *const *named);
void gn_kernel_copy_fini(const cl_icd_dispatch *cl, const struct gn_kernel_copy *copy);
/* A driver has accepted a launch with these local sizes. */
void gn_kernel_note_sizes(struct gn_kernel_detail *k, cl_uint work_dim,
                          const size_t *local_work_size);
struct gn_kernel_detail *gn_kernel_detail_new(struct gn_vgpu *v, cl_kernel kernel);
/* After the driver's kernel. */
void gn_kernel_detail_free(const cl_icd_dispatch *cl, struct gn_kernel_detail *k);

/* record_commands.c: command buffers. At the start: the driver's calls of extensions. Not 0: no
 * memory. */
int gn_extensions_start(struct gn_vgpu *v);
int gn_cmdbuf_made(struct gn_vobject *o, const struct gn_request *r);
void gn_cmdbuf_release(struct gn_vobject *o);
/* A run is over: marks the bytes that the buffer's fills and copies wrote. Any thread. */
void gn_cmdbuf_wrote(struct gn_vgpu *v, struct gn_vobject *o);

/* Buffers in the data area. Ring thread. */
bool gn_home_possible(struct gn_vgpu *v, cl_context context);
/* Whether a program of another machine may have that much more of this machine's memory so. */
bool gn_home_has_room(struct gn_vgpu *v, size_t size);
/* NULL and *result when the driver refuses. */
cl_mem gn_home_buffer(struct gn_vgpu *v, cl_context context, cl_mem_flags flags, size_t size,
                      void *bytes, cl_int *result);
/* objects.c: what the driver says of its contexts from now on is not told. */
void gn_speaker_leave(struct gn_vgpu *v);
/* The driver ends with this process: what the program waits for it to let go of is free. */
void gn_homes_end(struct gn_vgpu *v);
/* The event that will tell that an object's home is free: struct gn_vgpu_contents. */
uint32_t gn_home_leaving(const struct gn_vobject *o);
void gn_home_leave_by(struct gn_vobject *o, uint32_t event);
/* The home of the buffer that this thread has made last, once; NULL: it has none. */
struct gn_home *gn_home_take(void);

/* Shared virtual memory. Any thread. */
struct gn_svm_vgpu *gn_svm_vgpu_new(void);
/* Only a test ever outlives its vGPU. */
void gn_svm_vgpu_free(struct gn_svm_vgpu *s);
/* Do these bytes lie in one live allocation? */
bool gn_svm_live(struct gn_vgpu *v, uint64_t address, uint64_t bytes);
/* So many bytes of a live allocation begin there. 0: it lies in none. */
uint64_t gn_svm_reach(struct gn_vgpu *v, uint64_t address);
/* May a kernel be given this? NULL, and what lies in the window. */
bool gn_svm_address_ok(struct gn_vgpu *v, uint64_t address);
void gn_svm_forget(struct gn_vgpu *v, uint64_t id);

static const size_t gn_zero3[3];

/* Bytes of a region; UINT64_MAX when that does not fit. */
static inline uint64_t gn_product(const uint64_t *region)
{
    return gn_times(gn_times(region[0], region[1]), region[2]);
}

/* Bytes that a rectangle of a buffer may touch in host memory with these pitches; 0: tight. */
static inline uint64_t gn_rect_span(const uint64_t *region, uint64_t row_pitch,
                                    uint64_t slice_pitch)
{
    return gn_pitched_bytes(1, region, row_pitch, slice_pitch, false);
}

/* Bytes that an image region may touch in host memory with these pitches; 0: tight. */
static inline uint64_t gn_image_span(const struct gn_vobject *image, const uint64_t *region,
                                     uint64_t row_pitch, uint64_t slice_pitch)
{
    const struct gn_mem_detail *detail = image ? image->detail : NULL;
    return detail ? gn_pitched_bytes(detail->element_bytes, region, row_pitch, slice_pitch,
                                     detail->lines)
                  : 0;
}

#endif
