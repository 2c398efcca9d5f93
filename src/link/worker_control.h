/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_WORKER_CONTROL_H
#define GN_LINK_WORKER_CONTROL_H

#include "link/frame.h"
#include "link/worker_wire.h"

/* A worker's end of its control socket, after boot. One thread. */
struct gn_worker_control {
    struct gn_frame_reader reader;
};

enum gn_worker_event_kind {
    GN_WORKER_EVENT_SEGMENT = 1, /* another data segment: fd (owned by the caller), index, bytes */
    GN_WORKER_EVENT_END,         /* the program is gone */
    GN_WORKER_EVENT_LINK,        /* a data connection of the program: fd (owned by the caller) */
    GN_WORKER_EVENT_LEASED,      /* the answer to the LEASE with the seq `index`: bytes granted,
                                  * 0: refused */
    GN_WORKER_EVENT_RECALL,      /* index 1: tight */
    GN_WORKER_EVENT_RESIDE,  /* index: its number; bytes: the most in the driver; keeps_copies */
    GN_WORKER_EVENT_DISCARD, /* no copies may stay */
    GN_WORKER_EVENT_SAVE,    /* fd (owned by the caller); save */
    GN_WORKER_EVENT_RESUME,
    GN_WORKER_EVENT_GO,
};

struct gn_worker_event {
    enum gn_worker_event_kind kind;
    int fd;
    uint32_t index;
    uint64_t bytes;
    bool keeps_copies;
    struct gn_worker_save save;
};

void gn_worker_control_init(struct gn_worker_control *c, int control_fd);

/*
 * Never blocks: poll control_fd for POLLIN. 1: an event; 0: none; < 0: gantryd is gone. gantryd
 * sends a segment here before the program learns of it, so an index unknown to the worker can be
 * looked up here at once.
 */
int gn_worker_control_next(struct gn_worker_control *c, struct gn_worker_event *ret);

#endif
