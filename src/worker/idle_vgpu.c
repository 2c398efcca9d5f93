/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of attaching, of the worker's and the daemon's side: a vGPU that serves no message,
 * counts the data segments that it receives, prints and echoes each byte of the session socket, and
 * ends as a vGPU must, unless a byte tells it to misbehave. Some bytes change the grant of its
 * first device; the answer is the grant's state after that, as a digit.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "link/worker_control.h"
#include "shm/counters.h"
#include "shm/futex.h"
#include "shm/grant.h"
#include "vgpu/vgpu.h"

/* Sends lease requests for ever and reads no answer. */
static _Noreturn void ask_without_end(int control_fd)
{
    struct gn_worker_lease ask = {.need_bytes = 1, .want_bytes = 1};
    for (;;)
        (void)gn_frame_send(control_fd, -1, GN_WORKER_LEASE, 0, 1, &ask, sizeof ask, NULL, 0);
}

/* Behaves like a worker that a hostile kernel controls: never ends. */
static _Noreturn void misbehave(int control_fd, char how)
{
    signal(SIGTERM, SIG_IGN);
    if (how == '%')
        ask_without_end(control_fd);
    if (how == '-')
        close(control_fd);
    else if (write(control_fd, "this is no frame", 16) != 16)
        _exit(1);
    for (;;)
        pause();
}

static bool is_play(char byte)
{
    return byte && strchr("TWPRGAL", byte);
}

static char play(const struct gn_vgpu_boot *boot, char byte)
{
    struct gn_grant_slot *s = &((struct gn_grant_page *)boot->grants.base)->slots[0];
    const uint64_t one = 1;
    bool news = false;
    switch (byte) {
    case 'T': /* take, or want */
        (void)gn_grant_acquire(s, &news);
        break;
    case 'W': /* wait for it */
        while (gn_grant_look(s) == GN_GRANT_WANTED)
            (void)gn_futex_wait(&s->state, GN_GRANT_WANTED, false, UINT64_MAX);
        break;
    case 'P': /* wait until it is asked for */
        while (gn_grant_look(s) == GN_GRANT_HELD && !gn_grant_is_preempted(s))
            (void)poll(NULL, 0, 1);
        break;
    case 'R':
        news = gn_grant_park(s);
        break;
    case 'G':
    case 'A': /* give, with nothing left to do, or with more of it */
        gn_grant_yield(s, byte == 'A');
        news = true;
        break;
    default: /* look */
        break;
    }
    if (news && write(boot->tell_fd, &one, sizeof one) != sizeof one)
        return '!';
    return (char)('0' + gn_grant_look(s));
}

int gn_vgpu_serve(const struct gn_vgpu_boot *boot)
{
    struct gn_worker_control control;
    struct gn_counters *counters = boot->counters.base;
    gn_worker_control_init(&control, boot->control_fd);
    for (;;) {
        struct pollfd p[2] = {{.fd = boot->session_fd, .events = POLLIN},
                              {.fd = boot->control_fd, .events = POLLIN}};
        struct gn_worker_event e;
        int rc;
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return 1;
        while ((rc = gn_worker_control_next(&control, &e)) == 1) {
            if (e.kind == GN_WORKER_EVENT_END)
                return 0;
            /* Another data segment: its size is written to its start, for the test to see. */
            struct gn_segment s;
            if (gn_segment_adopt(e.fd, e.bytes, &s) == 0) {
                *(uint64_t *)s.base = e.bytes + e.index;
                gn_segment_fini(&s);
                gn_counter_add(&counters->calls, 1);
            } else {
                close(e.fd);
            }
        }
        if (rc < 0)
            return 0;
        if (p[0].revents) {
            char byte;
            if (read(boot->session_fd, &byte, 1) != 1)
                return 0;
            if (byte == '!' || byte == '-' || byte == '%')
                misbehave(boot->control_fd, byte);
            if (is_play(byte)) {
                byte = play(boot, byte);
            } else {
                printf("vgpu %08x read %c\n", boot->id, byte);
                fflush(stdout);
            }
            if (write(boot->session_fd, &byte, 1) != 1)
                return 0;
        }
    }
}

int gn_vgpu_program_file(const char *name, bool contents, int *ret_fd, struct stat *ret_facts)
{
    return -ENOENT;
}
