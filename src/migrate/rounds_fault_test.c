/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each step of a migration fails once: the sink, a source, a device, an allocation, a thread. The
 * round ends with the reason, no thread touches anything afterwards, nothing leaks (under ASan),
 * and the next attempt transfers everything.
 */
#include "migrate/rounds_world.h"

#include <semaphore.h>

#define PAGE 4096u

/* The linker redirects these calls of the code under test to the functions here. */
static long fail_allocation_at, fail_thread_at;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t each);
void *__real_aligned_alloc(size_t align, size_t n);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t each);
void *__wrap_aligned_alloc(size_t align, size_t n);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg);
int __real_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                  const struct timespec *until);

/* Posted while the lock is held that only the wait itself releases. */
static sem_t held_back;
static bool tell_held_back;

static bool fails(long *at)
{
    return *at && --*at == 0;
}

void *__wrap_malloc(size_t n)
{
    return fails(&fail_allocation_at) ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t each)
{
    return fails(&fail_allocation_at) ? NULL : __real_calloc(n, each);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
    return fails(&fail_allocation_at) ? NULL : __real_aligned_alloc(align, n);
}

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg)
{
    return fails(&fail_thread_at) ? EAGAIN : __real_pthread_create(t, a, f, arg);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                  const struct timespec *until)
{
    if (tell_held_back)
        sem_post(&held_back);
    return __real_pthread_cond_timedwait(c, m, until);
}

static void build(struct world *w, unsigned threads, uint64_t seed)
{
    world_init(w, GN_PAGE_HASH_NH, PAGE, threads, seed);
    world_add(w, 150 * PAGE + 3, true, READ);
    world_add(w, 90 * PAGE, false, MEMORY);
    world_add(w, 400 * PAGE + 1, true, DEVICE);
    world_add(w, 1, true, READ);
    for (size_t i = 0; i < w->n_buffers; i++)
        kernel_runs_locked(&w->buffers[i], 500);
}

static void change(struct world *w)
{
    for (size_t i = 0; i < w->n_buffers; i++) {
        struct buffer *b = &w->buffers[i];
        if (b->kernels)
            kernel_runs_locked(b, 30);
        for (unsigned writes = 0; writes < 3; writes++) {
            uint64_t at = (draw_locked(w) >> 16) % b->bytes;
            b->here[at] ^= 4;
            gn_page_table_cpu_wrote(b->table, at, 1);
        }
    }
}

/*
 * The three moments of a migration: the first round, a later one, the last. `arm` makes the n-th
 * call fail; a moment is finished when the fault no longer occurs.
 */
static unsigned each_moment(unsigned threads, void (*arm)(struct world *, long), int expected)
{
    unsigned failures = 0;
    const long later = few() ? 61 : 7;
    for (unsigned moment = 0; moment < 3; moment++) {
        /* Every early step, then every seventh, or fewer. */
        for (long n = 1;; n += n < 16 ? 1 : later) {
            struct world w;
            struct gn_round_stats s;
            build(&w, threads, (uint64_t)n);
            for (unsigned round = 0; round < moment; round++) {
                assert_int_equal(world_round(&w, LIVE, NULL), 0);
                change(&w);
            }
            struct gn_round_options o = moment == 2 ? STOP : LIVE;
            arm(&w, n);
            w.lively = true;
            int r = world_round(&w, o, &s);
            arm(&w, 0);
            failures += r != 0;
            if (r)
                assert_int_equal(r, expected);
            change(&w);
            if (r && n % 3 == 0) {
                for (size_t i = 0; i < w.n_buffers; i++)
                    forget_sent(w.buffers[i].table);
            }
            assert_int_equal(world_round(&w, STOP, &s), 0);
            assert_all_there(&w);
            world_fini(&w);
            if (!r)
                break;
        }
    }
    return failures;
}

static void arm_sink(struct world *w, long n)
{
    w->fail_call_at = n;
}

static void arm_read(struct world *w, long n)
{
    w->fail_read_at = n;
}

static void arm_digest(struct world *w, long n)
{
    w->fail_digest_at = n;
}

static void arm_memory(struct world *w, long n)
{
    fail_allocation_at = n;
}

static void a_sink_that_fails(void **state)
{
    for (unsigned threads = 0; threads < 3; threads++)
        assert_true(each_moment(threads, arm_sink, -EPIPE) >= 20);
}

