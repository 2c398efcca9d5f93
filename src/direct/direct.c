/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgantry-vgpu.so: a vGPU inside its program, for passthrough (Crane 3). Boots it as a worker
 * does, without walls: the program is trusted with the driver. Called by the front end's library,
 * on the program's thread whose call first needs a device, or on the thread that takes a vGPU over.
 * Prints nothing and touches no descriptor or signal of the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/descriptor.h"
#include "link/direct.h"
#include "link/frame.h"
#include "vgpu/boot.h"

#define SEND_TIMEOUT_MS 10000

#define N_CUTS 2

struct gn_direct {
    const char *api;
    struct gn_boot said;
    struct gn_vgpu_boot boot;
    pthread_mutex_t lock;
    struct gn_vgpu *vgpu; /* lock: set once its threads may exist */
    int cuts[N_CUTS];     /* lock: duplicates of the sockets that boot and host wait on; -1: none */
    struct gn_process_end end;
};

/* From here on process_ends can interrupt a thread that reads or writes this socket. */
static int add_cut(struct gn_direct *d, int which, int fd, struct gn_error *err)
{
    const int copy = gn_fd_duplicate(fd);
    if (copy < 0)
        return gn_fail(err, errno, NULL, "no descriptor is left in the program: %s",
                       strerror(errno));
    pthread_mutex_lock(&d->lock);
    d->cuts[which] = copy;
    if (atomic_load_explicit(&d->end.arrival, memory_order_relaxed) == GN_INBOUND_ABORTED)
        gn_fd_shutdown(copy);
    pthread_mutex_unlock(&d->lock);
    return 0;
}

static void drop_cuts(struct gn_direct *d)
{
    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < N_CUTS; i++) {
        gn_fd_close(d->cuts[i]);
        d->cuts[i] = -1;
    }
    pthread_mutex_unlock(&d->lock);
}

static int bring_up(struct gn_direct *d, const char *library, struct gn_error *err)
{
    const struct gn_backend_ops *backend = gn_backend_named(d->api);
    void *handle;
    if (!backend)
        return gn_fail(err, ENOSYS, NULL, "this build does not serve %s", d->api);
    int rc = backend->open_library(library, &handle, err);
    if (rc == 0)
        rc = backend->bring_up(handle, d->said.wire.platform, d->said.devices,
                               d->said.wire.n_devices, &d->boot.platform, err);
    return rc;
}

/* Descriptors that only a worker uses: in passthrough the program's stdout and log are its own. */
static void close_what_is_not_wanted(struct gn_direct *d)
{
    static const int unwanted[] = {GN_WORKER_BOOT_STDOUT, GN_WORKER_BOOT_STDERR,
                                   GN_WORKER_BOOT_LOG};
    for (size_t i = 0; i < sizeof unwanted / sizeof unwanted[0]; i++)
        gn_boot_close(&d->said, unwanted[i]);
}

static int say_booted(struct gn_direct *d, struct gn_error *err)
{
    return gn_frame_send(d->boot.control_fd, SEND_TIMEOUT_MS, GN_WORKER_BOOTED, 0, 0, NULL, 0, NULL,
                         0) < 0
               ? gn_fail(err, EPIPE, NULL, "gantryd is gone")
               : 0;
}

static void install_fork_handlers(void)
{
    pthread_atfork(gn_fd_before_fork, gn_fd_after_fork, gn_fd_after_fork_child);
}

static struct gn_direct *create(const char *api)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct gn_direct *d = malloc(sizeof *d);
    pthread_once(&once, install_fork_handlers);
    gn_fd_in_program();
    if (!d)
        return NULL;
    *d = (struct gn_direct){.api = api,
                            .boot = {.control_fd = -1,
                                     .end = &d->end,
                                     .session_fd = -1,
                                     .tell_fd = -1,
                                     .load_fd = -1,
                                     .file_fd = -1,
                                     .contents_fd = -1,
                                     .ring = GN_SEGMENT_NONE,
                                     .events = GN_SEGMENT_NONE,
                                     .data = GN_SEGMENT_NONE,
                                     .counters = GN_SEGMENT_NONE,
                                     .grants = GN_SEGMENT_NONE}};
    for (int i = 0; i < GN_WORKER_BOOT_FDS; i++)
        d->said.fds[i] = -1;
    for (int i = 0; i < N_CUTS; i++)
        d->cuts[i] = -1;
    pthread_mutex_init(&d->lock, NULL);
    return d;
}

