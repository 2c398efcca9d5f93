/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_TESTS_KHRONOS_LIKE_H
#define GN_TESTS_KHRONOS_LIKE_H

#include "icd_slots.h"

#include <stdbool.h>
#include <stdint.h>

/* What every handle points to; docs/icd.md, "The objects". */
struct icd_object {
    cl_icd_dispatch *dispatch;
    void *dispatch_data;
};

/* One platform as a loader holds it. `managed` is the loader's own table: used when the platform
 * has the tag of 2.0. */
struct vendor {
    cl_platform_id platform;
    cl_icd_dispatch managed;
    bool icd2;
    bool
        own; /* the library under test is Gantry's: all of docs/icd.md holds, not only cl_khr_icd */
};

/* The table that a loader jumps through for this handle. */
const cl_icd_dispatch *table_for(const struct vendor *v, const void *handle);

/* Fails the run with a sentence. Nothing is cleaned up: the process ends. */
void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Checks that a handle is an object of this vendor that a loader can dispatch on. Returns its
 * table. */
const cl_icd_dispatch *check_object(const struct vendor *v, const void *handle, const char *what);

/* A small program, every call through table_for(), every handle that it gets to see checked. */
void run_program(const struct vendor *v);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail("%s:%d: %s does not hold", __FILE__, __LINE__, #condition);                       \
    } while (0)

#endif
