/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the command line of a subcommand. Option names cannot be abbreviated; gantryd has the same
 * rule. Main thread.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/part.h"
#include "base/size.h"
#include "client/client.h"
#include "control/control.h"
#include "ctl/ctl.h"

#define MAX_WEIGHT 1000000u
#define MAX_VGPUS  1000000

static int set_connect(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->connect = value; /* parsed by the link */
    return *value ? 0
                  : gn_fail(err, EINVAL, "write unix:PATH or tcp:HOST:PORT",
                            "the option --connect needs an address");
}

static int set_tenant(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->tenant = value;
    return gn_client_check_tenant(value, err);
}

static int set_reason(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->reason = value;
    return 0;
}

static int set_token_file(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->token_file = value;
    return *value ? 0 : gn_fail(err, EINVAL, NULL, "the option --token-file needs a file's name");
}

static int add_word(struct gn_ctl_words *words, const char *option, const char *value,
                    struct gn_error *err)
{
    if (!*value)
        return gn_fail(err, EINVAL, NULL, "the option --%s needs a value", option);
    if (words->n == (int)GN_ARRAY_SIZE(words->items))
        return gn_fail(err, EINVAL, NULL, "the option --%s is given too often", option);
    words->items[words->n++] = value;
    return 0;
}

static int add_token_file(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return add_word(&args->token_files, "token-file", value, err);
}

static int add_uid(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return add_word(&args->uids, "uid", value, err);
}

static int add_gid(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return add_word(&args->gids, "gid", value, err);
}

static int add_mode(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    if (strcmp(value, "remote") != 0 && strcmp(value, "passthrough") != 0)
        return gn_fail(err, EINVAL, "write remote or passthrough", "\"%.100s\" is not a mode",
                       value);
    return add_word(&args->modes, "mode", value, err);
}

static bool is_right(const char *name, size_t n)
{
    static const char *const rights[] = {"kill", "checkpoint", "restore", "migrate", "mode"};
    for (size_t i = 0; i < GN_ARRAY_SIZE(rights); i++)
        if (strlen(rights[i]) == n && memcmp(rights[i], name, n) == 0)
            return true;
    return false;
}

static int add_owner(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    for (const char *at = value; strcmp(value, "none") != 0; at++) {
        const size_t n = strcspn(at, ",");
        if (!is_right(at, n))
            return gn_fail(
                err, EINVAL,
                "write some of kill, checkpoint, restore, migrate and mode, separated by commas, "
                "or none",
                "\"%.100s\" is not a list of owner rights", value);
        at += n;
        if (!*at)
            break;
    }
    return add_word(&args->owner, "owner", value, err);
}

static int add_device(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return add_word(&args->devices, "device", value, err);
}

static int set_weight(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    size_t n = strlen(value);
    unsigned long weight = 0;
    if (n && n <= 7 && strspn(value, "0123456789") == n)
        weight = strtoul(value, NULL, 10);
    if (weight == 0 || weight > MAX_WEIGHT)
        return gn_fail(err, EINVAL, "write a whole number from 1 to 1000000",
                       "\"%.100s\" is not a weight", value);
    args->weight = (uint32_t)weight;
    return 0;
}

static int set_memory(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    int rc = gn_size_parse(value, &args->memory_bytes, err);
    if (rc == 0 && args->memory_bytes == 0)
        rc = gn_fail(err, EINVAL, "omit --memory for no limit",
                     "a memory limit of 0 allows no memory");
    return rc;
}

/* A tenant's memory limit, which "none" removes. */
static int set_limit(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->no_memory_limit = strcmp(value, "none") == 0;
    args->memory_bytes = 0;
    int rc = args->no_memory_limit ? 0 : gn_size_parse(value, &args->memory_bytes, err);
    if (rc == 0 && !args->no_memory_limit && args->memory_bytes == 0)
        rc = gn_fail(err, EINVAL, "write --memory none for no limit",
                     "a memory limit of 0 allows no memory");
    if (rc == 0 && args->memory_bytes > INT64_MAX)
        rc = gn_fail(err, EINVAL, "write --memory none for no limit",
                     "\"%.100s\" is more than any device has", value);
    return rc;
}

/* "none" and 0: no reserve. */
static int set_reserve(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->has_reserve = true;
    args->reserve_bytes = 0;
    const int rc = strcmp(value, "none") ? gn_size_parse(value, &args->reserve_bytes, err) : 0;
    if (rc == 0 && args->reserve_bytes > INT64_MAX)
        return gn_fail(err, EINVAL, "write a size that the device has",
                       "\"%.100s\" is more than any device has", value);
    return rc;
}

