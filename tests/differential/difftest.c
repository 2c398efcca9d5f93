/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the cases, each in a child of its own, and prints their transcripts:
 *   difftest [--platform N] [--timeout SECONDS] [--list] [--case NAME]... [FAMILY]...
 * A case that dies or hangs is a line of its transcript; the others run on. The parent makes no
 * OpenCL call.
 */
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct diff_family *const families[] = {
    &platform_family,   &extensions_family, &context_family,   &queue_family,     &buffer_family,
    &rect_family,       &subbuffer_family,  &map_family,       &image_family,     &imagedata_family,
    &sampler_family,    &program_family,    &build_family,     &kernel_family,    &enqueue_family,
    &event_family,      &graph_family,      &callback_family,  &profiling_family, &waitlist_family,
    &pending_family,    &svm_family,        &svmuse_family,    &pipe_family,      &subdevice_family,
    &deprecated_family, &printf_family,     &refcount_family,  &threads_family,   &process_family,
    &native_family,     &cmdbuf_family,     &cmdbufuse_family,
};
#define N_FAMILIES (sizeof(families) / sizeof(families[0]))

unsigned diff_platform_index;
static unsigned timeout_s = 60;
static char *shared_line;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static _Noreturn void run_child(const struct diff_case *test, int fd)
{
    record_start(fd, shared_line);
    test->run();
    case_end("end");
}

/* Copies what the child writes until it closes its end. False when the time is over. */
static bool copy_transcript(int fd)
{
    double deadline = now_s() + timeout_s;
    char bytes[65536];
    for (;;) {
        double left = deadline - now_s();
        if (left <= 0)
            return false;
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int ready = poll(&wait, 1, (int)(left * 1000) + 1);
        if (ready < 0 && errno != EINTR)
            return false;
        if (ready <= 0)
            continue;
        ssize_t n = read(fd, bytes, sizeof(bytes));
        if (n <= 0)
            return true;
        fwrite(bytes, 1, (size_t)n, stdout);
    }
}

static void run_case(const struct diff_family *family, const struct diff_case *test)
{
    int ends[2];
    printf("=== %s.%s\n", family->name, test->name);
    fflush(stdout);
    shared_line[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) < 0) {
        perror("difftest: pipe");
        exit(2);
    }
    pid_t child = fork();
    if (child < 0) {
        perror("difftest: fork");
        exit(2);
    }
    if (child == 0) {
        close(ends[0]);
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* whoever ends the parent ends the case */
        run_child(test, ends[1]);
    }
    close(ends[1]);
    bool in_time = copy_transcript(ends[0]);
    close(ends[0]);
    if (!in_time)
        kill(-child, SIGKILL), kill(child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (!in_time)
        printf("%s HANG\n", shared_line);
    else if (WIFSIGNALED(status))
        printf("%s CRASH %s\n", shared_line, strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status))
        printf("%s EXIT %d\n", shared_line, WEXITSTATUS(status));
    fflush(stdout);
}

static bool wanted(const char *family, const char *name, char **names, int n_names,
                   char *const *cases, int n_cases)
{
    char full[128];
    if (!n_names && !n_cases)
        return true;
    for (int i = 0; i < n_names; i++)
        if (!strcmp(names[i], family))
            return true;
    snprintf(full, sizeof(full), "%s.%s", family, name);
    for (int i = 0; i < n_cases; i++)
        if (!strcmp(cases[i], full) || !strcmp(cases[i], name))
            return true;
    return false;
}

static int usage(void)
{
    fputs("usage: difftest [--platform N] [--timeout SECONDS] [--list] [--case NAME]... "
          "[FAMILY]...\n",
          stderr);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"platform", required_argument, NULL, 'p'},
        {"timeout", required_argument, NULL, 't'},
        {"list", no_argument, NULL, 'l'},
        {"case", required_argument, NULL, 'c'},
        {NULL, 0, NULL, 0},
    };
    char *cases[256];
    int n_cases = 0, option;
    bool list = false;
    const char *index = getenv("DIFFTEST_PLATFORM");
    if (index)
        diff_platform_index = (unsigned)atoi(index);
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'p')
            diff_platform_index = (unsigned)atoi(optarg);
        else if (option == 't')
            timeout_s = (unsigned)atoi(optarg);
        else if (option == 'l')
            list = true;
        else if (option == 'c' && n_cases < 256)
            cases[n_cases++] = optarg;
        else
            return usage();
    }
    shared_line =
        mmap(NULL, RECORD_LINE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared_line == MAP_FAILED) {
        perror("difftest: mmap");
        return 2;
    }
    unsigned n_run = 0;
    for (size_t f = 0; f < N_FAMILIES; f++) {
        for (size_t c = 0; c < families[f]->n_cases; c++) {
            const struct diff_case *test = &families[f]->cases[c];
            if (!wanted(families[f]->name, test->name, argv + optind, argc - optind, cases,
                        n_cases))
                continue;
            n_run++;
            if (list)
                printf("%s.%s\n", families[f]->name, test->name);
            else
                run_case(families[f], test);
        }
    }
    if (!n_run) {
        fputs("difftest: no such case\n", stderr);
        return 2;
    }
    return 0;
}
