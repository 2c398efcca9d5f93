/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts of programs and kernels with launches that may be sliced, and the variants that give a
 * group its position in the whole launch. Called by the submitter (before each launch), by the
 * driver's threads (measured times), by the helper thread (builds), and by the loading thread (the
 * rest of a launch). It changes nothing that the program can query.
 */
#include "slices.h"
#include "kept_args.h"
#include "opencl_host.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* for each program: a program that launches a different size each time is not rebuilt each time */
#define MAX_VARIANTS 8u
#define MAX_NAME     256u /* of a kernel */
#define N_PACES      4u

struct pace {
    uint64_t local[3], groups[3];
    uint64_t ps;
};

struct gn_sliced_kernel {
    struct gn_list link; /* in its program's list */
    struct gn_sliced_program *program;
    bool knows_more;
    struct pace paces[N_PACES];
    uint32_t n_learned, n_measured; /* number of shapes learned; of launches and parts measured */
    uint64_t last_ps;               /* of any shape */
    char name[MAX_NAME];
};

enum variant_state { VARIANT_BUILDING, VARIANT_READY, VARIANT_FAILED };

struct variant {
    struct gn_list link; /* in its program's list */
    struct gn_job job;
    struct gn_vgpu *vgpu;
    /* set once */
    struct gn_sliced_kernel *of;
    cl_device_id device;
    struct gn_slice_numbers numbers;
    enum variant_state state;
    /* valid when READY */
    cl_program program;
    cl_kernel kernel;
    struct gn_kernel_detail *detail;
};

/* Everything is under the lock of struct gn_slices, except members that are set once. */
struct gn_sliced_program {
    struct gn_list link; /* in the list of all programs, until it is rebuilt */
    cl_program program;
    uint32_t n_refs;
    struct gn_source_facts facts; /* set once */
    struct gn_list kernels, variants;
    uint32_t n_variants;
};

static struct gn_slices *slices_of(struct gn_vgpu *v)
{
    return &((struct gn_opencl_vgpu *)v->detail)->slices;
}

void gn_slices_start(struct gn_vgpu *v)
{
    const char *given = getenv("GANTRY_SLICE_GROUPS");
    char *end = NULL;
    const unsigned long long groups = given ? strtoull(given, &end, 10) : 0;
    struct gn_slices *s = slices_of(v);
    pthread_mutex_init(&s->lock, NULL);
    gn_list_init(&s->programs);
    if (given && (!*given || *end || !groups))
        gn_log(GN_LOG_WARN, "GANTRY_SLICE_GROUPS is not a number of work-groups; ignored");
    else
        v->slice_groups = groups;
    v->slicer = &gn_opencl_slicer;
}

/* ---- programs and kernels */

struct gn_sliced_program *gn_slices_built(struct gn_vgpu *v, cl_program program,
                                          const char *options, struct gn_sliced_program *before)
{
    struct gn_slices *s = slices_of(v);
    size_t bytes = 0;
    struct gn_sliced_program *p = calloc(1, sizeof *p);
    char *text = p ? gn_program_source(gn_cl(v), program, &bytes) : NULL;
    if (!text) {
        free(p);
        return before;
    }
    /* Another device may still use the earlier build. */
    if (before)
        p->facts = before->facts;
    gn_source_look(&p->facts, text, bytes);
    gn_source_look_options(&p->facts, options ? options : "");
    gn_source_conclude(&p->facts);
    free(text);
    p->program = program;
    p->n_refs = 1;
    gn_list_init(&p->kernels);
    gn_list_init(&p->variants);
    gn_list_init(&p->link);
    pthread_mutex_lock(&s->lock);
    if (before)
        gn_list_remove(&before->link);
    gn_list_append(&s->programs, &p->link);
    pthread_mutex_unlock(&s->lock);
    gn_slices_program_release(v, before);
    if (p->facts.whole)
        gn_debug("vgpu=%08x kernels of a program run whole: %s", v->boot->id, p->facts.whole);
    return p;
}

static void variant_free(struct gn_vgpu *v, struct variant *x)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    if (x->detail)
        gn_kept_args_remove(v, x->detail);
    if (x->kernel)
        cl->clReleaseKernel(x->kernel);
    gn_kernel_detail_free(cl, x->detail);
    if (x->program)
        cl->clReleaseProgram(x->program);
    free(x);
}

