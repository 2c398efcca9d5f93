/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_API_OPENCL_ARGUMENTS_H
#define GN_API_OPENCL_ARGUMENTS_H

#include <assert.h>
#include <stdint.h>

/*
 * The parts of OpenCL's messages that are not generated: kernel arguments, the compiler's facts
 * about them, and marks in binaries and statuses. Both halves include it; docs/wire.md is
 * normative.
 */

/* One kernel argument of a launch. A value of more than eight bytes follows the struct
 * (gn_arg_tail); the next argument begins at a multiple of 8. */
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
    uint32_t bytes; /* the program's arg_size */
    /* MEM, SAMPLER, QUEUE: the handle; SVM: the address; BYTES: the first eight bytes */
    uint64_t value;
};
static_assert(sizeof(struct gn_arg) == 16, "wire");

#define GN_ARG_MAX_BYTES 65536u

/* Bytes that follow a struct gn_arg in a run of arguments; a value of up to eight bytes is in the
 * struct itself. */
static inline uint32_t gn_arg_tail(uint8_t kind, uint32_t bytes)
{
    return kind == GN_ARG_BYTES && bytes > 8 ? (bytes + 7u) & ~7u : 0;
}

/* Set in a binary's length: the binary is NULL. A status that the driver did not write. */
#define GN_NO_BINARY (UINT64_C(1) << 63)
#define GN_UNTOUCHED INT32_MIN

/* The class of an argument, as the compiler knows it. */
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
