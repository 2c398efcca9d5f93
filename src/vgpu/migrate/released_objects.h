/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_RELEASED_OBJECTS_H
#define GN_VGPU_MIGRATE_RELEASED_OBJECTS_H

#include <stdint.h>

struct gn_vgpu;
struct gn_vobject;

/*
 * Objects that the program has released and that pending commands still need: for example a kernel
 * released after its launch. They have no handle any more, and another object may have their index.
 * They migrate with the commands, and end with them. The same holds for the objects that such an
 * object holds (gn_object_hold): the buffer of a sub-buffer, the objects of recorded commands.
 */

/*
 * Gathers each of these objects once, referenced until gn_objects_put. Also called before the stop:
 * an object must be recreated before the object that has its index now. Returns 0 or -ENOMEM. Any
 * thread of the vGPU's own, at any time.
 */
int gn_released_objects_gather(struct gn_vgpu *v, struct gn_vobject ***ret, uint32_t *ret_n);
/*
 * The vGPU has left: this process no longer reports the end of these objects. Behind a closed gate.
 */
void gn_released_objects_leave(struct gn_vgpu *v);

#endif
