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
 * Commands that are submitted in parts (kernel slicing, FairGV 3.3.2). Such a command keeps its
 * place in the pending list until its last part has been submitted. Between two parts the grant may
 * go to another vGPU, or the gate may close; the message and the number of the next group are all
 * that a migration takes along. To the program it is one command with one event, submitted with its
 * first part, complete with its last part, or failed with the first part that fails, after which no
 * part is submitted.
 */
struct gn_cutting {
    struct gn_grid grid;
    uint64_t n_groups;
    void *how; /* the API's, from its prepare */
    /* under the device role */
    uint64_t next_group; /* all groups below it have been submitted; also read under vgpu->lock */
    struct gn_box now;   /* the part that class->submit is to submit */
    uint32_t waits_in;   /* the device's pass in which it waits for the end of a part */
    /* vgpu->lock */
    uint32_t n_open;             /* parts that the driver has */
    int32_t error;               /* of the first part that failed */
    struct gn_event_times times; /* of the first part; set by the thread that reports its end */
};

/* The API's half of slicing. */
struct gn_slicer {
    const struct gn_request_class *class; /* of commands that may be cut */
    /*
     * Whether this command may be cut into parts of at least `least` groups; if so, returns its
     * grid, and the time per group if known, else 0. Under the device role.
     */
    bool (*look)(struct gn_vgpu *v, struct gn_command *c, uint64_t least, struct gn_grid *ret_grid,
                 uint64_t *ret_pace_ps);
    /*
     * Called before a command is cut. False: the kernel variant that this needs is not there; it is
     * being built if the kernel's time was measured at least n_measured times. Under the device
     * role.
     */
    bool (*prepare)(struct gn_vgpu *v, struct gn_command *c, uint32_t n_measured, void **ret_how);
    /*
     * For a command that was cut on the source of a migration: returns its grid, and in *ret_how
     * the kernel variant for its parts, which is built at once. False: not possible here. The
     * thread that loads the vGPU.
     */
    bool (*resume)(struct gn_vgpu *v, struct gn_command *c, struct gn_grid *ret_grid,
                   void **ret_how);
    /* `groups` groups of it (0: all) took the device `ns`. Any thread, while the command lives. */
    void (*took)(struct gn_vgpu *v, struct gn_command *c, uint64_t groups, uint64_t ns);
};

/* One launch; the driver's callback owns it until the part is over. */
struct gn_part;

enum gn_parts_verdict {
    GN_PARTS_WHOLE, /* nothing was done: submit it as any other command */
    /* A part was submitted, or the command has ended: look for ready commands again. */
    GN_PARTS_TAKEN,
    /*
     * No part of this command can be submitted in this pass, but other commands can; the submit
     * thread will be woken.
     */
    GN_PARTS_WAITS,
    GN_PARTS_LATER, /* nothing can be submitted now; the submit thread will be woken */
};

/*
 * Submits the next part of a command that is ready and that the turn allows. Under the device role,
 * without locks.
 */
enum gn_parts_verdict gn_parts_next(struct gn_vdevice *d, struct gn_command *c);
/*
 * For a command that is being loaded and has no waits: groups below `next` have run on the source.
 * False: it cannot be continued.
 */
bool gn_parts_resume(struct gn_command *c, uint64_t next, const struct gn_event_times *times);
/* The driver reports the end of a part. Any thread. */
void gn_part_over(struct gn_part *part, void *event, int32_t status);

#endif
