/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_SPIN_H
#define GN_SHM_SPIN_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Hybrid spinning: poll for a bounded time, then park. Spinning is only worth it when the peer runs
 * on another processor. Every message and reply carries the processor of its sender, and a thread
 * does not spin for a peer that last ran on the thread's own processor (unless the policy has
 * roomy_ns or spins forever).
 */
struct gn_spin_policy {
    /* 0: park at once; GN_SPIN_FOREVER: never park, even for a peer on the same processor. */
    uint64_t spin_ns;
    /*
     * Spin this long if at most as many threads are runnable as there are processors; 0: no
     * extension.
     */
    uint64_t roomy_ns;
    const _Atomic uint32_t *turn; /* enum gn_spin_turn; NULL: GN_SPIN_ANY */
};

/*
 * Which vGPU has the awaited device, as the peer reports it; an untrusted peer may store any value.
 */
enum gn_spin_turn {
    GN_SPIN_ANY,  /* unknown */
    GN_SPIN_AWAY, /* other vGPUs: spinning is useless and may disturb them; roomy_ns is ignored */
    /*
     * This vGPU, and this thread does not run on a processor that its kernels use: spin for
     * roomy_ns, at any load.
     */
    GN_SPIN_MINE,
};

#define GN_SPIN_FOREVER    UINT64_MAX
#define GN_SPIN_DEFAULT_NS 50000u
/*
 * For waits on a device that uses this machine's processors: longer spinning would take them from
 * the awaited kernels.
 */
#define GN_SPIN_SHORT_NS 2000u
/* A wake across processors of a virtual machine costs about 20 to 60 us. */
#define GN_SPIN_ROOMY_NS 400000u
#define GN_CPU_UNKNOWN   0xffffu

/*
 * GN_SPIN_DEFAULT_NS, or 0 on a machine with one processor. Calibrates at the first call (about 100
 * us).
 */
struct gn_spin_policy gn_spin_policy_default(void);

/* The time of one pause on this machine, in picoseconds. Calibrates at the first call. */
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
 * Waits, without reading the awaited word, about as long as the fastest peer on another processor
 * takes to answer. A read before the answer can be there only takes the cache line from the peer
 * that is about to write it, and the peer has to fetch it back (about a tenth of a round trip).
 * Call it before the first read, and only if an answer cannot be there yet.
 */
void gn_spin_linger(const struct gn_spin_policy *policy);

/* Prefetches a cache line that this thread is going to write soon. */
static inline void gn_spin_prefetch_for_write(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0"
                     :
                     /* The builtin assumes that prefetchw is not available. */
                     : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
#endif
}

/*
 * Two threads that wake each other on one processor stay there: each finds the other asleep, so the
 * scheduler sees nothing to spread. Every message then costs two context switches, ten times the
 * cost across processors. A consumer calls this before each wait. If the peer's last messages all
 * came from the caller's own processor and another processor is idle, it moves the calling thread
 * there. While the two are apart it costs one comparison; checks and moves (a few system calls) are
 * rare, and rarer still where they do not help. All zeros at first; one thread.
 */
struct gn_spin_parting {
    uint32_t n_together;
    uint64_t next_ns, interval_ns;
    uint32_t n_moves; /* counter */
};
void gn_spin_part(struct gn_spin_parting *p, uint16_t peer_cpu);

/*
 * Records that the calling thread has just woken its peer. If the previous wake was more than
 * GN_SPIN_CALM_NS ago, all threads had gone to sleep: this thread's next wait with a policy with
 * roomy_ns parks at once. Its processor is then free for the threads that it has woken. Otherwise
 * the scheduler spreads those over processors that must first leave their idle state (about 20 to
 * 90 us in a virtual machine, against about 10 us for a switch).
 */
#define GN_SPIN_CALM_NS 1000000u
void gn_spin_woke_peer(void);

/*
 * Are there at most as many runnable threads as processors? If so, a spinner takes a processor from
 * no other thread. The answer may be 5 ms old.
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
 * Whether spinning has helped lately. If answers come from another machine it never helps, and it
 * only lowers the thread's priority for the scheduler when it has to be woken. One thread at a
 * time. Spinning is tried again once in GN_SPIN_TRY_AGAIN waits.
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

/* Pauses for a short time; false: it is time to park. */
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
