/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * What the fuzz targets share. A target is one file with LLVMFuzzerTestOneInput: libFuzzer calls
 * it, or replay.c where there is no libFuzzer. It returns 0, leaves nothing behind, and aborts
 * (FUZZ_CHECK, or a sanitizer) when a promise is broken. One thread.
 *
 * Most inputs are little programs: bytes are taken off the front, one to choose a step and some to
 * feed it. Bytes that are missing read as zero, so every prefix of an input is an input.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
    const uint8_t *at;
    size_t left;
};

static inline struct fuzz fuzz_of(const uint8_t *data, size_t size)
{
    return (struct fuzz){data, size};
}

/* Copies n bytes off the front; what is not there is zero. */
static inline void fuzz_take(struct fuzz *f, void *to, size_t n)
{
    size_t have = n < f->left ? n : f->left;
    memset(to, 0, n);
    if (have)
        memcpy(to, f->at, have);
    f->at += have;
    f->left -= have;
}

/* n bytes where they lie; *n is cut to what is left. */
static inline const uint8_t *fuzz_bytes(struct fuzz *f, size_t *n)
{
    const uint8_t *at = f->at;
    if (*n > f->left)
        *n = f->left;
    f->at += *n;
    f->left -= *n;
    return at;
}

static inline uint8_t fuzz_u8(struct fuzz *f)
{
    uint8_t n;
    fuzz_take(f, &n, sizeof n);
    return n;
}

static inline uint16_t fuzz_u16(struct fuzz *f)
{
    uint16_t n;
    fuzz_take(f, &n, sizeof n);
    return n;
}

static inline uint32_t fuzz_u32(struct fuzz *f)
{
    uint32_t n;
    fuzz_take(f, &n, sizeof n);
    return n;
}

static inline uint64_t fuzz_u64(struct fuzz *f)
{
    uint64_t n;
    fuzz_take(f, &n, sizeof n);
    return n;
}

#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
