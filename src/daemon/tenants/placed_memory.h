/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_PLACED_MEMORY_H
#define GN_DAEMON_TENANTS_PLACED_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * With --oversubscribe: leases between the accounts (memory.h) and the placement
 * (schedule/placement.h). A lease that the account has granted is answered when there is room for
 * it on the device. Without it each function does nothing. gantryd's thread.
 */
struct gn_frame;
struct gn_vgpu_record;
struct gn_worker_lease;

/* The worker joins, without memory; it is dead; two vGPUs exchange their workers. */
void gn_placed_memory_join(struct gn_vgpu_record *v);
void gn_placed_memory_leave(struct gn_vgpu_record *v);
void gn_placed_memory_exchange(struct gn_vgpu_record *a, struct gn_vgpu_record *b);
/* v->owned_by has changed: a vGPU that is migrated is not evicted. */
void gn_placed_memory_owned(struct gn_vgpu_record *v);
/* Will its worker be told what to evict? */
bool gn_placed_memory_evicts(const struct gn_vgpu_record *v);

/* The bytes of a slot of its i-th device; 1: the device's memory is not placed. */
uint64_t gn_placed_memory_slot(const struct gn_vgpu_record *v, uint32_t i);

/* Before the account is asked. False: the worker may never have so much on its device at once, or
 * pin so much. *want_bytes is lowered to what it may have. */
bool gn_placed_memory_admits(struct gn_vgpu_record *v, const struct gn_worker_lease *ask,
                             uint64_t *want_bytes);
/* The lease has changed. */
void gn_placed_memory_fit(struct gn_vgpu_record *v);
/* The same after the account's answer. True: the answer is held until there is room. */
bool gn_placed_memory_holds(struct gn_vgpu_record *v, uint32_t seq, uint64_t granted_bytes);
/* Answers the worker's ask. */
void gn_placed_memory_answer(struct gn_vgpu_record *v, uint32_t seq, uint64_t granted_bytes);

/* A worker's frame. 1: it was about the placement; 0: it was not; -EPROTO. */
int gn_placed_memory_frame(struct gn_vgpu_record *v, const struct gn_frame *f);
/* There is room for all: answers the ask that waits for it. */
void gn_placed_memory_release(struct gn_vgpu_record *v);

#endif
