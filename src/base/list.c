/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - walks that a removal corrects: see list.h */
#include "base/list.h"

#include <assert.h>

_Thread_local struct list_cursor *list_cursors;

void list_cursor_begin(struct list_cursor *cursor, const struct list *head)
{
    bool is_empty = list_is_empty(head);

    cursor->next = is_empty ? NULL : head->next;
    cursor->last = is_empty ? NULL : head->prev;
    cursor->outer = list_cursors;
    list_cursors = cursor;
}

struct list *list_cursor_next(struct list_cursor *cursor)
{
    struct list *item = cursor->next;

    /* The head is not read: a callback may have freed it. */
    if (item)
        cursor->next = item == cursor->last ? NULL : item->next;
    return item;
}

void list_cursor_end(struct list_cursor *cursor)
{
    assert(list_cursors == cursor);
    list_cursors = cursor->outer;
}

void list_cursors_skip(const struct list *item)
{
    for (struct list_cursor *cursor = list_cursors; cursor; cursor = cursor->outer) {
        if (cursor->next == item)
            cursor->next = item == cursor->last ? NULL : item->next;
        if (cursor->last == item)
            cursor->last = item->prev;
    }
}
