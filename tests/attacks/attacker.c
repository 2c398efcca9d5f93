/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that harm by way of the compiler: each says "building" and then builds something that
 * never ends, or takes all there is. They are watched, and killed.
 */
#include <CL/cl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "not so: %s\n", #condition);                                           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* A file that includes itself twice, two hundred deep; a comment makes each inclusion slow, not
 * large. */
static void write_bomb(const char *path)
{
    FILE *f = fopen(path, "w");
    NEED(f);
    fputs("#include \"bomb.h\"\n#include \"bomb.h\"\n/*", f);
    for (int i = 0; i < 1 << 20; i++)
        fputc('x', f);
    fputs("*/\n", f);
    NEED(fclose(f) == 0);
}

static char *macro_bomb(void)
{
    char *source = malloc(4096), *at = source;
    NEED(source);
    at += sprintf(at, "#define M0 ;\n");
    for (int i = 1; i < 24; i++)
        at += sprintf(at, "#define M%d M%d M%d M%d M%d\n", i, i - 1, i - 1, i - 1, i - 1);
    sprintf(at, "kernel void k(global int *x) { M23 }\n");
    return source;
}

static char *huge_source(void)
{
    static const char line[] = "kernel void k%07d(global int *x, int a) { x[a] += a * %d; }\n";
    const int n = 200000;
    char *source = malloc(n * sizeof line + 64 * (size_t)n), *at = source;
    NEED(source);
    for (int i = 0; i < n; i++)
        at += sprintf(at, line, i, i);
    return source;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/gn-bomb-XXXXXX", path[64], options[128] = "";
    cl_platform_id platform;
    cl_device_id device;
    cl_int rc;
    char *source = NULL;
    NEED(argc == 2);
    if (strcmp(argv[1], "include-bomb") == 0) {
        NEED(mkdtemp(folder));
        snprintf(path, sizeof path, "%s/bomb.h", folder);
        write_bomb(path);
        snprintf(options, sizeof options, "-I %s", folder);
        source = strdup("#include \"bomb.h\"\nkernel void k(global int *x) { x[0] = 1; }\n");
    } else if (strcmp(argv[1], "macro-bomb") == 0) {
        source = macro_bomb();
    } else if (strcmp(argv[1], "huge-source") == 0) {
        source = huge_source();
    }
    NEED(source);
    NEED(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    NEED(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &rc);
    NEED(rc == CL_SUCCESS);
    cl_program program = clCreateProgramWithSource(context, 1, (const char **)&source, NULL, &rc);
    NEED(rc == CL_SUCCESS);
    printf("building\n");
    fflush(stdout);
    if (options[0] && fork() == 0) {
        /* The folder goes when this program does. */
        pid_t parent = getppid();
        close(0), close(1), close(2);
        while (getppid() == parent)
            usleep(100000);
        unlink(path);
        rmdir(folder);
        _exit(0);
    }
    (void)clBuildProgram(program, 1, &device, options, NULL, NULL);
    return 0;
}
