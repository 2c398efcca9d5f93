/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_SCHEDULE_PLACEMENT_ORDERS_H
#define GN_DAEMON_SCHEDULE_PLACEMENT_ORDERS_H

#include <stdint.h>

struct gn_source;

/* The eventfd of gn_placement_start() is readable: passes all orders on. gantryd's thread. */
void gn_placement_orders(struct gn_source *placed, uint32_t events);

#endif
