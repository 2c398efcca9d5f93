/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_CHUNKS_H
#define GN_LINK_CHUNKS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "link/frame.h"
#include "shm/segment.h"

/*
 * A stream of bytes between two processes of one machine through memory that both have: a chunk is
 * filled by one and taken by the other, while the next is being filled. A pipe allocates and frees
 * a page for every 4 KiB, and wakes its ends four times as often: this carries twice what a pipe
 * does. A socket goes with it for what is filled and what is free again, so that either end hears
 * of the other's.
 *
 * Neither end trusts the other: lengths come by the socket and are checked; what is in a chunk is
 * copied once, or goes where nobody looks at it. One thread an end.
 */
#define GN_CHUNK_BYTES (1u << 20)
#define GN_N_CHUNKS    4u

struct gn_chunks {
    int socket; /* -1: closed */
    struct gn_segment memory;
    struct gn_frame_reader reader;
    uint32_t at;      /* the chunk that is filled or taken next */
    uint32_t n_own;   /* of the filling end: chunks that it may fill, `at` first */
    size_t used;      /* of the filling end: bytes in `at` */
    uint64_t n_bytes; /* how many have passed */
};

/* The taking end. *ret_other: a socket for the filling end, the caller's. 0 or -errno. */
int gn_chunks_offer(struct gn_chunks *c, int *ret_other);
/*
 * The next chunk, to be given back by gn_chunks_taken() before the next call. Waits at most
 * timeout_ms (-1: for ever). 1; 0: the stream is over, the other end has closed; -ETIMEDOUT:
 * nothing yet; -EPROTO and others: it is broken. What is there may change while it is looked at.
 */
int gn_chunks_next(struct gn_chunks *c, int timeout_ms, const void **ret, size_t *ret_bytes);
int gn_chunks_taken(struct gn_chunks *c);

/* The filling end. The socket is the chunks' from now on, also when this fails. -EPROTO: what came
 * over it is no such memory. */
int gn_chunks_accept(struct gn_chunks *c, int socket, int timeout_ms);
/* All of it. Waits at most timeout_ms for each chunk. 0, -EPIPE (the other end is gone),
 * -ETIMEDOUT, -EPROTO. */
int gn_chunks_write(struct gn_chunks *c, const struct iovec *iov, int n, int timeout_ms);
/* What has been written and fills no whole chunk goes, too. */
int gn_chunks_flush(struct gn_chunks *c);

/* Either end, also one that was never made (all zeros but socket -1). */
void gn_chunks_close(struct gn_chunks *c);

#endif
