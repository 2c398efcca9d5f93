/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data area: one buddy allocator for each segment. Its bookkeeping is in private memory, so
 * that a worker can not corrupt it. The first segment exists from the start; a block that fits
 * nowhere gets a new segment, which stays. Any thread.
 */
#include "guest/core/guest_core.h"
#include "guest/core/loss.h"

#include "base/descriptor.h"
#include "guest/session/session_ops.h"
#include "guest/core/report.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MAX_LEAVES      (1u << 18)
#define MIN_LEAF_BYTES  256u
#define MAX_ORDER       19u
#define NONE            UINT32_MAX
#define MIN_SEGMENT     (UINT64_C(16) << 20)
#define COLLECT_AT_ONCE 32u /* blocks looked at, so that many that last cost little */
#define PAGES_BACK_BYTES                                                                           \
    (UINT64_C(256) << 10) /* smaller blocks keep their pages for the next user */
#define FAR_KEPT_BYTES                                                                             \
    (UINT64_C(128)                                                                                 \
     << 20) /* but over tcp, where the worker has them, too, no more pages than these are kept */
#define WINDOW_ALIGN    (UINT64_C(2) << 20) /* of segments in the window: a huge page */
#define MOVING_PAUSE_NS 5000000
#define HOME_PAUSE_NS   1000000
#define GROWTH_LIMIT    (UINT64_C(1) << 30)

struct gn_area_segment {
    struct gn_segment segment;
    enum gn_area_use use;
    uint64_t leaf_bytes;
    uint32_t n_leaves, top;
    uint32_t head[MAX_ORDER + 1];
    uint8_t *order;        /* of the free block that starts at a leaf, + 1; 0: none starts here */
    uint8_t *taken;        /* the same of blocks in hand */
    uint32_t *next, *prev; /* in the list of its order */
};

static void push(struct gn_area_segment *a, uint32_t leaf, uint32_t order)
{
    a->order[leaf] = (uint8_t)(order + 1);
    a->next[leaf] = a->head[order];
    a->prev[leaf] = NONE;
    if (a->head[order] != NONE)
        a->prev[a->head[order]] = leaf;
    a->head[order] = leaf;
}

static void take_off(struct gn_area_segment *a, uint32_t leaf)
{
    uint32_t order = a->order[leaf] - 1u;
    if (a->prev[leaf] != NONE)
        a->next[a->prev[leaf]] = a->next[leaf];
    else
        a->head[order] = a->next[leaf];
    if (a->next[leaf] != NONE)
        a->prev[a->next[leaf]] = a->prev[leaf];
    a->order[leaf] = 0;
}

static uint32_t order_for(const struct gn_area_segment *a, uint64_t bytes)
{
    uint32_t order = 0;
    while (order <= a->top && (a->leaf_bytes << order) < bytes)
        order++;
    return order;
}

static bool segment_take(struct gn_area_segment *a, uint64_t bytes, struct gn_block *ret)
{
    uint32_t order = order_for(a, bytes), have = order;
    while (have <= a->top && a->head[have] == NONE)
        have++;
    if (have > a->top)
        return false;
    uint32_t leaf = a->head[have];
    take_off(a, leaf);
    while (have > order) {
        have--;
        push(a, leaf + (1u << have), have);
    }
    a->taken[leaf] = (uint8_t)(order + 1);
    ret->order = order;
    ret->offset = leaf * a->leaf_bytes;
    ret->bytes = bytes;
    ret->base = (char *)a->segment.base + ret->offset;
    return true;
}

static void segment_put(struct gn_area_segment *a, const struct gn_block *b)
{
    uint32_t leaf = (uint32_t)(b->offset / a->leaf_bytes), order = b->order;
    a->taken[leaf] = 0;
    while (order < a->top) {
        uint32_t buddy = leaf ^ (1u << order);
        if (buddy >= a->n_leaves || a->order[buddy] != order + 1)
            break;
        take_off(a, buddy);
        leaf &= ~(1u << order);
        order++;
    }
    push(a, leaf, order);
}

static void books_free(struct gn_area_segment *a)
{
    if (!a)
        return;
    free(a->order);
    free(a->taken);
    free(a->next);
    free(a->prev);
    free(a);
}

