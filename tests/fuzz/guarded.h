/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_GUARDED_H
#define FUZZ_GUARDED_H

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

/*
 * Zeroed memory that ends where a page that nobody may touch begins, and begins behind another:
 * whoever reads or writes beside it dies there and then. Sanitizers know nothing of what is mapped
 * by hand. `bytes` is best a multiple of 64.
 */
static inline void *guarded_map(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (bytes + page - 1) / page * page;
    char *base =
        mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    FUZZ_CHECK(base != MAP_FAILED);
    FUZZ_CHECK(mprotect(base + page, room, PROT_READ | PROT_WRITE) == 0);
    return base + page + (room - bytes);
}

#endif
