/* SPDX-License-Identifier: Apache-2.0 */
/* The filter and order mini language: what is accepted becomes which SQL. */
#include "testing.h"

#include <errno.h>
#include <sqlite3.h>

#include "store/filter.h"

static const struct filter_field fields[] = {
    { "name", "s.name", FILTER_STRING },
    { "status", "s.status", FILTER_UPPER },
    { "type", "s.type", FILTER_LOWER },
    { "size", "s.size", FILTER_INT },
    { "is_active", "s.active", FILTER_BOOL },
    { "created_at", "s.created", FILTER_TIME },
    { "id", "s.id", FILTER_UUID },
};

/* Values as text: 'text' or number, with spaces between. */
static const struct {
    const char *filter, *sql, *values;
} accepted[] = {
    { "name == \"a\"", "((s.name = ?))", "'a' " },
    { "name==\"a\"&size>=3", "((s.name = ?) AND (s.size >= ?))", "'a' 3 " },
    { "name != \"it's\"", "((s.name <> ?))", "'it's' " },
    { "name == \"say \\\"hi\\\" \\\\\"", "((s.name = ?))", "'say \"hi\" \\' " },
    { "name == \"\"", "((s.name = ?))", "'' " },
    { "name is null", "((s.name IS NULL))", "" },
    { "name == null", "((s.name IS NULL))", "" },
    { "name isnot null", "((s.name IS NOT NULL))", "" },
    { "is_active is true", "((s.active = ?))", "1 " },
    { "is_active == false", "((s.active = ?))", "0 " },
    { "is_active isnot true", "((s.active <> ?))", "1 " },
    { "status == \"running\"", "((s.status = ?))", "'RUNNING' " },
    { "type == \"BATCH\"", "((s.type = ?))", "'batch' " },
    { "status in [\"running\", \"PENDING\"]", "((s.status IN (?,?)))", "'RUNNING' 'PENDING' " },
    { "size in [1,-2]", "((s.size IN (?,?)))", "1 -2 " },
    { "name like \"a%\"", "((s.name LIKE ? ESCAPE '\\'))", "'a%' " },
    { "name ilike \"%A_\"", "((LOWER(s.name) LIKE LOWER(?) ESCAPE '\\'))", "'%A_' " },
    { "name contains \"x\"", "((s.name LIKE '%' || ? || '%' ESCAPE '\\'))", "'x' " },
    { "id == \"2DE2B969-1d04-48a6-af16-0bc8adb3c831\"", "((s.id = ?))",
      "'2de2b969-1d04-48a6-af16-0bc8adb3c831' " },
    { "id == \"2de2b9691d0448a6af160bc8adb3c831\"", "((s.id = ?))",
      "'2de2b969-1d04-48a6-af16-0bc8adb3c831' " },
    { "id like \"2DE2%\"", "((s.id LIKE ? ESCAPE '\\'))", "'2de2%' " },
    { "created_at > \"1970-01-01T00:00:01\"", "((s.created > ?))", "1000000 " },
    { "!size < 2", "(NOT (s.size < ?))", "2 " },
    { "!(size < 2 | size > 3)", "(NOT ((s.size < ?) OR (s.size > ?)))", "2 3 " },
    { "size<1 | size<2 & size<3", "(((s.size < ?) OR (s.size < ?)) AND (s.size < ?))", "1 2 3 " },
    { "size<1 & size<2 | size<3 & size<4",
      "((((s.size < ?) AND (s.size < ?)) OR (s.size < ?)) AND (s.size < ?))", "1 2 3 4 " },
    { "size<1 & (size<2 | size<3)", "((s.size < ?) AND ((s.size < ?) OR (s.size < ?)))", "1 2 3 " },
    { " \t name == \"a\" \n", "((s.name = ?))", "'a' " },
    { "size == 9223372036854775807", "((s.size = ?))", "9223372036854775807 " },
};

