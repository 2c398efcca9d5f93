/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps in the life of a vGPU that vgpu_record.h allows. Called by all code that makes one, on
 * gantryd's thread. It carries nothing out.
 */
#include <assert.h>

#include "daemon/vgpu/vgpu_record.h"

static const unsigned next[GN_RECORD_N_STATES] = {
    [GN_RECORD_PENDING] = 1u << GN_RECORD_ATTACHED | 1u << GN_RECORD_STOPPED,
    [GN_RECORD_ATTACHED] = 1u << GN_RECORD_STOPPED | 1u << GN_RECORD_RELEASED,
    [GN_RECORD_STOPPED] = 1u << GN_RECORD_ATTACHED,
};

bool gn_record_may_become(enum gn_record_state from, enum gn_record_state to)
{
    return next[from] >> to & 1;
}

void gn_record_set_state(struct gn_vgpu_record *v, enum gn_record_state state)
{
    assert(gn_record_may_become(v->state, state));
    v->state = state;
}
