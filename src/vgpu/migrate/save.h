/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_SAVE_H
#define GN_VGPU_MIGRATE_SAVE_H

#include "base/error.h"
#include "stream/stream.h"
#include "vgpu/core/vgpu_core.h"

/*
 * Saves a vGPU into a stream, and loads it into a worker that has none yet (Crane 4.1.2; gMig
 * 3.3.1). The stream has the records of its live objects, the live handles, its events and their
 * callbacks, its pending commands, and the contents of its memory objects. The program keeps rings,
 * event table and data area, so handles, mapped pointers and waiting threads notice nothing.
 * Contents in the data area stay there, too.
 */

/* Kinds of entries in the stream's "session" table. */
enum gn_saved_kind {
    /* id: the serial. GN_PART_REQUEST; GN_PART_STATE: struct gn_saved_record. */
    GN_SAVED_RECORD = 1,
    GN_SAVED_INDICES = 2, /* GN_PART_STATE: u32 for each index, its latest generation */
    /*
     * for a program on another machine. id: a data segment's index. GN_PART_STATE: u64 bytes. Comes
     * before its contents
     */
    GN_SAVED_SEGMENT = 4,
    /*
     * GN_PART_STATE: array of struct gn_saved_retained: objects that only pending commands need
     * (released_objects.c)
     */
    GN_SAVED_RETAINED = 5,
    /*
     * for a stopped program on another machine. id: 0 and up. GN_PART_STATE: struct gn_saved_link,
     * GN_PART_API: its payload
     */
    GN_SAVED_LINK = 6,
};

/* A frame of a tcp session's state, as one worker hands it to another (tcp_session_handover.h). */
struct gn_saved_link {
    uint32_t op, seq;
};

struct gn_saved_retained {
    uint64_t id;
    uint32_t kind;
    uint32_t event; /* ends when the program may use the object's memory again; GN_NO_EVENT: none */
};

struct gn_saved_record {
    uint32_t op;
    int32_t result;
};

/* GN_PART_API of a command. */
#define GN_SAVED_ASKED   1u /* the program waits for the driver's result */
#define GN_SAVED_ORDERED 2u /* it came without a wait list, and follows everything before it */
struct gn_saved_command {
    uint32_t flags;
    int32_t doomed;
};
/* Same, for a program on another machine with bulk data still in transit. */
struct gn_saved_waiting {
    struct gn_saved_command command;
    uint64_t batch;
};

/*
 * The API's half: contents of its memory objects. The saving thread calls the functions for saving;
 * another thread may use a source.
 */
struct gn_page_hasher;
struct gn_page_source;
struct gn_record;
struct gn_writes;
struct gn_vgpu_contents {
    /* NULL: they can be saved; else the reason, as the rest of "it uses ...". */
    const char *(*obstacle)(struct gn_vgpu *v, struct gn_vobject *const *objects, uint32_t n);
    /*
     * Saves the devices: the answers that the program received, and the features that these objects
     * and records, which the caller holds, use.
     */
    int (*save_devices)(struct gn_vgpu *v, struct gn_stream_writer *w,
                        struct gn_vobject *const *objects, uint32_t n,
                        struct gn_record *const *records, uint32_t n_records);
    /*
     * Loading, before anything is made: check_device for each of them, until *ret_last. Then
     * judge_devices: whether the devices here can replace them. Returns 0, and whether they differ;
     * or -errno and the list of missing features.
     */
    int (*check_device)(struct gn_vgpu *v, const struct gn_stream_entry *e, bool *ret_last,
                        struct gn_error *err);
    int (*judge_devices)(struct gn_vgpu *v, bool *ret_others, struct gn_error *err);
    /*
     * Saves an object's state beyond its existence, except a queue's; and checks whether it is
     * valid here.
     */
    int (*save_object)(struct gn_vgpu *v, struct gn_stream_writer *w, const struct gn_vobject *o);
    int (*check_object)(struct gn_vgpu *v, const struct gn_vobject *o,
                        const struct gn_stream_entry *e, struct gn_error *err);
    /*
     * True if the object has contents of its own that are sent; then their size and their write
     * tracking.
     */
    bool (*look)(struct gn_vgpu *v, const struct gn_vobject *o, bool homes, uint64_t *ret_bytes,
                 struct gn_writes **ret_writes);
    /* The address of its contents in the data area; NULL: they are not there. */
    const void *(*home)(struct gn_vgpu *v, const struct gn_vobject *o, uint64_t *ret_bytes);
    /*
     * Opens access to the contents, until shut. The caller holds the object meanwhile. `there`: the
     * hasher for digests that a device computes, where it can.
     */
    int (*open)(struct gn_vgpu *v, struct gn_vobject *o, const struct gn_page_hasher *there,
                struct gn_page_source *ret, struct gn_error *err);
    /*
     * Prepares the source's digests in advance, which may take long. Without the call the source
     * may have none.
     */
    void (*ready)(struct gn_vgpu *v, struct gn_page_source *source);
    void (*shut)(struct gn_vgpu *v, struct gn_page_source *source);
    /*
     * Waits until the driver has completed all present commands of the queues among these objects.
     * Returns 0, -ETIMEDOUT or -ENOMEM.
     */
    int (*settle)(struct gn_vgpu *v, struct gn_vobject *const *objects, uint32_t n,
                  uint64_t timeout_ns, struct gn_error *err);
    void (*end)(struct gn_vgpu *v);
    /* Loading: a section of memories or pages. */
    int (*load)(struct gn_vgpu *v, struct gn_stream_reader *r, const struct gn_stream_section *s,
                struct gn_error *err);
    /*
     * For an object that the program has released: the event that ends when its memory in the data
     * area is free; GN_NO_EVENT: none.
     */
    uint32_t (*leaving)(const struct gn_vobject *o);
    void (*leave_by)(struct gn_vobject *o, uint32_t event);
    /*
     * Fills an announced memory with its retained content; the pages that come replace parts of it.
     */
    int (*fill)(struct gn_vgpu *v, uint64_t memory, const void *from, struct gn_error *err);
    /* Forgets a memory that has come. False: it never came. */
    bool (*gone)(struct gn_vgpu *v, uint64_t memory);
    /* All memories have come, or no more will. */
    void (*loaded)(struct gn_vgpu *v);
};

