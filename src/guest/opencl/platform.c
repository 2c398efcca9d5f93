/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Platforms and devices: one platform per vendor platform of gantryd's, with the vendor's own
 * strings. A process attaches to all of them at its first query, and a forked child again. Called
 * on the program's threads. Handles of platforms and root devices are never freed.
 */
#include "guest/opencl/callback.h"
#include "opencl_guest.h"
#include "opencl_carried.h"

#include "guest/attach.h"
#include "guest/core/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ICD_SUFFIX "GANTRY"

static struct {
    pthread_mutex_t lock;
    uint32_t epoch; /* lock: of the list below; 0: no list yet */
    struct gn_cl_root *roots[GN_LINK_MAX_PLATFORMS];
    cl_uint n;
} platforms = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define NOT_ASKED 1u /* not a valid version of an extension */

/* ---- attaching */

static struct gn_session *open_session(uint32_t index)
{
    struct gn_error err = {"there is no memory for a vGPU", ""};
    struct gn_session *s = gn_session_open(&gn_opencl_api, index, &err);
    if (!s)
        gn_session_report(&err);
    struct gn_cl_session *detail = s ? calloc(1, sizeof *detail) : NULL;
    if (!detail)
        return NULL;
    detail->session = s;
    pthread_mutex_init(&detail->settle_lock, NULL);
    pthread_mutex_init(&detail->watch_lock, NULL);
    pthread_mutex_init(&detail->binaries_lock, NULL);
    pthread_mutex_init(&detail->build_logs_lock, NULL);
    pthread_mutex_init(&detail->stdout_lock, NULL);
    gn_first_stdout(detail);
    pthread_mutex_init(&detail->svm_open_lock, NULL);
    pthread_mutex_init(&detail->svm_lock, NULL);
    gn_list_init(&detail->staged);
    gn_list_init(&detail->watches);
    gn_list_init(&detail->contexts);
    s->detail = detail;
    return s;
}

#define MAX_DEVICES 64u

/* Queries the types of the devices, and how this process should wait for them. */
static bool query_device_types(struct gn_session *s, cl_device_type types[static MAX_DEVICES],
                               cl_uint ranks[static MAX_DEVICES], cl_uint *ret_n)
{
    cl_uint on_processors = 0;
    if (gn_send_Devices(s, MAX_DEVICES, types, ranks, ret_n, &on_processors) ||
        *ret_n > MAX_DEVICES)
        return false;
    if (on_processors && s->waiter.policy.spin_ns > GN_SPIN_SHORT_NS)
        s->waiter.policy =
            (struct gn_spin_policy){GN_SPIN_SHORT_NS, GN_SPIN_ROOMY_NS, &s->view.turn->whose};
    return true;
}

/* A device is identified by its name; its number may change. */
static void query_device_name(struct gn_session *s, uint64_t id, char ret[static GN_CL_DEVICE_NAME])
{
    struct gn_cl_device d = {.o = {.id = id}};
    memset(ret, 0, GN_CL_DEVICE_NAME);
    if (gn_send_clGetDeviceInfo(s, (cl_device_id)&d, CL_DEVICE_NAME, GN_CL_DEVICE_NAME - 1, ret,
                                NULL))
        ret[0] = 0; /* a longer name counts as no name */
}

static bool is_among(const struct gn_cl_devices *all, const struct gn_cl_device *d)
{
    for (cl_uint i = 0; i < all->n; i++)
        if (all->all[i] == d)
            return true;
    return false;
}

/* An old handle of the same device that is not used for one of the new devices. */
static struct gn_cl_device *find_known_device(const struct gn_cl_root *root,
                                              const struct gn_cl_devices *new, const char *name,
                                              cl_device_type type)
{
    for (cl_uint i = 0; root->known && i < root->known->n; i++) {
        struct gn_cl_device *d = root->known->all[i];
        const bool same =
            !((d->type ^ type) & ~(cl_device_type)CL_DEVICE_TYPE_DEFAULT) && !strcmp(d->name, name);
        if (same && !is_among(new, d))
            return d;
    }
    return NULL;
}

