/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control connections, of programs and of the `gantry` command: accepts them, reads their frames,
 * calls the function that each frame asks for, and sends the answers. The event loop calls it, on
 * gantryd's thread; it never blocks. A peer that breaks the protocol loses its own connection and
 * nothing else, with one line in the log.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/net/connection_limits.h"
#include "daemon/net/listen_tcp.h"
#include "daemon/tenants/admission.h"
#include "daemon/daemon.h"
#include "daemon/process_stat.h"
#include "daemon/net/connection_turns.h"
#include "daemon/net/transport.h"

#define MAX_QUEUED_BYTES (GN_LINK_CONTROL_LIMIT + (1u << 20))
/* Bytes of answers: a peer that leaves more than this unread is not read either. */
#define UNREAD_BYTES (64u << 10)
#define GREETING_BYTES                                                                             \
    (sizeof(struct gn_frame_header) + sizeof(struct gn_link_hello) +                               \
     sizeof(struct gn_link_identity))
#define LOG_EVERY_NS UINT64_C(10000000000)
/* Accepting a connection costs gantryd less than opening one costs the peer. */
#define ACCEPTS_A_TURN 32
#define MAX_FDS        2 /* descriptors in a frame: CLAIM, WAIT and ATTACH bring this many */

static void free_conn(struct gn_corpse *corpse)
{
    struct gn_conn *c = gn_container_of(corpse, struct gn_conn, corpse);
    struct gn_daemon *d = c->daemon;
    gn_quota_put(c->quota);
    free(c);
    gn_conn_limits_closed(d);
}

static void close_socket(struct gn_conn *c)
{
    int fd = gn_loop_release(&c->daemon->loop, &c->socket);
    (void)shutdown(fd, SHUT_RDWR); /* the peer sees the end now, even if close() happens later */
    if (c->transport->closes_at_once(fd))
        close(fd);
    else
        gn_quota_close(c->quota, &fd);
}

void gn_conn_close(struct gn_conn *c)
{
    struct gn_daemon *d = c->daemon;
    if (c->socket.fd < 0)
        return;
    close_socket(c);
    gn_loop_close(&d->loop, &c->process);
    gn_frame_reader_fini(&c->reader);
    gn_frame_writer_fini(&c->writer);
    free(c->request);
    c->request = NULL;
    gn_turns_remove(c);
    d->programs->forget(c);
    gn_tcp_listener_refuse(c);
    gn_quota_close(c->quota, &c->file_fd);
    explicit_bzero(c->token, sizeof c->token);
    gn_conn_limits_greeted(c);
    gn_conn_limits_account(c);
    gn_list_remove(&c->of_quota);
    d->programs->leave(c);
    gn_list_remove(&c->link);
    d->n_conns--;
    gn_loop_bury(&d->loop, &c->corpse, free_conn);
    gn_sockets_resume(&d->sockets);
}

void gn_conns_close(struct gn_daemon *d)
{
    /* Not a loop over the list: closing one connection may close others, among them the next. */
    while (!gn_list_empty(&d->conns))
        gn_conn_close(gn_list_first(&d->conns, struct gn_conn, link));
}

static void close_faulty(struct gn_conn *c, const char *what)
{
    gn_quota_log(c->quota, GN_LOG_WARN, "the program %d (\"%s\") %s; its connection is closed",
                 (int)c->pid, c->program, what);
    gn_conn_close(c);
}

/* Call after anything was queued: handles write errors and sets the events to wait for. */
static void update_conn(struct gn_conn *c)
{
    if (c->socket.fd < 0)
        return;
    if (c->writer.fault) {
        if (c->writer.fault == -ENOBUFS)
            close_faulty(c, "does not read its answers");
        else
            gn_conn_close(c);
        return;
    }
    bool pending = gn_frame_writer_pending(&c->writer);
    bool listen = !c->closing && !c->stuck && !c->waits && c->writer.queued_bytes <= UNREAD_BYTES;
    gn_conn_limits_account(c);
    if (c->closing && !pending)
        gn_conn_close(c);
    else if (gn_loop_change(&c->daemon->loop, &c->socket,
                            (listen ? EPOLLIN : 0) | (pending ? EPOLLOUT : 0)))
        gn_conn_close(c);
}

void gn_conn_send(struct gn_conn *c, uint16_t op, uint32_t seq, const void *payload, size_t n,
                  const int *fds, int n_fds)
{
    if (c->socket.fd < 0)
        return;
    (void)gn_frame_push(&c->writer, op, 0, seq, payload, n, fds,
                        n_fds); /* update_conn() handles an error */
    update_conn(c);
}

