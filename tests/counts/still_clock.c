/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a program, gantryd and its workers: a clock that stands still for as long as a
 * test wants.
 *
 * Who waits for a peer spins for a time, then sleeps. Whether the time is over depends on what else
 * the machine does; under a clock that stands still it never is. So what system calls are left are
 * those of the path itself, on any machine and under any load. Yielding the processor is part of
 * waiting too (it comes only after a look has failed for some microseconds): while the clock stands
 * still it is counted, and is none.
 *
 * STILL_CLOCK names a file of a page that all of them map: word 0: not zero while the clock stands;
 * word 1: yields.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int clock_gettime(clockid_t clock, struct timespec *t);
EXPORT int sched_yield(void);

static struct page {
    _Atomic uint32_t still;
    _Atomic uint32_t n_yields;
} * page;
static int (*real_clock_gettime)(clockid_t, struct timespec *);
static int (*real_sched_yield)(void);
static _Atomic int64_t stood_at_ns; /* 0: not seen to stand yet */

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("STILL_CLOCK");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *f = dlsym(RTLD_NEXT, "clock_gettime");
    memcpy(&real_clock_gettime, &f, sizeof f);
    f = dlsym(RTLD_NEXT, "sched_yield");
    memcpy(&real_sched_yield, &f, sizeof f);
    if (fd < 0)
        return;
    void *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    page = mapped == MAP_FAILED ? NULL : mapped;
}

static int stands(void)
{
    return page && atomic_load_explicit(&page->still, memory_order_relaxed);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (!real_clock_gettime)
        begin();
    int r = real_clock_gettime(clock, t);
    if (r || clock != CLOCK_MONOTONIC)
        return r;
    if (!stands()) {
        atomic_store_explicit(&stood_at_ns, 0, memory_order_relaxed);
        return 0;
    }
    int64_t now = t->tv_sec * INT64_C(1000000000) + t->tv_nsec, stood = 0;
    if (!atomic_compare_exchange_strong(&stood_at_ns, &stood, now)) {
        t->tv_sec = stood / 1000000000;
        t->tv_nsec = stood % 1000000000;
    }
    return 0;
}

int sched_yield(void)
{
    if (!stands())
        return real_sched_yield ? real_sched_yield() : 0;
    atomic_fetch_add_explicit(&page->n_yields, 1, memory_order_relaxed);
    return 0;
}
