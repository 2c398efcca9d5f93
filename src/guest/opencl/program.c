/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program objects and builds. Sources are concatenated before they are sent. The vGPU builds, and
 * asks this process for the files that the sources include. Called on the program's threads; the
 * build's callback runs on the callback thread.
 */
#include "guest/session/session_ops.h"
#include "guest/opencl/callback.h"
#include "opencl_guest.h"

#include "base/descriptor.h"
#include "guest/opencl/include_options.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct gn_cl_program *program_new(struct gn_cl_context *c)
{
    struct gn_cl_program *p = (void *)gn_object_new(c->o.session, GN_KIND_PROGRAM, &c->o);
    if (p)
        p->context = c;
    return p;
}

static cl_program program_or_error(struct gn_cl_program *p, cl_int result, cl_int *errcode_ret)
{
    if (result && p) {
        free(p->devices);
        gn_object_drop(&p->o);
        p = NULL;
    }
    if (errcode_ret)
        *errcode_ret = result;
    return (cl_program)p;
}

/*
 * Stores, with references, the devices of a program object that was made for some devices of its
 * context.
 */
static cl_int store_devices(struct gn_cl_program *p, cl_uint n, const cl_device_id *devices)
{
    p->devices = malloc((n ? n : 1) * sizeof(struct gn_cl_device *));
    if (!p->devices)
        return CL_OUT_OF_HOST_MEMORY;
    for (cl_uint i = 0; i < n; i++) {
        p->devices[i] = (void *)devices[i];
        gn_object_ref(&p->devices[i]->o);
    }
    p->n_devices = n;
    return CL_SUCCESS;
}

/* Whether kernels may print: the text names printf, or includes other files. */
static bool may_print(const void *text, size_t bytes)
{
    return bytes && (memmem(text, bytes, "printf", 6) || memmem(text, bytes, "#include", 8));
}

static bool stdout_file(uint64_t *file)
{
    struct stat st;
    if (!gn_fd_is_open(STDOUT_FILENO) || fstat(STDOUT_FILENO, &st))
        return false;
    file[0] = st.st_dev;
    file[1] = st.st_ino;
    return true;
}

void gn_first_stdout(struct gn_cl_session *s)
{
    stdout_file(s->stdout_file);
}

void gn_follow_stdout(struct gn_cl_session *s)
{
    uint64_t file[2];
    /* Output of a vGPU on another machine, or in this process, needs no descriptor. */
    if (!gn_session_ops(s->session)->prints_to_descriptors || !stdout_file(file))
        return;
    pthread_mutex_lock(&s->stdout_lock);
    if (memcmp(file, s->stdout_file, sizeof file) != 0) {
        const int fd = STDOUT_FILENO;
        uint32_t number = gn_session_number();
        if (!gn_session_send_fds(s->session, GN_SESSION_FOLDERS, number, &fd, 1) &&
            !gn_send_Stdout(s->session, number))
            memcpy(s->stdout_file, file, sizeof file);
    }
    pthread_mutex_unlock(&s->stdout_lock);
}

cl_program CL_API_CALL gn_clCreateProgramWithSource(cl_context context, cl_uint count,
                                                    const char **strings, const size_t *lengths,
                                                    cl_int *errcode_ret)
{
    struct gn_cl_context *c = gn_object_of(context, GN_KIND_CONTEXT);
    size_t bytes = 0;
    if (!c)
        return gn_refuse(errcode_ret, CL_INVALID_CONTEXT);
    if (!count || !strings)
        return gn_refuse(errcode_ret, CL_INVALID_VALUE);
    for (cl_uint i = 0; i < count; i++) {
        if (!strings[i])
            return gn_refuse(errcode_ret, CL_INVALID_VALUE);
        bytes += lengths && lengths[i] ? lengths[i] : strlen(strings[i]);
    }
    char *source = malloc(bytes ? bytes : 1);
    struct gn_cl_program *p = source ? program_new(c) : NULL;
    if (!p) {
        free(source);
        return gn_refuse(errcode_ret, CL_OUT_OF_HOST_MEMORY);
    }
    size_t at = 0;
    for (cl_uint i = 0; i < count; i++) {
        size_t n = lengths && lengths[i] ? lengths[i] : strlen(strings[i]);
        memcpy(source + at, strings[i], n);
        at += n;
    }
    p->may_print = may_print(source, bytes);
    cl_int result = gn_send_ProgramFromSource(c->o.session, &p->o, context, source, bytes);
    free(source);
    return program_or_error(p, result, errcode_ret);
}

