/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator writes in one word: sizes, selectors, addresses. The first byte says which. */
#include "base/part.h"
#include "base/size.h"
#include "ctl/ctl.h"
#include "daemon/tenants/selector.h"
#include "link/address.h"

#include "fuzz.h"

static void try_size(const char *text)
{
    struct gn_error err = {{0}, {0}};
    uint64_t n = 0;
    char back[16];
    int rc = gn_size_parse(text, &n, &err);
    FUZZ_CHECK(rc ? err.what[0] && memchr(err.what, 0, sizeof err.what) : !err.what[0]);
    FUZZ_CHECK(strlen(gn_ctl_format_size(n, back)) < sizeof back);
}

static void try_part(const char *text)
{
    struct gn_error err = {{0}, {0}};
    uint32_t part = UINT32_MAX, again;
    char back[16];
    int rc = gn_part_parse(text, &part, &err);
    FUZZ_CHECK(rc ? err.what[0] && memchr(err.what, 0, sizeof err.what) : !err.what[0]);
    FUZZ_CHECK(rc ? part == UINT32_MAX : part <= GN_PART_WHOLE);
    if (rc == 0)
        FUZZ_CHECK(gn_part_parse(gn_part_format(part, back), &again, NULL) == 0 && again == part);
}

static void try_selector(const char *text)
{
    struct gn_error err = {{0}, {0}};
    struct gn_selector s = {.index = -1};
    int rc = gn_selector_parse(text, &s, &err);
    FUZZ_CHECK((rc != 0) == (err.what[0] != 0));
    FUZZ_CHECK(rc || (s.name[0] && s.index >= -1));
    (void)gn_selector_matches_name(&s, "Portable Computing Language 0");
    (void)gn_selector_takes(&s, 0);
}

static void try_address(const char *text)
{
    struct gn_error err = {{0}, {0}};
    struct gn_address a;
    memset(&a, 0, sizeof a);
    int rc = gn_address_parse(text, &a, &err);
    FUZZ_CHECK((rc != 0) == (err.what[0] != 0));
    if (rc == 0)
        FUZZ_CHECK(memchr(a.path, 0, sizeof a.path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    /* No longer than it is, so that a sanitizer sees a read beyond its end. */
    char *text = malloc(size);
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    switch (data[0] % 4) {
    case 0:
        try_size(text);
        break;
    case 1:
        try_selector(text);
        break;
    case 2:
        try_address(text);
        break;
    default: {
        static const char *const names[] = {"ls", "devices", "doctor", "run"};
        (void)gn_kind_parse(text);
        try_size(text);
        try_part(text);
        try_selector(text);
        try_address(text);
        (void)names;
    }
    }
    free(text);
    return 0;
}
