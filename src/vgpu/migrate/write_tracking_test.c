/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of write tracking: kernels once and for all, host commands while their writes are
 * tracked.
 */
#include "vgpu/core/fake_api.h"
#include "vgpu/migrate/write_tracking.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define PAGE     4096u
#define KIND_MEM 2u

/* ---- a driver that keeps its commands until the test ends them */

static uint32_t n_wrote;

static void wrote(struct gn_vgpu *v, struct gn_command *c)
{
    (void)v, (void)c;
    n_wrote++;
}

static const struct gn_request_class writes = {
    .name = "writes", .admit = gn_fake_admit, .submit = gn_fake_submit, .writes = 1};
static const struct gn_request_class reads = {
    .name = "reads", .admit = gn_fake_admit, .submit = gn_fake_submit};
static const struct gn_request_class launches = {
    .name = "launches", .admit = gn_fake_admit, .submit = gn_fake_submit, .writes = GN_WRITES_ARGS};
static const struct gn_vgpu_api api = {GN_FAKE_API, .flush = gn_fake_leave_queue, .wrote = wrote};

static struct gn_vgpu vgpu;
static struct gn_vdevice device;
static struct gn_counters counters;
static struct gn_grant_page grants;
static struct gn_vgpu_boot boot = {.session_fd = -1, .grants.base = &grants};
static struct gn_page_hasher hasher;
static uint64_t queue_id;

