/* SPDX-License-Identifier: Apache-2.0 */
/* Streams for tests: see the header. One thread. */
#include "stream/stream_samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int sample_write(void *ctx, struct iovec *iov, int n, struct gn_error *err)
{
    struct gn_sample_file *f = ctx;
    for (int i = 0; i < n; i++) {
        while (f->capacity - f->n < iov[i].iov_len) {
            size_t capacity = f->capacity ? 2 * f->capacity : 4096;
            unsigned char *bytes = realloc(f->bytes, capacity);
            if (!bytes)
                return gn_fail(err, ENOSPC, NULL, "cannot write the stream: no room");
            f->bytes = bytes;
            f->capacity = capacity;
        }
        if (iov[i].iov_len)
            memcpy(f->bytes + f->n, iov[i].iov_base, iov[i].iov_len);
        f->n += iov[i].iov_len;
    }
    return 0;
}

static int sample_read(void *ctx, struct iovec *iov, int n, struct gn_error *err)
{
    struct gn_sample_file *f = ctx;
    for (int i = 0; i < n; i++) {
        if (f->n - f->at < iov[i].iov_len)
            return -ENODATA;
        if (iov[i].iov_len)
            memcpy(iov[i].iov_base, f->bytes + f->at, iov[i].iov_len);
        f->at += iov[i].iov_len;
    }
    return 0;
}

struct gn_stream_sink gn_sample_sink(struct gn_sample_file *f)
{
    return (struct gn_stream_sink){sample_write, f};
}

struct gn_stream_source gn_sample_source(struct gn_sample_file *f)
{
    f->at = 0;
    return (struct gn_stream_source){sample_read, f};
}

void gn_sample_free(struct gn_sample_file *f)
{
    free(f->bytes);
    *f = (struct gn_sample_file){0};
}

static void put_state(struct gn_stream_writer *w, enum gn_stream_table table, uint64_t id,
                      const uint64_t *refs, uint32_t n_refs, const void *state, size_t n)
{
    gn_stream_entry_begin(w, table, id, 0, refs, n_refs);
    gn_stream_part(w, GN_PART_STATE, state, n);
    gn_stream_entry_end(w);
}

static void put_head(struct gn_stream_writer *w)
{
    const struct gn_stream_announce most = {.memory_bytes = GN_SAMPLE_BUFFER_BYTES,
                                            .entries_bytes = 65536,
                                            .n_objects = 16,
                                            .n_memories = 1,
                                            .n_rounds = 2};
    const struct gn_stream_tenant_state tenant = {
        .weight = 100, .memory_limit_bytes = 1u << 30, .memory_bytes = GN_SAMPLE_BUFFER_BYTES};
    const struct gn_stream_device_state device = {.memory_bytes = UINT64_C(8) << 30,
                                                  .largest_bytes = UINT64_C(2) << 30,
                                                  .work_group = 4096,
                                                  .n_units = 2};
    const uint32_t fact[] = {0x1000, 0, 2, 0};
    gn_stream_announce(w, &most);
    gn_stream_entry_begin(w, GN_STREAM_TENANT, 0x1a2b3c4d, 0, NULL, 0);
    gn_stream_part(w, GN_PART_STATE, &tenant, sizeof tenant);
    gn_stream_part_text(w, GN_PART_NAME, "default");
    gn_stream_entry_end(w);
    gn_stream_entry_begin(w, GN_STREAM_DEVICES, 0, 0, NULL, 0);
    gn_stream_part(w, GN_PART_STATE, &device, sizeof device);
    gn_stream_part_text(w, GN_PART_NAME, "a device");
    gn_stream_part_text(w, GN_PART_VENDOR, "a vendor");
    gn_stream_part_text(w, GN_PART_TYPE, "cpu");
    gn_stream_part(w, GN_PART_FACT, fact, sizeof fact);
    gn_stream_entry_end(w);
}

static const uint64_t CONTEXT = 0x100000001, QUEUE = 0x100000002, PROGRAM = 0x100000003,
                      KERNEL = 0x100000004, BUFFER = 0x100000005;

