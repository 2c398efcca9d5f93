/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_OPENCL_EVENT_CALLBACKS_H
#define GN_VGPU_OPENCL_EVENT_CALLBACKS_H

#include "opencl_host_rt.h"

/*
 * Reports a command's end exactly once. Some drivers do not call back for an event that was
 * complete when the callback was set. The first context tests whether this driver does. If it is
 * not known to, each event's status is read once more after the callback was set.
 */

/* Called by `made` for a new context. */
void gn_event_callbacks_context_made(struct gn_vobject *context);
/*
 * Calls told(event, status, arg) once, possibly before this function returns, and returns 0. Else
 * returns the driver's error and never calls it. Any thread.
 */
int32_t gn_event_callbacks_ask(struct gn_vgpu *v, cl_event event,
                               void(CL_CALLBACK *reported)(cl_event, cl_int, void *), void *arg);

#endif
