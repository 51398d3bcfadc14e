/* SPDX-License-Identifier: Apache-2.0 */
/* Statements whose texts are built: which are kept. */
#include "testing.h"

#include <stdio.h>

#include "store/sql.h"

static unsigned prepared;

static int count_prepared(struct sql *db, const char *text, enum sql_use use, struct sql_stmt **ret,
                          struct aq_error *err)
{
    prepared++;
    return sql_sqlite.prepare(db, text, use, ret, err);
}

static struct sql *open_counting(void)
{
    static struct sql_ops counting;
    struct sql *db;

    counting = sql_sqlite;
    counting.prepare = count_prepared;
    prepared = 0;
    assert_int_equal(sql_open(&counting, &(struct sql_conf){ .where = ":memory:" }, &db, NULL), 0);
    return db;
}

/* "SELECT ? + <number>": prepared for it or not? */
static bool is_prepared_for(struct sql *db, int number)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    unsigned before = prepared;
    char text[64];

    (void)snprintf(text, sizeof(text), "SELECT ? + %d", number);
    assert_int_equal(sql_prepare_built(db, text, &q, NULL), 0);
    sql_put_int(q, before);
    assert_int_equal(sql_step(q, NULL), 1);
    assert_int_equal(sql_get_int(q), before + (unsigned)number);
    return prepared > before;
}

/* Sixteen are kept; the next takes the place of the one that was not used for longest. */
static void test_the_last_are_kept(void **state)
{
    AQ_CLEANUP(sql_closep) struct sql *db = open_counting();

    (void)state;
    for (int i = 0; i < 16; i++)
        assert_true(is_prepared_for(db, i));
    for (int i = 0; i < 16; i++)
        assert_false(is_prepared_for(db, i));
    assert_false(is_prepared_for(db, 0));
    assert_true(is_prepared_for(db, 16)); /* instead of 1 */
    assert_false(is_prepared_for(db, 0));
    assert_false(is_prepared_for(db, 2));
    assert_true(is_prepared_for(db, 1));
    assert_int_equal(db->built.count, 16);
}

/* One that is in use is neither shared nor dropped. */
static void test_in_use(void **state)
{
    AQ_CLEANUP(sql_closep) struct sql *db = open_counting();
    struct sql_stmt *used[17];
    char text[64];

    (void)state;
    for (int i = 0; i < 17; i++) {
        (void)snprintf(text, sizeof(text), "SELECT ? + %d", i);
        assert_int_equal(sql_prepare_built(db, text, &used[i], NULL), 0);
        sql_put_int(used[i], 100);
        assert_int_equal(sql_step(used[i], NULL), 1);
    }
    assert_true(is_prepared_for(db, 3));
    assert_true(is_prepared_for(db, 3));
    assert_true(is_prepared_for(db, 20));
    for (int i = 0; i < 17; i++) {
        assert_int_equal(sql_get_int(used[i]), 100 + i);
        sql_end(used[i]);
    }
    assert_false(is_prepared_for(db, 3));
    assert_true(is_prepared_for(db, 16));
}

/* What it was bound to is not seen by the next use. */
static void test_parameters_are_forgotten(void **state)
{
    AQ_CLEANUP(sql_closep) struct sql *db = open_counting();

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct sql_stmt *q;

        assert_int_equal(sql_prepare_built(db, "SELECT ?", &q, NULL), 0);
        if (i == 0)
            sql_put_text(q, "hush");
        assert_int_equal(sql_step(q, NULL), 1);
        assert_int_equal(i == 1, sql_get_is_null(q));
        sql_end(q);
    }
    assert_int_equal(prepared, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_are_kept),
        cmocka_unit_test(test_in_use),
        cmocka_unit_test(test_parameters_are_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
