/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_OPENCL_DEVICE_ANSWERS_H
#define GN_VGPU_OPENCL_DEVICE_ANSWERS_H

#include "opencl_host_rt.h"

/*
 * The answers of clGetDeviceInfo that a program has received for its devices. They stay valid when
 * its vGPU migrates to other devices: they are the answers of the vGPU's first devices (Crane
 * 4.1.1). They are stored from the first migration to a device that answers differently; before it,
 * and after a return to such a device, the driver is asked.
 */
struct gn_device_answers_fact {
    cl_device_info number;
    size_t n;
    unsigned char *bytes; /* in device_answers_device.room */
};

struct gn_device_answers_device {
    struct gn_device_answers_fact *facts; /* by number */
    uint32_t n;
    unsigned char *room;
};

struct gn_stream_entry;
/* Asks the driver. Returns 0 or -ENOMEM. */
int gn_device_answers_ask(struct gn_vgpu *v, cl_device_id device,
                          struct gn_device_answers_device *ret);
/* Reads the answers of a device in a stream. Returns 0, -ENOMEM or -EBADMSG. */
int gn_device_answers_read(const struct gn_stream_entry *e, struct gn_device_answers_device *ret);
void gn_device_answers_fini(struct gn_device_answers_device *t);
const struct gn_device_answers_fact *
gn_device_answers_find(const struct gn_device_answers_device *t, cl_device_info number);
/* True if both devices answer every query alike. */
bool gn_device_answers_same(const struct gn_device_answers_device *a,
                            const struct gn_device_answers_device *b);

/* At most the first `max` bytes of a text, without its zero; "" when there is no answer. */
const char *gn_device_answers_text(const struct gn_device_answers_device *t, cl_device_info number,
                                   int max, int *ret_n);
/* An unsigned number of 4 or 8 bytes, or the i-th of several; 0 when there is no answer. */
uint64_t gn_device_answers_number(const struct gn_device_answers_device *t, cl_device_info number,
                                  uint32_t i);

/* Answers a program's query from the stored answers. False: the driver has to answer. */
bool gn_device_answers_answer(struct gn_vgpu *v, cl_device_id device, cl_device_info number,
                              size_t size, void *value, size_t *size_ret, cl_int *result);
/*
 * Stores t (ownership passes) as the answers of that device. Call it before anything is served.
 * Returns 0 or -ENOMEM.
 */
int gn_device_answers_keep(struct gn_vgpu *v, uint32_t device, struct gn_device_answers_device *t);

#endif
