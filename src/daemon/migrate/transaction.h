/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_MIGRATE_TRANSACTION_H
#define GN_DAEMON_MIGRATE_TRANSACTION_H

#include "daemon/daemon.h"
#include "daemon/migrate/stopped_processes.h"

/* What transaction.c and checkpoint.c share: a vGPU on its way, one at a time for each.
 * docs/moves.md. */
enum gn_move_what {
    GN_MOVE_LOCAL,   /* to a new worker */
    GN_MOVE_SAVE,    /* into a file; there is no `to` */
    GN_MOVE_RESTORE, /* out of one; `from` has no worker */
    GN_MOVE_AWAY,    /* to another gantryd; there is no `to` */
};

struct gn_move {
    enum gn_move_what what;
    struct gn_vgpu_record *from, *to;
    struct gn_conn *asker; /* NULL: gone */
    uint32_t seq;
    bool answered; /* the asker waits for nothing now: a checkpoint, between its two requests */
    enum gn_move_to where;
    struct gn_worker_save how;
    int stream_fd; /* the old worker's end, until it has it */
    bool asked;    /* the old worker has been; the program, to hand over its session */
    bool stops;    /* it closes its gate */
    bool saved, loaded;
    uint32_t number;                     /* AWAY */
    char address[GN_LINK_ADDRESS_BYTES]; /* AWAY: the other gantryd's */
    bool kept; /* SAVE that stops it: the file is safe. It is decided, and only waited for */
    bool told; /* the same over tcp: the file is safe, and the program, which decides, has been told
                */
    uint64_t began_ns, asked_ns, until_ns;
    struct gn_stop_watch stop_watch;
    struct gn_worker_moved out, in;
};

/* The last word to who asked. Takes `text`, which may be NULL. */
void gn_move_answer(struct gn_move *m, char *text);
/* It is over; no worker hears of it. Frees m. */
void gn_move_drop(struct gn_move *m);
/* Nothing has come of it: who had the vGPU goes on, or waits on. Frees m. */
void gn_move_give_up(struct gn_move *m, const struct gn_error *err);
/* As the last, where who was to take the vGPU says so. Who has it may be dead and not yet be heard
 * to be: while it writes, it has the next word, and m lasts until then. Else frees m. */
void gn_move_fails_there(struct gn_move *m, const struct gn_error *err);

/* Can it be moved now? 0 or -errno: -ENOENT: its program has ended. */
int gn_move_may_begin(const struct gn_vgpu_record *v, struct gn_error *err);
/* -EBUSY, with the reason: v's worker has not heard yet that an earlier move is over. */
int gn_refuse_leaving(const struct gn_vgpu_record *v, struct gn_error *err);
/* Is all that v's worker has had written? Then its end is not the vGPU's. */
bool gn_move_has_all(const struct gn_vgpu_record *v);
/* What came with the request: the caller's. 0 or -errno. */
int gn_move_set_file(struct gn_conn *c, int *ret, struct gn_error *err);
/* The old worker is to write into stream_fd. m may be gone after. */
void gn_move_ask_save(struct gn_move *m);
/* What a worker says of its part, well-formed. */
bool gn_move_answered(const struct gn_frame *f, int n_fds, struct gn_worker_moved *ret);
/* progress.c: how far it is. n: what the counters of who has the vGPU say. The texts are m's. */
struct gn_counters;
struct gn_control_moving;
void gn_move_progress(const struct gn_move *m, const struct gn_counters *n, uint64_t now_ns,
                      struct gn_control_moving *ret);
/* The reply of a move that is done. */
char *gn_move_figures(const struct gn_move *m, const char *to, uint64_t now_ns, uint64_t boot_ns,
                      uint64_t load_ns);

/* outbound.c, for transaction.c: all has been written, m may be gone after; nothing comes of it,
 * which v's program hears later. */
void gn_outbound_saved(struct gn_move *m);
/* Its program has not said in time where it goes on: the asker is told so, and m stays as it is. */
void gn_outbound_unanswered(struct gn_move *m);
void gn_outbound_aborted(struct gn_vgpu_record *v, uint32_t number, const struct gn_error *err);

/* The connection of a program elsewhere has broken, or it has come back: what that says of a move
 * that is not decided. */
void gn_outbound_unsettled(struct gn_vgpu_record *v, bool returned);

/* What n's worker maps beside v's: the same. n's that are there stay. 0 or -errno. */
int gn_move_lend(struct gn_vgpu_record *n, const struct gn_vgpu_record *v);

/* checkpoint.c, for transaction.c. After each m may be gone. */
void gn_checkpoint_saved(struct gn_move *m, int session_fd);
void gn_checkpoint_given_up(struct gn_move *m);
void gn_checkpoint_settle(
    struct gn_move *m); /* its worker is dead, or it was waited for long enough */
void gn_restore_given_up(struct gn_vgpu_record *v, const struct gn_error *err);
/* Before the new worker may go: the program is told. False: it has gone, and m with it. */
bool gn_restore_tell(struct gn_move *m);
char *gn_restore_reply(const struct gn_move *m);

#endif
