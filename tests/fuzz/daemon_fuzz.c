/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantryd against everybody who talks to it at once: programs, their workers, the template. Its own
 * code, in this process, with sockets whose other ends the input plays; no process is started.
 * Whatever they say, in whatever order: it lives, and when all of them are gone nothing is left,
 * not a vGPU, not a connection, not a descriptor.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/vgpu/template.h"
#include "daemon/migrate/migration.h"
#include "daemon/programs.h"
#include "daemon/vgpu/spawn.h"
#include "daemon/net/connection_turns.h"
#include "daemon/tenants/memory.h"
#include "daemon/vgpu/lifecycle.h"
#include "daemon/vgpu/orphans.h"
#include "fuzz.h"
#include "link/worker_wire.h"

#define N      4
#define NOBODY 0x7ffffff0 /* above every pid: a signal to it goes nowhere */
#define TOKEN  "a-token-of-a-length-that-may-be-one"

static struct gn_daemon d;
static int clients[N], workers[N], deaths[N];
static uint32_t spawn_seq[N];
static int n_spawned, template_fd, null_fd, late_fd;
static struct gn_frame_reader template_reader;

/* Instead of spawn.c and orphans.c. */
int gn_worker_spawn(const char *path, char *const argv[], enum gn_wall_mode walls, int *ret_socket,
                    pid_t *ret_pid, struct gn_error *err)
{
    int ends[2];
    if (template_fd >= 0) {
        gn_frame_reader_fini(&template_reader);
        close(template_fd);
        template_fd = -1;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return gn_fail(err, errno, NULL, "cannot make a socket");
    template_fd = ends[1];
    gn_frame_reader_init(&template_reader, template_fd);
    *ret_socket = ends[0];
    *ret_pid = NOBODY;
    return 0;
}

int gn_worker_find(char *ret_path, size_t n, struct gn_error *err)
{
    return snprintf(ret_path, n, "nowhere") > 0 ? 0 : -1;
}

void gn_raise_descriptor_limit(void)
{
}

void gn_orphans_adopt(void)
{
}

void gn_orphans_kill(struct gn_daemon *daemon)
{
}

static int count_descriptors(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    FUZZ_CHECK(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void set_up(void)
{
    memset(&d, 0, sizeof d);
    FUZZ_CHECK(gn_quotas_init(&d.quotas, -1, NULL) == 0);
    gn_list_init(&d.conns);
    gn_list_init(&d.vgpus);
    gn_list_init(&d.migrations);
    d.owners = &gn_migration_deadlines;
    d.programs = &gn_programs;
    gn_fault_throttle_init(&d.breaches);
    gn_caches_init(&d.caches, false);
    FUZZ_CHECK(gn_loop_init(&d.loop) == 0);
    FUZZ_CHECK(gn_turns_init(&d) == 0);
    d.signals.fd = -1;
    gn_sockets_init(&d.sockets, &d);
    d.machine.n_drivers = 1;
    strcpy(d.machine.drivers[0].api, "opencl");
    strcpy(d.machine.drivers[0].library, "libnone.so");
    d.machine.n_platforms = 1;
    d.machine.platforms = calloc(1, sizeof *d.machine.platforms);
    FUZZ_CHECK(d.machine.platforms);
    strcpy(d.machine.platforms[0].api, "opencl");
    strcpy(d.machine.platforms[0].name, "a platform");
    d.machine.platforms[0].n_devices = 1;
    strcpy(d.machine.platforms[0].devices[0].facts.name, "a device");
    gn_lease_device_init(&d.machine.platforms[0].devices[0].memory, 2 << 20);
    d.grace.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    FUZZ_CHECK(gn_loop_add(&d.loop, &d.grace, EPOLLIN, gn_vgpus_grace) == 0);
    d.lease_timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    FUZZ_CHECK(gn_loop_add(&d.loop, &d.lease_timer, EPOLLIN, gn_memory_timer) == 0);
    struct gn_tenant_rules rules;
    gn_tenant_rules_init(&rules, "limited");
    rules.memory_limit_bytes = 1 << 20;
    FUZZ_CHECK(gn_tenant_set_token(&rules, TOKEN, strlen(TOKEN), NULL) == 0);
    d.tcp_grace_ms = 1000;
    FUZZ_CHECK(gn_tenants_init(&d.tenants, &gn_memory_ops, &rules, 1, NULL) == 0);
    late_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const uint64_t slice_ns = 6000000;
    FUZZ_CHECK(gn_scheduler_start(&d.scheduler, gn_sched_policy_at(0), &slice_ns, 1, 0, late_fd,
                                  NULL) == 0);
    template_fd = -1;
    FUZZ_CHECK(gn_templates_init(&d) == 0);
    for (int i = 0; i < N; i++)
        clients[i] = workers[i] = deaths[i] = -1;
    n_spawned = 0;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* What gantryd has asked the template for. */
static void read_template(void)
{
    struct gn_frame f;
    while (template_fd >= 0 && gn_frame_read(&template_reader, &f) == 1) {
        FUZZ_CHECK(f.op == GN_WORKER_SPAWN && f.n_fds == 1);
        int i = n_spawned++ % N;
        close_end(&workers[i]);
        workers[i] = gn_frame_take_fd(&template_reader, 0);
        spawn_seq[i] = f.seq;
    }
}

static void turn(void)
{
    FUZZ_CHECK(gn_loop_turn(&d.loop, 0) >= 0);
    read_template();
    /* What a worker says late is never taken for an answer to the next that is asked of it. */
    gn_list_for_each(v, &d.vgpus, struct gn_vgpu_record, link)
    {
        const struct gn_migration *m = v->control.fd >= 0 ? gn_migration_of(v) : NULL;
        const bool saving = m && m->from && m->tx.kind != GN_TX_RESTORE &&
                            m->tx.state > GN_TX_BOOTING && m->tx.state < GN_TX_SOURCE_FAILED;
        FUZZ_CHECK(!saving || m->source_busy);
    }
}

static void send_some(int fd, uint16_t op, uint16_t flags, uint32_t seq, const void *payload,
                      size_t n, int n_fds)
{
    int fds[GN_FRAME_MAX_FDS];
    for (int i = 0; i < GN_FRAME_MAX_FDS; i++)
        fds[i] = null_fd;
    if (fd >= 0)
        (void)gn_frame_send(fd, 0, op, flags, seq, payload, n, fds, n_fds);
}

static void connect_client(int i)
{
    int ends[2];
    close_end(&clients[i]);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return;
    clients[i] = ends[1];
    if (i == N - 1) { /* from another machine */
        const struct gn_session_tcp_peer peer = {
            .secure = true, .subject = "limited", .address = "somewhere"};
        gn_conns_add_tcp(&d, ends[0], &peer);
    } else {
        static const enum gn_role roles[N - 1] = {GN_ROLE_CONTROL, GN_ROLE_PROGRAM, GN_ROLE_VIEW};
        gn_conns_add(&d, ends[0], roles[i], NULL);
    }
}

/* With a tenant and a token, right or wrong; for control requests only. */
static void say_who(int i, uint8_t how)
{
    struct {
        struct gn_link_hello hello;
        struct gn_link_identity who;
    } m = {{GN_LINK_MAGIC, GN_LINK_VERSION,
            GN_LINK_FEATURE_IDENTITY | (how & 8 ? GN_LINK_FEATURE_CONTROL : 0), 0, 0, "a program"},
           {{0}, 0, 0, {0}}};
    strcpy(m.who.tenant, how & 16 ? "limited" : how & 32 ? "nobody" : "");
    m.who.n_token = how & 64 ? strlen(TOKEN) : how & 128 ? 300 : 0;
    if (how & 64)
        memcpy(m.who.token, TOKEN, sizeof TOKEN);
    m.who.token[0] ^= how == 127;
    send_some(clients[i], GN_LINK_HELLO, 0, 1, &m, sizeof m, 0);
}

static void say_hello(int i, uint8_t how)
{
    if (how >= 8) {
        say_who(i, how);
        return;
    }
    struct gn_link_hello h = {.magic = GN_LINK_MAGIC, .version = GN_LINK_VERSION};
    gn_frame_string_set(h.program, sizeof h.program, "a program");
    if (how == 1)
        h.magic++;
    if (how == 2)
        h.version++;
    if (how == 3)
        h.zero = 1;
    if (how == 4)
        memset(h.program, 'x', sizeof h.program);
    if (how == 5)
        memset(h.program, 0x1b, 20);
    send_some(clients[i], GN_LINK_HELLO, 0, 1, &h, sizeof h, how == 6);
}

static void ask_for_vgpu(int i, struct fuzz *f)
{
    struct gn_link_attach a = {.platform = fuzz_u8(f)};
    uint8_t how = fuzz_u8(f);
    a.stdio = how & 3;
    a.weight = how & 4 ? fuzz_u32(f) : 0;
    a.memory_bytes = how & 8 ? fuzz_u64(f) : 0;
    a.mode = how == 255 ? 2 : how == 254;
    if (how & 64)
        strcpy(a.tenant, "limited");
    if (how & 16)
        fuzz_take(f, a.tenant, 8);
    send_some(clients[i], GN_LINK_ATTACH, 0, fuzz_u8(f), &a, sizeof a,
              how & 32 ? fuzz_u8(f) % 5 : __builtin_popcount(a.stdio));
}

/* The template's answer for a spawn: honest, of another, or with a descriptor that cannot be
 * watched. */
static void answer_spawn(int i, uint8_t how)
{
    struct gn_worker_spawned s = {.pid = NOBODY + (uint32_t)i};
    int fd = -1;
    if (template_fd < 0)
        return;
    close_end(&deaths[i]);
    if (how & 1)
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    else
        fd = deaths[i] = eventfd(0, EFD_CLOEXEC);
    (void)gn_frame_send(template_fd, 0, GN_WORKER_SPAWNED, 0, how & 2 ? 12345 : spawn_seq[i], &s,
                        sizeof s, &fd, how & 4 ? 0 : 1);
    if (how & 1)
        close(fd);
}

/* A worker's words on its memory, honest or not. */
static void speak_of_memory(int i, struct fuzz *f)
{
    uint8_t how = fuzz_u8(f);
    uint64_t bytes = how & 4 ? fuzz_u64(f) : (uint64_t)fuzz_u8(f) << 16;
    struct gn_worker_lease ask = {bytes, how & 8 ? bytes : bytes + (32 << 20), 0, how & 16};
    struct gn_worker_returned back = {bytes, how & 2, how >> 7, 0};
    if (how & 1)
        send_some(workers[i], GN_WORKER_LEASE, 0, how, &ask, sizeof ask, 0);
    else
        send_some(workers[i], GN_WORKER_RETURNED, 0, 0, &back, sizeof back, 0);
}

/* A worker's words on a move: at the right time, at another, with reasons or without. */
static void speak_of_move(int i, struct fuzz *f)
{
    static const uint16_t ops[] = {GN_WORKER_STOPS, GN_WORKER_SAVED, GN_WORKER_LOADED};
    const uint8_t how = fuzz_u8(f);
    const uint16_t op = ops[how % GN_ARRAY_SIZE(ops)];
    const struct gn_worker_moved said = {.error = op == GN_WORKER_STOPS ? 0 : (int32_t)fuzz_u32(f),
                                         .what = "a reason"};
    send_some(workers[i], op, 0, 0, &said, op == GN_WORKER_STOPS ? 0 : sizeof said, how >> 7);
}

static void ask_for_move(int i, struct fuzz *f)
{
    char text[128];
    uint8_t which = fuzz_u8(f);
    gn_list_for_each(v, &d.vgpus, struct gn_vgpu_record, link)
    {
        if (which--)
            continue;
        snprintf(text, sizeof text,
                 "{\"version\":1,\"request\":\"migrate\",\"to\":\"local\",\"vgpu\":\"%08x\"}",
                 v->id);
        send_some(clients[i], GN_LINK_CONTROL, 0, 4, text, strlen(text), 0);
    }
}

static void ask_for_checkpoint(int i, struct fuzz *f)
{
    char text[128];
    uint8_t which = fuzz_u8(f);
    gn_list_for_each(v, &d.vgpus, struct gn_vgpu_record, link)
    {
        if (which--)
            continue;
        snprintf(text, sizeof text,
                 "{\"version\":1,\"request\":\"checkpoint\",\"stop\":%s,\"vgpu\":\"%08x\"}",
                 fuzz_u8(f) & 1 ? "true" : "false", v->id);
        send_some(clients[i], GN_LINK_FILE, 0, 4, NULL, 0, 1);
        send_some(clients[i], GN_LINK_CONTROL, 0, 4, text, strlen(text), 0);
    }
}

static void die(int i)
{
    uint64_t one = 1;
    if (deaths[i] >= 0)
        (void)!write(deaths[i], &one, sizeof one);
}

static void any_frame(int fd, struct fuzz *f)
{
    uint16_t op = fuzz_u8(f), flags = op >> 7;
    uint8_t seq = fuzz_u8(f);
    size_t n = fuzz_u8(f);
    const uint8_t *payload = fuzz_bytes(f, &n);
    send_some(fd, op & 0x7f, flags, seq, payload, n, seq >> 5);
}

static void a_second_later(void)
{
    gn_list_for_each(v, &d.vgpus, struct gn_vgpu_record, link)
    {
        v->kill_at_ns = v->kill_at_ns ? 1 : 0;
        v->return_by_ns = v->return_by_ns ? 1 : 0;
    }
    gn_list_for_each(m, &d.migrations, struct gn_migration, link)
    {
        m->tx.until_ns = 1;
    }
    gn_vgpus_grace(&d.grace, EPOLLIN);
    gn_memory_timer(&d.lease_timer, EPOLLIN);
}

static void step(uint8_t what, struct fuzz *f)
{
    int i = what >> 4 & (N - 1);
    switch (what & 15) {
    case 0:
        connect_client(i);
        break;
    case 1: {
        size_t n = fuzz_u8(f);
        const uint8_t *at = fuzz_bytes(f, &n);
        if (clients[i] >= 0)
            (void)!send(clients[i], at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        break;
    }
    case 2:
        say_hello(i, fuzz_u8(f));
        break;
    case 3:
        ask_for_vgpu(i, f);
        break;
    case 4: {
        struct gn_link_segment s = {fuzz_u64(f)};
        send_some(clients[i], GN_LINK_SEGMENT, 0, 2, &s, sizeof s, 0);
        break;
    }
    case 5: {
        size_t n = fuzz_u8(f);
        const uint8_t *text = fuzz_bytes(f, &n);
        send_some(clients[i], GN_LINK_CONTROL, n & 1, 3, text, n, 0);
        break;
    }
    case 6:
        close_end(&clients[i]);
        break;
    case 7:
        answer_spawn(i, fuzz_u8(f));
        break;
    case 8:
        any_frame(template_fd, f);
        break;
    case 9:
        any_frame(workers[i], f);
        break;
    case 10:
        send_some(workers[i], GN_WORKER_BOOTED, 0, 0, NULL, 0, 0);
        break;
    case 11: {
        struct gn_worker_ended e = {NOBODY + (uint32_t)i, (int32_t)fuzz_u8(f)};
        send_some(template_fd, GN_WORKER_ENDED, 0, 0, &e, sizeof e, 0);
        break;
    }
    case 12:
        die(i);
        break;
    case 13:
        close_end(&workers[i]);
        break;
    case 14:
        a_second_later();
        break;
    default: {
        char into[4096];
        uint8_t how = fuzz_u8(f);
        if (how & 1 && how != 255) {
            speak_of_memory(i, f);
            break;
        }
        if (how == 6) { /* gantryd is told to end */
            gn_conns_close(&d);
            break;
        }
        if (how == 2 || how == 4 || how == 8) {
            (how == 2 ? speak_of_move : how == 4 ? ask_for_move : ask_for_checkpoint)(i, f);
            break;
        }
        if (clients[i] >= 0)
            while (recv(clients[i], into, sizeof into, MSG_DONTWAIT) > 0)
                continue;
        if (how == 255 && template_fd >= 0)
            shutdown(template_fd, SHUT_RDWR);
    }
    }
}

static void all_go(void)
{
    for (int i = 0; i < N; i++)
        close_end(&clients[i]);
    turn();
    gn_conns_close(&d);
    if (template_fd >= 0)
        shutdown(template_fd, SHUT_RDWR);
    for (int i = 0; i < N; i++) {
        close_end(&workers[i]);
        die(i);
        close_end(&deaths[i]);
    }
    a_second_later();
    /* A worker whose pidfd the input has lost track of: its end is told like any other's. */
    for (int i = 0; i < 8; i++) {
        gn_list_for_each(v, &d.vgpus, struct gn_vgpu_record, link) if (v->process.fd >= 0)
        {
            uint64_t one = 1;
            (void)!write(v->process.fd, &one, sizeof one);
        }
        turn();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = fuzz_of(data, size);
    if (!null_fd) {
        null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        gn_log_init("fuzz", GN_LOG_DEBUG);
        gn_log_to(null_fd);
    }
    int before = count_descriptors();
    set_up();
    while (f.left) {
        uint8_t what = fuzz_u8(&f);
        step(what, &f);
        if (!(what & 0x80))
            turn();
    }
    all_go();
    FUZZ_CHECK(gn_list_empty(&d.conns) && d.n_conns == 0);
    FUZZ_CHECK(gn_list_empty(&d.vgpus));
    gn_templates_fini(&d);
    FUZZ_CHECK(gn_list_empty(&d.turns.lines[0]) && gn_list_empty(&d.turns.lines[1]));
    gn_turns_fini(&d);
    gn_loop_close(&d.loop, &d.grace);
    gn_loop_close(&d.loop, &d.lease_timer);
    gn_list_for_each(t, &d.tenants.all, struct gn_tenant, link) FUZZ_CHECK(
        t->memory.leased_bytes == 0 && t->n_vgpus == 0 && gn_list_empty(&t->memory.holders));
    FUZZ_CHECK(d.n_held == 0);
    gn_list_for_each(t, &d.tenants.all, struct gn_tenant, link)
        gn_scheduler_forget(d.scheduler, t->shares);
    gn_scheduler_stop(d.scheduler);
    close_end(&late_fd);
    gn_fault_throttle_fini(&d.breaches);
    gn_tenants_fini(&d.tenants);
    gn_loop_fini(&d.loop);
    FUZZ_CHECK(d.quotas.n_unused <= GN_QUOTAS_REMEMBERED);
    gn_quotas_fini(&d.quotas, 60000);
    FUZZ_CHECK(gn_list_empty(&d.quotas.all));
    gn_machine_fini(&d.machine);
    if (template_fd >= 0) {
        gn_frame_reader_fini(&template_reader);
        close_end(&template_fd);
    }
    FUZZ_CHECK(count_descriptors() == before);
    return 0;
}
