/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's include files, for builds. The vGPU can open none of them, so it asks the program
 * over the session socket and waits. Called by the functions that open files in this process (a
 * worker's own open and stat), on any thread of the compiler's; the control thread delivers the
 * answers. Never opens a file by name.
 */
#include "vgpu/core/include_files.h"

#include "vgpu/core/build_includes.h"
#include "vgpu/core/vgpu_core.h"

#include "base/descriptor.h"
#include "link/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_TIMEOUT_S 10
#define MAX_NAME_BYTES   4096u

/*
 * The build in progress. The helper thread runs one at a time, but a driver's own threads may open
 * files.
 */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct gn_vgpu *vgpu; /* lock, as all below; NULL: no build */
    uint32_t number;
    const char *names; /* the program's folders, each with its terminating zero */
    size_t n_names;
    struct gn_build_includes *found; /* by this build */
    bool again;                      /* a repeated build: `found` is all there is */
    uint32_t seq;
    struct gn_list asked;
} files = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .wake = PTHREAD_COND_INITIALIZER,
           .asked = GN_LIST_INIT(files.asked)};
static _Atomic bool building; /* makes unrelated opens cheap */

struct asked {
    struct gn_list link;
    uint32_t seq;
    bool answered;
    int fd;
    struct gn_session_file file;
};

void gn_vgpu_begin_build(struct gn_vgpu *v, uint32_t number, const char *names, size_t n_names,
                         struct gn_build_includes *found, bool again)
{
    if (!number || !n_names || names[n_names - 1])
        return;
    pthread_mutex_lock(&files.lock);
    files.vgpu = v;
    files.number = number;
    files.names = names;
    files.n_names = n_names;
    files.found = found;
    files.again = again;
    pthread_mutex_unlock(&files.lock);
    atomic_store_explicit(&building, true, memory_order_relaxed);
}

void gn_vgpu_end_build(void)
{
    atomic_store_explicit(&building, false, memory_order_relaxed);
    pthread_mutex_lock(&files.lock);
    if (files.found)
        gn_build_includes_close(files.found);
    files.found = NULL;
    files.vgpu = NULL;
    files.names = NULL;
    pthread_mutex_unlock(&files.lock);
}

/*
 * Whether the name may lie in one of the program's folders. Saves a request for each of the
 * driver's own files.
 */
static bool may_be_in_folders_locked(const char *name)
{
    for (size_t at = 0; at < files.n_names; at += strlen(files.names + at) + 1) {
        const char *folder = files.names + at;
        size_t n = strlen(folder);
        if (n ? strncmp(name, folder, n) == 0 &&
                    (!name[n] || name[n] == '/' || folder[n - 1] == '/')
              : name[0] != '/')
            return true;
    }
    return false;
}

static int send_request_locked(struct asked *a, uint32_t how, const char *name)
{
    struct {
        struct gn_session_want want;
        char name[MAX_NAME_BYTES];
    } m = {.want = {files.number, how}};
    size_t n = strlen(name) + 1;
    struct gn_vgpu *v = files.vgpu;
    if (n > sizeof m.name)
        return -ENAMETOOLONG;
    memcpy(m.name, name, n);
    a->seq = ++files.seq;
    gn_list_append(&files.asked, &a->link);
    pthread_mutex_unlock(&files.lock);
    int rc = gn_vgpu_send(v, GN_SESSION_WANT, a->seq, &m, sizeof m.want + n);
    pthread_mutex_lock(&files.lock);
    return rc;
}

int gn_vgpu_program_file(const char *name, bool contents, int *ret_fd, struct stat *ret_facts)
{
    struct asked a = {.fd = -1};
    struct timespec until;
    if (!atomic_load_explicit(&building, memory_order_relaxed))
        return -ENOENT;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ANSWER_TIMEOUT_S;
    gn_list_init(&a.link);
    pthread_mutex_lock(&files.lock);
    if (files.vgpu && files.again) {
        int rc = may_be_in_folders_locked(name)
                     ? gn_build_includes_open(files.found, name, contents, ret_fd, ret_facts)
                     : -ENOENT;
        pthread_mutex_unlock(&files.lock);
        return rc;
    }
    int rc = !files.vgpu || !may_be_in_folders_locked(name)
                 ? -ENOENT
                 : send_request_locked(
                       &a, contents ? GN_SESSION_WANT_CONTENTS : GN_SESSION_WANT_FACTS, name);
    while (rc == 0 && !a.answered)
        rc = -pthread_cond_clockwait(&files.wake, &files.lock, CLOCK_MONOTONIC, &until);
    gn_list_remove(&a.link);
    pthread_mutex_unlock(&files.lock);
    if (rc == 0 && a.file.error)
        rc = a.file.error < 4096 ? -(int)a.file.error : -EIO;
    if (rc == 0 && contents && a.fd < 0)
        rc = -EIO;
    struct stat facts;
    memset(&facts, 0, sizeof facts);
    facts.st_mode = a.file.mode;
    facts.st_nlink = 1;
    facts.st_size = (off_t)a.file.bytes;
    facts.st_dev = a.file.device;
    facts.st_ino = a.file.inode;
    facts.st_blksize = 4096;
    facts.st_mtim.tv_sec = (time_t)(a.file.modified_ns / 1000000000u);
    facts.st_mtim.tv_nsec = (long)(a.file.modified_ns % 1000000000u);
    if (rc == 0) {
        pthread_mutex_lock(&files.lock);
        if (files.found)
            gn_build_includes_found(files.found, name, &facts, contents ? a.fd : -1);
        pthread_mutex_unlock(&files.lock);
    }
    if (rc || !contents) {
        gn_fd_close(a.fd);
    } else {
        *ret_fd = a.fd;
    }
    if (rc == 0 && ret_facts)
        *ret_facts = facts;
    return rc;
}

int gn_vgpu_receive_file(struct gn_frame_reader *reader, const struct gn_frame *frame)
{
    struct gn_session_file file;
    if (!gn_frame_payload(frame, &file, sizeof file) || file.zero)
        return -EPROTO;
    gn_vgpu_file_came(frame->seq, &file, frame->n_fds ? gn_frame_take_fd(reader, 0) : -1);
    return 0;
}

void gn_vgpu_file_came(uint32_t seq, const struct gn_session_file *file, int fd)
{
    pthread_mutex_lock(&files.lock);
    gn_list_for_each(a, &files.asked, struct asked, link)
    {
        if (a->seq != seq || a->answered)
            continue;
        a->file = *file;
        a->fd = fd;
        a->answered = true;
        fd = -1;
        pthread_cond_broadcast(&files.wake);
    }
    pthread_mutex_unlock(&files.lock);
    /* The answer came after the timeout: nobody waits for it. */
    gn_fd_close(fd);
}
