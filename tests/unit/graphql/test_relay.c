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
    struct relay_args args;
    struct aq_error err = { 0 };
    struct relay_page page;

    (void)state;
    assert_int_equal(
        relay_args_parse(&arena, five, cursor, absent, absent, gql_int(2), 100, &args, &err), 0);
    page = relay_page_of(&args);
    assert_false(page.backward);
    assert_string_equal(page.cursor, "c0");
    assert_int_equal(page.limit, 6);
    assert_int_equal(page.offset, 2);

    assert_int_equal(
        relay_args_parse(&arena, absent, absent, five, cursor, absent, 100, &args, &err), 0);
    page = relay_page_of(&args);
    assert_true(page.backward);
    assert_string_equal(page.cursor, "c0");

    assert_int_equal(
        relay_args_parse(&arena, absent, gql_null(), absent, absent, absent, 30, &args, &err), 0);
    assert_int_equal(relay_page_of(&args).limit, 31);

    assert_int_equal(relay_args_parse(&arena, five, absent, five, absent, absent, 100, &args, &err),
                     -EINVAL);
    assert_string_equal(err.text, "first and last cannot be used together");
    assert_int_equal(
        relay_args_parse(&arena, gql_int(-1), absent, absent, absent, absent, 100, &args, &err),
        -EINVAL);
    assert_string_equal(err.field, "first");
    assert_int_equal(
        relay_args_parse(&arena, gql_int(101), absent, absent, absent, absent, 100, &args, &err),
        -EINVAL);
    assert_int_equal(
        relay_args_parse(&arena, five, absent, absent, cursor, absent, 100, &args, &err), -EINVAL);
    assert_int_equal(
        relay_args_parse(&arena, absent, cursor, five, absent, absent, 100, &args, &err), -EINVAL);
}

static const char *id_of(const void *row)
{
    return row;
}

static void check_page(struct relay_page page, uint32_t fetched, const char *first,
                       const char *last, bool next, bool previous)
{
    static const void *const rows[] = { "a", "b", "c" };
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct relay_connection *c = relay_connection_new(&arena, &page, "Row", rows, fetched, 9,
                                                      id_of);
    const char *type;

    assert_non_null(c);
    assert_int_equal(c->has_next, next);
    assert_int_equal(c->has_previous, previous);
    assert_int_equal(c->count, 9);
    if (!first) {
        assert_null(c->start_cursor);
        assert_int_equal(c->edges.count, 0);
        return;
    }
    assert_string_equal(relay_global_id_parse(&arena, c->start_cursor, &type), first);
    assert_string_equal(relay_global_id_parse(&arena, c->end_cursor, &type), last);
    assert_string_equal(((const struct relay_edge *)c->edges.rows[0])->node, first);
}

static void test_connections(void **state)
{
    (void)state;
    check_page((struct relay_page){ false, NULL, 3, 0 }, 3, "a", "b", true, false);
    check_page((struct relay_page){ false, NULL, 4, 0 }, 3, "a", "c", false, false);
    check_page((struct relay_page){ false, "x", 3, 0 }, 2, "a", "b", false, true);
    check_page((struct relay_page){ false, NULL, 3, 5 }, 0, NULL, NULL, false, true);
    check_page((struct relay_page){ true, NULL, 3, 0 }, 3, "b", "a", false, true);
    check_page((struct relay_page){ true, "x", 4, 0 }, 3, "c", "a", true, false);
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
