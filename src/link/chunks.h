/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_CHUNKS_H
#define GN_LINK_CHUNKS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "link/frame.h"
#include "shm/segment.h"

/*
 * A byte stream between two processes of one machine through shared memory: one process fills a
 * chunk while the other reads the previous one. A pipe allocates and frees a page for every 4 KiB
 * and wakes its ends four times as often; this stream has twice a pipe's throughput. A socket
 * beside the memory carries the notices that a chunk is filled or free, and shows each end when the
 * other one has gone.
 *
 * Neither end trusts the other. Lengths arrive over the socket and are checked; the bytes of a
 * chunk are copied once, or written to a file without being interpreted. One thread per end.
 */
#define GN_CHUNK_BYTES (1u << 20)
#define GN_N_CHUNKS    4u

struct gn_chunks {
    int socket; /* -1: closed */
    struct gn_segment memory;
    struct gn_frame_reader reader;
    uint32_t at;      /* the chunk that is filled or read next */
    uint32_t n_own;   /* filling end: number of chunks that it may fill, beginning with `at` */
    size_t used;      /* filling end: bytes written into `at` */
    uint64_t n_bytes; /* bytes transferred so far */
};

/*
 * Creates the reading end. *ret_other is a socket for the filling end, owned by the caller. 0 or
 * -errno.
 */
int gn_chunks_offer(struct gn_chunks *c, int *ret_other);
/*
 * Returns the next chunk; the caller releases it with gn_chunks_taken() before the next call. Waits
 * at most timeout_ms (-1: no limit). 1: *ret and *ret_bytes are set; 0: end of stream (the other
 * end has closed); -ETIMEDOUT: no chunk yet; -EPROTO and others: the stream is broken. The filling
 * end may modify the bytes at any time, so copy before checking.
 */
int gn_chunks_next(struct gn_chunks *c, int timeout_ms, const void **ret, size_t *ret_bytes);
int gn_chunks_taken(struct gn_chunks *c);

/*
 * Creates the filling end. Owns the socket from now on, also on failure. -EPROTO: the first frame
 * does not bring memory of the expected size.
 */
int gn_chunks_accept(struct gn_chunks *c, int socket, int timeout_ms);
/*
 * Writes all the bytes. Waits at most timeout_ms for each free chunk. 0, -EPIPE (the other end has
 * closed), -ETIMEDOUT or -EPROTO.
 */
int gn_chunks_write(struct gn_chunks *c, const struct iovec *iov, int n, int timeout_ms);
/* Passes on the last chunk although it is not full. */
int gn_chunks_flush(struct gn_chunks *c);

/* Closes either end; also valid on a zeroed struct with socket -1. */
void gn_chunks_close(struct gn_chunks *c);

#endif
