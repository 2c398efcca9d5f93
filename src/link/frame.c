/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames on Unix sockets; the format is in docs/link.md. Programs, `gantry`, gantryd, templates and
 * workers call this, each on its own thread. It logs nothing and blocks only in gn_frame_wait and
 * the two gn_frame_send functions, which have a timeout.
 */
#include "link/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/text.h"
#include "link/tcp.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are little-endian in memory");

#define HEADER_BYTES sizeof(struct gn_frame_header)
/*
 * The size of the buffer that a reader retains between frames. Hundreds of connections are idle, so
 * each must not retain 64 KiB.
 */
#define KEPT_BYTES 2048u
/*
 * The kernel's SCM_MAX_FD, the most descriptors of one message. With a smaller control buffer
 * recvmsg() would close the surplus itself.
 */
#define MOST_FDS     253
#define ROOM_LOOK_NS 5000000

void gn_frame_reader_init(struct gn_frame_reader *r, int fd)
{
    memset(r, 0, sizeof *r);
    r->fd = fd;
    r->max_bytes = GN_FRAME_MAX_BYTES;
    r->max_fds = GN_FRAME_MAX_FDS;
}

static void get_rid_of(struct gn_fd_sink *sink, int fd)
{
    if (sink)
        sink->take(sink, fd);
    else
        gn_fd_close(fd);
}

static void drop_fds(struct gn_frame_reader *r)
{
    for (int i = 0; i < r->n_fds; i++)
        if (r->fds[i] >= 0)
            get_rid_of(r->sink, r->fds[i]);
    r->n_fds = 0;
}

void gn_frame_reader_fini(struct gn_frame_reader *r)
{
    drop_fds(r);
    free(r->payload);
    r->payload = NULL;
    r->capacity = 0;
    r->fault = r->fault ? r->fault : -EPIPE;
}

static int fault(struct gn_frame_reader *r, int code)
{
    drop_fds(r);
    r->fault = code;
    return code;
}

/*
 * One recvmsg of at most n bytes. > 0: bytes received; 0: nothing available; < 0: a fault, which is
 * sticky. Sets r->lost_fds when the descriptor table of this process was full.
 */
static ssize_t receive(struct gn_frame_reader *r, void *dst, size_t n, int flags)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(MOST_FDS * sizeof(int))];
    } control;
    struct iovec iov = {.iov_base = dst, .iov_len = n};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof control};
    ssize_t got;
    if (r->tcp) {
        got = gn_tcp_recv(r->tcp, &iov, 1);
        if (got == -ENOKEY || got == -EKEYREJECTED)
            return fault(r, (int)got);
        return got > 0 ? got : got == -EAGAIN ? 0 : fault(r, r->have ? -EPROTO : -EPIPE);
    }
    if (!gn_fd_is_ours(r->fd))
        return fault(r, -EBADF);
    do
        got = gn_fd_receive(r->fd, &msg, flags);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return 0;
        return fault(r, r->have ? -EPROTO : -EPIPE);
    }

    bool too_many = false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n_fds; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (r->n_fds < r->max_fds) {
                r->fds[r->n_fds++] = fd;
            } else {
                get_rid_of(r->sink, fd);
                too_many = true;
            }
        }
    }
    if (msg.msg_flags & MSG_CTRUNC) { /* the control buffer has room for any message, so the
                                       * descriptor table of this process is full */
        r->lost_fds = true;
        drop_fds(r);
    }
    if (too_many)
        return fault(r, -EPROTO);
    if (got == 0)
        return fault(r, r->have ? -EPROTO : -EPIPE);
    return got;
}

/*
 * Peeks at a header and receives its descriptors, so that a shortage of descriptors does not lose
 * them. > 0: the descriptors are received, the header is still to be read; 0: nothing available;
 * -EMFILE: no room for the descriptors.
 */
static ssize_t look_ahead(struct gn_frame_reader *r)
{
    struct gn_frame_header header;
    const ssize_t got = receive(r, &header, sizeof header, MSG_PEEK);
    if (got <= 0 || !r->lost_fds)
        return got;
    r->lost_fds = false;
    return -EMFILE;
}

