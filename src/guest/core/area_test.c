/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit test of data-area segments that the vGPU has but the program cannot map. The test stands in
 * for gantryd.
 */
#include "guest/session/session_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define AREA_BYTES (UINT64_C(1) << 20)

static struct gn_session session;
static uint32_t n_made;
static bool unmappable;

static int make_segment(struct gn_link *link, uint64_t bytes, int *ret_fd, uint32_t *ret_index,
                        struct gn_error *err)
{
    struct gn_segment s;
    (void)link, (void)err;
    if (gn_segment_create("test-data", bytes, &s))
        return -ENOMEM;
    if (unmappable) {
        close(s.fd);
        s.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    }
    *ret_fd = s.fd;
    *ret_index = ++n_made;
    return 0;
}

static void what_cannot_be_mapped_is_counted(void **state)
{
    static const struct gn_link_ops ops = {.name = "fake", .segment = make_segment};
    struct gn_link link = {.ops = &ops};
    struct gn_segment first;
    struct gn_block block;
    uint64_t bytes = 0;
    (void)state;
    gn_lost_init(&session.lost);
    pthread_mutex_init(&session.link_lock, NULL);
    session.link = &link;
    session.ops = &gn_session_shm;
    assert_int_equal(gn_segment_create("test-data", AREA_BYTES, &first) || gn_segment_map(&first) ||
                         gn_area_init(&session, first),
                     0);
    unmappable = true;
    assert_int_equal(gn_block_alloc(&session, GN_AREA_PASSING, 2 * AREA_BYTES, &block), -EINVAL);
    unmappable = false;
    /*
     * The next owner of the session gets both segments, so both are counted, with their file
     * descriptors.
     */
    assert_int_equal(session.area.n_segments, 2);
    assert_true(gn_area_segment_fd(&session.area, 1, &bytes) >= 0);
    assert_true(bytes >= 2 * AREA_BYTES);
    assert_null(gn_area_segment_base(&session.area, 1, &bytes));
    assert_int_equal(gn_block_alloc(&session, GN_AREA_PASSING, 2 * AREA_BYTES, &block), 0);
    assert_int_equal(block.segment, 2);
    gn_block_free(&session, &block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_cannot_be_mapped_is_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
