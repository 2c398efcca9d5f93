/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_ROUNDS_H
#define GN_MIGRATE_ROUNDS_H

#include "base/error.h"
#include "migrate/verify.h"

/*
 * The rounds of a migration: find the changed pages of buffers, hash them and send them (gMig 3.3,
 * 3.4). Hashing threads run ahead of the sending thread by a bounded number of groups of 64 pages,
 * so that verifying one group and sending another overlap (3.4.2), and the memory for pages in
 * flight stays below 17 MiB.
 *
 *   1. One live round sends everything while kernels run (one-shot pre-copy);
 *      further live rounds send the pages that have changed since.
 *   2. The gate closes and the driver drains. One round GN_ROUND_STOP sends the
 *      pages that have changed since the last round.
 *
 * After the last round the destination has every page as it was when writing stopped: a page that
 * differs from the content last sent is always sent. After a failed round a table claims no more
 * than the destination has, provided that everything the sink accepted did arrive. Otherwise the
 * caller must call gn_page_table_forget() before the next attempt.
 */

struct gn_round_item {
    /* In only one item of a round; all tables of an engine have the same page size. */
    struct gn_page_table *table;
    struct gn_page_source source;
    void *cookie; /* passed to the sink */
};

/*
 * The receiver of pages. Called on the thread that runs the round, group after group, with rising
 * offsets within a group of 64 pages. A live round visits one buffer after the other, sequentially;
 * a stop that has pages to verify visits the groups in mixed order. Runs have at most 64 pages;
 * data stays valid until the function returns. digests: the XXH3 digest of each page, as the stream
 * needs it, if the digests of the whole run are known; or NULL. With `flush`, which is called after
 * the runs of each group, data and digests stay valid until it returns, so that a sink can send
 * them together. Each function returns 0, or -errno, which ends the round.
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
    /* GN_SAMPLE_AUTO; for measurements also one place, or GN_SAMPLE_OFF. */
    enum gn_sample_place sample;
    uint64_t bytes_per_s; /* limit of page data passed to the sink; 0: no limit */
    /*
     * Reports that this many more bytes have been sent or found unchanged. Called after each group
     * of pages, on the thread that runs the round. May be NULL.
     */
    void (*done)(void *ctx, uint64_t bytes);
    void *done_ctx;
};

struct gn_round_stats {
    struct gn_verify_stats verify;
    uint64_t sent_pages, sent_bytes; /* as data; zero pages are in verify.zero */
    uint64_t total_ns, send_ns;      /* send_ns: time spent in the sink */
    /* Time that the sending thread waited: for the limit; for the hashing threads. */
    uint64_t paced_ns, waited_ns;
};

struct gn_rounds;

/*
 * n_threads: number of hashing threads; 0: the thread that runs the round does everything, in
 * sequence. The threads sleep between rounds. Returns 0, -EINVAL (more than 64 threads,
 * page_bytes), -ENOMEM, or -EAGAIN (no thread available).
 */
int gn_rounds_create(uint32_t page_bytes, unsigned n_threads, struct gn_rounds **ret,
                     struct gn_error *err);
/* NULL is allowed. No round may be running. */
void gn_rounds_destroy(struct gn_rounds *r);

/*
 * Runs one round; one at a time. When it returns, no thread accesses items or sink any more.
 * Returns 0; -ECANCELED; the error of a source or of the sink; -EINVAL (a table with another page
 * size); -ENOMEM. ret_stats is always filled.
 */
int gn_rounds_run(struct gn_rounds *r, const struct gn_round_options *options,
                  const struct gn_round_item *items, size_t n_items,
                  const struct gn_page_sink *sink, struct gn_round_stats *ret_stats,
                  struct gn_error *err);

/*
 * The round in progress, and any later one, ends with -ECANCELED as soon as source and sink have
 * returned. Any thread.
 */
void gn_rounds_cancel(struct gn_rounds *r);

#endif
