/* SPDX-License-Identifier: Apache-2.0 */
/* What `gantry doctor` finds of the machine: drivers, what the kernel offers, processors. */
#include <dirent.h>
#include <dlfcn.h>
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

#include "backend/api_info.h"
#include "backend/opencl/icd_file.h"
#include "ctl/doctor.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

#define SYSTEM_VENDORS "/etc/OpenCL/vendors"

static const char driver_fix[] = "install an OpenCL driver, for instance pocl-opencl-icd";

struct loading {
    bool ok;
    char why[512];
};

static void load(void *arg, void *result)
{
    struct loading *l = result;
    l->ok = dlopen(arg, RTLD_LAZY | RTLD_LOCAL) != NULL;
    if (!l->ok) {
        const char *why = dlerror();
        snprintf(l->why, sizeof l->why, "%s", why ? why : "");
    }
}

/* False: it cannot be loaded, which is told. */
static bool is_loadable(struct gn_doctor *d, const char *library)
{
    char path[GN_PLACE_BYTES];
    struct loading l;
    snprintf(path, sizeof path, "%s", library);
    if (!gn_doctor_try(load, path, &l, sizeof l))
        gn_doctor_add(d, "driver", GN_DOCTOR_WARN, "reinstall that driver",
                      "%s crashes or hangs when it is loaded", library);
    else if (!l.ok)
        gn_doctor_add(d, "driver", GN_DOCTOR_WARN,
                      "install that driver again, or remove its .icd file",
                      "%s cannot be loaded: %s", library, l.why);
    else
        return true;
    return false;
}

/* Those that gantryd has found: it may have been started with another OCL_ICD_VENDORS than this. */
static void tell_gantryds_drivers(struct gn_doctor *d, const json_t *drivers)
{
    size_t i;
    json_t *o;
    json_array_foreach(drivers, i, o)
    {
        const char *library = json_string_value(json_object_get(o, "library"));
        int n = (int)json_integer_value(json_object_get(o, "devices"));
        if (n)
            gn_doctor_add(d, "driver", GN_DOCTOR_OK, NULL, "%s serves %d device%s",
                          library ? library : "?", n, n == 1 ? "" : "s");
        else if (!library || is_loadable(d, library))
            gn_doctor_add(
                d, "driver", GN_DOCTOR_OK, NULL,
                "%s serves no device: it has none, none is selected, or gantryd's log says why not",
                library ? library : "?");
    }
}

static void try_driver(struct gn_doctor *d, const char *library)
{
    if (is_loadable(d, library))
        gn_doctor_add(d, "driver", GN_DOCTOR_OK, NULL, "%s is installed", library);
}

static int try_directory(struct gn_doctor *d, const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;
    if (!dir)
        return 0;
    for (const struct dirent *e; (e = readdir(dir));) {
        char file[4096], library[4096];
        if (!gn_icd_is_name(e->d_name) ||
            (size_t)snprintf(file, sizeof file, "%s/%s", path, e->d_name) >= sizeof file ||
            !gn_icd_read(file, library, sizeof library))
            continue;
        if (gn_api_is_front_end(library))
            continue;
        try_driver(d, library);
        n++;
    }
    closedir(dir);
    return n;
}

const char *gn_doctor_system_vendors(void)
{
    const char *path = getenv("OPENCL_VENDOR_PATH");
    return path && *path ? path : SYSTEM_VENDORS;
}

void gn_doctor_check_drivers(struct gn_doctor *d)
{
    const json_t *drivers = json_object_get(json_object_get(d->gantryd, "gantryd"), "drivers");
    const char *path = gn_doctor_system_vendors();
    if (json_array_size(drivers))
        tell_gantryds_drivers(d, drivers);
    else if (try_directory(d, path) == 0)
        gn_doctor_add(d, "driver", GN_DOCTOR_FAIL, driver_fix, "%s names no driver", path);
}

static void check_sealing(struct gn_doctor *d)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    int fd = memfd_create("gantry-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, 4096) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0)
        gn_doctor_add(
            d, "memory", GN_DOCTOR_FAIL, "Gantry needs Linux 3.17 and memfd_create allowed",
            "memory that two processes share cannot be made and sealed: %s", strerror(errno));
    else
        gn_doctor_add(d, "memory", GN_DOCTOR_OK, NULL,
                      "memory that two processes share can be made and sealed");
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
                      "the end of a process cannot be watched: %s", strerror(errno));
    else if (!names_peers())
        gn_doctor_add(
            d, "processes", GN_DOCTOR_WARN, "use Linux 6.5 or newer for passthrough",
            "the end of a process can be watched, but the kernel does not name a socket's peer: "
            "passthrough is refused");
    else
        gn_doctor_add(d, "processes", GN_DOCTOR_OK, NULL, "the end of a process can be watched");
    if (fd >= 0)
        close(fd);
    /* With nothing to wait for, a kernel that knows the call says EINVAL. */
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
                      "there is one processor: program and worker take turns and never spin");
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
