/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of routes. Called where a worker reads gantryd's BOOT or SAVE.
 */
#include "vgpu/migrate/route.h"

#include <stddef.h>

const struct gn_route *gn_route(uint32_t number)
{
    static const struct gn_route routes[GN_ROUTE_N] = {
        [GN_ROUTE_SHM] = {0},
        [GN_ROUTE_TCP] = {.copies_memory = true},
        [GN_ROUTE_TCP_SAME_DAEMON] = {.copies_memory = true, .continues_stream = true},
        [GN_ROUTE_TCP_TO_SHM] = {.copies_memory = true, .session_from_program = true},
    };
    return number < GN_ROUTE_N ? &routes[number] : NULL;
}
