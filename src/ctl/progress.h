/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_PROGRESS_H
#define GN_CTL_PROGRESS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The progress of moves as gantryd's `ls` reports it, and the text that is shown while a command
 * waits: a bar if stderr is a terminal, otherwise a line now and then. Pure: the time is an
 * argument.
 */
struct gn_moving {
    char id[16], phase[16]; /* letters and digits only; phase "": not reported */
    uint32_t round;         /* 0: no contents have been sent yet */
    uint64_t done_bytes, total_bytes, sent_bytes;
};

/* Reads a vGPU of an `ls` reply. False: it is not moving. */
bool gn_moving_read(const json_t *vgpu, struct gn_moving *ret);
/* Percentage of the current round; -1: there are no contents, or none yet. */
int gn_moving_percent(const struct gn_moving *m);
/*
 * Formats "moving" or "moving, ahead 45%". `first` stands before the phase, `then` before the
 * percentage.
 */
#define GN_MOVING_STATE_BYTES 40
void gn_moving_state(const struct gn_moving *m, const char *first, const char *then,
                     char ret[static GN_MOVING_STATE_BYTES]);

#define GN_PROGRESS_BYTES 256
struct gn_progress {
    const char *command;
    bool bar;
    uint64_t began_ns, shown_ns;                       /* shown_ns 0: nothing shown yet */
    uint64_t base_ns, base_bytes, last_ns, last_bytes; /* to compute the rate */
    char last_what[96];
};

void gn_progress_init(struct gn_progress *p, const char *command, bool bar, uint64_t now_ns);
/*
 * Formats the text to print now for n moving vGPUs; false: print nothing. To be called about ten
 * times a second.
 */
bool gn_progress_look(struct gn_progress *p, const struct gn_moving *all, unsigned n,
                      uint64_t now_ns, char ret[static GN_PROGRESS_BYTES]);
/* The text that erases the bar; "" if none is shown. */
const char *gn_progress_erase(struct gn_progress *p);

/*
 * watch.c: the same, run by a thread with its own connection. gn_ctl_watch_start() returns NULL
 * with --json or --quiet, or if it cannot start a thread; the other functions ignore NULL. Errors
 * are ignored: data that cannot be read are not shown.
 */
struct gn_ctl_args;
struct gn_ctl_watch;
/* vgpu: an id or its first digits; NULL: all vGPUs. */
struct gn_ctl_watch *gn_ctl_watch_start(const struct gn_ctl_args *args, const char *vgpu);
/* Call these around other output. */
void gn_ctl_watch_hold(struct gn_ctl_watch *w);
void gn_ctl_watch_go_on(struct gn_ctl_watch *w);
void gn_ctl_watch_end(struct gn_ctl_watch *w);

#endif
