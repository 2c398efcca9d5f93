/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_LIST_H
#define GN_BASE_LIST_H

#include "base/checked.h"

/*
 * An intrusive, circular, doubly linked list. A head and an unlinked entry both point to
 * themselves.
 */
struct gn_list {
    struct gn_list *prev, *next;
};

#define GN_LIST_INIT(head)                                                                         \
    {                                                                                              \
        &(head), &(head)                                                                           \
    }

static inline void gn_list_init(struct gn_list *l)
{
    l->prev = l->next = l;
}

static inline bool gn_list_empty(const struct gn_list *l)
{
    return l->next == l;
}

static inline void gn_list_append(struct gn_list *head, struct gn_list *entry)
{
    entry->prev = head->prev;
    entry->next = head;
    head->prev->next = entry;
    head->prev = entry;
}

static inline void gn_list_remove(struct gn_list *entry)
{
    entry->prev->next = entry->next;
    entry->next->prev = entry->prev;
    gn_list_init(entry);
}

/* The list must not be empty. */
#define gn_list_first(head, type, member) gn_container_of((head)->next, type, member)
#define gn_list_last(head, type, member)  gn_container_of((head)->prev, type, member)
/* NULL for the head, which is in no entry. */
#define gn_list_entry(node, head, type, member)                                                    \
    ((node) == (head) ? NULL : gn_container_of(node, type, member))
/* The loop body may remove the current entry. */
#define gn_list_for_each(it, head, type, member)                                                   \
    for (type *it = gn_list_entry((head)->next, head, type, member), *it##_next;                   \
         it && (it##_next = gn_list_entry(it->member.next, head, type, member), 1);                \
         it = it##_next)

#endif
