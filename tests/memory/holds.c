/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that holds device memory and works on it in rounds. Every byte has a model; the first
 * difference ends the program.
 *
 *     holds [OPTION]... MIB...        one buffer for each size in MiB
 *
 *     --rounds N      ends after N rounds (8 by default)
 *     --seconds S     ends after the first round that ends S seconds after the first one began
 *     --told          ends after the round in which a line comes on stdin
 *     --pause         waits for a line on stdin before the first round
 *     --one           a round works on one buffer, in turn; otherwise on all
 *     --const         kernels only read the buffers
 *     --closed        the buffers are closed to the host: only kernels read them
 *     --read          a round reads the buffers, and launches nothing
 *     --page          a round works on one page of each buffer, always the same
 *     --chatty N      each round also launches N small kernels and waits for each
 *     --idle MS       sleeps after each round
 *     --often N       each N-th round does one thing more: reads, maps, copies, fills, a
 *                     sub-buffer, an image, queries, in turn (1 by default; 0: never)
 *     --waits         says "waits N US US US" before the end: how many rounds, and how long half of
 *                     them, 99 % of them, and all of them took at most, in microseconds
 *     --pin           records a command on each filled buffer, which pins it
 *     --give-up       if a buffer is refused, goes on with those before it
 *     --spoil         changes memory behind the model's back, to show that the program sees it
 *
 * A line each on stdout: "refused N" if the buffer of that number, from 0, is refused; "holds MIB"
 * when the memory is filled; "pinned N" with --pin; "right ROUNDS MS" at the end, MS being the
 * longest round. Status 0: right; 1: "differs: ..." or "wrong: ..."; 3: a buffer is refused,
 * without --give-up.
 */
#include "held.h"
#include "must.h"

#include <getopt.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST      64
#define MIB_PAGES ((1u << 20) / HELD_PAGE)
#define EXTRAS    8

static struct {
    unsigned long rounds, seconds, chatty, idle_ms, often;
    int told, pause, one, only_read, read, page, pin, give_up, spoil, waits, closed;
} options = {.often = 1};

static struct held buffers[MOST];
static int n_buffers;

static uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* How long the rounds took, in us. */
static struct {
    uint64_t *us;
    size_t n, room;
} rounds;

static void note_round(uint64_t us)
{
    if (rounds.n == rounds.room) {
        rounds.room = rounds.room ? 2 * rounds.room : 1024;
        rounds.us = realloc(rounds.us, rounds.room * sizeof *rounds.us);
        HOLDS(rounds.us);
    }
    rounds.us[rounds.n++] = us;
}

static int compare_us(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void say_waits(void)
{
    qsort(rounds.us, rounds.n, sizeof *rounds.us, compare_us);
    printf("waits %zu %llu %llu %llu\n", rounds.n, (unsigned long long)rounds.us[rounds.n / 2],
           (unsigned long long)rounds.us[rounds.n * 99 / 100],
           (unsigned long long)rounds.us[rounds.n - 1]);
}

/* The same numbers in each run. */
static uint32_t dice(uint32_t n)
{
    static uint64_t seed = 1;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

static bool told(int timeout_ms)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&p, 1, timeout_ms) > 0;
}

static void one_thing_more(uint32_t which, uint32_t n)
{
    struct held *h = &buffers[dice((uint32_t)n_buffers)], *to = &buffers[dice((uint32_t)n_buffers)];
    const uint32_t page = dice(h->n_pages);
    if (options.only_read && which)
        which = 5;
    if (options.closed && (which == 0 || which == 1 || which == 3))
        which = 4;
    switch (which) {
    case 0:
        held_compare(h, 0, h->n_pages);
        break;
    case 1:
        held_map(h, page, n);
        break;
    case 2:
        held_sub_buffer(h, page, n);
        break;
    case 3:
        held_image(h, page, n);
        break;
    case 4:
        held_copy(h, page, to, dice(to->n_pages));
        break;
    case 5:
        held_query(h);
        break;
    case 6:
        held_stir_part(h, n);
        break;
    default:
        held_fill(h, page, n);
    }
}

