/* SPDX-License-Identifier: Apache-2.0 */
/* entity.h - rows of entities (model/entity.h) in SQL, by the tables of their members
 *
 * A table has a column for each member, and 'created_at'. Columns are named, bound and read in the
 * order of entity.fields. Those of secrets are sealed (store/seal.h), and only read by
 * entity_load().
 */
#ifndef AQ_STORE_ENTITY_H
#define AQ_STORE_ENTITY_H

#include "model/entity.h"
#include "store/list_query.h"
#include "store/transaction.h"

struct entity_table {
    const struct entity *entity;
    const char *name;    /* of the table */
    const char *present; /* the table, or a view of its rows that are not purged: read from there */
    const char *revive;  /* ", COLUMN = ..." of a row that is written again; "" = nothing */
    bool has_modified;   /* a column 'modified_at' */
    const char *sealed;  /* what its secrets are sealed for, before ':' and the key, which is the
                            first member, FIELD_CHARS; NULL = it has none */
};

extern const struct entity_table store_domains, store_keypair_policies, store_keypairs,
    store_projects, store_resource_groups, store_users;

/* Insert the row, or update the one that has its key; an empty secret keeps the one that is stored:
 * -EINVAL if none is.
 */
int entity_save(struct store_tx *tx, const struct entity_table *table, const void *row,
                int64_t at_usec, struct aq_error *err);

/* A query of all rows in the order of their keys, for entity_load(); 'created_at' follows the
 * columns that it reads.
 */
void entity_add_select(struct strbuf *sql, const struct entity_table *table);

/* Take these columns; '*ret' is overwritten. */
void entity_read(struct row *row, const struct entity *entity, void *ret);
/* The same with secrets; -EUCLEAN, -EKEYREJECTED as seal_reveal(). */
int entity_load(struct store_tx *tx, struct row *row, const struct entity_table *table, void *ret,
                struct aq_error *err);

/* Complete a table of lists whose rows begin with the entity and its 'created_at': columns, to
 * which those of list->columns are added unless it is NULL, and fields for filters, which are the
 * marked members under the names of Backend.AI, and 'more'. Once per process; what is made for it
 * is never freed.
 */
void entity_complete_list(struct list_table *list, const struct entity *entity, const char *alias,
                          const struct filter_field *more, size_t more_count);

#endif
