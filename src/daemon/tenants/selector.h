/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_SELECTOR_H
#define GN_DAEMON_TENANTS_SELECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* A selector of devices, NAME-PART[:INDEX][,present-as=gpu|cpu|accelerator], and the further
 * settings of a [device] section. */
struct gn_selector {
    char name[128];        /* a part of the device's name; case is ignored */
    int index;             /* which of the matching devices, from 0; -1: all */
    uint32_t present_as;   /* GN_DEVICE_*; 0: the device's own type */
    uint64_t slice_ns;     /* 0: the general setting */
    uint64_t memory_bytes; /* the most that is leased on each device; 0: the device's memory */
    uint64_t slot_bytes;   /* the unit in which its memory is placed; 0: the default */
};

int gn_selector_parse(const char *text, struct gn_selector *ret, struct gn_error *err);

/* Returns the type of gpu, cpu or accelerator; 0 for any other text. */
uint32_t gn_kind_parse(const char *text);
const char *gn_kind_name(uint32_t kind);

/* matches_name: whether the device's name matches. takes: whether the selector includes the `nth`
 * (from 0) of the matching devices. */
bool gn_selector_matches_name(const struct gn_selector *s, const char *device_name);
bool gn_selector_takes(const struct gn_selector *s, int nth);

#endif
