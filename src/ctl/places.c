/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where this installation lies, found from where `gantry` itself lies: PREFIX/bin/gantry has its ICD file in
 * PREFIX/etc/OpenCL/vendors, or, with the prefix /usr, in /etc/OpenCL/vendors.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl.h"

#define ICD_FILE "gantry.icd"

bool gn_ctl_is_icd(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".icd") == 0;
}

bool gn_ctl_read_icd(const char *path, char *ret, size_t n)
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

/* Whether somebody else's driver stands there too: programs would see it beside Gantry. */
static bool shared(const char *directory)
{
    bool others = false;
    DIR *dir = opendir(directory);
    if (!dir)
        return false;
    for (const struct dirent *e; (e = readdir(dir));)
        others = others || (gn_ctl_is_icd(e->d_name) && strcmp(e->d_name, ICD_FILE) != 0);
    closedir(dir);
    return others;
}

/* /PREFIX/bin/gantry becomes /PREFIX. */
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

int gn_ctl_find_places(struct gn_ctl_places *ret, struct gn_error *err)
{
    static const char fix[] = "install Gantry as a whole (make install, or make stage)";
    char prefix[sizeof ret->vendors - 64], directory[sizeof ret->vendors];
    int rc = own_prefix(prefix, sizeof prefix, err);
    if (rc)
        return rc;
    snprintf(directory, sizeof directory, "%s/etc/OpenCL/vendors", strcmp(prefix, "/usr") == 0 ? "" : prefix);
    if ((size_t)snprintf(ret->icd, sizeof ret->icd, "%s/" ICD_FILE, directory) >= sizeof ret->icd)
        return gn_fail(err, ENAMETOOLONG, fix, "the path of this installation is too long");
    if (access(ret->icd, R_OK) < 0)
        return gn_fail(err, errno, fix, "cannot read Gantry's ICD file %.200s: %s", ret->icd,
                       strerror(errno));
    if (!gn_ctl_read_icd(ret->icd, ret->library, sizeof ret->library))
        return gn_fail(err, EINVAL, fix, "Gantry's ICD file %.300s names no library", ret->icd);
    if (access(ret->library, R_OK) < 0)
        return gn_fail(err, errno, fix, "cannot read the library %.150s that %.150s names: %s", ret->library,
                       ret->icd, strerror(errno));
    snprintf(ret->vendors, sizeof ret->vendors, "%s", shared(directory) ? ret->icd : directory);
    return 0;
}