/* Binds the session's next device to the program's old handle for it, or to a new one. */
static struct gn_cl_device *bind_device(struct gn_cl_root *root, struct gn_session *s,
                                        const struct gn_cl_devices *new, cl_device_type type)
{
    char name[GN_CL_DEVICE_NAME];
    const uint64_t id = gn_session_reserve_id(s);
    query_device_name(s, id, name);
    struct gn_cl_device *d = id ? find_known_device(root, new, name, type) : NULL;
    if (!d && id && (d = (void *)gn_object_new_root(s, GN_KIND_DEVICE))) {
        d->root = root;
        d->o.dispatch = &gn_opencl_dispatch;
        d->o.dispatch_data = root->o.dispatch_data;
        memcpy(d->name, name, sizeof d->name);
    }
    if (d) {
        atomic_store_explicit(&d->command_buffers, NOT_ASKED, memory_order_relaxed);
        gn_object_rebind(&d->o, s, id);
    }
    return d;
}

static struct gn_cl_devices *devices_new(cl_uint n)
{
    return calloc(1, sizeof(struct gn_cl_devices) + n * sizeof(struct gn_cl_device *));
}

/* Keeps the list of all handles ever given out, including `new`. False: no memory. */
static bool remember_devices(struct gn_cl_root *root, const struct gn_cl_devices *new)
{
    const cl_uint n = root->known ? root->known->n : 0;
    struct gn_cl_devices *all = devices_new(n + new->n);
    if (!all)
        return false;
    for (cl_uint i = 0; i < n; i++)
        all->all[all->n++] = root->known->all[i];
    for (cl_uint i = 0; i < new->n; i++)
        if (!is_among(all, new->all[i]))
            all->all[all->n++] = new->all[i];
    free(root->known);
    root->known = all;
    return true;
}

/*
 * Binds the platform and its devices to this session. A device is the same if its name and type
 * are. The handle of a device that no longer exists stays with its old session; a new device gets a
 * new handle.
 */
static bool bind(struct gn_cl_root *root, struct gn_session *s)
{
    cl_device_type types[MAX_DEVICES];
    cl_uint ranks[MAX_DEVICES], n = 0;
    const uint64_t id = gn_session_reserve_id(s);
    struct gn_cl_devices *new =
        id &&query_device_types(s, types, ranks, &n) ? devices_new(n) : NULL;
    while (new &&new->n < n) {
        struct gn_cl_device *d = bind_device(root, s, new, types[new->n]);
        if (!d)
            break;
        d->type = types[new->n];
        d->rank = ranks[new->n];
        new->all[new->n++] = d;
    }
    if (!new || new->n < n || !remember_devices(root, new)) {
        free(new);
        return false;
    }
    atomic_store_explicit(&root->devices, new, memory_order_release);
    gn_object_rebind(&root->o, s, id);
    return true;
}

/* A restarted gantryd may number its platforms differently. */
static bool find_platform(const struct gn_platform *wanted, uint32_t *ret_index)
{
    struct gn_platform_list list;
    if (gn_session_platforms(&list))
        return false;
    for (uint32_t i = 0; i < list.n; i++)
        if (!strcmp(list.items[i].api, wanted->api) && !strcmp(list.items[i].name, wanted->name)) {
            *ret_index = list.items[i].index;
            return true;
        }
    return false;
}

static struct gn_cl_root *attach(const struct gn_platform *platform)
{
    struct gn_session *s = open_session(platform->index);
    struct gn_cl_root *root = s ? (void *)gn_object_new_root(s, GN_KIND_PLATFORM) : NULL;
    if (!root)
        return NULL;
    root->o.dispatch = &gn_opencl_dispatch;
    root->platform = *platform;
    return bind(root, s) ? root : NULL;
}

/*
 * The platform's session belongs to the parent process, or is lost: binds the handles to a new one.
 */
static bool revive_locked(struct gn_cl_root *root)
{
    const bool ours = root->o.epoch == atomic_load_explicit(&gn_epoch, memory_order_relaxed);
    uint32_t index;
    if (ours && !gn_session_lost(root->o.session))
        return true;
    struct gn_session *s = find_platform(&root->platform, &index) ? open_session(index) : NULL;
    return s && bind(root, s);
}

static bool revive(struct gn_object *o)
{
    struct gn_cl_root *root =
        o->kind == GN_KIND_PLATFORM ? (void *)o : ((struct gn_cl_device *)o)->root;
    pthread_mutex_lock(&platforms.lock);
    /* The device may no longer exist. */
    const bool revived = revive_locked(root) && o->session == root->o.session;
    pthread_mutex_unlock(&platforms.lock);
    return revived;
}

/* At the fork another thread may have held these locks, and does not exist in the child. */
static void after_fork_child(void)
{
    pthread_mutex_init(&platforms.lock, NULL);
    gn_callbacks_forked();
}

