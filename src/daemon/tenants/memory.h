/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_MEMORY_H
#define GN_DAEMON_TENANTS_MEMORY_H

#include "daemon/loop.h"
#include "daemon/tenants/leases.h"
#include "link/frame.h"

/* Device memory between the books (leases.h) and the workers' sockets. gantryd's thread. */
struct gn_conn;
struct gn_daemon;
struct gn_error;
struct gn_tenant;
struct gn_vgpu_record;

extern const struct gn_lease_ops gn_memory_ops;
/* The worker is dead, or has leased nothing: its memory is free. */
void gn_memory_leave(struct gn_vgpu_record *v);
/* Two vGPUs of a tenant exchange their workers. */
void gn_memory_exchange(struct gn_vgpu_record *a, struct gn_vgpu_record *b);
/* A worker's frame. 1: it was about memory; 0: it was not; -EPROTO. */
int gn_memory_frame(struct gn_vgpu_record *v, const struct gn_frame *f);
/* `to` is the destination of a migration of `from` within this gantryd, and has leased nothing. If
 * both use the same devices and share the program's memory, buffers there are counted once. */
void gn_memory_lend(struct gn_vgpu_record *from, struct gn_vgpu_record *to);
/* The part of its lease that a worker uses, as it counts. */
uint64_t gn_memory_used(const struct gn_vgpu_record *v);
/* What further leases of the tenant could get: the free memory, less others' reserves, and leases
 * that workers do not use, as they count. UINT64_MAX: there is no limit. `devices`: a mask of the
 * platform's, taken together. */
uint64_t gn_memory_tenant_room(const struct gn_tenant *t);
uint64_t gn_memory_device_room(const struct gn_daemon *d, const struct gn_tenant *t,
                               uint32_t platform, uint64_t devices);
/* The same `from` and `to`, after gn_memory_lend(). -ENOMEM and a reason: `to` cannot get memory
 * for all contents that it will not share. */
int gn_memory_judge_migration(const struct gn_vgpu_record *from, const struct gn_vgpu_record *to,
                              struct gn_error *err);
/* After any change of the books: sets the timer, and sends replies that have waited for it. */
void gn_memory_settle(struct gn_daemon *d);
void gn_memory_timer(struct gn_source *timer, uint32_t events);
/* Holds a reply back until the tenant's workers have returned the recalled memory. */
void gn_memory_hold(struct gn_conn *c, struct gn_tenant *t, uint32_t seq, char *reply);
void gn_memory_drop_held(struct gn_conn *c);

#endif
