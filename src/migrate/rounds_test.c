/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds over buffers that change at random: the destination has the content as it was when writing
 * stopped. Also each of gMig's sets by itself.
 */
#include "migrate/rounds_world.h"

#define PAGE 4096u

static void host_writes(struct buffer *b, uint64_t at, uint64_t n, int value)
{
    memset(b->here + at, value, n);
    gn_page_table_cpu_wrote(b->table, at, n);
}

/*
 * Swaps the two sides and begins the way back: for all pages that came, or for some, the table
 * knows that the other side has them.
 */
static void begin_return(struct world *w, bool all)
{
    for (size_t i = 0; i < w->n_buffers; i++) {
        struct buffer *b = &w->buffers[i];
        const struct gn_page_hasher *h = b->table->hasher;
        unsigned char digest[GN_PAGE_DIGEST_MAX];
        gn_page_table_destroy(b->table);
        assert_int_equal(gn_page_table_create(h, b->bytes, b->kernels, 4, &b->table), 0);
        w->items[i].table = b->table;
        for (uint64_t page = 0; page < b->table->n_pages; page++) {
            const unsigned char *content = b->there + page * h->page_bytes;
            gn_page_digest(h, content, gn_page_table_length(b->table, page), digest);
            if (all)
                gn_page_table_has(b->table, page, content, page % 2 ? digest : NULL);
            else if (draw(w, 4))
                gn_page_table_has(b->table, page, draw(w, 4) ? content : NULL,
                                  draw(w, 2) ? digest : NULL);
            if (!(b->table->sent[page / GN_PAGE_GROUP] >> page % GN_PAGE_GROUP & 1))
                memset(b->there + page * h->page_bytes, 0xee, gn_page_table_length(b->table, page));
        }
    }
}

/*
 * Everything at random, a few hundred times, or fewer: sizes down to a byte, all kinds of sources,
 * kernels and the host writing between and during rounds, up to three threads; and then back to the
 * source, which still has its content.
 */
static void random_moves(void **state)
{
    const uint64_t seeds = few() ? 60 : 400;
    for (uint64_t seed = 0; seed < seeds; seed++) {
        static const uint32_t page_sizes[] = {4096, 4096, 16384, 65536};
        static const enum gn_page_hash_kind kinds[] = {GN_PAGE_HASH_XXH3, GN_PAGE_HASH_NH,
                                                       GN_PAGE_HASH_NH, GN_PAGE_HASH_NONE};
        struct world w;
        enum gn_page_hash_kind kind = kinds[seed % 4];
        world_init(&w, kind, page_sizes[seed / 4 % 4], (unsigned)(seed % 3), seed);
        size_t n = 1 + draw(&w, MAX_BUFFERS);
        for (size_t i = 0; i < n; i++) {
            uint64_t bytes = draw(&w, 4) ? 1 + draw(&w, 700000) : 1 + draw(&w, 5000);
            struct buffer *b =
                world_add(&w, bytes, draw(&w, 3) != 0,
                          (enum world_source)draw(&w, kind == GN_PAGE_HASH_NH ? 3 : 2));
            if (draw(&w, 2)) {
                pthread_mutex_lock(&w.lock);
                kernel_runs_locked(b, 3000);
                pthread_mutex_unlock(&w.lock);
            }
        }
        for (unsigned moves = 0; moves < 2; moves++) {
            unsigned live = (unsigned)draw(&w, 4);
            for (unsigned round = 0; round <= live; round++) {
                for (size_t i = 0; i < n; i++) {
                    struct buffer *b = &w.buffers[i];
                    if (b->kernels) {
                        pthread_mutex_lock(&w.lock);
                        kernel_runs_locked(b, (unsigned)(draw_locked(&w) % 20));
                        pthread_mutex_unlock(&w.lock);
                    } else if (draw(&w, 8) == 0) {
                        /* The first kernel that writes the buffer. */
                        b->kernels = true;
                        gn_page_table_kernel_writes(b->table);
                    }
                    for (uint64_t writes = draw(&w, 3); writes; writes--) {
                        uint64_t at = draw(&w, b->bytes);
                        host_writes(b, at, 1 + draw(&w, b->bytes - at), (int)draw(&w, 3));
                    }
                }
                struct gn_round_options o = round < live ? LIVE : STOP;
                struct gn_round_stats s;
                o.sample = (enum gn_sample_place)draw(&w, GN_SAMPLE_AUTO + 1);
                w.lively = true;
                assert_int_equal(world_round(&w, o, &s), 0);
                assert_int_equal(s.verify.pages, s.verify.skipped + s.verify.unseen +
                                                     s.verify.host + s.verify.sampled +
                                                     s.verify.hashed);
                assert_int_equal(s.verify.hashed, s.verify.missed + s.verify.clean);
                assert_int_equal(s.sent_pages + s.verify.zero, s.verify.unseen + s.verify.host +
                                                                   s.verify.sampled +
                                                                   s.verify.missed);
            }
            assert_all_there(&w);
            if (draw(&w, 2))
                begin_return(&w, draw(&w, 2));
        }
        world_fini(&w);
    }
}

