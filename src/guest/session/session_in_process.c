/* SPDX-License-Identifier: Apache-2.0 */
/* Loads libgantry-vgpu.so and speaks to it. The first call that wants a device loads; any thread
 * sends. */
#include "guest/session/session_in_process.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/list.h"
#include "base/thread.h"
#include "guest/core/guest_core.h"
#include "guest/core/process_end.h"
#include "guest/session/session_ops.h"
#include "guest/session/session_shm.h"
#include "link/direct.h"
#include "link/frame.h"
#include "link/link_wire.h"

#define SEND_TIMEOUT_MS 10000

struct gn_in_process {
    struct gn_list link;
    const struct gn_direct_table *table;
    struct gn_direct *direct;
};

/* All vGPUs in this process, and those that are being made. */
static struct {
    pthread_mutex_t lock;
    struct gn_list all; /* lock */
    _Atomic bool
        has_loaded; /* this process, or the one that it was forked from, has loaded a driver */
    bool
        is_inherited; /* written in a forked child alone: the process that it was forked from has */
} hosts = {.lock = PTHREAD_MUTEX_INITIALIZER, .all = GN_LIST_INIT(hosts.all)};

/* Drops a vGPU that could not be made; it stays while threads of it run. */
static void drop(struct gn_in_process *h)
{
    gn_driver_unloads();
    pthread_mutex_lock(&hosts.lock);
    const bool gone = h->table->destroy(h->direct);
    if (gone)
        gn_list_remove(&h->link);
    pthread_mutex_unlock(&hosts.lock);
    if (gone)
        free(h);
}

/*
 * The vGPU's library lies beside this one. The environment and the loader's path are not searched.
 */
static int library_path(char ret[static PATH_MAX], struct gn_error *err)
{
    static const char in_here;
    Dl_info here;
    if (!dladdr(&in_here, &here) || !here.dli_fname || !realpath(here.dli_fname, ret))
        return gn_fail(err, ENOENT, NULL, "cannot tell where Gantry's library lies");
    char *name = strrchr(ret, '/') + 1;
    if ((size_t)(name - ret) + sizeof GN_DIRECT_LIBRARY > PATH_MAX)
        return gn_fail(err, ENAMETOOLONG, NULL, "Gantry's library lies too deep");
    memcpy(name, GN_DIRECT_LIBRARY, sizeof GN_DIRECT_LIBRARY);
    return 0;
}

static int load(const struct gn_direct_table **ret, struct gn_error *err)
{
    char path[PATH_MAX];
    int rc = library_path(path, err);
    void *library = rc ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (rc)
        return rc;
    if (!library)
        return gn_fail(err, ENOENT, "install Gantry anew", "cannot load what passthrough needs: %s",
                       dlerror());
    *ret = dlsym(library, GN_DIRECT_SYMBOL);
    if (!*ret || (*ret)->version != GN_DIRECT_VERSION)
        return gn_fail(err, EPROTO, "install Gantry anew", "%s is of another version", path);
    return 0;
}

static int make(const char *api, bool take_over, const char *library, int control_fd,
                struct gn_in_process **ret, struct gn_error *err)
{
    struct gn_in_process *h = calloc(1, sizeof *h);
    int rc = h ? load(&h->table, err) : gn_fail(err, ENOMEM, NULL, "out of memory");
    if (!rc && !(h->direct = h->table->create(api)))
        rc = gn_fail(err, ENOMEM, NULL, "out of memory");
    if (rc) {
        gn_fd_close(control_fd);
        free(h);
        return rc;
    }
    pthread_mutex_lock(&hosts.lock);
    gn_list_append(&hosts.all, &h->link);
    pthread_mutex_unlock(&hosts.lock);
    atomic_store_explicit(&hosts.has_loaded, true, memory_order_relaxed);
    rc = h->table->boot(h->direct, library, control_fd, take_over, err);
    gn_driver_is_up();
    if (!rc)
        rc = h->table->host(h->direct, err);
    if (rc)
        drop(h);
    else
        *ret = h;
    return rc;
}

/* No vGPU may come into the child if its parent has ever loaded a driver. */
static void forget_inherited(void)
{
    pthread_mutex_init(&hosts.lock, NULL);
    gn_list_init(&hosts.all);
    hosts.is_inherited = atomic_load_explicit(&hosts.has_loaded, memory_order_relaxed);
}

static void process_ends(uint64_t until_ns)
{
    /* A signal's handler may call exit() while the thread that it interrupts holds the lock. */
    while (pthread_mutex_trylock(&hosts.lock)) {
        if (gn_now_ns() >= until_ns)
            return;
        sched_yield();
    }
    gn_list_for_each(h, &hosts.all, struct gn_in_process, link)
        h->table->process_ends(h->direct, until_ns);
    pthread_mutex_unlock(&hosts.lock);
}

static const struct gn_driver_ops driver_ops = {
    .process_ends = process_ends,
    .forked = forget_inherited,
};

