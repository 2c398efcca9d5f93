/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overwrites the memory that another process shares with its worker, for as long as there is a
 * session.
 *
 *   scribbler PID SEED
 *
 * Finds the segments among PID's descriptors, maps them and writes: numbers chosen to hurt
 * (sequence numbers near those in use, lengths, spans, generations, indices), and random ones, into
 * the request ring, the reply slots, the event table and the beginning of the data area. The seed
 * decides what is written and where; the races decide what becomes of it. Ends when the writing has
 * lasted, and says what it wrote where.
 */
#include "shm/event_table.h"
#include "shm/session_layout.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_SEGMENTS 32
#define LASTS_NS     300000000u

static uint64_t state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static struct segment {
    char name[64];
    unsigned char *base;
    size_t bytes;
} segments[MAX_SEGMENTS];
static int n_segments;

static void find(int pid)
{
    char path[300], link[300];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir && (e = readdir(dir)) && n_segments < MAX_SEGMENTS;) {
        snprintf(path, sizeof path, "/proc/%d/fd/%s", pid, e->d_name);
        ssize_t n = readlink(path, link, sizeof link - 1);
        link[n < 0 ? 0 : n] = 0;
        if (strncmp(link, "/memfd:gantry-", 14) != 0 || stat(path, &st) < 0)
            continue;
        FILE *f = fopen(path, "r+");
        void *base =
            f ? mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0)
              : MAP_FAILED;
        if (base != MAP_FAILED) {
            struct segment *s = &segments[n_segments++];
            snprintf(s->name, sizeof s->name, "%.40s", link + 14);
            s->base = base;
            s->bytes = (size_t)st.st_size;
        }
        if (f)
            fclose(f);
    }
    if (dir)
        closedir(dir);
}

static const uint64_t odd[] = {0,
                               1,
                               2,
                               7,
                               8,
                               15,
                               16,
                               55,
                               56,
                               63,
                               64,
                               255,
                               256,
                               895,
                               896,
                               897,
                               1023,
                               1024,
                               4095,
                               4096,
                               0xffff,
                               0x10000,
                               1u << 20,
                               0x7fffffff,
                               0x80000000,
                               0xfffffffeu,
                               0xffffffffu,
                               1ull << 32,
                               3ull << 32 | 2,
                               ~0ull >> 1,
                               ~0ull - 7,
                               ~0ull};

static uint64_t number(const unsigned char *at)
{
    uint32_t there;
    memcpy(&there, at, sizeof there);
    switch (draw() % 4) {
    case 0:
        return odd[draw() % (sizeof odd / sizeof odd[0])];
    case 1: /* near what is there */
        return there + draw() % 5 - 2;
    case 2:
        return draw() % 200;
    default:
        return draw();
    }
}

static void write_at(unsigned char *at)
{
    uint64_t n = number(at);
    memcpy(at, &n, (size_t)1 << draw() % 4);
}

static void scribble_ring(struct segment *s)
{
    unsigned char *slot = s->base + GN_SESSION_REQUESTS_AT + sizeof(struct gn_ring) +
                          draw() % GN_SESSION_REQUEST_SLOTS * 64;
    switch (draw() % 6) {
    case 0: /* the sequence number, the length */
        write_at(slot);
        break;
    case 1:
        write_at(slot + 4);
        break;
    case 2:
    case 3: /* a field of a message */
        write_at(slot + 8 + draw() % 7 * 8);
        break;
    case 4: /* a reply */
        write_at(s->base + GN_SESSION_REPLIES_AT + draw() % 256 * 64 + draw() % 14 * 4);
        break;
    default: /* who sleeps */
        write_at(s->base + GN_SESSION_REQUESTS_AT + draw() % 2 * 64);
    }
}

int main(int argc, char **argv)
{
    struct timespec t;
    uint64_t now, end, n = 0;
    if (argc != 3)
        return 2;
    state = strtoull(argv[2], NULL, 0) * 0x9e3779b97f4a7c15u | 1;
    for (int i = 0; i < 16; i++)
        draw();
    unsigned mode =
        (unsigned)(draw() %
                   4); /* gentle to wild: rare single writes let the two go on for longer */
    for (int tries = 0; tries < 2000 && n_segments < 3; tries++) {
        for (int i = 0; i < n_segments; i++)
            munmap(segments[i].base, segments[i].bytes);
        n_segments = 0;
        find(atoi(argv[1]));
        if (n_segments < 3)
            usleep(500);
    }
    clock_gettime(CLOCK_MONOTONIC, &t);
    now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    for (end = now + LASTS_NS; n_segments && now < end; n++) {
        struct segment *s = &segments[draw() % (unsigned)n_segments];
        if (strncmp(s->name, "ring", 4) == 0)
            scribble_ring(s);
        else if (strncmp(s->name, "events", 6) == 0)
            write_at(s->base + draw() % 64 * 64 + draw() % 14 * 4);
        else
            write_at(s->base + draw() % (s->bytes < 65536 ? s->bytes : 65536) / 8 * 8);
        if (n % 64 == 0 || mode < 3) {
            clock_gettime(CLOCK_MONOTONIC, &t);
            now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
        }
        for (uint64_t k = mode < 3 ? draw() % (1000u >> mode * 4) : 0; k; k--)
            __asm__ volatile("" ::: "memory");
        if (mode == 0)
            usleep(200);
    }
    printf("seed %s: %llu writes, mode %u,", argv[2], (unsigned long long)n, mode);
    for (int i = 0; i < n_segments; i++)
        printf(" %s", segments[i].name);
    printf("\n");
    return 0;
}
