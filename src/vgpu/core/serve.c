/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vGPU's threads, but for the one that serves the program's messages (session.h). The control
 * thread reads the program's and gantryd's sockets: the loss of either ends the vGPU, and in a
 * worker the process, which frees everything. The helper thread serves requests marked slow. The
 * lease thread serves requests that need more memory than this vGPU has on lease, or may have in
 * the driver.
 */
#include "vgpu/core/evict.h"
#include "vgpu/core/include_files.h"
#include "vgpu/core/serve.h"

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/thread.h"
#include "shm/counters.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNREAD_BYTES                                                                               \
    (UINT64_C(32) << 20) /* notices of callbacks have 32 bytes each: room for a million */
#define SEGMENT_LOOK_NS   100000000u
#define SEGMENT_LOOKS     10  /* a second: the segment is on its way, or was never sent; */
#define SEGMENT_LOOKS_MAX 100 /* but on a busy machine a thread may run only after seconds */
#define SHED_TIMEOUT_MS   50  /* for the ring thread to come to its ring's end */
#define FOLDERS_TIMEOUT_S 10
#define MAX_FOLDERS       64u
/* Each list belongs to a waiting request, and a program has one for each reply slot. */
#define MAX_FOLDER_LISTS    (2 * GN_REPLY_SLOTS)
#define MAX_HELPED          GN_REPLY_SLOTS /* a reply slot waits for each slow request */
#define SEGMENT_LIMIT_BYTES GN_LINK_SEGMENT_LIMIT

struct folders {
    struct gn_list link;
    uint32_t number;
    uint32_t n;
    int fds[MAX_FOLDERS];
};

/*
 * gantryd sends a segment here before it tells the program: it is on its way to the control thread.
 */
static bool await_segment(struct gn_vgpu *v, uint32_t index)
{
    struct pollfd unheard = {.fd = v->boot->control_fd, .events = POLLIN};
    bool there;
    pthread_mutex_lock(&v->segments_lock);
    for (int n = 0;
         !(there = index < atomic_load_explicit(&v->n_segments, memory_order_acquire));) {
        const uint64_t until_ns = gn_now_ns() + SEGMENT_LOOK_NS;
        const struct timespec until = {(time_t)(until_ns / 1000000000u),
                                       (long)(until_ns % 1000000000u)};
        if (pthread_cond_clockwait(&v->segments_wake, &v->segments_lock, CLOCK_MONOTONIC, &until) ==
                ETIMEDOUT &&
            ++n >= SEGMENT_LOOKS && (n >= SEGMENT_LOOKS_MAX || poll(&unheard, 1, 0) <= 0))
            break;
    }
    pthread_mutex_unlock(&v->segments_lock);
    return there;
}

void *gn_vgpu_area(struct gn_vgpu *v, uint32_t segment, uint64_t offset, uint64_t bytes)
{
    uint32_t index = segment - 1;
    if (index >= GN_MAX_SEGMENTS)
        return NULL;
    if (index >= atomic_load_explicit(&v->n_segments, memory_order_acquire) &&
        !await_segment(v, index))
        return NULL;
    const struct gn_segment *s = &v->segments[index];
    return s->base && gn_range_ok(offset, bytes, s->bytes) ? (char *)s->base + offset : NULL;
}

void gn_vgpu_fault(struct gn_vgpu *v, const char *why, const char *what)
{
    if (!atomic_exchange_explicit(&v->fault, 1, memory_order_relaxed))
        gn_log(GN_LOG_ERROR, "vgpu=%08x ends: %s (%s)", v->boot->id, why, what);
    gn_lost_declare(&v->lost);
    gn_vgpu_end_waits(v);
    if (v->session->faulted)
        v->session->faulted(v);
}

void gn_vgpu_end_waits(struct gn_vgpu *v)
{
    gn_lease_end(&v->lease);
    gn_budget_end(&v->budget);
}

void gn_vgpu_hold(struct gn_vgpu *v)
{
    atomic_fetch_add_explicit(&v->n_holds, 1, memory_order_relaxed);
}

