/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libserial-icd.so: oclgrind behind one lock. OpenCL lets several threads call at once, but two
 * threads in oclgrind end their process by SIGSEGV, even with a queue each. Every entry of
 * oclgrind's dispatch table leads to a stub, which takes the lock, calls oclgrind and releases the
 * lock on return. The stubs serve functions with any arguments. A callback of oclgrind's runs
 * within a call, so the lock is recursive. Loaded by an ICD loader; the table is replaced at load,
 * on the loading thread, before any other thread can call.
 *
 * x86-64 with the System V calling convention.
 */
#include <CL/cl_icd.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define OCLGRIND "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
/* oclgrind's table ends with OpenCL 1.2. */
#define N_CALLS                                                                                    \
    (offsetof(cl_icd_dispatch, clGetExtensionFunctionAddressForPlatform) / sizeof(void *) + 1)
#define N_STUBS      128
#define STUB_BYTES   16
#define MAX_DEPTH    64
#define STRING_OF(x) #x
#define STRING(x)    STRING_OF(x)

_Static_assert(N_CALLS <= N_STUBS, "a stub for each call");

extern const char serial_stubs[], serial_return[];

/* For the stubs alone. */
void *serial_enter(unsigned index, const void **at_return);
void *serial_leave(void);

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static void *calls[N_CALLS]; /* oclgrind's own */
static _Thread_local void *return_addresses[MAX_DEPTH];
static _Thread_local unsigned depth;

static void *library;
static union {
    void *object;
    cl_int(CL_API_CALL *call)(cl_uint, cl_platform_id *, cl_uint *);
} platform_ids;
static union {
    void *object;
    void *(CL_API_CALL *call)(const char *);
} find;

/* Called by a stub: *at_return is the stub's return address. Returns the function to jump to. */
__attribute__((used, visibility("hidden"))) void *serial_enter(unsigned index,
                                                               const void **at_return)
{
    pthread_mutex_lock(&lock);
    if (depth == MAX_DEPTH) {
        fprintf(stderr, "serial_icd: callbacks call more than %d deep\n", MAX_DEPTH);
        abort();
    }
    return_addresses[depth++] = (void *)(uintptr_t)*at_return;
    *at_return = serial_return;
    return calls[index];
}

/* Returns the address that the stub's caller continues at. */
__attribute__((used, visibility("hidden"))) void *serial_leave(void)
{
    void *to = return_addresses[--depth];
    pthread_mutex_unlock(&lock);
    return to;
}

/* A stub keeps the six registers of integer arguments; no OpenCL call has a floating-point one. */
__asm__(".text\n"
        ".hidden serial_stubs, serial_return\n"
        ".globl serial_stubs, serial_return\n"
        ".p2align 4\n"
        "serial_stubs:\n"
        ".set serial_index, 0\n"
        ".rept " STRING(N_STUBS) "\n"
                                 ".p2align 4\n"
                                 "movl $serial_index, %r11d\n"
                                 "jmp serial_call\n"
                                 ".set serial_index, serial_index + 1\n"
                                 ".endr\n"
                                 "serial_call:\n"
                                 "push %rdi\n"
                                 "push %rsi\n"
                                 "push %rdx\n"
                                 "push %rcx\n"
                                 "push %r8\n"
                                 "push %r9\n"
                                 "sub $8, %rsp\n"
                                 "movl %r11d, %edi\n"
                                 "lea 56(%rsp), %rsi\n"
                                 "call serial_enter\n"
                                 "add $8, %rsp\n"
                                 "pop %r9\n"
                                 "pop %r8\n"
                                 "pop %rcx\n"
                                 "pop %rdx\n"
                                 "pop %rsi\n"
                                 "pop %rdi\n"
                                 "jmp *%rax\n"
                                 "serial_return:\n"
                                 "sub $16, %rsp\n"
                                 "movq %rax, (%rsp)\n"
                                 "call serial_leave\n"
                                 "movq %rax, %r11\n"
                                 "movq (%rsp), %rax\n"
                                 "add $16, %rsp\n"
                                 "jmp *%r11\n");

static void replace_table(void **table)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = (uintptr_t)table & ~(page - 1);
    const uintptr_t to = ((uintptr_t)(table + N_CALLS) + page - 1) & ~(page - 1);
    /* The linker makes the table read-only once it is filled. */
    if (mprotect((void *)from, to - from, PROT_READ | PROT_WRITE)) {
        fprintf(stderr, "serial_icd: oclgrind's dispatch table cannot be changed\n");
        abort();
    }
    for (size_t i = 0; i < N_CALLS; i++) {
        if (!table[i])
            continue;
        calls[i] = table[i];
        table[i] = (void *)(uintptr_t)(serial_stubs + i * STUB_BYTES);
    }
}

__attribute__((constructor)) static void load_oclgrind(void)
{
    cl_platform_id platform = NULL;
    library = dlopen(OCLGRIND, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "serial_icd: %s\n", dlerror());
        abort();
    }
    platform_ids.object = dlsym(library, "clIcdGetPlatformIDsKHR");
    find.object = dlsym(library, "clGetExtensionFunctionAddress");
    if (!platform_ids.object || !find.object || platform_ids.call(1, &platform, NULL)) {
        fprintf(stderr, "serial_icd: oclgrind has no platform\n");
        abort();
    }
    /* All of oclgrind's objects begin with the address of its one table. */
    replace_table(*(void ***)(void *)platform);
}

__attribute__((visibility("default"))) cl_int CL_API_CALL
clIcdGetPlatformIDsKHR(cl_uint n, cl_platform_id *ids, cl_uint *ret_n)
{
    return platform_ids.call(n, ids, ret_n);
}

__attribute__((visibility("default"))) void *CL_API_CALL
clGetExtensionFunctionAddress(const char *name)
{
    return find.call(name);
}
