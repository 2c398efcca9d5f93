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

/* Declarations shared by the generated and the handwritten handlers of the OpenCL vGPU. */

struct gn_residency;
struct gn_resident;
struct gn_svm_vgpu;
struct gn_home;
struct gn_device_answers_device;
struct gn_variables;
struct gn_device_lacks;
struct gn_kept_args;

/*
 * Whether a device's driver works on host memory in place. The first buffer that would benefit
 * triggers the test.
 */
enum gn_in_place { GN_IN_PLACE_UNKNOWN, GN_IN_PLACE_NO, GN_IN_PLACE_YES };

/* Programs with launches that may be sliced (slices.h). */
struct gn_slices {
    pthread_mutex_t lock;
    struct gn_list programs;
};

struct gn_opencl_vgpu {
    struct gn_cl_platform *platform;
    struct gn_extensions *extensions; /* set once */
    uint64_t largest_bytes;           /* largest CL_DEVICE_MAX_MEM_ALLOC_SIZE of any device */
    uint64_t largest_side;            /* largest image side of any device, in pixels or layers */
    struct gn_svm_vgpu *svm;
    struct gn_svm_ways {
        bool native;                /* commands are native kernels */
        bool pointers;              /* arguments are the pointers themselves */
    } svm_ways;                     /* set with the window */
    struct gn_contents *contents;   /* during a save or a load */
    struct gn_residency *residency; /* residency.c; set once; NULL: nothing is evicted */
    struct gn_kept_args *kept_args; /* kept_args.c; set once; NULL: nothing is evicted */
    /* device_answers.h: of each device, where it differs from the first one; NULL: none differs */
    struct gn_device_answers_device *reported;
    struct gn_device_lacks *lacks; /* during a load: features that the devices here lack */
    /* Helper thread. */
    bool prints[GN_WORKER_MAX_DEVICES]; /* a program that may print was built for this device */
    uint64_t printf_bytes;              /* charged for that until the vGPU ends */
    struct gn_slices slices;
    /* event_callbacks.c: the driver has been tested; it calls back for completed events */
    atomic_bool ends_tried, tells_ends;
    /* home.c */
    pthread_mutex_t homes_lock;
    struct gn_list homes; /* buffers that the driver still uses */
    /* enum gn_in_place, by device; the first user tests it */
    _Atomic int in_place[GN_WORKER_MAX_DEVICES];
};

/* memory_contents.c: contents of memory objects, for migrations. */
extern const struct gn_vgpu_contents gn_opencl_contents;
/* queue_drain.c: part of gn_opencl_contents. */
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

/* The index in vgpu->devices of the root device of `device`, which may be a sub-device. */
cl_uint gn_device_index(struct gn_vgpu *v, cl_device_id device);

/* Kinds of detail. A queue's detail is struct gn_vqueue. */
struct gn_mem_detail {
    size_t element_bytes; /* of an image's element; 0: no image */
    bool lines;           /* an array of lines: its second dimension is a slice pitch apart */
    struct gn_mem_charge *charge; /* its device memory; NULL: it has none of its own */
    /* of a buffer in the data area; the driver's last callback frees it, after the release */
    struct gn_home *home;
    /*
     * Write tracking of the memory: this object's own, or, for a sub-buffer or an image over a
     * buffer, that buffer's.
     */
    struct gn_writes *writes;
    bool borrowed;
    struct gn_resident *resident; /* residency.c; set once; NULL: nothing is evicted */
    /*
     * it lies in shared virtual memory: the driver does not know it, and it stays with the program
     */
    bool svm;
    /* the object's place in the memory of `writes`; extent: an upper bound */
    uint64_t origin, extent;
};

/* Detail of a program. */
struct gn_program_detail {
    /* set by the helper thread in a build; NULL: its launches run whole */
    struct gn_sliced_program *sliced;
    struct gn_variables *variables; /* set once; held */
};

/* devices.c: functions of struct gn_vgpu_contents. */
struct gn_stream_writer;
struct gn_stream_entry;
struct gn_record;
int gn_opencl_save_devices(struct gn_vgpu *v, struct gn_stream_writer *w,
                           struct gn_vobject *const *objects, uint32_t n,
                           struct gn_record *const *records, uint32_t n_records);
int gn_opencl_check_device(struct gn_vgpu *v, const struct gn_stream_entry *e, bool *ret_last,
                           struct gn_error *err);
int gn_opencl_compare_devices(struct gn_vgpu *v, bool *ret_others, struct gn_error *err);
int gn_opencl_save_object(struct gn_vgpu *v, struct gn_stream_writer *w,
                          const struct gn_vobject *o);
int gn_opencl_check_object(struct gn_vgpu *v, const struct gn_vobject *o,
                           const struct gn_stream_entry *e, struct gn_error *err);

