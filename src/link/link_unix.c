/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's link to gantryd: the part that both kinds of link share, and the Unix socket to the
 * gantryd of this machine. Called by the front end and `gantry`, on one thread at a time. It is
 * linked into programs, so it has no state outside the link and prints nothing; it validates frames
 * far enough that none can corrupt the program's memory.
 */
#include "link/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/descriptor.h"
#include "link/link_internal.h"

/*
 * A live gantryd answers within this time even on a heavily loaded machine. An attach takes longer:
 * it starts a driver.
 */
#define HELLO_TIMEOUT_MS 10000
/*
 * gantryd charges a segment as soon as it is created, so a request must not be abandoned. A gantryd
 * that dies hangs up.
 */
#define SEGMENT_TIMEOUT_MS (-1)
#define CONTROL_TIMEOUT_MS 30000

int gn_link_lost(struct gn_error *err, int code)
{
    switch (code) {
    case -ETIMEDOUT:
        return gn_fail(err, ETIMEDOUT, "see whether gantryd is stuck or stopped",
                       "gantryd does not answer");
    case -EMFILE:
        return gn_fail(err, EMFILE, "raise its limit (ulimit -n), or close some",
                       "the program has no descriptors left");
    case -EBADF:
        return gn_fail(err, EBADF, "leave descriptors alone that it has not opened",
                       "the program has closed descriptors of Gantry's");
    case -ENOKEY:
        return gn_fail(
            err, EACCES,
            "set GANTRY_TLS_CERT and GANTRY_TLS_KEY, or, at the port for programs, GANTRY_TOKEN "
            "to a tenant's token",
            "gantryd wants a certificate");
    case -EKEYREJECTED:
        return gn_fail(
            err, EACCES,
            "set GANTRY_TLS_CERT and GANTRY_TLS_KEY to one that gantryd's --tls-client-authority "
            "has signed",
            "gantryd does not accept the certificate of GANTRY_TLS_CERT");
    case -EPROTO:
        return gn_fail(err, EPROTO, "see that the address is a gantryd's, of this version",
                       "gantryd sent something that is not a frame");
    default:
        return gn_fail(err, EPIPE, "see gantryd's log for the reason, unless gantryd has ended",
                       "gantryd closed the connection");
    }
}

int gn_link_refused(const struct gn_frame *f, struct gn_error *err)
{
    struct gn_link_error e;
    if (!gn_frame_payload(f, &e, sizeof e) || !gn_frame_string_ok(e.what, sizeof e.what) ||
        !gn_frame_string_ok(e.fix, sizeof e.fix) || e.code == 0 || e.code > 4095)
        return gn_link_lost(err, -EPROTO);
    return gn_fail(err, (int)e.code, e.fix, "%s", e.what);
}