cl_program CL_API_CALL gn_clCreateProgramWithBinary(cl_context context, cl_uint num_devices,
                                                    const cl_device_id *device_list,
                                                    const size_t *lengths,
                                                    const unsigned char **binaries,
                                                    cl_int *binary_status, cl_int *errcode_ret)
{
    struct gn_cl_context *c = gn_object_of(context, GN_KIND_CONTEXT);
    size_t bytes = 0, at = 0;
    if (!c)
        return gn_refuse(errcode_ret, CL_INVALID_CONTEXT);
    if (!device_list || !num_devices || !lengths || !binaries)
        return gn_refuse(errcode_ret, CL_INVALID_VALUE);
    if (!gn_objects_of_session(&c->o, device_list, num_devices, GN_KIND_DEVICE))
        return gn_refuse(errcode_ret, CL_INVALID_DEVICE);
    for (cl_uint i = 0; i < num_devices; i++)
        bytes += binaries[i] ? lengths[i] : 0;
    unsigned char *all = malloc(bytes ? bytes : 1);
    cl_ulong *wide = malloc(num_devices * sizeof *wide);
    cl_int *status = malloc(num_devices * sizeof *status);
    struct gn_cl_program *p = all && wide && status ? program_new(c) : NULL;
    cl_int result = p ? store_devices(p, num_devices, device_list) : CL_OUT_OF_HOST_MEMORY;
    for (cl_uint i = 0; !result && i < num_devices; i++) {
        wide[i] = binaries[i] ? lengths[i] : lengths[i] | GN_NO_BINARY;
        if (!binaries[i] || !lengths[i])
            continue;
        memcpy(all + at, binaries[i], lengths[i]);
        at += lengths[i];
    }
    for (cl_uint i = 0; status && i < num_devices; i++)
        status[i] = GN_UNTOUCHED;
    if (p)
        p->may_print = may_print(all, at);
    if (!result)
        result = gn_send_ProgramFromBinaries(c->o.session, &p->o, context, num_devices, device_list,
                                             wide, all, bytes, binary_status ? status : NULL);
    for (cl_uint i = 0; status && binary_status && i < num_devices; i++)
        if (status[i] != GN_UNTOUCHED)
            binary_status[i] = status[i];
    free(status);
    free(all);
    free(wide);
    return program_or_error(p, result, errcode_ret);
}

cl_int gn_made_clCreateProgramWithBuiltInKernels(struct gn_object *made, cl_context context,
                                                 cl_uint num_devices,
                                                 const cl_device_id *device_list,
                                                 const char *kernel_names)
{
    struct gn_cl_program *p = (void *)made;
    (void)kernel_names;
    p->context = (void *)context;
    return store_devices(p, num_devices, device_list);
}

cl_int gn_made_clCreateProgramWithIL(struct gn_object *made, cl_context context, const void *il,
                                     size_t length)
{
    struct gn_cl_program *p = (void *)made;
    (void)il;
    (void)length;
    p->context = (void *)context;
    p->may_print = true;
    return CL_SUCCESS;
}

/* ---- building */

static void add_folder(void *folders, const char *path)
{
    gn_folders_add(folders, path);
}

/* The folders that a build may include: the working directory and those in its options. */
static struct gn_folders *folders_of(struct gn_session *s, const char *options)
{
    struct gn_folders *f = gn_folders_open(s);
    if (f)
        gn_include_options(options, add_folder, f);
    return f;
}

struct program_notice {
    struct gn_cl_program *program;
    void(CL_CALLBACK *notify)(cl_program, void *);
    void *user_data;
};

static void tell_program(void *arg)
{
    struct program_notice *n = arg;
    n->notify((cl_program)n->program, n->user_data);
    gn_object_unref(&n->program->o);
    free(n);
}

/*
 * Errors of the call itself (bad arguments) are only returned; the result of a build is also passed
 * to the callback.
 */
