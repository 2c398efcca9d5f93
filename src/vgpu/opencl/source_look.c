/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans a program's text once: it skips comments, strings and numbers, and looks words up. Called
 * after a build, on the helper thread. It does not preprocess: a word in a branch that is never
 * compiled counts, too.
 */
#include "source_look.h"

#include "base/checked.h"

#include <ctype.h>
#include <string.h>

#define MAX_WORD 64u

/* The state of the scanner of declarations, and the facts of the current declaration. */
struct declaration {
    uint32_t braces, parens;
    /* Words outside braces and parentheses: all, and those behind a struct's body. */
    uint32_t n_words, n_behind;
    bool is_harmless; /* a typedef, a constant, a sampler */
    bool is_const,
        is_pointer;        /* a const object keeps its initial value; a pointer to one does not */
    bool is_tag, has_body; /* a struct, union or enum; with its definition */
    bool has_call;         /* it has parentheses like a function */
    bool has_value;        /* an initializer */
    bool before_attribute, in_attribute;
    bool inner_static, inner_harmless; /* in a function's body, since the last semicolon */
    int last;                          /* the last character that is no blank; 'w' for a word */
};

struct text {
    const char *at, *end;
    struct gn_source_facts *facts;
    struct declaration now;
};

/*
 * The next character, after joining lines that end with a backslash; -1 at the end. *ret_next: the
 * position behind it.
 */
static int next_char(const struct text *t, const char *at, const char **ret_next)
{
    while (at + 1 < t->end && at[0] == '\\' &&
           (at[1] == '\n' || (at[1] == '\r' && at + 2 < t->end && at[2] == '\n')))
        at += at[1] == '\n' ? 2 : 3;
    if (at >= t->end)
        return -1;
    *ret_next = at + 1;
    return (unsigned char)*at;
}

static int peek(const struct text *t)
{
    const char *next;
    return next_char(t, t->at, &next);
}

static int take_char(struct text *t)
{
    return next_char(t, t->at, &t->at);
}

static bool is_word(int c)
{
    return c == '_' || c == '$' || c >= 0x80 || (c >= 0 && isalnum(c));
}

static void forbid_slicing(struct text *t, const char *why)
{
    if (!t->facts->whole)
        t->facts->whole = why;
}

static bool is_one_of(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

static bool starts_like(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(word, list[i], strlen(list[i])) == 0)
            return true;
    return false;
}

static uint32_t position_functions_of(const char *word)
{
    static const struct {
        const char *name;
        uint32_t asks;
    } functions[] = {{"get_group_id", GN_ASKS_GROUP_ID},
                     {"get_num_groups", GN_ASKS_NUM_GROUPS},
                     {"get_global_size", GN_ASKS_GLOBAL_SIZE},
                     {"get_global_offset", GN_ASKS_GLOBAL_OFFSET},
                     {"get_global_linear_id", GN_ASKS_LINEAR_ID}};
    for (size_t i = 0; i < GN_ARRAY_SIZE(functions); i++)
        if (strcmp(word, functions[i].name) == 0)
            return functions[i].asks;
    return 0;
}

/* A word may be completed by pasting or an escape: those are detected where they occur. */
static void judge_word(struct text *t, const char *word)
{
    static const char *const loops[] = {"for", "while", "do", "goto"};
    static const char *const waits[] = {
        "volatile",       "__volatile",      "__volatile__",        "mem_fence",
        "read_mem_fence", "write_mem_fence", "CLK_GLOBAL_MEM_FENCE"};
    static const char *const waits_like[] = {"atomic",       "atom_",           "__atomic",
                                             "__c11_atomic", "__opencl_atomic", "__sync_"};
    static const char *const strange[] = {"asm",     "pipe",       "__pipe",    "enqueue_kernel",
                                          "_Pragma", "push_macro", "pop_macro", "poison"};
    static const char *const strange_like[] = {"__asm", "__builtin", "__spirv",
                                               "__nv",  "__amd",     "__ockl",
                                               "_Z",    "read_pipe", "write_pipe"};
    struct gn_source_facts *f = t->facts;
    f->asks |= position_functions_of(word);
    f->loops |= is_one_of(word, loops, GN_ARRAY_SIZE(loops));
    f->waits |= is_one_of(word, waits, GN_ARRAY_SIZE(waits)) ||
                starts_like(word, waits_like, GN_ARRAY_SIZE(waits_like));
    if (is_one_of(word, strange, GN_ARRAY_SIZE(strange)) ||
        starts_like(word, strange_like, GN_ARRAY_SIZE(strange_like)))
        forbid_slicing(t, "it uses words outside portable OpenCL C");
}

