/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into gantryd and so into its workers: makes one of them a hostile worker. It lies in
 * its answers to orders about device memory. $LIAR says how; the liar is the second worker that
 * asks for memory, so that the test decides which program it serves.
 *
 *     silent    it never answers an order
 *     number    its answer has the number of no order
 *     twice     it answers twice
 *     short     its answer is cut
 *     early     it answers an order that it has not got
 *     wants     it asks for evicted memory with a payload
 *     flood     it asks for evicted memory, a hundred thousand times
 */
#include "link/frame.h"
#include "link/worker_wire.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define FLOOD 100000

static const char *lie;
/* In memory that all workers share: they are forks of the process that loads this. */
static _Atomic unsigned *n_askers;
static _Atomic bool is_liar;

static ssize_t really_send(int fd, const struct msghdr *msg, int flags)
{
    static ssize_t (*real)(int, const struct msghdr *, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
    return real(fd, msg, flags);
}

__attribute__((constructor)) static void prepare(void)
{
    lie = getenv("LIAR");
    n_askers =
        mmap(NULL, sizeof *n_askers, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (n_askers == MAP_FAILED)
        abort();
}

static bool lies(const char *how)
{
    return strcmp(lie, how) == 0;
}

/* Waits for room. */
static void send_frame(int fd, uint16_t op, uint32_t seq, const void *payload, uint32_t n)
{
    const struct gn_frame_header h = {.size = (uint32_t)sizeof h + n, .op = op, .seq = seq};
    struct iovec iov[2] = {{(void *)(uintptr_t)&h, sizeof h}, {(void *)(uintptr_t)payload, n}};
    const struct msghdr msg = {.msg_iov = iov, .msg_iovlen = n ? 2 : 1};
    (void)really_send(fd, &msg, MSG_NOSIGNAL);
}

static void *flood(void *arg)
{
    for (int i = 0; i < FLOOD; i++)
        send_frame((int)(intptr_t)arg, GN_WORKER_WANTS_MEMORY, 0, NULL, 0);
    return NULL;
}

static void answer_order(int fd, const struct gn_frame_header *h, const struct iovec *payload)
{
    const struct gn_worker_resides said = {0};
    static _Atomic bool floods;
    pthread_t thread;
    if (lies("silent"))
        return;
    if (lies("flood") && !atomic_exchange(&floods, true))
        (void)!pthread_create(&thread, NULL, flood, (void *)(intptr_t)fd);
    if (lies("wants"))
        send_frame(fd, GN_WORKER_WANTS_MEMORY, 0, &said, 8);
    send_frame(fd, h->op, h->seq + lies("number"), payload->iov_base,
               lies("short") ? 8 : (uint32_t)payload->iov_len);
    if (lies("twice"))
        send_frame(fd, h->op, h->seq, payload->iov_base, (uint32_t)payload->iov_len);
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    const struct gn_worker_resides said = {0};
    const struct gn_frame_header *h = msg->msg_iovlen ? msg->msg_iov[0].iov_base : NULL;
    if (!lie || msg->msg_iovlen != 2 || msg->msg_iov[0].iov_len != sizeof *h ||
        h->size != sizeof *h + msg->msg_iov[1].iov_len)
        return really_send(fd, msg, flags);
    if (h->op == GN_WORKER_LEASE && h->size == sizeof *h + sizeof(struct gn_worker_lease)) {
        static _Atomic bool asked;
        if (!atomic_exchange(&asked, true) && atomic_fetch_add(n_askers, 1) == 1) {
            atomic_store(&is_liar, true);
            if (lies("early"))
                send_frame(fd, GN_WORKER_RESIDES, 0, &said, sizeof said);
        }
    }
    if (atomic_load(&is_liar) && h->op == GN_WORKER_RESIDES && h->size == sizeof *h + sizeof said) {
        answer_order(fd, h, &msg->msg_iov[1]);
        return (ssize_t)h->size;
    }
    return really_send(fd, msg, flags);
}
