/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a synchronous call costs: a null call over the request ring and a reply slot between two
 * processes, a bare ping-pong (a word each way, each on a cache line of its own), and a request and
 * answer of 80 bytes over a Unix socket; beside them one word that both write, which is cheaper
 * than any exchange of data can be. All in turn in every round, so that the machine's moods hit
 * them alike; the ratios are taken within a round and the median is reported.
 */
#include "base/checked.h"
#include "base/clock.h"
#include "shm/futex.h"
#include "shm/session_layout.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOCKET_BYTES           80
#define NULL_CALL_PINGPONG_BAR 2.0
#define NULL_CALL_SOCKET_BAR   20.0
#define N_BATCHES                                                                                  \
    20 /* the median of a round's batches is its figure: a preemption spoils one batch */

static struct {
    unsigned rounds;
    unsigned calls;        /* a round */
    unsigned socket_calls; /* a round; they take much longer */
    bool pin, json, check;
} options = {.rounds = 15, .calls = 20000, .socket_calls = 400};

static void die(const char *what)
{
    fprintf(stderr, "bench-ring: %s: %s\n", what, strerror(errno));
    exit(1);
}

static cpu_set_t allowed; /* at the start */

/* Pins the caller to the n-th processor that it may use, when asked to. */
static void pin(int n)
{
    cpu_set_t one;
    if (!options.pin)
        return;
    n %= CPU_COUNT(&allowed);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && n-- == 0)
            CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) < 0)
        die("sched_setaffinity");
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, unsigned n)
{
    qsort(values, n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* ---- the ways to call; each has a serving half, in a process of its own, and a calling half ----
 */

struct memory {
    _Alignas(64) _Atomic uint32_t line;
    _Alignas(128) _Atomic uint32_t back;
    _Alignas(4096) unsigned char session[GN_SESSION_BYTES];
};

static struct memory *memory;
static int ends[2];
static struct gn_lost lost;
static struct gn_waiter waiter;
static struct gn_ring_producer producer;
static struct gn_replies replies;

static struct gn_ring *ring(void)
{
    return (struct gn_ring *)(memory->session + GN_SESSION_REQUESTS_AT);
}

static struct gn_reply_slot *reply_slots(void)
{
    return (struct gn_reply_slot *)(memory->session + GN_SESSION_REPLIES_AT);
}

static void pingpong_serve(unsigned n)
{
    for (uint32_t i = 0; i < n; i++) {
        while (atomic_load_explicit(&memory->line, memory_order_acquire) != 2 * i + 1)
            ;
        atomic_store_explicit(&memory->line, 2 * i + 2, memory_order_release);
    }
}

static void pingpong_call(uint32_t i)
{
    atomic_store_explicit(&memory->line, 2 * i + 1, memory_order_release);
    while (atomic_load_explicit(&memory->line, memory_order_acquire) != 2 * i + 2)
        ;
}

/* A word each way, on a line each: what two processes that answer each other do at the least. */
static void two_lines_serve(unsigned n)
{
    for (uint32_t i = 0; i < n; i++) {
        while (atomic_load_explicit(&memory->line, memory_order_acquire) != i + 1)
            ;
        atomic_store_explicit(&memory->back, i + 1, memory_order_release);
    }
}

static void two_lines_call(uint32_t i)
{
    atomic_store_explicit(&memory->line, i + 1, memory_order_release);
    while (atomic_load_explicit(&memory->back, memory_order_acquire) != i + 1)
        ;
}

static void ring_serve(unsigned n)
{
    struct gn_ring_consumer c;
    unsigned char buf[GN_RING_MAX_BYTES];
    if (gn_ring_consumer_init(&c, ring(), GN_SESSION_REQUEST_SLOTS, 0, waiter) < 0)
        exit(1);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t token;
        if (gn_ring_wait(&c) < 0 || gn_ring_try_receive(&c, buf) < 0)
            exit(1);
        memcpy(&token, buf, sizeof token);
        gn_reply_send(reply_slots(), token, (int32_t)i, NULL, 0);
    }
}

static void ring_call(uint32_t i)
{
    struct gn_reply reply;
    uint32_t request[8] = {0};
    if (gn_reply_claim(&replies, &request[0]) < 0 ||
        gn_ring_send(&producer, request, sizeof request, NULL, 0, NULL) < 0 ||
        gn_reply_wait(&replies, request[0], &reply) < 0 || reply.result != (int32_t)i) {
        fprintf(stderr, "bench-ring: a call over the ring failed\n");
        exit(1);
    }
    gn_reply_put(&replies, request[0]);
}

static void transfer(int fd, char *bytes, bool sending)
{
    for (size_t done = 0; done < SOCKET_BYTES;) {
        ssize_t n = sending ? write(fd, bytes + done, SOCKET_BYTES - done)
                            : read(fd, bytes + done, SOCKET_BYTES - done);
        if (n <= 0)
            die("socket");
        done += (size_t)n;
    }
}

static void socket_serve(unsigned n)
{
    char bytes[SOCKET_BYTES];
    for (unsigned i = 0; i < n; i++) {
        transfer(ends[1], bytes, false);
        transfer(ends[1], bytes, true);
    }
}

static void socket_call(uint32_t i)
{
    char bytes[SOCKET_BYTES] = {0};
    transfer(ends[0], bytes, true);
    transfer(ends[0], bytes, false);
}

static const struct contest {
    const char *name, *title;
    void (*serve)(unsigned n);
    void (*call)(uint32_t i);
} contests[] = {
    {"pingpong", "bare ping-pong, a word each way", two_lines_serve, two_lines_call},
    {"null_call", "null call, ring and reply slot", ring_serve, ring_call},
    {"unix_socket", "80 bytes over a Unix socket", socket_serve, socket_call},
    {"one_line", "one word that both write", pingpong_serve, pingpong_call},
};

enum { PINGPONG, NULL_CALL, UNIX_SOCKET, ONE_LINE, N_CONTESTS };

/* Nanoseconds of a call: the median of the batches. */
static double measure(const struct contest *c, unsigned calls)
{
    unsigned batch = calls / N_BATCHES, warm_up = batch;
    unsigned total = warm_up + batch * N_BATCHES;
    double batches[N_BATCHES];

    memset(memory, 0, sizeof *memory);
    if (gn_ring_producer_init(&producer, ring(), GN_SESSION_REQUEST_SLOTS, 0, waiter) < 0)
        die("ring");
    gn_replies_init(&replies, reply_slots(), waiter);
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin(1);
        c->serve(total);
        _exit(0);
    }
    pin(0);
    uint32_t i = 0;
    for (; i < warm_up; i++)
        c->call(i);
    for (unsigned b = 0; b < N_BATCHES; b++) {
        uint64_t start = gn_now_ns();
        for (unsigned k = 0; k < batch; k++)
            c->call(i++);
        batches[b] = (double)(gn_now_ns() - start) / batch;
    }
    int status;
    if (waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "bench-ring: the serving process failed\n");
        exit(1);
    }
    return median(batches, N_BATCHES);
}

