/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves a vGPU to another gantryd, for a user that may operate both. Describes the vGPU to the
 * destination, carries the destination's ticket back to the source, and gives each the end of one
 * socket; if the destination is reached over tcp, connects to it for the source's worker. The two
 * gantryds do not talk to each other. See docs/moves.md.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fault.h"
#include "client/client.h"
#include "control/control.h"
#include "ctl/ctl.h"
#include "client/shuttle.h"
#include "client/tokens.h"
#include "link/address.h"
#include "link/link.h"
#include "link/tls.h"

_Static_assert(GN_CTL_WORDS <= GN_CLIENT_TOKENS, "every --token-file has a place");

struct gn_control_wish gn_ctl_move_wish(const struct gn_ctl_args *args)
{
    return (struct gn_control_wish){
        .drain_timeout_ms = args->drain_timeout_ms ? args->drain_timeout_ms : GN_CONTROL_DRAIN_MS,
        .rounds = args->stop_and_copy ? 0
                  : args->rounds      ? args->rounds
                                      : GN_CONTROL_ROUNDS,
        .device = args->device,
        .near = args->stays_on_tcp ? NULL : "",
        .bandwidth_bytes = args->bandwidth_bytes};
}

static int ask(struct gn_link *link, char *text, json_t **ret, struct gn_error *err)
{
    int rc =
        text ? gn_client_ask_on(link, text, ret, err) : gn_fail(err, ENOMEM, NULL, "out of memory");
    free(text);
    return rc;
}

/* The destination's answer when it accepts the vGPU. */
struct receipt {
    json_t *reply;
    const char *ticket, *name; /* name: over tcp only */
    /* Over tcp, may be NULL: for programs on the destination's machine. */
    const char *near, *kernel;
    int fd;                     /* the stream for the old worker; -1: none yet */
    struct gn_shuttle *shuttle; /* the TLS relay; NULL: none */
};

static int read_receipt(struct receipt *r, bool named, struct gn_error *err)
{
    const json_t *receive = json_object_get(r->reply, "receive");
    r->ticket = json_string_value(json_object_get(receive, "ticket"));
    r->name = json_string_value(json_object_get(receive, "name"));
    r->near = json_string_value(json_object_get(receive, "near"));
    r->kernel = json_string_value(json_object_get(receive, "kernel"));
    return r->ticket && (r->name || !named)
               ? 0
               : gn_fail(err, EPROTO, "use a gantry of gantryd's version",
                         "the other gantryd's reply has no ticket");
}

/*
 * Describes the vGPU to the destination, which checks whether it can run it. *ret: the ticket, and
 * the old worker's end of the stream.
 */
static int announce(struct gn_link *there, json_t *about, struct receipt *ret, struct gn_error *err)
{
    int stream[2], rc;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream) < 0)
        return gn_fail(err, errno, NULL, "cannot make a socket: %s", strerror(errno));
    ret->fd = stream[0];
    rc = gn_link_send_file(there, stream[1], err);
    close(stream[1]);
    if (!rc)
        rc = ask(there, gn_control_receive_request(about), &ret->reply, err);
    return rc ? rc : read_receipt(ret, false, err);
}

/*
 * The same over tcp, with the tenant's token. The destination has already accepted the name and the
 * ticket when the old worker gets the connection.
 */
static int announce_far(const char *address, struct gn_link *there, json_t *about,
                        struct receipt *ret, struct gn_error *err)
{
    unsigned char name[GN_CONTROL_TICKET_BYTES], ticket[GN_CONTROL_TICKET_BYTES];
    int rc = ask(there, gn_control_receive_request(about), &ret->reply, err);
    if (!rc)
        rc = read_receipt(ret, true, err);
    if (!rc && (!gn_control_parse_hex(ret->name, name, sizeof name) ||
                !gn_control_parse_hex(ret->ticket, ticket, sizeof ticket)))
        rc = gn_fail(err, EPROTO, "use a gantry of gantryd's version",
                     "the other gantryd's ticket is malformed");
    if (!rc)
        rc = gn_link_dial_stream(address, name, ticket, gn_link_is_secure(there), &ret->fd, err);
    /* A worker of a program attached over tcp speaks TLS itself and needs no relay. */
    if (!rc && gn_link_is_secure(there) && !json_is_true(json_object_get(about, "remote"))) {
        struct gn_tls_psk key;
        memcpy(key.identity, name, sizeof key.identity);
        memcpy(key.key, ticket, sizeof key.key);
        rc = gn_shuttle_start(&ret->fd, &key, &ret->shuttle, err);
        explicit_bzero(&key, sizeof key);
    }
    explicit_bzero(ticket, sizeof ticket);
    return rc;
}

