/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main program of gantryd, the daemon that accepts programs at its sockets, gives each a vGPU
 * and has a worker process run it. This file starts all parts, runs the event loop on this thread,
 * and stops the parts in order. Other threads: the scheduler's and the log's, always; and as needed
 * one for TLS handshakes, one that removes cgroups, and those that close descriptors. gantryd loads
 * no vendor's driver, and sleeps while nothing happens.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "backend/api_info.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "control/json_region.h"
#include "daemon/net/connection_limits.h"
#include "daemon/daemon.h"
#include "daemon/vgpu/template.h"
#include "daemon/net/listen_tcp.h"
#include "daemon/log_writer.h"
#include "daemon/migrate/migration.h"
#include "daemon/vgpu/spawn.h"
#include "daemon/net/connection_turns.h"
#include "daemon/net/attach.h"
#include "daemon/net/listener.h"
#include "daemon/programs.h"
#include "daemon/schedule/late_holders.h"
#include "daemon/schedule/placement_orders.h"
#include "daemon/tenants/memory.h"
#include "daemon/vgpu/lifecycle.h"
#include "daemon/vgpu/orphans.h"
#include "link/address.h"

static const char help[] =
    "usage: gantryd [--config FILE] [--socket PATH] [--listen tcp:HOST:PORT] [--insecure]\n"
    "               [--listen-control tcp:HOST:PORT --operator-subject NAME]...\n"
    "               [--tls-certificate FILE --tls-key FILE [--tls-client-authority FILE]]\n"
    "               [--tcp-grace SECONDS] [--device SELECTOR]... [--walls MODE]\n"
    "               [--policy NAME] [--slice MS] [--kernel-limit SECONDS]\n"
    "               [--breach-pause MS] [--start-limit SECONDS]\n"
    "               [--oversubscribe [--place NAME] [--swap-memory SIZE]\n"
    "               [--swap-share PERCENT] [--residency-max TIME] [--idle-after TIME]]\n"
    "\n"
    "Shares this machine's devices among programs.\n"
    "\n"
    "  --config FILE      read settings from an INI file; options given here win\n"
    "  --socket PATH      listen there; else at /run/gantry/gantry.sock for root,\n"
    "                     at $XDG_RUNTIME_DIR/gantry/gantry.sock for others\n"
    "  --listen tcp:HOST:PORT  serve programs on other machines, too\n"
    "  --listen-control tcp:HOST:PORT  serve operators on other machines, by certificates\n"
    "  --operator-subject NAME  an operator: the common name of the certificate;\n"
    "                     may be repeated\n"
    "  --insecure         over tcp, admit peers without credentials and encryption\n"
    "  --tls-certificate FILE  gantryd's certificate, for peers on other machines (PEM)\n"
    "  --tls-key FILE     the certificate's private key\n"
    "  --tls-client-authority FILE  admit programs with a certificate of this authority;\n"
    "                     its common name is the tenant\n"
    "  --tcp-grace SECONDS  keep a vGPU this long when its connection breaks (5)\n"
    "  --device SELECTOR  offer this device only; may be repeated.\n"
    "                     NAME-PART[:INDEX][,present-as=gpu|cpu|accelerator]\n"
    "  --policy NAME      how devices are shared: fair (the default), credit, credit-hs, strict,\n"
    "                     rr, xenocredit or none (no scheduling, all at once)\n"
    "  --slice MS         how long a vGPU has a device while others wait (6)\n"
    "  --kernel-limit SECONDS  end a vGPU that keeps others waiting for longer (60); 0: never\n"
    "  --breach-pause MS  once a user's programs have caused many faults, they start one vGPU\n"
    "                     in this time (1000); 0: no limit\n"
    "  --start-limit SECONDS  give up a worker whose driver has not started by then, and a\n"
    "                     driver's template that does not answer (60)\n"
    "  --oversubscribe    lease more memory than the devices have: contents of vGPUs that\n"
    "                     wait lie in host memory\n"
    "  --place NAME       the vGPUs that make room: turn (the default), first-fit, size or\n"
    "                     utilization\n"
    "  --swap-memory SIZE  host memory for each device's evicted contents, and copies of\n"
    "                     others; otherwise as much as the device has\n"
    "  --swap-share PERCENT  the part of the time that copies may take (10%); 0: swap at\n"
    "                     each turn\n"
    "  --residency-max TIME  the longest that a vGPU's memory stays while others wait (30s)\n"
    "  --idle-after TIME  an unused vGPU's memory may go at once after this time (20s)\n"
    "  --walls MODE       the confinement of workers: required, available (the default) or none\n"
    "  --help, --version\n"
    "\n"
    "GANTRY_LOG sets the log level: none, error, warn (the default), info or debug. SIGTERM\n"
    "ends gantryd and its workers; SIGHUP, SIGUSR1, SIGUSR2 and SIGALRM are ignored.\n";

