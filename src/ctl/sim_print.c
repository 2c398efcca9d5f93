/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the results of `gantry sim` for people: a single run in full with a bar chart, several
 * side by side. Main thread.
 */
#include <stdio.h>
#include <string.h>

#include "ctl/sim_output.h"
#include "ctl/table.h"

#define BAR 30

static void add_text(struct gn_table *t, const char *format, double a)
{
    char text[32];
    snprintf(text, sizeof text, format, a);
    gn_table_add(t, text);
}

static void add_percent(struct gn_table *t, double part)
{
    add_text(t, "%.1f%%", 100 * part);
}

static void add_ns(struct gn_table *t, bool known, uint64_t ns)
{
    char text[24];
    gn_table_add(t, known ? gn_sim_format_ns(ns, text) : NULL);
}

static void add_waits(struct gn_table *t, const struct gn_sim_waits *w)
{
    add_ns(t, w->n, gn_sim_waits_mean(w));
    add_ns(t, w->n, gn_sim_waits_percentile(w, 95));
    add_ns(t, w->n || w->longest_ns, w->longest_ns);
}

static void add_tenant(struct gn_table *t, const struct gn_sim_tenant *tenant)
{
    char copies[16] = "", name[GN_SIM_NAME_BYTES + sizeof copies];
    if (tenant->copies > 1)
        snprintf(copies, sizeof copies, " x%u", (unsigned)tenant->copies);
    snprintf(name, sizeof name, "%s%s", tenant->name, copies);
    gn_table_add(t, name);
}

static void add_ratio(struct gn_table *t, const struct gn_sim_tenant_result *r)
{
    char text[48] = "";
    if (r->least_ratio >= 0 && r->most_ratio - r->least_ratio < 0.005)
        snprintf(text, sizeof text, "%.2f", r->least_ratio);
    else if (r->least_ratio >= 0)
        snprintf(text, sizeof text, "%.2f..%.2f", r->least_ratio, r->most_ratio);
    gn_table_add(t, text);
}

/* Draws '=' up to the share and '|' at the entitlement; `most` is the value at the full width. */
static void add_bar(struct gn_table *t, double share, double entitled, double most)
{
    char bar[BAR + 2];
    const int filled = most > 0 ? (int)(share / most * BAR + 0.5) : 0;
    const int mark = most > 0 ? (int)(entitled / most * BAR + 0.5) : 0;
    memset(bar, ' ', sizeof bar);
    memset(bar, '=', (size_t)filled);
    bar[mark] = '|';
    bar[(filled > mark + 1 ? filled : mark + 1)] = 0;
    gn_table_add_picture(t, bar);
}

static int print_tenants(const struct gn_sim_workload *w, const struct gn_sim_result *r)
{
    static const struct gn_table_column columns[] = {
        {"TENANT", false},  {"WEIGHT", true},
        {"VGPUS", true},    {"SHARE", true},
        {"ENTITLED", true}, {"OF THAT", true},
        {"WAIT", true},     {"95%", true},
        {"LONGEST", true},  {"= SHARE  | ENTITLED", false},
    };
    struct gn_table t;
    double most = 0;
    gn_table_init(&t, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < r->n_tenants; i++) {
        most = r->tenants[i].share > most ? r->tenants[i].share : most;
        most = r->tenants[i].entitled > most ? r->tenants[i].entitled : most;
    }
    for (uint32_t i = 0; i < r->n_tenants; i++) {
        const struct gn_sim_tenant_result *one = &r->tenants[i];
        add_tenant(&t, &w->tenants[i]);
        gn_table_add_number(&t, w->tenants[i].weight);
        gn_table_add_number(&t, one->usage.n_vgpus);
        add_percent(&t, one->share);
        add_percent(&t, one->entitled);
        add_ratio(&t, one);
        add_waits(&t, &one->usage.waits);
        add_bar(&t, one->share, one->entitled, most);
    }
    int rc = gn_table_print(&t);
    gn_table_fini(&t);
    return rc;
}

/*
 * Whether the programs need a table of their own: tenants have several programs, or a program has
 * launched more work than was executed.
 */
static bool programs_tell_more(const struct gn_sim_result *r)
{
    bool left = false;
    for (uint32_t i = 0; i < r->n_programs; i++)
        left = left || r->programs[i].left;
    return left || r->n_programs != r->n_tenants;
}

