/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_ACKS_H
#define GN_VGPU_MIGRATE_ACKS_H

#include <stdint.h>

#include "base/error.h"
#include "link/frame.h"

/*
 * Messages of the destination worker while the source writes a vGPU. The saving thread waits for
 * them. Errors: -ETIMEDOUT; -EPIPE: the destination has ended, and has reported the reason
 * elsewhere; -EPROTO: an impossible message.
 */

/*
 * Waits, at most timeout_ms, for the destination's first answer: its devices are compatible;
 * *ret_others: they differ from the source's. *ret_ids: the ids of the memories that the
 * destination retains; the caller frees it; NULL for none; they are unverified. ret_ids NULL: it
 * cannot have any. Returns 0, an error as above, or -ENOMEM.
 */
#define GN_ACKS_MOST (1u << 20)
int gn_acks_fits(struct gn_frame_reader *from, uint32_t timeout_ms, uint32_t *ret_others,
                 uint64_t **ret_ids, uint32_t *ret_n, struct gn_error *err);

/*
 * Waits until the destination has made this step (counted from 1); *made is the last step that it
 * has reported. Each message has to report a later step, so the wait takes at most timeout_ms for
 * each step, whichever messages come. Returns 0 or an error as above.
 */
int gn_acks_made(struct gn_frame_reader *from, int timeout_ms, uint32_t step, uint32_t *made,
                 struct gn_error *err);

#endif
