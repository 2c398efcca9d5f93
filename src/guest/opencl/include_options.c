/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the folders in a build's options. Drivers differ in how they treat quotes and blanks, so
 * every interpretation is accepted: an extra folder does no harm, since all of them are the
 * program's own. Pure.
 */
#include "guest/opencl/include_options.h"

#include <stdbool.h>
#include <string.h>

#define MAX_PATH 4096

/*
 * Reads one word from *at as a shell would, and the same word without removing quotes. False at the
 * end.
 */
static bool next_word(const char **at, char *unquoted, char *raw)
{
    const char *s = *at + strspn(*at, " \t\r\n");
    size_t n = 0, n_raw = 0;
    char quote = 0;
    if (!*s)
        return false;
    for (; *s && (quote || !strchr(" \t\r\n", *s)); s++) {
        if (n_raw < MAX_PATH - 1)
            raw[n_raw++] = *s;
        if (quote ? *s == quote : *s == '"' || *s == '\'') {
            quote = quote ? 0 : *s;
            continue;
        }
        if (*s == '\\' && s[1] && quote != '\'') {
            s++;
            if (n_raw < MAX_PATH - 1)
                raw[n_raw++] = *s;
        }
        if (n < MAX_PATH - 1)
            unquoted[n++] = *s;
    }
    unquoted[n] = 0;
    raw[n_raw] = 0;
    *at = s;
    return true;
}

void gn_include_options(const char *options, void (*each)(void *ctx, const char *path), void *ctx)
{
    char word[MAX_PATH], raw[MAX_PATH];
    bool next_is_path = false;
    while (options && next_word(&options, word, raw)) {
        const bool option = strncmp(word, "-I", 2) == 0;
        const char *path = next_is_path ? word : option ? word + 2 : NULL;
        if (path && *path) {
            each(ctx, path);
            if (strcmp(word, raw) != 0)
                each(ctx, next_is_path || strncmp(raw, "-I", 2) != 0 ? raw : raw + 2);
        }
        next_is_path = option && !word[2] && !next_is_path;
    }
}
