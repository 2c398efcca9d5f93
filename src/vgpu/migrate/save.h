/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_SAVE_H
#define GN_VGPU_MIGRATE_SAVE_H

#include "base/error.h"
#include "stream/stream.h"
#include "vgpu/core/vgpu_core.h"

/*
 * Saves a vGPU to a stream, and loads one into a worker that has none yet (Crane 4.1.2; gMig
 * 3.3.1). The stream has the records of live objects, the table of handles, events and their
 * pending callbacks, pending commands, and the contents of memory objects. Rings, event table and
 * data area belong to the program and are not saved, so that handles, mapped pointers and waiting
 * threads stay valid. Contents in the data area also stay there.
 */

/* Entries of the stream's "session" table: internal state of the vGPU. */
enum gn_saved_kind {
    /* id: the serial. GN_PART_REQUEST; GN_PART_STATE: struct gn_saved_record. */
    GN_SAVED_RECORD = 1,
    GN_SAVED_INDICES = 2, /* GN_PART_STATE: u32 each, the latest generation of each index */
    /*
     * A data segment of a program over tcp. id: its index. GN_PART_STATE: u64 bytes. Comes before
     * entries that refer to the segment.
     */
    GN_SAVED_SEGMENT = 4,
    /*
     * GN_PART_STATE: an array of struct gn_saved_retained: objects that only pending commands still
     * reference (released_objects.h).
     */
    GN_SAVED_KEPT = 5,
    /*
     * The session of a stopped program over tcp. id: counts from 0. GN_PART_STATE: struct
     * gn_saved_link, GN_PART_API: the frame's payload.
     */
    GN_SAVED_LINK = 6,
};

/*
 * One frame of the state of a tcp session, as the source worker hands it to the destination
 * (session_tcp.h).
 */
struct gn_saved_link {
    uint32_t op, seq;
};

struct gn_saved_retained {
    uint64_t id;
    uint32_t kind;
    /*
     * The event that tells the program that the object's memory is its own again; GN_NO_EVENT:
     * none.
     */
    uint32_t event;
};

struct gn_saved_record {
    uint32_t op;
    int32_t result;
};

/* GN_PART_API of a command. */
#define GN_SAVED_ASKED   1u /* a program thread waits for the driver's result */
#define GN_SAVED_ORDERED 2u /* came without a wait list, and follows all commands before it */
struct gn_saved_command {
    uint32_t flags;
    int32_t doomed;
};
/* The same, for a program over tcp that still has bulk data in flight. */
struct gn_saved_waiting {
    struct gn_saved_command command;
    uint64_t batch;
};

/*
 * The API's functions for the contents of memory objects. For saving they are called on the saving
 * thread, except for a source, which one other thread uses.
 */
struct gn_page_hasher;
struct gn_page_source;
struct gn_record;
struct gn_writes;
struct gn_vgpu_contents {
    /* NULL: these objects can be saved. Otherwise the reason, as the rest of "it uses ...". */
    const char *(*obstacle)(struct gn_vgpu *v, struct gn_vobject *const *objects, uint32_t n);
    /*
     * Saves the devices: their properties as the program has seen them, and the features that these
     * objects and records, which are referenced, use.
     */
    int (*save_devices)(struct gn_vgpu *v, struct gn_stream_writer *w,
                        struct gn_vobject *const *objects, uint32_t n,
                        struct gn_record *const *records, uint32_t n_records);
    /*
     * For loading, before any object is created: checks each saved device, until *ret_last. Then
     * judge_devices decides whether the local devices can replace them: 0, and whether they
     * differ; or -errno and a list of the missing features.
     */
    int (*check_device)(struct gn_vgpu *v, const struct gn_stream_entry *e, bool *ret_last,
                        struct gn_error *err);
    int (*judge_devices)(struct gn_vgpu *v, bool *ret_others, struct gn_error *err);
    /*
     * Writes the state of an object other than a queue; checks on load whether that state is valid
     * here.
     */
    int (*save_object)(struct gn_vgpu *v, struct gn_stream_writer *w, const struct gn_vobject *o);
    int (*check_object)(struct gn_vgpu *v, const struct gn_vobject *o,
                        const struct gn_stream_entry *e, struct gn_error *err);
    /* Has the object contents of its own to send? If so, their size and their write tracking. */
    bool (*look)(struct gn_vgpu *v, const struct gn_vobject *o, bool homes, uint64_t *ret_bytes,
                 struct gn_writes **ret_writes);
    /* The object's place in the data area; NULL: none. */
    const void *(*home)(struct gn_vgpu *v, const struct gn_vobject *o, uint64_t *ret_bytes);
    /*
     * Opens a source for the contents, valid until shut. The object stays referenced meanwhile.
     * `there`: the hasher for digests that a device computes, if it can.
     */
    int (*open)(struct gn_vgpu *v, struct gn_vobject *o, const struct gn_page_hasher *there,
                struct gn_page_source *ret, struct gn_error *err);
    /*
     * Called before time matters: prepares the source's device digests. Without this call it may
     * have none.
     */
    void (*ready)(struct gn_vgpu *v, struct gn_page_source *source);
    void (*shut)(struct gn_vgpu *v, struct gn_page_source *source);
    /*
     * Waits until the driver has completed all commands in the queues among these objects. Returns
     * 0, -ETIMEDOUT or -ENOMEM.
     */
    int (*settle)(struct gn_vgpu *v, struct gn_vobject *const *objects, uint32_t n,
                  uint64_t timeout_ns, struct gn_error *err);
    void (*end)(struct gn_vgpu *v);
    /* For loading: a section of memories or pages. */
    int (*load)(struct gn_vgpu *v, struct gn_stream_reader *r, const struct gn_stream_section *s,
                struct gn_error *err);
    /*
     * For an object that the program has released: the event that tells when its memory in the data
     * area is free; GN_NO_EVENT: none.
     */
    uint32_t (*leaving)(const struct gn_vobject *o);
    void (*leave_by)(struct gn_vobject *o, uint32_t event);
    /* Sets the initial contents of an announced memory; pages that arrive later overwrite them. */
    int (*fill)(struct gn_vgpu *v, uint64_t memory, const void *from, struct gn_error *err);
    /* A memory that has been announced is gone. False: it was never announced. */
    bool (*gone)(struct gn_vgpu *v, uint64_t memory);
    /* All contents have arrived, or no more will. */
    void (*loaded)(struct gn_vgpu *v);
};

