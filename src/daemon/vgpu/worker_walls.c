/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walls of workers. At gantryd's start a process tries which walls this machine supports; each
 * worker then gets its user, the folder of its kernel cache, and a bound on its memory. gantryd's
 * main thread.
 */
#include "daemon/vgpu/worker_walls.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/api_info.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/vgpu/spawn.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

#define TRY_TIMEOUT_MS 10000
#define NOBODY         65534u
/* A driver and its compiler need this beside the program's own memory; threads' stacks count whole.
 */
#define DRIVER_BYTES (UINT64_C(3) << 30)
#define STACK_BYTES  (UINT64_C(16) << 20)
/* For a worker's files in memory: new kernels of its cache, temporary files, records. */
#define TOGETHER_BYTES (UINT64_C(1) << 30)
#define GROUPS_NAME    "memory of all processes" /* of the wall that gantryd builds */

_Static_assert(GN_WALL_MAX_GROUPS == GN_WORKER_MAX_GROUPS, "groups go over the wire as they are");

/* ---- at start */

static int try(const struct gn_machine *m, enum gn_wall_mode mode, struct gn_worker_walls *ret,
               struct gn_error *err)
{
    char number[2] = {(char)('0' + mode), 0};
    char *const argv[] = {(char[]){"gantry-worker"}, (char[]){"--walls"}, number, NULL};
    struct gn_frame_reader reader;
    struct gn_link_error e;
    struct gn_frame f;
    int socket;
    pid_t pid;
    int rc = gn_worker_spawn(m->worker, argv, mode, &socket, &pid, err);
    if (rc)
        return rc;
    gn_frame_reader_init(&reader, socket);
    rc = gn_frame_wait(&reader, TRY_TIMEOUT_MS, &f);
    if (rc < 0)
        rc =
            gn_fail(err, -rc, NULL, "cannot learn which walls this machine has: %s", strerror(-rc));
    else if (f.op == GN_LINK_ERROR && gn_frame_payload(&f, &e, sizeof e) &&
             gn_frame_string_ok(e.what, sizeof e.what) && gn_frame_string_ok(e.fix, sizeof e.fix))
        rc = gn_fail(err, EPERM, e.fix, "%s", e.what);
    else if (f.op != GN_WORKER_WALLS || !gn_frame_payload(&f, ret, sizeof *ret))
        rc = gn_fail(err, EPROTO, NULL, "cannot learn which walls this machine has");
    else
        rc = 0;
    gn_frame_reader_fini(&reader);
    close(socket);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    return rc;
}

/* Workers of the superuser's programs run as another user. */
static void choose_other_user(struct gn_walls *w)
{
    const struct passwd *p = getpwnam("gantry");
    static const char *const nodes[] = {"/dev/dri/renderD128", "/dev/dri/card0", "/dev/kfd",
                                        "/dev/nvidia0"};
    w->uid = p && p->pw_uid ? p->pw_uid : NOBODY;
    w->gid = p && p->pw_uid ? p->pw_gid : NOBODY;
    /* The superuser may open every device; the user in its place has to be in the devices' groups.
     */
    for (size_t i = 0; i < GN_ARRAY_SIZE(nodes); i++) {
        struct stat st;
        if (stat(nodes[i], &st) == 0 && st.st_gid && w->n_groups < GN_WORKER_MAX_GROUPS)
            w->groups[w->n_groups++] = st.st_gid;
    }
}

/* Where gantryd's environment tells drivers to keep what they compile; NULL: nowhere. */
static const char *drivers_cache(void)
{
    for (int i = 0; gn_api_infos[i]; i++)
        for (const char *const *name = gn_api_infos[i]->cache_variables; *name; name++) {
            const char *path = getenv(*name);
            if (path && *path == '/')
                return path;
        }
    return NULL;
}

