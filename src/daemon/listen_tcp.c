/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tcp port: takes connections, finds out by their first bytes what they are, and passes them on. Until then they are
 * strangers: bounded in number and time, and a refusal of one is a line in the log, unless there have just been many.
 */
#include "daemon/listen_tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/arrivals.h"
#include "daemon/remote_vgpus.h"
#include "daemon/tls_shuttle.h"
#include "link/frame.h"
#include "link/address.h"
#include "link/tcp.h"

#define MAX_GREETINGS  256u
#define GREETING_NS    UINT64_C(5000000000)
#define TLS_FIRST_BYTE 0x16 /* a handshake record */
#define LOG_WINDOW_NS  UINT64_C(10000000000)
#define LINES_A_WINDOW 10u
#define PAUSE_NS       UINT64_C(5000000000)

struct gn_tcp_listener {
    struct gn_daemon *daemon;
    struct gn_source socket, timer;
    struct gn_list greetings; /* the oldest first */
    uint32_t n_greetings;
    bool insecure;
    struct gn_config config;
    struct gn_tls_config tls;
    char address[GN_ADDRESS_MAX_HOST + 16];
    uint64_t resume_ns; /* out of descriptors until then; 0: not */
    uint64_t window_ns; /* of the log */
    uint32_t n_lines, n_unsaid;
};

/* A connection that has not said yet what it wants. */
struct greeting {
    struct gn_corpse corpse;
    struct gn_list link;
    struct gn_tcp_listener *owner;
    struct gn_source socket;
    struct gn_tls *tls; /* shaking hands */
    uint64_t deadline_ns;
    char peer[64];
    struct gn_link_data name;
    size_t have; /* bytes of name */
};

/* ---- the log: once a connection, and not all of a flood */

