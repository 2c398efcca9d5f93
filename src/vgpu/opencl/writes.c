/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which memory a host command has written, and to which memory an object belongs. Called by the
 * threads that report ends and by those that make objects. Data written through a map comes as a
 * write at the unmap.
 */
#include "opencl_host.h"

int gn_mem_writes_made(struct gn_vobject *o, struct gn_mem_detail *detail,
                       const struct gn_request *r)
{
    const cl_icd_dispatch *cl = gn_cl(o->vgpu);
    struct gn_vobject *source = NULL;
    cl_mem_flags flags = 0;
    size_t offset = 0, size = 0;
    detail->extent = UINT64_MAX;
    /* A request that makes a memory object names another one only as its source. */
    for (uint32_t i = 0; i < r->n_held; i++)
        if (r->held[i] != o && r->held[i]->kind == GN_KIND_MEM)
            source = r->held[i];
    if (!source) {
        cl->clGetMemObjectInfo(o->driver, CL_MEM_FLAGS, sizeof flags, &flags, NULL);
        detail->writes = gn_writes_new(flags & CL_MEM_READ_ONLY);
        return detail->writes ? 0 : -1;
    }
    const struct gn_mem_detail *parent = source->detail;
    /*
     * A pending command that names only the part uses the whole one's contents, which have to
     * migrate with it.
     */
    if (!parent || !parent->writes || gn_object_hold(o, source))
        return -1;
    detail->borrowed = true;
    detail->writes = gn_writes_ref(parent->writes);
    detail->origin = parent->origin;
    detail->extent = parent->extent;
    if (!detail->element_bytes &&
        !cl->clGetMemObjectInfo(o->driver, CL_MEM_OFFSET, sizeof offset, &offset, NULL) &&
        !cl->clGetMemObjectInfo(o->driver, CL_MEM_SIZE, sizeof size, &size, NULL)) {
        detail->origin = offset;
        detail->extent = size;
    }
    return 0;
}

/* The range that a plain command has written; for other commands, everything. */
static void range_of(const struct gn_command *c, uint64_t *ret_offset, uint64_t *ret_bytes)
{
    switch (((const struct gn_msg *)(const void *)c->bytes)->op) {
    case GN_OP_clEnqueueWriteBuffer: {
        const struct gn_wire_clEnqueueWriteBuffer *w = (const void *)c->bytes;
        *ret_offset = w->offset;
        *ret_bytes = w->size;
        break;
    }
    case GN_OP_clEnqueueFillBuffer: {
        const struct gn_wire_clEnqueueFillBuffer *w = (const void *)c->bytes;
        *ret_offset = w->offset;
        *ret_bytes = w->size;
        break;
    }
    case GN_OP_clEnqueueCopyBuffer: {
        const struct gn_wire_clEnqueueCopyBuffer *w = (const void *)c->bytes;
        *ret_offset = w->dst_offset;
        *ret_bytes = w->size;
        break;
    }
    default:
        *ret_offset = 0;
        *ret_bytes = UINT64_MAX;
    }
}

bool gn_mem_range(const struct gn_mem_detail *detail, uint64_t offset, uint64_t bytes,
                  uint64_t *ret_at, uint64_t *ret_bytes)
{
    if (offset > detail->extent || !gn_add_u64(detail->origin, offset, ret_at))
        return false;
    const uint64_t left = detail->extent - offset;
    *ret_bytes = bytes < left ? bytes : left;
    return true;
}

void gn_opencl_wrote(struct gn_vgpu *v, struct gn_command *c)
{
    uint64_t offset, bytes, at, n;
    range_of(c, &offset, &bytes);
    for (uint32_t i = 0; i < GN_MAX_REFS; i++) {
        struct gn_vobject *o = c->class->writes >> i & 1 ? c->refs[i] : NULL;
        if (o && o->kind == GN_KIND_CMDBUF)
            gn_cmdbuf_wrote(v, o);
        const struct gn_mem_detail *detail = o && o->kind == GN_KIND_MEM ? o->detail : NULL;
        if (detail && detail->writes && gn_mem_range(detail, offset, bytes, &at, &n))
            gn_writes_by_cpu(v, detail->writes, at, n);
    }
}

void gn_opencl_will_write(struct gn_vgpu *v, const struct gn_command *c)
{
    (void)v;
    for (uint32_t i = 0; i < GN_MAX_REFS; i++) {
        const struct gn_vobject *o = c->class->writes >> i & 1 ? c->refs[i] : NULL;
        /* What a command buffer names is pinned, and has no copy. */
        if (o && o->kind == GN_KIND_MEM && o->detail)
            gn_writes_may_change(((const struct gn_mem_detail *)o->detail)->writes);
    }
}