/* A value that differs only while it is sent: the hashed copy must be the one that is sent. */
static int read_between(void *ctx, uint64_t offset, void *dst, uint64_t n)
{
    struct buffer *b = ctx;
    pthread_mutex_lock(&b->w->lock);
    /* 1 for every second read. */
    b->here[0] = (unsigned char)(b->w->reads++ % 2);
    memcpy(dst, b->here + offset, n);
    b->here[0] = 0;
    pthread_mutex_unlock(&b->w->lock);
    return 0;
}

static void the_sent_copy_is_hashed(void **state)
{
    for (unsigned start = 0; start < 2; start++) {
        struct world w;
        world_init(&w, GN_PAGE_HASH_XXH3, PAGE, 1, 1);
        struct buffer *b = world_add(&w, 3 * PAGE, true, READ);
        b->here[5] = 7;
        w.reads = start;
        w.items[0].source.read = read_between;
        assert_int_equal(world_round(&w, LIVE, NULL), 0);
        assert_int_equal(b->there[0], start);
        w.items[0].source.read = world_read;
        assert_int_equal(world_round(&w, STOP, NULL), 0);
        assert_all_there(&w);
        world_fini(&w);
    }
}

static void unwritten_buffers_are_not_read_again(void **state)
{
    struct world w;
    struct gn_round_stats s;
    world_init(&w, GN_PAGE_HASH_XXH3, PAGE, 1, 2);
    struct buffer *b = world_add(&w, 100 * PAGE + 1, false, READ);
    memset(b->here, 3, b->bytes);
    assert_int_equal(world_round(&w, LIVE, &s), 0);
    assert_int_equal(s.verify.unseen, 101);
    assert_int_equal(s.verify.hash_ns, 0); /* the first sending is not hashed either */
    uint64_t reads = w.reads;
    assert_int_equal(world_round(&w, LIVE, &s), 0);
    assert_int_equal(world_round(&w, STOP, &s), 0);
    assert_int_equal(w.reads, reads);
    assert_int_equal(s.verify.skipped, 101);
    assert_int_equal(s.sent_bytes, 0);
    assert_all_there(&w);
    world_fini(&w);
}

/*
 * T_d and H: a page that both wrote is sent without comparison, and its digest is the one of the
 * sent content.
 */
static void host_pages_go_unhashed(void **state)
{
    struct world w;
    struct gn_round_stats s;
    world_init(&w, GN_PAGE_HASH_XXH3, PAGE, 1, 3);
    struct buffer *plain = world_add(&w, 200 * PAGE, false, MEMORY),
                  *both = world_add(&w, 200 * PAGE, true, MEMORY);
    assert_int_equal(world_round(&w, LIVE, &s), 0);
    assert_int_equal(s.verify.zero, 400);
    host_writes(plain, 10 * PAGE + 5, PAGE, 1); /* two pages */
    host_writes(both, 70 * PAGE, 1, 2);
    assert_int_equal(world_round(&w, LIVE, &s), 0);
    assert_int_equal(s.verify.host, 3);
    /* all pages of the other buffer except the one that the host wrote */
    assert_int_equal(s.verify.hashed, 199);
    assert_int_equal(s.verify.clean, 199);
    assert_int_equal(s.sent_pages, 3);
    /*
     * Without a new digest the page would be sent again; with the digest of zeros the page would be
     * lost here.
     */
    both->here[70 * PAGE] = 0;
    assert_int_equal(world_round(&w, STOP, &s), 0);
    assert_int_equal(s.sent_pages + s.verify.zero, 1);
    assert_all_there(&w);
    world_fini(&w);
}

