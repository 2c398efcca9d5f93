/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_PARTS_H
#define GN_VGPU_PARTS_H

#include "shm/event_table.h"
#include "vgpu/core/slice.h"

struct gn_vgpu;
struct gn_vdevice;
struct gn_command;
struct gn_request_class;

/*
 * Commands that go to the driver in parts (kernel slicing, FairGV 3.3.2). Such a command stays at
 * its place among the pending ones until its last part has been given: between two parts the grant
 * may go to somebody else, or the gate may close, and what is pending is the message and the number
 * of the next group, which is all that a move takes along. To the program it is one command with
 * one event, submitted with its first part, over with its last, or with the first that fails; then
 * no more are given.
 */
struct gn_cutting {
    struct gn_grid grid;
    uint64_t n_groups;
    void *how; /* the API's, from its prepare */
    /* the role */
    uint64_t next_group; /* those below have been given; also read under vgpu->lock */
    struct gn_box now;   /* what class->submit is to give */
    uint32_t waits_in;   /* the pass of its device in which it is to wait for the end of a part */
    /* vgpu->lock */
    uint32_t n_open;             /* parts that the driver has */
    int32_t error;               /* of the first that failed */
    struct gn_event_times times; /* of the first part; whoever reports its end */
};

/* The API's half. */
struct gn_slicer {
    const struct gn_request_class *class; /* of commands that may be cut */
    /* May this one be, in parts of at least `least` groups? Then its grid, and what a group takes
     * as far as that is known. The role. */
    bool (*look)(struct gn_vgpu *v, struct gn_command *c, uint64_t least, struct gn_grid *ret_grid,
                 uint64_t *ret_pace_ps);
    /* About to be cut. False: what that needs is not there; it is being made, if what it takes was
     * measured at least so often. The role. */
    bool (*prepare)(struct gn_vgpu *v, struct gn_command *c, uint32_t n_measured, void **ret_how);
    /* It was cut elsewhere, and its rest can't run whole: its grid, and what its parts need, made
     * at once. False: not here. Who loads. */
    bool (*resume)(struct gn_vgpu *v, struct gn_command *c, struct gn_grid *ret_grid,
                   void **ret_how);
    /* So many groups of it (0: all) took the device so long. Any thread, while the command lives.
     */
    void (*took)(struct gn_vgpu *v, struct gn_command *c, uint64_t groups, uint64_t ns);
};

/* One launch: the driver's, until it is over. */
struct gn_part;

enum gn_parts_verdict {
    GN_PARTS_WHOLE, /* nothing has been done: it goes as any other */
    GN_PARTS_TAKEN, /* something was given, or it has ended: look again for what is ready */
    GN_PARTS_WAITS, /* nothing of it can be given in this pass, but of others; the submit thread
                       will be woken */
    GN_PARTS_LATER, /* nothing can be given now; the submit thread will be woken */
};

/* A command that is ready and that a turn allows. The role, and no lock. */
enum gn_parts_verdict gn_parts_next(struct gn_vdevice *d, struct gn_command *c);
/* Of a command that is just being taken in, and has no waits: groups below `next` have run
 * elsewhere. False: it can't go on so. */
bool gn_parts_resume(struct gn_command *c, uint64_t next, const struct gn_event_times *times);
/* A part's end, by the driver's event; any thread. */
void gn_part_over(struct gn_part *part, void *event, int32_t status);

#endif
