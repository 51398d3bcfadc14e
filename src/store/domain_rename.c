/* SPDX-License-Identifier: Apache-2.0 */
/* domain_rename.c - a domain gets another name, in every row that holds it */
#include <errno.h>

#include "store/query.h"
#include "store/transaction.h"

/* ?1 is the new name, ?2 the old one; each statement has both. The new row was made before, as
 * other rows refer to it; the old one goes after them. Rows of the past change, too: a later domain
 * may get the old name.
 */
static const char *const rename_statements[] = {
    "UPDATE projects SET domain = ?1 WHERE domain = ?2",
    "UPDATE users SET domain = ?1 WHERE domain = ?2",
    "UPDATE sessions SET domain = ?1 WHERE domain = ?2",
    "UPDATE arrays SET domain = ?1 WHERE domain = ?2",
    "UPDATE session_totals SET domain = ?1 WHERE domain = ?2",
    "UPDATE removed_usage SET domain = ?1 WHERE domain = ?2",
    "UPDATE session_templates SET domain = ?1 WHERE domain = ?2",
    "UPDATE resource_group_access SET whom = ?1 WHERE kind = 'domain' AND whom = ?2",
    "UPDATE model_services SET domain = ?1 WHERE domain = ?2",
    "UPDATE dotfiles SET owner = ?1 WHERE kind = 'domain' AND owner = ?2",
    "UPDATE audit_log SET domain = ?1 WHERE domain = ?2",
    "UPDATE audit_log SET object_domain = ?1 WHERE object_domain = ?2",
    "DELETE FROM domains WHERE name = ?2 AND name <> ?1",
};

enum domain_state { DOMAIN_ABSENT, DOMAIN_PRESENT, DOMAIN_PURGED };

static int domain_find_state(struct store_tx *tx, const char *name, enum domain_state *ret,
                             struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db, "SELECT is_purged FROM domains WHERE name = ?", &q, err);

    *ret = DOMAIN_ABSENT;
    if (r < 0)
        return r;
    sql_put_text(q, name);
    if ((r = sql_step(q, err)) > 0)
        *ret = sql_get_int(q) ? DOMAIN_PURGED : DOMAIN_PRESENT;
    return AQ_MIN(r, 0);
}

int store_check_domain(struct store_tx *tx, const char *name, struct aq_error *err)
{
    enum domain_state state;
    int r = domain_find_state(tx, name, &state, err);

    if (r == 0 && state != DOMAIN_PRESENT)
        r = aq_fail_field(err, EBUSY, "domain",
                          "the domain '%.64s' was renamed or removed; look up its name and repeat "
                          "the request",
                          name);
    return r;
}

static int domain_check_names(struct store_tx *tx, const char *from, const char *to,
                              struct aq_error *err)
{
    enum domain_state old, new;
    int r = domain_find_state(tx, from, &old, err);

    if (r == 0)
        r = domain_find_state(tx, to, &new, err);
    if (r < 0)
        return r;
    if (old != DOMAIN_PRESENT)
        return aq_fail(err, ENOENT, "there is no domain '%.64s'", from);
    if (new == DOMAIN_PRESENT)
        return aq_fail_field(err, EEXIST, "name",
                             "a domain '%.64s' exists already; choose another name", to);
    if (new == DOMAIN_PURGED)
        return aq_fail_field(err, EEXIST, "name",
                             "sessions and usage of a purged domain '%.64s' are still on record; "
                             "choose another name",
                             to);
    return 0;
}

/* Insert a copy of the old row under the new name. */
static int domain_copy_row(struct store_tx *tx, const char *from, const char *to,
                           struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf columns = STRBUF_INIT, sql = STRBUF_INIT;
    char name[FIELD_NAME_MAX];
    struct sql_stmt *q;
    int r;

    for (const struct field *field = domain_entity.fields; field->names; field++)
        if (!(field->flags & FIELD_KEY))
            strbuf_addf(&columns, ", %s", field_column(field, name));
    strbuf_addf(&sql,
                "INSERT INTO domains (name%s, created_at, modified_at) SELECT CAST(?1 AS TEXT)%s,"
                " created_at, modified_at FROM domains WHERE name = ?2",
                columns.data, columns.data);
    if ((r = sql_prepare_as(tx->db, rename_statements, sql.data, &q, err)) < 0)
        return r;
    sql_put_text(q, to);
    sql_put_text(q, from);
    return sql_run(q, err);
}

int domain_rename(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    const char *from = e->domain_renamed.from, *to = e->domain_renamed.to;
    int r = domain_check_names(tx, from, to, err);

    if (r == 0)
        r = domain_copy_row(tx, from, to, err);
    for (size_t i = 0; r == 0 && i < AQ_COUNT(rename_statements); i++) {
        struct sql_stmt *q;

        if ((r = sql_prepare(tx->db, rename_statements[i], &q, err)) < 0)
            break;
        sql_put_text(q, to);
        sql_put_text(q, from);
        r = sql_run(q, err);
    }
    return r;
}
