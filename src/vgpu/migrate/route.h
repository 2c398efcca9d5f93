/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_ROUTE_H
#define GN_VGPU_MIGRATE_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "link/worker_wire.h"

/*
 * The two choices of a route between a source and a destination, in one table. Code asks for a
 * property; it never compares a route's number. Constant; any thread.
 */
struct gn_route {
    /* The destination does not map the program's memory as the source did: all contents are sent,
     * over a connection that may lead to another machine, with TLS or without. */
    bool copies_memory;
    /* The program is not told, and its tcp stream continues: what it was sent and may not have
     * received is handed over. Source and destination share the clock. */
    bool continues_stream;
    /* The program hands the session over to the destination by itself. It pauses before the stop,
     * so nothing of its stream is under way, and it has the data area already. */
    bool session_from_program;
};

/* NULL: there is no such route. */
const struct gn_route *gn_route(uint32_t number);

#endif
