/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs TLS handshakes on a thread of its own (tls_handshakes.h). A handshake belongs to one side at
 * a time: to the thread while it is in progress, and to the event loop from its news until the
 * loop's answer. The lock guards the two queues between them and the given_up flags, nothing else:
 * OpenSSL is called without it. The loop's functions never block; the thread touches no other data
 * of gantryd.
 */
#include "daemon/net/tls_handshakes.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/list.h"
#include "base/log.h"
#include "daemon/net/strangers.h"

#define NICENESS                                                                                   \
    10 /* Few handshakes are honest, and a flood of others must not slow down programs. */

struct gn_handshake {
    struct gn_handshakes *all;
    void *owner;
    uint64_t address;
    int fd;
    /* guarded by the lock */
    struct gn_list queue; /* in all->todo or all->news */
    bool given_up;
    /* used by the side that owns the handshake */
    struct gn_list link; /* in all->under_way */
    struct gn_tls *tls;
    uint64_t cost_ns;
    enum gn_handshake_news news;
    unsigned char wanted[GN_TLS_IDENTITY_BYTES];
    struct gn_error err;
    uint32_t events; /* events registered with epoll */
    bool watched;
};

struct gn_handshakes {
    pthread_t thread;
    int epoll_fd, wake_fd, news_fd;
    const struct gn_tls_ops *ops;
    struct gn_tls_config config;
    /* guarded by the lock */
    pthread_mutex_t lock;
    bool stop;
    struct gn_list todo, news; /* linked by gn_handshake.queue */
    /* used by the thread alone */
    struct gn_list under_way;
    struct file_stamp {
        dev_t device;
        ino_t inode;
        struct timespec modified;
        off_t bytes;
    } stamps[3];
};

static void signal_eventfd(int fd)
{
    const uint64_t one = 1;
    (void)!write(fd, &one, sizeof one);
}

/* ---- certificate and key files */

static void read_stamps(const struct gn_handshakes *all, struct file_stamp ret[3])
{
    const char *const paths[3] = {all->config.certificate, all->config.key, all->config.authority};
    memset(ret, 0, 3 * sizeof ret[0]);
    for (int i = 0; i < 3; i++) {
        struct stat st;
        if (paths[i] && stat(paths[i], &st) == 0)
            ret[i] = (struct file_stamp){st.st_dev, st.st_ino, st.st_mtim, st.st_size};
    }
}

static bool same_stamps(const struct file_stamp a[3], const struct file_stamp b[3])
{
    bool same = true;
    for (int i = 0; i < 3; i++)
        same = same && a[i].device == b[i].device && a[i].inode == b[i].inode &&
               a[i].bytes == b[i].bytes && a[i].modified.tv_sec == b[i].modified.tv_sec &&
               a[i].modified.tv_nsec == b[i].modified.tv_nsec;
    return same;
}

/* Reloads files that have changed. They may be half written: until they are valid the old ones stay
 * in use. */
static void read_changed_files(struct gn_handshakes *all)
{
    struct file_stamp now[3];
    struct gn_tls_context *fresh;
    struct gn_error err;
    read_stamps(all, now);
    if (same_stamps(now, all->stamps))
        return;
    memcpy(all->stamps, now, sizeof now);
    if (all->ops->open_context(&all->config, &fresh, &err)) {
        gn_log(GN_LOG_WARN, "the changed certificate cannot be used: %s", err.what);
        return;
    }
    all->ops->close_context(all->config.context);
    all->config.context = fresh;
    gn_log(GN_LOG_INFO, "the certificate has changed: the new one is used from now on");
}

/* ---- a handshake, on the thread */

static void destroy(struct gn_handshake *h)
{
    gn_list_remove(&h->link);
    gn_list_remove(&h->queue);
    if (h->tls)
        gn_tls_free(h->tls);
    if (h->fd >= 0)
        close(h->fd);
    free(h);
}

static void watch(struct gn_handshake *h, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = h};
    if (h->watched && h->events == events)
        return;
    /* Fails only for lack of memory; then the handshake ends at its deadline. */
    (void)epoll_ctl(h->all->epoll_fd, h->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, h->fd, &e);
    h->watched = true;
    h->events = events;
}

