/* SPDX-License-Identifier: Apache-2.0 */
/* Building: options, headers from files and from programs, errors and their logs, compile and link,
 * callbacks. */
#include "difftest.h"

#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file))
        case_end("cannot write a header");
}

/* Runs the kernel "k" of a built program on eight zeros. */
static void run_k(struct env *env, cl_program program)
{
    int words[8] = {0};
    size_t global = 8;
    cl_mem mem = env_buffer(env, sizeof(words), words);
    cl_kernel kernel = MAKE(clCreateKernel, program, "k");
    if (kernel) {
        CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
        CALL(clEnqueueNDRangeKernel, env->queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
        env_dump_buffer(env, "ran", mem, sizeof(words));
        CALL(clReleaseKernel, kernel);
    }
    CALL(clReleaseMemObject, mem);
}

/* A log says what the compiler said, in words that name its scratch files: what is compared is that
 * an error of this kind, at this line, about this name, is in it. */
static void note_log(cl_program program, cl_device_id device, const char *const *words,
                     size_t n_words)
{
    size_t size = 0;
    cl_int code = clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    char *log = calloc(1, size + 1);
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log, NULL);
    note("clGetProgramBuildInfo(CL_PROGRAM_BUILD_LOG) -> %s, empty: %s, terminated: %s",
         error_name(code), size > 1 ? "no" : "yes", size && !log[size - 1] ? "yes" : "no");
    for (size_t i = 0; i < n_words; i++)
        note("  log has \"%s\": %s", words[i], strstr(log, words[i]) ? "yes" : "no");
    free(log);
}

static void options(void)
{
    static const char *const source =
        "#ifndef VALUE\n#define VALUE 1\n#endif\n"
        "#ifdef EXTRA\n#define MORE (EXTRA)\n#else\n#define MORE 0\n#endif\n"
        "kernel void k(global int *a) { a[get_global_id(0)] = VALUE + MORE; }\n";
    static const char *const lists[] = {
        "",
        "-DVALUE=5",
        "-D VALUE=6 -DEXTRA=100",
        "  -D  VALUE=7   -cl-mad-enable ",
        "-cl-std=CL1.2 -w -cl-fast-relaxed-math -cl-finite-math-only -cl-no-signed-zeros",
        "-cl-opt-disable",
        "-Werror",
    };
    struct env env;
    env_init(&env);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        note_string("options", lists[i]);
        cl_program program =
            MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&source, NULL);
        CALL(clBuildProgram, program, 1, &env.device, lists[i], NULL, NULL);
        info_build_all(program, env.device);
        run_k(&env, program);
        CALL(clReleaseProgram, program);
    }
    env_fini(&env);
}

/* Not a lone "-D", on which PoCL 3.1 crashes. */
static void bad_options(void)
{
    static const char *const source = "kernel void k(global int *a) { a[get_global_id(0)] = 1; }\n";
    static const char *const lists[] = {"-no-such-option", "-cl-std=CL9.9", "--create-library",
                                        "nonsense"};
    struct env env;
    env_init(&env);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        note_string("options", lists[i]);
        cl_program program =
            MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&source, NULL);
        CALL(clBuildProgram, program, 1, &env.device, lists[i], NULL, NULL);
        cl_int status = ERRCODE_UNSET;
        CALL(clGetProgramBuildInfo, program, env.device, CL_PROGRAM_BUILD_STATUS, sizeof(status),
             &status, NULL);
        note("status %d", status);
        CALL(clReleaseProgram, program);
    }
    env_fini(&env);
}

static void errors(void)
{
    static const char *const good = "kernel void k(global int *a) { a[get_global_id(0)] = 1; }\n";
    struct env env;
    int user = 0;
    env_init(&env);
    cl_program program =
        MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&good, NULL);
    CALL(clBuildProgram, (cl_program)NULL, 1, &env.device, NULL, NULL, NULL);
    CALL(clBuildProgram, program, 1, NULL, NULL, NULL, NULL);
    CALL(clBuildProgram, program, 0, &env.device, NULL, NULL, NULL);
    /* No NULL in a list of devices: PoCL 3.1 crashes. */
    CALL(clBuildProgram, program, 1, &env.device, NULL, NULL, &user);
    CALL(clBuildProgram, program, 1, &env.device, NULL, NULL, NULL);
    cl_kernel kernel = MAKE(clCreateKernel, program, "k");
    CALL(clBuildProgram, program, 1, &env.device, NULL, NULL, NULL); /* with a kernel attached */
    CALL(clReleaseKernel, kernel);
    CALL(clBuildProgram, program, 1, &env.device, "-DA=1", NULL, NULL);
    run_k(&env, program);
    CALL(clReleaseProgram, program);
    env_fini(&env);
}

