/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry doctor`: looks for ways around Gantry, that is, ICD files through which an OpenCL loader
 * gives a program a vendor's driver directly: the system's, and those that the environment names.
 * Main thread; loads nothing.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/api_info.h"
#include "backend/opencl/icd_file.h"
#include "ctl/doctor.h"
#include "ctl/opencl/cl_ctl.h"

#define SHOWN 3 /* number of drivers named in the text output */

static void add(json_t *drivers, const char *path)
{
    size_t i;
    json_t *known;
    json_array_foreach(drivers, i, known)
    {
        if (strcmp(json_string_value(known), path) == 0)
            return;
    }
    json_array_append_new(drivers, json_string(path));
}

static void add_file(json_t *drivers, const char *path)
{
    char library[4096];
    if (gn_icd_read(path, library, sizeof library) && !gn_api_is_front_end(library))
        add(drivers, path);
}

/*
 * Adds the drivers behind `path`, which is a directory of ICD files, an ICD file or a library; ""
 * adds nothing.
 */
static void add_vendors(json_t *drivers, const char *path)
{
    char file[4096];
    struct stat st;
    DIR *dir = *path && stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? opendir(path) : NULL;
    if (!dir && gn_icd_is_name(path))
        add_file(drivers, path);
    else if (!dir && *path && !gn_api_is_front_end(path))
        add(drivers, path);
    if (!dir)
        return;
    for (const struct dirent *e; (e = readdir(dir));)
        if (gn_icd_is_name(e->d_name) &&
            (size_t)snprintf(file, sizeof file, "%s/%s", path, e->d_name) < sizeof file)
            add_file(drivers, file);
    closedir(dir);
}

static void name_some(const json_t *drivers, char *ret, size_t n)
{
    const size_t all = json_array_size(drivers), shown = all > SHOWN ? SHOWN : all;
    size_t at = 0;
    ret[0] = 0;
    for (size_t i = 0; i < shown && at < n; i++)
        at += (size_t)snprintf(ret + at, n - at, "%s%.200s", i ? ", " : "",
                               json_string_value(json_array_get(drivers, i)));
    if (all > shown && at < n)
        snprintf(ret + at, n - at, " and %zu more", all - shown);
}

void gn_cl_check_bypass(struct gn_doctor *d)
{
    const char *named = getenv("OCL_ICD_VENDORS");
    json_t *drivers = json_array(), *finding;
    char names[800];
    add_vendors(drivers, gn_cl_system_vendors());
    if (named)
        add_vendors(drivers, named);
    name_some(drivers, names, sizeof names);
    const size_t n = json_array_size(drivers);
    if (n)
        finding = gn_doctor_add(
            d, "bypass", d->strict ? GN_DOCTOR_FAIL : GN_DOCTOR_WARN,
            "start programs with gantry run, or move these files to a directory that only gantryd "
            "uses (its OCL_ICD_VENDORS)",
            "programs can load %zu driver%s without Gantry unless started with gantry run: %s", n,
            n == 1 ? "" : "s", names);
    else
        finding = gn_doctor_add(d, "bypass", GN_DOCTOR_OK, NULL,
                                "no ICD file lets programs load a driver without Gantry");
    json_object_set_new(finding, "drivers", drivers);
}
