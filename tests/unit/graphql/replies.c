/* SPDX-License-Identifier: Apache-2.0 */
/* Compares replies, whole, for queries over the zoo. */
#include "replies.h"

void zoo_check(const struct zoo_row *rows, size_t count)
{
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(NULL, 100);

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
