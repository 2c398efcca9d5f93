/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry checkpoint`: a vGPU into a file. The worker writes into memory of its and ours
 * (link/chunks.h), and only this process touches the file: no limit of the worker's is in the way,
 * a full disk is met here, and nothing that a worker does later reaches the file. It stands under
 * its name when all of it is on the disk, or not at all. While that is emptied here a second thread
 * waits for gantryd's answer.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "control/control.h"
#include "control/json_region.h"
#include "ctl/ctl.h"
#include "ctl/progress.h"
#include "ctl/whole_file.h"
#include "link/chunks.h"
#include "link/link.h"

#define LOOK_UP_MS 100 /* so often it is looked whether somebody has interrupted us */

static const char failure[] = "cannot save the vGPU";

struct saving {
    const struct gn_ctl_args *args;
    const char *path;
    struct gn_whole_file file;
    struct gn_link *link;
    uint64_t bytes;
    /* of the thread that asks */
    char *request;
    json_t *reply;
    struct gn_error err;
    int rc;
    _Atomic bool answered; /* by that thread, last: what is above is there */
};

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* Ctrl-C must leave nothing half-written, and the second one ends us, though gantryd says nothing;
 * a file that grows too large is an error, not our end. */
static void set_signals(void)
{
    const struct sigaction stop = {.sa_handler = interrupt, .sa_flags = SA_RESETHAND},
                           ignored = {.sa_handler = SIG_IGN};
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGXFSZ, &ignored, NULL);
    sigaction(SIGPIPE, &ignored, NULL);
}

static int write_all(int fd, const void *bytes, size_t n)
{
    while (n) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && (errno != EINTR || interrupted))
            return -errno;
        if (done > 0) {
            bytes = (const char *)bytes + done;
            n -= (size_t)done;
        }
    }
    return 0;
}

static json_int_t said_bytes(const struct saving *s)
{
    return json_integer_value(json_object_get(json_object_get(s->reply, "checkpoint"), "bytes"));
}

/* Until the worker has written all, or has given up; or gantryd says so, since what a worker does
 * with its end is its own affair. 0 or -errno. */
static int take_chunks(struct saving *s, struct gn_chunks *chunks)
{
    for (;;) {
        const void *bytes;
        size_t n;
        if (interrupted)
            return -EINTR;
        const bool answered = atomic_load_explicit(&s->answered, memory_order_acquire);
        if (answered && (s->rc || (json_int_t)s->bytes >= said_bytes(s)))
            return 0;
        int rc = gn_chunks_next(chunks, LOOK_UP_MS, &bytes, &n);
        if (rc == 1) {
            rc = write_all(s->file.fd, bytes, n);
            if (!rc)
                rc = gn_chunks_taken(chunks);
            if (rc)
                return rc;
            s->bytes += n;
        } else if (rc != -ETIMEDOUT || answered) {
            return rc == -ETIMEDOUT ? 0 : rc;
        }
    }
}

static void *ask(void *arg)
{
    struct saving *s = arg;
    s->rc = gn_ctl_ask_on(s->link, s->request, &s->reply, &s->err);
    atomic_store_explicit(&s->answered, true, memory_order_release);
    return NULL;
}

/* All of it into the file, not yet on the disk. */
static int receive(struct saving *s, struct gn_error *err)
{
    struct gn_chunks chunks;
    int worker_end, written;
    pthread_t thread;
    sigset_t none, before;
    int rc = gn_chunks_offer(&chunks, &worker_end);
    if (rc)
        return gn_fail(err, -rc, NULL, "no memory can be had to share with its worker: %s",
                       strerror(-rc));
    gn_link_set_patience(s->link, -1);
    rc = gn_link_send_file(s->link, worker_end, err);
    close(worker_end);
    /* Signals are for the thread that writes, whose calls they end. */
    sigfillset(&none);
    pthread_sigmask(SIG_SETMASK, &none, &before);
    if (!rc && (rc = -pthread_create(&thread, NULL, ask, s)))
        gn_fail(err, -rc, NULL, "cannot start a thread");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc) {
        gn_chunks_close(&chunks);
        return rc;
    }
    struct gn_ctl_watch *watch = gn_ctl_watch_start(s->args, s->args->rest[0]);
    written = take_chunks(s, &chunks);
    gn_chunks_close(&chunks); /* a worker that still writes is told so, and its program goes on */
    pthread_join(thread, NULL);
    gn_ctl_watch_end(watch);
    if (written == -EINTR)
        return gn_fail(err, EINTR, NULL,
                       "interrupted: no checkpoint was made, and the program goes on");
    if (written)
        return gn_whole_file_cannot(&s->file, "write", -written, err);
    if (s->rc) {
        *err = s->err;
        return s->rc;
    }
    if (!json_is_object(json_object_get(s->reply, "checkpoint")))
        return gn_fail(err, EPROTO, "use a gantry of gantryd's version",
                       "gantryd's reply has no \"checkpoint\"");
    if (said_bytes(s) != (json_int_t)s->bytes)
        return gn_fail(err, EIO, "try again", "the worker says that it wrote more than came");
    return 0;
}

/* From here on the program waits. */
static int stop(struct saving *s, struct gn_error *err)
{
    char *request = gn_control_request("checkpoint-keep");
    json_t *reply = NULL;
    GN_FAULT("ctl-before-keep");
    int rc = request ? gn_ctl_ask_on(s->link, request, &reply, err)
                     : gn_fail(err, ENOMEM, NULL, "out of memory");
    free(request);
    if (rc)
        return rc;
    GN_FAULT("ctl-kept");
    json_decref(s->reply);
    s->reply = reply;
    return 0;
}

/* 0, or -errno; *ret_stopped: even so the program is stopped, or may be, and the file is whole
 * under its temporary name. */
static int save(struct saving *s, bool *ret_stopped, uint64_t *ret_sync_ns, struct gn_error *err)
{
    int rc = gn_link_connect_control(s->args->connect, GN_ROLE_CONTROL, &s->link, err);
    if (!rc)
        rc = receive(s, err);
    GN_FAULT("ctl-received");
    const uint64_t at_ns = gn_now_ns();
    if (!rc)
        rc = gn_whole_file_sync(&s->file, err);
    /* A file without a name ends with this process: so it has one before the program stops for it.
     */
    if (!rc && s->args->stop && !(rc = gn_whole_file_keep(&s->file, err))) {
        rc = stop(s, err);
        /* Whoever says no means it; he who says nothing may have heard. */
        *ret_stopped = rc != -EREMOTEIO;
    }
    GN_FAULT("ctl-before-rename");
    if (!rc)
        rc = gn_whole_file_name(&s->file, err);
    *ret_sync_ns = gn_now_ns() - at_ns;
    return rc;
}

static int report(struct saving *s, uint64_t total_ns, uint64_t sync_ns)
{
    char size[16], rate[16];
    json_t *c = json_object_get(s->reply, "checkpoint");
    if (s->args->json) {
        json_object_set_new(c, "file", gn_json_string(s->path));
        json_object_set_new(c, "total_ns", json_integer((json_int_t)total_ns));
        json_object_set_new(json_object_get(c, "phases_ns"), "sync",
                            json_integer((json_int_t)sync_ns));
        json_incref(s->reply);
        return gn_ctl_print_json(s->args, s->reply);
    }
    printf("%s saved: %s in %.2f s (%s/s), ", gn_ctl_id_of(c), gn_ctl_format_size(s->bytes, size),
           (double)total_ns / 1e9,
           gn_ctl_format_size(
               (uint64_t)((double)s->bytes * 1e9 / (double)(total_ns ? total_ns : 1)), rate));
    if (s->args->stop)
        printf("and stopped: its program waits for gantry restore\n");
    else
        printf("of which its program stood still for %.1f ms\n",
               (double)json_integer_value(json_object_get(c, "downtime_ns")) / 1e6);
    return gn_ctl_flush(s->args);
}

int gn_ctl_checkpoint(const struct gn_ctl_args *args)
{
    struct gn_control_wish wish = {
        .vgpu = args->rest[0],
        .stop = args->stop,
        .drain_timeout_ms = args->drain_timeout_ms ? args->drain_timeout_ms : GN_CONTROL_DRAIN_MS};
    struct saving s = {.args = args, .path = args->rest[0] ? args->rest[1] : NULL, .file.fd = -1};
    struct gn_error err = {{0}, {0}};
    bool stopped = false;
    uint64_t sync_ns = 0;
    const uint64_t began_ns = gn_now_ns();
    const bool named = wish.vgpu && *wish.vgpu;
    if (!named || !s.path || !*s.path) {
        gn_fail(&err, EINVAL, "write gantry checkpoint VGPU FILE; gantry ls lists the vGPUs",
                named ? "no file is given" : "no vGPU is given");
        return gn_ctl_fail(args, GN_EXIT_USAGE, failure, &err);
    }
    set_signals();
    s.request = gn_control_checkpoint_request(&wish);
    int rc = s.request ? gn_whole_file_open(&s.file, s.path, &err)
                       : gn_fail(&err, ENOMEM, NULL, "out of memory");
    if (!rc)
        rc = save(&s, &stopped, &sync_ns, &err);
    gn_whole_file_close(&s.file, stopped);
    if (s.link)
        gn_link_close(s.link);
    int status = GN_EXIT_OK;
    if (rc && stopped) {
        struct gn_error why = err;
        gn_fail(&err, -rc, NULL,
                "the program may be stopped, and its checkpoint is whole in %.200s, but: %.120s",
                s.file.temporary ? s.file.temporary : s.path, why.what);
    }
    if (rc)
        status = gn_ctl_fail(args, GN_EXIT_FAILED, failure, &err);
    else
        status = report(&s, gn_now_ns() - began_ns, sync_ns);
    json_decref(s.reply);
    free(s.request);
    gn_whole_file_fini(&s.file);
    return status;
}
