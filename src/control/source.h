/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CONTROL_SOURCE_H
#define GN_CONTROL_SOURCE_H

#include "control/control.h"
#include "link/role.h"

/*
 * The interface through which gantryd answers requests. Queries change nothing, and leave out the
 * things that a connection's role may not see. A function that lists items calls `each` once per
 * item; the item's pointers need to be valid during that call only.
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
    /* Placement policies; none is in force if no device's memory is placed. */
    void (*places)(void *ctx, void (*each)(void *arg, const struct gn_control_policy *), void *arg);
    bool (*draining)(void *ctx); /* NULL: never draining */
    /*
     * Returns 0 and *ret, with texts that are valid until the next request, or -errno. -ENOENT: no
     * such vGPU.
     */
    int (*about)(void *ctx, const char *vgpu, struct gn_control_about *ret, struct gn_error *err);
};

/* Commands change something. Each returns 0, or -errno and nothing has changed. */
struct gn_control_commands {
    int (*set_policy)(void *ctx, const char *name, struct gn_error *err);
    int (*set_place)(void *ctx, const char *name, struct gn_error *err);
    /* vgpu: the only vGPU to trace, "": all; for START only. NULL: tracing is not supported. */
    int (*trace)(void *ctx, enum gn_control_tracing what, const char *vgpu,
                 struct gn_control_trace *ret,
                 void (*each)(void *arg, const struct gn_trace_event *), void *arg,
                 struct gn_error *err);
    /* The values of the change are well-formed, but not checked further. */
    int (*change)(void *ctx, const struct gn_control_change *change, struct gn_error *err);
    int (*drain)(void *ctx, bool on, struct gn_control_drain *ret, struct gn_error *err);
    /* 0: the reply comes later */
    int (*migrate)(void *ctx, const struct gn_control_wish *wish, struct gn_error *err);
    /* -ENOMEM: not enough device memory at the moment. */
    int (*receive)(void *ctx, const struct gn_control_about *about, struct gn_control_receipt *ret,
                   struct gn_error *err);
    /* Ends the vGPU as the loss of its worker does. -ENOENT: no such vGPU, or it has ended. */
    int (*kill)(void *ctx, const char *vgpu, const char *reason, uint32_t *ret_id,
                struct gn_error *err);
    /* These reply later, as migrate does. `restore`: sets *ret_absent if no program waits. */
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
 * Returns the reply to a request, malloc'd. NULL: out of memory. Empty: the reply comes later. The
 * request is n bytes from an untrusted peer, over a connection of this role.
 */
char *gn_control_handle(const struct gn_control_source *source, enum gn_role role,
                        const char *request, size_t n);
/* Returns -EPERM, with the sentence for a connection that has too low a role for the request. */
int gn_control_refuse_role(struct gn_error *err);

/*
 * The handlers of control.c's table that are in files of their own. Each returns a reply as
 * gn_control_handle does.
 */
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
