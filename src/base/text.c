/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cleans text of unknown origin for terminals and logs. All of Gantry calls it, on any thread. It
 * never allocates.
 */
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/*
 * Returns the length of the UTF-8 sequence at s and sets its character, or returns 0 if there is
 * none.
 */
static size_t decode(const unsigned char *s, size_t n, uint32_t *ret)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t length = s[0] < 0x80   ? 1
                          : s[0] < 0xc0 ? 0
                          : s[0] < 0xe0 ? 2
                          : s[0] < 0xf0 ? 3
                          : s[0] < 0xf8 ? 4
                                        : 0;
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

/*
 * Unicode's Default_Ignorable_Code_Point: terminals draw nothing for these characters, so two
 * different texts would look the same.
 */
static bool is_invisible(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0xad, 0xad},      {0x34f, 0x34f},   {0x61c, 0x61c},     {0x115f, 0x1160},
                  {0x17b4, 0x17b5},  {0x180b, 0x180f}, {0x200b, 0x200f},   {0x202a, 0x202e},
                  {0x2060, 0x206f},  {0x3164, 0x3164}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
                  {0xffa0, 0xffa0},  {0xfff0, 0xfff8}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
                  {0xe0000, 0xe0fff}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

static bool is_shown(uint32_t c)
{
    const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
    const bool line = c == 0x2028 || c == 0x2029;
    return !control && !line && !is_invisible(c);
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
