/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": finds the nearest name by edit distance (insert, delete, replace, swap). Pure. */
#include <string.h>

#include "ctl/ctl.h"

#define MAX_LETTERS 32

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int distance(const char *a, const char *b)
{
    int n = (int)strlen(a), m = (int)strlen(b), d[MAX_LETTERS + 1][MAX_LETTERS + 1];
    for (int i = 0; i <= n; i++)
        d[i][0] = i;
    for (int j = 0; j <= m; j++)
        d[0][j] = j;
    for (int i = 1; i <= n; i++) {
        for (int j = 1; j <= m; j++) {
            int same = a[i - 1] == b[j - 1];
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + !same);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[n][m];
}

const char *gn_ctl_nearest(const char *word, const char *(*name)(int i), int n)
{
    const char *best = NULL;
    int best_distance = 0;
    size_t length = strlen(word);
    if (length > MAX_LETTERS)
        return NULL;
    for (int i = 0; i < n; i++) {
        const char *candidate = name(i);
        if (strlen(candidate) > MAX_LETTERS)
            continue;
        int d =
            length >= 2 && strncmp(candidate, word, length) == 0 ? 1 : distance(word, candidate);
        /*
         * Accept a name only if at most half of its letters would change: `top` must not suggest
         * `ls`.
         */
        if (d * 2 <= (int)strlen(candidate) && (!best || d < best_distance)) {
            best = candidate;
            best_distance = d;
        }
    }
    return best;
}
