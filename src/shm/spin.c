/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of the spinning loops. Any thread. The clock is read once in some microseconds only (and not at
 * all in a wait that ends before that): a look at it costs as much as several looks at the awaited word. No
 * system call: the vDSO answers for the clock and rseq for the processor.
 */
#include "shm/spin.h"

#include "base/clock.h"

#include <pthread.h>
#include <unistd.h>

#define LINGER_NS         75u   /* a little less than the shortest round trip over two cache lines */
#define CLOCK_INTERVAL_NS 2000u /* how long to pause between two looks at the clock */
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

void gn_spin_start(struct gn_spin *s, const struct gn_spin_policy *policy, uint16_t peer_cpu)
{
    *s = (struct gn_spin){.spin_ns = policy->spin_ns, .peer_cpu = peer_cpu};
    if (policy->spin_ns == 0)
        return;
    if (policy->spin_ns != GN_SPIN_FOREVER && on_my_cpu(peer_cpu)) {
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
        if (s->deadline_ns == 0) /* the first interval has gone by already */
            s->deadline_ns = now + (s->spin_ns > CLOCK_INTERVAL_NS ? s->spin_ns - CLOCK_INTERVAL_NS : 0);
        /* The scheduler may have put this thread on the peer's processor meanwhile. */
        if (now >= s->deadline_ns || on_my_cpu(s->peer_cpu)) {
            s->spin_ns = 0;
            return false;
        }
    }
    s->n_pauses = pauses_per_look;
    return true;
}
