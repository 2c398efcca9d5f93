/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of records: all that is needed to recreate the live objects, and no growth with time.
 */
#include "vgpu/core/vgpu_core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { KIND_PROGRAM = 1, KIND_KERNEL };
enum { OP_PROGRAM = 1, OP_LINK, OP_KERNEL, OP_BUILD, OP_HINT, OP_ADD };

/*
 * The message of every request in this test: the object made or changed, the object named, and a
 * word.
 */
struct message {
    struct gn_msg msg;
    uint64_t object, named;
    uint32_t word, zero;
    struct gn_span text;
};

static const struct gn_request_class classes[] = {
    [OP_PROGRAM] = {.name = "program"},
    [OP_LINK] = {.name = "link"},
    [OP_KERNEL] = {.name = "kernel"},
    [OP_BUILD] = {.name = "build"},
    [OP_HINT] = {.name = "hint", .key_at = offsetof(struct message, word), .key_bytes = 4},
    [OP_ADD] = {.name = "add", .adds = true},
};

static void release(struct gn_vobject *o)
{
    (void)o;
}

static int made(struct gn_vobject *o, const struct gn_request *r)
{
    (void)o, (void)r;
    return 0;
}

static bool changes_though(int32_t result)
{
    return result == -11;
}

static const struct gn_vgpu_api api = {
    .release = release, .made = made, .changes_though = changes_though};
static struct gn_vgpu vgpu;
static struct gn_counters counters;
static int some_driver_object;

static int setup(void **state)
{
    (void)state;
    memset(&vgpu, 0, sizeof vgpu);
    vgpu.session = &gn_vgpu_session_shm;
    vgpu.api = &api;
    vgpu.counters = &counters;
    pthread_mutex_init(&vgpu.objects.lock, NULL);
    assert_int_equal(gn_lease_init(&vgpu.lease, -1, &counters), 0);
    gn_objects_own_thread();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < GN_OBJECT_CHUNKS; i++) {
        free(vgpu.objects.generations[i]);
        free((void *)atomic_load(&vgpu.objects.chunks[i]));
    }
    return 0;
}

static struct message *begin(struct gn_request *r, uint16_t op, uint64_t object, uint64_t named,
                             uint16_t kind)
{
    struct message *m = (void *)r->bytes;
    gn_request_init(r, &vgpu);
    memset(m, 0, sizeof *m);
    r->class = &classes[op];
    r->n_bytes = sizeof *m;
    m->msg = (struct gn_msg){.size = sizeof *m, .op = op};
    m->object = object;
    m->named = named;
    m->text.segment = GN_SPAN_NULL;
    if (named)
        assert_non_null(gn_request_object(r, kind, named));
    return m;
}

static void make(uint16_t op, uint16_t kind, uint64_t id, uint64_t from)
{
    struct gn_request r;
    begin(&r, op, id, from, KIND_PROGRAM);
    assert_int_equal(gn_request_made(&r, kind, id, &some_driver_object, 0), 0);
    gn_request_fini(&r);
}

static void change(uint16_t op, uint16_t kind, uint64_t id, uint32_t word, int32_t result)
{
    struct gn_request r;
    struct message *m = begin(&r, op, id, id, kind);
    m->word = word;
    r.result = result;
    gn_request_changed(&r, r.held[0]);
    gn_request_fini(&r);
}

/* The ops of the records that would be saved now, as text, each with its word if that is not 0. */
static const char *gathered(void)
{
    static char text[256];
    struct gn_record **all;
    uint32_t n;
    size_t at = 0;
    assert_int_equal(gn_records_gather(&vgpu, NULL, 0, &all, &n, NULL, NULL), 0);
    text[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct message *m = (const void *)all[i]->bytes;
        assert_true(i == 0 || all[i]->serial > all[i - 1]->serial);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%u", i ? " " : "", all[i]->op);
        if (m->word)
            at += (size_t)snprintf(text + at, sizeof text - at, ".%u", m->word);
    }
    gn_records_put(&vgpu, all, n);
    return text;
}

static uint64_t id(uint32_t index, uint32_t generation)
{
    return gn_id_make(index, generation);
}

