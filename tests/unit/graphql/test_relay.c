/* SPDX-License-Identifier: Apache-2.0 */
/* Global ids, and pages of a connection forwards and backwards. */
#include "testing.h"

#include <errno.h>

#include "graphql/relay.h"
#include "zoo_data.h"

static void test_global_ids(void **state)
{
    static const struct {
        const char *text, *type, *id;
    } rows[] = {
        { "Q2F0OmMw", "Cat", "c0" },
        { "Q2F0OmMw====", "Cat", "c0" },
        { "Y29tcHV0ZV9zZXNzaW9uX25vZGU6MmRlMmI5NjktMWQwNC00OGE2LWFmMTYtMGJjOGFkYjNjODMx",
          "compute_session_node", "2de2b969-1d04-48a6-af16-0bc8adb3c831" },
        { "2de2b969-1d04-48a6-af16-0bc8adb3c831", "", "2de2b969-1d04-48a6-af16-0bc8adb3c831" },
        { "c0", "", "c0" },
        { "", "", "" },
        { "Q2F0Og==", "", "Q2F0Og==" }, /* "Cat:" has no id */
        { "OmMw", "", "OmMw" },         /* ":c0" has no type */
        { "YSBiOmM=", "", "YSBiOmM=" }, /* "a b:c" */
        { "Q2F0Ov8=", "", "Q2F0Ov8=" }, /* "Cat:\xff" */
        { "not base64!", "", "not base64!" },
    };
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const char *type = NULL, *id = relay_global_id_parse(&arena, rows[i].text, &type);

        assert_row(id && strcmp(id, rows[i].id) == 0, "%s gives %s", rows[i].text, id);
        assert_row(strcmp(type, rows[i].type) == 0, "%s gives type %s", rows[i].text, type);
    }
    assert_string_equal(relay_global_id(&arena, "Cat", "c0"), "Q2F0OmMw");
    assert_string_equal(relay_global_id(&arena, "Cat", "c"), "Q2F0OmM=");
    assert_string_equal(relay_global_id(&arena, "Cat", ""), "Q2F0Og==");
    assert_ptr_equal(relay_node_type(&zoo_schema, "Cat"), zoo_schema.types[ZOO_TYPE_Cat - 1]);
    assert_null(relay_node_type(&zoo_schema, "Strict"));
    assert_null(relay_node_type(&zoo_schema, "Nobody"));
}

static const struct gql_value absent = { .kind = GQL_ABSENT };

static void test_arguments(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct gql_value cursor = gql_text("Q2F0OmMw"), five = gql_int(5);
    struct relay_part part;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(
        relay_part_parse(&arena, five, cursor, absent, absent, gql_int(2), 100, &part, &err), 0);
    assert_false(part.is_from_end);
    assert_string_equal(part.after, "c0");
    assert_int_equal(part.limit, 5);
    assert_int_equal(part.offset, 2);

    assert_int_equal(
        relay_part_parse(&arena, absent, absent, five, cursor, absent, 100, &part, &err), 0);
    assert_true(part.is_from_end);
    assert_string_equal(part.before, "c0");
    assert_int_equal(part.limit, 5);

    assert_int_equal(
        relay_part_parse(&arena, absent, gql_null(), absent, cursor, absent, 100, &part, &err), 0);
    assert_true(part.is_from_end);
    assert_int_equal(part.limit, 100);

    assert_int_equal(
        relay_part_parse(&arena, absent, gql_null(), absent, absent, absent, 30, &part, &err), 0);
    assert_int_equal(part.limit, 30);
    assert_int_equal(
        relay_part_parse(&arena, gql_int(0), absent, absent, absent, absent, 30, &part, &err), 0);
    assert_int_equal(part.limit, 0);

    assert_int_equal(relay_part_parse(&arena, five, absent, five, absent, absent, 100, &part, &err),
                     -EINVAL);
    assert_string_equal(err.text, "first and last cannot be used together");
    assert_int_equal(
        relay_part_parse(&arena, gql_int(-1), absent, absent, absent, absent, 100, &part, &err),
        -EINVAL);
    assert_string_equal(err.field, "first");
    assert_int_equal(
        relay_part_parse(&arena, gql_int(101), absent, absent, absent, absent, 100, &part, &err),
        -EINVAL);
    assert_int_equal(
        relay_part_parse(&arena, five, absent, absent, cursor, absent, 100, &part, &err), -EINVAL);
    assert_int_equal(
        relay_part_parse(&arena, absent, cursor, five, absent, absent, 100, &part, &err), -EINVAL);
    assert_int_equal(
        relay_part_parse(&arena, absent, cursor, absent, cursor, absent, 100, &part, &err),
        -EINVAL);
}

static const char *id_of(const void *row, char scratch[64])
{
    (void)scratch;
    return row;
}

/* A page of rows called "a", "b", ... */
static void check_page(uint32_t count, int64_t first, const char *last, bool next, bool previous)
{
    static const char rows[][2] = { "a", "b", "c" };
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct relay_connection *c = relay_connection_new(&arena, "Row", id_of, rows, sizeof(rows[0]),
                                                      count, first, 9);
    const char *type;

    assert_non_null(c);
    assert_int_equal(c->has_next, next);
    assert_int_equal(c->has_previous, previous);
    assert_int_equal(c->count, 9);
    assert_int_equal(c->edges.count, count);
    if (!last) {
        assert_null(c->start_cursor);
        assert_null(c->end_cursor);
        return;
    }
    assert_string_equal(relay_global_id_parse(&arena, c->start_cursor, &type), "a");
    assert_string_equal(relay_global_id_parse(&arena, c->end_cursor, &type), last);
    assert_string_equal(((const struct relay_edge *)c->edges.rows[0])->node, "a");
}

static void test_connections(void **state)
{
    (void)state;
    check_page(2, 0, "b", true, false);
    check_page(3, 6, "c", false, true);
    check_page(1, 4, "a", true, true);
    check_page(0, 0, NULL, true, false);
    check_page(0, 9, NULL, false, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_global_ids),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_connections),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
