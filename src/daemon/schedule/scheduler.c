/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler's thread (scheduler.h): waits for eventfds of workers and for its timer, reads the
 * workers' grant pages, and passes the devices on as src/sched decides. The functions below
 * "gantryd's thread" are called by gantryd's main thread; every access is under the lock, which is
 * never held while waiting. The scheduler never believes a page: a worker can only give up its own
 * grant.
 */
#include "daemon/schedule/scheduler.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/schedule/placement_internal.h"
#include "daemon/schedule/scheduler_internal.h"

#define EVENTS_A_TURN 64
#define WAKE_UP       UINT64_MAX /* epoll data of wake_fd and of the timer */
#define TIMER         (UINT64_MAX - 1)
/* A turn needs two or three notifications, and the shortest turns take tens of microseconds. */
#define TELLS_MOST      512u
#define TELLS_WINDOW_NS UINT64_C(10000000)

static struct gn_share *share_of(struct gn_sched_entity *e)
{
    return gn_container_of(e, struct gn_share, entity);
}

/* ---- called with the lock held */

/* Records that the holder is preempted since `now`; 0: no vGPU waits for it. */
static void set_preempted(struct gn_share *sh, uint64_t now)
{
    sh->preempted_ns = now;
    sh->look_ns = now + GN_SCHEDULER_LOOK_NS;
    sh->news = GN_SHARE_NO_NEWS;
}

/* The share no longer holds the device. */
static void clear_grant(struct gn_share *sh)
{
    set_preempted(sh, 0);
    sh->granted_ns = sh->owed_ns = 0;
}

static void end_turn(struct gn_scheduler *s, struct device *d, struct gn_share *sh, bool more_work,
                     uint64_t now)
{
    const uint64_t used_ns = gn_share_used(sh, now);
    gn_sched_yield(&d->sched, used_ns, more_work, now);
    gn_placed_turn_over(s, sh, used_ns, more_work, now);
    gn_scheduler_note(d, sh, GN_TRACE_BACK, used_ns, more_work, now);
    clear_grant(sh);
}

/* Is the holder to give the device back at the end of its slice? */
static bool is_preempted(const struct device *d, const struct gn_share *sh)
{
    return gn_sched_contended(&d->sched) || sh->entity.tenant->cap || gn_placing_preempts(d, sh);
}

/* While a vGPU holds the device: preempts it if others wait, or withdraws the preemption. Otherwise
 * grants the device to the next one. */
static void dispatch(struct gn_scheduler *s, struct device *d, uint64_t now)
{
    struct gn_sched *of = &d->sched;
    for (;;) {
        uint64_t slice_ns;
        if (of->running) {
            struct gn_share *sh = share_of(of->running);
            const bool preempts = is_preempted(d, sh);
            if (preempts && !sh->preempted_ns) {
                set_preempted(sh, now);
                gn_scheduler_note(d, sh, GN_TRACE_PREEMPT, 0, 0, now);
                if (!gn_grant_preempt(sh->slot))
                    return;
                /* It was parked: the preemption took the grant back at once, without delaying the
                 * worker. */
                end_turn(s, d, sh, false, now);
                continue;
            }
            if (!preempts && sh->preempted_ns) {
                /* The waiting vGPU has gone. The time that it waited is charged when the holder
                 * yields. */
                gn_grant_clear(sh->slot);
                gn_scheduler_note(d, sh, GN_TRACE_CLEAR, 0, 0, now);
                sh->owed_ns = gn_share_used(sh, now);
                set_preempted(sh, 0);
            }
            return;
        }
        struct gn_sched_entity *e = gn_sched_pick(of, now, &slice_ns, &d->retry_ns);
        if (!e)
            return;
        struct gn_share *sh = share_of(e);
        const bool preempts = is_preempted(d, sh);
        sh->granted_ns = now;
        set_preempted(sh, preempts ? now : 0);
        gn_scheduler_note(d, sh, GN_TRACE_GRANT, slice_ns, preempts, now);
        gn_grant_set_keep(sh->slot, gn_sched_keep_ns(of, now));
        if (gn_grant_assign(sh->slot, slice_ns, preempts)) {
            gn_placed_turn(sh, now);
            return;
        }
        /* The worker stopped wanting the device before it could see the grant, or pretends to. */
        gn_sched_miss(of, now);
        gn_placed_ready(sh, false, now);
        gn_scheduler_note(d, sh, GN_TRACE_BACK, 0, false, now);
        clear_grant(sh);
    }
}