void gn_vgpu_unhold(struct gn_vgpu *v)
{
    if (atomic_fetch_sub_explicit(&v->n_holds, 1, memory_order_acq_rel) == 1 && v->session->unmap)
        v->session->unmap(v);
}

/* ---- the control thread */

static void take_segment(struct gn_vgpu *v, const struct gn_worker_event *e)
{
    struct gn_segment s;
    /* While a vGPU is loaded: the source had the segment already, and handed it over. */
    if (gn_vgpu_state(&v->life) == GN_VGPU_ARRIVING &&
        e->index < atomic_load_explicit(&v->n_segments, memory_order_relaxed)) {
        gn_fd_close(e->fd);
        return;
    }
    if (e->index >= GN_MAX_SEGMENTS ||
        e->index != atomic_load_explicit(&v->n_segments, memory_order_relaxed) ||
        gn_segment_adopt(e->fd, SEGMENT_LIMIT_BYTES, &s)) {
        gn_fd_close(e->fd);
        gn_vgpu_fault(v, "a data segment cannot be taken", "segment");
        return;
    }
    v->segments[e->index] = s;
    pthread_mutex_lock(&v->segments_lock);
    atomic_store_explicit(&v->n_segments, e->index + 1, memory_order_release);
    pthread_cond_broadcast(&v->segments_wake);
    pthread_mutex_unlock(&v->segments_lock);
}

static void take_folders(struct gn_vgpu *v, struct gn_frame_reader *reader,
                         const struct gn_frame *frame)
{
    struct folders *f = NULL;
    uint32_t n_lists = 0;
    pthread_mutex_lock(&v->helper_lock);
    gn_list_for_each(it, &v->folders, struct folders, link)
    {
        n_lists++;
        if (it->number == frame->seq)
            f = it;
    }
    if (!f && n_lists < MAX_FOLDER_LISTS && (f = calloc(1, sizeof *f))) {
        f->number = frame->seq;
        gn_list_append(&v->folders, &f->link);
    }
    for (int i = 0; f && i < frame->n_fds && f->n < MAX_FOLDERS; i++)
        f->fds[f->n++] = gn_frame_take_fd(reader, i);
    pthread_cond_broadcast(&v->helper_wake);
    pthread_mutex_unlock(&v->helper_lock);
    if (!f)
        gn_vgpu_fault(v, "descriptors for more requests than there can be", "session");
}

int gn_vgpu_set_folders(struct gn_vgpu *v, uint64_t number, uint32_t n, int *ret_fds)
{
    struct timespec until;
    struct folders *found = NULL;
    if (n > MAX_FOLDERS)
        return -EINVAL;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += FOLDERS_TIMEOUT_S;
    pthread_mutex_lock(&v->helper_lock);
    do {
        gn_list_for_each(f, &v->folders, struct folders, link)
        {
            if (f->number == (uint32_t)number && f->n >= n)
                found = f;
        }
    } while (!found &&
             !pthread_cond_clockwait(&v->helper_wake, &v->helper_lock, CLOCK_MONOTONIC, &until));
    if (found)
        gn_list_remove(&found->link);
    pthread_mutex_unlock(&v->helper_lock);
    if (!found)
        return -ETIMEDOUT;
    for (uint32_t i = 0; i < n; i++)
        ret_fds[i] = found->fds[i];
    for (uint32_t i = n; i < found->n; i++)
        gn_fd_close(found->fds[i]);
    free(found);
    return 0;
}

void gn_vgpu_control_init(struct gn_vgpu_control *channels, const struct gn_vgpu_boot *boot)
{
    gn_worker_control_init(&channels->control, boot->control_fd);
    gn_frame_reader_init(&channels->session, boot->session_fd);
    channels->session.keeps_frames = true;
    channels->paused = false;
}

static void take_no_more(struct gn_vgpu *v)
{
    gn_vgpu_fault(v, "its process has no descriptors left for those of the program and gantryd",
                  "ulimit -n");
}