#define TCP_GRACE_MS    5000
#define KERNEL_LIMIT_NS UINT64_C(60000000000)
#define BREACH_PAUSE_NS UINT64_C(1000000000)
#define START_LIMIT_MS  60000
#define CLOSER_END_MS   1000 /* for descriptors that are still to be closed */
#define LOG_END_MS      1000 /* to write the last lines */

static struct gn_daemon gantryd;

static int show_help(void)
{
    fputs(help, stdout);
    for (int i = 0; gn_api_infos[i]; i++)
        printf("%s\n", gn_api_infos[i]->where_drivers);
    return fflush(stdout) || ferror(stdout) ? 1 : 0;
}

static int die(int rc, const struct gn_error *err, int status)
{
    char line[sizeof *err + 16];
    snprintf(line, sizeof line, "gantryd: %s%s%s", err->what, err->fix[0] ? "; " : "", err->fix);
    gn_text_clean(line, strlen(line)); /* it may quote the configuration */
    fprintf(stderr, "%s\n", line);
    return status;
}

/* A vGPU with a program that may reconnect. gn_vgpus_leave() of one may end another, in a move
 * between the two, so the caller starts over each time. */
static struct gn_vgpu_record *find_returning(struct gn_daemon *d)
{
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
    {
        if (v->return_by_ns)
            return v;
    }
    return NULL;
}

static void handle_signals(struct gn_source *s, uint32_t events)
{
    struct gn_daemon *d = gn_container_of(s, struct gn_daemon, signals);
    struct signalfd_siginfo info;
    bool end = false;
    while (read(s->fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            gn_templates_reap(d);
        else if (info.ssi_signo == SIGHUP)
            gn_log(GN_LOG_WARN,
                   "SIGHUP is ignored: the configuration is read at the start alone; gantry tenant "
                   "changes tenants now");
        else if (info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGUSR2 ||
                 info.ssi_signo == SIGALRM)
            gn_log(GN_LOG_WARN, "%s is ignored: SIGTERM ends gantryd",
                   strsignal((int)info.ssi_signo));
        else
            end = true;
    }
    if (!end || d->stopping)
        return;
    d->stopping = true;
    gn_sockets_close(&d->sockets);
    gn_conns_close(d);
    gn_tcp_listener_stop(d->tcp);
    gn_tcp_listener_stop(d->tcp_control);
    d->tcp = d->tcp_control = NULL;
    for (struct gn_vgpu_record *v; (v = find_returning(d));)
        gn_vgpus_leave(v);
    if (gn_list_empty(&d->vgpus))
        gn_loop_stop(&d->loop);
}

/* If gantryd is started without some of 0, 1 and 2, its sockets must not get these numbers, because
 * children use them as their stdio. */
static void fill_stdio(void)
{
    int fd;
    while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO) {
    }
    if (fd >= 0)
        close(fd);
}

static int cannot_start(int code, struct gn_error *err)
{
    const char *fix = code == EMFILE
                          ? "raise gantryd's limit of open files (LimitNOFILE, ulimit -n)"
                      : code == ENFILE ? "raise the machine's limit of open files (fs.file-max)"
                                       : NULL;
    return gn_fail(err, code, fix, "cannot start: %s", strerror(code));
}