/*
 * Reads exactly the bytes that look_ahead saw; reading further would drop the descriptors of later
 * bytes. Their descriptors are received already, and the kernel drops the second copies with these
 * bytes. A peek that ends with a message also receives the next message's descriptors; MSG_CTRUNC
 * says whether these bytes had any.
 */
static ssize_t take_header(struct gn_frame_reader *r, size_t n)
{
    struct iovec iov = {.iov_base = &r->header, .iov_len = n};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t got;
    do
        got = recvmsg(r->fd, &msg, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got > 0 && !(msg.msg_flags & MSG_CTRUNC))
        drop_fds(r);
    return got > 0 ? got : fault(r, -EPROTO);
}

/* Reads the first bytes of a frame. Returns as receive(). */
static ssize_t begin(struct gn_frame_reader *r)
{
    if (r->tcp || !r->keeps_frames)
        return receive(r, &r->header, HEADER_BYTES, 0);
    const ssize_t seen = look_ahead(r);
    return seen > 0 ? take_header(r, (size_t)seen) : seen;
}

static bool reserve(struct gn_frame_reader *r, size_t n)
{
    if (r->capacity >= n)
        return true;
    size_t capacity = n < KEPT_BYTES ? KEPT_BYTES : n;
    uint8_t *p = malloc(capacity);
    if (!p)
        return false;
    free(r->payload);
    r->payload = p;
    r->capacity = capacity;
    return true;
}

static void start_over(struct gn_frame_reader *r)
{
    drop_fds(r);
    if (r->capacity > KEPT_BYTES) {
        free(r->payload);
        r->payload = NULL;
        r->capacity = 0;
    }
    r->complete = r->lost_fds = false;
    r->have = 0;
}

int gn_frame_read(struct gn_frame_reader *r, struct gn_frame *ret)
{
    if (r->fault)
        return r->fault;
    if (r->complete)
        start_over(r);
    for (;;) {
        /* Never read past the frame's end: descriptors that arrive then belong to this frame. */
        size_t goal = r->have < HEADER_BYTES ? HEADER_BYTES : r->header.size;
        if (r->have < goal) {
            void *dst = r->have < HEADER_BYTES ? (uint8_t *)&r->header + r->have
                                               : r->payload + (r->have - HEADER_BYTES);
            ssize_t got = r->have ? receive(r, dst, goal - r->have, 0) : begin(r);
            if (got <= 0)
                return (int)got;
            r->have += (size_t)got;
            if (r->have < goal)
                continue;
        }
        if (goal == HEADER_BYTES && r->have == HEADER_BYTES) {
            if (r->header.size < HEADER_BYTES || r->header.size > r->max_bytes ||
                r->header.zero != 0 || (r->header.flags & ~GN_FRAME_MORE) != 0)
                return fault(r, -EPROTO);
            if (!reserve(r, r->header.size - HEADER_BYTES))
                return fault(r, -ENOMEM);
            if (r->header.size > HEADER_BYTES)
                continue;
        }
        break;
    }
    r->complete = true;
    *ret = (struct gn_frame){.op = r->header.op,
                             .flags = r->header.flags,
                             .seq = r->header.seq,
                             .payload = r->payload,
                             .n_payload = r->header.size - (uint32_t)HEADER_BYTES,
                             .n_fds = r->n_fds,
                             .lost_fds = r->lost_fds};
    return 1;
}

int gn_frame_read_without(struct gn_frame_reader *r, struct gn_frame *ret)
{
    const bool keeps = r->keeps_frames;
    r->keeps_frames = false;
    const int rc = gn_frame_read(r, ret);
    r->keeps_frames = keeps;
    return rc;
}

/* Polls fd for events until the deadline (0: none). 1: ready; 0: timed out; -errno. */
static int wait_for(int fd, short events, uint64_t deadline_ns)
{
    for (;;) {
        int left_ms = -1;
        if (deadline_ns) {
            uint64_t now = gn_now_ns();
            left_ms = now >= deadline_ns ? 0 : (int)((deadline_ns - now + 999999) / 1000000);
        }
        struct pollfd p = {.fd = fd, .events = events};
        int n = poll(&p, 1, left_ms);
        if (n >= 0)
            return n;
        if (errno != EINTR)
            return -errno;
    }
}

static uint64_t deadline_of(int timeout_ms)
{
    return timeout_ms < 0 ? 0 : gn_now_ns() + (uint64_t)timeout_ms * 1000000u;
}

