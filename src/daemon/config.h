/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_CONFIG_H
#define GN_DAEMON_CONFIG_H

#include <stddef.h>

#include "daemon/selector.h"

#define GN_CONFIG_MAX_DEVICES 64

/* What an operator wants of gantryd, from the configuration file and the command line. */
struct gn_config {
    char socket[256];                                  /* "": the default */
    struct gn_selector devices[GN_CONFIG_MAX_DEVICES]; /* those to offer; none: all */
    int n_devices;
    struct gn_selector settings[GN_CONFIG_MAX_DEVICES]; /* [device NAME] sections */
    int n_settings;
    char listen[320]; /* "": not over tcp */
    bool insecure;
    char tls_certificate[256], tls_key[256], tls_authority[256]; /* files; "": none */
    uint32_t tcp_grace_ms; /* 0: the default */
};

/* Reads an INI file over what *config holds. Errors name the file and the line. */
int gn_config_read(const char *path, struct gn_config *config, struct gn_error *err);

/* The same, of a text of n bytes. */
int gn_config_parse(const char *path, const char *text, size_t n, struct gn_config *config,
                    struct gn_error *err);

/* One setting, as `key = value` in [gantryd] or as an option. */
int gn_config_set_socket(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_listen(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_insecure(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_certificate(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_key(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_authority(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_set_grace(struct gn_config *config, const char *value, struct gn_error *err);
int gn_config_add_device(struct gn_config *config, const char *value, struct gn_error *err);

enum gn_options_action { GN_OPTIONS_RUN, GN_OPTIONS_HELP, GN_OPTIONS_VERSION };

/* The command line; --config is read first, whatever its place. 0, or -errno; -EINVAL is an error of usage.
 */
int gn_options_parse(int argc, char **argv, struct gn_config *config, enum gn_options_action *ret,
                     struct gn_error *err);

#endif
