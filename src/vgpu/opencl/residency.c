/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evicts memory objects to host memory, and brings them in: reads the contents out, releases the
 * driver's objects, makes new ones and fills them. The serving thread evicts, at a point where
 * nothing is in the driver (vgpu/core/evict.c); any thread that is about to use an object brings it
 * in. Never decides when to evict; never gives an evicted object's handle to the driver. Says for
 * each charge where its bytes are (lease.h).
 */
#include "memory_copy.h"
#include "residency.h"
#include "opencl_host.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "vgpu/residency/swap_state.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FREED_NS      UINT64_C(2000000000)
#define FREED_LOOK_NS 200000

struct gn_residency {
    pthread_mutex_t lock; /* after the role, before vgpu->lock; held over calls into the driver */
    struct gn_list roots; /* lock: struct gn_resident.link */
};

/* A memory object. residency.lock, except what is set once. */
struct gn_resident {
    struct gn_list link; /* in gn_residency.roots, or in its root's views in order of creation */
    struct gn_list views;
    /* set once */
    struct gn_vobject *object;
    struct gn_resident *root, *parent; /* parent: NULL of a root */
    /* of a root */
    struct gn_swap swap;
    void *backing;      /* malloc'd, copied.bytes long; NULL: not evicted */
    cl_context context; /* retained while it is evicted */
    /* while it is evicted: what to make it from */
    struct gn_copied copied; /* .mem is not used */
    size_t size, offset;     /* as the driver tells them */
    cl_image_format format;
    cl_image_desc desc;
    size_t row_pitch, slice_pitch; /* of an image, as the driver tells them */
};

static struct gn_residency *residency_of(const struct gn_vgpu *v)
{
    return ((const struct gn_opencl_vgpu *)v->detail)->residency;
}

static struct gn_resident *resident_of(const struct gn_vobject *o)
{
    const struct gn_mem_detail *detail = o && o->kind == GN_KIND_MEM ? o->detail : NULL;
    return detail ? detail->resident : NULL;
}

int gn_residency_start(struct gn_vgpu *v)
{
    const char *given = v->boot->evicts ? NULL : getenv("GANTRY_EVICT");
    if (given && strcmp(given, "always") != 0) {
        gn_log(GN_LOG_WARN, "GANTRY_EVICT is not \"always\"; ignored");
        given = NULL;
    }
    if (!given && !v->boot->evicts)
        return 0;
    /* A program's own process keeps its memory: its threads serve messages themselves. */
    if (v->session->in_program)
        return 0;
    struct gn_residency *x = calloc(1, sizeof *x);
    if (!x)
        return -1;
    pthread_mutex_init(&x->lock, NULL);
    gn_list_init(&x->roots);
    ((struct gn_opencl_vgpu *)v->detail)->residency = x;
    v->evicts = true;
    return 0;
}

bool gn_residency_is_on(const struct gn_vgpu *v)
{
    return residency_of(v) != NULL;
}

/* ---- objects come and go */

static bool has_one_device(const cl_icd_dispatch *cl, cl_context context)
{
    cl_uint n = 0;
    return !cl->clGetContextInfo(context, CL_CONTEXT_NUM_DEVICES, sizeof n, &n, NULL) && n == 1;
}

static bool has_one_level(const cl_icd_dispatch *cl, cl_mem image)
{
    cl_uint levels = 0, samples = 0;
    return !cl->clGetImageInfo(image, CL_IMAGE_NUM_MIP_LEVELS, sizeof levels, &levels, NULL) &&
           !cl->clGetImageInfo(image, CL_IMAGE_NUM_SAMPLES, sizeof samples, &samples, NULL) &&
           levels <= 1 && !samples;
}

