/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_TOP_H
#define GN_CTL_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * `gantry top` in three steps: gantryd's state at one moment (a sample), the values computed from
 * two samples (rows), and their layout on a given number of columns and lines (a frame). Except for
 * the command and its screen, the code is pure: it reads no clock and no terminal and sends no
 * requests.
 */

#define GN_TOP_NAME_BYTES 64
#define GN_TOP_DEVICES    16 /* devices per vGPU on which it takes turns */

/* ---- top_sample.c */

/* A vGPU's use of one device. */
struct gn_top_use {
    uint32_t device; /* index in the sample's devices */
    bool turns;      /* it takes turns, so share and entitled are valid */
    bool interactive;
    double share, entitled;
    uint64_t device_ns, used_ns, waited_ns, grants;
};

struct gn_top_vgpu {
    char id[16];
    char tenant[GN_TOP_NAME_BYTES], program[GN_TOP_NAME_BYTES], state[40];
    uint64_t memory_bytes, limit_bytes; /* limit 0: no limit */
    uint64_t calls, sync_calls;
    uint32_t n_uses;
    struct gn_top_use uses[GN_TOP_DEVICES];
};

struct gn_top_tenant {
    char name[GN_TOP_NAME_BYTES];
    uint64_t weight, memory_bytes, limit_bytes;
};

struct gn_top_device {
    uint32_t index; /* gantryd's index of the device */
    char name[GN_TOP_NAME_BYTES];
    bool has_use; /* gantryd reports the totals of all vGPUs, including those that have ended */
    uint64_t device_ns, used_ns, waited_ns, grants;
    /* Of its memory; 0 slots: it is not placed. */
    uint64_t n_slots, n_free, n_reserved, copying_ns;
    /* The sum of the vGPUs that gantryd does not list for this user. */
    uint32_t n_others;
    struct gn_top_use others;
};

/* All names are safe to print. */
struct gn_top_sample {
    uint64_t at_ns;
    char policy[32];
    uint32_t n_vgpus, n_tenants, n_devices;
    struct gn_top_vgpu *vgpus; /* sorted by id */
    struct gn_top_tenant *tenants;
    struct gn_top_device *devices;
};

/*
 * Reads a sample from an object with gantryd's "vgpus", "tenants", "devices" and "policy". Missing
 * values and values of the wrong type become 0, "" or are left out. 0 or -ENOMEM; the caller must
 * free *ret in either case.
 */
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
/* The name of an order, such as "share"; NULL: no such order. */
const char *gn_top_order_name(int order);

enum gn_top_class { GN_TOP_NO_CLASS, GN_TOP_BULK, GN_TOP_INTERACTIVE, GN_TOP_MIXED };

/* A row for a tenant or for a vGPU. A value below 0 is unknown. */
struct gn_top_row {
    const struct gn_top_vgpu *vgpu; /* NULL: the row of a tenant */
    const char *tenant;
    uint32_t n_vgpus, first; /* of a tenant; first: private to top_rows.c */
    bool others;             /* the sum over all vGPUs that this user cannot see, of any tenant */
    enum gn_top_class class;
    int device; /* the device of share and entitled: an index in the sample's devices */
    double share, entitled;
    double calls, syncs; /* per second */
    /*
     * The part of the time in which it had work while another vGPU held the device; of a tenant,
     * the mean of its vGPUs.
     */
    double waits;
    uint64_t device_ns, memory_bytes, limit_bytes;
};

/* The load of a device. */
struct gn_top_load {
    uint32_t n_users; /* vGPUs that have used it */
    /*
     * `busy` and `copying` are parts of the time, `grants` is per second, `waiting` the mean number
     * of waiting vGPUs. Below 0: unknown.
     */
    double busy, grants, waiting, copying;
};

struct gn_top_rows {
    uint32_t n;
    /*
     * Each tenant followed by its vGPUs; the last row is the sum of the vGPUs that the user cannot
     * see, if there are any.
     */
    struct gn_top_row *rows;
    uint32_t n_tenants;        /* number of tenants' rows */
    struct gn_top_load *loads; /* one per device of the sample */
};

/*
 * before: an earlier sample, or NULL. device: an index in now's devices, or -1: for each row the
 * device of which it has the largest share. The rows point into `now`. 0 or -ENOMEM.
 */
int gn_top_rows_make(const struct gn_top_sample *before, const struct gn_top_sample *now,
                     int device, enum gn_top_order order, bool reverse, struct gn_top_rows *ret);
void gn_top_rows_fini(struct gn_top_rows *r);

/* ---- top_layout.c */

enum gn_top_style {
    GN_TOP_PLAIN,
    GN_TOP_BOLD,
    GN_TOP_TITLES,
    GN_TOP_DIM,
    GN_TOP_FAIR,   /* its share is near its entitlement */
    GN_TOP_LESS,   /* its share is below its entitlement */
    GN_TOP_MORE,   /* its share is above its entitlement */
    GN_TOP_BAD,    /* the vGPU is lost */
    GN_TOP_SPECIAL /* interactive */
};

#define GN_TOP_SPANS 6
struct gn_top_line {
    char *text; /* without a line break */
    enum gn_top_style style;
    int n_spans;
    struct gn_top_span {
        size_t at, n; /* in bytes of the text */
        enum gn_top_style style;
    } spans[GN_TOP_SPANS];
};

struct gn_top_view {
    int width, height; /* in columns and lines; height 0: unlimited */
    int first;         /* index of the row at the top; gn_top_frame_make() brings it into range */
    int device;        /* as for gn_top_rows_make() */
    enum gn_top_order order;
    bool reverse, paused, help;
    const char *gone;  /* not NULL: gantryd does not answer, and this text replaces the hint */
    bool tree;         /* print a tenant's name once, for people; otherwise in every line */
    bool keys;         /* add a line that lists the keys */
    const char *clock; /* NULL: no clock */
};

struct gn_top_frame {
    int n_lines;
    struct gn_top_line *lines; /* the last line lists the keys, if the view asks for them */
};

/* 0 or -ENOMEM; the caller must free *ret in either case. */
int gn_top_frame_make(const struct gn_top_sample *now, const struct gn_top_rows *rows,
                      struct gn_top_view *view, struct gn_top_frame *ret);
void gn_top_frame_fini(struct gn_top_frame *f);

/* ---- top_screen.c */

/*
 * Reads a sample from gantryd, reconnecting if the connection was lost. The caller must free the
 * sample. 0 or -errno.
 */
struct gn_top_source {
    void *ctx;
    int (*ask)(void *ctx, struct gn_top_sample *ret, struct gn_error *err);
};

/*
 * Runs the live screen until a key or a signal ends it. 0; or -errno: gantryd did not answer at the
 * start, or stdin or stdout is no terminal. If gantryd disappears later, the screen waits for it.
 * Restores the terminal.
 */
int gn_top_screen(const struct gn_top_source *source, uint64_t delay_ns, enum gn_top_order order,
                  struct gn_error *err);

#endif
