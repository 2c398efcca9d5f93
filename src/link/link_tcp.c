/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's link to a gantryd on another machine: a control connection with the same frames as on
 * a Unix socket, and data connections, which name the session and are handed to its worker. Called
 * by the front end and `gantry`, on one thread at a time. Prints nothing.
 */
#include "link/link_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "link/record.h"
#include "link/tls.h"

#define DIAL_TIMEOUT_NS    UINT64_C(950000000) /* fail within a second when nothing answers */
#define RETURN_TIMEOUT_MS  2000
#define HANDSHAKE_NS       UINT64_C(5000000000)
#define STREAM_PATIENCE_MS 60000u /* the destination worker builds programs between its reads */

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/*
 * TLS with a key that gantryd has issued: a ticket's, or the key of a session that has migrated to
 * this gantryd. The tenant there may have another token than ours.
 */
static int secure_by(struct gn_link_end *u, const uint8_t *name, const uint8_t *key,
                     struct gn_error *err)
{
    struct gn_tls_psk psk;
    memcpy(psk.identity, name, sizeof psk.identity);
    memcpy(psk.key, key, sizeof psk.key);
    const struct gn_tls_config config = {.psk = &psk};
    u->secure = true;
    int rc = gn_tls_connect(&config, u->socket.fd, gn_now_ns() + HANDSHAKE_NS, &u->socket.tls, err);
    explicit_bzero(&psk, sizeof psk);
    return rc;
}

/*
 * Credentials are sent through TLS only. A token authenticates both sides to each other; with a
 * certificate, gantryd is verified against GANTRY_TLS_CA.
 */
static int secure_control(struct gn_link_end *u, struct gn_error *err)
{
    if (u->ticket)
        return secure_by(u, u->ticket->name, u->ticket->ticket, err);
    if (u->features & GN_LINK_FEATURE_CLAIM)
        return u->secure ? secure_by(u, u->session, u->key, err) : 0;
    const char *token = gn_link_shown(u->credentials.token, "GANTRY_TOKEN");
    struct gn_tls_psk psk;
    struct gn_tls_config config = {.certificate = setting("GANTRY_TLS_CERT"),
                                   .key = setting("GANTRY_TLS_KEY"),
                                   .authority = setting("GANTRY_TLS_CA"),
                                   .host = u->address.host};
    u->secure = *token || config.certificate || config.authority;
    if (!u->secure)
        return 0;
    if (*token && strlen(token) < GN_TLS_TOKEN_MIN)
        return gn_fail(err, EINVAL, "ask for a longer one",
                       "a token of less than %d characters is not safe over a network",
                       GN_TLS_TOKEN_MIN);
    const struct gn_tls_ops *ops = gn_tls_load(err);
    if (!ops)
        return -ENOENT;
    if (*token && !ops->derive(token, strlen(token), &psk))
        config.psk = &psk;
    int rc = gn_tls_connect(&config, u->socket.fd, gn_now_ns() + HANDSHAKE_NS, &u->socket.tls, err);
    explicit_bzero(&psk, sizeof psk);
    return rc;
}

static int open_control(struct gn_link_end *u, uint64_t deadline_ns, struct gn_error *err)
{
    int fd = gn_tcp_dial(&u->address, deadline_ns, err);
    if (fd < 0)
        return fd;
    u->socket.fd = fd;
    int rc = secure_control(u, err);
    if (rc)
        return rc;
    gn_frame_reader_init(&u->reader, fd);
    u->reader.tcp = &u->socket;
    return gn_link_hello_exchange(u, err);
}

static int take_session(struct gn_link_end *u, const struct gn_frame *f, struct gn_attached *ret,
                        struct gn_error *err)
{
    struct gn_link_attached_remote d;
    if (!gn_frame_payload(f, &d, sizeof d) || d.zero)
        return gn_link_lost(err, -EPROTO);
    memcpy(u->session, d.session, sizeof u->session);
    memcpy(u->key, d.key, sizeof u->key);
    u->attached = true;
    *ret = (struct gn_attached){.vgpu_id = d.vgpu_id,
                                .platform = d.platform,
                                .session_fd = -1,
                                .ring_fd = -1,
                                .events_fd = -1,
                                .data_fd = -1,
                                .data_bytes = d.data_bytes,
                                .memory_limit_bytes = d.memory_limit_bytes,
                                .remote = true,
                                .grace_ms = d.grace_ms};
    return 0;
}

static int tcp_attach(struct gn_link *l, const struct gn_attach_request *request,
                      struct gn_attached *ret, struct gn_error *err)
{
    struct gn_link_end *u = gn_link_end_of(l);
    struct gn_link_attach a;
    struct gn_frame f;
    int rc = gn_link_attach_message(request, &a, err);
    if (!rc && request->host)
        rc = gn_fail(err, EOPNOTSUPP, "use the mode remote",
                     "passthrough needs a gantryd on the program's own machine");
    if (!rc)
        rc = gn_link_ask(u, GN_LINK_ATTACH_TIMEOUT_MS, GN_LINK_ATTACH, &a, sizeof a, NULL, 0,
                         GN_LINK_ATTACHED_REMOTE, &f, err);
    return rc ? rc : take_session(u, &f, ret, err);
}

