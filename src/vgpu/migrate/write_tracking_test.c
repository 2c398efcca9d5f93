/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of write tracking: kernels are recorded for ever, the host's commands while there is a
 * follower.
 */
#include "vgpu/core/vgpu_core.h"
#include "vgpu/migrate/write_tracking.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define PAGE       4096u
#define KIND_QUEUE 1u
#define KIND_MEM   2u

/* ---- a fake driver that holds its commands until the test ends them */

static struct gn_command *given[8];
static uint32_t n_given, n_wrote;
static int some_driver_event;

static void admit(struct gn_vgpu *v, struct gn_command *c)
{
    (void)v, (void)c;
}

static int32_t submit(struct gn_vgpu *v, struct gn_command *c, void *queue, uint32_t n_waits,
                      void *const *waits, void **event)
{
    (void)v, (void)c, (void)queue, (void)n_waits, (void)waits;
    *event = &some_driver_event;
    return 0;
}

static int32_t when_over(struct gn_vgpu *v, void *event, struct gn_command *c)
{
    (void)v, (void)event;
    given[n_given++] = c;
    return 0;
}

static void wrote(struct gn_vgpu *v, struct gn_command *c)
{
    (void)v, (void)c;
    n_wrote++;
}

static void release_event(struct gn_vgpu *v, void *event)
{
    (void)v, (void)event;
}

static bool is_over(struct gn_vgpu *v, void *event)
{
    (void)v, (void)event;
    return true;
}

static void release(struct gn_vobject *o)
{
    if (o->kind == KIND_QUEUE)
        gn_queue_free(o->detail);
}

static void flush(struct gn_vgpu *v, void *queue)
{
    (void)v, (void)queue;
}

static const struct gn_request_class writes = {
    .name = "writes", .admit = admit, .submit = submit, .writes = 1};
static const struct gn_request_class reads = {.name = "reads", .admit = admit, .submit = submit};
static const struct gn_request_class launches = {
    .name = "launches", .admit = admit, .submit = submit, .writes = GN_WRITES_ARGS};
static const struct gn_vgpu_api api = {.when_over = when_over,
                                       .release_event = release_event,
                                       .release = release,
                                       .flush = flush,
                                       .is_over = is_over,
                                       .wrote = wrote,
                                       .queue_kind = KIND_QUEUE};

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
    memset(&device, 0, sizeof device);
    n_given = n_wrote = 0;
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
    struct gn_vobject *queue = gn_object_put(&vgpu, queue_id, KIND_QUEUE, &some_driver_event);
    assert_non_null(queue);
    queue->detail = gn_queue_new(&vgpu, queue, 0, true, false, false);
    return gn_page_hasher_init(&hasher, GN_PAGE_HASH_XXH3, PAGE, 0, false, &err);
}

static int teardown(void **state)
{
    (void)state;
    gn_object_remove(&vgpu, queue_id, KIND_QUEUE);
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

/* A kernel that ran before the memory is followed is known to every follower. */
static void test_a_kernel_before_it_is_followed(void **state)
{
    struct gn_writes *w = gn_writes_new(false);
    (void)state;
    assert_false(follow(w, 8)->kernel_all);
    gn_writes_unfollow(&vgpu, w, GN_FOLLOWED_OUT);
    gn_writes_by_kernel(&vgpu, w);
    for (int i = 0; i < 2; i++) {
        assert_true(follow(w, 8)->kernel_all);
        gn_writes_unfollow(&vgpu, w, GN_FOLLOWED_OUT);
    }
    gn_writes_unref(w);
}

static void test_a_kernel_while_it_is_followed(void **state)
{
    struct gn_writes *w = gn_writes_new(false);
    struct gn_page_table *t = follow(w, 8);
    (void)state;
    assert_false(t->kernel_all);
    gn_writes_by_kernel(&vgpu, w);
    assert_true(t->kernel_all);
    gn_writes_unfollow(&vgpu, w, GN_FOLLOWED_OUT);
    gn_writes_unref(w);
}

/* Memory that kernels may not write is not hashed only because it was passed to one. */
static void test_a_kernel_that_may_only_read(void **state)
{
    struct gn_writes *w = gn_writes_new(true);
    (void)state;
    gn_writes_by_kernel(&vgpu, w);
    struct gn_page_table *t = follow(w, 8);
    gn_writes_by_kernel(&vgpu, w);
    assert_false(t->kernel_all);
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
    assert_false(t->kernel_all);
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
    gn_writes_unref(w); /* the program releases it: the follower still has a reference */
    gn_writes_by_cpu(&vgpu, w, 0, PAGE);
    assert_int_equal(t->host[0], 1);
    gn_writes_unfollow(&vgpu, w, GN_FOLLOWED_OUT);
}

/* A checkpoint is written while a delta base exists: both get all marks. */
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
    assert_true(back->kernel_all && out->kernel_all);
    gn_writes_unfollow(&vgpu, w, GN_FOLLOWED_OUT);
    gn_writes_by_cpu(&vgpu, w, 5 * PAGE, PAGE);
    (void)follow(w, 8);
    assert_ptr_equal(gn_writes_turn_back(&vgpu, w), back);
    gn_writes_by_cpu(&vgpu, w, 7 * PAGE, PAGE);
    assert_int_equal(back->host[0], 0xa3);
    gn_writes_unref(w);
    gn_writes_unfollow(&vgpu, w, GN_FOLLOWED_BACK); /* not followed any more */
    gn_writes_by_cpu(&vgpu, w, 2 * PAGE, PAGE);
    assert_int_equal(back->host[0], 0xa7);
    gn_writes_unfollow(&vgpu, w, GN_FOLLOWED_OUT);
}

/*
 * Commands that no program thread waits for are reported at their end as long as the memory that
 * they write is followed; other commands are not.
 */
static void test_commands_that_write(void **state)
{
    (void)state;
    give(&writes);
    assert_int_equal(n_given, 0);
    assert_int_equal(gn_vgpu_follow_writes(&vgpu, 0), 0);
    assert_int_equal(gn_vgpu_follow_writes(&vgpu, 0), 0);
    gn_vgpu_follow_writes_no_more(&vgpu);
    give(&reads);
    give(&launches);
    assert_int_equal(n_given, 0);
    give(&writes);
    give(&writes);
    assert_int_equal(n_given, 2);
    assert_int_equal(vgpu.n_followed, 2);
    gn_vgpu_follow_writes_no_more(&vgpu);
    gn_command_over(given[0], 0);
    assert_int_equal(n_wrote, 1);
    gn_command_over(given[1], -5);
    assert_int_equal(n_wrote, 2); /* a part of the data may have been written */
    assert_int_equal(vgpu.n_followed, 0);
    give(&writes);
    assert_int_equal(n_given, 2);
}

/* A driver call that blocks until its kernel ends delays other threads by at most their timeout. */
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
