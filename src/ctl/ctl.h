/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_H
#define GN_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * `gantry`, the command line: the declarations that its subcommands share. A process runs one
 * command.
 */

enum gn_ctl_exit {
    GN_EXIT_OK = 0,
    GN_EXIT_FAILED = 1,
    GN_EXIT_USAGE = 2,
    /* `run`: Gantry itself failed, not the program; also wrong usage of `run`. */
    GN_EXIT_RUN_FAILED = 125,
    GN_EXIT_RUN_NOT_EXECUTABLE = 126,
    GN_EXIT_RUN_NOT_FOUND = 127,
};

/* The values of an option that may be repeated. */
#define GN_CTL_WORDS 64
struct gn_ctl_words {
    int n;
    const char *items[GN_CTL_WORDS];
};

/* The options of `sim`, as text; src/sim parses them. */
struct gn_ctl_sim_args {
    struct gn_ctl_words tenants, programs, policies, places;
    const char *devices, *time, *slice, *spin, *seed, *trace;
    const char *memory, *slot, *bus, *swap_share;
    bool cost;
};

/* A subcommand's options. An option that was not given is NULL, 0 or false. */
struct gn_ctl_args {
    const char *command; /* such as "ls" */
    const char *connect;
    const char *tenant;
    uint32_t weight;
    uint64_t memory_bytes;
    const char *mode;
    const char *token_file;
    bool no_memory_limit, has_reserve;
    uint64_t reserve_bytes;
    bool has_vgpus;
    uint32_t vgpus; /* 0: no limit */
    bool has_cap, has_floor;
    bool has_socket, socket; /* of tenant: make (true) or remove its own socket */
    uint32_t cap, floor;     /* in millionths; 0: none */
    struct gn_ctl_words uids, gids, owner, modes, devices;
    const char *reason; /* of kill */
    struct gn_ctl_sim_args sim;
    bool once;
    uint64_t delay_ns; /* of top, and of trace (its --seconds); 0: not given */
    const char *sort;
    const char *output, *vgpu; /* of trace */
    bool recording;            /* of trace */
    uint32_t drain_timeout_ms;
    bool stop_and_copy;
    uint32_t rounds; /* 0: not given */
    uint64_t bandwidth_bytes;
    const char *device; /* of migrate; NULL: not given */
    /* Of migrate and drain: use tcp even when the program runs on the destination's machine. */
    bool stays_on_tcp;
    struct gn_ctl_words token_files; /* of migrate and drain */
    bool stop;                       /* of checkpoint */
    bool undo;                       /* of drain */
    bool strict;                     /* of doctor */
    bool json;
    bool quiet; /* show no progress */
    bool help;
    char **rest; /* NULL-terminated: the program and its arguments, or the command's words */
    char *words[GN_CTL_WORDS + 1]; /* storage of `rest` when options may stand between the words */
};

struct gn_ctl_command {
    const char *name;
    const char *synopsis; /* the usage after `gantry NAME` */
    const char *summary;
    const char *details; /* the rest of its --help: options, then examples */
    unsigned options;    /* GN_OPTION_* */
    /* Maximum number of words after the options; -1: a program's command line. */
    int max_rest;
    int (*run)(const struct gn_ctl_args *args);
};

enum {
    GN_OPTION_CONNECT = 1u << 0,
    GN_OPTION_JSON = 1u << 1,
    GN_OPTION_RUN = 1u << 2, /* tenant, token-file, weight, memory, mode */
    GN_OPTION_TENANT =
        1u << 3, /* weight, cap, floor, memory, reserve, uid, gid, token-file, mode, device */
    GN_OPTION_ANYWHERE = 1u << 4, /* options may stand between words; at most GN_CTL_WORDS words */
    GN_OPTION_SIM = 1u << 5,      /* the options of struct gn_ctl_sim_args */
    GN_OPTION_TOP = 1u << 6,      /* once, delay, sort */
    GN_OPTION_TRACE = 1u << 7,    /* output, recording, seconds, vgpu */
    GN_OPTION_KILL = 1u << 8,     /* tenant, reason */
    GN_OPTION_STRICT = 1u << 9,   /* strict */
    GN_OPTION_MOVE = 1u << 10,    /* drain-timeout, quiet */
    GN_OPTION_LIVE = 1u << 14,    /* stop-and-copy, rounds, bandwidth */
    GN_OPTION_AWAY = 1u << 16,    /* token-file, which may be repeated; link */
    GN_OPTION_STOP = 1u << 11,    /* stop */
    GN_OPTION_UNDO = 1u << 12,    /* undo */
    GN_OPTION_DEVICE = 1u << 15,  /* device */
};

/* commands.c. The array ends with a NULL name. */
extern const struct gn_ctl_command gn_ctl_commands[];
const struct gn_ctl_command *gn_ctl_find(const char *name);

