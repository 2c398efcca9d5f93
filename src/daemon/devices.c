/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds this machine's drivers and devices at gantryd's start (devices.h): each driver is probed in
 * a process of its own, and the configuration selects among the devices. Called by gantryd.c before
 * the event loop runs. Blocks, but not longer than PROBE_TIMEOUT_NS for each probe. Loads no driver
 * into gantryd.
 */
#include "daemon/devices.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/api_info.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/vgpu/spawn.h"
#include "link/frame.h"
#include "place/place.h"

/* A driver may need long to wake a card; one that hangs must not keep gantryd from its other
 * devices. */
#define PROBE_TIMEOUT_NS UINT64_C(60000000000)
#define SLICE_NS         UINT64_C(6000000) /* FairGV 3.3.2 */

/* Starts a probe and calls take(arg, frame) for each of its frames until it ends. 0, -errno, or an
 * error of take(). */
static int run_probe(const struct gn_machine *m, char *const argv[], int signal_fd,
                     int (*take)(void *arg, const struct gn_frame *), void *arg,
                     struct gn_error *err)
{
    struct gn_frame_reader reader;
    int socket, rc;
    pid_t pid;
    rc = gn_worker_spawn(m->worker, argv, GN_WALL_NONE, &socket, &pid, err);
    if (rc)
        return rc;
    gn_frame_reader_init(&reader, socket);
    uint64_t deadline = gn_now_ns() + PROBE_TIMEOUT_NS;
    for (;;) {
        struct gn_frame f;
        rc = gn_frame_read(&reader, &f);
        if (rc == 1 && f.op == GN_PROBE_DONE) {
            rc = 0;
            break;
        }
        if (rc == 1 && f.op == GN_LINK_ERROR) {
            struct gn_link_error e;
            if (gn_frame_payload(&f, &e, sizeof e) && gn_frame_string_ok(e.what, sizeof e.what) &&
                gn_frame_string_ok(e.fix, sizeof e.fix) && e.what[0])
                rc = gn_fail(err, ENODEV, e.fix, "%s", e.what);
            else
                rc = gn_fail(err, EPROTO, NULL, "its probe failed");
            break;
        }
        if (rc == 1) {
            if ((rc = take(arg, &f))) {
                gn_fail(err, -rc, NULL, "its probe sent an invalid message");
                break;
            }
            continue;
        }
        if (rc < 0) {
            gn_fail(err, -rc, NULL, "its probe died");
            break;
        }
        struct pollfd p[2] = {{.fd = socket, .events = POLLIN},
                              {.fd = signal_fd, .events = POLLIN}};
        uint64_t now = gn_now_ns();
        if (now >= deadline) {
            rc = gn_fail(err, ETIMEDOUT, NULL, "its probe did not end within a minute");
            break;
        }
        if (poll(p, 2, (int)((deadline - now) / 1000000) + 1) < 0 && errno != EINTR) {
            rc = gn_fail(err, errno, NULL, "cannot wait for its probe: %s", strerror(errno));
            break;
        }
        if (p[1].revents) {
            rc = gn_fail(err, EINTR, NULL, "told to end while probing devices");
            break;
        }
    }
    gn_frame_reader_fini(&reader);
    close(socket);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    return rc;
}

static int add_driver(void *arg, const struct gn_frame *f)
{
    struct gn_machine *m = arg;
    struct gn_probe_driver d;
    if (f->op != GN_PROBE_DRIVER || !gn_frame_payload(f, &d, sizeof d) ||
        !gn_frame_string_ok(d.api, sizeof d.api) ||
        !gn_frame_string_ok(d.library, sizeof d.library))
        return -EPROTO;
    if (m->n_drivers < GN_MAX_DRIVERS)
        m->drivers[m->n_drivers++] = d;
    return 0;
}

/* Removes Gantry's own ICD file, which programs find where loaders look: it is not a driver of
 * devices. False: it was the only one. */
static bool remove_own_driver(struct gn_machine *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_drivers; i++)
        if (!gn_api_is_front_end(m->drivers[i].library))
            m->drivers[n++] = m->drivers[i];
    const bool only_own = m->n_drivers && !n;
    m->n_drivers = n;
    return !only_own;
}

struct probed {
    struct gn_machine *m;
    uint32_t driver;
};

