/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CONTROL_SOURCE_H
#define GN_CONTROL_SOURCE_H

#include "control/control.h"
#include "link/role.h"

/*
 * Where the answers come from: gantryd. Queries change nothing; what a lower role sees less of is
 * left out by them. A function that lists calls `each` once an item; what an item points at need
 * only hold during the call.
 */
struct gn_control_queries {
    void (*vgpus)(void *ctx, void (*each)(void *arg, const struct gn_control_vgpu *), void *arg);
    void (*devices)(void *ctx, void (*each)(void *arg, const struct gn_control_device *),
                    void *arg);
    void (*status)(void *ctx, struct gn_control_status *ret);
    void (*drivers)(void *ctx, void (*each)(void *arg, const struct gn_control_driver *),
                    void *arg);
    void (*tenants)(void *ctx, void (*each)(void *arg, const struct gn_control_tenant *),
                    void *arg);
    void (*policies)(void *ctx, void (*each)(void *arg, const struct gn_control_policy *),
                     void *arg);
    bool (*draining)(void *ctx); /* NULL: never */
    /* 0 and *ret, whose texts hold until the next request; or -errno: -ENOENT: it is not there. */
    int (*about)(void *ctx, const char *vgpu, struct gn_control_about *ret, struct gn_error *err);
};

/* Commands change something. 0, or -errno and nothing was changed. */
struct gn_control_commands {
    int (*set_policy)(void *ctx, const char *name, struct gn_error *err);
    /* vgpu: the only vGPU to trace, "": all; START only. NULL: there is no tracing. */
    int (*trace)(void *ctx, enum gn_control_tracing what, const char *vgpu,
                 struct gn_control_trace *ret,
                 void (*each)(void *arg, const struct gn_trace_event *), void *arg,
                 struct gn_error *err);
    /* The change's values are well-formed, not more. */
    int (*change)(void *ctx, const struct gn_control_change *change, struct gn_error *err);
    int (*drain)(void *ctx, bool on, struct gn_control_drain *ret, struct gn_error *err);
    int (*migrate)(void *ctx, const struct gn_control_wish *wish,
                   struct gn_error *err); /* 0: the answer comes later */
    /* -ENOMEM: too little device memory for it, now. */
    int (*receive)(void *ctx, const struct gn_control_about *about, struct gn_control_receipt *ret,
                   struct gn_error *err);
    /* The vGPU ends as when its worker is lost. -ENOENT: it is not there, or has ended. */
    int (*kill)(void *ctx, const char *vgpu, const char *reason, uint32_t *ret_id,
                struct gn_error *err);
    /* As migrate. `restore`: *ret_absent when it failed because no program waits. */
    int (*checkpoint)(void *ctx, const struct gn_control_wish *wish, struct gn_error *err);
    int (*keep)(void *ctx, struct gn_error *err);
    int (*restore)(void *ctx, const struct gn_control_restore *wish, bool *ret_absent,
                   struct gn_error *err);
};

struct gn_control_source {
    void *ctx;
    const struct gn_control_queries *queries;
    const struct gn_control_commands *commands;
};

/*
 * A request's reply, malloc'd; NULL when memory is out; empty when it comes later. The request is n
 * bytes, from anybody, over a connection of this role.
 */
char *gn_control_handle(const struct gn_control_source *source, enum gn_role role,
                        const char *request, size_t n);
/* -EPERM, and the sentence for a connection whose role does not allow the request. */
int gn_control_refuse_role(struct gn_error *err);

/* The handlers of control.c's table that stand in files of their own. The reply is as
 * gn_control_handle's. */
struct json_t;
char *gn_control_trace_start(const struct gn_control_source *source, const struct json_t *request);
char *gn_control_trace_read(const struct gn_control_source *source, const struct json_t *request);
char *gn_control_trace_stop(const struct gn_control_source *source, const struct json_t *request);
char *gn_control_parse_kill(const struct gn_control_source *source, const struct json_t *request);
char *gn_control_parse_drain(const struct gn_control_source *source, const struct json_t *request);
char *gn_control_parse_about(const struct gn_control_source *source, const struct json_t *request);
char *gn_control_parse_receive(const struct gn_control_source *source,
                               const struct json_t *request);
char *gn_control_parse_checkpoint(const struct gn_control_source *source,
                                  const struct json_t *request);
char *gn_control_parse_keep(const struct gn_control_source *source, const struct json_t *request);
char *gn_control_parse_restore(const struct gn_control_source *source,
                               const struct json_t *request);

#endif