static void marks_cover_their_ranges(void **state)
{
    struct world w;
    world_init(&w, GN_PAGE_HASH_XXH3, PAGE, 0, 4);
    struct buffer *b = world_add(&w, 200 * PAGE + 17, false, READ);
    struct gn_page_table *t = b->table;
    static const struct {
        uint64_t offset, n, pages;
    } cases[] = {
        {0, 1, 1},
        {PAGE - 1, 1, 1},
        {PAGE - 1, 2, 2},
        {63 * PAGE, 2 * PAGE, 2},
        {0, 200 * PAGE + 17, 201},
        {0, UINT64_MAX, 201},
        {5, UINT64_MAX, 201},
        {200 * PAGE, 100, 1},
        {200 * PAGE + 16, UINT64_MAX, 1},
        {200 * PAGE + 17, 1, 0},
        {UINT64_MAX, UINT64_MAX, 0},
        {UINT64_MAX, 1, 0},
        {0, 0, 0},
        {64 * PAGE, 64 * PAGE, 64},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t host = 0;
        gn_page_table_cpu_wrote(t, cases[i].offset, cases[i].n);
        for (uint64_t g = 0; g < t->n_groups; g++)
            host += (uint64_t)__builtin_popcountll(atomic_exchange(&t->host[g], 0));
        assert_int_equal(host, cases[i].pages);
    }
    assert_false(t->kernel);
    gn_page_table_kernel_writes(t);
    assert_true(t->kernel);
    world_fini(&w);
}

/*
 * In a run of changed pages the first one of each group is hashed, and one that the sample does not
 * detect; of the unchanged pages only the one behind the run is sampled.
 */
static void runs_are_sampled_not_hashed(void **state)
{
    struct world w;
    struct gn_round_stats s;
    struct gn_round_options runs = STOP;
    runs.sample = GN_SAMPLE_RUNS;
    world_init(&w, GN_PAGE_HASH_XXH3, PAGE, 0, 5);
    struct buffer *b = world_add(&w, 4 * GN_PAGE_GROUP * PAGE, true, MEMORY);
    assert_int_equal(world_round(&w, LIVE, NULL), 0);
    for (unsigned page = 64 + 10; page < 64 + 90; page++)
        b->here[page * PAGE + (page == 64 + 40 ? 100 : 0)] = 1;
    assert_int_equal(world_round(&w, runs, &s), 0);
    assert_int_equal(s.sent_pages, 80);
    assert_int_equal(s.verify.sampled, 80 - 2 - 1);
    assert_int_equal(s.verify.missed, 3);
    assert_all_there(&w);
    world_fini(&w);
}

/* Only changed pages cross the bus. */
static void device_digests_save_reads(void **state)
{
    for (unsigned threads = 0; threads < 3; threads++) {
        struct world w;
        struct gn_round_stats s;
        world_init(&w, GN_PAGE_HASH_NH, PAGE, threads, 6);
        struct buffer *b = world_add(&w, 10000 * PAGE + 9, true, DEVICE);
        pthread_mutex_lock(&w.lock);
        kernel_runs_locked(b, 20000);
        pthread_mutex_unlock(&w.lock);
        assert_int_equal(world_round(&w, LIVE, &s), 0);
        assert_int_equal(w.digests, 0);
        assert_int_equal(w.read_bytes, b->bytes);
        w.read_bytes = 0;
        b->here[5 * PAGE] ^= 1;
        b->here[10000 * PAGE + 8] ^= 1;
        host_writes(b, 7000 * PAGE, 1, 9);
        assert_int_equal(world_round(&w, STOP, &s), 0);
        assert_int_equal(w.digested_pages, 10001);
        assert_in_range(w.digests, 2, 4);
        assert_int_equal(w.read_bytes, 2 * PAGE + 9);
        assert_int_equal(s.sent_bytes + 0, 2 * PAGE + 9);
        assert_int_equal(s.verify.read_bytes, 2 * PAGE + 9);
        assert_int_equal(s.verify.device, 10000);
        assert_int_equal(s.verify.hashed, 10000);
        assert_all_there(&w);
        world_fini(&w);
    }
}

