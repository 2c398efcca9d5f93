/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_LOOP_H
#define GN_DAEMON_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/* gantryd's event loop: one thread, epoll, level-triggered. A callback may close any object;
 * objects are freed only at the end of a round, when no callback can use them any more. */
struct gn_source {
    int fd; /* owned by the object that embeds this; -1: none */
    uint32_t events;
    bool muted;
    void (*ready)(struct gn_source *, uint32_t events);
};

/* Embedded in objects that are freed through the loop. */
struct gn_corpse {
    struct gn_list link;
    void (*bury)(struct gn_corpse *);
};

struct gn_loop {
    int epoll_fd;
    bool stopped;
    struct gn_list corpses;
    /* Called after each round of events unless NULL. True: there is more to do, so the next round
     * does not wait. */
    bool (*after)(struct gn_loop *);
    bool has_more;
};

int gn_loop_init(struct gn_loop *l);
void gn_loop_fini(struct gn_loop *l);

/* s->fd must be set. 0 or -errno. */
int gn_loop_add(struct gn_loop *l, struct gn_source *s, uint32_t events,
                void (*ready)(struct gn_source *, uint32_t events));
/* Prepares the source without registering it: no events are reported until gn_loop_change(). */
void gn_loop_prepare(struct gn_source *s, void (*ready)(struct gn_source *, uint32_t events));
/* Changes the events to wait for; does nothing if they are the same. 0, or -errno for a muted
 * source, which then stays muted. */
int gn_loop_change(struct gn_loop *l, struct gn_source *s, uint32_t events);
/* Reports no events of the source, not even a hang-up, until gn_loop_change() sets other events
 * than 0. */
void gn_loop_mute(struct gn_loop *l, struct gn_source *s);
/* Stops watching, closes the descriptor and sets it to -1. Does nothing if it is -1. Only for
 * descriptors that no other process has chosen (closer.h). */
void gn_loop_close(struct gn_loop *l, struct gn_source *s);
/* Stops watching and sets the descriptor to -1. Returns the descriptor, still open, or -1. */
int gn_loop_release(struct gn_loop *l, struct gn_source *s);

/* Calls bury(corpse) after this round of events. */
void gn_loop_bury(struct gn_loop *l, struct gn_corpse *corpse, void (*bury)(struct gn_corpse *));

/* Runs one round: waits for events, at most timeout_ms (-1: without limit), and calls their
 * callbacks. Returns the number of events, or -errno. */
int gn_loop_turn(struct gn_loop *l, int timeout_ms);
/* Runs until gn_loop_stop(). 0 or -errno. */
int gn_loop_run(struct gn_loop *l);
void gn_loop_stop(struct gn_loop *l);

#endif
