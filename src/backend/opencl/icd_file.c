/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the .icd files of OpenCL loaders (icd_file.h). Called by probes, gantryd and gantry, on any
 * thread. Loads no library.
 */
#include "backend/opencl/icd_file.h"

#include <stdio.h>
#include <string.h>

bool gn_icd_is_name(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".icd") == 0;
}

bool gn_icd_read(const char *path, char *ret, size_t n)
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