static int print_programs(const struct gn_sim_workload *w, const struct gn_sim_result *r)
{
    static const struct gn_table_column columns[] = {
        {"PROGRAM", false}, {"TENANT", false}, {"VGPUS", true},
        {"SHARE", true},    {"KERNELS", true}, {"NOT BEGUN", true},
        {"WAIT", true},     {"95%", true},     {"LONGEST", true},
    };
    struct gn_table t;
    gn_table_init(&t, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < r->n_programs; i++) {
        const struct gn_sim_usage *u = &r->programs[i];
        gn_table_add(&t, w->programs[i].name);
        add_tenant(&t, &w->tenants[w->programs[i].tenant]);
        gn_table_add_number(&t, u->n_vgpus);
        add_percent(&t, (double)u->used_ns / (double)r->time_ns / r->n_devices);
        gn_table_add_number(&t, u->kernels);
        gn_table_add_number(&t, u->left);
        add_waits(&t, &u->waits);
    }
    putchar('\n');
    int rc = gn_table_print(&t);
    gn_table_fini(&t);
    return rc;
}

/* One line per policy. */
static int print_summary(const struct gn_ctl_simulated *s)
{
    static const struct gn_table_column columns[] = {
        {"POLICY", false}, {"FAIRNESS", true},  {"BUSY", true}, {"IDLEST", true},
        {"WASTED", true},  {"WAIT", true},      {"95%", true},  {"LONGEST", true},
        {"TURNS", true},   {"DECISIONS", true},
    };
    struct gn_table t;
    gn_table_init(&t, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < s->n_runs; i++) {
        const struct gn_sim_result *r = &s->runs[i];
        const double whole = (double)r->time_ns * r->n_devices;
        uint64_t busy = 0, wasted = 0, least = UINT64_MAX;
        for (uint32_t k = 0; k < r->n_devices; k++) {
            busy += r->devices[k].busy_ns;
            wasted += r->devices[k].wasted_ns;
            least = r->devices[k].busy_ns < least ? r->devices[k].busy_ns : least;
        }
        char name[48];
        gn_table_add(&t, gn_ctl_sim_name(s, i, name));
        if (r->fairness < 0)
            gn_table_add(&t, NULL);
        else
            add_text(&t, "%.3f", r->fairness);
        add_percent(&t, (double)busy / whole);
        add_percent(&t, (double)least / (double)r->time_ns);
        add_percent(&t, (double)wasted / whole);
        add_waits(&t, &r->all.waits);
        gn_table_add_number(&t, r->all.turns);
        gn_table_add_number(&t,
                            r->decisions.n_picks + r->decisions.n_yields + r->decisions.n_wakes);
    }
    int rc = gn_table_print(&t);
    gn_table_fini(&t);
    return rc;
}

/* ---- memory: one line per run; for a single run also one per program */

static void add_size(struct gn_table *t, uint64_t bytes)
{
    char text[32];
    static const char units[] = "BKMGT";
    double n = (double)bytes;
    size_t u = 0;
    for (; n >= 1024 && u < 4; u++)
        n /= 1024;
    snprintf(text, sizeof text, n < 10 && u ? "%.1f%c" : "%.0f%c", n, units[u]);
    gn_table_add(t, text);
}

static int print_memory(const struct gn_ctl_simulated *s)
{
    static const struct gn_table_column columns[] = {
        {"MEMORY", false}, {"SWAPS", true},  {"SLOTS IN", true}, {"IN", true},
        {"OUT", true},     {"COPIER", true}, {"A TURN", true},
    };
    struct gn_table t;
    gn_table_init(&t, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < s->n_runs; i++) {
        const struct gn_sim_result *r = &s->runs[i];
        char name[48];
        uint64_t copying_ns = 0;
        for (uint32_t k = 0; k < r->n_devices; k++)
            copying_ns += r->devices[k].copying_ns;
        snprintf(name, sizeof name, "%s", r->place->name);
        gn_table_add(&t, s->n_runs > 1 ? gn_ctl_sim_name(s, i, name) : name);
        gn_table_add_number(&t, r->all.swaps);
        gn_table_add_number(&t, r->all.copied_in);
        add_size(&t, r->all.copied_in * r->slot_bytes);
        add_size(&t, r->all.copied_out * r->slot_bytes);
        add_percent(&t, (double)copying_ns / (double)r->time_ns / r->n_devices);
        add_text(&t, "%.2f", r->all.turns ? (double)r->all.copied_in / (double)r->all.turns : 0);
    }
    putchar('\n');
    int rc = gn_table_print(&t);
    gn_table_fini(&t);
    return rc;
}

static int print_program_memory(const struct gn_sim_workload *w, const struct gn_sim_result *r)
{
    static const struct gn_table_column columns[] = {
        {"PROGRAM", false}, {"TENANT", false}, {"VGPUS", true}, {"MEMORY", true},
        {"SWAPS", true},    {"IN", true},      {"OUT", true},   {"OTHERS BETWEEN", true},
    };
    struct gn_table t;
    gn_table_init(&t, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < r->n_programs; i++) {
        const struct gn_sim_usage *u = &r->programs[i];
        gn_table_add(&t, w->programs[i].name);
        add_tenant(&t, &w->tenants[w->programs[i].tenant]);
        gn_table_add_number(&t, u->n_vgpus);
        add_size(&t, w->programs[i].memory_bytes);
        gn_table_add_number(&t, u->swaps);
        add_size(&t, u->copied_in * r->slot_bytes);
        add_size(&t, u->copied_out * r->slot_bytes);
        gn_table_add_number(&t, u->others_between);
    }
    putchar('\n');
    int rc = gn_table_print(&t);
    gn_table_fini(&t);
    return rc;
}