/* Digests computed before the device failed are used; the rest is read. */
static void failing_device_is_replaced_by_the_host(void **state)
{
    for (unsigned threads = 0; threads < 3; threads++) {
        struct world w;
        struct gn_round_stats s;
        world_init(&w, GN_PAGE_HASH_NH, PAGE, threads, 6);
        struct buffer *b = world_add(&w, 10000 * PAGE, true, DEVICE);
        pthread_mutex_lock(&w.lock);
        kernel_runs_locked(b, 20000);
        pthread_mutex_unlock(&w.lock);
        assert_int_equal(world_round(&w, LIVE, &s), 0);
        w.read_bytes = 0;
        b->here[5 * PAGE] ^= 1;
        b->here[9000 * PAGE] ^= 1;
        w.fail_digest_at = 2;
        assert_int_equal(world_round(&w, STOP, &s), 0);
        assert_int_equal(w.digests, 2);
        assert_int_equal(s.verify.device, 4096);
        assert_int_equal(s.sent_pages, 2);
        assert_int_equal(w.read_bytes, (1 + 10000 - 4096) * (uint64_t)PAGE);
        assert_all_there(&w);
        world_fini(&w);
    }
}

/* After the way back begins, only pages changed since they came are sent. */
static void return_sends_changed_pages_only(void **state)
{
    static const enum gn_page_hash_kind kinds[] = {GN_PAGE_HASH_XXH3, GN_PAGE_HASH_NH};
    static const enum world_source sources[] = {MEMORY, DEVICE};
    for (int i = 0; i < 2; i++) {
        struct world w;
        struct gn_round_stats s;
        world_init(&w, kinds[i], PAGE, 1, 7);
        struct buffer *by_kernels = world_add(&w, 500 * PAGE + 1, true, sources[i]),
                      *by_host = world_add(&w, 500 * PAGE, false, sources[i]);
        memset(by_kernels->here, 1, by_kernels->bytes);
        memset(by_host->here, 1, by_host->bytes);
        assert_int_equal(world_round(&w, STOP, &s), 0);
        begin_return(&w, true);
        by_kernels->here[123 * PAGE] = 2;
        by_kernels->here[500 * PAGE] = 2;
        host_writes(by_host, 7 * PAGE, 1, 2);
        assert_int_equal(world_round(&w, LIVE, &s), 0);
        assert_int_equal(s.sent_pages, 3);
        assert_int_equal(s.verify.hashed, 501);
        assert_int_equal(s.verify.device, sources[i] == DEVICE ? 501 : 0);
        assert_int_equal(s.verify.skipped, 499);
        by_kernels->here[123 * PAGE] = 1;
        assert_int_equal(world_round(&w, STOP, &s), 0);
        assert_int_equal(s.sent_pages, 1);
        assert_all_there(&w);
        forget_sent(by_host->table);
        assert_int_equal(world_round(&w, STOP, &s), 0);
        assert_int_equal(s.sent_pages, 500 + 1); /* and the page sent in a stop */
        world_fini(&w);
    }
}

/*
 * Pages without a known writer are compared when the table is in doubt: once, and not in the stop.
 */
static void doubtful_pages_are_compared_once(void **state)
{
    struct world w;
    struct gn_round_stats s;
    world_init(&w, GN_PAGE_HASH_XXH3, PAGE, 1, 7);
    struct buffer *b = world_add(&w, 100 * PAGE, false, MEMORY);
    memset(b->here, 1, b->bytes);
    assert_int_equal(world_round(&w, STOP, &s), 0);
    begin_return(&w, true);
    b->here[50 * PAGE] = 2;
    assert_int_equal(world_round(&w, LIVE, &s), 0);
    assert_int_equal(s.sent_pages, 0);
    b->table->doubts = true;
    assert_int_equal(world_round(&w, LIVE, &s), 0);
    assert_int_equal(s.verify.hashed, 100);
    assert_int_equal(s.sent_pages, 1);
    b->table->doubts = false;
    assert_int_equal(world_round(&w, STOP, &s), 0);
    assert_int_equal(s.verify.skipped, 100);
    assert_all_there(&w);
    world_fini(&w);
}

