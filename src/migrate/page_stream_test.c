/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests rounds written into a stream and read back: the reader has the content as it was when
 * writing stopped.
 */
#include "migrate/rounds_world.h"

#include "migrate/page_stream.h"
#include "stream/stream_samples.h"

#define FIRST_ID 100u

static struct gn_stream_writer *begin(struct world *w, struct gn_sample_file *f)
{
    const struct gn_stream_options o = {.purpose = GN_STREAM_MOVE,
                                        .api = "opencl",
                                        .creator = "test",
                                        .page_bytes = w->hasher.page_bytes};
    const struct gn_stream_sink sink = gn_sample_sink(f);
    struct gn_stream_announce most = {
        .entries_bytes = 65536, .n_objects = MAX_BUFFERS, .n_memories = MAX_BUFFERS, .n_rounds = 8};
    struct gn_stream_memory memories[MAX_BUFFERS];
    struct gn_stream_writer *writer;
    memset(memories, 0, sizeof memories);
    for (size_t i = 0; i < w->n_buffers; i++) {
        memories[i].id = FIRST_ID + i;
        memories[i].bytes = w->buffers[i].bytes;
        most.memory_bytes += w->buffers[i].bytes;
        w->items[i].id = FIRST_ID + i;
    }
    assert_int_equal(gn_stream_writer_create(&sink, &o, &writer, NULL), 0);
    assert_int_equal(gn_stream_announce(writer, &most), 0);
    for (size_t i = 0; i < w->n_buffers; i++) {
        assert_int_equal(gn_stream_entry_begin(writer, GN_STREAM_OBJECTS, FIRST_ID + i, 1, NULL, 0),
                         0);
        assert_int_equal(gn_stream_entry_end(writer), 0);
        memories[i].object = FIRST_ID + i;
    }
    int r = gn_stream_put_memories(writer, memories, (uint32_t)w->n_buffers);
    if (r)
        fail_msg("%s", gn_stream_writer_error(writer)->what);
    return writer;
}

static void read_back(struct world *w, struct gn_sample_file *f)
{
    const struct gn_stream_source source = gn_sample_source(f);
    struct gn_stream_reader *r;
    struct gn_stream_section s;
    assert_int_equal(gn_stream_reader_create(&source, &gn_stream_limits_default, &r, NULL), 0);
    do {
        if (gn_stream_next(r, &s))
            fail_msg("%s", gn_stream_reader_error(r)->what);
        if (s.what != GN_STREAM_IS_PAGES)
            continue;
        void *where[256];
        assert_in_range(s.n_runs, 1, 256);
        for (uint32_t i = 0; i < s.n_runs; i++)
            where[i] = w->buffers[s.memory->id - FIRST_ID].there +
                       s.runs[i].first_page * w->hasher.page_bytes;
        assert_int_equal(gn_stream_read_pages(r, where), 0);
    } while (s.what != GN_STREAM_IS_COMMIT);
    gn_stream_reader_destroy(r);
}

static void read_back_equals_the_memory(void **state)
{
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct world w;
        struct gn_sample_file f = {0};
        struct gn_page_stream ps;
        world_init(&w, seed % 3 == 2 ? GN_PAGE_HASH_NH : GN_PAGE_HASH_XXH3, seed % 2 ? 16384 : 4096,
                   (unsigned)(seed / 8 % 3), seed);
        for (size_t i = 0; i < 4; i++) {
            struct buffer *b = world_add(&w, 1 + draw(&w, 900000), i != 1, i == 2 ? MEMORY : READ);
            pthread_mutex_lock(&w.lock);
            kernel_runs_locked(b, 400);
            pthread_mutex_unlock(&w.lock);
        }
        struct gn_stream_writer *writer = begin(&w, &f);
        w.sink = gn_page_stream_sink(&ps, writer, w.hasher.page_bytes);
        for (unsigned round = 0; round < 3; round++) {
            struct gn_round_options o = round < 2 ? LIVE : STOP;
            w.lively = true;
            assert_int_equal(
                gn_stream_round_begin(writer, round < 2 ? GN_STREAM_PRECOPY : GN_STREAM_STOP), 0);
            if (world_round(&w, o, NULL))
                fail_msg("%s", gn_stream_writer_error(writer)->what);
            pthread_mutex_lock(&w.lock);
            for (size_t i = 0; i < w.n_buffers && round < 2; i++)
                if (w.buffers[i].kernels)
                    kernel_runs_locked(&w.buffers[i], 60);
            pthread_mutex_unlock(&w.lock);
        }
        assert_int_equal(gn_stream_commit(writer), 0);
        gn_stream_writer_destroy(writer);
        read_back(&w, &f);
        assert_all_there(&w);
        gn_sample_free(&f);
        world_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_back_equals_the_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
