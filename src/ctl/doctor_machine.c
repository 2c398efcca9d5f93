/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of the machine for `gantry doctor`: the kernel's features and the processors. Main
 * thread. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ctl/doctor.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

static void check_sealing(struct gn_doctor *d)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    int fd = memfd_create("gantry-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, 4096) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0)
        gn_doctor_add(d, "memory", GN_DOCTOR_FAIL,
                      "Gantry needs Linux 3.17 and memfd_create allowed",
                      "shared memory cannot be created and sealed: %s", strerror(errno));
    else
        gn_doctor_add(d, "memory", GN_DOCTOR_OK, NULL, "shared memory can be created and sealed");
    if (fd >= 0)
        close(fd);
}

static bool names_peers(void)
{
    int ends[2], fd;
    socklen_t n = sizeof fd;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return true;
    const bool named = getsockopt(ends[0], SOL_SOCKET, SO_PEERPIDFD, &fd, &n) == 0;
    if (named)
        close(fd);
    close(ends[0]);
    close(ends[1]);
    return named;
}

void gn_doctor_check_kernel(struct gn_doctor *d)
{
    check_sealing(d);
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (fd < 0)
        gn_doctor_add(d, "processes", GN_DOCTOR_FAIL,
                      "Gantry needs Linux 5.3 and pidfd_open allowed",
                      "the exit of a process cannot be watched: %s", strerror(errno));
    else if (!names_peers())
        gn_doctor_add(d, "processes", GN_DOCTOR_WARN, "use Linux 6.5 or newer for passthrough",
                      "the exit of a process can be watched, but the kernel has no SO_PEERPIDFD: "
                      "passthrough is refused");
    else
        gn_doctor_add(d, "processes", GN_DOCTOR_OK, NULL, "the exit of a process can be watched");
    if (fd >= 0)
        close(fd);
    /* Without a futex to wait for, a kernel that has the call returns EINVAL. */
    if (syscall(SYS_futex_waitv, NULL, 0, 0, NULL, 0) < 0 && (errno == ENOSYS || errno == EPERM))
        gn_doctor_add(
            d, "waiting", GN_DOCTOR_WARN, "use Linux 5.16 or newer",
            "futex_waitv is not available: the loss of a worker is noticed up to 50 ms late");
    else
        gn_doctor_add(d, "waiting", GN_DOCTOR_OK, NULL, "futex_waitv is available");
}

void gn_doctor_check_processors(struct gn_doctor *d)
{
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int usable = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)online;
    if (online < 2)
        gn_doctor_add(d, "processors", GN_DOCTOR_WARN, "a second processor makes calls much faster",
                      "there is one processor: program and worker alternate on it and never spin");
    else if (usable < 2)
        gn_doctor_add(d, "processors", GN_DOCTOR_WARN,
                      "let the program and gantryd use different processors",
                      "programs started from here may use one of %ld processors: "
                      "spinning makes sense only while the worker runs on another",
                      online);
    else
        gn_doctor_add(d, "processors", GN_DOCTOR_OK, NULL,
                      "%d processors: program and worker can run at once, so spinning makes sense",
                      usable);
}