static cl_int finish_build(struct gn_cl_program *p, cl_int result,
                           void(CL_CALLBACK *notify)(cl_program, void *), void *user_data)
{
    gn_binaries_forget(p);
    gn_build_logs_forget(p);
    bool tell =
        notify && (result == CL_SUCCESS || result == CL_BUILD_PROGRAM_FAILURE ||
                   result == CL_COMPILE_PROGRAM_FAILURE || result == CL_LINK_PROGRAM_FAILURE);
    struct program_notice *n = tell ? malloc(sizeof *n) : NULL;
    if (!n)
        return result;
    *n = (struct program_notice){p, notify, user_data};
    gn_object_ref(&p->o);
    if (gn_callback_later(tell_program, n))
        tell_program(n);
    return result;
}

/* Errors that are detected before the driver is asked to build. */
static cl_int check_build(struct gn_cl_program *p, cl_uint num_devices,
                          const cl_device_id *device_list, const void *notify,
                          const void *user_data)
{
    if (!p)
        return CL_INVALID_PROGRAM;
    if ((!notify && user_data) || (num_devices && !device_list) || (!num_devices && device_list))
        return CL_INVALID_VALUE;
    if (device_list && !gn_objects_of_session(&p->o, device_list, num_devices, GN_KIND_DEVICE))
        return CL_INVALID_DEVICE;
    return CL_SUCCESS;
}

cl_int CL_API_CALL gn_clBuildProgram(cl_program program, cl_uint num_devices,
                                     const cl_device_id *device_list, const char *options,
                                     void(CL_CALLBACK *pfn_notify)(cl_program, void *),
                                     void *user_data)
{
    struct gn_cl_program *p = gn_object_of(program, GN_KIND_PROGRAM);
    const char *names;
    size_t names_bytes;
    cl_int result = check_build(p, num_devices, device_list, (void *)pfn_notify, user_data);
    if (result)
        return result;
    struct gn_folders *folders = folders_of(p->o.session, options);
    cl_uint number = gn_folders_offer(folders, &names, &names_bytes);
    result = gn_send_Build(p->o.session, program, num_devices, device_list, options, names,
                           names_bytes, number);
    gn_folders_close(folders);
    return finish_build(p, result, pfn_notify, user_data);
}

cl_int CL_API_CALL gn_clCompileProgram(cl_program program, cl_uint num_devices,
                                       const cl_device_id *device_list, const char *options,
                                       cl_uint num_input_headers, const cl_program *input_headers,
                                       const char **header_include_names,
                                       void(CL_CALLBACK *pfn_notify)(cl_program, void *),
                                       void *user_data)
{
    struct gn_cl_program *p = gn_object_of(program, GN_KIND_PROGRAM);
    const char *folder_names;
    size_t bytes = 0, at = 0, folder_bytes;
    cl_int result = check_build(p, num_devices, device_list, (void *)pfn_notify, user_data);
    if (result)
        return result;
    if (num_input_headers && (!input_headers || !header_include_names))
        return CL_INVALID_VALUE;
    if (num_input_headers &&
        !gn_objects_of_session(&p->o, input_headers, num_input_headers, GN_KIND_PROGRAM))
        return CL_INVALID_PROGRAM;
    for (cl_uint i = 0; i < num_input_headers; i++)
        if (((struct gn_cl_program *)input_headers[i])->may_print)
            p->may_print = true;
    for (cl_uint i = 0; i < num_input_headers; i++)
        bytes += strlen(header_include_names[i]) + 1;
    char *names = malloc(bytes ? bytes : 1);
    if (!names)
        return CL_OUT_OF_HOST_MEMORY;
    for (cl_uint i = 0; i < num_input_headers; i++) {
        size_t n = strlen(header_include_names[i]) + 1;
        memcpy(names + at, header_include_names[i], n);
        at += n;
    }
    struct gn_folders *folders = folders_of(p->o.session, options);
    cl_uint number = gn_folders_offer(folders, &folder_names, &folder_bytes);
    result = gn_send_Compile(p->o.session, program, num_devices, device_list, options,
                             num_input_headers, input_headers, header_include_names ? names : NULL,
                             bytes, folder_names, folder_bytes, number);
    gn_folders_close(folders);
    free(names);
    return finish_build(p, result, pfn_notify, user_data);
}

