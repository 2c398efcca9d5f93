/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits until the driver has completed the commands that it has at this moment, while the program
 * continues. Run by the saving thread; the driver's threads call back. It never stops the
 * submission of new commands.
 */
#include "opencl_host.h"
#include "vgpu/migrate/save.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

struct draining {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* lock; n_refs: one for each marker that may call back, and the caller's */
    uint32_t n_left, n_refs;
};

struct marker {
    struct draining *draining;
    /* settling->lock */
    uint32_t n_refs; /* the callback's, and the caller's until the status has been read */
    bool over;
};

static void unref_draining_locked(struct draining *s)
{
    const bool last = !--s->n_refs;
    pthread_mutex_unlock(&s->lock);
    if (!last)
        return;
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void complete_marker_locked(struct marker *m)
{
    if (!m->over) {
        m->over = true;
        m->draining->n_left--;
        pthread_cond_broadcast(&m->draining->wake);
    }
}

static void unref_marker_locked(struct marker *m)
{
    if (!--m->n_refs)
        free(m);
}

static void CL_CALLBACK marker_over(cl_event event, cl_int status, void *user_data)
{
    struct marker *m = user_data;
    struct draining *s = m->draining;
    (void)event;
    (void)status;
    pthread_mutex_lock(&s->lock);
    complete_marker_locked(m);
    unref_marker_locked(m);
    unref_draining_locked(s);
}

/* Puts a marker behind all commands of the queue. */
static int add_marker(struct gn_vgpu *v, struct draining *s, cl_command_queue queue)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    struct marker *m = calloc(1, sizeof *m);
    cl_event event = NULL;
    cl_int status = CL_QUEUED;
    if (!m)
        return -ENOMEM;
    *m = (struct marker){.draining = s, .n_refs = 2};
    if (cl->clEnqueueMarkerWithWaitList ? cl->clEnqueueMarkerWithWaitList(queue, 0, NULL, &event)
                                        : cl->clEnqueueMarker(queue, &event)) {
        free(m);
        return -EIO;
    }
    pthread_mutex_lock(&s->lock);
    s->n_left++;
    s->n_refs++;
    pthread_mutex_unlock(&s->lock);
    const bool reported = !cl->clSetEventCallback(event, CL_COMPLETE, marker_over, m);
    cl->clFlush(queue);
    /* Some drivers do not call back for a completed event. */
    const bool over = !cl->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status,
                                          &status, NULL) &&
                      status <= CL_COMPLETE;
    cl->clReleaseEvent(event);
    pthread_mutex_lock(&s->lock);
    if (over)
        complete_marker_locked(m);
    if (!reported)
        m->n_refs--, s->n_refs--; /* only the caller's reference is left of each */
    const bool waits = reported || over;
    unref_marker_locked(m);
    pthread_mutex_unlock(&s->lock);
    return waits ? 0 : -EIO;
}

/*
 * Acquires the device's role first: a driver that runs commands in its callers (PoCL's `basic`)
 * deadlocks when two threads submit at once.
 */
static int drain_queue(struct gn_vgpu *v, struct draining *s, const struct gn_vobject *queue,
                       const struct timespec *until)
{
    struct gn_vdevice *d = queue->detail ? ((const struct gn_vqueue *)queue->detail)->device : NULL;
    if (!d)
        return 0;
    int rc = gn_device_acquire(d, until);
    if (rc)
        return rc;
    rc = add_marker(v, s, queue->driver);
    gn_device_release(d);
    return rc;
}

int gn_opencl_drain_queues(struct gn_vgpu *v, struct gn_vobject *const *objects, uint32_t n,
                           uint64_t timeout_ns, struct gn_error *err)
{
    const uint64_t at_ns = gn_now_ns() + timeout_ns;
    const struct timespec until = {(time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u)};
    struct draining *s = calloc(1, sizeof *s);
    pthread_condattr_t attr;
    int rc = 0;
    if (!s)
        return gn_fail(err, ENOMEM, NULL, "no memory left to wait for the device");
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &attr);
    pthread_condattr_destroy(&attr);
    s->n_refs = 1;
    for (uint32_t i = 0; i < n && !rc; i++)
        if (objects[i]->kind == GN_KIND_QUEUE)
            rc = drain_queue(v, s, objects[i], &until);
    pthread_mutex_lock(&s->lock);
    while (!rc && s->n_left)
        rc = -pthread_cond_timedwait(&s->wake, &s->lock, &until);
    unref_draining_locked(s);
    if (rc == -ETIMEDOUT)
        return gn_fail(err, ETIMEDOUT, "allow more time, or try again later",
                       "the device's work took longer than the drain timeout");
    return rc ? gn_fail(err, -rc, NULL, "cannot wait for the device") : 0;
}
