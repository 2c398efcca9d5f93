/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_OPENCL_SLICES_H
#define GN_VGPU_OPENCL_SLICES_H

#include "opencl_host_rt.h"
#include "source_look.h"

/*
 * Sliced launches, the OpenCL half. A part is an NDRange of its own with a larger offset, so
 * get_global_id, get_local_id and get_local_size return the right values. If the program's text
 * calls other functions (group id, number of groups, global size, global offset), the parts launch
 * a variant: the same text behind a few lines that replace those functions. The helper thread
 * builds the variant at the first need; it is stored under the numbers that it contains. The
 * program's own driver object, log, binaries and source never change.
 *
 * Objects are reference-counted under one lock, which is held for short times only. A program's
 * facts live as long as the program, a kernel of it, or a build of a variant.
 */
struct gn_sliced_program;
struct gn_sliced_kernel;

extern const struct gn_slicer gn_opencl_slicer;

/* At the start: decides whether launches are sliced, and how (GANTRY_SLICE_GROUPS). */
void gn_slices_start(struct gn_vgpu *v);
/*
 * Called after a successful build of a program from source with these options. `before`: the facts
 * of its earlier build, or NULL. The helper thread.
 */
struct gn_sliced_program *gn_slices_built(struct gn_vgpu *v, cl_program program,
                                          const char *options, struct gn_sliced_program *before);
/* Drops a reference. Call it before the release of the driver's object. A thread of the vGPU's. */
void gn_slices_program_release(struct gn_vgpu *v, struct gn_sliced_program *p);
/* The facts of a new kernel; NULL: its launches run whole. */
struct gn_sliced_kernel *gn_slices_kernel(struct gn_vgpu *v, cl_kernel kernel);
void gn_slices_kernel_release(struct gn_vgpu *v, struct gn_sliced_kernel *k);
/* The kernel uses memory that no argument names, and that a variant would not know. */
void gn_slices_kernel_knows_more(struct gn_vgpu *v, struct gn_sliced_kernel *k);
/* The kernel and detail that a part launches: the variant's, if the sliced command needs one. */
void gn_slices_variant(const struct gn_cutting *cut, cl_kernel *kernel,
                       struct gn_kernel_detail **detail);

/* The lines in front of a variant's text, which the caller frees. NULL: no memory. */
struct gn_slice_numbers {
    uint64_t offset[3], size[3],
        groups[3]; /* the program's NDRange; 0 for numbers that the text does not use */
};
char *gn_slices_prelude(uint32_t asks, const struct gn_slice_numbers *n);

#endif