int gn_frame_wait(struct gn_frame_reader *r, int timeout_ms, struct gn_frame *ret)
{
    uint64_t deadline = deadline_of(timeout_ms);
    const struct timespec look = {.tv_nsec = ROOM_LOOK_NS};
    for (uint32_t looks = 0;;) {
        int rc = gn_frame_read(r, ret);
        if (rc == -EMFILE && ++looks * (ROOM_LOOK_NS / 1000000) < GN_FRAME_ROOM_MS) {
            nanosleep(&look, NULL);
            continue;
        }
        if (rc != 0)
            return rc;
        rc = wait_for(r->fd, POLLIN, deadline);
        if (rc < 0)
            return fault(r, rc);
        if (rc == 0)
            return -ETIMEDOUT;
    }
}

int gn_frame_take_fd(struct gn_frame_reader *r, int i)
{
    if (i < 0 || i >= r->n_fds)
        return -1;
    int fd = r->fds[i];
    r->fds[i] = -1;
    return fd;
}

bool gn_frame_payload(const struct gn_frame *f, void *dst, size_t n)
{
    if (f->n_payload != n)
        return false;
    if (n)
        memcpy(dst, f->payload, n);
    return true;
}

bool gn_frame_string_ok(const char *s, size_t n)
{
    return memchr(s, 0, n) != NULL;
}

void gn_frame_string_set(char *dst, size_t n, const char *src)
{
    size_t i = 0;
    memset(dst, 0, n);
    for (; i + 1 < n && src[i]; i++)
        dst[i] = src[i];
    /* Do not cut inside a UTF-8 sequence. */
    if (src[i] && ((unsigned char)src[i] & 0xc0) == 0x80) {
        while (i > 0 && ((unsigned char)dst[i - 1] & 0xc0) == 0x80)
            dst[--i] = 0;
        if (i > 0)
            dst[--i] = 0;
    }
    gn_text_clean(dst, i);
}

/*
 * One sendmsg of the frame's bytes from `offset` on; descriptors go with the first byte. > 0: bytes
 * sent; 0: the socket is full; -errno.
 */
static ssize_t transmit(int fd, const struct gn_frame_header *h, const uint8_t *payload,
                        size_t offset, const int *fds, int n_fds)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(GN_FRAME_MAX_FDS * sizeof(int))];
    } control;
    struct iovec iov[2];
    struct msghdr msg = {.msg_iov = iov};
    if (offset < HEADER_BYTES) {
        iov[msg.msg_iovlen].iov_base = (uint8_t *)(uintptr_t)h + offset;
        iov[msg.msg_iovlen++].iov_len = HEADER_BYTES - offset;
    }
    size_t done = offset < HEADER_BYTES ? 0 : offset - HEADER_BYTES;
    if (h->size - HEADER_BYTES > done) {
        iov[msg.msg_iovlen].iov_base = (uint8_t *)(uintptr_t)payload + done;
        iov[msg.msg_iovlen++].iov_len = h->size - HEADER_BYTES - done;
    }
    if (offset == 0 && n_fds > 0) {
        memset(&control, 0, sizeof control);
        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, (size_t)n_fds * sizeof(int));
    }
    ssize_t n;
    bool ours = gn_fd_is_ours(fd);
    for (int i = 0; i < n_fds; i++)
        ours &= gn_fd_is_ours(fds[i]); /* the program may have closed ours and opened a file
                                        * under the same number */
    if (!ours)
        return -EBADF;
    do
        n = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
    return n;
}

static int make_header(struct gn_frame_header *h, uint16_t op, uint16_t flags, uint32_t seq,
                       size_t n, int n_fds)
{
    if (n > GN_FRAME_MAX_PAYLOAD || n_fds < 0 || n_fds > GN_FRAME_MAX_FDS)
        return -EMSGSIZE;
    *h = (struct gn_frame_header){
        .size = (uint32_t)(HEADER_BYTES + n), .op = op, .flags = flags, .seq = seq};
    return 0;
}

