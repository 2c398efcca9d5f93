/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_OPENCL_CALLBACK_H
#define GN_GUEST_OPENCL_CALLBACK_H

#include <stdint.h>

struct gn_cl_context;
struct gn_session;

/* Callbacks of the program: on a thread of Gantry's, with signals blocked, without locks. */

void gn_callback_frame(struct gn_session *s, uint16_t op, const void *payload, uint32_t n);
/* Runs job(arg) on the callback thread, in order. -1: the thread could not be started. */
int gn_callback_later(void (*job)(void *), void *arg);
/*
 * Waits until all due callbacks have returned, at most within_ns. Does nothing on the callback
 * thread.
 */
void gn_callbacks_finish(uint64_t within_ns);
/* In a forked child, before anything else. */
void gn_callbacks_forked(void);
void gn_context_listen(struct gn_cl_context *c);
void gn_context_deaf(struct gn_cl_context *c);

#endif
