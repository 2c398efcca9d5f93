/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The project's writer and reader, for decoder_test.py:
 *
 *   stream-tool make raw|zstd      a small stream with something of everything, to stdout
 *   stream-tool dump               loads a stream from stdin and prints what it loaded; a refusal
 * is one line, "refused: ..."
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stream/hash.h"
#include "stream/stream_samples.h"

static int refused(const struct gn_error *err)
{
    printf("refused: %s\n", err->what);
    return 1;
}

static int make(enum gn_stream_packing packing)
{
    static unsigned char buffer[GN_SAMPLE_BUFFER_BYTES];
    struct gn_stream_fd end = GN_STREAM_FD(1, 10000);
    struct gn_stream_sink sink = gn_stream_sink_of_fd(&end);
    struct gn_stream_writer *w;
    struct gn_error err;
    const struct gn_stream_options o = {
        .purpose = GN_STREAM_MOVE, .api = "opencl", .creator = "gantry test", .packing = packing};
    if (gn_stream_writer_create(&sink, &o, &w, &err) < 0)
        return refused(&err);
    int rc = gn_sample_write(w, buffer);
    if (rc < 0)
        fprintf(stderr, "stream-tool: %s\n", gn_stream_writer_error(w)->what);
    gn_stream_writer_destroy(w);
    return rc < 0;
}

/* What has been loaded: few memories, so a list will do. */
static struct kept {
    struct kept *next;
    uint64_t id, bytes;
    unsigned char *contents;
} * kept;

static struct kept **find(uint64_t id)
{
    struct kept **k = &kept;
    while (*k && (*k)->id < id)
        k = &(*k)->next;
    return k;
}

static void add(const struct gn_stream_memory *m)
{
    struct kept *k = calloc(1, sizeof *k), **at = find(m->id);
    if (k)
        k->contents = calloc(1, m->bytes + 1);
    if (!k || !k->contents)
        exit(3);
    k->id = m->id;
    k->bytes = m->bytes;
    k->next = *at;
    *at = k;
}

static void drop(uint64_t id)
{
    struct kept **at = find(id), *k = *at;
    *at = k->next;
    free(k->contents);
    free(k);
}

static void print_entries(struct gn_stream_reader *r, const char *table)
{
    struct gn_stream_entry e;
    struct gn_stream_part p;
    while (gn_stream_next_entry(r, &e)) {
        printf("entry %s %" PRIu64 " %u", table, e.id, e.kind);
        for (uint32_t i = 0; i < e.n_refs; i++)
            printf(" ref %" PRIu64, e.refs[i]);
        while (gn_stream_next_part(&e, &p)) {
            struct gn_stream_hash h = gn_stream_hash(p.bytes, p.n);
            printf(" part %u %" PRIu64 " %016" PRIx64, p.part, p.n, h.low);
        }
        putchar('\n');
    }
}

static int take(struct gn_stream_reader *r, const struct gn_stream_section *s)
{
    void *where[GN_STREAM_MOST_RUNS];
    printf("pages %" PRIu64, s->memory->id);
    for (uint32_t i = 0; i < s->n_runs; i++) {
        const struct gn_stream_run_head *run = &s->runs[i];
        where[i] = (*find(s->memory->id))->contents +
                   run->first_page * gn_stream_reader_about(r)->page_bytes;
        printf(" run %" PRIu64 " %u %u", run->first_page, run->n_pages, run->zeros);
    }
    putchar('\n');
    return gn_stream_read_pages(r, where);
}

static int show(struct gn_stream_reader *r, const struct gn_stream_section *s)
{
    switch (s->what) {
    case GN_STREAM_IS_TABLE:
        print_entries(r, s->name);
        break;
    case GN_STREAM_IS_ANNOUNCE:
        printf("announce %" PRIu64 " %" PRIu64 " %u %u %u\n", s->announce->memory_bytes,
               s->announce->entries_bytes, s->announce->n_objects, s->announce->n_memories,
               s->announce->n_rounds);
        break;
    case GN_STREAM_IS_MEMORY:
        for (uint32_t i = 0; i < s->n_memories; i++) {
            const struct gn_stream_memory *m = &s->memories[i];
            printf("memory %" PRIu64 " %" PRIu64 " %" PRIu64 " %u\n", m->id, m->object, m->bytes,
                   m->flags);
            add(m);
        }
        break;
    case GN_STREAM_IS_GONE:
        for (uint32_t i = 0; i < s->n_gone; i++) {
            printf("gone %" PRIu64 " %u\n", s->gone[i].id, s->gone[i].what);
            if (s->gone[i].what == GN_STREAM_GONE_MEMORY)
                drop(s->gone[i].id);
        }
        break;
    case GN_STREAM_IS_ROUND:
        printf("round %u %u\n", s->round->number, s->round->kind);
        break;
    case GN_STREAM_IS_PAGES:
        return take(r, s);
    case GN_STREAM_IS_COMMIT:
        break;
    }
    return 0;
}

static int dump(void)
{
    struct gn_stream_fd end = GN_STREAM_FD(0, 10000);
    struct gn_stream_source source = gn_stream_source_of_fd(&end);
    struct gn_stream_section s = {0};
    struct gn_stream_reader *r;
    struct gn_error err;
    if (gn_stream_reader_create(&source, NULL, &r, &err) < 0)
        return refused(&err);
    const struct gn_stream_about *about = gn_stream_reader_about(r);
    printf("stream %u %u %s|%s\n", about->purpose, about->page_bytes, about->api, about->creator);
    int rc = 0;
    while (rc == 0 && s.what != GN_STREAM_IS_COMMIT) {
        rc = gn_stream_next(r, &s);
        if (rc == 0)
            rc = show(r, &s);
    }
    if (rc == 0)
        rc = gn_stream_expect_end(r);
    if (rc < 0)
        refused(gn_stream_reader_error(r));
    while (kept) {
        struct gn_stream_hash h = gn_stream_hash(kept->contents, kept->bytes);
        if (rc == 0)
            printf("contents %" PRIu64 " %" PRIu64 " %016" PRIx64 "%016" PRIx64 "\n", kept->id,
                   kept->bytes, h.high, h.low);
        drop(kept->id);
    }
    if (rc == 0)
        printf("commit %" PRIu64 "\n", gn_stream_reader_offset(r));
    gn_stream_reader_destroy(r);
    return rc < 0;
}

int main(int argc, char *argv[])
{
    if (argc == 3 && !strcmp(argv[1], "make"))
        return make(!strcmp(argv[2], "zstd") ? GN_STREAM_ZSTD : GN_STREAM_RAW);
    if (argc == 2 && !strcmp(argv[1], "dump"))
        return dump();
    fprintf(stderr, "usage: stream-tool make raw|zstd | dump\n");
    return 2;
}