cl_program CL_API_CALL gn_clLinkProgram(cl_context context, cl_uint num_devices,
                                        const cl_device_id *device_list, const char *options,
                                        cl_uint num_input_programs,
                                        const cl_program *input_programs,
                                        void(CL_CALLBACK *pfn_notify)(cl_program, void *),
                                        void *user_data, cl_int *errcode_ret)
{
    struct gn_cl_context *c = gn_object_of(context, GN_KIND_CONTEXT);
    cl_uint made = 0;
    if (!c)
        return gn_refuse(errcode_ret, CL_INVALID_CONTEXT);
    if ((!pfn_notify && user_data) || (num_devices && !device_list) ||
        (!num_devices && device_list) || (num_input_programs && !input_programs))
        return gn_refuse(errcode_ret, CL_INVALID_VALUE);
    if (device_list && !gn_objects_of_session(&c->o, device_list, num_devices, GN_KIND_DEVICE))
        return gn_refuse(errcode_ret, CL_INVALID_DEVICE);
    if (input_programs &&
        !gn_objects_of_session(&c->o, input_programs, num_input_programs, GN_KIND_PROGRAM))
        return gn_refuse(errcode_ret, CL_INVALID_PROGRAM);
    struct gn_cl_program *p = program_new(c);
    if (!p)
        return gn_refuse(errcode_ret, CL_OUT_OF_HOST_MEMORY);
    for (cl_uint i = 0; i < num_input_programs; i++)
        if (((struct gn_cl_program *)input_programs[i])->may_print)
            p->may_print = true;
    cl_int result = device_list ? store_devices(p, num_devices, device_list) : CL_SUCCESS;
    if (!result)
        result = gn_send_Link(c->o.session, &p->o, context, num_devices, device_list, options,
                              num_input_programs, input_programs, &made);
    if (result && !made)
        return program_or_error(p, result, errcode_ret);
    finish_build(p, result, pfn_notify, user_data);
    if (errcode_ret)
        *errcode_ret = result;
    return (cl_program)p;
}

cl_int CL_API_CALL gn_clSetProgramReleaseCallback(cl_program program,
                                                  void(CL_CALLBACK *pfn_notify)(cl_program, void *),
                                                  void *user_data)
{
    struct gn_cl_program *p = gn_object_of(program, GN_KIND_PROGRAM);
    if (!p)
        return CL_INVALID_PROGRAM;
    cl_int result = gn_send_ProgramReleaseCallback(p->o.session, program, pfn_notify != NULL);
    return result || !pfn_notify
               ? result
               : gn_add_destructor(&p->destructors, (void *)pfn_notify, user_data);
}

/* ---- queries */

cl_int gn_local_clGetProgramInfo(cl_program program, cl_program_info param_name,
                                 size_t param_value_size, void *param_value,
                                 size_t *param_value_size_ret)
{
    struct gn_cl_program *p = gn_object_of(program, GN_KIND_PROGRAM);
    struct gn_cl_device **devices = p->devices ? p->devices : p->context->devices;
    cl_uint n = p->devices ? p->n_devices : p->context->n_devices;
    switch (param_name) {
    case CL_PROGRAM_CONTEXT:
        return gn_answer(&p->context, sizeof p->context, param_value_size, param_value,
                         param_value_size_ret);
    case CL_PROGRAM_REFERENCE_COUNT: {
        cl_uint refs = atomic_load_explicit(&p->o.n_refs, memory_order_relaxed);
        return gn_answer(&refs, sizeof refs, param_value_size, param_value, param_value_size_ret);
    }
    case CL_PROGRAM_NUM_DEVICES:
        return gn_answer(&n, sizeof n, param_value_size, param_value, param_value_size_ret);
    case CL_PROGRAM_DEVICES:
        return gn_answer(devices, n * sizeof *devices, param_value_size, param_value,
                         param_value_size_ret);
    case CL_PROGRAM_BINARY_SIZES:
        return gn_binary_sizes(p, n, param_value_size, param_value, param_value_size_ret);
    default:
        return gn_binaries(p, n, param_value_size, param_value, param_value_size_ret);
    }
}
