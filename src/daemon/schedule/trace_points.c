/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the scheduler's trace points into the trace ring. Called by scheduler.c with the lock
 * held, on the scheduler's thread or gantryd's. tracing.c starts and stops it, on gantryd's thread.
 */
#include "base/clock.h"
#include "daemon/schedule/scheduler_internal.h"

void gn_scheduler_note_locked(const struct device *d, const struct gn_share *sh,
                              enum gn_trace_kind kind, uint64_t a, uint64_t b, uint64_t now)
{
    if (d->traced && d->traced != sh->of->vgpu)
        return;
    gn_trace_put(d->trace, &(struct gn_trace_event){.at_ns = now,
                                                    .a = a,
                                                    .b = b,
                                                    .vgpu = sh->of->vgpu,
                                                    .device = (uint16_t)sh->device,
                                                    .kind = (uint8_t)kind});
}

/* Writes the present state of a share, as the start of a trace. */
static void trace_state(const struct gn_scheduler *s, const struct gn_share *sh, uint64_t now)
{
    const struct device *d = &s->devices[sh->device];
    if (d->sched.running == &sh->entity)
        gn_scheduler_note(d, sh, GN_TRACE_GRANT, 0, sh->preempted_ns != 0, now);
    else if (sh->entity.node.ready)
        gn_scheduler_note(d, sh, GN_TRACE_WANT, 0, 0, now);
    if (sh->entity.evicted)
        gn_scheduler_note(d, sh, GN_TRACE_EVICTED, 0, 0, now);
}

void gn_scheduler_trace(struct gn_scheduler *s, struct gn_trace_ring *ring, uint32_t vgpu)
{
    pthread_mutex_lock(&s->lock);
    const uint64_t now = gn_now_ns();
    for (uint32_t i = 0; i < s->n_devices; i++) {
        s->devices[i].trace = ring;
        s->devices[i].traced = vgpu;
    }
    for (uint32_t i = 0; ring && i < s->n_table; i++)
        for (uint32_t j = 0; s->table[i] && j < s->table[i]->n; j++)
            trace_state(s, &s->table[i]->all[j], now);
    pthread_mutex_unlock(&s->lock);
}
