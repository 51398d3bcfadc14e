/* Replies, whole, for queries over the zoo. */
#include "testing.h"

#include "zoo_data.h"

static const struct {
    const char *query, *variables, *reply;
} rows[] = {
    { "{ cat { id name } }", NULL, "{\"data\":{\"cat\":{\"id\":\"c0\",\"name\":\"Tom\"}}}" },
};

static void test_replies(void **state)
{
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(NULL, 0);

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct gql_result result;

        zoo_reset();
        result = zoo_run(engine, rows[i].query, rows[i].variables, NULL, &out);
        assert_row(result.code == 0, "%s", rows[i].query);
        assert_row(strcmp(out.data, rows[i].reply) == 0, "%s\n got %s\nwant %s", rows[i].query,
                   out.data, rows[i].reply);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_replies) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
