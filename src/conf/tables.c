/* SPDX-License-Identifier: Apache-2.0 */
/* tables.c - lists, pairs and tables as settings, inside this layer */
#include "conf/tables.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"

void conf_list_add(struct conf_list *list, const char *text, size_t len)
{
    char *copy = aq_strndup(text, len);

    vec_grow(&list->items, &list->cap, list->count + 1, sizeof(*list->items));
    list->items[list->count++] = copy;
}

void conf_list_add_words(struct conf_list *list, const char *text)
{
    static const char gaps[] = " \t,";
    size_t len;

    for (text += strspn(text, gaps); *text; text += strspn(text, gaps)) {
        len = strcspn(text, gaps);
        conf_list_add(list, text, len);
        text += len;
    }
}

void conf_list_done(struct conf_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct conf_list){ .items = NULL };
}

void conf_pairs_set(struct conf_pairs *pairs, const char *name, const char *value)
{
    struct conf_pair fresh = { aq_strdup(name), aq_strdup(value) };
    size_t i = 0;

    while (i < pairs->count && strcmp(pairs->items[i].name, name) != 0)
        i++;
    vec_grow(&pairs->items, &pairs->cap, pairs->count + 1, sizeof(*pairs->items));
    if (i < pairs->count) {
        free(pairs->items[i].name);
        free(pairs->items[i].value);
    } else {
        pairs->count++;
    }
    pairs->items[i] = fresh;
}

void conf_pairs_done(struct conf_pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        free(pairs->items[i].name);
        free(pairs->items[i].value);
    }
    free(pairs->items);
    *pairs = (struct conf_pairs){ .items = NULL };
}

void conf_tables_add(const struct conf_table *table, struct conf_tables *tables, const char *name)
{
    char *fresh;

    vec_grow(&tables->items, &tables->cap, tables->count + 1, table->size);
    fresh = (char *)tables->items + tables->count * table->size;
    memset(fresh, 0, table->size);
    if (table->is_named)
        *(char **)(void *)fresh = aq_strdup(name);
    tables->count++;
    for (const struct conf_item *item = table->items; item->type != CONF_END; item++)
        if (item->initial)
            (void)conf_set(item, item->initial, fresh, NULL);
}

void conf_tables_done(const struct conf_table *table, struct conf_tables *tables)
{
    for (size_t i = 0; i < tables->count; i++) {
        char *each = (char *)tables->items + i * table->size;

        conf_done(table->items, each);
        if (table->is_named)
            free(*(char **)(void *)each);
    }
    free(tables->items);
    *tables = (struct conf_tables){ .items = NULL };
}

const char *conf_item_follow(const struct conf_item *item, const char *text)
{
    size_t len = strlen(item->section);

    if (len > 0) {
        if (strncmp(text, item->section, len) != 0 || text[len] != '.')
            return NULL;
        text += len + 1;
    }
    len = strlen(item->key);
    if (strncmp(text, item->key, len) != 0 || (text[len] && !strchr("[.", text[len])))
        return NULL;
    return text + len;
}

/* The struct of the table that 'at' (behind the item's name) leads to; tables
 * come before their members, so it is the latest. *ret_rest is what follows.
 */
static void *tables_enter(const struct conf_item *item, void *target, const char *at,
                          const char **ret_rest)
{
    struct conf_tables *tables = (void *)((char *)target + item->offset);
    size_t len;

    if (tables->count == 0)
        return NULL;
    if (item->table->is_named) {
        const char *name = *(char **)(void *)((char *)tables->items
                                              + (tables->count - 1) * item->table->size);

        len = strlen(name);
        if (at[0] != '.' || strncmp(at + 1, name, len) != 0 || (at[len + 1] && at[len + 1] != '.'))
            return NULL;
        len++;
    } else {
        len = strcspn(at, "]") + 1;
        if (at[0] != '[' || len > strlen(at))
            return NULL;
    }
    *ret_rest = at + len + (at[len] == '.');
    return (char *)tables->items + (tables->count - 1) * item->table->size;
}

void conf_place_find(struct conf_place *place)
{
    const struct conf_item *item = place->items;

    while (item->type != CONF_END) {
        const char *at = item->type == CONF_TABLES ? conf_item_follow(item, place->section) : NULL;
        const char *rest;
        void *target = at && *at ? tables_enter(item, place->target, at, &rest) : NULL;

        if (!target) {
            item++;
            continue;
        }
        *place = (struct conf_place){
            .items = item->table->items, .table = item->table, .target = target, .section = rest
        };
        item = place->items;
    }
}
