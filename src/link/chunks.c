/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A byte stream through shared memory for checkpoints: the worker fills chunks, `gantry` reads
 * them. Each end is used by one thread, the caller's; nothing is logged.
 *
 * Frames on the socket carry the state of the chunks. The reading end sends MEMORY (the memfd)
 * once; then the filling end sends FILLED with a length, and the reading end sends FREE. Both ends
 * use the chunks in turn, so no frame names one. A call blocks only as long as its declaration
 * says.
 */
#include "link/chunks.h"
#include "base/descriptor.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MEMORY = 1, FILLED = 2, FREE = 3 };

#define SEND_TIMEOUT_MS                                                                            \
    10000 /* for frames of a few bytes, for which a live peer always has room                      \
           */

struct filled {
    uint32_t bytes, zero;
};

static unsigned char *chunk(const struct gn_chunks *c)
{
    return (unsigned char *)c->memory.base + (size_t)c->at * GN_CHUNK_BYTES;
}

static void next_chunk(struct gn_chunks *c)
{
    c->at = (c->at + 1) % GN_N_CHUNKS;
}

static int tell(struct gn_chunks *c, uint16_t op, const void *payload, size_t n)
{
    return gn_frame_send(c->socket, SEND_TIMEOUT_MS, op, 0, 0, payload, n, NULL, 0);
}

/* ---- the reading end */

int gn_chunks_offer(struct gn_chunks *c, int *ret_other)
{
    int ends[2];
    *c = (struct gn_chunks){.socket = -1, .memory.fd = -1};
    if (gn_fd_pair(AF_UNIX, SOCK_STREAM, ends) < 0)
        return -errno;
    c->socket = ends[0];
    gn_frame_reader_init(&c->reader, c->socket);
    int rc = gn_segment_create("gantry-chunks", (uint64_t)GN_N_CHUNKS * GN_CHUNK_BYTES, &c->memory);
    if (!rc)
        rc = gn_segment_map(&c->memory);
    if (!rc)
        rc = gn_frame_send(c->socket, SEND_TIMEOUT_MS, MEMORY, 0, 0, NULL, 0, &c->memory.fd, 1);
    if (rc) {
        gn_fd_close(ends[1]);
        gn_chunks_close(c);
        return rc;
    }
    *ret_other = ends[1];
    return 0;
}

int gn_chunks_next(struct gn_chunks *c, int timeout_ms, const void **ret, size_t *ret_bytes)
{
    struct gn_frame f;
    struct filled filled;
    int rc = gn_frame_wait(&c->reader, timeout_ms, &f);
    if (rc != 1)
        return rc == -EPIPE ? 0 : rc;
    if (f.op != FILLED || !gn_frame_payload(&f, &filled, sizeof filled) || !filled.bytes ||
        filled.bytes > GN_CHUNK_BYTES || filled.zero)
        return -EPROTO;
    *ret = chunk(c);
    *ret_bytes = filled.bytes;
    c->n_bytes += filled.bytes;
    return 1;
}

int gn_chunks_taken(struct gn_chunks *c)
{
    next_chunk(c);
    int rc = tell(c, FREE, NULL, 0);
    /* The filling end may close after its last chunk; the chunks in memory remain to be read. */
    return rc == -EPIPE || rc == -ECONNRESET ? 0 : rc;
}

/* ---- the filling end */

int gn_chunks_accept(struct gn_chunks *c, int socket, int timeout_ms)
{
    struct gn_frame f;
    *c = (struct gn_chunks){.socket = socket, .memory.fd = -1, .n_own = GN_N_CHUNKS};
    gn_frame_reader_init(&c->reader, socket);
    int rc = gn_frame_wait(&c->reader, timeout_ms, &f);
    if (rc == 1)
        rc = f.op == MEMORY && f.n_fds == 1 ? 0 : -EPROTO;
    if (!rc) {
        const int fd = gn_frame_take_fd(&c->reader, 0);
        rc = gn_segment_adopt(fd, (uint64_t)GN_N_CHUNKS * GN_CHUNK_BYTES, &c->memory);
        if (rc) {
            gn_fd_close(fd);
            c->memory = (struct gn_segment){.fd = -1};
        } else if (c->memory.bytes != (uint64_t)GN_N_CHUNKS * GN_CHUNK_BYTES) {
            rc = -EPROTO;
        }
    }
    if (rc)
        gn_chunks_close(c);
    return rc;
}

/* Collects the chunks that the reader has freed. Waits for the first one if there is none. */
static int own_one(struct gn_chunks *c, int timeout_ms)
{
    while (c->n_own < GN_N_CHUNKS) {
        struct gn_frame f;
        int rc =
            c->n_own ? gn_frame_read(&c->reader, &f) : gn_frame_wait(&c->reader, timeout_ms, &f);
        if (rc == 0)
            return 0;
        if (rc != 1)
            return rc;
        if (f.op != FREE || f.n_payload || f.n_fds)
            return -EPROTO;
        c->n_own++;
    }
    return 0;
}

int gn_chunks_flush(struct gn_chunks *c)
{
    const struct filled filled = {.bytes = (uint32_t)c->used};
    if (!c->used)
        return 0;
    int rc = tell(c, FILLED, &filled, sizeof filled);
    if (rc)
        return rc == -ECONNRESET ? -EPIPE : rc;
    c->n_bytes += c->used;
    c->used = 0;
    c->n_own--;
    next_chunk(c);
    return 0;
}

int gn_chunks_write(struct gn_chunks *c, const struct iovec *iov, int n, int timeout_ms)
{
    int rc = 0;
    for (int i = 0; i < n; i++) {
        const unsigned char *from = iov[i].iov_base;
        for (size_t left = iov[i].iov_len; left && !rc;) {
            if (!c->used && (rc = own_one(c, timeout_ms)))
                return rc;
            const size_t room = GN_CHUNK_BYTES - c->used, part = left < room ? left : room;
            memcpy(chunk(c) + c->used, from, part);
            c->used += part;
            from += part;
            left -= part;
            if (c->used == GN_CHUNK_BYTES)
                rc = gn_chunks_flush(c);
        }
    }
    return rc;
}

void gn_chunks_close(struct gn_chunks *c)
{
    if (c->socket < 0)
        return;
    gn_frame_reader_fini(&c->reader);
    gn_fd_close(c->socket);
    if (c->memory.fd >= 0)
        gn_segment_fini(&c->memory);
    c->socket = c->memory.fd = -1;
}
