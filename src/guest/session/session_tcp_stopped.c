/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tcp session whose vGPU is in a checkpoint (docs/moves.md): part of its watcher. Nothing is
 * handed over: the program keeps the records that the worker has not received, as after any break,
 * and the checkpoint has both positions. So the program only waits longer, shows the stop's key to
 * any gantryd at its address, and believes that the vGPU has a worker when that gantryd says so.
 * The watcher thread alone.
 */
#include "guest/session/session_tcp_internal.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define TRY_NS       UINT64_C(1000000000)
#define LOOK_MS      500   /* between two looks for a gantryd */
#define ASK_AGAIN_MS 10000 /* it may have gone without a message */

void gn_session_tcp_stop_word(void *session, const struct gn_link_stopped *stop)
{
    struct gn_session *s = session;
    struct gn_session_tcp *r = gn_session_tcp_of(s);
    struct gn_platform_list all;
    if (!r)
        return;
    if (stop && !atomic_load_explicit(&r->stopped, memory_order_relaxed)) {
        if (gn_link_platforms(s->link, &all))
            return;
        for (uint32_t i = 0; i < all.n; i++)
            if (all.items[i].index == s->platform)
                r->platform = all.items[i];
        atomic_store_explicit(&r->stopped, true, memory_order_release);
    }
    /* Of several stops the last one counts. */
    if (stop)
        r->stop = *stop;
    atomic_store_explicit(&r->ask_due, atomic_load_explicit(&r->stopped, memory_order_relaxed),
                          memory_order_release);
}

/* 1: it has a worker; 0: it waits; -errno. */
static int ask(struct gn_session_tcp *r)
{
    struct gn_session *s = r->s;
    struct gn_attached a;
    struct gn_error err;
    pthread_mutex_lock(&r->dialling);
    struct gn_link_wait wait = {.vgpu_id = s->vgpu_id};
    gn_session_wishes(&wait.weight, &wait.memory_bytes);
    memcpy(wait.key, r->stop.key, sizeof wait.key);
    atomic_store_explicit(&r->ask_due, false, memory_order_release);
    const int rc = gn_link_wait_tcp(s->link, &wait, &r->platform, gn_now_ns() + TRY_NS, &a, &err);
    /* Another stop may have come while gantryd was asked. */
    if (rc == 1 && !atomic_load_explicit(&r->ask_due, memory_order_acquire)) {
        atomic_store_explicit(&r->stopped, false, memory_order_release);
        explicit_bzero(&r->stop, sizeof r->stop);
    } else if (!rc) {
        s->vgpu_id = a.vgpu_id;
        s->platform = a.platform;
        r->grace_ns = (uint64_t)a.grace_ms * 1000000u;
    }
    pthread_mutex_unlock(&r->dialling);
    explicit_bzero(wait.key, sizeof wait.key);
    return rc;
}

void gn_session_tcp_ask_stopped(struct gn_session_tcp *r)
{
    if (ask(r) < 0)
        gn_session_tcp_broke(r);
}

static void hear(struct gn_session_tcp *r)
{
    pthread_mutex_lock(&r->dialling);
    (void)gn_link_dispatch(r->s->link); /* any message leads to a new question */
    pthread_mutex_unlock(&r->dialling);
}

/* Waits until gantryd has sent a message, or is gone. */
static void listen(struct gn_session_tcp *r)
{
    struct pollfd p = {.fd = gn_link_poll_fd(r->s->link), .events = POLLIN | POLLRDHUP};
    /* Through TLS it may have come right behind the answer, and poll knows nothing of it. */
    hear(r);
    if (!atomic_load_explicit(&r->ask_due, memory_order_acquire) && poll(&p, 1, ASK_AGAIN_MS) > 0)
        hear(r);
}

void gn_session_tcp_await_restored(struct gn_session_tcp *r)
{
    while (atomic_load_explicit(&r->stopped, memory_order_acquire) && !gn_session_tcp_is_over(r)) {
        const int rc = ask(r);
        if (rc < 0)
            (void)poll(NULL, 0, LOOK_MS);
        else if (!rc && !atomic_load_explicit(&r->ask_due, memory_order_acquire))
            listen(r);
    }
}