int gn_ctl_outbound_address(const char *to, char *ret, struct gn_error *err)
{
    struct gn_address a;
    char *path;
    int rc = gn_address_parse(to, &a, err);
    if (rc)
        return rc;
    if (a.tcp) {
        gn_address_print(&a, ret);
        return 0;
    }
    path = a.path[0] == '/' ? NULL : realpath(a.path, NULL);
    if (a.path[0] != '/' && (!path || strlen(path) >= sizeof a.path)) {
        free(path);
        return gn_fail(err, ENOENT, NULL, "no gantryd listens at %s", to);
    }
    if (path)
        memcpy(a.path, path, strlen(path) + 1);
    free(path);
    gn_address_print(&a, ret);
    return 0;
}

static bool is_tcp(const char *address)
{
    return strncmp(address, "tcp:", 4) == 0;
}

int gn_ctl_outbound_connect(const char *address, const struct gn_client_tokens *tokens,
                            const char *tenant, struct gn_link **ret, struct gn_error *err)
{
    const struct gn_link_credentials credentials = {
        .tenant = tenant, .token = gn_client_tokens_find(tokens, tenant), .role = GN_ROLE_CONTROL};
    char fix[sizeof err->fix];
    if (!is_tcp(address))
        return gn_link_connect_control(address, GN_ROLE_CONTROL, ret, err);
    int rc = gn_link_connect_control_as(address, &credentials, ret, err);
    if (rc != -EACCES)
        return rc;
    snprintf(fix, sizeof fix, "%.120s%s--token-file %.63s%sFILE selects the token", err->fix,
             err->fix[0] ? "; " : "", tenant, tenant[0] ? "=" : "");
    memcpy(err->fix, fix, sizeof fix);
    return rc;
}

int gn_ctl_migrate_outbound(struct gn_link *here, const struct gn_control_wish *wish,
                            const struct gn_client_tokens *tokens, json_t **ret,
                            struct gn_error *err)
{
    char address[GN_ADDRESS_TEXT_BYTES];
    struct gn_control_wish with_ticket = *wish;
    struct gn_link *there = NULL;
    json_t *reported = NULL;
    struct receipt receipt = {.fd = -1};
    int rc = gn_ctl_outbound_address(wish->to, address, err);
    const bool tcp = !rc && is_tcp(address);
    if (!rc)
        rc = ask(here, gn_control_about_request(wish->vgpu), &reported, err);
    json_t *about = json_object_get(reported, "about");
    const char *tenant = json_string_value(json_object_get(about, "tenant"));
    if (!rc && !tenant)
        rc = gn_fail(err, EPROTO, "use a gantry of gantryd's version",
                     "gantryd's reply names no tenant");
    if (!rc && !tcp && json_is_true(json_object_get(about, "remote")))
        rc = gn_fail(err, EOPNOTSUPP, "name tcp:HOST:PORT of another gantryd",
                     "its program is attached over tcp, and cannot reach a socket of this machine");
    if (!rc)
        rc = gn_ctl_outbound_connect(address, tokens, tenant, &there, err);
    if (!rc)
        rc = tcp ? announce_far(address, there, about, &receipt, err)
                 : announce(there, about, &receipt, err);
    if (!rc)
        rc = gn_link_send_file(here, receipt.fd, err);
    if (receipt.fd >= 0)
        close(receipt.fd);
    with_ticket.to = address;
    with_ticket.ticket = receipt.ticket;
    with_ticket.name = receipt.name;
    with_ticket.near = wish->near ? receipt.near : NULL;
    with_ticket.kernel = receipt.kernel;
    with_ticket.secure = !rc && tcp && gn_link_is_secure(there);
    GN_FAULT("ctl-announced");
    /*
     * Until the ticket is claimed, it is valid only while this connection to the destination is
     * open.
     */
    if (!rc)
        rc = ask(here, gn_control_move_request(&with_ticket), ret, err);
    if (there)
        gn_link_close(there);
    gn_shuttle_stop(receipt.shuttle);
    json_decref(receipt.reply);
    json_decref(reported);
    return rc;
}
