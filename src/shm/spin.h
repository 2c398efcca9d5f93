/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_SPIN_H
#define GN_SHM_SPIN_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Hybrid spinning: poll for a bounded time, then park. Spinning pays only when the peer runs on
 * another processor. Every message and reply carries the processor of its sender, and a thread does
 * not spin for a peer that last ran on the thread's own processor.
 */
struct gn_spin_policy {
    uint64_t spin_ns; /* 0: park at once; GN_SPIN_FOREVER: never park, not even for a peer on the
                         same processor */
    /*
     * spin this long while there are no more runnable threads than processors; 0: no longer than
     * spin_ns
     */
    uint64_t roomy_ns;
    const _Atomic uint32_t *turn; /* enum gn_spin_turn; NULL: GN_SPIN_ANY */
};

/* The worker's report on the awaited device. It comes from the peer and may be any value. */
enum gn_spin_turn {
    GN_SPIN_ANY, /* no report */
    /* other vGPUs hold it: spinning does not help and may disturb them; roomy_ns is ignored */
    GN_SPIN_AWAY,
    /*
     * this vGPU holds it, and the spinner does not run on its processors: spin for roomy_ns in any
     * case
     */
    GN_SPIN_MINE,
};

#define GN_SPIN_FOREVER    UINT64_MAX
#define GN_SPIN_DEFAULT_NS 50000u
/*
 * For threads that wait for a device made of this machine's processors: a longer spin would keep
 * those processors from the awaited kernels.
 */
#define GN_SPIN_SHORT_NS 2000u
/* a wake across processors of a virtual machine takes about 20 to 60 us */
#define GN_SPIN_ROOMY_NS 400000u
#define GN_CPU_UNKNOWN   0xffffu

/*
 * GN_SPIN_DEFAULT_NS, or 0 on a machine with one processor. Calibrates at the first call (about 100
 * us).
 */
struct gn_spin_policy gn_spin_policy_default(void);

/* The duration of one pause on this machine, in picoseconds. Calibrates on the first call. */
uint64_t gn_spin_pause_ps(void);

/*
 * The processor that this thread runs on (glibc reads it from rseq: no system call), or
 * GN_CPU_UNKNOWN.
 */
static inline uint16_t gn_spin_cpu(void)
{
    int cpu = sched_getcpu();
    return cpu >= 0 && (unsigned)cpu < GN_CPU_UNKNOWN ? (uint16_t)cpu : (uint16_t)GN_CPU_UNKNOWN;
}

static inline void gn_spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
}

/*
 * Waits, without polling, for about the time that the fastest peer on another processor needs to
 * answer. An earlier poll only takes the cache line away from the peer that is about to write it,
 * which costs about a tenth of a round trip. Call it before the first poll, and only when the
 * answer cannot be there yet.
 */
void gn_spin_linger(const struct gn_spin_policy *policy);

/* Prefetches a cache line that this thread is going to write soon. */
static inline void gn_spin_prefetch_for_write(const void *line)
{
#if defined(__x86_64__)
    /* The compiler's builtin assumes that the processor lacks prefetchw. */
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
#endif
}

/*
 * Separates two threads that share a processor. Two threads that wake each other on one processor
 * stay there: each finds the other asleep, so the scheduler sees nothing to spread. Then every
 * message costs two context switches, ten times the cost across processors.
 *
 * A thread that waits on behalf of a peer calls gn_spin_part before each wait. When the peer's last
 * messages all came from this thread's own processor and another processor is idle, gn_spin_part
 * moves the calling thread. While the two run apart the cost is one comparison; attempts to move (a
 * few system calls) are rare and become rarer where they do not help. Starts zeroed; one thread.
 */
struct gn_spin_parting {
    uint32_t n_together;
    uint64_t next_ns, interval_ns;
    uint32_t n_moves; /* counter */
};
void gn_spin_part(struct gn_spin_parting *p, uint16_t peer_cpu);

/*
 * Tells that the calling thread has just woken its peer. If the previous call was more than
 * GN_SPIN_CALM_NS ago, all threads had gone to sleep: then the next wait with a policy of nonzero
 * roomy_ns parks at once. This frees the processor for the threads just woken. Otherwise the
 * scheduler spreads them over processors that must leave their idle state first (20 to 90 us in a
 * virtual machine, against about 10 us for a switch).
 */
#define GN_SPIN_CALM_NS 1000000u
void gn_spin_woke_peer(void);

/*
 * True while there are no more runnable threads than processors: then a spinning thread delays no
 * other thread. The answer may be 5 ms old.
 */
bool gn_spin_room(void);

/* One spin in progress: a local of the thread that spins. */
struct gn_spin {
    uint32_t n_pauses; /* pauses left before the next clock read */
    uint64_t spin_ns;  /* from the policy */
    uint64_t roomy_ns;
    const _Atomic uint32_t *turn;
    uint64_t started_ns; /* 0 until the first clock read */
    uint16_t peer_cpu;
};

/*
 * Use:
 *   for (gn_spin_start(&s, policy, peer_cpu); !ready(); )
 *       if (!gn_spin_again(&s))
 *           park();
 */
void gn_spin_start(struct gn_spin *s, const struct gn_spin_policy *policy, uint16_t peer_cpu);

/*
 * Records whether spinning has helped lately. Where answers come from far away it never helps; it
 * only lowers the scheduler's preference for this thread when it has to be woken. One thread at a
 * time. After GN_SPIN_MISSES misses, one of GN_SPIN_TRY_AGAIN waits tries again.
 */
#define GN_SPIN_MISSES    3u
#define GN_SPIN_TRY_AGAIN 64u

struct gn_spin_habit {
    uint32_t n_missed, n_waits;
};

static inline bool gn_spin_is_worth(struct gn_spin_habit *h)
{
    return h->n_missed < GN_SPIN_MISSES || ++h->n_waits % GN_SPIN_TRY_AGAIN == 0;
}

static inline void gn_spin_was_worth(struct gn_spin_habit *h, bool spun)
{
    if (spun)
        h->n_missed = 0;
}

static inline void gn_spin_was_not(struct gn_spin_habit *h, bool spun)
{
    if (spun && h->n_missed < GN_SPIN_MISSES)
        h->n_missed++;
}

bool gn_spin_look_at_clock(struct gn_spin *s); /* the slow path of gn_spin_again */

/* Lets a little time pass; false when it is time to park. */
static inline bool gn_spin_again(struct gn_spin *s)
{
    if (s->n_pauses) {
        s->n_pauses--;
        gn_spin_pause();
        return true;
    }
    return gn_spin_look_at_clock(s);
}

#endif
