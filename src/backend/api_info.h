/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_API_INFO_H
#define GN_API_INFO_H

#include <stdbool.h>

/*
 * Constants of an API, for gantryd, the walls and the command line, which load no driver and name
 * no API. The library links no driver.
 */
struct gn_api_info {
    const char *name;      /* its name on the wire: "opencl" */
    const char *title;     /* as people write it: "OpenCL" */
    const char *front_end; /* the file name of the library that programs load as their driver */

    /* Advice where no driver is installed. */
    const char *install_hint;
    /* For a machine where the API's loaders find Gantry's front end and no driver: the error and
     * the advice. */
    const char *only_own, *only_own_hint;
    /* For gantryd --help: where drivers are found. */
    const char *where_drivers;

    /* Files and folders that the API's drivers and loaders read; ends with NULL. */
    const char *const *config_paths;
    /* The environment's variables by which drivers of the API alone find their kernel cache; ends
     * with NULL. */
    const char *const *cache_variables;
};

/* Of every API that this build serves; ends with NULL. The first is the most common one. */
extern const struct gn_api_info *const gn_api_infos[];

/* Whether a library, as a loader's file names it, is a front end of Gantry's. */
bool gn_api_is_front_end(const char *library);

#endif
