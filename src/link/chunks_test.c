/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit test of chunks: all bytes arrive in order; each end notices that the other has closed;
 * malformed frames are rejected.
 */
#include "link/chunks.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/checked.h"

struct pair {
    struct gn_chunks taking, filling;
};

static int setup(void **state)
{
    struct pair *p = calloc(1, sizeof *p);
    int other;
    if (!p || gn_chunks_offer(&p->taking, &other) || gn_chunks_accept(&p->filling, other, 1000))
        return -1;
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct pair *p = *state;
    gn_chunks_close(&p->taking);
    gn_chunks_close(&p->filling);
    gn_chunks_close(&p->filling); /* a second close does nothing */
    free(p);
    return 0;
}

static unsigned char byte_at(uint64_t at)
{
    return (unsigned char)(at * 31 + (at >> 11));
}

/* Pieces of many sizes, larger and smaller than a chunk. */
static const size_t pieces[] = {1,
                                4095,
                                0,
                                GN_CHUNK_BYTES,
                                3,
                                3 * GN_CHUNK_BYTES + 17,
                                300000,
                                2,
                                GN_CHUNK_BYTES - 2,
                                9 * GN_CHUNK_BYTES};

static void *fill(void *arg)
{
    struct gn_chunks *c = arg;
    uint64_t at = 0;
    for (size_t i = 0; i < GN_ARRAY_SIZE(pieces); i++) {
        unsigned char *bytes = malloc(pieces[i] + 1);
        for (size_t k = 0; k < pieces[i]; k++)
            bytes[k] = byte_at(at + k);
        at += pieces[i];
        const size_t half = pieces[i] / 2;
        const struct iovec iov[2] = {{bytes, half}, {bytes + half, pieces[i] - half}};
        if (gn_chunks_write(c, iov, 2, 10000))
            return "cannot write";
        free(bytes);
        if (i == 1 && gn_chunks_flush(c)) /* a partly filled chunk in between */
            return "cannot flush";
    }
    if (gn_chunks_flush(c) || gn_chunks_flush(c))
        return "cannot flush";
    gn_chunks_close(c);
    return NULL;
}

static void all_arrives_in_order(void **state)
{
    struct pair *p = *state;
    uint64_t at = 0, sum = 0;
    const void *bytes;
    void *said;
    size_t n;
    pthread_t thread;
    int rc;
    for (size_t i = 0; i < GN_ARRAY_SIZE(pieces); i++)
        sum += pieces[i];
    assert_int_equal(pthread_create(&thread, NULL, fill, &p->filling), 0);
    while ((rc = gn_chunks_next(&p->taking, 10000, &bytes, &n)) == 1) {
        const unsigned char *b = bytes;
        size_t wrong = 0;
        for (size_t k = 0; k < n; k++)
            wrong += b[k] != byte_at(at + k);
        assert_int_equal(wrong, 0);
        at += n;
        assert_int_equal(gn_chunks_taken(&p->taking), 0);
    }
    pthread_join(thread, &said);
    assert_null(said);
    assert_int_equal(rc, 0);
    assert_true(at == sum && p->taking.n_bytes == sum);
}

static int write_bytes(struct gn_chunks *c, size_t n, int timeout_ms)
{
    unsigned char *bytes = calloc(1, n);
    const struct iovec iov = {bytes, n};
    int rc = gn_chunks_write(c, &iov, 1, timeout_ms);
    free(bytes);
    return rc;
}

static void who_does_not_take_is_not_waited_for_for_ever(void **state)
{
    struct pair *p = *state;
    assert_int_equal(write_bytes(&p->filling, GN_N_CHUNKS * GN_CHUNK_BYTES, 10), 0);
    assert_int_equal(write_bytes(&p->filling, 1, 10), -ETIMEDOUT);
}

static void who_fills_nothing_is_not_either(void **state)
{
    struct pair *p = *state;
    const void *bytes;
    size_t n;
    assert_int_equal(gn_chunks_next(&p->taking, 10, &bytes, &n), -ETIMEDOUT);
    assert_int_equal(write_bytes(&p->filling, 5, 10), 0);
    assert_int_equal(gn_chunks_flush(&p->filling), 0);
    assert_int_equal(gn_chunks_next(&p->taking, 10, &bytes, &n), 1);
    assert_int_equal(n, 5);
}