static int watch_signals(struct gn_error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGALRM);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    gantryd.signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    gantryd.grace.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    gantryd.lease_timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    gantryd.attach_timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (gantryd.signals.fd < 0 || gantryd.grace.fd < 0 || gantryd.lease_timer.fd < 0 ||
        gantryd.attach_timer.fd < 0)
        return cannot_start(errno, err);
    return 0;
}

/* Receives the signals that end gantryd, but not SIGCHLD: while probing, a probe's socket tells
 * that it has ended. */
static int open_end_signals(struct gn_error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? cannot_start(errno, err) : fd;
}

static int start_placement(struct gn_daemon *d, const struct gn_config *config, uint32_t n_devices,
                           struct gn_error *err)
{
    struct gn_placement_memory *memory = calloc(n_devices, sizeof *memory);
    d->placed.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!memory || d->placed.fd < 0) {
        free(memory);
        return gn_fail(err, ENOMEM, NULL, "cannot place device memory: out of memory");
    }
    for (uint32_t i = 0, n = 0; i < d->machine.n_platforms; i++)
        for (uint32_t j = 0; j < d->machine.platforms[i].n_devices; j++) {
            const struct gn_device_record *r = &d->machine.platforms[i].devices[j];
            memory[n++] = (struct gn_placement_memory){gn_lease_device_memory(&r->memory),
                                                       r->slot_bytes, r->swap_bytes};
        }
    const int rc = gn_placement_start(d->scheduler, &config->placement, memory, d->placed.fd);
    free(memory);
    return rc ? gn_fail(err, -rc, NULL, "cannot place device memory: %s", strerror(-rc)) : 0;
}

static int start_scheduler(struct gn_daemon *d, const struct gn_config *config,
                           struct gn_error *err)
{
    uint32_t n_devices = 0;
    for (uint32_t i = 0; i < d->machine.n_platforms; i++)
        n_devices += d->machine.platforms[i].n_devices;
    const struct gn_sched_policy *policy =
        config->policy_set ? config->policy : gn_sched_policy_at(0);
    d->takes_turns = policy != NULL;
    d->late.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (d->late.fd < 0)
        return gn_fail(err, errno, NULL, "cannot start the scheduler: %s", strerror(errno));
    d->scheduler_started_ns = gn_now_ns();
    uint64_t *slices_ns = calloc(n_devices, sizeof *slices_ns);
    if (!slices_ns)
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    for (uint32_t i = 0, n = 0; i < d->machine.n_platforms; i++)
        for (uint32_t j = 0; j < d->machine.platforms[i].n_devices; j++)
            slices_ns[n++] = d->machine.platforms[i].devices[j].slice_ns;
    const int rc = gn_scheduler_start(
        &d->scheduler, policy ? policy : gn_sched_policy_at(0), slices_ns, n_devices,
        config->kernel_limit_set ? config->kernel_limit_ns : KERNEL_LIMIT_NS, d->late.fd, err);
    free(slices_ns);
    return rc ? rc : start_placement(d, config, n_devices, err);
}

/* Call after the last vGPU has ended. */
static void stop_scheduler(struct gn_daemon *d)
{
    if (!d->scheduler)
        return;
    gn_list_for_each(t, &d->tenants.all, struct gn_tenant, link)
    {
        gn_scheduler_forget(d->scheduler, t->shares);
        t->shares = NULL;
    }
    gn_scheduler_stop(d->scheduler);
    d->scheduler = NULL;
}

/* Checks floors and reserves in the order of the file, so that the error names the line of the
 * first one that exceeds a device. */
static int check_sums(struct gn_daemon *d, const struct gn_config *config, struct gn_error *err)
{
    for (int i = 0; i < config->n_tenants; i++) {
        const struct gn_config_tenant *c = &config->tenants[i];
        struct gn_tenant *t = gn_tenants_find(&d->tenants, c->rules.name);
        struct gn_error inner = {{0}, {0}};
        int line = c->floor_line;
        int rc = gn_tenants_floors_check(&d->tenants, t, true, &t->rules, &d->machine, &inner);
        if (rc == 0) {
            line = c->reserve_line;
            rc = gn_tenants_reserves_check(&d->tenants, t, true, &t->rules, &d->machine, &inner);
        }
        if (rc == 0)
            rc = gn_tenant_reserve(t, &t->rules, &d->machine, &inner);
        if (rc)
            return gn_fail(err, EBADMSG, inner.fix, "%.100s:%d: %.300s", config->path, line,
                           inner.what);
    }
    return 0;
}

