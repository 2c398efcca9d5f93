/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's session over tcp against a worker, or whoever has taken its machine, that sends any
 * records: answers to calls never made, events out of nowhere, data for any place, wishes for
 * files, acknowledgements. Everything stays inside the tables, the data area and the memory that a
 * transfer waits for, and what is kept for later is bounded.
 */
#include "guest/migrate/follow_migration.h"
#include "guest/session/session_ops.h"
#include "guest/session/session_tcp_internal.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "guarded.h"

#define AREA_BYTES (UINT64_C(1) << 20)
#define MOST_BYTES 70000u
#define LANDINGS   4u

static struct gn_session s;
static struct gn_session_tcp r;
static int peer = -1;
static uint8_t sum;
static struct landing_place {
    struct gn_area_ref ref;
    uint8_t *to; /* of exactly its size */
    bool there;
} places[LANDINGS];

static void heard(struct gn_session *session, uint16_t op, const void *payload, uint32_t n)
{
    FUZZ_CHECK(session == &s);
    for (uint32_t i = 0; payload && i < n; i++)
        sum += ((const uint8_t *)payload)[i] + (uint8_t)op;
}

static const struct gn_guest_api api = {
    .name = "fuzz", .on_frame = heard, .result_lost = -5, .result_no_memory = -6};

static void begin(void)
{
    struct gn_segment data;
    s.api = &api;
    s.migration = &gn_session_migration;
    s.socket = -1;
    gn_lost_init(&s.lost);
    s.waiter = (struct gn_waiter){gn_spin_policy_default(), &s.lost};
    pthread_mutex_init(&s.folders_lock, NULL);
    gn_list_init(&s.folders);
    pthread_mutex_init(&s.events_lock, NULL);
    s.events = guarded_map(GN_EVENT_TABLE_BYTES);
    s.view.replies = guarded_map(GN_REPLY_SLOTS * sizeof(struct gn_reply_slot));
    FUZZ_CHECK(gn_segment_create("fuzz-data", AREA_BYTES, &data) == 0 &&
               gn_segment_map(&data) == 0);
    FUZZ_CHECK(gn_area_init(&s, data) == 0);
    r.s = &s;
    s.tcp = &r;
    s.ops = &gn_session_tcp_direct;
    pthread_mutex_init(&r.landings_lock, NULL);
    pthread_cond_init(&r.landings_wake, NULL);
    pthread_mutex_init(&r.wants_lock, NULL);
    gn_list_init(&r.wants);
    for (uint32_t i = 0; i < MAX_LANDINGS; i++)
        r.landings[i].segment = GN_NO_BLOCK;
    r.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    FUZZ_CHECK(r.wake_fd >= 0);
}

static void connect_both(void)
{
    int ends[2];
    FUZZ_CHECK(gn_out_init(&r.out) == 0 && gn_in_init(&r.in, &gn_session_tcp_in_ops, &r) == 0);
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    r.tcp = (struct gn_tcp){ends[0], NULL};
    peer = ends[1];
    gn_in_connect(&r.in, &r.tcp);
    FUZZ_CHECK(gn_out_connect(&r.out, &r.tcp, 0) == 0);
}

static uint32_t forget_wants(void)
{
    uint32_t n = 0;
    r.n_wants = 0;
    gn_list_for_each(w, &r.wants, struct want, link)
    {
        gn_list_remove(&w->link);
        free(w);
        n++;
    }
    return n;
}

/* False: the connection is over. */
static bool read_all(void)
{
    int rc;
    while ((rc = gn_in_read(&r.in)) > 0)
        ;
    return rc == -EAGAIN;
}

/* Whole, whatever it says: so that what is meant as text for stdout is what this leaves out, and
 * nothing else can become it. */
static bool send_record(struct fuzz *f)
{
    static const uint64_t odd[] = {0,
                                   1,
                                   255,
                                   256,
                                   4096,
                                   GN_EVENT_ENTRIES - 1,
                                   GN_EVENT_ENTRIES,
                                   AREA_BYTES - 1,
                                   AREA_BYTES,
                                   UINT32_MAX,
                                   UINT64_C(1) << 32,
                                   UINT64_C(1) << 63,
                                   UINT64_MAX - 7,
                                   UINT64_MAX};
    static uint8_t payload[MOST_BYTES];
    uint8_t what = fuzz_u8(f), at = fuzz_u8(f);
    struct gn_stream_record record = {.type = what % 24, .part = fuzz_u8(f) % 8};
    record.at = at & 128  ? odd[at % (sizeof odd / sizeof *odd)]
                : at & 64 ? places[at % LANDINGS].ref.offset
                          : fuzz_u64(f);
    record.bytes = what >= 224   ? fuzz_u32(f)
                   : what >= 192 ? (fuzz_u16(f) + 5000u) % MOST_BYTES
                                 : fuzz_u8(f);
    if (record.type == GN_RECORD_PRINT)
        return true;
    bool too_long = record.bytes > MOST_BYTES;
    fuzz_take(f, payload, record.bytes < 64 ? record.bytes : 64);
    if (send(peer, &record, sizeof record, MSG_NOSIGNAL) != (ssize_t)sizeof record)
        return false;
    if (!too_long && record.bytes &&
        send(peer, payload, record.bytes, MSG_NOSIGNAL) != (ssize_t)record.bytes)
        return false;
    return read_all() && !too_long;
}

static void land(struct fuzz *f)
{
    struct landing_place *p = &places[fuzz_u8(f) % LANDINGS];
    if (p->there) {
        gn_session_tcp_landed(&r, &p->ref);
        free(p->to);
        *p = (struct landing_place){.there = false};
        return;
    }
    uint32_t bytes = 1u + fuzz_u16(f);
    p->ref = (struct gn_area_ref){1, 0, fuzz_u32(f) % (uint32_t)(AREA_BYTES - bytes)};
    p->to = malloc(bytes);
    p->there = p->to && gn_session_tcp_land(&r, &p->ref, p->to, bytes);
    FUZZ_CHECK(p->there);
}

static bool step(struct fuzz *f)
{
    static const uint8_t some[256];
    uint8_t what = fuzz_u8(f);
    uint64_t batch;
    switch (what % 8) {
    case 0:
        land(f);
        return true;
    case 1: {
        const struct gn_stream_record record = {fuzz_u8(f), GN_RECORD_MESSAGE, 0, 0};
        (void)gn_out_append(&r.out, &record, some);
        return true;
    }
    case 2:
        (void)gn_out_bulk(&r.out, 0, 0, some, 1u + fuzz_u8(f) % sizeof some, true, &batch);
        (void)gn_out_flush(&r.out);
        return true;
    case 3:
        gn_event_arm(&s.events[fuzz_u8(f)]);
        return true;
    default:
        return send_record(f);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = fuzz_of(data, size);
    if (!s.api)
        begin();
    connect_both();
    while (f.left && step(&f))
        ;
    FUZZ_CHECK(forget_wants() <= MAX_WANTS);
    gn_session_tcp_dropped(&r);
    for (uint32_t i = 0; i < LANDINGS; i++) {
        if (places[i].there)
            gn_session_tcp_landed(&r, &places[i].ref);
        free(places[i].to);
        places[i] = (struct landing_place){.there = false};
    }
    gn_out_stop(&r.out);
    gn_tcp_close(&r.tcp);
    close(peer);
    gn_in_fini(&r.in);
    gn_out_fini(&r.out);
    return 0;
}
