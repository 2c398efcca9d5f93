/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter of system calls: an allowlist of the calls that drivers were measured to need; all
 * others fail. Calls that no driver makes and an intruder would (looking into other processes,
 * changing the machine) end the process at once; so does a call through another ABI, in which
 * numbers mean other calls.
 *
 * A worker's main thread builds it between its fork and the driver's first instruction, in
 * microseconds; that is why it is hand-written and does not use libseccomp. It never allocates.
 */
#include <asm/sockios.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "wall/filter.h"
#include "wall/parts.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#define X32_BIT     0x40000000u
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "src/wall/syscalls.c needs this machine's AUDIT_ARCH"
#endif

#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000u
#endif

#define ALLOW   SECCOMP_RET_ALLOW
#define REFUSE  (SECCOMP_RET_ERRNO | EPERM)
#define UNKNOWN (SECCOMP_RET_ERRNO | ENOSYS) /* the C library then uses another call, or none */
#define NO_ROOM (SECCOMP_RET_ERRNO | ENOMEM) /* the caller has another way */
#define PRETEND (SECCOMP_RET_ERRNO | 0)      /* succeeds and does nothing */
#define END     SECCOMP_RET_KILL_PROCESS

struct builder {
    struct gn_wall_filter *f;
    bool full;
};

static void emit(struct builder *b, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
    if (b->f->n == GN_WALL_FILTER_MAX) {
        b->full = true;
        return;
    }
    b->f->code[b->f->n++] = (struct sock_filter){code, jt, jf, k};
}

