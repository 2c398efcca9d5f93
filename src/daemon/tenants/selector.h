/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_SELECTOR_H
#define GN_DAEMON_TENANTS_SELECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* NAME-PART[:INDEX][,present-as=gpu|cpu|accelerator], and what a [device] section says of them
 * besides. */
struct gn_selector {
    char name[128];      /* a part of a device's name, in any case */
    int index;           /* which of those that match, from 0; -1: all */
    uint32_t present_as; /* GN_DEVICE_*; 0: as it is */
    uint64_t slice_ns;   /* 0: what all have */
};

int gn_selector_parse(const char *text, struct gn_selector *ret, struct gn_error *err);

/* gpu, cpu, accelerator; 0 for anything else. */
uint32_t gn_kind_parse(const char *text);
const char *gn_kind_name(uint32_t kind);

/* The device is the `nth` (from 0) of those whose name matches. */
bool gn_selector_matches_name(const struct gn_selector *s, const char *device_name);
bool gn_selector_takes(const struct gn_selector *s, int nth);

#endif
