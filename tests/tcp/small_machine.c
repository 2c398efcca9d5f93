/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into gantryd and its workers: a machine of 2 GiB. */
#include <dlfcn.h>
#include <unistd.h>

__attribute__((visibility("default"))) long sysconf(int name)
{
    static long (*real)(int);
    if (!real)
        *(void **)(void *)&real = dlsym(RTLD_NEXT, "sysconf");
    return name == _SC_PHYS_PAGES ? (2L << 30) / real(_SC_PAGESIZE) : real(name);
}