/* False: the program is gone. */
static bool take_event(struct gn_vgpu *v, const struct gn_worker_event *e)
{
    switch (e->kind) {
    case GN_WORKER_EVENT_SEGMENT:
        take_segment(v, e);
        return true;
    case GN_WORKER_EVENT_LINK:
        v->session->connect(v, e->fd);
        return true;
    case GN_WORKER_EVENT_LEASED:
        gn_lease_answered(&v->lease, e->index, e->bytes);
        return true;
    case GN_WORKER_EVENT_RECALL:
        gn_lease_recalled(&v->lease, e->index);
        v->session->recall_memory(v);
        return true;
    case GN_WORKER_EVENT_RESIDE:
        if (v->boot->evicts)
            gn_vgpu_reside(v, e->index, e->bytes, e->keeps_copies);
        return v->boot->evicts;
    case GN_WORKER_EVENT_DISCARD:
        gn_vgpu_discard_copies(v);
        return v->boot->evicts;
    case GN_WORKER_EVENT_SAVE:
        v->migration->outbound(v, e->fd, &e->save);
        return true;
    case GN_WORKER_EVENT_RESUME:
        v->migration->resume(v);
        return true;
    case GN_WORKER_EVENT_GO:
        v->migration->resume_as_owner(v);
        return true;
    case GN_WORKER_EVENT_END:
        v->told_to_end = true;
        break;
    }
    return false;
}

int gn_vgpu_dispatch_control(struct gn_vgpu *v, struct gn_vgpu_control *channels)
{
    struct gn_worker_event e;
    struct gn_frame frame;
    int r;
    while ((r = gn_worker_control_next(&channels->control, &e)) == 1)
        if (!take_event(v, &e))
            return -EPIPE;
    if (r == -EMFILE)
        take_no_more(v);
    if (r < 0 || gn_lease_settle(&v->lease))
        return -EPIPE;
    while (!channels->paused && v->boot->session_fd >= 0) {
        r = gn_frame_read(&channels->session, &frame);
        if (r == -EMFILE)
            r = gn_frame_wait(&channels->session, 0, &frame);
        if (r != 1)
            break;
        if (frame.op == GN_SESSION_FOLDERS && !frame.flags && !frame.n_payload) {
            take_folders(v, &channels->session, &frame);
        } else if (frame.op != GN_SESSION_FILE || frame.flags ||
                   gn_vgpu_receive_file(&channels->session, &frame)) {
            r = -EPROTO;
            break;
        }
    }
    if (r == -EMFILE)
        take_no_more(v);
    else if (r < 0 && r != -EPIPE)
        gn_vgpu_fault(v, "what came over its socket is no frame that there is", "session");
    return r;
}

/* Sends more of the frames that the program has not read yet. True: some are left. */
static bool tell_on(struct gn_vgpu *v)
{
    pthread_mutex_lock(&v->frames_lock);
    /* The reader notices when the program is gone. */
    const bool left = !gn_frame_flush(&v->frames) && gn_frame_writer_pending(&v->frames);
    pthread_mutex_unlock(&v->frames_lock);
    return left;
}

void *gn_vgpu_control_thread(void *arg)
{
    struct gn_vgpu *v = arg;
    struct gn_vgpu_control channels;

    gn_objects_own_thread();
    gn_vgpu_control_init(&channels, v->boot);
    for (;;) {
        const bool left = tell_on(v);
        /* While the vGPU is being saved, the destination reads the program's frames. */
        const bool paused = gn_gate_paused(v, !left && gn_frame_reader_rests(&channels.session));
        struct pollfd p[3] = {{.fd = paused ? -1 : v->boot->session_fd,
                               .events = (short)(POLLIN | (left ? POLLOUT : 0))},
                              {.fd = v->boot->control_fd, .events = POLLIN},
                              {.fd = v->lease.wake_fd, .events = POLLIN}};
        const int look_ms = gn_vgpu_check_budget(v);
        int n = poll(p, 3, gn_lease_is_recalled(&v->lease) ? SHED_TIMEOUT_MS : look_ms);
        if (n == 0)
            gn_lease_shed(&v->lease);
        channels.paused = paused;
        if ((n < 0 && errno != EINTR) || gn_vgpu_dispatch_control(v, &channels) < 0 ||
            gn_vgpu_threads_return(v))
            break;
    }
    gn_debug("vgpu=%08x the program or gantryd is gone", v->boot->id);
    gn_frame_reader_fini(&channels.control.reader);
    gn_frame_reader_fini(&channels.session);
    v->session->end(v);
    return NULL;
}

