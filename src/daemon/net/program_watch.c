/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pidfd of the process at a connection's other end. The kernel gives it from Linux 6.5 on, and
 * from 6.16 on also of a process that has ended. Where it does not, the number that the process had
 * when it connected is all there is, and another process may have it by now: what is opened by its
 * number is only watched, and nothing is ever done to it. gantryd's thread.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/process_stat.h"
#include "daemon/net/program_watch.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* The program's death ends its vGPU even where a child of it holds a copy of the socket. */
static void program_gone(struct gn_source *s, uint32_t events)
{
    (void)events;
    gn_conn_close(gn_container_of(s, struct gn_conn, process));
}

/* -1: the process with that number is another one, or none. */
static int open_by_number(const struct gn_conn *c)
{
    struct gn_process_stat stat;
    uid_t uid;
    int fd = c->pid > 0 ? (int)syscall(SYS_pidfd_open, c->pid, 0) : -1;
    /* Read after it was opened: a process that took the number meanwhile is younger still. */
    if (fd >= 0 && (gn_process_stat_read(c->pid, &stat) || stat.start_ticks > c->taken_ticks ||
                    gn_process_user(c->pid, &uid) || uid != c->uid)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void gn_conn_watch_program(struct gn_conn *c)
{
    socklen_t n = sizeof c->process.fd;
    /* A second one would leave the first in the loop for ever. */
    if (c->socket.fd < 0 || c->process.fd >= 0)
        return;
    c->process_proved = getsockopt(c->socket.fd, SOL_SOCKET, SO_PEERPIDFD, &c->process.fd, &n) == 0;
    if (!c->process_proved)
        c->process.fd = open_by_number(c);
    if (c->process.fd >= 0 && gn_loop_add(&c->daemon->loop, &c->process, EPOLLIN, program_gone) < 0)
        gn_loop_close(&c->daemon->loop, &c->process);
}

int gn_conn_may_run_in_process(const struct gn_conn *c, struct gn_error *err)
{
    if (c->remote)
        return gn_fail(err, EOPNOTSUPP, "use the mode remote",
                       "a program in passthrough must be one of this machine");
    if (c->process.fd < 0 || !c->process_proved)
        return gn_fail(err, EOPNOTSUPP, "use the mode remote, or Linux 6.5 or newer",
                       "a program in passthrough must be one whose process the kernel names");
    return 0;
}
