/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CL_PROGRAM_BINARY_SIZES and CL_PROGRAM_BINARIES. A migration builds every program again, and the
 * binary of the repeated build is another one: its bytes would not fit the sizes that the program
 * knows. Therefore the first query of the sizes fetches the bytes, too, and this file answers later
 * queries from that copy, until the program is built again. Called on the program's threads.
 */
#include "opencl_guest.h"

#include <stdlib.h>
#include <string.h>

/* A binary that has grown since the last query is queried again, up to this often. */
#define TRIES 8u

struct gn_cl_binaries {
    cl_uint n;
    uint64_t *sizes;
    unsigned char *bytes; /* all binaries, one behind the other */
};

void gn_binaries_free(struct gn_cl_binaries *b)
{
    if (!b)
        return;
    free(b->sizes);
    free(b->bytes);
    free(b);
}

void gn_binaries_forget(struct gn_cl_program *p)
{
    struct gn_cl_session *s = gn_cl_session_of(&p->o);
    pthread_mutex_lock(&s->binaries_lock);
    struct gn_cl_binaries *before = p->binaries;
    p->binaries = NULL;
    p->n_binaries_forgotten++;
    pthread_mutex_unlock(&s->binaries_lock);
    gn_binaries_free(before);
}

static cl_int sizes_and_bytes(struct gn_cl_program *p, struct gn_cl_binaries *b)
{
    uint64_t room = 0;
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t total = 0;
        cl_int result = gn_send_ProgramBinaries(p->o.session, (cl_program)p, (cl_ulong *)b->sizes,
                                                b->n, b->bytes, room);
        if (result)
            return result;
        for (cl_uint d = 0; d < b->n; d++)
            if (!gn_add_u64(total, b->sizes[d], &total))
                return CL_OUT_OF_HOST_MEMORY;
        if (total <= room)
            return CL_SUCCESS;
        free(b->bytes);
        b->bytes = malloc(total);
        if (!b->bytes)
            return CL_OUT_OF_HOST_MEMORY;
        room = total;
    }
    return CL_OUT_OF_RESOURCES;
}

static cl_int fetch(struct gn_cl_program *p, cl_uint n, struct gn_cl_binaries **ret)
{
    struct gn_cl_binaries *b = calloc(1, sizeof *b);
    if (b)
        b->sizes = calloc(n ? n : 1, sizeof *b->sizes);
    if (!b || !b->sizes) {
        free(b);
        return CL_OUT_OF_HOST_MEMORY;
    }
    b->n = n;
    cl_int result = sizes_and_bytes(p, b);
    if (result)
        gn_binaries_free(b);
    else
        *ret = b;
    return result;
}

static cl_int answer_sizes(const struct gn_cl_binaries *b, size_t size, void *value,
                           size_t *size_ret)
{
    return gn_answer(b->sizes, b->n * sizeof *b->sizes, size, value, size_ret);
}

cl_int gn_binary_sizes(struct gn_cl_program *p, cl_uint n, size_t param_value_size,
                       void *param_value, size_t *param_value_size_ret)
{
    struct gn_cl_session *s = gn_cl_session_of(&p->o);
    struct gn_cl_binaries *b = NULL;
    pthread_mutex_lock(&s->binaries_lock);
    const uint64_t n_forgotten = p->n_binaries_forgotten;
    const bool known = p->binaries != NULL;
    cl_int result =
        known ? answer_sizes(p->binaries, param_value_size, param_value, param_value_size_ret)
              : CL_SUCCESS;
    pthread_mutex_unlock(&s->binaries_lock);
    if (!known)
        result = fetch(p, n, &b);
    if (!b)
        return result;
    result = answer_sizes(b, param_value_size, param_value, param_value_size_ret);
    pthread_mutex_lock(&s->binaries_lock);
    if (!result && param_value && !p->binaries && p->n_binaries_forgotten == n_forgotten) {
        p->binaries = b;
        b = NULL;
    }
    pthread_mutex_unlock(&s->binaries_lock);
    gn_binaries_free(b);
    return result;
}
_Static_assert(sizeof(size_t) == sizeof(uint64_t), "sizes are answered as they came");

static void copy(const struct gn_cl_binaries *b, unsigned char *const *out)
{
    uint64_t at = 0;
    for (cl_uint i = 0; i < b->n; i++) {
        if (out[i] && b->sizes[i])
            memcpy(out[i], b->bytes + at, b->sizes[i]);
        at += b->sizes[i];
    }
}

/*
 * The program's buffers come without sizes: each has room for the size that the program was last
 * told.
 */
cl_int gn_binaries(struct gn_cl_program *p, cl_uint n, size_t param_value_size, unsigned char **out,
                   size_t *param_value_size_ret)
{
    struct gn_cl_session *s = gn_cl_session_of(&p->o);
    struct gn_cl_binaries *b = NULL;
    const size_t bytes = n * sizeof *out;
    if (out && param_value_size < bytes)
        return CL_INVALID_VALUE;
    if (param_value_size_ret)
        *param_value_size_ret = bytes;
    if (!out)
        return CL_SUCCESS;
    pthread_mutex_lock(&s->binaries_lock);
    const bool known = p->binaries != NULL;
    if (known)
        copy(p->binaries, out);
    pthread_mutex_unlock(&s->binaries_lock);
    if (known)
        return CL_SUCCESS;
    /* A program that never asked for sizes gets the driver's current answer, as without Gantry. */
    cl_int result = fetch(p, n, &b);
    if (!result)
        copy(b, out);
    gn_binaries_free(b);
    return result;
}