/* Reads the grant page of a worker that has sent a notification. */
static void read_grants(struct gn_scheduler *s, struct gn_shares *of, uint64_t now)
{
    for (uint32_t i = 0; i < of->n; i++) {
        struct gn_share *sh = &of->all[i];
        struct device *d = &s->devices[sh->device];
        const enum gn_grant_state state = gn_grant_look(sh->slot);
        if (d->sched.running == &sh->entity) {
            if (state == GN_GRANT_NONE || state == GN_GRANT_WANTED)
                end_turn(s, d, sh, state == GN_GRANT_WANTED, now);
        } else if (state == GN_GRANT_WANTED) {
            if (!sh->entity.node.ready)
                gn_scheduler_note(d, sh, GN_TRACE_WANT, 0, 0, now);
            gn_sched_wake(&d->sched, &sh->entity, now);
            gn_placed_ready(sh, true, now);
        } else {
            if (sh->entity.node.ready)
                gn_scheduler_note(d, sh, GN_TRACE_LEAVE, 0, 0, now);
            gn_sched_sleep(&d->sched, &sh->entity, now);
            gn_placed_ready(sh, false, now);
        }
        dispatch(s, d, now);
    }
}

/* Edge-triggered, since this thread never reads the eventfd: each notification is an edge. One that
 * arrived while the eventfd was disabled is reported as soon as it is enabled. */
static void set_listening(struct gn_scheduler *s, struct gn_shares *of, bool on)
{
    struct epoll_event e = {.events = on ? EPOLLIN | EPOLLET : 0, .data.u64 = of->index};
    (void)epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, of->tell_fd, &e);
    of->paused = !on;
    if (on)
        gn_list_remove(&of->paused_link);
    else
        gn_list_append(&s->paused, &of->paused_link);
}

static void handle_notification(struct gn_scheduler *s, struct gn_shares *of, uint64_t now)
{
    if (now - of->window_ns >= TELLS_WINDOW_NS) {
        of->window_ns = now;
        of->n_tells = 0;
    }
    read_grants(s, of, now);
    if (++of->n_tells >= TELLS_MOST && !of->paused) {
        /* the window starts now, so that the list stays in the order in which windows end */
        of->window_ns = now;
        set_listening(s, of, false);
    }
}

static uint64_t first_window_ends(const struct gn_scheduler *s)
{
    return gn_list_empty(&s->paused)
               ? 0
               : gn_list_first(&s->paused, struct gn_shares, paused_link)->window_ns +
                     TELLS_WINDOW_NS;
}

/* When to report that a preempted holder is late or over the limit; 0: never. */
static uint64_t next_news_ns(const struct gn_scheduler *s, const struct gn_share *sh)
{
    if (!sh || !sh->preempted_ns || sh->news >= GN_SHARE_OVER_LIMIT)
        return 0;
    const uint64_t limit_ns = s->limit_ns ? sh->preempted_ns + s->limit_ns : UINT64_MAX;
    return limit_ns < sh->look_ns ? limit_ns : sh->look_ns;
}

static void check_late(struct gn_scheduler *s, const struct device *d, uint64_t now)
{
    struct gn_share *sh = d->sched.running ? share_of(d->sched.running) : NULL;
    const uint64_t at_ns = next_news_ns(s, sh), one = 1;
    if (!at_ns || now < at_ns)
        return;
    sh->news =
        s->limit_ns && now - sh->preempted_ns >= s->limit_ns ? GN_SHARE_OVER_LIMIT : GN_SHARE_LATE;
    sh->look_ns = now + GN_SCHEDULER_LOOK_NS;
    (void)!write(s->late_fd, &one, sizeof one);
}