void gn_slices_program_release(struct gn_vgpu *v, struct gn_sliced_program *p)
{
    struct gn_slices *s = slices_of(v);
    if (!p)
        return;
    pthread_mutex_lock(&s->lock);
    const bool last = --p->n_refs == 0;
    if (last)
        gn_list_remove(&p->link);
    pthread_mutex_unlock(&s->lock);
    if (!last)
        return;
    gn_list_for_each(x, &p->variants, struct variant, link)
    {
        variant_free(v, x);
    }
    gn_list_for_each(k, &p->kernels, struct gn_sliced_kernel, link)
    {
        free(k);
    }
    free(p);
}

static struct gn_sliced_kernel *kernel_locked(struct gn_sliced_program *p, const char *name)
{
    gn_list_for_each(k, &p->kernels, struct gn_sliced_kernel, link)
    {
        if (strcmp(k->name, name) == 0)
            return k;
    }
    struct gn_sliced_kernel *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->program = p;
    snprintf(k->name, sizeof k->name, "%s", name);
    gn_list_append(&p->kernels, &k->link);
    return k;
}

struct gn_sliced_kernel *gn_slices_kernel(struct gn_vgpu *v, cl_kernel kernel)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    struct gn_slices *s = slices_of(v);
    struct gn_sliced_kernel *k = NULL;
    cl_program program = NULL;
    char name[MAX_NAME];
    if (cl->clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof program, &program, NULL) ||
        cl->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL))
        return NULL;
    pthread_mutex_lock(&s->lock);
    gn_list_for_each(p, &s->programs, struct gn_sliced_program, link)
    {
        if (p->program != program)
            continue;
        k = p->facts.whole ? NULL : kernel_locked(p, name);
        p->n_refs += k != NULL;
        break;
    }
    pthread_mutex_unlock(&s->lock);
    return k;
}

void gn_slices_kernel_release(struct gn_vgpu *v, struct gn_sliced_kernel *k)
{
    if (k)
        gn_slices_program_release(v, k->program);
}

void gn_slices_kernel_knows_more(struct gn_vgpu *v, struct gn_sliced_kernel *k)
{
    struct gn_slices *s = slices_of(v);
    if (!k)
        return;
    pthread_mutex_lock(&s->lock);
    k->knows_more = true;
    pthread_mutex_unlock(&s->lock);
}

/* ---- launches */

static struct gn_sliced_kernel *kernel_of(const struct gn_command *c)
{
    const struct gn_kernel_detail *detail = c->refs[0] ? c->refs[0]->detail : NULL;
    return detail ? detail->sliced : NULL;
}

/*
 * The launch's geometry, padded with ones. False: a kind of launch that is never sliced, or that
 * the driver would refuse.
 */
static bool geometry_of(struct gn_command *c, struct pace *ret,
                        struct gn_slice_numbers *ret_numbers)
{
    const struct gn_wire_Launch *w = gn_command_message(c);
    *ret_numbers = (struct gn_slice_numbers){{0, 0, 0}, {1, 1, 1}, {1, 1, 1}};
    *ret = (struct pace){{1, 1, 1}, {1, 1, 1}, 0};
    /* The driver would choose the local size, perhaps a different one for each part. */
    if (w->task || !w->work_dim || w->work_dim > 3 || (w->present & 6) != 6)
        return false;
    for (uint32_t i = 0; i < w->work_dim; i++) {
        const uint64_t offset = w->present & 1 ? w->global_work_offset[i] : 0,
                       size = w->global_work_size[i];
        const uint64_t local = w->local_work_size[i];
        uint64_t end;
        if (!size || !local || size % local || !gn_add_u64(offset, size, &end))
            return false;
        ret->local[i] = local;
        ret->groups[i] = ret_numbers->groups[i] = size / local;
        ret_numbers->offset[i] = offset;
        ret_numbers->size[i] = size;
    }
    return true;
}

static bool same_shape(const struct pace *a, const struct pace *b)
{
    return memcmp(a->local, b->local, sizeof a->local) == 0 &&
           memcmp(a->groups, b->groups, sizeof a->groups) == 0;
}

static struct pace *pace_locked(struct gn_sliced_kernel *k, const struct pace *shape)
{
    for (uint32_t i = 0; i < N_PACES; i++)
        if (k->paces[i].ps && same_shape(&k->paces[i], shape))
            return &k->paces[i];
    return NULL;
}

