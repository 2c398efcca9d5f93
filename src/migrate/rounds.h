/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_ROUNDS_H
#define GN_MIGRATE_ROUNDS_H

#include "base/error.h"
#include "migrate/verify.h"

/*
 * The rounds of a move: buffers' pages found, hashed and sent (gMig 3.3, 3.4). Hashing threads run
 * ahead of the sending one by a bounded number of groups of 64 pages, so that verifying one group
 * and sending another take place at the same time (3.4.2), and memory for what is under way stays
 * below 17 MiB.
 *
 *   1. One live round sends everything while kernels go on (one-shot pre-copy); more live rounds
 * send what has changed since.
 *   2. The gate closes, what the driver has drains. One round GN_ROUND_STOP sends what has changed
 * since the last.
 *
 * After the last round the destination has every page as it was when writing stopped: a page that
 * differs from what was last sent is always sent. A round that fails leaves a table that knows no
 * more than the destination has, provided that what the sink took did arrive; otherwise
 * gn_page_table_forget() is called before the next attempt.
 */

struct gn_round_item {
    struct gn_page_table
        *table; /* in one item of a round only; all tables of an engine have one page size */
    struct gn_page_source source;
    void *cookie; /* the sink's */
};

/*
 * Where pages go. Called on the thread that runs the round, group after group, offsets rising in a
 * group of 64 pages. The groups of a live round come a buffer after the other as they lie; those of
 * a stop that has pages to verify come mixed. Runs of pages are at most 64 pages long; data lasts
 * until the function returns. digests: an XXH3 digest a page, which is what the stream wants for
 * it, where all of the run's were worked out; or NULL. With `flush`, which comes after the runs of
 * each group of pages, data and digests last until it returns, so that a sink can send them
 * together. 0, or -errno: that ends the round.
 */
struct gn_page_sink {
    int (*data)(void *ctx, void *cookie, uint64_t offset, const void *data, uint64_t n,
                const void *digests);
    int (*zero)(void *ctx, void *cookie, uint64_t offset, uint64_t n);
    int (*flush)(void *ctx); /* may be NULL */
    void *ctx;
};

struct gn_round_options {
    enum gn_round_kind kind;
    enum gn_sample_place
        sample;           /* GN_SAMPLE_AUTO, or for measurements one place, or GN_SAMPLE_OFF */
    uint64_t bytes_per_s; /* of page data given to the sink; 0: no limit */
    /* So many more bytes are done with, sent or found unchanged. After each group of pages, on the
     * thread that runs the round. NULL: nobody wants to know. */
    void (*done)(void *ctx, uint64_t bytes);
    void *done_ctx;
};

struct gn_round_stats {
    struct gn_verify_stats verify;
    uint64_t sent_pages, sent_bytes; /* as data; zero pages are in verify.zero */
    uint64_t total_ns, send_ns;      /* of these, in the sink */
    uint64_t paced_ns,
        waited_ns; /* the sending thread: held back by the limit; by the hashing threads */
};

struct gn_rounds;

/*
 * n_threads: that hash; 0: everything on the thread that runs the round, one after the other.
 * Threads sleep between rounds. -EINVAL (more than 64 threads, page_bytes), -ENOMEM, -EAGAIN (no
 * thread to be had).
 */
int gn_rounds_create(uint32_t page_bytes, unsigned n_threads, struct gn_rounds **ret,
                     struct gn_error *err);
/* NULL is fine. No round may be running. */
void gn_rounds_destroy(struct gn_rounds *r);

/*
 * One round; one at a time. When it returns, no thread touches items or sink any more. 0;
 * -ECANCELED; what a source or the sink said; -EINVAL (a table of another page size); -ENOMEM.
 * ret_stats is filled in any case.
 */
int gn_rounds_run(struct gn_rounds *r, const struct gn_round_options *options,
                  const struct gn_round_item *items, size_t n_items,
                  const struct gn_page_sink *sink, struct gn_round_stats *ret_stats,
                  struct gn_error *err);

/* The round in progress, and any later one, ends with -ECANCELED as soon as source and sink have
 * returned. Any thread. */
void gn_rounds_cancel(struct gn_rounds *r);

#endif
