/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry checkpoint`: saves a vGPU to a file. The worker writes the checkpoint into memory that it
 * shares with this process (link/chunks.h), and only this process touches the file. So the worker's
 * resource limits do not apply to the file, a full disk is reported here, and the worker cannot
 * change the file afterwards. The file gets its name only when all of its contents are on the disk.
 * The main thread writes the file; a second thread waits for gantryd's reply.
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
#include "client/client.h"
#include "control/control.h"
#include "control/json_region.h"
#include "ctl/ctl.h"
#include "ctl/progress.h"
#include "ctl/whole_file.h"
#include "link/chunks.h"
#include "link/link.h"

#define LOOK_UP_MS 100 /* how often to check for an interrupt */

static const char failure[] = "cannot save the vGPU";

struct saving {
    const struct gn_ctl_args *args;
    const char *path;
    struct gn_whole_file file;
    struct gn_link *link;
    uint64_t bytes;
    /* Set by the thread that waits for gantryd's reply. */
    char *request;
    json_t *reply;
    struct gn_error err;
    int rc;
    _Atomic bool answered; /* set last by that thread: the fields above are then valid */
};

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/*
 * The first Ctrl-C ends the save without leaving a partial file; a second one kills the process,
 * even when gantryd does not reply. A file that exceeds the size limit is an error and must not
 * kill the process.
 */
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

/*
 * Writes chunks to the file until the worker closes its end, or until gantryd's reply says that all
 * bytes have come or that the save failed: a faulty worker might never close its end. 0 or -errno.
 */
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
    s->rc = gn_client_ask_on(s->link, s->request, &s->reply, &s->err);
    atomic_store_explicit(&s->answered, true, memory_order_release);
    return NULL;
}

/* Writes the whole checkpoint to the file; does not sync it to the disk. */
static int receive(struct saving *s, struct gn_error *err)
{
    struct gn_chunks chunks;
    int worker_end, written;
    pthread_t thread;
    sigset_t none, before;
    int rc = gn_chunks_offer(&chunks, &worker_end);
    if (rc)
        return gn_fail(err, -rc, NULL, "cannot share memory with the worker: %s", strerror(-rc));
    gn_link_set_patience(s->link, -1);
    rc = gn_link_send_file(s->link, worker_end, err);
    close(worker_end);
    /* Block signals in the second thread: they must interrupt the main thread's calls. */
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
    /* If the worker still writes, this tells it to stop, and its program continues. */
    gn_chunks_close(&chunks);
    pthread_join(thread, NULL);
    gn_ctl_watch_end(watch);
    if (written == -EINTR)
        return gn_fail(err, EINTR, NULL,
                       "interrupted: no checkpoint was written, and the program continues");
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
        return gn_fail(
            err, EIO, "try again",
            "the checkpoint is incomplete: fewer bytes arrived than the worker has written");
    return 0;
}

/* Tells gantryd to keep the program stopped. From here on the program waits for a restore. */
static int stop(struct saving *s, struct gn_error *err)
{
    char *request = gn_control_request("checkpoint-keep");
    json_t *reply = NULL;
    GN_FAULT("ctl-before-keep");
    int rc = request ? gn_client_ask_on(s->link, request, &reply, err)
                     : gn_fail(err, ENOMEM, NULL, "out of memory");
    free(request);
    if (rc)
        return rc;
    GN_FAULT("ctl-kept");
    json_decref(s->reply);
    s->reply = reply;
    return 0;
}

/*
 * Saves the checkpoint. 0 or -errno. *ret_stopped is true on failure, too, if the program is
 * stopped or may be; the file is then complete under its temporary name.
 */
static int save(struct saving *s, bool *ret_stopped, uint64_t *ret_sync_ns, struct gn_error *err)
{
    int rc = gn_link_connect_control(s->args->connect, GN_ROLE_CONTROL, &s->link, err);
    if (!rc)
        rc = receive(s, err);
    GN_FAULT("ctl-received");
    const uint64_t at_ns = gn_now_ns();
    if (!rc)
        rc = gn_whole_file_sync(&s->file, err);
    /*
     * A nameless file is lost when this process ends, so it gets a temporary name before the
     * program is stopped.
     */
    if (!rc && s->args->stop && !(rc = gn_whole_file_keep(&s->file, err))) {
        rc = stop(s, err);
        /*
         * Only an explicit refusal (-EREMOTEIO) proves that the program was not stopped: if the
         * reply was lost, gantryd may have carried out the request.
         */
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
        printf("its program was paused for %.1f ms\n",
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
                "the program may be stopped; its checkpoint is complete in %.200s, but: %.120s",
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