static bool examine_launch(struct gn_vgpu *v, struct gn_command *c, uint64_t least,
                           struct gn_grid *ret_grid, uint64_t *ret_pace_ps)
{
    struct gn_slices *s = slices_of(v);
    struct gn_sliced_kernel *k = kernel_of(c);
    struct gn_slice_numbers numbers;
    struct pace shape;
    if (!k || !geometry_of(c, &shape, &numbers))
        return false;
    memcpy(ret_grid->groups, shape.groups, sizeof ret_grid->groups);
    if (gn_grid_groups(ret_grid) / 2 < least)
        return false;
    pthread_mutex_lock(&s->lock);
    const struct pace *known = pace_locked(k, &shape);
    *ret_pace_ps = known ? known->ps : k->last_ps;
    pthread_mutex_unlock(&s->lock);
    return true;
}

static void note_time(struct gn_vgpu *v, struct gn_command *c, uint64_t groups, uint64_t ns)
{
    struct gn_slices *s = slices_of(v);
    struct gn_sliced_kernel *k = kernel_of(c);
    struct gn_slice_numbers numbers;
    struct pace shape;
    if (!k || !geometry_of(c, &shape, &numbers))
        return;
    const struct gn_grid grid = {{shape.groups[0], shape.groups[1], shape.groups[2]}};
    const uint64_t ps = gn_pace_of(groups ? groups : gn_grid_groups(&grid), ns);
    if (!ps)
        return;
    pthread_mutex_lock(&s->lock);
    struct pace *known = pace_locked(k, &shape);
    if (!known) {
        known = &k->paces[k->n_learned++ % N_PACES];
        *known = shape;
    }
    known->ps = k->last_ps = gn_pace_learn(known->ps, ps);
    k->n_measured += k->n_measured < UINT32_MAX;
    pthread_mutex_unlock(&s->lock);
}

/* ---- variants */

/*
 * Appends a function to a string with enough room. For a dimension above 2 it returns the driver's
 * value.
 */
static void put_function(char **at, const char *name, const uint64_t *n)
{
    *at += sprintf(
        *at,
        "size_t __gantry_%s(uint d) { return d == 0 ? (size_t)%llu : d == 1 ? (size_t)%llu : d == "
        "2 ? (size_t)%llu : "
        "get_%s(d); }\n",
        name, (unsigned long long)n[0], (unsigned long long)n[1], (unsigned long long)n[2], name);
}

char *gn_slices_prelude(uint32_t asks, const struct gn_slice_numbers *n)
{
    char *text = malloc(4096), *at = text;
    if (!text)
        return NULL;
    if (asks & (GN_ASKS_GROUP_ID | GN_ASKS_GLOBAL_OFFSET | GN_ASKS_LINEAR_ID))
        put_function(&at, "global_offset", n->offset);
    if (asks & (GN_ASKS_GLOBAL_SIZE | GN_ASKS_LINEAR_ID))
        put_function(&at, "global_size", n->size);
    if (asks & GN_ASKS_NUM_GROUPS)
        put_function(&at, "num_groups", n->groups);
    /*
     * A part's offset is the program's plus whole groups. It is the same for all items of a group,
     * and a compiler can see that.
     */
    if (asks & GN_ASKS_GROUP_ID)
        at += sprintf(
            at,
            "size_t __gantry_group_id(uint d) { return d > 2 ? get_group_id(d) : get_group_id(d) + "
            "(get_global_offset(d) - __gantry_global_offset(d)) / get_local_size(d); }\n"
            "#define get_group_id(d) __gantry_group_id(d)\n");
    if (asks & GN_ASKS_LINEAR_ID)
        at += sprintf(at,
                      "size_t __gantry_global_linear_id(void) { return "
                      "((get_global_id(2) - __gantry_global_offset(2)) * __gantry_global_size(1) + "
                      "get_global_id(1) - __gantry_global_offset(1)) * __gantry_global_size(0) + "
                      "get_global_id(0) - __gantry_global_offset(0); }\n"
                      "#define get_global_linear_id() __gantry_global_linear_id()\n");
    if (asks & GN_ASKS_GLOBAL_OFFSET)
        at += sprintf(at, "#define get_global_offset(d) __gantry_global_offset(d)\n");
    if (asks & GN_ASKS_GLOBAL_SIZE)
        at += sprintf(at, "#define get_global_size(d) __gantry_global_size(d)\n");
    if (asks & GN_ASKS_NUM_GROUPS)
        at += sprintf(at, "#define get_num_groups(d) __gantry_num_groups(d)\n");
    (void)sprintf(at, "#line 1\n");
    return text;
}