/*
 * Saving in steps: as much as possible while the program runs (Crane 4.1.2; gMig's one-shot
 * pre-copy, 3.3.1), then the rest behind a closed gate. Each step writes the objects that are new
 * since the previous step, and those that have gone. One thread, which is the vGPU's own; one save
 * at a time. Nothing changes that the program can see.
 */
struct gn_save;

struct gn_save_figures {
    /* Pages of all memories at the end; pages of memories that the destination had retained. */
    uint64_t pages_total, pages_kept;
    uint64_t pages_zero;              /* sent as zeros, without content; in all rounds */
    uint64_t pages_ahead, pages_stop; /* sent, including zero pages */
    /* In the stop: detected by their samples; hashed; hashed by the device. */
    uint64_t sampled, hashed, device;
    uint64_t read_bytes; /* read from the objects in the stop */
    uint64_t ahead_ns;
    uint64_t hash_ns, send_ns; /* of the stop's round */
    /* When everything of the stop but contents had been written; CLOCK_MONOTONIC. */
    uint64_t told_ns;
};

#define GN_SAVE_MORE 8u /* further steps, beyond those announced */

/*
 * homes: also send contents in the program's memory. n_ahead: the number of rounds before the last.
 */
int gn_save_new(struct gn_vgpu *v, struct gn_stream_writer *w, bool homes, uint32_t n_ahead,
                struct gn_save **ret, struct gn_error *err);
/* A checkpoint's description of itself; must stay valid until the next step, which writes it. */
struct gn_saved_about {
    uint32_t vgpu_id;
    const struct gn_stream_stop *stop; /* NULL: the program continues */
};
void gn_save_checkpoint(struct gn_save *s, const struct gn_saved_about *about);
/*
 * Before the last step: also save the session of a program over tcp, which must stay valid until
 * then.
 */
struct gn_far_session;
void gn_save_session(struct gn_save *s, const struct gn_far_session *session);
/*
 * Before any step: the destination shares no memory with the program, and is told the data
 * segments.
 */
void gn_save_for_far(struct gn_save *s);
/* First of all and while the program runs: can the current objects be saved? */
int gn_save_check(struct gn_save *s, struct gn_error *err);
/*
 * For a migration, first of all and while the program runs: writes the devices, so that the
 * destination can reject them.
 */
int gn_save_devices(struct gn_save *s, struct gn_error *err);
/*
 * The destination's devices differ: objects are written once more at the end, and everything
 * but contents is sent before the stop even if contents are not (n_ahead 0).
 */
int gn_save_for_others(struct gn_save *s, struct gn_error *err);
/*
 * After the devices and before everything else: these memories came from the destination, which has
 * retained them (outgoing.h).
 */
void gn_save_goes_back(struct gn_save *s, const uint64_t *ids, uint32_t n);
/*
 * One round before the stop; any time. bytes_per_s 0: no limit. timeout_ns: at the first call,
 * limit for the commands that the driver has.
 */
int gn_save_ahead(struct gn_save *s, uint64_t bytes_per_s, uint64_t timeout_ns,
                  struct gn_error *err);
/*
 * Has an object that is slow to recreate (a program) been created meanwhile? If so, another step
 * before the stop pays.
 */
bool gn_save_is_behind(struct gn_save *s);
/* Writes the rest and the commit. The gate is closed. */
int gn_save_rest(struct gn_save *s, struct gn_error *err);
const struct gn_save_figures *gn_save_figures(const struct gn_save *s);
/* The number of steps so far, which is the number of the last one's round. */
uint32_t gn_save_n_steps(const struct gn_save *s);
void gn_save_free(struct gn_save *s); /* NULL does nothing */

/* Saves everything at once. The gate is closed. Returns 0, or -errno and a message. */
int gn_vgpu_save(struct gn_vgpu *v, struct gn_stream_writer *w, struct gn_error *err);

/*
 * The gate is closed, and no object exists. The stream is not trusted; after a failure the vGPU
 * cannot be used.
 */
int gn_vgpu_load(struct gn_vgpu *v, struct gn_stream_reader *r, struct gn_error *err);
/*
 * In transfer.c, called during a load: the devices are compatible; everything before this round has
 * been created.
 */
void gn_vgpu_fits(struct gn_vgpu *v, bool others);
void gn_vgpu_made(struct gn_vgpu *v, uint32_t round);

/* Internal: in events.c and saved_commands.c. vgpu->lock is not held. */
int gn_events_save(struct gn_vgpu *v, struct gn_stream_writer *w);
int gn_event_restore(struct gn_vgpu *v, const struct gn_stream_entry *e);
int gn_commands_save(struct gn_vgpu *v, struct gn_stream_writer *w);
/* clock_ahead_ns: how far this machine's clock is ahead of the source's. */
int gn_command_restore(struct gn_vgpu *v, const struct gn_stream_entry *e, int64_t clock_ahead_ns);

#endif