static int tcp_segment(struct gn_link *l, uint64_t bytes, int *ret_fd, uint32_t *ret_index,
                       struct gn_error *err)
{
    (void)l, (void)bytes, (void)ret_fd, (void)ret_index;
    return gn_fail(err, EOPNOTSUPP, NULL, "a remote session makes its own segments");
}

static bool hung_up(const struct gn_link_end *u)
{
    struct pollfd p = {.fd = u->socket.fd, .events = POLLRDHUP};
    return u->socket.fd < 0 || (poll(&p, 1, 0) > 0 && p.revents);
}

/* Reconnects if the connection is lost. */
static int open_again(struct gn_link_end *u, uint64_t deadline_ns, struct gn_error *err)
{
    if (!u->lost && !hung_up(u))
        return 0;
    gn_frame_reader_fini(&u->reader);
    gn_tcp_close(&u->socket);
    u->lost = true;
    int rc = open_control(u, deadline_ns, err);
    if (rc)
        return rc == -ENODEV ? -EAGAIN : rc;
    u->lost = false;
    return 0;
}

static int ask_for_session(struct gn_link_end *u, uint64_t deadline_ns, struct gn_error *err)
{
    struct gn_link_return r;
    struct gn_frame f;
    int rc = open_again(u, deadline_ns, err);
    if (rc)
        return rc;
    memcpy(r.session, u->session, sizeof r.session);
    memcpy(r.key, u->key, sizeof r.key);
    rc = gn_link_ask(u, RETURN_TIMEOUT_MS, GN_LINK_RETURN, &r, sizeof r, NULL, 0, GN_LINK_RETURNED,
                     &f, err);
    /* -ENODEV is gantryd's final answer; any other error is a reason to reconnect. */
    if (rc && rc != -ENODEV)
        u->lost = true;
    return rc;
}

static bool find_platform(const struct gn_platform_list *all, const struct gn_platform *wanted,
                          uint32_t *ret)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (!strcmp(all->items[i].api, wanted->api) && !strcmp(all->items[i].name, wanted->name)) {
            *ret = all->items[i].index;
            return true;
        }
    return false;
}

static int say_waits(struct gn_link_end *u, const struct gn_link_wait *wait,
                     const struct gn_platform *platform, struct gn_attached *ret,
                     struct gn_error *err)
{
    struct gn_link_wait_tcp w = {.wait = *wait};
    struct gn_frame f;
    if (!find_platform(&u->platforms, platform, &w.wait.platform))
        return gn_fail(err, ENODEV, NULL, "gantryd has no platform \"%s\"", platform->name);
    memcpy(w.session, u->session, sizeof w.session);
    memcpy(w.key, u->key, sizeof w.key);
    int rc = gn_link_ask(u, RETURN_TIMEOUT_MS, GN_LINK_WAIT, &w, sizeof w, NULL, 0, 0, &f, err);
    explicit_bzero(&w, sizeof w);
    if (!rc && f.op == GN_LINK_RETURNED)
        return 1;
    return rc                                ? rc
           : f.op == GN_LINK_ATTACHED_REMOTE ? take_session(u, &f, ret, err)
                                             : gn_link_lost(err, -EPROTO);
}

int gn_link_wait_tcp(struct gn_link *l, const struct gn_link_wait *wait,
                     const struct gn_platform *platform, uint64_t deadline_ns,
                     struct gn_attached *ret, struct gn_error *err)
{
    struct gn_link_end *u = gn_link_end_of(l);
    if (!u->tcp || !u->attached)
        return gn_fail(err, EINVAL, NULL, "no session");
    int rc = open_again(u, deadline_ns, err);
    if (!rc)
        rc = say_waits(u, wait, platform, ret, err);
    if (rc < 0)
        u->lost = true;
    return rc;
}

