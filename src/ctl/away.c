/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vGPU to another gantryd of this machine, by whoever may operate both: shows the one what the other one has, carries the ticket back,
 * and gives each an end of one socket. The two don't speak with each other. docs/moves.md.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fault.h"
#include "control/control.h"
#include "ctl/ctl.h"
#include "link/address.h"
#include "link/link.h"

struct gn_control_wish gn_ctl_move_wish(const struct gn_ctl_args *args)
{
    return (struct gn_control_wish){.drain_timeout_ms = args->drain_timeout_ms ? args->drain_timeout_ms : GN_CONTROL_DRAIN_MS,
                                    .rounds = args->stop_and_copy ? 0
                                              : args->rounds      ? args->rounds
                                                                  : GN_CONTROL_ROUNDS,
                                    .bandwidth_bytes = args->bandwidth_bytes};
}

static int ask(struct gn_link *link, char *text, json_t **ret, struct gn_error *err)
{
    int rc = text ? gn_ctl_ask_on(link, text, ret, err) : gn_fail(err, ENOMEM, NULL, "out of memory");
    free(text);
    return rc;
}

/* Shows the other gantryd what is to come, which looks whether it can: the ticket, and the socket's end for the old worker. */
static int announce(const char *vgpu, struct gn_link *here, struct gn_link *there, json_t **ret, int *ret_fd, struct gn_error *err)
{
    json_t *about = NULL;
    int stream[2], rc = ask(here, gn_control_about_request(vgpu), &about, err);
    if (rc)
        return rc;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream) < 0) {
        json_decref(about);
        return gn_fail(err, errno, NULL, "cannot make a socket: %s", strerror(errno));
    }
    rc = gn_link_send_file(there, stream[1], err);
    close(stream[1]);
    if (!rc)
        rc = ask(there, gn_control_receive_request(json_object_get(about, "about")), ret, err);
    json_decref(about);
    if (rc)
        close(stream[0]);
    else
        *ret_fd = stream[0];
    return rc;
}

int gn_ctl_away_address(const char *to, char *ret, struct gn_error *err)
{
    struct gn_address a;
    char *path;
    int rc = gn_address_parse(to, &a, err);
    if (rc)
        return rc;
    if (a.tcp)
        return gn_fail(err, EOPNOTSUPP, "name the socket of a gantryd on this machine: unix:PATH", "vGPUs are not moved to other machines yet");
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

int gn_ctl_away(struct gn_link *here, const struct gn_control_wish *wish, json_t **ret, struct gn_error *err)
{
    char address[GN_ADDRESS_TEXT_BYTES];
    struct gn_control_wish with_ticket = *wish;
    struct gn_link *there = NULL;
    json_t *ticket = NULL;
    int fd = -1, rc = gn_ctl_away_address(wish->to, address, err);
    if (!rc)
        rc = gn_link_connect_control(address, &there, err);
    if (!rc)
        rc = announce(wish->vgpu, here, there, &ticket, &fd, err);
    if (!rc)
        rc = gn_link_send_file(here, fd, err);
    if (fd >= 0)
        close(fd);
    with_ticket.to = address;
    with_ticket.ticket = json_string_value(json_object_get(json_object_get(ticket, "receive"), "ticket"));
    if (!rc && !with_ticket.ticket)
        rc = gn_fail(err, EPROTO, "use the gantry command that came with it", "the other gantryd's reply has no ticket");
    GN_FAULT("ctl-announced");
    /* The ticket is good as long as this connection with the other one lasts, until it is claimed. */
    if (!rc)
        rc = ask(here, gn_control_move_request(&with_ticket), ret, err);
    if (there)
        gn_link_close(there);
    json_decref(ticket);
    return rc;
}
