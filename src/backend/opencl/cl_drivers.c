/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the OpenCL drivers of this machine the way the ICD loaders do. Called by the probe only; loads
 * nothing. */
#include "backend/opencl/cl_backend.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SYSTEM_VENDORS "/etc/OpenCL/vendors"

static bool is_icd(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".icd") == 0;
}

/* The library named on an .icd file's first line; false when the file has none. */
static bool read_icd(const char *path, char *ret, size_t n)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool ok = fgets(ret, (int)n, f) != NULL;
    fclose(f);
    if (!ok)
        return false;
    size_t len = strcspn(ret, "\r\n");
    while (len && (ret[len - 1] == ' ' || ret[len - 1] == '\t'))
        len--;
    ret[len] = 0;
    return len > 0;
}

static int icd_filter(const struct dirent *e)
{
    return is_icd(e->d_name);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int list_directory(const char *dir, void (*found)(void *ctx, const char *library), void *ctx, struct gn_error *err)
{
    struct dirent **names;
    int n = scandir(dir, &names, icd_filter, by_name);
    if (n < 0)
        return gn_fail(err, errno, "install an OpenCL driver, or name its directory in OCL_ICD_VENDORS",
                       "cannot read the OpenCL drivers in %s: %s", dir, strerror(errno));
    for (int i = 0; i < n; i++) {
        char path[4096], library[GN_BACKEND_LIBRARY_BYTES];
        if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, names[i]->d_name) < sizeof path && read_icd(path, library, sizeof library))
            found(ctx, library);
        free(names[i]);
    }
    free(names);
    return 0;
}

int gn_cl_list_drivers(void (*found)(void *ctx, const char *library), void *ctx, struct gn_error *err)
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
    if (!is_icd(path)) {
        found(ctx, path);
        return 0;
    }
    char full[4096], library[GN_BACKEND_LIBRARY_BYTES];
    if (!strchr(path, '/') && (size_t)snprintf(full, sizeof full, "%s/%s", system_path, path) < sizeof full &&
        read_icd(full, library, sizeof library)) {
        found(ctx, library);
        return 0;
    }
    if (!read_icd(path, library, sizeof library))
        return gn_fail(err, ENOENT, "correct OCL_ICD_VENDORS", "%s, which OCL_ICD_VENDORS names, names no library", path);
    found(ctx, library);
    return 0;
}
