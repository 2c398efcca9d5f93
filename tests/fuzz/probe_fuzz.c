/* SPDX-License-Identifier: Apache-2.0 */
/* What a probe tells gantryd of its driver: any bytes instead. gantryd starts with what is sound in
 * them, or says why not. */
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/devices.h"
#include "daemon/vgpu/spawn.h"
#include "fuzz.h"
#include "link/frame.h"

static const uint8_t *said;
static size_t n_said;

int gn_worker_spawn(const char *path, char *const argv[], enum gn_wall_mode walls, int *ret_socket,
                    pid_t *ret_pid, struct gn_error *err)
{
    int ends[2];
    struct fuzz f = fuzz_of(said, n_said);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return gn_fail(err, errno, NULL, "cannot make a socket");
    while (f.left) {
        union {
            struct gn_probe_driver driver;
            struct gn_probe_platform platform;
            struct gn_probe_device device;
            struct gn_link_error error;
            char bytes[256];
        } u;
        uint8_t what = fuzz_u8(&f), how = fuzz_u8(&f);
        uint16_t op = GN_PROBE_DRIVER + what % 5;
        const size_t sizes[] = {sizeof u.driver, sizeof u.platform, sizeof u.device, 0,
                                sizeof u.error};
        memset(&u, 0, sizeof u);
        size_t n = sizes[what % 5];
        if (what % 5 == 4)
            op = GN_LINK_ERROR;
        if (how & 1) /* the front of the struct is the input's, the rest zero */
            fuzz_take(&f, &u, how >> 1 < n ? how >> 1 : n);
        else if (how & 2)
            memset(&u, 'x', sizeof u);
        else
            memcpy(u.bytes + (what % 5 == 2 ? 40 : what % 5 == 1 ? 8 : 0), "name", 4);
        if (what & 0x80)
            n = how;
        if (what & 0x40)
            op = how;
        (void)gn_frame_send(ends[1], 0, op, 0, 0, &u, n, &ends[1], what >> 5 & 1);
    }
    close(ends[1]);
    /* The next probe says the rest. */
    said += n_said / 2;
    n_said -= n_said / 2;
    *ret_socket = ends[0];
    *ret_pid = 0x7ffffff0; /* nobody's */
    return 0;
}

int gn_worker_find(char *ret_path, size_t n, struct gn_error *err)
{
    return snprintf(ret_path, n, "nowhere") > 0 ? 0 : -1;
}

void gn_raise_descriptor_limit(void)
{
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gn_machine m;
    static struct gn_config config;
    struct gn_error err = {{0}, {0}};
    int lowest = dup(0), never = eventfd(0, EFD_CLOEXEC);
    close(lowest);
    memset(&m, 0, sizeof m);
    memset(&config, 0, sizeof config);
    said = data;
    n_said = size;
    if (size && data[0] & 1 &&
        gn_selector_parse("name:1,present-as=gpu", &config.devices[0], &err) == 0)
        config.n_devices = 1;
    int rc = gn_machine_probe(&m, &config, never, &err);
    FUZZ_CHECK(rc == 0 || err.what[0]);
    if (rc == 0) {
        FUZZ_CHECK(m.n_platforms && m.n_platforms <= GN_LINK_MAX_PLATFORMS);
        for (uint32_t i = 0; i < m.n_platforms; i++) {
            FUZZ_CHECK(m.platforms[i].driver < m.n_drivers);
            FUZZ_CHECK(m.platforms[i].n_devices <= GN_WORKER_MAX_DEVICES);
        }
    }
    gn_machine_fini(&m);
    close(never);
    int after = dup(0);
    FUZZ_CHECK(after == lowest);
    close(after);
    return 0;
}
