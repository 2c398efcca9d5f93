/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checker: a depth-first search over states. Visited states are remembered by a 64-bit hash;
 * with the ten million states at most that these models have, a collision that hides a state has a
 * chance of one in 300,000.
 */
#include "model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct search {
    uint64_t *visited; /* open addressing; 0: empty */
    uint64_t capacity, n_visited;
    struct model_state *stack;
    uint64_t n_stack, stack_capacity;
};

static uint64_t hash_state(const struct model_state *s)
{
    const unsigned char *bytes = (const unsigned char *)s;
    uint64_t h = 0x9e3779b97f4a7c15u;
    size_t i = 0;
    for (; i + 8 <= sizeof *s; i += 8) {
        uint64_t w;
        memcpy(&w, bytes + i, 8);
        h = (h ^ w) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    for (; i < sizeof *s; i++)
        h = (h ^ bytes[i]) * 0xc4ceb9fe1a85ec53u;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9u;
    h ^= h >> 32;
    return h ? h : 1;
}

static bool insert(struct search *q, uint64_t h)
{
    if (q->n_visited * 2 >= q->capacity) {
        uint64_t old_capacity = q->capacity, *old = q->visited;
        q->capacity = old_capacity ? old_capacity * 2 : 1 << 16;
        q->visited = calloc(q->capacity, sizeof *q->visited);
        assert(q->visited);
        q->n_visited = 0;
        for (uint64_t i = 0; i < old_capacity; i++)
            if (old[i])
                insert(q, old[i]);
        free(old);
    }
    uint64_t i = h & (q->capacity - 1);
    while (q->visited[i]) {
        if (q->visited[i] == h)
            return false;
        i = (i + 1) & (q->capacity - 1);
    }
    q->visited[i] = h;
    q->n_visited++;
    return true;
}

static void push(struct search *q, const struct model_state *s)
{
    if (!insert(q, hash_state(s)))
        return;
    if (q->n_stack == q->stack_capacity) {
        q->stack_capacity = q->stack_capacity ? q->stack_capacity * 2 : 1024;
        q->stack = realloc(q->stack, q->stack_capacity * sizeof *q->stack);
        assert(q->stack);
    }
    q->stack[q->n_stack++] = *s;
}

static bool may_flush(const struct model_thread *t, unsigned i)
{
    if (t->buffer[i].order == RELEASE && i > 0)
        return false;
    for (unsigned j = 0; j < i; j++)
        if (t->buffer[j].cell == t->buffer[i].cell)
            return false;
    return true;
}

static void flush(struct model_state *s, unsigned t, unsigned i)
{
    struct model_thread *thread = &s->thread[t];
    s->cell[thread->buffer[i].cell] = thread->buffer[i].value;
    thread->n_buffered--;
    memmove(&thread->buffer[i], &thread->buffer[i + 1],
            (thread->n_buffered - i) * sizeof thread->buffer[0]);
    memset(&thread->buffer[thread->n_buffered], 0,
           sizeof thread->buffer[0]); /* equal states look equal */
}

const char *model_check(struct model *m)
{
    struct search q = {0};
    struct model_state s, next;
    m->violation = NULL;
    memset(&s, 0, sizeof s);
    m->init(m, &s);
    push(&q, &s);
    while (q.n_stack && !m->violation) {
        s = q.stack[--q.n_stack];
        bool moved = false, all_done = true;
        for (unsigned t = 0; t < m->n_threads && !m->violation; t++) {
            const struct model_thread *thread = &s.thread[t];
            if (thread->pc != MODEL_DONE)
                all_done = false;
            if (thread->pc != MODEL_DONE && !thread->asleep) {
                next = s;
                if (m->step(m, &next, t)) {
                    moved = true;
                    push(&q, &next);
                }
            }
            for (unsigned i = 0; i < thread->n_buffered; i++)
                if (may_flush(thread, i)) {
                    next = s;
                    flush(&next, t, i);
                    moved = true;
                    push(&q, &next);
                }
        }
        if (m->violation || moved)
            continue;
        if (!all_done)
            model_violation(m, "deadlock");
        else if (m->at_end)
            m->at_end(m, &s);
    }
    m->n_states = q.n_visited;
    free(q.visited);
    free(q.stack);
    return m->violation;
}

void model_violation(struct model *m, const char *what)
{
    if (!m->violation)
        m->violation = what;
}

uint8_t model_load(const struct model_state *s, unsigned t, unsigned cell)
{
    const struct model_thread *thread = &s->thread[t];
    for (unsigned i = thread->n_buffered; i-- > 0;)
        if (thread->buffer[i].cell == cell)
            return thread->buffer[i].value;
    return s->cell[cell];
}

bool model_store(struct model *m, struct model_state *s, unsigned t, unsigned cell, uint8_t value,
                 enum model_order order)
{
    struct model_thread *thread = &s->thread[t];
    if (m->buffers && order != SEQ_CST) {
        if (thread->n_buffered == MODEL_BUFFER)
            return false;
        thread->buffer[thread->n_buffered++] =
            (struct model_store){(uint8_t)cell, value, (uint8_t)order};
        return true;
    }
    if (thread->n_buffered)
        return false;
    s->cell[cell] = value;
    return true;
}

bool model_can_rmw(const struct model_state *s, unsigned t)
{
    return s->thread[t].n_buffered == 0;
}

uint8_t model_exchange(struct model_state *s, unsigned cell, uint8_t value)
{
    uint8_t old = s->cell[cell];
    s->cell[cell] = value;
    return old;
}

void model_sleep(struct model_state *s, unsigned t, unsigned cell, uint8_t expected)
{
    if (s->cell[cell] == expected)
        s->thread[t].asleep = (uint8_t)(cell + 1);
}

void model_sleep_on_two(struct model_state *s, unsigned t, unsigned cell, uint8_t expected,
                        unsigned also, uint8_t also_expected)
{
    if (s->cell[cell] != expected || s->cell[also] != also_expected)
        return;
    s->thread[t].asleep = (uint8_t)(cell + 1);
    s->thread[t].also_asleep = (uint8_t)(also + 1);
}

void model_wake(struct model_state *s, unsigned cell, bool all)
{
    for (unsigned t = 0; t < MODEL_THREADS; t++) {
        struct model_thread *thread = &s->thread[t];
        if (thread->asleep == cell + 1 || thread->also_asleep == cell + 1) {
            thread->asleep = thread->also_asleep = 0;
            if (!all)
                return;
        }
    }
}
