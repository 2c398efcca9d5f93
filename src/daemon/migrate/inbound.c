/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vGPU from another gantryd, on the side of the gantryd that takes it in (inbound.h). Announced
 * by control commands, claimed and decided by the program's frames; its transaction is INBOUND in
 * the table of transaction.c. gantryd's thread; it never waits.
 */
#include "daemon/tenants/admission.h"
#include "daemon/tenants/memory.h"
#include "daemon/tenants/placed_memory.h"
#include "daemon/vgpu/device_choice.h"
#include "daemon/migrate/inbound.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/secret.h"
#include "control/control.h"
#include "daemon/net/listen_tcp.h"
#include "daemon/migrate/migration.h"
#include "daemon/net/transport.h"
#include "daemon/vgpu/record_session.h"
#include "daemon/vgpu/create.h"
#include "daemon/vgpu/lifecycle.h"
#include "daemon/vgpu/worker.h"

#define MAX_ARRIVALS 64u
#define MAX_A_TENANT 16u /* of a tenant, so that no tenant takes all */

struct gn_inbound {
    struct gn_migration base; /* first: a migration frees itself. `to` is the vGPU, NULL: not
                                 claimed; `asker` announces it, NULL: claimed. how.key is the
                                 ticket, how.name the name of a data connection */
    struct gn_owner owner;    /* that announced it */
    char tenant[GN_LINK_TENANT_BYTES];
    uint32_t platform, weight;
    uint64_t devices; /* of the platform: those that will stand for its own, in this order */
    uint8_t order[GN_WORKER_MAX_DEVICES];
    uint64_t need_bytes, limit_bytes;
    bool named, secure; /* announced over tcp: the stream is a data connection of this name; TLS */
};
_Static_assert(sizeof((struct gn_worker_save *)0)->key == GN_LINK_TICKET_BYTES, "ticket");

/* NULL: a migration of another kind. */
static struct gn_inbound *of(struct gn_migration *m)
{
    return m->tx.kind == GN_TX_INBOUND ? gn_container_of(m, struct gn_inbound, base) : NULL;
}

/* ---- its actions */

static void tell_claimed(struct gn_migration *m)
{
    struct gn_vgpu_record *v = m->to;
    const struct gn_platform_record *p = &v->daemon->machine.platforms[v->platform];
    struct gn_link_claimed said = {
        .vgpu_id = v->id, .platform = {.index = v->platform, .n_devices = gn_vgpus_n_devices(v)}};
    memcpy(said.platform.api, p->api, sizeof said.platform.api);
    memcpy(said.platform.name, p->name, sizeof said.platform.name);
    m->boot_ns = gn_now_ns() - m->began_ns;
    v->session_ops->send_claimed(v, &said);
}

static void tell_ready(struct gn_migration *m)
{
    const struct gn_link_ready ready = {.boot_ns = m->boot_ns, .load_ns = m->load_ns};
    GN_FAULT("daemon-before-ready");
    gn_conn_send(m->to->conn, GN_LINK_READY, m->to->attach_seq, &ready, sizeof ready, NULL, 0);
}

static void go(struct gn_migration *m)
{
    struct gn_vgpu_record *v = m->to;
    GN_FAULT("daemon-before-go");
    gn_vgpus_notify_worker(v, GN_WORKER_GO, 0, NULL, 0);
    gn_record_set_state(v, GN_RECORD_ATTACHED);
    gn_quota_log(v->quota, GN_LOG_INFO,
                 "vgpu=%08x: \"%s\" (%d) has come from another gantryd, worker %d", v->id,
                 v->program, (int)v->program_pid, (int)v->worker_pid);
    GN_FAULT("daemon-gone-over");
}

/* The program stays at the gantryd that it came from. */
static void refuse(struct gn_migration *m)
{
    struct gn_vgpu_record *v = m->to;
    struct gn_conn *c = v->conn;
    gn_quota_log(v->quota, GN_LOG_WARN, "vgpu=%08x: refused, and stays where it was: %s", v->id,
                 m->why.what);
    c->vgpu = NULL;
    c->closing = true;
    const uint32_t seq = v->attach_seq;
    gn_vgpus_leave(v);
    gn_conn_refuse(c, seq, EREMOTEIO, &m->why);
}

