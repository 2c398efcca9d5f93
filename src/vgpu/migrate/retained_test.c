/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of the contents that a vGPU leaves in its program and finds there again. The driver is
 * simulated: an object's contents are some bytes.
 */
#include "vgpu/migrate/retained.h"

#include "migrate/verify.h"
#include "vgpu/migrate/save.h"
#include "vgpu/core/vgpu_core.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define BYTES  (3u * 1048576u + 5u)
#define ONE    UINT64_C(0x100000001)
#define OTHER  UINT64_C(0x100000002)
#define HUGE   UINT64_C(0x100000003)
#define BROKEN UINT64_C(0x100000004)

static unsigned char *memory;
static struct gn_vgpu vgpu;
static struct gn_counters counters;
static uint32_t n_open, n_ended;

static bool look(struct gn_vgpu *v, const struct gn_vobject *o, bool homes, uint64_t *ret_bytes,
                 struct gn_writes **ret_writes)
{
    (void)v, (void)homes;
    *ret_bytes = o->id == HUGE ? UINT64_C(1) << 60 : BYTES;
    *ret_writes = NULL;
    return true;
}

static int read_it(void *ctx, uint64_t offset, void *dst, uint64_t n)
{
    const struct gn_vobject *o = ctx;
    memcpy(dst, memory + offset, n);
    return o->id == BROKEN && offset ? -EIO : 0;
}

static int open_it(struct gn_vgpu *v, struct gn_vobject *o, const struct gn_page_hasher *there,
                   struct gn_page_source *ret, struct gn_error *err)
{
    (void)v, (void)there, (void)err;
    n_open++;
    *ret =
        (struct gn_page_source){.memory = o->id == ONE ? memory : NULL, .read = read_it, .ctx = o};
    return 0;
}

static void shut(struct gn_vgpu *v, struct gn_page_source *source)
{
    (void)v, (void)source;
    n_open--;
}

static void end(struct gn_vgpu *v)
{
    (void)v;
    n_ended++;
}

static void release(struct gn_vobject *o)
{
    (void)o;
}

static const struct gn_vgpu_contents contents = {
    .look = look, .open = open_it, .shut = shut, .end = end};
static const struct gn_vgpu_api api = {.release = release, .contents = &contents};

static int set_up(void **state)
{
    (void)state;
    memset(&vgpu, 0, sizeof vgpu);
    vgpu.session = &gn_vgpu_session_shm;
    vgpu.api = &api;
    vgpu.counters = &counters;
    pthread_mutex_init(&vgpu.objects.lock, NULL);
    assert_int_equal(gn_lease_init(&vgpu.lease, -1, &counters), 0);
    gn_objects_own_thread();
    memory = calloc(1, BYTES);
    assert_non_null(memory);
    memset(memory + 10 * 4096, 7, 4096);
    memory[BYTES - 1] = 9;
    n_open = n_ended = 0;
    return 0;
}

static int tear_down(void **state)
{
    uint32_t at = 0;
    struct gn_vobject *o;
    (void)state;
    while ((o = gn_object_next(&vgpu, &at)))
        gn_object_remove(&vgpu, o->id, o->kind);
    for (uint32_t i = 0; i < GN_OBJECT_CHUNKS; i++) {
        free(vgpu.objects.generations[i]);
        free((void *)atomic_load(&vgpu.objects.chunks[i]));
    }
    close(vgpu.lease.wake_fd);
    free(memory);
    return 0;
}

static struct gn_vobject *object(uint64_t id)
{
    struct gn_vobject *o = gn_object_put(&vgpu, id, 1, memory);
    assert_non_null(o);
    return o;
}

static uint32_t n_listed(uint64_t number)
{
    uint64_t *ids;
    const uint32_t n = gn_retained_list(number, &ids);
    free(ids);
    return n;
}

