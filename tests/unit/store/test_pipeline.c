/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of pipelines: who finds them, and how many a user may have. */
#include "store_testing.h"

#include "store/pipeline.h"
#include "store/transaction.h"

/* What a function of the store is to do, and found. */
struct asked {
    struct folder_viewer who;
    struct pipeline_row pipeline;
    struct pipeline_run_row run;
    const char *text; /* by which the run is looked for */
    struct arena arena;
};

static int begin(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct asked *asked = data;
    int r = pipeline_save(tx, &asked->pipeline, err);

    asked->run.pipeline_id = asked->pipeline.id;
    return r < 0 ? r : pipeline_run_insert(tx, &asked->run, err);
}

static int find(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct asked *asked = data;

    return pipeline_run_find(tx, &asked->who, asked->text, &asked->arena, &asked->run, err);
}

static int change(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct asked *asked = data;

    return pipeline_run_update(tx, &asked->run, err);
}

static int save(struct store_tx *tx, void *data, struct aq_error *err)
{
    return pipeline_save(tx, &((struct asked *)data)->pipeline, err);
}

/* All runs but the latest version's file. */
static int drop_runs(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, "DELETE FROM pipeline_runs", &q, err);

    (void)data;
    if (r < 0 || (r = sql_run(q, err)) < 0
        || (r = sql_prepare(tx->db,
                            "DELETE FROM pipelines WHERE saved_at < (SELECT MAX(saved_at) FROM"
                            " pipelines)",
                            &q, err))
               < 0)
        return r;
    return sql_run(q, err);
}

static int check(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct asked *asked = data;

    return pipeline_run_check_live(tx, &asked->run.user_id, err);
}

static struct asked ask_for(const struct bench *b)
{
    return (struct asked){
        .who.user_id = b->user_id,
        .pipeline = { .id = uuid_random(),
                      .user_id = b->user_id,
                      .name = "digits",
                      .hash = "0",
                      .text = "name: digits",
                      .saved_usec = 1 },
        .run = { .id = uuid_random(),
                 .user_id = b->user_id,
                 .access_key = "KEY",
                 .name = "digits",
                 .state = "running",
                 .parameters = "{}",
                 .options = "{}",
                 .created_usec = 2 },
        .text = "digits.1",
    };
}

static void test_who_finds_them(void **state)
{
    struct bench *b = *state;
    struct asked asked = ask_for(b);
    struct uuid run = asked.run.id;
    char id[UUID_TEXT_MAX];

    assert_int_equal(store_call(b->store, begin, &asked, NULL), 0);
    assert_int_equal(asked.run.number, 1);
    assert_int_equal(store_call(b->store, find, &asked, NULL), 0);
    assert_true(uuid_equals(&asked.run.id, &run));
    assert_string_equal(asked.run.text, "name: digits");
    asked.who.user_id = uuid_random();
    asked.text = uuid_format(&run, id);
    assert_int_equal(store_call(b->store, find, &asked, NULL), -ENOENT);
    asked.who.is_superadmin = true;
    assert_int_equal(store_call(b->store, find, &asked, NULL), 0);
    arena_done(&asked.arena);
}

/* Where the answer goes is not read, whatever it holds. */
static void test_one_that_is_gone_is_not_found(void **state)
{
    struct bench *b = *state;
    struct uuid none = uuid_random();
    char id[UUID_TEXT_MAX];
    struct asked asked = { .who.is_superadmin = true, .text = uuid_format(&none, id) };

    asked.run.text = "of another run";
    assert_int_equal(store_call(b->store, find, &asked, NULL), -ENOENT);
    arena_done(&asked.arena);
}

static void test_numbers_are_not_used_again(void **state)
{
    struct bench *b = *state;
    struct asked asked = ask_for(b);

    assert_int_equal(store_call(b->store, begin, &asked, NULL), 0);
    assert_int_equal(asked.run.number, 1);
    /* another version is saved, and the first one run once more */
    asked.pipeline.id = uuid_random();
    asked.pipeline.hash = "1";
    asked.pipeline.saved_usec = 2;
    assert_int_equal(store_call(b->store, save, &asked, NULL), 0);
    assert_int_equal(asked.pipeline.version, 2);
    asked.pipeline.hash = "0";
    asked.pipeline.saved_usec = 3;
    asked.run.id = uuid_random();
    assert_int_equal(store_call(b->store, begin, &asked, NULL), 0);
    assert_int_equal(asked.run.number, 2);
    asked.pipeline.hash = "1";
    asked.pipeline.saved_usec = 4;
    assert_int_equal(store_call(b->store, save, &asked, NULL), 0);

    assert_int_equal(store_call(b->store, drop_runs, &asked, NULL), 0);
    asked.run.id = uuid_random();
    assert_int_equal(store_call(b->store, begin, &asked, NULL), 0);
    assert_int_equal(asked.run.number, 3);
}

static void test_so_many_live_at_a_time(void **state)
{
    struct bench *b = *state;
    struct asked asked = ask_for(b);
    struct aq_error err = { 0 };

    for (int i = 0; i < PIPELINE_RUNS_LIVE_MAX; i++) {
        assert_int_equal(store_call(b->store, check, &asked, NULL), 0);
        asked.run.id = uuid_random();
        assert_int_equal(store_call(b->store, begin, &asked, NULL), 0);
    }
    assert_int_equal(store_call(b->store, check, &asked, &err), -E2BIG);
    assert_int_equal(store_call(b->store, begin, &asked, &err), -E2BIG);
    asked.run.state = "failed";
    asked.run.ended_usec = 3;
    assert_int_equal(store_call(b->store, change, &asked, NULL), 0);
    assert_int_equal(store_call(b->store, check, &asked, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_who_finds_them, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_one_that_is_gone_is_not_found, bench_setup,
                                        bench_teardown),
        cmocka_unit_test_setup_teardown(test_numbers_are_not_used_again, bench_setup,
                                        bench_teardown),
        cmocka_unit_test_setup_teardown(test_so_many_live_at_a_time, bench_setup, bench_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
