/* SPDX-License-Identifier: Apache-2.0 */
/* A vGPU's devices, in a checkpoint, and whether those here are the same. By whoever saves or loads, on its
 * one thread. */
#include "opencl_host.h"
#include "vgpu/core/save.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_TEXT 256u

static const struct {
    cl_device_info info;
    uint32_t part;
    const char *name;
} texts[] = {{CL_DEVICE_NAME, GN_PART_NAME, "name"},
             {CL_DEVICE_VENDOR, GN_PART_VENDOR, "vendor"},
             {CL_DEVICE_VERSION, GN_PART_VERSION, "version"},
             {CL_DRIVER_VERSION, GN_PART_DRIVER_VERSION, "driver"}};

/* Cut to fit. */
static void text_of(struct gn_vgpu *v, cl_device_id device, cl_device_info what, char ret[static DEVICE_TEXT])
{
    size_t n = 0;
    char *all = NULL;
    ret[0] = 0;
    if (!gn_cl(v)->clGetDeviceInfo(device, what, 0, NULL, &n) && n && (all = malloc(n)) &&
        !gn_cl(v)->clGetDeviceInfo(device, what, n, all, NULL))
        snprintf(ret, DEVICE_TEXT, "%.*s", (int)(n < DEVICE_TEXT ? n : DEVICE_TEXT) - 1, all);
    free(all);
}

int gn_opencl_save_devices(struct gn_vgpu *v, struct gn_stream_writer *w)
{
    const struct gn_opencl_vgpu *detail = v->detail;
    char text[DEVICE_TEXT];
    int rc = 0;
    for (uint32_t i = 0; !rc && i < v->n_devices; i++) {
        cl_device_id device = detail->platform->devices[i];
        struct gn_stream_device_state state = {0};
        cl_ulong memory = 0, largest = 0;
        cl_uint units = 0;
        size_t group = 0;
        gn_cl(v)->clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, NULL);
        gn_cl(v)->clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL);
        gn_cl(v)->clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof group, &group, NULL);
        gn_cl(v)->clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
        state.memory_bytes = memory;
        state.largest_bytes = largest;
        state.work_group = group;
        state.n_units = units;
        rc = gn_stream_entry_begin(w, GN_STREAM_DEVICES, i, 0, NULL, 0);
        if (!rc)
            rc = gn_stream_part(w, GN_PART_STATE, &state, sizeof state);
        for (size_t t = 0; !rc && t < GN_ARRAY_SIZE(texts); t++) {
            text_of(v, device, texts[t].info, text);
            rc = gn_stream_part_text(w, texts[t].part, text);
        }
        if (!rc)
            rc = gn_stream_entry_end(w);
    }
    return rc;
}

/* What a program was told of its device stays true: it goes to the same, or nowhere. */
int gn_opencl_check_device(struct gn_vgpu *v, const struct gn_stream_entry *e, struct gn_error *err)
{
    const struct gn_opencl_vgpu *detail = v->detail;
    struct gn_stream_part part;
    char here[DEVICE_TEXT];
    if (e->id >= v->n_devices)
        return gn_fail(err, ENODEV, NULL, "it ran on more devices than are here");
    for (size_t t = 0; t < GN_ARRAY_SIZE(texts); t++) {
        text_of(v, detail->platform->devices[e->id], texts[t].info, here);
        if (!gn_stream_find_part(e, texts[t].part, &part))
            return gn_fail(err, EBADMSG, NULL, "a device is malformed");
        if (part.n != strlen(here) || memcmp(part.bytes, here, part.n) != 0)
            return gn_fail(err, ENODEV, "restore it where it came from",
                           "its device's %s is \"%.*s\", and here it is \"%.90s\"", texts[t].name,
                           part.n < 90 ? (int)part.n : 90, (const char *)part.bytes, here);
    }
    return 0;
}
