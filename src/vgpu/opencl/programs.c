/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs: creation, builds, links, binaries. Builds run on the helper thread; the worker asks the
 * program for included files. Nothing here opens a file by itself.
 */
#include "base/descriptor.h"
#include "opencl_host.h"
#include "slices.h"
#include "variables.h"
#include "vgpu/core/build_includes.h"
#include "vgpu/core/include_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *gn_program_source(const cl_icd_dispatch *cl, cl_program program, size_t *ret_bytes)
{
    size_t bytes = 0;
    char *text = NULL;
    if (cl->clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, NULL, &bytes) || bytes < 2 ||
        !(text = malloc(bytes + 1)))
        return NULL;
    if (cl->clGetProgramInfo(program, CL_PROGRAM_SOURCE, bytes, text, NULL)) {
        free(text);
        return NULL;
    }
    text[bytes] = 0;
    *ret_bytes = strnlen(text, bytes);
    return text;
}

void *gn_host_ProgramFromSource(struct gn_vgpu *v, struct gn_request *r,
                                const struct gn_args_ProgramFromSource *a, cl_int *result)
{
    const char *source = a->source ? a->source : "";
    size_t bytes = a->source ? a->bytes : 0;
    (void)r;
    return gn_cl(v)->clCreateProgramWithSource(a->context, 1, &source, &bytes, result);
}

void *gn_host_ProgramFromBinaries(struct gn_vgpu *v, struct gn_request *r,
                                  const struct gn_args_ProgramFromBinaries *a, cl_int *result)
{
    size_t *lengths = gn_request_alloc(r, gn_times(a->num_devices, sizeof *lengths));
    const unsigned char **binaries =
        gn_request_alloc(r, gn_times(a->num_devices, sizeof *binaries));
    uint64_t at = 0;
    *result = CL_OUT_OF_HOST_MEMORY;
    if (!lengths || !binaries)
        return NULL;
    for (cl_uint i = 0; a->lengths && i < a->num_devices; i++) {
        lengths[i] = a->lengths[i] & ~GN_NO_BINARY;
        if (a->lengths[i] & GN_NO_BINARY)
            continue;
        if (!gn_range_ok(at, lengths[i], a->binaries ? a->bytes : 0)) {
            gn_vgpu_fault(v, "the binaries are longer than the data sent", "ProgramFromBinaries");
            return NULL;
        }
        binaries[i] = a->binaries + at;
        at += lengths[i];
    }
    for (cl_uint i = 0; a->binary_status && i < a->num_devices; i++)
        a->binary_status[i] = GN_UNTOUCHED;
    return gn_cl(v)->clCreateProgramWithBinary(a->context, a->num_devices, a->device_list, lengths,
                                               binaries, a->binary_status, result);
}

static void CL_CALLBACK release_told(cl_program program, void *user_data)
{
    (void)program;
    (void)user_data;
}

cl_int gn_host_ProgramReleaseCallback(struct gn_vgpu *v, struct gn_request *r,
                                      const struct gn_args_ProgramReleaseCallback *a)
{
    (void)r;
    if (!gn_cl(v)->clSetProgramReleaseCallback)
        return CL_INVALID_OPERATION;
    return gn_cl(v)->clSetProgramReleaseCallback(a->program, a->has_notify ? release_told : NULL,
                                                 NULL);
}

