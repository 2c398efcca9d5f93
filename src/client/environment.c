/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets the environment by which an ICD loader finds Gantry, and Gantry finds gantryd. Called by
 * `gantry run` before it executes the program. Asks gantryd first whether it would accept the
 * program, because the program itself would only see no device. Starts no process.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/client.h"
#include "control/control.h"
#include "link/address.h"
#include "link/direct.h"
#include "link/link.h"
#include "link/token.h"

/* Makes gantryd's address independent of the working directory, which the program may change. */
static int absolute_address(const char *connect, char ret[static GN_ADDRESS_TEXT_BYTES],
                            struct gn_error *err)
{
    struct gn_address a;
    char path[sizeof a.path];
    int rc = gn_address_resolve(connect, &a, err);
    if (rc)
        return rc;
    if (!a.tcp && a.path[0] != '/') {
        char *cwd = getcwd(NULL, 0);
        if (!cwd)
            return gn_fail(err, errno, "give --connect an absolute path",
                           "cannot tell the working directory: %s", strerror(errno));
        if ((size_t)snprintf(path, sizeof path, "%s/%s", cwd, a.path) >= sizeof path)
            rc = gn_fail(err, ENAMETOOLONG, "use a shorter path",
                         "the socket path %s/%s is too long", cwd, a.path);
        free(cwd);
        memcpy(a.path, path, sizeof path);
    }
    gn_address_print(&a, ret);
    return rc;
}

static void set_number(const char *name, uint64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, n);
    setenv(name, text, 1);
}

/*
 * Checks that the tenant may use passthrough: otherwise the program would see no device and no
 * explanation.
 */
static int may_host(struct gn_link *link, const char *address, struct gn_error *err)
{
    char *request = gn_control_request("tenants");
    json_t *reply = NULL, *mode;
    size_t i;
    bool may = false;
    int rc = strncmp(address, "tcp:", 4) == 0
                 ? gn_fail(err, EOPNOTSUPP, "use --mode remote",
                           "passthrough needs a gantryd on the program's own machine")
             : request ? gn_client_ask_on(link, request, &reply, err)
                       : gn_fail(err, ENOMEM, NULL, "out of memory");
    free(request);
    if (rc)
        return rc;
    /*
     * The control socket lists all tenants, so nothing can be checked; gantryd checks when the
     * program attaches.
     */
    const json_t *tenants = json_object_get(reply, "tenants"), *own = json_array_get(tenants, 0);
    const char *name = json_string_value(json_object_get(own, "name"));
    json_array_foreach(json_object_get(own, "modes"), i, mode)
    {
        may |= json_is_string(mode) && strcmp(json_string_value(mode), "passthrough") == 0;
    }
    if (!may && json_array_size(tenants) == 1)
        rc = gn_fail(
            err, EACCES,
            "use --mode remote, or allow it with gantry tenant set NAME --mode remote --mode "
            "passthrough",
            "the tenant \"%s\" may not use the mode passthrough", name ? name : "");
    json_decref(reply);
    return rc;
}

/*
 * Checks that gantryd accepts new programs: the error is clearer here than in the program. 0 or
 * -errno.
 */
static int is_let_in(struct gn_link *link, struct gn_error *err)
{
    struct gn_error ignored;
    json_t *reply = NULL;
    char *request = gn_control_request("status");
    if (request)
        (void)gn_client_ask_on(link, request, &reply, &ignored);
    free(request);
    const bool draining =
        json_is_true(json_object_get(json_object_get(reply, "gantryd"), "draining"));
    json_decref(reply);
    return draining ? gn_fail(err, ESHUTDOWN, "use another one (--connect), or try again later",
                              "this gantryd is draining and accepts no new programs")
                    : 0;
}

int gn_client_set_environment(const struct gn_client_run *run, struct gn_error *err)
{
    struct gn_client_places places;
    struct gn_link *link = NULL;
    const bool passthrough = run->mode && strcmp(run->mode, "passthrough") == 0;
    char part[GN_PLACE_BYTES], address[GN_ADDRESS_TEXT_BYTES], token[GN_LINK_TOKEN_BYTES];
    int shared;
    int rc = absolute_address(run->connect, address, err);
    if (rc == 0)
        rc = gn_client_find_places(&places, err);
    /* Before connecting: gantryd checks these values for this connection, too. */
    if (run->tenant)
        setenv("GANTRY_TENANT", run->tenant, 1);
    if (rc == 0 && run->token_file &&
        (rc = gn_token_read(run->token_file, token, &shared, err)) == 0)
        setenv("GANTRY_TOKEN", token, 1);
    if (rc == 0 && passthrough &&
        access(gn_client_next_to_library(&places, GN_DIRECT_LIBRARY, part), R_OK) < 0)
        rc =
            gn_fail(err, errno,
                    "install Gantry as a whole (make install, or make stage), or use --mode remote",
                    "passthrough needs %.200s: %s", part, strerror(errno));
    if (rc == 0)
        rc = gn_link_connect(address, &link, err);
    if (rc)
        return rc;
    rc = is_let_in(link, err);
    if (rc == 0 && passthrough)
        rc = may_host(link, address, err);
    gn_link_close(link);
    if (rc)
        return rc;
    setenv("GANTRY_CONNECT", address, 1);
    setenv("OCL_ICD_VENDORS", places.vendors, 1);
    /*
     * Khronos's loader loads these libraries in addition to those of the directory, each once. The
     * variable may name another driver, which programs would then see beside Gantry. And if
     * OCL_ICD_VENDORS is a file, that loader uses only this variable.
     */
    setenv("OCL_ICD_FILENAMES", places.library, 1);
    if (run->weight)
        set_number("GANTRY_WEIGHT", run->weight);
    if (run->memory_bytes)
        set_number("GANTRY_MEMORY", run->memory_bytes);
    if (run->mode)
        setenv("GANTRY_MODE", run->mode, 1);
    return 0;
}