static void refuse_line(struct gn_tcp_listener *l, const char *peer, const char *why)
{
    uint64_t now = gn_now_ns();
    if (now - l->window_ns > LOG_WINDOW_NS) {
        if (l->n_unsaid)
            gn_log(GN_LOG_WARN, "%u more connections to tcp:%s were refused", l->n_unsaid, l->address);
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
    if (!gn_list_empty(&l->greetings)) {
        uint64_t deadline = gn_list_first(&l->greetings, struct greeting, link)->deadline_ns;
        first = first && first < deadline ? first : deadline;
    }
    when.it_value.tv_sec = (time_t)(first / 1000000000u);
    when.it_value.tv_nsec = (long)(first % 1000000000u);
    (void)timerfd_settime(l->timer.fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void bury(struct gn_corpse *corpse)
{
    free(gn_container_of(corpse, struct greeting, corpse));
}

/* No longer a stranger, or no longer there; its descriptor is its new owner's when that has taken it. */
static void leave(struct greeting *g)
{
    struct gn_tcp_listener *l = g->owner;
    if (g->tls)
        gn_tls_free(g->tls);
    g->tls = NULL;
    gn_loop_close(&l->daemon->loop, &g->socket);
    gn_list_remove(&g->link);
    l->n_greetings--;
    gn_loop_bury(&l->daemon->loop, &g->corpse, bury);
    set_timer(l);
}

static void refuse(struct greeting *g, const char *why)
{
    refuse_line(g->owner, g->peer, why);
    leave(g);
}

/* The descriptor for somebody else: the loop no longer knows it. */
static int take_socket(struct greeting *g)
{
    int fd = g->socket.fd;
    (void)epoll_ctl(g->owner->daemon->loop.epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    g->socket.fd = -1;
    return fd;
}

/* ---- data connections */

static void route(struct greeting *g)
{
    struct gn_vgpu_record *v;
    if (g->name.version != GN_LINK_VERSION || g->name.zero) {
        refuse(g, "a data connection of another version");
        return;
    }
    if (gn_arrivals_take_stream(g->owner->daemon, g->name.session, g->name.proof, g->socket.fd)) {
        leave(g);
        return;
    }
    v = gn_vgpus_for_data(g->owner->daemon, g->name.session, g->name.proof);
    if (!v) {
        refuse(g, "a data connection that names no session of ours");
        return;
    }
    gn_vgpus_link(v, g->socket.fd); /* the worker's copy is its own */
    leave(g);
}

static void read_name(struct greeting *g)
{
    while (g->have < sizeof g->name) {
        ssize_t n = recv(g->socket.fd, (char *)&g->name + g->have, sizeof g->name - g->have, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            refuse(g, "it hung up before it had said what it wants");
            return;
        }
        g->have += (size_t)n;
    }
    route(g);
}

/* ---- control connections */

static void shake_hands(struct greeting *g)
{
    struct gn_tcp_listener *l = g->owner;
    struct gn_error err = {{0}, {0}};
    struct gn_remote_peer peer = {.secure = true};
    int rc = g->tls->ops->handshake(g->tls, &err);
    if (rc > 0) {
        gn_loop_change(&l->daemon->loop, &g->socket, rc == 1 ? EPOLLIN : EPOLLOUT);
        return;
    }
    if (rc < 0) {
        refuse(g, err.what);
        return;
    }
    unsigned char identity[GN_TLS_IDENTITY_BYTES];
    peer.proved = g->tls->ops->identity(g->tls, identity);
    g->tls->ops->subject(g->tls, peer.subject, sizeof peer.subject);
    memcpy(peer.address, g->peer, sizeof peer.address);
    struct gn_tcp tcp = {take_socket(g), g->tls};
    g->tls = NULL;
    if (gn_tls_shuttle_start(l->daemon, &tcp, &peer))
        refuse_line(l, g->peer, "no memory or no descriptors");
    leave(g);
}

static void start_tls(struct greeting *g)
{
    struct gn_tcp_listener *l = g->owner;
    struct gn_error err = {{0}, {0}};
    const struct gn_tls_ops *ops = gn_tls_load(&err);
    if (ops && !ops->start(&l->tls, g->socket.fd, &g->tls, &err))
        shake_hands(g);
    else
        refuse(g, err.what);
}

/* To a program without credentials: who runs it should know what is missing. */
static void say_tls_only(struct greeting *g)
{
    struct gn_link_error e = {.code = EACCES};
    gn_frame_string_set(e.what, sizeof e.what, "this gantryd serves nobody over tcp without credentials");
    gn_frame_string_set(e.fix, sizeof e.fix, "set GANTRY_TOKEN, or GANTRY_TLS_CERT and GANTRY_TLS_KEY");
    (void)gn_frame_send(g->socket.fd, 0, GN_LINK_ERROR, 0, 0, &e, sizeof e, NULL, 0);
    /* What has come and is not read would make the system throw the farewell away. */
    char rest[512];
    while (recv(g->socket.fd, rest, sizeof rest, MSG_DONTWAIT) > 0)
        ;
}

static void take_plain(struct greeting *g)
{
    struct gn_remote_peer peer = {.secure = false};
    if (!g->owner->insecure) {
        say_tls_only(g);
        refuse(g, "it does not begin with TLS");
        return;
    }
    memcpy(peer.address, g->peer, sizeof peer.address);
    int fd = take_socket(g);
    leave(g);
    gn_conns_take_remote(g->owner->daemon, fd, &peer);
}

static void ready(struct gn_source *s, uint32_t events)
{
    struct greeting *g = gn_container_of(s, struct greeting, socket);
    unsigned char first[8];
    (void)events;
    if (g->tls) {
        shake_hands(g);
        return;
    }
    if (g->have) {
        read_name(g);
        return;
    }
    ssize_t n = recv(s->fd, first, sizeof first, MSG_PEEK | MSG_DONTWAIT);
    const uint64_t magic = GN_LINK_DATA_MAGIC;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        refuse(g, "it hung up without a word");
    else if (first[0] == TLS_FIRST_BYTE)
        start_tls(g);
    else if (memcmp(first, &magic, (size_t)n) == 0) /* a part of it: the rest decides */
        read_name(g);
    else
        take_plain(g);
}

/* ---- all of them */

static void timed_out(struct gn_source *timer, uint32_t events)
{
    struct gn_tcp_listener *l = gn_container_of(timer, struct gn_tcp_listener, timer);
    uint64_t expirations, now = gn_now_ns();
    (void)events;
    (void)!read(timer->fd, &expirations, sizeof expirations);
    gn_list_for_each(g, &l->greetings, struct greeting, link)
    {
        if (g->deadline_ns > now)
            break;
        refuse(g, g->tls ? "it did not finish its handshake in time" : "it did not say in time what it wants");
    }
    if (l->resume_ns && l->resume_ns <= now) {
        l->resume_ns = 0;
        gn_loop_change(&l->daemon->loop, &l->socket, EPOLLIN);
    }
    set_timer(l);
}

static void peer_name(const struct sockaddr_storage *from, socklen_t n, char *ret, size_t n_ret)
{
    char host[48] = "?", port[8] = "?";
    (void)getnameinfo((const struct sockaddr *)from, n, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(ret, n_ret, from->ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

static void pause_accepting(struct gn_tcp_listener *l)
{
    gn_log(GN_LOG_WARN, "cannot take another connection to tcp:%s: %s; trying again in %u s", l->address, strerror(errno),
           (unsigned)(PAUSE_NS / 1000000000u));
    l->resume_ns = gn_now_ns() + PAUSE_NS;
    gn_loop_change(&l->daemon->loop, &l->socket, 0);
    set_timer(l);
}

static bool out_of_descriptors(void)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
}

static void accept_one(struct gn_source *socket, uint32_t events)
{
    struct gn_tcp_listener *l = gn_container_of(socket, struct gn_tcp_listener, socket);
    struct sockaddr_storage from;
    socklen_t n = sizeof from;
    (void)events;
    /* One who keeps us waiting makes room for who may not. */
    if (l->n_greetings == MAX_GREETINGS)
        refuse(gn_list_first(&l->greetings, struct greeting, link), "too many wait to say what they want");
    int fd = accept4(socket->fd, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && out_of_descriptors() && gn_crowd_evict(l->daemon))
        fd = accept4(socket->fd, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        /* Who waits keeps the socket ready: without a pause that would be one event after the other. */
        if (out_of_descriptors())
            pause_accepting(l);
        return;
    }
    struct greeting *g = calloc(1, sizeof *g);
    if (!g) {
        close(fd);
        return;
    }
    gn_tcp_set_up(fd);
    g->owner = l;
    g->socket.fd = fd;
    g->deadline_ns = gn_now_ns() + GREETING_NS;
    peer_name(&from, n, g->peer, sizeof g->peer);
    gn_list_append(&l->greetings, &g->link);
    l->n_greetings++;
    if (gn_loop_add(&l->daemon->loop, &g->socket, EPOLLIN, ready) < 0)
        leave(g);
    else
        set_timer(l);
}

static int find_psk(void *context, const unsigned char *identity, struct gn_tls_psk *ret)
{
    return gn_tenants_find_psk(context, identity, ret);
}

static int set_up_tls(struct gn_tcp_listener *l, const struct gn_config *config, const struct gn_address *a, struct gn_error *err)
{
    const bool certificate = config->tls_certificate[0], key = config->tls_key[0], authority = config->tls_authority[0];
    const bool credentials = certificate || gn_tenants_have_tokens(l->daemon);
    if (certificate != key)
        return gn_fail(err, EINVAL, "give both", "a certificate and its key go together: only the %s is given",
                       key ? "key" : "certificate");
    if (authority && !certificate)
        return gn_fail(err, EINVAL, "give --tls-certificate and --tls-key", "gantryd cannot ask for certificates without one of its own");
    if (!credentials && !config->insecure)
        return gn_fail(err, EACCES, "give a tenant a token or gantryd a certificate, or say --insecure",
                       "listening at tcp:%s:%u without credentials would let anybody in", a->host, a->port);
    l->config = *config; /* whose files TLS names */
    l->tls = (struct gn_tls_config){.server = true,
                                    .find = find_psk,
                                    .find_context = l->daemon,
                                    .certificate = certificate ? l->config.tls_certificate : NULL,
                                    .key = key ? l->config.tls_key : NULL,
                                    .authority = authority ? l->config.tls_authority : NULL};
    const struct gn_tls_ops *ops = credentials ? gn_tls_load(err) : NULL;
    return !credentials ? 0 : !ops ? -ENOENT : ops->check(&l->tls, err);
}

int gn_tcp_listener_start(struct gn_daemon *d, const struct gn_config *config, struct gn_tcp_listener **ret, struct gn_error *err)
{
    struct gn_address a;
    uint16_t port;
    int rc = gn_address_parse(config->listen, &a, err);
    if (rc)
        return rc;
    if (!a.tcp)
        return gn_fail(err, EINVAL, "write tcp:HOST:PORT", "\"%s\" is no address to listen at", config->listen);
    struct gn_tcp_listener *l = calloc(1, sizeof *l);
    if (!l)
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    l->daemon = d;
    l->insecure = config->insecure;
    gn_list_init(&l->greetings);
    l->timer.fd = -1;
    l->socket.fd = -1;
    rc = set_up_tls(l, config, &a, err);
    if (!rc)
        rc = l->socket.fd = gn_tcp_listen(&a, &port, err);
    if (rc >= 0) {
        snprintf(l->address, sizeof l->address, strchr(a.host, ':') ? "[%s]:%u" : "%s:%u", a.host, port);
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
    gn_list_for_each(g, &l->greetings, struct greeting, link) leave(g);
    gn_loop_close(&l->daemon->loop, &l->socket);
    gn_loop_close(&l->daemon->loop, &l->timer);
    free(l);
}
