/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_OPENCL_GUEST_RT_H
#define GN_OPENCL_GUEST_RT_H

#include "guest/core/guest_core.h"
#include "guest/core/loss.h"
#include "opencl_arguments.h"
#include "opencl_wire.h"

#include <CL/cl_ext.h>
#include <CL/cl_icd.h>

/* Objects and helpers shared by the generated and handwritten files of the OpenCL front end. */

/* cl_khr_icd 2.0: see docs/icd.md. */
#ifndef CL_ICD2_TAG_KHR
#define GN_ICD2_TAG ((intptr_t)(sizeof(void *) == 8 ? 0x4F50454E434C3331 : 0x434C3331))
#else
#define GN_ICD2_TAG CL_ICD2_TAG_KHR
#endif

/* Also of cl_khr_icd 2.0; missing in Debian 12's headers. */
#ifndef CL_PLATFORM_UNLOADABLE_KHR
#define CL_PLATFORM_UNLOADABLE_KHR 0x0921
#endif

/* ---- objects; each begins with struct gn_object */

/* In the driver's order. */
struct gn_cl_devices {
    cl_uint n;
    struct gn_cl_device *all[];
};

struct gn_cl_root { /* a platform */
    struct gn_object o;
    struct gn_platform platform; /* name and API */
    /* The current devices; a replaced list stays allocated. */
    struct gn_cl_devices *_Atomic devices;
    struct gn_cl_devices *known; /* all devices ever: the program may still have their handles */
};

static inline const struct gn_cl_devices *gn_cl_devices_of(const struct gn_cl_root *root)
{
    return atomic_load_explicit(&root->devices, memory_order_acquire);
}

#define GN_CL_DEVICE_NAME 128

struct gn_cl_device {
    struct gn_object o; /* parent: the device it is a sub-device of, or NULL */
    struct gn_cl_root *root;
    char name[GN_CL_DEVICE_NAME]; /* of a root device */
    cl_device_type type;
    cl_uint rank;                       /* the device with the lowest rank is the default */
    _Atomic cl_version command_buffers; /* gn_command_buffers_of */
    cl_device_svm_capabilities svm;     /* of a root device, once the session's svm_opened is set */
    uint64_t svm_largest;
};

struct gn_destructor {
    struct gn_destructor *next;
    void(CL_CALLBACK *notify)(void *, void *);
    void *user_data;
};

struct gn_cl_context {
    struct gn_object o;
    struct gn_cl_root *root;
    struct gn_cl_device **devices; /* references */
    cl_uint n_devices;
    cl_context_properties *properties; /* as given, the ending zero included; NULL: none given */
    cl_uint n_properties;
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *);
    void *user_data;
    struct gn_destructor *_Atomic destructors;
    _Atomic uint64_t home_limit; /* size limit of buffers with their home in the data area */
};

struct gn_cl_queue {
    struct gn_object o; /* parent: the context */
    struct gn_cl_context *context;
    struct gn_cl_device *device; /* reference */
    cl_command_queue_properties properties;
    cl_queue_properties *given; /* properties as given to ...WithProperties; NULL: none */
    cl_uint n_given;
    _Atomic uint64_t n_sent, n_finished; /* commands; the first n_finished are complete */
    /* The only thread that has used it; 0: none yet, 1: several threads have. */
    _Atomic uintptr_t user;
    pthread_mutex_t user_lock; /* held while its only user copies to or from a buffer's home */
};

/*
 * The memory of maps in the data area. All live maps of a buffer share one, at the same distances
 * as in the buffer.
 */
struct gn_cl_mapping {
    struct gn_block block;
    _Atomic uint32_t n_refs; /* of the object, of each map, and of each incomplete unmap */
};

struct gn_cl_map {
    struct gn_cl_map *next;
    void *ptr;
    struct gn_cl_mapping *mapping; /* NULL: at the program's own address */
    cl_map_flags flags;
    bool at_home;                  /* ptr points into the buffer's home */
    size_t origin[3], region[3];   /* in pixels for an image, in bytes for a buffer */
    size_t row_pitch, slice_pitch; /* of an image, in the mapping */
};

