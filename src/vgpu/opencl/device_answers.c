/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stored answers of device queries. The saving or loading thread fills them, before or beside
 * the ring thread, which answers from them; they never change after the first request is served.
 */
#include "device_answers.h"

#include "opencl_host.h"
#include "stream/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* This range has the queries of the specification and of most extensions. */
#define FIRST_QUESTION 0x1001u
#define LAST_QUESTION  0x107fu
#define MOST_BYTES     65536u /* limit for one answer */

/* Queries of carried extensions outside that range, in ascending order. */
static const cl_device_info questions_beyond[] = {
    CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR,
    CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR,
};
#define N_IN_RANGE (LAST_QUESTION - FIRST_QUESTION + 1)

static cl_device_info query_at(uint32_t i)
{
    return i < N_IN_RANGE ? FIRST_QUESTION + i : questions_beyond[i - N_IN_RANGE];
}

/* An answer of unknown type may be a pointer. A sub-device's partition type is its own. */
static bool is_query(cl_device_info number)
{
    return gn_asks_clGetDeviceInfo(number) && number != CL_DEVICE_PARTITION_TYPE;
}

static int by_number(const void *a, const void *b)
{
    const struct gn_device_answers_fact *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

int gn_device_answers_ask(struct gn_vgpu *v, cl_device_id device,
                          struct gn_device_answers_device *ret)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    const uint32_t n_questions = N_IN_RANGE + GN_ARRAY_SIZE(questions_beyond);
    struct gn_device_answers_device t = {.facts = calloc(n_questions, sizeof *t.facts)};
    size_t total = 0, at = 0;
    if (!t.facts)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_questions; i++) {
        const cl_device_info q = query_at(i);
        size_t n = 0;
        if (!is_query(q) || cl->clGetDeviceInfo(device, q, 0, NULL, &n) || n > MOST_BYTES)
            continue;
        t.facts[t.n++] = (struct gn_device_answers_fact){.number = q, .n = n};
        total += gn_align_up(n, 8);
    }
    t.room = calloc(1, total ? total : 1);
    if (!t.room) {
        gn_device_answers_fini(&t);
        return -ENOMEM;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t.n; i++) {
        struct gn_device_answers_fact f = t.facts[i];
        f.bytes = t.room + at;
        at += gn_align_up(f.n, 8);
        if (!f.n || !cl->clGetDeviceInfo(device, f.number, f.n, f.bytes, NULL))
            t.facts[kept++] = f;
    }
    t.n = kept;
    *ret = t;
    return 0;
}

int gn_device_answers_read(const struct gn_stream_entry *e, struct gn_device_answers_device *ret)
{
    struct gn_device_answers_device t = {0};
    struct gn_stream_entry all = *e;
    struct gn_stream_part part;
    size_t total = 0, at = 0;
    uint32_t n = 0;
    while (gn_stream_next_part(&all, &part)) {
        if (part.part != GN_PART_FACT)
            continue;
        if (part.n < 8 || part.n - 8 > MOST_BYTES)
            return -EBADMSG;
        total += gn_align_up(part.n - 8, 8);
        n++;
    }
    t.facts = calloc(n ? n : 1, sizeof *t.facts);
    t.room = calloc(1, total ? total : 1);
    if (!t.facts || !t.room) {
        gn_device_answers_fini(&t);
        return -ENOMEM;
    }
    for (all = *e; gn_stream_next_part(&all, &part);) {
        uint32_t number;
        if (part.part != GN_PART_FACT)
            continue;
        memcpy(&number, part.bytes, sizeof number);
        t.facts[t.n] = (struct gn_device_answers_fact){
            .number = number, .n = part.n - 8, .bytes = t.room + at};
        memcpy(t.facts[t.n].bytes, (const unsigned char *)part.bytes + 8, part.n - 8);
        at += gn_align_up(part.n - 8, 8);
        t.n++;
    }
    qsort(t.facts, t.n, sizeof *t.facts, by_number);
    *ret = t;
    return 0;
}

void gn_device_answers_fini(struct gn_device_answers_device *t)
{
    free(t->facts);
    free(t->room);
    *t = (struct gn_device_answers_device){0};
}

const struct gn_device_answers_fact *
gn_device_answers_find(const struct gn_device_answers_device *t, cl_device_info number)
{
    const struct gn_device_answers_fact key = {.number = number};
    return t->n ? bsearch(&key, t->facts, t->n, sizeof *t->facts, by_number) : NULL;
}

bool gn_device_answers_same(const struct gn_device_answers_device *a,
                            const struct gn_device_answers_device *b)
{
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->facts[i].number != b->facts[i].number || a->facts[i].n != b->facts[i].n ||
            memcmp(a->facts[i].bytes, b->facts[i].bytes, a->facts[i].n) != 0)
            return false;
    return true;
}

const char *gn_device_answers_text(const struct gn_device_answers_device *t, cl_device_info number,
                                   int max, int *ret_n)
{
    const struct gn_device_answers_fact *f = gn_device_answers_find(t, number);
    const size_t n = f ? strnlen((const char *)f->bytes, f->n) : 0;
    *ret_n = n < (size_t)max ? (int)n : max;
    return f ? (const char *)f->bytes : "";
}

uint64_t gn_device_answers_number(const struct gn_device_answers_device *t, cl_device_info number,
                                  uint32_t i)
{
    const struct gn_device_answers_fact *f = gn_device_answers_find(t, number);
    uint64_t value = 0;
    /* cl_uint and cl_bool have four bytes; all others, and arrays, have eight for each element. */
    const size_t each = f && f->n == 4 ? 4 : 8;
    if (f && (i + (size_t)1) * each <= f->n)
        memcpy(&value, f->bytes + i * each, each);
    return value;
}

/* Queries that a sub-device answers by itself. */
static bool is_own_of_sub_device(cl_device_info number)
{
    return number == CL_DEVICE_MAX_COMPUTE_UNITS || number == CL_DEVICE_PARTITION_MAX_SUB_DEVICES ||
           number == CL_DEVICE_PARTITION_PROPERTIES ||
           number == CL_DEVICE_PARTITION_AFFINITY_DOMAIN;
}

bool gn_device_answers_answer(struct gn_vgpu *v, cl_device_id device, cl_device_info number,
                              size_t size, void *value, size_t *size_ret, cl_int *result)
{
    const struct gn_opencl_vgpu *detail = v->detail;
    if (!detail->reported)
        return false;
    const cl_uint i = gn_device_index(v, device);
    if (detail->platform->devices[i] != device && is_own_of_sub_device(number))
        return false;
    const struct gn_device_answers_fact *f = gn_device_answers_find(&detail->reported[i], number);
    if (!f)
        return false;
    if (value && size < f->n) {
        *result = CL_INVALID_VALUE;
        return true;
    }
    if (value)
        memcpy(value, f->bytes, f->n);
    if (size_ret)
        *size_ret = f->n;
    *result = CL_SUCCESS;
    return true;
}

int gn_device_answers_keep(struct gn_vgpu *v, uint32_t device, struct gn_device_answers_device *t)
{
    struct gn_opencl_vgpu *detail = v->detail;
    if (!detail->reported && !(detail->reported = calloc(v->n_devices, sizeof *detail->reported)))
        return -ENOMEM;
    gn_device_answers_fini(&detail->reported[device]);
    detail->reported[device] = *t;
    *t = (struct gn_device_answers_device){0};
    return 0;
}
