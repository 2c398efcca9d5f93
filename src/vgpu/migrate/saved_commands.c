/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pending commands into a stream and out of one: behind a closed gate, on the saving or loading
 * thread. A saved command is admitted by the steps of a new one (command.c), except for its waits,
 * which are saved beside its message.
 */
#include "vgpu/core/command_internal.h"

#include "base/log.h"
#include "vgpu/migrate/save.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * The message, followed by the data that it had copied out of the data area, and without its wait
 * list. NULL: no memory.
 */
static unsigned char *copy_message(const struct gn_command *c, uint64_t *ret_n)
{
    uint64_t at = gn_align_up(c->n_bytes, 8), n = at;
    for (uint32_t i = 0; i < c->n_blobs; i++)
        n += gn_align_up(c->blob_bytes[i], 8);
    unsigned char *bytes = calloc(1, n);
    if (!bytes)
        return NULL;
    memcpy(bytes, c->bytes, c->n_bytes);
    for (uint32_t i = 0; i < c->n_blobs; i++) {
        const struct gn_span span = {GN_SPAN_INLINE, (uint32_t)c->blob_bytes[i], at};
        memcpy(bytes + c->blob_spans[i], &span, sizeof span);
        memcpy(bytes + at, c->blobs[i], c->blob_bytes[i]);
        at += gn_align_up(c->blob_bytes[i], 8);
    }
    ((struct gn_command_head *)(void *)(bytes + sizeof(struct gn_msg)))->waits =
        (struct gn_span){.segment = GN_SPAN_NULL};
    *ret_n = n;
    return bytes;
}

static int save_command(struct gn_stream_writer *w, const struct gn_command *c, uint64_t number)
{
    const struct gn_cutting *cut = c->cut;
    const uint64_t done = cut && !cut->error ? cut->next_group : 0;
    const struct gn_stream_command_state state = {.event = gn_command_head_of(c)->event,
                                                  .done = done,
                                                  .submit_ns = done ? cut->times.submit_ns : 0,
                                                  .start_ns = done ? cut->times.start_ns : 0};
    struct gn_saved_waiting own = {
        .command = {.flags = (c->asked ? GN_SAVED_ASKED : 0) | (c->ordered ? GN_SAVED_ORDERED : 0),
                    .doomed = c->doomed},
        .batch = c->batch};
    const bool waits_for_data = !gn_list_empty(&c->batch_link);
    uint32_t *waits = calloc(c->n_waits ? c->n_waits : 1, sizeof *waits), n = 0;
    uint64_t n_message = 0;
    unsigned char *message = waits ? copy_message(c, &n_message) : NULL;
    int rc = message ? 0 : -ENOMEM;
    for (uint32_t i = 0; !rc && i < c->n_waits; i++)
        if (c->blockers[i].command && !gn_list_empty(&c->blockers[i].link))
            waits[n++] = c->blockers[i].event;
    /*
     * The commands that it follows in the driver are over; a failed one would have been reported.
     */
    for (uint32_t i = 0; i < c->n_producers; i++)
        if (c->producers[i]->end_error < 0)
            own.command.doomed = c->vgpu->api->wait_failed;
    if (done)
        gn_debug("vgpu=%08x %s of %llu groups is saved behind group %llu", c->vgpu->boot->id,
                 c->class->name, (unsigned long long)cut->n_groups, (unsigned long long)done);
    /* A part of it has failed, and no thread has removed the rest yet: the rest must not run. */
    if (cut && cut->error)
        own.command.doomed = cut->error;
    if (!rc) {
        /* A failure of the writer sticks. */
        (void)gn_stream_entry_begin(w, GN_STREAM_COMMANDS, number, gn_command_msg_of(c)->op,
                                    &c->queue->object->id, 1);
        (void)gn_stream_part(w, GN_PART_STATE, &state, sizeof state);
        (void)gn_stream_part(w, GN_PART_REQUEST, message, n_message);
        (void)gn_stream_part(w, GN_PART_WAITS, waits, n * sizeof *waits);
        (void)gn_stream_part(w, GN_PART_API, &own,
                             waits_for_data ? sizeof own : sizeof own.command);
        rc = gn_stream_entry_end(w);
    }
    free(message);
    free(waits);
    return rc;
}

int gn_commands_save(struct gn_vgpu *v, struct gn_stream_writer *w)
{
    uint64_t number = 0;
    int rc = 0;
    /* No lock: the gate is closed, and writing may take long. */
    for (uint32_t i = 0; i < v->n_devices; i++)
        gn_list_for_each(q, &v->devices[i].queues, struct gn_vqueue, link)
            gn_list_for_each(c, &q->pending, struct gn_command, link) rc =
                rc ? rc : save_command(w, c, ++number);
    return rc;
}

