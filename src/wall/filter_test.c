/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the filter of system calls in the kernel: each test is a child that raises it and tries one
 * thing.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "wall/filter.h"
#include "wall/parts.h"

#define NO_FILTER 199

/*
 * Returns the wait status of a child that raises the filter and then calls work(). The result of
 * work() is its exit status.
 */
static int in_child(int (*work)(void), bool apart)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (gn_wall_filter(apart, false, true))
            _exit(NO_FILTER);
        _exit(work());
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTER)
        skip();
    return status;
}

#define assert_returns(status, code)                                                               \
    do {                                                                                           \
        int s_ = (status);                                                                         \
        assert_true(WIFEXITED(s_));                                                                \
        assert_int_equal(WEXITSTATUS(s_), code);                                                   \
    } while (0)
#define assert_ended(status)                                                                       \
    do {                                                                                           \
        int s_ = (status);                                                                         \
        assert_true(WIFSIGNALED(s_));                                                              \
        assert_int_equal(WTERMSIG(s_), SIGSYS);                                                    \
    } while (0)

static int error_of(long rc)
{
    return rc < 0 ? errno : 0;
}

static void *nothing(void *arg)
{
    return arg;
}

static int daily_work(void)
{
    pthread_t t;
    int pipe_fds[2], status;
    char byte = 'x';
    if (pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL))
        return 1;
    if (pipe(pipe_fds) || write(pipe_fds[1], &byte, 1) != 1 || read(pipe_fds[0], &byte, 1) != 1)
        return 2;
    pid_t pid = fork();
    if (pid == 0)
        _exit(7);
    if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 7)
        return 3;
    if (mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        return 9;
    void *big = malloc(64u << 20);
    if (!big)
        return 4;
    memset(big, 1, 64u << 20);
    /* grown without mremap */
    char *grown = realloc(big, 128u << 20);
    if (!grown || grown[0] != 1 || grown[(64u << 20) - 1] != 1)
        return 10;
    free(grown);
    int fd = open("/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || close(fd))
        return 5;
    if (kill(getpid(), 0) || raise(SIGCHLD))
        return 6;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return 7;
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) || prctl(PR_SET_NAME, "filtered"))
        return 8;
    return 0;
}

static int try_socket(void)
{
    return error_of(socket(AF_UNIX, SOCK_STREAM, 0));
}
static int try_datagram_pair(void)
{
    int ends[2];
    return error_of(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends));
}
static int try_signal(void)
{
    return error_of(kill(getppid(), 0));
}
static int try_group(void)
{
    return error_of(kill(0, 0));
}
static int try_everybody(void)
{
    return error_of(kill(-1, 0));
}
static int try_tkill(void)
{
    return error_of(syscall(SYS_tkill, getppid(), 0));
}
static int try_pidfd(void)
{
    return error_of(syscall(SYS_pidfd_open, getppid(), 0));
}
static int try_cut(void)
{
    return error_of(open("/dev/null", O_RDONLY | O_TRUNC));
}
static int try_cut_without_access(void)
{
    return error_of(open("/dev/null", O_ACCMODE | O_TRUNC));
}
static int try_no_access(void)
{
    return error_of(open("/dev/null", O_ACCMODE));
}
static int try_truncate(void)
{
    return error_of(truncate("/dev/null", 0));
}
static int try_namespace(void)
{
    return error_of(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL));
}
static int try_unshare(void)
{
    return error_of(unshare(CLONE_NEWNS));
}
static int try_typing(void)
{
    char c = 'x';
    return error_of(ioctl(0, TIOCSTI, &c));
}
static int try_owner(void)
{
    return error_of(fcntl(0, F_SETOWN, getppid()));
}
static int try_limit(void)
{
    struct rlimit l = {1024, 1024};
    return error_of(prlimit(0, RLIMIT_NOFILE, &l, NULL));
}
static int try_dumpable(void)
{
    return error_of(prctl(PR_SET_DUMPABLE, 1));
}
static int try_vast_shared_memory(void)
{
    void *p = mmap(NULL, (size_t)1 << 36, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? errno : 0;
}
static int try_to_outlive(void)
{
    return error_of(prctl(PR_SET_PDEATHSIG, 0));
}
static int try_memory_file(void)
{
    return error_of(memfd_create("mine", 0));
}
static int try_shared_memory(void)
{
    void *p = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? errno : 0;
}
static int try_stack(void)
{
    void *p = mmap(NULL, (size_t)1 << 36, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? errno : 0;
}
static int try_shared_stack(void)
{
    void *p =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
    return p == MAP_FAILED ? errno : 0;
}
/* Would turn one page of the first thread's stack into many. */
static int try_larger_stack(void)
{
    char here;
    char *page = (char *)((uintptr_t)&here & ~(uintptr_t)4095);
    void *p = mremap(page, 4096, (size_t)1 << 36, MREMAP_MAYMOVE);
    return p == MAP_FAILED ? errno : 0;
}
static int try_shadow_stack(void)
{
    return error_of(syscall(453, NULL, (size_t)1 << 36, 0));
}
static int try_others_processor(void)
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    return error_of(sched_setaffinity(getppid(), sizeof set, &set));
}
static int try_keys(void)
{
    return error_of(syscall(SYS_keyctl, 0, 0, 0, 0, 0));
}
static int try_rings(void)
{
    return error_of(syscall(SYS_io_uring_setup, 1, NULL));
}
static int try_clone3(void)
{
    return error_of(syscall(435, NULL, 0));
}
static int try_unknown(void)
{
    return error_of(syscall(9999));
}
static int try_mode(void)
{
    return error_of(syscall(SYS_fchmodat, AT_FDCWD, "/no/such/file", 0777));
}

static void daily_work_goes_on(void **state)
{
    (void)state;
    assert_returns(in_child(daily_work, false), 0);
    assert_returns(in_child(daily_work, true), 0);
}

static void forbidden_calls_are_refused(void **state)
{
    static int (*const tries[])(void) = {try_socket,
                                         try_datagram_pair,
                                         try_signal,
                                         try_group,
                                         try_everybody,
                                         try_tkill,
                                         try_pidfd,
                                         try_cut,
                                         try_truncate,
                                         try_namespace,
                                         try_unshare,
                                         try_typing,
                                         try_owner,
                                         try_limit,
                                         try_dumpable,
                                         try_others_processor,
                                         try_to_outlive,
                                         try_memory_file,
                                         try_shared_memory,
                                         try_vast_shared_memory,
                                         try_stack,
                                         try_shared_stack,
                                         try_keys,
                                         try_rings,
                                         try_cut_without_access,
                                         try_no_access};
    (void)state;
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++)
        assert_returns(in_child(tries[i], false), EPERM);
}

