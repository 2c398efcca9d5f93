/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BACKEND_H
#define GN_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/api_info.h"
#include "base/error.h"

/*
 * Vendors' drivers: one table of functions for each API. A driver is opened in two steps:
 * `open_library` loads the vendor's library and calls nothing in it, so the process can still be
 * forked; everything after that calls the vendor's code, which may start threads.
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
    uint32_t kind; /* bits of enum gn_backend_kind */
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
    uint32_t index; /* in the driver; bring_up's argument */
    char name[128];
    char version[128];
    uint32_t n_devices;
    struct gn_device_facts devices[GN_BACKEND_MAX_DEVICES];
};

/* A device of a platform that the operator has selected. present_as: the enum gn_backend_kind that
 * programs see; 0: its own. */
struct gn_device_choice {
    uint32_t index;
    uint32_t present_as;
};

struct gn_backend_ops;

/* A vendor platform that is brought up in this process; the API's own struct begins with it. */
struct gn_backend_platform {
    const struct gn_backend_ops *ops;
};

struct gn_backend_ops {
    const struct gn_api_info *info;

    /* Calls found(ctx, library) for each driver installed on this machine, in a fixed order. */
    int (*list_drivers)(void (*found)(void *ctx, const char *library), void *ctx,
                        struct gn_error *err);

    /* dlopen, nothing else. The library stays loaded until the process ends or `leave` unloads
     * it. */
    int (*open_library)(const char *library, void **ret, struct gn_error *err);

    /* Makes the first calls into the driver, and calls found(ctx, facts) for each platform that has
     * devices. Gantry's own platforms are skipped. */
    int (*probe)(void *library, void (*found)(void *ctx, const struct gn_platform_facts *),
                 void *ctx, struct gn_error *err);

    /* Brings up the platform with the chosen devices alone. Fails when one of them has gone. */
    int (*bring_up)(void *library, uint32_t platform, const struct gn_device_choice *choices,
                    uint32_t n_choices, struct gn_backend_platform **ret, struct gn_error *err);

    /* Whether the driver's library can be unloaded. Some drivers leave threads behind. */
    bool (*can_leave)(const struct gn_backend_platform *p);

    /* Frees p, of which no object is left and no call runs, and unloads the library if it can be
     * unloaded. */
    void (*leave)(struct gn_backend_platform *p);
};

/* Every API that this build serves; ends with NULL. */
extern const struct gn_backend_ops *const gn_backends[];

/* NULL: this build does not serve it. */
const struct gn_backend_ops *gn_backend_named(const char *api);

#endif
