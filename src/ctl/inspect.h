/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_INSPECT_H
#define GN_CTL_INSPECT_H

#include "ctl/ctl.h"
#include "stream/stream.h"

/*
 * The contents of a checkpoint as found by `gantry inspect`, in the file's order. All texts are
 * safe to print.
 */
#define GN_INSPECT_TEXT 128

struct gn_inspected_device {
    uint64_t index;
    bool has_state;
    struct gn_stream_device_state state;
    uint32_t n_facts;
    char name[GN_INSPECT_TEXT], vendor[GN_INSPECT_TEXT], type[GN_INSPECT_TEXT],
        version[GN_INSPECT_TEXT], driver[GN_INSPECT_TEXT];
};

struct gn_inspected_object {
    uint64_t id;
    uint64_t bytes; /* size of its last entry */
    uint32_t kind;
    bool gone;
};

struct gn_inspected_memory {
    struct gn_stream_memory m;
    bool gone;
    uint64_t n_pages, n_sent, sent_bytes, packed_bytes;
    unsigned char *zero; /* one bit per page: the page is zero in the final state */
};

struct gn_inspected_command {
    uint64_t id, queue;
    uint32_t op;
    bool has_state;
    struct gn_stream_command_state state;
};

struct gn_inspected {
    struct gn_stream_about about;
    uint64_t file_bytes;
    bool has_tenant;
    uint64_t vgpu;
    char tenant[GN_INSPECT_TEXT];
    struct gn_stream_tenant_state tenant_state;
    struct gn_inspected_device *devices;
    struct gn_inspected_object *objects;
    struct gn_inspected_memory *memories;
    struct gn_inspected_command *commands;
    uint32_t n_devices, n_objects, n_memories, n_commands;
    uint32_t n_rounds, n_events, n_calls, n_maps;
};

uint64_t gn_inspect_zero_pages(const struct gn_inspected_memory *m);
json_t *gn_inspect_json(const struct gn_inspected *f);
/* 0 or -ENOMEM. */
int gn_inspect_print(const struct gn_inspected *f);

#endif
