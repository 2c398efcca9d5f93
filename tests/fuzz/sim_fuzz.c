/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads of `gantry sim`: any text describes one, or is refused by one sentence; and what is
 * described can be simulated. The first byte says what the rest is: f a file, t a recording, w the
 * words of a tenant, p those of a program. */
#include "sim/sim.h"

#include <stdio.h>

#include "fuzz.h"

#define MAX_VGPUS 64
#define TIME_NS   100000

static void simulate(struct gn_sim_workload *w)
{
    struct gn_sim_result r;
    struct gn_error err = {{0}, {0}};
    uint64_t used = 0, busy = 0;
    w->time_ns = TIME_NS;
    w->n_devices = w->n_devices > 3 ? 3 : w->n_devices;
    if (gn_sim_workload_vgpus(w) > MAX_VGPUS)
        return;
    FUZZ_CHECK(gn_sim_run(w, w->policies[0], w->places[0], false, &r, &err) == 0);
    for (uint32_t i = 0; i < r.n_programs; i++)
        used += r.programs[i].used_ns;
    for (uint32_t i = 0; i < r.n_devices; i++) {
        FUZZ_CHECK(r.devices[i].busy_ns + r.devices[i].wasted_ns <= TIME_NS);
        FUZZ_CHECK(r.devices[i].copying_ns <= TIME_NS);
        busy += r.devices[i].busy_ns;
    }
    FUZZ_CHECK(used == busy && r.all.used_ns == used);
    gn_sim_result_fini(&r);
}

/* Options are quoted as they are, as everywhere. */
static void one_line(char *text)
{
    for (; *text; text++)
        if (*text == '\n')
            *text = ' ';
}

static int describe(struct gn_sim_workload *w, char kind, char *text, size_t n,
                    struct gn_error *err)
{
    FILE *f;
    int rc;
    switch (kind) {
    case 'f':
        rc = gn_sim_workload_parse(w, "lab.sim", text, n, err);
        FUZZ_CHECK(rc == 0 || strncmp(err->what, "lab.sim:", 8) == 0);
        w->trace_path[0] = 0; /* opens nothing */
        return rc;
    case 't':
        f = n ? fmemopen(text, n, "r") : NULL;
        rc = f ? gn_sim_trace_parse(w, "day.csv", f, err) : -1;
        if (f)
            fclose(f);
        return rc;
    case 'w':
        one_line(text);
        return gn_sim_workload_add_tenant(w, text, err);
    default:
        one_line(text);
        rc = gn_sim_workload_add_tenant(w, "t", err);
        return rc ? rc : gn_sim_workload_add_program(w, text, err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gn_sim_workload w;
    struct gn_error err = {{0}, {0}};
    if (!size)
        return 0;
    char *text = malloc(size);
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    gn_sim_workload_init(&w);
    int rc = describe(&w, (char)data[0], text, size - 1, &err);
    if (rc == 0)
        rc = gn_sim_workload_finish(&w, &err);
    FUZZ_CHECK(memchr(err.what, 0, sizeof err.what) && memchr(err.fix, 0, sizeof err.fix));
    FUZZ_CHECK(!strchr(err.what, '\n'));
    if (rc == 0)
        simulate(&w);
    gn_sim_workload_fini(&w);
    free(text);
    return 0;
}