/* writes.c. Called after creation. Returns 0, or nonzero: no memory. */
int gn_mem_writes_made(struct gn_vobject *o, struct gn_mem_detail *detail,
                       const struct gn_request *r);
/*
 * Converts a range of the object into a range of its memory. False: outside; then the driver has
 * refused the write.
 */
bool gn_mem_range(const struct gn_mem_detail *detail, uint64_t offset, uint64_t bytes,
                  uint64_t *ret_at, uint64_t *ret_bytes);
/* Called when a command that writes objects is over. */
void gn_opencl_wrote(struct gn_vgpu *v, struct gn_command *c);
/* Called before a command that writes objects is given to the driver, for their copies in host
 * memory. */
void gn_opencl_will_write(struct gn_vgpu *v, const struct gn_command *c);

/* Makes a queue's detail, after its creation. Nonzero: no memory. */
int gn_queue_made(struct gn_vobject *o);

/*
 * Charges device memory to the tenant (charge.c), and what its eviction takes. flags: of the
 * object. False: none now; see gn_request_charge.
 */
bool gn_mem_charge(struct gn_vgpu *v, struct gn_request *r, uint64_t bytes, cl_mem_flags flags);
/*
 * The size of an image's pixels, without padding; UINT64_MAX when it overflows or when no device
 * has such an image.
 */
uint64_t gn_image_bytes(struct gn_vgpu *v, const cl_image_format *format, const cl_image_desc *d);
/* At the start: reads the largest sizes of any device. */
void gn_learn_largest(struct gn_vgpu *v);
/*
 * After creation: adjusts the charge to the driver's size. NULL and *result: there is no room for
 * it, and the object has been released.
 */
void *gn_mem_settle(struct gn_vgpu *v, struct gn_request *r, cl_mem mem, cl_int *result);
/*
 * Ties the charge to the object: it ends when the driver has destroyed the object and
 * gn_mem_charge_end was called after the vGPU's own release. NULL: no memory.
 */
struct gn_mem_charge *gn_mem_charge_keep(struct gn_vobject *o);
/* The vGPU's object has another driver's object, whose end is awaited, too. */
void gn_mem_charge_renew(struct gn_mem_charge *c, cl_mem mem);
/* The bytes charged for a memory object; 0: none. */
uint64_t gn_mem_charge_bytes(const struct gn_vobject *o);
/* Where the object is from now on; at first it is pinned. NULL: nothing is charged. One thread at a
 * time. */
void gn_mem_charge_move(struct gn_mem_charge *c, enum gn_lease_part to);
/* Has the driver destroyed all objects that the vGPU has released in favour of others? Any thread.
 */
bool gn_mem_charge_is_freed(const struct gn_mem_charge *c);
void gn_mem_charge_end(struct gn_mem_charge *c);
/*
 * After a successful build or link: charges the program's memory, as the driver reports it, to the
 * program's object (NULL: to the request, which will own the object). False: there is no room for
 * it. Helper thread.
 */
bool gn_program_charge(struct gn_vgpu *v, struct gn_request *r, struct gn_vobject *o,
                       cl_program program, bool prints);
/* True if its kernels may print, judging by its records. */
bool gn_program_prints(struct gn_vobject *o);
/* programs.c: the program's source, which the caller frees, and its length. NULL: there is none. */
char *gn_program_source(const cl_icd_dispatch *cl, cl_program program, size_t *ret_bytes);

struct gn_kernel_detail {
    /* held from the first argument to the launch: a kernel has only one set of arguments */
    pthread_mutex_t lock;
    cl_uint n_args;
    struct gn_applied_arg {
        struct gn_arg arg;    /* kind 0: not set */
        void *tail;           /* of arg: malloc'd */
        uint64_t incarnation; /* of the object that arg names; 0: it names none */
        cl_mem over;     /* the buffer made over an address in shared virtual memory; NULL: none */
        bool writes;     /* the kernel may write the memory given here */
        bool kept_image; /* `kept` is an image */
        uint64_t kept;   /* the memory object that the driver's kernel may keep; its id, or 0 */
    } * applied;         /* the arguments that the driver's kernel has */
    cl_kernel driver;    /* set once; not owned */
    struct gn_list kept_link;        /* kept_args.c */
    uint64_t n_replaced;             /* lock: gn_objects_replaced() at the last launch */
    struct gn_sliced_kernel *sliced; /* set once; NULL: its launches run whole */
    struct gn_variables *variables;  /* set once; held; NULL: its program has none */
    /*
     * Of work-groups with a size chosen by the program: the most items, and the longest sides.
     * Written by the submitting thread.
     */
    _Atomic uint64_t most_items, most_sides[3];
};

/*
 * The objects named by a run of arguments, each a struct gn_arg followed by its tail, as an array
 * of the request. NULL: an error in *result. On the serving thread.
 */
struct gn_vobject **gn_kernel_args_named(struct gn_request *r, const void *run, uint64_t bytes,
                                         uint32_t *ret_n, cl_int *result);