static void an_end_that_is_gone(void **state)
{
    struct pair *p = *state;
    gn_chunks_close(&p->taking);
    assert_int_equal(write_bytes(&p->filling, 2 * GN_N_CHUNKS * GN_CHUNK_BYTES, 10000), -EPIPE);
}

static void what_was_filled_outlives_its_end(void **state)
{
    struct pair *p = *state;
    const void *bytes;
    size_t n;
    assert_int_equal(write_bytes(&p->filling, 2 * GN_CHUNK_BYTES + 7, 10), 0);
    assert_int_equal(gn_chunks_next(&p->taking, 10, &bytes, &n), 1);
    assert_int_equal(gn_chunks_taken(&p->taking), 0); /* FREE, which the filling end no longer
                                                       * reads */
    assert_int_equal(gn_chunks_flush(&p->filling), 0);
    gn_chunks_close(&p->filling);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gn_chunks_next(&p->taking, 10, &bytes, &n), 1);
        assert_int_equal(n, i ? 7 : GN_CHUNK_BYTES);
        assert_int_equal(gn_chunks_taken(&p->taking), 0);
    }
    assert_int_equal(gn_chunks_next(&p->taking, 10, &bytes, &n), 0);
}

static void lengths_are_not_believed(void **state)
{
    static const uint32_t bad[][2] = {{0, 0}, {GN_CHUNK_BYTES + 1, 0}, {UINT32_MAX, 0}, {1, 1}};
    const void *bytes;
    size_t n;
    (void)state;
    for (size_t i = 0; i < GN_ARRAY_SIZE(bad); i++) {
        struct gn_chunks taking;
        int other;
        assert_int_equal(gn_chunks_offer(&taking, &other), 0);
        assert_int_equal(gn_frame_send(other, 1000, 2, 0, 0, bad[i], sizeof bad[i], NULL, 0), 0);
        assert_int_equal(gn_chunks_next(&taking, 1000, &bytes, &n), -EPROTO);
        gn_chunks_close(&taking);
        close(other);
    }
}

static void more_is_not_free_than_was_filled(void **state)
{
    struct pair *p = *state;
    assert_int_equal(gn_frame_send(p->taking.socket, 1000, 3, 0, 0, "x", 1, NULL, 0), 0);
    assert_int_equal(write_bytes(&p->filling, GN_CHUNK_BYTES, 10), 0);
    assert_int_equal(write_bytes(&p->filling, GN_CHUNK_BYTES, 10), -EPROTO);
}

static int accepted(int memory)
{
    struct gn_chunks filling;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    if (memory >= 0)
        assert_int_equal(gn_frame_send(ends[0], 1000, 1, 0, 0, NULL, 0, &memory, 1), 0);
    int rc = gn_chunks_accept(&filling, ends[1], 10);
    gn_chunks_close(&filling);
    close(ends[0]);
    return rc;
}

static void memory_that_will_not_do(void **state)
{
    struct gn_segment small;
    int unsealed = memfd_create("x", MFD_CLOEXEC);
    (void)state;
    assert_int_equal(ftruncate(unsealed, (off_t)GN_N_CHUNKS * GN_CHUNK_BYTES), 0);
    assert_int_equal(accepted(unsealed), -EINVAL);
    close(unsealed);
    assert_int_equal(gn_segment_create("x", GN_CHUNK_BYTES, &small), 0);
    assert_int_equal(accepted(small.fd), -EPROTO);
    gn_segment_fini(&small);
    assert_int_equal(accepted(-1), -ETIMEDOUT);
}

int main(void)
{
#define EACH(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        EACH(all_arrives_in_order),
        EACH(who_does_not_take_is_not_waited_for_for_ever),
        EACH(who_fills_nothing_is_not_either),
        EACH(an_end_that_is_gone),
        EACH(what_was_filled_outlives_its_end),
        EACH(more_is_not_free_than_was_filled),
        cmocka_unit_test(lengths_are_not_believed),
        cmocka_unit_test(memory_that_will_not_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
