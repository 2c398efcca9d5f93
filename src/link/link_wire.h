/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_WIRE_H
#define GN_LINK_WIRE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Payloads of the frames between a program (or `gantry`) and gantryd. docs/link.md is normative. Op
 * numbers are never reused. Strings are NUL-terminated fields of fixed size; fields named zero must
 * be zero.
 *
 * In the lists below, "->" is to gantryd, "<-" from gantryd.
 */
#define GN_LINK_MAGIC   0x79727467u /* "gtry" */
#define GN_LINK_VERSION 1u

#define GN_LINK_NAME_BYTES    128
#define GN_LINK_API_BYTES     16
#define GN_LINK_TENANT_BYTES  64
#define GN_LINK_TOKEN_BYTES   256 /* including the NUL */
#define GN_LINK_MAX_PLATFORMS 64
#define GN_LINK_MAX_SEGMENTS  256                 /* additional data segments of one vGPU */
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
    GN_LINK_DIRECT = 9, /* <- gn_link_direct, before ATTACHED: the program creates the vGPU
                         * itself. fd: a worker's end of a control socket */
    GN_LINK_HOST = 10,  /* <- gn_link_direct, unrequested: the program takes its vGPU over from
                         * its worker. fd: as DIRECT's */
    /* tcp */
    GN_LINK_ATTACHED_REMOTE = 16, /* instead of ATTACHED */
    GN_LINK_RETURN = 17,          /* -> gn_link_return */
    GN_LINK_RETURNED = 18,        /* <- empty: the session exists and accepts data connections */
    GN_LINK_BYE = 19,             /* -> empty: the program ends; do not keep its vGPU for it */
    /* checkpoints; docs/moves.md */
    GN_LINK_FILE = 24,    /* -> empty; fd: a file or socket that the next control request refers
                           * to. Operators only */
    GN_LINK_STOPPED = 25, /* <- gn_link_stopped, on the session's socket; fd: the other end of
                           * that socket. The vGPU is saved in a file */
    GN_LINK_WAIT = 26,    /* -> gn_link_wait; fds: GN_LINK_WAIT_FDS. The program of a stopped vGPU
                           * waits for a restore, possibly at another gantryd */
    GN_LINK_HAND = 27,    /* <- empty: hand the session to the new worker */
    /*
     * <- empty: the new worker has the session. Or ERROR: the restore failed; EAGAIN: send WAIT
     * again
     */
    GN_LINK_RESTORED = 28,
    /*
     * Over tcp STOPPED and RESTORED come on this connection, unrequested and without a descriptor.
     * RESTORED: the vGPU has a worker (again, or still). WAIT is gn_link_wait_tcp; its answer is
     * ATTACHED_REMOTE (the program waits, under that session) or RETURNED.
     */
    /*
     * migration to another gantryd; docs/moves.md. seq is the migration's number, which the source
     * has chosen
     */
    GN_LINK_MOVE = 11,       /* <- gn_link_move, unrequested: connect to the destination, which
                              * expects the program */
    GN_LINK_COMES = 12,      /* -> empty: the destination has a worker for the vGPU */
    GN_LINK_COMES_NEAR = 31, /* -> empty: as COMES, from a program attached over tcp that will
                              * share memory with the destination's worker */
    GN_LINK_LEAVE = 13,      /* <- empty, unrequested: the source has sent everything, and stands
                              * still until the program decides */
    GN_LINK_STAY = 14,       /* either way, gn_link_error, unrequested: the migration is aborted */
    GN_LINK_LEFT = 15,       /* -> gn_link_ready: the program has gone over to the destination */
    /* between the program and the destination */
    GN_LINK_CLAIM = 20, /* -> gn_link_claim; fd: the ring; from a program attached over tcp also
                         * a socket through which the session comes */
    /* <- gn_link_claimed: the worker is up. ERROR, now or later: the claim has failed */
    GN_LINK_CLAIMED = 21,
    GN_LINK_READY = 22,          /* <- gn_link_ready: the vGPU is loaded */
    GN_LINK_GO = 23,             /* -> empty: commit; the vGPU is owned here from now on */
    GN_LINK_PASS = 29,           /* -> gn_link_segment_made; fd: a data segment that the program has
                                  * obtained since CLAIM */
    GN_LINK_CLAIMED_REMOTE = 30, /* <- gn_link_claimed_remote: over tcp, instead of CLAIMED;
                                  * CLAIM brings no descriptor there */
    /* 32 and up: worker_wire.h */
};

