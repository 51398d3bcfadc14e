/* SPDX-License-Identifier: Apache-2.0 */
/* Lists whose items are notified: callbacks remove, add and free while a walk is under way. */
#include "testing.h"

#include "base/list.h"

#define ITEMS 4

/* Each item is on the heap and freed when it is removed, so that the sanitizer sees a stale one. */
struct item {
    struct list link;
    struct owner *owner;
    char name;
};

struct owner {
    struct list items;
    void (*act)(struct item *item); /* called for each that a walk visits */
};

static char visited[32]; /* names, in the order of the visits */
static struct item *by_name[128];

static struct item *item_add(struct owner *owner, char name)
{
    struct item *item = calloc(1, sizeof(*item));

    assert_non_null(item);
    item->owner = owner;
    item->name = name;
    list_add(&owner->items, &item->link);
    by_name[(int)name] = item;
    return item;
}

static void item_free(struct item *item)
{
    if (!item)
        return;
    by_name[(int)item->name] = NULL;
    list_remove(&item->link);
    free(item);
}

static struct owner *owner_new(void (*act)(struct item *item))
{
    struct owner *owner = calloc(1, sizeof(*owner));

    assert_non_null(owner);
    list_init(&owner->items);
    owner->act = act;
    visited[0] = '\0';
    for (int i = 0; i < ITEMS; i++)
        item_add(owner, (char)('a' + i));
    return owner;
}

static void owner_free(struct owner *owner)
{
    while (!list_is_empty(&owner->items))
        item_free(LIST_ENTRY(owner->items.next, struct item, link));
    free(owner);
}

static void owner_tell(struct owner *owner)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *link;

    list_cursor_begin(&cursor, &owner->items);
    while ((link = list_cursor_next(&cursor))) {
        struct item *item = LIST_ENTRY(link, struct item, link);
        size_t len = strlen(visited);

        assert_true(len + 1 < sizeof(visited));
        visited[len] = item->name;
        visited[len + 1] = '\0';
        item->owner->act(item);
    }
}

/* ---- what callbacks do ---- */

static void act_nothing(struct item *item)
{
    (void)item;
}

static void act_leave(struct item *item)
{
    item_free(item);
}

static void act_remove_next(struct item *item)
{
    if (item->link.next != &item->owner->items)
        item_free(LIST_ENTRY(item->link.next, struct item, link));
}

static void act_remove_next_and_leave(struct item *item)
{
    act_remove_next(item);
    item_free(item);
}

static void act_remove_last(struct item *item)
{
    if (item->name == 'a')
        item_free(by_name['d']);
}

static void act_remove_two_behind(struct item *item)
{
    if (item->name == 'a') {
        item_free(by_name['b']);
        item_free(by_name['c']);
    }
}

static void act_remove_before(struct item *item)
{
    if (item->name == 'c')
        item_free(by_name['a']);
}

static void act_remove_all(struct item *item)
{
    struct owner *owner = item->owner;

    while (!list_is_empty(&owner->items))
        item_free(LIST_ENTRY(owner->items.next, struct item, link));
}

static void act_free_owner(struct item *item)
{
    owner_free(item->owner);
}

static void act_add(struct item *item)
{
    item_add(item->owner, (char)(item->name + 'p' - 'a'));
}

static void act_replace_all(struct item *item)
{
    struct owner *owner = item->owner;

    act_remove_all(item);
    item_add(owner, 'x');
}

static void act_remove_last_and_add(struct item *item)
{
    if (item->name == 'c') {
        item_free(by_name['d']);
        item_add(item->owner, 'x');
    }
}

/* The current one would come again for ever if it were visited again. */
static void act_queue_again(struct item *item)
{
    list_remove(&item->link);
    list_add(&item->owner->items, &item->link);
}

static void act_move_next_to_the_end(struct item *item)
{
    struct list *next = item->link.next;

    if (item->name == 'a') {
        list_remove(next);
        list_add(&item->owner->items, next);
    }
}