static void unknown_calls_are_missing(void **state)
{
    (void)state;
    assert_returns(in_child(try_clone3, false), ENOSYS);
    assert_returns(in_child(try_shadow_stack, false), ENOSYS);
    assert_returns(in_child(try_larger_stack, false), ENOMEM);
    assert_returns(in_child(try_unknown, false), ENOSYS);
    assert_returns(in_child(try_mode, false), 0);
}

static int trace(void)
{
    return error_of(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
}
static int read_other(void)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {&byte, 1};
    return error_of(process_vm_readv(getppid(), &here, 1, &there, 1, 0));
}
static int mount_something(void)
{
    return error_of(syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, NULL));
}
#if defined(__x86_64__)
/* getpid of the 32-bit ABI: its number means writev in the 64-bit ABI. */
static int other_abi(void)
{
    int result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
    return result > 0 ? 0 : 1;
}
static int x32_abi(void)
{
    return error_of(syscall(0x40000000 + SYS_getpid));
}
#endif

static void intruding_calls_end_the_process(void **state)
{
    (void)state;
    assert_ended(in_child(trace, false));
    assert_ended(in_child(read_other, true));
    assert_ended(in_child(mount_something, false));
#if defined(__x86_64__)
    assert_ended(in_child(other_abi, false));
    assert_ended(in_child(x32_abi, false));
#endif
}

/*
 * A worker that may make shared memory, as for a program on another machine, still may not make
 * stacks.
 */
static void no_stack_is_made_where_memory_may_be_shared(void **state)
{
    int status;
    (void)state;
    const pid_t pid = fork();
    if (pid == 0) {
        if (gn_wall_filter(false, true, true))
            _exit(NO_FILTER);
        _exit(try_memory_file() || try_vast_shared_memory()         ? 1
              : try_stack() != EPERM || try_shared_stack() != EPERM ? 2
              : try_larger_stack() != ENOMEM                        ? 3
                                                                    : 0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTER)
        skip();
    assert_returns(status, 0);
}

static void check_form(bool shares, bool bounded)
{
    static struct gn_wall_filter f;
    assert_int_equal(gn_wall_make_filter(&f, false, shares, bounded, 4711), 0);
    /* The kernel checks jumps as well; this shows that no path runs off the end. */
    for (unsigned i = 0; i < f.n; i++) {
        if (BPF_CLASS(f.code[i].code) == BPF_JMP) {
            assert_true(i + 1u + f.code[i].jt < f.n);
            assert_true(i + 1u + f.code[i].jf < f.n);
        }
    }
    assert_int_equal(BPF_CLASS(f.code[f.n - 1].code), BPF_RET);
}

static void the_program_is_well_formed(void **state)
{
    (void)state;
    check_form(false, true);
    check_form(true, true);
    check_form(true, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_is_well_formed),
        cmocka_unit_test(daily_work_goes_on),
        cmocka_unit_test(forbidden_calls_are_refused),
        cmocka_unit_test(unknown_calls_are_missing),
        cmocka_unit_test(intruding_calls_end_the_process),
        cmocka_unit_test(no_stack_is_made_where_memory_may_be_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
