/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gantry drain`: moves all vGPUs of a gantryd to another gantryd, several at once, while the first
 * one accepts no new programs. AT_ONCE threads move one vGPU each at a time; the main thread lists
 * the vGPUs and watches for Ctrl-C. If the destination is short of memory for a vGPU, its move is
 * retried each time another move has ended, until no move is under way that could change the
 * outcome.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/list.h"
#include "client/client.h"
#include "control/control.h"
#include "control/json_region.h"
#include "ctl/ctl.h"
#include "ctl/progress.h"
#include "ctl/text.h"
#include "client/tokens.h"
#include "link/address.h"
#include "link/link.h"

#define AT_ONCE    4
#define TELL_LOOKS 20
/* How often to check for an interrupt and for programs still attaching. */
#define LOOK_UP_NS 100000000

static const char failure[] = "cannot drain this gantryd";
static const char not_understood[] = "use a gantry of gantryd's version";

enum state {
    WAITS,
    MOVES,
    SHORT, /* not enough memory there; `n_ends` was `tried_at` when the move was tried */
    MOVED,
    STAYS,
    ENDED, /* its program ended in the meantime */
};

struct item {
    struct gn_list link;
    json_t *shown; /* its object in the --json output */
    const char *id;
    enum state state;
    unsigned tried_at;
    bool barred;         /* the destination rejects its tenant */
    struct gn_error err; /* valid in SHORT and STAYS */
};

struct drain {
    const struct gn_ctl_args *args;
    struct gn_control_wish wish;
    struct gn_client_tokens tokens;
    char to[GN_ADDRESS_TEXT_BYTES];
    struct gn_link *here;       /* used by the main thread only */
    struct gn_ctl_watch *watch; /* held while anything is printed */
    bool interrupted;
    /* Protects the fields below and the printed output. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct gn_list items;
    unsigned n_ends, n_under_way;
    bool no_more;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* The first signal stops new moves; the second one kills the process. */
static void set_signals(void)
{
    const struct sigaction stop = {.sa_handler = interrupt, .sa_flags = SA_RESETHAND},
                           ignored = {.sa_handler = SIG_IGN};
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGPIPE, &ignored, NULL);
}

/* ---- results */

static void say(const struct drain *d, FILE *to, const struct item *it, const char *what,
                const char *why, const char *fix)
{
    char line[1024];
    const char *program = json_string_value(json_object_get(it->shown, "program"));
    snprintf(line, sizeof line, "%s (%.60s) %s%s%s%s%s", it->id, program ? program : "-", what,
             why[0] ? ": " : "", why, fix[0] ? "; " : "", fix);
    char *plain = gn_text_printable(line);
    gn_ctl_watch_hold(d->watch);
    if (plain)
        fprintf(to, "%s%s\n", to == stderr ? "gantry drain: " : "", plain);
    fflush(to);
    gn_ctl_watch_go_on(d->watch);
    free(plain);
}

static void ends(struct drain *d, struct item *it, enum state state)
{
    static const char *const results[] = {[MOVED] = "moved", [STAYS] = "stays", [ENDED] = "ended"};
    char what[80];
    it->state = state;
    json_object_set_new(it->shown, "result", json_string(results[state]));
    snprintf(what, sizeof what, "%s", state == ENDED ? "has ended meanwhile" : results[state]);
    if (state == MOVED) {
        json_t *downtime = json_object_get(json_object_get(it->shown, "move"), "downtime_ns");
        json_object_set(it->shown, "downtime_ns", downtime);
        snprintf(what, sizeof what, "moved; it was paused for %.1f ms",
                 (double)json_integer_value(downtime) / 1e6);
    } else if (state == STAYS) {
        json_object_set_new(it->shown, "why", gn_json_string(it->err.what));
        json_object_set_new(it->shown, "fix", gn_json_string(it->err.fix));
    }
    if (!d->args->json)
        say(d, stdout, it, what, state == STAYS ? it->err.what : "",
            state == STAYS ? it->err.fix : "");
}

/* ---- the moving threads */

static struct item *find(const struct drain *d, enum state state)
{
    gn_list_for_each(it, (struct gn_list *)(uintptr_t)&d->items, struct item, link)
    {
        if (it->state == state && (state != SHORT || it->tried_at != d->n_ends))
            return it;
    }
    return NULL;
}

/* The next vGPU to move. Those not tried yet come first. NULL: none. */
static struct item *next(const struct drain *d)
{
    struct item *it = d->no_more ? NULL : find(d, WAITS);
    return d->no_more || it ? it : find(d, SHORT);
}

static const char *tenant_of(const struct item *it)
{
    const char *tenant = json_string_value(json_object_get(it->shown, "tenant"));
    return tenant ? tenant : "";
}

/*
 * A vGPU of the same tenant that the destination has rejected, or NULL. The tenant's token is not
 * shown again, because gantryd ignores all tokens for a while after too many wrong ones.
 */
static const struct item *find_barred(const struct drain *d, const struct item *like)
{
    gn_list_for_each(it, (struct gn_list *)(uintptr_t)&d->items, struct item, link)
    {
        if (it->barred && !strcmp(tenant_of(it), tenant_of(like)))
            return it;
    }
    return NULL;
}

static enum state move(const struct drain *d, const char *id, json_t **ret, bool *ret_barred,
                       struct gn_error *err)
{
    struct gn_control_wish wish = d->wish;
    struct gn_link *here = NULL;
    json_t *about = NULL;
    struct gn_error ignored;
    wish.vgpu = id;
    int rc = gn_link_connect_control(d->args->connect, GN_ROLE_CONTROL, &here, err);
    if (rc)
        return STAYS;
    gn_link_set_patience(here, -1); /* gantryd has its own timeout */
    rc = gn_ctl_migrate_outbound(here, &wish, &d->tokens, ret, err);
    *ret_barred = rc == -EACCES;
    if (!rc && !json_is_object(json_object_get(*ret, "move")))
        rc = gn_fail(err, EPROTO, not_understood, "gantryd's reply has no \"move\"");
    enum state state = !rc ? MOVED : rc == -ENOBUFS ? SHORT : STAYS;
    char *text = state == STAYS ? gn_control_about_request(id) : NULL;
    if (text && gn_client_ask_on(here, text, &about, &ignored) == -ENOENT)
        state = ENDED;
    free(text);
    json_decref(about);
    gn_link_close(here);
    return state;
}

static void *moves(void *arg)
{
    struct drain *d = arg;
    pthread_mutex_lock(&d->lock);
    for (;;) {
        struct item *it = next(d);
        if (!it && d->no_more)
            break;
        if (!it) {
            pthread_cond_wait(&d->changed, &d->lock);
            continue;
        }
        const struct item *other = find_barred(d, it);
        const unsigned n_ends = d->n_ends;
        const bool first = it->state == WAITS;
        bool barred = other != NULL;
        json_t *reply = NULL;
        enum state state = STAYS;
        if (other) {
            it->err = other->err;
        } else {
            it->state = MOVES;
            d->n_under_way++;
            pthread_mutex_unlock(&d->lock);
            state = move(d, it->id, &reply, &barred, &it->err);
            pthread_mutex_lock(&d->lock);
            d->n_under_way--;
        }
        it->state = state;
        it->barred = barred && state == STAYS;
        it->tried_at = n_ends;
        if (state != SHORT) {
            d->n_ends++;
            if (state == MOVED)
                json_object_set(it->shown, "move", json_object_get(reply, "move"));
            ends(d, it, state);
        } else if (first && (d->n_under_way || next(d))) {
            say(d, stderr, it, "waits for other migrations to end", it->err.what, "");
        }
        json_decref(reply);
        pthread_cond_broadcast(&d->changed);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* ---- the main thread */

static int ask(struct gn_link *link, char *text, json_t **ret, struct gn_error *err)
{
    int rc =
        text ? gn_client_ask_on(link, text, ret, err) : gn_fail(err, ENOMEM, NULL, "out of memory");
    free(text);
    return rc;
}

/*
 * Starts or ends draining. 0 or -errno. *ret_coming: how many accepted programs have no vGPU yet;
 * ret_coming may be NULL.
 */
static int set_draining(struct gn_link *link, bool on, json_int_t *ret_coming, struct gn_error *err)
{
    json_t *reply = NULL;
    int rc = ask(link, gn_control_drain_request(on), &reply, err);
    const json_t *said = json_object_get(reply, "drain");
    if (!rc && json_is_true(json_object_get(said, "draining")) != on)
        rc = gn_fail(err, EPROTO, not_understood, "gantryd's reply has no \"drain\"");
    if (ret_coming)
        *ret_coming = json_integer_value(json_object_get(said, "coming"));
    json_decref(reply);
    return rc;
}

static bool known(const struct drain *d, const char *id)
{
    gn_list_for_each(it, (struct gn_list *)(uintptr_t)&d->items, struct item, link)
    {
        if (!strcmp(it->id, id))
            return true;
    }
    return false;
}

/* Adds the vGPUs that are new since the last call to the list. 0 or -errno. */
static int look(struct drain *d, json_int_t *ret_coming, bool *ret_new, struct gn_error *err)
{
    json_t *reply = NULL, *v;
    size_t i;
    /*
     * The order matters: a program that is no longer counted in *ret_coming is in the list that
     * follows.
     */
    int rc = set_draining(d->here, true, ret_coming, err);
    if (!rc)
        rc = ask(d->here, gn_control_request("ls"), &reply, err);
    *ret_new = false;
    pthread_mutex_lock(&d->lock);
    json_array_foreach(json_object_get(reply, "vgpus"), i, v)
    {
        const char *id = json_string_value(json_object_get(v, "id"));
        if (!id || known(d, id))
            continue;
        struct item *it = calloc(1, sizeof *it);
        json_t *shown = it ? json_object() : NULL;
        if (!shown) {
            free(it);
            rc = gn_fail(err, ENOMEM, NULL, "out of memory");
            break;
        }
        json_object_set(shown, "id", json_object_get(v, "id"));
        json_object_set(shown, "tenant", json_object_get(v, "tenant"));
        json_object_set(shown, "program", json_object_get(v, "program"));
        it->shown = shown;
        it->id = json_string_value(json_object_get(shown, "id"));
        gn_list_append(&d->items, &it->link);
        *ret_new = true;
    }
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    json_decref(reply);
    return rc;
}

/*
 * Waits until no move is under way or can begin; with `once`, for LOOK_UP_NS or until a thread
 * signals a change.
 */
static void wait_for_moves(struct drain *d, bool once)
{
    pthread_mutex_lock(&d->lock);
    do {
        struct timespec until;
        if (interrupted && !d->interrupted) {
            d->interrupted = d->no_more = true;
            gn_ctl_watch_hold(d->watch);
            if (d->n_under_way)
                fprintf(stderr,
                        "gantry drain: interrupted: no more migrations begin, waiting for %u; "
                        "interrupt again to quit at once\n",
                        d->n_under_way);
            gn_ctl_watch_go_on(d->watch);
            pthread_cond_broadcast(&d->changed);
        }
        if (!once && !d->n_under_way && !next(d))
            break;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_UP_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&d->changed, &d->lock, &until);
    } while (!once);
    pthread_mutex_unlock(&d->lock);
}

static int move_all(struct drain *d, struct gn_error *err)
{
    json_int_t coming = 0;
    unsigned n_looks = 0;
    bool more = true;
    int rc = 0;
    while (!rc && !d->interrupted && (more || coming)) {
        rc = look(d, &coming, &more, err);
        n_looks = !rc && coming ? n_looks + 1 : 0;
        if (n_looks == TELL_LOOKS) {
            gn_ctl_watch_hold(d->watch);
            fprintf(stderr, "gantry drain: waiting for %lld vGPUs that are still starting\n",
                    (long long)coming);
            gn_ctl_watch_go_on(d->watch);
        }
        /* no message announces that they have arrived */
        if (!rc)
            wait_for_moves(d, coming != 0);
    }
    pthread_mutex_lock(&d->lock);
    d->no_more = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    return rc;
}

/* Starts the moving threads, moves all vGPUs and joins the threads. */
static int run(struct drain *d, struct gn_error *err)
{
    pthread_t threads[AT_ONCE];
    sigset_t all, before;
    int n = 0, rc = 0;
    sigfillset(&all);
    /* Signals go to this thread only. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (n < AT_ONCE && (rc = pthread_create(&threads[n], NULL, moves, d)) == 0)
        n++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    rc = n ? 0 : gn_fail(err, rc, NULL, "cannot start a thread");
    if (!rc)
        rc = move_all(d, err);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    return rc;
}

/*
 * Connects to the destination. Over tcp a connection belongs to a tenant: try the tenants of the
 * listed vGPUs, or, when there are no vGPUs, those that tokens were given for.
 */
static int reach(struct drain *d, struct gn_link **ret, struct gn_error *err)
{
    json_t *reply = NULL, *tenants = json_object(), *v;
    struct gn_error later;
    const char *tenant;
    size_t i;
    int n_tried = 0, rc = ask(d->here, gn_control_request("ls"), &reply, err);
    json_array_foreach(json_object_get(reply, "vgpus"), i, v)
    {
        tenant = json_string_value(json_object_get(v, "tenant"));
        json_object_set_new(tenants, tenant ? tenant : "", json_null());
    }
    for (int k = 0; k < d->tokens.n && !json_array_size(json_object_get(reply, "vgpus")); k++)
        json_object_set_new(tenants, d->tokens.items[k].tenant, json_null());
    if (!json_object_size(tenants))
        json_object_set_new(tenants, "", json_null());
    json_decref(reply);
    json_object_foreach(tenants, tenant, v)
    {
        /* When every tenant is rejected, report the first rejection. */
        if (n_tried ? rc == -EACCES : !rc)
            rc = gn_ctl_outbound_connect(d->to, &d->tokens, tenant, ret, n_tried++ ? &later : err);
    }
    json_decref(tenants);
    return rc;
}

/* 0: this gantryd accepts no new programs any more. -errno: nothing has changed. */
static int begin(struct drain *d, struct gn_error *err)
{
    struct gn_link *there = NULL;
    json_t *status = NULL;
    struct gn_error ignored;
    bool on = false;
    int rc = gn_ctl_outbound_address(d->args->rest[0], d->to, err);
    if (!rc)
        rc = gn_client_tokens_read(d->args->token_files.items, d->args->token_files.n, &d->tokens,
                                   err);
    if (!rc)
        rc = gn_link_connect_control(d->args->connect, GN_ROLE_CONTROL, &d->here, err);
    if (!rc)
        rc = reach(d, &there, err);
    if (!rc)
        rc = ask(there, gn_control_request("status"), &status, err);
    if (!rc && json_is_true(json_object_get(json_object_get(status, "gantryd"), "draining")))
        rc = gn_fail(err, ESHUTDOWN, "gantry drain --undo there ends that",
                     "the gantryd at %.200s is draining itself", d->to);
    json_decref(status);
    status = NULL;
    if (!rc)
        on = !(rc = set_draining(d->here, true, NULL, err));
    /* The destination may be this gantryd under another address. */
    if (!rc && !(rc = ask(there, gn_control_request("status"), &status, err)) &&
        json_is_true(json_object_get(json_object_get(status, "gantryd"), "draining")))
        rc = gn_fail(err, EINVAL, "name the address of another one",
                     "the gantryd at %.200s is this one", d->to);
    if (rc && on)
        (void)set_draining(d->here, false, NULL, &ignored);
    json_decref(status);
    if (there)
        gn_link_close(there);
    return rc;
}

static int report(struct drain *d, int rc, const struct gn_error *err)
{
    unsigned n_moved = 0, n_stay = 0;
    json_t *list = json_array();
    gn_list_for_each(it, &d->items, struct item, link)
    {
        if (it->state == WAITS || (it->state == SHORT && d->interrupted))
            gn_fail(&it->err, EINTR, NULL, "the drain ended before its migration began");
        if (it->state == WAITS || it->state == SHORT)
            ends(d, it, STAYS);
        n_moved += it->state == MOVED;
        n_stay += it->state == STAYS;
        json_array_append_new(list, it->shown);
        gn_list_remove(&it->link);
        free(it);
    }
    int status = rc || n_stay || d->interrupted ? GN_EXIT_FAILED : GN_EXIT_OK;
    json_t *all = json_pack("{s:i,s:{s:o,s:i,s:i,s:b,s:o}}", "version", GN_CONTROL_VERSION, "drain",
                            "to", gn_json_string(d->to), "moved", (int)n_moved, "stay", (int)n_stay,
                            "interrupted", d->interrupted, "vgpus", list);
    if (rc) {
        const struct gn_ctl_args plain = {.command = d->args->command};
        gn_ctl_fail(&plain, GN_EXIT_FAILED, failure, err);
        json_object_set_new(all, "error",
                            json_pack("{s:s,s:o,s:o}", "what", failure, "why",
                                      gn_json_string(err->what), "fix", gn_json_string(err->fix)));
    }
    int printed;
    if (d->args->json) {
        printed = gn_ctl_print_json(d->args, all);
    } else {
        printf("%u moved to %s, %u stay%s; new programs are refused until gantry drain --undo, or "
               "until gantryd ends\n",
               n_moved, d->to, n_stay, n_stay == 1 ? "s" : "");
        printed = gn_ctl_flush(d->args);
        json_decref(all);
    }
    return printed ? printed : status;
}

static int undo(const struct gn_ctl_args *args)
{
    struct gn_error err = {{0}, {0}};
    struct gn_link *here = NULL;
    int rc = gn_link_connect_control(args->connect, GN_ROLE_CONTROL, &here, &err);
    if (!rc)
        rc = set_draining(here, false, NULL, &err);
    if (here)
        gn_link_close(here);
    if (rc)
        return gn_ctl_fail(args, GN_EXIT_FAILED, "cannot admit new programs again", &err);
    if (args->json)
        return gn_ctl_print_json(args, json_pack("{s:i,s:{s:b}}", "version", GN_CONTROL_VERSION,
                                                 "drain", "draining", false));
    printf("new programs are admitted again; programs that have moved stay there\n");
    return gn_ctl_flush(args);
}

int gn_ctl_drain(const struct gn_ctl_args *args)
{
    struct drain d = {.args = args, .wish = gn_ctl_move_wish(args), .items = GN_LIST_INIT(d.items)};
    struct gn_error err = {{0}, {0}};
    pthread_condattr_t monotonic;
    if (!args->rest[0] == !args->undo) {
        gn_fail(&err, EINVAL,
                "write gantry drain unix:PATH or tcp:HOST:PORT, or gantry drain --undo",
                args->undo ? "an address and --undo exclude each other" : "no address is given");
        return gn_ctl_fail(args, GN_EXIT_USAGE, failure, &err);
    }
    struct gn_address a;
    if (args->rest[0] && gn_address_parse(args->rest[0], &a, &err))
        return gn_ctl_fail(args, GN_EXIT_USAGE, failure, &err);
    if (args->undo)
        return undo(args);
    pthread_mutex_init(&d.lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&d.changed, &monotonic);
    set_signals();
    d.wish.to = d.to;
    int rc = begin(&d, &err), status;
    if (rc) {
        status = gn_ctl_fail(args, GN_EXIT_FAILED, failure, &err);
    } else {
        d.watch = gn_ctl_watch_start(args, NULL);
        rc = run(&d, &err);
        gn_ctl_watch_end(d.watch);
        d.watch = NULL;
        status = report(&d, rc, &err);
    }
    gn_client_tokens_forget(&d.tokens);
    if (d.here)
        gn_link_close(d.here);
    return status;
}