static int make_tenants(struct gn_daemon *d, const struct gn_config *config, struct gn_error *err)
{
    struct gn_tenant_rules *rules = calloc((size_t)config->n_tenants + 1, sizeof *rules);
    int rc = rules ? 0 : gn_fail(err, ENOMEM, NULL, "out of memory");
    for (int i = 0; i < config->n_tenants && rc == 0; i++) {
        rules[i] = config->tenants[i].rules;
        rc = gn_tenant_devices_check(&rules[i], &d->machine, err);
    }
    if (rc == 0)
        rc = gn_tenants_init(&d->tenants, &gn_memory_ops, rules, config->n_tenants, err);
    if (rules)
        explicit_bzero(rules, (size_t)config->n_tenants * sizeof *rules);
    free(rules);
    if (rc == 0)
        rc = check_sums(d, config, err);
    if (rc == 0)
        rc = gn_sockets_set_access(&d->sockets, gn_tenants_admit_others(&d->tenants), err);
    return rc;
}

static int start(const struct gn_config *config, struct gn_error *err)
{
    struct gn_daemon *d = &gantryd;
    struct gn_address address;
    int end_fd;
    d->closed.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (d->closed.fd < 0)
        return cannot_start(errno, err);
    int rc = gn_quotas_init(&d->quotas, d->closed.fd, err);
    if (rc)
        return rc;
    gn_list_init(&d->conns);
    gn_list_init(&d->vgpus);
    gn_list_init(&d->late_attaches);
    gn_fault_throttle_init(&d->breaches);
    gn_list_init(&d->migrations);
    d->owners = &gn_migration_deadlines;
    d->programs = &gn_programs;
    if (config->socket[0])
        rc = gn_sockets_open(&d->sockets, config->socket, false, err);
    else if ((rc = gn_address_default_socket(geteuid(), getenv("XDG_RUNTIME_DIR"), &address,
                                             err)) == 0)
        rc = gn_sockets_open(&d->sockets, address.path, true, err);
    if (rc || (rc = end_fd = open_end_signals(err)) < 0)
        return rc;
    rc = gn_machine_probe(&d->machine, config, end_fd, err);
    close(end_fd);
    if (rc || (rc = make_tenants(d, config, err)))
        return rc;
    rc = gn_walls_init(&d->walls, &d->machine, config->walls, config->cache, err);
    if (rc)
        return rc;
    gn_caches_init(&d->caches, d->walls.can.layers);
    rc = start_scheduler(d, config, err);
    if (rc)
        return rc;
    rc = gn_loop_init(&d->loop);
    if (rc == 0)
        rc = gn_loop_add(&d->loop, &d->signals, EPOLLIN, handle_signals);
    if (rc == 0)
        rc = gn_loop_add(&d->loop, &d->grace, EPOLLIN, gn_vgpus_grace);
    if (rc == 0)
        rc = gn_loop_add(&d->loop, &d->lease_timer, EPOLLIN, gn_memory_timer);
    if (rc == 0)
        rc = gn_loop_add(&d->loop, &d->attach_timer, EPOLLIN, gn_attaches_timer);
    if (rc == 0)
        rc = gn_loop_add(&d->loop, &d->late, EPOLLIN, gn_late_holders);
    if (rc == 0)
        rc = gn_loop_add(&d->loop, &d->placed, EPOLLIN, gn_placement_orders);
    if (rc == 0)
        rc = gn_turns_init(d);
    if (rc == 0)
        rc = gn_loop_add(&d->loop, &d->closed, EPOLLIN, gn_conns_closed_some);
    if (rc == 0)
        rc = gn_templates_init(d);
    gn_conn_limits_init(d);
    if (rc)
        return cannot_start(-rc, err);
    d->tcp_grace_ms = config->tcp_grace_ms ? config->tcp_grace_ms : TCP_GRACE_MS;
    d->insecure = config->insecure;
    d->start_limit_ms = config->start_limit_ms ? config->start_limit_ms : START_LIMIT_MS;
    d->breach_pause_ns = config->breach_pause_set ? config->breach_pause_ns : BREACH_PAUSE_NS;
    if (config->listen[0] && (rc = gn_tcp_listener_start(d, config, false, &d->tcp, err)))
        return rc;
    if (config->listen_control[0] &&
        (rc = gn_tcp_listener_start(d, config, true, &d->tcp_control, err)))
        return rc;
    return gn_sockets_publish(&d->sockets, err);
}

