/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads recorded workloads: CSV with a line of names, or one JSON object per line, with start_ns,
 * vgpu, tenant and kernel_ns. Other columns and fields are ignored, so that a recorder may add
 * some. Each mistake is one sentence that names the line. `gantry sim` calls it on its main thread.
 * It never runs the workload.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "sim/workload.h"

#define MAX_COLUMNS    32
#define MAX_LINE_BYTES 4096

enum column { START, VGPU, TENANT, KERNEL, N_COLUMNS };

static const char *const names[N_COLUMNS] = {"start_ns", "vgpu", "tenant", "kernel_ns"};

/* The values of one line. */
struct row {
    uint64_t start_ns, kernel_ns;
    char vgpu[GN_SIM_NAME_BYTES], tenant[GN_SIM_NAME_BYTES];
};

struct known {
    char name[GN_SIM_NAME_BYTES];
    uint32_t index;
};

struct reader {
    struct gn_sim_workload *w;
    const char *path;
    uint32_t line;
    bool json;
    int columns[MAX_COLUMNS]; /* enum column, or -1 */
    int n_columns;            /* 0: the line of names has not been read yet */
    void *vgpus;              /* a tree of struct known */
    size_t room_requests, room_vgpus;
    uint32_t *program_of; /* Maps a tenant's index to the program that holds its recorded vGPUs. */
    struct gn_error *err;
};

static int complain(struct reader *r, const char *fix, const char *what, const char *quoted)
{
    return gn_fail(r->err, EBADMSG, fix, "%s:%" PRIu32 ": %s%s%.100s%s", r->path, r->line, what,
                   quoted ? " \"" : "", quoted ? quoted : "", quoted ? "\"" : "");
}

static int out_of_memory(struct reader *r)
{
    return gn_fail(r->err, ENOMEM, "record less", "out of memory at %s:%" PRIu32, r->path, r->line);
}

/* ---- one line */

static bool parse_number(const char *text, uint64_t *ret)
{
    const size_t n = strlen(text);
    if (!n || n > 18 || strspn(text, "0123456789") != n)
        return false;
    *ret = strtoull(text, NULL, 10);
    return *ret <= GN_SIM_MAX_NS;
}

static const char a_number[] =
    "write whole nanoseconds from the recording's start, at most 30 days";

static int set_column(struct reader *r, struct row *row, enum column c, const char *value)
{
    struct gn_error inner = {{0}, {0}};
    uint64_t *number = c == START ? &row->start_ns : &row->kernel_ns;
    char *name = c == VGPU ? row->vgpu : row->tenant;
    if (c == START || c == KERNEL)
        return parse_number(value, number) ? 0
                                           : complain(r, a_number, "this is not a time:", value);
    if (gn_sim_check_name(value, &inner))
        return complain(r, inner.fix, "this is not a name:", value);
    memcpy(name, value, strlen(value) + 1);
    return 0;
}

static int read_names(struct reader *r, char *line)
{
    bool have[N_COLUMNS] = {false};
    for (char *name; (name = strsep(&line, ","));) {
        int column = -1;
        for (int c = 0; c < N_COLUMNS; c++)
            if (strcmp(name, names[c]) == 0)
                column = c;
        if (r->n_columns == MAX_COLUMNS)
            return complain(r, "keep the four that count", "too many columns before", name);
        if (column >= 0 && have[column])
            return complain(r, "keep one of them", "two columns are called", name);
        if (column >= 0)
            have[column] = true;
        r->columns[r->n_columns++] = column;
    }
    for (int c = 0; c < N_COLUMNS; c++)
        if (!have[c])
            return complain(r, "begin with a line of names: start_ns,vgpu,tenant,kernel_ns",
                            "there is no column", names[c]);
    return 0;
}

static int read_csv(struct reader *r, char *line, struct row *row)
{
    int at = 0;
    for (char *value; (value = strsep(&line, ",")); at++) {
        if (at == r->n_columns)
            return complain(r, "write as many values as the first line has names",
                            "one value too many:", value);
        int rc = r->columns[at] >= 0 ? set_column(r, row, (enum column)r->columns[at], value) : 0;
        if (rc)
            return rc;
    }
    return at == r->n_columns ? 0
                              : complain(r, "write as many values as the first line has names",
                                         "this line has too few values", NULL);
}