static bool is_restorable(const struct gn_vgpu *v, const struct gn_stream_entry *e,
                          const struct gn_stream_part *message)
{
    const struct gn_msg *msg = message->bytes;
    return e->kind < v->api->n_requests && v->api->requests[e->kind].submit &&
           message->n <= UINT32_MAX && message->n >= v->api->requests[e->kind].fixed_bytes &&
           message->n >= sizeof *msg + sizeof(struct gn_command_head) && msg->op == e->kind;
}

/* Continues a sliced command. Its times are in the clock of the machine that wrote them. */
static bool resume_sliced(struct gn_command *c, const struct gn_stream_command_state *state,
                          int64_t clock_ahead_ns)
{
    const struct gn_event_times times = {
        .submit_ns = state->submit_ns + (state->submit_ns ? (uint64_t)clock_ahead_ns : 0),
        .start_ns = state->start_ns + (state->start_ns ? (uint64_t)clock_ahead_ns : 0)};
    if (!state->done)
        return !state->submit_ns && !state->start_ns;
    if (c->n_waits || c->asked || state->submit_ns > state->start_ns)
        return false;
    return c->doomed || gn_parts_resume(c, state->done, &times);
}

int gn_command_restore(struct gn_vgpu *v, const struct gn_stream_entry *e, int64_t clock_ahead_ns)
{
    struct gn_stream_command_state state;
    struct gn_stream_part message, waits;
    struct gn_saved_waiting waiting = {.batch = 0};
    bool lie = false, good;
    const bool waits_for_data =
        !v->session->shares_memory && gn_stream_copy_part(e, GN_PART_API, &waiting, sizeof waiting);
    if (!gn_stream_copy_part(e, GN_PART_STATE, &state, sizeof state) ||
        !gn_stream_find_part(e, GN_PART_REQUEST, &message) ||
        !gn_stream_find_part(e, GN_PART_WAITS, &waits) || waits.n % 4 ||
        (!waits_for_data &&
         !gn_stream_copy_part(e, GN_PART_API, &waiting.command, sizeof waiting.command)) ||
        !is_restorable(v, e, &message))
        return -EBADMSG;
    const struct gn_saved_command own = waiting.command;
    const struct gn_command_head *head =
        (const void *)((const unsigned char *)message.bytes + sizeof(struct gn_msg));
    struct gn_vobject *queue = gn_object_get(v, head->queue, v->api->queue_kind, &lie);
    struct gn_command *c = queue ? gn_command_new(v, &v->api->requests[e->kind], queue,
                                                  message.bytes, (uint32_t)message.n)
                                 : NULL;
    if (!c) {
        gn_object_unref(queue);
        return queue ? -ENOMEM : -EBADMSG;
    }
    c->n_waits = (uint32_t)(waits.n / 4);
    c->blockers = calloc(c->n_waits ? c->n_waits : 1, sizeof *c->blockers);
    c->producers = calloc(c->n_waits ? c->n_waits : 1, sizeof(struct gn_command *));
    c->fault = !c->blockers || !c->producers || head->waits.segment != GN_SPAN_NULL || head->zero;
    if (!c->fault)
        c->class->admit(v, c);
    c->ordered = c->class->ordered && (own.flags & GN_SAVED_ORDERED);
    c->fence = c->class->fence;
    c->asked = own.flags & GN_SAVED_ASKED;
    c->doomed = own.doomed < 0 ? own.doomed : 0;
    c->fault |= state.zero || state.event != head->event;
    if (!c->fault)
        c->fault = waits_for_data ? state.done : !resume_sliced(c, &state, clock_ahead_ns);
    pthread_mutex_lock(&v->lock);
    struct gn_vevent *event = head->event == GN_NO_EVENT ? NULL : gn_vevent_at(v, head->event);
    good = !c->fault && (head->event == GN_NO_EVENT ||
                         (event && event->state == GN_EVENT_PENDING && !event->user));
    if (good) {
        if (event)
            event->begun = state.done != 0;
        gn_command_enter_waits_locked(c, waits.bytes);
        if (waits_for_data)
            gn_command_await_batch_locked(c, waiting.batch);
        gn_list_append(&c->queue->pending, &c->link);
        gn_count(&v->counters->pending, 1);
    }
    pthread_mutex_unlock(&v->lock);
    if (!good)
        gn_command_unref(c);
    return good ? 0 : -EBADMSG;
}