/* A copy of a kernel with arguments of its own. */
struct gn_kernel_copy {
    cl_kernel kernel;
    cl_uint n_args;
    cl_mem *over; /* n_args buffers over shared virtual memory, or NULL */
};
/*
 * Makes a copy with the arguments of a run, which names these objects. Call fini also after an
 * error. On the serving thread.
 */
cl_int gn_kernel_copy_init(struct gn_vgpu *v, struct gn_kernel_copy *copy,
                           const struct gn_vobject *kernel, const void *run, uint64_t bytes,
                           struct gn_vobject *const *named);
void gn_kernel_copy_fini(const cl_icd_dispatch *cl, const struct gn_kernel_copy *copy);
/* Called when a driver has accepted a launch with these local sizes. */
void gn_kernel_note_sizes(struct gn_kernel_detail *k, cl_uint work_dim,
                          const size_t *local_work_size);
struct gn_kernel_detail *gn_kernel_detail_new(struct gn_vgpu *v, cl_kernel kernel);
/* A clone's driver's kernel has the arguments of the driver's kernel that it is a clone of. */
void gn_kernel_detail_clone(struct gn_kernel_detail *k, struct gn_kernel_detail *from);
/* Call it after the release of the driver's kernel, and gn_kept_args_remove() before. */
void gn_kernel_detail_free(const cl_icd_dispatch *cl, struct gn_kernel_detail *k);

/*
 * record_commands.c: command buffers. At the start: finds the driver's extension functions.
 * Nonzero: no memory.
 */
int gn_extensions_start(struct gn_vgpu *v);
int gn_cmdbuf_made(struct gn_vobject *o, const struct gn_request *r);
void gn_cmdbuf_release(struct gn_vobject *o);
/*
 * Called when a run is over: marks the bytes that the buffer's fills and copies wrote. Any thread.
 */
void gn_cmdbuf_wrote(struct gn_vgpu *v, struct gn_vobject *o);

/* Buffers in the data area. Ring thread. */
bool gn_home_possible(struct gn_vgpu *v, cl_context context);
/*
 * Whether a program on another machine may use that much more of this machine's memory for homes.
 */
bool gn_home_has_room(struct gn_vgpu *v, size_t size);
/* Makes a buffer over its home. NULL and *result when the driver refuses. */
cl_mem gn_home_buffer(struct gn_vgpu *v, cl_context context, cl_mem_flags flags, size_t size,
                      void *bytes, cl_int *result);
/* objects.c: from now on, messages of the driver about its contexts are dropped. */
void gn_context_messages_drop(struct gn_vgpu *v);
/* The driver ends with this process: ends the events of all homes that the program waits for. */
void gn_homes_end(struct gn_vgpu *v);
/* The event that ends when the object's home is free; see struct gn_vgpu_contents. */
uint32_t gn_home_release_event(const struct gn_vobject *o);
void gn_home_set_release_event(struct gn_vobject *o, uint32_t event);
/* The home of the buffer that this thread made last, once; NULL: it has none. */
struct gn_home *gn_home_of_last_buffer(void);

/* Shared virtual memory. Any thread. */
struct gn_svm_vgpu *gn_svm_vgpu_new(void);
/* For tests, which outlive their vGPU. */
void gn_svm_vgpu_free(struct gn_svm_vgpu *s);
/* True if these bytes lie in one live allocation. */
bool gn_svm_live(struct gn_vgpu *v, uint64_t address, uint64_t bytes);
/* The bytes from address to the end of its live allocation. 0: it lies in none. */
uint64_t gn_svm_reach(struct gn_vgpu *v, uint64_t address);
/* True if a kernel may get this address: NULL, or an address in the window. */
bool gn_svm_address_ok(struct gn_vgpu *v, uint64_t address);
void gn_svm_forget(struct gn_vgpu *v, uint64_t id);

static const size_t gn_zero3[3];

/* Size of a region; UINT64_MAX when it overflows. */
static inline uint64_t gn_product(const uint64_t *region)
{
    return gn_times(gn_times(region[0], region[1]), region[2]);
}

/* Bytes of host memory that a rectangle of a buffer may touch with these pitches; 0: tight. */
static inline uint64_t gn_rect_span(const uint64_t *region, uint64_t row_pitch,
                                    uint64_t slice_pitch)
{
    return gn_pitched_bytes(1, region, row_pitch, slice_pitch, false);
}

/* Bytes of host memory that an image region may touch with these pitches; 0: tight. */
static inline uint64_t gn_image_span(const struct gn_vobject *image, const uint64_t *region,
                                     uint64_t row_pitch, uint64_t slice_pitch)
{
    const struct gn_mem_detail *detail = image ? image->detail : NULL;
    return detail ? gn_pitched_bytes(detail->element_bytes, region, row_pitch, slice_pitch,
                                     detail->lines)
                  : 0;
}

#endif
