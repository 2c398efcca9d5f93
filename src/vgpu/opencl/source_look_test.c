/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the facts found in a program's text, in particular that no disguise hides a construct that
 * forbids slicing.
 */
#include "source_look.h"

#include "base/checked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct gn_source_facts facts_of(const char *text, const char *options)
{
    struct gn_source_facts f = {0};
    /* A copy of the exact length, so that a sanitizer detects reads beyond the end. */
    const size_t n = strlen(text);
    char *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, text, n);
    gn_source_look(&f, copy, n);
    gn_source_look_options(&f, options);
    gn_source_conclude(&f);
    free(copy);
    return f;
}

static void check(const char *text, const char *options, bool cut, uint32_t asks)
{
    const struct gn_source_facts f = facts_of(text, options);
    if ((f.whole == NULL) != cut)
        fail_msg("%s: %s", text, f.whole ? f.whole : "is cut");
    if (cut)
        assert_int_equal(f.asks, asks);
}

static void test_ordinary_kernels(void **state)
{
    (void)state;
    check("", "", true, 0);
    check("__kernel void k(__global int *a) { a[get_global_id(0)] = get_local_id(0); }",
          "-cl-std=CL1.2", true, 0);
    check("kernel void k(global int *a) { for (int i = 0; i < 9; i++) { "
          "barrier(CLK_LOCAL_MEM_FENCE); a[i] = 1.5e-3f; } }",
          "-DN=3 -I.", true, 0);
    check("kernel void k(global int *a) { a[get_group_id(0)] = get_num_groups (1); }", "", true,
          GN_ASKS_GROUP_ID | GN_ASKS_NUM_GROUPS);
    check("#define SIZE get_global_size(0)\nkernel void k(global int *a) { a[get_global_offset(0)] "
          "= SIZE; }",
          "", true, GN_ASKS_GLOBAL_SIZE | GN_ASKS_GLOBAL_OFFSET);
    check("kernel void k(global int *a) { a[get_global_linear_id()] = 1; }", "", true,
          GN_ASKS_LINEAR_ID);
    /* Without a loop no group waits; nor without a word that makes memory be read again. */
    check("kernel void k(global int *a) { atomic_inc(a); }", "", true, 0);
    check("kernel void k(volatile global int *a) { a[0] = 1; }", "", true, 0);
}

static void test_comments_and_strings_are_skipped(void **state)
{
    (void)state;
    check("// get_group_id(0) volatile #include\n/* atomic_add while ## \\ */ kernel void k() {}",
          "", true, 0);
    check("kernel void k() { printf(\"get_group_id \\\" for volatile ## %d\\n\", 'a'); }", "", true,
          0);
    check("kernel void k() { int my_get_group_id = 0, get_group_id2 = 0x1for; }", "", true, 0);
    check("int a; /* unfinished get_group_id", "", true, 0);
    check("int a; // joined \\\n get_group_id(0)\nint b;", "", true, 0);
}

static void test_waiting_groups_forbid_slicing(void **state)
{
    static const char *const waits[] = {
        "kernel void k(global int *a) { while (atomic_or(a, 0) == 0); }",
        "kernel void k(global int *a) { do { } while (atom_cmpxchg(a, 0, 1)); }",
        "kernel void k(volatile global int *a) { for (;;) if (a[0]) break; }",
        "kernel void k(global int *a) { again: if (!atomic_load_explicit(a, 0)) goto again; }",
        "kernel void k(global int *a) { while (!a[0]) mem_fence(CLK_GLOBAL_MEM_FENCE); }",
        "kernel void k(global int *a) { while (!a[0]) barrier(CLK_LOCAL_MEM_FENCE | "
        "CLK_GLOBAL_MEM_FENCE); }",
        "#define AGAIN whi\\\nle\nkernel void k(global int *a) { AGAIN (__c11_atomic_load(a)); }",
        "kernel void k(global int *a) { wh\\\r\nile (ato\\\nmic_or(a, 0)); }",
        "kernel void k(global int *a) { for (;;) { /* */ atomic_inc(a); } }",
    };
    (void)state;
    for (size_t i = 0; i < GN_ARRAY_SIZE(waits); i++)
        check(waits[i], "", false, 0);
    check("kernel void k(global int *a) { LOOP OP(a); }", "-DLOOP=for(;;) -DOP=atomic_inc", false,
          0);
    check("kernel void k(global int *a) { for (;;) OP(a); }", "-D OP=atomic_inc", false, 0);
}

