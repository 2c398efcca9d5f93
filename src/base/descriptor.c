/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes and closes descriptors, and keeps Gantry's out of the numbers 0 to 2 of a program. All code
 * that may run in a program calls it, on any thread; in other processes it only makes the plain
 * system calls.
 *
 * `lock` is held only while placeholders occupy closed ones of the first three numbers. The fork
 * handlers acquire it, so a child never inherits a placeholder.
 */
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define FIRST_OURS 3

static _Atomic bool in_program;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The descriptors that Gantry made in this program, by number. */
static struct {
    pthread_mutex_t lock; /* acquired after the other lock */
    struct file {
        dev_t device;
        ino_t inode;
        uint64_t serial; /* 0: unknown */
    } * files;
    int n;
    uint64_t n_made;
} ours = {.lock = PTHREAD_MUTEX_INITIALIZER};

void gn_fd_in_program(void)
{
    atomic_store_explicit(&in_program, true, memory_order_relaxed);
}

bool gn_fd_is_open(int fd)
{
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && !(flags & O_PATH);
}

static struct file file_of(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return (struct file){.serial = 0};
    return (struct file){st.st_dev, st.st_ino, ++ours.n_made};
}

static bool make_room_locked(int fd)
{
    if (fd < ours.n)
        return true;
    struct file *files = realloc(ours.files, (size_t)(fd + 64) * sizeof *files);
    if (!files)
        return false;
    memset(files + ours.n, 0, (size_t)(fd + 64 - ours.n) * sizeof *files);
    ours.files = files;
    ours.n = fd + 64;
    return true;
}

/* A descriptor that cannot be remembered counts as Gantry's. */
static int remember(int fd)
{
    const int error = errno;
    if (fd < 0 || !atomic_load_explicit(&in_program, memory_order_relaxed))
        return fd;
    pthread_mutex_lock(&ours.lock);
    if (make_room_locked(fd))
        ours.files[fd] = file_of(fd);
    pthread_mutex_unlock(&ours.lock);
    errno = error;
    return fd;
}

void gn_fd_adopt(int fd)
{
    (void)remember(fd);
}

static uint64_t serial_locked(int fd)
{
    struct stat st;
    if (fd >= ours.n || !ours.files[fd].serial)
        return UINT64_MAX;
    const struct file *f = &ours.files[fd];
    return !fstat(fd, &st) && st.st_dev == f->device && st.st_ino == f->inode ? f->serial : 0;
}

uint64_t gn_fd_serial(int fd)
{
    if (fd < 0 || !atomic_load_explicit(&in_program, memory_order_relaxed))
        return fd < 0 ? 0 : UINT64_MAX;
    pthread_mutex_lock(&ours.lock);
    const uint64_t serial = serial_locked(fd);
    pthread_mutex_unlock(&ours.lock);
    return serial;
}

bool gn_fd_is_ours(int fd)
{
    return gn_fd_serial(fd) != 0;
}

void gn_fd_close(int fd)
{
    if (fd < 0)
        return;
    /* Without a lock here, because the close() of another process's descriptor may block. */
    if (!atomic_load_explicit(&in_program, memory_order_relaxed)) {
        close(fd);
        return;
    }
    pthread_mutex_lock(&ours.lock);
    if (serial_locked(fd))
        close(fd);
    if (fd < ours.n)
        ours.files[fd].serial = 0;
    pthread_mutex_unlock(&ours.lock);
}

bool gn_fd_signal(int fd)
{
    const uint64_t one = 1;
    const bool is = gn_fd_is_ours(fd);
    if (is)
        (void)!write(fd, &one, sizeof one);
    return is;
}

void gn_fd_drain(int fd)
{
    uint64_t count;
    if (gn_fd_is_ours(fd))
        (void)!read(fd, &count, sizeof count);
}

void gn_fd_shutdown(int fd)
{
    if (gn_fd_is_ours(fd))
        (void)shutdown(fd, SHUT_RDWR);
}

int gn_fd_replace(int fd, int at)
{
    if (!gn_fd_is_ours(at)) {
        errno = EBADF;
        return -1;
    }
    const int rc = dup3(fd, at, O_CLOEXEC);
    remember(at);
    return rc < 0 ? -1 : 0;
}

/* The placeholders that occupy closed ones of the first three numbers. */
struct occupied {
    bool locked;
    int n;
    int fds[FIRST_OURS];
};