/*
 * Zeroes the numbers that the variant does not contain, so that launches that differ only in those
 * share one.
 */
static void keep_asked(struct gn_slice_numbers *n, uint32_t asks)
{
    if (!(asks & (GN_ASKS_GROUP_ID | GN_ASKS_GLOBAL_OFFSET | GN_ASKS_LINEAR_ID)))
        memset(n->offset, 0, sizeof n->offset);
    if (!(asks & (GN_ASKS_GLOBAL_SIZE | GN_ASKS_LINEAR_ID)))
        memset(n->size, 0, sizeof n->size);
    if (!(asks & GN_ASKS_NUM_GROUPS))
        memset(n->groups, 0, sizeof n->groups);
}

static size_t group_limit(const cl_icd_dispatch *cl, cl_kernel kernel, cl_device_id device)
{
    size_t most = 0;
    cl->clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most,
                                 NULL);
    return most;
}

/*
 * Builds the variant. True: it is complete, and accepts the same work-group sizes as the original.
 */
static bool build_variant(struct variant *x)
{
    struct gn_vgpu *v = x->vgpu;
    const cl_icd_dispatch *cl = gn_cl(v);
    struct gn_sliced_program *p = x->of->program;
    cl_context context = NULL;
    cl_kernel original = NULL;
    cl_int result = CL_OUT_OF_HOST_MEMORY;
    size_t bytes = 0, n_options = 0;
    char *text = gn_program_source(cl, p->program, &bytes),
         *prelude = gn_slices_prelude(p->facts.asks, &x->numbers), *options = NULL;
    bool good = false;

    cl->clGetProgramInfo(p->program, CL_PROGRAM_CONTEXT, sizeof context, &context, NULL);
    cl->clGetProgramBuildInfo(p->program, x->device, CL_PROGRAM_BUILD_OPTIONS, 0, NULL, &n_options);
    options = calloc(1, n_options + 1);
    if (options && n_options)
        cl->clGetProgramBuildInfo(p->program, x->device, CL_PROGRAM_BUILD_OPTIONS, n_options,
                                  options, NULL);
    if (text && prelude && options) {
        const char *parts[2] = {prelude, text};
        const size_t lengths[2] = {strlen(prelude), bytes};
        x->program = cl->clCreateProgramWithSource(context, 2, parts, lengths, &result);
    }
    if (x->program)
        result = cl->clBuildProgram(x->program, 1, &x->device, options, NULL, NULL);
    if (!result)
        x->kernel = cl->clCreateKernel(x->program, x->of->name, &result);
    if (!result)
        original = cl->clCreateKernel(p->program, x->of->name, &result);
    if (!result) {
        x->detail = gn_kernel_detail_new(v, x->kernel);
        good = x->detail &&
               group_limit(cl, x->kernel, x->device) >= group_limit(cl, original, x->device);
    }
    if (original)
        cl->clReleaseKernel(original);
    free(text);
    free(prelude);
    free(options);
    if (!good)
        gn_debug("vgpu=%08x launches of %s run whole: its variant cannot be built (%d)",
                 v->boot->id, x->of->name, result);
    return good;
}

/*
 * Run by the helper thread; for the rest of a launch by the loading thread, in tests by the
 * submitter. The original program and its facts are held for it.
 */
static void run_build_job(struct gn_job *job)
{
    struct variant *x = gn_container_of(job, struct variant, job);
    struct gn_vgpu *v = x->vgpu;
    struct gn_slices *s = slices_of(v);
    struct gn_sliced_program *p = x->of->program;
    cl_program program = p->program;
    const bool good = build_variant(x);
    pthread_mutex_lock(&s->lock);
    x->state = good ? VARIANT_READY : VARIANT_FAILED;
    pthread_mutex_unlock(&s->lock);
    gn_slices_program_release(v, p);
    gn_cl(v)->clReleaseProgram(program);
}