static void retained_contents_are_found(void **state)
{
    struct gn_vobject *one = object(ONE), *other = object(OTHER), *broken = object(BROKEN);
    uint64_t *ids;
    (void)state;
    vgpu.retained = gn_retained_promise();
    assert_true(vgpu.retained);
    struct gn_retained *r = gn_retained_begin(&vgpu);
    assert_non_null(r);
    gn_retained_keep(r, &vgpu, one);
    gn_retained_keep(r, &vgpu, other);
    gn_retained_keep(r, &vgpu, broken);
    assert_null(gn_retained_find(vgpu.retained, ONE, BYTES)); /* not complete yet */
    gn_retained_done(r, &vgpu);
    assert_int_equal(n_open, 0);
    assert_int_equal(n_ended, 1);
    assert_int_equal(gn_retained_list(vgpu.retained, &ids), 2);
    assert_int_equal(ids[0], ONE);
    assert_int_equal(ids[1], OTHER);
    free(ids);
    assert_memory_equal(gn_retained_find(vgpu.retained, ONE, BYTES), memory, BYTES);
    assert_memory_equal(gn_retained_find(vgpu.retained, OTHER, BYTES), memory, BYTES);
    assert_null(gn_retained_find(vgpu.retained, ONE, BYTES - 1));
    assert_null(gn_retained_find(vgpu.retained, BROKEN, BYTES));
    assert_null(gn_retained_find(vgpu.retained, 0, BYTES));
    assert_null(gn_retained_find(vgpu.retained + 1, ONE, BYTES));
    gn_retained_drop_one(vgpu.retained, ONE);
    gn_retained_drop_one(vgpu.retained, ONE);
    assert_null(gn_retained_find(vgpu.retained, ONE, BYTES));
    gn_retained_drop(vgpu.retained);
    assert_int_equal(n_listed(vgpu.retained), 0);
    gn_retained_drop(vgpu.retained);
    gn_retained_drop(0);
}

static void without_room_nothing_is_kept(void **state)
{
    struct gn_vobject *huge = object(HUGE);
    (void)state;
    vgpu.retained = gn_retained_promise();
    assert_null(gn_retained_begin(&vgpu));
    gn_retained_keep(NULL, &vgpu, huge);
    gn_retained_done(NULL, &vgpu);
    assert_int_equal(n_listed(vgpu.retained), 0);
}

static void a_promise_that_is_broken(void **state)
{
    (void)state;
    vgpu.retained = gn_retained_promise();
    gn_retained_drop(vgpu.retained);
    assert_null(gn_retained_begin(&vgpu));
    assert_int_equal(n_listed(vgpu.retained), 0);
    vgpu.retained = 0;
    assert_null(gn_retained_begin(&vgpu));
    assert_int_equal(n_listed(0), 0);
}

static void nobody_wants_it_while_it_is_taken(void **state)
{
    struct gn_vobject *one = object(ONE), *other = object(OTHER);
    (void)state;
    vgpu.retained = gn_retained_promise();
    struct gn_retained *r = gn_retained_begin(&vgpu);
    gn_retained_keep(r, &vgpu, one);
    gn_retained_drop(vgpu.retained);
    gn_retained_keep(r, &vgpu, other);
    gn_retained_done(r, &vgpu);
    assert_int_equal(n_listed(vgpu.retained), 0);
}

static void *leave_later(void *arg)
{
    usleep(20000);
    gn_retained_done(arg, &vgpu);
    return NULL;
}

static void returning_vgpu_waits_for_leaving_one(void **state)
{
    struct gn_vobject *one = object(ONE);
    pthread_t thread;
    (void)state;
    vgpu.retained = gn_retained_promise();
    struct gn_retained *r = gn_retained_begin(&vgpu);
    gn_retained_keep(r, &vgpu, one);
    assert_int_equal(pthread_create(&thread, NULL, leave_later, r), 0);
    assert_int_equal(n_listed(vgpu.retained), 1);
    pthread_join(thread, NULL);
    gn_retained_drop(vgpu.retained);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(retained_contents_are_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_room_nothing_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_promise_that_is_broken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nobody_wants_it_while_it_is_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(returning_vgpu_waits_for_leaving_one, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