static void failing_source(void)
{
    static const char *const bad[] = {
        "kernel void k(global int *a) {\n  a[0] = undeclared_thing;\n}\n",
        "kernel void k(global int *a) {\n\n  a[0] = 1\n}\n",
        "#error stop_right_here\n",
        "#include \"no_such_header.h\"\nkernel void k(global int *a) { }\n",
        "kernel int k(global int *a) { return 1; }\n",
    };
    static const char *const words[] = {
        "error", "undeclared_thing", "stop_right_here", "no_such_header.h", ":2:", ":3:"};
    struct env env;
    env_init(&env);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cl_program program =
            MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&bad[i], NULL);
        CALL(clBuildProgram, program, 1, &env.device, "", NULL, NULL);
        cl_int status = ERRCODE_UNSET;
        CALL(clGetProgramBuildInfo, program, env.device, CL_PROGRAM_BUILD_STATUS, sizeof(status),
             &status, NULL);
        note("status %d", status);
        note_log(program, env.device, words, sizeof(words) / sizeof(words[0]));
        size_t n = 99;
        CALL(clGetProgramInfo, program, CL_PROGRAM_NUM_KERNELS, sizeof(n), &n, NULL);
        MAKE(clCreateKernel, program, "k");
        CALL(clReleaseProgram, program);
    }
    env_fini(&env);
}

static void warning_log(void)
{
    static const char *const source =
        "#warning mind_the_gap\nkernel void k(global int *a) { a[0] = 1; }\n";
    static const char *const words[] = {"warning", "mind_the_gap", "error"};
    struct env env;
    env_init(&env);
    cl_program program =
        MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&source, NULL);
    CALL(clBuildProgram, program, 1, &env.device, NULL, NULL, NULL);
    note_log(program, env.device, words, 3);
    CALL(clReleaseProgram, program);
    env_fini(&env);
}

/* Headers of the program: by -I absolute and relative, in the working directory, one including
 * another, by macro. */
static void include_files(void)
{
    static const struct {
        const char *source, *options;
    } builds[] = {
        {"#include \"value.h\"\nkernel void k(global int *a) { a[get_global_id(0)] = VALUE; }\n",
         "-I inc"},
        {"#include \"value.h\"\nkernel void k(global int *a) { a[get_global_id(0)] = VALUE; }\n",
         "-Iinc/"},
        {"#include \"value.h\"\nkernel void k(global int *a) { a[get_global_id(0)] = VALUE; }\n",
         "-I ABSOLUTE/inc"},
        {"#include <deep/deeper.h>\nkernel void k(global int *a) { a[get_global_id(0)] = DEEPER; "
         "}\n",
         "-I ./inc"},
        {"#include \"inc/value.h\"\nkernel void k(global int *a) { a[get_global_id(0)] = VALUE + "
         "1; }\n",
         "-I ."},
        {"#include \"here.h\"\nkernel void k(global int *a) { a[get_global_id(0)] = HERE; }\n", ""},
        {"#define NAME(x) #x\n#define FILE(x) NAME(x.h)\n#include FILE(value)\n"
         "kernel void k(global int *a) { a[get_global_id(0)] = VALUE + 2; }\n",
         "-I inc"},
        {"#include \"value.h\"\nkernel void k(global int *a) { a[get_global_id(0)] = VALUE; }\n",
         "-I other -I inc"},
        {"#include \"value.h\"\nkernel void k(global int *a) { a[get_global_id(0)] = VALUE; }\n",
         ""},
        {"#include \"missing.h\"\nkernel void k(global int *a) { a[get_global_id(0)] = VALUE; }\n",
         "-I inc"},
        {"#include \"sp.h\"\nkernel void k(global int *a) { a[get_global_id(0)] = SP; }\n",
         "-I \"with space\""},
    };
    struct env env;
    char path[] = "/tmp/difftest-XXXXXX", text[256];
    if (!mkdtemp(path) || chdir(path))
        case_end("no scratch directory");
    if (mkdir("inc", 0755) || mkdir("inc/deep", 0755) || mkdir("other", 0755) ||
        mkdir("with space", 0755))
        case_end("no scratch directory");
    write_file("inc/value.h", "#define VALUE 41\n");
    write_file("other/value.h", "#define VALUE 77\n");
    write_file("inc/deep/deeper.h", "#include \"../value.h\"\n#define DEEPER (VALUE + 100)\n");
    write_file("here.h", "#define HERE 12\n");
    write_file("with space/sp.h", "#define SP 13\n");
    env_init(&env);
    for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
        note_string("options", builds[i].options);
        const char *absolute = strstr(builds[i].options, "ABSOLUTE");
        if (absolute)
            snprintf(text, sizeof(text), "-I %s%s", path, absolute + 8);
        else
            snprintf(text, sizeof(text), "%s", builds[i].options);
        cl_program program =
            MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&builds[i].source, NULL);
        if (CALL(clBuildProgram, program, 1, &env.device, text, NULL, NULL) == CL_SUCCESS)
            run_k(&env, program);
        size_t size = 0;
        char kept[512] = "";
        clGetProgramBuildInfo(program, env.device, CL_PROGRAM_BUILD_OPTIONS, sizeof(kept), kept,
                              &size);
        note("options kept: %s", strcmp(kept, text) ? "no" : "yes");
        CALL(clReleaseProgram, program);
    }
    /* A header that changes is read anew. */
    cl_program program =
        MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&builds[0].source, NULL);
    write_file("inc/value.h", "#define VALUE 43\n");
    CALL(clBuildProgram, program, 1, &env.device, "-I inc", NULL, NULL);
    run_k(&env, program);
    CALL(clReleaseProgram, program);
    unlink("inc/value.h"), unlink("other/value.h"), unlink("inc/deep/deeper.h"), unlink("here.h");
    unlink("with space/sp.h"), rmdir("inc/deep"), rmdir("inc"), rmdir("other"), rmdir("with space"),
        rmdir(path);
    env_fini(&env);
}

