/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses gantryd's command line at its start (config.h). Options replace settings of the
 * configuration file; --device replaces all of the file's. Option names cannot be abbreviated: an
 * abbreviation that is unique today could become ambiguous with the next option. Opens no file but
 * the one of --config.
 */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "daemon/config.h"

static const char usage_fix[] = "gantryd --help lists the options";

enum value { NO_VALUE, VALUE_SET, VALUE_CONFIG, VALUE_FLAG };

static const struct option {
    const char *name;
    enum value value;
    int (*set)(struct gn_config *given, const char *value, struct gn_error *err);
    enum gn_options_action action;
} options[] = {
    {"config", VALUE_CONFIG, NULL, GN_OPTIONS_RUN},
    {"socket", VALUE_SET, gn_config_set_socket, GN_OPTIONS_RUN},
    {"walls", VALUE_SET, gn_config_set_walls, GN_OPTIONS_RUN},
    {"device", VALUE_SET, gn_config_add_device, GN_OPTIONS_RUN},
    {"listen", VALUE_SET, gn_config_set_listen, GN_OPTIONS_RUN},
    {"listen-control", VALUE_SET, gn_config_set_listen_control, GN_OPTIONS_RUN},
    {"operator-subject", VALUE_SET, gn_config_add_operator_subject, GN_OPTIONS_RUN},
    {"insecure", VALUE_FLAG, gn_config_set_insecure, GN_OPTIONS_RUN},
    {"tls-certificate", VALUE_SET, gn_config_set_certificate, GN_OPTIONS_RUN},
    {"tls-key", VALUE_SET, gn_config_set_key, GN_OPTIONS_RUN},
    {"tls-client-authority", VALUE_SET, gn_config_set_authority, GN_OPTIONS_RUN},
    {"tcp-grace", VALUE_SET, gn_config_set_grace, GN_OPTIONS_RUN},
    {"policy", VALUE_SET, gn_config_set_policy, GN_OPTIONS_RUN},
    {"slice", VALUE_SET, gn_config_set_slice, GN_OPTIONS_RUN},
    {"kernel-limit", VALUE_SET, gn_config_set_kernel_limit, GN_OPTIONS_RUN},
    {"breach-pause", VALUE_SET, gn_config_set_breach_pause, GN_OPTIONS_RUN},
    {"start-limit", VALUE_SET, gn_config_set_start_limit, GN_OPTIONS_RUN},
    {"oversubscribe", VALUE_FLAG, gn_config_set_oversubscribe, GN_OPTIONS_RUN},
    {"place", VALUE_SET, gn_config_set_place, GN_OPTIONS_RUN},
    {"swap-memory", VALUE_SET, gn_config_set_swap_memory, GN_OPTIONS_RUN},
    {"swap-share", VALUE_SET, gn_config_set_swap_share, GN_OPTIONS_RUN},
    {"residency-max", VALUE_SET, gn_config_set_residency_max, GN_OPTIONS_RUN},
    {"idle-after", VALUE_SET, gn_config_set_idle_after, GN_OPTIONS_RUN},
    {"help", NO_VALUE, NULL, GN_OPTIONS_HELP},
    {"version", NO_VALUE, NULL, GN_OPTIONS_VERSION},
};

static const struct option *find(const char *name, size_t n)
{
    for (size_t i = 0; i < GN_ARRAY_SIZE(options); i++)
        if (strlen(options[i].name) == n && memcmp(options[i].name, name, n) == 0)
            return &options[i];
    return NULL;
}

/* Takes the option at argv[*at] and its value, and advances *at. */
static int next_option(char **argv, int *at, const struct option **ret, const char **ret_value,
                       struct gn_error *err)
{
    const char *word = argv[(*at)++];
    if (strncmp(word, "--", 2) != 0)
        return gn_fail(err, EINVAL, usage_fix,
                       word[0] == '-' ? "unknown option %.100s" : "unexpected argument \"%.100s\"",
                       word);
    const char *equals = strchr(word, '=');
    const struct option *o =
        find(word + 2, equals ? (size_t)(equals - word - 2) : strlen(word + 2));
    if (!o)
        return gn_fail(err, EINVAL, usage_fix, "unknown option %.100s", word);
    const bool bare = o->value == NO_VALUE || o->value == VALUE_FLAG;
    if (bare && equals)
        return gn_fail(err, EINVAL, usage_fix, "the option --%s takes no value", o->name);
    const char *value = equals ? equals + 1 : NULL;
    if (!bare && !value && !(value = argv[*at]))
        return gn_fail(err, EINVAL, usage_fix, "the option --%s needs a value", o->name);
    if (!bare && !equals)
        (*at)++;
    if (o->value == VALUE_FLAG)
        value = "yes";
    *ret = o;
    *ret_value = value;
    return 0;
}

int gn_options_parse(int argc, char **argv, struct gn_config *config, enum gn_options_action *ret,
                     struct gn_error *err)
{
    struct gn_config given = {.n_devices = 0};
    const char *config_path = NULL;
    int rc;
    memset(config, 0, sizeof *config);
    *ret = GN_OPTIONS_RUN;
    for (int at = 1; at < argc;) {
        const struct option *o = NULL;
        const char *value = NULL;
        if ((rc = next_option(argv, &at, &o, &value, err)))
            return rc;
        if (o->value == NO_VALUE) {
            *ret = o->action;
            return 0;
        }
        if (o->value == VALUE_CONFIG)
            config_path = value;
        else if ((rc = o->set(&given, value, err)))
            return rc;
    }
    if (config_path && (rc = gn_config_read(config_path, config, err)))
        return rc;
    if (given.socket[0])
        memcpy(config->socket, given.socket, sizeof config->socket);
    if (given.listen[0])
        memcpy(config->listen, given.listen, sizeof config->listen);
    if (given.listen_control[0])
        memcpy(config->listen_control, given.listen_control, sizeof config->listen_control);
    if (given.n_operator_subjects) {
        memcpy(config->operator_subjects, given.operator_subjects,
               sizeof config->operator_subjects);
        config->n_operator_subjects = given.n_operator_subjects;
    }
    config->insecure |= given.insecure;
    if (given.tls_certificate[0])
        memcpy(config->tls_certificate, given.tls_certificate, sizeof config->tls_certificate);
    if (given.tls_key[0])
        memcpy(config->tls_key, given.tls_key, sizeof config->tls_key);
    if (given.tls_authority[0])
        memcpy(config->tls_authority, given.tls_authority, sizeof config->tls_authority);
    if (given.tcp_grace_ms)
        config->tcp_grace_ms = given.tcp_grace_ms;
    if (given.policy_set) {
        config->policy_set = true;
        config->policy = given.policy;
    }
    if (given.slice_ns)
        config->slice_ns = given.slice_ns;
    if (given.kernel_limit_set) {
        config->kernel_limit_set = true;
        config->kernel_limit_ns = given.kernel_limit_ns;
    }
    if (given.breach_pause_set) {
        config->breach_pause_set = true;
        config->breach_pause_ns = given.breach_pause_ns;
    }
    if (given.start_limit_ms)
        config->start_limit_ms = given.start_limit_ms;
    if (given.walls_set)
        config->walls = given.walls;
    else if (!config->walls_set)
        config->walls = GN_WALL_AVAILABLE;
    if (given.n_devices) {
        memcpy(config->devices, given.devices, sizeof config->devices);
        config->n_devices = given.n_devices;
    }
    gn_config_override_placement(config, &given);
    return gn_config_check_placement(config, err);
}
