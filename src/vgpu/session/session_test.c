/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of sessions: every entry that callers do not check is there, and the properties do not
 * contradict each other. */
#include "vgpu/session/session.h"

#include "base/checked.h"
#include "vgpu/core/vgpu_core.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct gn_vgpu_session_ops *const all[] = {&gn_vgpu_session_shm, &gn_vgpu_session_tcp,
                                                        &gn_vgpu_session_in_process};

static void test_tables_are_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < GN_ARRAY_SIZE(all); i++) {
        const struct gn_vgpu_session_ops *s = all[i];
        assert_non_null(s->name);
        assert_true(s->end && s->connect && s->area_limit);
        assert_true(s->reply && s->answer && s->post_event && s->end_event && s->send_frame);
        assert_true(s->wake && s->expect_message && s->recall_memory && s->gate_changed);
        assert_true(s->pause_program && s->send_quiesced && s->resume);
        assert_true(s->add_segment && s->load_frame && s->loaded && s->set_output);
        assert_non_null(s->resume_as_owner);
    }
}

static void test_properties_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < GN_ARRAY_SIZE(all); i++) {
        const struct gn_vgpu_session_ops *s = all[i];
        /* The program's threads serve where no thread of the vGPU does. */
        assert_true(s->has_serving_thread == (s->serve != NULL));
        /* A program outlives its vGPU: the mappings and a fault must be seen to. */
        assert_true(s->in_program == (s->unmap != NULL));
        assert_true(s->in_program == (s->faulted != NULL));
        assert_true(!s->in_program || (s->shares_memory && !s->maps_window && s->thread_name));
    }
}

static void test_threads_return_in_a_program_alone(void **state)
{
    static struct gn_vgpu vgpu;
    (void)state;
    gn_lost_init(&vgpu.lost);
    for (size_t i = 0; i < GN_ARRAY_SIZE(all); i++) {
        vgpu.session = all[i];
        assert_false(gn_vgpu_threads_return(&vgpu));
    }
    gn_lost_declare(&vgpu.lost);
    for (size_t i = 0; i < GN_ARRAY_SIZE(all); i++) {
        vgpu.session = all[i];
        assert_int_equal(gn_vgpu_threads_return(&vgpu), all[i]->in_program);
    }
}

static void test_shared_memory_has_no_state_to_load(void **state)
{
    (void)state;
    for (size_t i = 0; i < GN_ARRAY_SIZE(all); i++) {
        if (!all[i]->shares_memory)
            continue;
        assert_int_equal(all[i]->load_frame(NULL, NULL), -EOPNOTSUPP);
        assert_int_equal(all[i]->add_segment(NULL, 1, 4096), -EPROTO);
        assert_int_equal(all[i]->loaded(NULL), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_are_complete),
        cmocka_unit_test(test_properties_agree),
        cmocka_unit_test(test_threads_return_in_a_program_alone),
        cmocka_unit_test(test_shared_memory_has_no_state_to_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