static const struct gn_migration_action actions[] = {{GN_TX_DO_CLAIMED, tell_claimed},
                                                     {GN_TX_DO_READY, tell_ready},
                                                     {GN_TX_DO_GO, go},
                                                     {GN_TX_DO_STAY, refuse},
                                                     {0}};

static const struct gn_migration_ops ops = {.actions = actions};

/* ---- announced */

static bool is_same(const struct gn_device_record *here,
                    const struct gn_control_about_device *there)
{
    const struct gn_probe_device *f = &here->facts;
    return !strcmp(f->name, there->name) && !strcmp(f->vendor, there->vendor) &&
           !strcmp(f->version, there->version) && !strcmp(f->driver_version, there->driver_version);
}

/* Chooses the devices here that take the places of its own: the same ones where there are any, else
 * others in their order. The workers find out whether those are compatible, before anything stops.
 */
static int choose_devices(const struct gn_platform_record *p, uint64_t mine,
                          const struct gn_control_about *about, struct gn_inbound *a,
                          struct gn_error *err)
{
    const uint32_t n = (uint32_t)__builtin_popcountll(mine), n_choices = 2 * about->n_devices;
    bool chosen[GN_WORKER_MAX_DEVICES] = {false};
    a->devices = 0;
    if (about->n_devices > n)
        return gn_fail(err, ENODEV, "allow the tenant there as many: gantry tenant set --device",
                       "it has %u devices of its platform, and its tenant may use %u there",
                       about->n_devices, n);
    for (uint32_t choice = 0; choice < n_choices; choice++) {
        const uint32_t k = choice % about->n_devices;
        for (uint32_t i = 0; i < p->n_devices && !chosen[k]; i++)
            if ((mine >> i & 1) && !(a->devices >> i & 1) &&
                (choice >= about->n_devices || is_same(&p->devices[i], &about->devices[k]))) {
                a->devices |= UINT64_C(1) << i;
                a->order[k] = (uint8_t)i;
                chosen[k] = true;
            }
    }
    return a->devices ? 0 : gn_fail(err, EINVAL, NULL, "it has no devices");
}

static int find_platform(const struct gn_daemon *d, const struct gn_tenant *t,
                         const struct gn_control_about *about, struct gn_inbound *ret,
                         struct gn_error *err)
{
    for (uint32_t i = 0; i < d->machine.n_platforms; i++) {
        const struct gn_platform_record *p = &d->machine.platforms[i];
        const uint64_t mine = gn_tenant_devices(&t->rules, &d->machine, i);
        ret->platform = i;
        if (mine && !strcmp(p->api, about->api) && !strcmp(p->name, about->platform))
            return choose_devices(p, mine, about, ret, err);
    }
    return gn_fail(err, ENODEV, "move it to a gantryd with the same driver",
                   "there is no platform \"%.100s\" for it", about->platform);
}

/* Memory that is announced and not loaded yet: of this tenant, or (NULL) of all that come to any of
 * these devices of the platform. */
static uint64_t promised_bytes(const struct gn_daemon *d, const struct gn_tenant *t,
                               uint32_t platform, uint64_t devices)
{
    uint64_t n = 0;
    gn_list_for_each(m, (struct gn_list *)(uintptr_t)&d->migrations, struct gn_migration, link)
    {
        const struct gn_inbound *a = of(m);
        const uint64_t has = m->to ? m->to->lease.leased_bytes : 0;
        if (a && (!t || !strcmp(a->tenant, t->rules.name)) &&
            (t || (a->platform == platform && (a->devices & devices))) && a->need_bytes > has)
            n += a->need_bytes - has;
    }
    return n;
}

