/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the OpenCL drivers of this machine as the ICD loaders do. Called by the probe alone, on its
 * main thread; loads nothing. */
#include "backend/opencl/cl_backend.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/opencl/icd_file.h"

#define SYSTEM_VENDORS "/etc/OpenCL/vendors"

static int icd_filter(const struct dirent *e)
{
    return gn_icd_is_name(e->d_name);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int list_directory(const char *dir, void (*found)(void *ctx, const char *library), void *ctx,
                          struct gn_error *err)
{
    struct dirent **names;
    int n = scandir(dir, &names, icd_filter, by_name);
    if (n < 0)
        return gn_fail(err, errno,
                       "install an OpenCL driver, or name its directory in OCL_ICD_VENDORS",
                       "cannot read the OpenCL drivers in %s: %s", dir, strerror(errno));
    for (int i = 0; i < n; i++) {
        char path[4096], library[GN_BACKEND_LIBRARY_BYTES];
        if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, names[i]->d_name) < sizeof path &&
            gn_icd_read(path, library, sizeof library))
            found(ctx, library);
        free(names[i]);
    }
    free(names);
    return 0;
}

int gn_cl_list_drivers(void (*found)(void *ctx, const char *library), void *ctx,
                       struct gn_error *err)
{
    const char *path = getenv("OCL_ICD_VENDORS");
    const char *system_path = getenv("OPENCL_VENDOR_PATH");
    struct stat st;
    if (!system_path || !*system_path)
        system_path = SYSTEM_VENDORS;
    if (!path || !*path)
        return list_directory(system_path, found, ctx, err);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return list_directory(path, found, ctx, err);
    if (!gn_icd_is_name(path)) {
        found(ctx, path);
        return 0;
    }
    char full[4096], library[GN_BACKEND_LIBRARY_BYTES];
    if (!strchr(path, '/') &&
        (size_t)snprintf(full, sizeof full, "%s/%s", system_path, path) < sizeof full &&
        gn_icd_read(full, library, sizeof library)) {
        found(ctx, library);
        return 0;
    }
    if (!gn_icd_read(path, library, sizeof library))
        return gn_fail(err, ENOENT, "correct OCL_ICD_VENDORS",
                       "%s, which OCL_ICD_VENDORS names, names no library", path);
    found(ctx, library);
    return 0;
}