/*
 * ---- declarations. Functions, types and constants are recognized; everything else that ends with
 * a semicolon is a variable.
 */

static void end_declaration(struct declaration *d)
{
    *d = (struct declaration){.braces = d->braces, .parens = d->parens};
}

static void declare_word(struct text *t, const char *word)
{
    static const char *const harmless[] = {"typedef", "constant", "__constant", "sampler_t"};
    static const char *const tags[] = {"struct", "union", "enum"};
    struct declaration *d = &t->now;
    d->last = 'w';
    if (d->braces) {
        d->inner_static |= strcmp(word, "static") == 0;
        d->inner_harmless |= is_one_of(word, harmless, GN_ARRAY_SIZE(harmless));
        return;
    }
    if (d->parens)
        return;
    if (strcmp(word, "__attribute__") == 0 || strcmp(word, "__attribute") == 0) {
        d->before_attribute = true;
        return;
    }
    d->n_words++;
    d->n_behind += d->has_body;
    d->is_harmless |= is_one_of(word, harmless, GN_ARRAY_SIZE(harmless));
    d->is_const |= strcmp(word, "const") == 0;
    d->is_tag |= is_one_of(word, tags, GN_ARRAY_SIZE(tags));
}

/* Called at its semicolon. */
static bool declares_variable(const struct declaration *d)
{
    if (d->is_harmless || !d->n_words || (d->is_const && !d->is_pointer))
        return false;
    if (d->has_value)
        return true;
    if (d->has_call && d->last == ')')
        return false;
    if (d->is_tag)
        return d->has_body ? d->n_behind != 0 : d->n_words > 2;
    return true;
}

static void open_brace(struct text *t)
{
    struct declaration *d = &t->now;
    if (!d->braces && !d->parens && !d->has_value && !d->has_call && !d->is_tag)
        t->facts->declares = true; /* a namespace, or a macro: its contents are not understood */
    d->braces++;
}

static void close_brace(struct text *t)
{
    struct declaration *d = &t->now;
    if (!d->braces) {
        t->facts->declares = true; /* conditional parts do not balance: the scope is unknown */
        return;
    }
    if (--d->braces)
        return;
    d->has_body = d->is_tag;
    if (d->has_call && !d->has_value)
        end_declaration(d);
}

static void declare_mark(struct text *t, int c)
{
    struct declaration *d = &t->now;
    const bool is_outside = !d->braces && !d->parens;
    if (c == '(') {
        if (is_outside && d->before_attribute)
            d->in_attribute = true;
        else if (is_outside && !d->has_value && peek(t) != '*')
            d->has_call = true;
        d->before_attribute = false;
        d->parens++;
    } else if (c == ')' && d->parens) {
        d->parens--;
        if (!d->parens && d->in_attribute) {
            d->in_attribute = false;
            return; /* an attribute changes nothing of the declaration before it */
        }
    } else if (c == '=' && is_outside) {
        d->has_value = true;
    } else if (c == '*' && is_outside && !d->has_value) {
        d->is_pointer = true;
    } else if (c == '{') {
        open_brace(t);
    } else if (c == '}') {
        close_brace(t);
    } else if (c == ';' && !d->parens) {
        if (d->braces) {
            t->facts->declares |= d->inner_static && !d->inner_harmless;
            d->inner_static = d->inner_harmless = false;
        } else {
            t->facts->declares |= declares_variable(d);
            end_declaration(d);
        }
    }
    d->last = c;
}

/* A word that is longer than `word` is cut off: no searched word is as long. */
static void take_word(struct text *t, char word[MAX_WORD])
{
    size_t n = 0;
    while (is_word(peek(t))) {
        const int c = take_char(t);
        if (n + 1 < MAX_WORD)
            word[n++] = (char)c;
    }
    word[n] = 0;
}

static void pass_number(struct text *t)
{
    int c = 0;
    while (is_word(peek(t)) || peek(t) == '.' ||
           ((c == 'e' || c == 'E' || c == 'p' || c == 'P') && (peek(t) == '+' || peek(t) == '-')))
        c = take_char(t);
}

static void pass_quoted(struct text *t, int quote)
{
    int c;
    while ((c = peek(t)) != -1 && c != '\n') {
        (void)take_char(t);
        if (c == quote)
            return;
        if (c == '\\' && peek(t) != '\n')
            (void)take_char(t);
    }
}

/*
 * Called behind a '/'. True when it began a comment, which is skipped. A newline that ends one is
 * not consumed.
 */
static bool pass_comment(struct text *t)
{
    if (peek(t) == '/') {
        while (peek(t) != -1 && peek(t) != '\n')
            (void)take_char(t);
        return true;
    }
    if (peek(t) != '*')
        return false;
    int before = 0, c;
    (void)take_char(t);
    while ((c = take_char(t)) != -1 && !(before == '*' && c == '/'))
        before = c;
    return true;
}

