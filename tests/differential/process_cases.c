/* SPDX-License-Identifier: Apache-2.0 */
/* What depends on the process: large transfers, exits with everything still open, forked children,
 * deep backlogs. */
#include "difftest.h"

#include <sys/wait.h>
#include <unistd.h>

static void large_transfers(void)
{
    enum { BYTES = 48 << 20 };
    struct env env;
    unsigned char *host = malloc(BYTES), *back = calloc(1, BYTES);
    cl_event events[3] = {NULL, NULL, NULL};
    env_init(&env);
    fill_pattern(host, BYTES, 21);
    cl_mem a = env_buffer(&env, BYTES, NULL), b = env_buffer(&env, BYTES, NULL);
    CALL(clEnqueueWriteBuffer, env.queue, a, CL_FALSE, 0, BYTES, host, 0, NULL, &events[0]);
    CALL(clEnqueueCopyBuffer, env.queue, a, b, 0, 0, BYTES, 1, &events[0], &events[1]);
    CALL(clEnqueueReadBuffer, env.queue, b, CL_FALSE, 0, BYTES, back, 1, &events[1], &events[2]);
    CALL(clWaitForEvents, 3, events);
    note("the same: %s", memcmp(host, back, BYTES) ? "no" : "yes");
    unsigned char *ptr =
        MAKE(clEnqueueMapBuffer, env.queue, b, CL_TRUE, CL_MAP_READ, 5, BYTES - 5, 0, NULL, NULL);
    note("mapped the same: %s", memcmp(host + 5, ptr, BYTES - 5) ? "no" : "yes");
    CALL(clEnqueueUnmapMemObject, env.queue, b, ptr, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    for (int i = 0; i < 3; i++)
        CALL(clReleaseEvent, events[i]);
    CALL(clReleaseMemObject, a);
    CALL(clReleaseMemObject, b);
    env_fini(&env);
}

/* Long lists and texts: messages of every size. */
static void long_messages(void)
{
    enum { EVENTS = 2000, TEXT = 300000 };
    static cl_event events[EVENTS];
    struct env env;
    cl_event last = NULL;
    int bad = 0;
    env_init(&env);
    cl_mem mem = env_buffer(&env, 64, NULL);
    for (int i = 0; i < EVENTS; i++)
        bad += clEnqueueFillBuffer(env.queue, mem, &i, 4, 0, 64, 0, NULL, &events[i]) != CL_SUCCESS;
    bad += clEnqueueMarkerWithWaitList(env.queue, EVENTS, events, &last) != CL_SUCCESS;
    bad += clWaitForEvents(1, &last) != CL_SUCCESS;
    for (int i = 0; i < EVENTS; i++)
        bad += clReleaseEvent(events[i]) != CL_SUCCESS;
    bad += clReleaseEvent(last) != CL_SUCCESS;
    note("2000 waits, wrong: %d", bad);
    char *text = malloc(TEXT);
    memset(text, ' ', TEXT);
    strcpy(text + TEXT - 80, "\nkernel void k(global int *a) { a[get_global_id(0)] = 1; }\n");
    const char *source = text;
    cl_program program = MAKE(clCreateProgramWithSource, env.context, 1, &source, NULL);
    size_t size = 0;
    CALL(clGetProgramInfo, program, CL_PROGRAM_SOURCE, 0, NULL, &size);
    char *kept = calloc(1, size + 1);
    CALL(clGetProgramInfo, program, CL_PROGRAM_SOURCE, size, kept, NULL);
    note("source kept: %s", strcmp(text, kept) ? "no" : "yes");
    CALL(clReleaseProgram, program);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

/* Arguments as large as the device takes. */
static void large_arguments(void)
{
    static const char *const source =
        "typedef struct { int v[200]; } big_t;\n"
        "kernel void k(global int *out, big_t b) { size_t i = get_global_id(0); out[i] = b.v[i] + "
        "1; }\n";
    struct env env;
    int big[200];
    size_t global = 200, limit = 0;
    env_init(&env);
    clGetDeviceInfo(env.device, CL_DEVICE_MAX_PARAMETER_SIZE, sizeof(limit), &limit, NULL);
    if (limit < sizeof(big) + 8)
        case_end("arguments are limited to less");
    for (int i = 0; i < 200; i++)
        big[i] = i * i;
    cl_program program =
        MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&source, NULL);
    CALL(clBuildProgram, program, 0, NULL, NULL, NULL, NULL);
    cl_kernel kernel = MAKE(clCreateKernel, program, "k");
    cl_mem mem = env_buffer(&env, sizeof(big), big);
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, kernel, 1, sizeof(big), big);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    memset(big, 0, sizeof(big)); /* it was copied at the call */
    CALL(clFinish, env.queue);
    env_dump_buffer(&env, "out", mem, sizeof(big));
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseProgram, program);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

/* A child that forked before any call is a program of its own, while its parent works. */
static void fork_first(void)
{
    int ends[2];
    if (pipe(ends))
        case_end("no pipe");
    pid_t child = fork();
    if (child < 0)
        case_end("no fork");
    struct env env;
    int words[64] = {0}, k = child ? 3 : 5;
    size_t global = 64;
    uint64_t hash = 0;
    cl_int code;
    env_init(&env);
    cl_mem mem = env_buffer(&env, sizeof(words), words);
    cl_kernel kernel = env_kernel(&env, "add");
    clSetKernelArg(kernel, 0, sizeof(mem), &mem);
    clSetKernelArg(kernel, 1, sizeof(k), &k);
    for (int i = 0; i < 10; i++)
        clEnqueueNDRangeKernel(env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    code = clEnqueueReadBuffer(env.queue, mem, CL_TRUE, 0, sizeof(words), words, 0, NULL, NULL);
    hash = hash_bytes(words, sizeof(words));
    if (!child) { /* the child has no part in the transcript */
        uint64_t answer[2] = {hash, (uint64_t)(int64_t)code};
        _exit(write(ends[1], answer, sizeof(answer)) == sizeof(answer) ? 0 : 1);
    }
    uint64_t answer[2] = {0, 0};
    close(ends[1]);
    ssize_t n = read(ends[0], answer, sizeof(answer));
    int status = -1;
    waitpid(child, &status, 0);
    note("parent: %s %016llx", error_name(code), (unsigned long long)hash);
    note("child: ended with %d, told %zd bytes, %s %016llx",
         WIFEXITED(status) ? WEXITSTATUS(status) : -1, n, error_name((cl_int)(int64_t)answer[1]),
         (unsigned long long)answer[0]);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

/* An unsignalled user event holds work back while the program leaves: it ends all the same. */
static void leave_with_work(void)
{
    struct env env;
    int zero = 0;
    env_init(&env);
    cl_mem mem = env_buffer(&env, 1 << 20, NULL);
    cl_event user = MAKE(clCreateUserEvent, env.context);
    for (int i = 0; i < 20; i++)
        CALL(clEnqueueFillBuffer, env.queue, mem, &zero, 4, 0, 1 << 20, 1, &user, NULL);
    CALL(clFlush, env.queue);
    note("left");
}

static const struct diff_case process_cases[] = {
    {"large_transfers", large_transfers}, {"long_messages", long_messages},
    {"large_arguments", large_arguments}, {"fork_first", fork_first},
    {"leave_with_work", leave_with_work},
};
DIFF_FAMILY(process);
