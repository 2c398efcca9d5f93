/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake vGPU and driver for tests of commands in parts: see played_parts.h. Called on the test's
 * thread only.
 */
#include "vgpu/core/played_parts.h"
#include "base/descriptor.h"
#include "vgpu/core/fake_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

struct gn_played gn_played;
_Static_assert(GN_PLAYED_KIND_QUEUE == GN_FAKE_KIND_QUEUE, "gn_fake_release frees its queues");
static struct gn_ring ring; /* no thread sleeps on it */

static int32_t submit(struct gn_vgpu *v, struct gn_command *c, void *queue, uint32_t n_waits,
                      void *const *waits, void **event)
{
    (void)v, (void)queue;
    if (gn_played.refuse_at && gn_played.n_parts + 1 == gn_played.refuse_at)
        return -4;
    if (c->cut) {
        gn_played.parts[gn_played.n_parts].box = c->cut->now;
        gn_played.parts[gn_played.n_parts].n_waits = n_waits;
        gn_played.parts[gn_played.n_parts].after = n_waits ? waits[0] : NULL;
        *event = &gn_played.events[gn_played.n_parts];
    } else {
        *event = &gn_played.events[63 - gn_played.n_whole];
    }
    return 0;
}

static int32_t when_over(struct gn_vgpu *v, void *event, struct gn_command *c)
{
    (void)v, (void)event;
    gn_played.whole[gn_played.n_whole++] = c;
    return 0;
}

static int32_t when_part_over(struct gn_vgpu *v, void *event, struct gn_part *part)
{
    (void)v, (void)event;
    gn_played.parts[gn_played.n_parts++].part = part;
    return 0;
}

static void times(struct gn_vgpu *v, void *event, struct gn_event_times *ret)
{
    (void)v;
    ret->start_ns = 1000 + (uint64_t)((char *)event - gn_played.events) * 100;
    ret->end_ns = ret->start_ns + 90;
    ret->submit_ns = ret->start_ns - 10;
}

static bool is_over(struct gn_vgpu *v, void *event)
{
    (void)v, (void)event;
    return !gn_played.busy;
}

static bool look(struct gn_vgpu *v, struct gn_command *c, uint64_t least, struct gn_grid *ret_grid,
                 uint64_t *ret_pace_ps)
{
    (void)v, (void)c;
    *ret_grid = (struct gn_grid){{gn_played.groups, 1, 1}};
    *ret_pace_ps = gn_played.pace_ps;
    return gn_played.groups / 2 >= least;
}

static bool prepare(struct gn_vgpu *v, struct gn_command *c, uint32_t n, void **ret_how)
{
    (void)v, (void)c, (void)n, (void)ret_how;
    return gn_played.ready;
}

static bool resume(struct gn_vgpu *v, struct gn_command *c, struct gn_grid *ret_grid,
                   void **ret_how)
{
    (void)v, (void)c, (void)ret_how;
    *ret_grid = (struct gn_grid){{gn_played.groups, 1, 1}};
    return gn_played.ready;
}

static void took(struct gn_vgpu *v, struct gn_command *c, uint64_t n, uint64_t ns)
{
    (void)v, (void)c, (void)n, (void)ns;
    gn_played.n_took++;
    gn_played.pace_ps = gn_played.pace_ps ? gn_played.pace_ps : 1000000;
}

/* Indexed by op. */
const struct gn_request_class gn_played_requests[] = {
    {.name = "launch", .admit = gn_fake_admit, .submit = submit},
    {.name = "other", .admit = gn_fake_admit, .submit = submit}};
const struct gn_request_class gn_played_marker = {
    .name = "marker", .admit = gn_fake_admit, .submit = submit, .ordered = true};
static const struct gn_slicer slicer = {
    .class = &gn_played_launch, .look = look, .prepare = prepare, .resume = resume, .took = took};
static const struct gn_vgpu_api api = {.name = "fake",
                                       .when_over = when_over,
                                       .when_part_over = when_part_over,
                                       .release_event = gn_fake_release_event,
                                       .release = gn_fake_release,
                                       .requests = gn_played_requests,
                                       .n_requests = 2,
                                       .queue_kind = GN_PLAYED_KIND_QUEUE,
                                       .finish = gn_fake_leave_queue,
                                       .flush = gn_fake_leave_queue,
                                       .is_over = is_over,
                                       .times = times,
                                       .out_of_memory = -5,
                                       .wait_failed = -14};

