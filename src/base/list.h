/* SPDX-License-Identifier: Apache-2.0 */
/* list.h - intrusive doubly linked lists
 *
 * A 'struct list' is both the head and the link inside an element. An
 * unlinked element points to itself.
 */
#ifndef AQ_BASE_LIST_H
#define AQ_BASE_LIST_H

#include <stdbool.h>

#include "base/cleanup.h"

struct list {
    struct list *next, *prev;
};

static inline void list_init(struct list *list)
{
    list->next = list->prev = list;
}

static inline bool list_is_empty(const struct list *list)
{
    return list->next == list;
}

/* Put 'item' before 'place'; with the head as 'place' that is the end. */
static inline void list_add(struct list *place, struct list *item)
{
    item->prev = place->prev;
    item->next = place;
    place->prev->next = item;
    place->prev = item;
}

static inline void list_remove(struct list *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    list_init(item);
}

/* Move all items of 'from' to the end of 'to'. */
static inline void list_move(struct list *to, struct list *from)
{
    if (list_is_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

#define LIST_ENTRY(link, type, member) AQ_CONTAINER_OF(link, type, member)

/* The loop body may remove 'it' itself, nothing else. */
#define LIST_FOREACH(it, head)                                                \
    for (struct list *it = (head)->next, *it##_next = it->next; it != (head); \
         it = it##_next, it##_next = it->next)

#endif
