/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_DEVICES_H
#define GN_DAEMON_DEVICES_H

#include <signal.h>
#include <stdint.h>

#include "daemon/config.h"
#include "daemon/tenants/leases.h"
#include "link/worker_wire.h"

/* Totals of a device over all vGPUs. */
struct gn_device_use {
    uint64_t device_ns, used_ns, waited_ns, n_grants; /* as in struct gn_share_figures */
};

/* A device that a probe found and the configuration selected. Set once at start; only `past` and
 * the leases change afterwards. */
struct gn_device_record {
    struct gn_device_use past; /* of vGPUs that have left the device */
    struct gn_probe_device facts;
    uint32_t shown_as; /* GN_DEVICE_*; 0: its own type */
    uint64_t slice_ns; /* the slice: the longest turn while others wait */
    /* With --oversubscribe: the configured unit of placement, and host memory for evicted contents.
     * Else 0. */
    uint64_t slot_bytes, swap_bytes;
    /* The leases of all tenants. gn_lease_device_memory() is the configured budget, or the driver's
     * figure for the device's memory (0: the driver gives none). The limit has swap_bytes more. */
    struct gn_lease_device memory;
};

struct gn_platform_record {
    uint32_t driver; /* index into drivers */
    uint32_t index_in_driver;
    char api[GN_LINK_API_BYTES];
    char name[GN_LINK_NAME_BYTES];
    uint32_t n_devices;
    struct gn_device_record devices[GN_WORKER_MAX_DEVICES];
};

#define GN_MAX_DRIVERS 64

struct gn_machine {
    char worker[4096]; /* path of gantry-worker */
    uint32_t n_drivers;
    struct gn_probe_driver drivers[GN_MAX_DRIVERS];
    uint32_t n_platforms;
    struct gn_platform_record *platforms;
};

/* Finds the drivers, probes each in a process of its own, and keeps the devices that the
 * configuration selects. A driver that fails is left out with a warning; having none left is an
 * error. `signal_fd` becomes readable when gantryd is to end: returns -EINTR then. Blocks. */
int gn_machine_probe(struct gn_machine *m, const struct gn_config *config, int signal_fd,
                     struct gn_error *err);
void gn_machine_fini(struct gn_machine *m);

#endif
