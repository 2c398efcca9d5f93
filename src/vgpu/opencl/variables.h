/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_VARIABLES_H
#define GN_VGPU_VARIABLES_H

#include "opencl_host_rt.h"

#include <stdatomic.h>

/*
 * Program-scope variables. OpenCL has no call that reads or writes them, so a vGPU cannot carry
 * their contents: a program that is rebuilt elsewhere begins with their initial values. A vGPU is
 * therefore not saved if a launch may have written the variables of one of its programs.
 *
 * One object per program, shared with its kernels, because the variables live as long as the
 * program or any kernel of it. Counted.
 */
struct gn_variables {
    _Atomic uint32_t n_refs;
    _Atomic bool is_declared; /* the program's text seems to declare some */
    _Atomic bool is_used;     /* a kernel that may write them was given to the driver */
};

/* NULL: no memory. */
struct gn_variables *gn_variables_new(void);
struct gn_variables *gn_variables_ref(struct gn_variables *x);
/* NULL does nothing. */
void gn_variables_unref(struct gn_variables *x);

/*
 * Looks whether the program's text declares variables: its own source, the headers that it was
 * compiled with, and the files that those include. After a successful build or compilation, on the
 * helper thread.
 */
void gn_variables_look(struct gn_vgpu *v, struct gn_variables *x, cl_program program,
                       const char *options, const cl_program *headers, cl_uint n_headers,
                       const struct gn_build_includes *files);

/*
 * True if the built program has variables. If a device can have them, its driver is asked. A driver
 * may accept them although it reports that its devices cannot have them (PoCL 3.1 with
 * -cl-std=CL2.0 does, and reports a size of 0): then the text decides.
 */
bool gn_variables_exist(struct gn_vgpu *v, const struct gn_variables *x, cl_program program);

/* A kernel of the program is about to be given to the driver. x: NULL when the program has no
 * variables. Any thread. */
static inline void gn_variables_use(struct gn_variables *x)
{
    if (x && !atomic_load_explicit(&x->is_used, memory_order_relaxed))
        atomic_store_explicit(&x->is_used, true, memory_order_relaxed);
}

/*
 * The reason why the object's program cannot be saved, as the rest of "it uses ..."; NULL: none.
 * The saving thread.
 */
const char *gn_variables_obstacle(const struct gn_vobject *o);

#endif
