/* SPDX-License-Identifier: Apache-2.0 */
#include "gantryd_for_guest.h"

#include "base/checked.h"
#include "link/link_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fuzz.h"

#define DATA_BYTES (UINT64_C(16) << 20)
#define WAIT_MS    10000

void *gantryd_for_guest_area(struct gantryd_for_guest *g, uint32_t segment, uint64_t offset,
                             uint64_t bytes)
{
    void *at = NULL;
    pthread_mutex_lock(&g->lock);
    if (segment && segment <= g->n_segments &&
        gn_range_ok(offset, bytes, g->segments[segment - 1].bytes))
        at = (char *)g->segments[segment - 1].base + offset;
    pthread_mutex_unlock(&g->lock);
    return at;
}

static uint32_t add_segment(struct gantryd_for_guest *g, uint64_t bytes)
{
    struct gn_segment s;
    FUZZ_CHECK(gn_segment_create("fuzz-data", bytes, &s) == 0 && gn_segment_map(&s) == 0);
    pthread_mutex_lock(&g->lock);
    FUZZ_CHECK(g->n_segments < sizeof g->segments / sizeof *g->segments);
    g->segments[g->n_segments] = s;
    uint32_t index = g->n_segments++;
    pthread_mutex_unlock(&g->lock);
    return index;
}

static void welcome(int fd, uint32_t seq)
{
    struct {
        struct gn_link_welcome head;
        struct gn_link_welcome_platform platform;
    } w = {{GN_LINK_VERSION, 1, 0}, {0, 2, "opencl", "fuzz"}};
    FUZZ_CHECK(gn_frame_send(fd, WAIT_MS, GN_LINK_WELCOME, 0, seq, &w, sizeof w, NULL, 0) == 0);
}

static void attach(struct gantryd_for_guest *g, int fd, uint32_t seq)
{
    struct gn_segment ring, events;
    int ends[2];
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    FUZZ_CHECK(gn_session_create("fuzz-ring", &ring) == 0 && gn_segment_map(&ring) == 0);
    FUZZ_CHECK(gn_segment_create("fuzz-events", GN_EVENT_TABLE_BYTES, &events) == 0 &&
               gn_segment_map(&events) == 0);
    FUZZ_CHECK(gn_session_map(ring.base, ring.bytes, &g->view) == 0);
    g->events = events.base;
    g->session_fd = ends[0];
    uint32_t data = add_segment(g, DATA_BYTES);
    pthread_mutex_lock(&g->lock);
    g->is_attached = true;
    pthread_cond_signal(&g->attached);
    pthread_mutex_unlock(&g->lock);
    const int fds[4] = {ends[1], ring.fd, events.fd, g->segments[data].fd};
    const struct gn_link_attached a = {.vgpu_id = 1,
                                       .ring_bytes = ring.bytes,
                                       .events_bytes = events.bytes,
                                       .data_bytes = g->segments[data].bytes};
    FUZZ_CHECK(gn_frame_send(fd, WAIT_MS, GN_LINK_ATTACHED, 0, seq, &a, sizeof a, fds, 4) == 0);
}

void gantryd_for_guest_wait(struct gantryd_for_guest *g)
{
    pthread_mutex_lock(&g->lock);
    while (!g->is_attached)
        pthread_cond_wait(&g->attached, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void serve(struct gantryd_for_guest *g, int fd)
{
    struct gn_frame_reader reader;
    struct gn_frame f;
    gn_frame_reader_init(&reader, fd);
    while (gn_frame_wait(&reader, -1, &f) == 1) {
        if (f.op == GN_LINK_HELLO) {
            welcome(fd, f.seq);
        } else if (f.op == GN_LINK_ATTACH) {
            attach(g, fd, f.seq);
        } else if (f.op == GN_LINK_SEGMENT) {
            struct gn_link_segment s;
            FUZZ_CHECK(gn_frame_payload(&f, &s, sizeof s));
            uint32_t index = add_segment(g, s.bytes);
            const struct gn_link_segment_made m = {.index = index, .bytes = s.bytes};
            FUZZ_CHECK(gn_frame_send(fd, WAIT_MS, GN_LINK_SEGMENT_MADE, 0, f.seq, &m, sizeof m,
                                     &g->segments[index].fd, 1) == 0);
        }
    }
    gn_frame_reader_fini(&reader);
    close(fd);
}

static void *listen_thread(void *arg)
{
    struct gantryd_for_guest *g = arg;
    for (;;) {
        int fd = accept4(g->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            serve(g, fd);
    }
    return NULL;
}

void gantryd_for_guest_start(struct gantryd_for_guest *g)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char address[sizeof at.sun_path + 8];
    pthread_t thread;
    /* As programs without a terminal are: what a worker would print to is nobody's. */
    snprintf(at.sun_path, sizeof at.sun_path, "/tmp/gantry-fuzz-%d.sock", (int)getpid());
    snprintf(address, sizeof address, "unix:%s", at.sun_path);
    unlink(at.sun_path);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->attached, NULL);
    g->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FUZZ_CHECK(g->listener >= 0 && bind(g->listener, (struct sockaddr *)&at, sizeof at) == 0 &&
               listen(g->listener, 4) == 0);
    setenv("GANTRY_CONNECT", address, 1);
    FUZZ_CHECK(pthread_create(&thread, NULL, listen_thread, g) == 0);
}
