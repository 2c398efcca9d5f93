/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that a steady state makes no system call on either side: guest and worker exchange 100,000
 * calls, each with an event, under a seccomp filter that kills the process on any call. The same
 * exchange with parking shows that the filter works.
 */
#include "shm/event_table.h"
#include "shm/session_layout.h"
#include "shm/shm_test.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_CALLS 100000u

/* The segment layout of a session, followed by one event. */
struct shared {
    struct gn_ring *ring;
    struct gn_reply_slot *replies;
    struct gn_event_entry *event;
};

static struct gn_lost lost;

static void forbid_system_calls(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {.len = GN_ARRAY_SIZE(filter), .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        _exit(2);
}

static void guest(struct shared *s, struct gn_waiter waiter)
{
    static struct gn_ring_producer p;
    static struct gn_replies r;
    if (gn_ring_producer_init(&p, s->ring, GN_SESSION_REQUEST_SLOTS, 0, waiter) != 0)
        _exit(3);
    gn_replies_init(&r, s->replies, waiter);
    forbid_system_calls();
    for (uint32_t i = 0; i < N_CALLS; i++) {
        struct gn_reply reply;
        uint32_t message[8] = {0};
        int32_t error;
        if (gn_reply_claim(&r, &message[0]) != 0)
            _exit(4);
        gn_event_arm(s->event);
        if (gn_ring_send(&p, message, sizeof message, NULL, 0, NULL) != 0 ||
            gn_reply_wait(&r, message[0], &reply) != 0 || reply.result != (int32_t)i ||
            gn_event_wait(s->event, &waiter, &error) != 0 || error != -(int32_t)i)
            _exit(5);
        gn_reply_put(&r, message[0]);
    }
    _exit(0);
}

static void worker(struct shared *s, struct gn_waiter waiter)
{
    static struct gn_ring_consumer c;
    unsigned char buf[GN_RING_MAX_BYTES];
    if (gn_ring_consumer_init(&c, s->ring, GN_SESSION_REQUEST_SLOTS, 0, waiter) != 0)
        _exit(3);
    forbid_system_calls();
    for (uint32_t i = 0; i < N_CALLS; i++) {
        uint32_t token;
        if (gn_ring_wait(&c) != 0 || gn_ring_try_receive(&c, buf) < 4)
            _exit(6);
        memcpy(&token, buf, sizeof token);
        gn_reply_send(s->replies, token, (int32_t)i, NULL, 0);
        gn_event_post(s->event, GN_EVENT_RUNNING);
        gn_event_finish(s->event, -(int32_t)i, NULL);
    }
    _exit(0);
}

static void exchange(uint64_t spin_ns, int status[2])
{
    size_t bytes = GN_SESSION_BYTES + 4096;
    unsigned char *base =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(base, MAP_FAILED);
    struct shared s = {(struct gn_ring *)(base + GN_SESSION_REQUESTS_AT),
                       (struct gn_reply_slot *)(base + GN_SESSION_REPLIES_AT),
                       (struct gn_event_entry *)(base + GN_SESSION_BYTES)};
    struct gn_waiter waiter = {.policy = {spin_ns}, .lost = &lost};
    gn_spin_pause_ps(); /* calibrate before the filter: pthread_once may wake */
    pid_t pids[2];
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (i == 0)
                guest(&s, waiter);
            else
                worker(&s, waiter);
        }
    }
    /* A side that fails leaves the other one waiting. */
    for (int n = 0; n < 2; n++) {
        int st;
        pid_t pid = wait(&st);
        int i = pid == pids[1];
        status[i] = st;
        if (st != 0 && n == 0)
            kill(pids[!i], SIGKILL);
    }
    munmap(base, bytes);
}

static void calls_make_no_system_call(void **state)
{
    int status[2];
    /* two sides that never park need two processors */
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        skip();
    exchange(GN_SPIN_FOREVER, status);
    assert_int_equal(status[0], 0);
    assert_int_equal(status[1], 0);
}

static void the_filter_would_have_caught_one(void **state)
{
    int status[2];
    exchange(0, status);
    assert_true((WIFSIGNALED(status[0]) && WTERMSIG(status[0]) == SIGSYS) ||
                (WIFSIGNALED(status[1]) && WTERMSIG(status[1]) == SIGSYS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_make_no_system_call),
        cmocka_unit_test(the_filter_would_have_caught_one),
    };
    /* the sanitizers make system calls of their own */
    if (GN_TEST_SANITIZED)
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
