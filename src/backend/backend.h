/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BACKEND_H
#define GN_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/api_info.h"
#include "base/error.h"

/*
 * Vendors' drivers, one table of functions an API. A driver is opened in two steps: `open_library`
 * only loads the vendor's library and calls nothing in it, so a process that did no more may still
 * be forked; everything after it calls the vendor, who may start threads.
 */
#define GN_BACKEND_MAX_DEVICES   64
#define GN_BACKEND_LIBRARY_BYTES 1024

enum gn_backend_kind {
    GN_BACKEND_CPU = 1,
    GN_BACKEND_GPU = 2,
    GN_BACKEND_ACCELERATOR = 4,
    GN_BACKEND_CUSTOM = 8,
};

struct gn_device_facts {
    uint32_t kind; /* enum gn_backend_kind, or'ed */
    uint32_t compute_units;
    uint32_t clock_mhz;
    uint64_t memory_bytes;
    uint64_t max_allocation_bytes;
    uint64_t local_memory_bytes;
    char name[128];
    char vendor[128];
    char version[128];
    char driver_version[128];
};

struct gn_platform_facts {
    uint32_t index; /* in the driver; what bring_up takes */
    char name[128];
    char version[128];
    uint32_t n_devices;
    struct gn_device_facts devices[GN_BACKEND_MAX_DEVICES];
};

/* One device of a platform, as the operator wants it shown: present_as is an enum gn_backend_kind,
 * 0: as it is. */
struct gn_device_choice {
    uint32_t index;
    uint32_t present_as;
};

struct gn_backend_ops;

/* A vendor platform brought up in this process. An API's own header says what is behind it. */
struct gn_backend_platform {
    const struct gn_backend_ops *ops;
};

struct gn_backend_ops {
    const struct gn_api_info *info;

    /* Calls found(ctx, library) once a driver installed on this machine, in a fixed order. */
    int (*list_drivers)(void (*found)(void *ctx, const char *library), void *ctx,
                        struct gn_error *err);

    /* dlopen and no more. The library stays until the process ends, or its platform is left. */
    int (*open_library)(const char *library, void **ret, struct gn_error *err);

    /* First calls into the driver: calls found(ctx, facts) once a platform that has devices.
     * Gantry's own platforms are left out: gantryd never stands on itself. */
    int (*probe)(void *library, void (*found)(void *ctx, const struct gn_platform_facts *),
                 void *ctx, struct gn_error *err);

    /* The platform with its chosen devices only. One that has them no longer is left. */
    int (*bring_up)(void *library, uint32_t platform, const struct gn_device_choice *choices,
                    uint32_t n_choices, struct gn_backend_platform **ret, struct gn_error *err);

    /* Does the vendor let go of a process? Some leave threads behind, and say so, or say nothing.
     */
    bool (*can_leave)(const struct gn_backend_platform *p);

    /* Nothing of the driver's is left or runs: its library is unloaded, if it can leave. Ends p. */
    void (*leave)(struct gn_backend_platform *p);
};

/* NULL-terminated; every API this build serves. */
extern const struct gn_backend_ops *const gn_backends[];

/* NULL when this build does not serve it. */
const struct gn_backend_ops *gn_backend_named(const char *api);

#endif