static void a_source_that_fails(void **state)
{
    for (unsigned threads = 0; threads < 3; threads++)
        assert_true(each_moment(threads, arm_read, -EIO) >= 20);
}

/* The host reads and hashes the pages that the device did not hash. */
static void a_device_that_fails(void **state)
{
    unsigned failures = 0;
    for (unsigned threads = 0; threads < 3; threads++) {
        bool happened = true;
        for (long n = 1; happened; n++) {
            struct world w;
            build(&w, threads, (uint64_t)n);
            assert_int_equal(world_round(&w, LIVE, NULL), 0);
            change(&w);
            arm_digest(&w, n);
            w.lively = true;
            assert_int_equal(world_round(&w, LIVE, NULL), 0);
            w.lively = false;
            change(&w);
            assert_int_equal(world_round(&w, STOP, NULL), 0);
            happened = w.fail_digest_at == 0;
            failures += happened;
            assert_all_there(&w);
            world_fini(&w);
        }
    }
    assert_true(failures >= 6);
}

static void no_memory_in_a_round(void **state)
{
    assert_true(each_moment(1, arm_memory, -ENOMEM) >= 5);
}

/* The limit holds the sender back for days: only a failing source can end that. */
static int fail_when_the_sender_is_held_back(void *ctx, uint64_t offset, void *dst, uint64_t n)
{
    if (!offset)
        return world_read(ctx, offset, dst, n);
    while (sem_wait(&held_back) < 0)
        assert_int_equal(errno, EINTR);
    return -EIO;
}

static void a_source_that_fails_while_the_sender_is_held_back(void **state)
{
    struct world w;
    struct gn_round_options o = LIVE;
    world_init(&w, GN_PAGE_HASH_NH, PAGE, 1, 6);
    struct buffer *b = world_add(&w, 2 * GN_PAGE_GROUP * PAGE, true, READ);
    memset(b->here, 1, b->bytes);
    /* so the first group goes out in two runs, and the limit holds the second one back */
    memset(b->here + PAGE, 0, PAGE);
    w.items[0].source.read = fail_when_the_sender_is_held_back;
    o.bytes_per_s = 1;
    sem_init(&held_back, 0, 0);
    tell_held_back = true;
    assert_int_equal(world_round(&w, o, NULL), -EIO);
    tell_held_back = false;
    sem_destroy(&held_back);
    world_fini(&w);
}

static void nothing_leaks_when_making_fails(void **state)
{
    for (long n = 1, r = -ENOMEM; r; n++) {
        struct gn_rounds *rounds = NULL;
        fail_allocation_at = n;
        r = gn_rounds_create(PAGE, 2, &rounds, NULL);
        fail_allocation_at = 0;
        assert_true(r == 0 || r == -ENOMEM);
        assert_true((rounds == NULL) == (r != 0));
        gn_rounds_destroy(rounds);
    }
    for (long n = 1; n <= 3; n++) {
        struct gn_rounds *rounds = NULL;
        fail_thread_at = n;
        assert_int_equal(gn_rounds_create(PAGE, 3, &rounds, NULL), -EAGAIN);
        assert_null(rounds);
    }
    for (long n = 1, r = -ENOMEM; r; n++) {
        struct gn_page_hasher h;
        fail_allocation_at = n;
        r = gn_page_hasher_init(&h, GN_PAGE_HASH_NH, PAGE, 1, NULL);
        fail_allocation_at = 0;
        assert_true(r == 0 || r == -ENOMEM);
        if (!r)
            gn_page_hasher_fini(&h);
    }
    struct gn_page_hasher h;
    assert_int_equal(gn_page_hasher_init(&h, GN_PAGE_HASH_XXH3, PAGE, 1, NULL), 0);
    for (long n = 1, r = -ENOMEM; r; n++) {
        struct gn_page_table *t = NULL;
        fail_allocation_at = n;
        r = gn_page_table_create(&h, 1000000, true, 4, &t);
        fail_allocation_at = 0;
        assert_true(r == 0 || r == -ENOMEM);
        assert_true((t == NULL) == (r != 0));
        gn_page_table_destroy(t);
    }
    gn_page_hasher_fini(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sink_that_fails),
        cmocka_unit_test(a_source_that_fails),
        cmocka_unit_test(a_device_that_fails),
        cmocka_unit_test(no_memory_in_a_round),
        cmocka_unit_test(a_source_that_fails_while_the_sender_is_held_back),
        cmocka_unit_test(nothing_leaks_when_making_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
