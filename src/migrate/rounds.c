/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipeline of a migration, run by a vGPU's saving thread with hashing threads beside it.
 * Hashing threads take groups of pages in the round's order, each into the next free slot of a
 * ring. The thread that runs the round sends the slots in the same order and then commits them to
 * the tables. So one thread writes a table; one other thread reads a group before its slot is
 * ready, and none after. A slot changes hands only under the lock; source and sink are called
 * without it.
 */
#include "migrate/rounds.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/signals.h"
#include "migrate/pacer.h"

#define MAX_THREADS   64u
#define MAX_SLOTS     16u
#define STAGING_BYTES (UINT64_C(16) << 20)
/* Groups that the device digests in one launch: a launch costs as much as hashing megabytes. */
#define DEVICE_SPAN 64u

struct slot {
    struct gn_verify_slot v;
    size_t item;
    uint64_t group;
    bool ready;
    int error;
};

/* Digests of one buffer computed by its device in this round. */
struct device_digests {
    unsigned char *all; /* NULL: the host hashes the buffer */
    /* under device_lock */
    uint64_t groups; /* digests available so far */
    bool failed;     /* the host hashes the rest */
};

/*
 * The order in which a round visits the groups of all buffers, seen as one sequence: from 0 on in
 * strides that have no common divisor with the number of groups.
 */
struct order {
    uint64_t *first; /* index of each buffer's first group; the last entry is the total */
    uint64_t n, stride;
    /* under lock */
    uint64_t at, n_taken;
};

struct gn_rounds {
    /* set once */
    uint32_t page_bytes;
    unsigned n_threads, n_slots;
    pthread_t threads[MAX_THREADS];
    unsigned char *staging;

    /* set before a round, constant during it */
    struct gn_round_options options;
    const struct gn_round_item *items;
    size_t n_items;
    const struct gn_page_sink *sink;
    struct device_digests *device;

    /* under lock */
    pthread_mutex_t lock;
    pthread_cond_t work;  /* hashing threads wait for: a round begins, slots are free, quit */
    pthread_cond_t ready; /* the sending thread waits for: slots are ready, an error */
    bool running, quit;
    int error; /* the first error; after it no group is taken */
    struct order order;
    uint64_t taken, sent;  /* slots since the round began: [sent, taken) are in use */
    unsigned n_ready;      /* ready slots among these */
    unsigned idle_hashers; /* threads asleep in `work` */
    bool sender_asleep;
    unsigned wake_at; /* number of ready slots at which the sender is woken */
    struct gn_sample_choice choice;
    struct gn_verify_stats sum;

    /* held while the device computes digests; never together with `lock` */
    pthread_mutex_t device_lock;

    /* a slot belongs to the thread that has taken it */
    struct slot slots[MAX_SLOTS];
};

static bool more_groups(const struct gn_rounds *r)
{
    return r->order.n_taken < r->order.n;
}

static bool may_take(const struct gn_rounds *r)
{
    return r->running && !r->error && more_groups(r) && r->taken - r->sent < r->n_slots;
}

static void next_locked(struct gn_rounds *r, struct slot *s)
{
    struct order *o = &r->order;
    size_t item = 0;
    for (size_t end = r->n_items; end - item > 1;) {
        const size_t middle = item + (end - item) / 2;
        if (o->first[middle] <= o->at)
            item = middle;
        else
            end = middle;
    }
    s->item = item;
    s->group = o->at - o->first[item];
    o->n_taken++;
    o->at = o->at < o->n - o->stride ? o->at + o->stride : o->at - (o->n - o->stride);
}

/* Takes the next group into the next slot. */
static struct slot *take_locked(struct gn_rounds *r, struct gn_verify_how *how)
{
    struct slot *s = &r->slots[r->taken++ % r->n_slots];
    next_locked(r, s);
    s->ready = false;
    *how = (struct gn_verify_how){.kind = r->options.kind, .place = GN_SAMPLE_OFF};
    /*
     * Only in a stop: where digests are kept, a page that its sample detects would be hashed
     * nevertheless.
     */
    if (r->options.kind == GN_ROUND_STOP)
        how->place = r->options.sample == GN_SAMPLE_AUTO ? gn_sample_choose(&r->choice, &how->look)
                                                         : r->options.sample;
    return s;
}

/*
 * True if a page of these groups has a digest to compare with. The groups have not been sent in
 * this round, so no thread writes them.
 */
static bool has_digests(const struct gn_page_table *t, uint64_t from, uint64_t to)
{
    for (uint64_t g = from; g < to; g++) {
        if (t->hashed[g])
            return true;
    }
    return false;
}

