/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_LOSS_H
#define GN_GUEST_LOSS_H

#include "guest/core/guest_core.h"

/*
 * The loss of a vGPU, and a new vGPU for the program. The lost session stays, for the objects that
 * the program still has; platforms and root devices are bound to a new session. Any thread.
 */

/*
 * Declares the vGPU lost and wakes all threads that wait for it. Any thread; only the first call
 * has an effect.
 */
void gn_session_declare_lost(struct gn_session *s);
/*
 * Records, and reports once, that the program has closed the session's descriptors, as the reason
 * of the loss that follows.
 */
void gn_session_note_cut_off(struct gn_session *s);
/* For a lost session: its segments stay mapped, and are no longer handed to a worker. */
void gn_area_close(struct gn_area *a);
/*
 * For a lost session: frees the pages of its data area once the program has no objects left. They
 * stay mapped and read as zeros, since threads may not have noticed the loss yet.
 */
void gn_area_discard_unused(struct gn_session *s);
/*
 * For a lost session: closes its descriptors. Its memory stays, since threads may not have noticed
 * the loss yet.
 */
void gn_session_close_lost(struct gn_session *s);
/*
 * The program has closed the session's descriptors: records that and declares the loss. Any thread.
 */
void gn_session_cut_off(struct gn_session *s);
/*
 * Calls gn_session_cut_off if the program has closed the session's descriptors. For waiting
 * threads, because the watcher may not be woken by that.
 */
void gn_session_look(struct gn_session *s);
/* The same for all sessions of the process. */
void gn_sessions_look(void);

/* ---- roots: platforms and root devices, which exist for the life of the program */

/*
 * Creates a platform or root device. It is not reference-counted and never freed. gn_object_rebind
 * gives it an id.
 */
struct gn_object *gn_object_new_root(struct gn_session *s, uint16_t kind);
/* Reserves the next id, for a root that gn_object_rebind binds to it. 0: no memory. */
uint64_t gn_session_reserve_id(struct gn_session *s);
/* Binds a root to a new session, in which it has this id. */
void gn_object_rebind(struct gn_object *o, struct gn_session *s, uint64_t id);
/* Whether the program has objects of the session other than roots. */
bool gn_session_is_used(struct gn_session *s);
/*
 * As gn_object_of, for the calls that programs start with: a root of a lost vGPU is bound to a new
 * session if one can be opened.
 */
void *gn_object_anew(const void *handle, uint16_t kind);

#endif