static int judge_memory(const struct gn_daemon *d, const struct gn_tenant *t,
                        const struct gn_inbound *there, const struct gn_control_about *about,
                        struct gn_error *err)
{
    const uint64_t need = about->need_bytes, promised = promised_bytes(d, t, 0, 0),
                   promised_there = promised_bytes(d, NULL, there->platform, there->devices),
                   of_tenant = gn_memory_tenant_room(t),
                   there_left = gn_memory_device_room(d, t, there->platform, there->devices);
    if (need > of_tenant || promised > of_tenant - need)
        return gn_fail(
            err, ENOMEM, "raise the tenant's limit there, or wait until its other vGPUs need less",
            "it needs %llu MiB of device memory, and the tenant \"%s\" has %llu left there and "
            "%llu of these promised",
            (unsigned long long)need >> 20, t->rules.name, (unsigned long long)of_tenant >> 20,
            (unsigned long long)promised >> 20);
    if (need > there_left || promised_there > there_left - need)
        return gn_fail(err, ENOMEM, "try again when others need less",
                       "it needs %llu MiB of device memory, and its devices have %llu left there "
                       "and %llu of these promised",
                       (unsigned long long)need >> 20, (unsigned long long)there_left >> 20,
                       (unsigned long long)promised_there >> 20);
    return 0;
}

static int refuse_while_draining(struct gn_error *err)
{
    return gn_fail(err, ESHUTDOWN, "gantry drain --undo there ends that",
                   "that gantryd is draining itself");
}

int gn_inbound_announce(struct gn_conn *c, const struct gn_control_about *about,
                        struct gn_control_receipt *ret, struct gn_error *err)
{
    struct gn_daemon *d = c->daemon;
    struct gn_tenant *t = about->tenant[0] ? gn_tenants_find(&d->tenants, about->tenant) : NULL;
    struct gn_inbound there = {0};
    uint32_t n = 0, n_own = 0;
    int fd = -1;
    gn_list_for_each(m, &d->migrations, struct gn_migration, link)
    {
        n += of(m) != NULL;
        n_own += of(m) && !strcmp(of(m)->tenant, about->tenant);
    }
    if (d->stopping)
        return gn_fail(err, ESHUTDOWN, NULL, "that gantryd is ending");
    if (d->draining)
        return refuse_while_draining(err);
    if (gn_vgpus_find(d, about->id))
        return gn_fail(err, EEXIST, "gantry migrate VGPU local moves it within its gantryd",
                       "a vGPU of this id is there already");
    if (n >= MAX_ARRIVALS)
        return gn_fail(err, EBUSY, "wait until some have arrived",
                       "%u vGPUs are on their way there already", n);
    if (!t)
        return gn_fail(err, ENOENT, "make it there with gantry tenant add",
                       "there is no tenant \"%.63s\" there", about->tenant);
    if (n_own >= MAX_A_TENANT)
        return gn_fail(err, EBUSY, "wait until some have arrived",
                       "%u vGPUs of the tenant \"%s\" are on their way there already", n_own,
                       t->rules.name);
    if (t->rules.modes && !(t->rules.modes & GN_MODE_REMOTE))
        return gn_fail(err, EACCES, NULL, "the tenant \"%s\" may not use the mode remote there",
                       t->rules.name);
    if (about->weight > GN_TENANT_MAX_WEIGHT)
        return gn_fail(err, EINVAL, NULL, "the weight is above %u", GN_TENANT_MAX_WEIGHT);
    int rc = c->transport->judge_announced(c, about, err);
    if (!rc)
        rc = find_platform(d, t, about, &there, err);
    if (!rc)
        rc = judge_memory(d, t, &there, about, err);
    if (!rc)
        rc = c->transport->get_stream(c, &fd, err);
    struct gn_inbound *a = rc ? NULL : malloc(sizeof *a);
    if (!rc && !a)
        rc = gn_fail(err, ENOMEM, NULL, "out of memory");
    if (a)
        *a = there;
    struct gn_worker_save *how = a ? &a->base.how : NULL;
    if (!rc && (getrandom(how->key, sizeof how->key, 0) != sizeof how->key ||
                getrandom(how->name, sizeof how->name, 0) != sizeof how->name))
        rc = gn_fail(err, EIO, NULL, "cannot get random numbers");
    if (rc) {
        gn_quota_close(c->quota, &fd);
        free(a);
        return rc;
    }
    a->base.ops = &ops;
    a->base.daemon = d;
    a->base.quota = c->quota;
    a->base.asker = c;
    a->base.number = about->id;
    gn_frame_string_set(a->tenant, sizeof a->tenant, t->rules.name);
    a->weight = about->weight;
    a->need_bytes = about->need_bytes;
    a->limit_bytes = about->limit_bytes;
    a->named = c->transport->names_streams;
    a->secure = c->peer.secure;
    how->flags = a->secure ? GN_WORKER_SAVE_TLS : 0;
    a->owner = c->transport->owner_of(c, t);
    gn_migration_begin(&a->base, GN_TX_INBOUND);
    a->base.stream_fd = fd;
    ret->named = a->named;
    c->transport->add_near_address(c, about, ret);
    memcpy(ret->ticket, how->key, sizeof ret->ticket);
    memcpy(ret->name, how->name, sizeof ret->name);
    GN_FAULT("daemon-ticket-given");
    return 0;
}

