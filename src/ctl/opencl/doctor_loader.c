/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry doctor`: checks the OpenCL loader: its identity, and whether it finds Gantry. Everything
 * runs in child processes, which load the same libraries as a program. The few OpenCL types that
 * this needs are declared here, because this directory does not use the OpenCL headers.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl/doctor.h"
#include "ctl/opencl/cl_ctl.h"
#include "link/address.h"

#define LOADER         "libOpenCL.so.1"
#define ICD_SUFFIX     0x0920 /* CL_PLATFORM_ICD_SUFFIX_KHR */
#define LOADER_VERSION 2      /* a query of clGetICDLoaderInfoOCLICD, which both loaders have */
#define LOADER_NAME    3
#define LOADER_VENDOR  4
#define MAX_PLATFORMS  64

typedef int32_t (*get_platforms_fn)(uint32_t, void **, uint32_t *);
typedef int32_t (*get_platform_info_fn)(void *, uint32_t, size_t, void *, size_t *);
typedef void *(*get_function_fn)(const char *);
typedef int32_t (*get_loader_info_fn)(int, size_t, void *, size_t *);

struct look {
    bool loaded;
    char why[256]; /* why it was not loaded */
    char name[64], vendor[64], version[64];
    uint32_t n_platforms, n_gantry;
    char line[512]; /* the line of Gantry's library on stderr, without its "gantry: "; "": none */
    bool gantry_first; /* a program that uses the first platform uses Gantry */
};

struct look_for {
    const char *vendors, *filenames, *connect; /* NULL: leave the variable unchanged */
};

static void set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
}

static void *function(void *loader, const char *name)
{
    return dlsym(loader, name);
}

static void ask_loader(void *loader, struct look *l)
{
    get_function_fn get =
        (get_function_fn)(uintptr_t)function(loader, "clGetExtensionFunctionAddress");
    get_loader_info_fn info =
        get ? (get_loader_info_fn)(uintptr_t)get("clGetICDLoaderInfoOCLICD") : NULL;
    if (!info)
        return;
    (void)info(LOADER_NAME, sizeof l->name - 1, l->name, NULL);
    (void)info(LOADER_VENDOR, sizeof l->vendor - 1, l->vendor, NULL);
    (void)info(LOADER_VERSION, sizeof l->version - 1, l->version, NULL);
}

/*
 * Redirects this child's stderr to a memory file, which unlike a pipe cannot fill up. Returns its
 * descriptor; -1: failed.
 */
static int capture_stderr(void)
{
    int fd = memfd_create("gantry-doctor", MFD_CLOEXEC);
    if (fd >= 0)
        (void)dup2(fd, STDERR_FILENO);
    setenv("GANTRY_LOG", "warn", 1);
    return fd;
}

/*
 * Finds the first line of Gantry's library, which lines of drivers and of the loader may precede.
 */
static void find_line(int fd, struct look *l)
{
    static const char begin[] = "\ngantry: ";
    char text[4096] = "\n";
    const ssize_t n = fd >= 0 ? pread(fd, text + 1, sizeof text - 2, 0) : 0;
    if (n <= 0)
        return;
    text[1 + n] = 0;
    const char *line = strstr(text, begin);
    if (line) {
        line += sizeof begin - 1;
        snprintf(l->line, sizeof l->line, "%.*s", (int)strcspn(line, "\n"), line);
    }
}

static void look(void *arg, void *result)
{
    const struct look_for *f = arg;
    struct look *l = result;
    const int written = capture_stderr();
    void *platforms[MAX_PLATFORMS];
    set("OCL_ICD_VENDORS", f->vendors);
    set("OCL_ICD_FILENAMES", f->filenames);
    set("GANTRY_CONNECT", f->connect);
    set("OCL_ICD_PLATFORM_SORT", "none"); /* sorting would initialise the devices of every driver */
    void *loader = dlopen(LOADER, RTLD_NOW | RTLD_LOCAL);
    l->loaded = loader != NULL;
    if (!loader) {
        const char *why = dlerror();
        snprintf(l->why, sizeof l->why, "%s", why ? why : "");
        return;
    }
    ask_loader(loader, l);
    get_platforms_fn get = (get_platforms_fn)(uintptr_t)function(loader, "clGetPlatformIDs");
    get_platform_info_fn info =
        (get_platform_info_fn)(uintptr_t)function(loader, "clGetPlatformInfo");
    if (!get || !info || get(MAX_PLATFORMS, platforms, &l->n_platforms) != 0)
        l->n_platforms = 0;
    for (uint32_t i = 0; i < l->n_platforms && i < MAX_PLATFORMS; i++) {
        char suffix[64] = "";
        if (info(platforms[i], ICD_SUFFIX, sizeof suffix - 1, suffix, NULL) == 0 &&
            strcmp(suffix, "GANTRY") == 0) {
            l->n_gantry++;
            l->gantry_first |= i == 0;
        }
    }
    find_line(written, l);
}

static bool tell_loader(struct gn_doctor *d, const struct look *l)
{
    if (!l->loaded) {
        gn_doctor_add(d, "loader", GN_DOCTOR_FAIL, "install ocl-icd-libopencl1",
                      "the OpenCL loader is not installed: %s", l->why);
        return false;
    }
    const char *kind = strstr(l->vendor, "Khronos")   ? "Khronos's loader"
                       : strstr(l->vendor, "OCL Icd") ? "ocl-icd"
                                                      : "an unknown loader";
    gn_doctor_add(d, "loader", GN_DOCTOR_OK, NULL, LOADER " is %s%s%s", kind,
                  l->version[0] ? " " : "", l->version);
    return true;
}

/*
 * Whether the line reports a limit on vGPUs, which is no fault of the installation. Gantry's
 * library was loaded but has no vGPU for the program; its line on stderr holds the reason and,
 * after "; ", the advice. gantryd begins its advice on every such limit with "end some".
 */
static bool is_limit(const char *line)
{
    return strstr(line, "; end some ") != NULL;
}

static void tell_line(struct gn_doctor *d, const char *check, const char *line)
{
    const char *fix = strstr(line, "; ");
    const int n = fix ? (int)(fix - line) : (int)strlen(line);
    gn_doctor_add(d, check, is_limit(line) ? GN_DOCTOR_WARN : GN_DOCTOR_FAIL,
                  fix ? fix + 2 : "see gantryd's log", "a program gets no vGPU now: %.*s", n, line);
}

/* Checks the view of a program started by `gantry run`. */
static void check_gantry_run(struct gn_doctor *d, const struct look *l)
{
    static const char check[] = "gantry run";
    if (l->n_gantry && l->n_gantry == l->n_platforms)
        gn_doctor_add(d, check, GN_DOCTOR_OK, NULL, "programs see %u platform%s, all of Gantry",
                      l->n_gantry, l->n_gantry == 1 ? "" : "s");
    else if (l->n_gantry)
        gn_doctor_add(d, check, GN_DOCTOR_WARN, "use a loader that supports OCL_ICD_VENDORS",
                      "programs see %u platforms, but only %u are Gantry's", l->n_platforms,
                      l->n_gantry);
    else if (l->line[0])
        tell_line(d, check, l->line);
    else
        gn_doctor_add(d, check, GN_DOCTOR_FAIL, "try gantry run -- clinfo -l",
                      "the loader does not find Gantry");
}

/* Checks the view of a program started from this shell. */
static void check_environment(struct gn_doctor *d)
{
    static const char check[] = "environment";
    struct look_for here = {NULL, NULL, NULL};
    struct look l;
    if (!gn_doctor_try(look, &here, &l, sizeof l) || !l.loaded)
        gn_doctor_add(d, check, GN_DOCTOR_WARN, "see the drivers below",
                      "a program started from here crashes or hangs while it loads the drivers");
    else if (l.n_gantry && l.n_gantry < l.n_platforms)
        gn_doctor_add(
            d, check, GN_DOCTOR_WARN,
            "start programs with gantry run, or set OCL_ICD_VENDORS to Gantry's ICD file only",
            "programs started from here see Gantry, and %u platform%s without it%s",
            l.n_platforms - l.n_gantry, l.n_platforms - l.n_gantry == 1 ? "" : "s",
            l.gantry_first
                ? ""
                : ", one of them first: programs that use the first platform bypass Gantry");
    else if (l.n_gantry)
        gn_doctor_add(d, check, GN_DOCTOR_OK, NULL,
                      "programs started from here use Gantry without gantry run");
    else if (d->daemon_answers && is_limit(l.line))
        tell_line(d, check, l.line);
    else if (d->daemon_refuses && l.n_platforms)
        gn_doctor_add(d, check, GN_DOCTOR_WARN, "see the finding on the daemon above",
                      "programs started from here see %u platform%s, none of them Gantry's",
                      l.n_platforms, l.n_platforms == 1 ? "" : "s");
    else if (!d->daemon_refuses)
        gn_doctor_add(d, check, GN_DOCTOR_OK, NULL,
                      "programs started from here use Gantry only with gantry run "
                      "(or with OCL_ICD_VENDORS=%.300s and GANTRY_CONNECT)",
                      d->places.vendors);
}

void gn_cl_check_loader(struct gn_doctor *d)
{
    struct gn_error err;
    struct gn_address a;
    char address[GN_ADDRESS_TEXT_BYTES];
    struct look_for run = {NULL, NULL, NULL};
    struct look l;
    /* If gantryd did not answer, do not wait for it again. */
    if (!d->daemon_answers)
        run.connect = "unix:/nonexistent";
    else if (gn_address_resolve(d->connect, &a, &err) == 0) {
        gn_address_print(&a, address);
        run.connect = address;
    }
    /* Load only Gantry's driver; if the installation was not found, load none. */
    run.vendors = d->places_known ? d->places.vendors : "/nonexistent";
    run.filenames = d->places_known ? d->places.library : "";
    if (!gn_doctor_try(look, &run, &l, sizeof l)) {
        gn_doctor_add(d, "loader", GN_DOCTOR_FAIL, "reinstall ocl-icd-libopencl1 and Gantry",
                      "a program crashes or hangs while the OpenCL loader loads Gantry");
        return;
    }
    if (!tell_loader(d, &l) || !(d->daemon_answers || d->daemon_refuses) || !d->places_known)
        return; /* without these it cannot find Gantry, as an earlier finding says */
    /* gantryd accepts no new programs, so neither check could succeed */
    if (gn_doctor_is_drained(d))
        return;
    if (d->daemon_answers)
        check_gantry_run(d, &l);
    check_environment(d);
}