/* A buffer or an image without properties: a driver does not tell them. */
static bool is_plain(const struct gn_request *r)
{
    const void *msg = gn_request_message(r);
    if (((const struct gn_msg *)msg)->op == GN_OP_Buffer)
        return ((const struct gn_wire_Buffer *)msg)->properties.segment == GN_SPAN_NULL;
    return ((const struct gn_msg *)msg)->op == GN_OP_Image &&
           ((const struct gn_wire_Image *)msg)->properties.segment == GN_SPAN_NULL;
}

bool gn_residency_will_pin(struct gn_vgpu *v, const struct gn_request *r, cl_context context,
                           cl_uint n_levels)
{
    return !residency_of(v) || !is_plain(r) || !has_one_device(gn_cl(v), context) || n_levels > 1;
}

/* Can an object with its own memory be made again from the facts that its driver tells? */
static bool is_evictable(const struct gn_vobject *o, const struct gn_request *r)
{
    const cl_icd_dispatch *cl = gn_cl(o->vgpu);
    const struct gn_mem_detail *detail = o->detail;
    cl_context context = NULL;
    return !detail->home && !detail->svm && is_plain(r) &&
           !cl->clGetMemObjectInfo(o->driver, CL_MEM_CONTEXT, sizeof context, &context, NULL) &&
           has_one_device(cl, context) && (!detail->element_bytes || has_one_level(cl, o->driver));
}

/* Of a root, after each change of its state: an object is made RESIDENT or PINNED. */
static void move_charge(const struct gn_resident *root, enum gn_lease_part to)
{
    gn_mem_charge_move(((const struct gn_mem_detail *)root->object->detail)->charge, to);
}

static bool is_image(const struct gn_resident *m)
{
    return ((const struct gn_mem_detail *)m->object->detail)->element_bytes != 0;
}

void gn_residency_made(struct gn_vobject *o, const struct gn_request *r)
{
    struct gn_residency *x = residency_of(o->vgpu);
    struct gn_mem_detail *detail = o->detail;
    struct gn_resident *parent = NULL, *m;
    if (!x)
        return;
    for (uint32_t i = 0; detail->borrowed && i < r->n_held; i++)
        if (r->held[i] != o && r->held[i]->kind == GN_KIND_MEM)
            parent = resident_of(r->held[i]);
    m = calloc(1, sizeof *m);
    /* A view of an image is not made again. */
    if (parent && (!m || is_image(parent)))
        (void)gn_residency_pin(parent->object);
    if (!m)
        return;
    gn_list_init(&m->views);
    m->object = o;
    m->parent = parent;
    m->root = parent ? parent->root : m;
    atomic_init(&m->swap.state, parent || is_evictable(o, r) ? GN_SWAP_RESIDENT : GN_SWAP_PINNED);
    pthread_mutex_lock(&x->lock);
    gn_list_append(parent ? &m->root->views : &x->roots, &m->link);
    if (!parent && gn_swap_state(&m->swap) == GN_SWAP_RESIDENT)
        move_charge(m, GN_LEASE_EVICTABLE);
    pthread_mutex_unlock(&x->lock);
    detail->resident = m;
}

void gn_residency_gone(struct gn_vobject *o)
{
    struct gn_residency *x = residency_of(o->vgpu);
    struct gn_resident *m = resident_of(o);
    if (!m)
        return;
    pthread_mutex_lock(&x->lock);
    gn_list_remove(&m->link);
    pthread_mutex_unlock(&x->lock);
    if (m->context)
        gn_cl(o->vgpu)->clReleaseContext(m->context);
    if (m->backing)
        atomic_fetch_sub_explicit(&o->vgpu->n_evicted, 1, memory_order_seq_cst);
    free(m->backing);
    free(m);
}

/* ---- out */

static cl_mem mem_of(const struct gn_resident *m)
{
    return m->object->driver;
}

static bool pitches_of(const cl_icd_dispatch *cl, cl_mem image, size_t *ret_row, size_t *ret_slice)
{
    return !cl->clGetImageInfo(image, CL_IMAGE_ROW_PITCH, sizeof *ret_row, ret_row, NULL) &&
           !cl->clGetImageInfo(image, CL_IMAGE_SLICE_PITCH, sizeof *ret_slice, ret_slice, NULL);
}

