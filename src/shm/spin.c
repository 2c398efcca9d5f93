/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of the spinning loops. Any thread. A wait that ends within CLOCK_INTERVAL_NS reads no clock and makes no system call;
 * a longer one yields the processor between looks, so that spinning takes nothing from anybody who has work.
 */
#include "shm/spin.h"

#include "base/clock.h"

#include <pthread.h>
#include <unistd.h>

#define LINGER_NS         75u   /* a little less than the shortest round trip over two cache lines */
#define CLOCK_INTERVAL_NS 2000u /* how long to pause between two looks at the clock */
#define LONG_YIELD_NS     200000u    /* somebody ran: one of ours finishing a kernel, or anybody */
#define MAX_LONG_YIELDS   2u         /* in one wait: then it was not ours, or not soon */
#define CROWDED_NS        100000000u /* how long to sleep instead of yielding after that */
#define CALIBRATION_NS    20000u
#define CALIBRATION_RUNS  5

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t pause_ps = 40000;
static uint32_t pauses_per_look = 50;
static uint32_t pauses_per_linger = 2;
static bool one_cpu;

static void calibrate(void)
{
    /* The fastest of a few runs: a run that was preempted would make a pause look long. */
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
    one_cpu = sysconf(_SC_NPROCESSORS_ONLN) == 1;
}

uint64_t gn_spin_pause_ps(void)
{
    pthread_once(&once, calibrate);
    return pause_ps;
}

struct gn_spin_policy gn_spin_policy_default(void)
{
    pthread_once(&once, calibrate);
    return (struct gn_spin_policy){.spin_ns = one_cpu ? 0 : GN_SPIN_DEFAULT_NS};
}

static bool on_my_cpu(uint16_t peer_cpu)
{
    return peer_cpu != GN_CPU_UNKNOWN && peer_cpu == gn_spin_cpu();
}

static bool is_crowded(struct gn_spin_pace *pace)
{
    uint64_t until = atomic_load_explicit(&pace->crowded_until_ns, memory_order_relaxed);
    if (until && gn_now_ns() >= until) {
        atomic_store_explicit(&pace->crowded_until_ns, 0, memory_order_relaxed);
        until = 0;
    }
    return until != 0;
}

void gn_spin_start(struct gn_spin *s, const struct gn_spin_policy *policy, uint16_t peer_cpu, struct gn_spin_pace *pace)
{
    *s = (struct gn_spin){.spin_ns = policy->spin_ns, .peer_cpu = peer_cpu, .pace = pace};
    if (policy->spin_ns == 0)
        return;
    pthread_once(&once, calibrate);
    if (pace && is_crowded(pace)) {
        s->spin_ns = CLOCK_INTERVAL_NS;
    } else if (pace && s->spin_ns < GN_SPIN_PATIENT_NS && atomic_load_explicit(&pace->patient, memory_order_relaxed)) {
        s->spin_ns = GN_SPIN_PATIENT_NS;
        s->yields = true;
    }
    /* A peer on this processor cannot answer before it runs: the first look lets it. */
    if (policy->spin_ns == GN_SPIN_FOREVER || !on_my_cpu(peer_cpu))
        s->n_pauses = pauses_per_look;
}

void gn_spin_end(const struct gn_spin *s)
{
    if (!s->pace)
        return;
    bool patient = s->started_ns == 0 || gn_now_ns() - s->started_ns < GN_SPIN_PATIENT_NS;
    if (patient != atomic_load_explicit(&s->pace->patient, memory_order_relaxed))
        atomic_store_explicit(&s->pace->patient, patient, memory_order_relaxed);
}

/* Somebody keeps this processor: it is wanted, and a sleeper gets it back sooner than one who yields. */
static void crowded(struct gn_spin *s, uint64_t now)
{
    s->spin_ns = 0;
    if (s->pace)
        atomic_store_explicit(&s->pace->crowded_until_ns, now + CROWDED_NS, memory_order_relaxed);
}

void gn_spin_linger(const struct gn_spin_policy *policy)
{
    if (policy->spin_ns == 0)
        return;
    for (uint32_t i = 0; i < pauses_per_linger; i++)
        gn_spin_pause();
}

bool gn_spin_look_at_clock(struct gn_spin *s)
{
    if (s->spin_ns == 0)
        return false;
    if (s->spin_ns != GN_SPIN_FOREVER) {
        uint64_t now = gn_now_ns();
        if (s->started_ns == 0) /* the first interval has gone by already */
            s->started_ns = now - CLOCK_INTERVAL_NS;
        if (now - s->started_ns >= s->spin_ns) {
            s->spin_ns = 0;
            return false;
        }
        /*
         * Whoever has work for this processor goes first: above all the device's own threads, where the device is this
         * machine's processors, and the peer, if it is here. On an idle processor this returns at once.
         */
        if (s->yields || on_my_cpu(s->peer_cpu)) {
            sched_yield();
            uint64_t back = gn_now_ns();
            if (back - now > LONG_YIELD_NS && ++s->n_long_yields >= MAX_LONG_YIELDS)
                crowded(s, back);
            s->n_pauses = pauses_per_linger;
            return true;
        }
    }
    s->n_pauses = pauses_per_look;
    return true;
}
