/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_H
#define GN_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "link/role.h"

/* `gantry`, the command line: what its subcommands share. One process, one command. */

enum gn_ctl_exit {
    GN_EXIT_OK = 0,
    GN_EXIT_FAILED = 1,
    GN_EXIT_USAGE = 2,
    /* `run`: Gantry failed, not the program; also an error of its usage */
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

/* `sim`: judged by src/sim. */
struct gn_ctl_sim_args {
    struct gn_ctl_words tenants, programs, policies;
    const char *devices, *time, *slice, *spin, *seed, *trace;
    bool cost;
};

/* A subcommand's options. What was not given is NULL, 0 or false. */
struct gn_ctl_args {
    const char *command; /* "ls" */
    const char *connect;
    const char *tenant;
    uint32_t weight;
    uint64_t memory_bytes;
    const char *mode;
    const char *token_file;
    bool no_memory_limit;
    bool has_vgpus;
    uint32_t vgpus; /* 0: none */
    bool has_cap, has_floor;
    bool has_socket, socket; /* of tenant */
    uint32_t cap, floor;     /* in millionths; 0: none */
    struct gn_ctl_words uids, gids, owner, modes, devices;
    const char *reason; /* of kill */
    struct gn_ctl_sim_args sim;
    bool once;
    uint64_t delay_ns; /* of top; 0: not given */
    const char *sort;
    const char *output, *vgpu; /* of trace; its --seconds are delay_ns */
    bool recording;            /* of trace */
    uint32_t drain_timeout_ms;
    bool stop_and_copy;
    uint32_t rounds; /* 0: not given */
    uint64_t bandwidth_bytes;
    const char *device; /* of migrate; NULL: not given */
    bool stays_on_tcp;  /* of migrate and drain: also where the program is on the same machine */
    struct gn_ctl_words token_files; /* of migrate and drain */
    bool stop;                       /* of checkpoint */
    bool undo;                       /* of drain */
    bool strict;                     /* of doctor */
    bool json;
    bool quiet; /* nothing is shown of what is under way */
    bool help;
    char **rest; /* NULL-terminated: the program and its arguments, or the words of the command */
    char *words[GN_CTL_WORDS + 1]; /* rest, of a command whose options may stand anywhere */
};

struct gn_ctl_command {
    const char *name;
    const char *synopsis; /* what follows `gantry NAME` */
    const char *summary;
    const char *details; /* the rest of its --help: options, then examples */
    unsigned options;    /* GN_OPTION_* */
    int max_rest;        /* words after the options; -1: a program's command line */
    int (*run)(const struct gn_ctl_args *args);
};

enum {
    GN_OPTION_CONNECT = 1u << 0,
    GN_OPTION_JSON = 1u << 1,
    GN_OPTION_RUN = 1u << 2,    /* tenant, token-file, weight, memory, mode */
    GN_OPTION_TENANT = 1u << 3, /* weight, cap, floor, memory, uid, gid, token-file, mode, device */
    GN_OPTION_ANYWHERE = 1u << 4, /* words and options may be mixed; at most GN_CTL_WORDS words */
    GN_OPTION_SIM = 1u << 5,      /* those of struct gn_ctl_sim_args */
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

/* commands.c: NULL name at the end. */
extern const struct gn_ctl_command gn_ctl_commands[];
const struct gn_ctl_command *gn_ctl_find(const char *name);

/* arguments.c: argv from the subcommand's name on. 0, or -EINVAL and a sentence; *ret is filled as
 * far as it went. */
int gn_ctl_parse(const struct gn_ctl_command *command, int argc, char **argv,
                 struct gn_ctl_args *ret, struct gn_error *err);

/* Letters, digits, `_ . -`, up to 63. 0 or -EINVAL. */
int gn_ctl_check_tenant(const char *name, struct gn_error *err);

/* sizes.c: "512", "1.5K", "64M"; ret has room for 16. Returns ret. */
char *gn_ctl_format_size(uint64_t bytes, char *ret);

/* suggest.c: of the n names, the one that `word` was most likely meant to be; NULL when none is
 * near. */
const char *gn_ctl_nearest(const char *word, const char *(*name)(int i), int n);

/*
 * output.c. A failure is one sentence on stderr and, with --json, an object on stdout. `what` is
 * the short form, as in "cannot list the vGPUs". Returns status.
 */
int gn_ctl_fail(const struct gn_ctl_args *args, int status, const char *what,
                const struct gn_error *err);

/*
 * interrupted.c. From now on SIGINT ends the command at once, as a failure: it says what becomes of
 * what gantryd has been asked for. `what` as above; once.
 */
void gn_ctl_when_interrupted(const struct gn_ctl_args *args, const char *what, const char *then,
                             const char *fix);

/* Prints {"version":1, ...} on one line and ends stdout well; takes the reference. 0, or a failure
 * that it has reported. */
int gn_ctl_print_json(const struct gn_ctl_args *args, json_t *root);
/* The "id" of a reply's object, for people; "?" where it is none. */
const char *gn_ctl_id_of(const json_t *o);

/* At the end of what was printed: 0, or a failure that it has reported (a full disk). */
int gn_ctl_flush(const struct gn_ctl_args *args);

/* ask.c: a control request's reply, to be json_decref'd. 0 or -errno: -EREMOTEIO: it was refused;
 * of a move -ENOENT: its vGPU is gone, -ENOBUFS: device memory is short where it is to go. `query`
 * is the name of a request; `text` is one as JSON, and `role` what it needs
 * (gn_link_connect_control). */
int gn_ctl_ask(const char *connect, const char *query, json_t **ret, struct gn_error *err);
int gn_ctl_ask_text(const char *connect, enum gn_role role, const char *text, json_t **ret,
                    struct gn_error *err);
/* The same on a connection that is there already: gn_link_connect_control. */
struct gn_link;
struct gn_control_wish;
int gn_ctl_ask_on(struct gn_link *link, const char *text, json_t **ret, struct gn_error *err);

/* migrate_outbound.c: a vGPU from the gantryd of the link `here` to the one that listens at `to`.
 * What the options say of a move; the address as whoever else connects to it must name it, 0 or
 * -errno; a connection with it, over tcp as this tenant: 0, or -errno: -EACCES: that one is not let
 * in; the move, which takes its time (gn_link_set_patience). 0, and the reply, to be json_decref'd;
 * or as above. */
struct gn_ctl_tokens;
struct gn_control_wish gn_ctl_move_wish(const struct gn_ctl_args *args);
int gn_ctl_outbound_address(const char *to, char *ret,
                            struct gn_error *err); /* GN_ADDRESS_TEXT_BYTES */
int gn_ctl_outbound_connect(const char *address, const struct gn_ctl_tokens *tokens,
                            const char *tenant, struct gn_link **ret, struct gn_error *err);
int gn_ctl_migrate_outbound(struct gn_link *here, const struct gn_control_wish *wish,
                            const struct gn_ctl_tokens *tokens, json_t **ret, struct gn_error *err);

int gn_ctl_list_tenants(const struct gn_ctl_args *args);

/* Where this installation keeps its ICD file; found from the program's own place. */
#define GN_PLACE_BYTES 4096
struct gn_ctl_places {
    char vendors[GN_PLACE_BYTES]; /* what OCL_ICD_VENDORS is to name: a directory, or a file in one
                                     that others share */
    char icd[GN_PLACE_BYTES];     /* gantry.icd */
    char library[GN_PLACE_BYTES]; /* what it names */
    char prefix[GN_PLACE_BYTES];  /* the folder that has bin/gantry */
};

/* places.c: 0 or -errno. The library is there when this returns 0. */
int gn_ctl_find_places(struct gn_ctl_places *ret, struct gn_error *err);
/* The path of this file beside the library. Returns ret, of GN_PLACE_BYTES. */
const char *gn_ctl_beside_library(const struct gn_ctl_places *places, const char *file, char *ret);

/* The subcommands. */
int gn_ctl_run(const struct gn_ctl_args *args);
int gn_ctl_ls(const struct gn_ctl_args *args);
int gn_ctl_devices(const struct gn_ctl_args *args);
int gn_ctl_tenant(const struct gn_ctl_args *args);
int gn_ctl_policy(const struct gn_ctl_args *args);
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

/* Opens a plain file that holds a stream (inspect.c). 0, or -errno and why. */
int gn_ctl_open_stream(const char *path, int *ret, struct gn_error *err);

#endif