static const char *const refused[] = {
    "",
    " ",
    "name",
    "name ==",
    "name = \"a\"",
    "== \"a\"",
    "\"a\" == name",
    "name == a",
    "name == \"a",
    "name == \"a\\\"",
    "name == \"a\" &",
    "name == \"a\" && size > 1",
    "(name == \"a\"",
    "name == \"a\")",
    "secret == \"a\"",
    "s.name == \"a\"",
    "Name == \"a\"",
    "name == 1",
    "name == true",
    "size == \"1\"",
    "size == true",
    "size == 1.5",
    "size == 1e3",
    "size == 9223372036854775808",
    "size == -",
    "size == null1",
    "size > null",
    "size like \"1\"",
    "created_at == 5",
    "created_at == \"yesterday\"",
    "created_at like \"2026%\"",
    "id == \"xyz\"",
    "id == \"2de2b969\"",
    "is_active == 1",
    "is_active like \"t\"",
    "name in []",
    "name in \"a\"",
    "name in [\"a\"",
    "name in [\"a\",]",
    "name in [[\"a\"]]",
    "name like 5",
    "name like null",
    "name ilike \"%%%%%%%%%%%%%%%%%\"",
    "name == \"a\"; DROP",
    "name == 'a'",
    "name == \"a\" name == \"b\"",
    "!",
    "()",
    "name isnot",
    "name not null",
    "1 == 1",
    "name == ?",
    "name -- \"a\"",
};

static char *compile(const char *text, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct filter_values *values = calloc(1, sizeof(*values));
    struct strbuf out = STRBUF_INIT;
    int r = filter_compile(text, fields, AQ_COUNT(fields), &arena, &out, values, err);

    strbuf_addc(&out, '|');
    for (size_t i = 0; i < values->count; i++)
        if (values->items[i].text)
            strbuf_addf(&out, "'%s' ", values->items[i].text);
        else
            strbuf_addf(&out, "%lld ", (long long)values->items[i].number);
    free(values);
    if (r == 0)
        return strbuf_steal(&out);
    strbuf_done(&out);
    return NULL;
}

static void test_accepted(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(accepted); i++) {
        AQ_CLEANUP(aq_freep) char *want = aq_format("%s|%s", accepted[i].sql, accepted[i].values);
        struct aq_error err = { 0 };
        AQ_CLEANUP(aq_freep) char *got = compile(accepted[i].filter, &err);

        assert_row(got, "%s: %s", accepted[i].filter, err.text);
        assert_row(strcmp(got, want) == 0, "%s: %s", accepted[i].filter, got);
    }
}

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(refused); i++) {
        struct aq_error err = { 0 };
        AQ_CLEANUP(aq_freep) char *got = compile(refused[i], &err);

        assert_row(!got, "%s gives %s", refused[i], got);
        assert_row(err.code == EINVAL && strcmp(err.field, "filter") == 0, "%s", refused[i]);
        assert_row(strncmp(err.text, "Query filter parsing error: ", 28) == 0, "%s", err.text);
    }
}

/* 'count' times 'item', with 'head' before and 'tail' after. */
static char *repeat(const char *head, const char *item, size_t count, const char *tail)
{
    struct strbuf out = STRBUF_INIT;

    strbuf_adds(&out, head);
    for (size_t i = 0; i < count; i++)
        strbuf_adds(&out, item);
    strbuf_adds(&out, tail);
    return strbuf_steal(&out);
}

