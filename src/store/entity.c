/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of entities in SQL. */
#include "store/entity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

const struct entity_table store_domains = {
    .entity = &domain_entity,
    .name = "domains",
    .present = "present_domains",
    .revive = ", is_purged = 0",
    .has_modified = true,
};
const struct entity_table store_keypair_policies = {
    .entity = &keypair_policy_entity,
    .name = "keypair_policies",
    .present = "keypair_policies",
    .revive = "",
};
const struct entity_table store_keypairs = {
    .entity = &keypair_entity,
    .name = "keypairs",
    .present = "keypairs",
    .revive = "",
    .has_modified = true,
    .sealed = "keypair",
};
const struct entity_table store_projects = {
    .entity = &project_entity,
    .name = "projects",
    .present = "present_projects",
    .revive = ", purged_name = NULL",
    .has_modified = true,
};
const struct entity_table store_resource_groups = {
    .entity = &resource_group_entity,
    .name = "resource_groups",
    .present = "resource_groups",
    .revive = "",
};

const struct entity_table store_users = {
    .entity = &user_entity,
    .name = "users",
    .present = "present_users",
    .revive = ", purged_email = NULL",
    .has_modified = true,
};

/* Members without a column are rows of another table. */
static bool entity_has_column(const struct field *field)
{
    return field->type != FIELD_UUIDS;
}

/* ---- secrets ---- */

/* The name of the row that its secrets are sealed for. */
static void entity_name_sealed(const struct entity_table *table, const void *row,
                               struct strbuf *ret)
{
    const struct field *key = table->entity->fields;

    strbuf_addf(ret, "%s:%s", table->sealed, (const char *)row + key->offset);
}

static int entity_reveal(struct store_tx *tx, struct row *row, const struct entity_table *table,
                         const struct field *field, void *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf name = STRBUF_INIT;
    char *secret = (char *)ret + field->offset, column[FIELD_NAME_MAX];
    size_t len;
    const void *sealed = sql_get_blob(row->q, &len);

    if (len < SEAL_OVERHEAD || len - SEAL_OVERHEAD > (size_t)field->max)
        return aq_fail(err, EUCLEAN, "the %s of %s %s is damaged", field_column(field, column),
                       table->sealed, (const char *)ret + table->entity->fields->offset);
    entity_name_sealed(table, ret, &name);
    secret[len - SEAL_OVERHEAD] = '\0';
    return seal_reveal(tx->seal, name.data, sealed, len, secret, err);
}

/* ---- writing ---- */

/* A parameter; of a secret what is stored if it is null. */
static void entity_add_place(struct strbuf *places, const struct entity_table *table,
                             const struct field *field)
{
    char key[FIELD_NAME_MAX], column[FIELD_NAME_MAX];

    if (field->type == FIELD_SEALED)
        strbuf_addf(places, "COALESCE(?, (SELECT s.%s FROM %s s WHERE s.%s = ?1)),",
                    field_column(field, column), table->name,
                    field_column(table->entity->fields, key));
    else
        strbuf_adds(places, "?,");
}

/* "INSERT INTO ... ON CONFLICT (KEY) DO UPDATE SET ..." with a parameter for each column. */
static void entity_build_save(struct strbuf *sql, const struct entity_table *table)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf places = STRBUF_INIT, keys = STRBUF_INIT,
                                           changes = STRBUF_INIT;
    char name[FIELD_NAME_MAX];

    strbuf_addf(sql, "INSERT INTO %s (", table->name);
    for (const struct field *field = table->entity->fields; field->names; field++) {
        const char *column = field_column(field, name);

        if (!entity_has_column(field))
            continue;
        strbuf_addf(sql, "%s, ", column);
        entity_add_place(&places, table, field);
        if (field->flags & FIELD_KEY)
            strbuf_addf(&keys, "%s%s", keys.len ? ", " : "", column);
        else
            strbuf_addf(&changes, "%s%s = excluded.%s", changes.len ? ", " : "", column, column);
    }
    strbuf_addf(sql, "created_at%s) VALUES (%s?%s) ON CONFLICT (%s) DO UPDATE SET %s%s%s",
                table->has_modified ? ", modified_at" : "", places.data,
                table->has_modified ? ",?" : "", keys.data, changes.data,
                table->has_modified ? ", modified_at = excluded.modified_at" : "", table->revive);
}

