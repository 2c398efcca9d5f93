/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry doctor`: checks everything between a program and a device, and changes nothing. Main
 * thread; checks that may crash or hang run in child processes.
 */
#include "ctl/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "control/control.h"
#include "ctl/api.h"

/*
 * A driver may take long to wake a device, but a hanging driver must not keep the other findings
 * from being printed.
 */
#define TRY_TIMEOUT_MS 60000

static const char *const status_names[] = {"ok", "warn", "fail"};

static void print_finding(const json_t *o)
{
    const char *fix = json_string_value(json_object_get(o, "fix"));
    printf("%-4s  %-12s  %s%s%s\n", json_string_value(json_object_get(o, "status")),
           json_string_value(json_object_get(o, "check")),
           json_string_value(json_object_get(o, "finding")), fix ? "; " : "", fix ? fix : "");
    (void)fflush(stdout); /* a write error is sticky and is reported at the end */
}

json_t *gn_doctor_add(struct gn_doctor *d, const char *check, enum gn_doctor_status status,
                      const char *fix, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (char *p = text; *p; p++)
        if (*p == '\n')
            *p = ' ';
    gn_text_clean(text, strlen(text));
    json_t *o = json_object();
    json_object_set_new(o, "check", json_string(check));
    json_object_set_new(o, "status", json_string(status_names[status]));
    if (json_object_set_new(o, "finding", json_string(text)))
        json_object_set_new(o, "finding", json_string("the finding is not valid text"));
    if (fix && *fix) {
        snprintf(text, sizeof text, "%s", fix);
        gn_text_clean(text, strlen(text));
        json_object_set_new(o, "fix", json_string(text));
    }
    if (status > d->worst)
        d->worst = status;
    if (status == GN_DOCTOR_FAIL && d->n_failed++ == 0)
        d->first_failure = o;
    json_array_append_new(d->findings, o);
    if (d->prints)
        print_finding(o);
    return o;
}

static _Noreturn void in_child(void (*work)(void *arg, void *result), void *arg, void *result,
                               size_t n, int pipe_fd)
{
    int null = open("/dev/null", O_RDWR);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    work(arg, result);
    _exit(write(pipe_fd, result, n) == (ssize_t)n ? 0 : 1);
}

bool gn_doctor_try(void (*work)(void *arg, void *result), void *arg, void *ret, size_t n)
{
    int ends[2], got = 0;
    char *result = calloc(1, n);
    if (!result || pipe2(ends, O_CLOEXEC) < 0) {
        free(result);
        return false;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        in_child(work, arg, result, n, ends[1]);
    close(ends[1]);
    /* The result fits a pipe's buffer, so a single read returns all of it. */
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    if (pid > 0 && poll(&p, 1, TRY_TIMEOUT_MS) == 1)
        got = read(ends[0], result, n) == (ssize_t)n;
    close(ends[0]);
    if (pid > 0) {
        /* The child has written its result; kill it, since a driver's exit handlers may hang. */
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    if (got)
        memcpy(ret, result, n);
    free(result);
    return got;
}

static int print_json(const struct gn_ctl_args *args, const struct gn_doctor *d)
{
    json_t *root = json_object();
    json_object_set_new(root, "version", json_integer(GN_CONTROL_VERSION));
    json_object_set_new(root, "result", json_string(status_names[d->worst]));
    json_object_set(root, "findings", d->findings);
    if (d->first_failure) {
        json_t *error = json_object();
        char what[64];
        snprintf(what, sizeof what, "%d check%s failed", d->n_failed, d->n_failed == 1 ? "" : "s");
        json_object_set_new(error, "what", json_string(what));
        json_object_set(error, "why", json_object_get(d->first_failure, "finding"));
        json_object_set(error, "fix", json_object_get(d->first_failure, "fix"));
        json_object_set_new(root, "error", error);
    }
    return gn_ctl_print_json(args, root);
}

int gn_ctl_doctor(const struct gn_ctl_args *args)
{
    struct gn_doctor d = {.findings = json_array(),
                          .connect = args->connect,
                          .strict = args->strict,
                          .prints = !args->json};
    gn_doctor_check_daemon(&d);
    gn_doctor_check_installation(&d);
    for (int i = 0; gn_ctl_apis[i]; i++) {
        gn_ctl_apis[i]->check_loader(&d);
        gn_ctl_apis[i]->check_bypass(&d);
        gn_ctl_apis[i]->check_drivers(&d);
    }
    gn_doctor_check_kernel(&d);
    gn_doctor_check_processors(&d);
    int rc = args->json ? print_json(args, &d) : gn_ctl_flush(args);
    rc = rc ? rc : d.worst == GN_DOCTOR_FAIL ? GN_EXIT_FAILED : GN_EXIT_OK;
    json_decref(d.findings);
    json_decref(d.gantryd);
    return rc;
}