static void print_address(const char *what, const struct gn_tcp_listener *l)
{
    char address[320];
    if (!l)
        return;
    gn_tcp_listener_address(l, address, sizeof address);
    fprintf(stderr, "%s %s\n", what, address);
}

int main(int argc, char **argv)
{
    struct gn_error err = {{0}, {0}};
    struct gn_config config;
    enum gn_options_action action;
    int rc;
    fill_stdio();
    gn_log_init("gantryd", GN_LOG_WARN);
    gn_json_region_use();
    rc = gn_options_parse(argc, argv, &config, &action, &err);
    if (rc) {
        gn_config_fini(&config);
        return die(rc, &err, rc == -EINVAL ? 2 : 1);
    }
    if (action == GN_OPTIONS_HELP)
        return show_help();
    if (action == GN_OPTIONS_VERSION)
        return printf("gantryd %s\n", GN_VERSION) < 0 || fflush(stdout) ? 1 : 0;

    gn_sockets_init(&gantryd.sockets, &gantryd);
    gn_raise_descriptor_limit();
    gn_orphans_adopt();
    rc = watch_signals(&err);
    if (rc == 0)
        rc = start(&config, &err);
    gn_config_fini(&config);
    if (rc) {
        gn_sockets_close(&gantryd.sockets);
        gn_templates_fini(&gantryd);
        gn_walls_fini(&gantryd.walls);
        stop_scheduler(&gantryd);
        gn_tenants_fini(&gantryd.tenants);
        gn_machine_fini(&gantryd.machine);
        /* Told to end while it started: that is not a failure. */
        return rc == -EINTR ? 0 : die(rc, &err, 1);
    }
    print_address("listening", gantryd.tcp);
    print_address("control", gantryd.tcp_control);
    fprintf(stderr, "ready unix:%s\n", gn_sockets_path(&gantryd.sockets));
    gn_notify_ready();

    rc = gn_log_writer_start(&err);
    if (rc)
        gn_log(GN_LOG_WARN, "%s; an unread log may block gantryd", err.what);
    rc = gn_loop_run(&gantryd.loop);
    gn_sockets_close(&gantryd.sockets);
    gn_templates_fini(&gantryd);
    gn_caches_fini(&gantryd);
    gn_walls_fini(&gantryd.walls);
    gn_log_writer_stop(LOG_END_MS);
    gn_loop_close(&gantryd.loop, &gantryd.grace);
    gn_loop_close(&gantryd.loop, &gantryd.lease_timer);
    gn_loop_close(&gantryd.loop, &gantryd.attach_timer);
    gn_loop_close(&gantryd.loop, &gantryd.late);
    gn_loop_close(&gantryd.loop, &gantryd.placed);
    gn_loop_close(&gantryd.loop, &gantryd.closed);
    gn_turns_fini(&gantryd);
    gn_loop_close(&gantryd.loop, &gantryd.signals);
    gn_loop_fini(&gantryd.loop);
    gn_quotas_fini(&gantryd.quotas, CLOSER_END_MS);
    stop_scheduler(&gantryd);
    gn_fault_throttle_fini(&gantryd.breaches);
    gn_tenants_fini(&gantryd.tenants);
    gn_machine_fini(&gantryd.machine);
    if (rc)
        return die(
            rc, (gn_fail(&err, -rc, NULL, "cannot wait for events: %s", strerror(-rc)), &err), 1);
    return 0;
}
