/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry doctor`: checks the installed OpenCL drivers. Main thread; loads drivers in child
 * processes only.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/opencl/cl_info.h"
#include "backend/opencl/icd_file.h"
#include "client/client.h"
#include "ctl/doctor.h"
#include "ctl/opencl/cl_ctl.h"

#define SYSTEM_VENDORS "/etc/OpenCL/vendors"

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

/* Tries to load a driver. False: it cannot be loaded, and a finding says so. */
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

/*
 * Reports the drivers that gantryd found: it may run with another OCL_ICD_VENDORS than this
 * process.
 */
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
                "%s serves no device: it has none, none is selected, or it failed (gantryd's log)",
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

const char *gn_cl_system_vendors(void)
{
    const char *path = getenv("OPENCL_VENDOR_PATH");
    return path && *path ? path : SYSTEM_VENDORS;
}

void gn_cl_check_drivers(struct gn_doctor *d)
{
    const json_t *drivers = json_object_get(json_object_get(d->gantryd, "gantryd"), "drivers");
    const char *path = gn_cl_system_vendors();
    if (json_array_size(drivers))
        tell_gantryds_drivers(d, drivers);
    else if (try_directory(d, path) == 0)
        gn_doctor_add(d, "driver", GN_DOCTOR_FAIL, gn_cl_info.install_hint, "%s names no driver",
                      path);
}
