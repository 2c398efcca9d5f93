/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_API_OPENCL_ARGUMENTS_H
#define GN_API_OPENCL_ARGUMENTS_H

#include <assert.h>
#include <stdint.h>

/*
 * What OpenCL's messages carry beside their generated structs: kernel arguments, what a compiler
 * knows of them, and the marks in binaries and statuses. Included by both halves; docs/wire.md is
 * normative.
 */

/* One kernel argument in a launch; `bytes` of value follow unless it is a handle, then the next
 * begins at 8. */
enum gn_arg_kind {
    GN_ARG_BYTES = 1,
    GN_ARG_LOCAL,
    GN_ARG_MEM,
    GN_ARG_SAMPLER,
    GN_ARG_SVM,
    GN_ARG_NULL,
    GN_ARG_QUEUE
};

struct gn_arg {
    uint16_t index;
    uint8_t kind; /* enum gn_arg_kind */
    uint8_t zero;
    uint32_t bytes; /* what the program gave as arg_size */
    uint64_t value; /* of MEM, SAMPLER, QUEUE: the handle; of SVM: the address; of BYTES: the first
                       eight bytes */
};
static_assert(sizeof(struct gn_arg) == 16, "wire");

#define GN_ARG_MAX_BYTES 65536u

/* How many bytes follow a struct gn_arg in a run of arguments: values of up to eight bytes stand in
 * it. */
static inline uint32_t gn_arg_tail(uint8_t kind, uint32_t bytes)
{
    return kind == GN_ARG_BYTES && bytes > 8 ? (bytes + 7u) & ~7u : 0;
}

/* A binary that is NULL, in its length; a status that the driver left alone. */
#define GN_NO_BINARY (UINT64_C(1) << 63)
#define GN_UNTOUCHED INT32_MIN

/* What an argument is, as the compiler knows it. */
enum gn_arg_class {
    GN_ARG_CLASS_UNKNOWN,
    GN_ARG_CLASS_VALUE,
    GN_ARG_CLASS_LOCAL,
    GN_ARG_CLASS_MEM,
    GN_ARG_CLASS_IMAGE,
    GN_ARG_CLASS_SAMPLER,
    GN_ARG_CLASS_PIPE,
    GN_ARG_CLASS_QUEUE
};

struct gn_arg_fact {
    uint32_t class;  /* enum gn_arg_class */
    uint32_t access; /* bit 0: a kernel may write through it */
};
static_assert(sizeof(struct gn_arg_fact) == 8, "wire");

#endif
