/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_FRAME_H
#define GN_LINK_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

/*
 * Frames on a SOCK_STREAM Unix socket: a 16-byte little-endian header, a payload, and up to
 * GN_FRAME_MAX_FDS descriptors. docs/link.md defines the format. This code logs nothing, allocates
 * at most a frame or a writer's bound, raises no SIGPIPE and does not trust the peer: a malformed
 * frame is a sticky fault, and every descriptor that the caller did not take is closed or given to
 * the sink.
 *
 * A reader or a writer belongs to one thread at a time.
 */
#define GN_FRAME_MAX_BYTES   65536u
#define GN_FRAME_MAX_PAYLOAD (GN_FRAME_MAX_BYTES - 16u)
#define GN_FRAME_MAX_FDS     10

/* flags */
#define GN_FRAME_MORE 1u /* the payload continues in the next frame of the same op and seq */

struct gn_frame_header {
    uint32_t size; /* of the whole frame, including this header */
    uint16_t op;
    uint16_t flags;
    uint32_t seq;
    uint32_t zero;
};
_Static_assert(sizeof(struct gn_frame_header) == 16, "frame header");

/* A received frame. The pointers are valid until the next call on its reader. */
struct gn_frame {
    uint16_t op;
    uint16_t flags;
    uint32_t seq;
    const void *payload;
    uint32_t n_payload;
    int n_fds;
    bool lost_fds; /* the frame had descriptors, but this process had no room for them: n_fds is
                    * 0 */
};

struct gn_tcp;

/*
 * Disposes of a peer's descriptors that the caller did not take. gantryd uses one because close()
 * may block for as long as the peer likes.
 */
struct gn_fd_sink {
    void (*take)(struct gn_fd_sink *, int fd);
};

struct gn_frame_reader {
    int fd;                  /* not owned */
    struct gn_tcp *tcp;      /* not NULL: read from this connection instead, which carries no
                              * descriptors; not owned */
    struct gn_fd_sink *sink; /* NULL: close() at once */
    uint32_t max_bytes; /* limit for a frame; a longer frame is a fault, as are more descriptors
                         * than max_fds */
    int max_fds;
    /*
     * Leave a frame in the socket while this process has no room for its descriptors. Costs a
     * MSG_PEEK for each frame.
     */
    bool keeps_frames;
    int fault;
    bool complete; /* payload holds the frame returned last */
    size_t have;
    struct gn_frame_header header;
    uint8_t *payload;
    size_t capacity;
    int n_fds;
    bool lost_fds;
    int fds[GN_FRAME_MAX_FDS]; /* -1: taken by the caller */
};

/* Accepts every frame. The caller may set sink, max_bytes, max_fds and keeps_frames afterwards. */
void gn_frame_reader_init(struct gn_frame_reader *r, int fd);
/* Closes the descriptors that were not taken. Leaves the socket open. */
void gn_frame_reader_fini(struct gn_frame_reader *r);

/*
 * Never blocks. 1: a frame; 0: no complete frame yet; -EPIPE: the peer hung up between frames;
 * -EPROTO: the peer broke the format or hung up inside a frame; -ENOMEM; -EBADF: the program has
 * closed this descriptor. These errors are sticky. With keeps_frames also -EMFILE, not sticky: this
 * process has no room for the next frame's descriptors. Closes descriptors of the previous frame
 * that were not taken.
 */
int gn_frame_read(struct gn_frame_reader *r, struct gn_frame *ret);
/* After -EMFILE: returns the frame without its descriptors. Otherwise as gn_frame_read. */
int gn_frame_read_without(struct gn_frame_reader *r, struct gn_frame *ret);

/*
 * As gn_frame_read, but waits at most timeout_ms (-1: no limit) and then returns -ETIMEDOUT, which
 * is not sticky. Waits for room for descriptors at most GN_FRAME_ROOM_MS.
 */
#define GN_FRAME_ROOM_MS 1000
int gn_frame_wait(struct gn_frame_reader *r, int timeout_ms, struct gn_frame *ret);

/* Whether the reader holds no part of an unfinished frame. */
static inline bool gn_frame_reader_rests(const struct gn_frame_reader *r)
{
    return r->complete || !r->have;
}

/*
 * Transfers the frame's descriptor i (close-on-exec) to the caller; -1 if it does not exist or was
 * transferred before.
 */
int gn_frame_take_fd(struct gn_frame_reader *r, int i);

/* Copies the payload if it has exactly n bytes; otherwise returns false. */
bool gn_frame_payload(const struct gn_frame *f, void *dst, size_t n);

/* Whether a received string field of n bytes contains a NUL. */
bool gn_frame_string_ok(const char *s, size_t n);
/* Fills a string field of n bytes: truncated to fit, padded with zeros, cleaned (base/text.h). */
void gn_frame_string_set(char *dst, size_t n, const char *src);

/*
 * Sends one frame, waiting at most timeout_ms for room in the socket. 0 or -errno; after a partial
 * send the socket is unusable. The caller keeps its descriptors.
 */
int gn_frame_send(int fd, int timeout_ms, uint16_t op, uint16_t flags, uint32_t seq,
                  const void *payload, size_t n, const int *fds, int n_fds);

/* The same over a tcp connection, without descriptors. */
int gn_frame_send_tcp(struct gn_tcp *tcp, int timeout_ms, uint16_t op, uint16_t flags, uint32_t seq,
                      const void *payload, size_t n);

/*
 * Sends frames to a peer that may not be reading: bytes that do not fit into the socket are queued,
 * up to max_bytes.
 */
struct gn_frame_writer {
    int fd;                  /* not owned */
    struct gn_fd_sink *sink; /* disposes of the queued copies of descriptors; NULL: close() at
                              * once */
    int fault;
    size_t queued_bytes;
    size_t max_bytes;
    struct gn_list queue;
};

void gn_frame_writer_init(struct gn_frame_writer *w, int fd, size_t max_bytes);
void gn_frame_writer_fini(struct gn_frame_writer *w);
/*
 * 0: sent or queued; or a sticky -errno: -EPIPE, -ENOMEM, or -ENOBUFS when the queue would exceed
 * max_bytes. The caller keeps its descriptors.
 */
int gn_frame_push(struct gn_frame_writer *w, uint16_t op, uint16_t flags, uint32_t seq,
                  const void *payload, size_t n, const int *fds, int n_fds);
int gn_frame_flush(struct gn_frame_writer *w);
static inline bool gn_frame_writer_pending(const struct gn_frame_writer *w)
{
    return !gn_list_empty(&w->queue);
}

#endif