static void usage(FILE *to)
{
    fprintf(
        to,
        "usage: bench-ring [--rounds N] [--calls N] [--pin] [--json] [--check]\n"
        "  --rounds N  rounds, at least 11 (15)\n"
        "  --calls N   calls a round (20000)\n"
        "  --pin       caller and server on a processor each; default: where the kernel puts them\n"
        "  --json      results as one JSON object\n"
        "  --check     exit status 1 when a bar is missed\n");
}

static unsigned number(const char *text, unsigned min)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (*text == 0 || *end || n < min || n > 100000000) {
        fprintf(stderr, "bench-ring: '%s' is not a number of at least %u\n", text, min);
        exit(2);
    }
    return (unsigned)n;
}

static void parse(int argc, char **argv)
{
    static const struct option known[] = {
        {"rounds", 1, 0, 'r'}, {"calls", 1, 0, 'c'}, {"pin", 0, 0, 'p'}, {"json", 0, 0, 'j'},
        {"check", 0, 0, 'k'},  {"help", 0, 0, 'h'},  {0, 0, 0, 0}};
    int o;
    while ((o = getopt_long(argc, argv, "h", known, NULL)) != -1) {
        switch (o) {
        case 'r':
            options.rounds = number(optarg, 11);
            break;
        case 'c':
            options.calls = number(optarg, N_BATCHES);
            break;
        case 'p':
            options.pin = true;
            break;
        case 'j':
            options.json = true;
            break;
        case 'k':
            options.check = true;
            break;
        case 'h':
            usage(stdout);
            exit(0);
        default:
            usage(stderr);
            exit(2);
        }
    }
    if (optind != argc) {
        usage(stderr);
        exit(2);
    }
}

