/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_ACKS_H
#define GN_VGPU_MIGRATE_ACKS_H

#include <stdint.h>

#include "base/error.h"
#include "link/frame.h"

/*
 * What the worker that a vGPU moves to says while it is being written. Who writes waits for it, on
 * a thread of his own. Failures: -ETIMEDOUT; -EPIPE: it has gone, and has said why elsewhere;
 * -EPROTO: it said what cannot be.
 */

/*
 * First, and within timeout_ms: whether its devices are others, which will do, and what it has of
 * the contents from before: *ret_ids, the caller's to free, NULL for none; they are its word alone.
 * ret_ids NULL: it can have none. 0 or as above; -ENOMEM.
 */
#define GN_HEARD_KEPT_MOST (1u << 20)
int gn_acks_fits(struct gn_frame_reader *from, uint32_t timeout_ms, uint32_t *ret_others,
                 uint64_t **ret_ids, uint32_t *ret_n, struct gn_error *err);

/*
 * Until it has made this step (from 1); *made is the last one of which it has said so. Each word is
 * to tell of a later one: so the wait ends after timeout_ms for each step at most, whatever it
 * says. 0 or as above.
 */
int gn_acks_made(struct gn_frame_reader *from, int timeout_ms, uint32_t step, uint32_t *made,
                 struct gn_error *err);

#endif
