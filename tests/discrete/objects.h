/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_TEST_DISCRETE_OBJECTS_H
#define GN_TEST_DISCRETE_OBJECTS_H

/* How memory objects of the emulated device are made: for objects.c and images.c. */
#include "discrete.h"

/* Charged unless memory is lazy. NULL: *result says why. */
struct dg_memory *dg_memory_create(size_t bytes, cl_int *result);
void dg_memory_destroy(struct dg_memory *m);
/* Enters PoCL's object with memory of its own, which the program has asked for with `flags`. */
cl_mem dg_object_enter(cl_mem handle, struct dg_memory *m, cl_mem_flags flags, cl_int *result);
/* Enters PoCL's object that is a part of another one, if that is known here. */
cl_mem dg_object_enter_part(cl_mem handle, cl_mem whole, size_t origin, cl_mem_flags flags,
                            cl_int *result);
/* The flags that PoCL gets for an object in the arena. */
cl_mem_flags dg_device_flags(cl_mem_flags flags);
/* Whether flags and pointer suit each other. */
bool dg_host_flags_right(cl_mem_flags flags, const void *host_ptr);

#endif
