/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file: any text is settings, or one sentence that names its line. */
#include "daemon/config.h"

#include <errno.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gn_config config;
    struct gn_error err = {{0}, {0}};
    memset(&config, 0, sizeof config);
    int rc = gn_config_parse("gantry.conf", (const char *)data, size, &config, &err);
    FUZZ_CHECK(rc == 0 || (rc < 0 && strncmp(err.what, "gantry.conf:", 12) == 0));
    FUZZ_CHECK(memchr(err.what, 0, sizeof err.what) && memchr(err.fix, 0, sizeof err.fix));
    FUZZ_CHECK(!strchr(err.what, '\n'));
    FUZZ_CHECK(memchr(config.socket, 0, sizeof config.socket));
    FUZZ_CHECK(config.n_devices <= GN_CONFIG_MAX_DEVICES &&
               config.n_settings <= GN_CONFIG_MAX_DEVICES);
    for (int i = 0; i < config.n_devices; i++)
        FUZZ_CHECK(config.devices[i].name[0] &&
                   memchr(config.devices[i].name, 0, sizeof config.devices[i].name));
    for (int i = 0; i < config.n_tenants; i++) {
        const struct gn_tenant_rules *r = &config.tenants[i].rules;
        FUZZ_CHECK(r->name[0] && memchr(r->name, 0, sizeof r->name) && r->weight);
        FUZZ_CHECK(r->n_uids <= GN_TENANT_MAX_IDS && r->n_gids <= GN_TENANT_MAX_IDS &&
                   r->n_devices <= GN_TENANT_MAX_DEVICES && r->n_token == 0);
    }
    gn_config_fini(&config);
    return 0;
}