static void emit_load(struct builder *b, size_t offset)
{
    emit(b, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void emit_return(struct builder *b, uint32_t action)
{
    emit(b, BPF_RET | BPF_K, 0, 0, action);
}

static size_t arg_low(unsigned i)
{
    return offsetof(struct seccomp_data, args) + i * sizeof(uint64_t);
}

/* Returns `action` if the number, which is in the accumulator, is nr. */
static void emit_call(struct builder *b, int nr, uint32_t action)
{
    emit(b, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)nr);
    emit_return(b, action);
}

/*
 * Returns `yes` if (the low half of the argument & mask) is one of the values, else `no`. Most
 * arguments are ints to the kernel.
 */
static void emit_value_check(struct builder *b, int nr, unsigned arg, uint32_t mask,
                             const uint32_t *values, unsigned n, uint32_t yes, uint32_t no)
{
    emit(b, BPF_JMP | BPF_JEQ | BPF_K, 0, (uint8_t)(2 + n + 2), (uint32_t)nr);
    emit_load(b, arg_low(arg));
    emit(b, BPF_ALU | BPF_AND | BPF_K, 0, 0, mask);
    for (unsigned i = 0; i < n; i++)
        emit(b, BPF_JMP | BPF_JEQ | BPF_K, (uint8_t)(n - i), 0, values[i]);
    emit_return(b, no);
    emit_return(b, yes);
}

/* Returns `yes` if the argument is NULL, else `no`. */
static void emit_null_check(struct builder *b, int nr, unsigned arg, uint32_t yes, uint32_t no)
{
    emit(b, BPF_JMP | BPF_JEQ | BPF_K, 0, 6, (uint32_t)nr);
    emit_load(b, arg_low(arg));
    emit(b, BPF_JMP | BPF_JEQ | BPF_K, 0, 3, 0);
    emit_load(b, arg_low(arg) + sizeof(uint32_t));
    emit(b, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
    emit_return(b, yes);
    emit_return(b, no);
}

#define ONE_OF(...)                                                                                \
    (const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)
#define WHOLE 0xffffffffu

#define SHARED_BYTES 8192u /* maximum of one shared mapping */

static const int allowed[] = {
    /* files and descriptors: Landlock decides which files may be opened */
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev,
    SYS_preadv2, SYS_pwritev2, SYS_close, SYS_close_range, SYS_lseek, SYS_fstat, SYS_newfstatat,
    SYS_statx, SYS_statfs, SYS_fstatfs, SYS_faccessat, SYS_faccessat2, SYS_readlinkat,
    SYS_getdents64, SYS_getcwd, SYS_chdir, SYS_fchdir, SYS_mkdirat, SYS_unlinkat, SYS_renameat2,
    SYS_linkat, SYS_symlinkat, SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync,
    SYS_sync_file_range, SYS_fadvise64, SYS_flock, SYS_umask, SYS_dup, SYS_dup3, SYS_pipe2,
    SYS_eventfd2, SYS_signalfd4, SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime,
    SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_epoll_pwait2, SYS_ppoll, SYS_pselect6,
    SYS_sendfile, SYS_splice, SYS_tee, SYS_copy_file_range, SYS_getxattr, SYS_lgetxattr,
    SYS_fgetxattr, SYS_listxattr, SYS_llistxattr, SYS_flistxattr,
    /* existing sockets */
    SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_sendmmsg, SYS_recvmmsg, SYS_shutdown,
    SYS_getsockopt, SYS_setsockopt, SYS_getsockname, SYS_getpeername,
    /* memory */
    SYS_brk, SYS_munmap, SYS_mprotect, SYS_madvise, SYS_mincore, SYS_msync, SYS_mlock, SYS_mlock2,
    SYS_munlock, SYS_mlockall, SYS_munlockall, SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy,
    SYS_pkey_alloc, SYS_pkey_free, SYS_pkey_mprotect, SYS_membarrier,
    /* threads and processes of the worker */
    SYS_execve, SYS_execveat, SYS_exit, SYS_exit_group, SYS_wait4, SYS_waitid, SYS_set_tid_address,
    SYS_set_robust_list, SYS_get_robust_list, SYS_futex, SYS_sched_yield, SYS_sched_getaffinity,
    SYS_sched_getparam, SYS_sched_getscheduler, SYS_sched_get_priority_max,
    SYS_sched_get_priority_min, SYS_getcpu, SYS_getpriority, SYS_getpid, SYS_getppid, SYS_gettid,
    SYS_getpgid, SYS_getsid, SYS_setsid, SYS_setpgid, SYS_getuid, SYS_geteuid, SYS_getgid,
    SYS_getegid, SYS_getresuid, SYS_getresgid, SYS_getgroups, SYS_capget, SYS_getrusage,
    SYS_getrlimit, SYS_times, SYS_rseq, SYS_restart_syscall,
    /* signals */
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending, SYS_rt_sigsuspend,
    SYS_rt_sigtimedwait, SYS_sigaltstack,
    /* time */
    SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday,
    SYS_getitimer, SYS_setitimer, SYS_timer_create, SYS_timer_settime, SYS_timer_gettime,
    SYS_timer_getoverrun, SYS_timer_delete,
    /* properties of the machine */
    SYS_uname, SYS_sysinfo, SYS_getrandom};

/* Numbers that the headers of some build systems lack. */
static const int allowed_new[] = {449 /* futex_waitv */,   451 /* cachestat */,
                                  454 /* futex_wake */,    455 /* futex_wait */,
                                  456 /* futex_requeue */, 462 /* mseal */};

/*
 * Programs that a driver starts call these and fail if the call fails, but nothing depends on the
 * effect.
 */
static const int pretended[] = {SYS_fchmod, SYS_fchmodat, SYS_utimensat};

/* Known, but forbidden to a worker. A library may try one, so it gets an error and continues. */
static const int refused[] = {
    /* sockets */
    SYS_socket, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4,
    /* files */
    SYS_truncate, SYS_mknodat, SYS_fchown, SYS_fchownat, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr,
    SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_inotify_init1, SYS_fanotify_init,
    SYS_name_to_handle_at, SYS_vmsplice, SYS_quotactl, SYS_acct,
    /* processes, and their users */
    SYS_setpriority, SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr, SYS_ioprio_set,
    SYS_setrlimit, SYS_personality, SYS_unshare, SYS_capset, SYS_kcmp, SYS_pidfd_open,
    SYS_process_madvise, SYS_migrate_pages, SYS_move_pages, SYS_setuid, SYS_setgid, SYS_setreuid,
    SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setgroups, SYS_setfsuid, SYS_setfsgid,
    /* objects that other processes could share by name */
    SYS_shmget, SYS_shmat, SYS_shmctl, SYS_semget, SYS_semop, SYS_semctl, SYS_msgget, SYS_msgsnd,
    SYS_msgrcv, SYS_mq_open, SYS_add_key, SYS_request_key, SYS_keyctl,
    /* broad kernel interfaces, and the machine */
    SYS_perf_event_open, SYS_userfaultfd, SYS_bpf, SYS_io_uring_setup, SYS_syslog,
    SYS_clock_settime, SYS_settimeofday, SYS_sethostname, SYS_vhangup};

/* Only an intruder makes these. */
static const int ending[] = {
    /* other processes */
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_getfd,
    /* the file system as a whole */
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_setns, SYS_open_tree, SYS_move_mount,
    SYS_fsopen, SYS_open_by_handle_at,
    /* the machine */
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon,
    SYS_swapoff};

#if defined(__x86_64__)
/* Calls that newer architectures do not have. */
static const int allowed_old[] = {
    /* like their newer forms */
    SYS_stat,  SYS_lstat,  SYS_access,  SYS_readlink, SYS_getdents,     SYS_mkdir,
    SYS_rmdir, SYS_unlink, SYS_rename,  SYS_link,     SYS_symlink,      SYS_renameat,
    SYS_dup2,  SYS_pipe,   SYS_eventfd, SYS_signalfd, SYS_epoll_create, SYS_epoll_wait,
    SYS_poll,  SYS_select, SYS_fork,    SYS_vfork,    SYS_arch_prctl,   SYS_getpgrp,
    SYS_time,  SYS_alarm,  SYS_pause};
static const int pretended_old[] = {SYS_chmod, SYS_utime, SYS_utimes, SYS_futimesat};
static const int refused_old[] = {
    /* like their newer forms */
    SYS_mknod, SYS_chown, SYS_lchown, SYS_inotify_init, SYS_iopl, SYS_ioperm, SYS_modify_ldt};
#endif

static void emit_calls(struct builder *b, const int *list, size_t n, uint32_t action)
{
    for (size_t i = 0; i < n; i++)
        emit_call(b, list[i], action);
}

/*
 * Calls that name a process. In a process namespace of its own a worker can name only its own
 * processes.
 */
static void emit_process_calls(struct builder *b, bool apart, uint32_t pid)
{
    static const int by_first[] = {SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo,
                                   SYS_rt_tgsigqueueinfo};
    const uint32_t else_refuse = apart ? ALLOW : REFUSE;
    for (size_t i = 0; i < GN_ARRAY_SIZE(by_first); i++)
        emit_value_check(b, by_first[i], 0, WHOLE, ONE_OF(pid), ALLOW, else_refuse);
    emit_call(b, SYS_tkill, else_refuse);
    emit_value_check(b, SYS_sched_setaffinity, 0, WHOLE, ONE_OF(0, pid), ALLOW, else_refuse);
    /* Limits may be read. */
    emit_null_check(b, SYS_prlimit64, 2, ALLOW, REFUSE);
}

static void emit_checked_calls(struct builder *b)
{
    const uint32_t namespaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP;
    /*
     * The program's terminal may be on descriptor 1: the worker must not type on it or acquire it.
     */
    emit_value_check(
        b, SYS_ioctl, 1, WHOLE,
        ONE_OF(TIOCSTI, TIOCLINUX, TIOCSCTTY, TIOCSETD, TIOCCONS, FIOSETOWN, SIOCSPGRP), REFUSE,
        ALLOW);
    /* clone3 is not allowed: its flags are in memory, which a filter cannot read. */
    emit_value_check(b, SYS_clone, 0, namespaces, ONE_OF(0), ALLOW, REFUSE);
    /*
     * Old versions of Landlock allow a readable file to be truncated, and check nothing if the
     * access mode is neither read nor write. openat2 is not allowed, for the same reason as clone3.
     */
    emit_value_check(b, SYS_openat, 2, O_TRUNC | O_ACCMODE,
                     ONE_OF(O_TRUNC, O_ACCMODE, O_TRUNC | O_ACCMODE), REFUSE, ALLOW);
#if defined(__x86_64__)
    emit_value_check(b, SYS_open, 1, O_TRUNC | O_ACCMODE,
                     ONE_OF(O_TRUNC, O_ACCMODE, O_TRUNC | O_ACCMODE), REFUSE, ALLOW);
    emit_call(b, SYS_creat, ALLOW);
#endif
    /* Signals through a descriptor. */
    emit_value_check(b, SYS_fcntl, 1, WHOLE, ONE_OF(F_SETOWN, F_SETOWN_EX, F_SETSIG), REFUSE,
                     ALLOW);
    /* Streams only: a datagram socket could send to any socket that has a name. */
    emit_value_check(b, SYS_socketpair, 1, 0xfu, ONE_OF(1), ALLOW, REFUSE);
    emit_value_check(b, SYS_prctl, 0, WHOLE,
                     ONE_OF(PR_SET_NAME, PR_GET_NAME, PR_GET_PDEATHSIG, PR_GET_DUMPABLE,
                            PR_SET_TIMERSLACK, PR_GET_TIMERSLACK, PR_CAPBSET_READ, PR_GET_SECCOMP,
                            PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, PR_SET_THP_DISABLE,
                            PR_GET_THP_DISABLE, 0x53564d41 /* PR_SET_VMA: names of mappings */),
                     ALLOW, REFUSE);
}

/*
 * Memory that RLIMIT_DATA does not count. If the worker may make shared memory, only a memory
 * cgroup counts that. Otherwise a vGPU needs a few bytes of it, to test how its driver handles such
 * memory; the kernel bounds the number of mappings.
 *
 * Stacks, by a mapping's flag, count for RLIMIT_STACK only, which is checked when they grow but not
 * when they are made (MAP_GROWSDOWN, map_shadow_stack) or enlarged (mremap of a part of a thread's
 * own stack). So no stack may be made and nothing enlarged: the C library copies instead.
 */
static void emit_memory_calls(struct builder *b, bool shares, bool bounded)
{
    const uint32_t shared = MAP_SHARED | MAP_ANONYMOUS;
    emit_call(b, SYS_memfd_create, shares ? ALLOW : REFUSE);
    emit_call(b, SYS_mremap, bounded ? NO_ROOM : ALLOW);
    if (shares) {
        emit_value_check(b, SYS_mmap, 3, MAP_GROWSDOWN, ONE_OF(0), ALLOW, REFUSE);
        return;
    }
    emit(b, BPF_JMP | BPF_JEQ | BPF_K, 0, 10, SYS_mmap);
    emit_load(b, arg_low(3));
    emit(b, BPF_JMP | BPF_JSET | BPF_K, 7, 0, MAP_GROWSDOWN);
    emit(b, BPF_ALU | BPF_AND | BPF_K, 0, 0, shared);
    emit(b, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, shared);
    emit_load(b, arg_low(1) + sizeof(uint32_t));
    emit(b, BPF_JMP | BPF_JEQ | BPF_K, 0, 3, 0);
    emit_load(b, arg_low(1));
    emit(b, BPF_JMP | BPF_JGT | BPF_K, 1, 0, SHARED_BYTES);
    emit_return(b, ALLOW);
    emit_return(b, REFUSE);
}

int gn_wall_make_filter(struct gn_wall_filter *f, bool apart, bool shares, bool bounded,
                        uint32_t pid)
{
    struct builder b = {.f = f};
    f->n = 0;
    emit_load(&b, offsetof(struct seccomp_data, arch));
    emit(&b, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, NATIVE_ARCH);
    emit_return(&b, END);
    emit_load(&b, offsetof(struct seccomp_data, nr));
#ifdef X32_BIT
    emit(&b, BPF_JMP | BPF_JGE | BPF_K, 0, 1, X32_BIT);
    emit_return(&b, END);
#endif
    /*
     * The calls with arguments to check come first. For the others, kernels from 5.11 on do not run
     * the filter at all.
     */
    emit_checked_calls(&b);
    emit_process_calls(&b, apart, pid);
    emit_memory_calls(&b, shares, bounded);
    emit_calls(&b, allowed, GN_ARRAY_SIZE(allowed), ALLOW);
    emit_calls(&b, allowed_new, GN_ARRAY_SIZE(allowed_new), ALLOW);
    emit_calls(&b, pretended, GN_ARRAY_SIZE(pretended), PRETEND);
    emit_calls(&b, refused, GN_ARRAY_SIZE(refused), REFUSE);
    emit_calls(&b, ending, GN_ARRAY_SIZE(ending), END);
#if defined(__x86_64__)
    emit_calls(&b, allowed_old, GN_ARRAY_SIZE(allowed_old), ALLOW);
    emit_calls(&b, pretended_old, GN_ARRAY_SIZE(pretended_old), PRETEND);
    emit_calls(&b, refused_old, GN_ARRAY_SIZE(refused_old), REFUSE);
#endif
    emit_return(&b, UNKNOWN);
    return b.full ? -E2BIG : 0;
}

int gn_wall_filter(bool apart, bool shares, bool bounded)
{
    static struct gn_wall_filter f;
    int rc = gn_wall_make_filter(&f, apart, shares, bounded, (uint32_t)getpid());
    struct sock_fprog program = {.len = f.n, .filter = f.code};
    if (rc)
        return rc;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        return -errno;
    return 0;
}
