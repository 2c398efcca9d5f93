/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_SESSION_SESSION_SHM_H
#define GN_GUEST_SESSION_SESSION_SHM_H

#include "guest/core/guest_core.h"

/* Entries of the shm table that other tables use, too (session_ops.h). */
int gn_session_shm_add_segment(struct gn_session *s, uint64_t bytes, struct gn_segment *ret,
                               uint32_t *ret_index, bool *ret_counted, struct gn_error *err);
pthread_mutex_t *gn_session_shm_link_lock(struct gn_session *s);
void gn_session_shm_link_changed(struct gn_session *s);

#endif