/* HELLO's features */
#define GN_LINK_FEATURE_IDENTITY 1u /* a gn_link_identity follows in the payload */
#define GN_LINK_FEATURE_CONTROL                                                                    \
    2u /* for control requests only: lists no platforms, attaches to none */
#define GN_LINK_FEATURE_CLAIM                                                                      \
    4u /* for a CLAIM only, which its ticket authorizes: no tenant is checked, no platforms are    \
        * listed */
#define GN_LINK_FEATURE_NEAR 8u /* a MOVE may carry the destination's Unix socket address */

/* program -> gantryd, first */
struct gn_link_hello {
    uint32_t magic;
    uint32_t version;
    uint64_t features; /* GN_LINK_FEATURE_*; gantryd ignores unknown ones */
    uint32_t pid;      /* a hint, used where the kernel does not report the peer's pid */
    uint32_t zero;
    char program[GN_LINK_NAME_BYTES];
};
_Static_assert(sizeof(struct gn_link_hello) == 152, "hello");

/*
 * Follows gn_link_hello when its features say so. It is in HELLO because the tenant decides which
 * platforms WELCOME lists.
 */
struct gn_link_identity {
    char tenant[GN_LINK_TENANT_BYTES]; /* "": default */
    uint32_t n_token;                  /* 0: none */
    uint32_t zero;
    char token[GN_LINK_TOKEN_BYTES]; /* padded with zeros */
};
_Static_assert(sizeof(struct gn_link_identity) == 328, "identity");

/* gantryd -> program; n_platforms of gn_link_welcome_platform follow */
struct gn_link_welcome {
    uint32_t version;
    uint32_t n_platforms;
    uint64_t features; /* the offered features that gantryd has accepted */
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

/* program -> gantryd, with the descriptors named in `stdio`, stdout first */
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
    char library[GN_LINK_DRIVER_BYTES]; /* the vendor's driver, for dlopen */
};

/*
 * gantryd -> program, with four descriptors: session socket, ring segment, event table, data area
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

/* gantryd -> program on another machine. The program allocates memory of its own of these sizes. */
struct gn_link_attached_remote {
    uint32_t vgpu_id;
    uint32_t platform;
    uint64_t data_bytes;
    uint64_t memory_limit_bytes;
    uint32_t grace_ms; /* how long gantryd retains a session after its connection broke */
    uint32_t zero;
    uint8_t session[GN_LINK_SESSION_BYTES]; /* its name, sent on data connections */
    uint8_t key[GN_LINK_KEY_BYTES];         /* random, for this session alone */
};
_Static_assert(sizeof(struct gn_link_attached_remote) == 96, "attached remote");

/* program -> gantryd, on this control connection or a new one: does the session still exist? */
struct gn_link_return {
    uint8_t session[GN_LINK_SESSION_BYTES];
    uint8_t key[GN_LINK_KEY_BYTES];
};

/*
 * The key of a stopped vGPU, needed to restore it into its program. Only the checkpoint file and
 * the program have it.
 */
#define GN_LINK_STOP_KEY_BYTES 32

/* gantryd -> program */
struct gn_link_stopped {
    uint32_t vgpu_id;
    uint32_t zero;
    uint8_t key[GN_LINK_STOP_KEY_BYTES];
};
_Static_assert(sizeof(struct gn_link_stopped) == 40, "stopped");

/* program -> gantryd. The fields of ATTACH, and the number of segments. */
struct gn_link_wait {
    uint32_t vgpu_id; /* the previous one; gantryd ignores it and assigns a new id to a vGPU that it
                       * does not know */
    uint32_t platform;
    uint32_t weight;
    uint32_t n_segments; /* data segments beyond the first */
    uint64_t memory_bytes;
    uint8_t key[GN_LINK_STOP_KEY_BYTES];
};
_Static_assert(sizeof(struct gn_link_wait) == 56, "wait");

