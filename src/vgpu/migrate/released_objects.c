/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds released objects that pending commands still need; see save.h. Called by the
 * saving thread, and by the thread that leaves a vGPU. It holds the vGPU's lock during a walk and
 * never calls the driver.
 */

#include "base/array.h"
#include "vgpu/migrate/save.h"

#include <errno.h>

struct list {
    struct gn_vobject **all;
    uint32_t n, capacity;
    int error;
};

static void add_object(struct gn_vobject *o, struct list *l)
{
    struct gn_vobject **all = gn_array_reserve(l->all, l->n, &l->capacity, sizeof(void *));
    if (!all) {
        l->error = -ENOMEM;
        return;
    }
    l->all = all;
    atomic_fetch_add_explicit(&o->n_refs, 1, memory_order_relaxed);
    l->all[l->n++] = o;
}

/*
 * Visits an object and the objects that it holds, and adds the released ones to the list; without a
 * list, the event of their home is dropped. Each once in a walk: thousands of commands may name an
 * object that holds thousands.
 */
static void visit(struct gn_vobject *o, struct list *l)
{
    struct gn_vobject *held;
    if (!o || o->last_walk == o->vgpu->n_kept_walks)
        return;
    o->last_walk = o->vgpu->n_kept_walks;
    if (!gn_object_is_named(o) && l)
        add_object(o, l);
    else if (!gn_object_is_named(o) && o->vgpu->api->contents)
        o->vgpu->api->contents->leave_by(o, GN_NO_EVENT);
    for (uint32_t i = 0; (held = gn_object_held(o, i)); i++)
        visit(held, l);
}

static void visit_pending(struct gn_vgpu *v, struct list *l)
{
    pthread_mutex_lock(&v->lock);
    v->n_kept_walks++;
    for (uint32_t i = 0; i < v->n_devices; i++)
        gn_list_for_each(q, &v->devices[i].queues, struct gn_vqueue, link)
            gn_list_for_each(c, &q->pending, struct gn_command, link)
        {
            visit(c->queue_object, l);
            for (uint32_t r = 0; r < GN_MAX_REFS; r++)
                visit(c->refs[r], l);
            for (uint32_t o = 0; o < c->n_objects; o++)
                visit(c->object_refs[o], l);
        }
    pthread_mutex_unlock(&v->lock);
}

int gn_released_objects_gather(struct gn_vgpu *v, struct gn_vobject ***ret, uint32_t *ret_n)
{
    struct list l = {0};
    visit_pending(v, &l);
    if (l.error) {
        gn_objects_put(l.all, l.n);
        return l.error;
    }
    *ret = l.all;
    *ret_n = l.n;
    return 0;
}

void gn_released_objects_leave(struct gn_vgpu *v)
{
    visit_pending(v, NULL);
}
