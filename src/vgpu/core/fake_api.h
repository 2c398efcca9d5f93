/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_FAKE_API_H
#define GN_VGPU_FAKE_API_H

#include "vgpu/core/vgpu_core.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * For tests: an API whose driver keeps each command until the test completes it. A test names the
 * functions that it wants in its own struct gn_vgpu_api, most of them by GN_FAKE_API, and adds what
 * it is about. All state is the including file's own; any thread.
 */
#define GN_FAKE_KIND_QUEUE 3u
#define GN_FAKE_MAX_GIVEN  16u

struct gn_fake {
    pthread_mutex_t lock;
    struct gn_command *given[GN_FAKE_MAX_GIVEN]; /* that the driver has, in their order */
    uint32_t n_given;
    bool busy;                /* the driver's last command has not ended */
    void (*quiet)(void *arg); /* what is to be called when it has */
    void *quiet_arg;
    int event; /* its address is every event of the driver's */
};
__attribute__((unused)) static struct gn_fake gn_fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline void gn_fake_admit(struct gn_vgpu *v, struct gn_command *c)
{
    (void)v, (void)c;
}

static inline int32_t gn_fake_submit(struct gn_vgpu *v, struct gn_command *c, void *queue,
                                     uint32_t n_waits, void *const *waits, void **event)
{
    (void)v, (void)c, (void)queue, (void)n_waits, (void)waits;
    *event = &gn_fake.event;
    return 0;
}

static inline int32_t gn_fake_when_over(struct gn_vgpu *v, void *event, struct gn_command *c)
{
    (void)v, (void)event;
    pthread_mutex_lock(&gn_fake.lock);
    gn_fake.given[gn_fake.n_given++] = c;
    pthread_mutex_unlock(&gn_fake.lock);
    return 0;
}

/* Completes what the driver has, the latest first. */
static inline void gn_fake_end_all(void)
{
    pthread_mutex_lock(&gn_fake.lock);
    while (gn_fake.n_given) {
        struct gn_command *c = gn_fake.given[--gn_fake.n_given];
        pthread_mutex_unlock(&gn_fake.lock);
        gn_command_over(c, 0);
        pthread_mutex_lock(&gn_fake.lock);
    }
    pthread_mutex_unlock(&gn_fake.lock);
}

static inline void gn_fake_release_event(struct gn_vgpu *v, void *event)
{
    (void)v, (void)event;
}

/* For flush and finish: nothing to do. */
static inline void gn_fake_leave_queue(struct gn_vgpu *v, void *queue)
{
    (void)v, (void)queue;
}

static inline bool gn_fake_is_over(struct gn_vgpu *v, void *event)
{
    (void)v, (void)event;
    return !gn_fake.busy;
}

static inline int32_t gn_fake_when_quiet(struct gn_vgpu *v, void *event, void (*call)(void *arg),
                                         void *arg)
{
    (void)v, (void)event;
    gn_fake.quiet = call;
    gn_fake.quiet_arg = arg;
    return 0;
}

static inline void gn_fake_release(struct gn_vobject *o)
{
    if (o->kind == GN_FAKE_KIND_QUEUE)
        gn_queue_free(o->detail);
}

#define GN_FAKE_API                                                                                \
    .name = "fake", .queue_kind = GN_FAKE_KIND_QUEUE, .when_over = gn_fake_when_over,              \
    .release_event = gn_fake_release_event, .release = gn_fake_release,                            \
    .is_over = gn_fake_is_over, .when_quiet = gn_fake_when_quiet

#endif