static int open_data(struct gn_link_end *u, uint64_t received, uint64_t deadline_ns,
                     struct gn_tcp *tcp, struct gn_stream_hello *theirs, uint64_t *ret_trip_ns,
                     struct gn_error *err)
{
    struct gn_link_data name = {.magic = GN_LINK_DATA_MAGIC, .version = GN_LINK_VERSION};
    struct gn_stream_hello mine = {
        .magic = GN_STREAM_MAGIC, .version = GN_STREAM_VERSION, .received = received};
    memcpy(name.session, u->session, sizeof name.session);
    if (!u->secure)
        memcpy(name.proof, u->key, sizeof name.proof);
    tcp->tls = NULL;
    tcp->fd = gn_tcp_dial(&u->address, deadline_ns, err);
    if (tcp->fd < 0)
        return tcp->fd;
    int rc = gn_tcp_send_all(tcp, &name, sizeof name, deadline_ns);
    if (!rc && u->secure) {
        struct gn_tls_psk psk;
        memcpy(psk.identity, u->session, sizeof psk.identity);
        memcpy(psk.key, u->key, sizeof psk.key);
        const struct gn_tls_config config = {.psk = &psk};
        rc = gn_tls_connect(&config, tcp->fd, deadline_ns, &tcp->tls, err);
        explicit_bzero(&psk, sizeof psk);
    }
    mine.now_ns = gn_now_ns();
    if (!rc)
        rc = gn_tcp_send_all(tcp, &mine, sizeof mine, deadline_ns);
    if (!rc)
        rc = gn_tcp_recv_all(tcp, theirs, sizeof *theirs, deadline_ns);
    if (!rc &&
        (theirs->magic != GN_STREAM_MAGIC || theirs->version != GN_STREAM_VERSION || theirs->zero))
        rc = -EPROTO;
    if (rc) {
        gn_tcp_close(tcp);
        return gn_fail(err, -rc, NULL, "the worker does not answer: %s", strerror(-rc));
    }
    /*
     * The offset of the worker's clock, assuming that it was read halfway through the round trip.
     */
    uint64_t now = gn_now_ns();
    theirs->now_ns -= (mine.now_ns + now) / 2;
    *ret_trip_ns = now - mine.now_ns;
    /*
     * A slow answer makes the worker's clock appear ahead, by at most half of the round trip. Treat
     * an offset within that error as zero: probably both processes use one clock.
     */
    if (theirs->now_ns + *ret_trip_ns / 2 <= 2 * (*ret_trip_ns / 2))
        theirs->now_ns = 0;
    return 0;
}

static int tcp_data(struct gn_link *l, uint64_t received, uint64_t deadline_ns, struct gn_tcp *ret,
                    struct gn_stream_hello *ret_hello, uint64_t *ret_trip_ns, struct gn_error *err)
{
    struct gn_link_end *u = gn_link_end_of(l);
    int rc = u->attached ? ask_for_session(u, deadline_ns, err)
                         : gn_fail(err, EINVAL, NULL, "no session");
    return rc ? rc : open_data(u, received, deadline_ns, ret, ret_hello, ret_trip_ns, err);
}

static void tcp_bye(struct gn_link *l)
{
    struct gn_link_end *u = gn_link_end_of(l);
    if (u->socket.fd >= 0 && !u->lost)
        (void)gn_frame_send_tcp(&u->socket, 0, GN_LINK_BYE, 0, 0, NULL, 0);
}

int gn_link_dial_stream(const char *address, const uint8_t name[static GN_LINK_SESSION_BYTES],
                        const uint8_t ticket[static GN_LINK_TICKET_BYTES], bool secure, int *ret_fd,
                        struct gn_error *err)
{
    struct gn_link_data first = {.magic = GN_LINK_DATA_MAGIC, .version = GN_LINK_VERSION};
    const uint64_t deadline_ns = gn_now_ns() + HANDSHAKE_NS;
    struct gn_tcp tcp = GN_TCP_NONE;
    struct gn_address a;
    uint8_t taken = 0;
    int rc = gn_address_parse(address, &a, err);
    if (rc)
        return rc;
    memcpy(first.session, name, sizeof first.session);
    if (!secure)
        memcpy(first.proof, ticket, sizeof first.proof);
    tcp.fd = gn_tcp_dial(&a, deadline_ns, err);
    if (tcp.fd < 0)
        return tcp.fd;
    rc = gn_tcp_send_all(&tcp, &first, sizeof first, deadline_ns);
    explicit_bzero(&first, sizeof first);
    if (!rc)
        rc = gn_tcp_recv_all(&tcp, &taken, sizeof taken, deadline_ns);
    if (!rc && taken != GN_LINK_DATA_TAKEN)
        rc = -EPROTO;
    if (rc) {
        gn_tcp_close(&tcp);
        return gn_fail(err, -rc, "look at what the other gantryd's log says",
                       "the other gantryd does not take what the vGPU is to come through: %s",
                       strerror(-rc));
    }
    gn_tcp_set_patience(tcp.fd, STREAM_PATIENCE_MS);
    *ret_fd = tcp.fd;
    return 0;
}

bool gn_link_is_secure(const struct gn_link *l)
{
    return gn_link_end_of(l)->tcp && gn_link_end_of(l)->secure;
}

static const struct gn_link_ops tcp_ops = {
    .name = "tcp",
    .platforms = gn_link_end_platforms,
    .attach = tcp_attach,
    .segment = tcp_segment,
    .control = gn_link_end_control,
    .poll_fd = gn_link_end_poll_fd,
    .hear = gn_link_end_dispatch,
    .data = tcp_data,
    .bye = tcp_bye,
    .close = gn_link_end_close,
};

int gn_link_tcp_open(struct gn_link_end *u, struct gn_error *err)
{
    u->base.ops = &tcp_ops;
    gn_frame_reader_init(&u->reader, -1);
    return open_control(u, gn_now_ns() + DIAL_TIMEOUT_NS, err);
}
