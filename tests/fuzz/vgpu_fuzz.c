/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vGPU against its program: messages of any kind, in any order, with a data area that changes
 * meanwhile and a driver that ends commands when the input says so. All of src/vgpu but its
 * threads, on a driver that touches every byte it is given. A faulty message ends the input, as it
 * ends the vGPU. Afterwards everything is let go of, and nothing may be left.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/opencl/cl_backend.h"
#include "base/log.h"
#include "fuzz.h"
#include "guarded.h"
#include "link/worker_wire.h"
#include "opencl_host.h"
#include "opencl_vgpu.h"
#include "strict_driver.h"
#include "vgpu/core/serve.h"
#include "vgpu/migrate/route.h"
#include "vgpu/migrate/transfer.h"

#define DATA_BYTES (32u << 10)

static struct gn_vgpu v;
static struct gn_vgpu_boot boot;
static struct gn_cl_platform platform;
static struct gn_vgpu_control channels;
static struct gn_counters counters;
static int session_end, control_end, null_fd, stdout_fd;
static void *data_area;

/* What the vGPU would wait for never comes, and is not to be waited for. */
int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
                           const struct timespec *until)
{
    (void)cond, (void)lock, (void)until;
    return ETIMEDOUT;
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock, clockid_t clock,
                           const struct timespec *until)
{
    (void)clock;
    return pthread_cond_timedwait(cond, lock, until);
}

static void at_once(struct gn_vgpu *vgpu, const struct gn_request *r)
{
    gn_vgpu_answer(vgpu, (struct gn_request *)(uintptr_t)r);
}

static void once(void)
{
    struct gn_session_header header = {GN_SESSION_MAGIC, GN_SESSION_VERSION, 0};
    null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    stdout_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    gn_log_init("fuzz", GN_LOG_DEBUG);
    gn_log_to(null_fd);
    data_area = guarded_map(DATA_BYTES);
    boot.ring = (struct gn_segment){-1, guarded_map(GN_SESSION_BYTES), GN_SESSION_BYTES};
    memcpy(boot.ring.base, &header, sizeof header);
    boot.events = (struct gn_segment){-1, guarded_map(GN_EVENT_TABLE_BYTES), GN_EVENT_TABLE_BYTES};
    boot.counters = (struct gn_segment){-1, &counters, sizeof counters};
    boot.platform = &platform.base;
    boot.route = gn_route(GN_ROUTE_SHM);
    platform.base.ops = &gn_cl_backend;
    platform.dispatch = &strict_driver;
    platform.n_devices = 1;
    platform.id = strict_platform();
    platform.devices[0] = strict_device(0);
}

static void set_up(bool later)
{
    int session[2], control[2];
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, session) == 0);
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) == 0);
    session_end = session[0];
    control_end = control[0];
    boot.session_fd = session[1];
    boot.control_fd = control[1];
    boot.data = (struct gn_segment){-1, data_area, DATA_BYTES};
    memset(data_area, 0, DATA_BYTES);
    memset(&counters, 0, sizeof counters);
    memset(&v, 0, sizeof v);
    strict_driver_start(later);
    v.migration = &gn_vgpu_migration;
    FUZZ_CHECK(gn_vgpu_open(&v, &boot, &gn_vgpu_session_shm, &gn_opencl_vgpu_api) == 0);
    v.help = at_once;
    v.lease.leased_bytes = UINT64_MAX; /* nobody is there to ask */
    gn_vgpu_control_init(&channels, &boot);
}

static void hear_nothing(int fd)
{
    char into[4096];
    while (recv(fd, into, sizeof into, MSG_DONTWAIT) > 0)
        continue;
}

static void take_message(struct fuzz *f)
{
    static struct gn_request r;
    uint8_t how = fuzz_u8(f);
    size_t n = fuzz_u16(f) % (GN_MSG_MAX_BYTES + 1);
    gn_request_init(&r, &v);
    memset(r.bytes, 0x7e, sizeof r.bytes); /* behind a message lies another one's end */
    fuzz_take(f, r.bytes, n);
    uint32_t size = (uint32_t)n;
    if (!(how & 1) && n >= sizeof(struct gn_msg))
        memcpy(r.bytes, &size, sizeof size);
    if (n)
        gn_vgpu_handle(&v, &r, size, 0);
}

static void send_to(int fd, struct fuzz *f)
{
    uint8_t op = fuzz_u8(f), seq = fuzz_u8(f);
    size_t n = fuzz_u8(f) % 64;
    const uint8_t *payload = fuzz_bytes(f, &n);
    int fds[GN_FRAME_MAX_FDS];
    for (int i = 0; i < GN_FRAME_MAX_FDS; i++)
        fds[i] = null_fd;
    (void)gn_frame_send(fd, 0, op & 0x3f, op >> 7, seq, payload, n, fds, seq >> 5);
}

/* As gantryd would. */
static void add_segment(void)
{
    struct gn_segment s;
    struct gn_link_segment_made made = {.index = atomic_load(&v.n_segments), .bytes = 65536};
    FUZZ_CHECK(gn_segment_create("fuzz", made.bytes, &s) == 0);
    (void)gn_frame_send(control_end, 0, GN_WORKER_SEGMENT, 0, 0, &made, sizeof made, &s.fd, 1);
    gn_segment_fini(&s);
}