static void act_walk_within(struct item *item)
{
    struct owner *owner = item->owner;

    owner->act = act_leave;
    owner_tell(owner);
}

/* ---- the walk ---- */

static const struct {
    const char *name, *visited, *left;
    void (*act)(struct item *item);
} cases[] = {
    { "nothing", "abcd", "abcd", act_nothing },
    { "leave", "abcd", "", act_leave },
    { "remove next", "ac", "ac", act_remove_next },
    { "remove next and leave", "ac", "", act_remove_next_and_leave },
    { "remove last", "abc", "abc", act_remove_last },
    { "remove two behind", "ad", "ad", act_remove_two_behind },
    { "remove before", "abcd", "bcd", act_remove_before },
    { "remove all", "a", "", act_remove_all },
    { "add", "abcd", "abcdpqrs", act_add },
    { "replace all", "a", "x", act_replace_all },
    { "remove last and add", "abc", "abcx", act_remove_last_and_add },
    { "queue again", "abcd", "abcd", act_queue_again },
    { "move next to the end", "acd", "acdb", act_move_next_to_the_end },
    { "walk within", "aabcd", "", act_walk_within },
};

static void test_callbacks_change_the_list(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        struct owner *owner = owner_new(cases[i].act);
        char left[32] = "";

        owner_tell(owner);
        LIST_FOREACH(link, &owner->items)
            (void)snprintf(left + strlen(left), sizeof(left) - strlen(left), "%c",
                           LIST_ENTRY(link, struct item, link)->name);
        assert_row(strcmp(visited, cases[i].visited) == 0, "%s: visited %s", cases[i].name,
                   visited);
        assert_row(strcmp(left, cases[i].left) == 0, "%s: left %s", cases[i].name, left);
        assert_null(list_cursors);
        owner_free(owner);
    }
}

static void test_a_callback_frees_the_head(void **state)
{
    (void)state;
    owner_tell(owner_new(act_free_owner));
    assert_string_equal(visited, "a");
    assert_null(list_cursors);
}

static void test_an_empty_list(void **state)
{
    struct owner *owner = owner_new(act_leave);

    (void)state;
    owner_tell(owner);
    visited[0] = '\0';
    owner_tell(owner);
    assert_string_equal(visited, "");
    owner_free(owner);
}

static char walk_to_first(struct owner *owner)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;

    list_cursor_begin(&cursor, &owner->items);
    return LIST_ENTRY(list_cursor_next(&cursor), struct item, link)->name;
}

static void test_a_walk_that_is_left_early(void **state)
{
    struct owner *owner = owner_new(act_nothing);

    (void)state;
    assert_int_equal(walk_to_first(owner), 'a');
    assert_null(list_cursors);
    owner_tell(owner);
    assert_string_equal(visited, "abcd");
    owner_free(owner);
}

/* ---- taking ---- */

static void test_take_and_move(void **state)
{
    struct owner *owner = owner_new(NULL);
    struct list own, *link;

    (void)state;
    list_init(&own);
    list_move(&owner->items, &own);
    assert_true(list_is_empty(&owner->items));
    link = list_take(&own);
    assert_ptr_equal(link, &by_name['a']->link);
    assert_true(list_is_empty(link));
    item_free(by_name['a']);
    item_free(by_name['c']); /* from the middle of what was moved */
    free(owner);
    assert_ptr_equal(list_take(&own), &by_name['b']->link);
    assert_ptr_equal(list_take(&own), &by_name['d']->link);
    assert_null(list_take(&own));
    item_free(by_name['b']);
    item_free(by_name['d']);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_callbacks_change_the_list),
        cmocka_unit_test(test_a_callback_frees_the_head),
        cmocka_unit_test(test_an_empty_list),
        cmocka_unit_test(test_a_walk_that_is_left_early),
        cmocka_unit_test(test_take_and_move),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
