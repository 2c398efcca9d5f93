/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_OPENCL_EVENT_CALLBACKS_H
#define GN_VGPU_OPENCL_EVENT_CALLBACKS_H

#include "opencl_host_rt.h"

/*
 * A command's end is told once. Some drivers never call back for an event that was over when they
 * were asked to: whether this one does is found out at the first context, and of one that is not
 * known to, each event is looked at once more.
 */

/* In `made`: a context is there. */
void gn_event_callbacks_context_made(struct gn_vobject *context);
/* Calls told(event, status, arg) once, perhaps before this returns; then 0. Else the driver's
 * error, and never. Any thread. */
int32_t gn_event_callbacks_ask(struct gn_vgpu *v, cl_event event,
                               void(CL_CALLBACK *told)(cl_event, cl_int, void *), void *arg);

#endif