/* Of a segment of so many bytes: a power of two, or the part that is one is used. */
static struct gn_area_segment *books_new(uint64_t bytes)
{
    struct gn_area_segment *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->leaf_bytes = MIN_LEAF_BYTES;
    while (bytes / a->leaf_bytes > MAX_LEAVES)
        a->leaf_bytes *= 2;
    while ((a->leaf_bytes << (a->top + 1)) <= bytes)
        a->top++;
    a->n_leaves = 1u << a->top;
    a->order = calloc(a->n_leaves, sizeof *a->order);
    a->taken = calloc(a->n_leaves, sizeof *a->taken);
    a->next = calloc(a->n_leaves, sizeof *a->next);
    a->prev = calloc(a->n_leaves, sizeof *a->prev);
    if (!a->order || !a->taken || !a->next || !a->prev) {
        books_free(a);
        return NULL;
    }
    for (uint32_t i = 0; i <= MAX_ORDER; i++)
        a->head[i] = NONE;
    push(a, 0, a->top);
    return a;
}

int gn_area_init(struct gn_session *s, struct gn_segment first)
{
    struct gn_area_segment *a = books_new(first.bytes);
    pthread_mutex_init(&s->area.lock, NULL);
    gn_list_init(&s->area.left);
    if (a)
        a->segment = first;
    s->area.segments[0] = a;
    s->area.n_segments = a ? 1 : 0;
    return a ? 0 : -ENOMEM;
}

void gn_area_close(struct gn_area *a)
{
    pthread_mutex_lock(&a->lock);
    for (uint32_t i = 0; i < a->n_segments; i++) {
        gn_fd_close(a->segments[i]->segment.fd);
        a->segments[i]->segment.fd = -1;
    }
    pthread_mutex_unlock(&a->lock);
}

void gn_area_discard_unused(struct gn_session *s)
{
    struct gn_area *a = &s->area;
    /* A forked child has none of its parent's memory, and maybe its own at these addresses. */
    if (gn_session_is_used(s) || s->epoch != atomic_load_explicit(&gn_epoch, memory_order_relaxed))
        return;
    pthread_mutex_lock(&a->lock);
    for (uint32_t i = 0; i < a->n_segments; i++)
        (void)madvise(a->segments[i]->segment.base, a->segments[i]->segment.bytes, MADV_REMOVE);
    pthread_mutex_unlock(&a->lock);
}

int gn_area_segment_fd(struct gn_area *a, uint32_t index, uint64_t *ret_bytes)
{
    int fd = -1;
    pthread_mutex_lock(&a->lock);
    if (index < a->n_segments) {
        fd = a->segments[index]->segment.fd;
        *ret_bytes = a->segments[index]->segment.bytes;
    }
    pthread_mutex_unlock(&a->lock);
    return fd;
}

uint64_t gn_area_rest_of_block(struct gn_area *a, const struct gn_area_ref *ref)
{
    uint64_t rest = 0;
    pthread_mutex_lock(&a->lock);
    const struct gn_area_segment *s =
        ref->segment && ref->segment <= a->n_segments ? a->segments[ref->segment - 1] : NULL;
    const uint64_t leaf = s ? ref->offset / s->leaf_bytes : 0;
    for (uint32_t order = 0; s && leaf < s->n_leaves && order <= s->top && !rest; order++) {
        const uint64_t first = leaf >> order << order;
        if (s->taken[first] == order + 1)
            rest = (first + (UINT64_C(1) << order)) * s->leaf_bytes - ref->offset;
    }
    pthread_mutex_unlock(&a->lock);
    return rest;
}

char *gn_area_segment_base(struct gn_area *a, uint32_t index, uint64_t *ret_bytes)
{
    *ret_bytes = a->segments[index]->segment.bytes;
    return a->segments[index]->segment.base;
}

static void reclaim_locked(struct gn_session *s)
{
    struct gn_area *a = &s->area;
    while (a->n_parked) {
        struct gn_parked_block *p = &a->parked[a->first_parked];
        if (!gn_ring_passed(&s->requests, p->end))
            return;
        segment_put(a->segments[p->block.segment], &p->block);
        a->first_parked = (a->first_parked + 1) % a->parked_capacity;
        a->n_parked--;
    }
}