static int set_vgpus(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    const size_t n = strlen(value);
    unsigned long vgpus = 0;
    if (n && n <= 7 && strspn(value, "0123456789") == n)
        vgpus = strtoul(value, NULL, 10);
    if (strcmp(value, "none") != 0 && (vgpus == 0 || vgpus > MAX_VGPUS))
        return gn_fail(err, EINVAL, "write a whole number from 1 to 1000000, or none",
                       "\"%.100s\" is not a number of vGPUs", value);
    args->has_vgpus = true;
    args->vgpus = (uint32_t)vgpus;
    return 0;
}

static int set_drain_timeout(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    char *end;
    double s = strtod(value, &end);
    if (end == value || *end || !(s >= 0.001 && s <= 3600))
        return gn_fail(err, EINVAL, "write a number of seconds from 0.001 to 3600",
                       "\"%.100s\" is not a timeout", value);
    args->drain_timeout_ms = (uint32_t)(s * 1000);
    return 0;
}

static int set_link(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->stays_on_tcp = strcmp(value, "tcp") == 0;
    return args->stays_on_tcp || strcmp(value, "auto") == 0
               ? 0
               : gn_fail(err, EINVAL, "write auto or tcp", "\"%.100s\" is not a link", value);
}

static int set_stop_and_copy(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->stop_and_copy = true;
    return args->rounds ? gn_fail(err, EINVAL, "use one of them",
                                  "--stop-and-copy and --rounds exclude each other")
                        : 0;
}

static int set_rounds(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    char *end;
    const unsigned long n = strtoul(value, &end, 10);
    if (!isdigit((unsigned char)*value) || *end || n < 1 || n > GN_CONTROL_MAX_ROUNDS)
        return gn_fail(err, EINVAL, "write a number from 1 to 16",
                       "\"%.100s\" is not a number of rounds", value);
    args->rounds = (uint32_t)n;
    return args->stop_and_copy ? gn_fail(err, EINVAL, "use one of them",
                                         "--stop-and-copy and --rounds exclude each other")
                               : 0;
}

static int set_bandwidth(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    int rc = gn_size_parse(value, &args->bandwidth_bytes, err);
    if (rc == 0 && (args->bandwidth_bytes == 0 || args->bandwidth_bytes > INT64_MAX))
        rc = gn_fail(err, EINVAL, "omit --bandwidth for no limit", "\"%.100s\" is not a bandwidth",
                     value);
    return rc;
}

static int set_socket(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->has_socket = args->socket = true;
    return 0;
}

static int set_no_socket(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->has_socket = true;
    args->socket = false;
    return 0;
}

static int set_cap(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->has_cap = true;
    return gn_part_parse(value, &args->cap, err);
}

static int set_floor(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->has_floor = true;
    return gn_part_parse(value, &args->floor, err);
}

static int set_mode(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    if (strcmp(value, "remote") != 0 && strcmp(value, "passthrough") != 0)
        return gn_fail(err, EINVAL, "write remote or passthrough", "\"%.100s\" is not a mode",
                       value);
    args->mode = value;
    return 0;
}

static int add_sim_tenant(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return add_word(&args->sim.tenants, "tenant", value, err);
}

static int add_program(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return add_word(&args->sim.programs, "program", value, err);
}

static int add_policy(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return add_word(&args->sim.policies, "policy", value, err);
}

static int add_sim_place(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return add_word(&args->sim.places, "place", value, err);
}

static int set_sim(const char **to, const char *value)
{
    *to = value; /* parsed by src/sim */
    return 0;
}

static int set_device(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    if (!value[0])
        return gn_fail(err, EINVAL, "gantry devices lists them",
                       "the option --device needs a device");
    args->device = value;
    return 0;
}

static int set_devices(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return set_sim(&args->sim.devices, value);
}

static int set_time(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return set_sim(&args->sim.time, value);
}

static int set_slice(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return set_sim(&args->sim.slice, value);
}

static int set_spin(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return set_sim(&args->sim.spin, value);
}

static int set_seed(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return set_sim(&args->sim.seed, value);
}

static int set_trace(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return set_sim(&args->sim.trace, value);
}

static int set_sim_memory(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return set_sim(&args->sim.memory, value);
}

static int set_sim_slot(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return set_sim(&args->sim.slot, value);
}

static int set_sim_bus(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return set_sim(&args->sim.bus, value);
}

static int set_sim_swap_share(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    return set_sim(&args->sim.swap_share, value);
}

static int set_cost(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->sim.cost = true;
    return 0;
}

static int set_once(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->once = true;
    return 0;
}

static int set_sort(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->sort = value; /* checked by the command */
    return 0;
}