cl_int gn_host_Stdout(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Stdout *a)
{
    int fd;
    (void)r;
    if (gn_vgpu_set_folders(v, a->number, 1, &fd))
        return CL_OUT_OF_RESOURCES;
    fflush(stdout);
    int moved = dup2(fd, STDOUT_FILENO);
    gn_fd_close(fd);
    return moved < 0 ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

static struct gn_vobject *program_of(const struct gn_request *r, cl_program program)
{
    for (uint32_t i = 0; i < r->n_held; i++)
        if (r->held[i]->kind == GN_KIND_PROGRAM && r->held[i]->driver == program)
            return r->held[i];
    return NULL;
}

/*
 * The program is asked for files only during its own call; when the vGPU is made again, the files
 * found then are used.
 */
static void begin_build(struct gn_vgpu *v, struct gn_request *r, uint32_t number,
                        const char *folders, size_t n)
{
    /* An in-process driver opens the program's files directly. */
    if (!v->session->asks_for_files)
        return;
    if (!r->anew && number && n)
        r->files = gn_build_includes_new();
    if (r->files || !r->anew)
        gn_vgpu_begin_build(v, r->anew ? 1 : number, folders, n, r->files, r->anew);
}

/* Included files stay with the build's record, unless they are too large. */
static void end_build(struct gn_vgpu *v, struct gn_request *r, struct gn_vobject *o)
{
    gn_vgpu_end_build();
    if (r->files && r->files->lacks && o)
        gn_object_unsaveable(o);
    if (r->files && !r->files->n) {
        gn_build_includes_free(r->files);
        r->files = NULL;
    }
}

cl_int gn_host_Build(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Build *a)
{
    struct gn_vobject *o = program_of(r, a->program);
    begin_build(v, r, a->number, a->folders, a->folders ? a->folders_bytes : 0);
    cl_int result = gn_cl(v)->clBuildProgram(a->program, a->num_devices, a->device_list, a->options,
                                             NULL, NULL);
    end_build(v, r, o);
    if (!result && o && !gn_program_charge(v, r, o, a->program, gn_program_prints(o)))
        result = CL_OUT_OF_RESOURCES;
    /* This request holds the object, and no other thread writes the detail. */
    if (!result && o && o->detail) {
        struct gn_program_detail *p = o->detail;
        gn_variables_look(v, p->variables, a->program, a->options, NULL, 0, r->files);
        p->sliced = gn_slices_built(v, a->program, a->options, p->sliced);
    }
    return result;
}

cl_int gn_host_Compile(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Compile *a)
{
    const char **names = NULL;
    if (a->names) {
        names = gn_request_alloc(r, gn_times(a->num_input_headers, sizeof *names));
        if (!names)
            return CL_OUT_OF_HOST_MEMORY;
        const char *at = a->names, *end = a->names + a->names_bytes;
        for (cl_uint i = 0; i < a->num_input_headers; i++) {
            size_t left = (size_t)(end - at), n = strnlen(at, left);
            if (n == left) {
                gn_vgpu_fault(v, "fewer names than headers", "Compile");
                return CL_INVALID_VALUE;
            }
            names[i] = at;
            at += n + 1;
        }
    }
    begin_build(v, r, a->number, a->folders, a->folders ? a->folders_bytes : 0);
    cl_int result =
        gn_cl(v)->clCompileProgram(a->program, a->num_devices, a->device_list, a->options,
                                   a->num_input_headers, a->input_headers, names, NULL, NULL);
    struct gn_vobject *o = program_of(r, a->program);
    end_build(v, r, o);
    if (!result && o && o->detail)
        gn_variables_look(v, ((struct gn_program_detail *)o->detail)->variables, a->program,
                          a->options, a->input_headers, a->num_input_headers, r->files);
    return result;
}

/* True if an input program may print. */
static bool inputs_print(const struct gn_request *r)
{
    for (uint32_t list = 0; list < r->n_arrays; list++)
        for (uint64_t i = 0; i < r->arrays[list].n; i++) {
            struct gn_vobject *o = r->arrays[list].objects[i];
            if (o && o->kind == GN_KIND_PROGRAM && gn_program_prints(o))
                return true;
        }
    return false;
}

void *gn_host_Link(struct gn_vgpu *v, struct gn_request *r, const struct gn_args_Link *a,
                   cl_int *result)
{
    cl_program program =
        gn_cl(v)->clLinkProgram(a->context, a->num_devices, a->device_list, a->options,
                                a->num_input_programs, a->input_programs, NULL, NULL, result);
    if (program && !*result && !gn_program_charge(v, r, NULL, program, inputs_print(r))) {
        gn_cl(v)->clReleaseProgram(program);
        program = NULL;
        *result = CL_OUT_OF_RESOURCES;
    }
    *a->left_program = program != NULL;
    return program;
}

/* One size for each device; the array lives as long as the request. */
static cl_int binary_sizes(struct gn_vgpu *v, struct gn_request *r, cl_program program,
                           cl_uint *ret_n, size_t **ret_sizes)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    cl_uint n = 0;
    cl_int result = cl->clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof n, &n, NULL);
    if (result)
        return result;
    size_t *sizes = gn_request_alloc(r, gn_times(n, sizeof *sizes));
    if (!sizes)
        return CL_OUT_OF_HOST_MEMORY;
    *ret_n = n;
    *ret_sizes = sizes;
    return cl->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, n * sizeof *sizes, sizes, NULL);
}

cl_int gn_host_ProgramBinaries(struct gn_vgpu *v, struct gn_request *r,
                               const struct gn_args_ProgramBinaries *a)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    cl_uint n = 0;
    size_t *sizes = NULL;
    uint64_t total = 0, at = 0;
    cl_int result = binary_sizes(v, r, a->program, &n, &sizes);
    if (result)
        return result;
    if (n != a->n)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < n; i++) {
        a->sizes[i] = sizes[i];
        if (!gn_add_u64(total, sizes[i], &total))
            return CL_OUT_OF_HOST_MEMORY;
    }
    if (!a->bytes || total > a->total)
        return CL_SUCCESS;
    unsigned char **binaries = gn_request_alloc(r, gn_times(n, sizeof *binaries));
    unsigned char *all = gn_request_alloc(r, total ? total : 1);
    if (!binaries || !all)
        return CL_OUT_OF_HOST_MEMORY;
    for (cl_uint i = 0; i < n; at += sizes[i++])
        binaries[i] = sizes[i] ? all + at : NULL;
    result =
        cl->clGetProgramInfo(a->program, CL_PROGRAM_BINARIES, n * sizeof *binaries, binaries, NULL);
    if (!result)
        memcpy(a->bytes, all, total);
    return result;
}