struct results {
    double ns[N_CONTESTS], min_ns[N_CONTESTS],
        max_ns[N_CONTESTS]; /* medians of rounds; best and worst round */
    double to_pingpong, socket_to;
    uint64_t n_parks, n_wakes; /* the caller's, in all null calls together */
};

static void print_table(const struct results *r)
{
    printf("%-34s %10s %10s %10s\n", "one call, ns", "median", "best", "worst");
    for (int k = 0; k < N_CONTESTS; k++)
        printf("%-34s %10.0f %10.0f %10.0f\n", contests[k].title, r->ns[k], r->min_ns[k],
               r->max_ns[k]);
    printf("null call / bare ping-pong: %6.2f  (at most %.0f)\n", r->to_pingpong,
           NULL_CALL_PINGPONG_BAR);
    printf("Unix socket / null call:    %6.1f  (at least %.0f)\n", r->socket_to,
           NULL_CALL_SOCKET_BAR);
    printf("%u rounds of %u calls, %s; the caller parked %lu times and woke the server %lu times\n",
           options.rounds, options.calls, options.pin ? "pinned" : "not pinned",
           (unsigned long)r->n_parks, (unsigned long)r->n_wakes);
}

static void print_json(const struct results *r)
{
    printf("{\"version\":1,\"bench\":\"ring\",\"rounds\":%u,\"calls\":%u,\"pinned\":%s,",
           options.rounds, options.calls, options.pin ? "true" : "false");
    for (int k = 0; k < N_CONTESTS; k++)
        printf("\"%s_ns\":%.1f,\"%s_best_ns\":%.1f,\"%s_worst_ns\":%.1f,", contests[k].name,
               r->ns[k], contests[k].name, r->min_ns[k], contests[k].name, r->max_ns[k]);
    printf("\"null_call_to_pingpong\":%.3f,\"null_call_to_pingpong_bar\":%.1f,"
           "\"unix_socket_to_null_call\":%.2f,"
           "\"unix_socket_to_null_call_bar\":%.1f,\"caller_parks\":%lu,\"caller_wakes\":%lu}\n",
           r->to_pingpong, NULL_CALL_PINGPONG_BAR, r->socket_to, NULL_CALL_SOCKET_BAR,
           (unsigned long)r->n_parks, (unsigned long)r->n_wakes);
}

int main(int argc, char **argv)
{
    struct results r = {0};
    parse(argc, argv);
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        die("sched_getaffinity");
    memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        die("mmap");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        die("socketpair");
    gn_lost_init(&lost);
    waiter = (struct gn_waiter){.policy = gn_spin_policy_default(), .lost = &lost};

    double *rounds[N_CONTESTS + 2];
    for (size_t k = 0; k < GN_ARRAY_SIZE(rounds); k++)
        if (!(rounds[k] = calloc(options.rounds, sizeof **rounds)))
            die("calloc");
    for (unsigned n = 0; n < options.rounds; n++) {
        for (int j = 0; j < N_CONTESTS; j++) {
            int k = n % 2 ? N_CONTESTS - 1 - j : j; /* there and back: nobody always goes first */
            uint64_t wakes = atomic_load(&gn_futex_n_wakes);
            rounds[k][n] =
                measure(&contests[k], k == UNIX_SOCKET ? options.socket_calls : options.calls);
            if (k == NULL_CALL) {
                r.n_parks += atomic_load(&replies.n_parks);
                r.n_wakes += atomic_load(&gn_futex_n_wakes) - wakes;
            }
        }
        rounds[N_CONTESTS][n] = rounds[NULL_CALL][n] / rounds[PINGPONG][n];
        rounds[N_CONTESTS + 1][n] = rounds[UNIX_SOCKET][n] / rounds[NULL_CALL][n];
    }
    for (int k = 0; k < N_CONTESTS; k++) {
        r.ns[k] = median(rounds[k], options.rounds);
        r.min_ns[k] = rounds[k][0];
        r.max_ns[k] = rounds[k][options.rounds - 1];
    }
    r.to_pingpong = median(rounds[N_CONTESTS], options.rounds);
    r.socket_to = median(rounds[N_CONTESTS + 1], options.rounds);
    for (size_t k = 0; k < GN_ARRAY_SIZE(rounds); k++)
        free(rounds[k]);
    if (options.json)
        print_json(&r);
    else
        print_table(&r);
    return options.check &&
           (r.to_pingpong > NULL_CALL_PINGPONG_BAR || r.socket_to < NULL_CALL_SOCKET_BAR);
}
