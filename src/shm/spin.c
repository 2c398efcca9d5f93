/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spinning loops' clock and processor look-ups. Any thread. The clock is read once in some
 * microseconds (and not at all in a wait that ends before): one reading costs as much as several
 * polls of the awaited word. Spinning makes no system call: the vDSO answers for the clock and rseq
 * for the processor; only sched_yield, /proc/loadavg and sched_setaffinity are calls, and those are
 * rare.
 */
#include "shm/spin.h"

#include "base/clock.h"
#include "base/descriptor.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define LINGER_NS         75u /* a little less than the shortest round trip over two cache lines */
#define CLOCK_INTERVAL_NS 2000u /* pause between two clock reads */
#define SETTLE_NS         15000u
#define ROOM_LOOK_NS      5000000u
/*
 * a spinner has to leave soon after other threads become runnable, or the scheduler puts them on
 * the peer's processor; one reading of /proc/loadavg takes 4 us
 */
#define ROOM_SOON_NS     1000000u
#define YIELD_AFTER_NS   8000u
#define PART_AFTER       8u       /* waits in a row */
#define PART_FIRST_NS    1000000u /* between two attempts, at first */
#define PART_LAST_NS     256000000u
#define PART_FORGET_NS   1000000000u
#define CALIBRATION_NS   20000u
#define CALIBRATION_RUNS 5

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t pause_ps = 40000;
static uint32_t pauses_per_look = 50;
static uint32_t pauses_per_linger = 2;
static unsigned n_processors;

