/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CLIENT_H
#define GN_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "link/role.h"

/*
 * A library for processes that talk to gantryd or start programs on vGPUs; `gantry` is one. It
 * prints nothing and keeps no state. Errors are messages for people.
 */

/*
 * ask.c: sends a control request and returns its reply, which the caller must json_decref. `query`
 * names a request; `text` is a whole request as JSON, and `role` the role that it needs
 * (gn_link_connect_control). 0 or -errno: -EREMOTEIO: gantryd refused; for a move, -ENOENT: the
 * vGPU no longer exists, -ENOBUFS: not enough device memory at the destination.
 */
int gn_client_ask(const char *connect, const char *query, json_t **ret, struct gn_error *err);
int gn_client_ask_text(const char *connect, enum gn_role role, const char *text, json_t **ret,
                       struct gn_error *err);
/* The same on an existing connection; see gn_link_connect_control. */
struct gn_link;
int gn_client_ask_on(struct gn_link *link, const char *text, json_t **ret, struct gn_error *err);

/* The locations of this installation's files, derived from the path of this executable. */
#define GN_PLACE_BYTES 4096
struct gn_client_places {
    /*
     * The value for OCL_ICD_VENDORS: a directory, or the ICD file itself when the directory holds
     * other vendors' files, too.
     */
    char vendors[GN_PLACE_BYTES];
    char icd[GN_PLACE_BYTES];     /* gantry.icd */
    char library[GN_PLACE_BYTES]; /* the library that gantry.icd names */
    char prefix[GN_PLACE_BYTES];  /* the parent directory of bin/gantry */
};

/* places.c: finds the locations and checks that the library exists. 0 or -errno. */
int gn_client_find_places(struct gn_client_places *ret, struct gn_error *err);
/*
 * Writes the path of `file` in the library's directory to ret, which has GN_PLACE_BYTES. Returns
 * ret.
 */
const char *gn_client_next_to_library(const struct gn_client_places *places, const char *file,
                                      char *ret);

/* How a program is to be started; NULL or 0: not given. */
struct gn_client_run {
    const char *connect;    /* gantryd's address */
    const char *tenant;     /* NULL: that of $GANTRY_TENANT */
    const char *token_file; /* a file with the tenant's token; NULL: $GANTRY_TOKEN */
    const char *mode;       /* "remote" or "passthrough" */
    uint32_t weight;
    uint64_t memory_bytes; /* the vGPU's limit */
};

/*
 * environment.c: sets this process's environment such that a program that it executes has a vGPU as
 * its only OpenCL platform. Connects to gantryd to check that it accepts the program. Not safe
 * while other threads use the environment. 0 or -errno; after an error GANTRY_TENANT and
 * GANTRY_TOKEN may be set.
 */
int gn_client_set_environment(const struct gn_client_run *run, struct gn_error *err);

/* tenant_name.c: checks a tenant's name: letters, digits, `_ . -`, at most 63. 0 or -EINVAL. */
int gn_client_check_tenant(const char *name, struct gn_error *err);

#endif
