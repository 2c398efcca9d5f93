/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program for the tests of the tcp link: does what its stdin says, a word a line, and answers
 * each with one line. Every result is checked, so that nothing may be lost, done twice or out of
 * order while its connection is cut under it.
 *
 *     rounds N    N times: write, launch, read back, all without waiting until the end
 *     bulk N      N times 8 MiB there and back, blocking
 *     writes N M  N times M MiB that nobody waits for, into a buffer, which is then read back
 *     reads N M   the same the other way
 *     made N      a buffer of N MiB, for the next writes, reads or gated
 *     gated N M   as writes, all behind a user event that is set at the end or at the first error,
 * which is the answer buffers N M N buffers of M MiB at a time, each written and read back query
 * one call that is answered list N      commands that wait for N events each, of which one fails:
 * the first or the last of the list callbacks N N times what comes back in one go: a result that is
 * waited for, and ends behind it that callbacks tell of wait        a thread begins to wait for a
 * marker; `join` tells how that went join user N      N times a thread waits for a user event,
 * which is set when it sleeps print       a kernel prints; then this process prints fork        a
 * child that ends at once; how it did
 *
 * With WANDERER_EXIT its last exit handler makes a call, as a static destructor would, and prints
 * the result. WANDERER_EXIT=openssl: it has used OpenSSL before Gantry did, whose own handler runs
 * before that one.
 */
#include <CL/cl.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N    4096
#define BULK (8u << 20)

static cl_context context;
static cl_device_id device;
static cl_command_queue queue;
static cl_kernel add, shout;
static cl_event gate;
static cl_int waited;
static pthread_t waiter;

static cl_int set_up(void)
{
    static const char *source =
        "__kernel void add(__global int *a, int n) { a[get_global_id(0)] += n; }\n"
        "__kernel void shout(int n) { printf(\"kernel %d\\n\", n); }\n";
    cl_platform_id platform;
    cl_int r = clGetPlatformIDs(1, &platform, NULL);
    if (!r)
        r = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    if (r)
        return r;
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);
    if (!r)
        queue = clCreateCommandQueue(context, device, 0, &r);
    cl_program program = r ? NULL : clCreateProgramWithSource(context, 1, &source, NULL, &r);
    if (!r)
        r = clBuildProgram(program, 1, &device, "", NULL, NULL);
    if (!r)
        add = clCreateKernel(program, "add", &r);
    if (!r)
        shout = clCreateKernel(program, "shout", &r);
    return r;
}

static cl_int one_round(int round)
{
    static int in[N], out[N];
    const size_t n = N;
    cl_int r;
    cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof in, NULL, &r);
    if (r)
        return r;
    for (int i = 0; i < N; i++)
        in[i] = i * round;
    r = clEnqueueWriteBuffer(queue, m, CL_FALSE, 0, sizeof in, in, 0, NULL, NULL);
    for (cl_int k = 1; !r && k <= 3; k++) {
        r = clSetKernelArg(add, 0, sizeof m, &m);
        if (!r)
            r = clSetKernelArg(add, 1, sizeof k, &k);
        if (!r)
            r = clEnqueueNDRangeKernel(queue, add, 1, NULL, &n, NULL, 0, NULL, NULL);
    }
    if (!r)
        r = clEnqueueReadBuffer(queue, m, CL_FALSE, 0, sizeof out, out, 0, NULL, NULL);
    if (!r)
        r = clFinish(queue);
    for (int i = 0; !r && i < N; i++)
        if (out[i] != i * round + 6)
            r = -9999;
    clReleaseMemObject(m);
    return r;
}

static cl_int one_bulk(int round)
{
    static unsigned char *in, *out;
    cl_int r;
    if (!in && (!(in = malloc(BULK)) || !(out = malloc(BULK))))
        return CL_OUT_OF_HOST_MEMORY;
    for (uint32_t i = 0; i < BULK; i++)
        in[i] = (unsigned char)(i * 31u + i / 253u + (unsigned)round);
    memset(out, 0, BULK);
    cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, BULK, NULL, &r);
    if (r)
        return r;
    r = clEnqueueWriteBuffer(queue, m, CL_TRUE, 0, BULK, in, 0, NULL, NULL);
    if (!r)
        r = clEnqueueReadBuffer(queue, m, CL_TRUE, 0, BULK, out, 0, NULL, NULL);
    if (!r && memcmp(in, out, BULK) != 0)
        r = -9999;
    clReleaseMemObject(m);
    return r;
}

static cl_mem made; /* for many_transfers; NULL: it makes its buffer itself */

static cl_int make(size_t mib)
{
    cl_int r;
    made = clCreateBuffer(context, CL_MEM_READ_WRITE, mib << 20, NULL, &r);
    return r;
}

