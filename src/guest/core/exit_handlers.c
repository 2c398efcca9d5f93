/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wraps the exit handlers of libraries that a thread of Gantry's loads. A library registers the
 * destructors of its static objects through __cxa_atexit. The dynamic linker resolves that name in
 * the program's lookup order, in which no library loaded later can precede the C library. So for
 * the duration of a load, the entry in the C library's symbol table is changed to point here. The
 * page is private to the process, the change is one aligned word, and calls on other threads are
 * passed on unchanged. Called only by threads that load a driver (session_in_process.c). Never
 * changes code.
 */
#include "guest/core/exit_handlers.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int register_fn(void (*run)(void *), void *arg, void *library);

struct wrapped {
    bool (*before)(void *ctx);
    void *ctx;
    void (*run)(void *);
    void *arg;
};

/* The load in progress on this thread. before NULL: none. */
static _Thread_local struct {
    bool (*before)(void *ctx);
    void *ctx;
    unsigned n;
} loading;

static struct {
    pthread_mutex_t lock;
    unsigned n_users;               /* lock, as are the fields below */
    register_fn *_Atomic registers; /* the C library's function; NULL: not looked up yet */
    ElfW(Sym) * symbol;
    ElfW(Addr) value; /* the entry's original value */
} entry = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Looked up once, while the entry has its original value. */
static register_fn *real_function_locked(void)
{
    register_fn *real = atomic_load_explicit(&entry.registers, memory_order_relaxed);
    if (!real) {
        real = (register_fn *)(uintptr_t)dlsym(RTLD_DEFAULT, "__cxa_atexit");
        atomic_store_explicit(&entry.registers, real, memory_order_relaxed);
    }
    return real;
}

static void run_wrapped(void *arg)
{
    struct wrapped *w = arg;
    if (w->before(w->ctx))
        w->run(w->arg);
    free(w);
}

/* Called in place of __cxa_atexit by libraries that are being loaded. */
static int register_wrapped(void (*run)(void *), void *arg, void *library)
{
    register_fn *real = atomic_load_explicit(&entry.registers, memory_order_relaxed);
    struct wrapped *w = loading.before ? malloc(sizeof *w) : NULL;
    if (!w)
        return real(run, arg, library);
    *w = (struct wrapped){loading.before, loading.ctx, run, arg};
    const int rc = real(run_wrapped, w, library);
    if (rc)
        free(w);
    else
        loading.n++;
    return rc;
}

struct place {
    uintptr_t at;
    int protection; /* protection of the segment around `at`; -1: there is none */
};

static int find_segment(struct dl_phdr_info *info, size_t n, void *arg)
{
    struct place *p = arg;
    (void)n;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        const uintptr_t from = info->dlpi_addr + h->p_vaddr;
        if (h->p_type != PT_LOAD || p->at < from || p->at - from >= h->p_memsz)
            continue;
        p->protection = h->p_flags & PF_R ? PROT_READ : 0;
        p->protection |= h->p_flags & PF_W ? PROT_WRITE : 0;
        p->protection |= h->p_flags & PF_X ? PROT_EXEC : 0;
        return 1;
    }
    return 0;
}

static bool set_value(ElfW(Sym) * symbol, ElfW(Addr) value)
{
    struct place p = {(uintptr_t)&symbol->st_value, -1};
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)(p.at & ~(page_bytes - 1));
    (void)dl_iterate_phdr(find_segment, &p);
    if (p.protection < 0 || mprotect(page, page_bytes, p.protection | PROT_WRITE))
        return false;
    __atomic_store_n(&symbol->st_value, value, __ATOMIC_RELEASE);
    (void)mprotect(page, page_bytes, p.protection);
    return true;
}

/* The symbol table entry for __cxa_atexit; NULL: it cannot be changed. */
static ElfW(Sym) * find_entry_locked(void)
{
    ElfW(Sym) *symbol = NULL;
    Dl_info info;
    char *address = (char *)(uintptr_t)real_function_locked();
    if (!address || !dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT))
        return NULL;
    if (!symbol || !info.dli_sname || strcmp(info.dli_sname, "__cxa_atexit"))
        return NULL;
    const bool plain = symbol->st_shndx != SHN_ABS && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC;
    return plain && (char *)info.dli_fbase + symbol->st_value == address ? symbol : NULL;
}

static bool divert_entry_locked(void)
{
    ElfW(Sym) *symbol = find_entry_locked();
    if (!symbol)
        return false;
    entry.symbol = symbol;
    entry.value = symbol->st_value;
    /* The dynamic linker adds the C library's load address to the value. */
    const ElfW(Addr) base = (ElfW(Addr))(uintptr_t)real_function_locked() - symbol->st_value;
    return set_value(symbol, (ElfW(Addr))(uintptr_t)register_wrapped - base);
}

bool gn_exit_handlers_wrap(bool (*before)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&entry.lock);
    const bool diverted = entry.n_users || divert_entry_locked();
    entry.n_users += diverted;
    pthread_mutex_unlock(&entry.lock);
    if (!diverted)
        return false;
    loading.n = 0;
    loading.ctx = ctx;
    loading.before = before;
    return true;
}

unsigned gn_exit_handlers_release(void)
{
    if (!loading.before)
        return 0;
    loading.before = NULL;
    pthread_mutex_lock(&entry.lock);
    if (!--entry.n_users)
        (void)set_value(entry.symbol, entry.value);
    pthread_mutex_unlock(&entry.lock);
    return loading.n;
}

int gn_exit_handlers_add(void (*run)(void *))
{
    pthread_mutex_lock(&entry.lock);
    register_fn *real = real_function_locked();
    pthread_mutex_unlock(&entry.lock);
    return real ? real(run, NULL, NULL) : -1;
}

void gn_exit_handlers_before_fork(void)
{
    pthread_mutex_lock(&entry.lock);
}

void gn_exit_handlers_after_fork(void)
{
    pthread_mutex_unlock(&entry.lock);
}