void gn_conn_queue(struct gn_conn *c, uint16_t op, uint32_t seq, const void *payload, size_t n)
{
    (void)gn_frame_push(&c->writer, op, 0, seq, payload, n, NULL, 0);
    gn_loop_change(&c->daemon->loop, &c->socket, EPOLLIN | EPOLLOUT);
}

bool gn_conn_has_peer(const struct gn_conn *c)
{
    char byte;
    return recv(c->socket.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

void gn_conn_refuse(struct gn_conn *c, uint32_t seq, int code, const struct gn_error *err)
{
    struct gn_link_error e = {.code = (uint32_t)(code < 0 ? -code : code)};
    gn_frame_string_set(e.what, sizeof e.what, err->what);
    gn_frame_string_set(e.fix, sizeof e.fix, err->fix);
    gn_conn_send(c, GN_LINK_ERROR, seq, &e, sizeof e, NULL, 0);
}

static void send_welcome(struct gn_conn *c, uint32_t seq, uint64_t features)
{
    struct {
        struct gn_link_welcome head;
        struct gn_link_welcome_platform platforms[GN_LINK_MAX_PLATFORMS];
    } w;
    const struct gn_machine *m = &c->daemon->machine;
    memset(&w, 0, sizeof w);
    w.head.version = GN_LINK_VERSION;
    w.head.features = features & (GN_LINK_FEATURE_IDENTITY | GN_LINK_FEATURE_CONTROL |
                                  GN_LINK_FEATURE_CLAIM | GN_LINK_FEATURE_NEAR);
    for (uint32_t i = 0; i < m->n_platforms && !c->control_only && !c->claims; i++) {
        uint64_t devices = gn_tenant_devices(&c->tenant->rules, m, i);
        struct gn_link_welcome_platform *to = &w.platforms[w.head.n_platforms];
        if (!devices)
            continue;
        to->index = i;
        to->n_devices = (uint32_t)__builtin_popcountll(devices);
        memcpy(to->api, m->platforms[i].api, sizeof to->api);
        memcpy(to->name, m->platforms[i].name, sizeof to->name);
        w.head.n_platforms++;
    }
    gn_conn_send(c, GN_LINK_WELCOME, seq, &w,
                 sizeof w.head + w.head.n_platforms * sizeof w.platforms[0], NULL, 0);
}

/* Parses the greeting and the optional identity. False: malformed. */
static bool parse_hello(const struct gn_frame *f, struct gn_link_hello *h,
                        struct gn_link_identity *identity)
{
    memset(identity, 0, sizeof *identity);
    if (f->n_payload < sizeof *h)
        return false;
    memcpy(h, f->payload, sizeof *h);
    bool named = h->features & GN_LINK_FEATURE_IDENTITY;
    if (h->magic != GN_LINK_MAGIC || h->zero != 0 ||
        !gn_frame_string_ok(h->program, sizeof h->program) ||
        f->n_payload != sizeof *h + (named ? sizeof *identity : 0))
        return false;
    if (named)
        memcpy(identity, (const char *)f->payload + sizeof *h, sizeof *identity);
    return gn_frame_string_ok(identity->tenant, sizeof identity->tenant) && identity->zero == 0 &&
           identity->n_token < sizeof identity->token &&
           strnlen(identity->token, sizeof identity->token) == identity->n_token;
}

/* Checks a greeting at the tcp port for operators, where TLS accepts every certificate of the
 * authority: the peer must be an operator, and its connection for control requests only. */
static int judge_remote_operator(const struct gn_conn *c, struct gn_error *err)
{
    if (c->role != GN_ROLE_CONTROL)
        return gn_fail(
            err, EACCES,
            "show an operator's certificate (GANTRY_TLS_CERT), or have gantryd's operator-subject "
            "name this one",
            "the certificate of \"%s\" is not an operator's", c->peer.subject);
    return c->control_only
               ? 0
               : gn_fail(err, EACCES,
                         "name the address that gantryd serves programs at in GANTRY_CONNECT",
                         "gantryd's tcp port for operators is for control requests, and programs "
                         "cannot attach there");
}

static void serve_hello(struct gn_conn *c, const struct gn_frame *f)
{
    struct gn_link_hello h;
    struct gn_link_identity identity;
    struct gn_error err;
    int code = 0;
    if (c->greeted || !parse_hello(f, &h, &identity)) {
        close_faulty(c, "sent a malformed greeting");
        return;
    }
    gn_frame_string_set(c->program, sizeof c->program, h.program);
    if (h.version != GN_LINK_VERSION) {
        c->closing = true;
        gn_conn_refuse(c, f->seq, EPROTONOSUPPORT,
                       (gn_fail(&err, EPROTONOSUPPORT, "install the same version on both sides",
                                "this gantryd speaks version %u of the link, the program speaks %u",
                                GN_LINK_VERSION, h.version),
                        &err));
        return;
    }
    c->control_only = h.features & GN_LINK_FEATURE_CONTROL;
    c->claims = !c->control_only && h.features & GN_LINK_FEATURE_CLAIM;
    c->hears_near = h.features & GN_LINK_FEATURE_NEAR;
    c->n_token = identity.n_token;
    memcpy(c->token, identity.token, sizeof c->token);
    explicit_bzero(identity.token, sizeof identity.token);
    if (c->peer.control)
        code = judge_remote_operator(c, &err);
    else if (c->role == GN_ROLE_VIEW && !c->control_only)
        code = gn_fail(&err, EACCES, "name the program socket in GANTRY_CONNECT",
                       "gantryd's view socket is for queries, and programs cannot attach there");
    /* Control requests on the view and control sockets need no tenant. */
    else if (!c->claims && (!c->control_only || c->role == GN_ROLE_PROGRAM))
        c->tenant = gn_admit(c, identity.tenant, &code, &err);
    if (code) {
        c->closing = true;
        gn_conn_refuse(c, f->seq, code, &err);
        return;
    }
    c->transport->greeted(c, &h);
    c->greeted = true;
    gn_conn_limits_greeted(c);
    /* A connection that claims a vGPU is admitted when it shows its ticket. */
    if (!c->claims)
        gn_tcp_listener_admit(c);
    c->reader.max_bytes = GN_FRAME_MAX_BYTES;
    c->reader.max_fds = MAX_FDS;
    send_welcome(c, f->seq, h.features);
}

void gn_conn_reply(struct gn_conn *c, uint32_t seq, const char *text)
{
    if (c->socket.fd < 0)
        return;
    size_t n = strlen(text);
    do {
        size_t part = n > GN_FRAME_MAX_PAYLOAD ? GN_FRAME_MAX_PAYLOAD : n;
        (void)gn_frame_push(&c->writer, GN_LINK_CONTROL, part < n ? GN_FRAME_MORE : 0, seq, text,
                            part, NULL, 0);
        text += part;
        n -= part;
    } while (n);
    update_conn(c);
}

/* Stores the descriptor for the next control request. */
static void store_file(struct gn_conn *c, const struct gn_frame *f)
{
    if (!c->control_only || f->n_payload || f->n_fds != 1) {
        close_faulty(c, "sent an unexpected FILE");
        return;
    }
    gn_quota_close(c->quota, &c->file_fd);
    c->file_fd = gn_frame_take_fd(&c->reader, 0);
}

int gn_conn_no_room(struct gn_error *err)
{
    return gn_fail(err, EMFILE, "raise its limit (LimitNOFILE), or end some programs",
                   "gantryd has no descriptors left");
}

/* Refuses a frame that lost its descriptors because gantryd was at its limit of open files. */
static void refuse_without_room(struct gn_conn *c, const struct gn_frame *f)
{
    struct gn_error err;
    const int rc = gn_conn_no_room(&err);
    gn_quota_log(c->quota, GN_LOG_WARN, "the program %d (\"%s\") is refused: %s", (int)c->pid,
                 c->program, err.what);
    c->closing |=
        /* these two have no answer that could carry the error */
        f->op == GN_LINK_FILE || f->op == GN_LINK_PASS;
    gn_conn_refuse(c, f->seq, rc, &err);
}

static void serve_frame(struct gn_conn *c, const struct gn_frame *f)
{
    const char *wrong;
    if (f->op != GN_LINK_ATTACH && f->op != GN_LINK_FILE && f->op != GN_LINK_WAIT &&
        f->op != GN_LINK_CLAIM && f->op != GN_LINK_PASS && (f->n_fds || f->lost_fds)) {
        close_faulty(c, "sent unexpected descriptors");
        return;
    }
    if ((!c->greeted && f->op != GN_LINK_HELLO) || (f->flags && f->op != GN_LINK_CONTROL)) {
        close_faulty(c, "sent a frame out of sequence");
        return;
    }
    if (f->lost_fds) {
        refuse_without_room(c, f);
        return;
    }
    switch (f->op) {
    case GN_LINK_HELLO:
        serve_hello(c, f);
        break;
    case GN_LINK_FILE:
        store_file(c, f);
        break;
    case GN_LINK_BYE:
        c->bye = true;
        gn_conn_close(c);
        break;
    default:
        wrong = c->daemon->programs->frame(c, f);
        if (wrong)
            close_faulty(c, wrong);
    }
}

/* A connection is not read while too many descriptors of its user wait to be closed. */
static bool pause_if_stuck(struct gn_conn *c)
{
    if (!gn_quota_is_stuck(c->quota))
        return false;
    gn_quotas_await(&c->daemon->quotas);
    if (!gn_quota_is_stuck(c->quota))
        return false;
    c->stuck = true;
    update_conn(c);
    return true;
}

void gn_conns_closed_some(struct gn_source *news, uint32_t events)
{
    struct gn_daemon *d = gn_container_of(news, struct gn_daemon, closed);
    eventfd_t n;
    (void)events;
    (void)eventfd_read(news->fd, &n);
    gn_sockets_resume(&d->sockets);
    gn_list_for_each(c, &d->conns, struct gn_conn, link)
    {
        if (!c->stuck)
            continue;
        c->stuck = false;
        if (!pause_if_stuck(c))
            update_conn(c);
    }
}

/* Frames about a migration are cheap and another process waits for them: they are not queued. */
static bool is_served_at_once(uint16_t op)
{
    switch (op) {
    case GN_LINK_BYE:
    case GN_LINK_GO:
    case GN_LINK_COMES:
    case GN_LINK_COMES_NEAR:
    case GN_LINK_STAY:
    case GN_LINK_LEFT:
        return true;
    default:
        return false;
    }
}

/* Frames that only ask for an answer: without a peer there is no reason to serve them. */
static bool is_moot_without_peer(uint16_t op)
{
    return op == GN_LINK_ATTACH || op == GN_LINK_SEGMENT || op == GN_LINK_WAIT ||
           op == GN_LINK_CLAIM;
}

void gn_conn_serve(struct gn_conn *c)
{
    serve_frame(c, &c->frame);
    update_conn(c);
}

/* Reads one frame at a time, so that a busy peer does not delay the others. */
static void read_frame(struct gn_conn *c)
{
    const int rc = gn_frame_read(&c->reader, &c->frame);
    if (rc == -EPROTO) {
        close_faulty(c, "sent a malformed frame");
    } else if (rc < 0) {
        gn_conn_close(c);
    } else if (rc == 1 && is_served_at_once(c->frame.op)) {
        serve_frame(c, &c->frame);
    } else {
        if (rc == 1)
            gn_turns_add(c);
        update_conn(c);
    }
}

static void conn_ready(struct gn_source *s, uint32_t events)
{
    struct gn_conn *c = gn_container_of(s, struct gn_conn, socket);
    const bool hung_up = events & (EPOLLHUP | EPOLLERR);
    if (events & EPOLLOUT) {
        (void)gn_frame_flush(&c->writer);
        update_conn(c);
    }
    if (c->socket.fd < 0)
        return;
    if (c->waits) {
        if (hung_up && is_moot_without_peer(c->frame.op))
            gn_conn_close(c);
        else if (hung_up) /* the queued frame is served before the connection is closed */
            gn_loop_mute(&c->daemon->loop, &c->socket);
    } else if (c->closing || pause_if_stuck(c)) {
        if (hung_up) /* applies also while the last error is still being written */
            gn_conn_close(c);
    } else if (c->writer.queued_bytes <= UNREAD_BYTES) {
        read_frame(c);
    }
}

static struct gn_conn *make_conn(struct gn_daemon *d, const struct gn_transport *transport, int fd,
                                 const struct ucred *cred, uint64_t source, enum gn_role role)
{
    struct gn_conn *c = calloc(1, sizeof *c);
    struct gn_quota *quota = c ? gn_quotas_get(&d->quotas, source, role) : NULL;
    if (!quota) {
        free(c);
        gn_quotas_close(&d->quotas, fd);
        return NULL;
    }
    c->daemon = d;
    c->transport = transport;
    c->quota = quota;
    c->pid = cred->pid;
    c->uid = cred->uid;
    c->gid = cred->gid;
    c->role = role;
    c->process.fd = c->file_fd = -1;
    c->taken_ticks = gn_process_ticks_now();
    gn_list_init(&c->stranger.link);
    c->socket.fd = fd;
    gn_frame_reader_init(&c->reader, fd);
    gn_frame_writer_init(&c->writer, fd, MAX_QUEUED_BYTES);
    c->reader.sink = c->writer.sink = &quota->sink;
    c->reader.max_bytes = GREETING_BYTES;
    c->reader.max_fds = 0;
    gn_list_init(&c->turn);
    gn_list_append(&d->conns, &c->link);
    d->n_conns++;
    gn_loop_prepare(&c->socket, conn_ready);
    gn_conn_limits_add(c);
    return c;
}

/* Reads right away instead of waiting for an event: most peers have sent their greeting by now.
 * NULL: ignored. */
static void read_greeting(struct gn_conn *c)
{
    if (c)
        read_frame(c);
}

void gn_conns_add(struct gn_daemon *d, int fd, enum gn_role role, struct gn_tenant *bound_to)
{
    struct ucred cred;
    socklen_t n = sizeof cred;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0) {
        gn_quotas_close(&d->quotas, fd);
        return;
    }
    struct gn_conn *c =
        make_conn(d, d->programs->local, fd, &cred, gn_quota_source_of_user(cred.uid), role);
    if (c) {
        c->is_bound = bound_to != NULL;
        c->bound_to = bound_to;
    }
    read_greeting(c);
}

struct gn_conn *gn_conns_add_tcp(struct gn_daemon *d, int fd,
                                 const struct gn_session_tcp_peer *peer)
{
    const struct ucred nobody = {.pid = 0, .uid = (uid_t)-1, .gid = (gid_t)-1};
    if (!gn_conn_limits_make_room(d, peer->role, 1)) {
        gn_quotas_close(&d->quotas, fd);
        return NULL;
    }
    struct gn_conn *c = make_conn(d, d->programs->tcp, fd, &nobody,
                                  gn_quota_source_of_address(peer->address), peer->role);
    if (c) {
        c->peer = *peer;
        update_conn(c);
    }
    return c && c->socket.fd >= 0 ? c : NULL;
}

static int accept_one(struct gn_source *listener)
{
    return accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static bool out_of_descriptors(void)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
}

/* Whether a peer is waiting to be accepted. accept() cannot tell: without a free descriptor it
 * fails before it looks, and a connection would be evicted for no peer. */
static bool has_waiting_peer(const struct gn_socket *s)
{
    struct pollfd p = {.fd = s->source.fd, .events = POLLIN};
    return s->source.fd >= 0 && poll(&p, 1, 0) == 1;
}

/* Returns false when no peer waits or it cannot be accepted. */
static bool accept_conn(struct gn_socket *s)
{
    struct gn_daemon *d = s->daemon;
    const bool room = gn_conn_limits_make_room(d, s->role, 1);
    int fd = room ? accept_one(&s->source) : -1;
    if (room && fd < 0 && out_of_descriptors() && gn_conn_limits_evict(d, s->role))
        fd = accept_one(&s->source);
    if (fd < 0 && s->role == GN_ROLE_CONTROL && out_of_descriptors() &&
        gn_sockets_use_spare(&d->sockets))
        fd = accept_one(&s->source);
    if (fd >= 0) {
        gn_conns_add(d, fd, s->role, s->tenant);
        return true;
    }
    if (!room || out_of_descriptors()) {
        const uint64_t now = gn_now_ns();
        if (now - d->full_told_ns > LOG_EVERY_NS) {
            gn_log(
                GN_LOG_WARN,
                "cannot accept another connection (%u open): %s; new ones wait until one is closed",
                d->n_conns, room ? strerror(errno) : "all of them have vGPUs or are closing");
            d->full_told_ns = now;
        }
        /* The end of a connection or vGPU resumes the socket; without any it must stay enabled. */
        if (d->n_conns || d->conn_limits.n_vgpus)
            gn_sockets_pause(&d->sockets, s);
    }
    return false;
}

void gn_conns_accept(struct gn_source *source, uint32_t events)
{
    struct gn_socket *s = gn_container_of(source, struct gn_socket, source);
    (void)events;
    for (int i = 0; i < ACCEPTS_A_TURN && has_waiting_peer(s) && accept_conn(s); i++)
        continue;
}
