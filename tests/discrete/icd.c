/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdiscrete-icd.so, an emulated discrete GPU for tests: an OpenCL driver in front of PoCL, with
 * PoCL's own handles. All objects of PoCL lead to its one dispatch table, so the calls of this
 * library are put into that: a process that loads it has no other PoCL. Calls that are not
 * replaced are PoCL's. docs/testing.md lists the options in $DISCRETE. Loaded by an ICD loader; the
 * state of the device is opened at load, on the loading thread.
 */
#include "discrete.h"
#include "drivers/front_icd.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

const cl_icd_dispatch *driver;

__attribute__((constructor)) static void open_device(void)
{
    dg_options_read();
    dg_state_open();
}

/* The linker makes the table read-only once it is filled. */
static void replace_table(void)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = (uintptr_t)theirs & ~(page - 1);
    const uintptr_t to = ((uintptr_t)theirs + sizeof ours + page - 1) & ~(page - 1);
    if (mprotect((void *)from, to - from, PROT_READ | PROT_WRITE)) {
        fprintf(stderr, "discrete: PoCL's dispatch table cannot be changed\n");
        abort();
    }
    memcpy((void *)(uintptr_t)theirs, &ours, sizeof ours);
}

static void replace_calls(void)
{
    static cl_icd_dispatch original;
    original = *theirs;
    driver = &original;
    dg_replace_devices(&ours);
    dg_replace_objects(&ours);
    dg_replace_images(&ours);
    dg_replace_kernels(&ours);
    dg_replace_commands(&ours);
    dg_replace_transfers(&ours);
    dg_replace_maps(&ours);
    replace_table();
}