static const char *const user_source =
    "#include \"embedded/one.h\"\n#include \"two.h\"\nint helper(int);\n"
    "kernel void k(global int *a) { a[get_global_id(0)] = helper(ONE + TWO); }\n";
static const char *const helper_source = "int helper(int x) { return x * 10; }\n";

static void compile_and_link(void)
{
    static const char *const one = "#define ONE 1\n", *const two = "#define TWO 2\n";
    struct env env;
    env_init(&env);
    cl_program h1 = MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&one, NULL);
    cl_program h2 = MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&two, NULL);
    cl_program user =
        MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&user_source, NULL);
    cl_program helper =
        MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&helper_source, NULL);
    cl_program headers[2] = {h1, h2};
    const char *names[2] = {"embedded/one.h", "two.h"};
    CALL(clCompileProgram, user, 1, &env.device, "-DX=1", 2, headers, names, NULL, NULL);
    CALL(clCompileProgram, helper, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL);
    info_build_all(user, env.device);
    info_build_all(helper, env.device);
    MAKE(clCreateKernel, user, "k");
    cl_program objects[2] = {user, helper};
    cl_program linked =
        MAKE(clLinkProgram, env.context, 1, &env.device, "", 2, objects, NULL, NULL);
    if (linked) {
        info_program_all(linked);
        info_build_all(linked, env.device);
        run_k(&env, linked);
        CALL(clReleaseProgram, linked);
    }
    cl_program library =
        MAKE(clLinkProgram, env.context, 0, NULL, "--create-library", 1, &helper, NULL, NULL);
    if (library) {
        info_program_all(library);
        info_build_all(library, env.device);
        cl_program parts[2] = {user, library};
        linked = MAKE(clLinkProgram, env.context, 0, NULL, NULL, 2, parts, NULL, NULL);
        if (linked) {
            run_k(&env, linked);
            CALL(clReleaseProgram, linked);
        }
        CALL(clReleaseProgram, library);
    }
    CALL(clReleaseProgram, h1);
    CALL(clReleaseProgram, h2);
    CALL(clReleaseProgram, user);
    CALL(clReleaseProgram, helper);
    env_fini(&env);
}

