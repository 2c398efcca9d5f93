/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_SAVE_H
#define GN_VGPU_MIGRATE_SAVE_H

#include "base/error.h"
#include "stream/stream.h"
#include "vgpu/core/vgpu_core.h"

/*
 * A vGPU into a stream, and out of one into a worker that has none yet (Crane 4.1.2; gMig 3.3.1).
 * What goes: the records of its live objects, which handles stand for what, its events and who
 * waits to be told of them, its pending commands, the contents of its memory objects. What stays is
 * the program's: rings, event table, data area; so handles, mapped pointers and waiting threads
 * notice nothing. Contents that lie in the data area stay there, too.
 */

/* Entries of the stream's "session" table: parts of the vGPU's own. */
enum gn_saved_kind {
    /* id: its serial. GN_PART_REQUEST; GN_PART_STATE: struct gn_saved_record */
    GN_SAVED_RECORD = 1,
    GN_SAVED_INDICES = 2, /* GN_PART_STATE: u32 each, the latest generation of each index */
    GN_SAVED_SEGMENT = 4, /* of a program on another machine. id: a data segment's index.
                             GN_PART_STATE: u64 bytes. Before what lies in it */
    GN_SAVED_KEPT = 5,    /* GN_PART_STATE: struct gn_saved_retained each: objects that only pending
                             commands have (released_objects.h) */
    GN_SAVED_LINK = 6,    /* of a stopped program on another machine. id: 0 and on. GN_PART_STATE:
                             struct gn_saved_link, GN_PART_API: its payload */
};

/* A frame of where a session over tcp stood, as one worker hands it to another (session_tcp.h). */
struct gn_saved_link {
    uint32_t op, seq;
};

struct gn_saved_retained {
    uint64_t id;
    uint32_t kind;
    uint32_t event; /* tells the program that the object's memory is its own again; GN_NO_EVENT:
                       none does */
};

struct gn_saved_record {
    uint32_t op;
    int32_t result;
};

/* GN_PART_API of a command. */
#define GN_SAVED_ASKED   1u /* somebody waits for the driver's verdict */
#define GN_SAVED_ORDERED 2u /* it came without a wait list, and follows all that is before it */
struct gn_saved_command {
    uint32_t flags;
    int32_t doomed;
};
/* The same, of a program on another machine, whose bulk data is still on its way. */
struct gn_saved_waiting {
    struct gn_saved_command command;
    uint64_t batch;
};

/* The API's half: what its memory objects hold. Out: by who saves, on one thread, but for a source,
 * which is one other thread's. */
struct gn_page_hasher;
struct gn_page_source;
struct gn_record;
struct gn_writes;
struct gn_vgpu_contents {
    /* NULL: they can be saved; or why not, as the rest of "it uses ...". */
    const char *(*obstacle)(struct gn_vgpu *v, struct gn_vobject *const *objects, uint32_t n);
    /* Its devices: what the program was told of them, and what these objects and records, which are
     * held, use of them. */
    int (*save_devices)(struct gn_vgpu *v, struct gn_stream_writer *w,
                        struct gn_vobject *const *objects, uint32_t n,
                        struct gn_record *const *records, uint32_t n_records);
    /* In, before anything is made: each of them, until *ret_last. Then: can those that are here
     * stand for them? 0, and whether they are others; or -errno and a list of what is lacking. */
    int (*check_device)(struct gn_vgpu *v, const struct gn_stream_entry *e, bool *ret_last,
                        struct gn_error *err);
    int (*judge_devices)(struct gn_vgpu *v, bool *ret_others, struct gn_error *err);
    /* What is told of an object beyond that it lives, but a queue's; and whether that holds here.
     */
    int (*save_object)(struct gn_vgpu *v, struct gn_stream_writer *w, const struct gn_vobject *o);
    int (*check_object)(struct gn_vgpu *v, const struct gn_vobject *o,
                        const struct gn_stream_entry *e, struct gn_error *err);
    /* Has it contents of its own that go? Then how much, and who writes them. */
    bool (*look)(struct gn_vgpu *v, const struct gn_vobject *o, bool homes, uint64_t *ret_bytes,
                 struct gn_writes **ret_writes);
    /* Where it lies in the data area; NULL: it does not. */
    const void *(*home)(struct gn_vgpu *v, const struct gn_vobject *o, uint64_t *ret_bytes);
    /* How to come by them, until it is shut. The object is held meanwhile. `there`: the hasher
     * whose digests a device works out, where it can. */
    int (*open)(struct gn_vgpu *v, struct gn_vobject *o, const struct gn_page_hasher *there,
                struct gn_page_source *ret, struct gn_error *err);
    /* Ahead, as long as time does not matter: what the source's digests take. Without, it may have
     * none. */
    void (*ready)(struct gn_vgpu *v, struct gn_page_source *source);
    void (*shut)(struct gn_vgpu *v, struct gn_page_source *source);
    /* Waits until all is over that the driver has in the queues among these objects. 0, -ETIMEDOUT
     * or -ENOMEM. */
    int (*settle)(struct gn_vgpu *v, struct gn_vobject *const *objects, uint32_t n,
                  uint64_t timeout_ns, struct gn_error *err);
    void (*end)(struct gn_vgpu *v);
    /* In: a section of memories or pages. */
    int (*load)(struct gn_vgpu *v, struct gn_stream_reader *r, const struct gn_stream_section *s,
                struct gn_error *err);
    /* Of an object that the program has let go of: the event that tells when its memory in the data
     * area is free; GN_NO_EVENT: none. */
    uint32_t (*leaving)(const struct gn_vobject *o);
    void (*leave_by)(struct gn_vobject *o, uint32_t event);
    /* What a memory of which has been told holds, as far as nothing else comes. */
    int (*fill)(struct gn_vgpu *v, uint64_t memory, const void *from, struct gn_error *err);
    /* A memory that has come is no more. False: it never came. */
    bool (*gone)(struct gn_vgpu *v, uint64_t memory);
    /* All of them have come, or nothing more will. */
    void (*loaded)(struct gn_vgpu *v);
};

