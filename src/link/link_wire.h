/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_WIRE_H
#define GN_LINK_WIRE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Payloads of the frames between a program (or `gantry`) and gantryd. docs/link.md is normative. Op
 * numbers are never reused. Strings are NUL-terminated fields of fixed size; fields named zero are
 * checked.
 */
#define GN_LINK_MAGIC   0x79727467u /* "gtry" */
#define GN_LINK_VERSION 1u

#define GN_LINK_NAME_BYTES    128
#define GN_LINK_API_BYTES     16
#define GN_LINK_TENANT_BYTES  64
#define GN_LINK_TOKEN_BYTES   256 /* with its NUL */
#define GN_LINK_MAX_PLATFORMS 64
#define GN_LINK_MAX_SEGMENTS  256                 /* extra data segments of one vGPU */
#define GN_LINK_SEGMENT_LIMIT (UINT64_C(1) << 40) /* bytes of one segment */
#define GN_LINK_CONTROL_LIMIT (16u << 20)         /* bytes of one control request or reply */

enum gn_link_op {
    GN_LINK_HELLO = 1,
    GN_LINK_WELCOME = 2,
    GN_LINK_ATTACH = 3,
    GN_LINK_ATTACHED = 4,
    GN_LINK_SEGMENT = 5,
    GN_LINK_SEGMENT_MADE = 6,
    GN_LINK_CONTROL = 7,
    GN_LINK_ERROR = 8,
    GN_LINK_DIRECT = 9, /* <- gn_link_direct, before ATTACHED: the program is to host its vGPU. fd:
                           a worker's end of its control socket */
    GN_LINK_HOST = 10,  /* <- gn_link_direct, unasked: the program is to take its vGPU over from a
                           worker. fd: as DIRECT's */
    /* over tcp */
    GN_LINK_ATTACHED_REMOTE = 16, /* instead of ATTACHED */
    GN_LINK_RETURN = 17,          /* -> gn_link_return */
    GN_LINK_RETURNED = 18, /* <- empty: the session is there still, and may be connected to */
    GN_LINK_BYE = 19,      /* -> empty: the program ends, its vGPU is not to wait for it */
    /* checkpoints; docs/moves.md */
    GN_LINK_FILE = 24,    /* -> empty; fd: what the next control request is about. An operator */
    GN_LINK_STOPPED = 25, /* <- gn_link_stopped, on the session's socket; fd: that socket's other
                             end. The vGPU is in a file */
    GN_LINK_WAIT = 26, /* -> gn_link_wait; fds: GN_LINK_WAIT_FDS. A stopped vGPU's program waits for
                          it, maybe at another gantryd */
    GN_LINK_HAND = 27, /* <- empty: the session is to be handed to the new worker */
    /* <- empty: it is the new worker's. Or ERROR: it was not; EAGAIN: wait anew */
    GN_LINK_RESTORED = 28,
    /* Over tcp STOPPED and RESTORED come on this connection, unasked, and without a descriptor.
     * RESTORED: the vGPU has a worker, or has one still. WAIT is gn_link_wait_far, and its answer
     * ATTACHED_REMOTE (it waits, by that session) or RETURNED. */
    /* to another gantryd; docs/moves.md. All of seq: the move's number, which the one that is left
       has chosen */
    GN_LINK_MOVE = 11,       /* <- gn_link_move, unasked: another gantryd expects the program */
    GN_LINK_COMES = 12,      /* -> empty: there is a worker at the other one */
    GN_LINK_COMES_NEAR = 31, /* -> empty: the same of a program on another machine, with which that
                                worker will share memory */
    GN_LINK_LEAVE = 13, /* <- empty, unasked: all has been written, and nothing goes on here until
                           the program says how it goes on */
    GN_LINK_STAY = 14,  /* either way, gn_link_error, unasked: nothing comes of it */
    GN_LINK_LEFT = 15,  /* -> gn_link_ready: the program has gone to the other one */
    /* between the program and that one */
    GN_LINK_CLAIM = 20, /* -> gn_link_claim; fd: the ring; where the vGPU is on another machine yet
                           a second one: what the session comes by */
    /* <- gn_link_claimed: its worker is up. Or ERROR, also later: it is over */
    GN_LINK_CLAIMED = 21,
    GN_LINK_READY = 22, /* <- gn_link_ready: everything is loaded */
    GN_LINK_GO = 23,    /* -> empty: the vGPU lives here from now on */
    GN_LINK_PASS = 29, /* -> gn_link_segment_made; fd: a data segment that the program has got since
                          it claimed */
    GN_LINK_CLAIMED_REMOTE = 30, /* <- gn_link_claimed_remote: instead of CLAIMED, over tcp, where a
                                    CLAIM brings no descriptor */
    /* 32 and up: worker_wire.h */
};

/* HELLO's features */
#define GN_LINK_FEATURE_IDENTITY 1u /* a gn_link_identity follows in the payload */
#define GN_LINK_FEATURE_CONTROL                                                                    \
    2u /* for control requests only: no platforms are wanted, none attached to */