static bool describe_image(const cl_icd_dispatch *cl, struct gn_resident *m)
{
    const size_t *size = m->copied.size;
    if (!pitches_of(cl, mem_of(m), &m->row_pitch, &m->slice_pitch))
        return false;
    m->desc = (cl_image_desc){.image_type = m->copied.type, .image_width = size[0]};
    switch (m->copied.type) {
    case CL_MEM_OBJECT_IMAGE1D:
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
        break;
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
        m->desc.image_array_size = size[1];
        break;
    case CL_MEM_OBJECT_IMAGE2D:
        m->desc.image_height = size[1];
        /* The rows of a view lie in the buffer as the program laid them. */
        if (m->parent)
            m->desc.image_row_pitch = m->row_pitch;
        break;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
        m->desc.image_height = size[1];
        m->desc.image_array_size = size[2];
        break;
    case CL_MEM_OBJECT_IMAGE3D:
        m->desc.image_height = size[1];
        m->desc.image_depth = size[2];
        break;
    default:
        return false;
    }
    return !cl->clGetImageInfo(mem_of(m), CL_IMAGE_FORMAT, sizeof m->format, &m->format, NULL);
}

static bool describe(const cl_icd_dispatch *cl, struct gn_resident *m)
{
    const cl_mem mem = mem_of(m);
    const struct gn_mem_detail *detail = m->object->detail;
    if (!gn_copied_describe(cl, mem, detail->element_bytes, &m->copied) ||
        cl->clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof m->size, &m->size, NULL))
        return false;
    if (is_image(m))
        return describe_image(cl, m);
    return !m->parent ||
           !cl->clGetMemObjectInfo(mem, CL_MEM_OFFSET, sizeof m->offset, &m->offset, NULL);
}

static bool describe_all(const cl_icd_dispatch *cl, struct gn_resident *root)
{
    bool good = describe(cl, root);
    gn_list_for_each(view, &root->views, struct gn_resident, link)
    {
        good = good && describe(cl, view);
    }
    return good;
}

static void release_driver(struct gn_resident *m)
{
    if (!mem_of(m))
        return;
    gn_cl(m->object->vgpu)->clReleaseMemObject(mem_of(m));
    gn_object_replace_driver(m->object, NULL);
}

static void release_all(struct gn_resident *root)
{
    gn_list_for_each(view, &root->views, struct gn_resident, link)
    {
        release_driver(view);
    }
    release_driver(root);
}

/* `mem` to or from the backing, by a queue of its own. */
static cl_int copy_contents(struct gn_resident *root, cl_mem mem, bool out)
{
    struct gn_vgpu *v = root->object->vgpu;
    struct gn_copied c = root->copied;
    struct gn_copy_queue q;
    c.mem = mem;
    if (!gn_copy_queue_open(v, mem, &q))
        return CL_OUT_OF_RESOURCES;
    const cl_int result = out ? gn_memory_read(v, &q, &c, 0, c.bytes, root->backing)
                              : gn_memory_write(v, &q, &c, 0, c.bytes, root->backing);
    gn_copy_queue_close(v, &q);
    return result;
}

