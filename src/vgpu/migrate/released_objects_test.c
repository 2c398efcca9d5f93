/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of objects that live for others: which of them migrate with pending commands, and when
 * they end.
 */
#include "vgpu/migrate/save.h"
#include "vgpu/core/fake_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define KIND_MEM 2u

static uint32_t n_released;
static int some_driver_object;

static void release(struct gn_vobject *o)
{
    n_released++;
    gn_fake_release(o);
}

static const struct gn_vgpu_api api = {.release = release, .queue_kind = GN_FAKE_KIND_QUEUE};
static struct gn_vgpu vgpu;
static struct gn_vdevice device;
static struct gn_counters counters;
static struct gn_vobject *queue;
static struct gn_command pending;

static uint64_t id(uint32_t index)
{
    return gn_id_make(index, 1);
}

static struct gn_vobject *make(uint32_t index)
{
    struct gn_vobject *o = gn_object_put(&vgpu, id(index), KIND_MEM, &some_driver_object);
    assert_non_null(o);
    return o;
}

static void forget(uint32_t index)
{
    gn_object_remove(&vgpu, id(index), KIND_MEM);
}

static int setup(void **state)
{
    (void)state;
    memset(&vgpu, 0, sizeof vgpu);
    vgpu.session = &gn_vgpu_session_shm;
    memset(&device, 0, sizeof device);
    memset(&pending, 0, sizeof pending);
    n_released = 0;
    vgpu.api = &api;
    vgpu.counters = &counters;
    vgpu.devices = &device;
    vgpu.n_devices = 1;
    pthread_mutex_init(&vgpu.lock, NULL);
    pthread_mutex_init(&vgpu.objects.lock, NULL);
    assert_int_equal(gn_lease_init(&vgpu.lease, -1, &counters), 0);
    device.vgpu = &vgpu;
    gn_list_init(&device.queues);
    gn_objects_own_thread();
    queue = gn_object_put(&vgpu, id(0), GN_FAKE_KIND_QUEUE, &some_driver_object);
    assert_non_null(queue);
    queue->detail = gn_queue_new(&vgpu, queue, 0, true, false, false);
    pending.queue_object = queue;
    gn_list_append(&((struct gn_vqueue *)queue->detail)->pending, &pending.link);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    gn_list_remove(&pending.link);
    gn_object_remove(&vgpu, id(0), GN_FAKE_KIND_QUEUE);
    free(vgpu.objects.generations[0]);
    free((void *)atomic_load(&vgpu.objects.chunks[0]));
    return 0;
}

/* A bit mask of the indices of released objects that are kept. */
static uint32_t kept(void)
{
    struct gn_vobject **all;
    uint32_t n, bits = 0;
    assert_int_equal(gn_released_objects_gather(&vgpu, &all, &n), 0);
    for (uint32_t i = 0; i < n; i++) {
        assert_false(bits >> gn_id_index(all[i]->id) & 1);
        bits |= 1u << gn_id_index(all[i]->id);
    }
    gn_objects_put(all, n);
    return bits;
}

static void test_holder_keeps_held_object_alive(void **state)
{
    struct gn_vobject *part = make(1), *whole = make(2);
    (void)state;
    assert_int_equal(gn_object_hold(part, whole), 0);
    assert_int_equal(gn_object_hold(part, whole), 0);
    assert_ptr_equal(gn_object_held(part, 0), whole);
    assert_null(gn_object_held(part, 1));
    forget(2);
    assert_int_equal(n_released, 0);
    assert_false(gn_object_is_named(whole));
    forget(1);
    assert_int_equal(n_released, 2);
}

static void test_many_are_held_once_each(void **state)
{
    struct gn_vobject *list = make(1), *all[20];
    (void)state;
    for (uint32_t i = 0; i < 20; i++)
        all[i] = make(2 + i);
    assert_int_equal(gn_object_reserve_holds(list, 3), 0);
    for (uint32_t i = 0; i < 200; i++)
        assert_int_equal(gn_object_hold(list, all[(i * 7) % 20]), 0);
    assert_non_null(gn_object_held(list, 19));
    assert_null(gn_object_held(list, 20));
    for (uint32_t i = 0; i < 20; i++)
        forget(2 + i);
    assert_int_equal(n_released, 0);
    forget(1);
    assert_int_equal(n_released, 21);
}

/* A command names only a part: the whole buffer, which has no other user, migrates with it. */
static void test_held_object_moves_with_the_command(void **state)
{
    struct gn_vobject *part = make(1), *whole = make(2), *other = make(3);
    (void)state;
    assert_int_equal(gn_object_hold(part, whole), 0);
    assert_int_equal(gn_object_hold(whole, other), 0);
    assert_ptr_equal(pending.refs[1] = gn_object_get(&vgpu, id(1), KIND_MEM, &(bool){false}), part);
    assert_int_equal(kept(), 0);
    forget(2);
    assert_int_equal(kept(), 1u << 2);
    forget(1);
    assert_int_equal(kept(), 1u << 1 | 1u << 2);
    forget(3);
    assert_int_equal(kept(), 1u << 1 | 1u << 2 | 1u << 3);
    assert_int_equal(n_released, 0);
    gn_object_unref(pending.refs[1]);
    pending.refs[1] = NULL;
    assert_int_equal(n_released, 3);
    assert_int_equal(kept(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_holder_keeps_held_object_alive, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_are_held_once_each, setup, teardown),
        cmocka_unit_test_setup_teardown(test_held_object_moves_with_the_command, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
