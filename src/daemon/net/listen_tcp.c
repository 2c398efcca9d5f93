/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tcp ports: accepts connections, recognizes by the first bytes whether each is TLS, a data
 * connection or a plain control connection, and passes it on. The event loop calls it, on gantryd's
 * thread; TLS handshakes run on their own thread (tls_handshakes.h). Until its greeting is
 * admitted, a connection counts as a stranger (strangers.h). Each refusal writes a line to the log,
 * up to LINES_A_WINDOW in a window. Nothing here blocks.
 */
#include "daemon/net/listen_tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/net/connection_limits.h"
#include "daemon/tenants/tenant_keys.h"
#include "daemon/net/tls_handshakes.h"
#include "daemon/net/tls_shuttle.h"
#include "link/frame.h"
#include "link/address.h"
#include "link/tcp.h"

#define TLS_FIRST_BYTE 0x16 /* first byte of a TLS handshake record */
#define LOG_WINDOW_NS  UINT64_C(10000000000)
#define LINES_A_WINDOW 10u
#define PAUSE_NS       UINT64_C(5000000000)

struct gn_tcp_listener {
    struct gn_daemon *daemon;
    struct gn_source socket, timer, news;
    struct gn_list greetings, shuttles;
    struct gn_handshakes *handshakes; /* NULL: TLS is not set up */
    bool insecure;
    /* the port for operators, which accepts TLS with client certificates only */
    bool control;
    struct gn_config config; /* holds the file names that TLS uses */
    struct gn_strangers strangers;
    char address[GN_ADDRESS_MAX_HOST + 16];
    uint64_t resume_ns; /* accepting is paused for lack of descriptors until then; 0: not paused */
    uint64_t window_ns; /* when the current window of log lines began */
    uint32_t n_lines, n_unsaid;
};

/* A connection that has not identified itself yet. */
struct greeting {
    struct gn_corpse corpse;
    struct gn_list link;
    struct gn_tcp_listener *owner;
    struct gn_stranger stranger;
    struct gn_source socket;
    struct gn_handshake *handshake; /* it owns the socket; NULL: none */
    char peer[64];
    struct gn_link_data name;
    size_t have; /* bytes of `name` received */
};

/* ---- the log: one line a connection, with a limit */

static void log_refusal(struct gn_tcp_listener *l, const char *peer, const char *why)
{
    uint64_t now = gn_now_ns();
    if (now - l->window_ns > LOG_WINDOW_NS) {
        if (l->n_unsaid)
            gn_log(GN_LOG_WARN, "%u more connections to tcp:%s were refused", l->n_unsaid,
                   l->address);
        l->window_ns = now;
        l->n_lines = l->n_unsaid = 0;
    }
    if (l->n_lines++ < LINES_A_WINDOW)
        gn_log(GN_LOG_WARN, "refused a connection from %s: %s", peer, why);
    else
        l->n_unsaid++;
}

