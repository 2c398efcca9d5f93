/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_HEARD_H
#define GN_VGPU_HEARD_H

#include <stdint.h>

#include "base/error.h"
#include "link/frame.h"

/*
 * What the worker that a vGPU moves to says while it is being written: words without a payload. Who writes waits for them, on a thread of
 * his own.
 */

/* The next one, which is to be `op`; *ret_seq is what it says. 0, -ETIMEDOUT, or -EPIPE: it has gone, and has said why elsewhere. */
int gn_heard_word(struct gn_frame_reader *from, int timeout_ms, uint16_t op, uint32_t *ret_seq, struct gn_error *err);

/*
 * Until it has made this step (from 1); *made is the last one of which it has said so. Each word is to tell of a later one: so the wait
 * ends after timeout_ms for each step at most, whatever it says. 0 or as above; -EPROTO: it told of no later one.
 */
int gn_heard_made(struct gn_frame_reader *from, int timeout_ms, uint32_t step, uint32_t *made, struct gn_error *err);

#endif
