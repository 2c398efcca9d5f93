/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_MIGRATE_MIGRATION_H
#define GN_DAEMON_MIGRATE_MIGRATION_H

#include "daemon/daemon.h"
#include "daemon/migrate/stopped_processes.h"
#include "daemon/migrate/transaction.h"

/*
 * A vGPU of this gantryd that is migrated, saved or restored, or comes from another gantryd;
 * docs/moves.md. One at a time for each vGPU. migration.c feeds its transaction with inputs;
 * local.c, outbound.c, inbound.c and checkpoint.c begin it, and carry out the actions of their
 * kinds. gantryd's thread.
 *
 * The destination's worker has a record of its own, which is in no list that users see. When the
 * migration commits the two records exchange their workers, and the destination's record ends with
 * the old worker in it.
 */
enum gn_migrate_to {
    GN_MIGRATE_TO_LOCAL,       /* a new worker, wherever it was */
    GN_MIGRATE_TO_REMOTE,      /* out of its program */
    GN_MIGRATE_TO_PASSTHROUGH, /* into its program */
    GN_MIGRATE_TO_N
};
extern const char *const gn_migrate_names[GN_MIGRATE_TO_N];

struct gn_migration;
struct gn_migration_action {
    uint32_t action;                           /* GN_TX_DO_*; 0: the end of a list */
    void (*carry_out)(struct gn_migration *m); /* may feed the next input */
};

struct gn_migration_ops {
    const char *what;              /* as `gantry ls` shows it */
    const char *failure, *outcome; /* texts of an abort: it was not done; the vGPU goes on */
    bool makes_worker;             /* the destination is a new worker of this gantryd's */
    const struct gn_migration_action *actions; /* those that are this kind's own */
    /* The answer of one that has succeeded; NULL: no memory. */
    char *(*reply)(const struct gn_migration *m);
};

struct gn_migration {
    struct gn_corpse corpse;
    struct gn_list link;          /* d->migrations */
    struct gn_record_owner owner; /* of `from` and `to`, until it is over */
    struct gn_transaction tx;
    const struct gn_migration_ops *ops;
    struct gn_daemon *daemon;
    struct gn_quota *quota;      /* of the vGPU's program; INBOUND: of its announcer */
    struct gn_vgpu_record *from; /* NULL: the source is no worker of this gantryd's (INBOUND) */
    struct gn_vgpu_record *to; /* NULL: the destination is no worker of this gantryd's; INBOUND: the
                                  program has not come yet */
    struct gn_conn *asker;     /* NULL: nobody waits for the answer */
    uint32_t seq;              /* of the request */
    bool answered;             /* the request has been; STOP has a second one */
    bool source_busy;          /* the source was asked to save, and has not said how that went */
    bool session_lost;         /* STOP: there was no room for the session's descriptor */
    enum gn_migrate_to where;  /* LOCAL and IN_PROCESS */
    struct gn_worker_save how; /* INBOUND: its route, its name, and its ticket as the key */
    int stream_fd;             /* of the contents, until the worker has it; -1 */
    uint32_t number;           /* OUTBOUND: its number in the program's frames; INBOUND:
                                  the vGPU's id at its source */
    char address[GN_LINK_ADDRESS_BYTES]; /* OUTBOUND: the other gantryd's */
    uint64_t boot_ns, load_ns;           /* of the destination; OUTBOUND: by the program's word */
    uint64_t began_ns;                   /* INBOUND: with the program's claim */
    struct gn_stop_watch stop_watch;
    struct gn_worker_moved out, in; /* the reports of the source and the destination */
    struct gn_error why;            /* the last reason of an input, for actions of an abort */
};

/* Begins a migration whose ops, daemon, quota, records, asker, seq and how are set, and the rest
 * zero: it is allocated, or the first member of a struct that is. From now on the life cycles of
 * its records are reported to it. It holds the quota, and frees itself when it is over. */
void gn_migration_begin(struct gn_migration *m, enum gn_transaction_kind kind);
/* A migration of `from` that nothing has happened to, for the request in hand of `asker`. It has a
 * record for the new worker, if there is to be one. NULL: no memory, and a sentence. */
struct gn_migration *gn_migration_new(enum gn_transaction_kind kind,
                                      const struct gn_migration_ops *ops,
                                      struct gn_vgpu_record *from, struct gn_conn *asker,
                                      const struct gn_worker_save *how, struct gn_error *err);
/* Takes back gn_migration_new(), without an answer to the asker, and ends `to`. */
void gn_migration_cancel(struct gn_migration *m);
/* Makes the transaction's step and carries out its actions. 0, or -EPROTO: it is out of place. m
 * may be over then; its memory lasts until this turn of the loop is over. */
int gn_migration_input(struct gn_migration *m, enum gn_transaction_input input,
                       const struct gn_error *err);
/* The vGPU's migration; NULL: there is none. */
struct gn_migration *gn_migration_of(const struct gn_vgpu_record *v);
/* The last word to the asker. Takes `text`, which may be NULL. */
void gn_migration_answer(struct gn_migration *m, char *text);

/* Makes the records exchange their workers. 0, or -EBUSY and nothing has changed. */
int gn_migration_exchange(struct gn_migration *m, struct gn_error *err);
/* Starts the new worker, with `session_fd`, which stays the caller's. 0, or -errno and a sentence:
 * m is cancelled. */
int gn_migration_boot(struct gn_migration *m, int session_fd, struct gn_error *err);
/* Asks the source to save into stream_fd. 0 or -errno and a sentence. */
int gn_migration_save(struct gn_migration *m, struct gn_error *err);
/* A ring that no program has. 0 or -errno and a sentence. */
int gn_migration_make_ring(int *ret_fd, struct gn_error *err);

/* Can v be migrated now? 0 or -errno: -ENOENT: its program has ended. */
int gn_migration_may_begin(const struct gn_vgpu_record *v, struct gn_error *err);
/* -EBUSY while v is migrated, or its worker does not know yet that a migration is over; -ESRCH of
 * one that is in a file; -ENODEV of one without a worker. */
int gn_migration_refuse_busy(const struct gn_vgpu_record *v, struct gn_error *err);
/* The descriptor that came with the request: the caller's. 0 or -errno. */
int gn_migration_set_file(struct gn_conn *c, int *ret, struct gn_error *err);

/* A worker's report, well-formed, with at most n_fds descriptors. */
bool gn_migration_parse_report(const struct gn_frame *f, int n_fds, struct gn_worker_moved *ret);

/* Nobody waits at c for answers any more. */
void gn_migrations_forget(struct gn_daemon *d, const struct gn_conn *c);
extern const struct gn_owner_deadlines gn_migration_deadlines;

/* progress.c: how far it is. n: the counters of the vGPU's worker. The texts are m's. */
struct gn_counters;
struct gn_control_moving;
void gn_migration_progress(const struct gn_migration *m, const struct gn_counters *n,
                           uint64_t now_ns, struct gn_control_moving *ret);
/* local.c: migrates a vGPU to a new worker of this gantryd, into its program or out of it. The
 * answer to `c` comes when that is over. 0 or -errno, and then nothing was begun. */
struct gn_control_wish;
int gn_migrate_local(struct gn_conn *c, struct gn_vgpu_record *v, enum gn_migrate_to to,
                     const struct gn_control_wish *wish, struct gn_error *err);
/* local.c, for outbound.c, too: the reply of a migration that is done. */
char *gn_migration_figures(const struct gn_migration *m, const char *to);

#endif