static uint64_t pages_of(const struct gn_area_segment *a, const struct gn_block *b)
{
    const uint64_t bytes = a->leaf_bytes << b->order;
    return bytes >= PAGES_BACK_BYTES ? bytes : 0;
}

static bool take_locked(struct gn_session *s, uint64_t bytes, enum gn_area_use use,
                        struct gn_block *ret)
{
    reclaim_locked(s);
    for (uint32_t i = 0; i < s->area.n_segments; i++) {
        if (s->area.segments[i]->use == use && segment_take(s->area.segments[i], bytes, ret)) {
            ret->segment = i;
            const uint64_t kept = pages_of(s->area.segments[i], ret);
            s->area.kept_bytes -= kept < s->area.kept_bytes ? kept : s->area.kept_bytes;
            return true;
        }
    }
    return false;
}

void gn_area_set_window(struct gn_session *s, void *base, uint64_t bytes)
{
    pthread_mutex_lock(&s->link_lock);
    s->area.window = base;
    s->area.window_bytes = bytes;
    pthread_mutex_unlock(&s->link_lock);
}

/*
 * Segments of the window and of homes grow with their number, which is limited: untouched pages
 * cost nothing. Programs may keep all their data there; the rest of the data area is for data in
 * transit.
 */
static uint64_t grown(uint64_t size, uint64_t there)
{
    while (size < there && size < GROWTH_LIMIT)
        size *= 2;
    return size;
}

static int window_size(const struct gn_area *a, uint64_t *size)
{
    uint64_t wish = grown(*size, a->window_used);
    if (gn_range_ok(a->window_used, wish, a->window_bytes))
        *size = wish;
    return gn_range_ok(a->window_used, *size, a->window_bytes) ? 0 : -ENOMEM;
}