static void prepare(void)
{
    gn_root_revive = revive;
    pthread_atfork(NULL, NULL, after_fork_child);
}

static bool is_known_locked(const struct gn_platform *platform)
{
    for (cl_uint i = 0; i < platforms.n; i++)
        if (!strcmp(platforms.roots[i]->platform.api, platform->api) &&
            !strcmp(platforms.roots[i]->platform.name, platform->name))
            return true;
    return false;
}

static void look_locked(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct gn_platform_list list;
    pthread_once(&once, prepare);
    uint32_t epoch = atomic_load_explicit(&gn_epoch, memory_order_relaxed);
    bool current = platforms.epoch == epoch && platforms.n;
    for (cl_uint i = 0; i < platforms.n; i++)
        current &= !gn_session_lost(platforms.roots[i]->o.session);
    if (current)
        return;
    platforms.epoch = epoch;
    for (cl_uint i = 0; i < platforms.n; i++)
        (void)revive_locked(platforms.roots[i]);
    if (gn_session_platforms(&list))
        return;
    for (uint32_t i = 0; i < list.n; i++) {
        const bool is_new =
            !strcmp(list.items[i].api, "opencl") && !is_known_locked(&list.items[i]);
        struct gn_cl_root *root =
            is_new && platforms.n < GN_LINK_MAX_PLATFORMS ? attach(&list.items[i]) : NULL;
        if (root)
            platforms.roots[platforms.n++] = root;
    }
}

cl_int CL_API_CALL gn_clGetPlatformIDs(cl_uint num_entries, cl_platform_id *out,
                                       cl_uint *num_platforms)
{
    if ((!num_entries && out) || (!out && !num_platforms))
        return CL_INVALID_VALUE;
    pthread_mutex_lock(&platforms.lock);
    look_locked();
    cl_uint n = platforms.n;
    for (cl_uint i = 0; out && i < n && i < num_entries; i++)
        out[i] = (cl_platform_id)platforms.roots[i];
    pthread_mutex_unlock(&platforms.lock);
    if (num_platforms)
        *num_platforms = n;
    return n ? CL_SUCCESS : CL_PLATFORM_NOT_FOUND_KHR;
}

/* ---- extensions */

/* Limit on the size of a vGPU's answer. */
#define MOST_TOLD (size_t)(1u << 20)

typedef cl_int ask_fn(void *handle, cl_uint name, size_t size, void *value, size_t *size_ret);

static cl_int ask_platform(void *handle, cl_uint name, size_t size, void *value, size_t *size_ret)
{
    return gn_send_clGetPlatformInfo(((struct gn_object *)handle)->session, handle, name, size,
                                     value, size_ret);
}

static cl_int ask_device(void *handle, cl_uint name, size_t size, void *value, size_t *size_ret)
{
    return gn_send_clGetDeviceInfo(((struct gn_object *)handle)->session, handle, name, size, value,
                                   size_ret);
}

/* A malloc'd answer of any length, followed by `more` zero bytes. */
static cl_int ask_all(ask_fn *ask, void *handle, cl_uint name, size_t more, void **ret,
                      size_t *ret_n)
{
    cl_int result = ask(handle, name, 0, NULL, ret_n);
    if (!result && *ret_n > MOST_TOLD)
        result = CL_OUT_OF_RESOURCES;
    *ret = result ? NULL : calloc(1, *ret_n + more);
    if (!*ret)
        return result ? result : CL_OUT_OF_HOST_MEMORY;
    result = ask(handle, name, *ret_n, *ret, NULL);
    if (result) {
        free(*ret);
        *ret = NULL;
    }
    return result;
}

/* A platform or a device: it lists extensions. */
struct advertiser {
    ask_fn *ask;
    void *handle;
    cl_uint names, versions; /* the queries for the lists */
};

static struct advertiser advertiser_of(void *handle)
{
    if (((const struct gn_object *)handle)->kind == GN_KIND_PLATFORM)
        return (struct advertiser){ask_platform, handle, CL_PLATFORM_EXTENSIONS,
                                   CL_PLATFORM_EXTENSIONS_WITH_VERSION};
    return (struct advertiser){ask_device, handle, CL_DEVICE_EXTENSIONS,
                               CL_DEVICE_EXTENSIONS_WITH_VERSION};
}