/* The text is made once for each connection: the statement is kept under the table's address. */
static int entity_prepare_save(struct sql *db, const struct entity_table *table,
                               struct sql_stmt **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;

    if (!sql_has_kept(db, table))
        entity_build_save(&sql, table);
    return sql_prepare_as(db, table, sql.data, ret, err);
}

/* Texts of one row that SQL borrows until the statement was run. */
struct entity_texts {
    void *items[ENTITY_FIELDS_MAX]; /* slots as JSON, sealed secrets */
    char ids[ENTITY_FIELDS_MAX][UUID_TEXT_MAX];
    size_t count, id_count;
};

static void entity_put(struct sql_stmt *q, const struct field *field, const void *at,
                       struct entity_texts *texts)
{
    switch (field->type) {
    case FIELD_BOOL:
        sql_put_int(q, *(const bool *)at);
        break;
    case FIELD_INT32:
        sql_put_int(q, *(const int *)at);
        break;
    case FIELD_INT:
    case FIELD_USEC:
        sql_put_int(q, *(const int64_t *)at);
        break;
    case FIELD_UUID:
        sql_put_uuid(q, at, texts->ids[texts->id_count++]);
        break;
    case FIELD_CHARS:
        sql_put_text(q, at);
        break;
    case FIELD_ENUM:
        sql_put_text(q, field->values[*(const int *)at]);
        break;
    case FIELD_SLOTS:
        texts->items[texts->count] = slots_to_column(at);
        sql_put_text(q, texts->items[texts->count++]);
        break;
    default:
        sql_put_text(q, *(const char *const *)at);
        break;
    }
}

/* An empty one is null. */
static int entity_put_sealed(struct store_tx *tx, struct sql_stmt *q,
                             const struct entity_table *table, const void *row,
                             const struct field *field, struct entity_texts *texts,
                             struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf name = STRBUF_INIT;
    const char *secret = (const char *)row + field->offset;
    size_t len = strlen(secret);
    unsigned char *sealed;
    int r;

    if (len == 0) {
        sql_put_null(q);
        return 0;
    }
    texts->items[texts->count++] = sealed = aq_alloc(len + SEAL_OVERHEAD);
    entity_name_sealed(table, row, &name);
    if ((r = seal_close(tx->seal, name.data, secret, len, sealed, err)) == 0)
        sql_put_blob(q, sealed, len + SEAL_OVERHEAD);
    return r;
}

int entity_save(struct store_tx *tx, const struct entity_table *table, const void *row,
                int64_t at_usec, struct aq_error *err)
{
    struct entity_texts texts = { .count = 0 };
    struct sql_stmt *q;
    int r = entity_prepare_save(tx->db, table, &q, err);

    if (r < 0)
        return r;
    for (const struct field *field = table->entity->fields; r == 0 && field->names; field++)
        if (field->type == FIELD_SEALED)
            r = entity_put_sealed(tx, q, table, row, field, &texts, err);
        else if (entity_has_column(field))
            entity_put(q, field, (const char *)row + field->offset, &texts);
    sql_put_int(q, at_usec);
    if (table->has_modified)
        sql_put_int(q, at_usec);
    if (r == 0)
        r = sql_run(q, err);
    else
        sql_end(q);
    for (size_t i = 0; i < texts.count; i++)
        free(texts.items[i]);
    return r;
}

/* ---- reading ---- */

/* "p.id, p.name, ..." */
static void entity_add_columns(struct strbuf *sql, const struct entity *entity, const char *alias)
{
    char name[FIELD_NAME_MAX];

    for (const struct field *field = entity->fields; field->names; field++)
        if (field->type != FIELD_SEALED && entity_has_column(field))
            strbuf_addf(sql, "%s%s.%s", field == entity->fields ? "" : ", ", alias,
                        field_column(field, name));
}