static int read_json(struct reader *r, const char *line, struct row *row)
{
    json_error_t where;
    json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, &where);
    int rc = json_is_object(o)
                 ? 0
                 : complain(r, "write one JSON object a line", "this is not a JSON object", NULL);
    for (int c = 0; rc == 0 && c < N_COLUMNS; c++) {
        const json_t *value = json_object_get(o, names[c]);
        char number[32] = "";
        if (!value)
            rc = complain(r, "the fields are start_ns, vgpu, tenant and kernel_ns", "there is no",
                          names[c]);
        else if (json_is_integer(value) && snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT,
                                                    json_integer_value(value)))
            rc = set_column(r, row, (enum column)c, number);
        else if (json_is_string(value) && (c == VGPU || c == TENANT))
            rc = set_column(r, row, (enum column)c, json_string_value(value));
        else
            rc = complain(r, a_number, "this is neither a name nor a whole number:", names[c]);
    }
    json_decref(o);
    return rc;
}

/* ---- the meaning of a line */

static int compare_known(const void *a, const void *b)
{
    return strcmp(((const struct known *)a)->name, ((const struct known *)b)->name);
}

/* Returns the program that holds the recorded vGPUs of a tenant. */
static int program_of(struct reader *r, uint32_t tenant, uint32_t *ret)
{
    struct gn_sim_workload *w = r->w;
    char name[GN_SIM_NAME_BYTES];
    if (r->program_of[tenant] == GN_SIM_NONE) {
        if (w->tenants[tenant].copies > 1)
            return complain(r, "leave out its copies", "a recorded tenant is one, unlike",
                            w->tenants[tenant].name);
        snprintf(name, sizeof name, "%.57s.trace", w->tenants[tenant].name);
        struct gn_error inner = {{0}, {0}};
        if (gn_sim_workload_new_program(w, name, tenant, &inner))
            return complain(r, inner.fix, inner.what, NULL);
        struct gn_sim_program *p = &w->programs[w->n_programs - 1];
        p->recorded = true;
        p->n_vgpus = 0;
        r->program_of[tenant] = w->n_programs - 1;
    }
    *ret = r->program_of[tenant];
    return 0;
}

static int find_tenant(struct reader *r, const char *name, uint32_t *ret)
{
    struct gn_error inner = {{0}, {0}};
    *ret = gn_sim_workload_find_tenant(r->w, name);
    if (*ret != GN_SIM_NONE)
        return 0;
    if (gn_sim_workload_new_tenant(r->w, name, &inner))
        return complain(r, inner.fix, inner.what, NULL);
    *ret = r->w->n_tenants - 1;
    return 0;
}

static int new_vgpu(struct reader *r, const struct row *row, const struct known *key)
{
    struct gn_sim_trace *t = &r->w->trace;
    uint32_t tenant = 0, program = 0;
    int rc = find_tenant(r, row->tenant, &tenant);
    if (rc == 0)
        rc = program_of(r, tenant, &program);
    if (rc)
        return rc;
    if (t->n_vgpus == GN_SIM_MAX_VGPUS)
        return complain(r, "record fewer", "more than 100,000 vGPUs, with", row->vgpu);
    if (t->n_vgpus == r->room_vgpus) {
        const size_t room = r->room_vgpus ? 2 * r->room_vgpus : 64;
        struct gn_sim_recorded_vgpu *grown = realloc(t->vgpus, room * sizeof *grown);
        if (!grown)
            return out_of_memory(r);
        t->vgpus = grown;
        r->room_vgpus = room;
    }
    struct known *k = malloc(sizeof *k);
    if (!k)
        return out_of_memory(r);
    *k = *key;
    if (!tsearch(k, &r->vgpus, compare_known)) {
        free(k);
        return out_of_memory(r);
    }
    t->vgpus[t->n_vgpus++] = (struct gn_sim_recorded_vgpu){.tenant = tenant, .first = GN_SIM_NONE};
    r->w->programs[program].n_vgpus++;
    return 0;
}

static int find_vgpu(struct reader *r, const struct row *row, uint32_t *ret)
{
    struct known key = {.index = r->w->trace.n_vgpus};
    memcpy(key.name, row->vgpu, sizeof key.name);
    struct known **at = tfind(&key, &r->vgpus, compare_known);
    *ret = at ? (*at)->index : key.index;
    return at ? 0 : new_vgpu(r, row, &key);
}