/* Nothing is in the driver, and the lock is held. Returns the bytes that were copied. */
static uint64_t evict(struct gn_resident *root)
{
    struct gn_vgpu *v = root->object->vgpu;
    const cl_icd_dispatch *cl = gn_cl(v);
    cl_context context = NULL;
    if (!describe_all(cl, root) ||
        cl->clGetMemObjectInfo(mem_of(root), CL_MEM_CONTEXT, sizeof context, &context, NULL)) {
        gn_swap_step(&root->swap, GN_SWAP_PIN);
        move_charge(root, GN_LEASE_PINNED);
        return 0;
    }
    if (!(root->backing = malloc(root->copied.bytes)))
        return 0; /* resident still; the next eviction tries again */
    gn_swap_step(&root->swap, GN_SWAP_VACATE);
    if (copy_contents(root, mem_of(root), true)) {
        free(root->backing);
        root->backing = NULL;
        gn_swap_step(&root->swap, GN_SWAP_UNREADABLE);
        move_charge(root, GN_LEASE_PINNED);
        gn_log(GN_LOG_WARN,
               "vgpu=%08x a memory object of %zu bytes cannot be read, and is never evicted",
               v->boot->id, root->size);
        return 0;
    }
    GN_FAULT("residency-evicting");
    /* The driver's objects kept it, and the program may have released it. */
    cl->clRetainContext(context);
    root->context = context;
    release_all(root);
    gn_swap_step(&root->swap, GN_SWAP_SAVED);
    atomic_fetch_add_explicit(&v->n_evicted, 1, memory_order_seq_cst);
    move_charge(root, GN_LEASE_EVICTED);
    gn_debug("vgpu=%08x evicted %s of %zu bytes", v->boot->id,
             is_image(root) ? "an image" : "a buffer", root->size);
    return root->copied.bytes;
}

/* Is a root in this state? */
static bool has(struct gn_vgpu *v, enum gn_swap_state state)
{
    struct gn_residency *x = residency_of(v);
    bool any = false;
    pthread_mutex_lock(&x->lock);
    gn_list_for_each(root, &x->roots, struct gn_resident, link)
    {
        any = any || gn_swap_state(&root->swap) == state;
    }
    pthread_mutex_unlock(&x->lock);
    return any;
}

bool gn_residency_has_resident(struct gn_vgpu *v)
{
    return has(v, GN_SWAP_RESIDENT);
}

bool gn_residency_is_resident(struct gn_vobject *o)
{
    struct gn_resident *m = resident_of(o);
    if (!m)
        return true;
    struct gn_residency *x = residency_of(o->vgpu);
    pthread_mutex_lock(&x->lock);
    const bool is = gn_swap_is_usable(gn_swap_state(&m->root->swap));
    pthread_mutex_unlock(&x->lock);
    return is;
}

/* Does the lease count at most so many bytes in the driver? Never, if all are to go. */
static bool is_down_to(struct gn_vgpu *v, uint64_t most_bytes)
{
    uint64_t resident, pinned;
    gn_lease_figures(&v->lease, &resident, &pinned);
    return most_bytes && resident <= most_bytes;
}

/* Some drivers free memory a while after the release; gantryd gives it to others at once. */
static void await_freed_locked(struct gn_residency *x)
{
    const struct timespec pause = {.tv_nsec = FREED_LOOK_NS};
    const uint64_t until_ns = gn_now_ns() + FREED_NS;
    gn_list_for_each(root, &x->roots, struct gn_resident, link)
    {
        const struct gn_mem_detail *detail = root->object->detail;
        while (gn_swap_state(&root->swap) == GN_SWAP_EVICTED && detail->charge &&
               !gn_mem_charge_is_freed(detail->charge) && gn_now_ns() < until_ns)
            nanosleep(&pause, NULL);
    }
}

uint64_t gn_residency_evict(struct gn_vgpu *v, uint64_t most_bytes)
{
    struct gn_residency *x = residency_of(v);
    uint64_t copied = 0;
    pthread_mutex_lock(&x->lock);
    /* A save sets `moving`, then takes the lock to bring everything in. */
    const bool moving = atomic_load_explicit(&v->moving, memory_order_seq_cst);
    gn_list_for_each(root, &x->roots, struct gn_resident, link)
    {
        if (!moving && gn_swap_state(&root->swap) == GN_SWAP_RESIDENT && !is_down_to(v, most_bytes))
            copied += evict(root);
    }
    if (v->boot->evicts)
        await_freed_locked(x);
    pthread_mutex_unlock(&x->lock);
    return copied;
}

/* ---- in */

/*
 * Some drivers keep the pitches that the program gave with an image's first contents. Only with
 * host memory may they be given again. NULL: the driver refuses.
 */
