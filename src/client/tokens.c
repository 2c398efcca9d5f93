/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the files of --token-file for `gantry migrate` and `gantry drain`; see tokens.h. Never
 * prints a token.
 */
#include "client/tokens.h"

#include <errno.h>
#include <string.h>

#include "client/client.h"
#include "link/token.h"

/*
 * Splits TENANT=FILE and returns the file's name. If the text before '=' is not a valid tenant
 * name, it belongs to the file's name.
 */
static const char *split(const char *word, char ret_tenant[static GN_LINK_TENANT_BYTES])
{
    struct gn_error ignored;
    const char *equals = strchr(word, '=');
    const size_t n = equals ? (size_t)(equals - word) : 0;
    memset(ret_tenant, 0, GN_LINK_TENANT_BYTES);
    if (!n || n >= GN_LINK_TENANT_BYTES)
        return word;
    memcpy(ret_tenant, word, n);
    if (!gn_client_check_tenant(ret_tenant, &ignored))
        return equals + 1;
    memset(ret_tenant, 0, GN_LINK_TENANT_BYTES);
    return word;
}

static const char *find(const struct gn_client_tokens *tokens, const char *tenant)
{
    for (int i = 0; i < tokens->n; i++)
        if (strcmp(tokens->items[i].tenant, tenant) == 0)
            return tokens->items[i].token;
    return NULL;
}

int gn_client_tokens_read(const char *const *files, int n, struct gn_client_tokens *ret,
                          struct gn_error *err)
{
    int rc = 0, shared;
    ret->n = 0;
    for (int i = 0; i < n && !rc; i++) {
        const char *file = split(files[i], ret->items[i].tenant), *tenant = ret->items[i].tenant;
        if (find(ret, tenant))
            rc = gn_fail(
                err, EINVAL,
                "write --token-file TENANT=FILE for each tenant, and one --token-file FILE for "
                "all others",
                "more than one token file is named for %s%s",
                *tenant ? "the tenant " : "all others", tenant);
        else
            rc = gn_token_read(file, ret->items[i].token, &shared, err);
        ret->n = i + 1;
    }
    return rc;
}

const char *gn_client_tokens_find(const struct gn_client_tokens *tokens, const char *tenant)
{
    const char *own = find(tokens, tenant);
    return own ? own : find(tokens, "");
}

void gn_client_tokens_forget(struct gn_client_tokens *tokens)
{
    explicit_bzero(tokens, sizeof *tokens);
}
