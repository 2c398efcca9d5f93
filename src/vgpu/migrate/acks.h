/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_ACKS_H
#define GN_VGPU_MIGRATE_ACKS_H

#include <stdint.h>

#include "base/error.h"
#include "link/frame.h"

/*
 * The messages of the destination worker while the source writes the vGPU. The source waits for
 * them on its saving thread. Errors: -ETIMEDOUT; -EPIPE: the destination has gone, and has reported
 * the reason to gantryd; -EPROTO: an impossible message.
 */

/*
 * The first message, within timeout_ms. *ret_others: the destination's devices differ, but are
 * compatible. *ret_ids: memories with contents that it has retained; the caller frees them,
 * NULL for none. The ids are an unchecked claim of the destination. ret_ids NULL: it cannot have
 * any. Returns 0 or as above; -ENOMEM.
 */
#define GN_HEARD_KEPT_MOST (1u << 20)
int gn_acks_fits(struct gn_frame_reader *from, uint32_t timeout_ms, uint32_t *ret_others,
                 uint64_t **ret_ids, uint32_t *ret_n, struct gn_error *err);

/*
 * Waits until the destination has completed this step (from 1); *made is the last step that it has
 * acknowledged. Each message must acknowledge a later step than the one before, so the wait lasts
 * at most timeout_ms for each step. Returns 0 or as above.
 */
int gn_acks_made(struct gn_frame_reader *from, int timeout_ms, uint32_t step, uint32_t *made,
                 struct gn_error *err);

#endif
