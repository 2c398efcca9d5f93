/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_SPIN_H
#define GN_SHM_SPIN_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Hybrid spinning: look for a bounded time, then park. Spinning is only worth it when the peer runs
 * on another processor; every message and reply carries the processor of its sender, and nobody
 * spins for a peer that last ran on his own.
 */
struct gn_spin_policy {
    uint64_t spin_ns;  /* 0: park at once; GN_SPIN_FOREVER: never park, not even for a peer on the
                          same processor */
    uint64_t roomy_ns; /* spin this long where no more threads are runnable than there are
                          processors; 0: no longer */
    const _Atomic uint32_t *turn; /* enum gn_spin_turn; NULL: GN_SPIN_ANY */
};

/* What is known of who has the device that is waited for: the peer's word, which may be anything.
 */
enum gn_spin_turn {
    GN_SPIN_ANY,  /* nothing */
    GN_SPIN_AWAY, /* others: spinning is no use, and may be in their way; roomy_ns counts for
                     nothing */
    GN_SPIN_MINE, /* we have, and do not run where its kernels do: roomy_ns, whether there is room
                     or not */
};

#define GN_SPIN_FOREVER    UINT64_MAX
#define GN_SPIN_DEFAULT_NS 50000u
/* For who waits on a device that is this machine's processors: spinning would keep them from the
 * kernels waited for. */
#define GN_SPIN_SHORT_NS 2000u
#define GN_SPIN_ROOMY_NS                                                                           \
    400000u /* a wake across processors of a virtual machine costs some 20 to 60 us */
#define GN_CPU_UNKNOWN 0xffffu

/* GN_SPIN_DEFAULT_NS, or 0 on a machine with one processor. Calibrates on the first call (about 100
 * us). */
struct gn_spin_policy gn_spin_policy_default(void);

/* What one pause costs here, in picoseconds. Calibrates on the first call. */
uint64_t gn_spin_pause_ps(void);

/* The processor this thread runs on (glibc answers from rseq: no system call), or GN_CPU_UNKNOWN.
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
 * Waits about as long as the fastest peer on another processor takes to answer, without looking. A
 * look before the answer can be there only takes the cache line away from the peer that is about to
 * write it; it then has to fetch it back (about a tenth of a round trip). Before the first look,
 * and only when an answer cannot be there yet.
 */
void gn_spin_linger(const struct gn_spin_policy *policy);

/* Asks for a cache line that this thread is going to write soon. */
static inline void gn_spin_prefetch_for_write(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0"
                     :
                     : "m"(*(const char *)line)); /* the builtin takes it for not available */
#else
    __builtin_prefetch(line, 1);
#endif
}

/*
 * Two threads that wake each other on one processor stay there: each finds the other asleep, so the
 * scheduler sees nothing to spread. Then every message costs two switches, ten times what it costs
 * across processors. Whoever waits on behalf of a peer calls this before each wait; when the peer's
 * last messages all came from his own processor and another one has nothing to do, it moves the
 * calling thread there. Free but for a comparison as long as the two are apart; looks and moves (a
 * few system calls) are rare and grow rarer where they do not help. Zeroed at first; one thread.
 */
struct gn_spin_parting {
    uint32_t n_together;
    uint64_t next_ns, interval_ns;
    uint32_t n_moves; /* counter */
};
void gn_spin_part(struct gn_spin_parting *p, uint16_t peer_cpu);

/*
 * The calling thread has just woken its peer. When it has not for GN_SPIN_CALM_NS, everybody had
 * gone to sleep: its next wait with a policy of some roomy_ns parks at once. Then its processor is
 * free for the threads it has set going, which otherwise are spread by the scheduler over others
 * that must be woken from their idle state first (some 20 to 90 us in a virtual machine, against
 * about 10 us for a switch).
 */
#define GN_SPIN_CALM_NS 1000000u
void gn_spin_woke_peer(void);

/* Are there no more runnable threads than processors? Then a spinner takes nothing from anybody.
 * The answer may be 5 ms old. */
bool gn_spin_room(void);

/* One spin in progress: a local of the thread that spins. */
struct gn_spin {
    uint32_t n_pauses; /* pauses left before the clock is read */
    uint64_t spin_ns;  /* the policy's */
    uint64_t roomy_ns;
    const _Atomic uint32_t *turn;
    uint64_t started_ns; /* 0 until the clock has been read once */
    uint16_t peer_cpu;
};

/*
 * for (gn_spin_start(&s, policy, peer_cpu); !ready(); )
 *     if (!gn_spin_again(&s))
 *         park();
 */
void gn_spin_start(struct gn_spin *s, const struct gn_spin_policy *policy, uint16_t peer_cpu);

/*
 * Whether spinning has helped lately: where answers come from far away it never does, and only
 * makes its thread one that others are preferred to when it has to be woken. One thread at a time.
 * Tried again once in GN_SPIN_TRY_AGAIN waits.
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

bool gn_spin_look_at_clock(struct gn_spin *s); /* gn_spin_again's slow half */

/* Passes a little time; false when it is time to park. */
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
