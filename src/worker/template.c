/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The template: one process for each vendor driver. It has loaded the vendor's library and called
 * nothing in it, so it has a single thread and can be forked; a worker is a fork of it. It holds
 * nothing of any program: a worker's descriptors arrive over the worker's own control socket. It
 * must stay single-threaded.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"
#include "link/frame.h"
#include "link/worker_wire.h"
#include "shm/spin.h"
#include "worker/worker.h"

struct template
{
    int socket;
    int signals;
    struct gn_frame_reader reader;
    struct gn_worker_start start;
};

static unsigned count_threads(void)
{
    unsigned n = 0;
    DIR *dir = opendir("/proc/self/task");
    if (!dir)
        return 1;
    for (const struct dirent *e; (e = readdir(dir));)
        if (e->d_name[0] != '.')
            n++;
    closedir(dir);
    return n;
}

/* In the child: closes the template's own descriptors and unblocks signals. */
static void leave_template(struct template *t)
{
    sigset_t none;
    gn_frame_reader_fini(&t->reader);
    close(t->socket);
    close(t->signals);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void spawn(struct template *t, uint32_t seq)
{
    struct gn_error err = {{0}, {0}};
    int control = gn_frame_take_fd(&t->reader, 0);
    if (control < 0)
        return;
    pid_t pid = gn_wall_fork(&t->start.forker);
    if (pid == 0) {
        t->start.control_fd = control;
        leave_template(t);
        gn_worker_run(&t->start);
    }
    int code = errno;
    close(control);
    if (pid < 0) {
        gn_worker_refuse(
            t->socket, seq, code,
            (gn_fail(&err, code, NULL, "cannot start a worker: %s", strerror(code)), &err));
        if (code == ENOTRECOVERABLE)
            exit(1);
        return;
    }
    GN_FAULT("template-forked");
    /* Only reap() below reaps, so until then the pid is this worker's. */
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
        code = errno;
        kill(pid, SIGKILL);
        gn_worker_refuse(
            t->socket, seq, code,
            (gn_fail(&err, code, NULL, "cannot watch a worker: %s", strerror(code)), &err));
        return;
    }
    struct gn_worker_spawned s = {.pid = (uint32_t)pid};
    (void)gn_frame_send(t->socket, -1, GN_WORKER_SPAWNED, 0, seq, &s, sizeof s, &pidfd, 1);
    close(pidfd);
}

static void refuse_for_room(struct template *t, uint32_t seq)
{
    struct gn_error err;
    gn_fail(&err, EMFILE, "raise the limit that gantryd starts with (LimitNOFILE)",
            "a template has no descriptors left");
    gn_worker_refuse(t->socket, seq, EMFILE, &err);
}

static void reap(struct template *t)
{
    struct signalfd_siginfo ignored;
    int status;
    pid_t pid;
    while (read(t->signals, &ignored, sizeof ignored) > 0) {
    }
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        struct gn_worker_ended e = {.pid = (uint32_t)pid, .status = status};
        (void)gn_frame_send(t->socket, -1, GN_WORKER_ENDED, 0, 0, &e, sizeof e, NULL, 0);
    }
}

static int serve(struct template *t)
{
    for (;;) {
        struct gn_frame f;
        int rc;
        while ((rc = gn_frame_read(&t->reader, &f)) == 1) {
            if (f.op != GN_WORKER_SPAWN || f.n_fds != !f.lost_fds)
                return 1;
            if (f.lost_fds)
                refuse_for_room(t, f.seq);
            else
                spawn(t, f.seq);
        }
        if (rc < 0)
            return rc == -EPIPE ? 0 : 1;
        struct pollfd p[2] = {{.fd = t->socket, .events = POLLIN},
                              {.fd = t->signals, .events = POLLIN}};
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return 1;
        if (p[1].revents)
            reap(t);
    }
}

/* The mode as the template's argument: its number. */
static const char *mode_text(enum gn_wall_mode walls)
{
    static const char *const texts[] = {"0", "1", "2"};
    return texts[walls <= GN_WALL_REQUIRED ? walls : GN_WALL_REQUIRED];
}

/*
 * The path of a library that was loaded by its bare name; the walls make the driver's prefix
 * visible to its workers. Valid as long as the library is loaded.
 */
static const char *path_of(void *library, const char *name)
{
    struct link_map *map;
    return !strchr(name, '/') && !dlinfo(library, RTLD_DI_LINKMAP, &map) && map->l_name[0] == '/'
               ? map->l_name
               : name;
}

int gn_worker_template(int socket, const char *api, const char *library, enum gn_wall_mode walls,
                       bool late, char *title)
{
    struct gn_error err = {{0}, {0}};
    struct template t = {.socket = socket};
    sigset_t chld;
    t.start.backend = gn_backend_named(api);
    t.start.path = library;
    t.start.title = title;
    if (!t.start.backend)
        return 2;
    if (!late) {
        if (t.start.backend->open_library(library, &t.start.library, &err)) {
            gn_log(GN_LOG_ERROR, "%s", err.what);
            return 1;
        }
        t.start.path = path_of(t.start.library, library);
        if (count_threads() > 1) {
            gn_log(GN_LOG_WARN,
                   "%s starts threads when it is loaded: its workers load it themselves, which is "
                   "slower",
                   library);
            execl("/proc/self/exe", "gantry-worker", "--late-template", api, t.start.path,
                  mode_text(walls), (char *)NULL);
            gn_log(GN_LOG_ERROR, "cannot start the template again: %s", strerror(errno));
            return 1;
        }
    }
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, NULL);
    t.signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
    if (t.signals < 0) {
        gn_log(GN_LOG_ERROR, "cannot watch for workers' ends: %s", strerror(errno));
        return 1;
    }
    int rc = gn_wall_forker_init(&t.start.forker, walls);
    if (rc) {
        gn_log(GN_LOG_ERROR, "cannot make workers: %s", strerror(-rc));
        return 1;
    }
    gn_spin_pause_ps(); /* measured here, each worker inherits it: saves 0.1 ms of processor time a
                           start */
    gn_frame_reader_init(&t.reader, socket);
    return serve(&t);
}
