/* SPDX-License-Identifier: Apache-2.0 */
/* Compares replies, whole, for queries over the zoo. */
#include "replies.h"

/* Each twice, so that its document comes from the cache, too. */
static void zoo_check_limited(const struct zoo_row *rows, size_t count,
                              const struct gql_limits *limits)
{
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(limits, 100);

    for (size_t i = 0; i < 2 * count; i++) {
        const struct zoo_row *row = &rows[i % count];
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct gql_result result;

        zoo_reset();
        result = zoo_run(engine, row->query, row->variables, NULL, &out);
        assert_row(result.code == 0, "%s", row->query);
        assert_row(strcmp(out.data, row->reply) == 0, "%s\n got %s\nwant %s", row->query, out.data,
                   row->reply);
        assert_int_equal(result.executed, strncmp(out.data, "{\"data\":", 8) == 0);
        assert_int_equal(result.errors > 0, strstr(out.data, "\"errors\":[{\"message\"") != NULL);
    }
}

void zoo_check(const struct zoo_row *rows, size_t count)
{
    static const struct gql_limits short_turns = { .turn = 1 };

    zoo_check_limited(rows, count, NULL);
    zoo_check_limited(rows, count, &short_turns); /* a pause before every value */
}
