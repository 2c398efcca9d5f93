/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel prints comes out of the program's own stdout, all of it before its event is seen
 * complete. */
#include "difftest.h"

#include <unistd.h>

static int saved_stdout;
static FILE *capture;

void start_capture(void)
{
    capture = tmpfile();
    fflush(stdout);
    saved_stdout = dup(1);
    if (!capture || saved_stdout < 0 || dup2(fileno(capture), 1) < 0)
        case_end("cannot redirect stdout");
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void note_captured(const char *what)
{
    static char text[65536], *lines[512];
    size_t n = 0;
    fflush(stdout);
    rewind(capture);
    size_t size = fread(text, 1, sizeof(text) - 1, capture);
    text[size] = '\0';
    note("%s printed %zu bytes", what, size);
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line && n < 512;
         line = strtok_r(NULL, "\n", &save))
        lines[n++] = line;
    qsort(lines, n, sizeof(lines[0]), compare_lines);
    for (size_t i = 0; i < n; i++)
        note_string("line", lines[i]);
    rewind(capture);
    if (ftruncate(fileno(capture), 0) < 0)
        case_end("cannot empty the capture");
}

static void prints(void)
{
    struct env env;
    int k = 42;
    size_t global = 8, one = 1;
    cl_event event = NULL;
    env_init(&env);
    cl_kernel kernel = env_kernel(&env, "hello");
    start_capture();
    CALL(clSetKernelArg, kernel, 0, sizeof(k), &k);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    note_captured("one item");
    k = 7;
    CALL(clSetKernelArg, kernel, 0, sizeof(k), &k);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, &event);
    CALL(clWaitForEvents, 1, &event);
    note_captured("eight items, event waited for");
    CALL(clReleaseEvent, event);
    for (k = 0; k < 20; k++) {
        clSetKernelArg(kernel, 0, sizeof(k), &k);
        clEnqueueNDRangeKernel(env.queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
    }
    CALL(clFinish, env.queue);
    note_captured("twenty launches");
    CALL(clReleaseKernel, kernel);
    env_fini(&env);
}

static const struct diff_case printf_cases[] = {
    {"prints", prints},
};
DIFF_FAMILY(printf);
