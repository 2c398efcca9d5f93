/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_TEST_DISCRETE_H
#define GN_TEST_DISCRETE_H

/*
 * The parts of the emulated discrete GPU (docs/testing.md). Handles are PoCL's own; more
 * facts about an object stand in tables of this library.
 */
#include <CL/cl_icd.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const cl_icd_dispatch *driver; /* PoCL's own table; set before the platform is handed out */

/* ---- options.c: $DISCRETE */

struct dg_options {
    uint64_t capacity_bytes; /* device memory of all processes of one state file */
    uint64_t bus_rate;       /* bytes a second, each way; 0: transfers take no time of their own */
    uint64_t latency_ns;     /* of each transfer */
    uint64_t late_ns;        /* how long after its release memory is freed */
    uint64_t fail;           /* each creation of this number fails; 0: none */
    bool async;              /* commands start after their enqueue has returned */
    bool retain;             /* kernels keep their arguments alive */
    bool lazy;               /* memory is allocated by the first command that uses it */
};
extern struct dg_options dg_options;
/* Reads $DISCRETE. An unknown word ends the process with a message. */
void dg_options_read(void);

/* ---- state.c: memory shared by processes. Any thread. */

/* The order is that of the state file (device_state.py). */
enum dg_count {
    DG_PEAK_BYTES,
    DG_REFUSALS, /* creations and first uses that failed for lack of memory, or by fail=N */
    DG_TO_DEVICE_BYTES,
    DG_FROM_DEVICE_BYTES,
    DG_TRANSFERS,
    DG_BUS_TO_NS, /* for how long transfers have occupied the bus */
    DG_BUS_FROM_NS,
    DG_LAUNCHES,
    DG_CREATIONS, /* of memory objects with memory of their own */
    DG_MAPS,
    DG_HELD,            /* commands that a gate has held back */
    DG_RECLAIMED_BYTES, /* of processes that ended without giving their memory back */
    DG_COUNTS
};

enum dg_direction { DG_TO_DEVICE, DG_FROM_DEVICE };

/* Maps $DISCRETE_STATE, or memory of this process. At load. Ends the process on failure. */
void dg_state_open(void);
void dg_state_add(enum dg_count which, uint64_t n);
/* Counts a transfer. */
void dg_state_transferred(enum dg_direction direction, uint64_t bytes);
/* False: no room, which is counted as a refusal. */
bool dg_state_charge(uint64_t bytes);
void dg_state_uncharge(uint64_t bytes);
/* Occupies the bus; when the transfer is over, in ns of the monotonic clock. */
uint64_t dg_state_occupy_bus(enum dg_direction direction, uint64_t bytes);

/* ---- arena.c: device memory. Any thread. */

#define DG_POISON 0xdb
/* Aligned to a page, filled with DG_POISON. NULL: none. */
unsigned char *dg_arena_allocate(size_t bytes);
void dg_arena_free(unsigned char *at);

/* ---- timer.c: one thread that does things later, in the order of their times. */

struct dg_timer {
    uint64_t due_ns;
    void (*run)(struct dg_timer *t); /* on the timer's thread; may free t */
    struct dg_timer *next;
};
uint64_t dg_now_ns(void);
/* Any thread; t is the caller's until it has run. */
void dg_timer_add(struct dg_timer *t, uint64_t due_ns);

/* ---- objects.c: memory objects. Any thread. */

struct dg_mapping;

/* A piece of device memory: one, of a buffer or image and of all objects that are parts of it. */
struct dg_memory {
    unsigned char *base; /* in the arena */
    size_t bytes;
    void *host_ptr;              /* of CL_MEM_USE_HOST_PTR */
    unsigned char *shadow;       /* where maps lie; host_ptr, or made by the first map */
    struct dg_mapping *mappings; /* under the lock of the objects */
    unsigned n_objects;
    bool charged;
};

struct dg_object {
    struct dg_object *next;
    cl_mem handle;
    uint64_t serial; /* of no other object */
    struct dg_memory *memory;
    size_t origin;            /* in the memory */
    cl_mem_flags host_flags;  /* of CL_MEM_*_HOST_PTR, as given by the program or inherited */
    cl_mem_flags added_flags; /* which PoCL has been given, and the program has not */
    unsigned n_references;    /* the program's */
    unsigned n_kernels;       /* references of kernels, with `retain` */
    struct dg_callback *done; /* the program's destructor callbacks, the last one first */
    struct dg_timer late;
    bool silent; /* PoCL does not tell of its end */
};

void dg_objects_lock(void);
void dg_objects_unlock(void);
/* NULL: not a memory object with facts, for instance a pipe. */
struct dg_object *dg_object_locked(cl_mem handle);
/* Allocates memory that `lazy` has deferred. CL_SUCCESS, or the result of the command. */
cl_int dg_object_use(cl_mem handle);

/* ---- kernels.c */

/* Ends the process if an argument has been released. CL_SUCCESS, or the result of the launch. */
cl_int dg_kernel_use(cl_kernel kernel);

/* ---- gates.c: gates hold a command back until it may start, or until its bytes have crossed the
 * bus. Any thread. */

struct dg_gate;

/* Bytes that a command brings across the bus. */
struct dg_crossing {
    cl_mem mem;
    enum dg_direction direction;
    uint64_t bytes;
    bool copies; /* the gate itself copies: the bytes are those of a map */
};

/* The bytes that a gate copies: rows between an object's memory and its shadow, which have one
 * layout. */
struct dg_copy {
    struct dg_memory *memory;
    size_t offset, row_bytes, n_rows, n_slices, row_pitch, slice_pitch;
    enum dg_direction direction;
    bool moves;   /* the bytes are copied */
    bool forgets; /* then the shadow is poisoned if nothing is mapped any more */
};

/*
 * A gate for a command of `queue`; *n and *waits, the program's wait list, become the driver's.
 * `crossing` is NULL for a command that brings nothing across the bus. NULL: the command needs no
 * gate, or the driver will refuse it.
 */
struct dg_gate *dg_gate_make(cl_command_queue queue, const struct dg_crossing *crossing, cl_uint *n,
                             const cl_event **waits);
/*
 * The driver's answer to the command, which is returned. The gate opens some time after, and is
 * freed then; `copy`, or NULL, says which bytes it copies before. gate: may be NULL.
 */
cl_int dg_gate_close(struct dg_gate *gate, const struct dg_copy *copy, cl_int result);

/* ---- the calls of each file, put into the table */

void dg_replace_devices(cl_icd_dispatch *table);
void dg_replace_objects(cl_icd_dispatch *table);
void dg_replace_images(cl_icd_dispatch *table);
void dg_replace_kernels(cl_icd_dispatch *table);
void dg_replace_commands(cl_icd_dispatch *table);
void dg_replace_transfers(cl_icd_dispatch *table);
void dg_replace_maps(cl_icd_dispatch *table);

#endif
