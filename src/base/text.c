/* SPDX-License-Identifier: Apache-2.0 */
/* Cleans texts of unknown origin for terminals and logs. Any thread; allocates nothing. */
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The bytes of the UTF-8 sequence at s, and its character; 0: it is none. */
static size_t decode(const unsigned char *s, size_t n, uint32_t *ret)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf8 ? 4 : 0;
    if (!length || length > n)
        return 0;
    uint32_t c = length == 1 ? s[0] : s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *ret = c;
    return length;
}

static bool is_shown(uint32_t c)
{
    const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
    const bool direction = c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
    const bool line = c == 0x2028 || c == 0x2029;
    return !control && !direction && !line;
}

void gn_text_clean(char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t c = 0;
        const size_t length = decode((unsigned char *)s + i, n - i, &c);
        if (!length || !is_shown(c))
            memset(s + i, '?', length ? length : 1);
        i += length ? length : 1;
    }
}
