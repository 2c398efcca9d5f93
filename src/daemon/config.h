/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_CONFIG_H
#define GN_DAEMON_CONFIG_H

#include <stddef.h>

#include "daemon/schedule/placement.h"
#include "daemon/tenants/selector.h"
#include "daemon/tenants/tenant_rules.h"
#include "wall/wall.h"

#define GN_CONFIG_MAX_DEVICES   64
#define GN_CONFIG_MAX_TENANTS   1024
#define GN_CONFIG_MAX_OPERATORS 16

/* A [tenant NAME] section. */
struct gn_config_tenant {
    struct gn_tenant_rules rules;
    char token_file[256]; /* "": none; read by gn_config_read() only */
    int token_line;
    int cap_line, floor_line, memory_line, reserve_line; /* 0: not set */
    unsigned keys; /* keys already seen, to find those given twice */
};

/* gantryd's settings, from the configuration file and the command line. */
struct gn_config {
    const char *path; /* the file's name for later errors; the caller's. NULL: none was read */
    char socket[256]; /* "": the default */
    struct gn_selector devices[GN_CONFIG_MAX_DEVICES]; /* the devices to offer; none: all */
    int n_devices;
    struct gn_selector settings[GN_CONFIG_MAX_DEVICES]; /* [device NAME] sections */
    int n_settings;
    char listen[320];         /* "": not over tcp */
    char listen_control[320]; /* for operators; "": not over tcp */
    char operator_subjects[GN_CONFIG_MAX_OPERATORS][64];
    int n_operator_subjects; /* common names of operators' certificates */
    bool insecure;
    char tls_certificate[256], tls_key[256], tls_authority[256]; /* files; "": none */
    uint32_t tcp_grace_ms;                                       /* 0: the default */
    bool policy_set;
    const struct gn_sched_policy *policy; /* NULL: none, so devices are not scheduled */
    uint64_t slice_ns;                    /* 0: the default */
    bool kernel_limit_set;
    uint64_t kernel_limit_ns; /* 0: none */
    bool breach_pause_set;
    uint64_t breach_pause_ns;         /* 0: none */
    uint32_t start_limit_ms;          /* 0: the default */
    struct gn_config_tenant *tenants; /* owned */
    int n_tenants;
    enum gn_wall_mode walls;
    bool walls_set;
    char cache[768]; /* "": the default */
    struct gn_placement_options placement;
};

void gn_config_fini(struct gn_config *config);

/* Reads an INI file and the token files that it names. Settings in the file replace those in
 * *config. Errors name the file and the line. */
int gn_config_read(const char *path, struct gn_config *config, struct gn_error *err);

/* The same for n bytes of text; opens no token files. */
int gn_config_parse(const char *path, const char *text, size_t n, struct gn_config *config,
                    struct gn_error *err);

/* Finds a policy by name; "none": *ret is NULL. 0, or -EINVAL with all names in the error. */
#define GN_POLICY_NONE "none"
int gn_policy_parse(const char *name, const struct gn_sched_policy **ret, struct gn_error *err);

/* Set one setting, given as `key = value` in [gantryd] or as an option. */
int gn_config_set_socket(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_listen(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_listen_control(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_add_operator_subject(struct gn_config *config, const char *value,
                                   struct gn_error *err);
int gn_config_set_insecure(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_certificate(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_key(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_authority(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_policy(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_slice(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_kernel_limit(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_breach_pause(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_start_limit(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_grace(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_walls(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_cache(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_add_device(struct gn_config *config, const char *value, struct gn_error *err);

/* config_placement.c: settings of the same kind for more memory than the devices have. */
int gn_config_set_oversubscribe(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_place(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_swap_memory(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_swap_share(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_residency_max(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_idle_after(struct gn_config *config, const char *value, struct gn_error *err);
/* Parses the size of a slot: whole MiB. 0 or -EINVAL. */
int gn_slot_parse(const char *value, uint64_t *ret, struct gn_error *err);
/* Finds a placement policy by name. 0, or -EINVAL with all names in the error. */
int gn_place_policy_parse(const char *name, const struct gn_place_policy **ret,
                          struct gn_error *err);
/* Replaces the settings of `config` by those that `given` has. */
void gn_config_override_placement(struct gn_config *config, const struct gn_config *given);
/* -EINVAL: the placement's settings contradict each other or the scheduling policy. */
int gn_config_check_placement(const struct gn_config *config, struct gn_error *err);

enum gn_options_action { GN_OPTIONS_RUN, GN_OPTIONS_HELP, GN_OPTIONS_VERSION };

/* Parses the command line. --config is read first, wherever it stands. 0, or -errno; -EINVAL is a
 * usage error. */
int gn_options_parse(int argc, char **argv, struct gn_config *config, enum gn_options_action *ret,
                     struct gn_error *err);

#endif