static int is_called_off(const struct gn_direct *d, struct gn_error *err)
{
    return atomic_load_explicit(&d->end.called_off, memory_order_seq_cst)
               ? gn_fail(err, ECANCELED, NULL, "the program ends")
               : 0;
}

static int boot(struct gn_direct *d, const char *library, int control_fd, bool takes_over,
                struct gn_error *err)
{
    d->boot.control_fd = control_fd;
    gn_fd_adopt(control_fd);
    int rc = add_cut(d, 0, control_fd, err);
    if (rc == 0 && (rc = gn_boot_receive(control_fd, &d->said)))
        gn_fail(err, -rc, NULL, "gantryd did not say what the vGPU is to be: %s", strerror(-rc));
    if (rc)
        return rc;
    close_what_is_not_wanted(d);
    rc = d->said.wire.remote || (d->said.wire.loads != 0) != takes_over
             ? gn_fail(err, EPROTO, NULL, "gantryd described another vGPU than was asked for")
             : 0;
    if (rc == 0)
        rc = gn_boot_map(&d->said, &d->boot, err);
    if (rc == 0 && d->boot.load_fd >= 0)
        rc = add_cut(d, 1, d->boot.load_fd, err);
    if (rc == 0)
        rc = is_called_off(d, err);
    return rc ? rc : bring_up(d, library, err);
}

static int host(struct gn_direct *d, struct gn_error *err)
{
    const bool takes_over = d->said.wire.loads != 0;
    struct gn_vgpu *v = NULL;
    int rc = is_called_off(d, err);
    /* A vGPU that is taken over is sent after BOOTED; a new vGPU must serve before BOOTED is
     * sent. */
    if (rc == 0 && takes_over)
        rc = say_booted(d, err);
    if (rc == 0)
        rc = gn_vgpu_start_in_program(&d->boot, &v, err);
    pthread_mutex_lock(&d->lock);
    d->vgpu = v;
    pthread_mutex_unlock(&d->lock);
    drop_cuts(d);
    if (rc == 0 && !takes_over)
        rc = say_booted(d, err);
    return rc;
}

static bool destroy(struct gn_direct *d)
{
    drop_cuts(d);
    if (d->vgpu)
        return false;
    gn_boot_fini(&d->said);
    gn_vgpu_boot_fini(&d->boot);
    if (d->boot.platform)
        d->boot.platform->ops->leave(d->boot.platform);
    pthread_mutex_destroy(&d->lock);
    free(d);
    return true;
}

static int send_here(struct gn_direct *d, const void *message, uint32_t n_bytes)
{
    return gn_vgpu_serve_message(d->vgpu, message, n_bytes);
}

static void forked(struct gn_direct *d)
{
    gn_fd_after_fork_child(); /* this library's own fork handler may run later */
    gn_vgpu_forked(d->vgpu);
}

static void process_ends(struct gn_direct *d, uint64_t until_ns)
{
    int coming = GN_INBOUND_COMING;
    atomic_store_explicit(&d->end.called_off, true, memory_order_seq_cst);
    pthread_mutex_lock(&d->lock);
    const bool off = atomic_compare_exchange_strong(&d->end.arrival, &coming, GN_INBOUND_ABORTED);
    for (int i = 0; i < N_CUTS; i++)
        if (off)
            gn_fd_shutdown(d->cuts[i]);
    struct gn_vgpu *v = d->vgpu;
    pthread_mutex_unlock(&d->lock);
    if (v)
        gn_vgpu_process_ends(v, until_ns);
}

__attribute__((visibility("default"))) extern const struct gn_direct_table gn_direct_table;
const struct gn_direct_table gn_direct_table = {
    .version = GN_DIRECT_VERSION,
    .create = create,
    .boot = boot,
    .host = host,
    .destroy = destroy,
    .send = send_here,
    .forked = forked,
    .process_ends = process_ends,
};
