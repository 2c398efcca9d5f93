/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_CORE_COMMAND_INTERNAL_H
#define GN_VGPU_CORE_COMMAND_INTERNAL_H

#include "vgpu/core/vgpu_core.h"

#include <stdlib.h>
#include <string.h>

/*
 * The inside of a command, for command.c, device.c, saved_commands.c and an API's judge only. The
 * functions that are inline here are on the path of every command.
 */

static inline const struct gn_command_head *gn_command_head_of(const struct gn_command *c)
{
    return (const void *)(c->bytes + sizeof(struct gn_msg));
}

static inline const struct gn_msg *gn_command_msg_of(const struct gn_command *c)
{
    return (const void *)c->bytes;
}

/*
 * Creates a command from this message, which is copied. The command takes over the caller's
 * reference on the queue and has one reference of its own. The message is neither decoded nor
 * checked. NULL: no memory; the queue reference stays the caller's.
 */
static inline struct gn_command *gn_command_new(struct gn_vgpu *v,
                                                const struct gn_request_class *class,
                                                struct gn_vobject *queue, const void *bytes,
                                                uint32_t n_bytes)
{
    struct gn_command *c = calloc(1, sizeof *c + n_bytes);
    if (!c)
        return NULL;
    c->vgpu = v;
    c->class = class;
    c->queue = queue->detail;
    c->queue_object = queue;
    atomic_init(&c->n_refs, 1);
    gn_list_init(&c->link);
    gn_list_init(&c->batch_link);
    c->n_bytes = n_bytes;
    memcpy(c->bytes, bytes, n_bytes);
    return c;
}

/*
 * Drops the objects that the command needed until it was submitted or ended. Any thread, without
 * locks.
 */
void gn_command_drop_objects(struct gn_command *c);

/*
 * Drops the references to the commands of its wait list: once it is reported as complete, or has
 * failed. Keeping them longer would keep the whole chain. Called without vgpu->lock.
 */
static inline void gn_command_drop_producers(struct gn_command *c)
{
    const uint32_t n = c->n_producers ? c->n_producers : c->n_before;
    for (uint32_t i = 0; i < n; i++)
        gn_command_unref(c->producers[i]);
    c->n_producers = c->n_before = 0;
}

/* The driver has it, or its first part: it needs no wait list any more. */
static inline void gn_command_given(struct gn_command *c)
{
    if (c->n_producers) {
        c->n_before = c->n_producers;
        c->n_producers = 0;
    }
}

/*
 * The command is dropped at admission: the guest may reuse its event's index as soon as it has the
 * answer. Under vgpu->lock.
 */
static inline void gn_command_forget_event_locked(struct gn_command *c)
{
    const uint32_t event = gn_command_head_of(c)->event;
    struct gn_vevent *e = event == GN_NO_EVENT ? NULL : gn_vevent_at(c->vgpu, event);
    if (e) {
        e->state = GN_EVENT_OVER;
        e->error = 0;
    }
}

/*
 * Links the command with the events that it waits for: c->n_waits indices, not validated; an index
 * outside the table is ignored. Under vgpu->lock.
 */
void gn_command_enter_waits_locked(struct gn_command *c, const uint32_t *waits);
/* Makes the command wait for bulk data, too: all of it up to this batch. Under vgpu->lock. */
static inline void gn_command_await_batch_locked(struct gn_command *c, uint64_t batch)
{
    c->batch = batch;
    c->n_blockers++;
    gn_list_append(&c->vgpu->batch_waiters, &c->batch_link);
}

#endif