static void pass_blanks(struct text *t)
{
    for (;;) {
        const int c = peek(t);
        const char *before = t->at;
        if (c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f')
            (void)take_char(t);
        else if (c == '/' && (take_char(t), pass_comment(t)))
            continue;
        else {
            if (c == '/')
                t->at = before;
            return;
        }
    }
}

/*
 * Called behind the '#' of a line. The caller reads the rest of the line; `tests`: it is a
 * condition.
 */
static void take_directive(struct text *t, bool *tests)
{
    static const char *const files[] = {"include", "include_next", "import", "embed"};
    static const char *const conditions[] = {"if",      "ifdef",    "ifndef", "elif",
                                             "elifdef", "elifndef", "undef"};
    char word[MAX_WORD];
    pass_blanks(t);
    take_word(t, word);
    if (is_one_of(word, files, GN_ARRAY_SIZE(files)))
        forbid_slicing(t, "it includes files");
    *tests = is_one_of(word, conditions, GN_ARRAY_SIZE(conditions));
    if (strcmp(word, "define") == 0) {
        pass_blanks(t);
        take_word(t, word);
        if (position_functions_of(word))
            forbid_slicing(t, "it defines a position function");
        judge_word(t, word);
    }
}

static void scan(struct text *t)
{
    char word[MAX_WORD];
    bool line_begins = true, directive = false, tests = false;
    int c;
    while ((c = peek(t)) != -1) {
        if (is_word(c) && !(c >= '0' && c <= '9')) {
            take_word(t, word);
            judge_word(t, word);
            if (!directive)
                declare_word(t, word);
            if (tests && position_functions_of(word))
                forbid_slicing(t, "a preprocessor condition names a position function");
            line_begins = false;
            continue;
        }
        if (c >= '0' && c <= '9') {
            pass_number(t);
            line_begins = false;
            continue;
        }
        (void)take_char(t);
        if (c == '\n') {
            line_begins = true;
            directive = tests = false;
            continue;
        }
        if (c == '/' && pass_comment(t))
            continue;
        if (c == '%' && peek(t) == ':') {
            (void)take_char(t);
            c = '#';
        }
        if (c == '#' && line_begins) {
            directive = true;
            take_directive(t, &tests);
        } else if (c == '#') {
            if (peek(t) == '#' || peek(t) == '%')
                forbid_slicing(t, "it pastes words together");
            t->facts->quotes |= directive;
        } else if (c == '"' || c == '\'') {
            pass_quoted(t, c);
        } else if (c == '\\' || (c == '?' && peek(t) == '?')) {
            forbid_slicing(t, "it spells characters by escapes");
        }
        if (!directive && !isspace(c))
            declare_mark(t, c);
        line_begins = line_begins && isspace(c);
    }
    t->facts->declares |= t->now.braces || t->now.parens;
}

void gn_source_look(struct gn_source_facts *f, const char *text, size_t n)
{
    struct text t = {.at = text, .end = text + n, .facts = f};
    scan(&t);
}

void gn_source_look_options(struct gn_source_facts *f, const char *options)
{
    static const char *const strange[] = {"-include", "-imacros", "-Xclang", "CLC++", "-x ", "@"};
    struct text t = {.at = options, .end = options + strlen(options), .facts = f};
    for (size_t i = 0; i < GN_ARRAY_SIZE(strange); i++)
        if (strstr(options, strange[i]))
            forbid_slicing(&t, "its build options do more than define macros");
    f->newer |= strstr(options, "-cl-std") && !strstr(options, "-cl-std=CL1");
    /* Quotes and backslashes belong to the option parser; the words between them count. */
    while (t.at < t.end) {
        char word[MAX_WORD];
        const int c = (unsigned char)*t.at;
        if (!is_word(c)) {
            if (c == '#' || (c == '%' && t.at + 1 < t.end && t.at[1] == ':'))
                forbid_slicing(&t, "it pastes words together");
            t.at++;
            continue;
        }
        const uint32_t asks = f->asks;
        take_word(&t, word);
        judge_word(&t, word);
        if (strstr(word, "get_g") || strstr(word, "get_num_groups") || f->asks != asks)
            forbid_slicing(&t, "its build options name a position function");
    }
}

void gn_source_conclude(struct gn_source_facts *f)
{
    if (f->whole)
        return;
    if (f->loops && f->waits)
        f->whole = "its groups may wait for each other";
    else if (f->quotes && f->asks)
        f->whole = "it turns macro arguments into strings";
}
