/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose vGPU is in a checkpoint (docs/moves.md). All of the session is here: rings, event
 * table, data area, both ends of its socket. So waiting needs nothing else, and gantryd may end and
 * start again: the watcher looks for one twice a second, and tells it that a program waits. The
 * watcher thread alone; a thread that needs more memory from gantryd waits for link_lock meanwhile.
 */
#include "guest/migrate/stopped.h"

#include "base/descriptor.h"
#include "guest/migrate/follow_migration.h"
#include "guest/session/session_in_process.h"

#include "link/worker_hand.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define LOOK_NS  500000000 /* between two tries to find a gantryd */
#define AGAIN_NS 1000000   /* after a restore that failed */

struct wait {
    struct gn_session *s;
    const struct gn_link_stopped *stop;
    int worker_end;
    struct gn_platform platform; /* by its names */
};

static int segment_of(void *session, uint32_t index, uint64_t *ret_bytes)
{
    return gn_area_segment_fd(&((struct gn_session *)session)->area, index, ret_bytes);
}

int gn_session_hand_over(struct gn_session *s, int hand, int worker_end, uint32_t n_segments)
{
    const struct gn_worker_hand what = {.n_segments = n_segments};
    return gn_worker_hand_session(hand, &what, worker_end, s->event_segment.fd, segment_of, s);
}

/*
 * Tells gantryd that the program waits, and waits. 1: restored; -EAGAIN: try again; -EPIPE: gantryd
 * is gone; another -errno: gantryd refuses.
 */
static int wait_at(const struct wait *w)
{
    struct gn_session *s = w->s;
    struct gn_link_wait message = {
        .vgpu_id = w->stop->vgpu_id, .platform = s->platform, .n_segments = s->area.n_segments - 1};
    struct gn_error err;
    int hand[2];
    gn_session_wishes(&message.weight, &message.memory_bytes);
    memcpy(message.key, w->stop->key, sizeof message.key);
    if (gn_fd_pair(AF_UNIX, SOCK_STREAM, hand) < 0)
        return -errno;
    const int fds[GN_LINK_WAIT_FDS] = {
        [GN_LINK_WAIT_HAND] = hand[1], [GN_LINK_WAIT_RING] = s->ring_segment.fd};
    int rc = gn_link_wait(s->link, &message, fds, &err);
    gn_fd_close(hand[1]);
    while (!rc) {
        rc = gn_link_wait_accepted(s->link, &err);
        if (rc == GN_LINK_HAND) {
            /* link_lock: there will be no more segments. When it failed the worker says so, and
             * gantryd. */
            (void)gn_session_hand_over(s, hand[0], w->worker_end, s->area.n_segments);
            rc = 0;
        }
    }
    gn_fd_close(hand[0]);
    explicit_bzero(message.key, sizeof message.key);
    return rc == GN_LINK_RESTORED ? 1 : rc;
}

static bool find_platform(const struct gn_platform_list *all, const struct gn_platform *wanted,
                          uint32_t *ret)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (!strcmp(all->items[i].api, wanted->api) && !strcmp(all->items[i].name, wanted->name)) {
            *ret = all->items[i].index;
            return true;
        }
    return false;
}

/* A gantryd that has our platform; -errno: not now. */
static int look_for_one(struct wait *w)
{
    struct gn_session *s = w->s;
    struct gn_platform_list all;
    struct gn_link *link;
    struct gn_error err;
    int rc = gn_link_connect(s->address[0] ? s->address : NULL, &link, &err);
    if (rc)
        return rc;
    rc = gn_link_platforms(link, &all);
    if (!rc && !find_platform(&all, &w->platform, &s->platform))
        rc = -ENODEV;
    if (rc) {
        gn_link_close(link);
        return rc;
    }
    link->on_move = gn_session_move_word;
    link->on_host = gn_in_process_adopt;
    link->on_host_ctx = s;
    s->link = link;
    return 0;
}

bool gn_session_await_restored(struct gn_session *s, const struct gn_link_stopped *stop,
                               int worker_end)
{
    struct wait w = {.s = s, .stop = stop, .worker_end = worker_end};
    struct gn_platform_list all;
    int rc = 0;
    pthread_mutex_lock(&s->link_lock);
    bool known = !gn_link_platforms(s->link, &all);
    for (uint32_t i = 0; known && i < all.n; i++)
        if (all.items[i].index == s->platform)
            w.platform = all.items[i];
    while (rc != 1) {
        rc = s->link ? wait_at(&w) : look_for_one(&w);
        if (!gn_fd_is_ours(s->ring_segment.fd))
            break; /* the program has closed it: there is nothing left to be handed over */
        if (rc == -EPIPE || rc == -EPROTO || rc == -ETIMEDOUT || rc == -EBADF) {
            if (s->link)
                gn_link_close(s->link);
            s->link = NULL;
        }
        const struct timespec pause = {.tv_nsec = rc == -EAGAIN ? AGAIN_NS : LOOK_NS};
        if (rc < 0)
            nanosleep(&pause, NULL);
    }
    gn_fd_close(worker_end);
    pthread_mutex_unlock(&s->link_lock);
    return rc == 1;
}
