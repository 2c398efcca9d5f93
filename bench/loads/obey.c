/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry-load --obey`: set up once, then rounds whenever a line on stdin asks for them, so that
 * phases with one program and with many can follow each other closely and the start of a program is
 * in none of them. Each answer is a line of JSON. Between two orders the program sleeps in read(2)
 * and asks nothing of its device.
 *
 *   run SECONDS    rounds for that long; answers with the times of the rounds
 *   (end of file)  ends
 */
#include "load.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A mark says how many rounds were over at a time. Closer ones would tell nobody more. */
#define MARK_NS     UINT64_C(500000)
#define MAX_MARKS   65536
#define MAX_LENGTHS ((size_t)1 << 21)

struct record {
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t rounds;
    uint64_t marks_ns[MAX_MARKS];
    uint64_t mark_rounds[MAX_MARKS];
    size_t n_marks;
    uint64_t lengths_ns[MAX_LENGTHS]; /* of the first rounds; the longest is of all */
    size_t n_lengths;
    uint64_t longest_ns;
};

static void mark(struct record *r, uint64_t now_ns)
{
    if (r->n_marks == MAX_MARKS ||
        (r->n_marks > 0 && now_ns - r->marks_ns[r->n_marks - 1] < MARK_NS))
        return;
    r->marks_ns[r->n_marks] = now_ns;
    r->mark_rounds[r->n_marks++] = r->rounds;
}

static void rounds(struct gn_run *run, uint64_t sleep_ns, uint64_t limit_ns, struct record *r)
{
    const struct timespec sleep = {(time_t)(sleep_ns / 1000000000u),
                                   (long)(sleep_ns % 1000000000u)};
    uint64_t before_ns;

    /* Not the arrays: to write all of them would empty the caches before each order. */
    r->rounds = r->longest_ns = 0;
    r->n_marks = r->n_lengths = 0;
    r->start_ns = before_ns = gn_now_ns();
    mark(r, before_ns);
    do {
        run->load->round(run);
        r->rounds++;
        r->end_ns = gn_now_ns();
        mark(r, r->end_ns);
        if (r->n_lengths < MAX_LENGTHS)
            r->lengths_ns[r->n_lengths++] = r->end_ns - before_ns;
        if (r->end_ns - before_ns > r->longest_ns)
            r->longest_ns = r->end_ns - before_ns;
        if (sleep_ns > 0)
            nanosleep(&sleep, NULL);
        before_ns = sleep_ns > 0 ? gn_now_ns() : r->end_ns;
    } while (before_ns - r->start_ns < limit_ns);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static uint64_t part(const struct record *r, double of_all)
{
    return r->lengths_ns[(size_t)((double)(r->n_lengths - 1) * of_all)];
}

static void answer(struct gn_run *run, struct record *r)
{
    uint64_t sum_ns = 0;

    for (size_t i = 0; i < r->n_lengths; i++)
        sum_ns += r->lengths_ns[i];
    qsort(r->lengths_ns, r->n_lengths, sizeof(r->lengths_ns[0]), by_value);
    printf("{\"start_ns\":%llu,\"end_ns\":%llu,\"rounds\":%llu,"
           "\"launches\":%llu,\"async_calls\":%llu,\"sync_"
           "calls\":%llu,"
           "\"profiled_ns\":%llu,\"round_ns\":{\"mean\":%.0f,\"p50\":%llu,\"p90\":%llu,"
           "\"p99\":%llu,\"max\":%"
           "llu},\"marks\":[",
           (unsigned long long)r->start_ns, (unsigned long long)r->end_ns,
           (unsigned long long)r->rounds, (unsigned long long)run->launches,
           (unsigned long long)run->async_calls, (unsigned long long)run->sync_calls,
           (unsigned long long)run->profiled_ns, (double)sum_ns / (double)r->n_lengths,
           (unsigned long long)part(r, 0.5), (unsigned long long)part(r, 0.9),
           (unsigned long long)part(r, 0.99), (unsigned long long)r->longest_ns);
    for (size_t i = 0; i < r->n_marks; i++)
        printf("%s[%llu,%llu]", i > 0 ? "," : "",
               (unsigned long long)(r->marks_ns[i] - r->start_ns),
               (unsigned long long)r->mark_rounds[i]);
    puts("]}");
    fflush(stdout);
}

void gn_load_obey(struct gn_run *run, uint64_t sleep_ns)
{
    struct record *r = malloc(sizeof(*r));
    char line[64];

    if (r == NULL)
        gn_load_die("out of memory for the record of the rounds");
    /* Touched now, not in the middle of a phase. */
    memset(r, 1, sizeof(*r));
    printf("{\"version\":1,\"load\":\"%s\",\"size\":%zu,\"batch\":%u,\"kernel_ns\":%llu}\n",
           run->load->name, run->size, run->batch, (unsigned long long)gn_load_kernel_ns(run));
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        char *end;
        double seconds = strncmp(line, "run ", 4) == 0 ? strtod(line + 4, &end) : 0;

        if (!(seconds > 0 && seconds < 1e4) || (*end != '\n' && *end != '\0'))
            gn_load_die("an order is \"run SECONDS\", not \"%.*s\"", (int)strcspn(line, "\n"),
                        line);
        run->async_calls = run->sync_calls = run->launches = run->profiled_ns = 0;
        rounds(run, sleep_ns, (uint64_t)(seconds * 1e9), r);
        gn_load_drain(run);
        answer(run, r);
    }
    free(r);
}
