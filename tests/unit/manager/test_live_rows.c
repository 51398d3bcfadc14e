/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of rows end with what the rows are, whatever they missed and however small the messages. */
#include "testing.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manager/live/live_rows.h"
#include "random.h"

static void set(struct live_rows *rows, const char *key, const char *fixed, const char *measured)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf a = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf b = STRBUF_INIT;

    strbuf_adds(&a, fixed);
    strbuf_adds(&b, measured);
    live_rows_set(rows, key, &a, &b);
}

/* The next message; "" = nothing is new. */
static const char *next(struct live_rows *rows, struct live_place *place, size_t size_max)
{
    const struct strbuf *text = live_rows_write(rows, "t", size_max, place);

    return text ? text->data : "";
}

static void test_only_what_has_changed(void **state)
{
    struct live_place early = { 0 }, late = { 0 };
    struct live_rows rows;

    (void)state;
    live_rows_init(&rows);
    assert_string_equal(next(&rows, &early, 1000),
                        "{\"type\":\"snapshot\",\"topic\":\"t\",\"set\":{},\"more\":false}");
    assert_string_equal(next(&rows, &early, 1000), "");
    set(&rows, "a", "\"x\":1", "\"u\":1");
    set(&rows, "b", "\"x\":2", "");
    assert_string_equal(next(&rows, &early, 1000),
                        "{\"type\":\"change\",\"topic\":\"t\",\"set\":{\"a\":{\"x\":1,\"u\":1},"
                        "\"b\":{\"x\":2}},\"gone\":[],\"more\":false}");
    set(&rows, "a", "\"x\":1", "\"u\":2");
    set(&rows, "b", "\"x\":2", "");
    assert_string_equal(
        next(&rows, &early, 1000),
        "{\"type\":\"change\",\"topic\":\"t\",\"set\":{\"a\":{\"u\":2}},\"gone\":[],"
        "\"more\":false}");
    live_rows_remove(&rows, "a");
    live_rows_remove(&rows, "never");
    assert_string_equal(next(&rows, &early, 1000),
                        "{\"type\":\"change\",\"topic\":\"t\",\"set\":{},\"gone\":[\"a\"],"
                        "\"more\":false}");
    assert_string_equal(next(&rows, &late, 1000),
                        "{\"type\":\"snapshot\",\"topic\":\"t\",\"set\":{\"b\":{\"x\":2}},"
                        "\"more\":false}");
    live_rows_done(&rows);
}

static void test_who_was_away_too_long_begins_again(void **state)
{
    struct live_place place = { 0 };
    struct live_rows rows;
    char key[32];

    (void)state;
    live_rows_init(&rows);
    set(&rows, "stays", "\"x\":1", "");
    (void)next(&rows, &place, 1000);
    for (int i = 0; i < 3 * LIVE_GONE_MAX; i++) {
        (void)snprintf(key, sizeof(key), "%d", i);
        set(&rows, key, "", "");
        live_rows_remove(&rows, key);
        live_rows_forget(&rows);
        assert_true(rows.gone_count <= LIVE_GONE_MAX);
    }
    assert_string_equal(next(&rows, &place, 1000),
                        "{\"type\":\"snapshot\",\"topic\":\"t\",\"set\":{\"stays\":{\"x\":1}},"
                        "\"more\":false}");
    live_rows_done(&rows);
}

/* ---- any order of changes and readings ---- */

#define KEYS 12
#define READERS 4

struct reader {
    struct live_place place;
    json_t *rows;
};

static void read_message(struct reader *reader, struct live_rows *rows, size_t size_max)
{
    const char *text = next(rows, &reader->place, size_max), *key;
    json_t *message, *fields, *row;
    size_t i;

    if (!*text)
        return;
    assert_non_null(message = json_loads(text, 0, NULL));
    if (strcmp(json_string_value(json_object_get(message, "type")), "snapshot") == 0)
        json_object_clear(reader->rows);
    json_object_foreach(json_object_get(message, "set"), key, fields) {
        if (!(row = json_object_get(reader->rows, key)))
            assert_int_equal(json_object_set_new(reader->rows, key, row = json_object()), 0);
        assert_int_equal(json_object_update(row, fields), 0);
    }
    json_array_foreach(json_object_get(message, "gone"), i, row)
        (void)json_object_del(reader->rows, json_string_value(row));
    json_decref(message);
}

static void change(struct live_rows *rows, struct test_random *random)
{
    char key[8], fixed[32], measured[32];

    (void)snprintf(key, sizeof(key), "%u", (unsigned)random_below(random, KEYS));
    (void)snprintf(fixed, sizeof(fixed), "\"x\":%u", (unsigned)random_below(random, 3));
    (void)snprintf(measured, sizeof(measured), "\"u\":%u", (unsigned)random_below(random, 9));
    if (random_below(random, 4) == 0)
        live_rows_remove(rows, key);
    else
        set(rows, key, fixed, measured);
}

/* Keys that are used once, so that removals are let go of. */
static void forget(struct live_rows *rows)
{
    static unsigned number;
    char key[16];

    for (int i = 0; i < 2 * LIVE_GONE_MAX; i++) {
        (void)snprintf(key, sizeof(key), "once-%u", number++);
        set(rows, key, "", "");
        live_rows_remove(rows, key);
        live_rows_forget(rows);
    }
}

static void check_reader(struct reader *reader, struct live_rows *rows)
{
    struct reader fresh = { .rows = json_object() };

    while (*next(rows,
                 &(struct live_place){ .seen = reader->place.seen,
                                       .has_begun = reader->place.has_begun,
                                       .is_behind = reader->place.is_behind },
                 1))
        read_message(reader, rows, 1);
    read_message(&fresh, rows, 1 << 20);
    assert_true(json_equal(fresh.rows, reader->rows));
    json_decref(fresh.rows);
}

static void test_any_order(void **state)
{
    struct test_random random = random_begin("live_rows");
    struct reader readers[READERS] = { 0 };
    struct live_rows rows;

    (void)state;
    live_rows_init(&rows);
    for (int i = 0; i < READERS; i++)
        readers[i].rows = json_object();
    for (uint64_t step = 0; step < random_scaled(20000); step++) {
        int64_t who = random_below(&random, READERS);

        if (random_below(&random, 3))
            change(&rows, &random);
        else
            read_message(&readers[who], &rows, (size_t)(1 + random_below(&random, 60)));
        if (step % 3000 == 0)
            forget(&rows);
        if (step % 1000 == 999)
            check_reader(&readers[who], &rows);
    }
    for (int i = 0; i < READERS; i++) {
        check_reader(&readers[i], &rows);
        json_decref(readers[i].rows);
    }
    live_rows_done(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_what_has_changed),
        cmocka_unit_test(test_who_was_away_too_long_begins_again),
        cmocka_unit_test(test_any_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