static void test_limits(void **state)
{
    static const struct {
        const char *head, *item, *tail;
        size_t good, bad;
    } rows[] = {
        { "size in [0", ",1", "]", FILTER_VALUES_MAX - 1, FILTER_VALUES_MAX },
        { "size < 1", "&size<1", "", 100, FILTER_VALUES_MAX },
        { "", "!", "size < 1", FILTER_DEPTH_MAX - 1, FILTER_DEPTH_MAX },
        { "name == \"", "a", "\"", FILTER_TEXT_MAX - 10, FILTER_TEXT_MAX - 9 },
        { "name like \"", "%", "\"", FILTER_WILDCARDS_MAX, FILTER_WILDCARDS_MAX + 1 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(aq_freep) char *good = repeat(rows[i].head, rows[i].item, rows[i].good,
                                                 rows[i].tail);
        AQ_CLEANUP(aq_freep) char *bad = repeat(rows[i].head, rows[i].item, rows[i].bad,
                                                rows[i].tail);
        struct aq_error err = { 0 };
        AQ_CLEANUP(aq_freep) char *got = compile(good, &err);
        AQ_CLEANUP(aq_freep) char *none = compile(bad, NULL);

        assert_row(got, "%zu: %s", i, err.text);
        assert_row(!none, "%zu", i);
    }
}

/* ---- rows in memory ---- */

struct kept {
    const char *name, *type;
    int64_t size;
};

static const struct filter_field kept_fields[] = {
    { "name", "name", FILTER_STRING, .offset = offsetof(struct kept, name) },
    { "type", "type", FILTER_LOWER, .offset = offsetof(struct kept, type) },
    { "size", "size", FILTER_INT, .offset = offsetof(struct kept, size) },
};

static const struct kept rows_in_memory[] = {
    { "", "a", 0 },      { "abc", "a", 1 },   { "ABC", "b", 2 },         { "a%c", "b", -3 },
    { "a_c", "c", 4 },   { "abcabc", "", 5 }, { "p\303\251", "a", 1 },   { "a\\c", "c", 7 },
    { "aXbXc", "b", 8 }, { "bca", "a", 9 },   { "p\303\251x", "a", -1 }, { "abab", "b", 2 },
};

static sqlite3 *open_table(void)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db,
                     "PRAGMA case_sensitive_like=ON;"
                     "CREATE TABLE kept (at INTEGER, name TEXT, type TEXT, size INTEGER)",
                     NULL, NULL, NULL),
        SQLITE_OK);
    for (size_t i = 0; i < AQ_COUNT(rows_in_memory); i++) {
        char *sql = sqlite3_mprintf("INSERT INTO kept VALUES (%d, %Q, %Q, %lld)", (int)i,
                                    rows_in_memory[i].name, rows_in_memory[i].type,
                                    (long long)rows_in_memory[i].size);

        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_free(sql);
    }
    return db;
}

/* Which rows the SQL finds, bit by bit. */
static unsigned find_by_sql(sqlite3 *db, const char *filter)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;
    struct filter_values values = { .count = 0 };
    struct aq_error err = { 0 };
    unsigned found = 0;
    sqlite3_stmt *q;

    strbuf_adds(&sql, "SELECT at FROM kept WHERE ");
    assert_row(
        filter_compile(filter, kept_fields, AQ_COUNT(kept_fields), &arena, &sql, &values, &err)
            == 0,
        "%s: %s", filter, err.text);
    assert_int_equal(sqlite3_prepare_v2(db, sql.data, -1, &q, NULL), SQLITE_OK);
    for (size_t i = 0; i < values.count; i++)
        if (values.items[i].text)
            sqlite3_bind_text(q, (int)i + 1, values.items[i].text, -1, SQLITE_TRANSIENT);
        else
            sqlite3_bind_int64(q, (int)i + 1, values.items[i].number);
    while (sqlite3_step(q) == SQLITE_ROW)
        found |= 1u << sqlite3_column_int(q, 0);
    sqlite3_finalize(q);
    return found;
}

static unsigned find_in_memory(const char *filter)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const struct filter_program *program;
    struct aq_error err = { 0 };
    unsigned found = 0;

    assert_row(filter_read(filter, kept_fields, AQ_COUNT(kept_fields), &arena, &program, &err) == 0,
               "%s: %s", filter, err.text);
    for (size_t i = 0; i < AQ_COUNT(rows_in_memory); i++)
        found |= (unsigned)filter_match(program, &rows_in_memory[i]) << i;
    return found;
}

