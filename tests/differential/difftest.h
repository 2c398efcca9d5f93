/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The differential test program: plain OpenCL whose every call is written down as a line of text,
 * so that the transcripts of two drivers can be compared. It knows nothing of what lies behind the
 * loader.
 *
 * A case is a function of no arguments that runs in a child process of its own and makes its calls
 * through CALL, MAKE and friends below. Handles appear by kind and order of creation ("mem#3"),
 * pointers by what they point into, times and racing states as properties that must hold. Arguments
 * of the macros are evaluated twice: no side effects. The recording functions may be called from
 * one thread at a time; callbacks write to a latch instead.
 */
#ifndef GN_DIFFTEST_H
#define GN_DIFFTEST_H

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- cases ---- */

struct diff_case {
    const char *name;
    void (*run)(void);
};

struct diff_family {
    const char *name;
    const struct diff_case *cases;
    size_t n_cases;
};

#define DIFF_FAMILY(id)                                                                            \
    const struct diff_family id##_family = {#id, id##_cases,                                       \
                                            sizeof(id##_cases) / sizeof(id##_cases[0])}

extern const struct diff_family platform_family, extensions_family, context_family, queue_family,
    buffer_family, rect_family, subbuffer_family, map_family, image_family, imagedata_family,
    sampler_family, program_family, build_family, kernel_family, enqueue_family, event_family,
    callback_family, profiling_family, svm_family, svmuse_family, pipe_family, subdevice_family,
    deprecated_family, printf_family, refcount_family, threads_family, native_family, graph_family,
    waitlist_family, process_family, pending_family, cmdbuf_family, cmdbufuse_family;

/* ---- recording ---- */

enum arg_kind {
    ARG_PTR,
    ARG_INT,
    ARG_UINT,
    ARG_PLATFORM,
    ARG_DEVICE,
    ARG_CONTEXT,
    ARG_QUEUE,
    ARG_MEM,
    ARG_SAMPLER,
    ARG_PROGRAM,
    ARG_KERNEL,
    ARG_EVENT,
    ARG_CMDBUF,
    ARG_EVENTS,   /* cl_event *: a wait list, or where the new event goes */
    ARG_UINT_OUT, /* cl_uint * */
    ARG_SIZE_OUT, /* size_t * */
};

struct arg {
    enum arg_kind kind;
    uintptr_t value;
};

/* Everything after rec_begin() and before its end is the call itself: a crash in between shows the
 * call's line. False, with a line that says so, when the platform's version is older than the call:
 * it must not be made. */
bool rec_begin(const char *fn, const char *text, const struct arg *args, size_t n_args);
void rec_end_int(cl_int code);
/* 10 * major + minor of the platform; 30 until set. */
void rec_set_version(int version);
bool rec_in_version(const char *fn);
void rec_end_code(cl_int code);
void rec_end_made(enum arg_kind kind, uintptr_t handle, cl_int code);
void rec_end_ptr(const void *ptr);
void rec_end_void(void);

/* A line of its own. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What the line would be if the case died now; replaced by the next line. */
void note_pending(const char *text);
/* Bytes in full when they are few, else their hash and the first of them. */
void note_bytes(const char *what, const void *bytes, size_t size);
void note_string(const char *what, const char *text);

/* Gives a handle the next name of its kind; an address that was used before now means the new
 * object. */
void name_handle(enum arg_kind kind, const void *handle);
/* As name_handle(), but keeps a name that the handle already has (devices and platforms, seen in
 * every query). */
void name_handle_once(enum arg_kind kind, const void *handle);
/* "mem#2", "NULL" or "UNKNOWN". The text lives until the eighth call after this one. */
const char *handle_name(const void *handle);
bool handle_known(const void *handle);
/* Memory whose addresses queries may answer with; shown as name+offset. */
void name_region(const char *name, const void *start, size_t size);
void forget_region(const void *start);
const char *pointer_name(const void *ptr);
const char *error_name(cl_int code);
uint64_t hash_bytes(const void *bytes, size_t size);

#define ARG_KIND(x)                                                                                \
    _Generic((x),                                                                                                    \
        cl_platform_id: ARG_PLATFORM,                                                                                \
        cl_device_id: ARG_DEVICE,                                                                                    \
        cl_context: ARG_CONTEXT,                                                                                     \
        cl_command_queue: ARG_QUEUE,                                                                                 \
        cl_mem: ARG_MEM,                                                                                             \
        cl_sampler: ARG_SAMPLER,                                                                                     \
        cl_program: ARG_PROGRAM,                                                                                     \
        cl_kernel: ARG_KERNEL,                                                                                       \
        cl_event: ARG_EVENT,                                                                                         \
        cl_command_buffer_khr: ARG_CMDBUF,                                                                           \
        cl_event *: ARG_EVENTS,                                                                                      \
        const cl_event *: ARG_EVENTS,                                                                                \
        cl_uint *: ARG_UINT_OUT,                                                                                     \
        size_t *: ARG_SIZE_OUT,                                                                                      \
        char: ARG_INT,                                                                                               \
        signed char: ARG_INT,                                                                                        \
        unsigned char: ARG_UINT,                                                                                     \
        short: ARG_INT,                                                                                              \
        unsigned short: ARG_UINT,                                                                                    \
        int: ARG_INT,                                                                                                \
        unsigned int: ARG_UINT,                                                                                      \
        long: ARG_INT,                                                                                               \
        unsigned long: ARG_UINT,                                                                                     \
        long long: ARG_INT,                                                                                          \
        unsigned long long: ARG_UINT,                                                                                \
        default: ARG_PTR)
#define ARG_OF(x)                                                                                  \
    {                                                                                              \
        ARG_KIND(x), (uintptr_t)(x)                                                                \
    }

#define EACH_1(m, a)                                                      m(a)
#define EACH_2(m, a, ...)                                                 m(a), EACH_1(m, __VA_ARGS__)
#define EACH_3(m, a, ...)                                                 m(a), EACH_2(m, __VA_ARGS__)
#define EACH_4(m, a, ...)                                                 m(a), EACH_3(m, __VA_ARGS__)
#define EACH_5(m, a, ...)                                                 m(a), EACH_4(m, __VA_ARGS__)
#define EACH_6(m, a, ...)                                                 m(a), EACH_5(m, __VA_ARGS__)
#define EACH_7(m, a, ...)                                                 m(a), EACH_6(m, __VA_ARGS__)
#define EACH_8(m, a, ...)                                                 m(a), EACH_7(m, __VA_ARGS__)
#define EACH_9(m, a, ...)                                                 m(a), EACH_8(m, __VA_ARGS__)
#define EACH_10(m, a, ...)                                                m(a), EACH_9(m, __VA_ARGS__)
#define EACH_11(m, a, ...)                                                m(a), EACH_10(m, __VA_ARGS__)
#define EACH_12(m, a, ...)                                                m(a), EACH_11(m, __VA_ARGS__)
#define EACH_13(m, a, ...)                                                m(a), EACH_12(m, __VA_ARGS__)
#define EACH_14(m, a, ...)                                                m(a), EACH_13(m, __VA_ARGS__)
#define EACH_15(m, a, ...)                                                m(a), EACH_14(m, __VA_ARGS__)
#define EACH_16(m, a, ...)                                                m(a), EACH_15(m, __VA_ARGS__)
#define EACH_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, x, ...) x
#define EACH_N(...)                                                                                \
    EACH_PICK(__VA_ARGS__, EACH_16, EACH_15, EACH_14, EACH_13, EACH_12, EACH_11, EACH_10, EACH_9,  \
              EACH_8, EACH_7, EACH_6, EACH_5, EACH_4, EACH_3, EACH_2, EACH_1, 0)
#define EACH_JOIN(each, m, ...) each(m, __VA_ARGS__)
#define REC_BEGIN(fn, text, ...)                                                                   \
    __extension__({                                                                                \
        const struct arg args_[] = {EACH_JOIN(EACH_N(__VA_ARGS__), ARG_OF, __VA_ARGS__)};          \
        rec_begin(fn, text, args_, sizeof(args_) / sizeof(args_[0]));                              \
    })

/* A call that answers with its return code. */
#define CALL(fn, ...)                                                                              \
    __extension__({                                                                                \
        cl_int code_ = CL_INVALID_OPERATION;                                                       \
        if (REC_BEGIN(#fn, #__VA_ARGS__, __VA_ARGS__)) {                                           \
            code_ = fn(__VA_ARGS__);                                                               \
            rec_end_int(code_);                                                                    \
        }                                                                                          \
        code_;                                                                                     \
    })
/* The same where what the call writes differs from run to run: only its code is recorded. */
#define CALL_CODE(fn, ...)                                                                         \
    __extension__({                                                                                \
        cl_int code_ = CL_INVALID_OPERATION;                                                       \
        if (REC_BEGIN(#fn, #__VA_ARGS__, __VA_ARGS__)) {                                           \
            code_ = fn(__VA_ARGS__);                                                               \
            rec_end_code(code_);                                                                   \
        }                                                                                          \
        code_;                                                                                     \
    })
/* A call that answers with an object (or a mapped pointer) and takes &errcode last, which is added
 * here. What comes with an error is not to be used, and some drivers leave rubbish there: it is
 * taken for NULL. */
#define ERRCODE_UNSET 12345
#define MAKE(fn, ...)                                                                              \
    __extension__({                                                                                \
        __typeof__(fn(__VA_ARGS__, NULL)) made_ = NULL;                                            \
        if (REC_BEGIN(#fn, #__VA_ARGS__, __VA_ARGS__)) {                                           \
            cl_int code_ = ERRCODE_UNSET;                                                          \
            made_ = fn(__VA_ARGS__, &code_);                                                       \
            if (code_ != CL_SUCCESS)                                                               \
                made_ = NULL;                                                                      \
            rec_end_made(ARG_KIND(made_), (uintptr_t)made_, code_);                                \
        }                                                                                          \
        made_;                                                                                     \
    })
/* A call that answers with a pointer and no code, and one that answers nothing. */
#define CALL_PTR(fn, ...)                                                                          \
    __extension__({                                                                                \
        void *ptr_ = NULL;                                                                         \
        if (REC_BEGIN(#fn, #__VA_ARGS__, __VA_ARGS__)) {                                           \
            ptr_ = fn(__VA_ARGS__);                                                                \
            rec_end_ptr(ptr_);                                                                     \
        }                                                                                          \
        ptr_;                                                                                      \
    })
#define CALL_VOID(fn, ...)                                                                         \
    do {                                                                                           \
        if (REC_BEGIN(#fn, #__VA_ARGS__, __VA_ARGS__)) {                                           \
            fn(__VA_ARGS__);                                                                       \
            rec_end_void();                                                                        \
        }                                                                                          \
    } while (0)

#define V2(a, b)    (((const size_t[2]){a, b}))
#define V3(a, b, c) (((const size_t[3]){a, b, c}))

/* ---- queries ---- */

/* Asks one query for its size, its value in a buffer of exactly that size and in a larger one, and
 * in one a byte too small, and writes down codes, size and decoded value. The name must be in
 * info.c's tables. */
void info_platform(cl_platform_id platform, const char *param);
void info_platform_all(cl_platform_id platform);
void info_device_all(cl_device_id device);
void info_device(cl_device_id device, const char *param);
void info_context_all(cl_context context);
void info_queue_all(cl_command_queue queue);
void info_mem_all(cl_mem mem);
void info_image_all(cl_mem image);
void info_pipe_all(cl_mem pipe);
void info_sampler_all(cl_sampler sampler);
void info_program_all(cl_program program);
void info_build_all(cl_program program, cl_device_id device);
void info_kernel_all(cl_kernel kernel);
void info_kernel_attributes(cl_kernel kernel);
void info_kernel_arg_all(cl_kernel kernel, cl_uint index);
void info_workgroup_all(cl_kernel kernel, cl_device_id device);
void info_event_all(cl_event event);
/* The names that the drivers answer and the value CL_*_INFO errors of a query: unknown name, NULL
 * with a size. */
const char *format_names(const cl_image_format *format);

/* ---- what most cases start from ---- */

struct env {
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program; /* from env_program() */
    bool images;
    char *device_version;
};

/* Makes platform, device, context and an in-order queue, not recorded; ends the case with a line
 * when it can't. */
void env_init(struct env *env);
cl_platform_id env_platform(void);
/* The kernels of kernels.c built with -cl-kernel-arg-info, once for the case. */
cl_program env_program(struct env *env);
cl_kernel env_kernel(struct env *env, const char *name);
/* Releases what env_init() made, recorded: leaks of the case itself are its own business. */
void env_fini(struct env *env);
int env_device_version(const struct env *env); /* 10 * major + minor */
/* A buffer with the given bytes, not recorded. */
cl_mem env_buffer(struct env *env, size_t size, const void *bytes);
void env_dump_buffer(struct env *env, const char *what, cl_mem buffer, size_t size);
_Noreturn void case_end(const char *why);

/* Bytes that differ at every offset and with every seed. */
void fill_pattern(void *bytes, size_t size, unsigned seed);

/* Waits (unrecorded) and writes the final status, which is CL_COMPLETE or a negative code. */
void note_event_end(const char *what, cl_event event);

/* The program's stdout is captured from now on. The transcript has a descriptor of its own. */
void start_capture(void);
/* Writes down the lines captured since the last time, sorted: work-items print in any order. */
void note_captured(const char *what);

/* Counts what callbacks saw. A callback may come after the call that caused it: wait with a bound.
 */
struct latch {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned count;
    cl_int last_status;
    int order[32]; /* tags in order of arrival */
};

void latch_init(struct latch *latch);
void latch_hit(struct latch *latch, int tag, cl_int status);
/* True when count reached n within ten seconds. */
bool latch_wait(struct latch *latch, unsigned n);

extern const char *const kernels_source;
extern unsigned diff_platform_index;

#endif