static void request_device_digests(struct gn_rounds *r, struct slot *s, struct gn_verify_how *how)
{
    struct device_digests *d = &r->device[s->item];
    const struct gn_round_item *item = &r->items[s->item];
    struct gn_page_table *t = item->table;

    if (!d->all)
        return;
    pthread_mutex_lock(&r->device_lock);
    while (!d->failed && d->groups <= s->group) {
        uint64_t from = d->groups,
                 to = from + DEVICE_SPAN < t->n_groups ? from + DEVICE_SPAN : t->n_groups;
        uint64_t first = from * GN_PAGE_GROUP,
                 last = to * GN_PAGE_GROUP < t->n_pages ? to * GN_PAGE_GROUP : t->n_pages;
        if (has_digests(t, from, to) &&
            item->source.digest(item->source.ctx, first, last - first,
                                d->all + first * t->hasher->digest_bytes))
            d->failed = true;
        else
            d->groups = to;
    }
    if (s->group < d->groups)
        how->device_digests = d->all + s->group * GN_PAGE_GROUP * t->hasher->digest_bytes;
    pthread_mutex_unlock(&r->device_lock);
}

static void finish_locked(struct gn_rounds *r, struct slot *s)
{
    s->ready = true;
    r->n_ready++;
    if (s->error && !r->error) {
        r->error = s->error;
        pthread_cond_signal(&r->ready); /* the sender may be held back by the limit for long */
    }
    if (s->v.batch.n_pages >= 8)
        gn_sample_note(&r->choice, &s->v.batch);
    gn_verify_stats_add(&r->sum, &s->v.stats);
    /*
     * A wake costs both threads about as much as hashing a group, so the sender is woken for
     * several groups, and for fewer only when no later wake would come: the ring is full, or
     * everything has been taken.
     */
    bool last = !may_take(r);
    if (r->sender_asleep && (last || r->n_ready >= r->wake_at)) {
        r->sender_asleep = false;
        pthread_cond_signal(&r->ready);
    }
}

/* Verifies the next group; may_take() is true. The lock is released meanwhile. */
static void verify_next_locked(struct gn_rounds *r)
{
    struct gn_verify_how how;
    struct slot *s = take_locked(r, &how);
    const struct gn_round_item *item = &r->items[s->item];
    pthread_mutex_unlock(&r->lock);
    request_device_digests(r, s, &how);
    s->error = gn_verify_group(item->table, &item->source, s->group, &how, &s->v);
    pthread_mutex_lock(&r->lock);
    finish_locked(r, s);
}

