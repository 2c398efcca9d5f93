/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the files of this installation from the location of `gantry` itself: PREFIX/bin/gantry has
 * its ICD file in PREFIX/etc/OpenCL/vendors. If that file does not exist and PREFIX ends in /usr,
 * the directory is etc/OpenCL/vendors beside usr.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/opencl/icd_file.h"
#include "client/client.h"

#define ICD_FILE "gantry.icd"

/*
 * Whether the directory holds another vendor's ICD file, which would let programs see that driver
 * beside Gantry.
 */
static bool shared(const char *directory)
{
    bool others = false;
    DIR *dir = opendir(directory);
    if (!dir)
        return false;
    for (const struct dirent *e; (e = readdir(dir));)
        others = others || (gn_icd_is_name(e->d_name) && strcmp(e->d_name, ICD_FILE) != 0);
    closedir(dir);
    return others;
}

/*
 * The parent directory of the directory that holds the executable: /PREFIX/bin/gantry becomes
 * /PREFIX.
 */
static int own_prefix(char *ret, size_t n, struct gn_error *err)
{
    ssize_t len = readlink("/proc/self/exe", ret, n - 1);
    if (len < 0)
        return gn_fail(err, errno, NULL, "cannot read /proc/self/exe: %s", strerror(errno));
    ret[len] = 0;
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(ret, '/');
        if (slash)
            *slash = 0;
    }
    return 0;
}

/* Names the directory and the ICD file. The prefix is short enough for both to fit. */
static void name_directory(const char *prefix, char *ret_directory, char *ret_icd)
{
    static const char below[] = "/etc/OpenCL/vendors";
    snprintf(ret_directory, GN_PLACE_BYTES, "%.4031s%s", prefix, below);
    snprintf(ret_icd, GN_PLACE_BYTES, "%.4031s%s/" ICD_FILE, prefix, below);
}

const char *gn_client_next_to_library(const struct gn_client_places *places, const char *file,
                                      char *ret)
{
    const char *slash = strrchr(places->library, '/');
    const int n = slash ? (int)(slash - places->library) + 1 : 0;
    snprintf(ret, GN_PLACE_BYTES, "%.*s%s", n, places->library, file);
    return ret;
}

int gn_client_find_places(struct gn_client_places *ret, struct gn_error *err)
{
    static const char fix[] = "install Gantry as a whole (make install, or make stage)";
    char prefix[GN_PLACE_BYTES - 64], directory[GN_PLACE_BYTES];
    int rc = own_prefix(prefix, sizeof prefix, err);
    if (rc)
        return rc;
    snprintf(ret->prefix, sizeof ret->prefix, "%s", prefix);
    size_t n = strlen(prefix);
    name_directory(prefix, directory, ret->icd);
    if (access(ret->icd, F_OK) < 0 && n >= 4 && strcmp(prefix + n - 4, "/usr") == 0) {
        prefix[n - 4] = 0;
        name_directory(prefix, directory, ret->icd);
    }
    if (access(ret->icd, R_OK) < 0)
        return gn_fail(err, errno, fix, "cannot read Gantry's ICD file %.200s: %s", ret->icd,
                       strerror(errno));
    if (!gn_icd_read(ret->icd, ret->library, sizeof ret->library))
        return gn_fail(err, EINVAL, fix, "Gantry's ICD file %.300s names no library", ret->icd);
    if (access(ret->library, R_OK) < 0)
        return gn_fail(err, errno, fix, "cannot read the library %.150s that %.150s names: %s",
                       ret->library, ret->icd, strerror(errno));
    snprintf(ret->vendors, sizeof ret->vendors, "%s", shared(directory) ? ret->icd : directory);
    return 0;
}
