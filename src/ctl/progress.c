/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that shows the progress of moves; see progress.h. gantryd's strings are untrusted: control
 * characters must not reach the terminal. Pure.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/progress.h"

#define BAR_CELLS     20
#define BAR_FIRST_NS  UINT64_C(200000000) /* shorter moves get no bar */
#define LINE_FIRST_NS UINT64_C(2000000000)
#define LINE_EACH_NS  UINT64_C(5000000000)
#define LINE_LEAST_NS UINT64_C(1000000000) /* minimum time before a line with new information */
#define RATE_NS       UINT64_C(2000000000) /* the rate covers about this long */

static uint64_t number_of(const json_t *o, const char *key)
{
    const json_int_t n = json_integer_value(json_object_get(o, key));
    return n > 0 ? (uint64_t)n : 0;
}

static void word_of(const json_t *o, const char *key, char *ret, size_t n)
{
    const char *text = json_string_value(json_object_get(o, key));
    size_t length = 0;
    for (; text && text[length] && length + 1 < n && isascii(text[length]) && isalnum(text[length]);
         length++)
        ret[length] = text[length];
    ret[length] = 0;
}

bool gn_moving_read(const json_t *vgpu, struct gn_moving *ret)
{
    const char *state = json_string_value(json_object_get(vgpu, "state"));
    const json_t *m = json_object_get(vgpu, "moving");
    memset(ret, 0, sizeof *ret);
    if (!state || strcmp(state, "moving") != 0)
        return false;
    word_of(vgpu, "id", ret->id, sizeof ret->id);
    word_of(m, "phase", ret->phase, sizeof ret->phase);
    ret->round = (uint32_t)number_of(m, "round");
    ret->total_bytes = number_of(m, "total_bytes");
    ret->done_bytes = number_of(m, "done_bytes");
    ret->sent_bytes = number_of(m, "sent_bytes");
    if (ret->done_bytes > ret->total_bytes)
        ret->done_bytes = ret->total_bytes;
    return true;
}

static int percent(uint64_t done, uint64_t total)
{
    return total ? (int)((double)done * 100 / (double)total) : -1;
}

int gn_moving_percent(const struct gn_moving *m)
{
    return m->round ? percent(m->done_bytes, m->total_bytes) : -1;
}

void gn_moving_state(const struct gn_moving *m, const char *first, const char *then,
                     char ret[static GN_MOVING_STATE_BYTES])
{
    const int part = gn_moving_percent(m);
    int n = snprintf(ret, GN_MOVING_STATE_BYTES, "moving%s%s", m->phase[0] ? first : "", m->phase);
    if (part >= 0 && n > 0 && n < GN_MOVING_STATE_BYTES)
        snprintf(ret + n, (size_t)(GN_MOVING_STATE_BYTES - n), "%s%d%%", then, part);
}

void gn_progress_init(struct gn_progress *p, const char *command, bool bar, uint64_t now_ns)
{
    *p = (struct gn_progress){
        .command = command, .bar = bar, .began_ns = now_ns, .base_ns = now_ns, .last_ns = now_ns};
}

/*
 * Bytes per second over the last RATE_NS or so; restarts when the sum shrinks because a vGPU has
 * left.
 */
static uint64_t rate_of(struct gn_progress *p, uint64_t bytes, uint64_t now_ns)
{
    if (bytes < p->last_bytes) {
        p->base_ns = p->last_ns = now_ns;
        p->base_bytes = bytes;
    } else if (now_ns - p->base_ns > RATE_NS) {
        p->base_ns = p->last_ns;
        p->base_bytes = p->last_bytes;
    }
    p->last_ns = now_ns;
    p->last_bytes = bytes;
    return now_ns > p->base_ns
               ? (uint64_t)((double)(bytes - p->base_bytes) * 1e9 / (double)(now_ns - p->base_ns))
               : 0;
}

/* "1f3a77c0 ahead, round 1", "3 under way: 2 ahead, 1 stop". */
static void what_they_do(const struct gn_moving *all, unsigned n, char *ret, size_t room)
{
    unsigned said = 0;
    int at;
    if (n == 1) {
        at = snprintf(ret, room, "%s %s", all->id, all->phase[0] ? all->phase : "moving");
        if (all->round && at > 0 && (size_t)at < room)
            snprintf(ret + at, room - (size_t)at, ", round %u", all->round);
        return;
    }
    at = snprintf(ret, room, "%u under way", n);
    for (unsigned i = 0; i < n; i++) {
        unsigned same = 0;
        bool first = true;
        for (unsigned j = 0; j < n; j++) {
            const bool is = strcmp(all[j].phase, all[i].phase) == 0;
            same += is;
            first &= !is || j >= i;
        }
        if (first && all[i].phase[0] && at > 0 && (size_t)at < room)
            at += snprintf(ret + at, room - (size_t)at, "%s %u %s", said++ ? "," : ":", same,
                           all[i].phase);
    }
}

static bool is_due(const struct gn_progress *p, const char *what, uint64_t now_ns)
{
    const uint64_t since_ns = now_ns - p->shown_ns;
    if (p->bar)
        return p->shown_ns || now_ns - p->began_ns >= BAR_FIRST_NS;
    if (!p->shown_ns)
        return now_ns - p->began_ns >= LINE_FIRST_NS;
    return since_ns >= LINE_EACH_NS ||
           (since_ns >= LINE_LEAST_NS && strcmp(what, p->last_what) != 0);
}

bool gn_progress_look(struct gn_progress *p, const struct gn_moving *all, unsigned n,
                      uint64_t now_ns, char ret[static GN_PROGRESS_BYTES])
{
    char what[sizeof p->last_what], size[16], of[16], rate[16], sizes[64] = "", bar[BAR_CELLS + 1];
    uint64_t done = 0, total = 0, sent = 0;
    for (unsigned i = 0; i < n; i++) {
        done += all[i].round ? all[i].done_bytes : 0;
        total += all[i].round ? all[i].total_bytes : 0;
        sent += all[i].sent_bytes;
    }
    const uint64_t bytes_per_s = rate_of(p, sent, now_ns);
    if (!n)
        return false;
    what_they_do(all, n, what, sizeof what);
    if (!is_due(p, what, now_ns))
        return false;
    p->shown_ns = now_ns;
    memcpy(p->last_what, what, sizeof what);
    const int part = percent(done, total);
    if (part >= 0)
        snprintf(sizes, sizeof sizes, ": %d%%, %s of %s, %s/s", part,
                 gn_ctl_format_size(done, size), gn_ctl_format_size(total, of),
                 gn_ctl_format_size(bytes_per_s, rate));
    for (int i = 0; i < BAR_CELLS; i++)
        bar[i] = part >= 0 && i < part * BAR_CELLS / 100 ? '#' : '.';
    bar[BAR_CELLS] = 0;
    if (p->bar)
        snprintf(ret, GN_PROGRESS_BYTES, "\r[%s] %s%s\033[K", bar, what, sizes);
    else
        snprintf(ret, GN_PROGRESS_BYTES, "gantry %s: %s%s\n", p->command, what, sizes);
    return true;
}

const char *gn_progress_erase(struct gn_progress *p)
{
    return p->bar && p->shown_ns ? "\r\033[K" : "";
}
