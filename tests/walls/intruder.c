/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose kernels make system calls inside its worker. It reads lines and answers each with
 * one.
 *
 * `call NUMBER ARG...`: one system call. An ARG is a number, or "TEXT for a string without blanks,
 * or @N for N bytes of room, of which is shown what was written there: `result R TEXT`.
 *
 * `forks N`: up to N processes that stay: `made COUNT ERROR`.
 *
 * `fill N`: up to N blocks of 64 MiB of memory: `made COUNT ERROR`.
 *
 * `source TEXT`, with \\n for a new line, then `build OPTIONS`: `built STATUS LOG`, with _ for
 * blanks.
 *
 * `buffer N`: holds a buffer of N bytes, none for 0: `buffer STATUS`.
 *
 * `work N`: N rounds whose results are checked: `right N`.
 *
 * `lost` instead, when the worker is gone. Only where a kernel is native code for a processor that
 * is known here.
 */
#include <CL/cl.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 4096

static const char proxy_source[] =
    "static long sys(long n, long a, long b, long c, long d, long e, long f) {\n"
    "#if defined(__x86_64__)\n"
    "    long r;\n"
    "    __asm__ volatile(\"movq %5, %%r10\\n movq %6, %%r8\\n movq %7, %%r9\\n syscall\" : "
    "\"=a\"(r)"
    " : \"a\"(n), \"D\"(a), \"S\"(b), \"d\"(c), \"m\"(d), \"m\"(e), \"m\"(f)"
    " : \"r8\", \"r9\", \"r10\", \"rcx\", \"r11\", \"memory\");\n"
    "    return r;\n"
    "#else\n"
    "#error no system calls here\n"
    "#endif\n"
    "}\n"
    "__kernel void proxy(__global long *io, __global char *room) {\n"
    "    long a[6];\n"
    "    for (int i = 0; i < 6; i++)\n"
    "        a[i] = io[1 + i] + (io[8 + i] ? (long)room : 0);\n"
    "    io[7] = sys(io[0], a[0], a[1], a[2], a[3], a[4], a[5]);\n"
    "}\n"
    /* fork is 57, pause 34, mmap 9 */
    "__kernel void forks(__global long *io) {\n"
    "    long n, r = 0;\n"
    "    for (n = 0; n < io[0]; n++) {\n"
    "        r = sys(57, 0, 0, 0, 0, 0, 0);\n"
    "        while (r == 0) sys(34, 0, 0, 0, 0, 0, 0);\n"
    "        if (r < 0) break;\n"
    "    }\n"
    "    io[1] = n; io[2] = r < 0 ? -r : 0;\n"
    "}\n"
    "__kernel void fill(__global long *io) {\n"
    "    long n, r = 0;\n"
    "    for (n = 0; n < io[0]; n++) {\n"
    "        r = sys(9, 0, 64l << 20, 3, 0x22, -1, 0);\n"
    "        if (r < 0 && r > -4096) break;\n"
    "        *(volatile char *)r = 1;\n"
    "    }\n"
    "    io[1] = n; io[2] = r < 0 && r > -4096 ? -r : 0;\n"
    "}\n"
    "__kernel void work(__global long *io) {\n"
    "    size_t i = get_global_id(0);\n"
    "    long x = io[i];\n"
    "    for (int k = 0; k < 1000; k++) x = x * 6364136223846793005l + 1442695040888963407l;\n"
    "    io[i] = x;\n"
    "}\n";

static cl_context context;
static cl_device_id device;
static cl_command_queue queue;
static cl_program program;
static cl_mem io, room;
static char source[65536];

static cl_program build(const char *text, const char *options, cl_int *status)
{
    cl_program p = clCreateProgramWithSource(context, 1, &text, NULL, status);
    if (!*status)
        *status = clBuildProgram(p, 1, &device, options, NULL, NULL);
    return p;
}

/* 0, or an OpenCL error. */
static cl_int run(const char *name, cl_long *words, size_t n, size_t global)
{
    cl_int status;
    cl_kernel k = clCreateKernel(program, name, &status);
    if (!status)
        status = clSetKernelArg(k, 0, sizeof io, &io);
    if (!status && strcmp(name, "proxy") == 0)
        status = clSetKernelArg(k, 1, sizeof room, &room);
    if (!status)
        status =
            clEnqueueWriteBuffer(queue, io, CL_TRUE, 0, n * sizeof *words, words, 0, NULL, NULL);
    if (!status)
        status = clEnqueueNDRangeKernel(queue, k, 1, NULL, &global, NULL, 0, NULL, NULL);
    if (!status)
        status =
            clEnqueueReadBuffer(queue, io, CL_TRUE, 0, n * sizeof *words, words, 0, NULL, NULL);
    if (k)
        clReleaseKernel(k);
    return status;
}

static void show(const char *text, size_t n)
{
    for (size_t i = 0; i < n && text[i]; i++)
        putchar(isgraph((unsigned char)text[i]) ? text[i] : '_');
}