static void put_objects(struct gn_stream_writer *w)
{
    const uint64_t context[] = {CONTEXT}, program[] = {PROGRAM};
    static const unsigned char header[] = "\x03\0\0\0\0\0\0\0a.h#define A 1\n";
    gn_stream_entry_begin(w, GN_STREAM_OBJECTS, CONTEXT, 3, NULL, 0);
    gn_stream_part(w, GN_PART_REQUEST, "a context", 9);
    gn_stream_entry_end(w);
    gn_stream_entry_begin(w, GN_STREAM_OBJECTS, QUEUE, 4, context, 1);
    gn_stream_entry_end(w);
    gn_stream_entry_begin(w, GN_STREAM_OBJECTS, PROGRAM, 7, context, 1);
    gn_stream_part_text(w, GN_PART_SOURCE,
                        "#include \"a.h\"\nkernel void k(global int *x) { *x = A; }\n");
    gn_stream_part_text(w, GN_PART_OPTIONS, "-cl-fast-relaxed-math");
    gn_stream_part(w, GN_PART_HEADER, header, sizeof header - 1);
    gn_stream_entry_end(w);
    gn_stream_entry_begin(w, GN_STREAM_OBJECTS, KERNEL, 8, program, 1);
    gn_stream_part_text(w, GN_PART_NAME, "k");
    gn_stream_entry_end(w);
    gn_stream_entry_begin(w, GN_STREAM_OBJECTS, BUFFER, 5, context, 1);
    gn_stream_part(w, GN_PART_API, "", 0);
    gn_stream_entry_end(w);
}

static void put_work(struct gn_stream_writer *w)
{
    const struct gn_stream_event_state user = {.phase = GN_STREAM_EVENT_PENDING,
                                               .flags = GN_STREAM_EVENT_USER};
    const struct gn_stream_event_state over = {
        .error = -5, .submit_ns = 1, .start_ns = 2, .end_ns = 3};
    const struct gn_stream_call_state call = {.event = 7, .phase = 0};
    const struct gn_stream_command_state command = {.event = 8, .done = 3};
    const struct gn_stream_map_state map = {
        .offset = 4096, .bytes = 4096, .area_offset = 65536, .segment = 1, .flags = 3};
    const uint64_t refs[] = {QUEUE, KERNEL, BUFFER}, buffer[] = {BUFFER};
    const uint32_t waits[] = {7};
    put_state(w, GN_STREAM_EVENTS, 7, NULL, 0, &user, sizeof user);
    put_state(w, GN_STREAM_EVENTS, 9, NULL, 0, &over, sizeof over);
    put_state(w, GN_STREAM_CALLS, 0x7f0000001000, NULL, 0, &call, sizeof call);
    gn_stream_entry_begin(w, GN_STREAM_COMMANDS, 1, 0, refs, 3);
    gn_stream_part(w, GN_PART_STATE, &command, sizeof command);
    gn_stream_part(w, GN_PART_REQUEST, "a launch", 8);
    gn_stream_part(w, GN_PART_WAITS, waits, sizeof waits);
    gn_stream_entry_end(w);
    put_state(w, GN_STREAM_MAPS, 0x7f0000010000, buffer, 1, &map, sizeof map);
}

/* Pages 0 to 7 count, 8 to 15 are zero, 16 is noise, the rest zero. */
static void fill(unsigned char *buffer)
{
    uint32_t noise = 1;
    memset(buffer, 0, GN_SAMPLE_BUFFER_BYTES);
    for (uint32_t i = 0; i < 8 * 4096; i++)
        buffer[i] = (unsigned char)(i / 64);
    for (uint32_t i = 16 * 4096; i < 17 * 4096; i++) {
        noise = noise * 1664525 + 1013904223;
        buffer[i] = (unsigned char)(noise >> 24);
    }
}

int gn_sample_write(struct gn_stream_writer *w, unsigned char *buffer)
{
    const struct gn_stream_memory memory = {
        .id = BUFFER, .object = BUFFER, .bytes = GN_SAMPLE_BUFFER_BYTES};
    fill(buffer);
    put_head(w);
    put_objects(w);
    gn_stream_put_memories(w, &memory, 1);
    gn_stream_round_begin(w, GN_STREAM_PRECOPY);
    gn_stream_put_pages(w, BUFFER, &(struct gn_stream_run){.n_pages = 21, .bytes = buffer}, 1);
    /* The program's writes between the rounds. */
    memset(buffer + 2 * 4096, 0, 4096);
    memset(buffer + 9 * 4096, 0x55, 2 * 4096);
    memset(buffer + 20 * 4096, 0xaa, 100);
    const struct gn_stream_run again[] = {
        {.first_page = 2, .n_pages = 1},
        {.first_page = 9, .n_pages = 2, .bytes = buffer + 9 * 4096},
        {.first_page = 20, .n_pages = 1, .bytes = buffer + 20 * 4096}};
    gn_stream_round_begin(w, GN_STREAM_STOP);
    gn_stream_put_pages(w, BUFFER, again, 3);
    put_work(w);
    return gn_stream_commit(w);
}