/* Moves a segment's mapping over the next reserved addresses. */
static int move_to_window(struct gn_area *a, struct gn_segment *segment)
{
    void *to = a->window + a->window_used;
    void *base =
        mremap(segment->base, segment->bytes, segment->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    if (base == MAP_FAILED)
        return -errno;
    segment->base = base;
    a->window_used += gn_align_up(segment->bytes, WINDOW_ALIGN);
    return 0;
}

/* The next one, or none: its number is not the next one's. */
static int enter(struct gn_area *area, struct gn_area_segment *a, uint32_t index)
{
    int r = -ENOMEM;
    pthread_mutex_lock(&area->lock);
    if (index == area->n_segments && index < GN_AREA_SEGMENTS) {
        area->segments[index] = a;
        area->n_segments++;
        if (a->use == GN_AREA_HOME)
            area->home_bytes += a->segment.bytes;
        r = 0;
    }
    pthread_mutex_unlock(&area->lock);
    return r;
}

/* Asked before gantryd is, since gantryd counts each segment that it has made. */
static bool has_room(void)
{
    static _Atomic bool said;
    int ends[2]; /* the driver may be in this process, and get one as well */
    const bool room = !gn_fd_pair(AF_UNIX, SOCK_STREAM, ends);
    if (!room && (errno == EMFILE || errno == ENFILE) && !atomic_exchange(&said, true))
        gn_report(
            "the program has no descriptors left (ulimit -n): large transfers are slow or fail "
            "until it has some");
    for (int i = 0; room && i < 2; i++)
        gn_fd_close(ends[i]);
    return room;
}

static int try_segment(struct gn_session *s, uint64_t bytes, enum gn_area_use use)
{
    struct gn_error err;
    struct gn_segment segment = GN_SEGMENT_NONE;
    struct gn_area_segment *a = NULL;
    uint64_t size = MIN_SEGMENT;
    uint32_t index;
    while (size < bytes && size < GN_LINK_SEGMENT_LIMIT)
        size *= 2;
    if (gn_session_lost(s))
        return -EPIPE;
    pthread_mutex_lock(&s->link_lock);
    const struct gn_session_ops *ops = gn_session_ops(s);
    const int out = !s->link ? -EPIPE : has_room() ? 0 : -EMFILE;
    if (out) {
        pthread_mutex_unlock(&s->link_lock);
        return out;
    }
    /* Addresses that the vGPU has, too, do not exist on another machine. */
    const bool no_window =
        !ops->shares_memory || atomic_load_explicit(&s->was_far, memory_order_relaxed);
    int r = use != GN_AREA_WINDOW ? 0 : no_window ? -ENOMEM : window_size(&s->area, &size);
    if (use == GN_AREA_HOME)
        size = grown(size, s->area.home_bytes);
    /*
     * First, since the other side counts the segments: one that failed here would be counted there.
     */
    if (!r && !(a = books_new(size)))
        r = -ENOMEM;
    bool made = false;
    if (!r)
        r = ops->add_segment(s, size, &segment, &index, &made, &err);
    /* gantryd is gone, and the watcher has not noticed yet. */
    if (r == -EPIPE)
        gn_lost_declare(&s->lost);
    /*
     * During a migration the new gantryd's worker must know the segment before a message names it.
     * If that gantryd is gone, the migration fails.
     */
    if (!r && s->to)
        (void)gn_link_pass(s->to, index, size, segment.fd);
    if (!r && !segment.base)
        r = gn_segment_adopt(segment.fd, GN_LINK_SEGMENT_LIMIT, &segment);
    if (!r && segment.bytes < size)
        r = -EPROTO;
    if (!r && use == GN_AREA_WINDOW)
        r = move_to_window(&s->area, &segment);
    if (made) {
        /*
         * A segment that the other side has counted is counted here, too, even if it can not be
         * used.
         */
        if (r)
            take_off(a, 0);
        if (!segment.base)
            segment.bytes = size;
        a->segment = segment;
        a->use = use;
        const int entered = enter(&s->area, a, index);
        r = r ? r : entered;
        made = !entered;
    }
    if (!made) {
        books_free(a);
        gn_segment_fini(&segment);
    }
    pthread_mutex_unlock(&s->link_lock);
    if (r == -EBADF) {
        gn_session_cut_off(s);
        r = -EPIPE;
    }
    return r;
}

/* While the vGPU moves to another worker, gantryd has no worker to tell of a segment. */
static int add_segment(struct gn_session *s, uint64_t bytes, enum gn_area_use use)
{
    const struct timespec pause = {.tv_nsec = MOVING_PAUSE_NS};
    int r;
    while ((r = try_segment(s, bytes, use)) == -EAGAIN)
        nanosleep(&pause, NULL);
    return r;
}

int gn_block_alloc(struct gn_session *s, enum gn_area_use use, uint64_t bytes, struct gn_block *ret)
{
    if (use == GN_AREA_HOME)
        gn_area_collect(s);
    for (int tries = 0; tries < 2; tries++) {
        pthread_mutex_lock(&s->area.lock);
        bool taken = take_locked(s, bytes, use, ret);
        pthread_mutex_unlock(&s->area.lock);
        if (taken)
            return 0;
        int r = tries ? -ENOMEM : add_segment(s, bytes, use);
        if (r)
            return r;
    }
    return -ENOMEM;
}

/* Pages go back to the system; the block's addresses stay. */
static void give_pages_back(struct gn_session *s, const struct gn_area_segment *a,
                            const struct gn_block *b)
{
    uint64_t bytes = a->leaf_bytes << b->order;
    if (bytes >= PAGES_BACK_BYTES)
        (void)madvise(b->base, bytes, MADV_REMOVE);
    if (bytes >= PAGES_BACK_BYTES && gn_session_ops(s)->free_pages &&
        !pthread_mutex_trylock(&s->link_lock)) {
        /* The vGPU may have come to this machine meanwhile. */
        const struct gn_session_ops *ops = gn_session_ops(s);
        if (ops->free_pages)
            ops->free_pages(s, b->segment, b->offset, bytes);
        pthread_mutex_unlock(&s->link_lock);
    }
}

static void put(struct gn_session *s, struct gn_block *b)
{
    pthread_mutex_lock(&s->area.lock);
    segment_put(s->area.segments[b->segment], b);
    pthread_mutex_unlock(&s->area.lock);
    b->segment = GN_NO_BLOCK;
}

/* Of blocks with pages the one that was put back last is used next. */
static bool keeps_pages(struct gn_area *a, uint64_t bytes)
{
    pthread_mutex_lock(&a->lock);
    const bool keeps = a->kept_bytes + bytes <= FAR_KEPT_BYTES;
    if (keeps)
        a->kept_bytes += bytes;
    pthread_mutex_unlock(&a->lock);
    return keeps;
}

void gn_block_free(struct gn_session *s, struct gn_block *b)
{
    if (b->segment == GN_NO_BLOCK)
        return;
    const struct gn_area_segment *a = s->area.segments[b->segment];
    const uint64_t bytes = gn_session_shares_memory(s) ? 0 : pages_of(a, b);
    if (bytes && !keeps_pages(&s->area, bytes))
        give_pages_back(s, a, b);
    put(s, b);
}

void gn_block_put_behind(struct gn_session *s, struct gn_block *b, uint64_t end)
{
    struct gn_area *a = &s->area;
    pthread_mutex_lock(&a->lock);
    reclaim_locked(s);
    if (a->n_parked == a->parked_capacity) {
        uint32_t capacity = a->parked_capacity ? a->parked_capacity * 2 : 64;
        struct gn_parked_block *grown = malloc(capacity * sizeof *grown);
        for (uint32_t i = 0; grown && i < a->n_parked; i++)
            grown[i] = a->parked[(a->first_parked + i) % a->parked_capacity];
        if (!grown) {
            /* Lost to the area, not to the program. */
            pthread_mutex_unlock(&a->lock);
            return;
        }
        free(a->parked);
        a->parked = grown;
        a->first_parked = 0;
        a->parked_capacity = capacity;
    }
    a->parked[(a->first_parked + a->n_parked++) % a->parked_capacity] =
        (struct gn_parked_block){*b, end};
    pthread_mutex_unlock(&a->lock);
    b->segment = GN_NO_BLOCK;
}

/* ---- homes */

bool gn_session_await_home(struct gn_session *s)
{
    const struct timespec pause = {.tv_nsec = HOME_PAUSE_NS};
    while (gn_session_shares_memory(s) &&
           !atomic_load_explicit(&s->was_far, memory_order_acquire)) {
        if (gn_session_enter_home(s))
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

void gn_block_put_when(struct gn_session *s, struct gn_block *b, uint32_t event)
{
    struct gn_left_block *left = malloc(sizeof *left);
    struct gn_area *a = &s->area;
    if (!left)
        return; /* Lost to the area, not to the program. */
    *left = (struct gn_left_block){.block = *b, .event = event};
    b->segment = GN_NO_BLOCK;
    pthread_mutex_lock(&a->lock);
    gn_list_append(&a->left, &left->link);
    atomic_fetch_add_explicit(&a->n_left, 1, memory_order_relaxed);
    pthread_mutex_unlock(&a->lock);
    gn_area_collect(s);
}

void gn_area_collect(struct gn_session *s)
{
    struct gn_area *a = &s->area;
    struct gn_list free_now;
    uint32_t n = 0;
    if (!atomic_load_explicit(&a->n_left, memory_order_relaxed))
        return;
    gn_list_init(&free_now);
    pthread_mutex_lock(&a->lock);
    gn_list_for_each(l, &a->left, struct gn_left_block, link)
    {
        if (n++ == COLLECT_AT_ONCE)
            break;
        gn_list_remove(&l->link);
        /* Those that are not over go to the end: one that lasts must not hide the others. */
        gn_list_append(gn_event_phase(&s->events[l->event], NULL) == GN_EVENT_DONE ? &free_now
                                                                                   : &a->left,
                       &l->link);
    }
    pthread_mutex_unlock(&a->lock);
    gn_list_for_each(l, &free_now, struct gn_left_block, link)
    {
        give_pages_back(s, a->segments[l->block.segment], &l->block);
        put(s, &l->block);
        atomic_fetch_sub_explicit(&a->n_left, 1, memory_order_relaxed);
        gn_event_index_put(s, l->event);
        free(l);
    }
}