#define GN_LINK_FEATURE_CLAIM                                                                      \
    4u /* for a CLAIM only, whose ticket says who may: no tenant is asked for, no platforms are    \
          listed */
#define GN_LINK_FEATURE_NEAR                                                                       \
    8u /* a MOVE may say how that gantryd is reached on its own machine                            \
        */

/* program -> gantryd, first */
struct gn_link_hello {
    uint32_t magic;
    uint32_t version;
    uint64_t features; /* GN_LINK_FEATURE_*; those that gantryd does not know are not agreed */
    uint32_t pid;      /* a hint: the kernel's word holds where it has one */
    uint32_t zero;
    char program[GN_LINK_NAME_BYTES];
};
_Static_assert(sizeof(struct gn_link_hello) == 152, "hello");

/* After gn_link_hello, when its features say so: whose program this is, since that decides what it
 * is offered. */
struct gn_link_identity {
    char tenant[GN_LINK_TENANT_BYTES]; /* "": default */
    uint32_t n_token;                  /* 0: none */
    uint32_t zero;
    char token[GN_LINK_TOKEN_BYTES]; /* zero to its end */
};
_Static_assert(sizeof(struct gn_link_identity) == 328, "identity");

/* gantryd -> program; n_platforms of gn_link_welcome_platform follow */
struct gn_link_welcome {
    uint32_t version;
    uint32_t n_platforms;
    uint64_t features; /* of those offered */
};
_Static_assert(sizeof(struct gn_link_welcome) == 16, "welcome");

struct gn_link_welcome_platform {
    uint32_t index;
    uint32_t n_devices;
    char api[GN_LINK_API_BYTES];
    char name[GN_LINK_NAME_BYTES];
};
_Static_assert(sizeof(struct gn_link_welcome_platform) == 152, "welcome platform");

#define GN_LINK_HAS_STDOUT 1u
#define GN_LINK_HAS_STDERR 2u

#define GN_LINK_MODE_REMOTE      0u
#define GN_LINK_MODE_PASSTHROUGH 1u

/* program -> gantryd, with the descriptors that `stdio` names, stdout first */
struct gn_link_attach {
    uint32_t platform;
    uint32_t weight;                   /* 0: the tenant's */
    uint64_t memory_bytes;             /* 0: the tenant's */
    uint32_t stdio;                    /* GN_LINK_HAS_* */
    uint32_t mode;                     /* GN_LINK_MODE_* */
    char tenant[GN_LINK_TENANT_BYTES]; /* "": HELLO's */
};
_Static_assert(sizeof(struct gn_link_attach) == 88, "attach");

#define GN_LINK_DRIVER_BYTES 1024

/* gantryd -> program in passthrough, with one descriptor */
struct gn_link_direct {
    char library[GN_LINK_DRIVER_BYTES]; /* the vendor's driver: what dlopen takes */
};

/* gantryd -> program, with four descriptors: session socket, ring segment, event table, data area
 */
struct gn_link_attached {
    uint32_t vgpu_id;
    uint32_t platform;
    uint64_t ring_bytes;
    uint64_t events_bytes;
    uint64_t data_bytes;
    uint64_t memory_limit_bytes; /* 0: none beyond the device's */
};
_Static_assert(sizeof(struct gn_link_attached) == 40, "attached");

#define GN_LINK_SESSION_BYTES 32
#define GN_LINK_KEY_BYTES     32

/* gantryd -> program on another machine. The program makes memory of its own, of these sizes. */
struct gn_link_attached_remote {
    uint32_t vgpu_id;
    uint32_t platform;
    uint64_t data_bytes;
    uint64_t memory_limit_bytes;
    uint32_t grace_ms; /* how long a session whose connection broke is kept */
    uint32_t zero;
    uint8_t session[GN_LINK_SESSION_BYTES]; /* its name, on data connections */
    uint8_t key[GN_LINK_KEY_BYTES];         /* of this session alone */
};
_Static_assert(sizeof(struct gn_link_attached_remote) == 96, "attached remote");

/* program -> gantryd, on this control connection or a new one: is the session there still? */
struct gn_link_return {
    uint8_t session[GN_LINK_SESSION_BYTES];
    uint8_t key[GN_LINK_KEY_BYTES];
};

/* A stop's key: whoever wants to put a vGPU back into its program shows it. It is in the file, and
 * with the program; nowhere else. */
#define GN_LINK_STOP_KEY_BYTES 32

/* gantryd -> program */
struct gn_link_stopped {
    uint32_t vgpu_id;
    uint32_t zero;
    uint8_t key[GN_LINK_STOP_KEY_BYTES];
};
_Static_assert(sizeof(struct gn_link_stopped) == 40, "stopped");

/* program -> gantryd. As in ATTACH; the platform by its name too, since another gantryd may number
 * them otherwise. */