static cl_mem make_pitched(const cl_icd_dispatch *cl, const struct gn_resident *m,
                           cl_mem_flags flags)
{
    const size_t *size = m->copied.size;
    const cl_mem_object_type type = m->copied.type;
    const bool lines = type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    const bool sliced =
        lines || type == CL_MEM_OBJECT_IMAGE3D || type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
    cl_image_desc desc = m->desc;
    desc.image_row_pitch = m->row_pitch;
    desc.image_slice_pitch = sliced ? m->slice_pitch : 0;
    void *host =
        sliced ? calloc(lines ? size[1] : size[2], m->slice_pitch) : calloc(size[1], m->row_pitch);
    cl_int result;
    cl_mem image = host ? cl->clCreateImage(m->context, flags | CL_MEM_COPY_HOST_PTR, &m->format,
                                            &desc, host, &result)
                        : NULL;
    free(host);
    return image;
}

static cl_mem make_image(const cl_icd_dispatch *cl, const struct gn_resident *m, cl_mem_flags flags)
{
    size_t row = 0, slice = 0;
    cl_int result;
    cl_mem image = cl->clCreateImage(m->context, flags, &m->format, &m->desc, NULL, &result);
    if (!image ||
        (pitches_of(cl, image, &row, &slice) && row == m->row_pitch && slice == m->slice_pitch))
        return image;
    cl->clReleaseMemObject(image);
    return make_pitched(cl, m, flags);
}

/* The driver's object of a root without its contents, or of a view. NULL: the driver refuses. */
static cl_mem make_driver(const cl_icd_dispatch *cl, const struct gn_resident *m)
{
    const cl_mem_flags flags =
        m->copied.flags & ~(cl_mem_flags)(CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR);
    const cl_mem_flags own = flags & ~(cl_mem_flags)CL_MEM_ALLOC_HOST_PTR;
    const struct gn_resident *parent = m->parent;
    cl_int result = CL_SUCCESS;
    if (!parent)
        return is_image(m) ? make_image(cl, m, flags)
                           : cl->clCreateBuffer(m->context, flags, m->size, NULL, &result);
    if (!is_image(m)) {
        const cl_buffer_region region = {m->offset, m->size};
        return cl->clCreateSubBuffer(mem_of(parent), own, CL_BUFFER_CREATE_TYPE_REGION, &region,
                                     &result);
    }
    cl_image_desc desc = m->desc;
    desc.mem_object = mem_of(parent);
    return cl->clCreateImage(m->root->context, own, &m->format, &desc, NULL, &result);
}

static bool make_all(const cl_icd_dispatch *cl, struct gn_resident *root)
{
    cl_mem mem = make_driver(cl, root);
    if (!mem || copy_contents(root, mem, false)) {
        if (mem)
            cl->clReleaseMemObject(mem);
        return false;
    }
    GN_FAULT("residency-filling");
    gn_object_replace_driver(root->object, mem);
    gn_list_for_each(view, &root->views, struct gn_resident, link)
    {
        if (!(mem = make_driver(cl, view)))
            return false;
        gn_object_replace_driver(view->object, mem);
    }
    return true;
}

static cl_int bring_in_locked(struct gn_resident *root)
{
    struct gn_vgpu *v = root->object->vgpu;
    struct gn_mem_detail *detail = root->object->detail;
    if (gn_swap_is_usable(gn_swap_state(&root->swap)))
        return CL_SUCCESS;
    gn_swap_step(&root->swap, GN_SWAP_ASSIGN);
    if (!make_all(gn_cl(v), root)) {
        release_all(root);
        gn_swap_step(&root->swap, GN_SWAP_REFUSED);
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    }
    if (detail->charge)
        gn_mem_charge_renew(detail->charge, mem_of(root));
    move_charge(root, GN_LEASE_EVICTABLE);
    gn_cl(v)->clReleaseContext(root->context);
    root->context = NULL;
    free(root->backing);
    root->backing = NULL;
    gn_swap_step(&root->swap, GN_SWAP_FILLED);
    atomic_fetch_sub_explicit(&v->n_evicted, 1, memory_order_seq_cst);
    return CL_SUCCESS;
}