struct gn_cl_mem {
    struct gn_object o; /* parent: the context, or the object of which it is a part */
    struct gn_cl_context *context;
    cl_mem_object_type type;
    cl_mem_flags flags;            /* as the specification derives them */
    cl_mem_flags told_flags;       /* as the driver reported them at creation; not for a pipe */
    size_t size;                   /* of a buffer */
    size_t element_bytes;          /* of an image */
    size_t extent[3];              /* of an image; 0: unknown */
    size_t row_pitch, slice_pitch; /* of an image: the layout of host_ptr */
    char *host_ptr;                /* of CL_MEM_USE_HOST_PTR */
    bool svm;                      /* host_ptr is shared virtual memory */
    /* The home is on another machine; home_block only reserves its address in the data area. */
    bool far;
    char *home;                 /* the buffer's memory in the data area; NULL: none. See home.h */
    struct gn_block home_block; /* of a whole buffer */
    struct gn_cl_mem *source;
    size_t offset; /* in source */
    cl_mem_properties *given;
    cl_uint n_given;
    pthread_mutex_t lock;
    struct gn_cl_map *maps;                /* lock */
    struct gn_cl_mapping *mapping;         /* lock; of the whole buffer, while it is mapped */
    bool map_asked;                        /* lock; of an image: the two pitches below are known */
    size_t map_row_pitch, map_slice_pitch; /* lock; as the driver reports them */
    cl_uint n_maps;                        /* lock */
    struct gn_destructor *_Atomic destructors;
};

/* An allocation of shared virtual memory; not a handle of the program's. */
struct gn_cl_svm {
    struct gn_object o; /* parent: the context */
    char *ptr;
    size_t size;
    struct gn_block block;
};

struct gn_cl_sampler {
    struct gn_object o; /* parent: the context */
};

struct gn_cl_program {
    struct gn_object o; /* parent: the context */
    struct gn_cl_context *context;
    struct gn_cl_device **devices; /* NULL: the context's */
    cl_uint n_devices;
    _Atomic bool may_print;          /* its kernels may print: see gn_follow_stdout */
    struct gn_cl_binaries *binaries; /* binaries_lock: of the last build; NULL: not queried yet */
    uint64_t n_binaries_forgotten;   /* binaries_lock */
    struct gn_build_log *build_logs; /* build_logs_lock: one per device with a queried log */
    uint64_t n_builds;               /* build_logs_lock */
    struct gn_destructor *_Atomic destructors;
};

struct gn_cl_arg {
    struct gn_object *named; /* the object with id arg.value; no reference: check before use */
    struct gn_arg_fact fact;
    bool set;
    uint32_t good_bytes; /* size that the driver has accepted with a value; 0: none yet */
    /* Size that it has accepted without a value (local memory, or a NULL object). */
    uint32_t good_empty_bytes;
    /* shape_of() the object that was accepted with good_bytes; 0: not an object. */
    uint64_t good_shape;
    struct gn_arg arg;
    void *tail;
    uint32_t tail_capacity;
};

struct gn_cl_kernel {
    struct gn_object o; /* parent: the program */
    struct gn_cl_program *program;
    cl_uint n_args, n_set;
    struct gn_cl_arg *args;
    size_t required[3]; /* the work-group size that the source requires; 0: none */
    /* work-group sizes that the driver has accepted, packed: see enqueue.c. */
    _Atomic uint64_t good[4];
    _Atomic uint32_t next_good;
};

struct gn_cl_event {
    /*
     * Its id is its index in the event table; parent: the queue, or, for a user event, the context.
     */
    struct gn_object o;
    struct gn_cl_queue *queue; /* NULL: a user event */
    struct gn_cl_context *context;
    cl_command_type type;
    uint64_t queued_ns;
    _Atomic bool set;            /* a user event with its status set */
    _Atomic cl_uint n_own;       /* references that the program does not see */
    struct gn_event_times first; /* of the first piece of a transfer in pieces; start_ns 0: none */
};

/* The objects that a recorded command names; held while its command buffer lives. */
struct gn_addition {
    struct gn_addition *next;
    size_t n;
    struct gn_object *objects[];
};

