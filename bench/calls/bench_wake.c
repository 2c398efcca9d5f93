/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-wake: what waking a sleeping process costs on this machine, from just before FUTEX_WAKE in
 * one process to the return of FUTEX_WAIT in the other. The sleeper has slept for 5 ms before each
 * wake, as a parked worker has. The two are pinned, first to one core, then to two; the second is
 * the unit in which the bar on parked launches is written, so it is measured in the same run.
 */
#include "base/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAKES    150
#define PAUSE_NS 5000000

struct shared {
    _Atomic uint32_t turn; /* the waker counts up; the sleeper follows */
    _Atomic uint64_t sent_ns;
    _Atomic uint32_t n_done;
    uint64_t took_ns[WAKES]; /* the sleeper's; read after it has ended */
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench-wake: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void sleeper(struct shared *s)
{
    for (uint32_t i = 0; i < WAKES; i++) {
        uint64_t now_ns;

        while (atomic_load(&s->turn) == i)
            syscall(SYS_futex, &s->turn, FUTEX_WAIT, i, NULL, NULL, 0);
        now_ns = gn_now_ns();
        s->took_ns[i] = now_ns - atomic_load(&s->sent_ns);
        atomic_store(&s->n_done, i + 1);
    }
}

static void waker(struct shared *s)
{
    for (uint32_t i = 0; i < WAKES; i++) {
        do {
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        } while (atomic_load(&s->n_done) != i);
        atomic_store(&s->sent_ns, gn_now_ns());
        atomic_store(&s->turn, i + 1);
        syscall(SYS_futex, &s->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The n-th processor that this process may use, counted around. */
static void pin(int n)
{
    cpu_set_t may;
    cpu_set_t one;

    if (sched_getaffinity(0, sizeof(may), &may) < 0)
        die("sched_getaffinity");
    n %= CPU_COUNT(&may);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &may) && n-- == 0)
            CPU_SET(cpu, &one);
    }
    if (sched_setaffinity(0, sizeof(one), &one) < 0)
        die("sched_setaffinity");
}

/* Leaves the times sorted in s->took_ns. The waker pins itself too, in a process of its own. */
static void measure(struct shared *s, int sleeper_cpu)
{
    pid_t pids[2];

    memset(s, 0, sizeof(*s));
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] < 0)
            die("fork");
        if (pids[i] == 0) {
            pin(i == 0 ? sleeper_cpu : 0);
            if (i == 0)
                sleeper(s);
            else
                waker(s);
            _exit(0);
        }
    }
    for (int i = 0; i < 2; i++) {
        int status;

        if (waitpid(pids[i], &status, 0) != pids[i])
            die("waitpid");
        if (status != 0) {
            fputs("bench-wake: one of the two processes failed\n", stderr);
            exit(1);
        }
    }
    qsort(s->took_ns, WAKES, sizeof(s->took_ns[0]), by_value);
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"same_core", "across_cores"};
    bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
    struct shared *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, /* fd= */ -1, 0);

    if (argc > 1 && !json) {
        fputs("usage: bench-wake [--json]\n", stderr);
        return 2;
    }
    if (s == MAP_FAILED)
        die("mmap");
    if (json)
        fputs("{\"version\":1", stdout);
    for (int cpu = 0; cpu < 2; cpu++) {
        unsigned long long p10_ns;
        unsigned long long p50_ns;
        unsigned long long p90_ns;

        measure(s, cpu);
        p10_ns = s->took_ns[WAKES / 10];
        p50_ns = s->took_ns[WAKES / 2];
        p90_ns = s->took_ns[WAKES - 1 - WAKES / 10];
        if (json)
            printf(",\"%s_ns\":%llu,\"%s_p10_ns\":%llu,\"%s_p90_ns\":%llu", keys[cpu], p50_ns,
                   keys[cpu], p10_ns, keys[cpu], p90_ns);
        else
            printf("%s: %llu ns (p10 %llu, p90 %llu)\n", keys[cpu], p50_ns, p10_ns, p90_ns);
        fflush(stdout); /* before the next fork copies it */
    }
    if (json)
        puts("}");
    return 0;
}