static void report(struct gn_handshake *h, enum gn_handshake_news news)
{
    struct gn_handshakes *all = h->all;
    (void)epoll_ctl(all->epoll_fd, EPOLL_CTL_DEL, h->fd, NULL);
    h->watched = false;
    h->news = news;
    gn_list_remove(&h->link);
    pthread_mutex_lock(&all->lock);
    /* A handshake that was given up is in `todo` already, to be freed. */
    if (!h->given_up)
        gn_list_append(&all->news, &h->queue);
    pthread_mutex_unlock(&all->lock);
    signal_eventfd(all->news_fd);
}

static uint64_t processor_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int advance(struct gn_handshake *h)
{
    struct gn_handshakes *all = h->all;
    if (!h->tls) {
        read_changed_files(all);
        const int rc = all->ops->start(&all->config, h->fd, &h->tls, &h->err);
        if (rc)
            return rc;
    }
    return all->ops->handshake(h->tls, &h->err);
}

static void run_step(struct gn_handshake *h)
{
    const uint64_t began_ns = processor_ns();
    const int rc = advance(h);
    h->cost_ns += processor_ns() - began_ns;
    switch (rc) {
    case GN_TLS_READS:
        watch(h, EPOLLIN);
        break;
    case GN_TLS_WRITES:
        watch(h, EPOLLOUT);
        break;
    case GN_TLS_WANTS_KEY:
        h->all->ops->wanted_key(h->tls, h->wanted);
        report(h, GN_HANDSHAKE_WANTS_KEY);
        break;
    case GN_TLS_DONE:
        report(h, GN_HANDSHAKE_DONE);
        break;
    default:
        report(h, GN_HANDSHAKE_REFUSED);
    }
}

/* Handles the requests of the loop. Returns false when the thread is to stop. */
static bool handle_requests(struct gn_handshakes *all)
{
    for (;;) {
        pthread_mutex_lock(&all->lock);
        const bool stop = all->stop;
        struct gn_handshake *h = gn_list_empty(&all->todo)
                                     ? NULL
                                     : gn_list_first(&all->todo, struct gn_handshake, queue);
        if (h)
            gn_list_remove(&h->queue);
        const bool given_up = h && h->given_up;
        pthread_mutex_unlock(&all->lock);
        if (h && !given_up)
            gn_list_append(&all->under_way, &h->link);
        if (stop || !h)
            return !stop;
        if (given_up)
            destroy(h);
        else if (h->tls)
            run_step(h); /* the loop has given it its key */
        else
            watch(h, EPOLLIN);
    }
}

/* One step for each address in a round; epoll reports the rest again in the next. */
static void run_round(struct gn_handshakes *all, const struct epoll_event *events, int n)
{
    uint64_t served[GN_STRANGERS_MOST + 1], ignored;
    int n_served = 0;
    for (int i = 0; i < n; i++) {
        struct gn_handshake *h = events[i].data.ptr;
        int k = 0;
        if (!h) {
            (void)!read(all->wake_fd, &ignored, sizeof ignored);
            continue;
        }
        while (k < n_served && served[k] != h->address)
            k++;
        if (k < n_served)
            continue;
        served[n_served++] = h->address;
        run_step(h);
    }
}

static void *run(void *arg)
{
    struct gn_handshakes *all = arg;
    struct epoll_event events[GN_STRANGERS_MOST + 1];
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
    while (handle_requests(all)) {
        const int n = epoll_wait(all->epoll_fd, events, (int)GN_ARRAY_SIZE(events), -1);
        run_round(all, events, n > 0 ? n : 0);
    }
    return NULL;
}

/* ---- on the event loop's thread */

static void queue_request(struct gn_handshake *h)
{
    struct gn_handshakes *all = h->all;
    pthread_mutex_lock(&all->lock);
    gn_list_append(&all->todo, &h->queue);
    pthread_mutex_unlock(&all->lock);
    signal_eventfd(all->wake_fd);
}

struct gn_handshake *gn_handshake_begin(struct gn_handshakes *all, int fd, uint64_t address,
                                        void *owner)
{
    struct gn_handshake *h = calloc(1, sizeof *h);
    if (!h) {
        close(fd);
        return NULL;
    }
    h->all = all;
    h->owner = owner;
    h->address = address;
    h->fd = fd;
    gn_list_init(&h->queue);
    gn_list_init(&h->link);
    queue_request(h);
    return h;
}