/* The one that is not claimed, of this ticket, or of this name (is_name). Always looks at all of
 * them: the time it takes says nothing about the secret. */
static struct gn_inbound *find(struct gn_daemon *d, const unsigned char *secret, bool is_name)
{
    struct gn_inbound *found = NULL;
    gn_list_for_each(m, &d->migrations, struct gn_migration, link)
    {
        const unsigned char *its = is_name ? m->how.name : m->how.key;
        if (of(m) && gn_secret_same(its, secret, GN_LINK_TICKET_BYTES) && !m->to)
            found = of(m);
    }
    return found;
}

/* ---- over tcp; one that was announced by a Unix socket has its stream, and is not secure */

bool gn_inbound_accept_stream(struct gn_daemon *d, const unsigned char *name,
                              const unsigned char *proof, int fd)
{
    struct gn_inbound *a = find(d, name, true);
    const unsigned char taken = GN_LINK_DATA_TAKEN;
    /* With TLS the handshake with the worker proves the key. */
    if (!a || a->base.stream_fd >= 0 ||
        (!a->secure && !gn_secret_same(a->base.how.key, proof, sizeof a->base.how.key)))
        return false;
    int mine = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (mine < 0)
        return false;
    if (send(fd, &taken, sizeof taken, MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof taken) {
        gn_quota_close(a->base.quota, &mine); /* another may come */
        return false;
    }
    a->base.stream_fd = mine;
    return true;
}

int gn_inbound_find_key(struct gn_daemon *d, const unsigned char *name, struct gn_tls_psk *ret)
{
    const struct gn_inbound *a = find(d, name, true);
    if (!a || !a->secure)
        return -ENOENT;
    memcpy(ret->identity, a->base.how.name, sizeof ret->identity);
    memcpy(ret->key, a->base.how.key, sizeof ret->key);
    return 0;
}

/* ---- claimed */

/* Takes the ring out of the claim. */
static int start(struct gn_inbound *a, struct gn_conn *c, uint32_t seq, struct gn_claim *claim,
                 struct gn_error *err)
{
    struct gn_migration *m = &a->base;
    struct gn_tenant *t = gn_tenants_find(&m->daemon->tenants, a->tenant);
    const struct gn_link_wait like = {.platform = a->platform,
                                      .weight = a->weight,
                                      .n_segments = claim->frame.n_segments,
                                      .memory_bytes = a->limit_bytes};
    if (!t)
        return gn_fail(err, ENOENT, NULL, "its tenant was removed there");
    if (c->is_bound && c->bound_to != t)
        return gn_fail(err, EACCES, NULL, "its tenant is not the one of this socket");
    if (m->daemon->draining)
        return refuse_while_draining(err);
    if (m->stream_fd < 0)
        return gn_fail(err, EINVAL, "move it again",
                       "the source has not connected to send the vGPU's contents");
    struct gn_vgpu_record *v = gn_vgpus_make_without_worker(c, t, m->number, &like, a->devices,
                                                            a->order, claim->ring_fd, err);
    if (!v)
        return -ENOMEM;
    claim->ring_fd = -1;
    v->owned_by = &m->owner;
    gn_placed_memory_owned(v);
    v->attach_seq = seq;
    v->n_segments = claim->frame.n_segments;
    m->to = v;
    m->asker = NULL;
    m->began_ns = gn_now_ns();
    m->how.route = claim->near ? GN_ROUTE_TCP_TO_SHM : v->session_ops->route_inbound;
    c->tenant = t;
    (void)gn_migration_input(m, GN_TX_ON_CLAIM, NULL);
    int rc = v->session_ops->begin_claimed(v, c, claim->near ? m->stream_fd : -1, &a->owner);
    rc = rc ? gn_fail(err, -rc, NULL, "cannot make its session: %s", strerror(-rc))
            : gn_vgpus_boot_worker(v, c, claim->near ? claim->hand_fd : m->stream_fd, err);
    if (rc) {
        c->vgpu = NULL;
        gn_vgpus_leave(v); /* and m */
        return rc;
    }
    gn_quota_close(m->quota, &m->stream_fd);
    GN_FAULT("daemon-claimed");
    return 0;
}

static bool claim_frame(struct gn_conn *c, const struct gn_frame *f)
{
    struct gn_claim claim;
    struct gn_error err;
    int rc = 0;
    if (!c->claims || c->vgpu || !c->transport->read_claim(c, f, &claim))
        return false;
    struct gn_inbound *a = find(c->daemon, claim.frame.ticket, false);
    if (a && (a->named != claim.named || (!claim.near && a->secure != c->peer.secure)))
        a = NULL; /* no program that its own gantryd has sent connects in this way */
    if (!claim.is_session)
        rc = gn_fail(&err, EINVAL, NULL, "the descriptors are no session");
    else if (!a)
        rc = gn_fail(&err, EACCES, "move it again",
                     "the ticket is unknown there, was used, or has expired");
    else if (claim.ring_fd < 0)
        rc = gn_migration_make_ring(&claim.ring_fd, &err); /* over tcp there is none to share */
    if (!rc)
        rc = start(a, c, f->seq, &claim, &err);
    if (!rc)
        gn_tcp_listener_admit(c);
    if (!rc)
        c->transport->watch_program(c);
    explicit_bzero(&claim.frame, sizeof claim.frame);
    gn_quota_close(c->quota, &claim.ring_fd);
    gn_quota_close(c->quota, &claim.hand_fd);
    if (rc) {
        gn_admit_refused(c, false, &err);
        c->closing = true;
        gn_conn_refuse(c, f->seq, rc, &err);
    }
    return true;
}

static bool take_segment(struct gn_vgpu_record *v, struct gn_frame_reader *reader,
                         const struct gn_frame *f)
{
    struct gn_link_segment_made made;
    if (!gn_frame_payload(f, &made, sizeof made) || f->n_fds != 1 || made.zero ||
        made.index != v->n_segments + 1 || made.index > GN_LINK_MAX_SEGMENTS)
        return false;
    int fd = gn_frame_take_fd(reader, 0);
    v->n_segments++;
    if (v->control.fd >= 0 && gn_vgpus_push(v, GN_WORKER_SEGMENT, 0, &made, sizeof made, fd))
        gn_vgpus_kill(v);
    gn_quota_close(v->quota, &fd);
    return true;
}

bool gn_inbound_frame(struct gn_conn *c, struct gn_frame_reader *reader, const struct gn_frame *f)
{
    struct gn_migration *m = c->vgpu ? gn_migration_of(c->vgpu) : NULL;
    if (f->op == GN_LINK_CLAIM)
        return claim_frame(c, f);
    if (!m || !of(m))
        return false;
    if (f->op == GN_LINK_PASS)
        return take_segment(c->vgpu, reader, f);
    return !f->n_payload && gn_migration_input(m, GN_TX_ON_GOES_ON, NULL) == 0;
}

static bool refuse_first(struct gn_daemon *d, const struct gn_error *err)
{
    gn_list_for_each(m, &d->migrations, struct gn_migration, link)
    {
        if (of(m) && gn_migration_input(m, GN_TX_ON_FAILED, err) == 0)
            return true;
    }
    return false;
}

void gn_inbound_refuse_all(struct gn_daemon *d)
{
    struct gn_error err;
    (void)refuse_while_draining(&err);
    while (refuse_first(d, &err))
        ; /* the list may be another one now */
}