/* ---- the helpers */

static void help_with(struct gn_vgpu *v, struct gn_helper *h, const struct gn_request *request);

void gn_vgpu_answer(struct gn_vgpu *v, struct gn_request *r)
{
    r->class->serve(v, r);
    while (r->absent && !r->fault) {
        r->refused = !gn_vgpu_await_whole(v);
        gn_request_again(r);
        r->class->serve(v, r);
    }
    if (r->defer && !r->fault)
        help_with(v, &v->lessee, r);
    else if (!r->fault)
        gn_request_answer(r);
    gn_request_fini(r);
}

/*
 * Waits until the request's memory is leased and everything may be in the driver, then serves the
 * request. Objects may be evicted during the wait, so the request is decoded afterwards.
 */
static void answer_lessee(struct gn_vgpu *v, struct gn_request *r)
{
    do {
        const uint64_t bytes = r->wants_bytes, pin_bytes = r->wants_pin_bytes;
        const bool charged = !(pin_bytes ? gn_lease_charge_pins(&v->lease, bytes, pin_bytes)
                                         : gn_lease_charge_ahead(&v->lease, bytes, r->pins));
        const bool entered = gn_budget_begin_use(&v->budget);
        gn_request_again(r);
        r->refused = !charged;
        if (charged) {
            gn_lease_move(&v->lease, bytes, GN_LEASE_EVICTED, GN_LEASE_PINNED);
            gn_lease_end_pins(&v->lease, r->pins ? bytes : 0);
            r->ahead_bytes = bytes;
        }
        if (entered) {
            r->class->serve(v, r);
            gn_budget_end_use(&v->budget);
        } else {
            r->result = v->api->out_of_memory;
        }
        gn_lease_end_pins(&v->lease, charged ? pin_bytes : 0);
    } while (r->defer && !r->fault);
    if (!r->fault)
        gn_request_answer(r);
    gn_request_fini(r);
}

static void rested(struct gn_vgpu *v)
{
    pthread_mutex_lock(&v->helper_lock);
    v->n_helping--;
    pthread_mutex_unlock(&v->helper_lock);
    gn_gate_notify(v);
}

static void *helper_thread(void *arg)
{
    struct gn_helper *h = arg;
    struct gn_vgpu *v = h->vgpu;
    const bool builds = h == &v->builder;
    if (builds)
        gn_objects_builder_thread();
    else
        gn_objects_own_thread();
    for (;;) {
        pthread_mutex_lock(&v->helper_lock);
        while (gn_list_empty(&h->queue) && gn_list_empty(&h->jobs) &&
               gn_vgpu_state(&v->life) != GN_VGPU_AWAY)
            pthread_cond_wait(&v->helper_wake, &v->helper_lock);
        if (gn_list_empty(&h->queue) && gn_list_empty(&h->jobs)) {
            h->started = false;
            pthread_cond_broadcast(&v->helper_wake);
            pthread_mutex_unlock(&v->helper_lock);
            return NULL;
        }
        if (gn_list_empty(&h->queue)) {
            struct gn_job *job = gn_list_first(&h->jobs, struct gn_job, link);
            gn_list_remove(&job->link);
            v->n_helping++;
            pthread_mutex_unlock(&v->helper_lock);
            job->run(job);
            rested(v);
            continue;
        }
        struct gn_request *r = gn_list_first(&h->queue, struct gn_request, link);
        gn_list_remove(&r->link);
        v->n_helped--;
        v->n_helping++;
        pthread_mutex_unlock(&v->helper_lock);
        GN_FAULT("worker-slow-request");
        if (builds)
            gn_vgpu_answer(v, r);
        else
            answer_lessee(v, r);
        free(r);
        if (builds)
            gn_objects_built(v);
        rested(v);
    }
}