static void test_a_thousand_builds_are_one(void **state)
{
    (void)state;
    make(OP_PROGRAM, KIND_PROGRAM, id(1, 1), 0);
    for (uint32_t i = 1; i <= 1000; i++)
        change(OP_BUILD, KIND_PROGRAM, id(1, 1), i, 0);
    assert_string_equal(gathered(), "1 4.1000");
    gn_object_remove(&vgpu, id(1, 1), KIND_PROGRAM);
    assert_string_equal(gathered(), "");
}

static void test_the_last_of_each_key_stays(void **state)
{
    (void)state;
    make(OP_PROGRAM, KIND_PROGRAM, id(1, 1), 0);
    for (uint32_t i = 0; i < 300; i++)
        change(OP_HINT, KIND_PROGRAM, id(1, 1), 7 + i % 3, 0);
    assert_string_equal(gathered(), "1 5.7 5.8 5.9");
    gn_object_remove(&vgpu, id(1, 1), KIND_PROGRAM);
}

static void test_all_additions_stay_in_order(void **state)
{
    (void)state;
    make(OP_PROGRAM, KIND_PROGRAM, id(1, 1), 0);
    change(OP_ADD, KIND_PROGRAM, id(1, 1), 1, 0);
    change(OP_ADD, KIND_PROGRAM, id(1, 1), 1, 0);
    change(OP_ADD, KIND_PROGRAM, id(1, 1), 2, -30);
    change(OP_BUILD, KIND_PROGRAM, id(1, 1), 3, 0);
    change(OP_ADD, KIND_PROGRAM, id(1, 1), 4, 0);
    assert_string_equal(gathered(), "1 6.1 6.1 4.3 6.4");
    /* replaces the earlier build, and is now the last */
    change(OP_BUILD, KIND_PROGRAM, id(1, 1), 5, 0);
    change(OP_ADD, KIND_PROGRAM, id(1, 1), 6, 0);
    assert_string_equal(gathered(), "1 6.1 6.1 6.4 4.5 6.6");
    change(OP_BUILD, KIND_PROGRAM, id(1, 1), 7, 0);
    change(OP_BUILD, KIND_PROGRAM, id(1, 1), 8, 0);
    change(OP_ADD, KIND_PROGRAM, id(1, 1), 9, 0);
    assert_string_equal(gathered(), "1 6.1 6.1 6.4 6.6 4.8 6.9");
    gn_object_remove(&vgpu, id(1, 1), KIND_PROGRAM);
    assert_string_equal(gathered(), "");
}

static void test_a_change_that_failed_is_none_unless_the_api_says_so(void **state)
{
    (void)state;
    make(OP_PROGRAM, KIND_PROGRAM, id(1, 1), 0);
    change(OP_BUILD, KIND_PROGRAM, id(1, 1), 1, 0);
    change(OP_BUILD, KIND_PROGRAM, id(1, 1), 2, -30);
    assert_string_equal(gathered(), "1 4.1");
    change(OP_BUILD, KIND_PROGRAM, id(1, 1), 3, -11);
    /* The driver may have kept the result of the earlier build. */
    assert_string_equal(gathered(), "1 4.1 4.3");
    change(OP_BUILD, KIND_PROGRAM, id(1, 1), 4, -11);
    assert_string_equal(gathered(), "1 4.1 4.4");
    change(OP_BUILD, KIND_PROGRAM, id(1, 1), 5, 0);
    assert_string_equal(gathered(), "1 4.5");
    gn_object_remove(&vgpu, id(1, 1), KIND_PROGRAM);
}

/*
 * A linked program object needs its inputs as they were at link time, whether or not the program
 * has released them.
 */