/* Pages that came without digests are sent again wherever a kernel may have written since. */
static void pages_without_digest_are_sent_again(void **state)
{
    struct world w;
    struct gn_round_stats s;
    world_init(&w, GN_PAGE_HASH_XXH3, PAGE, 1, 7);
    struct buffer *by_kernels = world_add(&w, 70 * PAGE, true, MEMORY),
                  *still = world_add(&w, 70 * PAGE, false, MEMORY);
    memset(by_kernels->here, 1, by_kernels->bytes);
    memset(still->here, 1, still->bytes);
    assert_int_equal(world_round(&w, STOP, &s), 0);
    begin_return(&w, true);
    for (uint64_t page = 60; page < 65; page++) {
        gn_page_table_has(by_kernels->table, page, NULL, NULL);
        gn_page_table_has(still->table, page, NULL, NULL);
    }
    assert_int_equal(world_round(&w, STOP, &s), 0);
    assert_int_equal(s.sent_pages, 5);
    assert_int_equal(s.verify.unseen, 5);
    assert_all_there(&w);
    world_fini(&w);
}

/* A last round keeps no digests of the pages that it sends, and must drop older ones. */
static void stop_drops_old_digests(void **state)
{
    struct world w;
    world_init(&w, GN_PAGE_HASH_XXH3, PAGE, 1, 11);
    struct buffer *b = world_add(&w, 70 * PAGE, true, MEMORY);
    assert_int_equal(world_round(&w, LIVE, NULL), 0);
    b->here[66 * PAGE] = 1;
    assert_int_equal(world_round(&w, STOP, NULL), 0);
    b->here[66 * PAGE] = 0;
    assert_int_equal(world_round(&w, STOP, NULL), 0);
    assert_all_there(&w);
    world_fini(&w);
}

/* The paper's basic form, the baseline of the measurements. */
static void no_hash_sends_everything(void **state)
{
    struct world w;
    struct gn_round_stats s;
    world_init(&w, GN_PAGE_HASH_NONE, PAGE, 1, 8);
    struct buffer *b = world_add(&w, 100 * PAGE, true, MEMORY);
    world_add(&w, 100 * PAGE, false, MEMORY);
    memset(b->here, 1, b->bytes);
    assert_int_equal(world_round(&w, LIVE, &s), 0);
    assert_int_equal(world_round(&w, STOP, &s), 0);
    assert_int_equal(s.sent_pages, 100);
    assert_int_equal(s.verify.skipped, 100);
    world_fini(&w);
}

static void hostile_sizes_are_refused(void **state)
{
    struct gn_page_hasher h;
    struct gn_page_table *t = NULL;
    struct gn_rounds *r = NULL;
    assert_int_equal(gn_page_hasher_init(&h, GN_PAGE_HASH_XXH3, PAGE, 1, NULL), 0);
    assert_int_equal(gn_page_table_create(&h, 0, false, 4, &t), -EINVAL);
    assert_int_equal(gn_page_table_create(&h, 1, false, 3, &t), -EINVAL);
    assert_int_equal(gn_page_table_create(&h, UINT64_MAX, false, 4, &t), -EFBIG);
    assert_int_equal(gn_rounds_create(PAGE, 65, &r, NULL), -EINVAL);
    assert_int_equal(gn_rounds_create(PAGE + 1, 1, &r, NULL), -EINVAL);
    assert_int_equal(gn_rounds_create(0, 1, &r, NULL), -EINVAL);
    assert_null(t);
    assert_null(r);

    /* A table with another page size than the engine's; no buffers at all. */
    struct gn_error err;
    struct gn_round_stats s;
    struct world w;
    world_init(&w, GN_PAGE_HASH_XXH3, 16384, 1, 9);
    assert_int_equal(gn_page_table_create(&h, 5 * PAGE, false, 4, &t), 0);
    struct gn_round_item item = {.table = t};
    assert_int_equal(gn_rounds_run(w.rounds, &STOP, &item, 1, &w.sink, &s, &err), -EINVAL);
    assert_non_null(strstr(err.what, "pages of 4096 bytes"));
    assert_int_equal(gn_rounds_run(w.rounds, &STOP, NULL, 0, &w.sink, &s, NULL), 0);
    assert_int_equal(s.verify.pages, 0);
    gn_page_table_destroy(t);
    gn_page_table_destroy(NULL);
    gn_rounds_destroy(NULL);
    gn_page_hasher_fini(&h);
    world_fini(&w);
}

