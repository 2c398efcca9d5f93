/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of sealed segments and of the session layout. */
#include "shm/segment.h"
#include "shm/session_layout.h"
#include "shm/shm_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_created_segment_is_sealed_and_not_mapped(void **state)
{
    struct gn_segment s;
    assert_int_equal(gn_segment_create("gn-test", 5000, &s), 0);
    assert_null(s.base);
    assert_int_equal(s.bytes, 8192);
    assert_int_equal(ftruncate(s.fd, 4096), -1);
    assert_int_equal(ftruncate(s.fd, 12288), -1);
    assert_int_equal(fcntl(s.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    assert_true(fcntl(s.fd, F_GETFD) & FD_CLOEXEC);
    gn_segment_fini(&s);
    assert_int_equal(s.fd, -1);
    gn_segment_fini(&s);
}

static void sizes_that_make_no_sense_are_refused(void **state)
{
    struct gn_segment s;
    assert_int_equal(gn_segment_create("gn-test", 0, &s), -EINVAL);
    assert_int_equal(gn_segment_create("gn-test", UINT64_MAX, &s), -EINVAL);
}

static void two_adopters_see_the_same_memory(void **state)
{
    struct gn_segment made, a, b;
    assert_int_equal(gn_segment_create("gn-test", 4096, &made), 0);
    assert_int_equal(gn_segment_adopt(dup(made.fd), 4096, &a), 0);
    assert_int_equal(gn_segment_adopt(dup(made.fd), 1 << 20, &b), 0);
    ((char *)a.base)[17] = 42;
    assert_int_equal(((char *)b.base)[17], 42);
    assert_int_equal(gn_segment_map(&a), 0); /* the second call has no effect */
    gn_segment_fini(&a);
    gn_segment_fini(&b);
    gn_segment_fini(&made);
}

static void unsealed_large_or_foreign_descriptors_are_refused(void **state)
{
    struct gn_segment s = GN_SEGMENT_NONE;
    const int all = F_SEAL_SHRINK | F_SEAL_GROW;
    const int partly[] = {0, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL};
    for (size_t i = 0; i < GN_ARRAY_SIZE(partly); i++) {
        int fd = memfd_create("gn-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        assert_int_equal(ftruncate(fd, 4096), 0);
        if (partly[i])
            assert_int_equal(fcntl(fd, F_ADD_SEALS, partly[i]), 0);
        assert_int_equal(gn_segment_adopt(fd, 1 << 20, &s), -EINVAL);
        close(fd);
    }
    int fd = memfd_create("gn-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, all), 0);
    assert_int_equal(gn_segment_adopt(fd, 1 << 20, &s), -EINVAL); /* empty */
    close(fd);
    assert_int_equal(gn_segment_create("gn-test", 8192, &s), 0);
    struct gn_segment other = GN_SEGMENT_NONE;
    assert_int_equal(gn_segment_adopt(s.fd, 8191, &other), -EINVAL); /* too large */
    gn_segment_fini(&s);

    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), 4096), 0);
    assert_true(gn_segment_adopt(fileno(file), 1 << 20, &other) < 0);
    fclose(file);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_true(gn_segment_adopt(ends[0], 1 << 20, &other) < 0);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(gn_segment_adopt(-1, 1 << 20, &other), -EBADF);
    assert_int_equal(other.fd, -1);
}

static void a_write_sealed_segment_cannot_be_adopted(void **state)
{
    int fd = memfd_create("gn-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct gn_segment s;
    assert_int_equal(ftruncate(fd, 4096), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    assert_int_equal(gn_segment_adopt(fd, 4096, &s), -EPERM);
    close(fd);
}

static void a_forked_child_does_not_have_the_mapping(void **state)
{
    struct gn_segment s;
    assert_int_equal(gn_segment_create("gn-test", 4096, &s), 0);
    assert_int_equal(gn_segment_map(&s), 0);
    pid_t pid = fork();
    if (pid == 0) {
        unsigned char resident;
        _exit(mincore(s.base, 4096, &resident) == -1 && errno == ENOMEM ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    gn_segment_fini(&s);
}

static void a_session_segment_is_ready_for_use(void **state)
{
    struct gn_segment s;
    struct gn_session_view v;
    assert_int_equal(gn_session_create("gn-test", &s), 0);
    assert_int_equal(gn_segment_map(&s), 0);
    assert_int_equal(gn_session_map(s.base, s.bytes, &v), 0);
    assert_ptr_equal(v.requests, (char *)s.base + GN_SESSION_REQUESTS_AT);
    assert_ptr_equal(v.replies, (char *)s.base + GN_SESSION_REPLIES_AT);

    struct gn_lost lost;
    gn_lost_init(&lost);
    struct gn_waiter waiter = {.lost = &lost};
    struct gn_ring_producer p;
    struct gn_ring_consumer c;
    unsigned char buf[GN_RING_MAX_BYTES];
    assert_int_equal(gn_ring_producer_init(&p, v.requests, GN_SESSION_REQUEST_SLOTS, 0, waiter), 0);
    assert_int_equal(gn_ring_consumer_init(&c, v.requests, GN_SESSION_REQUEST_SLOTS, 0, waiter), 0);
    assert_int_equal(gn_ring_try_receive(&c, buf), -EAGAIN);
    assert_int_equal(gn_ring_try_send(&p, "hello", 6, NULL, 0, NULL), 0);
    assert_int_equal(gn_ring_try_receive(&c, buf), 6);
    assert_string_equal((char *)buf, "hello");
    gn_segment_fini(&s);
}

static void a_session_of_another_shape_is_refused(void **state)
{
    struct gn_segment s;
    struct gn_session_view v;
    assert_int_equal(gn_session_create("gn-test", &s), 0);
    assert_int_equal(gn_segment_map(&s), 0);
    struct gn_session_header *h = s.base;
    assert_int_equal(gn_session_map(s.base, s.bytes - 4096, &v), -EINVAL);
    assert_int_equal(gn_session_map((char *)s.base + 64, s.bytes, &v), -EINVAL);
    h->version++;
    assert_int_equal(gn_session_map(s.base, s.bytes, &v), -EINVAL);
    h->version--;
    h->zero = 1;
    assert_int_equal(gn_session_map(s.base, s.bytes, &v), -EINVAL);
    h->zero = 0;
    h->magic ^= 1;
    assert_int_equal(gn_session_map(s.base, s.bytes, &v), -EINVAL);
    h->magic ^= 1;
    assert_int_equal(gn_session_map(s.base, s.bytes, &v), 0);
    gn_segment_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_created_segment_is_sealed_and_not_mapped),
        cmocka_unit_test(sizes_that_make_no_sense_are_refused),
        cmocka_unit_test(two_adopters_see_the_same_memory),
        cmocka_unit_test(unsealed_large_or_foreign_descriptors_are_refused),
        cmocka_unit_test(a_write_sealed_segment_cannot_be_adopted),
        cmocka_unit_test(a_forked_child_does_not_have_the_mapping),
        cmocka_unit_test(a_session_segment_is_ready_for_use),
        cmocka_unit_test(a_session_of_another_shape_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
