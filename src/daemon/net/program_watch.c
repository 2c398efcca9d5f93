/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the process at the other end of a Unix socket by its pidfd. Called through
 * transport_local.c, on gantryd's thread. The kernel gives the pidfd of a socket's peer from Linux
 * 6.5 on, and from 6.16 on also after the peer has ended. Older kernels only give the process id at
 * the time of connect(), which another process may have by now: a pidfd opened from it is only
 * watched, and gantryd never kills the process through it.
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

/* When the program dies its vGPU ends, even if a child process still holds a copy of the socket. */
static void program_gone(struct gn_source *s, uint32_t events)
{
    (void)events;
    gn_conn_close(gn_container_of(s, struct gn_conn, process));
}

/* Returns -1 when the process with that id is gone or is not the one that connected. */
static int open_by_number(const struct gn_conn *c)
{
    struct gn_process_stat stat;
    uid_t uid;
    int fd = c->pid > 0 ? (int)syscall(SYS_pidfd_open, c->pid, 0) : -1;
    /* The checks come after the open: a process that took the id in between has started later than
     * the connection. */
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
    /* Already watched. A second pidfd would leave the first in the loop forever. */
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
    if (c->process.fd < 0 || !c->process_proved)
        return gn_fail(err, EOPNOTSUPP, "use the mode remote, or Linux 6.5 or newer",
                       "passthrough needs the kernel to identify the process of the program");
    return 0;
}
