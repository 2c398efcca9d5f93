/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_WORKER_CONTROL_H
#define GN_LINK_WORKER_CONTROL_H

#include "link/frame.h"
#include "link/worker_wire.h"

/* A worker's end of its control socket, after it has booted. Belongs to one thread. */
struct gn_worker_control {
    struct gn_frame_reader reader;
};

enum gn_worker_event_kind {
    GN_WORKER_EVENT_SEGMENT = 1, /* another data segment: fd (the caller's), index, bytes */
    GN_WORKER_EVENT_END,         /* the program is gone */
    GN_WORKER_EVENT_LINK,        /* a data connection of the program's: fd (the caller's) */
    GN_WORKER_EVENT_LEASED,      /* an answer: index is the question's seq; bytes, 0: refused */
    GN_WORKER_EVENT_RECALL,      /* index is 1: tight */
    GN_WORKER_EVENT_SAVE,        /* fd (the caller's); save */
    GN_WORKER_EVENT_RESUME,
    GN_WORKER_EVENT_GO,
};

struct gn_worker_event {
    enum gn_worker_event_kind kind;
    int fd;
    uint32_t index;
    uint64_t bytes;
    struct gn_worker_save save;
};

void gn_worker_control_init(struct gn_worker_control *c, int control_fd);

/* Never blocks: poll control_fd for POLLIN. 1: an event; 0: none now; < 0: gantryd is gone. A
 * segment's event is here by the time that the program learns of the segment, so a program's
 * unknown index may be looked for here at once. */
int gn_worker_control_next(struct gn_worker_control *c, struct gn_worker_event *ret);

#endif
