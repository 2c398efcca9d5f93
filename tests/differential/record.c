/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the transcript. A line is built in memory that the parent process shares, so that the call
 * under way is known when the child dies or hangs, and goes to the transcript's descriptor when the
 * call has returned.
 */
#include "record.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#define MAX_HANDLES 4096
#define MAX_REGIONS 64
#define MAX_ARGS    16

static int platform_version = 30;

static char *line; /* shared with the parent */
static size_t line_used;
static int transcript_fd = -1;

static struct {
    const void *address;
    enum arg_kind kind;
    unsigned number;
} handles[MAX_HANDLES];
static size_t n_handles;
static unsigned next_number[ARG_SIZE_OUT + 1];

static struct {
    const char *name;
    uintptr_t start;
    size_t size;
} regions[MAX_REGIONS];
static size_t n_regions;

/* The call under way, for what is written after it returned. */
static struct arg call_args[MAX_ARGS];
static char call_texts[MAX_ARGS][128];
static size_t n_call_args;
static bool call_is_enqueue, call_is_query;

static const char *const kind_names[] = {
    [ARG_PLATFORM] = "platform", [ARG_DEVICE] = "device", [ARG_CONTEXT] = "context",
    [ARG_QUEUE] = "queue",       [ARG_MEM] = "mem",       [ARG_SAMPLER] = "sampler",
    [ARG_PROGRAM] = "program",   [ARG_KERNEL] = "kernel", [ARG_EVENT] = "event",
    [ARG_CMDBUF] = "cmdbuf",
};

void record_start(int fd, char *shared_line)
{
    transcript_fd = fd;
    line = shared_line;
    line[0] = '\0';
    line_used = 0;
}