int32_t gn_residency_bring_in(struct gn_vobject *o)
{
    struct gn_resident *m = resident_of(o);
    if (!m)
        return CL_SUCCESS;
    struct gn_residency *x = residency_of(o->vgpu);
    pthread_mutex_lock(&x->lock);
    const cl_int result = bring_in_locked(m->root);
    pthread_mutex_unlock(&x->lock);
    return result;
}

int32_t gn_residency_bring_in_all(struct gn_vgpu *v, uint64_t *copied_bytes)
{
    struct gn_residency *x = residency_of(v);
    cl_int result = CL_SUCCESS;
    if (!x)
        return CL_SUCCESS;
    pthread_mutex_lock(&x->lock);
    gn_list_for_each(root, &x->roots, struct gn_resident, link)
    {
        if (gn_swap_state(&root->swap) != GN_SWAP_EVICTED)
            continue;
        const cl_int refused = bring_in_locked(root);
        *copied_bytes += refused ? 0 : root->copied.bytes;
        result = result ? result : refused;
    }
    pthread_mutex_unlock(&x->lock);
    return result;
}

int32_t gn_residency_pin(struct gn_vobject *o)
{
    struct gn_resident *m = resident_of(o);
    if (!m)
        return CL_SUCCESS;
    struct gn_residency *x = residency_of(o->vgpu);
    pthread_mutex_lock(&x->lock);
    const cl_int result = bring_in_locked(m->root);
    if (!result && gn_swap_step(&m->root->swap, GN_SWAP_PIN)) /* false: it is pinned already */
        move_charge(m->root, GN_LEASE_PINNED);
    pthread_mutex_unlock(&x->lock);
    return result;
}

/* ---- queries */

/* The answer for an evicted object, from the facts that it is made from. */
static cl_int answer(const struct gn_resident *m, const struct gn_args_clGetMemObjectInfo *a)
{
    const void *from = NULL;
    size_t n = 0;
    switch (a->param_name) {
    case CL_MEM_TYPE:
        from = &m->copied.type;
        n = sizeof m->copied.type;
        break;
    case CL_MEM_FLAGS:
        from = &m->copied.flags;
        n = sizeof m->copied.flags;
        break;
    case CL_MEM_SIZE:
        from = &m->size;
        n = sizeof m->size;
        break;
    case CL_MEM_OFFSET:
        from = &m->offset;
        n = sizeof m->offset;
        break;
    default:
        return CL_INVALID_VALUE;
    }
    if (a->param_value && a->param_value_size < n)
        return CL_INVALID_VALUE;
    if (a->param_value)
        memcpy(a->param_value, from, n);
    if (a->param_value_size_ret)
        *a->param_value_size_ret = n;
    return CL_SUCCESS;
}

cl_int gn_host_clGetMemObjectInfo(struct gn_vgpu *v, struct gn_request *r,
                                  const struct gn_args_clGetMemObjectInfo *a)
{
    const struct gn_resident *m = resident_of(a->memobj_object);
    bool evicted = false;
    cl_int result = CL_SUCCESS;
    (void)r;
    if (m) {
        struct gn_residency *x = residency_of(v);
        pthread_mutex_lock(&x->lock);
        if ((evicted = gn_swap_state(&m->root->swap) == GN_SWAP_EVICTED))
            result = answer(m, a);
        pthread_mutex_unlock(&x->lock);
    }
    /* It may have been brought in since the message was decoded; this thread alone evicts. */
    return evicted ? result
                   : gn_cl(v)->clGetMemObjectInfo(gn_driver_of(a->memobj_object), a->param_name,
                                                  a->param_value_size, a->param_value,
                                                  a->param_value_size_ret);
}