/*
 * Over tcp: the program waits under its present session; a gantryd that does not know that session
 * assigns another.
 */
struct gn_link_wait_tcp {
    struct gn_link_wait wait;
    uint8_t session[GN_LINK_SESSION_BYTES];
    uint8_t key[GN_LINK_KEY_BYTES];
};
_Static_assert(sizeof(struct gn_link_wait_tcp) == 120, "wait");

/*
 * HAND: the new worker's end of a socket, through which the program sends the session after HAND.
 * RING: the request ring.
 */
enum { GN_LINK_WAIT_HAND, GN_LINK_WAIT_RING, GN_LINK_WAIT_FDS };

#define GN_LINK_ADDRESS_BYTES 272
#define GN_LINK_TICKET_BYTES  32
#define GN_LINK_KERNEL_BYTES  16

/*
 * gantryd -> program. The ticket is valid once, for a minute, for this vGPU. Over tcp it is also
 * the TLS key of the identity `name`.
 */
struct gn_link_move {
    char address[GN_LINK_ADDRESS_BYTES];
    uint8_t ticket[GN_LINK_TICKET_BYTES];
    uint8_t name[GN_LINK_SESSION_BYTES];
    uint32_t secure; /* 1: use TLS to the destination, since `gantry` reached it by TLS; ignored
                      * by programs that are attached by TLS */
    uint32_t zero;
    /*
     * For programs attached over tcp with FEATURE_NEAR: the destination's unix:PATH, and the boot
     * id of its kernel, by which a program recognizes that it runs on that machine (base/kernel.h).
     * Otherwise the payload ends before `near`.
     */
    char near[GN_LINK_ADDRESS_BYTES];
    uint8_t kernel[GN_LINK_KERNEL_BYTES];
};
_Static_assert(sizeof(struct gn_link_move) == 632, "move");
#define GN_LINK_MOVE_PLAIN_BYTES 344
_Static_assert(offsetof(struct gn_link_move, near) == GN_LINK_MOVE_PLAIN_BYTES, "move");

/* program -> destination */
struct gn_link_claim {
    uint32_t vgpu_id;    /* the previous one; gantryd ignores it: the ticket identifies the vGPU */
    uint32_t n_segments; /* data segments beyond the first */
    uint8_t ticket[GN_LINK_TICKET_BYTES];
};
_Static_assert(sizeof(struct gn_link_claim) == 40, "claim");

struct gn_link_claimed {
    uint32_t vgpu_id; /* the previous id, unless another vGPU has it at the destination */
    uint32_t zero;
    struct gn_link_welcome_platform platform;
};
_Static_assert(sizeof(struct gn_link_claimed) == 160, "claimed");

/* With the program's new session. */
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
 * The first bytes of a data connection, in plain text; the rest is between the program and its
 * worker. Also begins the connection through which a vGPU comes from another gantryd: there
 * `session` and `proof` are a migration's name and ticket, and gantryd answers with one byte,
 * GN_LINK_DATA_TAKEN.
 */
#define GN_LINK_DATA_TAKEN 1u
struct gn_link_data {
    uint64_t magic;
    uint32_t version;
    uint32_t zero;
    uint8_t session[GN_LINK_SESSION_BYTES];
    uint8_t proof[GN_LINK_KEY_BYTES]; /* without TLS the key; with TLS, whose handshake proves
                                       * the key, zero */
};
_Static_assert(sizeof(struct gn_link_data) == 80, "data connection");

/* program -> gantryd */
struct gn_link_segment {
    uint64_t bytes;
};

/* gantryd -> program, with the segment's descriptor. Index 0 is the data area of ATTACHED. */
struct gn_link_segment_made {
    uint32_t index;
    uint32_t zero;
    uint64_t bytes;
};
_Static_assert(sizeof(struct gn_link_segment_made) == 16, "segment made");

/* either way: the answer to the request with the same seq */
struct gn_link_error {
    uint32_t code; /* errno */
    uint32_t zero;
    char what[384];
    char fix[256];
};
_Static_assert(sizeof(struct gn_link_error) == 648, "error");

#endif