/* ---- side by side: one column per run */

enum side { SHARES, WAITS, COSTS };

static void add_cell(struct gn_table *t, const struct gn_ctl_simulated *s, enum side side,
                     uint32_t run, uint32_t i)
{
    char text[64], mean[24], longest[24];
    if (side == COSTS) {
        const struct gn_sim_decisions *d =
            i < GN_CTL_COSTS ? &s->costs[run][i] : &s->runs[run].decisions;
        add_text(t, "%.0fns", gn_ctl_sim_cost(d));
        return;
    }
    const struct gn_sim_tenant_result *one = &s->runs[run].tenants[i];
    const struct gn_sim_waits *waits = &one->usage.waits;
    if (side == SHARES && one->least_ratio < 0)
        snprintf(text, sizeof text, "%.1f%%", 100 * one->share);
    else if (side == SHARES)
        snprintf(text, sizeof text, "%.1f%% %.2f", 100 * one->share, one->share / one->entitled);
    else
        snprintf(text, sizeof text, "%s %s",
                 waits->n ? gn_sim_format_ns(gn_sim_waits_percentile(waits, 95), mean) : "-",
                 waits->n || waits->longest_ns ? gn_sim_format_ns(waits->longest_ns, longest)
                                               : "-");
    gn_table_add(t, text);
}

static int print_side_by_side(const struct gn_ctl_simulated *s, enum side side)
{
    static const char *const titles[] = {"TENANT", "TENANT", "VGPUS"};
    struct gn_table_column columns[1 + GN_CTL_MAX_RUNS] = {{titles[side], false}};
    char names[GN_CTL_MAX_RUNS][48];
    struct gn_table t;
    const uint32_t n = side == COSTS ? GN_CTL_COSTS + 1 : s->w->n_tenants;
    for (uint32_t run = 0; run < s->n_runs; run++)
        columns[1 + run] = (struct gn_table_column){gn_ctl_sim_name(s, run, names[run]), true};
    gn_table_init(&t, columns, 1 + (int)s->n_runs);
    for (uint32_t i = 0; i < n; i++) {
        if (side != COSTS)
            add_tenant(&t, &s->w->tenants[i]);
        else if (i < GN_CTL_COSTS)
            gn_table_add_number(&t, s->cost_vgpus[i]);
        else
            gn_table_add(&t, "this run");
        for (uint32_t run = 0; run < s->n_runs; run++)
            add_cell(&t, s, side, run, i);
    }
    int rc = gn_table_print(&t);
    gn_table_fini(&t);
    return rc;
}

static void print_head(const struct gn_sim_workload *w)
{
    char time[24], slice[24], spin[24];
    printf("%u device%s, %u vGPU%s, %s; slice %s, spin %s, seed %lu\n\n", (unsigned)w->n_devices,
           w->n_devices == 1 ? "" : "s", (unsigned)gn_sim_workload_vgpus(w),
           gn_sim_workload_vgpus(w) == 1 ? "" : "s", gn_sim_format_ns(w->time_ns, time),
           gn_sim_format_ns(w->slice_ns, slice), gn_sim_format_ns(w->spin_ns, spin),
           (unsigned long)w->seed);
}

int gn_ctl_sim_print(const struct gn_ctl_simulated *s)
{
    int rc;
    print_head(s->w);
    if (s->n_runs == 1) {
        rc = print_tenants(s->w, &s->runs[0]);
        if (rc == 0 && programs_tell_more(&s->runs[0]))
            rc = print_programs(s->w, &s->runs[0]);
    } else {
        puts("Share of all devices, and of what the tenant is entitled to (1: exactly that)");
        rc = print_side_by_side(s, SHARES);
        puts("\nWaits: the 95th percentile and the longest");
        rc = rc ? rc : print_side_by_side(s, WAITS);
    }
    putchar('\n');
    rc = rc ? rc : print_summary(s);
    if (rc == 0 && s->runs[0].place && s->n_runs == 1)
        rc = print_program_memory(s->w, &s->runs[0]);
    if (rc == 0 && s->runs[0].place)
        rc = print_memory(s);
    if (rc == 0 && s->cost) {
        puts("\nA decision on this machine's real clock: it varies from run to run");
        rc = print_side_by_side(s, COSTS);
    }
    return rc;
}
