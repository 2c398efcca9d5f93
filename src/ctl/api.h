/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_API_H
#define GN_CTL_API_H

#include "backend/api_info.h"

#include <stdint.h>

struct gn_doctor;

/* The part of an API in `gantry`. */
struct gn_ctl_api {
    const struct gn_api_info *info;
    /* gantry doctor: the API's loader and the view of programs through it; drivers that programs
     * load without Gantry; the installed drivers. Main thread. */
    void (*check_loader)(struct gn_doctor *d);
    void (*check_bypass)(struct gn_doctor *d);
    void (*check_drivers)(struct gn_doctor *d);
    /* gantry inspect: the name of a kind of object, and of the call behind a command's op; NULL:
     * unknown. */
    const char *(*kind_name)(uint32_t kind);
    const char *(*call_name)(uint32_t op);
};

/* Ends with NULL. */
extern const struct gn_ctl_api *const gn_ctl_apis[];
/* NULL: unknown. */
const struct gn_ctl_api *gn_ctl_api_named(const char *name);

#endif