void gn_helpers_end(struct gn_vgpu *v)
{
    pthread_mutex_lock(&v->helper_lock);
    pthread_cond_broadcast(&v->helper_wake);
    while (v->builder.started || v->lessee.started)
        pthread_cond_wait(&v->helper_wake, &v->helper_lock);
    pthread_mutex_unlock(&v->helper_lock);
}

int gn_vgpu_start_thread(const struct gn_vgpu *v, void *(*run)(void *), void *arg, pthread_t *ret)
{
    return gn_thread_start(v->session->thread_name, run, arg, ret);
}

static bool start_helper_locked(struct gn_helper *h)
{
    if (!h->started && gn_vgpu_state(&h->vgpu->life) != GN_VGPU_AWAY)
        h->started = !gn_vgpu_start_thread(h->vgpu, helper_thread, h, NULL);
    return h->started;
}

bool gn_vgpu_do(struct gn_vgpu *v, struct gn_job *job)
{
    struct gn_helper *h = &v->builder;
    pthread_mutex_lock(&v->helper_lock);
    const bool runs = start_helper_locked(h);
    if (runs) {
        gn_list_append(&h->jobs, &job->link);
        pthread_cond_broadcast(&v->helper_wake);
    }
    pthread_mutex_unlock(&v->helper_lock);
    return runs;
}

/* The serving thread only: no other thread defers. */
static void help_with(struct gn_vgpu *v, struct gn_helper *h, const struct gn_request *request)
{
    struct gn_request *r = malloc(sizeof *r);
    pthread_mutex_lock(&v->helper_lock);
    const bool started = r && start_helper_locked(h);
    pthread_mutex_unlock(&v->helper_lock);
    if (!started) {
        free(r);
        gn_vgpu_reply(v, ((const struct gn_msg *)gn_request_message(request))->reply,
                      v->api->out_of_memory, NULL, 0);
        return;
    }
    gn_request_init(r, v);
    r->class = request->class;
    r->off_ring = true;
    r->n_bytes = request->n_bytes;
    r->wants_bytes = request->wants_bytes;
    r->wants_pin_bytes = request->wants_pin_bytes;
    r->pins = request->pins;
    memcpy(r->bytes, request->bytes, request->n_bytes);
    pthread_mutex_lock(&v->helper_lock);
    bool room = v->n_helped < MAX_HELPED;
    if (room) {
        v->n_helped++;
        if (h == &v->builder)
            atomic_fetch_add_explicit(&v->n_building, 1, memory_order_seq_cst);
        gn_list_append(&h->queue, &r->link);
        pthread_cond_broadcast(&v->helper_wake);
    }
    pthread_mutex_unlock(&v->helper_lock);
    if (!room) {
        gn_vgpu_fault(v, "more requests at once than there are reply slots", r->class->name);
        free(r);
    }
}

static void help(struct gn_vgpu *v, const struct gn_request *request)
{
    help_with(v, &v->builder, request);
}

static void init_helper(struct gn_helper *h, struct gn_vgpu *v)
{
    h->vgpu = v;
    gn_list_init(&h->queue);
    gn_list_init(&h->jobs);
}

/* ---- the ring thread */

