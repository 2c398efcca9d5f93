/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_FRAME_H
#define GN_LINK_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

/*
 * Frames on a SOCK_STREAM Unix socket: a 16-byte little-endian header, a payload and up to
 * GN_FRAME_MAX_FDS descriptors that travel with it. docs/link.md is the format's document. Nothing
 * here logs, allocates without bound, raises SIGPIPE or trusts the peer: a bad frame is a fault
 * that stays, and every descriptor that nobody took is closed, or goes to the sink.
 *
 * Readers and writers belong to one thread at a time.
 */
#define GN_FRAME_MAX_BYTES   65536u
#define GN_FRAME_MAX_PAYLOAD (GN_FRAME_MAX_BYTES - 16u)
#define GN_FRAME_MAX_FDS     10

/* flags */
#define GN_FRAME_MORE 1u /* the payload goes on in the next frame of the same op and seq */

struct gn_frame_header {
    uint32_t size; /* of the whole frame, header included */
    uint16_t op;
    uint16_t flags;
    uint32_t seq;
    uint32_t zero;
};
_Static_assert(sizeof(struct gn_frame_header) == 16, "frame header");

/* A received frame; the pointers hold until the next call on its reader. */
struct gn_frame {
    uint16_t op;
    uint16_t flags;
    uint32_t seq;
    const void *payload;
    uint32_t n_payload;
    int n_fds;
    bool lost_fds; /* it brought descriptors, and this process had no room for them: n_fds is 0 */
};

struct gn_tcp;

/* Where a peer's descriptors go that nobody takes; close() of one of them may wait for as long as
 * the peer likes. */
struct gn_fd_sink {
    void (*take)(struct gn_fd_sink *, int fd);
};

struct gn_frame_reader {
    int fd;                  /* not owned */
    struct gn_tcp *tcp;      /* read from here instead; no descriptors come. Not owned */
    struct gn_fd_sink *sink; /* NULL: close(2), here and now */
    uint32_t max_bytes; /* of a frame; more is a fault, as are more descriptors than max_fds, as
                           soon as they come */
    int max_fds;
    /*
     * A frame stays in the socket while this process has no room for its descriptors. Costs a look
     * ahead.
     */
    bool keeps_frames;
    int fault;
    bool complete; /* buf holds the frame given out last */
    size_t have;
    struct gn_frame_header header;
    uint8_t *payload;
    size_t capacity;
    int n_fds;
    bool lost_fds;
    int fds[GN_FRAME_MAX_FDS]; /* -1: taken */
};

/* Takes every frame; sink, max_bytes, max_fds and keeps_frames may be set then. */
void gn_frame_reader_init(struct gn_frame_reader *r, int fd);
/* Gets rid of descriptors not taken; leaves the socket open. */
void gn_frame_reader_fini(struct gn_frame_reader *r);

/*
 * Never blocks. 1: a frame; 0: none yet; -EPIPE: the peer hung up between frames; -EPROTO: it broke
 * the format (or hung up inside a frame), -ENOMEM; -EBADF: in a program, the descriptor is not ours
 * any more. Errors are sticky, but for -EMFILE: the next frame's descriptors find no room in this
 * process, and it keeps its frames. Descriptors of the frame before that were not taken are closed.
 */
int gn_frame_read(struct gn_frame_reader *r, struct gn_frame *ret);
/* After -EMFILE: gives out the frame without its descriptors. As gn_frame_read. */
int gn_frame_read_without(struct gn_frame_reader *r, struct gn_frame *ret);

/*
 * As gn_frame_read, waiting at most timeout_ms (-1: for ever); -ETIMEDOUT then, which is not
 * sticky. For room for descriptors it waits no longer than GN_FRAME_ROOM_MS.
 */
#define GN_FRAME_ROOM_MS 1000
int gn_frame_wait(struct gn_frame_reader *r, int timeout_ms, struct gn_frame *ret);

/* Nothing of a frame has come that was not given out whole. */
static inline bool gn_frame_reader_rests(const struct gn_frame_reader *r)
{
    return r->complete || !r->have;
}

/* The frame's descriptor i, the caller's from now on; -1 if it was taken or is not there.
 * Close-on-exec. */
int gn_frame_take_fd(struct gn_frame_reader *r, int i);

/* Copies the payload when it has exactly n bytes; false otherwise. */
bool gn_frame_payload(const struct gn_frame *f, void *dst, size_t n);

/* NUL within n bytes: a fixed-size string field as received. */
bool gn_frame_string_ok(const char *s, size_t n);
/* Fills a fixed-size string field: cut to fit, zero to the end, cleaned (base/text.h). */
void gn_frame_string_set(char *dst, size_t n, const char *src);

/* Sends one whole frame, waiting at most timeout_ms for room. 0 or -errno; a partly sent frame
 * leaves the socket unusable. Descriptors stay the caller's. */
int gn_frame_send(int fd, int timeout_ms, uint16_t op, uint16_t flags, uint32_t seq,
                  const void *payload, size_t n, const int *fds, int n_fds);

/* The same over a connection to another machine: no descriptors travel. */
int gn_frame_send_tcp(struct gn_tcp *tcp, int timeout_ms, uint16_t op, uint16_t flags, uint32_t seq,
                      const void *payload, size_t n);

/* Frames for a peer who may not be reading: what the socket does not take now is queued, up to
 * max_bytes. */
struct gn_frame_writer {
    int fd;                  /* not owned */
    struct gn_fd_sink *sink; /* for copies of descriptors that wait here; NULL: close(2) */
    int fault;
    size_t queued_bytes;
    size_t max_bytes;
    struct gn_list queue;
};

void gn_frame_writer_init(struct gn_frame_writer *w, int fd, size_t max_bytes);
void gn_frame_writer_fini(struct gn_frame_writer *w);
/* 0 (sent or queued) or a sticky -errno: -EPIPE, -ENOBUFS when the peer has not read for too long,
 * -ENOMEM. Descriptors stay the caller's. */
int gn_frame_push(struct gn_frame_writer *w, uint16_t op, uint16_t flags, uint32_t seq,
                  const void *payload, size_t n, const int *fds, int n_fds);
int gn_frame_flush(struct gn_frame_writer *w);
static inline bool gn_frame_writer_pending(const struct gn_frame_writer *w)
{
    return !gn_list_empty(&w->queue);
}

#endif
