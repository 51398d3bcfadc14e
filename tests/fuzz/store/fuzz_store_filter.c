/* SPDX-License-Identifier: Apache-2.0 */
/* Filters and orders: whatever is accepted must be SQL that prepares, with as
 * many values as it has marks.
 */
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct filter_field fields[] = {
    { "name", "s.name", FILTER_STRING },
    { "status", "s.status", FILTER_UPPER },
    { "type", "s.type", FILTER_LOWER },
    { "size", "s.size", FILTER_INT },
    { "is_active", "s.is_active", FILTER_BOOL },
    { "created_at", "s.created_at", FILTER_TIME },
    { "id", "s.id", FILTER_UUID },
};

static sqlite3 *database(void)
{
    static sqlite3 *db;

    if (!db
        && (sqlite3_open(":memory:", &db) != SQLITE_OK
            || sqlite3_exec(db,
                            "CREATE TABLE s (name, status, type, size, is_active,"
                            " created_at, id)",
                            NULL, NULL, NULL)
                   != SQLITE_OK))
        abort();
    return db;
}

static void check_sql(const char *clause, const char *text, size_t values)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;
    sqlite3_stmt *q;

    strbuf_addf(&sql, "SELECT 1 FROM s %s %s", clause, text);
    if (!strbuf_ok(&sql))
        return;
    if (sqlite3_prepare_v2(database(), sql.data, -1, &q, NULL) != SQLITE_OK
        || (size_t)sqlite3_bind_parameter_count(q) != values)
        __builtin_trap();
    (void)sqlite3_finalize(q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    static struct filter_values values;
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    values.count = 0;
    if (filter_compile(text, fields, AQ_COUNT(fields), &arena, &sql, &values, NULL) == 0)
        check_sql("WHERE", sql.data, values.count);
    strbuf_clear(&sql);
    if (order_compile(text, fields, AQ_COUNT(fields), &sql, NULL) == 0)
        check_sql("ORDER BY", sql.data, 0);
    free(text);
    return 0;
}