static void choose_cache(struct gn_walls *w, const char *configured)
{
    const char *own = drivers_cache(), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (configured && *configured)
        snprintf(w->cache, sizeof w->cache, "%s", configured);
    else if (own)
        snprintf(w->cache, sizeof w->cache, "%s", own);
    else if (geteuid() == 0)
        snprintf(w->cache, sizeof w->cache, "/var/cache/gantry");
    else if (xdg && *xdg == '/')
        snprintf(w->cache, sizeof w->cache, "%s/gantry", xdg);
    else if (home && *home == '/')
        snprintf(w->cache, sizeof w->cache, "%s/.cache/gantry", home);
}

/* To move another user's limits takes CAP_SYS_RESOURCE, which root in many containers lacks. */
static bool may_move_limits(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (geteuid() != 0)
        return true;
    return syscall(SYS_capget, &head, data) == 0 && (data[0].effective >> CAP_SYS_RESOURCE & 1);
}

static void add_name(char *names, size_t size, const char *name)
{
    const size_t n = strlen(names);
    snprintf(names + n, size - n, "%s%s", n ? ", " : "", name);
}

int gn_walls_init(struct gn_walls *w, const struct gn_machine *m, enum gn_wall_mode mode,
                  const char *cache, struct gn_error *err)
{
    memset(w, 0, sizeof *w);
    w->mode = mode;
    w->follows_leases = may_move_limits();
    choose_other_user(w);
    choose_cache(w, cache);
    int rc = try(m, mode, &w->can, err);
    if (rc)
        return rc;
    gn_wall_names(w->can.have, w->have_names, sizeof w->have_names);
    gn_wall_names(GN_WALL_ALL & ~w->can.have, w->missing_names, sizeof w->missing_names);
    if (mode != GN_WALL_NONE)
        gn_memory_groups_init(&w->memory_groups, "/proc/self/cgroup", "/sys/fs/cgroup");
    if (mode == GN_WALL_NONE)
        gn_log(GN_LOG_WARN, "walls = none: programs' kernels may do all that their user may");
    else if (w->missing_names[0])
        gn_log(GN_LOG_WARN, "workers go without these walls, which this machine lacks: %s",
               w->missing_names);
    /* Few gantryds may make cgroups, and each process is bounded without: `gantry doctor` says so,
     * and no warning. */
    if (w->memory_groups.have)
        add_name(w->have_names, sizeof w->have_names, GROUPS_NAME);
    else
        add_name(w->missing_names, sizeof w->missing_names, GROUPS_NAME);
    return 0;
}

void gn_walls_fini(struct gn_walls *w)
{
    gn_memory_groups_fini(&w->memory_groups);
}

static const char *const modes[] = {"none", "available", "required"};

const char *gn_walls_mode_name(enum gn_wall_mode mode)
{
    return modes[mode];
}

int gn_walls_mode_parse(const char *name, enum gn_wall_mode *ret)
{
    for (size_t i = 0; i < GN_ARRAY_SIZE(modes); i++)
        if (strcmp(name, modes[i]) == 0) {
            *ret = (enum gn_wall_mode)i;
            return 0;
        }
    return -EINVAL;
}

/* ---- for each worker */

