/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of a vGPU (life.h). Called by the control thread, by the thread that saves the vGPU
 * and by the thread that starts it. Never waits.
 */
#include "vgpu/core/life.h"

#include <assert.h>

#define TO(state) (1u << (state))

static const unsigned allowed[] = {
    [GN_VGPU_OWNED] = TO(GN_VGPU_ARRIVING) | TO(GN_VGPU_SAVED) | TO(GN_VGPU_ENDED),
    [GN_VGPU_ARRIVING] = TO(GN_VGPU_OWNED) | TO(GN_VGPU_AWAY),
    [GN_VGPU_SAVED] = TO(GN_VGPU_OWNED) | TO(GN_VGPU_AWAY) | TO(GN_VGPU_ENDED),
    [GN_VGPU_AWAY] = 0,
    [GN_VGPU_ENDED] = 0,
};

bool gn_vgpu_change_state(struct gn_vgpu_life *life, enum gn_vgpu_state from, enum gn_vgpu_state to)
{
    int state = from;
    assert(allowed[from] & TO(to));
    return atomic_compare_exchange_strong_explicit(&life->state, &state, to, memory_order_seq_cst,
                                                   memory_order_seq_cst);
}

bool gn_vgpu_end_life(struct gn_vgpu_life *life, bool handed)
{
    for (;;) {
        const enum gn_vgpu_state now = gn_vgpu_state(life);
        if (now == GN_VGPU_AWAY || now == GN_VGPU_ENDED)
            return false;
        const bool away = now == GN_VGPU_ARRIVING || (now == GN_VGPU_SAVED && handed);
        /* The saving thread may have written the rest since. */
        if (gn_vgpu_change_state(life, now, away ? GN_VGPU_AWAY : GN_VGPU_ENDED))
            return true;
    }
}
