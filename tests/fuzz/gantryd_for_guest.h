/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_GANTRYD_FOR_GUEST_H
#define FUZZ_GANTRYD_FOR_GUEST_H

#include "link/frame.h"
#include "shm/event_table.h"
#include "shm/session_layout.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/*
 * An honest gantryd for a front end in the same process: one platform, segments of the right sizes,
 * no worker. Whoever plays the worker uses what is here.
 */
struct gantryd_for_guest {
    int listener;
    int session_fd; /* the worker's end */
    struct gn_session_view view;
    struct gn_event_entry *events;
    pthread_mutex_t lock;
    pthread_cond_t attached;
    bool is_attached;    /* lock */
    uint32_t n_segments; /* lock */
    struct gn_segment segments[257];
};

/* Listens where GANTRY_CONNECT then points, and answers on a thread of its own for as long as the
 * process lives. */
void gantryd_for_guest_start(struct gantryd_for_guest *g);
/* Waits until the front end has what it needs: from here on `view` and `events` are there. */
void gantryd_for_guest_wait(struct gantryd_for_guest *g);
/* NULL: not inside a segment of the data area; `segment` counts from 1, as spans do. */
void *gantryd_for_guest_area(struct gantryd_for_guest *g, uint32_t segment, uint64_t offset,
                             uint64_t bytes);

#endif