static void round_of(uint32_t n)
{
    for (int i = 0; i < n_buffers; i++) {
        if (options.one && n % (uint32_t)n_buffers != (uint32_t)i)
            continue;
        if (options.read)
            held_compare(&buffers[i], 0, buffers[i].n_pages);
        else if (options.page)
            held_stir(&buffers[i], 5, 1, n);
        else if (options.only_read)
            held_digest(&buffers[i]);
        else
            held_stir(&buffers[i], 0, buffers[i].n_pages, n);
    }
    for (unsigned long i = 0; i < options.chatty; i++) {
        held_stir(&buffers[0], dice(buffers[0].n_pages), 1, n);
        held_wait();
    }
    if (options.often && n % options.often == 0)
        one_thing_more(n / (uint32_t)options.often % EXTRAS, n);
    held_wait();
}

/* All of them. */
static void compare(struct held *h)
{
    if (options.closed)
        held_digest(h);
    else
        held_compare(h, 0, h->n_pages);
}

static void work(void)
{
    const uint64_t began_us = now_us();
    uint64_t longest_us = 0;
    uint32_t n = 0;
    for (bool ends = false; !ends;) {
        const uint64_t round_us = now_us();
        round_of(++n);
        const uint64_t ended_us = now_us(), took_us = ended_us - round_us;
        if (took_us > longest_us)
            longest_us = took_us;
        if (options.waits)
            note_round(took_us);
        if (options.idle_ms)
            usleep((useconds_t)options.idle_ms * 1000);
        ends = options.told      ? told(0)
               : options.seconds ? ended_us - began_us >= options.seconds * 1000000
                                 : n >= options.rounds;
    }
    if (options.waits)
        say_waits();
    if (options.spoil)
        held_spoil(&buffers[n_buffers - 1]);
    for (int i = 0; i < n_buffers; i++)
        compare(&buffers[i]);
    printf("right %u %llu\n", n, (unsigned long long)longest_us / 1000);
}

static void pin_all(void)
{
    int n = 0;
    for (int i = 0; i < n_buffers; i++) {
        const cl_int r = held_record(&buffers[i], 0);
        HOLDS(!r || r == CL_MEM_OBJECT_ALLOCATION_FAILURE || r == CL_OUT_OF_RESOURCES);
        n += !r;
    }
    printf("pinned %d\n", n);
}

static unsigned long number(const char *text)
{
    char *end;
    const unsigned long n = strtoul(text, &end, 10);
    if (end == text || *end) {
        fprintf(stderr, "holds: %s: not a number\n", text);
        exit(2);
    }
    return n;
}

static void parse(int argc, char **argv)
{
    static const struct option known[] = {{"rounds", required_argument, NULL, 'r'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"chatty", required_argument, NULL, 'c'},
                                          {"idle", required_argument, NULL, 'i'},
                                          {"often", required_argument, NULL, 'o'},
                                          {"told", no_argument, &options.told, 1},
                                          {"pause", no_argument, &options.pause, 1},
                                          {"one", no_argument, &options.one, 1},
                                          {"const", no_argument, &options.only_read, 1},
                                          {"pin", no_argument, &options.pin, 1},
                                          {"read", no_argument, &options.read, 1},
                                          {"page", no_argument, &options.page, 1},
                                          {"give-up", no_argument, &options.give_up, 1},
                                          {"spoil", no_argument, &options.spoil, 1},
                                          {"waits", no_argument, &options.waits, 1},
                                          {"closed", no_argument, &options.closed, 1},
                                          {0}};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        unsigned long *to = c == 'r'   ? &options.rounds
                            : c == 's' ? &options.seconds
                            : c == 'c' ? &options.chatty
                            : c == 'i' ? &options.idle_ms
                            : c == 'o' ? &options.often
                                       : NULL;
        if (to)
            *to = number(optarg);
        else if (c)
            exit(2);
    }
    if (!options.rounds)
        options.rounds = 8;
}

int main(int argc, char **argv)
{
    char line[64];
    unsigned long held_mib = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    parse(argc, argv);
    held_open();
    for (int i = optind; i < argc && n_buffers < MOST; i++) {
        if (held_make(&buffers[n_buffers], (uint32_t)(number(argv[i]) * MIB_PAGES),
                      options.closed ? CL_MEM_HOST_NO_ACCESS : 0)) {
            n_buffers++;
            held_mib += number(argv[i]);
            continue;
        }
        printf("refused %d\n", n_buffers);
        if (!options.give_up)
            return 3;
        break;
    }
    HOLDS(n_buffers);
    held_wait();
    printf("holds %lu\n", held_mib);
    if (options.pin)
        pin_all();
    if (options.pause)
        HOLDS(fgets(line, sizeof line, stdin));
    work();
    for (int i = 0; i < n_buffers; i++)
        held_release(&buffers[i]);
    return 0;
}