static int setup(void **state)
{
    struct gn_error err;
    (void)state;
    memset(&vgpu, 0, sizeof vgpu);
    vgpu.session = &gn_vgpu_session_shm;
    memset(&device, 0, sizeof device);
    gn_fake.n_given = n_wrote = 0;
    vgpu.api = &api;
    vgpu.boot = &boot;
    vgpu.counters = &counters;
    vgpu.devices = &device;
    vgpu.n_devices = 1;
    vgpu.events = mmap(NULL, GN_EVENT_TABLE_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(vgpu.events != MAP_FAILED);
    gn_lost_init(&vgpu.lost);
    pthread_mutex_init(&vgpu.lock, NULL);
    pthread_mutex_init(&vgpu.objects.lock, NULL);
    pthread_mutex_init(&vgpu.writes_lock, NULL);
    assert_int_equal(gn_gate_init(&vgpu.gate), 0);
    assert_int_equal(gn_lease_init(&vgpu.lease, -1, &counters), 0);
    gn_device_init(&vgpu, 0);
    gn_objects_own_thread();
    queue_id = gn_id_make(7, 1);
    struct gn_vobject *queue = gn_object_put(&vgpu, queue_id, GN_FAKE_KIND_QUEUE, &gn_fake.event);
    assert_non_null(queue);
    queue->detail = gn_queue_new(&vgpu, queue, 0, true, false, false);
    return gn_page_hasher_init(&hasher, GN_PAGE_HASH_XXH3, PAGE, 0, &err);
}

static int teardown(void **state)
{
    (void)state;
    gn_object_remove(&vgpu, queue_id, GN_FAKE_KIND_QUEUE);
    for (uint32_t i = 0; i < GN_OBJECT_CHUNKS; i++) {
        free(vgpu.objects.chunks[i]);
        free(vgpu.objects.generations[i]);
    }
    for (uint32_t i = 0; i < GN_ARRAY_SIZE(vgpu.event_chunks); i++)
        free(vgpu.event_chunks[i]);
    munmap(vgpu.events, GN_EVENT_TABLE_BYTES);
    close(vgpu.lease.wake_fd);
    gn_page_hasher_fini(&hasher);
    return 0;
}

static void give(const struct gn_request_class *class)
{
    struct {
        struct gn_msg msg;
        struct gn_command_head head;
    } m = {.msg = {.size = sizeof m, .reply = GN_NO_REPLY},
           .head = {.queue = queue_id, .event = GN_NO_EVENT, .waits = {.segment = GN_SPAN_NULL}}};
    gn_command_admit(&vgpu, class, (const void *)&m, sizeof m, 0);
}

static struct gn_page_table *follow(struct gn_writes *w, uint64_t pages)
{
    struct gn_page_table *t = NULL;
    assert_int_equal(gn_writes_follow(&vgpu, w, GN_FOLLOWED_OUT, &hasher, pages * PAGE, &t), 0);
    return t;
}

/* A kernel before the tracking is known afterwards, for every purpose. */
static void test_a_kernel_before_it_is_followed(void **state)
{
    struct gn_writes *w = gn_writes_new(false);
    (void)state;
    assert_false(follow(w, 8)->kernel);
    gn_writes_unfollow(&vgpu, w, GN_FOLLOWED_OUT);
    gn_writes_by_kernel(&vgpu, w);
    for (int i = 0; i < 2; i++) {
        assert_true(follow(w, 8)->kernel);
        gn_writes_unfollow(&vgpu, w, GN_FOLLOWED_OUT);
    }
    gn_writes_unref(w);
}

static void test_a_kernel_while_it_is_followed(void **state)
{
    struct gn_writes *w = gn_writes_new(false);
    struct gn_page_table *t = follow(w, 8);
    (void)state;
    assert_false(t->kernel);
    gn_writes_by_kernel(&vgpu, w);
    assert_true(t->kernel);
    gn_writes_unfollow(&vgpu, w, GN_FOLLOWED_OUT);
    gn_writes_unref(w);
}

/* Memory that kernels may not write is not hashed because it was passed to one. */
static void test_a_kernel_that_may_only_read(void **state)
{
    struct gn_writes *w = gn_writes_new(true);
    (void)state;
    gn_writes_by_kernel(&vgpu, w);
    struct gn_page_table *t = follow(w, 8);
    gn_writes_by_kernel(&vgpu, w);
    assert_false(t->kernel);
    gn_writes_unfollow(&vgpu, w, GN_FOLLOWED_OUT);
    gn_writes_unref(w);
}

static void test_the_host_while_it_is_followed(void **state)
{
    struct gn_writes *w = gn_writes_new(false);
    (void)state;
    gn_writes_by_cpu(&vgpu, w, 0, PAGE);
    struct gn_page_table *t = follow(w, 8);
    assert_int_equal(t->host[0], 0);
    gn_writes_by_cpu(&vgpu, w, PAGE + 1, PAGE);
    assert_int_equal(t->host[0], 6);
    gn_writes_by_cpu(&vgpu, w, 7 * PAGE, UINT64_MAX);
    assert_int_equal(t->host[0], 0x86);
    assert_false(t->kernel);
    gn_writes_unfollow(&vgpu, w, GN_FOLLOWED_OUT);
    gn_writes_by_cpu(&vgpu, w, 0, PAGE);
    gn_writes_unref(w);
}

static void test_one_follows_at_a_time(void **state)
{
    struct gn_writes *w = gn_writes_new(false), *same = gn_writes_ref(w);
    struct gn_page_table *t = follow(w, 8), *other = NULL;
    (void)state;
    assert_int_equal(gn_writes_follow(&vgpu, same, GN_FOLLOWED_OUT, &hasher, PAGE, &other), -EBUSY);
    gn_writes_unref(same);
    gn_writes_unref(w); /* the program releases it: the tracking holds it */
    gn_writes_by_cpu(&vgpu, w, 0, PAGE);
    assert_int_equal(t->host[0], 1);
    gn_writes_unfollow(&vgpu, w, GN_FOLLOWED_OUT);
}

/* A checkpoint is written between departure and return: both purposes get each mark. */
static void test_two_follow_each_for_itself(void **state)
{
    struct gn_writes *w = gn_writes_new(false);
    struct gn_page_table *back = NULL;
    (void)state;
    assert_int_equal(gn_writes_follow(&vgpu, w, GN_FOLLOWED_BACK, &hasher, 8 * PAGE, &back), 0);
    gn_writes_by_cpu(&vgpu, w, 0, PAGE);
    struct gn_page_table *out = follow(w, 8);
    gn_writes_by_cpu(&vgpu, w, PAGE, PAGE);
    assert_int_equal(back->host[0], 3);
    assert_int_equal(out->host[0], 2);
    gn_writes_by_kernel(&vgpu, w);
    assert_true(back->kernel && out->kernel);
    gn_writes_unfollow(&vgpu, w, GN_FOLLOWED_OUT);
    gn_writes_by_cpu(&vgpu, w, 5 * PAGE, PAGE);
    (void)follow(w, 8);
    assert_ptr_equal(gn_writes_turn_back(&vgpu, w), back);
    gn_writes_by_cpu(&vgpu, w, 7 * PAGE, PAGE);
    assert_int_equal(back->host[0], 0xa3);
    gn_writes_unref(w);
    gn_writes_unfollow(&vgpu, w, GN_FOLLOWED_BACK); /* not tracked any more */
    gn_writes_by_cpu(&vgpu, w, 2 * PAGE, PAGE);
    assert_int_equal(back->host[0], 0xa7);
    gn_writes_unfollow(&vgpu, w, GN_FOLLOWED_OUT);
}

/* The end of a command without waiters is reported while its writes are tracked, and only then. */
static void test_commands_that_write(void **state)
{
    (void)state;
    give(&writes);
    assert_int_equal(gn_fake.n_given, 0);
    assert_int_equal(gn_vgpu_follow_writes(&vgpu, 0), 0);
    assert_int_equal(gn_vgpu_follow_writes(&vgpu, 0), 0);
    gn_vgpu_follow_writes_no_more(&vgpu);
    give(&reads);
    give(&launches);
    assert_int_equal(gn_fake.n_given, 0);
    give(&writes);
    give(&writes);
    assert_int_equal(gn_fake.n_given, 2);
    assert_int_equal(vgpu.n_followed, 2);
    gn_vgpu_follow_writes_no_more(&vgpu);
    gn_command_over(gn_fake.given[0], 0);
    assert_int_equal(n_wrote, 1);
    gn_command_over(gn_fake.given[1], -5);
    assert_int_equal(n_wrote, 2); /* part of it may have been written */
    assert_int_equal(vgpu.n_followed, 0);
    give(&writes);
    assert_int_equal(gn_fake.n_given, 2);
}

/*
 * A driver that holds the caller until its kernel is over holds other threads no longer than their
 * timeout.
 */
static void test_a_driver_that_does_not_return(void **state)
{
    (void)state;
    assert_int_equal(pthread_mutex_lock(&vgpu.devices[0].role), 0);
    assert_int_equal(gn_vgpu_follow_writes(&vgpu, 1000000), -ETIMEDOUT);
    assert_int_equal(pthread_mutex_unlock(&vgpu.devices[0].role), 0);
    assert_int_equal(gn_vgpu_follow_writes(&vgpu, 0), 0);
    gn_vgpu_follow_writes_no_more(&vgpu);
    gn_vgpu_follow_writes_no_more(&vgpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_kernel_before_it_is_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_kernel_while_it_is_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_kernel_that_may_only_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_host_while_it_is_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_follows_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_follow_each_for_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(test_commands_that_write, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_driver_that_does_not_return, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
