/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session with a vGPU in a worker on this machine: messages go into the ring, answers and ends
 * of events come by shared memory, and the watcher reads the session's socket (core/session.c). Any
 * thread.
 */
#include "guest/session/session_ops.h"
#include "guest/session/session_shm.h"

#include "base/descriptor.h"

#include <errno.h>

int gn_session_shm_add_segment(struct gn_session *s, uint64_t bytes, struct gn_segment *ret,
                               uint32_t *ret_index, bool *ret_counted, struct gn_error *err)
{
    const int rc = gn_link_segment(s->link, bytes, &ret->fd, ret_index, err);
    /* Without room for the descriptor the segment is lost here, and gantryd has counted it. */
    *ret_counted = !rc || rc == -EMFILE;
    return rc;
}

pthread_mutex_t *gn_session_shm_link_lock(struct gn_session *s)
{
    return &s->link_lock;
}

/*
 * Wakes the watcher. A poll in progress does not know a descriptor by its number: it would go on to
 * wait for the connection that was left, and would not notice that the new one has hung up.
 */
void gn_session_shm_link_changed(struct gn_session *s)
{
    gn_fd_signal(atomic_load_explicit(&s->turn_fd, memory_order_relaxed));
}

const struct gn_session_ops gn_session_shm = {
    .name = "shm",
    .shares_memory = true,
    .prints_to_descriptors = true,
    .may_relay = true,
    .add_segment = gn_session_shm_add_segment,
    .link_lock = gn_session_shm_link_lock,
    .link_changed = gn_session_shm_link_changed,
};
