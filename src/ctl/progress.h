/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_PROGRESS_H
#define GN_CTL_PROGRESS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * How far vGPUs are on their way, as gantryd tells it in `ls`, and what of it is shown while
 * somebody waits: a bar where stderr is a terminal, a line now and then elsewhere. Pure: time is an
 * argument.
 */
struct gn_moving {
    char id[16], phase[16]; /* letters and digits; phase "": it is not said */
    uint32_t round;         /* 0: no contents have gone yet */
    uint64_t done_bytes, total_bytes, sent_bytes;
};

/* Of a vGPU as `ls` lists it. False: it is on its way nowhere. */
bool gn_moving_read(const json_t *vgpu, struct gn_moving *ret);
/* Of the round; -1: there are no contents, or none yet. */
int gn_moving_percent(const struct gn_moving *m);
/* "moving", "moving, ahead 45%": with the words between, of which `first` comes once. */
#define GN_MOVING_STATE_BYTES 40
void gn_moving_state(const struct gn_moving *m, const char *first, const char *then,
                     char ret[static GN_MOVING_STATE_BYTES]);

#define GN_PROGRESS_BYTES 256
struct gn_progress {
    const char *command;
    bool bar;
    uint64_t began_ns, shown_ns;                       /* shown_ns 0: nothing yet */
    uint64_t base_ns, base_bytes, last_ns, last_bytes; /* for the rate */
    char last_what[96];
};

void gn_progress_init(struct gn_progress *p, const char *command, bool bar, uint64_t now_ns);
/* What to print now of those n; false: nothing. To be called ten times a second or so. */
bool gn_progress_look(struct gn_progress *p, const struct gn_moving *all, unsigned n,
                      uint64_t now_ns, char ret[static GN_PROGRESS_BYTES]);
/* What takes the bar away, if there is one; "" else. */
const char *gn_progress_erase(struct gn_progress *p);

/*
 * watch.c: the same by a thread with a connection of its own. NULL is a watch that shows nothing:
 * with --json or --quiet, or when there is no thread to be had. It never fails: what cannot be
 * known is not shown.
 */
struct gn_ctl_args;
struct gn_ctl_watch;
/* vgpu: its id or the beginning; NULL: all. */
struct gn_ctl_watch *gn_ctl_watch_start(const struct gn_ctl_args *args, const char *vgpu);
/* Around what else is printed meanwhile. */
void gn_ctl_watch_hold(struct gn_ctl_watch *w);
void gn_ctl_watch_go_on(struct gn_ctl_watch *w);
void gn_ctl_watch_end(struct gn_ctl_watch *w);

#endif
