/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of process_stat.c with children that are running, stopped or partly ended. */
#include "daemon/process_stat.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* A child that waits for a signal. A careless parser would find the end of its name too early. */
static pid_t start_child(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "a) T 1 (b");
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    return pid;
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_process_is_read(void **state)
{
    struct gn_process_stat ours, childs;
    (void)state;
    assert_int_equal(gn_process_stat_read(getpid(), &ours), 0);
    assert_int_equal(ours.state, 'R');
    const pid_t pid = start_child();
    assert_int_equal(gn_process_stat_read(pid, &childs), 0);
    assert_true(childs.start_ticks >= ours.start_ticks && ours.start_ticks);
    assert_true(childs.start_ticks <= gn_process_ticks_now());
    uid_t uid = (uid_t)-1;
    assert_int_equal(gn_process_user(pid, &uid), 0);
    assert_int_equal(uid, geteuid());
    end_child(pid);
    assert_int_equal(gn_process_stat_read(pid, &childs), -ESRCH);
    assert_false(gn_process_is_stopped(pid));
}

static void a_stopped_process_is_seen(void **state)
{
    int status;
    (void)state;
    const pid_t pid = start_child();
    assert_false(gn_process_is_stopped(pid));
    assert_int_not_equal(gn_process_state(pid), 'T');
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(gn_process_is_stopped(pid));
    assert_int_equal(gn_process_state(pid), 'T');
    kill(pid, SIGCONT);
    assert_int_equal(waitpid(pid, &status, WCONTINUED), pid);
    assert_false(gn_process_is_stopped(pid));
    assert_int_not_equal(gn_process_state(pid), 'T');
    end_child(pid);
    assert_int_equal(gn_process_state(pid), 0);
}

static void an_ended_process_is_seen(void **state)
{
    siginfo_t end;
    (void)state;
    const pid_t pid = start_child();
    assert_false(gn_process_is_ending(pid));
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT), 0);
    assert_true(gn_process_is_ending(pid));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(gn_process_is_ending(pid));
}

static void *wait_for_end(void *arg)
{
    (void)arg;
    for (;;)
        pause();
    return NULL;
}

/* The first thread has ended, and its state tells nothing else. */
static void a_stopped_process_without_its_first_thread_is_seen(void **state)
{
    struct gn_process_stat stat;
    int status;
    (void)state;
    const pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (pthread_create(&thread, NULL, wait_for_end, NULL) == 0)
            pthread_exit(NULL);
        _exit(1);
    }
    do
        assert_int_equal(gn_process_stat_read(pid, &stat), 0);
    while (stat.state != 'Z');
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(gn_process_is_stopped(pid));
    assert_int_equal(gn_process_state(pid), 'T');
    end_child(pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_read),
        cmocka_unit_test(a_stopped_process_is_seen),
        cmocka_unit_test(an_ended_process_is_seen),
        cmocka_unit_test(a_stopped_process_without_its_first_thread_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