/* Seconds, with an optional decimal point. */
static int set_delay(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    const size_t n = strlen(value);
    char *tail = NULL;
    const double seconds =
        n && n <= 9 && strspn(value, "0123456789.") == n ? strtod(value, &tail) : 0;
    if (!tail || *tail || seconds < 0.1 || seconds > 3600)
        return gn_fail(err, EINVAL, "write seconds from 0.1 to 3600",
                       "\"%.100s\" is not a time in that range", value);
    args->delay_ns = (uint64_t)(seconds * 1e9);
    return 0;
}

static int set_output(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->output = value;
    return *value ? 0
                  : gn_fail(err, EINVAL, "write - for stdout",
                            "the option --output needs a file's name");
}

static int set_recording(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    (void)value;
    (void)err;
    args->recording = true;
    return 0;
}

static int set_vgpu(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->vgpu = value;
    return *value && strspn(value, "0123456789abcdef") == strlen(value)
               ? 0
               : gn_fail(err, EINVAL, "gantry ls lists them", "\"%.100s\" is not a vGPU's id",
                         value);
}

static int set_json(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->json = true;
    return 0;
}

static int set_stop(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->stop = true;
    return 0;
}

static int set_undo(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->undo = true;
    return 0;
}

static int set_strict(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->strict = true;
    return 0;
}

static int set_quiet(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->quiet = true;
    return 0;
}

static int set_help(struct gn_ctl_args *args, const char *value, struct gn_error *err)
{
    args->help = true;
    return 0;
}

static const struct option {
    const char *name;
    unsigned needs; /* the bit in the command's options that enables it; 0: every command has it */
    bool takes_value;
    int (*set)(struct gn_ctl_args *args, const char *value, struct gn_error *err);
} options[] = {
    {"connect", GN_OPTION_CONNECT, true, set_connect},
    {"json", GN_OPTION_JSON, false, set_json},
    {"tenant", GN_OPTION_RUN | GN_OPTION_KILL, true, set_tenant},
    {"reason", GN_OPTION_KILL, true, set_reason},
    {"token-file", GN_OPTION_RUN | GN_OPTION_TENANT, true, set_token_file},
    {"token-file", GN_OPTION_AWAY, true, add_token_file},
    {"link", GN_OPTION_AWAY, true, set_link},
    {"weight", GN_OPTION_RUN | GN_OPTION_TENANT, true, set_weight},
    {"drain-timeout", GN_OPTION_MOVE, true, set_drain_timeout},
    {"quiet", GN_OPTION_MOVE, false, set_quiet},
    {"stop-and-copy", GN_OPTION_LIVE, false, set_stop_and_copy},
    {"rounds", GN_OPTION_LIVE, true, set_rounds},
    {"bandwidth", GN_OPTION_LIVE, true, set_bandwidth},
    {"stop", GN_OPTION_STOP, false, set_stop},
    {"undo", GN_OPTION_UNDO, false, set_undo},
    {"strict", GN_OPTION_STRICT, false, set_strict},
    {"cap", GN_OPTION_TENANT, true, set_cap},
    {"floor", GN_OPTION_TENANT, true, set_floor},
    {"memory", GN_OPTION_RUN, true, set_memory},
    {"memory", GN_OPTION_TENANT, true, set_limit},
    {"reserve", GN_OPTION_TENANT, true, set_reserve},
    {"vgpus", GN_OPTION_TENANT, true, set_vgpus},
    {"mode", GN_OPTION_RUN, true, set_mode},
    {"mode", GN_OPTION_TENANT, true, add_mode},
    {"uid", GN_OPTION_TENANT, true, add_uid},
    {"gid", GN_OPTION_TENANT, true, add_gid},
    {"owner", GN_OPTION_TENANT, true, add_owner},
    {"socket", GN_OPTION_TENANT, false, set_socket},
    {"no-socket", GN_OPTION_TENANT, false, set_no_socket},
    {"device", GN_OPTION_TENANT, true, add_device},
    {"device", GN_OPTION_DEVICE, true, set_device},
    {"tenant", GN_OPTION_SIM, true, add_sim_tenant},
    {"program", GN_OPTION_SIM, true, add_program},
    {"policy", GN_OPTION_SIM, true, add_policy},
    {"devices", GN_OPTION_SIM, true, set_devices},
    {"time", GN_OPTION_SIM, true, set_time},
    {"slice", GN_OPTION_SIM, true, set_slice},
    {"spin", GN_OPTION_SIM, true, set_spin},
    {"seed", GN_OPTION_SIM, true, set_seed},
    {"trace", GN_OPTION_SIM, true, set_trace},
    {"memory", GN_OPTION_SIM, true, set_sim_memory},
    {"slot", GN_OPTION_SIM, true, set_sim_slot},
    {"bus", GN_OPTION_SIM, true, set_sim_bus},
    {"place", GN_OPTION_SIM, true, add_sim_place},
    {"swap-share", GN_OPTION_SIM, true, set_sim_swap_share},
    {"cost", GN_OPTION_SIM, false, set_cost},
    {"once", GN_OPTION_TOP, false, set_once},
    {"delay", GN_OPTION_TOP, true, set_delay},
    {"sort", GN_OPTION_TOP, true, set_sort},
    {"output", GN_OPTION_TRACE, true, set_output},
    {"recording", GN_OPTION_TRACE, false, set_recording},
    {"seconds", GN_OPTION_TRACE, true, set_delay},
    {"vgpu", GN_OPTION_TRACE, true, set_vgpu},
    {"help", 0, false, set_help},
};