/* The carried version; 0: none, or the driver reports no versions. */
static cl_version version_of(const struct advertiser *a, const struct gn_carried *c)
{
    void *list;
    size_t n;
    if (ask_all(a->ask, a->handle, a->versions, 0, &list, &n))
        return 0;
    const cl_version version = gn_carried_version(c, list, n / sizeof(cl_name_version));
    free(list);
    return version;
}

/* Whether a name in the list without versions is carried. */
static bool is_carried(const struct advertiser *a, const char *name, size_t n)
{
    const struct gn_carried *c = gn_carried_named(name, n);
    return c && (!c->below || version_of(a, c));
}

/* The vendor's string without the extensions that are not carried; malloc'd. */
static char *filter(const struct advertiser *a, const char *all, const char *always)
{
    size_t have = 0;
    char *kept = malloc(strlen(all) + strlen(always) + 2);
    if (!kept)
        return NULL;
    kept[0] = 0;
    if (always[0])
        have = (size_t)sprintf(kept, "%s", always);
    while (*all) {
        size_t n = strcspn(all, " ");
        if (n && is_carried(a, all, n) && !(strlen(always) == n && memcmp(always, all, n) == 0))
            have += (size_t)sprintf(kept + have, "%s%.*s", have ? " " : "", (int)n, all);
        all += n;
        all += strspn(all, " ");
    }
    return kept;
}

static cl_int answer_extensions(const struct advertiser *a, const char *always, size_t size,
                                void *value, size_t *size_ret)
{
    void *all;
    size_t n;
    cl_int result = ask_all(a->ask, a->handle, a->names, 1, &all, &n);
    if (result)
        return result;
    char *kept = filter(a, all, always);
    result =
        kept ? gn_answer(kept, strlen(kept) + 1, size, value, size_ret) : CL_OUT_OF_HOST_MEMORY;
    free(all);
    free(kept);
    return result;
}

static cl_int answer_versions(const struct advertiser *a, bool icd, size_t size, void *value,
                              size_t *size_ret)
{
    size_t n, kept = 0;
    void *list;
    cl_int result = ask_all(a->ask, a->handle, a->versions, 0, &list, &n);
    if (result)
        return result;
    cl_name_version *all = list;
    for (size_t i = 0; i < n / sizeof *all; i++) {
        all[i].name[sizeof all[i].name - 1] = 0;
        if (icd && strcmp(all[i].name, "cl_khr_icd") == 0)
            all[i].version = CL_MAKE_VERSION(2, 0, 0);
        const struct gn_carried *c = gn_carried_named(all[i].name, strlen(all[i].name));
        if (c && gn_carries_version(c, all[i].version))
            all[kept++] = all[i];
    }
    result = gn_answer(all, kept * sizeof *all, size, value, size_ret);
    free(list);
    return result;
}

cl_version gn_command_buffers_of(struct gn_cl_device *d)
{
    cl_version version = atomic_load_explicit(&d->command_buffers, memory_order_relaxed);
    if (version == NOT_ASKED) {
        const struct advertiser a = advertiser_of(d);
        version = version_of(&a, gn_carried_named(GN_COMMAND_BUFFER, sizeof GN_COMMAND_BUFFER - 1));
        atomic_store_explicit(&d->command_buffers, version, memory_order_relaxed);
    }
    return version;
}

void *gn_platform_function(const struct gn_cl_root *root, const char *name)
{
    const char *extension;
    const struct gn_cl_devices *devices = gn_cl_devices_of(root);
    void *function = gn_opencl_extension_function(name, &extension);
    /* Only one extension has functions so far; the next one needs a table. */
    for (cl_uint i = 0; function && i < devices->n; i++)
        if (gn_command_buffers_of(devices->all[i]))
            return function;
    return NULL;
}

cl_int gn_local_clGetPlatformInfo(cl_platform_id platform, cl_platform_info param_name,
                                  size_t param_value_size, void *param_value,
                                  size_t *param_value_size_ret)
{
    static const cl_bool no = CL_FALSE;
    const struct advertiser a = advertiser_of(platform);
    switch (param_name) {
    case CL_PLATFORM_ICD_SUFFIX_KHR:
        return gn_answer(ICD_SUFFIX, sizeof ICD_SUFFIX, param_value_size, param_value,
                         param_value_size_ret);
    case CL_PLATFORM_UNLOADABLE_KHR:
        return gn_answer(&no, sizeof no, param_value_size, param_value, param_value_size_ret);
    case CL_PLATFORM_EXTENSIONS_WITH_VERSION:
        return answer_versions(&a, true, param_value_size, param_value, param_value_size_ret);
    default:
        return answer_extensions(&a, "cl_khr_icd", param_value_size, param_value,
                                 param_value_size_ret);
    }
}

