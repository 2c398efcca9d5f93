/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_OPENCL_DEVICE_ANSWERS_H
#define GN_VGPU_OPENCL_DEVICE_ANSWERS_H

#include "opencl_host_rt.h"

/*
 * What a program was told of its devices, which stays true when its vGPU goes on on others: all
 * answers of clGetDeviceInfo, as the devices gave them that it had at first (Crane 4.1.1). Kept
 * from the first move to a device that answers otherwise; until then, and when it has come back,
 * the driver is asked.
 */
struct gn_device_answers_fact {
    cl_device_info number;
    size_t n;
    unsigned char *bytes; /* in the device's own */
};

struct gn_device_answers_device {
    struct gn_device_answers_fact *facts; /* by number */
    uint32_t n;
    unsigned char *room;
};

struct gn_stream_entry;
/* What the driver says. 0 or -ENOMEM. */
int gn_device_answers_ask(struct gn_vgpu *v, cl_device_id device,
                          struct gn_device_answers_device *ret);
/* What a stream's device says. 0, -ENOMEM, -EBADMSG. */
int gn_device_answers_read(const struct gn_stream_entry *e, struct gn_device_answers_device *ret);
void gn_device_answers_fini(struct gn_device_answers_device *t);
const struct gn_device_answers_fact *
gn_device_answers_find(const struct gn_device_answers_device *t, cl_device_info number);
/* Does the one answer every question as the other does? */
bool gn_device_answers_same(const struct gn_device_answers_device *a,
                            const struct gn_device_answers_device *b);

/* A text's first `max` bytes at most, without its zero; "" when it was told none. */
const char *gn_device_answers_text(const struct gn_device_answers_device *t, cl_device_info number,
                                   int max, int *ret_n);
/* An unsigned number of 4 or 8 bytes, or the i-th of several; 0 when it was told none. */
uint64_t gn_device_answers_number(const struct gn_device_answers_device *t, cl_device_info number,
                                  uint32_t i);

/* For a program that asks: what it was told. False: the driver is to answer. */
bool gn_device_answers_answer(struct gn_vgpu *v, cl_device_id device, cl_device_info number,
                              size_t size, void *value, size_t *size_ret, cl_int *result);
/* From now on t (taken over) is what it was told of that device; NULL: what the device says. No
 * memory: -ENOMEM. Before anything is served.
 */
int gn_device_answers_keep(struct gn_vgpu *v, uint32_t device, struct gn_device_answers_device *t);

#endif