struct gn_link_wait {
    uint32_t
        vgpu_id; /* the last one; gantryd ignores it and draws the id of a vGPU that is new to it */
    uint32_t platform;
    uint32_t weight;
    uint32_t n_segments; /* of data that it has, beyond the first */
    uint64_t memory_bytes;
    uint8_t key[GN_LINK_STOP_KEY_BYTES];
};
_Static_assert(sizeof(struct gn_link_wait) == 56, "wait");

/* Over tcp: it waits by the session that it has; a gantryd that does not know it gives it another.
 */
struct gn_link_wait_far {
    struct gn_link_wait wait;
    uint8_t session[GN_LINK_SESSION_BYTES];
    uint8_t key[GN_LINK_KEY_BYTES];
};
_Static_assert(sizeof(struct gn_link_wait_far) == 120, "wait");

/* The new worker's end of a socket, over which the session comes when HAND has asked for it; the
 * ring. */
enum { GN_LINK_WAIT_HAND, GN_LINK_WAIT_RING, GN_LINK_WAIT_FDS };

#define GN_LINK_ADDRESS_BYTES 272
#define GN_LINK_TICKET_BYTES  32
#define GN_LINK_KERNEL_BYTES  16

/* gantryd -> program. The ticket is good once, for a minute, and for this vGPU. Over tcp it is the
 * key of this name as well (TLS). */
struct gn_link_move {
    char address[GN_LINK_ADDRESS_BYTES];
    uint8_t ticket[GN_LINK_TICKET_BYTES];
    uint8_t name[GN_LINK_SESSION_BYTES];
    uint32_t secure; /* 1: over tcp, where that gantryd was reached by TLS; a program that speaks
                        TLS itself needs no telling */
    uint32_t zero;
    /* Over tcp, to who has offered FEATURE_NEAR: how programs of that gantryd's machine reach it,
     * unix:PATH, and that machine's kernel, which tells them that they are there (base/kernel.h).
     * Else it ends before this. */
    char near[GN_LINK_ADDRESS_BYTES];
    uint8_t kernel[GN_LINK_KERNEL_BYTES];
};
_Static_assert(sizeof(struct gn_link_move) == 632, "move");
#define GN_LINK_MOVE_PLAIN_BYTES 344
_Static_assert(offsetof(struct gn_link_move, near) == GN_LINK_MOVE_PLAIN_BYTES, "move");

/* program -> the other gantryd */
struct gn_link_claim {
    uint32_t vgpu_id;    /* the last one; gantryd ignores it: the ticket decides which vGPU it is */
    uint32_t n_segments; /* of data that it has, beyond the first */
    uint8_t ticket[GN_LINK_TICKET_BYTES];
};
_Static_assert(sizeof(struct gn_link_claim) == 40, "claim");

struct gn_link_claimed {
    uint32_t vgpu_id; /* the same, unless another has it there */
    uint32_t zero;
    struct gn_link_welcome_platform platform;
};
_Static_assert(sizeof(struct gn_link_claimed) == 160, "claimed");

/* With the session that the program has there. */
struct gn_link_claimed_remote {
    struct gn_link_claimed claimed;
    uint32_t grace_ms;
    uint32_t zero;
    uint8_t session[GN_LINK_SESSION_BYTES];
    uint8_t key[GN_LINK_KEY_BYTES];
};
_Static_assert(sizeof(struct gn_link_claimed_remote) == 232, "claimed");

struct gn_link_ready {
    uint64_t boot_ns, load_ns;
};
_Static_assert(sizeof(struct gn_link_ready) == 16, "ready");

#define GN_LINK_DATA_MAGIC UINT64_C(0x6174616479727467) /* "gtrydata" */

/*
 * The first bytes of a data connection, in the clear; what follows is between the program and its
 * worker. Or of one that a vGPU comes through from another gantryd: then session and proof are a
 * move's name and ticket, and gantryd says GN_LINK_DATA_TAKEN, a byte.
 */
#define GN_LINK_DATA_TAKEN 1u
struct gn_link_data {
    uint64_t magic;
    uint32_t version;
    uint32_t zero;
    uint8_t session[GN_LINK_SESSION_BYTES];
    uint8_t proof[GN_LINK_KEY_BYTES]; /* the key where there is no TLS, whose handshake proves it;
                                         else zero */
};
_Static_assert(sizeof(struct gn_link_data) == 80, "data connection");

/* program -> gantryd */
struct gn_link_segment {
    uint64_t bytes;
};

/* gantryd -> program, with the segment's descriptor. Index 0 is the data area of `attached`. */
struct gn_link_segment_made {
    uint32_t index;
    uint32_t zero;
    uint64_t bytes;
};
_Static_assert(sizeof(struct gn_link_segment_made) == 16, "segment made");

/* either way: the answer to the request of the same seq */
struct gn_link_error {
    uint32_t code; /* errno */
    uint32_t zero;
    char what[384];
    char fix[256];
};
_Static_assert(sizeof(struct gn_link_error) == 648, "error");

#endif