static int host(const char *api, bool take_over, const char *library, int control_fd,
                struct gn_in_process **ret, struct gn_error *err)
{
    if (!gn_driver_enter(&driver_ops, take_over)) {
        gn_fd_close(control_fd);
        return gn_fail(err, ECANCELED, NULL, "the program ends");
    }
    const int rc = make(api, take_over, library, control_fd, ret, err);
    gn_driver_left();
    return rc;
}

int gn_in_process_open(void *ctx, const char *library, int control_fd, struct gn_error *err)
{
    struct gn_session *s = ctx;
    struct gn_in_process *h = NULL;
    const int rc = host(s->api->name, false, library, control_fd, &h, err);
    atomic_store_explicit(&s->in_process, h, memory_order_relaxed);
    if (h)
        atomic_store_explicit(&s->ops, &gn_session_in_process, memory_order_release);
    return rc;
}

/* ---- later */

struct wish {
    struct gn_session *session;
    int control_fd;
    char library[GN_LINK_DRIVER_BYTES];
};

/*
 * No caller waits for the result, so gantryd alone is told. The vGPU stays where it is. Takes the
 * descriptor.
 */
static void refuse(int control_fd, const struct gn_error *err)
{
    struct gn_link_error e = {.code = ECANCELED};
    gn_frame_string_set(e.what, sizeof e.what, err->what);
    gn_frame_string_set(e.fix, sizeof e.fix, err->fix);
    (void)gn_frame_send(control_fd, SEND_TIMEOUT_MS, GN_LINK_ERROR, 0, 0, &e, sizeof e, NULL, 0);
    gn_fd_shutdown(control_fd); /* a forked child may have it, too */
    gn_fd_close(control_fd);
}

static void *take_over(void *arg)
{
    struct wish *w = arg;
    struct gn_in_process *h = NULL;
    struct gn_error err;
    /*
     * The vGPU closes its own descriptor when a failed take-over is cleared, at a time that is not
     * known here.
     */
    const int our_fd = gn_fd_duplicate(w->control_fd);
    if (our_fd < 0) {
        gn_fail(&err, errno, NULL, "no descriptor is left in the program: %s", strerror(errno));
        refuse(w->control_fd, &err);
    } else if (host(w->session->api->name, true, w->library, w->control_fd, &h, &err)) {
        refuse(our_fd, &err);
    } else {
        gn_fd_close(our_fd);
        atomic_store_explicit(&w->session->replies.at_once, true, memory_order_relaxed);
        atomic_store_explicit(&w->session->in_process, h, memory_order_relaxed);
        atomic_store_explicit(&w->session->ops, &gn_session_in_process, memory_order_release);
    }
    free(w);
    return NULL;
}

void gn_in_process_adopt(void *ctx, const char *library, int control_fd)
{
    struct wish *w = hosts.is_inherited ? NULL : malloc(sizeof *w);
    struct gn_error err;
    if (w) {
        *w = (struct wish){.session = ctx, .control_fd = control_fd};
        snprintf(w->library, sizeof w->library, "%s", library);
        const int rc = gn_thread_start(GN_THREAD_PREFIX "host", take_over, w, NULL);
        if (!rc)
            return;
        gn_fail(&err, -rc, NULL, "the program can start no thread: %s", strerror(-rc));
    } else if (hosts.is_inherited) {
        /*
         * The driver's threads do not exist in the child, and its locks are as those threads left
         * them.
         */
        gn_fail(&err, ECANCELED, NULL,
                "the program was forked from one that had loaded a driver, which does not work in "
                "a forked process");
    } else {
        gn_fail(&err, ENOMEM, NULL, "no memory is left in the program");
    }
    refuse(control_fd, &err);
    free(w);
}

static int send_message(struct gn_session *s, struct gn_call *c)
{
    const struct gn_session_ops *in_process = &gn_session_in_process;
    struct gn_in_process *h = atomic_load_explicit(&s->in_process, memory_order_relaxed);
    const int rc = h->table->send(h->direct, c->message, c->bytes);
    if (rc != -EAGAIN)
        return rc ? s->api->result_lost : 0;
    /*
     * A worker has the vGPU now, and serves the ring. Another thread may have noticed before, and
     * the vGPU may have left this machine since: that state stays.
     */
    atomic_store_explicit(&s->replies.at_once, false, memory_order_relaxed);
    (void)atomic_compare_exchange_strong(&s->ops, &in_process, &gn_session_shm);
    return GN_BY_RING;
}

static void forked(struct gn_session *s, bool cut_off)
{
    struct gn_in_process *h = atomic_load_explicit(&s->in_process, memory_order_relaxed);
    (void)cut_off;
    h->table->forked(h->direct);
}

const struct gn_session_ops gn_session_in_process = {
    .name = "in-process",
    .shares_memory = true,
    .answers_at_once = true,
    .send = send_message,
    .add_segment = gn_session_shm_add_segment,
    .link_lock = gn_session_shm_link_lock,
    .link_changed = gn_session_shm_link_changed,
    .forked = forked,
};