static int add_fact(void *arg, const struct gn_frame *f)
{
    struct probed *probed = arg;
    struct gn_machine *m = probed->m;
    struct gn_probe_platform p;
    struct gn_probe_device d;
    if (f->op == GN_PROBE_PLATFORM && gn_frame_payload(f, &p, sizeof p) &&
        gn_frame_string_ok(p.name, sizeof p.name)) {
        struct gn_platform_record *to;
        if (m->n_platforms == GN_LINK_MAX_PLATFORMS)
            return -EOVERFLOW;
        if (!(to = realloc(m->platforms, (m->n_platforms + 1) * sizeof *to)))
            return -ENOMEM;
        m->platforms = to;
        to += m->n_platforms++;
        memset(to, 0, sizeof *to);
        to->driver = probed->driver;
        to->index_in_driver = p.index;
        memcpy(to->api, m->drivers[probed->driver].api, sizeof to->api);
        memcpy(to->name, p.name, sizeof to->name);
        return 0;
    }
    if (f->op == GN_PROBE_DEVICE && gn_frame_payload(f, &d, sizeof d) &&
        gn_frame_string_ok(d.name, sizeof d.name) &&
        gn_frame_string_ok(d.vendor, sizeof d.vendor) &&
        gn_frame_string_ok(d.version, sizeof d.version) &&
        gn_frame_string_ok(d.driver_version, sizeof d.driver_version)) {
        struct gn_platform_record *to = m->n_platforms ? &m->platforms[m->n_platforms - 1] : NULL;
        if (!to || to->driver != probed->driver || to->n_devices == GN_WORKER_MAX_DEVICES)
            return -EPROTO;
        to->devices[to->n_devices++].facts = d;
        return 0;
    }
    return -EPROTO;
}

static int probe_driver(struct gn_machine *m, uint32_t driver, int signal_fd, struct gn_error *err)
{
    const struct gn_probe_driver *d = &m->drivers[driver];
    char *const argv[] = {(char[]){"gantry-worker"}, (char[]){"--probe"}, (char *)(uintptr_t)d->api,
                          (char *)(uintptr_t)d->library, NULL};
    struct probed probed = {.m = m, .driver = driver};
    uint32_t before = m->n_platforms;
    int rc = run_probe(m, argv, signal_fd, add_fact, &probed, err);
    if (rc)
        m->n_platforms = before;
    return rc;
}

/* Applies a selector to all devices in order and marks those that match. False if none does. */
static bool apply_selector(struct gn_machine *m, const struct gn_selector *s, bool *selected,
                           bool settings_only)
{
    int nth = 0;
    bool any = false;
    for (uint32_t p = 0; p < m->n_platforms; p++) {
        for (uint32_t d = 0; d < m->platforms[p].n_devices; d++) {
            struct gn_device_record *r = &m->platforms[p].devices[d];
            if (!gn_selector_matches_name(s, r->facts.name) || !gn_selector_takes(s, nth++))
                continue;
            any = true;
            if (s->present_as)
                r->shown_as = s->present_as;
            if (s->slice_ns)
                r->slice_ns = s->slice_ns;
            if (s->memory_bytes)
                r->memory.limit_bytes = s->memory_bytes;
            if (s->slot_bytes)
                r->slot_bytes = s->slot_bytes;
            if (!settings_only)
                selected[p * GN_WORKER_MAX_DEVICES + d] = true;
        }
    }
    return any;
}

/* Drops devices that are not selected, and platforms without devices. */
static void drop_unselected(struct gn_machine *m, const bool *selected)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < m->n_platforms; p++) {
        struct gn_platform_record *r = &m->platforms[p];
        uint32_t n_devices = 0;
        for (uint32_t d = 0; d < r->n_devices; d++)
            if (selected[p * GN_WORKER_MAX_DEVICES + d])
                r->devices[n_devices++] = r->devices[d];
        r->n_devices = n_devices;
        if (n_devices)
            m->platforms[n++] = *r;
    }
    m->n_platforms = n;
}

/* Sets the unit of placement and the host memory of a device for --oversubscribe. Adds the host
 * memory to *swap_sum. */
static int set_placement(struct gn_device_record *r, const struct gn_placement_options *o,
                         uint64_t memory, uint64_t *swap_sum, struct gn_error *err)
{
    const bool own_slot = r->slot_bytes != 0;
    if (o->on && !memory)
        return gn_fail(err, EINVAL, "set memory in its [device] section",
                       "oversubscribe needs the size of each device's memory, and the driver gives "
                       "none for the device \"%s\"",
                       r->facts.name);
    if (o->on && !own_slot)
        r->slot_bytes = GN_PLACE_SLOT_BYTES;
    if (r->slot_bytes && memory && r->slot_bytes > memory)
        return gn_fail(err, EINVAL,
                       own_slot ? "lower slot in its [device] section"
                                : "set slot in its [device] section, 1M or more",
                       "the device \"%s\" has %llu bytes of memory, less than a slot of %llu",
                       r->facts.name, (unsigned long long)memory,
                       (unsigned long long)r->slot_bytes);
    if (!o->on) {
        r->slot_bytes = 0;
        return 0;
    }
    r->swap_bytes = o->swap_bytes ? o->swap_bytes : memory;
    r->memory.resident_limit_bytes = memory;
    if (!gn_add_u64(memory, r->swap_bytes, &r->memory.limit_bytes) ||
        !gn_add_u64(*swap_sum, r->swap_bytes, swap_sum))
        *swap_sum = UINT64_MAX; /* more than any machine has */
    return 0;
}