static bool offered(const struct gn_ctl_command *command, const struct option *o)
{
    return o->needs == 0 || (command->options & o->needs);
}

/* The options of the current command, for suggestions. */
static const char *offered_names[GN_ARRAY_SIZE(options)];

static const char *offered_name(int i)
{
    return offered_names[i];
}

static int unknown(const struct gn_ctl_command *command, const char *word, struct gn_error *err)
{
    char fix[256];
    int n = 0;
    for (size_t i = 0; i < GN_ARRAY_SIZE(options); i++)
        if (offered(command, &options[i]))
            offered_names[n++] = options[i].name;
    const char *near =
        strncmp(word, "--", 2) == 0 ? gn_ctl_nearest(word + 2, offered_name, n) : NULL;
    if (near)
        snprintf(fix, sizeof fix, "did you mean --%s?", near);
    else
        snprintf(fix, sizeof fix, "gantry help %s lists the options", command->name);
    return gn_fail(err, EINVAL, fix, "unknown option %.100s", word);
}

static const struct option *find(const struct gn_ctl_command *command, const char *name, size_t n)
{
    for (size_t i = 0; i < GN_ARRAY_SIZE(options); i++)
        if (offered(command, &options[i]) && strlen(options[i].name) == n &&
            memcmp(options[i].name, name, n) == 0)
            return &options[i];
    return NULL;
}

/* Parses the option at argv[*at] and its value, and advances *at past them. */
static int take(const struct gn_ctl_command *command, char **argv, int *at,
                struct gn_ctl_args *args, struct gn_error *err)
{
    const char *word = argv[(*at)++];
    const char *equals = strchr(word, '='), *value = equals ? equals + 1 : NULL;
    const struct option *o = NULL;
    if (strcmp(word, "-h") == 0)
        return set_help(args, NULL, err);
    if (strcmp(word, "-o") == 0)
        o = find(command, "output", 6);
    else if (strncmp(word, "--", 2) == 0)
        o = find(command, word + 2, equals ? (size_t)(equals - word - 2) : strlen(word + 2));
    if (!o)
        return unknown(command, word, err);
    if (!o->takes_value && value)
        return gn_fail(err, EINVAL, NULL, "the option --%s takes no value", o->name);
    if (o->takes_value && !value && !(value = argv[*at]))
        return gn_fail(err, EINVAL, NULL, "the option --%s needs a value", o->name);
    if (o->takes_value && !equals)
        (*at)++;
    return o->set(args, value, err);
}

static int refuse_word(const struct gn_ctl_command *command, const char *word, struct gn_error *err)
{
    char fix[64];
    snprintf(fix, sizeof fix, "gantry help %s shows its arguments", command->name);
    return gn_fail(err, EINVAL, fix, "unexpected argument \"%.100s\"", word);
}

int gn_ctl_parse(const struct gn_ctl_command *command, int argc, char **argv,
                 struct gn_ctl_args *ret, struct gn_error *err)
{
    const bool anywhere = command->options & GN_OPTION_ANYWHERE;
    int at = 1, n_words = 0, rc;
    memset(ret, 0, sizeof *ret);
    ret->command = command->name;
    while (at < argc && (anywhere || (argv[at][0] == '-' && argv[at][1]))) {
        if (argv[at][0] != '-' || !argv[at][1]) {
            if (n_words == command->max_rest)
                return refuse_word(command, argv[at], err);
            ret->words[n_words++] = argv[at++];
            continue;
        }
        if (strcmp(argv[at], "--") == 0) {
            at++;
            break;
        }
        if ((rc = take(command, argv, &at, ret, err)))
            return rc;
    }
    if (anywhere) {
        ret->rest = ret->words;
        return at == argc || ret->help ? 0 : refuse_word(command, argv[at], err);
    }
    ret->rest = argv + at;
    if (ret->help || command->max_rest < 0)
        return 0;
    if (argc - at > command->max_rest && argv[at + command->max_rest][0] == '-')
        return gn_fail(err, EINVAL, NULL, "put the option %.100s before \"%.100s\"",
                       argv[at + command->max_rest], argv[at]);
    if (argc - at > command->max_rest)
        return refuse_word(command, argv[at + command->max_rest], err);
    return 0;
}