/* ---- devices */

/* The driver's default device, or a less loaded one of the same type. */
static const struct gn_cl_device *default_device(struct gn_cl_root *root)
{
    const struct gn_cl_devices *devices = gn_cl_devices_of(root);
    const struct gn_cl_device *best = devices->n ? devices->all[0] : NULL;
    for (cl_uint i = 1; i < devices->n; i++)
        if (((devices->all[i]->type ^ devices->all[0]->type) &
             ~(cl_device_type)CL_DEVICE_TYPE_DEFAULT) == 0 &&
            devices->all[i]->rank < best->rank)
            best = devices->all[i];
    return best;
}

static bool is_of_type(const struct gn_cl_device *d, cl_device_type asked)
{
    if (asked == CL_DEVICE_TYPE_ALL)
        return d->type != CL_DEVICE_TYPE_CUSTOM;
    return (d->type & asked & ~(cl_device_type)CL_DEVICE_TYPE_DEFAULT) ||
           ((asked & CL_DEVICE_TYPE_DEFAULT) && d == default_device(d->root));
}

/*
 * Devices are always listed in the driver's order, since a program may number them. A program that
 * asks for fewer than there are does not choose; it gets the least loaded device first.
 */
cl_int CL_API_CALL gn_clGetDeviceIDs(cl_platform_id platform, cl_device_type device_type,
                                     cl_uint num_entries, cl_device_id *devices,
                                     cl_uint *num_devices)
{
    const cl_device_type known = CL_DEVICE_TYPE_DEFAULT | CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU |
                                 CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CUSTOM;
    struct gn_cl_root *root = gn_object_of(platform, GN_KIND_PLATFORM);
    cl_uint n = 0;
    if (!root)
        return CL_INVALID_PLATFORM;
    gn_session_look(root->o.session);
    root = gn_object_anew(platform, GN_KIND_PLATFORM);
    bool odd = device_type != CL_DEVICE_TYPE_ALL && (!device_type || (device_type & ~known));
    if (odd || (!num_entries && devices) || (!devices && !num_devices)) {
        cl_int result = gn_send_DeviceType(root->o.session, device_type, num_entries,
                                           devices != NULL, num_devices != NULL);
        if (result)
            return result;
    }
    struct gn_cl_device *all[MAX_DEVICES];
    cl_uint best = 0;
    const struct gn_cl_devices *there = gn_cl_devices_of(root);
    for (cl_uint i = 0; i < there->n && n < MAX_DEVICES; i++) {
        if (!is_of_type(there->all[i], device_type))
            continue;
        all[n] = there->all[i];
        if (all[n]->rank < all[best]->rank)
            best = n;
        n++;
    }
    const bool chooses = num_entries >= n;
    for (cl_uint i = 0, from = 0; devices && i < n && i < num_entries; i++) {
        if (!chooses && i > 0 && from == best)
            from++;
        devices[i] = (cl_device_id)all[!chooses && i == 0 ? best : from++];
    }
    if (num_devices)
        *num_devices = n;
    return n ? CL_SUCCESS : CL_DEVICE_NOT_FOUND;
}

cl_int gn_local_clGetDeviceInfo(cl_device_id device, cl_device_info param_name,
                                size_t param_value_size, void *param_value,
                                size_t *param_value_size_ret)
{
    struct gn_cl_device *d = gn_object_of(device, GN_KIND_DEVICE);
    const struct advertiser a = advertiser_of(device);
    switch (param_name) {
    case CL_DEVICE_TYPE:
        return gn_answer(&d->type, sizeof d->type, param_value_size, param_value,
                         param_value_size_ret);
    case CL_DEVICE_PLATFORM:
        return gn_answer(&d->root, sizeof d->root, param_value_size, param_value,
                         param_value_size_ret);
    case CL_DEVICE_PARENT_DEVICE:
        return gn_answer(&d->o.parent, sizeof d->o.parent, param_value_size, param_value,
                         param_value_size_ret);
    case CL_DEVICE_REFERENCE_COUNT: {
        cl_uint n = d->o.rooted ? 1 : atomic_load_explicit(&d->o.n_refs, memory_order_relaxed);
        return gn_answer(&n, sizeof n, param_value_size, param_value, param_value_size_ret);
    }
    case CL_DEVICE_EXTENSIONS:
        return answer_extensions(&a, "", param_value_size, param_value, param_value_size_ret);
    case CL_DEVICE_EXTENSIONS_WITH_VERSION:
        return answer_versions(&a, false, param_value_size, param_value, param_value_size_ret);
    case CL_DEVICE_EXECUTION_CAPABILITIES: {
        /*
         * Native kernels are functions of the program's, which the worker cannot call. This is the
         * only capability that is masked out.
         */
        cl_device_exec_capabilities c = 0;
        cl_int result = ask_device(device, param_name, sizeof c, &c, NULL);
        c &= ~(cl_device_exec_capabilities)CL_EXEC_NATIVE_KERNEL;
        return result
                   ? result
                   : gn_answer(&c, sizeof c, param_value_size, param_value, param_value_size_ret);
    }
    default: {
        /* A driver without shared virtual memory does not know this query. */
        cl_device_svm_capabilities svm = 0;
        cl_int result = ask_device(device, param_name, sizeof svm, &svm, NULL);
        if (!result && svm)
            svm = gn_svm_capabilities(d);
        return result ? result
                      : gn_answer(&svm, sizeof svm, param_value_size, param_value,
                                  param_value_size_ret);
    }
    }
}

