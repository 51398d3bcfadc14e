/* SPDX-License-Identifier: Apache-2.0 */
/* tables.h - lists, pairs and tables as settings, inside this layer */
#ifndef AQ_CONF_TABLES_H
#define AQ_CONF_TABLES_H

#include "conf/conf.h"

/* Append one text. */
void conf_list_add(struct conf_list *list, const char *text, size_t len);
/* Append the words of a text, separated by blanks or commas. */
void conf_list_add_words(struct conf_list *list, const char *text);
/* Append or replace. */
void conf_pairs_set(struct conf_pairs *pairs, const char *name, const char *value);

/* A further struct, with its defaults, for a named table with that name. */
void conf_tables_add(const struct conf_table *table, struct conf_tables *tables, const char *name);

void conf_list_done(struct conf_list *list);
void conf_pairs_done(struct conf_pairs *pairs);
void conf_tables_done(const struct conf_table *table, struct conf_tables *tables);

/* What a value at 'section', 'key' of a file belongs to: the items to find it
 * in, the struct that they describe and the section within it. Descends
 * through tables that are there already.
 */
struct conf_place {
    const struct conf_item *items;
    const struct conf_table *table; /* NULL at the top */
    void *target;
    const char *section;
};
void conf_place_find(struct conf_place *place);

/* Does 'text' begin with the item's name? Returns what follows it, or NULL. */
const char *conf_item_follow(const struct conf_item *item, const char *text);

#endif
