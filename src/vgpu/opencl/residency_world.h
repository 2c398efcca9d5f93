/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_OPENCL_RESIDENCY_WORLD_H
#define GN_OPENCL_RESIDENCY_WORLD_H

/* For the tests of residency.c: a vGPU with a buffer and a part of it, on the driver of
 * residency_driver.h. */
#include "residency_driver.h"

static struct gn_vgpu_boot boot;
static struct gn_counters counters;
static struct gn_opencl_vgpu opencl;
static struct gn_vgpu *v;
static struct gn_vobject *buffer, *part;

static struct gn_vobject *made(uint32_t index, uint16_t op, struct memory *m,
                               struct gn_vobject *source)
{
    struct gn_request *r = calloc(1, sizeof *r);
    union {
        struct gn_msg msg;
        struct gn_wire_Buffer buffer;
        struct gn_wire_Image image;
    } w = {0};
    struct gn_vobject *o = gn_object_put(v, gn_id_make(index, 1), GN_KIND_MEM, m);
    struct gn_mem_detail *detail = calloc(1, sizeof *detail);
    assert_true(r && o && detail);
    w.msg.op = op;
    if (op == GN_OP_Image)
        w.image.properties.segment = GN_SPAN_NULL;
    else
        w.buffer.properties.segment = GN_SPAN_NULL;
    gn_request_init(r, v);
    memcpy(r->bytes, &w, sizeof w);
    if (source)
        r->held[r->n_held++] = source;
    detail->borrowed = source != NULL;
    detail->writes = source ? gn_writes_ref(((const struct gn_mem_detail *)source->detail)->writes)
                            : gn_writes_new(m->flags & CL_MEM_READ_ONLY);
    detail->element_bytes = m->type == CL_MEM_OBJECT_BUFFER ? 0 : PIXEL;
    if (!source) {
        assert_int_equal(gn_lease_charge(&v->lease, BYTES, false, true), 0);
        o->charged_bytes = BYTES;
        assert_non_null(detail->charge = gn_mem_charge_keep(o));
    }
    o->detail = detail;
    gn_residency_made(o, r);
    free(r);
    return o;
}

static int setup(void **state)
{
    (void)state;
    memset(&driver, 0, sizeof driver);
    opencl = (struct gn_opencl_vgpu){0};
    v = calloc(1, sizeof *v);
    v->boot = &boot;
    v->session = &gn_vgpu_session_shm;
    v->driver = &table;
    v->detail = &opencl;
    v->counters = &counters;
    assert_int_equal(gn_lease_init(&v->lease, -1, &counters), 0);
    v->lease.leased_bytes = 100 * BYTES;
    pthread_mutex_init(&v->objects.lock, NULL);
    setenv("GANTRY_EVICT", "always", 1);
    assert_int_equal(gn_residency_start(v), 0);
    assert_true(v->evicts);
    buffer = made(1, GN_OP_Buffer, create(NULL, 0, BYTES, CL_MEM_READ_WRITE), NULL);
    part = made(2, GN_OP_clCreateSubBuffer,
                create(buffer->driver, 16, 8, CL_MEM_READ_WRITE | CL_MEM_READ_ONLY), buffer);
    memset(((struct memory *)buffer->driver)->at, 7, BYTES);
    return 0;
}

static void drop(struct gn_vobject *o)
{
    gn_residency_gone(o);
    if (o->driver)
        release_mem(o->driver);
    gn_mem_charge_end(((struct gn_mem_detail *)o->detail)->charge);
    gn_writes_unref(((struct gn_mem_detail *)o->detail)->writes);
    free(o->detail);
    free(o);
}

static int teardown(void **state)
{
    (void)state;
    drop(part);
    drop(buffer);
    assert_int_equal(driver.n_alive, 0);
    assert_int_equal(driver.n_contexts, 0);
    assert_int_equal(atomic_load(&v->n_copies), 0);
    assert_int_equal(atomic_load(&v->n_evicted), 0);
    assert_int_equal(v->lease.used_bytes, 0);
    for (unsigned i = 0; i < GN_ARRAY_SIZE(v->lease.part_bytes); i++)
        assert_int_equal(v->lease.part_bytes[i], 0);
    close(v->lease.wake_fd);
    free(opencl.residency);
    free(v->objects.generations[0]);
    free((void *)atomic_load(&v->objects.chunks[0]));
    free(v);
    return 0;
}

static void check_contents(void)
{
    const struct memory *m = buffer->driver, *p = part->driver;
    assert_true(m && p);
    for (unsigned i = 0; i < BYTES; i++)
        assert_int_equal(m->at[i], 7);
    assert_ptr_equal(p->parent, m);
    assert_int_equal(p->offset, 16);
    assert_int_equal(p->bytes, 8);
}

static void evict(void)
{
    (void)gn_residency_evict(v, 0);
    assert_true(!buffer->driver && !part->driver);
    assert_int_equal(driver.n_alive, 0);
    assert_false(gn_residency_has_resident(v));
}

#endif