struct gn_handshake *gn_handshakes_next(struct gn_handshakes *all, enum gn_handshake_news *ret,
                                        void **ret_owner, uint64_t *ret_cost_ns)
{
    pthread_mutex_lock(&all->lock);
    struct gn_handshake *h =
        gn_list_empty(&all->news) ? NULL : gn_list_first(&all->news, struct gn_handshake, queue);
    if (h)
        gn_list_remove(&h->queue);
    pthread_mutex_unlock(&all->lock);
    if (h) {
        *ret = h->news;
        *ret_owner = h->owner;
        *ret_cost_ns = h->cost_ns;
    }
    return h;
}

const unsigned char *gn_handshake_wanted_key(const struct gn_handshake *h)
{
    return h->wanted;
}

void gn_handshake_set_key(struct gn_handshake *h, const struct gn_tls_psk *psk)
{
    h->all->ops->give_key(h->tls, psk);
    queue_request(h);
}

const char *gn_handshake_why(const struct gn_handshake *h)
{
    return h->err.what;
}

void gn_handshake_finish(struct gn_handshake *h, struct gn_tcp *ret)
{
    *ret = (struct gn_tcp){h->fd, h->tls};
    free(h);
}

void gn_handshake_abort(struct gn_handshake *h)
{
    struct gn_handshakes *all = h->all;
    pthread_mutex_lock(&all->lock);
    h->given_up = true;
    gn_list_remove(&h->queue);
    gn_list_append(&all->todo, &h->queue);
    pthread_mutex_unlock(&all->lock);
    signal_eventfd(all->wake_fd);
}

static int open_descriptors(struct gn_handshakes *all)
{
    struct epoll_event e = {.events = EPOLLIN};
    all->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    all->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return all->epoll_fd < 0 || all->wake_fd < 0 ||
                   epoll_ctl(all->epoll_fd, EPOLL_CTL_ADD, all->wake_fd, &e) < 0
               ? -errno
               : 0;
}

static void free_all(struct gn_handshakes *all)
{
    gn_list_for_each(h, &all->under_way, struct gn_handshake, link) destroy(h);
    gn_list_for_each(h, &all->todo, struct gn_handshake, queue) destroy(h);
    gn_list_for_each(h, &all->news, struct gn_handshake, queue) destroy(h);
    if (all->config.context)
        all->ops->close_context(all->config.context);
    if (all->epoll_fd >= 0)
        close(all->epoll_fd);
    if (all->wake_fd >= 0)
        close(all->wake_fd);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

int gn_handshakes_start(const struct gn_tls_config *config, int news_fd, struct gn_handshakes **ret,
                        struct gn_error *err)
{
    const struct gn_tls_ops *ops = gn_tls_load(err);
    struct gn_handshakes *all = ops ? calloc(1, sizeof *all) : NULL;
    sigset_t every, before;
    if (!all)
        return ops ? gn_fail(err, ENOMEM, NULL, "out of memory") : -ENOENT;
    all->ops = ops;
    all->config = *config;
    all->news_fd = news_fd;
    all->epoll_fd = all->wake_fd = -1;
    pthread_mutex_init(&all->lock, NULL);
    gn_list_init(&all->todo);
    gn_list_init(&all->news);
    gn_list_init(&all->under_way);
    read_stamps(all, all->stamps);
    int rc = ops->open_context(&all->config, &all->config.context, err);
    if (rc) {
        all->config.context = NULL;
        free_all(all);
        return rc;
    }
    rc = open_descriptors(all);
    if (rc == 0) {
        /* Signals are handled by the event loop, so this thread blocks them. */
        sigfillset(&every);
        pthread_sigmask(SIG_SETMASK, &every, &before);
        rc = -pthread_create(&all->thread, NULL, run, all);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (rc) {
        free_all(all);
        return gn_fail(err, -rc, NULL, "cannot start the thread of TLS handshakes: %s",
                       strerror(-rc));
    }
    pthread_setname_np(all->thread, "gantry-tls");
    *ret = all;
    return 0;
}

void gn_handshakes_stop(struct gn_handshakes *all)
{
    if (!all)
        return;
    pthread_mutex_lock(&all->lock);
    all->stop = true;
    pthread_mutex_unlock(&all->lock);
    signal_eventfd(all->wake_fd);
    pthread_join(all->thread, NULL);
    free_all(all);
}