static void do_call(char *rest)
{
    cl_long words[16] = {0};
    char texts[ROOM] = "", *word = strtok(rest, " ");
    size_t used = 0, shown_at = 0, shown = 0;
    for (int i = -1; word && i < 6; i++, word = strtok(NULL, " ")) {
        if (i < 0) {
            words[0] = strtoll(word, NULL, 0);
        } else if (word[0] == '"') {
            words[1 + i] = (cl_long)used;
            words[8 + i] = 1;
            used += (size_t)snprintf(texts + used, sizeof texts - used, "%s", word + 1) + 1;
        } else if (word[0] == '@') {
            words[1 + i] = (cl_long)(shown_at = used);
            words[8 + i] = 1;
            used += shown = strtoul(word + 1, NULL, 0);
        } else {
            words[1 + i] = strtoll(word, NULL, 0);
        }
    }
    cl_int status =
        clEnqueueWriteBuffer(queue, room, CL_TRUE, 0, sizeof texts, texts, 0, NULL, NULL);
    if (!status)
        status = run("proxy", words, 16, 1);
    if (!status)
        status = clEnqueueReadBuffer(queue, room, CL_TRUE, 0, sizeof texts, texts, 0, NULL, NULL);
    if (status) {
        printf("lost %d\n", status);
        return;
    }
    printf("result %lld ", (long long)words[7]);
    show(texts + shown_at, shown);
    printf("\n");
}

static void do_many(const char *name, const char *rest)
{
    cl_long words[3] = {strtoll(rest, NULL, 0)};
    cl_int status = run(name, words, 3, 1);
    if (status)
        printf("lost %d\n", status);
    else
        printf("made %lld %lld\n", (long long)words[1], (long long)words[2]);
}

static void do_build(const char *options)
{
    static char log[65536];
    cl_int status;
    cl_program p = build(source, options, &status);
    size_t n = 0;
    clGetProgramBuildInfo(p, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, &n);
    printf("built %d ", status);
    show(log, n);
    printf("\n");
    clReleaseProgram(p);
}

static void do_source(const char *text)
{
    size_t n = 0;
    for (; *text && n < sizeof source - 2; text++)
        source[n++] = text[0] == '\\' && text[1] == 'n' ? (text++, '\n') : *text;
    source[n++] = '\n';
    source[n] = 0;
    printf("source %zu\n", n);
}

/* Holds a buffer of so many bytes; 0: lets it go. */
static void do_buffer(size_t bytes)
{
    static cl_mem held;
    cl_int status = CL_SUCCESS;
    if (held)
        status = clReleaseMemObject(held);
    held = NULL;
    if (bytes)
        held = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &status);
    if (held) /* some drivers allocate at the first use */
        status = clEnqueueWriteBuffer(queue, held, CL_TRUE, bytes - 1, 1, "", 0, NULL, NULL);
    printf("buffer %d\n", status);
}

static void do_work(long rounds)
{
    enum { N = 256 };
    static cl_long words[N];
    for (long r = 0; r < rounds; r++) {
        for (int i = 0; i < N; i++)
            words[i] = r * N + i;
        cl_int status = run("work", words, N, N);
        if (status) {
            printf("lost %d\n", status);
            return;
        }
        for (int i = 0; i < N; i++) {
            cl_ulong x = (cl_ulong)(r * N + i);
            for (int k = 0; k < 1000; k++)
                x = x * 6364136223846793005u + 1442695040888963407u;
            if ((cl_ulong)words[i] != x) {
                printf("wrong %ld %d\n", r, i);
                return;
            }
        }
    }
    printf("right %ld\n", rounds);
}

int main(void)
{
    static char line[65536];
    cl_platform_id platform;
    cl_int status = clGetPlatformIDs(1, &platform, NULL);
    if (!status)
        status = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    if (!status)
        context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    if (!status)
        queue = clCreateCommandQueue(context, device, 0, &status);
    if (!status)
        io = clCreateBuffer(context, CL_MEM_READ_WRITE, 65536, NULL, &status);
    if (!status)
        room = clCreateBuffer(context, CL_MEM_READ_WRITE, ROOM, NULL, &status);
    if (!status)
        program = build(proxy_source, "", &status);
    if (status && program) {
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof line - 1, line, NULL);
        fprintf(stderr, "%s\n", line);
    }
    printf("ready %d\n", status);
    fflush(stdout);
    while (!status && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        char *rest = line + strcspn(line, " ");
        if (*rest)
            *rest++ = 0;
        if (strcmp(line, "call") == 0)
            do_call(rest);
        else if (strcmp(line, "forks") == 0 || strcmp(line, "fill") == 0)
            do_many(line, rest);
        else if (strcmp(line, "source") == 0)
            do_source(rest);
        else if (strcmp(line, "build") == 0)
            do_build(rest);
        else if (strcmp(line, "buffer") == 0)
            do_buffer(strtoul(rest, NULL, 0));
        else if (strcmp(line, "work") == 0)
            do_work(strtol(rest, NULL, 0));
        else
            printf("what\n");
        fflush(stdout);
    }
    /* As a program that minds nothing: a worker that is gone must not keep it from its end. */
    return status ? 1 : 0;
}