static cl_int many_transfers(int n, size_t mib, bool writes, bool gated)
{
    const size_t bytes = mib << 20;
    unsigned char *in = malloc(bytes), *out = calloc(1, bytes);
    cl_int r = in && out ? 0 : CL_OUT_OF_HOST_MEMORY, end;
    cl_mem m = r || made ? made : clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &r);
    made = NULL;
    cl_event user = r || !gated ? NULL : clCreateUserEvent(context, &r);
    for (size_t i = 0; in && i < bytes; i++)
        in[i] = (unsigned char)(i * 31u + i / 253u);
    if (!r && !writes)
        r = clEnqueueWriteBuffer(queue, m, CL_TRUE, 0, bytes, in, 0, NULL, NULL);
    for (int i = 0; !r && i < n; i++)
        r = writes ? clEnqueueWriteBuffer(queue, m, CL_FALSE, 0, bytes, in, gated,
                                          gated ? &user : NULL, NULL)
                   : clEnqueueReadBuffer(queue, m, CL_FALSE, 0, bytes, out, 0, NULL, NULL);
    end = user ? clSetUserEventStatus(user, CL_COMPLETE) : 0;
    if (!end)
        end = clFinish(queue);
    if (!end && writes)
        end = clEnqueueReadBuffer(queue, m, CL_TRUE, 0, bytes, out, 0, NULL, NULL);
    if (!end && in && out && memcmp(in, out, bytes) != 0)
        end = -9999;
    if (user)
        clReleaseEvent(user);
    if (m)
        clReleaseMemObject(m);
    free(in);
    free(out);
    return end ? end : r;
}

static cl_int many_buffers(int n, size_t mib)
{
    const size_t bytes = mib << 20, words = bytes / sizeof(int);
    cl_mem *all = calloc((size_t)n, sizeof *all);
    int *words_of = malloc(bytes);
    cl_int r = all && words_of ? 0 : CL_OUT_OF_HOST_MEMORY;
    for (int i = 0; !r && i < n; i++) {
        all[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &r);
        for (size_t k = 0; k < words; k++)
            words_of[k] = (int)k * (i + 1);
        if (!r)
            r = clEnqueueWriteBuffer(queue, all[i], CL_TRUE, 0, bytes, words_of, 0, NULL, NULL);
    }
    for (int i = 0; !r && i < n; i++) {
        memset(words_of, 0, bytes);
        r = clEnqueueReadBuffer(queue, all[i], CL_TRUE, 0, bytes, words_of, 0, NULL, NULL);
        for (size_t k = 0; !r && k < words; k++)
            if (words_of[k] != (int)k * (i + 1))
                r = -9999;
    }
    for (int i = 0; all && i < n; i++)
        if (all[i])
            clReleaseMemObject(all[i]);
    free(all);
    free(words_of);
    return r;
}

static sem_t reported;

static void CL_CALLBACK tell(cl_event event, cl_int status, void *arg)
{
    (void)arg;
    if (status == CL_COMPLETE)
        sem_post(&reported);
    clReleaseEvent(event);
}

/* Nothing is asked for while the callbacks are waited for: what tells of them must be heard by
 * itself. */
static cl_int with_callbacks(void)
{
    enum { BYTES = 1 << 20, CALLBACKS = 64 };
    static unsigned char out[BYTES];
    cl_event last, after;
    cl_int r, registered = 0;
    cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &r);
    cl_event first = r ? NULL : clCreateUserEvent(context, &r);
    if (!r)
        r = clEnqueueReadBuffer(queue, m, CL_FALSE, 0, BYTES, out, 1, &first, &last);
    while (!r && registered < CALLBACKS) {
        r = clEnqueueMarkerWithWaitList(queue, 0, NULL, &after);
        if (!r)
            r = clSetEventCallback(after, CL_COMPLETE, tell, NULL);
        registered += !r;
    }
    if (!r)
        r = clSetUserEventStatus(first, CL_COMPLETE);
    if (!r)
        r = clWaitForEvents(1, &last);
    while (!r && registered--)
        r = sem_wait(&reported);
    if (!r)
        r = clReleaseEvent(first);
    if (!r)
        r = clReleaseEvent(last);
    return r ? r : clReleaseMemObject(m);
}

static void *wait_for_gate(void *arg)
{
    (void)arg;
    waited = clWaitForEvents(1, &gate);
    return NULL;
}

static _Atomic pid_t sleeper;

static void *wait_for_user(void *arg)
{
    cl_event event = arg;
    atomic_store(&sleeper, gettid());
    return clWaitForEvents(1, &event) ? arg : NULL;
}

static bool sleeps(pid_t thread)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (f)
        fclose(f);
    return state == 'S';
}

static cl_int user_event(void)
{
    cl_int r;
    void *wrong = NULL;
    pthread_t thread;
    cl_event event = clCreateUserEvent(context, &r);
    atomic_store(&sleeper, 0);
    if (!r)
        r = pthread_create(&thread, NULL, wait_for_user, event);
    if (r)
        return r;
    while (!atomic_load(&sleeper) || !sleeps(atomic_load(&sleeper)))
        sched_yield();
    r = clSetUserEventStatus(event, CL_COMPLETE);
    pthread_join(thread, &wrong);
    clReleaseEvent(event);
    return r || !wrong ? r : -9999;
}

