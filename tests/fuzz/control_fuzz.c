/* SPDX-License-Identifier: Apache-2.0 */
/* The control API: any text, from anybody, gets one JSON object, with the version and an answer or
 * an error in it. */
#include "control/source.h"

#include <jansson.h>

#include "fuzz.h"

static void vgpus(void *ctx, void (*each)(void *arg, const struct gn_control_vgpu *), void *arg)
{
    const struct gn_control_share devices[] = {
        {.name = ctx, .share = 1 / 3.0, .used_ns = UINT64_MAX}};
    struct gn_control_vgpu v = {.id = 1,
                                .tenant = "default",
                                .program = ctx,
                                .platform = "a platform",
                                .link = "shm",
                                .mode = "remote",
                                .state = "idle",
                                .memory_bytes = UINT64_MAX,
                                .n_devices = 1,
                                .devices = devices};
    each(arg, &v);
}

static void devices(void *ctx, void (*each)(void *arg, const struct gn_control_device *), void *arg)
{
    struct gn_control_device d = {.name = ctx,
                                  .vendor = "",
                                  .api = "opencl",
                                  .platform = "a platform",
                                  .type = "cpu",
                                  .present_as = "gpu",
                                  .version = "1",
                                  .driver_version = "1"};
    each(arg, &d);
}

static void status(void *ctx, struct gn_control_status *ret)
{
    *ret = (struct gn_control_status){
        .version = ctx, .walls_mode = ctx, .walls_have = ctx, .walls_missing = ctx};
}

static void drivers(void *ctx, void (*each)(void *arg, const struct gn_control_driver *), void *arg)
{
    struct gn_control_driver d = {.api = "opencl", .library = ctx};
    each(arg, &d);
}

static void tenants(void *ctx, void (*each)(void *arg, const struct gn_control_tenant *), void *arg)
{
    struct gn_control_tenant t = {
        .name = ctx, .any_uid = true, .memory_limit_bytes = UINT64_MAX, .cap = 1};
    each(arg, &t);
}

static void policies(void *ctx, void (*each)(void *arg, const struct gn_control_policy *),
                     void *arg)
{
    each(arg, &(struct gn_control_policy){.name = ctx, .about = "", .in_force = true});
}

static int set_policy(void *ctx, const char *name, struct gn_error *err)
{
    FUZZ_CHECK(name);
    free(gn_control_policy_request(name));
    return strlen(name) % 2 ? gn_fail(err, 22, "a fix", "a reason") : 0;
}

static int change(void *ctx, const struct gn_control_change *c, struct gn_error *err)
{
    FUZZ_CHECK(c->name && c->what >= GN_CONTROL_ADD && c->what <= GN_CONTROL_REMOVE);
    FUZZ_CHECK(c->n_uids <= GN_CONTROL_MAX_IDS && c->n_gids <= GN_CONTROL_MAX_IDS &&
               c->n_modes <= GN_CONTROL_MAX_MODES && c->n_devices <= GN_CONTROL_MAX_DEVICES);
    FUZZ_CHECK(c->cap <= 1000000 && c->floor <= 1000000);
    for (uint32_t i = 0; i < c->n_devices; i++)
        FUZZ_CHECK(c->devices[i]);
    for (uint32_t i = 0; i < c->n_modes; i++)
        FUZZ_CHECK(c->modes[i]);
    /* What was understood can be said again. */
    free(gn_control_change_request(c));
    return c->n_token % 2 ? gn_fail(err, 13, "a fix", "a reason") : 0;
}

static int drain(void *ctx, bool on, struct gn_control_drain *ret, struct gn_error *err)
{
    *ret = (struct gn_control_drain){.draining = on};
    return 0;
}

static int about(void *ctx, const char *vgpu, struct gn_control_about *ret, struct gn_error *err)
{
    *ret = (struct gn_control_about){
        .tenant = "default", .program = ctx, .api = "opencl", .platform = "a platform"};
    return strlen(vgpu) % 2 ? gn_fail(err, 2, "a fix", "a reason") : 0;
}

static int receive(void *ctx, const struct gn_control_about *what, struct gn_control_receipt *ret,
                   struct gn_error *err)
{
    FUZZ_CHECK(what->n_devices && what->n_devices <= GN_CONTROL_MOVE_DEVICES && what->tenant &&
               what->devices[0].name);
    return 0;
}

/* What answers at once is an object; a command that is carried out is answered later. */
static int move(void *ctx, const struct gn_control_wish *wish, struct gn_error *err)
{
    FUZZ_CHECK(wish->vgpu && *wish->vgpu && wish->rounds <= GN_CONTROL_MAX_ROUNDS);
    return gn_fail(err, 16, NULL, "a reason");
}

static int kill_vgpu(void *ctx, const char *vgpu, const char *reason, uint32_t *ret_id,
                     struct gn_error *err)
{
    FUZZ_CHECK(*vgpu && reason);
    *ret_id = 1;
    return strlen(reason) % 2 ? gn_fail(err, 2, "a fix", "a reason") : 0;
}

static int keep(void *ctx, struct gn_error *err)
{
    return gn_fail(err, 22, "a fix", "a reason");
}

static int restore(void *ctx, const struct gn_control_restore *wish, bool *ret_absent,
                   struct gn_error *err)
{
    FUZZ_CHECK(memchr(wish->tenant, 0, sizeof wish->tenant));
    *ret_absent = wish->id % 2;
    return gn_fail(err, 3, "a fix", "a reason");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Names come from programs: the text's own beginning is one. */
    char name[32] = "";
    if (size)
        memcpy(name, data, size < sizeof name - 1 ? size : sizeof name - 1);
    const struct gn_control_queries queries = {.vgpus = vgpus,
                                               .devices = devices,
                                               .status = status,
                                               .drivers = drivers,
                                               .tenants = tenants,
                                               .policies = policies,
                                               .about = about};
    const struct gn_control_commands commands = {.set_policy = set_policy,
                                                 .change = change,
                                                 .drain = drain,
                                                 .migrate = move,
                                                 .kill = kill_vgpu,
                                                 .receive = receive,
                                                 .checkpoint = move,
                                                 .keep = keep,
                                                 .restore = restore};
    const struct gn_control_source source = {
        .ctx = name, .queries = &queries, .commands = &commands};
    char *reply = gn_control_handle(&source, GN_ROLE_CONTROL, (const char *)data, size);
    FUZZ_CHECK(reply);
    json_error_t where;
    json_t *root = json_loads(reply, JSON_REJECT_DUPLICATES, &where);
    FUZZ_CHECK(json_is_object(root) &&
               json_integer_value(json_object_get(root, "version")) == GN_CONTROL_VERSION);
    FUZZ_CHECK(json_object_size(root) == (json_object_get(root, "policy") ? 3 : 2));
    json_t *error = json_object_get(root, "error");
    FUZZ_CHECK(!error || json_is_string(json_object_get(error, "what")));
    json_decref(root);
    free(reply);
    return 0;
}