/*
 * Saving, in steps: as much as can be ahead, while the program runs (Crane 4.1.2; gMig's one-shot
 * pre-copy, 3.3.1), then the rest behind a closed gate. Each step tells what has come since the one
 * before, and what is gone. By one thread, which is the vGPU's own; one at a time. Nothing is
 * changed that the program can see.
 */
struct gn_save;

struct gn_save_figures {
    uint64_t pages_total,
        pages_kept;      /* of all memories at the end; of those that whoever loads had before */
    uint64_t pages_zero; /* sent by naming them; in all rounds */
    uint64_t pages_ahead, pages_stop; /* sent, zero ones among them */
    uint64_t sampled, hashed,
        device;          /* in the stop: told by their samples; hashed; of these, by the device */
    uint64_t read_bytes; /* out of the objects in the stop */
    uint64_t ahead_ns;
    uint64_t hash_ns, send_ns; /* of the stop's round */
    uint64_t told_ns; /* when all of the stop had been told but contents; CLOCK_MONOTONIC */
};

#define GN_SAVE_MORE 8u /* steps ahead beyond those that were announced */

/* homes: also the contents of what lies in the program's memory. n_ahead: how many rounds will come
 * before the last. */
int gn_save_new(struct gn_vgpu *v, struct gn_stream_writer *w, bool homes, uint32_t n_ahead,
                struct gn_save **ret, struct gn_error *err);
/* What a checkpoint says of itself; held until the next step, which tells it. */
struct gn_saved_about {
    uint32_t vgpu_id;
    const struct gn_stream_stop *stop; /* NULL: the program goes on */
};
void gn_save_checkpoint(struct gn_save *s, const struct gn_saved_about *about);
/* Before the last step: where the session of a program elsewhere stands goes along. Held until
 * then. */
struct gn_far_session;
void gn_save_session(struct gn_save *s, const struct gn_far_session *session);
/* Before any step: whoever loads shares no memory with the program, and is told what data segments
 * there are. */
void gn_save_for_far(struct gn_save *s);
/* Before all else and while the program runs: can what there is be saved? */
int gn_save_check(struct gn_save *s, struct gn_error *err);
/* Of a move, before all else and while the program runs: its devices, so that whoever loads can say
 * no. */
int gn_save_devices(struct gn_save *s, struct gn_error *err);
/* They are others: objects are told of once more in the end, and all but contents goes ahead even
 * where contents don't (n_ahead 0). */
int gn_save_for_others(struct gn_save *s, struct gn_error *err);
/* Behind the devices and before all else: these memories came from there, and are there still
 * (outgoing.h). */
void gn_save_goes_back(struct gn_save *s, const uint64_t *ids, uint32_t n);
/* One round ahead; any time. bytes_per_s 0: no limit. What the driver has at the first may take so
 * long to be over. */
int gn_save_ahead(struct gn_save *s, uint64_t bytes_per_s, uint64_t timeout_ns,
                  struct gn_error *err);
/* Has something been made meanwhile that is slow to make, a program? Then another step ahead is
 * worth its while. */
bool gn_save_is_behind(struct gn_save *s);
/* The gate is closed: all that is left, and the commit. */
int gn_save_rest(struct gn_save *s, struct gn_error *err);
const struct gn_save_figures *gn_save_figures(const struct gn_save *s);
/* How many steps there were: the number of the last one's round. */
uint32_t gn_save_n_steps(const struct gn_save *s);
void gn_save_free(struct gn_save *s); /* NULL does nothing */

/* The gate is closed, and nothing has been made. What comes is believed in nothing; on failure the
 * vGPU is of no use. */
int gn_vgpu_load(struct gn_vgpu *v, struct gn_stream_reader *r, struct gn_error *err);
/* transfer.c, for whoever loads: its devices will do; all is made that came before this round. */
void gn_vgpu_fits(struct gn_vgpu *v, bool others);
void gn_vgpu_made(struct gn_vgpu *v, uint32_t round);

/* Between the core's files: events.c, saved_commands.c. vgpu->lock is not held. */
int gn_events_save(struct gn_vgpu *v, struct gn_stream_writer *w);
int gn_event_restore(struct gn_vgpu *v, const struct gn_stream_entry *e);
int gn_commands_save(struct gn_vgpu *v, struct gn_stream_writer *w);
/* clock_ahead_ns: of this machine's before the one that wrote it. */
int gn_command_restore(struct gn_vgpu *v, const struct gn_stream_entry *e, int64_t clock_ahead_ns);

#endif
