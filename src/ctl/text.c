/* SPDX-License-Identifier: Apache-2.0 */
/* Text for a terminal in the locale's encoding; see text.h. Any thread. Never prints. */
#include "ctl/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "base/text.h"

char *gn_text_printable(const char *name)
{
    char *clean = strdup(name), *out = clean ? malloc(strlen(clean) + 1) : NULL, *to = out;
    const char *text = clean;
    mbstate_t state;
    if (!out) {
        free(clean);
        return NULL;
    }
    gn_text_clean(clean, strlen(clean));
    memset(&state, 0, sizeof state);
    while (*text) {
        wchar_t wide;
        size_t n = mbrtowc(&wide, text, strlen(text), &state);
        if (n == (size_t)-1 || n == (size_t)-2 || n == 0 || !iswprint((wint_t)wide)) {
            bool whole = n != (size_t)-1 && n != (size_t)-2 && n != 0;
            *to++ = '?';
            text += whole ? n : 1;
            memset(&state, 0, sizeof state);
            continue;
        }
        memcpy(to, text, n);
        to += n;
        text += n;
    }
    *to = 0;
    free(clean);
    return out;
}

int gn_text_width(const char *text)
{
    mbstate_t state;
    int sum = 0;
    memset(&state, 0, sizeof state);
    while (*text) {
        wchar_t wide;
        size_t n = mbrtowc(&wide, text, strlen(text), &state);
        if (n == 0 || n == (size_t)-1 || n == (size_t)-2)
            return sum + (int)strlen(text);
        int w = wcwidth(wide);
        sum += w > 0 ? w : 0;
        text += n;
    }
    return sum;
}

size_t gn_text_cut(const char *text, int columns, int *ret_columns)
{
    mbstate_t state;
    size_t at = 0;
    int sum = 0;
    memset(&state, 0, sizeof state);
    while (text[at]) {
        wchar_t wide;
        size_t n = mbrtowc(&wide, text + at, strlen(text + at), &state);
        if (n == 0 || n == (size_t)-1 || n == (size_t)-2)
            break;
        int w = wcwidth(wide);
        w = w > 0 ? w : 0;
        if (sum + w > columns)
            break;
        sum += w;
        at += n;
    }
    *ret_columns = sum;
    return at;
}