struct gn_cl_cmdbuf {
    struct gn_object o; /* parent: the queue */
    struct gn_cl_queue *queue;
    cl_command_buffer_properties_khr *given; /* NULL: none */
    cl_uint n_given;
    bool simultaneous;     /* set once */
    _Atomic bool accepted; /* the driver has accepted a run, so it accepts the next */
    _Atomic bool may_print;
    pthread_mutex_t lock;
    bool finalized; /* lock, as are the fields below */
    struct gn_addition *additions;
    struct gn_cl_run {
        uint32_t index;          /* in the event table */
        struct gn_object *event; /* the event with this index; NULL: the program has none */
    } * runs;                    /* incomplete at the last check; the oldest first */
    size_t n_runs, runs_capacity;
};

/* The OpenCL part of a session. */
struct gn_cl_session {
    struct gn_session *session;
    pthread_mutex_t settle_lock;
    struct gn_list staged; /* settle_lock: transfers that this process has to complete */
    _Atomic uint32_t n_staged;
    _Atomic uint64_t staged_bytes;
    _Atomic uint32_t n_open_user_events; /* not set by the program yet */
    pthread_mutex_t watch_lock;
    struct gn_list watches; /* watch_lock: event callbacks */
    struct gn_list contexts;
    uint64_t next_cookie;
    pthread_mutex_t binaries_lock;   /* no other lock is taken under it */
    pthread_mutex_t build_logs_lock; /* no other lock is taken under it */
    pthread_mutex_t stdout_lock;
    /* stdout_lock: device and inode of the file that the worker prints to. */
    uint64_t stdout_file[2];
    pthread_mutex_t svm_open_lock; /* held while the vGPU is asked, once */
    bool svm_opened;               /* svm_open_lock */
    pthread_mutex_t svm_lock;
    struct gn_cl_svm **svm;     /* svm_lock: live allocations, by address */
    size_t n_svm, svm_capacity; /* svm_lock */
};

static inline struct gn_cl_session *gn_cl_session_of(const struct gn_object *o)
{
    return o->session->detail;
}

extern const struct gn_guest_api gn_opencl_api;

/* Sets *errcode_ret (may be NULL) and returns NULL. */
static inline void *gn_refuse(cl_int *errcode_ret, cl_int error)
{
    if (errcode_ret)
        *errcode_ret = error;
    return NULL;
}

/* The platform for a program that names none; NULL: there is none. */
struct gn_cl_root *gn_first_platform(void);
/*
 * A program object's binaries (binaries.c), for n devices. `forget` is called when it has been
 * built again.
 */
cl_int gn_binary_sizes(struct gn_cl_program *p, cl_uint n, size_t param_value_size,
                       void *param_value, size_t *param_value_size_ret);
cl_int gn_binaries(struct gn_cl_program *p, cl_uint n, size_t param_value_size, unsigned char **out,
                   size_t *param_value_size_ret);
void gn_binaries_forget(struct gn_cl_program *p);
void gn_binaries_free(struct gn_cl_binaries *b); /* NULL: ignored */
/* Retained build logs (build_log.c). A build of the program calls `forget`. */
void gn_build_logs_forget(struct gn_cl_program *p);
void gn_build_logs_free(struct gn_build_log *logs); /* NULL: ignored */
/* Answers a clGet*Info. */
cl_int gn_answer(const void *value, size_t bytes, size_t param_value_size, void *param_value,
                 size_t *param_value_size_ret);
/*
 * Copies a zero-terminated list of pairs; *ret_n is the number of elements, including the zero.
 * NULL and 0 for NULL.
 */
uint64_t *gn_copy_list(const void *list, cl_uint *ret_n);
bool gn_objects_of_session(const struct gn_object *beside, const void *handles, size_t n,
                           uint16_t kind);
int gn_add_destructor(struct gn_destructor *_Atomic *list, void *notify, void *user_data);
/* Calls and frees the destructors, the last added first. */
void gn_run_destructors(struct gn_destructor *_Atomic *list, void *handle);

/* clRetain* and clRelease*. */
#define GN_COUNTED(kind)                                                                           \
    static inline cl_int gn_##kind##_retain(struct gn_object *o)                                   \
    {                                                                                              \
        gn_object_ref(o);                                                                          \
        return CL_SUCCESS;                                                                         \
    }                                                                                              \
    static inline cl_int gn_##kind##_release(struct gn_object *o)                                  \
    {                                                                                              \
        gn_object_unref(o);                                                                        \
        return CL_SUCCESS;                                                                         \
    }
