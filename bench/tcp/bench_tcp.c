/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-tcp: what plain sockets give between two processes, to compare the tcp link with: a round
 * trip of 64 bytes, and so many bytes of one's memory pumped into the other's and back, plain or
 * with TLS 1.3 (the link's own module).
 *
 *     bench-tcp serve [--tls]              prints its port, serves one connection after another
 *     bench-tcp ask PORT [--tls] [--bytes N] [--trips N]     prints one JSON object
 */
#include "base/clock.h"
#include "link/tcp.h"
#include "link/tls.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE_BYTES (512u << 10)
#define TRIP_BYTES  64
#define TURNS       5
#define FOREVER_NS  (UINT64_C(1) << 62)

enum wish { WISH_TRIPS = 1, WISH_SINK, WISH_SOURCE };

struct wish_message {
    uint64_t wish, n;
};

static const struct gn_tls_psk common = {"what both ends know            ",
                                         "and nobody else has to         "};
static char *memory; /* what is sent, or where it goes */
static uint64_t memory_bytes;

static _Noreturn void die(const char *what, int rc)
{
    fprintf(stderr, "bench-tcp: %s failed: %s\n", what, strerror(rc < 0 ? -rc : rc));
    exit(1);
}

static void shake_hands(struct gn_tcp *t, bool server)
{
    const struct gn_tls_config config = {.server = server, .psk = &common};
    struct gn_error err;
    if (gn_tls_connect(&config, t->fd, gn_now_ns() + UINT64_C(10000000000), &t->tls, &err)) {
        fprintf(stderr, "bench-tcp: %s\n", err.what);
        exit(1);
    }
}

static int put(struct gn_tcp *t, const void *bytes, size_t n)
{
    return gn_tcp_send_all(t, bytes, n, FOREVER_NS);
}

static int get(struct gn_tcp *t, void *bytes, size_t n)
{
    return gn_tcp_recv_all(t, bytes, n, FOREVER_NS);
}

static void have_memory(uint64_t n)
{
    if (n <= memory_bytes)
        return;
    free(memory);
    memory = malloc(n);
    if (!memory)
        die("memory", ENOMEM);
    memset(memory, 1, n);
    memory_bytes = n;
}

static int pump(struct gn_tcp *t, uint64_t n, bool out)
{
    int rc = 0;
    for (uint64_t done = 0; !rc && done < n; done += PIECE_BYTES)
        rc = out ? put(t, memory + done, PIECE_BYTES) : get(t, memory + done, PIECE_BYTES);
    return rc;
}

static void serve_one(struct gn_tcp *t)
{
    struct wish_message w;
    char trip[TRIP_BYTES];
    while (get(t, &w, sizeof w) == 0) {
        int rc = 0;
        if (w.wish != WISH_TRIPS)
            have_memory(w.n);
        for (uint64_t i = 0; w.wish == WISH_TRIPS && !rc && i < w.n; i++)
            if (!(rc = get(t, trip, sizeof trip)))
                rc = put(t, trip, sizeof trip);
        if (w.wish == WISH_SINK && !(rc = pump(t, w.n, false)))
            rc = put(t, trip, 1);
        if (w.wish == WISH_SOURCE)
            rc = pump(t, w.n, true);
        if (rc)
            return;
    }
}

static int serve(bool tls)
{
    struct gn_address here = {.tcp = true, .host = "127.0.0.1"};
    struct gn_error err;
    uint16_t port;
    int listener = gn_tcp_listen(&here, &port, &err);
    if (listener < 0)
        die("listening", listener);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    printf("%u\n", port);
    fflush(stdout);
    for (;;) {
        struct pollfd p = {.fd = listener, .events = POLLIN};
        (void)poll(&p, 1, -1);
        struct gn_tcp t = {accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), NULL};
        if (t.fd < 0)
            continue;
        gn_tcp_set_up(t.fd);
        if (tls)
            shake_hands(&t, true);
        serve_one(&t);
        gn_tcp_close(&t);
    }
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void need(int rc, const char *what)
{
    if (rc)
        die(what, rc);
}

static uint64_t trips(struct gn_tcp *t, uint64_t n)
{
    struct wish_message w = {WISH_TRIPS, n};
    uint64_t *took = calloc(n, sizeof *took), median;
    char trip[TRIP_BYTES] = {0};
    if (!took)
        die("memory", ENOMEM);
    need(put(t, &w, sizeof w), "sending");
    for (uint64_t i = 0; i < n; i++) {
        uint64_t before = gn_now_ns();
        need(put(t, trip, sizeof trip), "sending");
        need(get(t, trip, sizeof trip), "receiving");
        took[i] = gn_now_ns() - before;
    }
    qsort(took, n, sizeof *took, by_size);
    median = took[n / 2];
    free(took);
    return median;
}

static uint64_t pumped(struct gn_tcp *t, uint64_t bytes, bool out)
{
    struct wish_message w = {out ? WISH_SINK : WISH_SOURCE, bytes};
    uint64_t took[TURNS];
    char end;
    have_memory(bytes);
    for (int i = 0; i < TURNS; i++) {
        uint64_t before = gn_now_ns();
        need(put(t, &w, sizeof w), "sending");
        need(pump(t, bytes, out), "pumping");
        if (out)
            need(get(t, &end, 1), "receiving");
        took[i] = gn_now_ns() - before;
    }
    qsort(took, TURNS, sizeof *took, by_size);
    return took[TURNS / 2];
}

static int ask(uint16_t port, bool tls, uint64_t bytes, uint64_t n_trips)
{
    struct gn_address to = {.tcp = true, .host = "127.0.0.1", .port = port};
    struct gn_error err;
    struct gn_tcp t = {gn_tcp_dial(&to, gn_now_ns() + UINT64_C(5000000000), &err), NULL};
    if (t.fd < 0)
        die("connecting", t.fd);
    if (tls)
        shake_hands(&t, false);
    bytes = bytes / PIECE_BYTES * PIECE_BYTES;
    printf("{\"trip_ns\":%llu,", (unsigned long long)trips(&t, n_trips));
    printf("\"bytes\":%llu,\"write_ns\":%llu,", (unsigned long long)bytes,
           (unsigned long long)pumped(&t, bytes, true));
    printf("\"read_ns\":%llu}\n", (unsigned long long)pumped(&t, bytes, false));
    gn_tcp_close(&t);
    return 0;
}

int main(int argc, char **argv)
{
    bool tls = false;
    uint64_t bytes = UINT64_C(64) << 20, n_trips = 2000;
    for (int i = 2; i < argc; i++) {
        tls |= !strcmp(argv[i], "--tls");
        if (!strcmp(argv[i], "--bytes") && i + 1 < argc)
            bytes = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--trips") && i + 1 < argc)
            n_trips = strtoull(argv[++i], NULL, 10);
    }
    if (argc >= 2 && !strcmp(argv[1], "serve"))
        return serve(tls);
    if (argc >= 3 && !strcmp(argv[1], "ask"))
        return ask((uint16_t)atoi(argv[2]), tls, bytes, n_trips);
    fputs("usage: bench-tcp serve [--tls] | ask PORT [--tls] [--bytes N] [--trips N]\n", stderr);
    return 2;
}
