/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of the emulated discrete GPU, from $DISCRETE. Read once, when the library is loaded;
 * all other files only read them.
 */
#include "discrete.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dg_options dg_options = {.capacity_bytes = UINT64_C(1) << 30};

static bool parse_number(const char *text, uint64_t *ret)
{
    static const struct {
        const char *unit;
        uint64_t factor;
    } units[] = {{"", 1},   {"K", 1 << 10}, {"M", 1 << 20},   {"G", 1 << 30},
                 {"ns", 1}, {"us", 1000},   {"ms", 1000000u}, {"s", 1000000000u}};
    char *end;
    const unsigned long long n = strtoull(text, &end, 10);
    for (size_t i = 0; end != text && i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].unit) == 0) {
            *ret = n * units[i].factor;
            return true;
        }
    }
    return false;
}

static bool parse_word(const char *word)
{
    const struct {
        const char *name;
        uint64_t *number;
        bool *flag;
    } known[] = {{"capacity", &dg_options.capacity_bytes, NULL},
                 {"bus", &dg_options.bus_rate, NULL},
                 {"latency", &dg_options.latency_ns, NULL},
                 {"late", &dg_options.late_ns, NULL},
                 {"fail", &dg_options.fail, NULL},
                 {"async", NULL, &dg_options.async},
                 {"retain", NULL, &dg_options.retain},
                 {"lazy", NULL, &dg_options.lazy}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const size_t n = strlen(known[i].name);
        if (strncmp(word, known[i].name, n) != 0)
            continue;
        if (known[i].flag && !word[n])
            return *known[i].flag = true;
        if (known[i].number && word[n] == '=')
            return parse_number(word + n + 1, known[i].number);
    }
    return false;
}

void dg_options_read(void)
{
    const char *at = getenv("DISCRETE");
    char word[64];
    while (at && *(at += strspn(at, ", "))) {
        const size_t n = strcspn(at, ", ");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (n >= sizeof word || !parse_word(word)) {
            fprintf(stderr, "discrete: $DISCRETE: \"%s\" is not an option\n", word);
            exit(2);
        }
        at += n;
    }
}