static void calibrate(void)
{
    /* The fastest of a few runs: a preempted run would make a pause look long. */
    uint64_t best_ps = UINT64_MAX;
    for (int run = 0; run < CALIBRATION_RUNS; run++) {
        uint64_t start = gn_now_ns(), now, n = 0;
        do {
            for (int i = 0; i < 64; i++)
                gn_spin_pause();
            n += 64;
            now = gn_now_ns();
        } while (now - start < CALIBRATION_NS);
        uint64_t ps = (now - start) * 1000 / n;
        if (ps < best_ps)
            best_ps = ps;
    }
    pause_ps = best_ps ? best_ps : 1;
    pauses_per_look = (uint32_t)(CLOCK_INTERVAL_NS * UINT64_C(1000) / pause_ps) + 1;
    pauses_per_linger = (uint32_t)(LINGER_NS * UINT64_C(1000) / pause_ps);
    n_processors = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

uint64_t gn_spin_pause_ps(void)
{
    pthread_once(&once, calibrate);
    return pause_ps;
}

struct gn_spin_policy gn_spin_policy_default(void)
{
    pthread_once(&once, calibrate);
    return (struct gn_spin_policy){.spin_ns = n_processors == 1 ? 0 : GN_SPIN_DEFAULT_NS};
}

static bool on_my_cpu(uint16_t peer_cpu)
{
    return peer_cpu != GN_CPU_UNKNOWN && peer_cpu == gn_spin_cpu();
}

static _Atomic uint64_t looked_ns;
static _Atomic bool room;

/* The number of runnable threads; UINT_MAX when it cannot be read. */
static unsigned count_runnable(void)
{
    char text[64];
    unsigned running = UINT_MAX;
    int fd = gn_fd_open("/proc/loadavg", O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    gn_fd_close(fd);
    text[n > 0 ? n : 0] = 0;
    return sscanf(text, "%*s %*s %*s %u/", &running) == 1 ? running : UINT_MAX;
}

static bool is_looked(uint64_t now, uint64_t within_ns)
{
    const uint64_t at = atomic_load_explicit(&looked_ns, memory_order_relaxed);
    return at && now - at < within_ns;
}

static bool has_room(uint64_t now, uint64_t within_ns)
{
    if (!is_looked(now, within_ns)) {
        pthread_once(&once, calibrate);
        atomic_store_explicit(&room, count_runnable() <= n_processors, memory_order_relaxed);
        atomic_store_explicit(&looked_ns, now, memory_order_relaxed);
    }
    return atomic_load_explicit(&room, memory_order_relaxed);
}

bool gn_spin_room(void)
{
    return has_room(gn_now_ns(), ROOM_LOOK_NS);
}

/*
 * Reads the load only after a while of spinning: at the start of a wait the peer is still busy with
 * the message just sent.
 */
static bool is_roomy(uint64_t now, uint64_t spun_ns)
{
    return (spun_ns < SETTLE_NS && !is_looked(now, ROOM_SOON_NS)) || has_room(now, ROOM_SOON_NS);
}

/* Moves this thread to another processor of its affinity mask, then restores the mask. */
static bool move_away(void)
{
    cpu_set_t allowed, others;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return false;
    others = allowed;
    CPU_CLR(gn_spin_cpu(), &others);
    return CPU_COUNT(&others) && !sched_setaffinity(0, sizeof others, &others) &&
           !sched_setaffinity(0, sizeof allowed, &allowed);
}

void gn_spin_part(struct gn_spin_parting *p, uint16_t peer_cpu)
{
    if (!on_my_cpu(peer_cpu)) {
        p->n_together = 0;
        return;
    }
    if (++p->n_together < PART_AFTER)
        return;
    p->n_together = 0;
    uint64_t now = gn_now_ns();
    if (now < p->next_ns)
        return;
    /* Separated long ago and together again by accident: start with the shortest interval again. */
    if (!p->interval_ns || now - p->next_ns > PART_FORGET_NS)
        p->interval_ns = PART_FIRST_NS;
    else if (p->interval_ns < PART_LAST_NS)
        p->interval_ns *= 2;
    p->next_ns = now + p->interval_ns;
    /*
     * The two threads share a processor: if at most as many threads as processors are runnable, one
     * processor is idle.
     */
    if (count_runnable() <= n_processors && move_away())
        p->n_moves++;
}

static _Thread_local uint64_t last_woke_ns;
static _Thread_local bool parks_next;

void gn_spin_woke_peer(void)
{
    uint64_t now = gn_now_ns();
    parks_next = parks_next || now - last_woke_ns > GN_SPIN_CALM_NS;
    last_woke_ns = now;
}

void gn_spin_start(struct gn_spin *s, const struct gn_spin_policy *policy, uint16_t peer_cpu)
{
    *s = (struct gn_spin){.spin_ns = policy->spin_ns,
                          .roomy_ns = policy->roomy_ns,
                          .turn = policy->turn,
                          .peer_cpu = peer_cpu};
    bool parks = parks_next && policy->roomy_ns;
    parks_next = false;
    if (parks && policy->spin_ns != GN_SPIN_FOREVER)
        s->spin_ns = 0;
    if (s->spin_ns == 0)
        return;
    if (policy->spin_ns != GN_SPIN_FOREVER && !policy->roomy_ns && on_my_cpu(peer_cpu)) {
        s->spin_ns = 0;
        return;
    }
    pthread_once(&once, calibrate);
    s->n_pauses = pauses_per_look;
}

void gn_spin_linger(const struct gn_spin_policy *policy)
{
    if (policy->spin_ns == 0)
        return;
    pthread_once(&once, calibrate);
    for (uint32_t i = 0; i < pauses_per_linger; i++)
        gn_spin_pause();
}

bool gn_spin_look_at_clock(struct gn_spin *s)
{
    if (s->spin_ns == 0)
        return false;
    if (s->spin_ns != GN_SPIN_FOREVER) {
        uint64_t now = gn_now_ns();
        if (s->started_ns == 0) /* the first interval has passed already */
            s->started_ns = now - CLOCK_INTERVAL_NS;
        uint64_t spun_ns = now - s->started_ns;
        const uint32_t turn =
            s->turn ? atomic_load_explicit(s->turn, memory_order_relaxed) : GN_SPIN_ANY;
        bool over = spun_ns >= s->spin_ns && (spun_ns >= s->roomy_ns || turn == GN_SPIN_AWAY ||
                                              (turn != GN_SPIN_MINE && !is_roomy(now, spun_ns)));
        /* The scheduler may have moved this thread to the peer's processor meanwhile. */
        if (over || (!s->roomy_ns && on_my_cpu(s->peer_cpu))) {
            s->spin_ns = 0;
            return false;
        }
        /*
         * The awaited thread may be waiting for this processor: the yield then gives it the
         * processor, and otherwise has no effect.
         */
        if (s->roomy_ns && spun_ns >= YIELD_AFTER_NS)
            sched_yield();
    }
    s->n_pauses = pauses_per_look;
    return true;
}