static void set_timer(struct gn_tcp_listener *l)
{
    struct itimerspec when = {.it_value = {0}};
    uint64_t first = l->resume_ns;
    const uint64_t deadline = gn_strangers_deadline(&l->strangers);
    if (deadline && (!first || deadline < first))
        first = deadline;
    when.it_value.tv_sec = (time_t)(first / 1000000000u);
    when.it_value.tv_nsec = (long)(first % 1000000000u);
    (void)timerfd_settime(l->timer.fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void free_greeting(struct gn_corpse *corpse)
{
    free(gn_container_of(corpse, struct greeting, corpse));
}

/* Ends the greeting: the connection was passed on, or is closed here. When it was passed on, the
 * new owner has its descriptor and its place among the strangers. */
static void close_greeting(struct greeting *g)
{
    struct gn_tcp_listener *l = g->owner;
    gn_strangers_refuse(&l->strangers, &g->stranger, gn_now_ns());
    if (g->handshake)
        gn_handshake_abort(g->handshake);
    g->handshake = NULL;
    gn_loop_close(&l->daemon->loop, &g->socket);
    gn_list_remove(&g->link);
    gn_loop_bury(&l->daemon->loop, &g->corpse, free_greeting);
    set_timer(l);
}

static void refuse_greeting(struct greeting *g, const char *why)
{
    log_refusal(g->owner, g->peer, why);
    close_greeting(g);
}

/* Removes the descriptor from the loop and passes it to the caller. */
static int release_socket(struct greeting *g)
{
    int fd = g->socket.fd;
    (void)epoll_ctl(g->owner->daemon->loop.epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    g->socket.fd = -1;
    return fd;
}

/* Here and below, why NULL means that its deadline has passed. */
static void end_greeting(struct gn_stranger *s, const char *why)
{
    struct greeting *g = gn_container_of(s, struct greeting, stranger);
    if (!why)
        why = g->handshake ? "it did not finish its handshake in time"
                           : "it did not identify itself in time";
    refuse_greeting(g, why);
}

static void end_conn(struct gn_stranger *s, const char *why)
{
    struct gn_conn *c = gn_container_of(s, struct gn_conn, stranger);
    log_refusal(c->came_by, c->peer.address, why ? why : "it did not greet in time");
    gn_conn_close(c);
}

/* Passes the connection to connections.c, which reads its greeting. It stays a stranger until that
 * is admitted. c NULL: it was closed. */
static void pass_on(struct greeting *g, struct gn_conn *c)
{
    if (!c)
        return;
    c->came_by = g->owner;
    c->stranger.end = end_conn;
    gn_strangers_replace(&g->stranger, &c->stranger);
}

void gn_tcp_listener_admit(struct gn_conn *c)
{
    if (c->came_by)
        gn_strangers_admit(&c->came_by->strangers, &c->stranger);
}

void gn_tcp_listener_refuse(struct gn_conn *c)
{
    if (c->came_by)
        gn_strangers_refuse(&c->came_by->strangers, &c->stranger, gn_now_ns());
}

/* ---- data connections */

static void route_data(struct greeting *g)
{
    if (g->name.version != GN_LINK_VERSION || g->name.zero) {
        refuse_greeting(g, "a data connection uses another protocol version");
        return;
    }
    if (g->owner->daemon->programs->data(g->owner->daemon, &g->name, g->socket.fd))
        close_greeting(g);
    else
        refuse_greeting(g, "a data connection names an unknown session");
}

static void read_name(struct greeting *g)
{
    while (g->have < sizeof g->name) {
        ssize_t n =
            recv(g->socket.fd, (char *)&g->name + g->have, sizeof g->name - g->have, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            refuse_greeting(g, "it hung up before it had identified itself");
            return;
        }
        g->have += (size_t)n;
    }
    route_data(g);
}

/* ---- control connections */

static bool is_operator(const struct gn_config *config, const char *subject)
{
    for (int i = 0; i < config->n_operator_subjects; i++)
        if (subject[0] && strcmp(config->operator_subjects[i], subject) == 0)
            return true;
    return false;
}

static void pass_key(struct greeting *g)
{
    struct gn_tls_psk psk;
    struct gn_daemon *d = g->owner->daemon;
    const int rc = d->programs->find_key(d, gn_handshake_wanted_key(g->handshake), &psk);
    gn_handshake_set_key(g->handshake, rc ? NULL : &psk);
    explicit_bzero(&psk, sizeof psk);
}

static void finish_handshake(struct greeting *g)
{
    struct gn_tcp_listener *l = g->owner;
    struct gn_session_tcp_peer peer = {.secure = true};
    unsigned char identity[GN_TLS_IDENTITY_BYTES];
    struct gn_conn *c = NULL;
    struct gn_tcp tcp;
    gn_handshake_finish(g->handshake, &tcp);
    g->handshake = NULL;
    peer.proved = tcp.tls->ops->identity(tcp.tls, identity);
    tcp.tls->ops->subject(tcp.tls, peer.subject, sizeof peer.subject);
    peer.control = l->control;
    peer.role =
        l->control && is_operator(&l->config, peer.subject) ? GN_ROLE_CONTROL : GN_ROLE_PROGRAM;
    memcpy(peer.address, g->peer, sizeof peer.address);
    if (gn_tls_shuttle_start(l->daemon, &l->shuttles, &tcp, &peer, &c))
        log_refusal(l, g->peer, "no memory or no descriptors");
    pass_on(g, c);
    close_greeting(g);
}

static void read_handshake_news(struct gn_source *news, uint32_t events)
{
    struct gn_tcp_listener *l = gn_container_of(news, struct gn_tcp_listener, news);
    enum gn_handshake_news what;
    struct gn_handshake *h;
    uint64_t ignored, cost_ns;
    void *owner;
    (void)events;
    (void)!read(news->fd, &ignored, sizeof ignored);
    while ((h = gn_handshakes_next(l->handshakes, &what, &owner, &cost_ns))) {
        struct greeting *g = owner;
        g->stranger.cost_ns = cost_ns;
        if (what == GN_HANDSHAKE_WANTS_KEY)
            pass_key(g);
        else if (what == GN_HANDSHAKE_DONE)
            finish_handshake(g);
        else
            refuse_greeting(g, gn_handshake_why(h));
    }
}

static int start_handshakes(struct gn_tcp_listener *l, struct gn_error *err)
{
    const struct gn_config *c = &l->config;
    const struct gn_tls_config tls = {.server = true,
                                      .asks_for_keys = !l->control,
                                      .certificate =
                                          c->tls_certificate[0] ? c->tls_certificate : NULL,
                                      .key = c->tls_key[0] ? c->tls_key : NULL,
                                      .authority = c->tls_authority[0] ? c->tls_authority : NULL};
    l->news.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = l->news.fd < 0 ? -errno
                            : gn_loop_add(&l->daemon->loop, &l->news, EPOLLIN, read_handshake_news);
    if (rc)
        gn_fail(err, -rc, NULL, "cannot set up TLS: %s", strerror(-rc));
    else
        rc = gn_handshakes_start(&tls, l->news.fd, &l->handshakes, err);
    if (rc)
        gn_loop_close(&l->daemon->loop, &l->news);
    return rc;
}

static void start_tls(struct greeting *g)
{
    struct gn_tcp_listener *l = g->owner;
    struct gn_error err = {{0}, {0}};
    /* A gantryd without credentials still accepts vGPUs from other gantryds: a ticket carries a
     * key. */
    if (!l->handshakes && start_handshakes(l, &err)) {
        refuse_greeting(g, err.what);
        return;
    }
    g->handshake = gn_handshake_begin(l->handshakes, release_socket(g), g->stranger.address, g);
    if (!g->handshake)
        refuse_greeting(g, "out of memory");
}

/* Tells a program without credentials, and so its user, which settings are missing. */
static void send_tls_required(struct greeting *g)
{
    struct gn_link_error e = {.code = EACCES};
    gn_frame_string_set(e.what, sizeof e.what, "this gantryd requires credentials over tcp");
    gn_frame_string_set(e.fix, sizeof e.fix,
                        g->owner->control
                            ? "set GANTRY_TLS_CERT and GANTRY_TLS_KEY to an operator's"
                            : "set GANTRY_TOKEN, or GANTRY_TLS_CERT and GANTRY_TLS_KEY");
    (void)gn_frame_send(g->socket.fd, 0, GN_LINK_ERROR, 0, 0, &e, sizeof e, NULL, 0);
    /*
     * With unread data in the socket, close() would send a reset and the peer would lose the error.
     */
    char rest[512];
    while (recv(g->socket.fd, rest, sizeof rest, MSG_DONTWAIT) > 0)
        ;
}

static void accept_plain(struct greeting *g)
{
    struct gn_session_tcp_peer peer = {.secure = false};
    if (!g->owner->insecure) {
        send_tls_required(g);
        refuse_greeting(g, "it does not use TLS");
        return;
    }
    memcpy(peer.address, g->peer, sizeof peer.address);
    pass_on(g, gn_conns_add_tcp(g->owner->daemon, release_socket(g), &peer));
    close_greeting(g);
}

static void greeting_ready(struct gn_source *s, uint32_t events)
{
    struct greeting *g = gn_container_of(s, struct greeting, socket);
    unsigned char first[8];
    (void)events;
    if (g->have) {
        read_name(g);
        return;
    }
    ssize_t n = recv(s->fd, first, sizeof first, MSG_PEEK | MSG_DONTWAIT);
    const uint64_t magic = GN_LINK_DATA_MAGIC;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        refuse_greeting(g, "it hung up without sending anything");
    else if (first[0] == TLS_FIRST_BYTE)
        start_tls(g);
    else if (!g->owner->control &&
             memcmp(first, &magic, (size_t)n) ==
                 0) /* At most 8 bytes are compared: read_name() and route_data() check the rest. */
        read_name(g);
    else
        accept_plain(g);
}

/* ---- the listener */

static void timed_out(struct gn_source *timer, uint32_t events)
{
    struct gn_tcp_listener *l = gn_container_of(timer, struct gn_tcp_listener, timer);
    uint64_t expirations, now = gn_now_ns();
    (void)events;
    (void)!read(timer->fd, &expirations, sizeof expirations);
    struct gn_stranger *late;
    while ((late = gn_strangers_late(&l->strangers, now)))
        late->end(late, NULL);
    if (l->resume_ns && l->resume_ns <= now) {
        l->resume_ns = 0;
        gn_loop_change(&l->daemon->loop, &l->socket, EPOLLIN);
    }
    set_timer(l);
}

static void peer_name(const struct sockaddr_storage *from, socklen_t n, char *ret, size_t n_ret)
{
    char host[48] = "?", port[8] = "?";
    (void)getnameinfo((const struct sockaddr *)from, n, host, sizeof host, port, sizeof port,
                      NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(ret, n_ret, from->ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

/* A number for the peer's address: IPv4 whole, IPv6 its /64 network, since one host usually has all
 * addresses of it. */
static uint64_t address_number(const struct sockaddr_storage *from)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
    uint64_t number = 0;
    if (from->ss_family == AF_INET)
        return v4->sin_addr.s_addr;
    if (from->ss_family != AF_INET6)
        return 0;
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        memcpy(&number, v6->sin6_addr.s6_addr + 12, 4);
    else
        memcpy(&number, v6->sin6_addr.s6_addr, 8);
    return number;
}

static void pause_accepting(struct gn_tcp_listener *l)
{
    gn_log(GN_LOG_WARN, "cannot accept another connection to tcp:%s: %s; trying again in %u s",
           l->address, strerror(errno), (unsigned)(PAUSE_NS / 1000000000u));
    l->resume_ns = gn_now_ns() + PAUSE_NS;
    gn_loop_change(&l->daemon->loop, &l->socket, 0);
    set_timer(l);
}

static bool out_of_descriptors(void)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
}

static void add_greeting(struct gn_tcp_listener *l, int fd, const struct sockaddr_storage *from,
                         socklen_t n_from)
{
    const uint64_t now = gn_now_ns(), address = address_number(from);
    struct gn_strangers *strangers = &l->strangers;
    struct greeting *g = calloc(1, sizeof *g);
    char peer[sizeof g->peer];
    peer_name(from, n_from, peer, sizeof peer);
    if (!g || !gn_strangers_may_come(strangers, address, now)) {
        log_refusal(l, peer,
                    g ? "too many TLS handshakes from its address have failed" : "out of memory");
        free(g);
        close(fd);
        return;
    }
    struct gn_stranger *in_excess = gn_strangers_in_excess(strangers);
    if (in_excess)
        in_excess->end(in_excess, "too many connections have not identified themselves");
    gn_tcp_set_up(fd);
    g->owner = l;
    g->socket.fd = fd;
    g->stranger.end = end_greeting;
    memcpy(g->peer, peer, sizeof g->peer);
    gn_list_append(&l->greetings, &g->link);
    gn_strangers_add(strangers, &g->stranger, address, now);
    if (gn_loop_add(&l->daemon->loop, &g->socket, EPOLLIN, greeting_ready) < 0)
        close_greeting(g);
    else
        set_timer(l);
}

static void accept_one(struct gn_source *socket, uint32_t events)
{
    struct gn_tcp_listener *l = gn_container_of(socket, struct gn_tcp_listener, socket);
    struct sockaddr_storage from;
    socklen_t n = sizeof from;
    (void)events;
    int fd = accept4(socket->fd, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && out_of_descriptors() && gn_conn_limits_evict(l->daemon, GN_ROLE_PROGRAM))
        fd = accept4(socket->fd, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        /* A waiting peer keeps the socket readable: without a pause the loop would spin on it. */
        if (out_of_descriptors())
            pause_accepting(l);
        return;
    }
    add_greeting(l, fd, &from, n);
}

static int set_up_tls(struct gn_tcp_listener *l, const struct gn_config *config,
                      const struct gn_address *a, struct gn_error *err)
{
    const bool certificate = config->tls_certificate[0], key = config->tls_key[0],
               authority = config->tls_authority[0];
    if (l->control && (!certificate || !key || !authority || !config->n_operator_subjects))
        return gn_fail(
            err, EACCES,
            "give --tls-certificate, --tls-key, --tls-client-authority and --operator-subject",
            "operators identify themselves over tcp by certificates only: listening at "
            "tcp:%s:%u lacks settings for that",
            a->host, a->port);
    const bool credentials = certificate || gn_tenants_have_tokens(&l->daemon->tenants);
    if (certificate != key)
        return gn_fail(err, EINVAL, "give both",
                       "a certificate and its key go together: only the %s is given",
                       key ? "key" : "certificate");
    if (authority && !certificate)
        return gn_fail(err, EINVAL, "give --tls-certificate and --tls-key",
                       "gantryd cannot ask for certificates without one of its own");
    if (!credentials && !config->insecure)
        return gn_fail(
            err, EACCES, "give a tenant a token or gantryd a certificate, or say --insecure",
            "listening at tcp:%s:%u without credentials would let anybody in", a->host, a->port);
    l->config = *config;
    return credentials ? start_handshakes(l, err) : 0;
}

int gn_tcp_listener_start(struct gn_daemon *d, const struct gn_config *config, bool control,
                          struct gn_tcp_listener **ret, struct gn_error *err)
{
    const char *address = control ? config->listen_control : config->listen;
    struct gn_address a;
    uint16_t port;
    int rc = gn_address_parse(address, &a, err);
    if (rc)
        return rc;
    if (!a.tcp)
        return gn_fail(err, EINVAL, "write tcp:HOST:PORT", "\"%s\" is not an address to listen at",
                       address);
    struct gn_tcp_listener *l = calloc(1, sizeof *l);
    if (!l)
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    l->daemon = d;
    l->insecure = config->insecure && !control;
    l->control = control;
    gn_list_init(&l->greetings);
    gn_list_init(&l->shuttles);
    gn_strangers_init(&l->strangers);
    l->timer.fd = l->news.fd = -1;
    l->socket.fd = -1;
    rc = set_up_tls(l, config, &a, err);
    if (!rc)
        rc = l->socket.fd = gn_tcp_listen(&a, &port, err);
    if (rc >= 0) {
        snprintf(l->address, sizeof l->address, strchr(a.host, ':') ? "[%s]:%u" : "%s:%u", a.host,
                 port);
        l->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        rc = l->timer.fd < 0 ? -errno : gn_loop_add(&d->loop, &l->timer, EPOLLIN, timed_out);
        if (!rc)
            rc = gn_loop_add(&d->loop, &l->socket, EPOLLIN, accept_one);
        if (rc)
            gn_fail(err, -rc, NULL, "cannot listen at tcp:%s: %s", l->address, strerror(-rc));
    }
    if (rc) {
        gn_tcp_listener_stop(l);
        return rc;
    }
    *ret = l;
    return 0;
}

void gn_tcp_listener_address(const struct gn_tcp_listener *l, char *ret, size_t n)
{
    snprintf(ret, n, "tcp:%s", l->address);
}

void gn_tcp_listener_stop(struct gn_tcp_listener *l)
{
    if (!l)
        return;
    gn_list_for_each(g, &l->greetings, struct greeting, link) close_greeting(g);
    gn_handshakes_stop(l->handshakes);
    gn_tls_shuttles_stop(&l->shuttles);
    gn_loop_close(&l->daemon->loop, &l->socket);
    gn_loop_close(&l->daemon->loop, &l->news);
    gn_loop_close(&l->daemon->loop, &l->timer);
    free(l);
}
