/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's link during a migration of its vGPU to another gantryd (docs/moves.md). The front
 * end calls this on the threads that follow a migration, one at a time per link. It decides
 * nothing: the caller chooses between GO and STAY.
 */
#include "link/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/descriptor.h"
#include "base/kernel.h"
#include "link/link_internal.h"

#define SEND_TIMEOUT_MS 5000

int gn_link_connect_claim(const struct gn_link *l, const struct gn_link_move *what,
                          struct gn_link **ret, struct gn_error *err)
{
    const struct gn_link_end *u = gn_link_end_of(l);
    struct gn_address a;
    int rc = gn_address_parse(what->address, &a, err);
    if (!rc && u->tcp && !a.tcp)
        rc = gn_fail(err, EOPNOTSUPP, "name tcp:HOST:PORT of another gantryd",
                     "a program on another machine cannot reach a gantryd's socket");
    const bool secure = u->tcp ? u->secure : a.tcp && what->secure;
    return rc ? rc
              : gn_link_connect_for(what->address, GN_LINK_FEATURE_CLAIM | GN_LINK_FEATURE_NEAR,
                                    NULL, secure ? what : NULL, ret, err);
}

int gn_link_connect_near(const struct gn_link_move *what, struct gn_link **ret,
                         struct gn_error *err)
{
    unsigned char kernel[GN_KERNEL_BYTES];
    struct gn_address a;
    _Static_assert(sizeof kernel == sizeof what->kernel, "a kernel's id");
    if (!what->near[0] || !gn_kernel_id(kernel) || memcmp(kernel, what->kernel, sizeof kernel) != 0)
        return gn_fail(err, EHOSTUNREACH, NULL, "that gantryd is on another machine");
    int rc = gn_address_parse(what->near, &a, err);
    if (!rc && a.tcp)
        rc = gn_fail(err, EINVAL, NULL, "that gantryd names no socket of its machine");
    return rc ? rc
              : gn_link_connect_for(what->near, GN_LINK_FEATURE_CLAIM | GN_LINK_FEATURE_NEAR, NULL,
                                    NULL, ret, err);
}

static int send_frame(struct gn_link *l, uint16_t op, uint32_t seq, const void *payload, size_t n,
                      const int *fds, int n_fds)
{
    struct gn_link_end *u = gn_link_end_of(l);
    return u->tcp
               ? gn_frame_send_tcp(&u->socket, SEND_TIMEOUT_MS, op, 0, seq, payload, n)
               : gn_frame_send(u->socket.fd, SEND_TIMEOUT_MS, op, 0, seq, payload, n, fds, n_fds);
}

int gn_link_claim(struct gn_link *to, const struct gn_link_claim *claim, int ring_fd, int hand_fd,
                  struct gn_error *err)
{
    struct gn_link_end *u = gn_link_end_of(to);
    const int fds[2] = {ring_fd, hand_fd};
    int rc =
        send_frame(to, GN_LINK_CLAIM, ++u->seq, claim, sizeof *claim, fds, hand_fd < 0 ? 1 : 2);
    return rc ? gn_link_lost(err, rc == -ETIMEDOUT ? rc : -EPIPE) : 0;
}

static bool take_claimed(struct gn_link_end *u, const struct gn_frame *f,
                         struct gn_link_claimed *ret)
{
    struct gn_link_claimed_remote c;
    if (!u->tcp)
        return f->op == GN_LINK_CLAIMED && gn_frame_payload(f, ret, sizeof *ret);
    if (f->op != GN_LINK_CLAIMED_REMOTE || !gn_frame_payload(f, &c, sizeof c) || c.zero)
        return false;
    memcpy(u->session, c.session, sizeof u->session);
    memcpy(u->key, c.key, sizeof u->key);
    u->grace_ms = c.grace_ms;
    *ret = c.claimed;
    explicit_bzero(&c, sizeof c);
    return true;
}

int gn_link_claim_accepted(struct gn_link *to, struct gn_link_claimed *ret_claimed,
                           struct gn_link_ready *ret_ready, struct gn_error *err)
{
    struct gn_link_end *u = gn_link_end_of(to);
    struct gn_frame f;
    int rc = gn_frame_read(&u->reader, &f);
    if (rc <= 0)
        return rc ? gn_link_lost(err, rc) : 0;
    if (f.op == GN_LINK_ERROR)
        return gn_link_refused(&f, err);
    if (f.seq != u->seq || f.n_fds)
        return gn_link_lost(err, -EPROTO);
    if (take_claimed(u, &f, ret_claimed) &&
        gn_frame_string_ok(ret_claimed->platform.api, sizeof ret_claimed->platform.api) &&
        gn_frame_string_ok(ret_claimed->platform.name, sizeof ret_claimed->platform.name))
        return GN_LINK_CLAIMED;
    return f.op == GN_LINK_READY && gn_frame_payload(&f, ret_ready, sizeof *ret_ready)
               ? GN_LINK_READY
               : gn_link_lost(err, -EPROTO);
}

