/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_TOKENS_H
#define GN_CTL_TOKENS_H

#include "base/error.h"
#include "ctl/ctl.h"
#include "link/link_wire.h"

/*
 * Tenants' tokens for another gantryd, as given by --token-file: TENANT=FILE for one tenant, FILE
 * for all tenants without a token of their own.
 */
struct gn_ctl_tokens {
    int n;
    struct {
        char tenant[GN_LINK_TENANT_BYTES]; /* "": all other tenants */
        char token[GN_LINK_TOKEN_BYTES];
    } items[GN_CTL_WORDS];
};

/*
 * Reads the token files. 0, or -errno with a message; call gn_ctl_tokens_forget() in either case.
 */
int gn_ctl_tokens_read(const struct gn_ctl_words *files, struct gn_ctl_tokens *ret,
                       struct gn_error *err);
/* The token for the tenant; NULL: none was given. */
const char *gn_ctl_tokens_find(const struct gn_ctl_tokens *tokens, const char *tenant);
void gn_ctl_tokens_forget(struct gn_ctl_tokens *tokens);

#endif