static void test_hidden_text_forbids_slicing(void **state)
{
    static const char *const hidden[] = {
        "#include \"other.h\"\n",
        "  # /* here */ include <other.h>\n",
        "%: include <other.h>\n",
        "#def\\\nine A\n#incl\\\nude \"x\"\n",
        "#define ID(x) get_##x##_id(0)\n",
        "#define ID(x) get_%:%:x(0)\n",
        "kernel void k() { int \\u0061b; }",
        "?\?=include \"x\"\n",
        "kernel void k() { asm(\"nop\"); }",
        "kernel void k() { __asm__ volatile(\"nop\"); }",
        "kernel void k() { int a = __builtin_amdgcn_workgroup_id_x(); }",
        "kernel void k(read_only pipe int p) { }",
        "#define get_group_id(x) 0\n",
        "#undef get_num_groups\n",
        "#ifdef get_global_size\n#endif\n",
        "#if defined(get_group_id)\n#endif\n",
        "#pragma push_macro(\"get_group_id\")\n",
        "#define TEXT(x) #x\n#define TEXT2(x) TEXT(x)\nkernel void k() { "
        "printf(TEXT2(get_group_id(0))); }",
    };
    static const char *const options[] = {"-include other.h",       "-Dget_group_id=mine",
                                          "-D get_num_groups(x)=1", "-U get_global_size",
                                          "-DGID=get_group_id(0)",  "-DP(a,b)=a##b",
                                          "-cl-std=CLC++",          "-Dx=__builtin_trap()"};
    (void)state;
    for (size_t i = 0; i < GN_ARRAY_SIZE(hidden); i++)
        check(hidden[i], "", false, 0);
    for (size_t i = 0; i < GN_ARRAY_SIZE(options); i++)
        check("kernel void k() {}", options[i], false, 0);
}

static void test_variables_are_seen(void **state)
{
    static const char *const declare[] = {
        "global int counter = 100; kernel void f(global int *o) { o[0] = ++counter; }",
        "kernel void f(global int *o) { o[0] = 1; }\n__global int table[4096];",
        "int x;",
        "static global float a, b;",
        "global int *where;",
        "global const int *where;",
        "global int (*where)[4];",
        "struct s { int a; } x;",
        "struct s { int a; }; global struct s x;",
        "global union u x __attribute__((aligned(64)));",
        "__attribute__((aligned(64))) global int x;",
        "kernel void f(global int *o) { static int n; o[0] = n++; }",
        "kernel void f(global int *o) { if (o[0]) { static global int n = 3; o[0] = n++; } }",
        "SOME_MACRO(4) global int x;",
        "SOME_MACRO;",
        "global atomic_int x = ATOMIC_VAR_INIT(0);",
        "#ifdef A\nkernel void f(int a) {\n#else\nkernel void f(float a) {\n#endif\n}\nglobal int "
        "x;",
        "namespace n { int x; }",
        "glo\\\nbal int x;",
        "/* */ global /* */ int x // \n ;",
    };
    static const char *const declare_none[] = {
        "",
        "kernel void f(global int *o) { int n = 0; for (int i = 0; i < 3; i++) { n += i; } o[0] = "
        "n; }",
        "constant int table[] = {1, 2, 3}; __constant float4 one = (float4)(1, 2, 3, 4);",
        "const sampler_t s = CLK_ADDRESS_NONE | CLK_FILTER_NEAREST; constant sampler_t u = "
        "CLK_FILTER_LINEAR;",
        "const int n = 5; const global int m = 6;",
        "typedef struct { int a; float b; } pair; typedef int number; struct s; struct t { int a; "
        "}; enum { A, B };",
        "int f(int a); global int *g(global int *a) { return a; } static inline float h(float x) "
        "__attribute__((const));",
        "__kernel __attribute__((reqd_work_group_size(8, 8, 1))) void f(global int *o) { o[0] = "
        "1; }",
        "kernel void f(global int *o) { static constant int t[] = {1, 2}; o[0] = t[0]; }",
        "#define DECLARE(t) t add(t a, t b) { return a + b; "
        "}\nDECLARE(int)\nDECLARE(float);\nkernel void f() { };",
        "// global int x;\n/* int y; */ kernel void f() { printf(\"int x; {\"); }",
        "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#define X global int x;\n",
    };
    (void)state;
    for (size_t i = 0; i < GN_ARRAY_SIZE(declare); i++)
        if (!facts_of(declare[i], "-cl-std=CL2.0").declares)
            fail_msg("no variable in %s", declare[i]);
    for (size_t i = 0; i < GN_ARRAY_SIZE(declare_none); i++)
        if (facts_of(declare_none[i], "-cl-std=CL2.0").declares)
            fail_msg("a variable in %s", declare_none[i]);
}

/* For any bytes, the scan ends and reads nothing beyond them. */
static void test_any_bytes(void **state)
{
    static const char bits[] = "/*\\\n\"'#%:?e1._ad\r <\xff";
    char text[24];
    uint32_t seed = 1;
    (void)state;
    for (int round = 0; round < 200000; round++) {
        size_t n = 0;
        for (; n < sizeof text - 1 && (seed = seed * 1664525 + 1013904223) >> 28; n++)
            text[n] = bits[(seed >> 12) % (sizeof bits - 1)];
        text[n] = 0;
        (void)facts_of(text, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordinary_kernels),
        cmocka_unit_test(test_comments_and_strings_are_skipped),
        cmocka_unit_test(test_waiting_groups_forbid_slicing),
        cmocka_unit_test(test_hidden_text_forbids_slicing),
        cmocka_unit_test(test_variables_are_seen),
        cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
