/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a document: it is parsed, or an error says why not. */
#include <stdint.h>
#include <stdlib.h>

#include "graphql/parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct gql_limits limits = { .bytes = 20000, .nesting = 100 };
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(document_unrefp) struct gql_document *doc = NULL;
    struct errors errors = { .arena = &arena };

    doc = document_parse((const char *)data, size, &limits, size % 2, &errors);
    if (!doc && !errors.count)
        abort();
    return 0;
}
