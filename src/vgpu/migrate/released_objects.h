/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_RELEASED_OBJECTS_H
#define GN_VGPU_MIGRATE_RELEASED_OBJECTS_H

#include <stdint.h>

struct gn_vgpu;
struct gn_vobject;

/*
 * Objects that the program has let go of, and that commands which are pending still need: a kernel
 * that was released behind its launch. No handle stands for them any more, and another object may
 * have their index. They move with the commands, and end with them. So do the objects that such an
 * object holds (gn_object_hold): the buffer of a part, the objects of recorded commands.
 */

/* Each once, held until gn_objects_put. Ahead of the stop, too: what is made anew must come before
 * what has its index now. 0 or -ENOMEM. Any thread of the vGPU's own, at any time. */
int gn_released_objects_gather(struct gn_vgpu *v, struct gn_vobject ***ret, uint32_t *ret_n);
/* The vGPU lives elsewhere: what becomes of them is no longer told from here. Behind a closed gate.
 */
void gn_released_objects_leave(struct gn_vgpu *v);

#endif
