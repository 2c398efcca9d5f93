/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resource limits of a worker, set on its main thread before its user changes. The worker never
 * lifts them: the filter of system calls refuses that. The limit on private memory is soft, because
 * gantryd may change it later.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/checked.h"
#include "wall/parts.h"

#define MAX_DESCRIPTORS 4096
#define MAX_FILE_BYTES  (UINT64_C(8) << 30)
#define OWN_THREADS     96 /* the worker's threads, and those of a driver's compilers */
#define THREADS_A_CPU   4
/* The first thread's stack grows on demand and counts for no other limit. */
#define MAX_STACK_BYTES (UINT64_C(64) << 20)
/*
 * Address space: a window for shared virtual memory, and data segments that are mapped whole and
 * touched where they are used. Memory that is mapped and only read costs page tables, which no
 * other limit counts: a 512th of this.
 */
#define ADDRESS_BYTES  (UINT64_C(256) << 30)
#define ADDRESS_FACTOR 4u

/* A sanitizer's shadow is private memory of many terabytes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static int lower(int what, uint64_t limit, bool hard)
{
    struct rlimit now;
    if (getrlimit(what, &now) < 0)
        return -errno;
    if (now.rlim_cur > limit)
        now.rlim_cur = limit;
    if (hard && now.rlim_max > limit)
        now.rlim_max = limit;
    return setrlimit(what, &now) < 0 ? -errno : 0;
}

/* When memory runs out, the kernel must kill a worker before any other process. */
static int raise_oom_score(void)
{
    static const char score[] = "1000";
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC), rc = 0;
    if (fd < 0)
        return -errno;
    if (write(fd, score, sizeof score - 1) < 0)
        rc = -errno;
    close(fd);
    return rc;
}

static uint64_t address_bytes(void)
{
    return ADDRESS_BYTES +
           ADDRESS_FACTOR * (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

int gn_wall_limit(const struct gn_wall_plan *plan)
{
    const bool bounded = plan->data_bytes && !SANITIZED;
    int rc[] = {
        lower(RLIMIT_CORE, 0, true), /* a core file would contain the program's data */
        lower(RLIMIT_NOFILE, MAX_DESCRIPTORS, true),
        lower(RLIMIT_FSIZE, MAX_FILE_BYTES, true),
        bounded ? lower(RLIMIT_DATA, plan->data_bytes, false) : 0,
        bounded ? lower(RLIMIT_STACK, MAX_STACK_BYTES, true) : 0,
        bounded ? lower(RLIMIT_AS, address_bytes(), true) : 0,
        raise_oom_score(),
    };
    for (size_t i = 0; i < GN_ARRAY_SIZE(rc); i++)
        if (rc[i])
            return rc[i];
    return 0;
}

int gn_wall_limit_number(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    return lower(RLIMIT_NPROC, OWN_THREADS + THREADS_A_CPU * (uint64_t)(cpus > 0 ? cpus : 1), true);
}