static int add_row(struct reader *r, const struct row *row)
{
    struct gn_sim_trace *t = &r->w->trace;
    uint32_t vgpu;
    if (!row->kernel_ns)
        return complain(r, "leave it out", "a kernel of no time", NULL);
    int rc = find_vgpu(r, row, &vgpu);
    if (rc)
        return rc;
    if (strcmp(r->w->tenants[t->vgpus[vgpu].tenant].name, row->tenant) != 0)
        return complain(r, "a vGPU has one tenant", "a second tenant of the vGPU", row->vgpu);
    if (t->n_requests == GN_SIM_MAX_REQUESTS)
        return complain(r, "record less", "more than 10,000,000 launches", NULL);
    if (t->n_requests == r->room_requests) {
        const size_t room = r->room_requests ? 2 * r->room_requests : 1024;
        struct gn_sim_request *grown = realloc(t->requests, room * sizeof *grown);
        if (!grown)
            return out_of_memory(r);
        t->requests = grown;
        r->room_requests = room;
    }
    t->requests[t->n_requests++] = (struct gn_sim_request){.start_ns = row->start_ns,
                                                           .kernel_ns = row->kernel_ns,
                                                           .vgpu = vgpu,
                                                           .next = t->n_requests};
    return 0;
}

/* Sorts by time, then by line: `next` still holds the line's index. */
static int compare_requests(const void *a, const void *b)
{
    const struct gn_sim_request *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->next < y->next ? -1 : x->next > y->next;
}

/* Links each vGPU's requests to a list in the order of time. */
static void link_requests(struct gn_sim_trace *t)
{
    if (t->n_requests)
        qsort(t->requests, t->n_requests, sizeof *t->requests, compare_requests);
    for (uint32_t i = t->n_requests; i-- > 0;) {
        struct gn_sim_recorded_vgpu *v = &t->vgpus[t->requests[i].vgpu];
        t->requests[i].next = v->first;
        v->first = i;
    }
}

/* line: as fgets returns it; whole: the line is complete. */
static int read_line(struct reader *r, char *line, bool whole)
{
    struct row row = {.start_ns = 0};
    size_t n = strlen(line);
    if (!whole || !n)
        return complain(r, "a line has up to 4096 characters", "this is not a line of text", NULL);
    while (n && strchr(" \t\r\n", line[n - 1]))
        line[--n] = 0;
    if (!n || *line == '#')
        return 0;
    if (!r->n_columns && !r->json && *line == '{')
        r->json = true;
    if (!r->json && !r->n_columns)
        return read_names(r, line);
    int rc = r->json ? read_json(r, line, &row) : read_csv(r, line, &row);
    return rc ? rc : add_row(r, &row);
}

int gn_sim_trace_parse(struct gn_sim_workload *w, const char *path, FILE *f, struct gn_error *err)
{
    struct reader r = {.w = w, .path = path, .err = err};
    char line[MAX_LINE_BYTES + 2];
    int rc = 0;
    r.program_of = malloc(GN_SIM_MAX_TENANTS * sizeof *r.program_of);
    if (!r.program_of)
        return out_of_memory(&r);
    memset(r.program_of, 0xff, GN_SIM_MAX_TENANTS * sizeof *r.program_of);
    while (rc == 0 && fgets(line, sizeof line, f)) {
        r.line++;
        rc = read_line(&r, line, strchr(line, '\n') || feof(f));
    }
    if (rc == 0 && ferror(f))
        rc = gn_fail(err, errno, NULL, "cannot read the recorded workload %.300s: %s", path,
                     strerror(errno));
    if (rc == 0 && !w->trace.n_requests)
        rc = gn_fail(err, EBADMSG, NULL, "the recorded workload %.300s holds no launches", path);
    if (rc == 0)
        link_requests(&w->trace);
    free(r.program_of);
    tdestroy(r.vgpus, free);
    return rc;
}

int gn_sim_trace_read(struct gn_sim_workload *w, const char *path, struct gn_error *err)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return gn_fail(err, errno, NULL, "cannot read the recorded workload %.300s: %s", path,
                       strerror(errno));
    int rc = gn_sim_trace_parse(w, path, f, err);
    fclose(f);
    return rc;
}