void gn_played_start(bool in_order, uint64_t every)
{
    memset(&gn_played, 0, sizeof gn_played);
    gn_played.pace_ps = 1000000; /* 1 us a group */
    gn_played.groups = 20000;
    gn_played.ready = true;
    assert_int_equal(gn_gate_init(&gn_played.vgpu.gate), 0);
    gn_played.vgpu.ring.ring = &ring;
    gn_played.vgpu.api = &api;
    gn_played.vgpu.session = &gn_vgpu_session_shm;
    gn_played.vgpu.boot = &gn_played.boot;
    gn_played.vgpu.counters = &gn_played.counters;
    gn_played.vgpu.devices = &gn_played.device;
    gn_played.vgpu.n_devices = 1;
    gn_played.vgpu.slicer = &slicer;
    gn_played.vgpu.slice_groups = every == GN_PLAYED_NO_TURNS ? 0 : every;
    gn_played.vgpu.events = mmap(NULL, GN_EVENT_TABLE_BYTES, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(gn_played.vgpu.events != MAP_FAILED);
    pthread_mutex_init(&gn_played.vgpu.lock, NULL);
    pthread_mutex_init(&gn_played.vgpu.objects.lock, NULL);
    gn_played.device.vgpu = &gn_played.vgpu;
    gn_list_init(&gn_played.device.queues);
    pthread_mutex_init(&gn_played.device.role, NULL);
    gn_objects_own_thread();
    gn_played.queue_id = gn_id_make(7, 1);
    struct gn_vobject *queue = gn_object_put(&gn_played.vgpu, gn_played.queue_id,
                                             GN_PLAYED_KIND_QUEUE, &gn_played.events[0]);
    assert_non_null(queue);
    queue->detail = gn_queue_new(&gn_played.vgpu, queue, 0, in_order, true, false);
    assert_non_null(queue->detail);
    if (!every) {
        gn_played.device.turn.slot = &gn_played.slot;
        gn_played.device.turn.tell_fd = gn_fd_event(EFD_NONBLOCK);
        assert_true(gn_played.device.turn.tell_fd >= 0);
    }
}

void gn_played_stop(void)
{
    gn_object_remove(&gn_played.vgpu, gn_played.queue_id, GN_PLAYED_KIND_QUEUE);
    assert_true(gn_list_empty(&gn_played.device.queues));
    for (uint32_t i = 0; i < GN_EVENT_ENTRIES / GN_OBJECT_CHUNK; i++)
        free(gn_played.vgpu.event_chunks[i]);
    free(gn_played.vgpu.objects.generations[0]);
    free((void *)atomic_load(&gn_played.vgpu.objects.chunks[0]));
    munmap(gn_played.vgpu.events, GN_EVENT_TABLE_BYTES);
    if (gn_played.device.turn.slot)
        close(gn_played.device.turn.tell_fd);
    assert_int_equal(gn_played.vgpu.fault, 0);
}

void gn_played_enqueue(const struct gn_request_class *class, uint32_t event, uint32_t wait)
{
    struct {
        struct gn_msg msg;
        struct gn_command_head head;
        uint32_t wait;
    } m = {{sizeof m, class == &gn_played_other, 0, GN_NO_REPLY, 0},
           {gn_played.queue_id, {GN_SPAN_NULL, 0, 0}, event, 0},
           wait};
    if (wait != GN_NO_EVENT)
        m.head.waits = (struct gn_span){.segment = GN_SPAN_INLINE,
                                        .offset = offsetof(__typeof__(m), wait),
                                        .bytes = sizeof m.wait};
    if (event != GN_NO_EVENT)
        gn_event_arm(&gn_played.vgpu.events[event]);
    gn_command_admit(&gn_played.vgpu, class, (const void *)&m, sizeof m, 0);
}

void gn_played_grant(uint64_t slice_ns)
{
    assert_true(gn_grant_assign(&gn_played.slot, slice_ns, true));
    pthread_mutex_lock(&gn_played.device.role);
    gn_turn_began(&gn_played.device);
    pthread_mutex_unlock(&gn_played.device.role);
    gn_device_pump(&gn_played.device);
}

void gn_played_end(uint32_t i, int32_t status)
{
    gn_part_over(gn_played.parts[i].part, &gn_played.events[i], status);
    gn_device_pump(&gn_played.device);
}

enum gn_event_phase gn_played_phase(uint32_t event, int32_t *ret_error)
{
    return gn_event_phase(&gn_played.vgpu.events[event], ret_error);
}

void gn_played_check_once(uint64_t all)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < gn_played.n_parts; i++) {
        assert_int_equal(gn_played.parts[i].box.first[0], at);
        at += gn_played.parts[i].box.n[0];
    }
    assert_int_equal(at, all);
}
