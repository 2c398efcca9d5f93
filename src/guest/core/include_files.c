/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives a build's include files to the vGPU. The files and the rights to read them are the
 * program's; the worker can open none of them. During a build the worker asks for files by the
 * names that the compiler uses, and the session's watcher thread answers with files from the
 * working directory or from a folder that the build options name. Never opens any other file.
 */
#include "guest/core/guest_core.h"

#include "base/descriptor.h"

#include "link/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEND_TIMEOUT_MS 5000

struct folder {
    int fd;
    char *text; /* the prefix of names in this folder; "": relative names */
};

struct gn_folders {
    struct gn_list link; /* in the session's folders, under folders_lock */
    struct gn_session *session;
    uint32_t number;
    uint32_t n;
    size_t n_names;
    char *names; /* all `text`s, each with its terminating zero */
    struct folder items[GN_FOLDERS_MAX];
};

static _Atomic uint32_t next_number = 1;

uint32_t gn_session_number(void)
{
    return atomic_fetch_add_explicit(&next_number, 1, memory_order_relaxed);
}

static void add_folder_entry(struct gn_folders *f, const char *text, const char *path)
{
    size_t n = strlen(text);
    while (n > 1 && text[n - 1] == '/')
        n--;
    if (f->n == GN_FOLDERS_MAX)
        return;
    struct folder *item = &f->items[f->n];
    /* A missing folder is ignored, as a compiler in this process would. */
    item->fd = gn_fd_open(path, O_PATH | O_DIRECTORY);
    if (item->fd < 0)
        return;
    item->text = strndup(text, n);
    char *names = item->text ? realloc(f->names, f->n_names + n + 1) : NULL;
    if (!names) {
        free(item->text);
        gn_fd_close(item->fd);
        return;
    }
    f->names = names;
    memcpy(names + f->n_names, item->text, n + 1);
    f->n_names += n + 1;
    f->n++;
}

struct gn_folders *gn_folders_open(struct gn_session *s)
{
    struct gn_folders *f = calloc(1, sizeof *f);
    char *here = getcwd(NULL, 0);
    if (f) {
        f->session = s;
        f->number = gn_session_number();
        gn_list_init(&f->link);
        /* Services run in "/", and must not expose the whole file system. */
        if (!here || strcmp(here, "/") != 0)
            add_folder_entry(f, "", ".");
        /* A compiler may turn relative names into absolute ones. */
        if (here && here[0] == '/' && here[1])
            add_folder_entry(f, here, ".");
    }
    free(here);
    return f;
}

void gn_folders_add(struct gn_folders *f, const char *path)
{
    if (f && *path)
        add_folder_entry(f, path, path);
}

uint32_t gn_folders_offer(struct gn_folders *f, const char **ret_names, size_t *ret_n)
{
    *ret_names = NULL;
    *ret_n = 0;
    if (!f || !f->n)
        return 0;
    pthread_mutex_lock(&f->session->folders_lock);
    gn_list_append(&f->session->folders, &f->link);
    pthread_mutex_unlock(&f->session->folders_lock);
    *ret_names = f->names;
    *ret_n = f->n_names;
    return f->number;
}

void gn_folders_close(struct gn_folders *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->session->folders_lock);
    gn_list_remove(&f->link);
    pthread_mutex_unlock(&f->session->folders_lock);
    for (uint32_t i = 0; i < f->n; i++) {
        gn_fd_close(f->items[i].fd);
        free(f->items[i].text);
    }
    free(f->names);
    free(f);
}

/*
 * Whether a name in a folder leaves it by "..". Symbolic links are followed: the user has made them
 * on purpose.
 */
static bool leads_out(const char *name)
{
    int depth = 0;
    while (*name) {
        size_t n = strcspn(name, "/");
        if (n == 2 && name[0] == '.' && name[1] == '.') {
            if (--depth < 0)
                return true;
        } else if (n && !(n == 1 && name[0] == '.')) {
            depth++;
        }
        name += n;
        name += strspn(name, "/");
    }
    return false;
}

/* The part of the name behind the folder; NULL: the name does not lie in it. */
static const char *name_inside_folder(const struct folder *f, const char *name)
{
    size_t n = strlen(f->text);
    const char *rest = name;
    if (n == 0 ? name[0] == '/' : strncmp(name, f->text, n) != 0)
        return NULL;
    if (n) {
        rest = name + n;
        if (*rest && *rest != '/' && f->text[n - 1] != '/')
            return NULL;
        rest += strspn(rest, "/");
    }
    if (leads_out(rest))
        return NULL;
    return *rest ? rest : ".";
}

static int open_or_stat(const struct folder *f, const char *rest, uint32_t how, struct stat *st,
                        int *ret_fd)
{
    if (how == GN_SESSION_WANT_FACTS)
        return fstatat(f->fd, rest, st, 0) < 0 ? -errno : 0;
    int fd = gn_fd_open_at(f->fd, rest, O_RDONLY | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode)) {
        gn_fd_close(fd);
        return -EACCES; /* no file that may block a reader, and no directory to walk from */
    }
    *ret_fd = fd;
    return 0;
}

static int find_in_folders(struct gn_session *s, uint32_t number, const char *name, uint32_t how,
                           struct stat *st, int *ret_fd)
{
    int rc = -ENOENT;
    pthread_mutex_lock(&s->folders_lock);
    gn_list_for_each(f, &s->folders, struct gn_folders, link)
    {
        if (f->number != number)
            continue;
        for (uint32_t i = 0; i < f->n && rc; i++) {
            const char *rest = name_inside_folder(&f->items[i], name);
            if (rest)
                rc = open_or_stat(&f->items[i], rest, how, st, ret_fd);
        }
    }
    pthread_mutex_unlock(&s->folders_lock);
    return rc;
}

void gn_folders_look(struct gn_session *s, const void *payload, uint32_t n,
                     struct gn_session_file *ret, int *ret_fd)
{
    struct gn_session_want want;
    struct gn_session_file file = {.zero = 0};
    struct stat st;
    int fd = -1, rc = -EINVAL;
    const char *name = (const char *)payload + sizeof want;
    if (n > sizeof want && name[n - sizeof want - 1] == 0) {
        memcpy(&want, payload, sizeof want);
        rc = find_in_folders(s, want.number, name, want.how, &st, &fd);
    }
    file.error = (uint32_t)-rc;
    if (rc == 0) {
        file.mode = st.st_mode;
        file.bytes = (uint64_t)st.st_size;
        file.device = st.st_dev;
        file.inode = st.st_ino;
        file.modified_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
    }
    *ret = file;
    *ret_fd = fd;
}

void gn_folders_answer(struct gn_session *s, uint32_t seq, const void *payload, uint32_t n)
{
    struct gn_session_file file;
    int fd;
    gn_folders_look(s, payload, n, &file, &fd);
    pthread_mutex_lock(&s->socket_lock);
    /* A worker that does not take the answer is dying. */
    (void)gn_frame_send(s->socket, SEND_TIMEOUT_MS, GN_SESSION_FILE, 0, seq, &file, sizeof file,
                        &fd, fd >= 0);
    pthread_mutex_unlock(&s->socket_lock);
    if (fd >= 0)
        gn_fd_close(fd);
}
