/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stream's framing and checksums cost: pages to a file and back, beside the same bytes
 * without a stream, in turns.
 *
 *   bench-stream [--mib N] [--pairs N] FILE      FILE: on the disk or tmpfs that is to be measured;
 * it is removed
 *
 * Prints medians in GB/s. One thread.
 */
#include "base/clock.h"
#include "stream/hash.h"
#include "stream/stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE      (UINT64_C(1) << 20)
#define MOST_PAIRS 99

enum what {
    PLAIN_WRITE,
    STREAM_WRITE,
    PLAIN_READ,
    STREAM_READ,
    HASH,
    HASHED_WRITE,
    PACK,
    PACKED_READ,
    N_WHATS
};
static const char *const names[N_WHATS] = {"write, no stream",      "write, stream",
                                           "read, no stream",       "read, stream",
                                           "XXH3-128, 4 KiB pages", "write, stream, hashes given",
                                           "write, stream, zstd 1", "read, stream, zstd 1"};

static unsigned char *memory, *landed;
static uint64_t bytes;
static struct gn_stream_hash *hashes;
static uint64_t packed_bytes;

static void give_up(const char *what, const struct gn_error *err)
{
    fprintf(stderr, "bench-stream: %s: %s\n", what, err ? err->what : "failed");
    exit(1);
}

static int open_file(const char *path, bool writing)
{
    int fd = open(path, writing ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0600);
    if (fd < 0)
        give_up(path, NULL);
    return fd;
}

static void write_stream(const char *path, const struct gn_stream_hash *given,
                         enum gn_stream_packing packing)
{
    struct gn_stream_fd end = GN_STREAM_FD(open_file(path, true), 0);
    struct gn_stream_sink sink = gn_stream_sink_of_fd(&end);
    const struct gn_stream_options options = {
        .purpose = GN_STREAM_CHECKPOINT, .api = "bench", .packing = packing};
    const struct gn_stream_announce most = {.memory_bytes = bytes, .n_memories = 1, .n_rounds = 1};
    const struct gn_stream_memory m = {.id = 1, .bytes = bytes};
    struct gn_stream_writer *w;
    gn_stream_writer_create(&sink, &options, &w, NULL);
    gn_stream_announce(w, &most);
    gn_stream_put_memories(w, &m, 1);
    gn_stream_round_begin(w, GN_STREAM_STOP);
    for (uint64_t at = 0; at < bytes; at += PIECE) {
        struct gn_stream_run run = {at / 4096, PIECE / 4096, memory + at,
                                    given ? given + at / 4096 : NULL};
        gn_stream_put_pages(w, 1, &run, 1);
    }
    if (gn_stream_commit(w) < 0)
        give_up(path, gn_stream_writer_error(w));
    packed_bytes = gn_stream_writer_counts(w)->packed_bytes;
    gn_stream_writer_destroy(w);
    close(end.fd);
}

static void read_stream(const char *path)
{
    struct gn_stream_fd end = GN_STREAM_FD(open_file(path, false), 0);
    struct gn_stream_source source = gn_stream_source_of_fd(&end);
    struct gn_stream_limits limits = gn_stream_limits_default;
    struct gn_stream_section s = {0};
    struct gn_stream_reader *r;
    struct gn_error err;
    void *where[GN_STREAM_MOST_RUNS];
    limits.memory_bytes = bytes;
    int rc = gn_stream_reader_create(&source, &limits, &r, &err);
    if (rc < 0)
        give_up(path, &err);
    while (rc == 0 && s.what != GN_STREAM_IS_COMMIT) {
        rc = gn_stream_next(r, &s);
        for (uint32_t i = 0; rc == 0 && s.what == GN_STREAM_IS_PAGES && i < s.n_runs; i++)
            where[i] = landed + s.runs[i].first_page * 4096;
        if (rc == 0 && s.what == GN_STREAM_IS_PAGES)
            rc = gn_stream_read_pages(r, where);
    }
    if (rc < 0)
        give_up(path, gn_stream_reader_error(r));
    gn_stream_reader_destroy(r);
    close(end.fd);
}