static void put(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void put(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(line + line_used, RECORD_LINE_BYTES - line_used, format, list);
    va_end(list);
    if (n > 0)
        line_used += (size_t)n;
    if (line_used >= RECORD_LINE_BYTES)
        line_used = RECORD_LINE_BYTES - 1;
}

static void end_line(void)
{
    put("\n");
    line[line_used - 1] = '\n';
    for (size_t done = 0; done < line_used;) {
        ssize_t n = write(transcript_fd, line + done, line_used - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            _exit(3);
        done += (size_t)n;
    }
    line_used = 0;
    line[0] = '\0';
    /* DIFFTEST_PAUSE_US: time for something to be done to the program between its calls. */
    const char *pause_us = getenv("DIFFTEST_PAUSE_US");
    if (pause_us)
        usleep((useconds_t)atoi(pause_us));
}

void name_handle(enum arg_kind kind, const void *handle)
{
    size_t i = 0;
    while (i < n_handles && handles[i].address != handle)
        i++;
    if (i == MAX_HANDLES)
        abort();
    if (i == n_handles)
        n_handles++;
    handles[i].address = handle;
    handles[i].kind = kind;
    handles[i].number = ++next_number[kind];
}

bool handle_known(const void *handle)
{
    for (size_t i = 0; i < n_handles; i++)
        if (handles[i].address == handle)
            return true;
    return false;
}

void name_handle_once(enum arg_kind kind, const void *handle)
{
    if (!handle_known(handle))
        name_handle(kind, handle);
}

const char *handle_name(const void *handle)
{
    static char names[8][32];
    static unsigned next;
    if (!handle)
        return "NULL";
    for (size_t i = 0; i < n_handles; i++) {
        if (handles[i].address != handle)
            continue;
        char *name = names[next++ % 8];
        snprintf(name, sizeof(names[0]), "%s#%u", kind_names[handles[i].kind], handles[i].number);
        return name;
    }
    return "UNKNOWN";
}

void name_region(const char *name, const void *start, size_t size)
{
    if (n_regions == MAX_REGIONS)
        abort();
    regions[n_regions].name = name;
    regions[n_regions].start = (uintptr_t)start;
    regions[n_regions].size = size;
    n_regions++;
}

void forget_region(const void *start)
{
    for (size_t i = 0; i < n_regions; i++)
        if (regions[i].start == (uintptr_t)start)
            regions[i].size = 0;
}

const char *pointer_name(const void *ptr)
{
    static char names[8][64];
    static unsigned next;
    if (!ptr)
        return "NULL";
    char *name = names[next++ % 8];
    for (size_t i = n_regions; i-- > 0;) {
        size_t offset = (uintptr_t)ptr - regions[i].start;
        if ((uintptr_t)ptr < regions[i].start || offset >= regions[i].size)
            continue;
        snprintf(name, sizeof(names[0]), "%s+%zu", regions[i].name, offset);
        return name;
    }
    return "pointer";
}

/* Splits the macro's argument text at its top-level commas. */
static void split_texts(const char *text)
{
    size_t arg = 0, used = 0;
    int depth = 0;
    char quote = 0;
    for (const char *c = text;; c++) {
        if (!*c || (*c == ',' && depth == 0 && !quote)) {
            call_texts[arg][used] = '\0';
            if (!*c || ++arg == MAX_ARGS)
                return;
            used = 0;
            while (c[1] == ' ')
                c++;
            continue;
        }
        if (quote) {
            if (*c == '\\' && c[1]) {
                if (used < sizeof(call_texts[0]) - 1)
                    call_texts[arg][used++] = *c;
                c++;
            } else if (*c == quote)
                quote = 0;
        } else if (*c == '"' || *c == '\'')
            quote = *c;
        else if (*c == '(' || *c == '{' || *c == '[')
            depth++;
        else if (*c == ')' || *c == '}' || *c == ']')
            depth--;
        if (used < sizeof(call_texts[0]) - 1)
            call_texts[arg][used++] = *c;
    }
}

static bool is_constant_text(const char *text)
{
    return isdigit((unsigned char)text[0]) || text[0] == '-' || text[0] == '(' ||
           !strncmp(text, "CL_", 3);
}

static void put_events(size_t i)
{
    const cl_event *list = (const cl_event *)call_args[i].value;
    size_t n = i > 0 ? call_args[i - 1].value : 0;
    put("[");
    for (size_t e = 0; e < n && e < 64; e++)
        put("%s%s", e ? " " : "", handle_name(list[e]));
    put("]");
}

static void put_arg(size_t i)
{
    const struct arg *arg = &call_args[i];
    const char *text = call_texts[i];
    switch (arg->kind) {
    case ARG_INT:
    case ARG_UINT:
        if (is_constant_text(text))
            put("%s", text);
        else
            put("%s=%lld", text, (long long)arg->value);
        return;
    case ARG_PTR:
    case ARG_UINT_OUT:
    case ARG_SIZE_OUT:
        put("%s", arg->value ? text : "NULL");
        return;
    case ARG_EVENTS:
        if (!arg->value)
            put("NULL");
        else if (call_is_enqueue && i + 1 == n_call_args)
            put("&event");
        else
            put_events(i);
        return;
    default:
        put("%s", handle_name((const void *)arg->value));
    }
}

/* Drivers older than a call may have a shorter dispatch table, so that calling it is undefined: no
 * sane program does. */
static int version_of(const char *fn)
{
    static const struct {
        int version;
        const char *names;
    } newer[] = {
        {20, " clCreateCommandQueueWithProperties clCreatePipe clGetPipeInfo clSVMAlloc clSVMFree "
             "clEnqueueSVMFree"
             " clEnqueueSVMMemcpy clEnqueueSVMMemFill clEnqueueSVMMap clEnqueueSVMUnmap "
             "clCreateSamplerWithProperties"
             " clSetKernelArgSVMPointer clSetKernelExecInfo "},
        {21, " clCloneKernel clCreateProgramWithIL clEnqueueSVMMigrateMem clGetDeviceAndHostTimer "
             "clGetHostTimer"
             " clGetKernelSubGroupInfo clSetDefaultDeviceCommandQueue "},
        {22, " clSetProgramReleaseCallback clSetProgramSpecializationConstant "},
        {30, " clCreateBufferWithProperties clCreateImageWithProperties "
             "clSetContextDestructorCallback "},
    };
    char padded[80];
    snprintf(padded, sizeof(padded), " %s ", fn);
    for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++)
        if (strstr(newer[i].names, padded))
            return newer[i].version;
    return 10;
}

bool rec_begin(const char *fn, const char *text, const struct arg *args, size_t n_args)
{
    if (n_args > MAX_ARGS)
        abort();
    if (version_of(fn) > platform_version) {
        note("%s: not in OpenCL %d.%d", fn, platform_version / 10, platform_version % 10);
        return false;
    }
    memcpy(call_args, args, n_args * sizeof(*args));
    n_call_args = n_args;
    call_is_enqueue = !strncmp(fn, "clEnqueue", 9) && strcmp(fn, "clEnqueueWaitForEvents");
    call_is_query = !strncmp(fn, "clGet", 5);
    split_texts(text);
    put("%s(", fn);
    for (size_t i = 0; i < n_args; i++) {
        if (i)
            put(", ");
        put_arg(i);
    }
    put(")");
    return true;
}

/* What the call wrote through its pointers. On an error nothing may be relied on, so nothing is
 * shown. */
static void put_outputs(void)
{
    for (size_t i = 0; i < n_call_args; i++) {
        const struct arg *arg = &call_args[i];
        if (!arg->value)
            continue;
        if (arg->kind == ARG_EVENTS && call_is_enqueue && i + 1 == n_call_args) {
            cl_event made = *(cl_event *)arg->value;
            if (made)
                name_handle(ARG_EVENT, made);
            put(" event=%s", handle_name(made));
        } else if (arg->kind == ARG_UINT_OUT && call_texts[i][0] == '&') {
            put(" %s=%u", call_texts[i] + 1, *(cl_uint *)arg->value);
        } else if (arg->kind == ARG_SIZE_OUT && call_is_query && call_texts[i][0] == '&') {
            put(" %s=%zu", call_texts[i] + 1, *(size_t *)arg->value);
        }
    }
}

void rec_end_int(cl_int code)
{
    put(" -> %s", error_name(code));
    if (code == CL_SUCCESS)
        put_outputs();
    end_line();
}

void rec_end_code(cl_int code)
{
    put(" -> %s", error_name(code));
    end_line();
}

void rec_end_made(enum arg_kind kind, uintptr_t handle, cl_int code)
{
    if (kind != ARG_PTR && handle)
        name_handle(kind, (const void *)handle);
    if (code == CL_SUCCESS)
        put(" -> %s", kind == ARG_PTR ? pointer_name((const void *)handle)
                                      : handle_name((const void *)handle));
    else
        put(" ->");
    put(" %s", code == ERRCODE_UNSET ? "(code not written)" : error_name(code));
    if (code == CL_SUCCESS)
        put_outputs();
    end_line();
}

void rec_end_ptr(const void *ptr)
{
    put(" -> %s", pointer_name(ptr));
    end_line();
}

void rec_end_void(void)
{
    put(" -> void");
    end_line();
}

void note(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(line + line_used, RECORD_LINE_BYTES - line_used, format, list);
    va_end(list);
    if (n > 0)
        line_used += (size_t)n;
    if (line_used >= RECORD_LINE_BYTES)
        line_used = RECORD_LINE_BYTES - 1;
    end_line();
}

void rec_set_version(int version)
{
    platform_version = version;
}

bool rec_in_version(const char *fn)
{
    return version_of(fn) <= platform_version;
}

void note_pending(const char *text)
{
    snprintf(line, RECORD_LINE_BYTES, "%s", text);
}

uint64_t hash_bytes(const void *bytes, size_t size)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * 1099511628211u;
    return hash;
}

void note_bytes(const char *what, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    put("  %s: %zu bytes", what, size);
    if (size > 64)
        put(" hash %016llx", (unsigned long long)hash_bytes(bytes, size));
    for (size_t i = 0; i < size && i < (size > 64 ? 16 : 64); i++)
        put("%s%02x", i % 4 ? "" : " ", at[i]);
    end_line();
}

void note_string(const char *what, const char *text)
{
    put("  %s: \"", what);
    for (const char *c = text; *c; c++) {
        if (*c == '\n')
            put("\\n");
        else if ((unsigned char)*c < ' ' || *c == '"' || *c == '\\')
            put("\\x%02x", (unsigned char)*c);
        else
            put("%c", *c);
    }
    put("\"");
    end_line();
}
