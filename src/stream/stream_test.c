/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of writer and reader: data survives a round trip, and truncated, altered, newer or too
 * large streams are rejected with one sentence.
 */
#include "base/checked.h"
#include "stream/hash_variant.h"
#include "stream/stream_samples.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct gn_sample_file sample(enum gn_stream_packing packing, unsigned char *buffer)
{
    struct gn_sample_file f = {0};
    struct gn_stream_writer *w;
    struct gn_stream_sink sink = gn_sample_sink(&f);
    const struct gn_stream_options o = {
        .purpose = GN_STREAM_MOVE, .api = "opencl", .creator = "gantry test", .packing = packing};
    assert_int_equal(gn_stream_writer_create(&sink, &o, &w, NULL), 0);
    if (gn_sample_write(w, buffer) < 0)
        fail_msg("%s", gn_stream_writer_error(w)->what);
    assert_int_equal(gn_stream_writer_counts(w)->stream_bytes, f.n);
    assert_int_equal(gn_stream_writer_counts(w)->pages, 25);
    gn_stream_writer_destroy(w);
    return f;
}

struct loaded {
    unsigned char buffer[GN_SAMPLE_BUFFER_BYTES];
    uint32_t n_entries[GN_STREAM_N_TABLES], n_parts, n_rounds;
    struct gn_error err;
};

static int take_pages(struct gn_stream_reader *r, const struct gn_stream_section *s,
                      struct loaded *l)
{
    void *where[GN_STREAM_MOST_RUNS];
    for (uint32_t i = 0; i < s->n_runs; i++)
        where[i] = l->buffer + s->runs[i].first_page * 4096;
    return gn_stream_read_pages(r, where);
}

static int load(struct gn_sample_file *f, const struct gn_stream_limits *limits, struct loaded *l)
{
    struct gn_stream_source source = gn_sample_source(f);
    struct gn_stream_reader *r;
    struct gn_stream_section s = {0};
    memset(l, 0, sizeof *l);
    memset(l->buffer, 0xee, sizeof l->buffer);
    int rc = gn_stream_reader_create(&source, limits, &r, &l->err);
    if (rc < 0)
        return rc;
    while (rc == 0 && s.what != GN_STREAM_IS_COMMIT) {
        struct gn_stream_entry e;
        struct gn_stream_part p;
        rc = gn_stream_next(r, &s);
        if (rc == 0 && s.what == GN_STREAM_IS_PAGES)
            rc = take_pages(r, &s, l);
        l->n_rounds += rc == 0 && s.what == GN_STREAM_IS_ROUND;
        while (rc == 0 && s.what == GN_STREAM_IS_TABLE && gn_stream_next_entry(r, &e)) {
            l->n_entries[s.table]++;
            while (gn_stream_next_part(&e, &p))
                l->n_parts++;
        }
    }
    if (rc == 0)
        rc = gn_stream_expect_end(r);
    l->err = *gn_stream_reader_error(r);
    gn_stream_reader_destroy(r);
    return rc;
}

static void comes_back(enum gn_stream_packing packing)
{
    static unsigned char buffer[GN_SAMPLE_BUFFER_BYTES];
    static struct loaded l;
    struct gn_sample_file f = sample(packing, buffer);
    if (load(&f, NULL, &l) < 0)
        fail_msg("%s", l.err.what);
    assert_memory_equal(l.buffer, buffer, sizeof buffer);
    const uint32_t entries[GN_STREAM_N_TABLES] = {1, 1, 5, 2, 1, 1, 1, 0};
    assert_memory_equal(l.n_entries, entries, sizeof entries);
    assert_int_equal(l.n_parts, 2 + 5 + 6 + 2 + 1 + 3 + 1);
    assert_int_equal(l.n_rounds, 2);
    gn_sample_free(&f);
}

static void raw_comes_back(void **state)
{
    comes_back(GN_STREAM_RAW);
}

static void packed_comes_back(void **state)
{
    comes_back(GN_STREAM_ZSTD);
}

static bool is_a_sentence(const struct gn_error *err)
{
    return err->what[0] && !strchr(err->what, '\n') && memchr(err->what, 0, sizeof err->what);
}

static void cut_anywhere_is_refused(void **state)
{
    static unsigned char buffer[GN_SAMPLE_BUFFER_BYTES];
    static struct loaded l;
    struct gn_sample_file f = sample(GN_STREAM_ZSTD, buffer);
    size_t whole = f.n;
    for (f.n = 0; f.n < whole; f.n++) {
        assert_int_equal(load(&f, NULL, &l), -EBADMSG);
        assert_true(is_a_sentence(&l.err));
    }
    gn_sample_free(&f);
}