static void test_what_was_used_stays_as_it_was(void **state)
{
    (void)state;
    make(OP_PROGRAM, KIND_PROGRAM, id(1, 1), 0);
    change(OP_BUILD, KIND_PROGRAM, id(1, 1), 1, 0);
    make(OP_LINK, KIND_PROGRAM, id(2, 1), id(1, 1));
    change(OP_BUILD, KIND_PROGRAM, id(1, 1), 2, 0);
    assert_string_equal(gathered(), "1 4.1 2 4.2");
    gn_object_remove(&vgpu, id(1, 1), KIND_PROGRAM);
    assert_string_equal(gathered(), "1 4.1 2");
    make(OP_PROGRAM, KIND_PROGRAM, id(1, 2), 0); /* the index is reused */
    make(OP_KERNEL, KIND_KERNEL, id(3, 1), id(2, 1));
    assert_string_equal(gathered(), "1 4.1 2 1 3");
    gn_object_remove(&vgpu, id(2, 1), KIND_PROGRAM);
    assert_string_equal(gathered(), "1 4.1 2 1 3");
    gn_object_remove(&vgpu, id(3, 1), KIND_KERNEL);
    assert_string_equal(gathered(), "1");
    gn_object_remove(&vgpu, id(1, 2), KIND_PROGRAM);
}

static void test_one_request_that_makes_several_is_one_record(void **state)
{
    struct gn_request r;
    (void)state;
    make(OP_PROGRAM, KIND_PROGRAM, id(1, 1), 0);
    begin(&r, OP_KERNEL, 0, id(1, 1), KIND_PROGRAM);
    for (uint32_t i = 2; i < 5; i++)
        assert_int_equal(gn_request_made(&r, KIND_KERNEL, id(i, 1), &some_driver_object, 0), 0);
    gn_request_fini(&r);
    assert_string_equal(gathered(), "1 3");
    gn_object_remove(&vgpu, id(2, 1), KIND_KERNEL);
    gn_object_remove(&vgpu, id(4, 1), KIND_KERNEL);
    assert_string_equal(gathered(), "1 3");
    gn_object_remove(&vgpu, id(3, 1), KIND_KERNEL);
    gn_object_remove(&vgpu, id(1, 1), KIND_PROGRAM);
    assert_string_equal(gathered(), "");
}

static void test_a_long_chain_is_freed_without_a_deep_stack(void **state)
{
    (void)state;
    make(OP_PROGRAM, KIND_PROGRAM, id(0, 1), 0);
    for (uint32_t i = 1; i < 200000; i++) {
        make(OP_LINK, KIND_PROGRAM, id(i % 2, i / 2 + 2),
             id((i - 1) % 2, (i - 1) / 2 + (i > 1 ? 2 : 1)));
        gn_object_remove(&vgpu, id((i - 1) % 2, (i - 1) / 2 + (i > 1 ? 2 : 1)), KIND_PROGRAM);
    }
    gn_object_remove(&vgpu, id(199999 % 2, 199999 / 2 + 2), KIND_PROGRAM);
    assert_string_equal(gathered(), "");
}

static void test_what_lay_in_the_area_is_in_the_record(void **state)
{
    static char text[] = "twelve bytes";
    struct gn_record **all;
    struct gn_request r;
    uint32_t n;
    (void)state;
    struct message *m = begin(&r, OP_PROGRAM, id(1, 1), 0, 0);
    m->text = (struct gn_span){3, 12, 4096};
    r.ins[r.n_ins].span = &m->text;
    r.ins[r.n_ins++].bytes = text;
    assert_int_equal(gn_request_made(&r, KIND_PROGRAM, id(1, 1), &some_driver_object, 0), 0);
    gn_request_fini(&r);
    assert_int_equal(gn_records_gather(&vgpu, NULL, 0, &all, &n, NULL, NULL), 0);
    assert_int_equal(n, 1);
    const struct message *kept = (const void *)all[0]->bytes;
    assert_int_equal(kept->text.segment, GN_SPAN_INLINE);
    assert_memory_equal(all[0]->bytes + kept->text.offset, text, 12);
    gn_records_put(&vgpu, all, n);

    gn_object_remove(&vgpu, id(1, 1), KIND_PROGRAM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_thousand_builds_are_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_last_of_each_key_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_additions_stay_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_change_that_failed_is_none_unless_the_api_says_so,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_was_used_stays_as_it_was, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_request_that_makes_several_is_one_record, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_long_chain_is_freed_without_a_deep_stack, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_what_lay_in_the_area_is_in_the_record, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
