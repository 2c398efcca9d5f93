/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network in the way: passes tcp connections on to an address, every byte a fixed time late.
 * Prints the port that it listens at. SIGUSR1 cuts all connections; SIGUSR2 lets nothing pass any
 * more, or everything again. One thread; a direction holds as much as a long thick wire would, then
 * stops reading.
 *
 *     relay TO-PORT [DELAY-MICROSECONDS]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"

#define MAX_PAIRS   64
#define PIECE_BYTES (256u << 10)
#define WIRE_BYTES  (64u << 20)

struct piece {
    struct gn_list link;
    uint64_t due_ns;
    size_t at, n;
    char bytes[];
};

struct way {
    struct gn_list pieces;
    size_t held;
    bool over; /* its source has ended */
};

struct pair {
    int fd[2];
    struct way way[2]; /* way[i] is from fd[i] to fd[1 - i] */
};

static struct pair pairs[MAX_PAIRS];
static int n_pairs;
static uint64_t delay_ns;
static volatile sig_atomic_t cut_now, held_up;

static void on_cut(int signal)
{
    (void)signal;
    cut_now = 1;
}

static void on_hold(int signal)
{
    (void)signal;
    held_up = !held_up;
}

static void drop(int i)
{
    struct pair *p = &pairs[i];
    for (int w = 0; w < 2; w++) {
        close(p->fd[w]);
        gn_list_for_each(piece, &p->way[w].pieces, struct piece, link) free(piece);
    }
    n_pairs--;
    if (i == n_pairs)
        return;
    *p = pairs[n_pairs];
    for (int w = 0; w < 2; w++) {
        /* The head has moved. */
        struct gn_list *head = &p->way[w].pieces, *was = &pairs[n_pairs].way[w].pieces;
        if (was->next == was) {
            gn_list_init(head);
        } else {
            head->next->prev = head;
            head->prev->next = head;
        }
    }
}

static void set_up(int fd)
{
    int one = 1, much = 4 << 20;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &much, sizeof much);
}

static void take(int listener, const struct sockaddr_in *to)
{
    struct pair *p = &pairs[n_pairs];
    int a = accept(listener, NULL, NULL), b;
    if (a < 0)
        return;
    b = socket(AF_INET, SOCK_STREAM, 0);
    if (n_pairs == MAX_PAIRS || connect(b, (const struct sockaddr *)to, sizeof *to) < 0) {
        close(a);
        close(b);
        return;
    }
    set_up(a);
    set_up(b);
    *p = (struct pair){.fd = {a, b}};
    gn_list_init(&p->way[0].pieces);
    gn_list_init(&p->way[1].pieces);
    n_pairs++;
}

/* False: the pair is at its end. */
static bool receive(struct pair *p, int w)
{
    struct way *way = &p->way[w];
    struct piece *piece = malloc(sizeof *piece + PIECE_BYTES);
    ssize_t n = piece ? recv(p->fd[w], piece->bytes, PIECE_BYTES, 0) : -1;
    if (n <= 0) {
        bool again = n < 0 && errno == EAGAIN;
        free(piece);
        way->over |= n == 0;
        return again || n == 0;
    }
    piece = realloc(piece, sizeof *piece + (size_t)n);
    piece->at = 0;
    piece->n = (size_t)n;
    piece->due_ns = gn_now_ns() + delay_ns;
    gn_list_append(&way->pieces, &piece->link);
    way->held += (size_t)n;
    return true;
}

/* Sends what is due. False: the pair is at its end. */
static bool send_due(struct pair *p, int w, uint64_t now, bool *ret_full)
{
    struct way *way = &p->way[w];
    *ret_full = false;
    gn_list_for_each(piece, &way->pieces, struct piece, link)
    {
        if (piece->due_ns > now)
            return true;
        while (piece->at < piece->n) {
            ssize_t n =
                send(p->fd[1 - w], piece->bytes + piece->at, piece->n - piece->at, MSG_NOSIGNAL);
            if (n < 0 && errno == EAGAIN) {
                *ret_full = true;
                return true;
            }
            if (n < 0)
                return false;
            piece->at += (size_t)n;
        }
        way->held -= piece->n;
        gn_list_remove(&piece->link);
        free(piece);
    }
    return !way->over;
}

int main(int argc, char **argv)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
                       to = here;
    socklen_t n = sizeof here;
    sigset_t none, both;
    if (argc < 2)
        return 2;
    to.sin_port = htons((uint16_t)atoi(argv[1]));
    delay_ns = argc > 2 ? strtoull(argv[2], NULL, 10) * 1000 : 0;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) < 0 || listen(listener, 64) < 0 ||
        getsockname(listener, (struct sockaddr *)&here, &n) < 0)
        return 1;
    prctl(PR_SET_TIMERSLACK, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigemptyset(&none);
    sigemptyset(&both);
    sigaddset(&both, SIGUSR1);
    sigaddset(&both, SIGUSR2);
    sigprocmask(SIG_BLOCK, &both, NULL); /* they come while it waits */
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_cut}, NULL);
    sigaction(SIGUSR2, &(struct sigaction){.sa_handler = on_hold}, NULL);
    printf("%u\n", ntohs(here.sin_port));
    fflush(stdout);
    for (;;) {
        struct pollfd fds[1 + 2 * MAX_PAIRS] = {{.fd = listener, .events = POLLIN}};
        uint64_t now = gn_now_ns(), next = UINT64_MAX;
        for (int i = 0; i < n_pairs; i++) {
            for (int w = 0; w < 2; w++) {
                bool full = false;
                struct pollfd *f = &fds[1 + 2 * i];
                if (w == 0)
                    f[0].events = f[1].events = 0;
                if (!held_up && !send_due(&pairs[i], w, now, &full)) {
                    drop(i--);
                    break;
                }
                const struct way *way = &pairs[i].way[w];
                f[w].fd = pairs[i].fd[w];
                f[1 - w].fd = pairs[i].fd[1 - w];
                if (full)
                    f[1 - w].events |= POLLOUT;
                if (!way->over && !held_up && way->held < WIRE_BYTES)
                    f[w].events |= POLLIN;
                if (!full && !held_up && !gn_list_empty(&way->pieces)) {
                    uint64_t due = gn_list_first(&way->pieces, struct piece, link)->due_ns;
                    next = due < next ? due : next;
                }
            }
        }
        struct timespec wait = {0};
        if (next != UINT64_MAX && next > now)
            wait = (struct timespec){(time_t)((next - now) / 1000000000u),
                                     (long)((next - now) % 1000000000u)};
        int had = n_pairs;
        int ready = ppoll(fds, (nfds_t)(1 + 2 * n_pairs), next == UINT64_MAX ? NULL : &wait, &none);
        if (cut_now) {
            cut_now = 0;
            while (n_pairs)
                drop(0);
            continue;
        }
        if (ready <= 0)
            continue;
        for (int i = had - 1; i >= 0; i--)
            for (int w = 0; w < 2; w++)
                if ((fds[1 + 2 * i + w].revents & (POLLIN | POLLHUP | POLLERR)) &&
                    !receive(&pairs[i], w)) {
                    drop(i);
                    break;
                }
        if (fds[0].revents)
            take(listener, &to);
    }
}
