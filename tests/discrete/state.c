/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State that the processes of one emulated device share: the memory that each holds, two clocks of
 * the bus, exact counts. It lies in the file $DISCRETE_STATE, which is opened when the library is
 * loaded: before a template forks its workers, and before their walls. Without the variable it is
 * memory of this process. Called on any thread.
 *
 * A process holds a POSIX lock on the byte of its entry for as long as it lives. A process
 * that finds an entry with memory and without a lock clears it: its owner has ended. Only
 * entries are stored, no sum of them: a process killed in between leaves nothing that is wrong.
 */
#include "discrete.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define N_ENTRIES  256
#define FIRST_HIGH 512 /* of descriptors; programs reuse the low ones */
#define NO_ENTRY   (-1)

/* The layout of the file; device_state.py reads it. */
struct state {
    _Atomic uint64_t counts[DG_COUNTS];
    _Atomic uint64_t bus_free_ns[2]; /* when the bus is free again, each way */
    _Atomic uint64_t entries[N_ENTRIES];
};

static struct state *state;
static int fd = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* locks of files are the process's */
static int own_entry = NO_ENTRY;
static pid_t owner; /* the process that claimed it: a child has none, even without pthread_atfork */

/* The lock of files may be held by a thread that the child does not have. */
static void on_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}

static void write_report(void)
{
    static const char *const names[DG_COUNTS] = {
        "peak_bytes", "refusals",       "to_device_bytes", "from_device_bytes", "transfers",
        "bus_to_ns",  "bus_from_ns",    "launches",        "creations",         "maps",
        "held",       "reclaimed_bytes"};
    const char *path = getenv("DISCRETE_REPORT");
    FILE *f = path ? fopen(path, "we") : NULL;
    for (size_t i = 0; f && i < DG_COUNTS; i++)
        fprintf(f, "%s %" PRIu64 "\n", names[i], atomic_load(&state->counts[i]));
    if (f)
        fclose(f);
}

void dg_state_open(void)
{
    const char *path = getenv("DISCRETE_STATE");
    int low = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (low >= 0) {
        fd = fcntl(low, F_DUPFD_CLOEXEC, FIRST_HIGH);
        if (fd < 0)
            fd = low;
        else
            close(low);
    }
    if (path && (fd < 0 || ftruncate(fd, sizeof *state) < 0)) {
        fprintf(stderr, "discrete: %s: %s\n", path, strerror(errno));
        exit(2);
    }
    state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE,
                 path ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
    if (state == MAP_FAILED) {
        fprintf(stderr, "discrete: no memory for the state: %s\n", strerror(errno));
        exit(2);
    }
    pthread_atfork(NULL, NULL, on_fork);
    if (getenv("DISCRETE_REPORT"))
        atexit(write_report);
}

void dg_state_add(enum dg_count which, uint64_t n)
{
    atomic_fetch_add(&state->counts[which], n);
}

void dg_state_transferred(enum dg_direction direction, uint64_t bytes)
{
    dg_state_add(DG_TRANSFERS, 1);
    dg_state_add(direction == DG_TO_DEVICE ? DG_TO_DEVICE_BYTES : DG_FROM_DEVICE_BYTES, bytes);
}

/* Byte 0 of the file is the lock of all; byte 1 + i that of entry i. */
static bool lock_byte(int command, short type, int byte)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int rc = 0;
    while (fd >= 0 && (rc = fcntl(fd, command, &l)) < 0 && errno == EINTR) {
    }
    return fd < 0 || rc == 0;
}

static void clear_entry(int i)
{
    dg_state_add(DG_RECLAIMED_BYTES, atomic_exchange(&state->entries[i], 0));
}

static bool claim_entry_locked(void)
{
    if (owner != getpid())
        own_entry = NO_ENTRY;
    owner = getpid();
    for (int i = 0; i < N_ENTRIES && own_entry == NO_ENTRY; i++) {
        if (!lock_byte(F_SETLK, F_WRLCK, 1 + i))
            continue;
        clear_entry(i);
        own_entry = i;
    }
    return own_entry != NO_ENTRY;
}

static uint64_t sum_locked(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < N_ENTRIES; i++)
        sum += atomic_load(&state->entries[i]);
    return sum;
}

static void reclaim_locked(void)
{
    for (int i = 0; i < N_ENTRIES; i++) {
        if (i == own_entry || !atomic_load(&state->entries[i]) ||
            !lock_byte(F_SETLK, F_WRLCK, 1 + i))
            continue;
        clear_entry(i);
        lock_byte(F_SETLK, F_UNLCK, 1 + i);
    }
}

static bool charge_locked(uint64_t bytes)
{
    if (!claim_entry_locked())
        return false;
    uint64_t sum = sum_locked();
    if (bytes > dg_options.capacity_bytes - sum || sum > dg_options.capacity_bytes) {
        reclaim_locked();
        sum = sum_locked();
    }
    if (sum > dg_options.capacity_bytes || bytes > dg_options.capacity_bytes - sum)
        return false;
    atomic_fetch_add(&state->entries[own_entry], bytes);
    if (sum + bytes > atomic_load(&state->counts[DG_PEAK_BYTES]))
        atomic_store(&state->counts[DG_PEAK_BYTES], sum + bytes);
    return true;
}

bool dg_state_charge(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    const bool mine = lock_byte(F_SETLKW, F_WRLCK, 0);
    const bool charged = mine && charge_locked(bytes);
    if (mine)
        lock_byte(F_SETLK, F_UNLCK, 0);
    pthread_mutex_unlock(&lock);
    if (!charged)
        dg_state_add(DG_REFUSALS, 1);
    return charged;
}

void dg_state_uncharge(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    if (own_entry != NO_ENTRY && owner == getpid())
        atomic_fetch_sub(&state->entries[own_entry], bytes);
    pthread_mutex_unlock(&lock);
}

uint64_t dg_state_occupy_bus(enum dg_direction direction, uint64_t bytes)
{
    const uint64_t now = dg_now_ns();
    if (!dg_options.bus_rate)
        return now + dg_options.latency_ns;
    const uint64_t ns = (uint64_t)((double)bytes * 1e9 / (double)dg_options.bus_rate);
    uint64_t free = atomic_load(&state->bus_free_ns[direction]), end;
    do {
        end = (free > now ? free : now) + ns;
    } while (!atomic_compare_exchange_weak(&state->bus_free_ns[direction], &free, end));
    dg_state_add(direction == DG_TO_DEVICE ? DG_BUS_TO_NS : DG_BUS_FROM_NS, ns);
    return end + dg_options.latency_ns;
}