static void set_timer(struct gn_scheduler *s)
{
    uint64_t first = first_window_ends(s);
    for (uint32_t i = 0; i < s->n_devices; i++) {
        const struct device *d = &s->devices[i];
        const struct gn_share *sh = d->sched.running ? share_of(d->sched.running) : NULL;
        if (!sh && d->retry_ns && (!first || d->retry_ns < first))
            first = d->retry_ns;
        if (d->placing && d->placing->again_ns && (!first || d->placing->again_ns < first))
            first = d->placing->again_ns;
        const uint64_t news_ns = next_news_ns(s, sh);
        if (news_ns && (!first || news_ns < first))
            first = news_ns;
    }
    const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(first / 1000000000u),
                                                 .tv_nsec = (long)(first % 1000000000u)}};
    (void)timerfd_settime(s->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void run_round(struct gn_scheduler *s, const struct epoll_event *events, int n)
{
    const uint64_t now = gn_now_ns();
    uint64_t counter;
    gn_scheduler_count_locked(s, now);
    for (int i = 0; i < n; i++) {
        const uint64_t word = events[i].data.u64;
        if (word == WAKE_UP || word == TIMER) {
            (void)!read(word == TIMER ? s->timer_fd : s->wake_fd, &counter, sizeof counter);
            continue;
        }
        if (word < s->n_table && s->table[word])
            handle_notification(s, s->table[word], now);
    }
    while (first_window_ends(s) && first_window_ends(s) <= now)
        set_listening(s, gn_list_first(&s->paused, struct gn_shares, paused_link), true);
    for (uint32_t i = 0; i < s->n_devices; i++) {
        if (s->devices[i].placing)
            gn_placing_decide(s, s->devices[i].placing, now);
        dispatch(s, &s->devices[i], now);
        check_late(s, &s->devices[i], now);
    }
    set_timer(s);
}

/* ---- the thread */

static void *run(void *arg)
{
    struct gn_scheduler *s = arg;
    struct epoll_event events[EVENTS_A_TURN];
    for (;;) {
        int n = epoll_wait(s->epoll_fd, events, EVENTS_A_TURN, -1);
        pthread_mutex_lock(&s->lock);
        if (s->stop)
            break;
        run_round(s, events, n);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void gn_scheduler_wake(struct gn_scheduler *s)
{
    const uint64_t one = 1;
    (void)!write(s->wake_fd, &one, sizeof one);
}

static int watch(struct gn_scheduler *s, int fd, uint32_t events, uint64_t word)
{
    struct epoll_event e = {.events = events, .data.u64 = word};
    return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static void close_all(struct gn_scheduler *s)
{
    close(s->epoll_fd);
    close(s->timer_fd);
    close(s->wake_fd);
    gn_placement_stop(s);
    pthread_mutex_destroy(&s->lock);
    free(s->table);
    free(s);
}

int gn_scheduler_start(struct gn_scheduler **ret, const struct gn_sched_policy *policy,
                       const uint64_t *slices_ns, uint32_t n_devices, uint64_t limit_ns,
                       int late_fd, struct gn_error *err)
{
    struct gn_scheduler *s = calloc(1, sizeof *s + n_devices * sizeof s->devices[0]);
    sigset_t all, before;
    if (!s)
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    s->policy = policy;
    s->limit_ns = limit_ns;
    s->n_devices = n_devices;
    s->late_fd = late_fd;
    gn_list_init(&s->paused);
    gn_list_init(&s->orders);
    for (uint32_t i = 0; i < n_devices; i++)
        gn_sched_init(&s->devices[i].sched, policy, slices_ns[i], gn_now_ns());
    pthread_mutex_init(&s->lock, NULL);
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = s->epoll_fd < 0 || s->timer_fd < 0 || s->wake_fd < 0 ? -errno : 0;
    if (rc == 0)
        rc = watch(s, s->timer_fd, EPOLLIN, TIMER);
    if (rc == 0)
        rc = watch(s, s->wake_fd, EPOLLIN, WAKE_UP);
    if (rc == 0) {
        /* Signals are handled on gantryd's thread. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        rc = -pthread_create(&s->thread, NULL, run, s);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (rc) {
        close_all(s);
        return gn_fail(err, -rc, NULL, "cannot start the scheduler: %s", strerror(-rc));
    }
    pthread_setname_np(s->thread, "gantry-sched");
    *ret = s;
    return 0;
}

void gn_scheduler_stop(struct gn_scheduler *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_mutex_unlock(&s->lock);
    gn_scheduler_wake(s);
    pthread_join(s->thread, NULL);
    close_all(s);
}

/* ---- called on gantryd's thread */

int gn_shares_init(struct gn_shares *sh, uint32_t vgpu)
{
    memset(sh, 0, sizeof *sh);
    sh->vgpu = vgpu;
    sh->tell_fd = sh->page.fd = -1;
    int rc = gn_segment_create("gantry-grants", GN_GRANT_BYTES, &sh->page);
    if (rc == 0)
        rc = gn_segment_map(&sh->page);
    if (rc == 0 && (sh->tell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        rc = -errno;
    if (rc)
        gn_shares_fini(sh);
    return rc;
}

void gn_shares_fini(struct gn_shares *sh)
{
    gn_segment_fini(&sh->page);
    if (sh->tell_fd >= 0)
        close(sh->tell_fd);
    sh->tell_fd = -1;
}

static int free_index(struct gn_scheduler *s, uint32_t *ret)
{
    for (uint32_t i = 0; i < s->n_table; i++) {
        if (!s->table[i]) {
            *ret = i;
            return 0;
        }
    }
    const uint32_t n = s->n_table ? s->n_table * 2 : 16;
    struct gn_shares **grown = realloc(s->table, n * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    memset(grown + s->n_table, 0, (n - s->n_table) * sizeof *grown);
    *ret = s->n_table;
    s->table = grown;
    s->n_table = n;
    return 0;
}

struct gn_tenant_shares *gn_scheduler_new_tenant(struct gn_scheduler *s, uint32_t weight)
{
    struct gn_tenant_shares *t = calloc(1, sizeof *t + s->n_devices * sizeof t->of_device[0]);
    if (!t)
        return NULL;
    t->weight = weight;
    if (gn_placement_add_tenant(s, t)) {
        free(t);
        return NULL;
    }
    for (uint32_t i = 0; i < s->n_devices; i++)
        (void)gn_sched_tenant_add(&s->devices[i].sched, &t->of_device[i], weight, gn_now_ns());
    return t;
}

int gn_scheduler_join(struct gn_scheduler *s, struct gn_shares *sh,
                      struct gn_tenant_shares **tenant, uint32_t tenant_weight, uint32_t weight,
                      const uint32_t *devices, uint32_t n)
{
    struct gn_grant_page *page = sh->page.base;
    pthread_mutex_lock(&s->lock);
    if (!*tenant)
        *tenant = gn_scheduler_new_tenant(s, tenant_weight);
    int rc = *tenant ? free_index(s, &sh->index) : -ENOMEM;
    if (rc == 0)
        rc = watch(s, sh->tell_fd, EPOLLIN | EPOLLET, sh->index);
    if (rc == 0) {
        s->table[sh->index] = sh;
        sh->joined = true;
        sh->tenant = *tenant;
        /* Devices beyond the number of slots are not scheduled. */
        sh->n = n < GN_GRANT_DEVICES ? n : GN_GRANT_DEVICES;
        for (uint32_t i = 0; i < sh->n; i++) {
            sh->all[i].of = sh;
            sh->all[i].slot = &page->slots[i];
            sh->all[i].device = devices[i];
            (void)gn_sched_add(&s->devices[devices[i]].sched, &(*tenant)->of_device[devices[i]],
                               &sh->all[i].entity, weight, gn_now_ns());
        }
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

void gn_scheduler_leave(struct gn_scheduler *s, struct gn_shares *sh)
{
    if (!sh->joined)
        return;
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < sh->n; i++) {
        struct gn_sched *of = &s->devices[sh->all[i].device].sched;
        /* The tenant is still charged for the time used. */
        if (of->running == &sh->all[i].entity)
            end_turn(s, &s->devices[sh->all[i].device], &sh->all[i], false, gn_now_ns());
        else if (sh->all[i].entity.node.ready)
            gn_scheduler_note(&s->devices[sh->all[i].device], &sh->all[i], GN_TRACE_LEAVE, 0, 0,
                              gn_now_ns());
        gn_sched_remove(of, &sh->all[i].entity, gn_now_ns());
        gn_placed_unbind(&sh->all[i], gn_now_ns());
    }
    s->table[sh->index] = NULL;
    (void)epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, sh->tell_fd, NULL);
    if (sh->paused)
        gn_list_remove(&sh->paused_link);
    sh->paused = false;
    sh->joined = false;
    pthread_mutex_unlock(&s->lock);
    gn_scheduler_wake(s);
}

void gn_scheduler_weigh(struct gn_scheduler *s, struct gn_tenant_shares *tenant, uint32_t weight)
{
    if (!tenant)
        return;
    pthread_mutex_lock(&s->lock);
    tenant->weight = weight;
    for (uint32_t i = 0; i < s->n_devices; i++)
        (void)gn_sched_tenant_set_weight(&s->devices[i].sched, &tenant->of_device[i], weight);
    gn_placement_weigh_tenant(s, tenant);
    pthread_mutex_unlock(&s->lock);
}

static void bound_locked(struct gn_sched *of, struct gn_sched_tenant *t, uint32_t cap,
                         uint32_t floor, uint64_t now)
{
    /* In this order the floor is never above the cap. Values that do not change keep their saved
     * time. */
    if (floor < t->floor)
        (void)gn_sched_tenant_set_floor(of, t, floor, now);
    if (cap != t->cap)
        (void)gn_sched_tenant_set_cap(of, t, cap, now);
    if (floor > t->floor)
        (void)gn_sched_tenant_set_floor(of, t, floor, now);
}

void gn_scheduler_bound(struct gn_scheduler *s, struct gn_tenant_shares *tenant, uint32_t cap,
                        uint32_t floor, const bool *floors)
{
    if (!tenant)
        return;
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->n_devices; i++)
        bound_locked(&s->devices[i].sched, &tenant->of_device[i], cap, floors[i] ? floor : 0,
                     gn_now_ns());
    pthread_mutex_unlock(&s->lock);
    gn_scheduler_wake(s);
}

void gn_scheduler_forget(struct gn_scheduler *s, struct gn_tenant_shares *tenant)
{
    if (!tenant)
        return;
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->n_devices; i++)
        gn_sched_tenant_remove(&s->devices[i].sched, &tenant->of_device[i], gn_now_ns());
    gn_placement_remove_tenant(s, tenant);
    pthread_mutex_unlock(&s->lock);
    free(tenant);
}

const struct gn_sched_policy *gn_scheduler_policy(struct gn_scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    const struct gn_sched_policy *policy = s->policy;
    pthread_mutex_unlock(&s->lock);
    return policy;
}

/* Starts the same tenants and vGPUs under another policy: their totals remain, tags and credits
 * start over. */
static void restart_policy(struct gn_scheduler *s, uint32_t device, uint64_t now)
{
    struct gn_sched *of = &s->devices[device].sched;
    struct gn_sched_entity *running = of->running;
    struct gn_list tenants;
    gn_list_init(&tenants);
    gn_list_for_each(t, &of->tenants, struct gn_sched_tenant, link)
    {
        gn_list_remove(&t->link);
        gn_list_append(&tenants, &t->link);
    }
    gn_sched_init(of, s->policy, of->slice_ns, now);
    gn_list_for_each(t, &tenants, struct gn_sched_tenant, link)
    {
        const struct gn_sched_tenant was = *t;
        gn_list_remove(&t->link);
        (void)gn_sched_tenant_add(of, t, was.node.weight, now);
        (void)gn_sched_tenant_set_cap(of, t, was.cap, now);
        (void)gn_sched_tenant_set_floor(of, t, was.floor, now);
        t->used_ns = was.used_ns;
    }
    for (uint32_t i = 0; i < s->n_table; i++) {
        for (uint32_t j = 0; s->table[i] && j < s->table[i]->n; j++) {
            struct gn_share *sh = &s->table[i]->all[j];
            const struct gn_sched_entity was = sh->entity;
            if (sh->device != device)
                continue;
            (void)gn_sched_add(of, was.tenant, &sh->entity, was.node.weight, now);
            sh->entity.used_ns = was.used_ns;
            sh->entity.waited_ns = was.waited_ns;
            sh->entity.n_grants = was.n_grants;
            if (was.evicted)
                gn_sched_set_evicted(of, &sh->entity, true, now);
            if (&sh->entity == running)
                of->running = running;
            else if (gn_grant_look(sh->slot) == GN_GRANT_WANTED)
                gn_sched_wake(of, &sh->entity, now);
        }
    }
}

void gn_scheduler_set_policy(struct gn_scheduler *s, const struct gn_sched_policy *policy)
{
    pthread_mutex_lock(&s->lock);
    s->policy = policy;
    for (uint32_t i = 0; i < s->n_devices; i++)
        restart_policy(s, i, gn_now_ns());
    pthread_mutex_unlock(&s->lock);
    gn_scheduler_wake(s);
}

bool gn_scheduler_is_paused(struct gn_scheduler *s, const struct gn_shares *sh)
{
    pthread_mutex_lock(&s->lock);
    const bool paused = sh->paused;
    pthread_mutex_unlock(&s->lock);
    return paused;
}

uint32_t gn_scheduler_next_late(struct gn_scheduler *s, bool *ret_over_limit)
{
    uint32_t vgpu = 0;
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; !vgpu && i < s->n_devices; i++) {
        struct gn_sched_entity *running = s->devices[i].sched.running;
        struct gn_share *sh = running ? share_of(running) : NULL;
        if (!sh || (sh->news != GN_SHARE_LATE && sh->news != GN_SHARE_OVER_LIMIT))
            continue;
        vgpu = sh->of->vgpu;
        *ret_over_limit = sh->news == GN_SHARE_OVER_LIMIT;
        sh->news = *ret_over_limit ? GN_SHARE_OVER_REPORTED : GN_SHARE_NO_NEWS;
    }
    pthread_mutex_unlock(&s->lock);
    return vgpu;
}