/*
 * On a slow line the hashing threads fill the ring and sleep; on a fast one the sender sleeps. Both
 * end, in order.
 */
static void order_is_kept(void **state)
{
    struct world w;
    struct gn_round_stats s;
    world_init(&w, GN_PAGE_HASH_XXH3, PAGE, 2, 10);
    struct buffer *b = world_add(&w, 3000 * PAGE, true, READ);
    memset(b->here, 5, b->bytes);
    struct gn_round_options o = LIVE;
    o.bytes_per_s = UINT64_C(2000000000);
    assert_int_equal(world_round(&w, o, &s), 0);
    assert_int_equal(s.sent_bytes, b->bytes);
    assert_int_equal(w.calls, (3000 + GN_PAGE_GROUP - 1) / GN_PAGE_GROUP);
    assert_all_there(&w);
    world_fini(&w);
}

/* The number of reads when the n-th page was sent. */
struct meeting {
    struct world *w;
    uint64_t n_sent, looked_at[3];
};

static int met(void *ctx, uint64_t id, uint64_t offset, const void *data, uint64_t n,
               const void *digests)
{
    struct meeting *m = ctx;
    m->n_sent++;
    for (unsigned i = 0; i < 3; i++)
        if (m->n_sent == 100 * (i + 1) / 4)
            m->looked_at[i] = m->w->reads;
    return sink_data(m->w, id, offset, data, n, digests);
}

/*
 * Of 500 groups in two buffers, 100 adjacent ones have changed: in the stop a quarter of them has
 * been sent when a quarter of all was examined, and so on.
 */
static void changed_pages_are_spread_over_the_stop(void **state)
{
    struct world w;
    struct meeting m = {.w = &w};
    world_init(&w, GN_PAGE_HASH_XXH3, PAGE, 0, 12);
    struct buffer *some = world_add(&w, 200 * GN_PAGE_GROUP * PAGE, true, READ),
                  *rest = world_add(&w, 300 * GN_PAGE_GROUP * PAGE, true, READ);
    memset(some->here, 1, some->bytes);
    memset(rest->here, 1, rest->bytes);
    assert_int_equal(world_round(&w, LIVE, NULL), 0);
    for (uint64_t g = 70; g < 170; g++)
        some->here[g * GN_PAGE_GROUP * PAGE + 5] = 2;
    w.reads = 0;
    w.sink = (struct gn_page_sink){.data = met, .ctx = &m};
    assert_int_equal(world_round(&w, STOP, NULL), 0);
    assert_int_equal(m.n_sent, 100);
    assert_int_equal(w.reads, 500);
    for (unsigned i = 0; i < 3; i++)
        assert_in_range(m.looked_at[i], 500 * (i + 1) / 4 - 25, 500 * (i + 1) / 4 + 25);
    assert_all_there(&w);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_moves),
        cmocka_unit_test(the_sent_copy_is_hashed),
        cmocka_unit_test(unwritten_buffers_are_not_read_again),
        cmocka_unit_test(host_pages_go_unhashed),
        cmocka_unit_test(marks_cover_their_ranges),
        cmocka_unit_test(runs_are_sampled_not_hashed),
        cmocka_unit_test(device_digests_save_reads),
        cmocka_unit_test(failing_device_is_replaced_by_the_host),
        cmocka_unit_test(return_sends_changed_pages_only),
        cmocka_unit_test(doubtful_pages_are_compared_once),
        cmocka_unit_test(pages_without_digest_are_sent_again),
        cmocka_unit_test(stop_drops_old_digests),
        cmocka_unit_test(no_hash_sends_everything),
        cmocka_unit_test(hostile_sizes_are_refused),
        cmocka_unit_test(order_is_kept),
        cmocka_unit_test(changed_pages_are_spread_over_the_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