static cl_int query(void)
{
    cl_int r;
    cl_sampler s = clCreateSampler(context, CL_TRUE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &r);
    if (!r)
        clReleaseSampler(s);
    return r;
}

/* Nobody answers a marker, so that many of them are under way at once; none may take its list for
 * shorter than it is. */
static cl_int long_list(cl_uint n, cl_uint failing)
{
    cl_event markers[6] = {NULL}, *list = calloc(n, sizeof *list);
    cl_int r = list ? 0 : CL_OUT_OF_HOST_MEMORY;
    for (cl_uint i = 0; i < n && !r; i++)
        list[i] = clCreateUserEvent(context, &r);
    for (size_t i = 0; i < sizeof markers / sizeof markers[0] && !r; i++)
        r = clEnqueueMarkerWithWaitList(queue, n, list, &markers[i]);
    for (cl_uint i = 0; i < n && !r; i++)
        if (i != failing)
            r = clSetUserEventStatus(list[i], CL_COMPLETE);
    if (!r)
        r = clSetUserEventStatus(list[failing], -1);
    for (size_t i = 0; i < sizeof markers / sizeof markers[0] && !r; i++)
        r = clWaitForEvents(1, &markers[i]) == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST ? 0
                                                                                            : -9999;
    for (size_t i = 0; i < sizeof markers / sizeof markers[0]; i++)
        if (markers[i])
            clReleaseEvent(markers[i]);
    for (cl_uint i = 0; list && i < n; i++)
        if (list[i])
            clReleaseEvent(list[i]);
    free(list);
    return r;
}

static cl_int command(char *line)
{
    cl_int r = 0;
    int n = 1, mib = 1;
    char word[32] = "";
    sscanf(line, "%31s %d %d", word, &n, &mib);
    if (!strcmp(word, "rounds")) {
        for (int i = 0; i < n && !r; i++)
            r = one_round(i);
    } else if (!strcmp(word, "bulk")) {
        for (int i = 0; i < n && !r; i++)
            r = one_bulk(i);
    } else if (!strcmp(word, "made")) {
        r = make((size_t)n);
    } else if (!strcmp(word, "writes") || !strcmp(word, "reads") || !strcmp(word, "gated")) {
        r = many_transfers(n, (size_t)mib, strcmp(word, "reads") != 0, !strcmp(word, "gated"));
    } else if (!strcmp(word, "buffers")) {
        r = many_buffers(n, (size_t)mib);
    } else if (!strcmp(word, "list")) {
        r = long_list((cl_uint)n, 0);
        if (!r)
            r = long_list((cl_uint)n, (cl_uint)n - 1);
    } else if (!strcmp(word, "query")) {
        r = query();
    } else if (!strcmp(word, "callbacks")) {
        for (int i = 0; i < n && !r; i++)
            r = with_callbacks();
    } else if (!strcmp(word, "wait")) {
        cl_event user = clCreateUserEvent(context, &r);
        if (!r)
            r = clEnqueueMarkerWithWaitList(queue, 1, &user, &gate);
        if (!r)
            r = pthread_create(&waiter, NULL, wait_for_gate, NULL);
        if (!r)
            r = clSetUserEventStatus(user, CL_COMPLETE);
    } else if (!strcmp(word, "user")) {
        for (int i = 0; i < n && !r; i++)
            r = user_event();
    } else if (!strcmp(word, "join")) {
        pthread_join(waiter, NULL);
        r = waited;
    } else if (!strcmp(word, "print")) {
        const size_t one = 1;
        r = clSetKernelArg(shout, 0, sizeof n, &n);
        if (!r)
            r = clEnqueueNDRangeKernel(queue, shout, 1, NULL, &one, NULL, 0, NULL, NULL);
        if (!r)
            r = clFinish(queue);
    } else if (!strcmp(word, "fork")) {
        const pid_t child = fork();
        if (!child)
            _exit(0);
        r = child < 0 || waitpid(child, &r, 0) < 0 ? -9997 : r;
    } else {
        r = -9998;
    }
    return r;
}

static void at_exit(void)
{
    printf("%d\n", one_round(1));
    fflush(stdout);
}

int main(void)
{
    char line[64];
    const char *exits = getenv("WANDERER_EXIT");
    if (sem_init(&reported, 0, 0) || (exits && atexit(at_exit)))
        return 1;
    if (exits && !strcmp(exits, "openssl"))
        OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CRYPTO_STRINGS, NULL);
    printf("ready %d\n", set_up());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        cl_int r = command(line);
        printf("%d\n", r);
        fflush(stdout);
    }
    return 0;
}