void entity_add_select(struct strbuf *sql, const struct entity_table *table)
{
    const char *before = " ORDER BY ";
    char name[FIELD_NAME_MAX];

    strbuf_adds(sql, "SELECT ");
    entity_add_columns(sql, table->entity, "e");
    for (const struct field *field = table->entity->fields; field->names; field++)
        if (field->type == FIELD_SEALED)
            strbuf_addf(sql, ", e.%s", field_column(field, name));
    strbuf_addf(sql, ", e.created_at FROM %s e", table->present);
    for (const struct field *field = table->entity->fields; field->names; field++)
        if (field->flags & FIELD_KEY) {
            strbuf_addf(sql, "%se.%s", before, field_column(field, name));
            before = ", ";
        }
}

/* In any case of its letters. */
static void entity_read_enum(struct row *row, const struct field *field, int *ret)
{
    const char *text = sql_get_text(row->q);
    int i = 0;

    while (text && field->values[i] && strcasecmp(field->values[i], text) != 0)
        i++;
    if (text && field->values[i])
        *ret = i;
    else
        row->is_damaged = true;
}

void entity_read(struct row *row, const struct entity *entity, void *ret)
{
    memset(ret, 0, entity->size);
    for (const struct field *field = entity->fields; field->names; field++) {
        void *at = (char *)ret + field->offset;

        switch (field->type) {
        case FIELD_BOOL:
            *(bool *)at = sql_get_int(row->q) != 0;
            break;
        case FIELD_INT32:
            *(int *)at = (int)sql_get_int(row->q);
            break;
        case FIELD_INT:
        case FIELD_USEC:
            *(int64_t *)at = sql_get_int(row->q);
            break;
        case FIELD_UUID:
            *(struct uuid *)at = sql_get_uuid(row->q);
            break;
        case FIELD_SLOTS:
            row_slots(row, at);
            break;
        case FIELD_CHARS:
            row_bounded(row, at, (size_t)field->max + 1);
            break;
        case FIELD_ENUM:
            entity_read_enum(row, field, at);
            break;
        case FIELD_SEALED:
        case FIELD_UUIDS:
            break;
        default:
            *(char **)at = row_text(row);
            break;
        }
    }
}

int entity_load(struct store_tx *tx, struct row *row, const struct entity_table *table, void *ret,
                struct aq_error *err)
{
    int r = 0;

    entity_read(row, table->entity, ret);
    for (const struct field *field = table->entity->fields; r == 0 && field->names; field++)
        if (field->type == FIELD_SEALED)
            r = entity_reveal(tx, row, table, field, ret, err);
    return r;
}

/* ---- lists ---- */

static enum filter_type entity_filter_type(const struct field *field)
{
    switch (field->type) {
    case FIELD_BOOL:
        return FILTER_BOOL;
    case FIELD_INT32:
    case FIELD_INT:
        return FILTER_INT;
    case FIELD_UUID:
        return FILTER_UUID;
    case FIELD_ENUM:
        return FILTER_LOWER;
    default:
        return FILTER_STRING;
    }
}

/* "alias.column" */
static char *entity_qualify(const char *alias, const char *column)
{
    struct strbuf text = STRBUF_INIT;

    strbuf_addf(&text, "%s.%s", alias, column);
    return strbuf_steal(&text);
}

void entity_complete_list(struct list_table *list, const struct entity *entity, const char *alias,
                          const struct filter_field *more, size_t more_count)
{
    struct filter_field *fields = aq_alloc_array(ENTITY_FIELDS_MAX + more_count, sizeof(*fields));
    struct strbuf columns = STRBUF_INIT;
    char name[FIELD_NAME_MAX];
    size_t count = 0;

    for (const struct field *field = entity->fields; field->names; field++)
        if (field->flags & FIELD_FILTER)
            fields[count++] = (struct filter_field){
                .name = aq_strdup(field_backendai_name(field, name)),
                .column = entity_qualify(alias, field_column(field, name)),
                .type = entity_filter_type(field),
            };
    memcpy(&fields[count], more, more_count * sizeof(*more));
    entity_add_columns(&columns, entity, alias);
    strbuf_addf(&columns, ", %s.created_at", alias);
    if (list->columns)
        strbuf_addf(&columns, ", %s", list->columns);
    list->columns = strbuf_steal(&columns);
    list->fields = fields;
    list->field_count = count + more_count;
}
