/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_LOOP_H
#define GN_DAEMON_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/*
 * gantryd's event loop: one thread, epoll, level-triggered, no timer unless somebody is dying. An
 * object may close any other in its callback; memory is given back only when no callback that could
 * still know of it is running.
 */
struct gn_source {
    int fd; /* owned by whoever embeds this; -1: none */
    uint32_t events;
    bool muted;
    void (*ready)(struct gn_source *, uint32_t events);
};

/* Embedded in what is freed through the loop. */
struct gn_corpse {
    struct gn_list link;
    void (*bury)(struct gn_corpse *);
};

struct gn_loop {
    int epoll_fd;
    bool stopped;
    struct gn_list corpses;
    /* Called after each round of events, when it is not NULL. True: there is more to do, and the
     * next round waits for no event. */
    bool (*after)(struct gn_loop *);
    bool has_more;
};

int gn_loop_init(struct gn_loop *l);
void gn_loop_fini(struct gn_loop *l);

/* s->fd must be set. 0 or -errno. */
int gn_loop_add(struct gn_loop *l, struct gn_source *s, uint32_t events,
                void (*ready)(struct gn_source *, uint32_t events));
/* The same, muted: nothing is heard of it yet, and it costs nothing. */
void gn_loop_prepare(struct gn_source *s, void (*ready)(struct gn_source *, uint32_t events));
/* Other events from now on; nothing happens when they are the same. 0, or -errno of one that was
 * muted, and stays so. */
int gn_loop_change(struct gn_loop *l, struct gn_source *s, uint32_t events);
/* Hears nothing of it, its hang-up neither, until it is changed to other events than none. */
void gn_loop_mute(struct gn_loop *l, struct gn_source *s);
/* Stops watching, closes, leaves -1. Does nothing when it is -1 already. Only for what no other
 * process has chosen (closer.h). */
void gn_loop_close(struct gn_loop *l, struct gn_source *s);
/* Stops watching and leaves -1; the descriptor, which is open still, or -1. */
int gn_loop_release(struct gn_loop *l, struct gn_source *s);

/* Calls bury(corpse) after this round of events. */
void gn_loop_bury(struct gn_loop *l, struct gn_corpse *corpse, void (*bury)(struct gn_corpse *));

/* One round: waits for events, at most so long (-1: for ever), and calls who is ready. How many
 * that were, or -errno. */
int gn_loop_turn(struct gn_loop *l, int timeout_ms);
/* Until gn_loop_stop. 0 or -errno. */
int gn_loop_run(struct gn_loop *l);
void gn_loop_stop(struct gn_loop *l);

#endif
