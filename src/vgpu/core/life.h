/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_CORE_LIFE_H
#define GN_VGPU_CORE_LIFE_H

#include <stdatomic.h>
#include <stdbool.h>

/*
 * Which process has the vGPU, as this process knows: one word, with these changes alone.
 *
 *     from      the vGPU                               to        when
 *     OWNED     is served here; it may be being        ARRIVING  before there are other threads
 *               saved                                  SAVED     all of it has been written
 *                                                      ENDED     in a program: it ends
 *     ARRIVING  is another process's; this one loads   OWNED     gantryd's GO
 *               it, and waits for gantryd's word       AWAY      in a program: it ends
 *     SAVED     waits behind the closed gate for       OWNED     gantryd's RESUME
 *               gantryd's word                         AWAY      in a program: gantryd's END
 *                                                      ENDED     in a program: it ends otherwise
 *     AWAY      is another process's, for good
 *     ENDED     is nobody's
 *
 * A worker enters neither AWAY nor ENDED: the process exits.
 */
enum gn_vgpu_state {
    GN_VGPU_OWNED,
    GN_VGPU_ARRIVING,
    GN_VGPU_SAVED,
    GN_VGPU_AWAY,
    GN_VGPU_ENDED,
};

struct gn_vgpu_life {
    _Atomic int state; /* enum gn_vgpu_state */
};

/* Any thread. */
static inline enum gn_vgpu_state gn_vgpu_state(const struct gn_vgpu_life *life)
{
    return (enum gn_vgpu_state)atomic_load_explicit(&life->state, memory_order_seq_cst);
}

/* Another process has the vGPU: one that it has not left yet, or one that it has gone to. */
static inline bool gn_vgpu_is_elsewhere(const struct gn_vgpu_life *life)
{
    const enum gn_vgpu_state state = gn_vgpu_state(life);
    return state == GN_VGPU_ARRIVING || state == GN_VGPU_AWAY;
}

/*
 * Makes a change of the table. Any thread. False: the state is not `from`, and stays. A pair that
 * the table does not have is an error of the caller.
 */
bool gn_vgpu_change_state(struct gn_vgpu_life *life, enum gn_vgpu_state from,
                          enum gn_vgpu_state to);
/* Ends the vGPU in its program. handed: gantryd has said so; then a saved vGPU is another
 * process's. False: it had ended before. */
bool gn_vgpu_end_life(struct gn_vgpu_life *life, bool handed);

#endif
