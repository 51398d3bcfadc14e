/* SPDX-License-Identifier: Apache-2.0 */
/* list.h - intrusive doubly linked lists
 *
 * A 'struct list' is both the head and the link inside an element. An
 * unlinked element points to itself.
 *
 * Three ways to go through a list, by what the body may do to it:
 *
 * - LIST_FOREACH: the body may remove the current item. It must not call
 *   anything that removes or adds another one, so it calls no callback.
 * - list_take() until it returns NULL: each item is unlinked before it is used.
 *   For one-time notifications. If a callback may add to the list or free its
 *   head, list_move() the items to a head on the stack first.
 * - struct list_cursor: items stay, and callbacks may do anything to the list.
 *   For subscriptions and whatever else is notified more than once.
 *
 * An item leaves a list by list_remove() or list_take() before its memory is
 * freed, also when its head is freed with all items: that is what walks rely on.
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

/* A walk over a list whose items and head may go at any time:
 *
 *     AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
 *
 *     list_cursor_begin(&cursor, &owner->items);
 *     while ((link = list_cursor_next(&cursor)))
 *         ... call the callback of the item ...
 *
 * It visits each item once that was in the list at its beginning and still is
 * when its turn comes; items added meanwhile are left out, also one that was
 * removed and added again. The callback may remove any item, add items, walk the
 * same list and free the head once its items are removed. Items are removed by
 * the thread that walks. The struct lives on the stack and begins before any
 * return of its function, as list_cursor_end() reads it: walks end in the reverse
 * order of their beginnings.
 */
struct list_cursor {
    struct list *next;         /* NULL = the end */
    struct list *last;         /* nothing behind it is visited */
    struct list_cursor *outer; /* the walk of this thread that was under way before */
};

/* The innermost walk of this thread; list_remove() corrects all. */
extern _Thread_local struct list_cursor *list_cursors;

void list_cursor_begin(struct list_cursor *cursor, const struct list *head);
struct list *list_cursor_next(struct list_cursor *cursor); /* NULL at the end */
void list_cursor_end(struct list_cursor *cursor);

/* Let no walk come to 'item', which is about to be unlinked. */
void list_cursors_skip(const struct list *item);

static inline void list_remove(struct list *item)
{
    if (list_cursors)
        list_cursors_skip(item);
    item->prev->next = item->next;
    item->next->prev = item->prev;
    list_init(item);
}

/* Unlink the first item; NULL if there is none. */
static inline struct list *list_take(struct list *head)
{
    struct list *item = head->next;

    if (item == head)
        return NULL;
    list_remove(item);
    return item;
}

/* Move all items, in their order, to the end of 'to'. */
static inline void list_move(struct list *from, struct list *to)
{
    struct list *item;

    while ((item = list_take(from)))
        list_add(to, item);
}

#define LIST_ENTRY(link, type, member) AQ_CONTAINER_OF(link, type, member)

/* The loop body may remove 'it' itself, nothing else; see the rules above. */
#define LIST_FOREACH(it, head)                                                \
    for (struct list *it = (head)->next, *it##_next = it->next; it != (head); \
         it = it##_next, it##_next = it->next)

#endif
