/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_SAVE_H
#define GN_VGPU_SAVE_H

#include "base/error.h"
#include "stream/stream.h"
#include "vgpu/core/vgpu_core.h"

/*
 * A vGPU into a stream, and out of one into a worker that has none yet (Crane 4.1.2; gMig 3.3.1). What goes: the records of its
 * live objects, which handles stand for what, its events and who waits to be told of them, its pending commands, the contents of
 * its memory objects. What stays is the program's: rings, event table, data area; so handles, mapped pointers and waiting threads
 * notice nothing. Contents that lie in the data area stay there, too.
 */

/* Entries of the stream's "session" table: parts of the vGPU's own. */
enum gn_saved_kind {
    GN_SAVED_RECORD = 1,  /* id: its serial. GN_PART_REQUEST; GN_PART_STATE: struct gn_saved_record */
    GN_SAVED_INDICES = 2, /* GN_PART_STATE: u32 each, the latest generation of each index */
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

/* The API's half: what its memory objects hold. */
struct gn_vgpu_contents {
    /* NULL: it can be saved; or why not, as the rest of "it uses ...". */
    const char *(*obstacle)(struct gn_vgpu *v);
    int (*measure)(struct gn_vgpu *v, uint32_t *ret_n, uint64_t *ret_bytes, struct gn_error *err);
    int (*save)(struct gn_vgpu *v, struct gn_stream_writer *w, struct gn_error *err);
    /* A section of memories or pages. */
    int (*load)(struct gn_vgpu *v, struct gn_stream_reader *r, const struct gn_stream_section *s, struct gn_error *err);
    /* All of them have come, or nothing more will: `whole` says which. */
    int (*loaded)(struct gn_vgpu *v, bool whole, struct gn_error *err);
};

/* The gate is closed. Changes nothing. 0 or -errno and a sentence. */
int gn_vgpu_save(struct gn_vgpu *v, struct gn_stream_writer *w, struct gn_error *err);

/* The gate is closed, and nothing has been made. What comes is believed in nothing; on failure the vGPU is of no use. */
int gn_vgpu_load(struct gn_vgpu *v, struct gn_stream_reader *r, struct gn_error *err);

/* Between the core's files: events.c, command.c. vgpu->lock is not held. */
int gn_events_save(struct gn_vgpu *v, struct gn_stream_writer *w);
int gn_event_restore(struct gn_vgpu *v, const struct gn_stream_entry *e);
int gn_commands_save(struct gn_vgpu *v, struct gn_stream_writer *w);
int gn_command_restore(struct gn_vgpu *v, const struct gn_stream_entry *e);

#endif
