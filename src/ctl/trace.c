/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry trace`: starts tracing in gantryd, fetches the events several times a second, and writes
 * them as a timeline or as a recording. Main thread.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/client.h"
#include "control/control.h"
#include "ctl/ctl.h"
#include "ctl/recording.h"
#include "ctl/timeline.h"
#include "ctl/trace_event.h"
#include "link/link.h"

#define POLL_NS 50000000u

static const char failure[] = "cannot trace";
static volatile sig_atomic_t ended;

static void end(int signal)
{
    (void)signal;
    ended = 1;
}

struct tracer {
    struct gn_link *link;
    FILE *to;
    struct gn_timeline *line; /* exactly one of `line` and `recording` is set */
    struct gn_recording *recording;
    uint64_t began_ns, now_ns, n_events, n_turns, n_lost;
};

/* Sends a request about tracing; frees `text`. */
static int ask(struct tracer *t, char *text, json_t **ret, struct gn_error *err)
{
    int rc = text ? gn_client_ask_on(t->link, text, ret, err)
                  : gn_fail(err, ENOMEM, NULL, "out of memory");
    free(text);
    if (rc == 0 && !json_object_get(*ret, "trace"))
        rc = gn_fail(err, EPROTO, "use a gantry of gantryd's version",
                     "gantryd's reply has no \"trace\"");
    return rc;
}

/* Handles a reply. *ret_more: further events can be fetched at once. */
static int take(struct tracer *t, const json_t *reply, bool *ret_more, struct gn_error *err)
{
    const json_t *trace = json_object_get(reply, "trace");
    const uint64_t before_ns = t->now_ns,
                   lost = (uint64_t)json_integer_value(json_object_get(trace, "dropped"));
    json_t *e;
    size_t i;
    int rc = 0;
    t->now_ns = (uint64_t)json_integer_value(json_object_get(trace, "now_ns"));
    if (!t->began_ns)
        t->began_ns = t->now_ns;
    json_array_foreach(json_object_get(trace, "events"), i, e)
    {
        struct gn_trace_event event;
        const bool known = gn_trace_event_read(e, &event);
        if (rc == 0 && known &&
            ((t->line && gn_timeline_add(t->line, &event)) ||
             (t->recording && gn_recording_add(t->recording, &event))))
            rc = gn_fail(err, ENOMEM, "trace one vGPU alone", "out of memory");
        t->n_events++;
    }
    /*
     * Several threads of gantryd add events, so the events are in order only up to the previous
     * reply.
     */
    if (t->line)
        gn_timeline_settle(t->line, before_ns);
    if (lost && t->line)
        gn_timeline_lost(t->line, lost, t->now_ns);
    t->n_lost += lost;
    *ret_more = json_is_true(json_object_get(trace, "more"));
    return rc;
}

/* Fetches all events that gantryd has now. */
static int fetch_all(struct tracer *t, const char *request, struct gn_error *err)
{
    bool more = true;
    int rc = 0;
    for (; rc == 0 && more; request = "trace-read") {
        json_t *reply = NULL;
        rc = ask(t, gn_control_request(request), &reply, err);
        if (rc == 0)
            rc = take(t, reply, &more, err);
        json_decref(reply);
    }
    return rc;
}

/* Opens the output file, which truncates it, so it is called only once tracing has begun. */
static int open_file(struct tracer *t, const struct gn_ctl_args *args, uint64_t began_ns,
                     const json_t *devices, struct gn_error *err)
{
    t->to = strcmp(args->output, "-") == 0 ? stdout : fopen(args->output, "we");
    if (!t->to)
        return gn_fail(err, errno, NULL, "cannot write %.300s: %s", args->output, strerror(errno));
    if (args->recording)
        t->recording = gn_recording_begin(t->to, began_ns);
    else
        t->line = gn_timeline_begin(t->to, began_ns, devices);
    return t->line || t->recording ? 0 : gn_fail(err, ENOMEM, NULL, "out of memory");
}

static int begin(struct tracer *t, const struct gn_ctl_args *args, struct gn_error *err)
{
    char *text = gn_control_request("devices");
    json_t *devices = NULL, *reply = NULL;
    bool more = false;
    int rc = text ? gn_client_ask_on(t->link, text, &devices, err)
                  : gn_fail(err, ENOMEM, NULL, "out of memory");
    free(text);
    /* The first reply already holds events, so the output starts at a time before the request. */
    const uint64_t began_ns = gn_now_ns();
    if (rc == 0)
        rc = ask(t, gn_control_trace_request(args->vgpu), &reply, err);
    if (rc == 0)
        rc = open_file(t, args, began_ns, json_object_get(devices, "devices"), err);
    if (rc == 0)
        rc = take(t, reply, &more, err);
    json_decref(devices);
    json_decref(reply);
    return rc || !more ? rc : fetch_all(t, "trace-read", err);
}

static int follow(struct tracer *t, uint64_t until_ns, struct gn_error *err)
{
    const bool shows = isatty(STDERR_FILENO);
    int rc = 0;
    while (rc == 0 && !ended && gn_now_ns() < until_ns) {
        const uint64_t left = until_ns - gn_now_ns(), pause = left < POLL_NS ? left : POLL_NS;
        nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL); /* a signal ends the pause */
        rc = fetch_all(t, "trace-read", err);
        if (shows)
            fprintf(stderr, "\rgantry trace: %.1f s, %llu event%s",
                    (double)(t->now_ns - t->began_ns) / 1e9, (unsigned long long)t->n_events,
                    t->n_events == 1 ? "" : "s");
    }
    if (shows)
        fputs("\r\033[K", stderr);
    return rc;
}

static int finish(struct tracer *t, const char *path, struct gn_error *err)
{
    if (!t->to)
        return 0;
    if (t->line)
        gn_timeline_end(t->line, t->now_ns);
    if (t->recording)
        t->n_turns = gn_recording_end(t->recording);
    t->line = NULL;
    t->recording = NULL;
    const bool failed = ferror(t->to) || fflush(t->to);
    const int code = errno;
    if (t->to != stdout)
        fclose(t->to);
    return failed ? gn_fail(err, code, NULL, "cannot write %.300s: %s", path, strerror(code)) : 0;
}

int gn_ctl_trace(const struct gn_ctl_args *args)
{
    const char *path = args->output;
    const bool to_stdout = path && strcmp(path, "-") == 0;
    /* a second signal kills the process */
    struct sigaction how = {.sa_handler = end, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    struct gn_error err = {{0}, {0}}, other;
    struct tracer t = {.link = NULL};
    if (!path) {
        gn_fail(&err, EINVAL, "write -o FILE, or -o - for stdout", "no output file is given");
        return gn_ctl_fail(args, GN_EXIT_USAGE, "wrong usage", &err);
    }
    int rc = gn_link_connect_control(args->connect, GN_ROLE_VIEW, &t.link, &err);
    if (rc)
        return gn_ctl_fail(args, GN_EXIT_FAILED, failure, &err);
    sigaction(SIGINT, &how, NULL);
    sigaction(SIGTERM, &how, NULL);
    sigaction(SIGHUP, &how, NULL);
    rc = begin(&t, args, &err);
    if (rc == 0)
        rc = follow(&t, args->delay_ns ? gn_now_ns() + args->delay_ns : UINT64_MAX, &err);
    if (rc == 0)
        rc = fetch_all(&t, "trace-stop", &err);
    /* Write the events fetched so far, even after an error. */
    if (finish(&t, to_stdout ? "to stdout" : path, &other) && rc == 0) {
        rc = -EIO;
        err = other;
    }
    gn_link_close(t.link);
    if (rc)
        return gn_ctl_fail(args, GN_EXIT_FAILED, failure, &err);
    fprintf(stderr, "gantry trace: %llu events of %.1f s%s%s", (unsigned long long)t.n_events,
            (double)(t.now_ns - t.began_ns) / 1e9, to_stdout ? "" : " in ", to_stdout ? "" : path);
    if (t.n_lost)
        fprintf(stderr, "; %llu were lost because they came too fast",
                (unsigned long long)t.n_lost);
    if (args->recording)
        fprintf(stderr, "; %llu turns\n", (unsigned long long)t.n_turns);
    else
        fputs(to_stdout ? "\n" : "; ui.perfetto.dev and chrome://tracing open it\n", stderr);
    return GN_EXIT_OK;
}