int gn_link_pass(struct gn_link *to, uint32_t index, uint64_t bytes, int fd)
{
    const struct gn_link_segment_made made = {.index = index, .bytes = bytes};
    return gn_link_end_of(to)->tcp ? 0
                                   : send_frame(to, GN_LINK_PASS, 0, &made, sizeof made, &fd, 1);
}

int gn_link_send_comes(struct gn_link *l, uint32_t number, bool near)
{
    return send_frame(l, near ? GN_LINK_COMES_NEAR : GN_LINK_COMES, number, NULL, 0, NULL, 0);
}

int gn_link_send_stays(struct gn_link *l, uint32_t number, const struct gn_error *why)
{
    struct gn_link_error e = {.code = EREMOTEIO};
    gn_frame_string_set(e.what, sizeof e.what, why->what);
    gn_frame_string_set(e.fix, sizeof e.fix, why->fix);
    return send_frame(l, GN_LINK_STAY, number, &e, sizeof e, NULL, 0);
}

void gn_link_send_left(struct gn_link *l)
{
    struct gn_link_end *u = gn_link_end_of(l);
    if (u->left.fd >= 0)
        (void)gn_frame_send_tcp(&u->left, SEND_TIMEOUT_MS, GN_LINK_LEFT, 0, u->left_number,
                                &u->left_ready, sizeof u->left_ready);
    gn_tcp_close(&u->left);
}

/* u becomes the link that `other` is. A descriptor that keeps its number stays open under it. */
static void take_place(struct gn_link_end *u, struct gn_link_end *other, bool keeps_number,
                       const struct gn_platform *platform)
{
    /* The number is another one if the program has closed it. */
    if (keeps_number && gn_fd_replace(other->socket.fd, u->socket.fd) >= 0)
        gn_tcp_close(&other->socket);
    else
        u->socket = other->socket;
    gn_frame_reader_fini(&u->reader);
    u->reader = other->reader;
    u->reader.fd = u->socket.fd;
    u->reader.tcp = other->tcp ? &u->socket : NULL;
    u->base.ops = other->base.ops;
    u->tcp = u->attached = other->tcp;
    u->lost = false;
    u->secure = other->secure;
    /* For reconnecting over tcp: the destination identifies the program by its session's key, not
     * by a tenant. A session in shared memory needs no name and key. */
    u->features = other->features;
    memcpy(u->session, other->session, sizeof u->session);
    memcpy(u->key, other->key, sizeof u->key);
    u->seq = other->seq;
    u->address = other->address;
    u->platforms = (struct gn_platform_list){.n = 1, .items = {*platform}};
}

int gn_link_go_over(struct gn_link *l, struct gn_link *to, uint32_t number,
                    const struct gn_link_claimed *claimed, const struct gn_link_ready *ready)
{
    struct gn_link_end *u = gn_link_end_of(l), *other = gn_link_end_of(to);
    const bool keeps_number = !u->tcp && !other->tcp, by_tcp = other->tcp;
    struct gn_platform platform = {.index = claimed->platform.index,
                                   .n_devices = claimed->platform.n_devices};
    struct gn_tcp left = u->socket;
    memcpy(platform.api, claimed->platform.api, sizeof platform.api);
    memcpy(platform.name, claimed->platform.name, sizeof platform.name);
    int rc = 0;
    /* Everything that may fail comes before GO, which cannot be undone. */
    if (keeps_number && (left.fd = gn_fd_duplicate(u->socket.fd)) < 0)
        rc = -errno;
    if (!rc)
        rc = send_frame(to, GN_LINK_GO, other->seq, NULL, 0, NULL, 0);
    if (rc) {
        if (keeps_number)
            gn_tcp_close(&left);
        gn_link_close(to);
        return rc;
    }
    gn_link_send_left(l); /* of an earlier migration, if it is still unsent */
    u->left = left;
    u->left_number = number;
    u->left_ready = *ready;
    take_place(u, other, keeps_number, &platform);
    explicit_bzero(other->key, sizeof other->key);
    free(other);
    /*
     * The source may hang up from here on; a thread that polls u's descriptor number now sees the
     * new connection.
     */
    if (!by_tcp)
        gn_link_send_left(l);
    return 0;
}

uint32_t gn_link_grace_ms(const struct gn_link *to)
{
    return gn_link_end_of(to)->grace_ms;
}
