/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CLIENT_TOKENS_H
#define GN_CLIENT_TOKENS_H

#include "base/error.h"
#include "link/link_wire.h"

#define GN_CLIENT_TOKENS 64

/*
 * Tenants' tokens for another gantryd, as given by --token-file: TENANT=FILE for one tenant, FILE
 * for all tenants without a token of their own.
 */
struct gn_client_tokens {
    int n;
    struct {
        char tenant[GN_LINK_TENANT_BYTES]; /* "": all other tenants */
        char token[GN_LINK_TOKEN_BYTES];
    } items[GN_CLIENT_TOKENS];
};

/*
 * Reads n token files, at most GN_CLIENT_TOKENS. 0, or -errno with a message; call
 * gn_client_tokens_forget() in either case.
 */
int gn_client_tokens_read(const char *const *files, int n, struct gn_client_tokens *ret,
                          struct gn_error *err);
/* The token for the tenant; NULL: none was given. */
const char *gn_client_tokens_find(const struct gn_client_tokens *tokens, const char *tenant);
void gn_client_tokens_forget(struct gn_client_tokens *tokens);

#endif