/* False when the vGPU is to end. */
static bool step(struct fuzz *f)
{
    uint8_t what = fuzz_u8(f);
    switch (what & 7) {
    case 0:
    case 7:
        take_message(f);
        break;
    case 1:
        strict_driver_end(what >> 3, (int8_t)fuzz_u8(f) % 50);
        break;
    case 2: { /* the program writes */
        size_t at = fuzz_u16(f) % DATA_BYTES, n = fuzz_u8(f);
        const uint8_t *from = fuzz_bytes(f, &n);
        memcpy((char *)data_area + at, from, n < DATA_BYTES - at ? n : DATA_BYTES - at);
        break;
    }
    case 3:
        send_to(session_end, f);
        break;
    case 4:
        if (what & 8)
            send_to(control_end, f);
        else
            add_segment();
        break;
    case 5:
        gn_vgpu_flush(&v);
        gn_objects_bury(&v);
        break;
    default:
        for (uint32_t i = 0; i < v.n_devices; i++)
            gn_device_pump(&v.devices[i]);
    }
    if (gn_vgpu_dispatch_control(&v, &channels) < 0)
        return false;
    hear_nothing(session_end);
    return !atomic_load(&v.fault);
}

/* ---- the end, which in a worker is the process's */

static void end_given(void)
{
    while (strict_driver_end(0, CL_COMPLETE))
        hear_nothing(session_end);
}

static void end_commands(void)
{
    for (int again = 0; again < 2; again++) {
        for (uint32_t i = 0; i < v.n_devices; i++) {
            struct gn_vdevice *d = &v.devices[i];
            gn_list_for_each(q, &d->queues, struct gn_vqueue, link)
            {
                gn_list_for_each(c, &q->pending, struct gn_command, link)
                {
                    for (uint32_t w = 0; w < c->n_waits; w++)
                        gn_list_remove(&c->blockers[w].link);
                    c->n_blockers = 0;
                }
            }
            d->blocks = false;
            atomic_store(&d->dirty, true);
            gn_device_pump(d);
        }
        end_given();
    }
}

struct watch_head {
    struct gn_list link; /* as every watch begins */
};

static void free_events(void)
{
    for (uint32_t i = 0; i < GN_EVENT_ENTRIES / GN_OBJECT_CHUNK; i++) {
        for (uint32_t k = 0; v.event_chunks[i] && k < GN_OBJECT_CHUNK; k++)
            gn_list_for_each(w, &v.event_chunks[i][k].watches, struct watch_head, link) free(w);
        free(v.event_chunks[i]);
    }
}

static void free_objects(void)
{
    for (uint32_t i = 0; i < GN_OBJECT_CHUNKS; i++) {
        struct gn_vobject *_Atomic *chunk = atomic_load(&v.objects.chunks[i]);
        for (uint32_t k = 0; chunk && k < GN_OBJECT_CHUNK; k++) {
            struct gn_vobject *o = atomic_load(&chunk[k]);
            if (o)
                gn_object_remove(&v, o->id, o->kind);
        }
    }
    gn_objects_bury(&v);
    for (uint32_t i = 0; i < GN_OBJECT_CHUNKS; i++) {
        free((void *)atomic_load(&v.objects.chunks[i]));
        free(v.objects.generations[i]);
    }
}

static void let_go(void)
{
    int fds[64];
    end_commands();
    free_objects();
    end_given(); /* markers behind the last commands of queues */
    free_events();
    for (int seq = 0; seq < 256; seq++)
        for (int n = 0; gn_vgpu_set_folders(&v, (uint64_t)seq, 0, fds) == 0 && n < 64; n++)
            continue;
    gn_svm_vgpu_free(((struct gn_opencl_vgpu *)v.detail)->svm);
    FUZZ_CHECK(v.lease.used_bytes == ((struct gn_opencl_vgpu *)v.detail)->printf_bytes);
    close(v.lease.wake_fd);
    free(((struct gn_opencl_vgpu *)v.detail)->extensions);
    free(v.detail);
    free(v.devices);
    for (uint32_t i = 1; i < atomic_load(&v.n_segments); i++)
        gn_segment_fini(&v.segments[i]);
    gn_frame_reader_fini(&channels.control.reader);
    gn_frame_reader_fini(&channels.session);
    gn_frame_writer_fini(&v.frames);
    close(session_end);
    close(control_end);
    close(boot.session_fd);
    close(boot.control_fd);
    dup2(stdout_fd, STDOUT_FILENO);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = fuzz_of(data, size);
    if (!data_area)
        once();
    int lowest = dup(0);
    close(lowest);
    set_up(fuzz_u8(&f) & 1);
    while (f.left && step(&f))
        continue;
    let_go();
    FUZZ_CHECK(strict_driver_n_left() == 0);
    int after = dup(0);
    FUZZ_CHECK(after == lowest);
    close(after);
    return 0;
}