static struct variant *variant_locked(struct gn_sliced_kernel *k, cl_device_id device,
                                      const struct gn_slice_numbers *numbers)
{
    gn_list_for_each(x, &k->program->variants, struct variant, link)
    {
        if (x->of == k && x->device == device && memcmp(&x->numbers, numbers, sizeof *numbers) == 0)
            return x;
    }
    return NULL;
}

/* A variant would have variables of its own. */
static bool has_variables(const struct gn_command *c)
{
    const struct gn_kernel_detail *detail = c->refs[0]->detail;
    return detail->variables != NULL;
}

static struct variant *new_variant_locked(struct gn_vgpu *v, struct gn_sliced_kernel *k,
                                          cl_device_id device,
                                          const struct gn_slice_numbers *numbers)
{
    struct gn_sliced_program *p = k->program;
    struct variant *x = p->n_variants < MAX_VARIANTS ? calloc(1, sizeof *x) : NULL;
    if (!x)
        return NULL;
    x->vgpu = v;
    x->of = k;
    x->device = device;
    x->numbers = *numbers;
    x->job.run = run_build_job;
    gn_list_init(&x->job.link);
    gn_list_append(&p->variants, &x->link);
    p->n_variants++;
    p->n_refs++;
    return x;
}

/*
 * Finds the variant for the parts of a command, or NULL in *ret_how if none is needed. Makes it if
 * it is missing and the kernel was measured n_measured times. `at_once`: the caller builds it.
 */
static bool find_variant(struct gn_vgpu *v, struct gn_command *c, uint32_t n_measured, bool at_once,
                         void **ret_how)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    struct gn_slices *s = slices_of(v);
    struct gn_sliced_kernel *k = kernel_of(c);
    struct gn_slice_numbers numbers;
    struct pace shape;
    cl_device_id device = NULL;
    *ret_how = NULL;
    if (!k->program->facts.asks)
        return true;
    if (!geometry_of(c, &shape, &numbers) ||
        cl->clGetCommandQueueInfo(c->queue->object->driver, CL_QUEUE_DEVICE, sizeof device, &device,
                                  NULL) ||
        has_variables(c))
        return false;
    keep_asked(&numbers, k->program->facts.asks);
    pthread_mutex_lock(&s->lock);
    struct variant *x = variant_locked(k, device, &numbers), *fresh = NULL;
    if (!x && k->n_measured >= n_measured && !k->knows_more)
        x = fresh = new_variant_locked(v, k, device, &numbers);
    pthread_mutex_unlock(&s->lock);
    if (fresh) {
        cl->clRetainProgram(k->program->program);
        if (at_once || !gn_vgpu_do(v, &fresh->job))
            run_build_job(&fresh->job);
    }
    pthread_mutex_lock(&s->lock);
    const bool ready = x && x->state == VARIANT_READY && !k->knows_more;
    pthread_mutex_unlock(&s->lock);
    *ret_how = ready ? x : NULL;
    return ready;
}

static bool prepare_launch(struct gn_vgpu *v, struct gn_command *c, uint32_t n_measured,
                           void **ret_how)
{
    return find_variant(v, c, n_measured, v->slice_groups != 0, ret_how);
}

/* Only the message of a loaded command is known to be well-formed. */
static bool resume_launch(struct gn_vgpu *v, struct gn_command *c, struct gn_grid *ret_grid,
                          void **ret_how)
{
    struct gn_sliced_kernel *k = kernel_of(c);
    struct gn_slice_numbers numbers;
    struct pace shape;
    if (!k || !geometry_of(c, &shape, &numbers))
        return false;
    memcpy(ret_grid->groups, shape.groups, sizeof ret_grid->groups);
    return gn_grid_groups(ret_grid) && find_variant(v, c, 0, true, ret_how);
}

void gn_slices_variant(const struct gn_cutting *cut, cl_kernel *kernel,
                       struct gn_kernel_detail **detail)
{
    const struct variant *x = cut->how;
    if (!x)
        return;
    *kernel = x->kernel;
    *detail = x->detail;
}

const struct gn_slicer gn_opencl_slicer = {.class = &gn_opencl_requests[GN_OP_Launch],
                                           .look = examine_launch,
                                           .prepare = prepare_launch,
                                           .resume = resume_launch,
                                           .took = note_time};