GN_COUNTED(device)
GN_COUNTED(context)
GN_COUNTED(queue)
GN_COUNTED(mem)
GN_COUNTED(sampler)
GN_COUNTED(program)
GN_COUNTED(kernel)
GN_COUNTED(cmdbuf)

/* ---- commands */

/*
 * Encodes the arguments for a launch. Returns the number of bytes, or UINT32_MAX if they exceed the
 * maximum.
 */
#define GN_ARGS_MAX_BYTES 16384u
cl_uint gn_kernel_args(const struct gn_cl_kernel *k, unsigned char *run);

/*
 * The first step of every command: notes the calling thread as a user of the queue, and checks the
 * wait list. CL_SUCCESS, or an error.
 */
cl_int gn_command_begin(struct gn_object *queue, cl_uint n, const cl_event *list);
/* Creates an event for a command about to be sent, and sets show->event. NULL: no memory. */
struct gn_object *gn_event_new(struct gn_object *queue, cl_command_type type,
                               struct gn_command_show *show);
/* After a command was sent: gives its event to the program, or releases it. */
cl_int gn_command_sent(struct gn_object *queue, struct gn_object *shown, cl_event *event,
                       cl_int result);
/* The status that the program sees of an event that ended so. */
static inline cl_int gn_event_status(int32_t error)
{
    return error == GN_EVENT_BAD ? CL_OUT_OF_RESOURCES : error;
}
/* What a blocking call answers when its command ended so. */
static inline cl_int gn_blocking_result(int32_t error)
{
    return error == GN_EVENT_WAIT_FAILED ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
                                         : gn_event_status(error);
}
/* A thread other than `user` uses the queue. */
void gn_queue_used(struct gn_cl_queue *q);
/*
 * A command was sent to the vGPU. Counted after sending, so that a thread that waits for this count
 * waits for the command.
 */
static inline void gn_queue_sent(struct gn_cl_queue *q)
{
    atomic_fetch_add_explicit(&q->n_sent, 1, memory_order_release);
}
/* Completes all finished transfers in this process. */
void gn_settle(struct gn_cl_session *s);
/* brought.c: implements the member of struct gn_guest_api. */
bool gn_opencl_brings(const void *message, uint32_t n_bytes, struct gn_area_ref *ret_ref,
                      uint64_t *ret_bytes);

void gn_mapping_put(struct gn_session *s, struct gn_cl_mapping *mapping);

/* Before a launch that may print: the program may have redirected its stdout. */
void gn_follow_stdout(struct gn_cl_session *s);
void gn_first_stdout(struct gn_cl_session *s);

/* ---- command buffers */

/* The version of cl_khr_command_buffer that programs see of this device; 0: none. */
cl_version gn_command_buffers_of(struct gn_cl_device *d);
/* The entry point `name` of an extension that some device of the platform has; NULL: none. */
void *gn_platform_function(const struct gn_cl_root *root, const char *name);
/*
 * Around a request that records. add holds the objects that the command names; NULL: no memory.
 * added takes the request's result and returns it; after an error it releases them.
 */
struct gn_addition *gn_cmdbuf_add(struct gn_object *o, void *const *handles, size_t n);
cl_int gn_cmdbuf_added(struct gn_object *o, struct gn_addition *addition, cl_int result);
/* Frees the members when the last reference is gone. */
void gn_cmdbuf_gone(struct gn_cl_cmdbuf *b);

/* ---- shared virtual memory */

cl_device_svm_capabilities gn_svm_capabilities(const struct gn_cl_device *d);
enum gn_svm_place { GN_SVM_NOT, GN_SVM_INSIDE, GN_SVM_BEYOND };
/*
 * Whether a range is outside shared memory, inside one allocation, or starts inside one and exceeds
 * it.
 */
enum gn_svm_place gn_svm_find(struct gn_cl_session *s, const void *ptr, size_t bytes);
/* Frees the allocation at ptr; ignored if there is none. */
void gn_svm_free(struct gn_cl_session *s, const void *ptr);

#endif