void gn_vgpu_handle(struct gn_vgpu *v, struct gn_request *r, uint32_t n_bytes, uint64_t batch)
{
    const struct gn_msg *msg = gn_request_message(r);
    const struct gn_request_class *class =
        n_bytes >= sizeof *msg && msg->op < v->api->n_requests ? &v->api->requests[msg->op] : NULL;
    if (!class || !class->name || msg->size != n_bytes || n_bytes < class->fixed_bytes ||
        (msg->flags & ~GN_MSG_ASK) || (!(msg->flags & GN_MSG_ASK) && msg->assumed) ||
        ((msg->flags & GN_MSG_ASK) && !class->submit)) {
        gn_vgpu_fault(v, "a message is malformed",
                      class && class->name ? class->name : "unknown op");
        return;
    }
    GN_FAULT("worker-message");
    gn_counter_add(&v->counters->calls, 1);
    if (msg->reply != GN_NO_REPLY)
        gn_counter_add(&v->counters->sync_calls, 1);
    r->class = class;
    r->n_bytes = n_bytes;
    if (class->submit)
        gn_command_admit(v, class, r->bytes, n_bytes, batch);
    else if (class->slow)
        v->help(v, r);
    else
        gn_vgpu_answer(v, r);
    if (v->evicts && !v->boot->evicts)
        gn_vgpu_evict_all(v);
}

int gn_vgpu_open(struct gn_vgpu *v, const struct gn_vgpu_boot *boot,
                 const struct gn_vgpu_session_ops *session, const struct gn_vgpu_api *api)
{
    struct gn_waiter waiter = {gn_spin_policy_default(), &v->lost};
    v->boot = boot;
    v->api = api;
    v->session = session;
    v->help = help;
    v->counters = boot->counters.base;
    v->events = boot->events.base;
    v->sent_to = (struct gn_tcp)GN_TCP_NONE;
    v->save_fd = -1;
    atomic_init(&v->program_cpu, GN_CPU_UNKNOWN);
    atomic_init(&v->n_holds, 1);
    CPU_ZERO(&v->processors);
    if (sched_getaffinity(0, sizeof v->processors, &v->processors))
        memset(&v->processors, -1, sizeof v->processors);
    v->segments[0] = boot->data;
    for (uint32_t i = 0; i < boot->n_more; i++)
        v->segments[i + 1] = boot->more[i];
    atomic_init(&v->n_segments, boot->n_more + 1);
    gn_lost_init(&v->lost);
    if (gn_gate_init(&v->gate))
        return -ENOMEM;
    pthread_mutex_init(&v->serving, NULL);
    pthread_mutex_init(&v->lock, NULL);
    pthread_mutex_init(&v->writes_lock, NULL);
    pthread_mutex_init(&v->objects.lock, NULL);
    pthread_mutex_init(&v->segments_lock, NULL);
    pthread_cond_init(&v->segments_wake, NULL);
    pthread_mutex_init(&v->frames_lock, NULL);
    gn_frame_writer_init(&v->frames, boot->session_fd, UNREAD_BYTES);
    pthread_mutex_init(&v->helper_lock, NULL);
    pthread_cond_init(&v->helper_wake, NULL);
    init_helper(&v->builder, v);
    init_helper(&v->lessee, v);
    gn_list_init(&v->folders);
    gn_list_init(&v->batch_waiters);
    gn_objects_own_thread();
    if (gn_lease_init(&v->lease, boot->control_fd, v->counters)) {
        gn_log(GN_LOG_ERROR, "vgpu=%08x cannot account for its memory: too many descriptors",
               boot->id);
        return 1;
    }
    v->lease.patient = boot->placed;
    v->lease.asks_pins = boot->placed && boot->evicts;
    gn_budget_init(&v->budget, &v->lease, &gn_evict_ops, v);
    if (boot->events.bytes < GN_EVENT_TABLE_BYTES ||
        gn_session_map(boot->ring.base, boot->ring.bytes, &v->view) ||
        gn_ring_consumer_init(&v->ring, v->view.requests, GN_SESSION_REQUEST_SLOTS, boot->ring_at,
                              waiter)) {
        gn_log(GN_LOG_ERROR, "vgpu=%08x the shared segments are not of this version", boot->id);
        return -EPROTO;
    }
    if (session->start && session->start(v)) {
        gn_log(GN_LOG_ERROR, "vgpu=%08x cannot start its link: no memory or too many descriptors",
               boot->id);
        return -ENOMEM;
    }
    if (api->start(v)) {
        gn_log(GN_LOG_ERROR, "vgpu=%08x cannot start: no memory", boot->id);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < v->n_devices; i++)
        gn_device_init(v, i);
    return 0;
}