static int check_swap(uint64_t swap_sum, struct gn_error *err)
{
    const uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (swap_sum <= ram)
        return 0;
    return gn_fail(err, ENOMEM, "lower swap-memory, which holds for each device, or select fewer",
                   "evicted contents of all devices may take %llu MiB of host memory, and this "
                   "machine has %llu",
                   (unsigned long long)swap_sum >> 20, (unsigned long long)ram >> 20);
}

/* Opens the account of each device. The records move no more. */
static int open_accounts(struct gn_machine *m, const struct gn_placement_options *placement,
                         struct gn_error *err)
{
    uint64_t swap_sum = 0;
    for (uint32_t p = 0; p < m->n_platforms; p++)
        for (uint32_t d = 0; d < m->platforms[p].n_devices; d++) {
            struct gn_device_record *r = &m->platforms[p].devices[d];
            if (r->facts.memory_bytes && r->memory.limit_bytes > r->facts.memory_bytes)
                return gn_fail(err, EINVAL, "lower memory in its [device] section, or leave it out",
                               "the device \"%s\" has %llu bytes of memory, and memory = %llu is "
                               "more than that",
                               r->facts.name, (unsigned long long)r->facts.memory_bytes,
                               (unsigned long long)r->memory.limit_bytes);
            const uint64_t budget = r->memory.limit_bytes,
                           memory = budget ? budget : r->facts.memory_bytes;
            gn_lease_device_init(&r->memory, memory);
            r->memory.is_budget = budget && budget != r->facts.memory_bytes;
            int rc = set_placement(r, placement, memory, &swap_sum, err);
            if (rc)
                return rc;
        }
    return check_swap(swap_sum, err);
}

static int select_devices(struct gn_machine *m, const struct gn_config *config,
                          struct gn_error *err)
{
    static const char fix[] = "gantry devices, without a selection, lists all devices";
    bool *selected = calloc((size_t)m->n_platforms * GN_WORKER_MAX_DEVICES, sizeof *selected);
    int rc = 0;
    if (!selected)
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    for (int i = 0; i < config->n_settings && rc == 0; i++)
        if (!apply_selector(m, &config->settings[i], selected, true))
            rc = gn_fail(err, ENODEV, fix,
                         "no device's name contains \"%s\", which a [device] section names",
                         config->settings[i].name);
    for (int i = 0; i < config->n_devices && rc == 0; i++)
        if (!apply_selector(m, &config->devices[i], selected, false))
            rc = gn_fail(err, ENODEV, fix, "no such device: \"%s\"%s", config->devices[i].name,
                         config->devices[i].index >= 0 ? " with that index" : "");
    for (uint32_t p = 0; p < m->n_platforms; p++)
        for (uint32_t d = 0; d < m->platforms[p].n_devices; d++)
            if (!m->platforms[p].devices[d].slice_ns)
                m->platforms[p].devices[d].slice_ns =
                    config->slice_ns ? config->slice_ns : SLICE_NS;
    if (rc == 0 && config->n_devices)
        drop_unselected(m, selected);
    if (rc == 0)
        rc = open_accounts(m, &config->placement, err);
    free(selected);
    return rc;
}

int gn_machine_probe(struct gn_machine *m, const struct gn_config *config, int signal_fd,
                     struct gn_error *err)
{
    const char *fix = gn_api_infos[0]->install_hint;
    char *const argv[] = {(char[]){"gantry-worker"}, (char[]){"--list-drivers"}, NULL};
    memset(m, 0, sizeof *m);
    int rc = gn_worker_find(m->worker, sizeof m->worker, err);
    if (rc == 0)
        rc = run_probe(m, argv, signal_fd, add_driver, m, err);
    if (rc)
        return rc;
    if (!remove_own_driver(m))
        return gn_fail(err, ENODEV, gn_api_infos[0]->only_own_hint, "%s",
                       gn_api_infos[0]->only_own);
    if (m->n_drivers == 0)
        return gn_fail(err, ENODEV, fix, "no driver is installed");
    for (uint32_t i = 0; i < m->n_drivers; i++) {
        rc = probe_driver(m, i, signal_fd, err);
        if (rc == -EINTR || rc == -ENOMEM)
            return rc;
        if (rc)
            gn_log(GN_LOG_WARN, "the driver %s: %s, ignoring it", m->drivers[i].library, err->what);
    }
    if (m->n_platforms == 0)
        return gn_fail(err, ENODEV, fix, "no driver offers a device");
    return select_devices(m, config, err);
}

void gn_machine_fini(struct gn_machine *m)
{
    free(m->platforms);
    m->platforms = NULL;
    m->n_platforms = 0;
}
