/* SPDX-License-Identifier: Apache-2.0 */
/* A leaky bucket of faults for each user of each tenant (fault_throttle.h). Called by attach.c, and
 * by the code that ends vGPUs, on gantryd's thread. Reads no clock, starts and delays nothing
 * itself: it only tells the caller when the next program may start. */
#include "daemon/tenants/fault_throttle.h"

#include <stdlib.h>
#include <string.h>

void gn_fault_throttle_init(struct gn_fault_throttle *b)
{
    gn_list_init(&b->users);
    b->n = 0;
}

static void forget(struct gn_fault_throttle *b, struct gn_fault_user *u)
{
    gn_list_remove(&u->link);
    b->n--;
    free(u);
}

void gn_fault_throttle_fini(struct gn_fault_throttle *b)
{
    gn_list_for_each(u, &b->users, struct gn_fault_user, link) forget(b, u);
}

struct gn_fault_user *gn_fault_throttle_find(struct gn_fault_throttle *b, const char *tenant,
                                             uint64_t user, uint64_t now_ns)
{
    struct gn_fault_user *found = NULL;
    gn_list_for_each(u, &b->users, struct gn_fault_user, link)
    {
        if (u->user == user && strcmp(u->tenant, tenant) == 0)
            found = u;
        else if (u->level_ns <= now_ns && !u->n_waiting)
            forget(b, u);
    }
    return found;
}

static struct gn_fault_user *add(struct gn_fault_throttle *b, const char *tenant, uint64_t user)
{
    struct gn_fault_user *least = NULL;
    gn_list_for_each(u, &b->users, struct gn_fault_user, link)
    {
        if (!u->n_waiting && (!least || u->level_ns < least->level_ns))
            least = u;
    }
    if (b->n >= GN_BREACHES_USERS) {
        if (!least)
            return NULL;
        forget(b, least);
    }
    struct gn_fault_user *u = calloc(1, sizeof *u);
    if (!u)
        return NULL;
    memcpy(u->tenant, tenant, strnlen(tenant, sizeof u->tenant - 1));
    u->user = user;
    gn_list_append(&b->users, &u->link);
    b->n++;
    return u;
}

void gn_fault_throttle_note(struct gn_fault_throttle *b, const char *tenant, uint64_t user,
                            uint64_t pause_ns, uint64_t now_ns)
{
    const uint64_t most = now_ns + GN_BREACHES_MOST * pause_ns;
    struct gn_fault_user *u = gn_fault_throttle_find(b, tenant, user, now_ns);
    if (!u && !(u = add(b, tenant, user)))
        return;
    u->level_ns = (u->level_ns > now_ns ? u->level_ns : now_ns) + pause_ns;
    if (u->level_ns > most)
        u->level_ns = most;
}

uint64_t gn_fault_throttle_next_start(const struct gn_fault_user *u, uint64_t pause_ns,
                                      uint64_t now_ns)
{
    if (u->level_ns <= now_ns + GN_BREACHES_FREE * pause_ns)
        return now_ns;
    /* The start waits for the end of the pause or until the level has fallen, whichever comes
     * first. Programs start together only once the level has fallen. */
    const uint64_t fallen = u->level_ns - GN_BREACHES_FREE * pause_ns;
    const uint64_t next =
        u->last_start_ns + pause_ns < fallen ? u->last_start_ns + pause_ns : fallen;
    return next > now_ns ? next : now_ns;
}

void gn_fault_throttle_start(struct gn_fault_user *u, uint64_t now_ns)
{
    u->last_start_ns = now_ns;
}