int gn_frame_send(int fd, int timeout_ms, uint16_t op, uint16_t flags, uint32_t seq,
                  const void *payload, size_t n, const int *fds, int n_fds)
{
    struct gn_frame_header h;
    uint64_t deadline = deadline_of(timeout_ms);
    int rc = make_header(&h, op, flags, seq, n, n_fds);
    if (rc)
        return rc;
    for (size_t sent = 0; sent < h.size;) {
        ssize_t m = transmit(fd, &h, payload, sent, fds, n_fds);
        if (m < 0)
            return (int)m;
        sent += (size_t)m;
        if (m == 0) {
            rc = wait_for(fd, POLLOUT, deadline);
            if (rc < 0)
                return rc;
            if (rc == 0)
                return -ETIMEDOUT;
        }
    }
    return 0;
}

int gn_frame_send_tcp(struct gn_tcp *tcp, int timeout_ms, uint16_t op, uint16_t flags, uint32_t seq,
                      const void *payload, size_t n)
{
    struct gn_frame_header h;
    int rc = make_header(&h, op, flags, seq, n, 0);
    if (rc)
        return rc;
    uint64_t deadline = gn_now_ns() + (uint64_t)timeout_ms * 1000000u;
    rc = gn_tcp_send_all(tcp, &h, sizeof h, deadline);
    return rc ? rc : gn_tcp_send_all(tcp, payload, n, deadline);
}

struct queued {
    struct gn_list link;
    struct gn_frame_header header;
    size_t sent;
    int n_fds;
    int fds[GN_FRAME_MAX_FDS];
    uint8_t payload[];
};

void gn_frame_writer_init(struct gn_frame_writer *w, int fd, size_t max_bytes)
{
    *w = (struct gn_frame_writer){.fd = fd, .max_bytes = max_bytes};
    gn_list_init(&w->queue);
}

static void close_queued_fds(struct gn_frame_writer *w, struct queued *q)
{
    for (int i = 0; i < q->n_fds; i++)
        get_rid_of(w->sink, q->fds[i]);
    q->n_fds = 0;
}

static void drop(struct gn_frame_writer *w, struct queued *q)
{
    gn_list_remove(&q->link);
    w->queued_bytes -= q->header.size;
    close_queued_fds(w, q);
    free(q);
}

void gn_frame_writer_fini(struct gn_frame_writer *w)
{
    gn_list_for_each(q, &w->queue, struct queued, link) drop(w, q);
    w->fault = w->fault ? w->fault : -EPIPE;
}

int gn_frame_flush(struct gn_frame_writer *w)
{
    if (w->fault)
        return w->fault;
    gn_list_for_each(q, &w->queue, struct queued, link)
    {
        while (q->sent < q->header.size) {
            ssize_t m = transmit(w->fd, &q->header, q->payload, q->sent, q->fds, q->n_fds);
            if (m < 0)
                return w->fault = (int)m;
            if (m == 0)
                return 0;
            if (q->sent == 0)
                close_queued_fds(w, q);
            q->sent += (size_t)m;
        }
        drop(w, q);
    }
    return 0;
}

int gn_frame_push(struct gn_frame_writer *w, uint16_t op, uint16_t flags, uint32_t seq,
                  const void *payload, size_t n, const int *fds, int n_fds)
{
    struct gn_frame_header h;
    int rc = make_header(&h, op, flags, seq, n, n_fds);
    if (rc)
        return rc;
    if (w->fault)
        return w->fault;
    ssize_t sent = 0;
    if (gn_list_empty(&w->queue)) {
        sent = transmit(w->fd, &h, payload, 0, fds, n_fds);
        if (sent < 0)
            return w->fault = (int)sent;
        if ((size_t)sent == h.size)
            return 0;
    }
    if (w->queued_bytes + h.size > w->max_bytes)
        return w->fault = -ENOBUFS;
    struct queued *q = malloc(sizeof *q + n);
    if (!q)
        return w->fault = -ENOMEM;
    q->header = h;
    q->sent = (size_t)sent;
    q->n_fds = 0;
    if (n)
        memcpy(q->payload, payload, n);
    if (sent == 0) {
        for (int i = 0; i < n_fds; i++) {
            int fd = gn_fd_duplicate(fds[i]);
            if (fd < 0) {
                rc = -errno;
                close_queued_fds(w, q);
                free(q);
                return w->fault = rc;
            }
            q->fds[q->n_fds++] = fd;
        }
    }
    gn_list_append(&w->queue, &q->link);
    w->queued_bytes += h.size;
    return 0;
}