/* A filter finds the same rows in memory as SQLite does. */
static void test_match(void **state)
{
    static const char *const terms[] = {
        "name == \"abc\"",
        "name != \"abc\"",
        "name > \"a\"",
        "name <= \"abc\"",
        "name < \"b\"",
        "name >= \"a_c\"",
        "name is null",
        "name isnot null",
        "name like \"a%\"",
        "name like \"a_c\"",
        "name like \"a\\\\%c\"",
        "name like \"%b%b\"",
        "name like \"%ab\"",
        "name like \"p_\"",
        "name like \"\"",
        "name like \"%\"",
        "name like \"a%b%c%\"",
        "name ilike \"ABC%\"",
        "name ilike \"%x%X%\"",
        "name contains \"bc\"",
        "name contains \"b_a\"",
        "name contains \"\\\\_\"",
        "name contains \"\"",
        "name in [\"abc\", \"bca\"]",
        "type == \"A\"",
        "type in [\"B\", \"c\"]",
        "size == 1",
        "size != 1",
        "size < 2",
        "size >= 4",
        "size in [1, -3]",
        "size isnot null",
        "name like \"p__\"",
    };
    sqlite3 *db = open_table();

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(terms); i++) {
        assert_row(find_in_memory(terms[i]) == find_by_sql(db, terms[i]), "%s", terms[i]);
        for (size_t k = 0; k < 64; k++) {
            size_t j = (i * 7 + k * 5) % AQ_COUNT(terms), l = (i + k * 11) % AQ_COUNT(terms);
            AQ_CLEANUP(aq_freep) char *filter = aq_format(
                "%s%s %c %s(%s %c !%s)", k & 1 ? "!" : "", terms[i], k & 2 ? '&' : '|',
                k & 4 ? "!" : "", terms[j], k & 8 ? '&' : '|', terms[l]);
            AQ_CLEANUP(aq_freep) char *flat = aq_format("%s %c %s %c %s", terms[i],
                                                        k & 2 ? '&' : '|', terms[j],
                                                        k & 8 ? '&' : '|', terms[l]);

            assert_row(find_in_memory(filter) == find_by_sql(db, filter), "%s", filter);
            assert_row(find_in_memory(flat) == find_by_sql(db, flat), "%s", flat);
        }
    }
    sqlite3_close(db);
}

static void test_order_in_memory(void **state)
{
    const struct kept small = { "b", "x", 1 }, large = { "a", "x", 2 };
    struct order order;

    (void)state;
    assert_int_equal(order_read("type,-size", kept_fields, AQ_COUNT(kept_fields), &order, NULL), 0);
    assert_true(order_compare(&order, &small, &large) > 0);
    assert_int_equal(order_read("type, name", kept_fields, AQ_COUNT(kept_fields), &order, NULL), 0);
    assert_true(order_compare(&order, &small, &large) > 0);
    assert_int_equal(order_read("size", kept_fields, AQ_COUNT(kept_fields), &order, NULL), 0);
    assert_true(order_compare(&order, &small, &large) < 0);
    assert_int_equal(order_read("type", kept_fields, AQ_COUNT(kept_fields), &order, NULL), 0);
    assert_int_equal(order_compare(&order, &small, &large), 0);
    assert_int_equal(order_read("odd", kept_fields, AQ_COUNT(kept_fields), &order, NULL), -EINVAL);
}

static void test_order(void **state)
{
    static const struct {
        const char *order, *sql; /* NULL = refused */
    } rows[] = {
        { "name", "s.name ASC NULLS FIRST" },
        { "+name", "s.name ASC NULLS FIRST" },
        { "-created_at, name,+size",
          "s.created DESC NULLS LAST, s.name ASC NULLS FIRST, s.size ASC NULLS FIRST" },
        { " - name ", "s.name DESC NULLS LAST" },
        { "", NULL },
        { ",", NULL },
        { "name,", NULL },
        { "name size", NULL },
        { "secret", NULL },
        { "name DESC", NULL },
        { "--name", NULL },
        { "s.name", NULL },
        { "1", NULL },
        { "name,name,name,name,name,name,name,name,name", NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;
        struct aq_error err = { 0 };
        struct order order;
        int r = order_read(rows[i].order, fields, AQ_COUNT(fields), &order, &err);

        assert_row((r == 0) == (rows[i].sql != NULL), "'%s'", rows[i].order);
        if (r < 0) {
            assert_string_equal(err.field, "order");
            continue;
        }
        order_write(&order, &sql);
        assert_string_equal(sql.data, rows[i].sql);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limits),   cmocka_unit_test(test_order),
        cmocka_unit_test(test_match),    cmocka_unit_test(test_order_in_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