static void *hasher(void *arg)
{
    struct gn_rounds *r = arg;
    pthread_mutex_lock(&r->lock);
    while (!r->quit) {
        if (may_take(r)) {
            verify_next_locked(r);
            continue;
        }
        r->idle_hashers++;
        pthread_cond_wait(&r->work, &r->lock);
        r->idle_hashers--;
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* Waits for the limit. Returns whether to continue. */
static bool wait_for_limit(struct gn_rounds *r, const struct gn_pacer *pacer)
{
    uint64_t now = gn_now_ns(), wait_ns = gn_pacer_wait_ns(pacer, now);
    if (!wait_ns)
        return true;
    pthread_mutex_lock(&r->lock);
    for (; wait_ns && !r->error; wait_ns = gn_pacer_wait_ns(pacer, now)) {
        uint64_t until = wait_ns < UINT64_C(1) << 62 ? now + wait_ns : UINT64_C(1) << 62;
        struct timespec ts = {.tv_sec = (time_t)(until / 1000000000u),
                              .tv_nsec = (long)(until % 1000000000u)};
        pthread_cond_timedwait(&r->ready, &r->lock, &ts);
        now = gn_now_ns();
    }
    bool go_on = !r->error;
    pthread_mutex_unlock(&r->lock);
    return go_on;
}

/* Sends the runs of pages in one slot. Returns 0, -ECANCELED or the sink's error. */
static int send_slot(struct gn_rounds *r, const struct slot *s, struct gn_pacer *pacer,
                     struct gn_round_stats *stats)
{
    const struct gn_round_item *item = &r->items[s->item];
    uint64_t base = s->group * GN_PAGE_GROUP;

    for (uint64_t first, n, rest = s->v.send; rest; rest &= ~gn_page_run(first, n)) {
        first = (uint64_t)__builtin_ctzll(rest);
        const bool zero = s->v.zero >> first & 1;
        n = gn_page_run_length(zero ? rest & s->v.zero : rest & ~s->v.zero, first);
        const uint64_t run = gn_page_run(first, n), offset = (base + first) * r->page_bytes;
        const uint64_t bytes =
            (n - 1) * r->page_bytes + gn_page_table_length(item->table, base + first + n - 1);
        const struct gn_page_hasher *h = item->table->hasher;
        const bool known = !zero && h->kind == GN_PAGE_HASH_XXH3 && (s->v.known & run) == run;
        if (!zero && !wait_for_limit(r, pacer))
            return -ECANCELED;
        const uint64_t t0 = gn_now_ns();
        const int error = r->sink->data(r->sink->ctx, item->id, offset,
                                        zero ? NULL : s->v.content + first * r->page_bytes, bytes,
                                        known ? s->v.digests + first * h->digest_bytes : NULL);
        if (error)
            return error;
        if (zero)
            continue;
        gn_pacer_sent(pacer, bytes, t0);
        stats->sent_pages += n;
        stats->sent_bytes += bytes;
    }
    return s->v.send && r->sink->flush ? r->sink->flush(r->sink->ctx) : 0;
}

static void commit_slot(struct gn_rounds *r, const struct slot *s)
{
    const struct gn_page_table *t = r->items[s->item].table;
    const uint64_t at = s->group * GN_PAGE_GROUP * r->page_bytes, n = GN_PAGE_GROUP * r->page_bytes;
    gn_verify_commit(r->items[s->item].table, s->group, &s->v);
    if (r->options.done)
        r->options.done(r->options.done_ctx, t->bytes - at < n ? t->bytes - at : n);
}

/*
 * The sending thread's part. Returns when all is sent, or after a failure when no thread works on a
 * slot any more.
 */
static void send_all(struct gn_rounds *r, struct gn_round_stats *stats)
{
    struct gn_pacer pacer = {.bytes_per_s = r->options.bytes_per_s, .free_at_ns = gn_now_ns()};
    pthread_mutex_lock(&r->lock);
    for (;;) {
        struct slot *s = &r->slots[r->sent % r->n_slots];
        bool failed = r->error;
        if (r->sent == r->taken && (failed || !more_groups(r)))
            break;
        if (failed ? r->n_ready == r->taken - r->sent : r->sent < r->taken && s->ready) {
            if (failed)
                break;
            pthread_mutex_unlock(&r->lock);
            int error = send_slot(r, s, &pacer, stats);
            if (!error)
                commit_slot(r, s);
            pthread_mutex_lock(&r->lock);
            if (error) {
                r->error = r->error ? r->error : error;
                continue;
            }
            r->sent++;
            r->n_ready--;
            if (r->wake_at < r->n_slots / 2)
                r->wake_at++;
            /* The full ring stopped the hashing threads; wake them as finish_locked does. */
            if (r->idle_hashers && may_take(r) && r->taken - r->sent <= r->n_slots / 2)
                pthread_cond_broadcast(&r->work);
        } else if (r->n_threads == 0) {
            verify_next_locked(r);
        } else {
            r->sender_asleep = true;
            pthread_cond_wait(&r->ready, &r->lock);
            r->sender_asleep = false;
        }
    }
    r->running = false;
    pthread_mutex_unlock(&r->lock);
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/*
 * Changed pages are adjacent, and so are unchanged ones: in address order there would be nothing to
 * send while unchanged pages are hashed, and nothing to hash while changed ones are sent. Strides
 * of the golden ratio spread both over the round. Address order is better where everything is sent,
 * because memory reads are then sequential, and where a device hashes, because it hashes adjacent
 * groups.
 */
static void choose_order(struct gn_rounds *r)
{
    struct order *o = &r->order;
    bool verifies = false, device = false;
    o->n = o->at = o->n_taken = 0;
    o->stride = 1;
    for (size_t i = 0; i < r->n_items; i++) {
        const struct gn_page_table *t = r->items[i].table;
        o->first[i] = o->n;
        o->n += t->n_groups;
        verifies = verifies || has_digests(t, 0, t->n_groups);
        device = device || r->device[i].all;
    }
    o->first[r->n_items] = o->n;
    if (r->options.kind != GN_ROUND_STOP || !verifies || device || o->n < 3)
        return;
    o->stride = o->n / 1000 * 618 + o->n % 1000 * 618 / 1000;
    while (greatest_common_divisor(o->n, o->stride) != 1)
        o->stride++;
}

static int prepare(struct gn_rounds *r, const struct gn_round_item *items, size_t n_items,
                   struct gn_error *err)
{
    r->device = calloc(n_items ? n_items : 1, sizeof *r->device);
    r->order.first = calloc(n_items + 1, sizeof *r->order.first);
    if (!r->device || !r->order.first)
        return gn_fail(err, ENOMEM, "free some memory", "no memory for a round of %zu buffers",
                       n_items);
    for (size_t i = 0; i < n_items; i++) {
        const struct gn_page_table *t = items[i].table;
        if (t->hasher->page_bytes != r->page_bytes)
            return gn_fail(err, EINVAL, "make the table with the engine's page size",
                           "a buffer is tracked in pages of %u bytes, not %u",
                           t->hasher->page_bytes, r->page_bytes);
        if (!items[i].source.digest || !t->hasher->digest_bytes || !has_digests(t, 0, t->n_groups))
            continue;
        if (!(r->device[i].all = malloc(t->n_groups * GN_PAGE_GROUP * t->hasher->digest_bytes)))
            return gn_fail(err, ENOMEM, "free some memory",
                           "no memory for the digests of a buffer of %llu bytes",
                           (unsigned long long)t->bytes);
    }
    return 0;
}

static void clean_up(struct gn_rounds *r, size_t n_items)
{
    for (size_t i = 0; r->device && i < n_items; i++)
        free(r->device[i].all);
    free(r->device);
    r->device = NULL;
    free(r->order.first);
    r->order.first = NULL;
}

int gn_rounds_run(struct gn_rounds *r, const struct gn_round_options *options,
                  const struct gn_round_item *items, size_t n_items,
                  const struct gn_page_sink *sink, struct gn_round_stats *ret_stats,
                  struct gn_error *err)
{
    memset(ret_stats, 0, sizeof *ret_stats);
    int error = prepare(r, items, n_items, err);
    if (error) {
        clean_up(r, n_items);
        return error;
    }

    pthread_mutex_lock(&r->lock);
    r->options = *options;
    r->items = items;
    r->n_items = n_items;
    r->sink = sink;
    choose_order(r);
    r->taken = r->sent = 0;
    r->n_ready = r->error = 0;
    r->wake_at = 1;
    gn_sample_choice_init(&r->choice);
    memset(&r->sum, 0, sizeof r->sum);
    r->running = true;
    if (r->n_threads)
        pthread_cond_broadcast(&r->work);
    pthread_mutex_unlock(&r->lock);

    send_all(r, ret_stats);

    pthread_mutex_lock(&r->lock);
    for (; r->sent < r->taken; r->sent++) {
        struct slot *s = &r->slots[r->sent % r->n_slots];
        gn_verify_undo(r->items[s->item].table, s->group, &s->v);
    }
    ret_stats->verify = r->sum;
    error = r->error;
    pthread_mutex_unlock(&r->lock);
    clean_up(r, n_items);
    if (error)
        gn_fail(err, -error, "see the log of the other side", "pages could not be sent: %s",
                strerror(-error));
    return error;
}

static void init_conditions(struct gn_rounds *r)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->device_lock, NULL);
    pthread_cond_init(&r->work, &attr);
    pthread_cond_init(&r->ready, &attr);
    pthread_condattr_destroy(&attr);
}

int gn_rounds_create(uint32_t page_bytes, unsigned n_threads, struct gn_rounds **ret,
                     struct gn_error *err)
{
    if (n_threads > MAX_THREADS || page_bytes < GN_PAGE_BYTES_MIN ||
        page_bytes > GN_PAGE_BYTES_MAX || (page_bytes & (page_bytes - 1)))
        return gn_fail(err, EINVAL, "at most 64 threads, pages of 4K to 64K",
                       "%u threads cannot hash pages of %u bytes", n_threads, page_bytes);
    struct gn_rounds *r = calloc(1, sizeof *r);
    if (!r)
        return gn_fail(err, ENOMEM, "free some memory", "no memory for a migration");
    uint64_t group_bytes = (uint64_t)page_bytes * GN_PAGE_GROUP;
    init_conditions(r);
    r->page_bytes = page_bytes;
    r->n_slots = STAGING_BYTES / group_bytes < MAX_SLOTS ? (unsigned)(STAGING_BYTES / group_bytes)
                                                         : MAX_SLOTS;
    r->staging = aligned_alloc(GN_PAGE_BYTES_MIN, group_bytes * r->n_slots);
    if (!r->staging) {
        gn_rounds_destroy(r);
        return gn_fail(err, ENOMEM, "free some memory", "no memory for pages in flight");
    }
    for (unsigned i = 0; i < r->n_slots; i++)
        r->slots[i].v.staging = r->staging + i * group_bytes;

    /* These threads must not handle the program's signals. */
    sigset_t all, before;
    gn_signals_of_others(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = 0;
    for (unsigned i = 0; i < n_threads && !error; i++) {
        error = pthread_create(&r->threads[i], NULL, hasher, r);
        if (!error)
            r->n_threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        gn_rounds_destroy(r);
        return gn_fail(err, error, "raise the limit of threads", "no thread for hashing pages: %s",
                       strerror(error));
    }
    *ret = r;
    return 0;
}

void gn_rounds_destroy(struct gn_rounds *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->quit = true;
    pthread_cond_broadcast(&r->work);
    pthread_mutex_unlock(&r->lock);
    for (unsigned i = 0; i < r->n_threads; i++)
        pthread_join(r->threads[i], NULL);
    pthread_cond_destroy(&r->work);
    pthread_cond_destroy(&r->ready);
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->device_lock);
    free(r->staging);
    free(r);
}