/*
 * Saving, in steps: as much as possible in advance, while the program runs (Crane 4.1.2; gMig's
 * one-shot pre-copy, 3.3.1), then the rest behind a closed gate. Each step sends new and removed
 * objects since the step before. One thread of the vGPU, one save at a time. It changes nothing
 * that the program can see.
 */
struct gn_save;
struct gn_worker_moved;
struct gn_worker_save;

#define GN_SAVE_MORE 8u /* steps in advance beyond those that were announced */

/*
 * how: as gantryd ordered it, with a route that exists. Each step adds its figures to *moved. The
 * caller keeps both.
 */
int gn_save_new(struct gn_vgpu *v, struct gn_stream_writer *w, const struct gn_worker_save *how,
                struct gn_worker_moved *moved, struct gn_save **ret, struct gn_error *err);
/*
 * Before everything else and while the program runs: checks whether the vGPU can be saved. Unless a
 * file is written, sends the devices, so that the destination can refuse.
 */
int gn_save_begin(struct gn_save *s, struct gn_error *err);
/*
 * The destination's answer to the devices. It retains the memories of these n ids, which came from
 * there (outgoing.h). others: its devices differ: objects are announced once more at the end, and
 * everything but contents is sent in advance even if contents are not (n_ahead 0).
 */
int gn_save_answered(struct gn_save *s, bool others, const uint64_t *ids, uint32_t n,
                     struct gn_error *err);
/*
 * Sends one round in advance; any number of times. The first call waits at most the drain timeout
 * for the commands that the driver has.
 */
int gn_save_ahead(struct gn_save *s, struct gn_error *err);
/*
 * True if the vGPU has meanwhile made something that is slow to make, such as a program: then
 * another step in advance pays.
 */
bool gn_save_is_behind(struct gn_save *s);
/*
 * With the gate closed: saves everything that is left, and the commit. Of a checkpoint also its
 * description, and of one that stops a tcp session the session's state.
 */
int gn_save_rest(struct gn_save *s, struct gn_error *err);
/* Number of steps so far: the number of the last one's round. */
uint32_t gn_save_n_steps(const struct gn_save *s);
void gn_save_free(struct gn_save *s); /* NULL: no effect */

/*
 * Loads a vGPU. The gate is closed, and nothing has been made. The stream is not trusted; after a
 * failure the vGPU is unusable.
 */
int gn_vgpu_load(struct gn_vgpu *v, struct gn_stream_reader *r, struct gn_error *err);
/*
 * transfer_destination.c, for the loading thread. GN_WORKER_HAND_FITS: its devices are compatible;
 * number: whether they differ. GN_WORKER_HAND_MADE: everything before the round of this number has
 * been made.
 */
void gn_vgpu_ack(struct gn_vgpu *v, uint16_t op, uint32_t number);

/* ---- released_objects.c */

/*
 * Objects that the program has released and that pending commands still need, such as a kernel
 * released after its launch. No handle names them any more, and another object may have their
 * index. They migrate with the commands, and end with them. So do the objects that such an object
 * holds (gn_object_hold): the whole buffer of a sub-buffer, the objects of recorded commands.
 */

/*
 * Collects each of them once, held until gn_objects_put. Also called before the stop: an object
 * made again must come before the object that has its index now. Returns 0 or -ENOMEM. Any thread
 * of the vGPU, at any time.
 */
int gn_released_objects_gather(struct gn_vgpu *v, struct gn_vobject ***ret, uint32_t *ret_n);
/*
 * The vGPU has moved: this process no longer reports the end of their homes. Behind a closed gate.
 */
void gn_released_objects_leave(struct gn_vgpu *v);

/* ---- saved_events.c, saved_commands.c. The caller does not hold vgpu->lock. */

int gn_events_save(struct gn_vgpu *v, struct gn_stream_writer *w);
int gn_event_restore(struct gn_vgpu *v, const struct gn_stream_entry *e);
int gn_commands_save(struct gn_vgpu *v, struct gn_stream_writer *w);
/* clock_ahead_ns: this machine's clock minus the clock of the machine that wrote it. */
int gn_command_restore(struct gn_vgpu *v, const struct gn_stream_entry *e, int64_t clock_ahead_ns);

#endif
