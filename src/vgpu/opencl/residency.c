/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evicts memory objects to host memory, and brings them in: reads the contents out, releases the
 * driver's objects, makes new ones and fills them. The serving thread evicts, at a point where
 * nothing is in the driver (vgpu/core/evict.c); any thread that is about to use an object brings it
 * in. What has come in keeps its copy in host memory until something may have written it, while
 * there may be copies: it is evicted without one more. Never decides when to evict; never gives an
 * evicted object's handle to the driver. Says for each charge where its bytes are (lease.h).
 */
#include "kept_args.h"
#include "opencl_host.h"
#include "residency_internal.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FREED_NS      UINT64_C(2000000000)
#define FREED_LOOK_NS 200000

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
    gn_backing_devices_init(&x->devices);
    x->keeps_copies = !v->boot->evicts; /* gantryd says so */
    ((struct gn_opencl_vgpu *)v->detail)->residency = x;
    v->evicts = true;
    return 0;
}

bool gn_residency_is_on(const struct gn_vgpu *v)
{
    return gn_residency_of(v) != NULL;
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
    return !gn_residency_of(v) || !is_plain(r) || !has_one_device(gn_cl(v), context) ||
           n_levels > 1;
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

void gn_residency_made(struct gn_vobject *o, const struct gn_request *r)
{
    struct gn_residency *x = gn_residency_of(o->vgpu);
    struct gn_mem_detail *detail = o->detail;
    struct gn_resident *parent = NULL, *m;
    if (!x)
        return;
    for (uint32_t i = 0; detail->borrowed && i < r->n_held; i++)
        if (r->held[i] != o && r->held[i]->kind == GN_KIND_MEM)
            parent = gn_resident_of(r->held[i]);
    m = calloc(1, sizeof *m);
    /* A view of an image is not made again. */
    if (parent && (!m || gn_resident_is_image(parent)))
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

/* Is there a copy of contents that are in the driver? */
static bool has_copy(const struct gn_resident *root)
{
    return gn_backing_has_bytes(&root->backing) && gn_swap_state(&root->swap) != GN_SWAP_EVICTED;
}

static void drop_copy(struct gn_resident *root)
{
    if (!has_copy(root))
        return;
    gn_backing_fini(&root->backing);
    atomic_fetch_sub_explicit(&root->object->vgpu->n_copies, 1, memory_order_seq_cst);
}

static void drop_copies_locked(struct gn_residency *x)
{
    gn_list_for_each(root, &x->roots, struct gn_resident, link)
    {
        drop_copy(root);
    }
}

void gn_residency_keep_copies(struct gn_vgpu *v, bool keep)
{
    struct gn_residency *x = gn_residency_of(v);
    if (!x)
        return;
    pthread_mutex_lock(&x->lock);
    x->keeps_copies = keep;
    if (!keep)
        drop_copies_locked(x);
    pthread_mutex_unlock(&x->lock);
}

void gn_residency_gone(struct gn_vobject *o)
{
    struct gn_residency *x = gn_residency_of(o->vgpu);
    struct gn_resident *m = gn_resident_of(o);
    if (!m)
        return;
    pthread_mutex_lock(&x->lock);
    gn_list_remove(&m->link);
    drop_copy(m);
    gn_backing_device_put(&x->devices, m->hashes);
    pthread_mutex_unlock(&x->lock);
    if (m->context)
        gn_cl(o->vgpu)->clReleaseContext(m->context);
    if (gn_backing_has_bytes(&m->backing))
        atomic_fetch_sub_explicit(&o->vgpu->n_evicted, 1, memory_order_seq_cst);
    gn_backing_fini(&m->backing);
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
    if (!gn_image_facts_read(cl, mem_of(m), &m->facts))
        return false;
    m->format = m->facts.format;
    return true;
}

static bool describe(const cl_icd_dispatch *cl, struct gn_resident *m)
{
    const cl_mem mem = mem_of(m);
    const struct gn_mem_detail *detail = m->object->detail;
    if (!gn_copied_describe(cl, mem, detail->element_bytes, &m->copied) ||
        cl->clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof m->size, &m->size, NULL))
        return false;
    if (gn_resident_is_image(m))
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

static struct gn_writes *writes_of(const struct gn_resident *root)
{
    return ((const struct gn_mem_detail *)root->object->detail)->writes;
}

/* Is it evicted without a copy out? */
static bool is_unchanged(const struct gn_resident *root)
{
    return has_copy(root) && !gn_writes_has_changed(writes_of(root));
}

/* For a copy, which copies of other contents make way for. False: no memory. */
static bool make_backing(struct gn_residency *x, struct gn_resident *root)
{
    if (gn_backing_init(&root->backing, root->copied.bytes))
        return true;
    drop_copies_locked(x);
    return gn_backing_init(&root->backing, root->copied.bytes);
}

/* The state is OUT. False: the contents cannot be read, and stay. */
static bool save_contents(struct gn_resident *root, bool holds, bool hashes, uint64_t *copied_bytes)
{
    struct gn_vgpu *v = root->object->vgpu;
    struct gn_copied c = root->copied;
    c.mem = mem_of(root);
    if (!gn_backing_save(v, &root->backing, &c, holds, hashes ? root->hashes : NULL, copied_bytes))
        return true;
    gn_backing_fini(&root->backing);
    gn_swap_step(&root->swap, GN_SWAP_UNREADABLE);
    move_charge(root, GN_LEASE_PINNED);
    gn_log(GN_LOG_WARN,
           "vgpu=%08x a memory object of %zu bytes cannot be read, and is never evicted",
           v->boot->id, root->size);
    return false;
}

/* Nothing is in the driver, and the lock is held. hashes: on the device, where it can. Adds the
 * bytes that were copied. */
static void evict(struct gn_residency *x, struct gn_resident *root, bool hashes,
                  uint64_t *copied_bytes)
{
    struct gn_vgpu *v = root->object->vgpu;
    const cl_icd_dispatch *cl = gn_cl(v);
    const bool unchanged = is_unchanged(root), holds = has_copy(root);
    cl_context context = NULL;
    uint64_t copied = 0;
    if (!describe_all(cl, root) ||
        cl->clGetMemObjectInfo(mem_of(root), CL_MEM_CONTEXT, sizeof context, &context, NULL)) {
        drop_copy(root);
        gn_swap_step(&root->swap, GN_SWAP_PIN);
        move_charge(root, GN_LEASE_PINNED);
        return;
    }
    if (!holds && !make_backing(x, root))
        return; /* resident still; the next eviction tries again */
    if (holds)
        atomic_fetch_sub_explicit(&v->n_copies, 1, memory_order_seq_cst);
    gn_swap_step(&root->swap, GN_SWAP_VACATE);
    if (!unchanged && !save_contents(root, holds, hashes, &copied))
        return;
    GN_FAULT("residency-evicting");
    /* The driver's objects kept it, and the program may have released it. */
    cl->clRetainContext(context);
    root->context = context;
    release_all(root);
    gn_swap_step(&root->swap, GN_SWAP_SAVED);
    atomic_fetch_add_explicit(&v->n_evicted, 1, memory_order_seq_cst);
    move_charge(root, GN_LEASE_EVICTED);
    *copied_bytes += copied;
    gn_debug("vgpu=%08x evicted %s of %zu bytes, %llu of them copied", v->boot->id,
             gn_resident_is_image(root) ? "an image" : "a buffer", root->size,
             (unsigned long long)copied);
}

/* Is a root in this state? */
static bool has(struct gn_vgpu *v, enum gn_swap_state state)
{
    struct gn_residency *x = gn_residency_of(v);
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
    /* gantryd's order may be met by memory that a kernel keeps alone. */
    return v->boot->evicts || has(v, GN_SWAP_RESIDENT);
}

uint64_t gn_residency_evicted_bytes(struct gn_vgpu *v)
{
    struct gn_residency *x = gn_residency_of(v);
    uint64_t bytes = 0;
    pthread_mutex_lock(&x->lock);
    gn_list_for_each(root, &x->roots, struct gn_resident, link)
    {
        bytes += gn_swap_state(&root->swap) == GN_SWAP_EVICTED ? root->size : 0;
    }
    pthread_mutex_unlock(&x->lock);
    return bytes;
}

bool gn_residency_is_resident(struct gn_vobject *o)
{
    struct gn_resident *m = gn_resident_of(o);
    if (!m)
        return true;
    struct gn_residency *x = gn_residency_of(o->vgpu);
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

static bool is_moving(struct gn_vgpu *v)
{
    return atomic_load_explicit(&v->moving, memory_order_seq_cst);
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

/* Gives the lock back meanwhile: a save may have brought everything in. */
static void free_evicted_locked(struct gn_vgpu *v, bool waits)
{
    struct gn_residency *x = gn_residency_of(v);
    pthread_mutex_unlock(&x->lock);
    gn_kept_args_drop(v);
    pthread_mutex_lock(&x->lock);
    if (waits)
        await_freed_locked(x);
}

/*
 * Of the roots that would be copied, those whose device hashes. Sets `hashes` of new ones. Returns
 * the smallest that is no smaller than what hashing takes; NULL: none.
 */
static struct gn_resident *find_hashed(struct gn_vgpu *v, bool *ret_any)
{
    struct gn_residency *x = gn_residency_of(v);
    struct gn_resident *least = NULL;
    *ret_any = false;
    gn_list_for_each(root, &x->roots, struct gn_resident, link)
    {
        cl_context context = NULL;
        if (gn_swap_state(&root->swap) != GN_SWAP_RESIDENT || !describe(gn_cl(v), root))
            continue;
        if (!root->hashes && !gn_cl(v)->clGetMemObjectInfo(mem_of(root), CL_MEM_CONTEXT,
                                                           sizeof context, &context, NULL))
            root->hashes = gn_backing_device_get(v, &x->devices, context, &root->copied);
        *ret_any |= root->hashes != NULL;
        if (root->size >= GN_BACKING_HASH_BYTES && (!least || root->size < least->size))
            least = root;
    }
    return least;
}

/* A vGPU whose memory is all in the driver has room for the unused part of its lease, too. */
static uint64_t slack_of(struct gn_vgpu *v)
{
    pthread_mutex_lock(&v->lease.lock);
    const uint64_t slack = v->lease.leased_bytes - v->lease.used_bytes;
    pthread_mutex_unlock(&v->lease.lock);
    return gn_vgpu_has_evicted(v) ? 0 : slack;
}

/*
 * Hashing takes some of the device's memory, and the device may be full: so that room comes from
 * the vGPU's own. The smallest object makes it if need be, and is copied whole. True: there is
 * room, and a device that hashes.
 */
static bool make_room_for_hashing(struct gn_vgpu *v, uint64_t most_bytes, uint64_t slack,
                                  uint64_t before, uint64_t *copied_bytes)
{
    struct gn_residency *x = gn_residency_of(v);
    uint64_t resident, pinned;
    bool any;
    struct gn_resident *least = find_hashed(v, &any);
    if (!any)
        return false;
    gn_lease_figures(&v->lease, &resident, &pinned);
    if (slack + before - resident < GN_BACKING_HASH_BYTES && least && !is_down_to(v, most_bytes))
        evict(x, least, false, copied_bytes);
    free_evicted_locked(v, true);
    gn_lease_figures(&v->lease, &resident, &pinned);
    return slack + before - resident >= GN_BACKING_HASH_BYTES;
}

/* Takes the copy of its contents some of the device's memory? */
static bool is_closed(struct gn_vgpu *v, const struct gn_resident *root)
{
    cl_mem_flags flags = 0;
    return !gn_cl(v)->clGetMemObjectInfo(mem_of(root), CL_MEM_FLAGS, sizeof flags, &flags, NULL) &&
           gn_is_closed(flags);
}

static void evict_some_locked(struct gn_vgpu *v, uint64_t most_bytes, bool closed, bool hashes,
                              uint64_t *copied_bytes)
{
    struct gn_residency *x = gn_residency_of(v);
    gn_list_for_each(root, &x->roots, struct gn_resident, link)
    {
        if (is_moving(v) || gn_swap_state(&root->swap) != GN_SWAP_RESIDENT ||
            is_down_to(v, most_bytes) || is_closed(v, root) != closed)
            continue;
        if (closed)
            await_freed_locked(x);
        evict(x, root, hashes, copied_bytes);
    }
}

/* First what is evicted without a copy, last what takes room on the device, which the others
 * give. */
static uint64_t evict_locked(struct gn_vgpu *v, uint64_t most_bytes)
{
    struct gn_residency *x = gn_residency_of(v);
    const uint64_t slack = slack_of(v);
    uint64_t copied = 0, before, pinned;
    gn_lease_figures(&v->lease, &before, &pinned);
    gn_list_for_each(root, &x->roots, struct gn_resident, link)
    {
        if (gn_swap_state(&root->swap) == GN_SWAP_RESIDENT && is_unchanged(root) &&
            !is_down_to(v, most_bytes))
            evict(x, root, false, &copied);
    }
    const bool hashes = x->keeps_copies && !is_down_to(v, most_bytes) &&
                        make_room_for_hashing(v, most_bytes, slack, before, &copied);
    evict_some_locked(v, most_bytes, false, hashes, &copied);
    evict_some_locked(v, most_bytes, true, hashes, &copied);
    gn_backing_devices_trim(&x->devices);
    return copied;
}

uint64_t gn_residency_evict(struct gn_vgpu *v, uint64_t most_bytes)
{
    struct gn_residency *x = gn_residency_of(v);
    uint64_t copied = 0;
    pthread_mutex_lock(&x->lock);
    /* A save sets `moving`, then takes the lock to bring everything in. */
    if (!is_moving(v))
        copied = evict_locked(v, most_bytes);
    free_evicted_locked(v, v->boot->evicts);
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
        return gn_resident_is_image(m)
                   ? make_image(cl, m, flags)
                   : cl->clCreateBuffer(m->context, flags, m->size, NULL, &result);
    if (!gn_resident_is_image(m)) {
        const cl_buffer_region region = {m->offset, m->size};
        return cl->clCreateSubBuffer(mem_of(parent), own, CL_BUFFER_CREATE_TYPE_REGION, &region,
                                     &result);
    }
    cl_image_desc desc = m->desc;
    desc.mem_object = mem_of(parent);
    return cl->clCreateImage(m->root->context, own, &m->format, &desc, NULL, &result);
}

static bool load_contents(const struct gn_resident *root, cl_mem mem)
{
    struct gn_copied c = root->copied;
    c.mem = mem;
    return !gn_backing_load(root->object->vgpu, &root->backing, &c);
}

static bool make_all(const cl_icd_dispatch *cl, struct gn_resident *root)
{
    cl_mem mem = make_driver(cl, root);
    if (!mem || !load_contents(root, mem)) {
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
    if (gn_residency_of(v)->keeps_copies) {
        gn_writes_came_in(writes_of(root));
        /* Before n_evicted: a submitter that sees nothing evicted sees the copy. */
        atomic_fetch_add_explicit(&v->n_copies, 1, memory_order_seq_cst);
    } else {
        gn_backing_fini(&root->backing);
    }
    gn_swap_step(&root->swap, GN_SWAP_FILLED);
    atomic_fetch_sub_explicit(&v->n_evicted, 1, memory_order_seq_cst);
    return CL_SUCCESS;
}

int32_t gn_residency_bring_in(struct gn_vobject *o)
{
    struct gn_resident *m = gn_resident_of(o);
    if (!m)
        return CL_SUCCESS;
    struct gn_residency *x = gn_residency_of(o->vgpu);
    pthread_mutex_lock(&x->lock);
    const cl_int result = bring_in_locked(m->root);
    pthread_mutex_unlock(&x->lock);
    return result;
}

int32_t gn_residency_bring_in_all(struct gn_vgpu *v, uint64_t *copied_bytes)
{
    struct gn_residency *x = gn_residency_of(v);
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
    struct gn_resident *m = gn_resident_of(o);
    if (!m)
        return CL_SUCCESS;
    struct gn_residency *x = gn_residency_of(o->vgpu);
    pthread_mutex_lock(&x->lock);
    const cl_int result = bring_in_locked(m->root);
    if (!result)
        drop_copy(m->root);
    if (!result && gn_swap_step(&m->root->swap, GN_SWAP_PIN)) /* false: it is pinned already */
        move_charge(m->root, GN_LEASE_PINNED);
    pthread_mutex_unlock(&x->lock);
    return result;
}

int32_t gn_residency_pin_for(struct gn_request *r, struct gn_vobject *o)
{
    struct gn_resident *m = gn_resident_of(o);
    if (!m)
        return CL_SUCCESS;
    struct gn_residency *x = gn_residency_of(o->vgpu);
    pthread_mutex_lock(&x->lock);
    const uint64_t bytes =
        gn_swap_state(&m->root->swap) == GN_SWAP_PINNED ? 0 : gn_mem_charge_bytes(m->root->object);
    pthread_mutex_unlock(&x->lock);
    return bytes && !gn_request_may_pin(r, bytes) ? CL_MEM_OBJECT_ALLOCATION_FAILURE
                                                  : gn_residency_pin(o);
}
