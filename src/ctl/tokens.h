/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_TOKENS_H
#define GN_CTL_TOKENS_H

#include "base/error.h"
#include "ctl/ctl.h"
#include "link/link_wire.h"

/* Tenants' tokens at another gantryd, as --token-file names them: TENANT=FILE is that tenant's,
 * FILE alone all others'. */
struct gn_ctl_tokens {
    int n;
    struct {
        char tenant[GN_LINK_TENANT_BYTES]; /* "": all others */
        char token[GN_LINK_TOKEN_BYTES];
    } items[GN_CTL_WORDS];
};

/* Reads the files. 0, or -errno and what is wrong; either way they are to be forgotten. */
int gn_ctl_tokens_read(const struct gn_ctl_words *files, struct gn_ctl_tokens *ret,
                       struct gn_error *err);
/* The tenant's; NULL: none was named. */
const char *gn_ctl_tokens_find(const struct gn_ctl_tokens *tokens, const char *tenant);
void gn_ctl_tokens_forget(struct gn_ctl_tokens *tokens);

#endif
