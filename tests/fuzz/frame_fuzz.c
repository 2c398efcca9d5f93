/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: a peer that writes any bytes, in any pieces, with any descriptors; and one that does not
 * read what it is sent. */
#include "link/frame.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"

static void send_raw(int fd, const uint8_t *bytes, size_t n, int n_fds)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(16 * sizeof(int))];
    } control;
    struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (n == 0)
        return;
    memset(&control, 0, sizeof control);
    if (n_fds) {
        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int));
        for (int i = 0; i < n_fds; i++)
            memcpy(CMSG_DATA(c) + (size_t)i * sizeof(int), &fd, sizeof fd);
    }
    (void)!sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void read_some(struct gn_frame_reader *r, uint8_t how)
{
    struct gn_frame f;
    int rc = gn_frame_read(r, &f);
    if (rc < 0) {
        FUZZ_CHECK(rc == -EPROTO || rc == -EPIPE || rc == -ENOMEM);
        FUZZ_CHECK(gn_frame_read(r, &f) == rc);
        return;
    }
    if (rc == 0)
        return;
    FUZZ_CHECK(f.n_payload <= GN_FRAME_MAX_PAYLOAD && f.n_fds >= 0 && f.n_fds <= GN_FRAME_MAX_FDS);
    uint8_t sum = 0;
    for (uint32_t i = 0; i < f.n_payload; i++)
        sum += ((const uint8_t *)f.payload)[i];
    char text[16], other[16];
    if (gn_frame_payload(&f, text, sizeof text) && gn_frame_string_ok(text, sizeof text)) {
        gn_frame_string_set(other, sizeof other, text);
        FUZZ_CHECK(gn_frame_string_ok(other, sizeof other));
    }
    for (int i = sum % 3; how & 1 && i < f.n_fds + 1; i++) {
        int fd = gn_frame_take_fd(r, i);
        FUZZ_CHECK((fd >= 0) == (i < f.n_fds));
        FUZZ_CHECK(gn_frame_take_fd(r, i) == -1);
        if (fd >= 0)
            close(fd);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = fuzz_of(data, size);
    struct gn_frame_reader reader;
    struct gn_frame_writer writer;
    int ends[2], lowest = dup(0);
    close(lowest);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return 0;
    int small = 4096;
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    gn_frame_reader_init(&reader, ends[0]);
    gn_frame_writer_init(&writer, ends[0], 8192);
    while (f.left) {
        uint8_t step = fuzz_u8(&f);
        size_t n;
        const uint8_t *from;
        switch (step % 8) {
        case 0:
        case 1:
        case 2: /* raw bytes */
            n = step % 8 == 2 ? fuzz_u16(&f) : fuzz_u8(&f);
            from = fuzz_bytes(&f, &n);
            send_raw(ends[1], from, n, step >> 3 & 15);
            break;
        case 3: { /* a frame that is all right */
            n = fuzz_u8(&f);
            const uint8_t *at = fuzz_bytes(&f, &n);
            int fds[] = {ends[1], ends[1], ends[1], ends[1], ends[1], ends[1], ends[1], ends[1]};
            (void)gn_frame_send(ends[1], 0, fuzz_u16(&f), step >> 6 & 1, fuzz_u32(&f), at, n, fds,
                                step >> 3 & 7);
            break;
        }
        case 4:
            (void)gn_frame_push(&writer, step, 0, 7, "four", 4, &ends[1], step >> 7);
            FUZZ_CHECK(writer.queued_bytes <= writer.max_bytes);
            break;
        case 5: {
            char into[512];
            (void)!recv(ends[1], into, sizeof into, MSG_DONTWAIT);
            (void)gn_frame_flush(&writer);
            break;
        }
        case 6:
            read_some(&reader, step >> 3);
            break;
        default:
            if (step >= 0xf8)
                shutdown(ends[1], SHUT_WR);
            else
                read_some(&reader, step >> 3);
        }
    }
    for (int i = 0; i < 4; i++)
        read_some(&reader, 1);
    gn_frame_reader_fini(&reader);
    gn_frame_writer_fini(&writer);
    close(ends[0]);
    close(ends[1]);
    /* Not one of the descriptors that came is left open. */
    int after = dup(0);
    FUZZ_CHECK(after == lowest);
    close(after);
    return 0;
}
