/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the programs that have program-scope variables, and records whether a launch may have
 * written them: see variables.h. Called by the helper thread (builds), by the threads that make
 * kernels, by the submitter and by the saving thread. It never waits and never changes a program.
 */
#include "variables.h"

#include "opencl_host.h"
#include "source_look.h"
#include "vgpu/core/build_includes.h"

#include <stdlib.h>
#include <string.h>

struct gn_variables *gn_variables_new(void)
{
    struct gn_variables *x = calloc(1, sizeof *x);
    if (x)
        atomic_init(&x->n_refs, 1);
    return x;
}

struct gn_variables *gn_variables_ref(struct gn_variables *x)
{
    atomic_fetch_add_explicit(&x->n_refs, 1, memory_order_relaxed);
    return x;
}

void gn_variables_unref(struct gn_variables *x)
{
    if (x && atomic_fetch_sub_explicit(&x->n_refs, 1, memory_order_acq_rel) == 1)
        free(x);
}

/* ---- the text */

static void look_at_program(struct gn_vgpu *v, struct gn_source_facts *f, cl_program program)
{
    size_t bytes = 0;
    char *text = gn_program_source(gn_cl(v), program, &bytes);
    if (text)
        gn_source_look(f, text, bytes);
    free(text);
}

void gn_variables_look(struct gn_vgpu *v, struct gn_variables *x, cl_program program,
                       const char *options, const cl_program *headers, cl_uint n_headers,
                       const struct gn_build_includes *files)
{
    struct gn_source_facts f = {0};
    gn_source_look_options(&f, options ? options : "");
    if (!f.newer)
        return;
    look_at_program(v, &f, program);
    for (cl_uint i = 0; headers && i < n_headers; i++)
        look_at_program(v, &f, headers[i]);
    for (uint32_t i = 0; files && i < files->n; i++)
        if (files->all[i].contents)
            gn_source_look(&f, (const char *)files->all[i].contents, files->all[i].bytes);
    if (f.declares)
        atomic_store_explicit(&x->is_declared, true, memory_order_release);
}

/* ---- the driver */

static bool exist_on(const cl_icd_dispatch *cl, cl_program program, cl_device_id device,
                     bool is_declared)
{
    size_t most = 0, bytes = 0;
    const bool reported = !cl->clGetProgramBuildInfo(
        program, device, CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE, sizeof bytes, &bytes, NULL);
    if (reported && bytes)
        return true;
    if (cl->clGetDeviceInfo(device, CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE, sizeof most, &most, NULL) ||
        !most)
        return is_declared;
    return !reported;
}

bool gn_variables_exist(struct gn_vgpu *v, const struct gn_variables *x, cl_program program)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    const bool is_declared = atomic_load_explicit(&x->is_declared, memory_order_acquire);
    size_t bytes = 0;
    bool exist = false;
    cl_device_id *devices = NULL;
    if (cl->clGetProgramInfo(program, CL_PROGRAM_DEVICES, 0, NULL, &bytes) ||
        !(devices = malloc(bytes ? bytes : 1)) ||
        cl->clGetProgramInfo(program, CL_PROGRAM_DEVICES, bytes, devices, NULL)) {
        free(devices);
        return true; /* unknown: assume that there are variables, so that no content is lost */
    }
    for (size_t i = 0; !exist && i < bytes / sizeof *devices; i++)
        exist = exist_on(cl, program, devices[i], is_declared);
    free(devices);
    return exist;
}

/* ---- consequences for a save */

const char *gn_variables_obstacle(const struct gn_vobject *o)
{
    const struct gn_variables *x = NULL;
    if (o->kind == GN_KIND_PROGRAM && o->detail)
        x = ((const struct gn_program_detail *)o->detail)->variables;
    else if (o->kind == GN_KIND_KERNEL && o->detail)
        x = ((const struct gn_kernel_detail *)o->detail)->variables;
    return x && atomic_load_explicit(&x->is_used, memory_order_relaxed)
               ? "program-scope variables, whose contents no OpenCL call reads"
               : NULL;
}
