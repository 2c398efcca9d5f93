/* SPDX-License-Identifier: Apache-2.0 */
/* What crosses the links of a program whose vGPU goes to another gantryd; docs/moves.md. Any thread, one at a time for each link. */
#include "link/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link/link_internal.h"

#define SEND_TIMEOUT_MS 5000

int gn_link_connect_claim(const char *address, struct gn_link **ret, struct gn_error *err)
{
    return gn_link_connect_for(address, GN_LINK_FEATURE_CLAIM, ret, err);
}

static int send_frame(struct gn_link *l, uint16_t op, uint32_t seq, const void *payload, size_t n, const int *fds, int n_fds)
{
    const struct gn_link_end *u = gn_link_end_of(l);
    return u->tcp ? -EOPNOTSUPP : gn_frame_send(u->socket.fd, SEND_TIMEOUT_MS, op, 0, seq, payload, n, fds, n_fds);
}

int gn_link_claim(struct gn_link *to, const struct gn_link_claim *claim, int ring_fd, struct gn_error *err)
{
    struct gn_link_end *u = gn_link_end_of(to);
    if (u->tcp)
        return gn_fail(err, EOPNOTSUPP, "name the socket of a gantryd of this machine",
                       "a program that shares its memory with its vGPU cannot be moved to a gantryd over tcp");
    int rc = send_frame(to, GN_LINK_CLAIM, ++u->seq, claim, sizeof *claim, &ring_fd, 1);
    return rc ? gn_link_lost(err, rc == -ETIMEDOUT ? rc : -EPIPE) : 0;
}

int gn_link_claim_heard(struct gn_link *to, struct gn_link_claimed *ret_claimed, struct gn_link_ready *ret_ready, struct gn_error *err)
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
    if (f.op == GN_LINK_CLAIMED && gn_frame_payload(&f, ret_claimed, sizeof *ret_claimed) &&
        gn_frame_string_ok(ret_claimed->platform.api, sizeof ret_claimed->platform.api) &&
        gn_frame_string_ok(ret_claimed->platform.name, sizeof ret_claimed->platform.name))
        return GN_LINK_CLAIMED;
    return f.op == GN_LINK_READY && gn_frame_payload(&f, ret_ready, sizeof *ret_ready) ? GN_LINK_READY : gn_link_lost(err, -EPROTO);
}

int gn_link_pass(struct gn_link *to, uint32_t index, uint64_t bytes, int fd)
{
    const struct gn_link_segment_made made = {.index = index, .bytes = bytes};
    return send_frame(to, GN_LINK_PASS, 0, &made, sizeof made, &fd, 1);
}

int gn_link_say_comes(struct gn_link *l, uint32_t number)
{
    return send_frame(l, GN_LINK_COMES, number, NULL, 0, NULL, 0);
}

int gn_link_say_stays(struct gn_link *l, uint32_t number, const struct gn_error *why)
{
    struct gn_link_error e = {.code = EREMOTEIO};
    gn_frame_string_set(e.what, sizeof e.what, why->what);
    gn_frame_string_set(e.fix, sizeof e.fix, why->fix);
    return send_frame(l, GN_LINK_STAY, number, &e, sizeof e, NULL, 0);
}

int gn_link_go_over(struct gn_link *l, struct gn_link *to, uint32_t number, const struct gn_link_claimed *claimed,
                    const struct gn_link_ready *ready)
{
    struct gn_link_end *u = gn_link_end_of(l), *other = gn_link_end_of(to);
    const int left = fcntl(u->socket.fd, F_DUPFD_CLOEXEC, 0);
    /* What may fail comes before the word that cannot be taken back. */
    int rc = left < 0 ? -errno : send_frame(to, GN_LINK_GO, other->seq, NULL, 0, NULL, 0);
    if (rc) {
        if (left >= 0)
            close(left);
        gn_link_close(to);
        return rc;
    }
    (void)dup3(other->socket.fd, u->socket.fd, O_CLOEXEC); /* both are there: it cannot fail */
    gn_frame_reader_fini(&u->reader);
    u->reader = other->reader;
    u->reader.fd = u->socket.fd;
    u->seq = other->seq;
    u->address = other->address;
    u->platforms.n = 1;
    u->platforms.items[0].index = claimed->platform.index;
    u->platforms.items[0].n_devices = claimed->platform.n_devices;
    memcpy(u->platforms.items[0].api, claimed->platform.api, sizeof u->platforms.items[0].api);
    memcpy(u->platforms.items[0].name, claimed->platform.name, sizeof u->platforms.items[0].name);
    gn_tcp_close(&other->socket);
    free(other);
    /* Only now may the old one hang up: whoever looks finds the new one under its number. */
    (void)gn_frame_send(left, SEND_TIMEOUT_MS, GN_LINK_LEFT, 0, number, ready, sizeof *ready, NULL, 0);
    close(left);
    return 0;
}