static void plain(const char *path, bool writing)
{
    int fd = open_file(path, writing);
    for (uint64_t at = 0; at < bytes; at += PIECE) {
        ssize_t n = writing ? write(fd, memory + at, PIECE) : read(fd, landed + at, PIECE);
        if (n != (ssize_t)PIECE)
            give_up(path, NULL);
    }
    close(fd);
}

static void run(enum what what, const char *path)
{
    switch (what) {
    case PLAIN_WRITE:
        plain(path, true);
        break;
    case PLAIN_READ:
        plain(path, false);
        break;
    case STREAM_WRITE:
        write_stream(path, NULL, GN_STREAM_RAW);
        break;
    case HASHED_WRITE:
        write_stream(path, hashes, GN_STREAM_RAW);
        break;
    case PACK:
        write_stream(path, NULL, GN_STREAM_ZSTD);
        break;
    case STREAM_READ:
    case PACKED_READ:
        read_stream(path);
        break;
    case HASH:
        for (uint64_t at = 0; at < bytes; at += 4096)
            hashes[at / 4096] = gn_stream_hash(memory + at, 4096);
        break;
    case N_WHATS:
        break;
    }
}

static int less(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char *argv[])
{
    static double figures[N_WHATS][MOST_PAIRS];
    const enum what order[] = {HASH,        PLAIN_WRITE,  PLAIN_READ, STREAM_WRITE,
                               STREAM_READ, HASHED_WRITE, PACK,       PACKED_READ};
    unsigned long mib = 512, pairs = 5;
    const char *path = NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--mib") && i + 1 < argc)
            mib = strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--pairs") && i + 1 < argc)
            pairs = strtoul(argv[++i], NULL, 10);
        else
            path = argv[i];
    }
    if (!path || mib < 1 || mib > 65536 || pairs < 1 || pairs > MOST_PAIRS) {
        fprintf(stderr, "usage: bench-stream [--mib N] [--pairs N] FILE\n");
        return 2;
    }
    bytes = (uint64_t)mib << 20;
    memory = malloc(bytes);
    landed = calloc(1, bytes);
    hashes = calloc(bytes / 4096, sizeof *hashes);
    if (!memory || !landed || !hashes)
        give_up("memory", NULL);
    /* Counting floats: a load's data more or less; zstd halves them. */
    for (uint64_t i = 0; i < bytes / 4; i++) {
        float f = (float)(i % 1000003) * 1.37f;
        memcpy(memory + 4 * i, &f, 4);
    }
    memset(landed, 1, bytes);
    for (unsigned long k = 0; k < pairs; k++) {
        for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
            bool writes = order[i] == PLAIN_WRITE || order[i] == STREAM_WRITE ||
                          order[i] == HASHED_WRITE || order[i] == PACK;
            if (writes)
                unlink(path);
            uint64_t begin_ns = gn_now_ns();
            run(order[i], path);
            figures[order[i]][k] = (double)bytes / (double)(gn_now_ns() - begin_ns);
        }
        if (memcmp(memory, landed, bytes) != 0)
            give_up("what came back differs", NULL);
    }
    unlink(path);
    for (int i = 0; i < N_WHATS; i++)
        qsort(figures[i], pairs, sizeof figures[i][0], less);
    for (int i = 0; i < N_WHATS; i++)
        printf("%-30s %6.2f GB/s\n", names[i], figures[i][pairs / 2]);
    printf("%-30s %6.2f of it\n", "packed", (double)packed_bytes / (double)bytes);
    printf("%-30s %6.2f\n", "stream / no stream, writing",
           figures[STREAM_WRITE][pairs / 2] / figures[PLAIN_WRITE][pairs / 2]);
    printf("%-30s %6.2f\n", "stream / no stream, reading",
           figures[STREAM_READ][pairs / 2] / figures[PLAIN_READ][pairs / 2]);
    return 0;
}
