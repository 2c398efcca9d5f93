/* SPDX-License-Identifier: Apache-2.0 */
/* `gantry doctor`: checks Gantry itself: the socket, gantryd, this installation. Main thread. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/client.h"
#include "ctl/doctor.h"
#include "link/address.h"
#include "link/direct.h"
#include "link/link.h"

/* Whether a socket exists that this user may open. Adds a finding only if it does not. */
static bool check_socket(struct gn_doctor *d, const struct gn_address *a)
{
    static const char check[] = "socket",
                      start[] = "start gantryd, or say where it is with --connect";
    struct stat st;
    if (stat(a->path, &st) < 0) {
        gn_doctor_add(d, check, GN_DOCTOR_FAIL,
                      errno == EACCES ? "ask for search permission on its directory" : start,
                      "%s: %s", a->path,
                      errno == ENOENT ? "there is no socket: gantryd does not run there"
                                      : strerror(errno));
        return false;
    }
    if (!S_ISSOCK(st.st_mode)) {
        gn_doctor_add(d, check, GN_DOCTOR_FAIL, start, "%s is not a socket", a->path);
        return false;
    }
    if (access(a->path, W_OK) < 0) {
        gn_doctor_add(
            d, check, GN_DOCTOR_FAIL,
            "ask an operator to admit this user (gantry tenant add NAME --uid UID), or start a "
            "gantryd of your own",
            "this user may not use %s (owner uid %u, mode %04o): %s", a->path, st.st_uid,
            st.st_mode & 07777u, strerror(errno));
        return false;
    }
    gn_doctor_add(d, check, GN_DOCTOR_OK, NULL, "this user may use %s (owner uid %u, mode %04o)",
                  a->path, st.st_uid, st.st_mode & 07777u);
    return true;
}

static void check_version(struct gn_doctor *d)
{
    const json_t *g = json_object_get(d->gantryd, "gantryd");
    const char *version = json_string_value(json_object_get(g, "version"));
    int pid = (int)json_integer_value(json_object_get(g, "pid"));
    if (!version)
        version = "of another version";
    if (strcmp(version, GN_VERSION) != 0)
        gn_doctor_add(d, "daemon", GN_DOCTOR_WARN, "restart gantryd from this installation",
                      "gantryd %s (pid %d) answers, but this gantry is %s", version, pid,
                      GN_VERSION);
    else
        gn_doctor_add(d, "daemon", GN_DOCTOR_OK, NULL, "gantryd %s (pid %d) answers", version, pid);
    json_int_t n = json_integer_value(json_object_get(g, "devices"));
    gn_doctor_add(d, "devices", n ? GN_DOCTOR_OK : GN_DOCTOR_FAIL,
                  n ? NULL : "gantry devices lists them",
                  "%d device%s on %d platform%s, used by %d vGPU%s", (int)n, n == 1 ? "" : "s",
                  (int)json_integer_value(json_object_get(g, "platforms")),
                  json_integer_value(json_object_get(g, "platforms")) == 1 ? "" : "s",
                  (int)json_integer_value(json_object_get(g, "vgpus")),
                  json_integer_value(json_object_get(g, "vgpus")) == 1 ? "" : "s");
}

static void check_walls(struct gn_doctor *d)
{
    static const char check[] = "walls";
    const json_t *w = json_object_get(json_object_get(d->gantryd, "gantryd"), "walls");
    const char *mode = json_string_value(json_object_get(w, "mode"));
    const char *have = json_string_value(json_object_get(w, "have"));
    const char *missing = json_string_value(json_object_get(w, "missing"));
    if (!mode || !have || !missing)
        return;
    if (strcmp(mode, "none") == 0)
        gn_doctor_add(d, check, GN_DOCTOR_WARN, "start gantryd with --walls available",
                      "workers are not confined: kernels have all rights of the workers' user");
    else if (*missing)
        gn_doctor_add(d, check, GN_DOCTOR_WARN, "see docs/threat-model.md for the requirements",
                      "workers are confined (%s), but this machine lacks: %s",
                      *have ? have : "by nothing", missing);
    else
        gn_doctor_add(d, check, GN_DOCTOR_OK, NULL, "workers are confined: %s", have);
}

static unsigned long long limit_of(const json_t *limits, const char *key)
{
    return (unsigned long long)json_integer_value(json_object_get(limits, key));
}

static const char *plural(unsigned long long n)
{
    return n == 1 ? "" : "s";
}

static void check_limits(struct gn_doctor *d)
{
    static const char check[] = "limits";
    const json_t *l = json_object_get(json_object_get(d->gantryd, "gantryd"), "limits");
    const unsigned long long vgpus = limit_of(l, "refused_vgpus"),
                             closed = limit_of(l, "closed_connections");
    const unsigned long long lines = limit_of(l, "dropped_lines"),
                             memory = limit_of(l, "refused_allocations");
    if (!json_is_object(l)) /* gantryd hides its limits from this user */
        return;
    if (!vgpus && !closed && !lines && !memory)
        gn_doctor_add(
            d, check, GN_DOCTOR_OK, NULL,
            "gantryd has descriptors for %llu vGPUs, and has refused nothing since its start",
            limit_of(l, "vgpu_places"));
    else
        gn_doctor_add(
            d, check, GN_DOCTOR_WARN,
            "see gantryd's log for the tenants; their limits, or gantryd's limit of open files "
            "(LimitNOFILE), may be too low",
            "since its start gantryd has refused %llu vGPU%s and %llu allocation%s, closed %llu "
            "connection%s over its limits, and "
            "dropped %llu line%s of its log; it has descriptors for %llu vGPUs",
            vgpus, plural(vgpus), memory, plural(memory), closed, plural(closed), lines,
            plural(lines), limit_of(l, "vgpu_places"));
}

