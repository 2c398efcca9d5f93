/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry inspect`: reads a checkpoint to its end, which verifies every byte, and collects the data
 * to show. Needs no gantryd and loads no driver. The file is untrusted, so the limits below bound
 * the memory that it can use. Main thread.
 */
#include "ctl/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/text.h"
#include "stream/known.h"

/* Each page costs one bit in two bitmaps: at most 64 MiB in all. */
static const struct gn_stream_limits limits = {.memory_bytes = UINT64_C(1) << 40,
                                               .entries_bytes = UINT64_C(64) << 30,
                                               .n_objects = 1u << 22,
                                               .n_memories = 1u << 22,
                                               .n_rounds = 1024,
                                               .body_bytes = GN_STREAM_MOST_BODY_BYTES};

struct loading {
    struct gn_inspected *f;
    struct gn_known_ids objects, memories; /* map ids to indices in f's arrays */
};

/* Adds a zeroed element at the end; NULL: no memory. The array doubles at powers of two. */
static void *one_more(void *array, uint32_t *n, size_t size)
{
    char **all = array;
    if ((*n & (*n - 1)) == 0) {
        char *more = realloc(*all, (*n ? 2 * (size_t)*n : 1) * size);
        if (!more)
            return NULL;
        *all = more;
    }
    return memset(*all + (size_t)(*n)++ * size, 0, size);
}

static int no_memory(struct gn_error *err)
{
    return gn_fail(err, ENOMEM, NULL, "out of memory");
}

/* The text is untrusted: control characters are removed so that it is safe to print. */
static void take_text(const struct gn_stream_entry *e, uint32_t part, char ret[GN_INSPECT_TEXT])
{
    struct gn_stream_part p;
    if (!gn_stream_find_part(e, part, &p))
        return;
    size_t n = p.n < GN_INSPECT_TEXT - 1 ? p.n : GN_INSPECT_TEXT - 1;
    memcpy(ret, p.bytes, n);
    gn_text_clean(ret, n);
    ret[n] = 0;
}

static int take_device(struct gn_inspected *f, const struct gn_stream_entry *e,
                       struct gn_error *err)
{
    struct gn_inspected_device *d = one_more(&f->devices, &f->n_devices, sizeof *d);
    struct gn_stream_entry parts = *e;
    struct gn_stream_part p;
    if (!d)
        return no_memory(err);
    d->index = e->id;
    d->has_state = gn_stream_copy_part(e, GN_PART_STATE, &d->state, sizeof d->state);
    take_text(e, GN_PART_NAME, d->name);
    take_text(e, GN_PART_VENDOR, d->vendor);
    take_text(e, GN_PART_TYPE, d->type);
    take_text(e, GN_PART_VERSION, d->version);
    take_text(e, GN_PART_DRIVER_VERSION, d->driver);
    while (gn_stream_next_part(&parts, &p))
        d->n_facts += p.part == GN_PART_FACT;
    return 0;
}

/* An object that appears again replaces its earlier entry. */
static int take_object(struct loading *l, const struct gn_stream_entry *e, struct gn_error *err)
{
    struct gn_inspected *f = l->f;
    uint32_t *at = gn_known_find(&l->objects, e->id);
    struct gn_inspected_object *o =
        at ? &f->objects[*at] : one_more(&f->objects, &f->n_objects, sizeof *o);
    if (!o || gn_known_put(&l->objects, e->id, (uint32_t)(o - f->objects)) < 0)
        return no_memory(err);
    *o = (struct gn_inspected_object){.id = e->id, .kind = e->kind, .bytes = e->bytes};
    return 0;
}

static int take_entry(struct loading *l, enum gn_stream_table table,
                      const struct gn_stream_entry *e, struct gn_error *err)
{
    struct gn_inspected *f = l->f;
    struct gn_inspected_command *c;
    switch (table) {
    case GN_STREAM_TENANT:
        f->has_tenant =
            gn_stream_copy_part(e, GN_PART_STATE, &f->tenant_state, sizeof f->tenant_state);
        f->vgpu = e->id;
        take_text(e, GN_PART_NAME, f->tenant);
        return 0;
    case GN_STREAM_DEVICES:
        return take_device(f, e, err);
    case GN_STREAM_OBJECTS:
        return take_object(l, e, err);
    case GN_STREAM_COMMANDS:
        c = one_more(&f->commands, &f->n_commands, sizeof *c);
        if (!c)
            return no_memory(err);
        c->id = e->id;
        c->op = e->kind;
        c->queue = e->n_refs ? e->refs[0] : 0;
        c->has_state = gn_stream_copy_part(e, GN_PART_STATE, &c->state, sizeof c->state);
        return 0;
    case GN_STREAM_EVENTS:
        f->n_events++;
        return 0;
    case GN_STREAM_CALLS:
        f->n_calls++;
        return 0;
    case GN_STREAM_MAPS:
        f->n_maps++;
        return 0;
    case GN_STREAM_SESSION:
    case GN_STREAM_N_TABLES:
        break;
    }
    return 0;
}

static int take_memories(struct loading *l, const struct gn_stream_section *s, struct gn_error *err)
{
    struct gn_inspected *f = l->f;
    for (uint32_t i = 0; i < s->n_memories; i++) {
        struct gn_inspected_memory *m = one_more(&f->memories, &f->n_memories, sizeof *m);
        if (!m)
            return no_memory(err);
        m->m = s->memories[i];
        m->n_pages = m->m.bytes / f->about.page_bytes + (m->m.bytes % f->about.page_bytes != 0);
        m->zero = calloc(1, m->n_pages / 8 + 1);
        if (!m->zero || gn_known_put(&l->memories, m->m.id, f->n_memories - 1) < 0)
            return no_memory(err);
    }
    return 0;
}

static void take_gone(struct loading *l, const struct gn_stream_section *s)
{
    for (uint32_t i = 0; i < s->n_gone; i++) {
        bool object = s->gone[i].what == GN_STREAM_GONE_OBJECT;
        struct gn_known_ids *ids = object ? &l->objects : &l->memories;
        uint32_t *at = gn_known_find(ids, s->gone[i].id);
        if (at && object)
            l->f->objects[*at].gone = true;
        if (at && !object) {
            struct gn_inspected_memory *m = &l->f->memories[*at];
            m->gone = true;
            free(m->zero);
            m->zero = NULL;
        }
        gn_known_remove(ids, s->gone[i].id);
    }
}

static void take_pages(struct loading *l, const struct gn_stream_reader *r,
                       const struct gn_stream_section *s)
{
    const uint32_t *at = gn_known_find(&l->memories, s->memory->id);
    struct gn_inspected_memory *m = at ? &l->f->memories[*at] : NULL;
    if (!m)
        return;
    for (uint32_t i = 0; i < s->n_runs; i++) {
        const struct gn_stream_run_head *run = &s->runs[i];
        m->n_sent += run->n_pages;
        m->sent_bytes += run->zeros ? 0 : gn_stream_run_bytes(r, s, i);
        for (uint64_t page = run->first_page, end = page + run->n_pages; page < end; page++) {
            if (page % 8 == 0 && end - page >= 8) {
                m->zero[page / 8] = run->zeros ? 0xff : 0;
                page += 7;
            } else if (run->zeros) {
                m->zero[page / 8] |= (unsigned char)(1u << page % 8);
            } else {
                m->zero[page / 8] &= (unsigned char)~(1u << page % 8);
            }
        }
    }
    m->packed_bytes += s->bulk_bytes;
}

uint64_t gn_inspect_zero_pages(const struct gn_inspected_memory *m)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < m->n_pages / 8 + 1; i++)
        n += (unsigned)__builtin_popcount(m->zero[i]);
    return n;
}

static int take_section(struct loading *l, struct gn_stream_reader *r,
                        const struct gn_stream_section *s, struct gn_error *err)
{
    struct gn_stream_entry e;
    int rc = 0;
    if (s->what == GN_STREAM_IS_MEMORY)
        return take_memories(l, s, err);
    if (s->what == GN_STREAM_IS_GONE)
        take_gone(l, s);
    if (s->what == GN_STREAM_IS_PAGES)
        take_pages(l, r, s);
    l->f->n_rounds += s->what == GN_STREAM_IS_ROUND;
    while (rc == 0 && s->what == GN_STREAM_IS_TABLE && gn_stream_next_entry(r, &e))
        rc = take_entry(l, s->table, &e, err);
    return rc;
}

static int load(struct loading *l, struct gn_stream_fd *file, struct gn_error *err)
{
    struct gn_stream_source source = gn_stream_source_of_fd(file);
    struct gn_stream_section s = {0};
    struct gn_stream_reader *r;
    int rc = gn_stream_reader_create(&source, &limits, &r, err);
    if (rc < 0)
        return rc;
    l->f->about = *gn_stream_reader_about(r);
    gn_text_clean(l->f->about.creator, strlen(l->f->about.creator));
    gn_text_clean(l->f->about.api, strlen(l->f->about.api));
    while (rc == 0 && s.what != GN_STREAM_IS_COMMIT) {
        rc = gn_stream_next(r, &s);
        if (rc < 0)
            *err = *gn_stream_reader_error(r);
        else
            rc = take_section(l, r, &s, err);
    }
    if (rc == 0) {
        rc = gn_stream_expect_end(r);
        *err = *gn_stream_reader_error(r);
    }
    l->f->file_bytes = gn_stream_reader_offset(r);
    gn_stream_reader_destroy(r);
    gn_known_fini(&l->objects);
    gn_known_fini(&l->memories);
    return rc;
}

static void forget(struct gn_inspected *f)
{
    for (uint32_t i = 0; i < f->n_memories; i++)
        free(f->memories[i].zero);
    free(f->devices);
    free(f->objects);
    free(f->memories);
    free(f->commands);
}

/* O_NONBLOCK: opening a pipe without a writer would block. */
int gn_ctl_open_stream(const char *path, int *ret, struct gn_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return gn_fail(err, errno, "check its name and its permissions", "%s", strerror(errno));
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return gn_fail(err, EINVAL, "name a file that gantry checkpoint has written",
                       "it is not a regular file");
    }
    *ret = fd;
    return 0;
}

int gn_ctl_inspect(const struct gn_ctl_args *args)
{
    const char *path = args->rest[0];
    struct gn_inspected f = {0};
    struct loading l = {.f = &f};
    struct gn_stream_fd file = GN_STREAM_FD(-1, 0);
    struct gn_error why = {{0}, {0}}, err;
    if (!path) {
        gn_fail(&err, EINVAL, "write gantry inspect FILE", "no file is given");
        return gn_ctl_fail(args, GN_EXIT_USAGE, "wrong usage", &err);
    }
    int rc = gn_ctl_open_stream(path, &file.fd, &why);
    if (rc == 0) {
        rc = load(&l, &file, &why);
        close(file.fd);
    }
    int status = GN_EXIT_OK;
    if (rc == 0 && args->json)
        status = gn_ctl_print_json(args, gn_inspect_json(&f));
    else if (rc == 0 && gn_inspect_print(&f) < 0)
        rc = no_memory(&why);
    else if (rc == 0)
        status = gn_ctl_flush(args);
    if (rc < 0) {
        gn_fail(&err, -rc, why.fix, "%.100s: %.270s", path, why.what);
        status = gn_ctl_fail(args, GN_EXIT_FAILED, "cannot read the checkpoint", &err);
    }
    forget(&f);
    return status;
}