/*
 * arguments.c: parses argv, which starts with the subcommand's name. 0, or -EINVAL and a message;
 * on an error *ret holds the options parsed so far.
 */
int gn_ctl_parse(const struct gn_ctl_command *command, int argc, char **argv,
                 struct gn_ctl_args *ret, struct gn_error *err);

/* sizes.c: formats as "512", "1.5K" or "64M"; ret has room for 16 bytes. Returns ret. */
char *gn_ctl_format_size(uint64_t bytes, char *ret);

/* suggest.c: the one of the n names that is nearest to `word`; NULL if none is near. */
const char *gn_ctl_nearest(const char *word, const char *(*name)(int i), int n);

/*
 * output.c: reports a failure as one sentence on stderr and, with --json, as an object on stdout.
 * `what` is the short form, such as "cannot list the vGPUs". Returns status.
 */
int gn_ctl_fail(const struct gn_ctl_args *args, int status, const char *what,
                const struct gn_error *err);

/*
 * interrupted.c: makes SIGINT end the command at once, as a failure, with a message built from
 * `what` (as above), `then` (the state of the request that gantryd has received) and `fix`. Call it
 * once per process.
 */
void gn_ctl_when_interrupted(const struct gn_ctl_args *args, const char *what, const char *then,
                             const char *fix);

/*
 * Prints {"version":1, ...} as one line and flushes stdout; consumes the reference. Returns 0, or
 * an exit status after reporting the failure.
 */
int gn_ctl_print_json(const struct gn_ctl_args *args, json_t *root);
/* The "id" of a reply's object, for people; "?" if it has none. */
const char *gn_ctl_id_of(const json_t *o);

/*
 * Flushes stdout after the last output. Returns 0, or an exit status after reporting the failure
 * (such as a full disk).
 */
int gn_ctl_flush(const struct gn_ctl_args *args);

/*
 * migrate_outbound.c: moves a vGPU from the gantryd of the link `here` to the gantryd that listens
 * at `to`.
 *
 * gn_ctl_move_wish() builds the request from the options. gn_ctl_outbound_address() makes the
 * address absolute, so that other processes can connect to it; 0 or -errno.
 * gn_ctl_outbound_connect() connects to the destination, over tcp as this tenant; 0 or -errno,
 * -EACCES: the destination rejects the tenant. gn_ctl_migrate_outbound() moves the vGPU and blocks
 * until the move ends (gn_link_set_patience); *ret is the reply, which the caller must json_decref;
 * errors as for gn_client_ask().
 */
struct gn_client_tokens;
struct gn_control_wish;
struct gn_link;
struct gn_control_wish gn_ctl_move_wish(const struct gn_ctl_args *args);
/* The array ret has room for GN_ADDRESS_TEXT_BYTES. */
int gn_ctl_outbound_address(const char *to, char *ret, struct gn_error *err);
int gn_ctl_outbound_connect(const char *address, const struct gn_client_tokens *tokens,
                            const char *tenant, struct gn_link **ret, struct gn_error *err);
int gn_ctl_migrate_outbound(struct gn_link *here, const struct gn_control_wish *wish,
                            const struct gn_client_tokens *tokens, json_t **ret,
                            struct gn_error *err);

int gn_ctl_list_tenants(const struct gn_ctl_args *args);

/* The subcommands. */
int gn_ctl_run(const struct gn_ctl_args *args);
int gn_ctl_ls(const struct gn_ctl_args *args);
int gn_ctl_devices(const struct gn_ctl_args *args);
int gn_ctl_tenant(const struct gn_ctl_args *args);
int gn_ctl_policy(const struct gn_ctl_args *args);
int gn_ctl_place(const struct gn_ctl_args *args);
int gn_ctl_top(const struct gn_ctl_args *args);
int gn_ctl_trace(const struct gn_ctl_args *args);
int gn_ctl_migrate(const struct gn_ctl_args *args);
int gn_ctl_mode(const struct gn_ctl_args *args);
int gn_ctl_kill(const struct gn_ctl_args *args);
int gn_ctl_drain(const struct gn_ctl_args *args);
int gn_ctl_checkpoint(const struct gn_ctl_args *args);
int gn_ctl_restore(const struct gn_ctl_args *args);
int gn_ctl_sim(const struct gn_ctl_args *args);
int gn_ctl_inspect(const struct gn_ctl_args *args);
int gn_ctl_doctor(const struct gn_ctl_args *args);
int gn_ctl_help(const struct gn_ctl_args *args);
void gn_ctl_print_overview(void);
void gn_ctl_print_help(const struct gn_ctl_command *command);

/* Opens a regular file that holds a checkpoint stream (inspect.c). 0, or -errno with a message. */
int gn_ctl_open_stream(const char *path, int *ret, struct gn_error *err);

#endif
