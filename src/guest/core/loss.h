/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_LOSS_H
#define GN_GUEST_LOSS_H

#include "guest/core/guest_core.h"

/*
 * The loss of a vGPU, and another one for the program. The session that is lost stays, for the
 * objects that the program has of it; platforms and root devices come to stand for a new one. Any
 * thread.
 */

/* Declares the loss of the vGPU, and wakes all threads that wait for it. Any thread; once it
 * counts. */
void gn_session_declare_lost(struct gn_session *s);
/* The program has closed its descriptors: the reason of the loss to come, said once. */
void gn_session_note_cut_off(struct gn_session *s);
/* Of a session that is lost: its segments stay mapped, and are handed to no worker any more. */
void gn_area_close(struct gn_area *a);
/*
 * Of a session that is lost: once the program has no objects of it, the pages of its data area are
 * freed. They stay mapped, and read as zeros: threads may still be about to see the loss.
 */
void gn_area_discard_unused(struct gn_session *s);
/* Of a session that is lost: closes its descriptors. Threads may still be about to see the loss. */
void gn_session_close_lost(struct gn_session *s);
/* The program has closed its descriptors: notes that and declares the loss. Any thread. */
void gn_session_cut_off(struct gn_session *s);
/*
 * Cuts the session off if the program has closed its descriptors. For threads that wait, since the
 * watcher may sleep on.
 */
void gn_session_look(struct gn_session *s);
/* The same for each of the process. */
void gn_sessions_look(void);

/* ---- roots: platforms and root devices, which a program has for as long as it lives */

/*
 * A platform or a root device, which is never counted nor freed. It has no id: gn_object_rebind
 * gives it one.
 */
struct gn_object *gn_object_new_root(struct gn_session *s, uint16_t kind);
/*
 * The next id, for a platform or root device that gets it with gn_object_rebind. 0: there is no
 * memory.
 */
uint64_t gn_session_reserve_id(struct gn_session *s);
/* A platform or root device stands for a new session from now on, by its id there. */
void gn_object_rebind(struct gn_object *o, struct gn_session *s, uint64_t id);
/* Has the program objects of it, apart from platforms and root devices? */
bool gn_session_is_used(struct gn_session *s);
/*
 * As gn_object_of, for calls that programs begin with: a root whose vGPU is lost comes to stand for
 * a new one if there is any.
 */
void *gn_object_anew(const void *handle, uint16_t kind);

#endif