cl_int CL_API_CALL gn_clCreateSubDevices(cl_device_id in_device,
                                         const cl_device_partition_property *properties,
                                         cl_uint num_devices, cl_device_id *out_devices,
                                         cl_uint *num_devices_ret)
{
    struct gn_cl_device *d = gn_object_of(in_device, GN_KIND_DEVICE);
    cl_uint n_properties = 0, n = 0;
    if (!d)
        return CL_INVALID_DEVICE;
    if (!properties)
        return CL_INVALID_VALUE;
    /* For BY_COUNTS a zero ends the counts; otherwise it ends the list. */
    if (properties[0] == CL_DEVICE_PARTITION_BY_COUNTS) {
        while (n_properties < 1024 &&
               properties[n_properties] != CL_DEVICE_PARTITION_BY_COUNTS_LIST_END)
            n_properties++;
        n_properties += properties[n_properties] == 0 ? 1 : 0;
    } else if (properties[0]) {
        n_properties = 2;
    }
    n_properties++;
    if (!out_devices) {
        cl_int result =
            gn_send_SubDevices(d->o.session, in_device, properties, n_properties, NULL, 0, &n);
        if (!result && num_devices_ret)
            *num_devices_ret = n;
        return result;
    }
    struct gn_cl_device **made =
        calloc(num_devices ? num_devices : 1, sizeof(struct gn_cl_device *));
    cl_ulong *ids = calloc(num_devices ? num_devices : 1, sizeof *ids);
    cl_int result = made && ids ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
    cl_uint n_made = 0;
    while (!result && n_made < num_devices) {
        struct gn_cl_device *sub = (void *)gn_object_new(d->o.session, GN_KIND_DEVICE, &d->o);
        if (!sub) {
            result = CL_OUT_OF_HOST_MEMORY;
            break;
        }
        sub->root = d->root;
        sub->type = d->type;
        atomic_init(&sub->command_buffers, NOT_ASKED);
        ids[n_made] = sub->o.id;
        made[n_made++] = sub;
    }
    if (!result)
        result = gn_send_SubDevices(d->o.session, in_device, properties, n_properties, ids,
                                    num_devices, &n);
    /* The driver would have failed if the program had room for fewer. */
    if (n > n_made)
        n = n_made;
    for (cl_uint i = 0; i < n_made; i++) {
        if (!result && i < n)
            out_devices[i] = (cl_device_id)made[i];
        else
            gn_object_drop(&made[i]->o);
    }
    if (!result && num_devices_ret)
        *num_devices_ret = n;
    free(made);
    free(ids);
    return result;
}

cl_int CL_API_CALL gn_clUnloadCompiler(void)
{
    pthread_mutex_lock(&platforms.lock);
    cl_platform_id first = platforms.n ? (cl_platform_id)platforms.roots[0] : NULL;
    pthread_mutex_unlock(&platforms.lock);
    return first ? gn_clUnloadPlatformCompiler(first) : CL_SUCCESS;
}

struct gn_cl_root *gn_first_platform(void)
{
    pthread_mutex_lock(&platforms.lock);
    look_locked();
    struct gn_cl_root *root = platforms.n ? platforms.roots[0] : NULL;
    pthread_mutex_unlock(&platforms.lock);
    return root;
}
