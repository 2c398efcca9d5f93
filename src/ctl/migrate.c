/* SPDX-License-Identifier: Apache-2.0 */
/* `gantry migrate` and `gantry mode`: a running program's vGPU to another host. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fault.h"
#include "control/control.h"
#include "ctl/ctl.h"
#include "link/address.h"
#include "link/link.h"

static double ms(const json_t *move, const char *key)
{
    return (double)json_integer_value(json_object_get(move, key)) / 1e6;
}

static long long number(const json_t *of, const char *key)
{
    return (long long)json_integer_value(json_object_get(of, key));
}

static struct gn_control_wish wish_of(const struct gn_ctl_args *args)
{
    return (struct gn_control_wish){.vgpu = args->rest[0],
                                    .to = args->rest[0] ? args->rest[1] : NULL,
                                    .drain_timeout_ms = args->drain_timeout_ms ? args->drain_timeout_ms : GN_CONTROL_DRAIN_MS,
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
static int announce(const struct gn_ctl_args *args, struct gn_link *here, struct gn_link *there, json_t **ret, int *ret_fd,
                    struct gn_error *err)
{
    json_t *about = NULL;
    int stream[2], rc = ask(here, gn_control_about_request(args->rest[0]), &about, err);
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

/* The socket's path as whoever else connects to it must name it. */
static int absolute(const char *text, char ret[static GN_ADDRESS_TEXT_BYTES], struct gn_error *err)
{
    struct gn_address a;
    char *path;
    int rc = gn_address_parse(text, &a, err);
    if (rc)
        return rc;
    if (a.tcp)
        return gn_fail(err, EOPNOTSUPP, "name the socket of a gantryd on this machine: unix:PATH", "vGPUs are not moved to other machines yet");
    path = a.path[0] == '/' ? NULL : realpath(a.path, NULL);
    if (a.path[0] != '/' && (!path || strlen(path) >= sizeof a.path)) {
        free(path);
        return gn_fail(err, ENOENT, NULL, "no gantryd listens at %s", text);
    }
    if (path)
        memcpy(a.path, path, strlen(path) + 1);
    free(path);
    gn_address_print(&a, ret);
    return 0;
}

static int move_there(const struct gn_ctl_args *args, struct gn_link *here, struct gn_control_wish *wish, json_t **ret, struct gn_error *err)
{
    char address[GN_ADDRESS_TEXT_BYTES];
    struct gn_link *there = NULL;
    json_t *ticket = NULL;
    int fd = -1, rc = absolute(wish->to, address, err);
    if (!rc)
        rc = gn_link_connect_control(address, &there, err);
    if (!rc)
        rc = announce(args, here, there, &ticket, &fd, err);
    if (!rc)
        rc = gn_link_send_file(here, fd, err);
    if (fd >= 0)
        close(fd);
    wish->to = address;
    wish->ticket = json_string_value(json_object_get(json_object_get(ticket, "receive"), "ticket"));
    if (!rc && !wish->ticket)
        rc = gn_fail(err, EPROTO, "use the gantry command that came with it", "the other gantryd's reply has no ticket");
    GN_FAULT("ctl-announced");
    /* The ticket is good as long as this connection with the other one lasts, until it is claimed. */
    if (!rc)
        rc = ask(here, gn_control_move_request(wish), ret, err);
    if (there)
        gn_link_close(there);
    json_decref(ticket);
    return rc;
}

static int move(const struct gn_ctl_args *args, struct gn_control_wish *wish, const char *failure, const char *done)
{
    struct gn_error err = {{0}, {0}};
    struct gn_link *here = NULL;
    json_t *reply = NULL;
    int rc = gn_link_connect_control(args->connect, &here, &err);
    if (!rc) {
        gn_link_set_patience(here, -1); /* gantryd gives up when it takes too long */
        rc = strchr(wish->to, ':') ? move_there(args, here, wish, &reply, &err) : ask(here, gn_control_move_request(wish), &reply, &err);
        gn_link_close(here);
    }
    const json_t *moved = json_object_get(reply, "move");
    if (rc == 0 && !json_is_object(moved))
        rc = gn_fail(&err, EPROTO, "use the gantry command that came with it", "gantryd's reply has no \"move\"");
    if (rc) {
        json_decref(reply);
        return gn_ctl_fail(args, GN_EXIT_FAILED, failure, &err);
    }
    if (args->json)
        return gn_ctl_print_json(args, reply);
    const json_t *phases = json_object_get(moved, "phases_ns"), *pages = json_object_get(moved, "pages");
    printf("%s %s; it stood still for %.1f ms (drain %.1f, save %.1f, load to its end)\n",
           json_string_value(json_object_get(moved, "id")), done, ms(moved, "downtime_ns"), ms(phases, "drain"), ms(phases, "save"));
    printf("%lld of its %lld pages were sent ahead in %.1f ms, %lld in the stop\n", number(pages, "precopy"), number(pages, "total"),
           ms(moved, "precopy_ns"), number(pages, "stop"));
    json_decref(reply);
    return gn_ctl_flush(args);
}

int gn_ctl_migrate(const struct gn_ctl_args *args)
{
    static const char failure[] = "cannot move the vGPU";
    struct gn_control_wish wish = wish_of(args);
    struct gn_error err;
    if (!wish.vgpu || !wish.to) {
        gn_fail(&err, EINVAL, "write gantry migrate VGPU local, or gantry migrate VGPU unix:PATH; gantry ls lists the vGPUs", "which vGPU, and where to?");
        return gn_ctl_fail(args, GN_EXIT_USAGE, failure, &err);
    }
    return move(args, &wish, failure, "moved");
}

int gn_ctl_mode(const struct gn_ctl_args *args)
{
    static const char failure[] = "cannot switch the vGPU";
    struct gn_control_wish wish = wish_of(args);
    struct gn_error err;
    if (!wish.vgpu || !wish.to || (strcmp(wish.to, "remote") != 0 && strcmp(wish.to, "passthrough") != 0)) {
        gn_fail(&err, EINVAL, "write gantry mode VGPU remote, or gantry mode VGPU passthrough; gantry ls lists the vGPUs",
                "which vGPU, and which mode?");
        return gn_ctl_fail(args, GN_EXIT_USAGE, failure, &err);
    }
    return move(args, &wish, failure, wish.to);
}
