/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CL_PROGRAM_BUILD_LOG. A migration builds every program again, and the log of the repeated build
 * differs from the first one: it names other temporary files, and another driver words it in
 * another way. Therefore the first query of a log fetches the whole text, and this file answers
 * later queries from that copy, until the program is built again. Called on the program's threads.
 */
#include "opencl_guest.h"

#include <stdlib.h>

/* A longer log is not retained: each query of it asks the driver. */
#define MAX_LOG_BYTES ((size_t)16 << 20)
/* A migration between the two queries of a fetch may leave a longer log: the fetch begins again. */
#define TRIES 8u

struct gn_build_log {
    struct gn_build_log *next;
    cl_device_id device; /* a reference is held by the program object's context */
    size_t n_bytes;
    char text[];
};

void gn_build_logs_free(struct gn_build_log *logs)
{
    while (logs) {
        struct gn_build_log *next = logs->next;
        free(logs);
        logs = next;
    }
}

void gn_build_logs_forget(struct gn_cl_program *p)
{
    struct gn_cl_session *s = gn_cl_session_of(&p->o);
    pthread_mutex_lock(&s->build_logs_lock);
    struct gn_build_log *logs = p->build_logs;
    p->build_logs = NULL;
    p->n_builds++;
    pthread_mutex_unlock(&s->build_logs_lock);
    gn_build_logs_free(logs);
}

static const struct gn_build_log *find_log_locked(const struct gn_cl_program *p,
                                                  cl_device_id device)
{
    const struct gn_build_log *log = p->build_logs;
    while (log && log->device != device)
        log = log->next;
    return log;
}

static cl_int ask_driver(struct gn_cl_program *p, cl_device_id device, size_t size, void *text,
                         size_t *ret_size)
{
    struct gn_session *s = p->o.session;
    const cl_program_build_info what = CL_PROGRAM_BUILD_LOG;
    return gn_send_clGetProgramBuildInfo(s, (cl_program)p, device, what, size, text, ret_size);
}

/* NULL: the driver reports an error, the log is too long, or memory is short. */
static struct gn_build_log *fetch_log(struct gn_cl_program *p, cl_device_id device)
{
    for (unsigned i = 0; i < TRIES; i++) {
        size_t n = 0, reported = 0;
        if (ask_driver(p, device, 0, NULL, &n) || n > MAX_LOG_BYTES)
            return NULL;
        struct gn_build_log *log = malloc(sizeof *log + n);
        if (!log)
            return NULL;
        const cl_int result = n ? ask_driver(p, device, n, log->text, &reported) : CL_SUCCESS;
        if (!result && reported <= n) {
            log->device = device;
            log->n_bytes = reported;
            return log;
        }
        free(log);
        if (result != CL_INVALID_VALUE)
            return NULL;
    }
    return NULL;
}

/* The log that the program is told: the retained one, or else `fetched`, which is retained now
 * unless the program has been built since. NULL: neither. */
static const struct gn_build_log *choose_log_locked(struct gn_cl_program *p, cl_device_id device,
                                                    struct gn_build_log **fetched,
                                                    uint64_t n_builds)
{
    const struct gn_build_log *log = find_log_locked(p, device);
    if (log || !*fetched)
        return log;
    log = *fetched;
    if (p->n_builds == n_builds) {
        (*fetched)->next = p->build_logs;
        p->build_logs = *fetched;
        *fetched = NULL;
    }
    return log;
}

cl_int gn_local_clGetProgramBuildInfo(cl_program program, cl_device_id device,
                                      cl_program_build_info param_name, size_t size, void *value,
                                      size_t *size_ret)
{
    struct gn_cl_program *p = gn_object_of(program, GN_KIND_PROGRAM);
    struct gn_cl_session *s = gn_cl_session_of(&p->o);
    struct gn_build_log *fetched = NULL;
    cl_int result = CL_SUCCESS;
    (void)param_name;

    pthread_mutex_lock(&s->build_logs_lock);
    const struct gn_build_log *log = find_log_locked(p, device);
    if (!log) {
        const uint64_t n_builds = p->n_builds;
        pthread_mutex_unlock(&s->build_logs_lock);
        fetched = fetch_log(p, device);
        pthread_mutex_lock(&s->build_logs_lock);
        log = choose_log_locked(p, device, &fetched, n_builds);
    }
    if (log)
        result = gn_answer(log->text, log->n_bytes, size, value, size_ret);
    pthread_mutex_unlock(&s->build_logs_lock);
    if (!log)
        result = ask_driver(p, device, size, value, size_ret);
    free(fetched);
    return result;
}
