/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_TOP_H
#define GN_CTL_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * `gantry top`, piece by piece: what gantryd said at one moment (a sample), what two of them make
 * (rows), and how that stands on so many columns and lines (a frame). All but the command and its
 * screen is pure: nothing here asks the time, the terminal or gantryd.
 */

#define GN_TOP_NAME_BYTES 64
#define GN_TOP_DEVICES    16 /* of a vGPU: so many take turns */

/* ---- top_sample.c */

/* A vGPU's part in one device. */
struct gn_top_use {
    uint32_t device; /* its place in the sample's devices */
    bool turns;      /* it takes turns: share and entitled mean something */
    bool interactive;
    double share, entitled;
    uint64_t device_ns, used_ns, waited_ns, grants;
};

struct gn_top_vgpu {
    char id[16];
    char tenant[GN_TOP_NAME_BYTES], program[GN_TOP_NAME_BYTES], state[40];
    uint64_t memory_bytes, limit_bytes; /* limit 0: none */
    uint64_t calls, sync_calls;
    uint32_t n_uses;
    struct gn_top_use uses[GN_TOP_DEVICES];
};

struct gn_top_tenant {
    char name[GN_TOP_NAME_BYTES];
    uint64_t weight, memory_bytes, limit_bytes;
};

struct gn_top_device {
    uint32_t index; /* gantryd's */
    char name[GN_TOP_NAME_BYTES];
    bool has_use; /* gantryd tells what all vGPUs that it has had have had of it */
    uint64_t device_ns, used_ns, waited_ns, grants;
    /* Those that gantryd does not list for this viewer, together. */
    uint32_t n_others;
    struct gn_top_use others;
};

/* Names are safe to print. */
struct gn_top_sample {
    uint64_t at_ns;
    char policy[32];
    uint32_t n_vgpus, n_tenants, n_devices;
    struct gn_top_vgpu *vgpus; /* by id */
    struct gn_top_tenant *tenants;
    struct gn_top_device *devices;
};

/* From an object with gantryd's "vgpus", "tenants", "devices" and "policy". What is missing or of
 * another kind is 0, "" or not there. 0 or -ENOMEM; *ret is to be freed in either case. */
int gn_top_sample_read(const json_t *root, uint64_t at_ns, struct gn_top_sample *ret);
void gn_top_sample_fini(struct gn_top_sample *s);

/* ---- top_rows.c */

enum gn_top_order {
    GN_TOP_BY_SHARE,
    GN_TOP_BY_NAME,
    GN_TOP_BY_MEMORY,
    GN_TOP_BY_CALLS,
    GN_TOP_BY_SYNC,
    GN_TOP_BY_WAIT,
    GN_TOP_BY_TIME,
    GN_TOP_N_ORDERS
};
/* "share"; NULL: there is none. */
const char *gn_top_order_name(int order);

enum gn_top_class { GN_TOP_NO_CLASS, GN_TOP_BULK, GN_TOP_INTERACTIVE, GN_TOP_MIXED };

/* A tenant, or a vGPU. What is below 0 is not known. */
struct gn_top_row {
    const struct gn_top_vgpu *vgpu; /* NULL: this is a tenant's */
    const char *tenant;
    uint32_t n_vgpus, first; /* a tenant's; first: top_rows.c's */
    bool others;             /* of no one tenant: of all that this viewer does not see */
    enum gn_top_class class;
    int device; /* place in the sample's devices: of which share and entitled are */
    double share, entitled;
    double calls, syncs; /* a second */
    double waits; /* part of the time that it had work and another one the device; a tenant's: the
                     mean of its vGPUs */
    uint64_t device_ns, memory_bytes, limit_bytes;
};

/* A device, and who wants it. */
struct gn_top_load {
    uint32_t n_users; /* that have used it */
    double busy, grants,
        waiting; /* part of the time; a second; how many waited, on average. Below 0: not known */
};

struct gn_top_rows {
    uint32_t n;
    struct gn_top_row *rows;   /* each tenant, and its vGPUs behind it; last those that the viewer
                                  does not see, if any */
    uint32_t n_tenants;        /* rows of tenants */
    struct gn_top_load *loads; /* of the sample's devices */
};

/* before: an earlier sample, or NULL. device: a place in `now`'s devices, or -1: of each, the one
 * that it has most of. Rows point into `now`. 0 or -ENOMEM. */
int gn_top_rows_make(const struct gn_top_sample *before, const struct gn_top_sample *now,
                     int device, enum gn_top_order order, bool reverse, struct gn_top_rows *ret);
void gn_top_rows_fini(struct gn_top_rows *r);

/* ---- top_layout.c */

enum gn_top_style {
    GN_TOP_PLAIN,
    GN_TOP_BOLD,
    GN_TOP_TITLES,
    GN_TOP_DIM,
    GN_TOP_FAIR,   /* about what it is entitled to */
    GN_TOP_LESS,   /* than that */
    GN_TOP_MORE,   /* than that */
    GN_TOP_BAD,    /* lost */
    GN_TOP_SPECIAL /* interactive */
};

#define GN_TOP_SPANS 6
struct gn_top_line {
    char *text; /* no line break */
    enum gn_top_style style;
    int n_spans;
    struct gn_top_span {
        size_t at, n; /* bytes of text */
        enum gn_top_style style;
    } spans[GN_TOP_SPANS];
};

struct gn_top_view {
    int width, height; /* columns; lines, 0: as many as there are */
    int first;         /* row that stands at the top; brought into range */
    int device;        /* as of gn_top_rows_make */
    enum gn_top_order order;
    bool reverse, paused, help;
    const char *gone;  /* gantryd does not answer: what stands instead of the hint; NULL: it does */
    bool tree;         /* a tenant's name stands once, for people; otherwise in each line */
    bool keys;         /* a line says which there are */
    const char *clock; /* NULL: none */
};

struct gn_top_frame {
    int n_lines;
    struct gn_top_line *lines; /* the last is that of the keys, where there are any */
};

/* 0 or -ENOMEM; *ret is to be freed in either case. */
int gn_top_frame_make(const struct gn_top_sample *now, const struct gn_top_rows *rows,
                      struct gn_top_view *view, struct gn_top_frame *ret);
void gn_top_frame_fini(struct gn_top_frame *f);

/* ---- top_screen.c */

/* Asks gantryd, connecting anew when that is lost: a sample, to be freed. 0 or -errno. */
struct gn_top_source {
    void *ctx;
    int (*ask)(void *ctx, struct gn_top_sample *ret, struct gn_error *err);
};

/*
 * Until a key or a signal ends it: 0; -errno: gantryd did not answer at the beginning, or the
 * terminal is none. One that goes later is waited for. The terminal is as before.
 */
int gn_top_screen(const struct gn_top_source *source, uint64_t delay_ns, enum gn_top_order order,
                  struct gn_error *err);

#endif