static void compile_errors(void)
{
    static const char *const bad = "int helper(int x) { return y; }\n";
    struct env env;
    int user = 0;
    env_init(&env);
    cl_program helper =
        MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&helper_source, NULL);
    cl_program wrong = MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&bad, NULL);
    const char *name = "helper.h";
    CALL(clCompileProgram, (cl_program)NULL, 1, &env.device, NULL, 0, NULL, NULL, NULL, NULL);
    CALL(clCompileProgram, helper, 1, NULL, NULL, 0, NULL, NULL, NULL, NULL);
    CALL(clCompileProgram, helper, 0, &env.device, NULL, 0, NULL, NULL, NULL, NULL);
    /* No NULL lists with a count of headers: PoCL 3.1 crashes. */
    CALL(clCompileProgram, helper, 1, &env.device, NULL, 0, &wrong, &name, NULL, NULL);
    CALL(clCompileProgram, helper, 1, &env.device, NULL, 0, NULL, NULL, NULL, &user);
    CALL(clCompileProgram, helper, 1, &env.device, "-no-such-option", 0, NULL, NULL, NULL, NULL);
    CALL(clCompileProgram, wrong, 1, &env.device, NULL, 0, NULL, NULL, NULL, NULL);
    CALL(clCompileProgram, helper, 1, &env.device, NULL, 0, NULL, NULL, NULL, NULL);
    MAKE(clLinkProgram, (cl_context)NULL, 1, &env.device, NULL, 1, &helper, NULL, NULL);
    MAKE(clLinkProgram, env.context, 1, NULL, NULL, 1, &helper, NULL, NULL);
    MAKE(clLinkProgram, env.context, 0, &env.device, NULL, 1, &helper, NULL, NULL);
    MAKE(clLinkProgram, env.context, 1, &env.device, NULL, 0, NULL, NULL, NULL);
    MAKE(clLinkProgram, env.context, 1, &env.device, NULL, 0, &helper, NULL, NULL);
    MAKE(clLinkProgram, env.context, 1, &env.device, NULL, 1, &helper, NULL, &user);
    cl_program linked =
        MAKE(clLinkProgram, env.context, 1, &env.device, "-no-such-option", 1, &helper, NULL, NULL);
    if (linked)
        CALL(clReleaseProgram, linked);
    CALL(clReleaseProgram, helper);
    CALL(clReleaseProgram, wrong);
    env_fini(&env);
}

static void null_list(void)
{
    struct env env;
    env_init(&env);
    MAKE(clLinkProgram, env.context, 1, &env.device, NULL, 1, NULL, NULL, NULL);
    env_fini(&env);
}

static struct latch built;

static void CL_CALLBACK on_built(cl_program program, void *user)
{
    latch_hit(&built, *(int *)user, handle_known(program));
}

static void callbacks(void)
{
    static const char *const good = "kernel void k(global int *a) { a[get_global_id(0)] = 1; }\n";
    static const char *const bad =
        "kernel void k(global int *a) { a[get_global_id(0)] = nothing; }\n";
    struct env env;
    int tags[4] = {1, 2, 3, 4};
    cl_int status = ERRCODE_UNSET;
    env_init(&env);
    latch_init(&built);
    cl_program program =
        MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&good, NULL);
    CALL(clBuildProgram, program, 1, &env.device, "", on_built, &tags[0]);
    bool called = latch_wait(&built, 1);
    note("called: %s, with a known program: %d", called ? "yes" : "no", built.last_status);
    CALL(clGetProgramBuildInfo, program, env.device, CL_PROGRAM_BUILD_STATUS, sizeof(status),
         &status, NULL);
    note("status %d", status);
    run_k(&env, program);
    cl_program wrong = MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&bad, NULL);
    /* Whether a failure is told at the call or only by the callback is the driver's choice. */
    clBuildProgram(wrong, 1, &env.device, "", on_built, &tags[1]);
    note("called: %s", latch_wait(&built, 2) ? "yes" : "no");
    status = ERRCODE_UNSET;
    CALL(clGetProgramBuildInfo, wrong, env.device, CL_PROGRAM_BUILD_STATUS, sizeof(status), &status,
         NULL);
    note("status %d", status);
    cl_program helper = MAKE(clCreateProgramWithSource, env.context, 1, (const char **)&good, NULL);
    CALL(clCompileProgram, helper, 1, &env.device, NULL, 0, NULL, NULL, on_built, &tags[2]);
    note("called: %s", latch_wait(&built, 3) ? "yes" : "no");
    cl_program linked =
        MAKE(clLinkProgram, env.context, 1, &env.device, NULL, 1, &helper, on_built, &tags[3]);
    note("called: %s", latch_wait(&built, 4) ? "yes" : "no");
    run_k(&env, linked);
    CALL(clReleaseProgram, linked);
    CALL(clReleaseProgram, helper);
    CALL(clReleaseProgram, wrong);
    CALL(clReleaseProgram, program);
    env_fini(&env);
}

static const struct diff_case build_cases[] = {
    {"options", options},
    {"bad_options", bad_options},
    {"errors", errors},
    {"failing_source", failing_source},
    {"warning_log", warning_log},
    {"include_files", include_files},
    {"compile_and_link", compile_and_link},
    {"compile_errors", compile_errors},
    {"null_list", null_list},
    {"callbacks", callbacks},
};
DIFF_FAMILY(build);