/* A driver is code: accept its name only from a gantryd that this user or root has started. */
static bool is_ours(const struct gn_link_end *u)
{
    struct ucred cred;
    socklen_t n = sizeof cred;
    return !u->tcp && getsockopt(u->socket.fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0 &&
           (cred.uid == 0 || cred.uid == geteuid());
}

/* An unrequested HOST frame. False: it is malformed. */
static bool told_to_host(struct gn_link_end *u, const struct gn_frame *f)
{
    struct gn_link_direct d;
    if (f->seq || !gn_frame_payload(f, &d, sizeof d) ||
        !gn_frame_string_ok(d.library, sizeof d.library))
        return false;
    if (f->lost_fds)
        return true; /* gantryd sees the socket close, and the vGPU stays in its worker */
    if (f->n_fds != 1)
        return false;
    const int fd = gn_frame_take_fd(&u->reader, 0);
    /* Closing the socket refuses the request. */
    if (u->base.on_host && is_ours(u))
        u->base.on_host(u->base.on_host_ctx, d.library, fd);
    else
        gn_fd_close(fd);
    return true;
}

/* An unrequested frame of a migration to another gantryd. False: it is malformed. */
static bool told_to_move(struct gn_link_end *u, const struct gn_frame *f)
{
    struct gn_link_move what = {.address = ""};
    struct gn_link_error why;
    const size_t n =
        f->n_payload == GN_LINK_MOVE_PLAIN_BYTES ? GN_LINK_MOVE_PLAIN_BYTES : sizeof what;
    const bool good =
        f->n_fds == 0 &&
        (f->op == GN_LINK_MOVE ? gn_frame_payload(f, &what, n) &&
                                     gn_frame_string_ok(what.address, sizeof what.address) &&
                                     gn_frame_string_ok(what.near, sizeof what.near)
         : f->op == GN_LINK_LEAVE ? f->n_payload == 0
                                  : gn_frame_payload(f, &why, sizeof why));
    if (good && u->base.on_move)
        u->base.on_move(u->base.on_host_ctx, f->op, f->seq, &what);
    explicit_bzero(&what, sizeof what);
    return good;
}

static bool told_to_wait(struct gn_link_end *u, const struct gn_frame *f)
{
    struct gn_link_stopped stop;
    const bool good =
        u->tcp && !f->seq &&
        (f->op == GN_LINK_RESTORED ? !f->n_payload
                                   : gn_frame_payload(f, &stop, sizeof stop) && !stop.zero);
    if (good && u->base.on_stop)
        u->base.on_stop(u->base.on_host_ctx, f->op == GN_LINK_RESTORED ? NULL : &stop);
    explicit_bzero(&stop, sizeof stop);
    return good;
}

static bool reported(struct gn_link_end *u, const struct gn_frame *f)
{
    switch (f->op) {
    case GN_LINK_STOPPED:
    case GN_LINK_RESTORED:
        return told_to_wait(u, f);
    case GN_LINK_HOST:
        return told_to_host(u, f);
    case GN_LINK_MOVE:
    case GN_LINK_LEAVE:
    case GN_LINK_STAY:
        return told_to_move(u, f);
    default:
        return false;
    }
}

int gn_link_ask(struct gn_link_end *u, int timeout_ms, uint16_t op, const void *payload, size_t n,
                const int *fds, int n_fds, uint16_t want, struct gn_frame *ret,
                struct gn_error *err)
{
    uint32_t seq = ++u->seq;
    int rc = u->tcp ? gn_frame_send_tcp(&u->socket, timeout_ms, op, 0, seq, payload, n)
                    : gn_frame_send(u->socket.fd, timeout_ms, op, 0, seq, payload, n, fds, n_fds);
    /*
     * A gantryd that refuses a connection sends ERROR and hangs up, perhaps before the request is
     * sent: the ERROR can still be read.
     */
    if (rc < 0 && rc != -EPIPE && rc != -ECONNRESET)
        return rc == -ETIMEDOUT
                   ? gn_link_lost(err, rc)
                   : gn_fail(err, -rc, NULL, "cannot send to gantryd: %s", strerror(-rc));
    do {
        rc = gn_frame_wait(&u->reader, timeout_ms, ret);
        if (rc == -EMFILE)
            rc = gn_frame_read_without(&u->reader, ret);
    } while (rc >= 0 && reported(u, ret));
    if (rc < 0)
        return gn_link_lost(err, rc);
    if (ret->op == GN_LINK_ERROR)
        return gn_link_refused(ret, err);
    if ((want && ret->op != want) || ret->seq != seq)
        return gn_link_lost(err, -EPROTO);
    return ret->lost_fds ? gn_link_lost(err, -EMFILE) : 0;
}

const char *gn_link_shown(const char *said, const char *name)
{
    const char *value = said ? said : getenv(name);
    return value ? value : "";
}

/* Fills in tenant and token. 1: at least one is set; 0: neither; -errno. */
static int identify(const struct gn_link_credentials *credentials, struct gn_link_identity *ret,
                    struct gn_error *err)
{
    const char *tenant = gn_link_shown(credentials->tenant, "GANTRY_TENANT"),
               *token = gn_link_shown(credentials->token, "GANTRY_TOKEN");
    const size_t n_tenant = strlen(tenant), n_token = strlen(token);
    memset(ret, 0, sizeof *ret);
    if (n_tenant >= sizeof ret->tenant)
        return gn_fail(err, EINVAL, "use a shorter name", "the tenant name \"%.100s\" is too long",
                       tenant);
    if (n_token >= sizeof ret->token)
        return gn_fail(err, EINVAL, "correct GANTRY_TOKEN",
                       "the token is too long: it has at most %d characters",
                       (int)sizeof ret->token - 1);
    memcpy(ret->tenant, tenant, n_tenant);
    memcpy(ret->token, token, n_token);
    ret->n_token = (uint32_t)n_token;
    return n_tenant || n_token;
}

int gn_link_hello_exchange(struct gn_link_end *u, struct gn_error *err)
{
    struct {
        struct gn_link_hello head;
        struct gn_link_identity identity;
    } h = {.head = {.magic = GN_LINK_MAGIC, .version = GN_LINK_VERSION, .pid = (uint32_t)getpid()}};
    struct gn_link_welcome w;
    struct gn_frame f;
    int rc = u->features & GN_LINK_FEATURE_CLAIM ? 0 : identify(&u->credentials, &h.identity, err);
    if (rc < 0)
        return rc;
    h.head.features = u->features | (rc ? GN_LINK_FEATURE_IDENTITY : 0);
    gn_frame_string_set(h.head.program, sizeof h.head.program, program_invocation_short_name);
    rc = gn_link_ask(u, HELLO_TIMEOUT_MS, GN_LINK_HELLO, &h, rc ? sizeof h : sizeof h.head, NULL, 0,
                     GN_LINK_WELCOME, &f, err);
    explicit_bzero(&h.identity, sizeof h.identity);
    if (rc)
        return rc;
    if (f.n_payload < sizeof w)
        return gn_link_lost(err, -EPROTO);
    memcpy(&w, f.payload, sizeof w);
    if (w.version != GN_LINK_VERSION || w.n_platforms > GN_LINK_MAX_PLATFORMS ||
        f.n_payload != sizeof w + w.n_platforms * sizeof(struct gn_link_welcome_platform))
        return gn_link_lost(err, -EPROTO);
    for (uint32_t i = 0; i < w.n_platforms; i++) {
        struct gn_link_welcome_platform p;
        struct gn_platform *to = &u->platforms.items[i];
        memcpy(&p, (const char *)f.payload + sizeof w + i * sizeof p, sizeof p);
        if (!gn_frame_string_ok(p.api, sizeof p.api) || !gn_frame_string_ok(p.name, sizeof p.name))
            return gn_link_lost(err, -EPROTO);
        to->index = p.index;
        to->n_devices = p.n_devices;
        memcpy(to->api, p.api, sizeof to->api);
        memcpy(to->name, p.name, sizeof to->name);
    }
    u->platforms.n = w.n_platforms;
    return 0;
}

int gn_link_end_platforms(struct gn_link *l, struct gn_platform_list *ret)
{
    *ret = gn_link_end_of(l)->platforms;
    return 0;
}

int gn_link_attach_message(const struct gn_attach_request *request, struct gn_link_attach *ret,
                           struct gn_error *err)
{
    *ret = (struct gn_link_attach){.platform = request->platform,
                                   .weight = request->weight,
                                   .memory_bytes = request->memory_bytes};
    if (request->tenant && strlen(request->tenant) >= sizeof ret->tenant)
        return gn_fail(err, EINVAL, "use a shorter name", "the tenant name \"%s\" is too long",
                       request->tenant);
    gn_frame_string_set(ret->tenant, sizeof ret->tenant, request->tenant ? request->tenant : "");
    return 0;
}

/* Handles gantryd's answer DIRECT: creates the vGPU in this process. */
static int host_here(struct gn_link_end *u, const struct gn_attach_request *request,
                     struct gn_frame *f, struct gn_error *err)
{
    struct gn_link_direct d;
    const uint32_t seq = f->seq;
    if (!gn_frame_payload(f, &d, sizeof d) || !gn_frame_string_ok(d.library, sizeof d.library) ||
        f->n_fds != 1)
        return gn_link_lost(err, -EPROTO);
    if (!is_ours(u))
        return gn_fail(
            err, EPERM, "use the mode remote, or a gantryd of your own",
            "this gantryd runs as another user, whose drivers are not loaded into a program");
    int rc = request->host(request->ctx, d.library, gn_frame_take_fd(&u->reader, 0), err);
    if (rc)
        return rc;
    rc = gn_frame_wait(&u->reader, GN_LINK_ATTACH_TIMEOUT_MS, f);
    if (rc < 0)
        return gn_link_lost(err, rc);
    if (f->op == GN_LINK_ERROR)
        return gn_link_refused(f, err);
    return f->op == GN_LINK_ATTACHED && f->seq == seq ? 0 : gn_link_lost(err, -EPROTO);
}

static int unix_attach(struct gn_link *l, const struct gn_attach_request *request,
                       struct gn_attached *ret, struct gn_error *err)
{
    struct gn_link_end *u = gn_link_end_of(l);
    struct gn_link_attach a;
    struct gn_link_attached d;
    struct gn_frame f;
    int fds[2], n_fds = 0;
    int rc = gn_link_attach_message(request, &a, err);
    if (rc)
        return rc;
    if (request->stdout_fd >= 0) {
        a.stdio |= GN_LINK_HAS_STDOUT;
        fds[n_fds++] = request->stdout_fd;
    }
    if (request->stderr_fd >= 0) {
        a.stdio |= GN_LINK_HAS_STDERR;
        fds[n_fds++] = request->stderr_fd;
    }
    a.mode = request->host ? GN_LINK_MODE_PASSTHROUGH : GN_LINK_MODE_REMOTE;
    rc = gn_link_ask(u, GN_LINK_ATTACH_TIMEOUT_MS, GN_LINK_ATTACH, &a, sizeof a, fds, n_fds,
                     request->host ? GN_LINK_DIRECT : GN_LINK_ATTACHED, &f, err);
    if (rc == 0 && request->host)
        rc = host_here(u, request, &f, err);
    if (rc)
        return rc;
    if (!gn_frame_payload(&f, &d, sizeof d) || f.n_fds != 4)
        return gn_link_lost(err, -EPROTO);
    *ret = (struct gn_attached){.vgpu_id = d.vgpu_id,
                                .platform = d.platform,
                                .session_fd = gn_frame_take_fd(&u->reader, 0),
                                .ring_fd = gn_frame_take_fd(&u->reader, 1),
                                .events_fd = gn_frame_take_fd(&u->reader, 2),
                                .data_fd = gn_frame_take_fd(&u->reader, 3),
                                .ring_bytes = d.ring_bytes,
                                .events_bytes = d.events_bytes,
                                .data_bytes = d.data_bytes,
                                .memory_limit_bytes = d.memory_limit_bytes};
    return 0;
}

static int unix_segment(struct gn_link *l, uint64_t bytes, int *ret_fd, uint32_t *ret_index,
                        struct gn_error *err)
{
    struct gn_link_end *u = gn_link_end_of(l);
    struct gn_link_segment s = {.bytes = bytes};
    struct gn_link_segment_made m;
    struct gn_frame f;
    int rc = gn_link_ask(u, SEGMENT_TIMEOUT_MS, GN_LINK_SEGMENT, &s, sizeof s, NULL, 0,
                         GN_LINK_SEGMENT_MADE, &f, err);
    if (rc && rc != -EMFILE)
        return rc;
    if (!gn_frame_payload(&f, &m, sizeof m) || f.n_fds != !rc || m.bytes != bytes)
        return gn_link_lost(err, -EPROTO);
    *ret_fd = rc ? -1 : gn_frame_take_fd(&u->reader, 0);
    *ret_index = m.index;
    return rc;
}

/* A text longer than a frame is sent in several, all but the last marked GN_FRAME_MORE. */
static int send_text(struct gn_link_end *u, uint32_t seq, const char *text, struct gn_error *err)
{
    size_t n = strlen(text);
    if (n > GN_LINK_CONTROL_LIMIT)
        return gn_fail(err, EMSGSIZE, NULL, "the request is too long");
    do {
        size_t part = n > GN_FRAME_MAX_PAYLOAD ? GN_FRAME_MAX_PAYLOAD : n;
        uint16_t flags = part < n ? GN_FRAME_MORE : 0;
        int rc = u->tcp ? gn_frame_send_tcp(&u->socket, CONTROL_TIMEOUT_MS, GN_LINK_CONTROL, flags,
                                            seq, text, part)
                        : gn_frame_send(u->socket.fd, CONTROL_TIMEOUT_MS, GN_LINK_CONTROL, flags,
                                        seq, text, part, NULL, 0);
        if (rc < 0)
            return gn_link_lost(err, rc == -ETIMEDOUT ? rc : -EPIPE);
        text += part;
        n -= part;
    } while (n);
    return 0;
}

int gn_link_end_control(struct gn_link *l, const char *request, char **ret_reply,
                        struct gn_error *err)
{
    struct gn_link_end *u = gn_link_end_of(l);
    uint32_t seq = ++u->seq;
    char *text = NULL;
    size_t n = 0;
    int rc = send_text(u, seq, request, err);
    while (rc == 0) {
        struct gn_frame f;
        rc = gn_frame_wait(&u->reader, u->patience_ms, &f);
        if (rc < 0) {
            rc = gn_link_lost(err, rc);
            break;
        }
        rc = 0;
        if (f.op == GN_LINK_ERROR) {
            rc = gn_link_refused(&f, err);
            break;
        }
        if (f.op != GN_LINK_CONTROL || f.seq != seq || n + f.n_payload > GN_LINK_CONTROL_LIMIT) {
            rc = gn_link_lost(err, -EPROTO);
            break;
        }
        char *grown = realloc(text, n + f.n_payload + 1);
        if (!grown) {
            rc = gn_fail(err, ENOMEM, NULL, "out of memory");
            break;
        }
        text = grown;
        if (f.n_payload)
            memcpy(text + n, f.payload, f.n_payload);
        n += f.n_payload;
        text[n] = 0;
        if (!(f.flags & GN_FRAME_MORE)) {
            *ret_reply = text;
            return 0;
        }
    }
    free(text);
    return rc;
}

int gn_link_end_poll_fd(const struct gn_link *l)
{
    return gn_link_end_of(l)->socket.fd;
}

void gn_link_end_close(struct gn_link *l)
{
    struct gn_link_end *u = gn_link_end_of(l);
    gn_frame_reader_fini(&u->reader);
    gn_tcp_close(&u->socket);
    gn_tcp_close(&u->left);
    explicit_bzero(u->key, sizeof u->key);
    free(u);
}

void gn_link_forked(struct gn_link *l)
{
    const struct gn_link_end *u = gn_link_end_of(l);
    const int fds[] = {u->socket.fd, u->left.fd};
    for (size_t i = 0; i < GN_ARRAY_SIZE(fds); i++)
        if (fds[i] >= 0)
            gn_fd_close(fds[i]);
}

int gn_link_end_dispatch(struct gn_link *l)
{
    struct gn_link_end *u = gn_link_end_of(l);
    struct gn_frame f;
    int rc;
    do {
        rc = gn_frame_read(&u->reader, &f);
        if (rc == -EMFILE)
            rc = gn_frame_read_without(&u->reader, &f);
        if (rc == 1 && !reported(u, &f))
            return -EPROTO;
    } while (rc == 1);
    return rc;
}

static const struct gn_link_ops unix_ops = {
    .name = "shm",
    .platforms = gn_link_end_platforms,
    .attach = unix_attach,
    .segment = unix_segment,
    .control = gn_link_end_control,
    .poll_fd = gn_link_end_poll_fd,
    .hear = gn_link_end_dispatch,
    .close = gn_link_end_close,
};

static int connect_unix(const char *path, struct gn_error *err)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    /* Bounds connect() when the listener's queue is full. */
    struct timeval patience = {.tv_sec = 0, .tv_usec = 900000};
    int rc;
    memcpy(to.sun_path, path, strlen(path) + 1);
    int fd = gn_fd_socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0)
        return gn_fail(err, errno, NULL, "cannot make a socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    do
        rc = connect(fd, (struct sockaddr *)&to, sizeof to);
    while (rc < 0 && errno == EINTR);
    if (rc < 0) {
        int code = errno;
        gn_fd_close(fd);
        if (code == ENOENT || code == ECONNREFUSED)
            return gn_fail(err, code,
                           "start gantryd, or say where it is with --connect or GANTRY_CONNECT",
                           "no gantryd listens at unix:%s", path);
        char fix[128] = "";
        if (code == EACCES)
            snprintf(
                fix, sizeof fix,
                "ask an operator to admit this user (gantry tenant add NAME --uid %u), or start a "
                "gantryd of your own",
                (unsigned)geteuid());
        return gn_fail(err, code, fix, "cannot connect to unix:%s: %s", path, strerror(code));
    }
    return fd;
}

