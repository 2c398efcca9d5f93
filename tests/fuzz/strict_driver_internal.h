/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_STRICT_DRIVER_INSIDE_H
#define FUZZ_STRICT_DRIVER_INSIDE_H

#include <CL/cl_ext.h>

#include "fuzz.h"
#include "strict_driver.h"

/* What the strict driver's files, and nobody else, know: a thing for each object it has made, and
 * how it treats what it is given. */
enum kind { PLATFORM = 1, DEVICE, CONTEXT, QUEUE, MEM, SAMPLER, PROGRAM, KERNEL, EVENT, CMDBUF };

#define MAGIC      0x57121c7du
#define MAX_MEMORY (1u << 20)

struct thing {
    const void *dispatch;
    uint32_t magic;
    enum kind kind;
    unsigned n_refs;
    struct thing *parent; /* holds a reference */
    struct thing *device; /* a queue's */
    cl_command_queue_properties properties;
    cl_mem_object_type type;
    size_t bytes, element, width, height, depth;
    unsigned char *memory;
    int status; /* an event's; a command buffer's: not 0 when it is finalized */
    void(CL_CALLBACK *reported)(cl_event, cl_int, void *);
    void *told_arg;
    struct thing *next; /* in the list of outstanding events */
};

extern volatile unsigned char strict_sink;

/* Reads all of it, as a sanitizer and the memory's guards see it. */
static inline void read_all(const void *from, size_t n)
{
    unsigned char block[256];
    for (size_t i = 0; i < n; i += sizeof block) {
        memcpy(block, (const unsigned char *)from + i, n - i < sizeof block ? n - i : sizeof block);
        strict_sink ^= block[0];
    }
}

static inline void write_all(void *to, size_t n)
{
    memset(to, 0x5d, n);
}

/* Pairs that a zero ends. */
static inline void walk_pairs(const uint64_t *list)
{
    while (list && list[0]) {
        read_all(list, 16);
        list += 2;
    }
}

static inline struct thing *of(const void *handle, enum kind kind)
{
    struct thing *t = (struct thing *)(uintptr_t)handle;
    if (!t)
        return NULL;
    FUZZ_CHECK(t->magic == MAGIC && t->kind == kind && t->n_refs);
    return t;
}

/* A new one with one reference; it takes one of its parent's, if it has one. */
void *strict_new(enum kind kind, struct thing *parent);
void strict_drop(struct thing *t);
cl_int strict_release(const void *handle, enum kind kind, cl_int error);
bool strict_devices_good(cl_uint n, const cl_device_id *ids);

static inline cl_int answer(const void *from, size_t n, size_t size, void *value, size_t *size_ret)
{
    if (value) {
        if (size < n)
            return CL_INVALID_VALUE;
        write_all(value, size);
        memcpy(value, from, n);
    }
    if (size_ret)
        *size_ret = n;
    return CL_SUCCESS;
}

static inline cl_int answer_number(uint64_t n, size_t bytes, size_t size, void *value,
                                   size_t *size_ret)
{
    return answer(&n, bytes, size, value, size_ret);
}

static inline void *fail(cl_int *result, cl_int error)
{
    if (result)
        *result = error;
    return NULL;
}

static inline void *made(cl_int *result, void *t)
{
    if (result)
        *result = CL_SUCCESS;
    return t;
}

/* Each puts its calls into the driver's table. */
void strict_programs(cl_icd_dispatch *table);
void strict_commands(cl_icd_dispatch *table);
void strict_recorded(cl_icd_dispatch *table);

/* Of commands: one has been taken, whose wait list is looked at and event made. */
cl_int strict_queued(cl_command_queue h, cl_uint n, const cl_event *waits, cl_event *event);
bool strict_inside(struct thing *buffer, size_t offset, size_t n);
/* The bytes that a rectangle covers, counted from its origin's own; false: no good rectangle. */
bool strict_rectangle(const size_t *origin, const size_t *region, size_t row, size_t slice,
                      size_t *ret_from, size_t *ret_bytes);
bool strict_in_image(struct thing *m, const size_t *origin, const size_t *region);

/* Before each input: no command is outstanding. later: they wait for strict_driver_end. */
void strict_commands_start(bool later);

#endif
