/* SPDX-License-Identifier: Apache-2.0 */
/* gantryd's event loop (loop.h). Everything runs on gantryd's thread and calls the callbacks there.
 * It never closes a descriptor that another process has chosen: close() could block. */
#include "daemon/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BATCH 64

int gn_loop_init(struct gn_loop *l)
{
    l->stopped = l->has_more = false;
    l->after = NULL;
    gn_list_init(&l->corpses);
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return l->epoll_fd < 0 ? -errno : 0;
}

static void free_corpses(struct gn_loop *l)
{
    gn_list_for_each(c, &l->corpses, struct gn_corpse, link)
    {
        gn_list_remove(&c->link);
        c->bury(c);
    }
}

void gn_loop_fini(struct gn_loop *l)
{
    free_corpses(l);
    close(l->epoll_fd);
}

int gn_loop_add(struct gn_loop *l, struct gn_source *s, uint32_t events,
                void (*ready)(struct gn_source *, uint32_t events))
{
    struct epoll_event e = {.events = events, .data.ptr = s};
    s->events = events;
    s->muted = false;
    s->ready = ready;
    return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, s->fd, &e) < 0 ? -errno : 0;
}

void gn_loop_prepare(struct gn_source *s, void (*ready)(struct gn_source *, uint32_t events))
{
    s->events = 0;
    s->muted = true;
    s->ready = ready;
}

int gn_loop_change(struct gn_loop *l, struct gn_source *s, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = s};
    if (s->fd < 0 || s->events == events)
        return 0;
    /* Changing a registered descriptor cannot fail unless the caller has a bug. */
    if (epoll_ctl(l->epoll_fd, s->muted ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, s->fd, &e) < 0 && s->muted)
        return -errno;
    s->events = events;
    s->muted = false;
    return 0;
}

void gn_loop_mute(struct gn_loop *l, struct gn_source *s)
{
    if (s->fd < 0 || s->muted)
        return;
    (void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
    s->events = 0;
    s->muted = true;
}

int gn_loop_release(struct gn_loop *l, struct gn_source *s)
{
    const int fd = s->fd;
    /* The open file may live on in another process, and epoll would keep reporting it. */
    if (fd >= 0)
        (void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    s->fd = -1;
    return fd;
}

void gn_loop_close(struct gn_loop *l, struct gn_source *s)
{
    const int fd = gn_loop_release(l, s);
    if (fd >= 0)
        close(fd);
}

void gn_loop_bury(struct gn_loop *l, struct gn_corpse *corpse, void (*bury)(struct gn_corpse *))
{
    corpse->bury = bury;
    gn_list_append(&l->corpses, &corpse->link);
}

int gn_loop_turn(struct gn_loop *l, int timeout_ms)
{
    struct epoll_event events[BATCH];
    int n = epoll_wait(l->epoll_fd, events, BATCH, l->has_more ? 0 : timeout_ms);
    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    for (int i = 0; i < n; i++) {
        struct gn_source *s = events[i].data.ptr;
        if (s->fd >= 0) /* not closed by an earlier callback of this round */
            s->ready(s, events[i].events);
    }
    l->has_more = l->after && l->after(l);
    free_corpses(l);
    return n;
}

int gn_loop_run(struct gn_loop *l)
{
    int n = 0;
    while (!l->stopped && n >= 0)
        n = gn_loop_turn(l, -1);
    return n < 0 ? n : 0;
}

void gn_loop_stop(struct gn_loop *l)
{
    l->stopped = true;
}
