/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that a worker has started (its driver's compilers, or others) and left behind. gantryd
 * is their subreaper: they become its children when their worker ends, and are killed then.
 * gantryd's thread.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "daemon/vgpu/template.h"
#include "daemon/vgpu/orphans.h"

#define MAX_OWN 64

/* Children from before gantryd's exec. gantryd must not kill them. */
static pid_t own[MAX_OWN];
static int n_own;

/* Calls each(ctx, pid) for every child. Nothing happens where the kernel does not list children. */
static void for_each_child(void (*each)(void *ctx, pid_t pid), void *ctx)
{
    FILE *f = fopen("/proc/thread-self/children", "re");
    int pid;
    if (!f)
        return;
    while (fscanf(f, "%d", &pid) == 1)
        each(ctx, (pid_t)pid);
    fclose(f);
}

static void note(void *ctx, pid_t pid)
{
    if (n_own < MAX_OWN)
        own[n_own++] = pid;
}

static void kill_unknown(void *ctx, pid_t pid)
{
    const struct gn_daemon *d = ctx;
    for (int i = 0; i < n_own; i++)
        if (own[i] == pid)
            return;
    if (!gn_templates_include(d, pid) && !gn_caches_know(d, pid))
        kill(pid, SIGKILL);
}

void gn_orphans_adopt(void)
{
    for_each_child(note, NULL);
    /* Without this, orphans go to init, which lets them live. */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void gn_orphans_kill(struct gn_daemon *d)
{
    for_each_child(kill_unknown, d);
}