/*
 * Connects to the first socket that admits this process, the most privileged role first. The error
 * is that of the program socket.
 */
static int connect_for_role(const char *path, enum gn_role least, struct gn_error *err)
{
    char beside[GN_ADDRESS_MAX_PATH + 1];
    for (int role = GN_ROLE_CONTROL; least != GN_ROLE_PROGRAM && role >= (int)least; role--) {
        int fd = gn_address_of_role(path, (enum gn_role)role, beside, err);
        fd = fd ? fd : connect_unix(beside, err);
        if (fd != -ENOENT && fd != -ECONNREFUSED && fd != -EACCES && fd != -ENAMETOOLONG)
            return fd;
    }
    return connect_unix(path, err);
}

int gn_link_connect_for(const char *address, uint64_t features,
                        const struct gn_link_credentials *credentials,
                        const struct gn_link_move *ticket, struct gn_link **ret,
                        struct gn_error *err)
{
    struct gn_address a;
    int rc = gn_address_resolve(address, &a, err);
    if (rc)
        return rc;
    struct gn_link_end *u = calloc(1, sizeof *u);
    if (!u)
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    u->address = a;
    u->tcp = a.tcp;
    u->features = features;
    u->patience_ms = CONTROL_TIMEOUT_MS;
    u->socket.fd = u->left.fd = -1;
    u->ticket = ticket;
    if (credentials)
        u->credentials = *credentials;
    if (a.tcp) {
        rc = gn_link_tcp_open(u, err);
    } else {
        u->base.ops = &unix_ops;
        rc = u->socket.fd = connect_for_role(a.path, u->credentials.role, err);
        gn_frame_reader_init(&u->reader, rc);
        u->reader.keeps_frames = true;
        rc = rc < 0 ? rc : gn_link_hello_exchange(u, err);
    }
    u->ticket = NULL;
    u->credentials = (struct gn_link_credentials){NULL, NULL, GN_ROLE_PROGRAM};
    if (rc) {
        gn_link_end_close(&u->base);
        return rc;
    }
    *ret = &u->base;
    return 0;
}

int gn_link_connect(const char *address, struct gn_link **ret, struct gn_error *err)
{
    return gn_link_connect_for(address, GN_LINK_FEATURE_NEAR, NULL, NULL, ret, err);
}

int gn_link_connect_control(const char *address, enum gn_role role, struct gn_link **ret,
                            struct gn_error *err)
{
    return gn_link_connect_control_as(address, &(struct gn_link_credentials){.role = role}, ret,
                                      err);
}

int gn_link_connect_control_as(const char *address, const struct gn_link_credentials *credentials,
                               struct gn_link **ret, struct gn_error *err)
{
    return gn_link_connect_for(address, GN_LINK_FEATURE_CONTROL, credentials, NULL, ret, err);
}
