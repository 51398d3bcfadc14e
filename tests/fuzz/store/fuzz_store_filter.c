/* SPDX-License-Identifier: Apache-2.0 */
/* Filters and orders: whatever is accepted must be SQL that prepares, with as many values as it
 * has marks, and finds a row where the same filter of rows in memory finds it.
 */
#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct kept {
    const char *name, *status, *type, *id;
    int64_t size, is_active, created_at;
};

#define IN_ROW(member) .offset = offsetof(struct kept, member)
static const struct filter_field fields[] = {
    { "name", "s.name", FILTER_STRING, IN_ROW(name) },
    { "status", "s.status", FILTER_UPPER, IN_ROW(status) },
    { "type", "s.type", FILTER_LOWER, IN_ROW(type) },
    { "size", "s.size", FILTER_INT, IN_ROW(size) },
    { "is_active", "s.is_active", FILTER_BOOL, IN_ROW(is_active) },
    { "created_at", "s.created_at", FILTER_TIME, IN_ROW(created_at) },
    { "id", "s.id", FILTER_UUID, IN_ROW(id) },
};

static const struct kept kept = { "aB%c_a", "ABAB", "abc",  "2de2b969-1d04-48a6-af16-0bc8adb3c831",
                                  5,        1,      1000000 };

static sqlite3 *database(void)
{
    static sqlite3 *db;

    if (!db
        && (sqlite3_open(":memory:", &db) != SQLITE_OK
            || sqlite3_exec(db,
                            "PRAGMA case_sensitive_like=ON;"
                            "CREATE TABLE s (name, status, type, size, is_active,"
                            " created_at, id);"
                            "INSERT INTO s VALUES ('aB%c_a', 'ABAB', 'abc', 5, 1, 1000000,"
                            " '2de2b969-1d04-48a6-af16-0bc8adb3c831')",
                            NULL, NULL, NULL)
                   != SQLITE_OK))
        abort();
    return db;
}

/* Does it find the row? */
static bool check_sql(const char *clause, const char *text, const struct filter_values *values)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;
    sqlite3_stmt *q;
    bool is_found;

    strbuf_addf(&sql, "SELECT 1 FROM s %s %s", clause, text);
    if (!strbuf_ok(&sql))
        abort();
    if (sqlite3_prepare_v2(database(), sql.data, -1, &q, NULL) != SQLITE_OK
        || (size_t)sqlite3_bind_parameter_count(q) != values->count)
        __builtin_trap();
    for (size_t i = 0; i < values->count; i++)
        if (values->items[i].text)
            (void)sqlite3_bind_text(q, (int)i + 1, values->items[i].text, -1, SQLITE_STATIC);
        else
            (void)sqlite3_bind_int64(q, (int)i + 1, values->items[i].number);
    is_found = sqlite3_step(q) == SQLITE_ROW;
    (void)sqlite3_finalize(q);
    return is_found;
}

static void check_match(const char *text, struct arena *arena, bool is_found)
{
    const struct filter_program *program;

    if (filter_read(text, fields, AQ_COUNT(fields), arena, &program, NULL) == 0
        && filter_match(program, &kept) != is_found)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    static struct filter_values values;
    struct order order;
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    values.count = 0;
    if (filter_compile(text, fields, AQ_COUNT(fields), &arena, &sql, &values, NULL) == 0)
        check_match(text, &arena, check_sql("WHERE", sql.data, &values));
    strbuf_clear(&sql);
    values.count = 0;
    if (order_read(text, fields, AQ_COUNT(fields), &order, NULL) == 0) {
        order_write(&order, &sql);
        if (!check_sql("ORDER BY", sql.data, &values) || order_compare(&order, &kept, &kept) != 0)
            __builtin_trap();
    }
    free(text);
    return 0;
}