static int make_folder(int at, const char *name, mode_t mode)
{
    if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
        return -errno;
    int fd = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Its parents are made, as mkdir -p does. */
int gn_walls_open_cache_root(const struct gn_walls *w)
{
    const char *path = w->cache;
    char part[1024];
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (const char *at = path + strspn(path, "/"); fd >= 0 && *at;) {
        size_t n = strcspn(at, "/");
        if (n >= sizeof part) {
            close(fd);
            return -ENAMETOOLONG;
        }
        memcpy(part, at, n);
        part[n] = 0;
        int next = make_folder(fd, part, 0711);
        close(fd);
        fd = next;
        at += n;
        at += strspn(at, "/");
    }
    return fd;
}

/* The user that a worker runs as: the peer's, or another one in the superuser's place. */
static void choose_user(const struct gn_walls *w, int peer, struct gn_worker_boot_wall *ret)
{
    struct ucred cred;
    socklen_t n = sizeof cred;
    if (geteuid() != 0)
        return;
    ret->change_user = 1;
    ret->uid = w->uid;
    ret->gid = w->gid;
    ret->n_groups = w->n_groups;
    memcpy(ret->groups, w->groups, sizeof w->groups);
    if (peer < 0 || getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
        return;
    if (cred.uid == 0) {
        /* The superuser can read its own files. The user in its place reaches the cache only where
         * that can be mounted for it. */
        if (!(w->can.have & GN_WALL_SCRATCH))
            ret->change_user = 0;
        return;
    }
    ret->uid = cred.uid;
    ret->gid = cred.gid;
    n = sizeof ret->groups;
    ret->n_groups = getsockopt(peer, SOL_SOCKET, SO_PEERGROUPS, ret->groups, &n) == 0
                        ? n / sizeof ret->groups[0]
                        : 0;
}

/* A GPU's driver maps memory that is not this machine's. */
static bool has_host_memory(const struct gn_platform_record *p)
{
    for (uint32_t i = 0; i < p->n_devices; i++)
        if (!(p->devices[i].facts.kind & GN_DEVICE_CPU))
            return false;
    return true;
}

static uint64_t bound_on_memory(uint64_t bytes)
{
    const long cpus = sysconf(_SC_NPROCESSORS_CONF);
    const uint64_t besides = DRIVER_BYTES + STACK_BYTES * (uint64_t)(cpus > 0 ? cpus : 1);
    return gn_add_u64(bytes, besides, &bytes) ? bytes : RLIM_INFINITY;
}

/* At its start nothing is leased. A bound that cannot be moved later has to allow for the whole
 * limit. */
static uint64_t first_bound(const struct gn_walls *w, const struct gn_platform_record *p)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; !w->follows_leases && i < p->n_devices; i++)
        if (p->devices[i].facts.memory_bytes > bytes)
            bytes = p->devices[i].facts.memory_bytes;
    return bound_on_memory(bytes);
}

void gn_walls_follow_lease(const struct gn_walls *w, const struct gn_platform_record *platform,
                           int pidfd, pid_t worker, uint64_t leased_bytes)
{
    struct pollfd over = {.fd = pidfd, .events = POLLIN};
    struct rlimit limit;
    if (w->mode == GN_WALL_NONE || !w->follows_leases || pidfd < 0 || !has_host_memory(platform))
        return;
    /* The process number is the worker's as long as its pidfd does not report its end. */
    if (poll(&over, 1, 0) != 0 || prlimit(worker, RLIMIT_DATA, NULL, &limit) < 0)
        return;
    limit.rlim_cur = bound_on_memory(leased_bytes);
    if (limit.rlim_cur > limit.rlim_max)
        limit.rlim_cur = limit.rlim_max;
    if (prlimit(worker, RLIMIT_DATA, &limit, NULL) < 0)
        gn_debug("the bound on worker %d's memory stays: %s", (int)worker, strerror(errno));
}

uint64_t gn_walls_bound_together(const struct gn_walls *w,
                                 const struct gn_platform_record *platform, bool has_area,
                                 uint64_t limit_bytes, uint64_t leased_bytes)
{
    const uint64_t quarter =
        (uint64_t)sysconf(_SC_PHYS_PAGES) / 4 * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t area = quarter, ret;
    if (w->mode == GN_WALL_NONE || !has_host_memory(platform))
        return 0;
    /* The data area of such a worker holds all buffers, and a migration makes copies of them. */
    if (has_area && !gn_mul_u64(limit_bytes ? limit_bytes : quarter, 2, &area))
        return 0;
    return gn_add_u64(bound_on_memory(leased_bytes), TOGETHER_BYTES, &ret) &&
                   gn_add_u64(ret, leased_bytes, &ret) && gn_add_u64(ret, area, &ret)
               ? ret
               : 0;
}

void gn_walls_of(const struct gn_walls *w, const struct gn_platform_record *platform, int peer,
                 struct gn_worker_boot_wall *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->mode = w->mode;
    ret->data_bytes =
        w->mode == GN_WALL_NONE || !has_host_memory(platform) ? 0 : first_bound(w, platform);
    choose_user(w, peer, ret);
}