/* The user's role when using `gantry`; it is independent of the access of the user's programs. */
static void check_role(struct gn_doctor *d, const struct gn_address *a)
{
    static const char check[] = "role";
    char control[GN_ADDRESS_MAX_PATH + 1], view[GN_ADDRESS_MAX_PATH + 1];
    if (gn_address_of_role(a->path, GN_ROLE_CONTROL, control, NULL) ||
        gn_address_of_role(a->path, GN_ROLE_VIEW, view, NULL))
        return;
    if (access(control, W_OK) == 0)
        gn_doctor_add(d, check, GN_DOCTOR_OK, NULL, "this user is an operator: it may use %s",
                      control);
    else if (access(view, W_OK) == 0)
        gn_doctor_add(d, check, GN_DOCTOR_OK, NULL,
                      "this user is a viewer, and sees all tenants: it may use %s", view);
    else
        gn_doctor_add(d, check, GN_DOCTOR_OK, NULL,
                      "this user sees only its own tenant, and may at most end its own vGPUs");
}

/* Reads gantryd's status. */
static void check_status(struct gn_doctor *d)
{
    struct gn_error err = {{0}, {0}};
    if (gn_client_ask(d->connect, "status", &d->gantryd, &err)) {
        if (d->daemon_answers)
            gn_doctor_add(d, "daemon", GN_DOCTOR_WARN,
                          err.fix[0] ? err.fix : "restart gantryd from this installation",
                          "gantryd answers with an error: %s", err.what);
        return;
    }
    check_version(d);
    check_walls(d);
    check_limits(d);
    if (gn_doctor_is_drained(d))
        gn_doctor_add(d, "daemon", GN_DOCTOR_WARN, "gantry drain --undo ends that",
                      "gantryd is draining and accepts no new programs");
}

bool gn_doctor_is_drained(const struct gn_doctor *d)
{
    return json_is_true(json_object_get(json_object_get(d->gantryd, "gantryd"), "draining"));
}

void gn_doctor_check_daemon(struct gn_doctor *d)
{
    struct gn_address a;
    struct gn_link *link;
    struct gn_error err = {{0}, {0}};
    if (gn_address_resolve(d->connect, &a, &err)) {
        gn_doctor_add(d, "socket", GN_DOCTOR_FAIL, err.fix, "%s", err.what);
        return;
    }
    if (!a.tcp && !check_socket(d, &a))
        return;
    int rc = gn_link_connect(d->connect, &link, &err);
    if (rc == -ECONNREFUSED && !a.tcp) {
        gn_doctor_add(d, "daemon", GN_DOCTOR_FAIL, "start it again; it will replace the socket",
                      "no process listens at %s: gantryd was killed", a.path);
        return;
    }
    if (rc == 0) {
        gn_link_close(link);
        d->daemon_answers = true;
    } else {
        d->daemon_refuses = rc == -EACCES;
        gn_doctor_add(d, "daemon", GN_DOCTOR_FAIL, err.fix[0] ? err.fix : "see gantryd's log", "%s",
                      err.what);
    }
    if (rc && !d->daemon_refuses)
        return;
    if (!a.tcp)
        check_role(d, &a);
    check_status(d);
}

/*
 * Checks that the parts of the installation are present. Each one is loaded only when it is needed,
 * so a missing part would be noticed late.
 */
static void check_parts(struct gn_doctor *d)
{
    static const struct {
        const char *file, *lost;
    } libraries[] = {{GN_DIRECT_LIBRARY, "no program can use passthrough"},
                     {"libgantry-tls.so", "no gantryd is reached over tcp with TLS"}};
    static const char check[] = "parts",
                      fix[] = "install Gantry as a whole (make install, or make stage)";
    char path[GN_PLACE_BYTES];
    bool all = true;
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        if (access(gn_client_next_to_library(&d->places, libraries[i].file, path), R_OK) == 0)
            continue;
        gn_doctor_add(d, check, GN_DOCTOR_WARN, fix, "%.300s: %s: %s", path, strerror(errno),
                      libraries[i].lost);
        all = false;
    }
    snprintf(path, sizeof path, "%.4000s/bin/gantryd", d->places.prefix);
    const bool serves = access(path, X_OK) == 0;
    snprintf(path, sizeof path, "%.4000s/libexec/gantry/gantry-worker", d->places.prefix);
    if (serves && access(path, X_OK) < 0) {
        gn_doctor_add(d, check, GN_DOCTOR_FAIL, fix,
                      "%.300s: %s: the gantryd of this installation cannot start", path,
                      strerror(errno));
        all = false;
    }
    if (all)
        gn_doctor_add(d, check, GN_DOCTOR_OK, NULL,
                      "the parts for passthrough, TLS%s are installed",
                      serves ? " and gantryd" : "");
}

void gn_doctor_check_installation(struct gn_doctor *d)
{
    struct gn_error err = {{0}, {0}};
    if (gn_client_find_places(&d->places, &err)) {
        gn_doctor_add(d, "installation", GN_DOCTOR_FAIL, err.fix, "%s", err.what);
        return;
    }
    d->places_known = true;
    gn_doctor_add(d, "installation", GN_DOCTOR_OK, NULL, "%.300s names %.300s, which exists",
                  d->places.icd, d->places.library);
    check_parts(d);
}
