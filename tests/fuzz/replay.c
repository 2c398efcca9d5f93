/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for libFuzzer where the compiler has none: runs a target over the files of its corpus,
 * over each strict prefix of a file, and over some mutations of it. The mutations come from a seed,
 * so a failure comes back with the same command line; the input at fault is named, and kept where
 * $FUZZ_KEEP says.
 *
 *   fuzz-NAME [--mutations N] [--seed S] FILE|FOLDER...
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

#define INPUT_LIMIT  (1u << 16)
#define MAX_PREFIXES 512u
#define PATIENCE_S   60

int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static struct {
    char path[512];
    const char *how;
    uint64_t which;
    const uint8_t *data;
    size_t size;
} now;

static uint64_t random_state;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void tell(void)
{
    const char *keep = getenv("FUZZ_KEEP");
    fprintf(stderr, "replay: at %s, %s %llu\n", now.path, now.how, (unsigned long long)now.which);
    FILE *f = keep ? fopen(keep, "wb") : NULL;
    if (f) {
        fwrite(now.data, 1, now.size, f);
        fclose(f);
    }
}

static void died(int signo)
{
    if (signo == SIGALRM)
        fprintf(stderr, "replay: it takes more than %d s\n", PATIENCE_S);
    tell();
    _exit(128 + signo);
}

static void run(const char *how, uint64_t which, const uint8_t *data, size_t size)
{
    /* Exactly as long as it says, so that a sanitizer sees a read beyond it. */
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        exit(2);
    memcpy(copy, data, size);
    now.how = how;
    now.which = which;
    now.data = copy;
    now.size = size;
    alarm(PATIENCE_S);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static const uint64_t odd_numbers[] = {0,          1,          7,          8,          0x7f,
                                       0x80,       0xff,       0x100,      0xfff,      0x1000,
                                       0x7fff,     0xffff,     0x10000,    0x7fffffff, 0x80000000,
                                       0xffffffff, 1ull << 32, 1ull << 40, ~0ull >> 1, ~0ull};

static size_t mutate(uint8_t *data, size_t size)
{
    size_t at = size ? next_random() % size : 0, n, other;
    uint64_t number;
    switch (next_random() % 7) {
    case 0:
        if (size)
            data[at] ^= (uint8_t)(1u << next_random() % 8);
        return size;
    case 1:
        if (size)
            data[at] = (uint8_t)next_random();
        return size;
    case 2:
    case 3:
        number = odd_numbers[next_random() % (sizeof odd_numbers / sizeof odd_numbers[0])];
        n = (size_t)1 << next_random() % 4;
        if (at + n <= size)
            memcpy(data + at, &number, n);
        return size;
    case 4: /* a piece again */
        n = size - at < 64 ? size - at : next_random() % 64;
        if (size + n > INPUT_LIMIT)
            return size;
        memmove(data + at + n, data + at, size - at);
        return size + n;
    case 5: /* a piece gone */
        n = size - at ? next_random() % (size - at < 64 ? size - at : 64) : 0;
        memmove(data + at, data + at + n, size - at - n);
        return size - n;
    default: /* a piece elsewhere */
        other = size ? next_random() % size : 0;
        n = size - (at > other ? at : other);
        if (n)
            memmove(data + at, data + other, next_random() % n);
        return size;
    }
}

static uint64_t replay_file(const char *path, uint64_t n_mutations)
{
    static uint8_t original[INPUT_LIMIT], work[INPUT_LIMIT];
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "replay: cannot read %s: %s\n", path, strerror(errno));
        exit(2);
    }
    size_t size = fread(original, 1, sizeof original, f);
    fclose(f);
    snprintf(now.path, sizeof now.path, "%s", path);
    run("as it is,", 0, original, size);
    size_t step = size / MAX_PREFIXES + 1;
    for (size_t n = 0; n < size; n += step)
        run("its first bytes, many:", n, original, n);
    for (uint64_t i = 0; i < n_mutations; i++) {
        size_t n = size;
        memcpy(work, original, size);
        for (uint64_t k = next_random() % 4 + 1; k; k--)
            n = mutate(work, n);
        run("its mutation", i, work, n);
    }
    return 1 + (size + step - 1) / step + n_mutations;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static uint64_t replay(const char *path, uint64_t n_mutations)
{
    struct stat st;
    struct dirent **names;
    uint64_t runs = 0;
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return replay_file(path, n_mutations);
    int n = scandir(path, &names, NULL, by_name);
    for (int i = 0; i < n; i++) {
        char inside[1024];
        snprintf(inside, sizeof inside, "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.')
            runs += replay_file(inside, n_mutations);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return runs;
}

int main(int argc, char **argv)
{
    uint64_t n_mutations = 0, seed = 1, runs = 0;
    int at = 1;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--mutations") == 0)
            n_mutations = strtoull(argv[at + 1], NULL, 0);
        else if (strcmp(argv[at], "--seed") == 0)
            seed = strtoull(argv[at + 1], NULL, 0);
        else
            return 2;
    }
    random_state = seed * 0x9e3779b97f4a7c15u | 1;
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(tell);
    else
        signal(SIGSEGV, died), signal(SIGBUS, died);
    signal(SIGABRT, died);
    signal(SIGALRM, died);
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    for (; at < argc; at++)
        runs += replay(argv[at], n_mutations);
    printf("%llu inputs, seed %llu\n", (unsigned long long)runs, (unsigned long long)seed);
    return runs ? 0 : 2;
}