static struct occupied occupy_low_numbers(void)
{
    struct occupied h = {.n = 0};
    bool closed = false;
    if (!atomic_load_explicit(&in_program, memory_order_relaxed))
        return h;
    /* A number that another thread's placeholder occupies counts as closed. */
    for (int fd = 0; fd < FIRST_OURS; fd++)
        closed |= !gn_fd_is_open(fd);
    if (!closed)
        return h;
    pthread_mutex_lock(&lock);
    h.locked = true;
    while (h.n < FIRST_OURS) {
        const int fd = open("/", O_PATH | O_CLOEXEC);
        if (fd >= FIRST_OURS)
            close(fd);
        if (fd < 0 || fd >= FIRST_OURS)
            break;
        h.fds[h.n++] = fd;
    }
    return h;
}

static void free_low_numbers(const struct occupied *h)
{
    const int error = errno;
    for (int i = 0; i < h->n; i++) {
        const int flags = fcntl(h->fds[i], F_GETFL);
        /* Otherwise the program has put a file of its own there. */
        if (flags >= 0 && flags & O_PATH)
            close(h->fds[i]);
    }
    if (h->locked)
        pthread_mutex_unlock(&lock);
    errno = error;
}

/*
 * Moves a descriptor above 2 that got a low number despite the placeholders: none could be made, or
 * the program closed its own a moment ago.
 */
static int move_above_low(int fd)
{
    if (fd < 0 || fd >= FIRST_OURS || !atomic_load_explicit(&in_program, memory_order_relaxed))
        return fd;
    const int higher = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OURS), error = errno;
    close(fd);
    errno = error;
    return higher;
}

static int finish_new(const struct occupied *h, int fd)
{
    const int higher = move_above_low(fd);
    free_low_numbers(h);
    return remember(higher);
}

int gn_fd_socket(int domain, int type, int protocol)
{
    const struct occupied h = occupy_low_numbers();
    return finish_new(&h, socket(domain, type | SOCK_CLOEXEC, protocol));
}

int gn_fd_pair(int domain, int type, int ret[static 2])
{
    const struct occupied h = occupy_low_numbers();
    int ends[2];
    const bool none = socketpair(domain, type | SOCK_CLOEXEC, 0, ends) < 0;
    for (int i = 0; i < 2 && !none; i++)
        ends[i] = move_above_low(ends[i]);
    free_low_numbers(&h);
    if (none)
        return -1;
    if (ends[0] < 0 || ends[1] < 0) {
        for (int i = 0; i < 2; i++)
            if (ends[i] >= 0)
                close(ends[i]);
        errno = EMFILE;
        return -1;
    }
    for (int i = 0; i < 2; i++)
        ret[i] = remember(ends[i]);
    return 0;
}

int gn_fd_event(int flags)
{
    const struct occupied h = occupy_low_numbers();
    return finish_new(&h, eventfd(0, flags | EFD_CLOEXEC));
}

int gn_fd_timer(int clock, int flags)
{
    const struct occupied h = occupy_low_numbers();
    return finish_new(&h, timerfd_create(clock, flags | TFD_CLOEXEC));
}

int gn_fd_epoll(void)
{
    const struct occupied h = occupy_low_numbers();
    return finish_new(&h, epoll_create1(EPOLL_CLOEXEC));
}

int gn_fd_memory(const char *name, unsigned flags)
{
    const struct occupied h = occupy_low_numbers();
    return finish_new(&h, memfd_create(name, flags | MFD_CLOEXEC));
}

int gn_fd_open(const char *path, int flags)
{
    return gn_fd_open_at(AT_FDCWD, path, flags);
}

int gn_fd_open_at(int folder, const char *path, int flags)
{
    const struct occupied h = occupy_low_numbers();
    return finish_new(&h, openat(folder, path, flags | O_CLOEXEC));
}

int gn_fd_duplicate(int fd)
{
    return remember(fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OURS));
}

ssize_t gn_fd_receive(int fd, struct msghdr *msg, int flags)
{
    const struct occupied h = occupy_low_numbers();
    const ssize_t n = recvmsg(fd, msg, flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    for (struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
            int one;
            memcpy(&one, (char *)c + at, sizeof one);
            one = remember(move_above_low(one));
            memcpy((char *)c + at, &one, sizeof one);
        }
    }
    free_low_numbers(&h);
    return n;
}

void gn_fd_before_fork(void)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_lock(&ours.lock);
}

void gn_fd_after_fork(void)
{
    pthread_mutex_unlock(&ours.lock);
    pthread_mutex_unlock(&lock);
}

void gn_fd_after_fork_child(void)
{
    pthread_mutex_init(&ours.lock, NULL);
    pthread_mutex_init(&lock, NULL);
}
