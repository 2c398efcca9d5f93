/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry restore`: reads the owner from the beginning of the checkpoint and passes the file to
 * gantryd, which starts a worker that reads all of it again. The file is untrusted. Main thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/client.h"
#include "control/control.h"
#include "ctl/ctl.h"
#include "link/link.h"
#include "stream/stream.h"

/*
 * After a restart of gantryd a program looks for it twice a second; keep trying for longer than
 * that.
 */
#define ABSENT_NS UINT64_C(3000000000)
#define PAUSE_NS  50000000

static const char failure[] = "cannot restore the vGPU";
static const struct gn_stream_limits limits = {.memory_bytes = UINT64_C(1) << 40,
                                               .entries_bytes = UINT64_C(64) << 30,
                                               .n_objects = 1u << 22,
                                               .n_memories = 1u << 22,
                                               .n_rounds = 1024,
                                               .body_bytes = GN_STREAM_MOST_BODY_BYTES};

struct head {
    struct gn_control_restore wish;
    bool has_tenant, has_stop;
};

static int take_entry(struct head *h, enum gn_stream_table table, const struct gn_stream_entry *e,
                      struct gn_error *err)
{
    struct gn_stream_part name;
    struct gn_stream_stop stop;
    if (table == GN_STREAM_TENANT) {
        if (!gn_stream_find_part(e, GN_PART_NAME, &name) || name.n >= sizeof h->wish.tenant ||
            !e->id || e->id > UINT32_MAX)
            return gn_fail(err, EBADMSG, NULL, "bad checkpoint: invalid owner record");
        memset(h->wish.tenant, 0, sizeof h->wish.tenant);
        memcpy(h->wish.tenant, name.bytes, name.n);
        for (char *c = h->wish.tenant; *c; c++)
            if (*c <= ' ' || *c > '~')
                *c = '?';
        h->wish.id = (uint32_t)e->id;
        h->has_tenant = true;
    } else if (table == GN_STREAM_SESSION && e->kind == GN_STREAM_SESSION_STOP) {
        if (!gn_stream_copy_part(e, GN_PART_STATE, &stop, sizeof stop) || stop.ring_at > INT64_MAX)
            return gn_fail(err, EBADMSG, NULL,
                           "bad checkpoint: invalid record of the stopped program");
        h->wish.ring_at = stop.ring_at;
        memcpy(h->wish.key, stop.key, sizeof h->wish.key);
        h->has_stop = true;
    }
    return 0;
}

/* Reads the tenant and the stop record, which precede the contents. */
static int read_head(int fd, struct head *h, struct gn_error *err)
{
    struct gn_stream_fd file = GN_STREAM_FD(fd, 0);
    const struct gn_stream_source source = gn_stream_source_of_fd(&file);
    struct gn_stream_section s = {0};
    struct gn_stream_entry e;
    struct gn_stream_reader *r;
    int rc = gn_stream_reader_create(&source, &limits, &r, err);
    if (rc)
        return rc;
    if (gn_stream_reader_about(r)->purpose != GN_STREAM_CHECKPOINT)
        rc = gn_fail(err, EINVAL, NULL, "it is not a checkpoint");
    while (rc == 0 && s.what != GN_STREAM_IS_COMMIT && s.what != GN_STREAM_IS_MEMORY &&
           s.what != GN_STREAM_IS_PAGES) {
        rc = gn_stream_next(r, &s);
        if (rc)
            *err = *gn_stream_reader_error(r);
        while (rc == 0 && s.what == GN_STREAM_IS_TABLE && gn_stream_next_entry(r, &e))
            rc = take_entry(h, s.table, &e, err);
    }
    gn_stream_reader_destroy(r);
    if (rc)
        return rc;
    if (!h->has_tenant)
        return gn_fail(err, EINVAL, NULL, "bad checkpoint: no owner record");
    if (!h->has_stop)
        return gn_fail(
            err, EINVAL, "gantry checkpoint --stop makes one that can be restored",
            "it was made without --stop: its program has continued, and cannot be restored");
    return 0;
}

/* One attempt. *ret_absent: no program is waiting for this vGPU at the moment. */
static int try_once(struct gn_link *link, int fd, const char *request, json_t **ret,
                    bool *ret_absent, struct gn_error *err)
{
    *ret_absent = false;
    if (lseek(fd, 0, SEEK_SET) != 0)
        return gn_fail(err, errno, NULL, "%s", strerror(errno));
    int rc = gn_link_send_file(link, fd, err);
    if (!rc)
        rc = gn_client_ask_on(link, request, ret, err);
    if (rc)
        return rc;
    const json_t *restore = json_object_get(*ret, "restore");
    const char *result = json_string_value(json_object_get(restore, "result"));
    const char *why = json_string_value(json_object_get(restore, "why"));
    if (!result)
        return gn_fail(err, EPROTO, "use a gantry of gantryd's version",
                       "gantryd's reply has no \"restore\"");
    if (strcmp(result, "restored") == 0)
        return 0;
    *ret_absent = true;
    return gn_fail(err, ESRCH, NULL, "%s", why ? why : "no program waits for it");
}

static int restore(const struct gn_ctl_args *args, int fd, const struct head *h, json_t **ret,
                   struct gn_error *err)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    const uint64_t until_ns = gn_now_ns() + ABSENT_NS;
    struct gn_link *link = NULL;
    bool absent = false;
    char *request = gn_control_restore_request(&h->wish);
    int rc = request ? gn_link_connect_control(args->connect, GN_ROLE_CONTROL, &link, err)
                     : gn_fail(err, ENOMEM, NULL, "out of memory");
    if (!rc) {
        gn_ctl_when_interrupted(args, failure,
                                "its program still waits, unless the restore has just completed",
                                "gantry ls shows it");
        gn_link_set_patience(link, -1);
    }
    while (!rc) {
        rc = try_once(link, fd, request, ret, &absent, err);
        if (!absent || gn_now_ns() >= until_ns)
            break;
        json_decref(*ret);
        *ret = NULL;
        rc = 0;
        nanosleep(&pause, NULL);
    }
    if (link)
        gn_link_close(link);
    free(request);
    return rc;
}

int gn_ctl_restore(const struct gn_ctl_args *args)
{
    const char *path = args->rest[0];
    struct head h = {0};
    struct gn_error why = {{0}, {0}}, err;
    json_t *reply = NULL;
    int fd = -1, status;
    if (!path) {
        gn_fail(&err, EINVAL, "write gantry restore FILE", "no file is given");
        return gn_ctl_fail(args, GN_EXIT_USAGE, failure, &err);
    }
    const uint64_t began_ns = gn_now_ns();
    int rc = gn_ctl_open_stream(path, &fd, &why);
    if (rc == 0)
        rc = read_head(fd, &h, &why);
    if (rc == 0)
        rc = restore(args, fd, &h, &reply, &why);
    if (fd >= 0)
        close(fd);
    explicit_bzero(&h, sizeof h);
    const uint64_t total_ns = gn_now_ns() - began_ns;
    json_t *r = json_object_get(reply, "restore");
    if (rc) {
        gn_fail(&err, -rc, why.fix[0] ? why.fix : NULL, "%.100s: %.270s", path, why.what);
        status = gn_ctl_fail(args, GN_EXIT_FAILED, failure, &err);
    } else if (args->json) {
        json_object_set_new(r, "total_ns", json_integer((json_int_t)total_ns));
        status = gn_ctl_print_json(args, json_incref(reply));
    } else {
        printf("%s restored in %.2f s; its program continues\n", gn_ctl_id_of(r),
               (double)total_ns / 1e9);
        status = gn_ctl_flush(args);
    }
    json_decref(reply);
    return status;
}
