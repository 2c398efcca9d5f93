/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_API_H
#define GN_CTL_API_H

#include "backend/api_info.h"

#include <stdint.h>

struct gn_doctor;

/* The functions by which `gantry` supports one API. */
struct gn_ctl_api {
    const struct gn_api_info *info;
    /*
     * gantry doctor: checks the API's loader and the platforms that programs see through it; looks
     * for drivers that programs load without Gantry; checks the installed drivers. Main thread.
     */
    void (*check_loader)(struct gn_doctor *d);
    void (*check_bypass)(struct gn_doctor *d);
    void (*check_drivers)(struct gn_doctor *d);
    /*
     * gantry inspect: the name of a kind of object, and of the API call that a command's op stands
     * for; NULL: unknown.
     */
    const char *(*kind_name)(uint32_t kind);
    const char *(*call_name)(uint32_t op);
};

/* Terminated by NULL. */
extern const struct gn_ctl_api *const gn_ctl_apis[];
/* The API with this name; NULL: unknown. */
const struct gn_ctl_api *gn_ctl_api_named(const char *name);

#endif
