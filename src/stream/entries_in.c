/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the entries of a table. The whole body is checked once, before any entry is returned, so
 * that iterating over it needs no further checks. The contents of a part are for its reader to
 * check. Called on the reader's thread. Never reads from the source.
 */
#include "base/checked.h"
#include "stream/stream_internal.h"

#include <errno.h>
#include <string.h>

static bool all_zero(const unsigned char *p, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

/* Checks that the parts fill the entry exactly. */
static bool parts_ok(const struct gn_stream_entry_head *e, const unsigned char *at, uint64_t left)
{
    for (uint32_t i = 0; i < e->n_parts; i++) {
        const struct gn_stream_part_head *part = (const void *)at;
        if (left < sizeof *part)
            return false;
        at += sizeof *part;
        left -= sizeof *part;
        if (part->zero || part->bytes > left)
            return false;
        uint64_t padded = gn_align_up(part->bytes, 8); /* `left` is a multiple of 8 */
        if (!all_zero(at + part->bytes, padded - part->bytes))
            return false;
        at += padded;
        left -= padded;
    }
    return left == 0;
}

static int check_entry(struct gn_stream_reader *r, const unsigned char *at, uint64_t left,
                       uint64_t *ret_bytes)
{
    const struct gn_stream_entry_head *e = (const void *)at;
    const char *table = r->section.name;
    if (left < sizeof *e || e->zero || e->bytes > left || e->bytes < sizeof *e || e->bytes % 8 ||
        e->n_refs > (e->bytes - sizeof *e) / 8)
        return gn_stream_damaged(r, "an entry %llu bytes before its end is malformed",
                                 (unsigned long long)left);
    const uint64_t *refs = (const void *)(at + sizeof *e);
    uint64_t refs_bytes = e->n_refs * sizeof *refs;
    if (!parts_ok(e, at + sizeof *e + refs_bytes, e->bytes - sizeof *e - refs_bytes))
        return gn_stream_damaged(r, "%s %#llx is malformed", table, (unsigned long long)e->id);
    for (uint32_t i = 0; i < e->n_refs; i++)
        if (refs[i] && !gn_known_find(&r->objects, refs[i]))
            return gn_stream_damaged(r, "%s %#llx refers to object %#llx, which has not come",
                                     table, (unsigned long long)e->id, (unsigned long long)refs[i]);
    if (r->section.table == GN_STREAM_OBJECTS) {
        const uint32_t *kind = gn_known_find(&r->objects, e->id);
        if (!e->id || (kind && *kind != e->kind))
            return gn_stream_damaged(r, "object %#llx comes again as something else",
                                     (unsigned long long)e->id);
        if (!kind && r->objects.n >= r->announce.n_objects)
            return gn_stream_refused(r, "object %#llx is one more than the %u that were announced",
                                     (unsigned long long)e->id, r->announce.n_objects);
        if (!kind && gn_known_put(&r->objects, e->id, e->kind) < 0)
            return gn_stream_reader_fail(r, ENOMEM, NULL, "no memory left to read the stream");
    }
    *ret_bytes = e->bytes;
    return 0;
}

int gn_stream_check_entries(struct gn_stream_reader *r)
{
    uint64_t left = r->body.n, bytes = 0;
    if (!gn_range_ok(r->entries_bytes, left, r->announce.entries_bytes))
        return gn_stream_refused(r, "its %llu bytes of entries are more than was announced",
                                 (unsigned long long)left);
    r->entries_bytes += left;
    for (const unsigned char *at = r->body.bytes; left; at += bytes, left -= bytes)
        if (check_entry(r, at, left, &bytes) < 0)
            return r->failed;
    return 0;
}

bool gn_stream_next_entry(struct gn_stream_reader *r, struct gn_stream_entry *ret)
{
    if (r->failed || !r->entry || r->entry == r->body.bytes + r->body.n)
        return false;
    const struct gn_stream_entry_head *e = (const void *)r->entry;
    const uint64_t *refs = (const void *)(r->entry + sizeof *e);
    *ret = (struct gn_stream_entry){.id = e->id,
                                    .kind = e->kind,
                                    .refs = refs,
                                    .n_refs = e->n_refs,
                                    .n_parts = e->n_parts,
                                    .bytes = e->bytes,
                                    .at = (const void *)(refs + e->n_refs),
                                    .parts_left = e->n_parts};
    r->entry += e->bytes;
    return true;
}

bool gn_stream_next_part(struct gn_stream_entry *e, struct gn_stream_part *ret)
{
    if (!e->parts_left)
        return false;
    const struct gn_stream_part_head *part = (const void *)e->at;
    *ret = (struct gn_stream_part){part->part, e->at + sizeof *part, part->bytes};
    e->at += sizeof *part + gn_align_up(part->bytes, 8);
    e->parts_left--;
    return true;
}

bool gn_stream_find_part(const struct gn_stream_entry *e, uint32_t part, struct gn_stream_part *ret)
{
    struct gn_stream_entry all = *e;
    all.at = (const void *)(e->refs + e->n_refs);
    all.parts_left = e->n_parts;
    while (gn_stream_next_part(&all, ret))
        if (ret->part == part)
            return true;
    return false;
}

bool gn_stream_copy_part(const struct gn_stream_entry *e, uint32_t part, void *ret, size_t n)
{
    struct gn_stream_part found;
    if (!gn_stream_find_part(e, part, &found) || found.n != n)
        return false;
    memcpy(ret, found.bytes, n);
    return true;
}