static void every_bit_counts(void **state)
{
    static unsigned char buffer[GN_SAMPLE_BUFFER_BYTES];
    static struct loaded l;
    struct gn_sample_file f = sample(GN_STREAM_ZSTD, buffer);
    for (size_t bit = 0; bit < 8 * f.n; bit++) {
        f.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        if (load(&f, NULL, &l) != -EBADMSG || !is_a_sentence(&l.err))
            fail_msg("bit %zu of byte %zu: %s", bit % 8, bit / 8, l.err.what);
        f.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_int_equal(load(&f, NULL, &l), 0);
    gn_sample_free(&f);
}

/* Received data counts against the last announcement, even if an earlier one allowed more. */
static void less_announced_than_came_allows_nothing_more(void **state)
{
    static struct loaded l;
    static unsigned char much[8192];
    struct gn_sample_file f = {0};
    struct gn_stream_sink sink = gn_sample_sink(&f);
    struct gn_stream_announce most = {.entries_bytes = 4096};
    const struct gn_stream_options o = {
        .purpose = GN_STREAM_CHECKPOINT, .api = "opencl", .creator = "gantry test"};
    const struct gn_stream_limits limits = {.entries_bytes = 4096, .body_bytes = 1u << 20};
    struct gn_stream_writer *w;
    assert_int_equal(gn_stream_writer_create(&sink, &o, &w, NULL), 0);
    assert_int_equal(gn_stream_announce(w, &most), 0);
    gn_stream_entry_begin(w, GN_STREAM_SESSION, 1, 0, NULL, 0);
    assert_int_equal(gn_stream_entry_end(w), 0);
    most.entries_bytes = 0;
    assert_int_equal(gn_stream_announce(w, &most), 0);
    gn_stream_entry_begin(w, GN_STREAM_SESSION, 2, 0, NULL, 0);
    gn_stream_part(w, GN_PART_STATE, much, sizeof much);
    gn_stream_entry_end(w);
    assert_int_equal(gn_stream_commit(w), 0);
    gn_stream_writer_destroy(w);
    assert_int_equal(load(&f, &limits, &l), -EDQUOT);
    assert_true(is_a_sentence(&l.err));
    gn_sample_free(&f);
}

/* All variants that this processor supports agree, at every length. */
static void hashes_agree(void **state)
{
    static unsigned char bytes[5000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 131 >> 3);
    for (size_t n = 0; n <= sizeof bytes; n += n < 1100 ? 1 : 61) {
        struct gn_stream_hash h = gn_stream_hash_any(bytes, n);
        assert_true(gn_stream_hash_equal(h, gn_stream_hash(bytes, n)));
#ifdef GN_HASH_WIDE
        if (__builtin_cpu_supports("avx2"))
            assert_true(gn_stream_hash_equal(h, gn_stream_hash_avx2(bytes, n)));
        if (__builtin_cpu_supports("avx512f"))
            assert_true(gn_stream_hash_equal(h, gn_stream_hash_avx512(bytes, n)));
#endif
    }
    /* The hash of empty input, from xxHash's specification. */
    struct gn_stream_hash none = gn_stream_hash("", 0);
    assert_true(none.high == 0x99aa06d3014798d8 && none.low == 0x6001c324468d497f);
}

/* A writer's process has ended, and had not read all that this side sent it. */
static void a_reset_is_the_end(void **state)
{
    (void)state;
    int pair[2];
    char bytes[4] = {0};
    struct iovec iov = {bytes, sizeof bytes};
    struct gn_error err = {0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(write(pair[0], bytes, 1), 1);
    assert_int_equal(close(pair[1]), 0);
    struct gn_stream_fd from = {.fd = pair[0]};
    const struct gn_stream_source source = gn_stream_source_of_fd(&from);
    assert_int_equal(source.read(source.ctx, &iov, 1, &err), -ENODATA);
    assert_string_equal(err.what, "");
    assert_int_equal(close(pair[0]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_agree),
        cmocka_unit_test(raw_comes_back),
        cmocka_unit_test(packed_comes_back),
        cmocka_unit_test(cut_anywhere_is_refused),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(a_reset_is_the_end),
        cmocka_unit_test(less_announced_than_came_allows_nothing_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
