/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_OPENCL_SLICES_H
#define GN_VGPU_OPENCL_SLICES_H

#include "opencl_host_rt.h"
#include "source_look.h"

/*
 * Launches in parts, the OpenCL half. A part is an NDRange of its own with a larger offset; so what
 * a kernel is told by get_global_id, get_local_id and get_local_size is right by itself. Where its
 * text asks for more (its group's number, how many there are, the whole size, the program's
 * offset), the parts are launches of a variant: the same text, behind a few lines that put other
 * functions in the place of those. The variant is built on the helper thread when it is needed
 * first, and remembered by the numbers that it holds; the program's own program, its log, its
 * binaries and its source never change.
 *
 * Objects are counted, under one lock that nothing slow is done under: a program's facts live as
 * long as it, a kernel of it, or a build of a variant.
 */
struct gn_sliced_program;
struct gn_sliced_kernel;

extern const struct gn_slicer gn_opencl_slicer;

/* At the start: whether anything will be cut, and how (GANTRY_SLICE_GROUPS). */
void gn_slices_start(struct gn_vgpu *v);
/* A program was built from source with these options, well; `before`, if any, is what was known of
 * it. The helper thread. */
struct gn_sliced_program *gn_slices_built(struct gn_vgpu *v, cl_program program,
                                          const char *options, struct gn_sliced_program *before);
/* One reference less: before the driver's object is released. A thread of the vGPU's. */
void gn_slices_program_release(struct gn_vgpu *v, struct gn_sliced_program *p);
/* A new kernel's; NULL: its launches run whole. */
struct gn_sliced_kernel *gn_slices_kernel(struct gn_vgpu *v, cl_kernel kernel);
void gn_slices_kernel_release(struct gn_vgpu *v, struct gn_sliced_kernel *k);
/* It was told of memory that no argument names, of which a variant would not know. */
void gn_slices_kernel_knows_more(struct gn_vgpu *v, struct gn_sliced_kernel *k);
/* What the part is a launch of, of a command that is cut: the variant's, if it needs one. */
void gn_slices_variant(const struct gn_cutting *cut, cl_kernel *kernel,
                       struct gn_kernel_detail **detail);

/* The lines in front of a variant's text; a string to free. NULL: no memory. */
struct gn_slice_numbers {
    uint64_t offset[3], size[3],
        groups[3]; /* the program's NDRange; what the text doesn't ask for: 0 */
};
char *gn_slices_prelude(uint32_t asks, const struct gn_slice_numbers *n);

#endif
