/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_TEST_HELD_H
#define GN_TEST_HELD_H

/*
 * Buffers with an exact model of each byte, for programs of tests. One thread, one context, one
 * device. A call that fails ends the program with "wrong: ..." and status 1 (must.h).
 */
#include <CL/cl.h>

#include <stdbool.h>
#include <stdint.h>

#define HELD_PAGE  4096u
#define HELD_WORDS (HELD_PAGE / 4) /* of a page */

/*
 * The model of a page: word j holds ((base + j) * HELD_SEED * mul + add) mod 2^32. All operations
 * on memory are affine maps of whole pages, so the model of a gibibyte is 3 MiB.
 */
struct held_page {
    uint32_t base, mul, add;
};

struct held {
    cl_mem mem;
    cl_mem_flags flags;
    uint32_t n_pages;
    struct held_page *pages;
    cl_mem part; /* a sub-buffer of the first quarter, for as long as the buffer exists */
};

/* Opens the first device, builds the kernels, makes a buffer of 1 MiB for results. */
void held_open(void);
/*
 * Makes a buffer of n_pages pages (a multiple of 16, up to 2^18) and fills it by a kernel.
 * access: CL_MEM_HOST_NO_ACCESS: only kernels, copies and fills may be used on it; or 0. False:
 * the driver refuses it with CL_MEM_OBJECT_ALLOCATION_FAILURE, and nothing is changed.
 */
bool held_make(struct held *h, uint32_t n_pages, cl_mem_flags access);
void held_release(struct held *h);

/* A launch that changes each word of n pages from `first` on; `n` stands for the round. Waits for
 * nothing. */
void held_stir(struct held *h, uint32_t first, uint32_t n_pages, uint32_t n);
/* The same through the sub-buffer. */
void held_stir_part(struct held *h, uint32_t n);
/* A launch that only reads the buffer (`const`); compares a sum of each page. */
void held_digest(struct held *h);
/* Changes a page through a map. */
void held_map(struct held *h, uint32_t page, uint32_t n);
/* A new sub-buffer over some pages: changes them, and releases it. */
void held_sub_buffer(struct held *h, uint32_t page, uint32_t n);
/* A new image over the buffer: reads a page through it, and writes another one. PoCL 3.1 crashes if
 * a kernel has such an image. */
void held_image(struct held *h, uint32_t page, uint32_t n);
/* Copies a page to another buffer, or within one. */
void held_copy(struct held *from, uint32_t page, struct held *to, uint32_t to_page);
/* Fills a page. */
void held_fill(struct held *h, uint32_t page, uint32_t n);
/* Compares queries of the buffer and its sub-buffer with their facts. */
void held_query(struct held *h);
/* Records a command that fills a page, into a command buffer that stays. The driver's error. */
cl_int held_record(struct held *h, uint32_t page);
/* Reads n_pages pages and compares each word. */
void held_compare(struct held *h, uint32_t first, uint32_t n_pages);
/* Changes a word behind the model's back: the next comparison must fail. */
void held_spoil(struct held *h);
/* Waits until all commands have ended. */
void held_wait(void);

#endif
