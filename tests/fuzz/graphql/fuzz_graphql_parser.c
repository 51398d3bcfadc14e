/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a document and as a schema: what is printed of a schema is
 * read again as the same schema.
 */
#include <stdint.h>
#include <stdlib.h>

#include "graphql/parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_schema(const char *text, size_t len)
{
    AQ_CLEANUP(gql_schema_freep) struct gql_schema *schema = NULL, *again = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf printed = STRBUF_INIT, twice = STRBUF_INIT;
    struct aq_error err = { 0 };

    if (gql_schema_parse(text, len, &schema, &err) < 0)
        return;
    gql_schema_print(schema, &printed);
    if (gql_schema_parse(printed.data, printed.len, &again, &err) < 0)
        abort();
    gql_schema_print(again, &twice);
    if (strcmp(printed.data, twice.data) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct gql_limits limits = { .bytes = 20000, .nesting = 100 };
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(document_unrefp) struct gql_document *doc = NULL;
    struct errors errors = { .arena = &arena };

    doc = document_parse((const char *)data, size, &limits, size % 2, &errors);
    if (!doc && !errors.count)
        abort();
    if (doc)
        check_schema((const char *)data, size);
    return 0;
}
