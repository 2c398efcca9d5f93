/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a session over tcp stood, as whoever wrote the file or sits on the other machine plays it
 * (docs/migration-stream.md): any frames, and gone on with.
 */
#include "vgpu/session/session_tcp_internal.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "guarded.h"
#include "link/frame.h"
#include "vgpu/boot.h"
#include "vgpu/migrate/route.h"

#define AREA_BYTES   (UINT64_C(1) << 20)
#define MOST_TOUCHED (UINT64_C(1) << 20) /* one chunk: a second one is refused */

static struct gn_vgpu_boot boot;
static struct gn_vgpu v;
static struct gn_vgpu_tcp h;

static void begin(void)
{
    void *area = v.segments[0].base ? v.segments[0].base : guarded_map(AREA_BYTES),
         *events = v.events ? v.events : guarded_map(GN_EVENT_TABLE_BYTES);
    memset(&v, 0, sizeof v);
    memset(&h, 0, sizeof h);
    boot.route = gn_route(GN_ROUTE_TCP);
    v.boot = &boot;
    v.session = &gn_vgpu_session_tcp;
    v.tcp = &h;
    h.v = &v;
    v.events = events;
    v.segments[0] = (struct gn_segment){.fd = -1, .base = area, .bytes = AREA_BYTES};
    atomic_init(&v.n_segments, 1);
    gn_lost_init(&v.lost);
    pthread_mutex_init(&v.lock, NULL);
    gn_list_init(&v.batch_waiters);
    gn_list_init(&h.held);
    h.most_touched = MOST_TOUCHED;
    FUZZ_CHECK(gn_out_init(&h.out) == 0);
}

static void end(void)
{
    gn_list_for_each(held, &h.held, struct gn_session_tcp_held, link)
    {
        gn_list_remove(&held->link);
        free(held);
        h.n_held--;
    }
    FUZZ_CHECK(h.n_held == 0);
    for (uint32_t i = 0; i < GN_MAX_SEGMENTS; i++)
        free(h.touched[i]);
    gn_out_fini(&h.out);
    pthread_mutex_destroy(&v.lock);
}

/* A program that has taken so much of what it was told. */
static void connect_program(uint64_t received)
{
    static char bytes[65536];
    int ends[2];
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    struct gn_tcp tcp = {ends[0], NULL};
    int rc = gn_out_connect(&h.out, &tcp, received);
    FUZZ_CHECK(rc == 0 || rc == -EPROTO);
    for (int i = 0; !rc && i < 1000; i++) {
        rc = gn_out_flush(&h.out);
        FUZZ_CHECK(rc == 0 || rc == -EAGAIN);
        ssize_t n = recv(ends[1], bytes, sizeof bytes, 0);
        rc = n > 0 ? 0 : -EPIPE;
    }
    gn_out_disconnect(&h.out);
    gn_tcp_close(&tcp);
    close(ends[1]);
}

static bool take(struct fuzz *f, uint32_t number)
{
    unsigned char *payload = NULL;
    const uint8_t what = fuzz_u8(f);
    /* Counts that the frames after it can hold, or any. */
    struct gn_worker_hand_tcp far = {
        .n_held = what & 3, .n_areas = what >> 2 & 3, .n_said = what >> 4 & 3};
    struct gn_frame frame = {
        .op = (uint16_t)(80 + what % 4), .seq = what >> 6, .n_payload = fuzz_u16(f)};
    if (!number && what >> 6 < 3) {
        far.received = fuzz_u64(f);
        far.n_batches = fuzz_u8(f);
        far.first = fuzz_u8(f);
        far.acknowledged = far.first + fuzz_u8(f);
        frame =
            (struct gn_frame){.op = GN_WORKER_HAND_TCP, .payload = &far, .n_payload = sizeof far};
    } else {
        size_t n = frame.n_payload;
        const uint8_t *at = fuzz_bytes(f, &n);
        frame.n_payload = (uint32_t)n;
        /* Exactly as long as it says. */
        payload = malloc(n ? n : 1);
        FUZZ_CHECK(payload);
        if (n)
            memcpy(payload, at, n);
        frame.payload = payload;
    }
    const int rc = gn_vgpu_tcp_load_frame(&h, &frame);
    FUZZ_CHECK(rc == 0 || rc == -EPROTO);
    FUZZ_CHECK(h.n_held <= GN_REPLY_SLOTS &&
               h.touched_bytes <= MOST_TOUCHED + GN_REMOTE_CHUNK_BYTES);
    free(payload);
    return rc == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = fuzz_of(data, size);
    begin();
    const uint64_t received = fuzz_u8(&f);
    bool good = true;
    for (uint32_t i = 0; good && !gn_vgpu_tcp_is_loaded(&h) && (f.left || i < 2); i++)
        good = take(&f, i);
    const bool whole = gn_vgpu_tcp_is_loaded(&h);
    const int rc = gn_vgpu_tcp_resume_stream(&h);
    FUZZ_CHECK(rc == 0 || rc == -EPROTO);
    FUZZ_CHECK(whole || rc);
    if (!rc)
        connect_program(received);
    end();
    return 0;
}
