/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - what a database is: engine, size, schema, who writes into it, rows */
#include "store/info.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "store/migrate.h"
#include "store/sql.h"
#include "store/transfer.h"
#include "store/uri.h"

static void info_hide_secrets(const char *where, char *ret, size_t size)
{
    AQ_CLEANUP(aq_freep) char *text = aq_strdup(where), *password = NULL, *key_password = NULL;

    if (sql_is_uri(where)) {
        uri_take_password(text, &password);
        uri_take_parameter(text, "sslpassword", &key_password);
    }
    (void)snprintf(ret, size, "%s", text);
}

static int info_read_engine(struct sql *db, struct store_info *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(db, db->ops->describe, &q, err);

    if (r == 0)
        r = sql_step(q, err);
    if (r > 0) {
        (void)snprintf(ret->engine, sizeof(ret->engine), "%s", sql_get_text(q));
        ret->bytes = sql_get_int(q);
    }
    return AQ_MIN(r, 0);
}

static int info_read_schema(struct sql *db, struct store_info *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int64_t last = 0;
    int r = sql_prepare_once(db, "SELECT number, name FROM schema_migrations ORDER BY number", &q,
                             err);

    while (r >= 0 && (r = sql_step(q, err)) > 0) {
        last = sql_get_int(q);
        (void)snprintf(ret->schema, sizeof(ret->schema), "%s", sql_get_text(q));
        ret->newer += last > (int64_t)store_migration_count;
    }
    ret->older = AQ_MAX((int64_t)store_migration_count - last, 0);
    return r;
}

static int info_read_lease(struct sql *db, struct store_info *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(db, "SELECT epoch, taken_at, address FROM manager_lease", &q, err);

    if (r == 0)
        r = sql_step(q, err);
    if (r > 0) {
        ret->epoch = sql_get_int(q);
        ret->taken_usec = sql_get_int(q);
        (void)snprintf(ret->manager, sizeof(ret->manager), "%s", sql_get_text(q));
    }
    return AQ_MIN(r, 0);
}

static int info_read_tables(struct sql *db, struct store_info *ret, struct aq_error *err)
{
    for (size_t i = 0; transfer_table_name(i) && i < STORE_INFO_TABLES_MAX; i++) {
        int r = transfer_count_table(db, transfer_table_name(i), &ret->tables[i].rows, err);

        if (r < 0)
            return r;
        ret->tables[i].name = transfer_table_name(i);
        ret->table_count = i + 1;
    }
    return 0;
}

int store_info_read(const char *where, struct store_info *ret, struct aq_error *err)
{
    const struct sql_conf conf = { .where = where,
                                   .read_only = true,
                                   .cache_bytes = (size_t)1 << 20 };
    AQ_CLEANUP(sql_closep) struct sql *db = NULL;
    const struct sql_ops *engine;
    int is_empty, r;

    *ret = (struct store_info){ .risks = STRBUF_INIT };
    info_hide_secrets(where, ret->where, sizeof(ret->where));
    if ((r = sql_find_engine(where, &engine, err)) < 0
        || (r = sql_open(engine, &conf, &db, err)) < 0 || (r = info_read_engine(db, ret, err)) < 0)
        return r;
    if (engine->is_server && (r = engine->list_risks(db, &ret->risks, err)) < 0)
        return r;
    is_empty = engine->is_empty(db, err);
    if (is_empty != 0)
        return AQ_MIN(is_empty, 0);
    if ((r = info_read_schema(db, ret, err)) < 0 || ret->newer || ret->older)
        return r;
    r = engine->is_server ? info_read_lease(db, ret, err) : 0;
    return r < 0 ? r : info_read_tables(db, ret, err);
}

void store_info_done(struct store_info *info)
{
    strbuf_done(&info->risks);
}

int store_vacuum(const struct store_conf *conf, struct aq_error *err)
{
    const struct sql_conf sql = { .where = conf->path };
    AQ_CLEANUP(store_closep) struct store *holder = NULL; /* of a file: nobody else has it then */
    AQ_CLEANUP(sql_closep) struct sql *db = NULL;
    const struct sql_ops *engine;
    int r = sql_find_engine(conf->path, &engine, err);

    if (r == 0 && !engine->is_server)
        r = store_open(conf, &holder, err);
    if (r == 0)
        r = sql_open(engine, &sql, &db, err);
    return r < 0 ? r : sql_run_script(db, engine->is_server ? "VACUUM (ANALYZE)" : "VACUUM", err);
}
